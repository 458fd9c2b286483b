"""Formats paths and foreign text for people.

Names and texts come from repositories, which may contain anything. All output for people passes through
:func:`printable`, and JSON through :func:`inert`, which leave nothing that a terminal or CI would act on.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable
from pathlib import Path

_COMMAND = re.compile(r"^(\s*):(?=:)|#(?=#\w*\[)")
"""A character without which a line is no command: of GitHub's runners, which ignore white space before
``::error::``, and find ``##[error]`` anywhere in a line, of Azure's (``##vso[…]``) and of TeamCity's."""
_ACTIVE = re.compile(r"(?:^|\r)[^\S\r]*::[\w-][^\r]*?::|##\w*\[|[\x00-\x08\x0b\x0e-\x1f\x7f-\x9f]")


def shown(path: Path | str) -> str:
    """Return a path for people: relative to the working directory if that is shorter, and printable."""
    return printable(shortened(path))


def shortened(path: Path | str) -> str:
    """Return a path as it is, or relative to the working directory if that is shorter."""
    written = str(path)
    # After a link, `..` leads to a folder that the path does not name.
    if os.pardir in Path(path).parts:
        return written
    try:
        return min(written, os.path.relpath(written), key=len)
    except OSError:  # The working directory does not exist any more.
        return written


def printable(text: str) -> str:
    r"""Return ``text`` so that it can be printed as a line, or a part of one, without any effect.

    Control characters, those that change the direction of text, and what cannot be encoded are escaped, such
    as ``\x1b``, and so is what would make the line a command of a CI system.
    """
    if not text.isprintable():
        text = "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)
    return inert(text, lambda each: f"\\x{ord(each):x}") if "::" in text or "##" in text else text


def as_argument(path: Path | str) -> str:
    """Return a path as :func:`shown`, to be part of a command that people copy to a shell."""
    written = shown(path)
    return shlex.quote(f"./{written}" if written.startswith("-") else written)


def inert(line: str, escaped: Callable[[str], str]) -> str:
    """Return a line that no CI system takes for a command.

    A character of it is ``escaped`` as the output's format does it.
    """
    return _COMMAND.sub(lambda found: f"{found[1] or ''}{escaped(found[0][-1])}", line)


def is_active(line: str) -> bool:
    """Return whether a line that is printed as it is would be a command of a CI system, or of a terminal."""
    return _ACTIVE.search(line) is not None


def behind_line(path: Path, own: Path) -> str:
    """Return what to say behind a line of a file: of which file it is, if it is not that of the finding."""
    return "" if path == own else f" of {shown(path)}"
