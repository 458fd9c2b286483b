"""What can run the code that repairs change: it is followed outwards, from definition to definition.

Only files that name something changed are read, among the given ones and those around them. No name of an
installed package is followed, since such a package does not import the files of a project.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path

from gclint.code.file import SourceFile, UnreadableFile
from gclint.code.lines import mentions
from gclint.code.neighbouring_files import files_around
from gclint.code.outline import ImportedName
from gclint.code.project import Project, reachable
from gclint.code.tree import Unparsable, parsed
from gclint.copies.generated import is_modular


class Reach:
    """Which definitions use what is changed, directly or through others."""

    def __init__(self, project: Project, texts: Mapping[Path, tuple[str, str]]) -> None:
        """Search the files for whatever leads to a change of ``texts``, which are those before and after."""
        self._project = project
        self._texts = texts
        self._around = dict.fromkeys(files_around(project))
        self._imports = Imports(project, self._around)
        self._changed = {path: frozenset(_differing(*both)) for path, both in texts.items()}
        self._users: defaultdict[Place, set[Place]] = defaultdict(set)
        """What uses a place directly."""
        self._search()

    def leading(self, changed: Iterable[Path]) -> frozenset[Place]:
        """Return all places that lead to what is changed in some of the files."""
        starts: list[Place] = [(path, name) for path in changed for name in self._changed[path]]
        return frozenset(reachable(starts, lambda place: [(place[0], None), *self._users.get(place, ())]))

    def blocks(self, path: Path) -> list[str]:
        """Return the classes with a ``forward`` in a file, as it will be."""
        return [
            name
            for name, nodes in _definitions(self._versions(path)[-1]).items()
            if any(isinstance(node, ast.ClassDef) and _has_forward(node) for node in nodes)
        ]

    def _search(self) -> None:
        """Search for the names of what leads to a change, until there are no new ones."""
        read: set[Path] = set()
        searched: set[tuple[str, ...]] = set()
        while True:
            leading = self.leading(self._texts)
            unread = {path for path, _ in leading} - read
            words = {words for place in leading if (words := self._words(place))} - searched
            for path in unread:
                self._add_own(path)
            if not unread:
                for path in self._around if words else ():
                    self._add_imports(path, self._named(path, words))
                searched |= words
            if not unread and not words:
                return
            read |= unread

    def _words(self, place: Place) -> tuple[str, ...]:
        """Return the words that a file has to contain if it uses a place directly."""
        path, name = place
        if is_modular(path):
            return ()  # It is not imported when models run.
        module = () if path.stem == "__init__" else (path.stem,)
        if name is None:
            return module
        # What a file itself only imports is seldom imported from it, and never through a package.
        is_import = name in self._changed.get(path, ()) and all(
            map(_is_import, _definitions(self._versions(path)[0]).get(name, ()))
        )
        return (name, *module) if is_import else (name,)

    def _named(self, path: Path, words: Iterable[tuple[str, ...]]) -> set[str]:
        """Return the first of the words that occur together in a file."""
        try:
            data = "".join(self._texts[path]).encode() if path in self._texts else self._project.search(path)
        except OSError:
            return set()
        return {each[0] for each in words if all(word.encode() in data for word in each)}

    def _add_own(self, path: Path) -> None:
        """Add the definitions of a file as users of the names in them."""
        for text in self._versions(path):
            for user, used in _used(text).items():
                for name in used:
                    self._users[path, name].add((path, user))

    def _add_imports(self, path: Path, named: Collection[str]) -> None:
        """Add what a file imports under some of the words in it, or with modules, as users of that."""
        if not named:
            return
        try:
            file = self._project.file(path)
        except (OSError, UnreadableFile):
            return
        for local, place in self._imported(file, named):
            self._users[place].add((path, local))

    def _imported(self, file: SourceFile, named: Collection[str]) -> Iterator[tuple[str, Place]]:
        """Yield names that a file imports, with what they may stand for."""
        for statement in file.outline.imports:
            for imported in statement.names:
                module = self._imports.submodule(file, imported)
                if module is not None:
                    yield from ((imported.bound, place) for place in self._in_module(module, named))
                elif imported.name in named:
                    yield from ((imported.bound, place) for place in self._imports.origins(file, imported))
            for item in statement.items:
                if statement.module is None and item.alias is None:
                    # `import a.b` binds `a`, and makes `a.b` available as well.
                    module = self._imports.module(file, item.path)
                    if module is not None:
                        yield item.path.partition(".")[0], (module.path, None)
                elif item.path == "*" and statement.module is not None:
                    module = self._imports.module(file, statement.module)
                    if module is not None:
                        own = _definitions(self._versions(module.path)[-1])
                        yield from ((name, (module.path, name)) for name in own)
                        for name in named:
                            yield from ((name, place) for place in self._imports.exported(module, name))

    def _in_module(self, module: SourceFile, named: Iterable[str]) -> Iterator[Place]:
        """Yield a module itself, and where it has names from."""
        yield module.path, None
        for name in named:
            yield from self._imports.exported(module, name)

    def _versions(self, path: Path) -> tuple[str, ...]:
        """Return the texts of a file: before and after, if it is changed."""
        if path in self._texts:
            return self._texts[path]
        try:
            return (self._project.file(path).text,)
        except (OSError, UnreadableFile):
            return ("",)


def _has_forward(node: ast.ClassDef) -> bool:
    return any(isinstance(each, ast.FunctionDef) and each.name == "forward" for each in node.body)


@lru_cache(maxsize=512)
def _used(text: str) -> Mapping[str, frozenset[str]]:
    """Return the names that each top-level definition of a text uses; repairs often give the same texts."""
    return {
        name: frozenset(each.id for node in nodes for each in ast.walk(node) if isinstance(each, ast.Name))
        for name, nodes in _definitions(text).items()
    }


def _differing(before: str, after: str) -> Iterator[str]:
    """Yield the names that are bound differently: their definitions, or what is imported under them."""
    earlier, later = _definitions(before), _definitions(after)
    for name in {**earlier, **later}:
        is_new_import = name not in earlier and all(map(_is_import, later[name]))
        if not is_new_import and _dump(earlier.get(name, ())) != _dump(later.get(name, ())):
            yield name


def _is_import(node: ast.stmt) -> bool:
    return isinstance(node, ast.Import | ast.ImportFrom)


def _dump(nodes: Iterable[ast.AST]) -> list[str]:
    return [ast.dump(node) for node in nodes]


def _definitions(text: str) -> dict[str, list[ast.stmt]]:
    """Return the top-level statements of a text by the names that they bind.

    A statement that binds nothing may change what it names.
    """
    try:
        tree = parsed(text)
    except Unparsable:
        return {}
    found: defaultdict[str, list[ast.stmt]] = defaultdict(list)
    for statement in _statements(tree):
        for name, node in _bound(statement):
            found[name].append(node)
    return dict(found)


def _statements(parent: ast.AST) -> Iterator[ast.stmt]:
    """Yield the statements of a module, also those in branches."""
    for child in ast.iter_child_nodes(parent):
        if isinstance(child, ast.stmt):
            yield child
        if not isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef | ast.expr):
            yield from _statements(child)


def _bound(statement: ast.stmt) -> Iterator[tuple[str, ast.stmt]]:
    if isinstance(statement, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        yield statement.name, statement
    elif isinstance(statement, ast.Import):
        for each in statement.names:
            yield each.asname or each.name.partition(".")[0], ast.Import([each])
    elif isinstance(statement, ast.ImportFrom):
        for each in statement.names:
            yield each.asname or each.name, ast.ImportFrom(statement.module, [each], statement.level)
    elif not isinstance(statement, ast.If | ast.With) and not hasattr(statement, "handlers"):
        names = [each for each in ast.walk(statement) if isinstance(each, ast.Name)]
        stored = [each for each in names if isinstance(each.ctx, ast.Store)]
        for name in dict.fromkeys(each.id for each in stored or names):
            yield name, statement


Place = tuple[Path, str | None]
"""A file, and a name that it defines or imports; None for the file itself, as a module."""
_INIT = "__init__.py"
_DEPTH = 8
"""How many files a name is followed through; a longer chain is a circle."""


class Imports:
    """Follows imported names to their definitions."""

    def __init__(self, project: Project, within: Collection[Path]) -> None:
        """Read nothing yet.

        Names are followed ``within`` some files; an installed package, which imports none of them, is a dead
        end.
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
