"""What a file makes of the name of the base class of checkpointing layers."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gclint.code.lines import mentions
from gclint.code.outline import ImportedName, base_name
from gclint.code.packages import LIBRARY
from gclint.code.remembered import remembered
from gclint.code.tree import statements_around
from gclint.code.walk import assigned, walk
from gclint.network.evaluation.classes import CHECKPOINTING_BASE
from gclint.network.evaluation.modules import ModuleInfo
from gclint.network.evaluation.values import ClassValue, EvaluatedExternal

BASE_MODULE = "modeling_layers"
_MODULE = EvaluatedExternal("torch.nn.Module")
_MODULES = (LIBRARY, f"{LIBRARY}.{BASE_MODULE}")


@remembered
def fallbacks(module: ModuleInfo) -> tuple[tuple[int, int], ...]:
    """Return where a file imports the base class, with a fallback for releases that do not have it.

    Each place is that of the fallback.
    """
    return _Meanings().fallbacks(module)


@remembered
def other_meaning(module: ModuleInfo) -> int | None:
    """Return the row on which a file gives the name another meaning, other than as a fallback."""
    return _Meanings().other(module)


class _Meanings:
    """What files that import from each other make of the name, each looked at once."""

    def __init__(self) -> None:
        self._rows: dict[ModuleInfo, int | None] = {}
        self._asked: list[ModuleInfo] = []
        """Those whose answer is being looked for, to which imports may lead back."""

    def other(self, module: ModuleInfo) -> int | None:
        """Return the row on which a file gives the name another meaning."""
        if module in self._asked:
            return None
        if module not in self._rows:
            self._asked.append(module)
            self._rows[module] = next(self._others(module), None)
            self._asked.pop()
        return self._rows[module]

    def _others(self, module: ModuleInfo) -> Iterator[int]:
        file = module.file
        for statement in file.outline.imports:
            bound = [each for each in statement.names if each.bound == CHECKPOINTING_BASE]
            if not all(self._is_base(module, each) for each in bound):
                yield file.places.row(statement.start)
        for start, star in module.stars:
            other = _source(module, star)
            is_given = other is not None and other.file.outline.exports(CHECKPOINTING_BASE) is not False
            if other is not None and is_given and self.other(other) is not None:
                yield file.places.row(start)
        if file.tree is not None and mentions(file.text, CHECKPOINTING_BASE):
            harmless = self.fallbacks(module)
            for node in walk(file.tree.module):
                place = file.places.start(node) if _binds_base(node) else None
                if place is not None and not any(start <= place < end for start, end in harmless):
                    yield file.places.row(place)

    def fallbacks(self, module: ModuleInfo) -> tuple[tuple[int, int], ...]:
        """Return where handlers of errors stand that give the name to a class instead of the base class."""
        file = module.file
        tree = file.tree if mentions(file.text, CHECKPOINTING_BASE) else None
        return tuple(
            (file.places.start(node.handlers[0]), file.places.end(node.handlers[-1]))
            for node, around in (() if tree is None else statements_around(tree.module.body))
            if around is None
            and isinstance(node, ast.Try)
            and node.handlers
            and any(self._imports_base(module, each) for each in node.body)
            and all(self._falls_back(module, each) for each in node.handlers)
        )

    def _is_base(self, module: ModuleInfo, imported: ImportedName) -> bool:
        """Return whether an import is that of the library's class, perhaps by way of another file."""
        if imported.name != CHECKPOINTING_BASE:
            return False
        if imported.module in _MODULES or (imported.level and imported.module.endswith(BASE_MODULE)):
            return True
        other = _source(module, imported)
        if other is None or other in self._asked or not other.lookup(CHECKPOINTING_BASE):
            return False
        return self.other(other) is None

    def _imports_base(self, module: ModuleInfo, statement: ast.stmt) -> bool:
        """Return whether a statement imports the library's class."""
        start = module.file.places.start(statement) if isinstance(statement, ast.ImportFrom) else -1
        found = (each for each in module.file.outline.imports if each.start == start)
        bound = (each for one in found for each in one.names if each.bound == CHECKPOINTING_BASE)
        return any(self._is_base(module, each) for each in bound)

    def _falls_back(self, module: ModuleInfo, handler: ast.ExceptHandler) -> bool:
        """Return whether what handles an error raises, or gives the name to a class of modules."""
        if isinstance(handler.body[-1], ast.Raise):
            return True
        named: list[str | None] = []
        for statement in handler.body:
            if isinstance(statement, ast.ClassDef) and statement.name == CHECKPOINTING_BASE:
                named += map(base_name, statement.bases)
            named += [
                base_name(value)
                for target, value in assigned(statement)
                if isinstance(target, ast.Name) and target.id == CHECKPOINTING_BASE
            ]
            if self._imports_base(module, statement):
                return True
        values = [value for name in filter(None, named) for value in module.resolve(name)]
        return _MODULE in values or any(
            isinstance(each, ClassValue) and each.info.is_module for each in values
        )


def _source(module: ModuleInfo, imported: ImportedName) -> ModuleInfo | None:
    """Return the module of the project from which something is imported, if it is another one."""
    file = module.library.project.module(module.file, imported.module, imported.level)
    other = None if file is None else module.library.module(file)
    return None if other is module else other


def _binds_base(node: ast.AST) -> bool:
    """Return whether a node gives the name another meaning, or none, and is no import."""
    if isinstance(node, ast.Name):
        return node.id == CHECKPOINTING_BASE and not isinstance(node.ctx, ast.Load)
    if isinstance(node, ast.MatchMapping):
        return node.rest == CHECKPOINTING_BASE
    # A definition, the name behind `except … as`, a pattern, or a parameter for types.
    return getattr(node, "name", None) == CHECKPOINTING_BASE and not isinstance(node, ast.alias)
