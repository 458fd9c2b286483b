"""Prints text for people, wrapped at words on a terminal and otherwise a line each, and JSON for programs."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable
from typing import Any, TextIO

from gclint.code.paths import inert, printable

_NARROWEST = 40
_USUAL_WIDTH = 80
_HANGING = 4


def write_lines(texts: Iterable[str], stream: TextIO) -> None:
    """Write a line for each text, with control characters escaped; on a terminal, long lines are wrapped."""
    for text in texts:
        stream.writelines(f"{line}\n" for line in folded(printable(text), stream))


def folded(text: str, stream: TextIO, *, prefix: str = "", hanging: int | None = None) -> list[str]:
    """Return the lines of a text, wrapped at words if the stream is a terminal.

    The prefix is never broken. Continuation lines are indented by ``hanging`` columns, or by four more than
    the first line.
    """
    if not stream.isatty():
        return [f"{prefix}{text}"]
    from textwrap import TextWrapper

    words = text.lstrip(" ")
    prefix += " " * (len(text) - len(words))
    indent = len(prefix) - len(prefix.lstrip(" ")) + _HANGING if hanging is None else hanging
    wrapper = TextWrapper(
        width_of(stream),
        initial_indent=prefix,
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return wrapper.wrap(words) or [prefix]


def width_of(stream: TextIO) -> int:
    """Return the width of a terminal in columns; the environment variable ``COLUMNS`` overrides it."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns):
        return max(int(columns), _NARROWEST)
    try:
        return max(os.get_terminal_size(stream.fileno()).columns or _USUAL_WIDTH, _NARROWEST)
    except (OSError, ValueError):
        return _USUAL_WIDTH


def is_coloured(stream: TextIO) -> bool:
    """Return whether to use colours: ``NO_COLOR`` disables them, ``FORCE_COLOR`` enables them in a pipe."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return stream in (sys.stdout, sys.stderr) or stream.isatty()  # Never in a file.
    return stream.isatty() and os.environ.get("TERM") not in ("dumb", "unknown")


def binary_size(number: float) -> str:
    """Return a number of bytes with its unit, in powers of 1024."""
    for unit in ("B", "KiB", "MiB"):
        if number < 1024:
            return f"{number:.3g} {unit}"
        number /= 1024
    return f"{number:.3g} GiB"


def write_object(
    document: object, stream: TextIO, indent: int = 2, default: Callable[[Any], str] | None = None
) -> None:
    """Write a document as indented JSON in ASCII, which no CI system takes for commands.

    The default returns text for what JSON cannot hold.
    """
    text = json.dumps(document, indent=indent, default=default)
    stream.write(f"{inert(text, _escaped)}\n")


def _escaped(character: str) -> str:
    return f"\\u{ord(character):04x}"
