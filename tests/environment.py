"""Virtual environments for the demonstration and the tests; needs nothing but Python and pip."""

from __future__ import annotations

import os
import subprocess
import venv
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
CACHE = PROJECT / ".cache"
"""Everything that is fetched or built goes here; git ignores it."""


class EnvironmentUnavailable(Exception):
    """A virtual environment cannot be set up; the message says which."""


def fresh_environment(folder: Path, *requirements: str) -> Path:
    """Make a virtual environment in ``folder``, in place of one that may be there; return its Python.

    Args:
        folder: where to make it.
        requirements: what to install, as arguments to ``pip install``.

    Raises:
        EnvironmentUnavailable: pip cannot install them; it has said why.
    """
    venv.create(folder, clear=True, with_pip=True)
    python = python_of(folder)
    install = [str(python), "-m", "pip", "install", "-qq", "--disable-pip-version-check", *requirements]
    if subprocess.run(install, cwd=PROJECT).returncode:
        raise EnvironmentUnavailable(f"cannot install {' '.join(requirements)} into {folder}")
    return python


def python_of(folder: Path) -> Path:
    """Return the Python of the virtual environment in ``folder``."""
    return folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def announce(text: str) -> None:
    """Print what is going to be done, before a subprocess prints anything."""
    print(f"\n== {text}", flush=True)
