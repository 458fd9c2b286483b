"""Finds the packages of Python environments without running anything."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path

from gclint.facts import is_dir, matching, package_locations, read_text, real_path, variable

_PACKAGES = (
    "lib/python3*/site-packages",
    "lib/python3*/dist-packages",
    "lib/python3/dist-packages",
    "Lib/site-packages",
)
_MOST_ADDED = 1_000
"""How many folders the files of an environment add at most; real ones add a few."""
_ACTIVE = ("VIRTUAL_ENV", "CONDA_PREFIX")


def active_environments() -> tuple[Path, ...]:
    """Return the environments that a run may belong to: the active ones, and gclint's own interpreter."""
    active = (variable(name) for name in _ACTIVE)
    return (*(Path(folder) for folder in active if folder), Path(sys.executable))


def package_folders(environment: Path, name: str) -> Iterator[Path]:
    """Yield the folders where a top-level package may be, which is not imported.

    The environment is given by its folder or its interpreter.
    """
    if environment == Path(sys.executable):
        yield from map(Path, package_locations(name))
    for prefix in _prefixes(environment):
        for pattern in _PACKAGES:
            for packages in _matching(prefix, pattern):
                yield packages / name
                for folder in islice(_added(packages), _MOST_ADDED):
                    yield folder / name


def _matching(prefix: Path, pattern: str) -> Iterator[Path]:
    """Yield the folders that match a pattern of several parts, the latest name first."""
    first, _, rest = pattern.partition("/")
    for folder in reversed(matching(prefix, first)):
        if rest:
            yield from _matching(folder, rest)
        elif is_dir(folder):
            yield folder


def _prefixes(environment: Path) -> Iterator[Path]:
    """Yield the folders of an environment, and of its base environment if it uses that one's packages."""
    if is_dir(environment):
        yield environment
        return
    folder = environment.parent.parent
    yield folder
    resolved = real_path(environment).parent.parent
    try:
        configuration = read_text(folder / "pyvenv.cfg", "replace")
    except OSError:
        sees_more = True  # This is not a virtual environment: the interpreter may be a link to one elsewhere.
    else:
        words = configuration.lower().replace(" ", "")
        sees_more = "include-system-site-packages=true" in words
    if sees_more and resolved != folder:
        yield resolved


def _added(packages: Path) -> Iterator[Path]:
    """Yield the folders that an editable installation adds to the path."""
    for pth in matching(packages, "*.pth"):
        with suppress(OSError):
            for line in read_text(pth, "replace").splitlines():
                if line.strip() and not line.startswith(("import ", "import\t", "#")):
                    yield packages / line.strip()
