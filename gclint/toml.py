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
    best, place, row = 0, (1, 1), 1
    header: tuple[str, ...] = ()
    for statement in _split(text.replace("\r\n", "\n")):
        content, before = _read(statement), len(statement) - len(statement.lstrip(" \t"))
        depth = 0
        if statement.startswith("[", before):
            header, depth = _header(content), _depth(content, keys)
        elif content and header == tuple(keys[: len(header)]):
            depth = len(header) + _depth(content, keys[len(header) :])
        # Only a longer match replaces an earlier one: the first statement of a table is its header.
        if depth > best:
            best, place = depth, (row, before + 1)
        row += statement.count("\n")
    return place


def _header(content: object) -> tuple[str, ...]:
    """Return the keys in the header of a table."""
    if isinstance(content, list):
        content = content[-1]
    if not isinstance(content, dict) or not content:
        return ()
    ((key, inner),) = content.items()
    return (key, *_header(inner))


def _depth(content: object, keys: Sequence[str]) -> int:
    """Return how many of ``keys``, from the first, lead into a value."""
    while isinstance(content, list) and content:
        content = content[-1]
    if not keys or not isinstance(content, dict) or keys[0] not in content:
        return 0
    return 1 + _depth(content[keys[0]], keys[1:])


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
