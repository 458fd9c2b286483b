"""Which files import from which: a change in one may affect all that import from it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path

from gclint.source.file import SourceFile, UnreadableFile
from gclint.source.naming import MODEL_BASE
from gclint.source.outline import ImportedName
from gclint.source.project import Project
from gclint.source.surroundings import files_mentioning

_INIT = "__init__.py"
_DEPTH = 8
"""How many packages a name is followed through; a longer chain is a circle."""
_Origin = tuple[Path, str | None]
"""A file, and a name that is written in it; None for the file itself."""


class Imports:
    """The imports of the given files, and of those around them that define models."""

    def __init__(self, project: Project) -> None:
        """Read nothing yet."""
        self._project = project
        self._known: dict[Path, dict[str, tuple[_Origin, ...]]] = {}
        self._modules: dict[tuple[Path, str, int], SourceFile | None] = {}
        self._found: dict[tuple[Path, str, int, str | None], tuple[_Origin, ...]] = {}

    def users(self, changed: Iterable[Path]) -> set[Path]:
        """Return the ``changed`` files, and those that import from them.

        This includes imports through given files, and through those beside them, but not through others, such
        as the library's own: through these, nearly everything imports everything.
        """
        folders = {self._project.location(path).parent for path in self._project.paths}
        found: set[Path] = set()
        waiting = [self._project.identify(path) for path in changed]
        while waiting:
            path = waiting.pop()
            if path not in found:
                found.add(path)
                if path in self._project.given or self._project.location(path).parent in folders:
                    waiting.extend(self._importers[path])
        return found

    def bound(self, path: Path) -> dict[str, tuple[_Origin, ...]]:
        """Return what imports bind in a file: a file and a name in it; no name where it is the whole file.

        The names of ``from x import *`` are under ``*``.
        """
        if path not in self._known:
            file = self._file(path)
            self._known[path] = {} if file is None else dict(self._bound(file))
        return self._known[path]

    @cached_property
    def _importers(self) -> defaultdict[Path, set[Path]]:
        importers: defaultdict[Path, set[Path]] = defaultdict(set)
        waiting = list({*self._project.paths, *files_mentioning(self._project, MODEL_BASE)})
        # A file beside the given ones may lie on the way between two of them.
        folders = {self._project.location(path).parent for path in self._project.paths}
        seen = set(waiting)
        while waiting:
            path = waiting.pop()
            for origin in {
                origin
                for group in self.bound(path).values()
                for origin, name in group
                if origin.name != _INIT or (name is None and path.name != _INIT)
            }:
                # A name that is imported from a package has been followed to its definition.
                importers[origin].add(path)
                if origin not in seen and self._project.location(origin).parent in folders:
                    seen.add(origin)
                    waiting.append(origin)
        return importers

    def _file(self, path: Path) -> SourceFile | None:
        try:
            return self._project.file(path)
        except (OSError, UnreadableFile):
            return None

    def _bound(self, file: SourceFile) -> Iterator[tuple[str, tuple[_Origin, ...]]]:
        stars: list[_Origin] = []
        for statement in file.outline.imports:
            for imported in statement.names:
                yield imported.bound, self._written(file, imported)
            module = statement.module
            for item in statement.items:
                if module is None:
                    # `import a.b` binds `a`, and makes `a.b` available as well.
                    origin = self._at(file, item.path, 0)
                    if origin is not None:
                        stars.append((origin.path, None))
                elif item.path == "*":
                    origin = self._module(file, module)
                    if origin is not None:
                        stars.append((origin.path, None))
        yield "*", tuple(stars)

    def _module(self, file: SourceFile, dotted: str) -> SourceFile | None:
        name = dotted.lstrip(".")
        return self._at(file, name, len(dotted) - len(name))

    def _at(self, file: SourceFile, name: str, level: int) -> SourceFile | None:
        """Return the file of a module; the files of a folder import the same ones."""
        key = file.path.parent, name, level
        if key not in self._modules:
            self._modules[key] = self._project.module(file, name, level)
        return self._modules[key]

    def _written(self, file: SourceFile, imported: ImportedName) -> tuple[_Origin, ...]:
        """Return where an imported name is defined; the same for all files of a folder."""
        key = file.path.parent, imported.module, imported.level, imported.name
        if key not in self._found:
            self._found[key] = tuple(self._origins(file, imported, _DEPTH))
        return self._found[key]

    def _origins(self, file: SourceFile, imported: ImportedName, left: int) -> Iterator[_Origin]:
        """Yield where an imported name is defined."""
        origin = self._at(file, imported.module, imported.level) if left else None
        is_package = origin is None or origin.path.name == _INIT
        if is_package and imported.name is not None:
            dotted = f"{imported.module}.{imported.name}" if imported.module else imported.name
            submodule = self._at(file, dotted, imported.level)
            if submodule is not None:
                yield submodule.path, None
                return
        if origin is None or origin.path == file.path:
            return
        if imported.name is None or not is_package:
            yield origin.path, imported.name
            return
        yield origin.path, imported.name
        yield from self._exported(origin, imported.name, left)

    def _exported(self, package: SourceFile, name: str, left: int) -> Iterator[_Origin]:
        """Yield where a name is defined that a package re-exports."""
        inner = package.outline.imported(name)
        if inner is not None:
            yield from self._origins(package, inner, left - 1)
            return
        for statement in package.outline.imports if left else ():
            if statement.module is None or all(item.path != "*" for item in statement.items):
                continue
            starred = self._module(package, statement.module)
            if starred is None or starred.path == package.path:
                continue
            outline = starred.outline
            if name in outline.classes or name in outline.functions or outline.imported(name):
                yield starred.path, name
            if starred.path.name == _INIT:
                yield from self._exported(starred, name, left - 1)
