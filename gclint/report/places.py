"""Where files lie for who reads a report elsewhere: from the root of the repository, as CI wants it."""

from __future__ import annotations

import os
from functools import cached_property
from pathlib import Path, PurePath
from typing import TYPE_CHECKING
from urllib.parse import quote_from_bytes

from gclint.facts import is_there, real_path

if TYPE_CHECKING:
    from gclint.finding import Position
    from gclint.source.project import Project

_UNRESERVED = "/~"


class Places:
    """The places of a report's findings, from the root of the repository that gclint runs in."""

    def __init__(self, project: Project) -> None:
        """Let places be those of a project's files, with their present texts."""
        self._project = project
        self._names: dict[Path, str | None] = {}

    @cached_property
    def root(self) -> Path:
        """The nearest folder upwards from the working directory that git knows; else that directory."""
        try:
            here = Path.cwd()
        except OSError:  # It has been deleted, so nothing lies in it.
            return Path(os.devnull)
        return next((each for each in (here, *here.parents) if is_there(each / ".git")), here)

    def inside(self, path: Path) -> str | None:
        """Return the way from the root to a file, with slashes; None for one that lies elsewhere."""
        if path not in self._names:
            self._names[path] = self._way(path)
        return self._names[path]

    def name(self, path: Path) -> str:
        """Return the way from the root to a file, or its absolute path; always text that can be encoded."""
        found = self.inside(path)
        name = Path(os.path.abspath(path)).as_posix() if found is None else found  # noqa: PTH100
        return os.fsencode(name).decode(errors="replace")

    def uri(self, path: Path) -> str:
        """Return the same as a URI reference: relative inside of the root, absolute elsewhere."""
        found = self.inside(path)
        if found is None:
            return file_uri(Path(os.path.abspath(path)))  # noqa: PTH100
        # What has a colon before the first slash would be taken for one with a scheme.
        return quote_from_bytes(os.fsencode(found), safe=_UNRESERVED)

    def position(self, path: Path, offset: int) -> Position:
        """Return the row and the column of an offset."""
        return self._project.file(path).position(offset)

    def last(self, path: Path, start: int, end: int) -> Position:
        """Return where the last character of ``[start, end)`` stands, or the first if it is empty."""
        return self.position(path, max(start, end - 1))

    def _way(self, path: Path) -> str | None:
        absolute = Path(os.path.abspath(path))  # noqa: PTH100
        if absolute.is_relative_to(self.root):
            return absolute.relative_to(self.root).as_posix()
        real, root = self._project.location(path), real_path(self.root)
        return real.relative_to(root).as_posix() if real.is_relative_to(root) else None


def file_uri(path: PurePath) -> str:
    """Return the URI of an absolute path, whatever bytes it has."""
    safe = f"{_UNRESERVED}:" if path.drive else _UNRESERVED
    name = quote_from_bytes(os.fsencode(path.as_posix()), safe=safe)
    if name.startswith("//"):  # A share of Windows, whose host is that of the URI.
        return f"file:{name}"
    return f"file://{name}" if name.startswith("/") else f"file:///{name}"
