"""Finds the programs that gclint starts, so that nothing in the working directory is taken for one of them.

The working directory is often a repository that somebody else wrote. Python looks there first for the modules
that ``python -m`` and ``python -c`` import, and Windows for programs.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

_FLAGS = {
    "isolated": "-I",
    "ignore_environment": "-E",
    "no_user_site": "-s",
    "no_site": "-S",
    "dont_write_bytecode": "-B",
    "utf8_mode": "-Xutf8",
}
"""The fields of ``sys.flags`` that a process of the same interpreter shares, and their options."""


def find(name: str) -> Path:
    """Return the absolute path of a program; entries of ``PATH`` that are relative are ignored.

    Raises:
        FileNotFoundError: there is none.
    """
    file = f"{name}.exe" if sys.platform == "win32" and not name.lower().endswith(".exe") else name
    for folder in os.get_exec_path():
        path = Path(folder, file)
        if path.is_absolute() and path.is_file() and os.access(path, os.X_OK):
            return path
    raise FileNotFoundError(2, "there is none in PATH", name)


def interpreter(python: Path) -> Path:
    """Return the absolute path of an interpreter; a name without a folder is looked up in ``PATH``.

    It is not resolved, since the interpreter of a virtual environment is a link to another one.

    Raises:
        FileNotFoundError: there is no such program in ``PATH``.
    """
    return find(python.name) if python == Path(python.name) else python.absolute()


def own_program(module: str) -> list[str]:
    """Return the command that calls ``main`` of a module of gclint in another process of this interpreter.

    That process looks for modules where this one does, and nowhere else: the path is replaced before
    anything is imported that is not built in.
    """
    folders = [str(Path(each).absolute()) for each in sys.path]
    flags = [option for name, option in _FLAGS.items() if getattr(sys.flags, name)]
    code = f"import sys; sys.path[:] = {folders!a}; from {module} import main; main()"
    return [sys.executable, *flags, "-c", code]
