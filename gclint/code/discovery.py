"""Which files a run checks: the given ones, and the modeling files in the given folders."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gclint.code.candidates import (
    MODELING_FILES,
    is_modeling,
    is_test,
    is_test_or_build,
    looks_like_model,
    may_look_like_model,
)
from gclint.code.paths import printable
from gclint.facts import FolderEntry, PathResolver, entries, exists, is_file, is_link, mode, real_path
from gclint.finding import Problem
from gclint.settings import FILES as SETTINGS_FILES
from gclint.settings import Settings

_NOT_PYTHON = frozenset(
    (
        *(".json", ".jsonl", ".toml", ".cfg", ".ini", ".lock", ".csv", ".tsv", ".parquet"),
        *(".md", ".rst", ".html", ".htm", ".xml", ".css", ".js", ".ts", ".sh", ".c", ".h", ".cpp", ".cu"),
        *(".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp", ".svg", ".ico", ".pdf", ".wav", ".mp3", ".mp4"),
        *(".pt", ".pth", ".bin", ".ckpt", ".safetensors", ".onnx", ".gguf", ".h5", ".npy", ".npz", ".pkl"),
        *(".pyc", ".pyd", ".so", ".dll", ".zip", ".gz", ".tar", ".whl", ".xz", ".7z"),
    )
)
"""A parser takes much of this for Python, such as a JSON file, but it is not code."""
_SKIPPED_FOLDERS = {"__pycache__", "node_modules"}


@dataclass(frozen=True)
class Survey:
    """What the paths of a run lead to."""

    files: list[Path]
    """The files to check, each once and spelled as the paths spell them."""
    problems: list[Problem]
    """What went wrong."""
    overlooked: list[Path]
    """Files in the given folders that look like models, but are not checked because of their names."""
    skipped: list[tuple[Path, str]] = field(default_factory=list)
    """What was skipped deliberately, and why."""
    outside: list[Path] = field(default_factory=list)
    """Links in the given folders that lead out of the given paths, and may lead to models."""
    empty: list[Problem] = field(default_factory=list)
    """The given folders in which there is nothing to check."""
    settings: Settings = field(default_factory=Settings)
    """The settings, together with those of settings files for some of the files."""


def survey(paths: Sequence[Path], settings: Settings) -> Survey:
    """Return what ``paths`` lead to.

    A file in ``paths`` is checked whatever its name. In a folder and its subfolders, the files named
    ``modeling_*.py`` and ``modular_*.py`` are, and those that the settings include, except for tests and
    build output. Hidden folders, virtual environments and caches are skipped, and so is what the settings
    exclude, even if it is given.

    Links are followed only to what is in the given paths, wherever these are: who wrote a link in a folder
    is not who chose the folder. For the same reason it is a problem if a given path leads, through a link in
    the working directory, out of that and of the other given paths.
    """
    walk = _Discovery(paths, settings)
    for path in paths:
        walk.take(path)
    overlooked = walk.overlooked()
    return Survey(
        walk.files, walk.problems, overlooked, walk.skipped, walk.outside, walk.empty, walk.settings
    )


def discover(paths: Sequence[Path], settings: Settings) -> tuple[list[Path], list[Problem]]:
    """Return the files to check, and the problems and empty folders that :func:`survey` finds."""
    found = survey(paths, settings)
    return found.files, [*found.problems, *found.empty]


@dataclass(frozen=True)
class _Folder:
    """A folder that is being walked."""

    path: Path
    identity: tuple[int, int]
    is_secondary: bool
    """Whether it contains tests or build output, or is inside such a folder."""
    entries: Iterator[FolderEntry]
    """The entries that have not been looked at yet."""


class _Discovery:
    def __init__(self, paths: Sequence[Path], settings: Settings) -> None:
        self.files: list[Path] = []
        self.problems: list[Problem] = []
        self.empty: list[Problem] = []
        self.skipped: list[tuple[Path, str]] = []
        self.outside: list[Path] = []
        self.settings = settings
        self._places = PathResolver()
        self._taken: set[str] = set()
        self._visited: set[tuple[int, int]] = set()
        self._found = 0
        """The number of modeling files in folders, and of excluded entries there that may contain some."""
        self._candidates: list[Path] = []
        """Files in folders whose names do not say whether they are models."""
        self._refused = self._outward(paths)
        """Given paths that lead out of the working directory by links in it, which others may have made."""
        self._roots = {self._places.location(path) for path in paths if path not in self._refused}
        """The resolved paths of what was given, to which links may lead."""

    def _outward(self, paths: Sequence[Path]) -> frozenset[Path]:
        """Return the given paths that links in the working directory lead out of it and of the others."""
        try:
            here = {real_path(os.curdir)}
        except OSError:  # It has been deleted.
            return frozenset()
        outside = [path for path in paths if not _is_in(self._places.location(path), here)]
        doubtful = {path for path in outside if self._leaves(path, here)}
        others = {self._places.location(path) for path in outside if path not in doubtful}
        return frozenset(path for path in doubtful if not _is_in(self._places.location(path), others))

    def _leaves(self, path: Path, here: Collection[Path]) -> bool:
        """Return whether a link in a folder is a part of a path that leads out of that folder."""
        return any(
            is_link(each) and _is_in(self._places.folder(each.parent), here) for each in (path, *path.parents)
        )

    def take(self, path: Path) -> None:
        """Take a file or folder that the user gave."""
        if self._leaves_out(path):
            return
        own = self._mode(path)
        if own is None:
            return
        if path in self._refused:
            real = printable(str(self._places.location(path)))
            self._fail(
                path, f"a link leads this path out of the working directory; to check {real}, pass that path"
            )
            return
        if not stat.S_ISDIR(own):
            self._take_file(path, own)
            return
        found, failed, seen = self._found, len(self.problems), len(self._candidates)
        # What was walked before, as a part of another folder, counts as found in this one, too.
        self._visited.clear()
        self._walk(path)
        if self._found == found and len(self.problems) == failed:
            others = [each for each in self._candidates[seen:] if looks_like_model(each)]
            self.empty.append(Problem(path, self._why_empty(path, others)))

    def overlooked(self) -> list[Path]:
        """Return the files that look like models and were not taken."""
        alike = filter(looks_like_model, reversed(self._candidates))
        others = {str(self._places.location(path)): path for path in alike}
        return sorted(path for real, path in others.items() if real not in self._taken)

    def _why_empty(self, folder: Path, others: Sequence[Path]) -> str:
        """Return that there is nothing to check in a folder, and which ``others`` look like models there."""
        names = " or ".join((*MODELING_FILES, *self.settings.of(folder / "any").include))
        message = f"there is no file named {names} in this folder"
        if others:
            one = len(others) == 1
            message += (
                f", but {len(others)} other {'file looks like a model' if one else 'files look like models'} "
                f"({others[0].relative_to(folder)}{'' if one else ', …'}); "
                f"check {'it' if one else 'them'} with --include '*.py'"
            )
        return message

    def _walk(self, top: Path) -> None:
        """Take the modeling files in a folder and in the folders in it, in the order of their names."""
        opened = self._opened(top, (), is_secondary=False)
        while opened:
            folder = opened[-1]
            entry = next(folder.entries, None)
            if entry is None:
                opened.pop()
                continue
            path = folder.path / entry.name
            if entry.is_link and not self._may_follow(path, entry, is_secondary=folder.is_secondary):
                continue
            if not entry.is_folder:
                self._take_entry(path, is_secondary=folder.is_secondary)
            elif self._enters(path, is_secondary=folder.is_secondary):
                is_secondary = folder.is_secondary or is_test_or_build(path.name)
                opened += self._opened(path, opened, is_secondary=is_secondary)

    def _may_follow(self, link: Path, entry: FolderEntry, *, is_secondary: bool) -> bool:
        """Return whether a link leads to what was given, or is excluded; if not, remember it."""
        real = self._places.location(link)
        if _is_in(real, self._roots) or self.settings.excludes(link):
            return True
        self.skipped.append((link, f"this link leads to {printable(str(real))}, outside of the given paths"))
        is_modeling = self._is_modeling(link, is_secondary=is_secondary)
        if is_modeling or (entry.is_folder and not is_secondary and not _why_skipped_by_name(link.name)):
            self.outside.append(link)
        return False

    def _opened(self, path: Path, above: Sequence[_Folder], *, is_secondary: bool) -> list[_Folder]:
        """Return a folder, which is in those ``above``, to be walked; none if it has been, or cannot be."""
        try:
            self._places.location(path)
            status = path.stat()
            identity = (status.st_dev, status.st_ino)
            if any(each.identity == identity for each in above):
                self._fail(path, "this link leads back to a folder that contains it, so it was not followed")
                return []
            if identity in self._visited:
                return []
            self._visited.add(identity)
            found = entries(path)
            if any(each.name in SETTINGS_FILES for each in found):
                self.settings = self.settings.around([path])
            return [_Folder(path, identity, is_secondary, iter(found))]
        except OSError as error:
            self._fail(path, f"this folder cannot be read: {_cause(error)}")
            return []

    def _enters(self, folder: Path, *, is_secondary: bool) -> bool:
        """Return whether a folder is to be walked, and remember why if it is skipped."""
        if self._leaves_out(folder):
            self._found += 1
            return False
        if self._is_modeling(folder, is_secondary=is_secondary):
            self._fail(folder, "this is a folder with the name of a modeling file")
        why = _why_skipped_by_name(folder.name)
        if why is None and exists(folder / "pyvenv.cfg"):
            why = "it is a virtual environment"
        if why:
            self.skipped.append((folder, why))
        return not why

    def _take_entry(self, path: Path, *, is_secondary: bool) -> None:
        """Take a file in a folder, if it is a modeling file."""
        if self._is_modeling(path, is_secondary=is_secondary):
            self._found += 1
            own = None if self._leaves_out(path) else self._mode(path)
            if own is not None:
                self._take_file(path, own)
        elif (
            not is_secondary
            and may_look_like_model(path.name)
            and is_file(path)
            and not self.settings.excludes(path)
        ):
            self._candidates.append(path)

    def _is_modeling(self, path: Path, *, is_secondary: bool) -> bool:
        return is_modeling(path.name) or (
            not is_secondary and not is_test(path.name) and self.settings.includes(path)
        )

    def _leaves_out(self, path: Path) -> bool:
        """Return whether the settings exclude ``path``, and remember that."""
        pattern = self.settings.excluded_by(path)
        if pattern is not None:
            self.skipped.append((path, f"the settings exclude {pattern!r}"))
        return pattern is not None

    def _take_file(self, path: Path, own: int) -> None:
        if not stat.S_ISREG(own):
            self._fail(path, "this is neither a file nor a folder")
            return
        other = not_python(path)
        if other is not None:
            self._fail(path, other)
            return
        real = str(self._places.location(path))
        if real not in self._taken:
            self._taken.add(real)
            self.files.append(path)

    def _mode(self, path: Path) -> int | None:
        """Return the mode of what is at ``path``; if there is nothing, add a problem and return None."""
        try:
            return mode(path)
        except OSError as error:
            self._fail(path, _cause(error, is_from_link=is_link(path)))
        except ValueError:
            self._fail(path, "this is not a path: it contains a NUL character")
        return None

    def _fail(self, path: Path, message: str) -> None:
        problem = Problem(path, message)
        if problem not in self.problems:
            self.problems.append(problem)


def not_python(path: Path) -> str | None:
    """Return why a file is not read, going by its name; None if it may contain Python."""
    ending = path.suffix.lower()
    if ending == ".ipynb":
        return (
            "gclint does not read notebooks; convert it with 'jupyter nbconvert --to script', and check "
            "the resulting file"
        )
    if ending in _NOT_PYTHON:
        return f"{path.suffix} is not the suffix of a Python file"
    return None


def _is_in(real: Path, roots: Collection[Path]) -> bool:
    """Return whether a resolved path is one of some resolved paths, or below one."""
    return real in roots or any(each in roots for each in real.parents)


def _why_skipped_by_name(name: str) -> str | None:
    if name.startswith("."):
        return "it is a hidden folder"
    return "it contains no code of the project" if name in _SKIPPED_FOLDERS else None


def _cause(error: OSError, *, is_from_link: bool = False) -> str:
    if error.errno == errno.ELOOP:
        return "this link leads back to itself"
    if isinstance(error, FileNotFoundError):
        return "this link leads to a file that does not exist" if is_from_link else "no such file or folder"
    if isinstance(error, PermissionError):
        return "permission denied"
    return error.strerror or str(error)
