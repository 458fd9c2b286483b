"""Asks git what has changed since a base: in commits, in the working tree, and untracked files."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

# In a hook, git sets these to the hook's repository; the files may be in another one.
_POINTERS = frozenset(
    ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY", "GIT_PREFIX")
)


class ChangesUnknown(Exception):
    """Git cannot say what has changed; the message says what to do."""


def changed_files(files: Iterable[Path], base: str) -> set[Path]:
    """Return the resolved paths of what has changed in the repositories that contain ``files``.

    This includes new, renamed (under both names), deleted and untracked files, but not those that git
    ignores. Of a submodule that has changed, all of ``files`` in it have.

    Args:
        files: the files of a run.
        base: a commit or branch; the state before the change is its merge base with HEAD.

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
    """Return a folder in each repository that contains ``files``, without calling git for each file."""
    roots = set()
    for folder in {file.parent for file in files}:
        inside = (each for each in (folder, *folder.parents) if (each / ".git").exists())
        roots.add(next(inside, folder))
    return sorted(roots)


def _changed(folder: Path, base: str) -> Iterator[Path]:
    """Yield what has changed in the repository of ``folder``."""
    root = _top(folder)
    common = _merge_base(root, base)
    # Without renames, the old name is listed too: what depended on it is affected as well.
    yield from _names(root, "diff", "--name-only", "--no-renames", "-z", common, "--")
    yield from _names(root, "ls-files", "--others", "--exclude-standard", "-z")


def _staged(folder: Path) -> Iterator[Path]:
    """Yield what is staged in the repository of ``folder``; before its first commit, everything."""
    root = _top(folder)
    staged = ("diff", "--cached", "--name-only", "--no-renames", "-z")
    index = _hooks_index(root)
    found = set(_names(root, *staged, "--", index=index))
    for other in _merged(root):
        found &= set(_names(root, *staged, other, "--", index=index))
    yield from found


def _merged(root: Path) -> list[str]:
    """Return the commits that a merge in progress, if any, brings into HEAD."""
    path = _answer(root, "rev-parse", "--git-path", "MERGE_HEAD")
    try:
        return (root / path).read_text(encoding="ascii").split() if path else []
    except (OSError, UnicodeDecodeError):
        return []


def _hooks_index(root: Path) -> Path | None:
    """Return the index that git made for a commit of only some files, if it belongs to this repository."""
    named = os.environ.get("GIT_INDEX_FILE")
    own = _answer(root, "rev-parse", "--absolute-git-dir")
    if not named or not own:
        return None
    index = Path(os.path.realpath(root / named))
    return index if index.is_relative_to(os.path.realpath(own)) else None


def _top(folder: Path) -> Path:
    """Return the root of the working tree that contains ``folder``."""
    top = _answer(folder, "rev-parse", "--show-toplevel")
    if not top:
        raise ChangesUnknown(
            f"{folder}: this folder is not in the working tree of a git repository, so what changed is "
            "unknown; run gclint without "
            f"--changed-only{_own_words(folder, 'rev-parse', '--show-toplevel')}"
        )
    return Path(top)


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


def _names(root: Path, *arguments: str, index: Path | None = None) -> list[Path]:
    """Return the resolved paths that git lists."""
    done = _git(root, arguments, index)
    if done.returncode:
        raise ChangesUnknown(f"'git {arguments[0]}' fails in {root}{_own_words(root, *arguments)}")
    return [Path(os.path.realpath(root / os.fsdecode(name))) for name in done.stdout.split(b"\0") if name]


def _own_words(folder: Path, *arguments: str) -> str:
    said = _git(folder, arguments).stderr.decode(errors="replace").strip()
    return f" (git says: {said})" if said else ""


def _git(
    folder: Path, arguments: Sequence[str], index: Path | None = None
) -> subprocess.CompletedProcess[bytes]:
    environment = {name: value for name, value in os.environ.items() if name not in _POINTERS}
    if index is not None:
        environment["GIT_INDEX_FILE"] = str(index)
    try:
        return subprocess.run(
            ["git", "-C", folder, *arguments],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
    except OSError as error:
        raise ChangesUnknown(
            f"git cannot be run ({error.strerror}), but --changed-only needs it; install git, or run "
            "gclint without --changed-only"
        ) from None
