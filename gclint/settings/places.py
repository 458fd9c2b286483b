"""Finds the position of a key in a TOML file, for error messages.

``tomllib`` returns no positions. But each statement of a TOML file, a header or a key with its value, is a
small TOML document itself, so ``tomllib`` can read the statements one by one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from gclint.toml import STRINGS, loads

_TOKEN = re.compile(STRINGS + r"|[\[\]{}]|\n", re.DOTALL)
"""Matches line ends, brackets, and the strings and comments that may contain these."""


def place_of(path: Path, keys: Sequence[str]) -> tuple[int, int]:
    """Return the row and column, from 1, of the statement for ``keys``, or for as many as there are."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError):
        return 1, 1
    best, place = 0, (1, 1)
    for row, column, found in _statements(text):
        shared = _shared(found, keys)
        # Only a longer match replaces an earlier one: the first statement of a table is its header.
        if shared > best:
            best, place = shared, (row, column)
    return place


def _shared(found: Sequence[tuple[str, ...]], keys: Sequence[str]) -> int:
    """Return how many of ``keys``, from the first, are in one of the key paths of a statement."""

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
    header: tuple[str, ...] = ()
    row = 1
    for statement in _split(text.replace("\r\n", "\n")):
        stripped = statement.lstrip(" \t")
        paths = list(_paths(_read(statement)))
        if stripped.startswith("["):
            header = max(paths, key=len, default=())
            yield row, len(statement) - len(stripped) + 1, [header]
        elif stripped.strip() and not stripped.startswith("#"):
            yield row, len(statement) - len(stripped) + 1, [(*header, *path) for path in paths]
        row += statement.count("\n")


def _split(text: str) -> Iterator[str]:
    """Yield the statements of a TOML file with their line ends, and also blank lines and comments."""
    start = depth = 0
    for token in _TOKEN.finditer(text):
        depth += token[0] in ("[", "{")
        depth -= token[0] in ("]", "}")
        if token[0] == "\n" and depth <= 0:
            yield text[start : token.end()]
            start, depth = token.end(), 0
    yield text[start:]


def _read(statement: str) -> dict[str, object]:
    try:
        return loads(statement)
    except ValueError:
        return {}


def _paths(content: object) -> Iterator[tuple[str, ...]]:
    """Yield the path of keys to each value and to each empty table."""
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
