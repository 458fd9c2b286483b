"""Where in a TOML file a key stands; looked for only when somebody wants to know.

What reads TOML keeps no places. But each statement of a TOML file, a table's header or a key with its value,
is a small TOML file by itself, so the reader itself says where a statement ends and what keys it has.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def place_of(path: Path, keys: Sequence[str]) -> tuple[int, int]:
    """Return the row and column, from 1, of what ``keys`` lead to; of what holds it if it has none itself."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError):
        return 1, 1
    best, place = 0, (1, 1)
    for row, column, found in _statements(text):
        shared = _shared(found, keys)
        # The first statement of a table is its header, or the key that implies it.
        if shared > best:
            best, place = shared, (row, column)
    return place


def _shared(found: Sequence[tuple[str, ...]], keys: Sequence[str]) -> int:
    """Return how many of ``keys`` a statement leads through."""

    def along(path: tuple[str, ...]) -> int:
        steps = 0
        for mine, other in zip(path, keys, strict=False):
            if mine != other:
                break
            steps += 1
        return steps

    return max(map(along, found), default=0)


def _statements(text: str) -> Iterator[tuple[int, int, list[tuple[str, ...]]]]:
    """Yield the row, column and paths of keys of each statement."""
    lines = text.replace("\r\n", "\n").split("\n")
    header: tuple[str, ...] = ()
    row = 0
    while row < len(lines):
        stripped = lines[row].strip(" \t")
        if not stripped or stripped.startswith("#"):
            row += 1
            continue
        end, content = _statement(lines, row)
        paths = list(_paths(content))
        if stripped.startswith("["):
            header = max(paths, key=len, default=())
            paths = [header]
        else:
            paths = [(*header, *path) for path in paths]
        yield row + 1, len(lines[row]) - len(lines[row].lstrip(" \t")) + 1, paths
        row = end


def _statement(lines: Sequence[str], row: int) -> tuple[int, dict[str, object]]:
    """Return the row behind the statement that begins on ``row``, and what it says."""
    for end in range(row + 1, len(lines) + 1):
        # Nothing else than a bracket or three quotes ends a statement of several lines.
        if end > row + 1 and not any(each in lines[end - 1] for each in ("]", "}", '"""', "'''")):
            continue
        try:
            return end, tomllib.loads("\n".join(lines[row:end]))
        except tomllib.TOMLDecodeError:
            continue
    return len(lines), {}


def _paths(content: object) -> Iterator[tuple[str, ...]]:
    """Yield the keys that lead to each value, and to each table that is empty."""
    while isinstance(content, list) and content and isinstance(content[-1], dict):
        content = content[-1]
    if not isinstance(content, dict):
        yield ()
        return
    if not content:
        yield ()
    for key, value in content.items():
        for path in _paths(value):
            yield (key, *path)
