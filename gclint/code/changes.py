"""Asks git what has changed since a base: in commits, in the working tree, and untracked files."""

from __future__ import annotations

import hashlib
import os
import re
import stat
import subprocess
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gclint.facts import read_unnoted
from gclint.git import git

_OBJECT_NAME = re.compile(rb"[0-9a-f]{40,64}")
_LINK = b"120"
_SUBMODULE = b"160"


class ChangesUnknown(Exception):
    """Git cannot say what has changed; the message says what to do."""


def changed_files(files: Iterable[Path], base: str) -> set[Path]:
    """Return the resolved paths of what has changed in the repositories that contain ``files``.

    This includes new, renamed (under both names), deleted and untracked files, but not those that git
    ignores. Of a submodule that has changed, all of ``files`` in it have. The state before the change is the
    merge base of HEAD and ``base``, a commit or branch.

    Raises:
        ChangesUnknown: there is no git, no repository, no such base, or no common ancestor.
    """
    return _with_submodules(files, lambda root: _changed(root, base))


def staged_files(files: Iterable[Path]) -> set[Path]:
    """Return the resolved paths of what the next commit changes in the repositories of ``files``.

    In a merge, this is what differs from both sides. Files are read from the working tree, so changes
    that are not staged should be stashed before, as pre-commit does.

    Raises:
        ChangesUnknown: there is no git, or no repository.
    """
    return _with_submodules(files, _staged)


def _with_submodules(files: Iterable[Path], changes: Callable[[Path], Iterator[Path]]) -> set[Path]:
    """Return what has changed in all repositories, with the files of submodules that have."""
    resolved = {Path(os.path.realpath(file)) for file in files}
    found = {path for root in _roots(resolved) for path in changes(root)}
    folders = tuple(path for path in found if path.is_dir())
    found.update(file for file in resolved if any(file.is_relative_to(folder) for folder in folders))
    return found


def _roots(files: Iterable[Path]) -> list[Path]:
    """Return the roots of the working trees that contain ``files``, without calling git for each file."""
    roots = {folder: _root(folder) for folder in {file.parent for file in files}}
    return sorted(set(roots.values()))


def _root(folder: Path) -> Path:
    """Return the root of the working tree that contains ``folder``.

    The configuration of a repository could name another working tree, and a folder could look like a
    repository without a working tree, which git would believe.
    """
    root = next((each for each in (folder, *folder.parents) if (each / ".git").exists()), None)
    if root is None:
        raise ChangesUnknown(_not_in_repository(folder))
    top = _answer(root, "rev-parse", "--show-toplevel")
    if not top:
        raise ChangesUnknown(_not_in_repository(folder) + _own_words(root, "rev-parse", "--show-toplevel"))
    if not _is_same(top, root):
        raise ChangesUnknown(
            f"{root}: its repository belongs to another working tree, {top}, so what changed is unknown; "
            "run gclint without --changed-only"
        )
    return root


def _is_same(top: str, root: Path) -> bool:
    try:
        return root.samefile(top)
    except OSError:
        return False


def _not_in_repository(folder: Path) -> str:
    return (
        f"{folder}: this folder is not in the working tree of a git repository, so what changed is unknown; "
        "run gclint without --changed-only"
    )


def _changed(root: Path, base: str) -> Iterator[Path]:
    """Yield what has changed in the repository at ``root``."""
    then = _tree(root, _merge_base(root, base))
    now = _index(root)
    for name in then.keys() | now.keys():
        if _is_changed(root / os.fsdecode(name), then.get(name), now.get(name)):
            yield _resolved(root, name)
    for name in _lines(root, "ls-files", "--others", "--exclude-standard", "-z"):
        yield _resolved(root, name)


def _is_changed(path: Path, then: _Entry | None, now: _Entry | None) -> bool:
    """Return whether a file differs from that of a commit; what cannot be compared does."""
    if now is None or now.is_conflict:
        return True
    try:
        status = path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        # In a sparse checkout, files that are not wanted are missing.
        return now != then if now.is_sparse else then is not None
    except OSError:
        return True
    if then is None or then.kind != now.kind:
        return True
    if now.kind == _SUBMODULE:
        head = _answer(path, "rev-parse", "HEAD") if (path / ".git").exists() else now.name
        return head != then.name
    is_link = stat.S_ISLNK(status.st_mode)
    if is_link != (now.kind == _LINK) or not (is_link or stat.S_ISREG(status.st_mode)):
        return True
    try:
        data = os.fsencode(path.readlink()) if is_link else read_unnoted(path)
    except OSError:
        return True
    # Where git converts line ends, files have others than the repository; Python does not mind.
    return then.name not in (_object_name(data, then), _object_name(data.replace(b"\r\n", b"\n"), then))


def _object_name(data: bytes, like: _Entry) -> str:
    """Return the name that git gives to the content of a file, as long as that of ``like``."""
    digest = hashlib.sha1 if len(like.name) == hashlib.sha1().digest_size * 2 else hashlib.sha256
    return digest(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def _staged(root: Path) -> Iterator[Path]:
    """Yield what is staged in the repository at ``root``; before its first commit, everything."""
    now = _index(root, _hooks_index(root))
    head = _commit(root, "HEAD")
    sides = [_tree(root, each) if each else {} for each in (head, *_merged(root))]
    for name in set().union(now, *sides):
        entry = now.get(name)
        if (entry is not None and entry.is_conflict) or all(side.get(name) != entry for side in sides):
            yield _resolved(root, name)


@dataclass(frozen=True)
class _Entry:
    """A file, link or submodule in a tree or the index."""

    kind: bytes
    """The first digits of its mode, without the permissions."""
    name: str
    """The name of its content, or the commit of a submodule."""
    is_conflict: bool = False
    is_sparse: bool = field(default=False, compare=False)


def _tree(root: Path, commit: str) -> dict[bytes, _Entry]:
    """Return the files of a commit by their paths."""
    found = {}
    for line in _lines(root, "ls-tree", "-r", "-z", "--full-tree", commit):
        about, _, path = line.partition(b"\t")
        mode, _, name = about.split(b" ")
        found[path] = _Entry(mode[:3], name.decode())
    return found


def _index(root: Path, index: Path | None = None) -> dict[bytes, _Entry]:
    """Return the files of an index by their paths."""
    found = {}
    for line in _lines(root, "ls-files", "--stage", "-t", "--full-name", "-z", index=index):
        about, _, path = line.partition(b"\t")
        tag, mode, name, stage = about.split(b" ")
        found[path] = _Entry(mode[:3], name.decode(), is_conflict=stage != b"0", is_sparse=tag == b"S")
    return found


def _merged(root: Path) -> list[str]:
    """Return the commits that a merge in progress, if any, brings into HEAD."""
    path = _answer(root, "rev-parse", "--git-path", "MERGE_HEAD")
    try:
        words = read_unnoted(root / path).split() if path else []
    except OSError:
        return []
    return [word.decode() for word in words if _OBJECT_NAME.fullmatch(word)]


def _hooks_index(root: Path) -> Path | None:
    """Return the index that git made for a commit of only some files, if it belongs to this repository."""
    named = os.environ.get("GIT_INDEX_FILE")
    own = _answer(root, "rev-parse", "--absolute-git-dir")
    if not named or not own:
        return None
    index = Path(os.path.realpath(root / named))
    return index if index.is_relative_to(os.path.realpath(own)) else None


def _merge_base(root: Path, base: str) -> str:
    """Return the commit that the working tree is compared with."""
    if not _commit(root, "HEAD"):
        raise ChangesUnknown(f"{root}: this repository has no commits yet; run gclint without --changed-only")
    commit = _commit(root, base)
    if not commit:
        raise ChangesUnknown(
            f"{root}: this repository has no commit or branch {base!r}; fetch it (a checkout in CI may "
            "lack it), or choose another one with --base-ref"
        )
    common = _answer(root, "merge-base", "HEAD", commit)
    if common:
        return common
    if _answer(root, "rev-parse", "--is-shallow-repository") == "true":
        raise ChangesUnknown(
            f"{root}: this is a shallow clone, in which HEAD and {base!r} have no commit in common; fetch "
            "the rest, with 'git fetch --unshallow' or, in CI, a checkout of full depth"
        )
    raise ChangesUnknown(
        f"{root}: HEAD and {base!r} have no commit in common; choose another one with --base-ref"
    )


def _commit(root: Path, name: str) -> str:
    return _answer(root, "rev-parse", "--verify", "-q", f"{name}^{{commit}}")


def _answer(folder: Path, *arguments: str) -> str:
    """Return the single line that git prints, or nothing if it fails."""
    done = _git(folder, arguments)
    return "" if done.returncode else os.fsdecode(done.stdout).removesuffix("\n")


def _lines(root: Path, *arguments: str, index: Path | None = None) -> list[bytes]:
    """Return what git lists, without the NUL characters between."""
    done = _git(root, arguments, index)
    if done.returncode:
        raise ChangesUnknown(f"'git {arguments[0]}' fails in {root}{_own_words(root, *arguments)}")
    return [line for line in done.stdout.split(b"\0") if line]


def _resolved(root: Path, name: bytes) -> Path:
    return Path(os.path.realpath(root / os.fsdecode(name)))


def _own_words(folder: Path, *arguments: str) -> str:
    said = _git(folder, arguments).stderr.decode(errors="replace").strip()
    return f" (git says: {said})" if said else ""


def _git(
    folder: Path, arguments: Sequence[str], index: Path | None = None
) -> subprocess.CompletedProcess[bytes]:
    try:
        return git(folder, arguments, index)
    except OSError as error:
        raise ChangesUnknown(
            f"git cannot be run ({error.strerror}), but --changed-only needs it; install git, or run "
            "gclint without --changed-only"
        ) from None
