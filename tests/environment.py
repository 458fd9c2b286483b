"""Virtual environments for the demonstration and the tests; needs nothing but Python and pip."""

from __future__ import annotations

import os
import subprocess
import venv
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
CACHE = PROJECT / ".cache"
"""Everything that is fetched or built goes here; git ignores it."""

_FOUND, _UNPACKED = "Collecting ", "Installing collected packages: "
"""How the lines begin that pip prints for each package, and for all of them."""
_FOUND_AT_ONCE = 25
_LAST_LINES = 30


class EnvironmentUnavailable(Exception):
    """A virtual environment cannot be set up; the message says which."""


def fresh_environment(folder: Path, *requirements: str) -> Path:
    """Make a virtual environment in ``folder``, in place of one that may be there; return its Python.

    Prints how far pip is.

    Args:
        folder: where to make it.
        requirements: what to install, as arguments to ``pip install``.

    Raises:
        EnvironmentUnavailable: pip cannot install them; what it said is printed.
    """
    venv.create(folder, clear=True, with_pip=True)
    python = python_of(folder)
    install = [str(python), "-m", "pip", "install", "--disable-pip-version-check", *requirements]
    said: list[str] = []
    found = 0
    with subprocess.Popen(
        install,
        cwd=PROJECT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
    ) as run:
        assert run.stdout is not None
        for line in run.stdout:
            said.append(line)
            found += line.startswith(_FOUND)
            progress = _progress(line, found)
            if progress:
                print(f"   {progress}", flush=True)
    if run.returncode:
        print("".join(said[-_LAST_LINES:]), flush=True)
        raise EnvironmentUnavailable(f"cannot install {' '.join(requirements)} into {folder}")
    return python


def _progress(line: str, found: int) -> str:
    """Return what a line of pip says about how far it is, if it says something new."""
    if line.startswith(_FOUND) and found % _FOUND_AT_ONCE == 0:
        return f"{found} packages found"
    if line.startswith(_UNPACKED):
        return f"unpacking {line.count(',') + 1} packages"
    return ""


def python_of(folder: Path) -> Path:
    """Return the Python of the virtual environment in ``folder``."""
    return folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def announce(text: str) -> None:
    """Print what is going to be done, before a subprocess prints anything."""
    print(f"\n== {text}", flush=True)
