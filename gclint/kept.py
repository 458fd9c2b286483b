"""Folders and files that a run believes: those of the user, and those that the user names.

A repository can contain whatever it likes, also at the place that an option or an environment variable
names. So no link that lies in a repository is followed, and what git tracks is not believed.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path

from gclint.facts import digest
from gclint.userfolder import NotPrivate, UserFolder, open_file

_DIGITS = 16


def key_of(folder: Path) -> str:
    """Return what tells a folder from others in the names of files about it."""
    return digest(os.fsencode(os.path.realpath(folder)))[:_DIGITS]


def own_folder(path: Path, *, is_named: bool, create: bool = False) -> UserFolder:
    """Open a folder whose content is believed.

    Args:
        path: the folder.
        is_named: whether the user has named it; otherwise, it is one of the user's own folders.
        create: whether to create it.

    Raises:
        NotPrivate: somebody else may have made what is in it.
        OSError: it cannot be opened.
    """
    if is_named:
        _require_no_foreign_link(path)
    folder = UserFolder(path, create=create)
    try:
        _require_untracked(path, os.curdir)
    except BaseException:
        folder.close()
        raise
    return folder


def own_file(path: Path, *, is_believed: bool) -> int:
    """Open a file that the user names, which may be new, for reading and writing; the caller closes it.

    Args:
        path: the file; the folders above it are created.
        is_believed: whether what is in it is believed.

    Raises:
        NotPrivate: it is no regular file of this user, or somebody else may have made what is in it.
        OSError: it cannot be opened.
    """
    _require_no_foreign_link(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    if is_believed:
        _require_untracked(path.parent, path.name)
    handle = open_file(path, os.O_RDWR | os.O_CREAT)
    if os.fstat(handle).st_nlink > 1:
        os.close(handle)
        raise NotPrivate(errno.EMLINK, "this file has other names", str(path))
    return handle


def _require_no_foreign_link(path: Path) -> None:
    """Require that no repository decides where a path leads.

    The links of a relative path are taken for those of a repository. Those of an absolute one belong to the
    user, except below the working directory, and where git tracks files.
    """
    here = Path.cwd()
    place = here / path
    for each in (*reversed(place.parents), place):
        if not each.is_symlink():
            continue
        folder = Path(os.path.realpath(each.parent))
        if not path.is_absolute() or folder.is_relative_to(here) or is_in_working_tree(folder):
            raise NotPrivate(errno.ELOOP, "this is a link, which is not followed", str(each))


def _require_untracked(folder: Path, name: str) -> None:
    """Require that git tracks nothing under a name in a folder, which exists."""
    real = Path(os.path.realpath(folder))
    if not is_in_working_tree(real):
        return
    from gclint.git import git  # Most runs do not need it.

    try:
        done = git(real, ["ls-files", "-z", "--", name])
    except OSError:
        done = None
    if done is None or done.returncode:
        raise NotPrivate(errno.EPERM, "git does not say whether it tracks this", str(folder / name))
    if done.stdout:
        raise NotPrivate(errno.EPERM, "git tracks this", str(folder / name))


def is_in_working_tree(real: Path) -> bool:
    """Return whether a folder, whose path has no links, lies in the working tree of a git repository."""
    return any(os.path.lexists(each / ".git") for each in (real, *real.parents))
