"""Releases of transformers, as files."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.ecosystem.wheels import wheel_tree
from tests.environment import CACHE


def release_tree(version: str) -> Path:
    """Return the folder that holds ``transformers/`` of that release, fetching it if need be.

    Raises:
        WheelUnavailable: there is no such release, or PyPI cannot be reached.
    """
    return wheel_tree(f"transformers=={version}", CACHE / "releases" / version)


def copy_of_release(version: str, target: Path) -> Path:
    """Copy the Python files of a release's ``transformers/`` below ``target``; return that copy.

    Raises:
        WheelUnavailable: as :func:`release_tree`.
    """
    source = release_tree(version) / "transformers"
    files = (path for path in source.rglob("*.py") if path.is_file())
    for path in files:
        copy = target / "transformers" / path.relative_to(source)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)
    return target / "transformers"
