"""The files of a run, read once, and what a name in one of them refers to in another."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import Protocol

from gclint.source.disk import read_bytes
from gclint.source.file import SourceFile, UnreadableFile


class Vocabulary(Protocol):
    """What users add to the names that gclint knows."""

    def given(self, name: str) -> tuple[str, ...] | None:
        """Return what a setting holds, or None where the user says nothing."""


class Project:
    """All files that are looked at, given or consulted, with changes that are not written yet.

    A file is identified by one path: as it was given, or as it was consulted first, however else it
    can be spelled. That is its ``SourceFile.path``, so what is said of files can be compared as it is.
    """

    def __init__(
        self, settings: Vocabulary, paths: Iterable[Path], within: Iterable[Path] | None = None
    ) -> None:
        """Know the files at ``paths``, which the user gave, and read nothing yet.

        Args:
            settings: what the user adds to the names that gclint knows.
            paths: the files.
            within: the files and folders outside of which nothing may be changed, wherever links lead; None
                where that is no question.
        """
        self.settings = settings
        self.derived: dict[object, object] = {}
        """What others have worked out from the files; it is forgotten when one of them changes."""
        self._locations: dict[Path, Path] = {}
        self._identities: dict[Path, Path] = {}
        """By every spelling that was asked for, and by location."""
        self._files: dict[Path, SourceFile] = {}
        self._missing: set[Path] = set()
        self._uses: defaultdict[Path, set[Path]] = defaultdict(set)
        self.paths = tuple(dict.fromkeys(map(self._identified, paths)))
        """The files that the user gave: what is checked, and searched for callers."""
        self.given = frozenset(self.paths)
        """The same, to ask whether a file is one of them."""
        self.fixable = self.given if within is None else self._lying_in(within)
        """Those that may be changed."""

    def identify(self, path: Path) -> Path:
        """Return the path that identifies the file at ``path``; one that is not known stays as it is."""
        known = self._identities.get(path)
        if known is None:
            known = self._identities.get(self.location(path))
            if known is None:
                return path
            self._identities[path] = known
        return known

    def file(self, path: Path) -> SourceFile:
        """Return the file at ``path``.

        Raises:
            OSError: it cannot be read.
            UnreadableFile: it is no Python text.
        """
        identity = self.identify(path)
        known = self._files.get(identity)
        if known is None:
            known = SourceFile(identity, read_bytes(identity))
            self._files[self._identified(identity)] = known
        return known

    @property
    def read(self) -> tuple[Path, ...]:
        """The files that were read so far, given or consulted."""
        return tuple(self._files)

    def _identified(self, path: Path) -> Path:
        """Let a file be known, by ``path`` if it is not yet, and return the path that identifies it."""
        identity = self.identify(path)
        self._identities[self.location(path)] = self._identities[path] = identity
        return identity

    def location(self, path: Path) -> Path:
        """Return where the file at ``path`` lies, without links: what its place in a package hangs on."""
        known = self._locations.get(path)
        if known is None:
            # Links on the way are looked at once a folder, not once a file.
            if path.name in ("", os.pardir) or os.path.islink(path):  # noqa: PTH114 (raises nothing)
                known = Path(os.path.realpath(path))
            else:
                known = self._folder(path.parent) / path.name
            self._locations[path] = known
        return known

    def _lying_in(self, roots: Iterable[Path]) -> frozenset[Path]:
        real = [Path(os.path.realpath(root)) for root in roots]
        return frozenset(path for path in self.paths if any(map(self.location(path).is_relative_to, real)))

    def model(self, path: Path) -> str:
        """Return the model that the file at ``path`` belongs to: the name of its folder."""
        return self.location(path).parent.name

    def _folder(self, folder: Path) -> Path:
        known = self._locations.get(folder)
        if known is None:
            parent = self._locations.get(folder.parent)
            if parent is None or folder.name in ("", os.pardir) or os.path.islink(folder):  # noqa: PTH114
                known = Path(os.path.realpath(folder))
                # Folders beside it need not ask for all links on the way once more.
                self._locations.setdefault(folder.parent, Path(os.path.realpath(folder.parent)))
            else:
                known = parent / folder.name
            self._locations[folder] = known
        return known

    def replace(self, path: Path, text: str) -> None:
        """Let the file at ``path`` hold ``text`` from now on, in memory only."""
        file = self.file(path)
        self._files[file.path] = SourceFile(file.path, file.encode(text))
        self.derived.clear()

    def dependents(self, changed: Iterable[Path]) -> set[Path]:
        """Return the files whose verdict may hang on a ``changed`` one, which may be spelled anyhow.

        That may also be one which has been deleted, or is not there yet: it is identified by where it
        would lie.
        """
        users = defaultdict(set)
        for user, used in self._uses.items():
            for path in used:
                users[self._known_or_location(path)].add(user)
        found: set[Path] = set()
        waiting = [self._known_or_location(path) for path in changed]
        while waiting:
            path = waiting.pop()
            if path not in found:
                found.add(path)
                waiting.extend(users[path])
        return found

    def _known_or_location(self, path: Path) -> Path:
        location = self.location(path)
        return self._identities.get(location, location)

    def module(self, user: SourceFile, name: str, level: int) -> SourceFile | None:
        """Return the file of the module that ``user`` imports, or None where none is at hand.

        Args:
            user: the importing file.
            name: the dotted module name, without leading dots.
            level: how many leading dots it has; 0 for an absolute import, which is looked up in
                the package that ``user`` belongs to, and among those of the given files.
        """
        base = self._base(user.path, level, name)
        if base is None:
            return None
        for candidate in (base.with_name(base.name + ".py"), base / "__init__.py"):
            if candidate not in self._missing:
                try:
                    return self.consult(user, candidate)
                except (OSError, UnreadableFile):
                    self._missing.add(candidate)
            # That it is not there is something to hang on as well: it may have been deleted just now.
            self._uses[user.path].add(candidate)
        return None

    def consult(self, user: SourceFile, path: Path) -> SourceFile:
        """Return the file at ``path``, remembering that the verdict on ``user`` hangs on it.

        Raises:
            OSError: it cannot be read.
            UnreadableFile: it is no Python text.
        """
        file = self.file(path)
        self._uses[user.path].add(file.path)
        return file

    def _base(self, path: Path, level: int, name: str) -> Path | None:
        """Return where the module would be, without a suffix."""
        parts = [part for part in name.split(".") if part]
        folder = self._folder(path.parent)
        if level:
            for _ in range(level - 1):
                folder = folder.parent
            return folder.joinpath(*parts)
        for parent in (folder, *folder.parents):
            if parts and parent.name == parts[0]:
                return parent.parent.joinpath(*parts)
            if not (parent / "__init__.py").exists():
                break
        root = self._packages.get(parts[0]) if parts else None
        return None if root is None else root.joinpath(*parts)

    @cached_property
    def _packages(self) -> dict[str, Path]:
        """The packages that hold given files, by name, with the folders that they lie in."""
        folders = {self._folder(path.parent) for path in self.paths}
        around = {parent for folder in folders for parent in (folder, *folder.parents)}
        return {folder.name: folder.parent for folder in sorted(around) if (folder / "__init__.py").exists()}
