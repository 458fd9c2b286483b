"""Where imported names are defined, as far as files of the project lead."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

from gclint.source.file import SourceFile, UnreadableFile
from gclint.source.lines import mentions
from gclint.source.outline import ImportedName
from gclint.source.project import Project

Place = tuple[Path, str | None]
"""A file, and a name that it defines or imports; None for the file itself, as a module."""
_INIT = "__init__.py"
_DEPTH = 8
"""How many files a name is followed through; a longer chain is a circle."""


class Imports:
    """Follows imported names to their definitions."""

    def __init__(self, project: Project, within: Collection[Path]) -> None:
        """Read nothing yet.

        Args:
            project: the files.
            within: those that names are followed through; a package that is installed, which imports none of
                them, is a dead end.
        """
        self._project = project
        self._within = within
        self._modules: dict[tuple[Path, str, int], SourceFile | None] = {}
        self._origins_of: dict[tuple[Path, str, int, str | None], tuple[Place, ...]] = {}
        self._exports: dict[tuple[Path, str], tuple[Place, ...]] = {}

    def submodule(self, file: SourceFile, imported: ImportedName) -> SourceFile | None:
        """Return the module that ``file`` binds to a name; None if that stands for something in a module."""
        module = self._at(file, imported.module, imported.level)
        if imported.name is None:
            return module
        if module is not None and module.path.name != _INIT:
            return None
        dotted = f"{imported.module}.{imported.name}" if imported.module else imported.name
        return self._at(file, dotted, imported.level)

    def module(self, file: SourceFile, dotted: str) -> SourceFile | None:
        """Return the module that ``file`` names, with leading dots if it is relative."""
        name = dotted.lstrip(".")
        return self._at(file, name, len(dotted) - len(name))

    def origins(self, file: SourceFile, imported: ImportedName) -> tuple[Place, ...]:
        """Return where a name may be defined that ``file`` imports, and the files that pass it on."""
        # The files of a folder import the same ones.
        key = file.path.parent, imported.module, imported.level, imported.name
        if key not in self._origins_of:
            self._origins_of[key] = tuple(self._origins(file, imported, _DEPTH))
        return self._origins_of[key]

    def exported(self, module: SourceFile, name: str) -> tuple[Place, ...]:
        """Return the same for a name that a module has from others."""
        key = module.path, name
        if key not in self._exports:
            self._exports[key] = tuple(self._exported(module, name, _DEPTH))
        return self._exports[key]

    def _at(self, file: SourceFile, name: str, level: int) -> SourceFile | None:
        key = file.path.parent, name, level
        if key not in self._modules:
            try:
                found = self._project.module(file, name, level)
            except (OSError, UnreadableFile):
                found = None
            is_followed = found is not None and found.path in self._within
            self._modules[key] = found if is_followed else None
        return self._modules[key]

    def _origins(self, file: SourceFile, imported: ImportedName, left: int) -> Iterator[Place]:
        module = self.submodule(file, imported)
        if module is not None:
            yield module.path, None
            return
        module = self._at(file, imported.module, imported.level)
        if module is not None and module.path != file.path and imported.name is not None:
            yield module.path, imported.name
            yield from self._exported(module, imported.name, left)

    def _exported(self, module: SourceFile, name: str, left: int) -> Iterator[Place]:
        if not left:
            return
        inner = module.outline.imported(name)
        if inner is not None:
            yield from self._origins(module, inner, left - 1)
            return
        for statement in module.outline.imports:
            if statement.module is not None and any(item.path == "*" for item in statement.items):
                starred = self.module(module, statement.module)
                if starred is not None and starred.path != module.path:
                    if mentions(starred.text, name):
                        yield starred.path, name
                    yield from self._exported(starred, name, left - 1)
