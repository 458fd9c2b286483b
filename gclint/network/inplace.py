"""Finds in-place changes of the output of input embeddings."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from gclint.network.assignments import stops_gradients
from gclint.network.differentiable import SAME_ATTRIBUTES, VIEWS
from gclint.network.evaluation.classes import ClassInfo, words_of
from gclint.network.hooked import GETTER, NAMED_BY, USUAL, Hooked
from gclint.network.learned import is_decorated_unrecorded
from gclint.network.model import Network
from gclint.network.support import supports_checkpointing
from gclint.network.words import words_in
from gclint.source.file import SourceFile
from gclint.source.lines import mentions
from gclint.source.outline import Definition
from gclint.source.tree import blocks_of
from gclint.source.walk import (
    LOOPS,
    WITHS,
    FunctionNode,
    Loop,
    arguments,
    dotted_name,
    is_docstring,
    names_in,
    structure,
    text_of,
    walk,
    walk_scope,
)

_NOT_IN_TRAINING = re.compile(r"generat|^_?prepare_(?:model_)?inputs")
"""Names of methods that only generation calls."""
_NOT_A_CHANGE = frozenset(("requires_grad_", "retain_grad_"))
_ASKING = frozenset(("is_leaf", "requires_grad", "training", "is_grad_enabled"))
"""Tests without which no leaf that requires grad is changed."""

_STEPS = 20_000
"""How many statements on how many ways are followed in one function: ways multiply with tests and loops."""


class _TooManyWays(Exception):
    """A function whose ways would take too long to follow."""


@dataclass(frozen=True)
class Change:
    """A statement that changes the output of an embedding module in place."""

    file: SourceFile = field(repr=False)
    function: FunctionNode
    """The function that contains it."""
    statement: ast.stmt
    name: str
    """The variable."""
    module: str | None
    """The module's attribute, or the method that returns it; None if only a run has seen the change."""
    owner: str
    """The name of the class whose method contains the statement, or of the function."""
    source: ast.Call | None = field(default=None, repr=False)
    """The call of the module in the same method."""
    model: ClassInfo | None = field(default=None, repr=False)
    """The class whose method contains the statement."""
    others: frozenset[str] = frozenset()
    """The other variables that share the memory."""

    @property
    def has_own_lines(self) -> bool:
        """Whether no other statement stands on the lines of the statement, not even a header before it."""
        return _has_own_lines(self.file, self.function, self.statement)


def _has_own_lines(file: SourceFile, function: FunctionNode, statement: ast.stmt) -> bool:
    start = file.places.start(statement)
    before = file.text[file.line_starts[statement.lineno - 1] : start]
    others = (each for each in walk(function) if isinstance(each, ast.stmt) and each is not statement)
    return not before.strip() and all(each.lineno != statement.end_lineno for each in others)


def changes_in_place(network: Network) -> Iterator[Change]:
    """Yield the statements in a file that change the output of a model's input embeddings in place.

    They raise where that output is a leaf that requires grad: the module's parameters are frozen, and the
    hook of ``enable_input_require_grads`` is on it.
    """
    names = frozenset((USUAL, *_names_in(network)))
    if not _may_name(network.file.text, names):
        return
    for owner in network.module.classes.values():
        hooked = Hooked(owner, network.releases)
        for method in owner.methods():
            if (
                not _may_name(method.text, names)
                or words_of(method).isdisjoint({*names, GETTER})
                or _NOT_IN_TRAINING.search(method.name)
                or is_decorated_unrecorded(method)
            ):
                continue
            called = partial(_called, hooked, names, method.first_parameter)
            function = method.function
            found = list(_Flow(called).of(function))
            if found and supports_checkpointing(owner):
                for statement, (name, module, source, others) in found:
                    yield Change(
                        network.file, function, statement, name, module, owner.name, source, owner, others
                    )


def _may_name(text: str, names: Iterable[str]) -> bool:
    """Return whether a text may name input embeddings; it only saves work."""
    return GETTER in text or any(name in text for name in names)


def _called(hooked: Hooked, names: frozenset[str], own: str | None, function: ast.expr) -> str | None:
    """Return the name of the embedding module that a method calls, if it is one."""
    if isinstance(function, ast.Call):
        getter = dotted_name(function.func) or ""
        return GETTER if getter.startswith(f"{own}.") and getter.endswith(f".{GETTER}") else None
    first, *path = (dotted_name(function) or "").split(".")
    return path[-1] if first == own and path and path[-1] in names and hooked.holds(path) else None


def embeddings_called(network: Network, owner: ClassInfo) -> tuple[str, ...]:
    """Return the names under which methods of a class call input embeddings."""
    hooked = Hooked(owner, network.releases)
    names = [name for name in sorted({USUAL, *_names_in(network)}) if hooked.holds((name,))]
    called = {_called_attribute(node.func) for node in owner.nodes if isinstance(node, ast.Call)}
    return tuple(name for name in (*names, GETTER) if name in called)


def _called_attribute(function: ast.expr) -> str | None:
    """Return the attribute that is called; that of the getter only if what it returns is called."""
    is_returned = isinstance(function, ast.Call)
    if isinstance(function, ast.Call):
        function = function.func
    name = function.attr if isinstance(function, ast.Attribute) else None
    return name if (name == GETTER) is is_returned else None


def _names_in(network: Network) -> Iterator[str]:
    """Yield the names of attributes that hold input embeddings, according to a file."""
    if mentions(network.file.text, GETTER):
        for definition in network.file.outline.definitions:
            if definition.name == GETTER and not definition.is_class:
                yield from _returned(definition)
    if mentions(network.file.text, NAMED_BY):
        for info in network.module.classes.values():
            yield from filter(None, map(text_of, info.literals(NAMED_BY)))


def _returned(getter: Definition) -> Iterator[str]:
    """Yield the name of the attribute that a function returns, if it does nothing else."""
    body = [each for each in getter.function.body if not is_docstring(each)]
    value = body[0].value if body and isinstance(body[0], ast.Return) else None
    own, *path = ("" if value is None else dotted_name(value) or "").split(".")
    if path and own == getter.first_parameter:
        yield path[-1]


def changes_seen(network: Network) -> Iterator[Change]:
    """Yield the statements in a file that raised in a run because they change a leaf in place."""
    file, rows = network.file, network.project.observations.changed(network.file.path)
    for definition in file.outline.definitions if rows else ():
        if definition.is_class or definition.is_local:
            continue
        function, parent = definition.function, definition.parent
        for statement in walk(function):
            if not isinstance(statement, ast.stmt) or any(blocks_of(statement)):
                continue
            name = changed_name(statement)
            is_seen = any(statement.lineno <= row <= (statement.end_lineno or 0) for row in rows)
            if (
                name is not None
                and is_seen
                and _has_own_lines(file, function, statement)
                and not _is_cloned(function, name, statement.lineno)
            ):
                symbol = definition.name if parent is None else parent.name
                yield Change(file, function, statement, name, None, symbol)


def _is_cloned(function: FunctionNode, name: str, row: int) -> bool:
    """Return whether the line above a row clones a variable."""
    return any(
        isinstance(node, ast.Assign)
        and node.end_lineno == row - 1
        and [dotted_name(each) for each in node.targets] == [name]
        and isinstance(node.value, ast.Call)
        and dotted_name(node.value.func) == f"{name}.clone"
        and not arguments(node.value)
        for node in walk(function)
    )


_Found = tuple[str, str, "ast.Call | None", frozenset[str]]
"""The variable that is changed, the module that it comes from, its call, and what shares its memory."""


class _Test(NamedTuple):
    """A test, however it is laid out."""

    structure: Hashable
    words: frozenset[str]


@dataclass
class _Path:
    """What is known on the ways that lead to a statement with the same tensors in the same names."""

    held: dict[str, str]
    """The names that hold the output of an embedding module, or a view of it, by that module."""
    facts: dict[_Test, bool]
    """The tests that were true or false on the way, and whose names have not changed since."""


class _Flow:
    """Follows the names that hold the output of an embedding module, on all ways through a function.

    A clone under a condition counts behind every test of the same condition.
    """

    def __init__(self, is_embedding: Callable[[ast.expr], str | None]) -> None:
        self._is_embedding = is_embedding
        self._records = True
        self._steps = 0
        self._leaving: list[_Path] = []
        """Those that go on behind the innermost loop."""
        self._found: dict[ast.stmt, _Found] = {}
        self._calls: dict[str, ast.Call] = {}
        """The latest call of each module."""
        self._followed: dict[tuple[ast.expr, bool], Mapping[_Test, bool]] = {}
        """What follows from each test: many ways lead to the same one."""

    def of(self, function: FunctionNode) -> Iterator[tuple[ast.stmt, _Found]]:
        """Yield each statement that changes such a tensor in place."""
        if self._may_change(function):
            try:
                self._block(function.body, [_Path({}, {})])
            except _TooManyWays:
                return
        yield from self._found.items()

    def _may_change(self, function: FunctionNode) -> bool:
        """Return whether a function changes such a tensor if its statements run in any order.

        Most functions do not, and following the ways through them is slow.
        """
        statements = [
            each for each in walk(function) if isinstance(each, ast.stmt) and not any(blocks_of(each))
        ]
        changed = {name for each in statements for name in _changed_names(each)}
        given: defaultdict[str, list[ast.expr]] = defaultdict(list)
        for each in statements if changed else ():
            if isinstance(each, (ast.Assign, ast.AnnAssign)) and each.value is not None:
                for target in _targets(each):
                    if isinstance(target, ast.Name):
                        given[target.id].append(each.value)
        waiting, met = changed, set[str]()
        while new := waiting - met:
            met |= new
            origins = {each for name in new for value in given[name] for each in self._origins(value)}
            if None in origins:
                return True
            waiting = {each for each in origins if each is not None}
        return False

    def _origins(self, value: ast.expr) -> Iterator[str | None]:
        """Yield the names that a value may be a view of, and None for the output of an embedding module."""
        if isinstance(value, ast.Name):
            yield value.id
        elif isinstance(value, ast.IfExp):
            yield from self._origins(value.body)
            yield from self._origins(value.orelse)
        elif isinstance(value, ast.Call) and self._is_embedding(value.func) is not None:
            yield None
        else:
            viewed = _viewed(value)
            if viewed is not None:
                yield from self._origins(viewed)

    def _block(self, block: Iterable[ast.stmt], paths: list[_Path]) -> list[_Path]:
        for statement in block:
            paths = self._statement(statement, paths)
        return paths

    def _statement(self, statement: ast.stmt, paths: list[_Path]) -> list[_Path]:
        self._steps += len(paths) + 1
        if self._steps > _STEPS:
            raise _TooManyWays
        if isinstance(statement, ast.If):
            return self._if(statement, paths)
        if isinstance(statement, LOOPS):
            return self._loop(statement, paths)
        if isinstance(statement, WITHS):
            return self._with(statement, paths)
        if isinstance(statement, ast.Try) or type(statement).__name__ == "TryStar":
            return self._try(statement, paths)  # type: ignore[arg-type]
        if isinstance(statement, ast.Match):
            cases = [each for case in statement.cases for each in self._block(case.body, _copied(paths))]
            return _merged([*paths, *cases])
        if any(blocks_of(statement)):
            return paths  # A function or class.
        return _merged(each for path in paths for each in self._simple(statement, path))

    def _if(self, statement: ast.If, paths: list[_Path]) -> list[_Path]:
        sides: list[_Path] = []
        for block, holds in ((statement.body, True), (statement.orelse, False)):
            sides += self._block(
                block, [each for path in paths for each in self._assuming(path, statement.test, holds)]
            )
        return _merged(sides)

    def _loop(self, statement: Loop, paths: list[_Path]) -> list[_Path]:
        outer, self._leaving = self._leaving, []
        for _ in range(2):
            around = _copied(paths)
            if not isinstance(statement, ast.While):
                for path in around:
                    _bind(path, names_in(statement.target), None)
            paths = _merged([*paths, *self._block(statement.body, around), *self._leaving])
        self._leaving = outer
        return self._block(statement.orelse, paths)

    def _with(self, statement: ast.With | ast.AsyncWith, paths: list[_Path]) -> list[_Path]:
        outer = self._records
        self._records = outer and not any(stops_gradients(each.context_expr) for each in statement.items)
        paths = self._block(statement.body, paths)
        self._records = outer
        return paths

    def _try(self, statement: ast.Try, paths: list[_Path]) -> list[_Path]:
        before = _copied(paths)
        after = self._block(statement.orelse, self._block(statement.body, paths))
        for handler in statement.handlers:
            after = after + self._block(handler.body, _copied(_merged([*before, *after])))
        return self._block(statement.finalbody, _merged(after))

    def _simple(self, statement: ast.stmt, path: _Path) -> list[_Path]:
        for name in _changed_names(statement):
            self._change(statement, name, path)
        if isinstance(statement, (ast.Return, ast.Raise)):
            return []
        if isinstance(statement, (ast.Break, ast.Continue)):
            self._leaving.append(path)
            return []
        if isinstance(statement, (ast.Assign, ast.AnnAssign)) and statement.value is not None:
            source = self._source(statement.value, path)
            for target in _targets(statement):
                _bind(path, _bound(target), source if isinstance(target, ast.Name) else None)
                _forget(path, _last_name(target))
        elif isinstance(statement, ast.AugAssign):
            _forget(path, _last_name(statement.target))
        elif isinstance(statement, ast.Delete):
            for target in statement.targets:
                _bind(path, _bound(target), None)
        return [path]

    def _change(self, statement: ast.stmt, name: str, path: _Path) -> None:
        module = path.held.get(name)
        if module is None or not self._records:
            return
        others = {each for each, other in path.held.items() if other == module and each != name}
        self._found.setdefault(statement, (name, module, self._calls.get(module), frozenset(others)))
        # One clone is enough for all that follows.
        path.held = {other: each for other, each in path.held.items() if each != module}

    def _source(self, value: ast.expr, path: _Path) -> str | None:
        """Return the module that a value is the output of, or a view of the output."""
        if isinstance(value, ast.Name):
            return path.held.get(value.id)
        if isinstance(value, ast.IfExp):
            sides = [
                self._source(side, each)
                for side, holds in ((value.body, True), (value.orelse, False))
                for each in self._assuming(path, value.test, holds)
            ]
            return next((each for each in sides if each is not None), None)
        if isinstance(value, ast.Call):
            module = self._is_embedding(value.func)
            if module is not None:
                self._calls[module] = value
                return module
        viewed = _viewed(value)
        return None if viewed is None else self._source(viewed, path)

    def _assuming(self, path: _Path, test: ast.expr, holds: bool) -> Iterator[_Path]:
        """Yield the way on which a test is true, or false, unless it is known to be otherwise."""
        facts = self._followed.get((test, holds))
        if facts is None:
            facts = self._followed[test, holds] = dict(_facts(test, holds))
        if all(path.facts.get(each, holds) == holds for each, holds in facts.items()):
            # Without gradients, or where the code itself has asked, no leaf requires grad.
            held = {} if _excludes_leaf(test, holds) else dict(path.held)
            yield _Path(held, {**path.facts, **facts})


def _copied(paths: Iterable[_Path]) -> list[_Path]:
    return [_Path(dict(each.held), dict(each.facts)) for each in paths]


def _merged(paths: Iterable[_Path]) -> list[_Path]:
    """Join ways on which the same names hold the same tensors."""
    found: dict[frozenset[tuple[str, str]], _Path] = {}
    for path in paths:
        known = found.setdefault(frozenset(path.held.items()), path)
        if known is not path:
            known.facts = dict(known.facts.items() & path.facts.items())
    return list(found.values())


def _bind(path: _Path, names: Iterable[str], module: str | None) -> None:
    """Let names hold something else."""
    for name in names:
        path.held.pop(name, None)
        if module is not None:
            path.held[name] = module
        _forget(path, (name,))


def _forget(path: _Path, names: Iterable[str]) -> None:
    """Forget the tests of names that have changed."""
    changed = set(names)
    path.facts = {test: holds for test, holds in path.facts.items() if changed.isdisjoint(test.words)}


def _targets(statement: ast.Assign | ast.AnnAssign) -> list[ast.expr]:
    return statement.targets if isinstance(statement, ast.Assign) else [statement.target]


def _facts(test: ast.expr, holds: bool) -> Iterator[tuple[_Test, bool]]:
    """Yield what follows from a test."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        yield from _facts(test.operand, not holds)
    elif isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And if holds else ast.Or):
        for each in test.values:
            yield from _facts(each, holds)
    elif isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.IsNot):
        yield from _facts(ast.Compare(test.left, [ast.Is()], test.comparators), not holds)
    else:
        yield _Test(structure(test), frozenset(words_in(test))), holds


def _excludes_leaf(test: ast.expr, holds: bool) -> bool:
    """Return whether no leaf is seen to require grad where a test is true, or false."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _excludes_leaf(test.operand, not holds)
    if isinstance(test, ast.BoolOp):
        sides = [_excludes_leaf(side, holds) for side in test.values]
        return any(sides) if isinstance(test.op, ast.And) is holds else all(sides)
    name = dotted_name(test.func if isinstance(test, ast.Call) else test) or ""
    return not holds and name.rpartition(".")[2] in _ASKING


def changed_name(statement: ast.stmt) -> str | None:
    """Return the variable whose tensor a statement changes in place, if it does."""
    return next(_changed_names(statement), None)


def _changed_names(statement: ast.stmt) -> Iterator[str]:
    """Yield the variables whose tensors a statement changes in place, itself or a view of them."""
    if isinstance(statement, ast.AugAssign):
        target = statement.target
        yield from _root(target.value if isinstance(target, ast.Subscript) else target)
    elif isinstance(statement, ast.Assign):
        for each in statement.targets:
            if isinstance(each, ast.Subscript):
                yield from _root(each.value)
    for node in walk_scope(statement):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            method = node.func.attr
            if method.endswith("_") and not method.endswith("__") and method not in _NOT_A_CHANGE:
                yield from _root(node.func.value)


def _root(value: ast.expr | None) -> Iterator[str]:
    """Yield the variable that an expression is, or is a view of."""
    while value is not None and not isinstance(value, ast.Name):
        value = _viewed(value)
    if value is not None:
        yield value.id


def _viewed(value: ast.expr) -> ast.expr | None:
    """Return the tensor that an expression is a view of."""
    if isinstance(value, ast.Subscript):
        indices = value.slice.elts if isinstance(value.slice, ast.Tuple) else [value.slice]
        return value.value if all(map(_is_basic, indices)) else None
    if isinstance(value, ast.Attribute):
        return value.value if value.attr in SAME_ATTRIBUTES else None
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        return value.func.value if value.func.attr in VIEWS else None
    return None


def _is_basic(index: ast.expr) -> bool:
    """Return whether an index selects a view; one that is a tensor or a list makes a copy."""
    if isinstance(index, ast.UnaryOp):
        index = index.operand
    is_single = isinstance(index, ast.Constant) and (index.value in (None, ...) or type(index.value) is int)
    return is_single or isinstance(index, ast.Slice)


def _bound(target: ast.expr) -> Iterator[str]:
    if isinstance(target, ast.Name):
        yield target.id
    elif isinstance(target, (ast.Tuple, ast.List)):
        for element in target.elts:
            yield from _bound(element)
    elif isinstance(target, ast.Starred):
        yield from _bound(target.value)


def _last_name(target: ast.expr) -> Iterator[str]:
    """Yield the name that tests of a variable, an attribute or an item of it have in them."""
    while isinstance(target, ast.Subscript):
        target = target.value
    if isinstance(target, ast.Attribute):
        yield target.attr
    yield from _bound(target)
