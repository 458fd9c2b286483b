"""Releases of transformers, fetched once from PyPI and unpacked, never installed."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from tests.environment import CACHE


class ReleaseUnavailable(Exception):
    """The wheel cannot be fetched; the message says why."""


def release_tree(version: str) -> Path:
    """Return the folder that holds ``transformers/`` of that release, fetching it if need be.

    Raises:
        ReleaseUnavailable: there is no such release, or PyPI cannot be reached.
    """
    tree = CACHE / "releases" / version
    if not tree.is_dir():
        tree.parent.mkdir(parents=True, exist_ok=True)
        # Complete or not there at all, even if this is killed or runs twice at once.
        with tempfile.TemporaryDirectory(dir=tree.parent) as workplace:
            unpacked = Path(workplace, version)
            with zipfile.ZipFile(_download(version, Path(workplace))) as wheel:
                wheel.extractall(unpacked)
            try:
                unpacked.rename(tree)
            except OSError:
                if not tree.is_dir():
                    raise
    return tree


def copy_of_release(version: str, target: Path) -> Path:
    """Copy the Python files of a release's ``transformers/`` below ``target``; return that copy.

    Raises:
        ReleaseUnavailable: as :func:`release_tree`.
    """
    source = release_tree(version) / "transformers"
    files = (path for path in source.rglob("*.py") if path.is_file())
    for path in files:
        copy = target / "transformers" / path.relative_to(source)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)
    return target / "transformers"


def _download(version: str, folder: Path) -> Path:
    requirement = f"transformers=={version}"
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    run = subprocess.run(
        [*pip, "--no-deps", "--only-binary=:all:", "--dest", str(folder), requirement],
        capture_output=True,
        text=True,
    )
    wheels = list(folder.glob("*.whl"))
    if run.returncode or not wheels:
        said = run.stderr.strip() or "pip downloaded no wheel"
        raise ReleaseUnavailable(f"cannot fetch {requirement}: {said.splitlines()[-1]}")
    return wheels[0]
