"""File patterns in settings: their syntax, and which paths they match.

A repository may have any settings, so a pattern never takes longer than its length times that of the path.
"""

from __future__ import annotations

import glob
import os
import re
from fnmatch import translate
from functools import cache
from pathlib import Path

_LONGEST = 1000
_FOLDERS = re.compile(r"(?<![^/])(\*\*/)")
_TOKEN = re.compile(rf"\*+|\[!?\]?[^\]]{{0,{_LONGEST}}}\]|.", re.DOTALL)
"""Matches what stands for any text, a set of characters, or one character."""


def normalised(pattern: str, *, may_be_negative: bool = False) -> str:
    """Return a pattern with slashes as separators, and without redundant parts.

    Raises:
        ValueError: the pattern is invalid.
    """
    if len(pattern) > _LONGEST:
        raise ValueError(
            f"the pattern {pattern[:20]!r}… is too long: it has {len(pattern):,} characters, and at most "
            f"{_LONGEST:,} are allowed"
        )
    is_negative = pattern.startswith("!")
    if is_negative and not may_be_negative:
        raise ValueError(
            f"{pattern!r} starts with '!', which only patterns in per-file-ignores may; for the character "
            "itself, write [!]"
        )
    # A backslash is a separator here, never an escape: outside of Windows, hardly any name contains one.
    path = pattern[is_negative:].replace("\\", "/")
    while path.startswith("./"):
        path = path[2:].lstrip("/")
    stripped = path.rstrip("/") or path[:1]
    if not stripped.strip() or stripped == ".":
        raise ValueError(f"the pattern {pattern!r} is empty")
    if "\0" in stripped:
        raise ValueError(f"the pattern {pattern!r} contains a NUL character")
    return f"{'!' if is_negative else ''}{stripped}"


def from_folder(pattern: str, folder: Path) -> str:
    """Return a normalised pattern that is relative to a folder as one that begins at the root."""
    negative, body = ("!", pattern[1:]) if pattern.startswith("!") else ("", pattern)
    if "/" not in body or is_absolute(body):
        return pattern
    parts = body.split("/")
    while parts[0] == os.pardir and len(parts) > 1:
        folder, parts = folder.parent, parts[1:]
    return f"{negative}{glob.escape(folder.as_posix().rstrip('/'))}/{'/'.join(parts)}"


def matches(pattern: str, path: Path, inside: tuple[str, ...], *, folders: bool = True) -> bool:
    """Return whether a normalised pattern, which is not negative, matches a file with an absolute path.

    ``*`` also matches slashes, and ``**/`` matches any number of folders, including none. A pattern without a
    slash matches a name, one with a slash the parts of the path ``inside`` the folder of the settings, which
    are empty if it is outside, and an absolute one the absolute path. With ``folders``, it is enough that the
    pattern matches a folder that contains the file.
    """
    expression = _expression(pattern, folders=folders)
    if is_absolute(pattern):
        return expression.match(path.as_posix()) is not None
    if "/" in pattern:
        return bool(inside) and expression.match("/".join(inside)) is not None
    return any(expression.match(part) for part in (inside if folders else inside[-1:]))


def is_absolute(pattern: str) -> bool:
    """Return whether a normalised pattern matches absolute paths."""
    return pattern.startswith("/") or re.match(r"[A-Za-z]:/", pattern) is not None


@cache
def _expression(pattern: str, *, folders: bool) -> re.Pattern[str]:
    """Return a regular expression that matches a path in linear time.

    What is between two gaps, ``*`` or ``**/``, has a fixed length. If any place for it leads to a match, the
    first one does: whatever follows may be found as far behind it. So no other place is ever tried, for which
    a lookahead with a group stands, as atomic groups are not available before Python 3.11.
    """
    pieces: list[list[str]] = [[]]
    gaps: list[str] = []
    for part in _FOLDERS.split(pattern):
        for token in [part] if part == "**/" else _TOKEN.findall(part):
            if token.startswith("*"):
                gaps.append("(?:.*?/)??" if token == "**/" else ".*?")
                pieces.append([])
            else:
                # `translate` returns "(?s:…)\Z", or "\z" in later versions of Python.
                pieces[-1].append(translate(token)[4:-3])
    end = r"(?:(?=/)|(?<=\A/)|\Z)" if folders else r"\Z"
    first, *others = ("".join(piece) for piece in pieces)
    found = [first]
    for number, (gap, piece) in enumerate(zip(gaps, others, strict=True), start=1):
        found.append(f"(?=(?P<g{number}>{gap}{piece}))(?P=g{number})" if number < len(gaps) else gap + piece)
    return re.compile(f"(?s:{''.join(found)}){end}")
