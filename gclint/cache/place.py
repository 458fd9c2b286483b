"""Finds where a run is stored: in a folder that the user names, or in the user's own."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from gclint.facts import read_unnoted
from gclint.userfolder import cache_home, key_of

OPTION = "--cache-dir"
_TABLE = b"tool.gclint"


class CachePlace(NamedTuple):
    """Where the documents of a project are."""

    folder: Path | None
    """The folder of the documents of all projects; None if there is none."""
    project: str
    """What tells the documents of the project from those of others."""
    is_named: bool = False
    """Whether the user has named the folder."""


def place_of(named: Path | None) -> CachePlace:
    """Return where runs here are stored: in a folder that the user names, or in the user's own."""
    return CachePlace(named or cache_home(), key_of(project_root()), named is not None)


def named_in(arguments: Sequence[str]) -> Path | None:
    """Return the folder that a command line names, before it is parsed."""
    found = ""
    for number, each in enumerate(arguments):
        if each == "--":
            break
        if each == OPTION:
            found = "".join(arguments[number + 1 : number + 2])
        elif each.startswith(f"{OPTION}="):
            found = each.partition("=")[2]
    return Path(found) if found else None


def project_root() -> Path:
    """Return the folder of the project around the working directory: that of its settings, or itself."""
    try:
        here = Path.cwd()
    except OSError:  # It has been deleted.
        return Path(os.devnull)
    for folder in (here, *here.parents):
        try:
            if (folder / "gclint.toml").is_file() or _TABLE in read_unnoted(folder / "pyproject.toml"):
                return folder
        except OSError:
            continue
    return here
