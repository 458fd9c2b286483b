"""Finds the file of transformers that defines an exported class, without its tables of lazy imports."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

from gclint.facts import entries, matching, read_bytes

# A search for a literal beginning is ten times as fast as one for the start of a line.
_CLASS = re.compile(rb"\nclass (\w+)")
_OTHER_FRAMEWORKS = ("modeling_tf_", "modeling_flax_")


class Exports:
    """The exported model classes of a library."""

    def __init__(self, library: Path) -> None:
        """Remember the folder of the package, without reading it."""
        self._models = library / "models"

    def file_of(self, name: str) -> Path | None:
        """Return the modeling file that defines the class ``name``.

        The name of a class usually begins with that of the model's folder. Only if it is not found there,
        all models are searched, once.
        """
        lowered = name.lower()
        for folder in self._folders:
            if lowered.startswith(folder.name.replace("_", "")):
                for path in _modeling_files(folder):
                    if name.encode() in _classes(path):
                        return path
        return self._all.get(name.encode())

    def may_have(self, name: str) -> bool:
        """Return whether a file of any model contains a name, and the package may export it."""
        lowered, wanted = name.lower(), name.encode()
        likely = [each for each in self._folders if lowered.startswith(each.name.replace("_", ""))]
        folders = dict.fromkeys((*likely, *self._folders))
        return any(wanted in _read(path) for folder in folders for path in matching(folder, "*.py"))

    @cached_property
    def _folders(self) -> list[Path]:
        """The folders of the models, those with the longest names first."""
        try:
            names = [each.name for each in entries(self._models) if not each.name.startswith((".", "_"))]
        except OSError:
            return []
        return [self._models / name for name in sorted(names, key=lambda name: (-len(name), name))]

    @cached_property
    def _all(self) -> dict[bytes, Path]:
        return {
            name: path
            for folder in self._folders
            for path in _modeling_files(folder)
            for name in _classes(path)
        }


def _modeling_files(folder: Path) -> Iterator[Path]:
    for path in matching(folder, "modeling_*.py"):
        if not path.name.startswith(_OTHER_FRAMEWORKS):
            yield path


def _classes(path: Path) -> list[bytes]:
    return _CLASS.findall(b"\n" + _read(path))


def _read(path: Path) -> bytes:
    try:
        return read_bytes(path)
    except OSError:
        return b""
