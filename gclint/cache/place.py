"""Finds the folder of the cache: from the command line, from the settings, or beside the settings file."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from gclint.cache.store import NAME
from gclint.facts import read_unnoted

_OPTION = "--cache-dir"
_TABLE = b"tool.gclint"
_KEY = "cache-dir"


def cache_folder(configured: Path | None) -> Path:
    """Return the configured folder of the cache; by default, that of the project in the current folder."""
    return configured or guessed_folder(())


def guessed_folder(arguments: Sequence[str]) -> Path:
    """Return the folder of the cache for a run whose settings have not been read yet.

    This is the folder in the project around the working directory. If that guess is wrong, nothing is found
    there, and the run is not replayed.
    """
    option = _option(arguments)
    if option is not None:
        return Path(option)
    try:
        here = Path(os.path.abspath(os.curdir))
    except OSError:  # The working directory has been deleted, so there is no cache.
        return Path(os.devnull) / NAME
    for folder in (here, *here.parents):
        try:
            data = read_unnoted(folder / "pyproject.toml")
        except OSError:
            continue
        if _TABLE in data:
            return _setting(data, folder) or folder / NAME
    return here / NAME


def _option(arguments: Sequence[str]) -> str | None:
    found = None
    for number, each in enumerate(arguments):
        if each == _OPTION:
            found = arguments[number + 1] if number + 1 < len(arguments) else None
        elif each.startswith(f"{_OPTION}="):
            found = each.partition("=")[2]
    return found or None


def _setting(data: bytes, folder: Path) -> Path | None:
    if _KEY.encode() not in data:
        return None
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib

    table: object = tomllib.loads(data.decode())
    for key in ("tool", "gclint", _KEY):
        table = table.get(key) if isinstance(table, dict) else None
    return folder / table if isinstance(table, str) else None
