"""Finds what unfinished writes have left; most runs find nothing, and import nothing else for that.

The journals of a user's writes lie in that user's own state folder. Nothing in a tree is taken for one:
whoever wrote the tree could have planted it.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from gclint.code.paths import shown
from gclint.facts import PathResolver, is_there, matching
from gclint.userfolder import NotPrivate, is_in_working_tree, state_home
from gclint.wording import first_of

SUFFIX = ".journal"
_NAME = ".gclint-fix"
"""How the names of temporary files begin, and what earlier releases called a journal in a tree."""
_TEMPORARY = re.compile(rf"{re.escape(_NAME)}-[0-9a-f]{{16}}\.tmp")
_NAMES_SHOWN = 5


def journal_folder(given: Iterable[Path]) -> Path:
    """Return the folder of this user's journals, which need not exist.

    What lies in the given paths of the run, or in a repository, may have been planted there.

    Raises:
        OSError: there is none.
    """
    home = state_home()
    if home is None:
        raise FileNotFoundError(errno.ENOENT, "this user has no home folder")
    folder = home / "writes"
    parent = Path(os.path.realpath(folder)).parent
    if is_in_working_tree(parent):
        raise NotPrivate(errno.EPERM, "it lies in a git repository", str(folder))
    above = {str(each) for each in (parent, *parent.parents)}
    if any(os.path.realpath(each) in above for each in given):
        raise NotPrivate(errno.EPERM, "it lies in the given paths", str(folder))
    return folder


def journals() -> list[str]:
    """Return the names of this user's journals."""
    home = state_home()
    return [] if home is None else [each.name for each in matching(home / "writes", f"*{SUFFIX}")]


def temporary_name(token: str) -> str:
    """Return the name of a temporary file; ``token`` makes it unique."""
    return f"{_NAME}-{token}.tmp"


def is_temporary(name: str) -> bool:
    """Return whether a name is one of gclint's own temporary files."""
    return _TEMPORARY.fullmatch(name) is not None


def leftovers(files: Iterable[Path]) -> list[Path]:
    """Return the resolved paths of temporary files beside ``files``."""
    places = PathResolver()
    folders = sorted({places.folder(path.parent) for path in files})
    found = (each for folder in folders for each in matching(folder, f"{_NAME}-*.tmp"))
    return [path for path in found if is_temporary(path.name)]


def notices(paths: Iterable[Path], left: Sequence[Path]) -> list[str]:
    """Return what to tell the user about files that nothing is done with.

    These are what looks like a journal in a folder above the given ``paths``, and the temporary files that no
    journal is about.
    """
    found = []
    relics = _relics_above(paths)
    if relics:
        found.append(
            f"note: {named(relics)} {'was' if len(relics) == 1 else 'were'} ignored: gclint does not keep "
            "journals of fixes in repositories any more. If an earlier release was killed while it wrote a "
            "fix here, check the files with 'git status' and 'git diff'; then delete it"
        )
    if left:
        found.append(
            f"note: {named(left)}: unless another run of gclint is writing here, this was left by one that "
            "was killed, and files may be fixed only in part; check them with 'git status' and 'git diff', "
            "then delete it"
        )
    return found


def named(paths: Sequence[Path]) -> str:
    """Return some paths for people; of many, the first ones."""
    return first_of(map(shown, paths), _NAMES_SHOWN, ", and")


def _relics_above(paths: Iterable[Path]) -> list[Path]:
    places = PathResolver()
    seen: set[Path] = set()
    found = []
    for path in paths:
        folder = places.location(path)
        # This is asked for thousands of files. A folder with this name is above its own content.
        if folder.suffix == ".py":
            folder = folder.parent
        while folder not in seen:
            seen.add(folder)
            if is_there(f"{folder}/{_NAME}"):
                found.append(folder / _NAME)
            folder = folder.parent
    return found
