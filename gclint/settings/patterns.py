"""File patterns in settings: their syntax, and which paths they match."""

from __future__ import annotations

import glob
import os
import re
from fnmatch import translate
from functools import cache
from pathlib import Path


def normalised(pattern: str, *, may_be_negative: bool = False) -> str:
    """Return a pattern with slashes as separators, and without redundant parts.

    Raises:
        ValueError: the pattern is invalid.
    """
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
    """Return whether a normalised pattern, which is not negative, matches a file.

    ``*`` also matches slashes, and ``**/`` matches any number of folders, including none. A pattern without
    a slash matches a name, one with a slash the path relative to the folder of the settings, and an absolute
    one the absolute path.

    Args:
        pattern: the pattern.
        path: the absolute path.
        inside: its parts relative to the folder of the settings; empty if it is outside.
        folders: whether it is enough that the pattern matches a folder that contains the file.
    """
    if is_absolute(pattern):
        wholes = [path, *path.parents] if folders else [path]
        return any(_matches(pattern, each.as_posix()) for each in wholes)
    if "/" in pattern:
        depths = range(1, len(inside) + 1) if folders else [len(inside)]
        return any(_matches(pattern, "/".join(inside[:depth])) for depth in depths)
    return any(_matches(pattern, part) for part in (inside if folders else inside[-1:]))


def is_absolute(pattern: str) -> bool:
    """Return whether a normalised pattern matches absolute paths."""
    return pattern.startswith("/") or re.match(r"[A-Za-z]:/", pattern) is not None


def _matches(pattern: str, text: str) -> bool:
    return _expression(pattern).match(text) is not None


@cache
def _expression(pattern: str) -> re.Pattern[str]:
    # `translate` returns "(?s:…)\Z", or "\z" in later versions of Python.
    pieces = [translate(piece)[4:-3] for piece in re.split(r"(?<![^/])\*\*/", pattern)]
    return re.compile(f"(?s:{'(?:.*/)?'.join(pieces)})\\Z")
