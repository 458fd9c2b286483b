"""Where the packages of Python environments lie, found without running anything."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from importlib.machinery import PathFinder
from pathlib import Path

_PACKAGES = (
    "lib/python3*/site-packages",
    "lib/python3*/dist-packages",
    "lib/python3/dist-packages",
    "Lib/site-packages",
)
_ACTIVE = ("VIRTUAL_ENV", "CONDA_PREFIX")


def active_environments() -> tuple[Path, ...]:
    """Return the environments that a run may belong to: the active ones, and gclint's own interpreter."""
    active = (os.environ.get(name) for name in _ACTIVE)
    return (*(Path(folder) for folder in active if folder), Path(sys.executable))


def package_folders(environment: Path, name: str) -> Iterator[Path]:
    """Yield where the package ``name`` may lie in an environment.

    Args:
        environment: its folder, or its interpreter.
        name: a top-level package; it is not imported.
    """
    if environment == Path(sys.executable):
        # Not importlib.util.find_spec, which may load what hooks into imports.
        spec = PathFinder.find_spec(name)
        for location in (spec and spec.submodule_search_locations) or ():
            yield Path(location)
    for prefix in _prefixes(environment):
        for pattern in _PACKAGES:
            for packages in sorted(prefix.glob(pattern), reverse=True):
                yield packages / name
                for folder in _added(packages):
                    yield folder / name


def _prefixes(environment: Path) -> Iterator[Path]:
    """Yield the folders of an environment, and of the one that it was made from if it sees that one."""
    if environment.is_dir():
        yield environment
        return
    folder = environment.parent.parent
    yield folder
    resolved = Path(os.path.realpath(environment)).parent.parent
    try:
        configuration = (folder / "pyvenv.cfg").read_text(encoding="utf-8", errors="replace")
    except OSError:
        sees_more = True  # This is no virtual environment: the interpreter may be a link to one elsewhere.
    else:
        words = configuration.lower().replace(" ", "")
        sees_more = "include-system-site-packages=true" in words
    if sees_more and resolved != folder:
        yield resolved


def _added(packages: Path) -> Iterator[Path]:
    """Yield the folders that an editable installation adds to the path."""
    for pth in sorted(packages.glob("*.pth")):
        with suppress(OSError):
            for line in pth.read_text(encoding="utf-8", errors="replace").splitlines():
                if line.strip() and not line.startswith(("import ", "import\t", "#")):
                    yield packages / line.strip()
