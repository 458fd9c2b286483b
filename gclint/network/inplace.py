"""Finds in-place changes of the output of input embeddings."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache, partial

import libcst as cst

from gclint.network.assignments import stops_gradients
from gclint.network.changes import VIEWS
from gclint.network.differentiable import SAME_ATTRIBUTES
from gclint.network.evaluation.classes import ClassInfo
from gclint.network.evaluation.walk import code, dotted_name, names_in, walk, walk_scope
from gclint.network.hooked import GETTER, NAMED_BY, USUAL, Hooked
from gclint.network.learned import is_decorated_unrecorded
from gclint.network.model import Network
from gclint.network.support import supports_checkpointing
from gclint.source.fragment import Fragment, parse_definition
from gclint.source.words import any_between

_RETURNED = re.compile(
    rf"def {GETTER}(?:\[[^\]\n]*\])?\((\w+)\)[^\n]*:\s*return \1(?:\.\w+)*\.(\w+)\s*$", re.MULTILINE
)
_DEFAULT = re.compile(rf"^[ \t]+{NAMED_BY} = [\"'](\w+)[\"']", re.MULTILINE)
_IN_PLACE = re.compile(r"[-+*/%@&|^]=|\][ \t]*=(?!=)|\w_\(")
_WORD = re.compile(r"[A-Za-z_]\w*")
_NOT_IN_TRAINING = re.compile(r"generat|^_?prepare_(?:model_)?inputs")
"""Names of methods that only generation calls."""
_NOT_A_CHANGE = frozenset(("requires_grad_", "retain_grad_"))
_ASKING = frozenset(("is_leaf", "requires_grad", "training", "is_grad_enabled"))
"""Tests without which no leaf that requires grad is changed."""

_STEPS = 20_000
"""How many statements on how many ways are followed in one function: ways multiply with tests and loops."""

_Statement = cst.SimpleStatementLine | cst.SimpleStatementSuite


class _TooManyWays(Exception):
    """A function whose ways would take too long to follow."""


@dataclass(frozen=True)
class Change:
    """A statement that changes the output of an embedding module in place."""

    fragment: Fragment = field(repr=False)
    statement: _Statement
    name: str
    """The variable."""
    module: str | None
    """The module's attribute, or the method that returns it; None if only a run has seen the change."""
    owner: str
    """The name of the class whose method contains the statement, or of the function."""
    source: cst.Call | None = field(default=None, repr=False)
    """The call of the module in the same method."""
    model: ClassInfo | None = field(default=None, repr=False)
    """The class whose method contains the statement."""
    others: frozenset[str] = frozenset()
    """The other variables that share the memory."""

    @property
    def shown(self) -> cst.CSTNode:
        """What a reader is shown: the statement, or the first of those on the line of a colon."""
        suite = self.statement
        return suite.body[0] if isinstance(suite, cst.SimpleStatementSuite) else suite


def changes_in_place(network: Network) -> Iterator[Change]:
    """Yield the statements in a file that change the output of a model's input embeddings in place.

    They raise where that output is a leaf that requires grad: the module's parameters are frozen, and the
    hook of ``enable_input_require_grads`` is on it.
    """
    text = network.file.outline.code
    names = frozenset((USUAL, *_names_in(text)))
    places = _places_of(text, names)
    for owner in network.module.classes.values() if places else ():
        hooked = Hooked(owner, network.releases)
        for method in owner.methods():
            if (
                not any_between(places, method.header, method.end)
                or _IN_PLACE.search(text, method.header, method.end) is None
                or _NOT_IN_TRAINING.search(method.name)
                or is_decorated_unrecorded(method)
            ):
                continue

            called = partial(_called, hooked, names, method.first_parameter)
            fragment = parse_definition(network.file, method)
            found = list(_Flow(called).of(fragment.body[0]))
            if found and supports_checkpointing(owner):
                for statement, (name, module, source, others) in found:
                    yield Change(fragment, statement, name, module, owner.name, source, owner, others)


def _called(
    hooked: Hooked, names: frozenset[str], own: str | None, function: cst.BaseExpression
) -> str | None:
    """Return the name of the embedding module that a method calls, if it is one."""
    if isinstance(function, cst.Call):
        getter = dotted_name(function.func) or ""
        return GETTER if getter.startswith(f"{own}.") and getter.endswith(f".{GETTER}") else None
    first, *path = (dotted_name(function) or "").split(".")
    return path[-1] if first == own and path and path[-1] in names and hooked.holds(path) else None


def embeddings_called(network: Network, owner: ClassInfo) -> tuple[str, ...]:
    """Return the names under which methods of a class call input embeddings."""
    text = network.file.outline.code
    definition, hooked = owner.definition, Hooked(owner, network.releases)
    names = [name for name in sorted({USUAL, *_names_in(text)}) if hooked.holds((name,))]
    calls = {f".{name}(": name for name in names} | {f"{GETTER}()(": GETTER}
    return tuple(
        name for call, name in calls.items() if text.find(call, definition.header, definition.end) != -1
    )


def _names_in(text: str) -> Iterator[str]:
    """Yield the names of attributes that hold input embeddings, according to a file."""
    if GETTER in text:
        yield from (match[2] for match in _RETURNED.finditer(text))
    if NAMED_BY in text:
        yield from _DEFAULT.findall(text)


def _places_of(text: str, names: Iterable[str]) -> list[int]:
    """Return the offsets at which input embeddings may be called, by their names."""
    found = []
    for call in (*(f".{name}(" for name in names), f"{GETTER}()("):
        place = text.find(call)
        while place >= 0:
            found.append(place)
            place = text.find(call, place + 1)
    return sorted(found)


def changes_seen(network: Network) -> Iterator[Change]:
    """Yield the statements in a file that raised in a run because they change a leaf in place."""
    rows = network.project.observations.changed(network.file.path)
    for definition in network.file.outline.definitions if rows else ():
        if definition.is_class or definition.is_local:
            continue
        first, last = (network.file.position(each).row for each in (definition.start, definition.end))
        if any(first <= row <= last for row in rows):
            fragment = parse_definition(network.file, definition)
            parent = definition.parent
            for statement in walk(fragment.body[0]):
                if isinstance(statement, cst.SimpleStatementLine) and len(statement.body) == 1:
                    name = changed_name(statement.body[0])
                    span = [network.file.position(each).row for each in fragment.span(statement)]
                    is_seen = any(span[0] <= row <= span[1] for row in rows)
                    if name is not None and is_seen and not _is_cloned(network, name, span[0]):
                        symbol = definition.name if parent is None else parent.name
                        yield Change(fragment, statement, name, None, symbol)


def _is_cloned(network: Network, name: str, row: int) -> bool:
    """Return whether the line above a row clones a variable."""
    return row > 1 and network.file.line(row - 1).split("#")[0].strip() == f"{name} = {name}.clone()"


_Found = tuple[str, str, "cst.Call | None", frozenset[str]]
"""The variable that is changed, the module that it comes from, its call, and what shares its memory."""


@dataclass
class _Path:
    """What is known on the ways that lead to a statement with the same tensors in the same names."""

    held: dict[str, str]
    """The names that hold the output of an embedding module, or a view of it, by that module."""
    facts: dict[str, bool]
    """The tests that were true or false on the way, and whose names have not changed since."""


class _Flow:
    """Follows the names that hold the output of an embedding module, on all ways through a function.

    A clone under a condition counts behind every test of the same condition.
    """

    def __init__(self, is_embedding: Callable[[cst.BaseExpression], str | None]) -> None:
        self._is_embedding = is_embedding
        self._records = True
        self._steps = 0
        self._leaving: list[_Path] = []
        """Those that go on behind the innermost loop."""
        self._found: dict[_Statement, _Found] = {}
        self._calls: dict[str, cst.Call] = {}
        """The latest call of each module."""

    def of(self, function: cst.CSTNode) -> Iterator[tuple[_Statement, _Found]]:
        """Yield each statement that changes such a tensor in place."""
        if isinstance(function, cst.FunctionDef) and self._may_change(function):
            try:
                self._block(function.body, [_Path({}, {})])
            except _TooManyWays:
                return
        yield from self._found.items()

    def _may_change(self, function: cst.FunctionDef) -> bool:
        """Return whether a function changes such a tensor if its statements run in any order.

        Most functions do not, and following the ways through them is slow.
        """
        statements = [each for each in walk(function) if isinstance(each, cst.BaseSmallStatement)]
        changed = {name for each in statements for name in _changed_names(each)}
        later: defaultdict[str | None, set[str]] = defaultdict(set)
        for each in statements if changed else ():
            if isinstance(each, (cst.Assign, cst.AnnAssign)) and each.value is not None:
                targets = [each] if isinstance(each, cst.AnnAssign) else each.targets
                names = {every.target.value for every in targets if isinstance(every.target, cst.Name)}
                for origin in self._origins(each.value) if names else ():
                    later[origin] |= names
        held: set[str] = set()
        waiting = later[None]
        while new := waiting - held:
            held |= new
            waiting = {name for each in new for name in later[each]}
        return not changed.isdisjoint(held)

    def _origins(self, value: cst.BaseExpression) -> Iterator[str | None]:
        """Yield the names that a value may be a view of, and None for the output of an embedding module."""
        if isinstance(value, cst.Name):
            yield value.value
        elif isinstance(value, cst.IfExp):
            yield from self._origins(value.body)
            yield from self._origins(value.orelse)
        elif isinstance(value, cst.Call) and self._is_embedding(value.func) is not None:
            yield None
        else:
            viewed = _viewed(value)
            if viewed is not None:
                yield from self._origins(viewed)

    def _block(self, block: cst.BaseSuite, paths: list[_Path]) -> list[_Path]:
        # A body on the line of its colon is one statement.
        for statement in block.body if isinstance(block, cst.IndentedBlock) else (block,):
            paths = self._statement(statement, paths)
        return paths

    def _statement(self, statement: cst.CSTNode, paths: list[_Path]) -> list[_Path]:
        self._steps += len(paths) + 1
        if self._steps > _STEPS:
            raise _TooManyWays
        if isinstance(statement, (cst.SimpleStatementLine, cst.SimpleStatementSuite)):
            return _merged(each for path in paths for each in self._line(statement, path))
        if isinstance(statement, cst.If):
            return self._if(statement, paths)
        if isinstance(statement, (cst.For, cst.While)):
            return self._loop(statement, paths)
        if isinstance(statement, cst.With):
            return self._with(statement, paths)
        if isinstance(statement, (cst.Try, cst.TryStar)):
            return self._try(statement, paths)
        if isinstance(statement, cst.Match):
            cases = [each for case in statement.cases for each in self._block(case.body, _copied(paths))]
            return _merged([*paths, *cases])
        return paths

    def _if(self, statement: cst.If, paths: list[_Path]) -> list[_Path]:
        sides: list[_Path] = []
        for holds in (True, False):
            entered = [each for path in paths for each in _assuming(path, statement.test, holds)]
            if holds:
                sides += self._block(statement.body, entered)
            elif isinstance(statement.orelse, cst.If):
                sides += self._if(statement.orelse, entered)
            else:
                sides += entered if statement.orelse is None else self._block(statement.orelse.body, entered)
        return _merged(sides)

    def _loop(self, statement: cst.For | cst.While, paths: list[_Path]) -> list[_Path]:
        outer, self._leaving = self._leaving, []
        for _ in range(2):
            around = _copied(paths)
            if isinstance(statement, cst.For):
                for path in around:
                    _bind(path, names_in(statement.target), None)
            paths = _merged([*paths, *self._block(statement.body, around), *self._leaving])
        self._leaving = outer
        return paths if statement.orelse is None else self._block(statement.orelse.body, paths)

    def _with(self, statement: cst.With, paths: list[_Path]) -> list[_Path]:
        outer = self._records
        self._records = outer and not any(stops_gradients(each.item) for each in statement.items)
        paths = self._block(statement.body, paths)
        self._records = outer
        return paths

    def _try(self, statement: cst.Try | cst.TryStar, paths: list[_Path]) -> list[_Path]:
        before = _copied(paths)
        after = self._block(statement.body, paths)
        if statement.orelse is not None:
            after = self._block(statement.orelse.body, after)
        for handler in statement.handlers:
            after = after + self._block(handler.body, _copied(_merged([*before, *after])))
        after = _merged(after)
        return after if statement.finalbody is None else self._block(statement.finalbody.body, after)

    def _line(self, line: _Statement, path: _Path) -> list[_Path]:
        for small in line.body:
            for name in _changed_names(small):
                self._change(line, name, path)
            if isinstance(small, (cst.Return, cst.Raise)):
                return []
            if isinstance(small, (cst.Break, cst.Continue)):
                self._leaving.append(path)
                return []
            if isinstance(small, (cst.Assign, cst.AnnAssign)) and small.value is not None:
                targets = [small] if isinstance(small, cst.AnnAssign) else small.targets
                source = self._source(small.value, path)
                for target in (each.target for each in targets):
                    _bind(path, _bound(target), source if isinstance(target, cst.Name) else None)
                    _forget(path, _last_name(target))
            elif isinstance(small, cst.AugAssign):
                _forget(path, _last_name(small.target))
            elif isinstance(small, cst.Del):
                _bind(path, _bound(small.target), None)
        return [path]

    def _change(self, line: _Statement, name: str, path: _Path) -> None:
        module = path.held.get(name)
        if module is None or not self._records:
            return
        others = {each for each, other in path.held.items() if other == module and each != name}
        self._found.setdefault(line, (name, module, self._calls.get(module), frozenset(others)))
        # One clone is enough for all that follows.
        path.held = {other: each for other, each in path.held.items() if each != module}

    def _source(self, value: cst.BaseExpression, path: _Path) -> str | None:
        """Return the module that a value is the output of, or a view of the output."""
        if isinstance(value, cst.Name):
            return path.held.get(value.value)
        if isinstance(value, cst.IfExp):
            sides = [
                self._source(side, each)
                for side, holds in ((value.body, True), (value.orelse, False))
                for each in _assuming(path, value.test, holds)
            ]
            return next((each for each in sides if each is not None), None)
        if isinstance(value, cst.Call):
            module = self._is_embedding(value.func)
            if module is not None:
                self._calls[module] = value
                return module
        viewed = _viewed(value)
        return None if viewed is None else self._source(viewed, path)


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
    path.facts = {
        test: holds for test, holds in path.facts.items() if changed.isdisjoint(_WORD.findall(test))
    }


def _assuming(path: _Path, test: cst.BaseExpression, holds: bool) -> Iterator[_Path]:
    """Yield the way on which a test is true, or false, unless it is known to be otherwise."""
    facts = dict(_followed(test, holds))
    if all(path.facts.get(each, holds) == holds for each, holds in facts.items()):
        # Without gradients, or where the code itself has asked, no leaf requires grad.
        held = {} if _excludes_leaf(test, holds) else dict(path.held)
        yield _Path(held, {**path.facts, **facts})


@lru_cache(maxsize=256)
def _followed(test: cst.BaseExpression, holds: bool) -> tuple[tuple[str, bool], ...]:
    # Many ways lead to the same test, and turning it into text is slow.
    return tuple(_facts(test, holds))


def _facts(test: cst.BaseExpression, holds: bool) -> Iterator[tuple[str, bool]]:
    """Yield what follows from a test."""
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        yield from _facts(test.expression, not holds)
    elif isinstance(test, cst.BooleanOperation) and isinstance(test.operator, cst.And if holds else cst.Or):
        yield from _facts(test.left, holds)
        yield from _facts(test.right, holds)
    elif isinstance(test, cst.Comparison) and isinstance(test.comparisons[0].operator, cst.IsNot):
        first = test.comparisons[0].with_changes(operator=cst.Is())
        yield from _facts(test.with_changes(comparisons=[first, *test.comparisons[1:]]), not holds)
    else:
        yield _bare(test), holds


def _bare(test: cst.BaseExpression) -> str:
    return code(test.with_changes(lpar=(), rpar=()))


def _excludes_leaf(test: cst.BaseExpression, holds: bool) -> bool:
    """Return whether no leaf is seen to require grad where a test is true, or false."""
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        return _excludes_leaf(test.expression, not holds)
    if isinstance(test, cst.BooleanOperation):
        sides = [_excludes_leaf(side, holds) for side in (test.left, test.right)]
        return any(sides) if isinstance(test.operator, cst.And) is holds else all(sides)
    name = dotted_name(test.func if isinstance(test, cst.Call) else test) or ""
    return not holds and name.rpartition(".")[2] in _ASKING


def changed_name(statement: cst.CSTNode) -> str | None:
    """Return the variable whose tensor a statement changes in place, if it does."""
    return next(_changed_names(statement), None)


def _changed_names(statement: cst.CSTNode) -> Iterator[str]:
    """Yield the variables whose tensors a statement changes in place, itself or a view of them."""
    if isinstance(statement, cst.AugAssign):
        target = statement.target
        yield from _root(target.value if isinstance(target, cst.Subscript) else target)
    elif isinstance(statement, cst.Assign):
        for each in statement.targets:
            if isinstance(each.target, cst.Subscript):
                yield from _root(each.target.value)
    for node in walk_scope(statement):
        if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
            method = node.func.attr.value
            if method.endswith("_") and not method.endswith("__") and method not in _NOT_A_CHANGE:
                yield from _root(node.func.value)


def _root(value: cst.BaseExpression | None) -> Iterator[str]:
    """Yield the variable that an expression is, or is a view of."""
    while value is not None and not isinstance(value, cst.Name):
        value = _viewed(value)
    if value is not None:
        yield value.value


def _viewed(value: cst.BaseExpression) -> cst.BaseExpression | None:
    """Return the tensor that an expression is a view of."""
    if isinstance(value, cst.Subscript):
        return value.value if all(map(_is_basic, value.slice)) else None
    if isinstance(value, cst.Attribute):
        return value.value if value.attr.value in SAME_ATTRIBUTES else None
    if isinstance(value, cst.Call) and isinstance(value.func, cst.Attribute):
        return value.func.value if value.func.attr.value in VIEWS else None
    return None


def _is_basic(element: cst.SubscriptElement) -> bool:
    """Return whether an index selects a view; one that is a tensor or a list makes a copy."""
    index = element.slice.value if isinstance(element.slice, cst.Index) else None
    if isinstance(index, cst.UnaryOperation):
        index = index.expression
    is_none = isinstance(index, cst.Name) and index.value == "None"
    return index is None or is_none or isinstance(index, (cst.Integer, cst.Ellipsis))


def _bound(target: cst.BaseExpression) -> Iterator[str]:
    if isinstance(target, cst.Name):
        yield target.value
    elif isinstance(target, (cst.Tuple, cst.List)):
        for element in target.elements:
            yield from _bound(element.value)
    elif isinstance(target, cst.StarredElement):
        yield from _bound(target.value)


def _last_name(target: cst.BaseExpression) -> Iterator[str]:
    """Yield the name that tests of a variable, an attribute or an item of it have in them."""
    while isinstance(target, cst.Subscript):
        target = target.value
    if isinstance(target, cst.Attribute):
        yield target.attr.value
    yield from _bound(target)
