"""Reads TOML that anybody may have written: whatever it contains, this ends soon, if only with ValueError."""

from __future__ import annotations

import re
import sys

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
