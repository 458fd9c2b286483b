"""Wheels fetched once from PyPI and unpacked, never installed."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path


class WheelUnavailable(Exception):
    """The wheel cannot be fetched; the message says why."""


def wheel_tree(requirement: str, tree: Path) -> Path:
    """Unpack the wheel of a pinned ``requirement`` into the folder ``tree``, unless it is there; return it.

    Raises:
        WheelUnavailable: there is no such wheel, or PyPI cannot be reached.
    """
    if not tree.is_dir():
        tree.parent.mkdir(parents=True, exist_ok=True)
        # Complete or not there at all, even if this is killed or runs twice at once.
        with tempfile.TemporaryDirectory(dir=tree.parent) as workplace:
            unpacked = Path(workplace, tree.name)
            with zipfile.ZipFile(_download(requirement, Path(workplace))) as wheel:
                wheel.extractall(unpacked)
            try:
                unpacked.rename(tree)
            except OSError:
                if not tree.is_dir():
                    raise
    return tree


def _download(requirement: str, folder: Path) -> Path:
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    run = subprocess.run(
        [*pip, "--no-deps", "--only-binary=:all:", "--dest", str(folder), requirement],
        capture_output=True,
        text=True,
    )
    wheels = list(folder.glob("*.whl"))
    if run.returncode or not wheels:
        said = run.stderr.strip() or "pip downloaded no wheel"
        raise WheelUnavailable(f"cannot fetch {requirement}: {said.splitlines()[-1]}")
    return wheels[0]
