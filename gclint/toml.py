"""Reads TOML that anybody may have written: whatever it contains, this ends soon, if only with ValueError."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

STRINGS = (
    r'"""(?:\\.|[^\\])*?(?:"{3,5}|\\?\Z)|'
    r"'''.*?(?:'{3,5}|\Z)|"
    r'"(?:\\.|[^"\\\n])*"?|'
    r"'[^'\n]*'?|"
    r"#[^\n]*"
)
"""Matches strings and comments, which may contain everything else.

A string that does not end matches too: the search for its end would otherwise begin at each quote again.
"""
_STRING = re.compile(STRINGS, re.DOTALL)
_SEPARATOR = re.compile(r"[\n=,\[\]{}]")
_MOST_PARTS = 100
_LARGEST = 2_000_000
"""How many characters outside of strings are parsed: tomllib takes hundreds of bytes of memory for one."""


def loads(text: str) -> dict[str, object]:
    """Return the content of a TOML file.

    Raises:
        ValueError: it is not TOML, or is made to take long; often a ``TOMLDecodeError`` with the place.
    """
    structure = _STRING.sub("_", text)
    if len(structure) > _LARGEST:
        raise ValueError(f"it has more than {_LARGEST:,} characters outside of strings")
    # The time that tomllib takes for a key with dots is the square of their number.
    if any(part.count(".") >= _MOST_PARTS for part in _SEPARATOR.split(structure)):
        raise ValueError(f"a key has more than {_MOST_PARTS} parts")
    try:
        content: dict[str, object] = tomllib.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except tomllib.TOMLDecodeError:
        raise
    except ValueError:
        raise ValueError("a number has too many digits") from None
    return content


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
