"""The files of a run, read once, and what a name in one of them refers to in another."""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property
from pathlib import Path
from typing import Protocol

from gclint.source.file import SourceFile, UnreadableFile


class Vocabulary(Protocol):
    """What users add to the names that gclint knows."""

    def given(self, name: str) -> tuple[str, ...] | None:
        """Return what a setting holds, or None where the user says nothing."""


class Project:
    """All files that are looked at, given or consulted, with changes that are not written yet."""

    def __init__(self, settings: Vocabulary) -> None:
        """Start with nothing read."""
        self.settings = settings
        self.paths: tuple[Path, ...] = ()
        """The files that the user gave: what may be changed, and is searched for callers."""
        self.derived: dict[object, object] = {}
        """What others have worked out from the files; it is forgotten when one of them changes."""
        self._files: dict[Path, SourceFile] = {}
        self._resolved: dict[Path, Path] = {}
        self._missing: set[Path] = set()
        self._uses: defaultdict[Path, set[Path]] = defaultdict(set)

    def file(self, path: Path) -> SourceFile:
        """Return the file at ``path``.

        Raises:
            OSError: it cannot be read.
            UnreadableFile: it is no Python text.
        """
        resolved = self.resolve(path)
        known = self._files.get(resolved)
        if known is None:
            known = self._files[resolved] = SourceFile(path, resolved.read_bytes())
        return known

    def resolve(self, path: Path) -> Path:
        """Return the path without links, which identifies a file."""
        known = self._resolved.get(path)
        if known is None:
            # Links on the way are looked at once a folder, not once a file.
            folder, name = path.parent, path.name
            if path.is_symlink() or name in ("", ".", ".."):
                known = path.resolve()
            else:
                known = self._folder(folder) / name
            self._resolved[path] = known
        return known

    def _folder(self, folder: Path) -> Path:
        known = self._resolved.get(folder)
        if known is None:
            known = self._resolved[folder] = folder.resolve()
        return known

    def replace(self, path: Path, text: str) -> None:
        """Let the file at ``path`` hold ``text`` from now on, in memory only."""
        file = self.file(path)
        data = file.encode(text)
        self._files[self.resolve(path)] = SourceFile(file.path, data)
        self.derived.clear()

    def dependents(self, changed: set[Path]) -> set[Path]:
        """Return the resolved paths of all files whose verdict may hang on a ``changed`` one.

        That may also be one which has been deleted, or is not there yet.
        """
        users = defaultdict(set)
        for user, used in self._uses.items():
            for path in used:
                users[path].add(user)
        found: set[Path] = set()
        waiting = [self.resolve(path) for path in changed]
        while waiting:
            path = waiting.pop()
            if path not in found:
                found.add(path)
                waiting.extend(users[path])
        return found

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
            self._uses[self.resolve(user.path)].add(candidate)
        return None

    def consult(self, user: SourceFile, path: Path) -> SourceFile:
        """Return the file at ``path``, remembering that the verdict on ``user`` hangs on it.

        Raises:
            OSError: it cannot be read.
            UnreadableFile: it is no Python text.
        """
        file = self.file(path)
        self._uses[self.resolve(user.path)].add(self.resolve(path))
        return file

    def _base(self, path: Path, level: int, name: str) -> Path | None:
        """Return where the module would be, without a suffix."""
        parts = [part for part in name.split(".") if part]
        folder = self.resolve(path.parent)
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
        folders = {self.resolve(path.parent) for path in self.paths}
        around = {parent for folder in folders for parent in (folder, *folder.parents)}
        return {folder.name: folder.parent for folder in sorted(around) if (folder / "__init__.py").exists()}
