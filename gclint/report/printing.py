"""How text for people is printed: a terminal wraps it at words, and programs get one line each."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import TextIO

from gclint.source.paths import printable

_NARROWEST = 40
_USUAL_WIDTH = 80
_HANGING = 4


def write_lines(texts: Iterable[str], stream: TextIO) -> None:
    """Write a line for each text, whatever it holds; a terminal gets several for a long one."""
    for text in texts:
        stream.writelines(f"{line}\n" for line in folded(printable(text), stream))


def folded(text: str, stream: TextIO, *, prefix: str = "", hanging: int | None = None) -> list[str]:
    """Return the lines that show a text on a stream.

    Args:
        text: what is wrapped at words, if the stream is a terminal.
        stream: where it is shown.
        prefix: what stands before it, and is never broken.
        hanging: the indentation of further lines; None for a little more than that of the first one.
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
    """Return how many columns a terminal has; ``COLUMNS`` comes first, as everywhere."""
    said = os.environ.get("COLUMNS", "")
    if said.isdecimal() and int(said):
        return max(int(said), _NARROWEST)
    try:
        return max(os.get_terminal_size(stream.fileno()).columns or _USUAL_WIDTH, _NARROWEST)
    except (OSError, ValueError):
        return _USUAL_WIDTH


def is_coloured(stream: TextIO) -> bool:
    """Tell whether colours are wanted: ``NO_COLOR`` forbids them, ``FORCE_COLOR`` asks for them in a pipe."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return stream in (sys.stdout, sys.stderr) or stream.isatty()  # A file gets none.
    return stream.isatty() and os.environ.get("TERM") not in ("dumb", "unknown")
