"""Finds in-place changes of the output of input embeddings."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

from gclint.code.file import SourceFile
from gclint.code.lines import mentions
from gclint.code.tree import blocks_of
from gclint.code.walk import FunctionNode, alternatives, arguments, dotted_name, last_name, text_of, walk
from gclint.model import leaves
from gclint.model.attributes import new_spaces
from gclint.model.known import IN_PLACE_AT
from gclint.model.leaves import GETTER, NAMED_BY, RETURNED, SAME, USUAL, EmbeddingPart, Leaves
from gclint.model.objects import TooLong
from gclint.model.tensors import CHANGING
from gclint.model.values import Class
from gclint.network.evaluation.classes import ClassInfo, words_of
from gclint.network.learned import is_decorated_unrecorded
from gclint.network.model import Network
from gclint.network.support import is_like_a_model, models_running, supports_checkpointing
from gclint.releases import FIRST_FINDING_EMBEDDINGS

_NOT_IN_TRAINING = re.compile(r"generat|^_?prepare_(?:model_)?inputs")
"""Names of methods that only generation calls."""


@dataclass(frozen=True)
class InPlaceChange:
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


def changes_in_place(network: Network) -> Iterator[InPlaceChange]:
    """Yield the statements in a file that change the output of a model's input embeddings in place.

    They raise where that output is a leaf that requires grad: the module's parameters are frozen, and the
    hook of ``enable_input_require_grads`` is on it.
    """
    names = frozenset((USUAL, *_names_in(network)))
    methods = [
        (owner, method)
        for owner in network.module.classes.values()
        for method in (owner.methods() if _may_name(network.file.text, names) else ())
        if _may_name(method.text, names)
        and not words_of(method).isdisjoint({*names, GETTER})
        and not _NOT_IN_TRAINING.search(method.name)
        and not is_decorated_unrecorded(method)
        and may_change(network.file.text, method.function)
        and supports_checkpointing(owner)
    ]
    with _Embeddings(network) as embeddings:
        for owner, method in methods:
            file, function = network.file, method.function
            for statement, name, module, source, others in embeddings.changes(owner, function, names):
                yield InPlaceChange(
                    file, function, statement, name, module.name, owner.name, source, owner, others
                )


def may_change(text: str, function: FunctionNode) -> bool:
    """Return whether a function may change a tensor in place; it only saves to follow the others.

    Args:
        text: that of the file, of which another part may make a module that works in place.
        function: one of the file.
    """
    return "inplace" in text or any(map(_may_change, walk(function)))


def _may_change(node: ast.AST) -> bool:
    if isinstance(node, (ast.Name, ast.Attribute)):
        return last_name(node) in CHANGING or (_is_in_place(last_name(node)) and last_name(node) != "_")
    if isinstance(node, ast.Call):
        place = IN_PLACE_AT.get(last_name(node.func))
        is_loose = any(isinstance(each, ast.Starred) for each in node.args)
        is_loose = is_loose or any(each.arg is None for each in node.keywords)
        return place is not None and (is_loose or len(node.args) > place)
    if isinstance(node, ast.Subscript):
        return not isinstance(node.ctx, ast.Load)
    return isinstance(node, ast.AugAssign) or _is_in_place(text_of(node) or "")


def _is_in_place(name: str) -> bool:
    """Return whether a name is that of an operation in place, by torch's habit."""
    return name.endswith("_") and not name.endswith("__")


class _Embeddings:
    """The input embeddings of the models that run the classes of a file."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self._spaces = new_spaces(network.project)

    def __enter__(self) -> _Embeddings:
        return self

    def __exit__(self, *_error: object) -> None:
        self._spaces.forget()

    @cached_property
    def _reader(self) -> Leaves:
        return Leaves(self._spaces.of(self._network.file))

    def changes(self, owner: ClassInfo, method: FunctionNode, names: Collection[str]) -> list[leaves.Change]:
        """Return what a method changes of their outputs; nothing if it is too long to follow."""
        kind = self._class(owner)
        try:
            found = [] if kind is None else self._reader.changes(kind, method, names)
            return [each for each in found if self.holds(owner, each.module)]
        except (TooLong, RecursionError):
            return []

    def holds(self, owner: ClassInfo, part: EmbeddingPart) -> bool:
        """Tell whether an attribute that methods of a class read is one of them."""
        kind = self._class(owner)
        return part == RETURNED or (kind is not None and self._reader.is_hooked(part, kind, self._of(owner)))

    def names(self, owner: ClassInfo, names: Iterable[str]) -> list[str]:
        """Return the names of the attributes of a class that are among them."""
        kind = self._class(owner)
        return [
            each
            for each in sorted(names)
            if kind is not None and self.holds(owner, EmbeddingPart(kind, each))
        ]

    def _of(self, owner: ClassInfo) -> frozenset[EmbeddingPart]:
        """Return those of the models that run a class, or are it."""
        by_default = not self._network.releases.end_before(FIRST_FINDING_EMBEDDINGS)
        models = filter(is_like_a_model, dict.fromkeys((owner, *models_running(owner))))
        kinds = filter(None, map(self._class, models))
        found = (self._reader.embeddings(each, by_default=by_default) for each in kinds)
        return frozenset(part for parts in found for part in parts)

    def _class(self, info: ClassInfo) -> Class | None:
        value = self._reader.spaces.of(info.file).value(info.name)
        things = () if value is None else [each for each in value.things if isinstance(each, Class)]
        return things[0] if len(things) == 1 else None


def _may_name(text: str, names: Iterable[str]) -> bool:
    """Return whether a text may name input embeddings; it only saves work."""
    return GETTER in text or any(name in text for name in names)


def _names_in(network: Network) -> Iterator[str]:
    """Yield the names of attributes that hold input embeddings, according to a file."""
    if mentions(network.file.text, GETTER):
        for definition in network.file.outline.definitions:
            if definition.name == GETTER and not definition.is_class:
                nodes = [each for each in walk(definition.function) if isinstance(each, ast.Attribute)]
                holders = {id(each.value) for each in nodes}
                yield from (each.attr for each in nodes if id(each) not in holders)
    if mentions(network.file.text, NAMED_BY):
        for info in network.module.classes.values():
            yield from filter(None, map(text_of, info.literals(NAMED_BY)))


def embeddings_called(network: Network, owner: ClassInfo) -> tuple[str, ...]:
    """Return the names under which methods of a class call input embeddings."""
    with _Embeddings(network) as embeddings:
        names = embeddings.names(owner, {USUAL, *_names_in(network)})
    called = {_called_attribute(node.func) for node in owner.nodes if isinstance(node, ast.Call)}
    return tuple(name for name in (*names, GETTER) if name in called)


def _called_attribute(function: ast.expr) -> str | None:
    """Return the attribute that is called; that of the getter only if what it returns is called."""
    is_returned = isinstance(function, ast.Call)
    if isinstance(function, ast.Call):
        function = function.func
    name = function.attr if isinstance(function, ast.Attribute) else None
    return name if (name == GETTER) is is_returned else None


def _beginnings(value: ast.expr) -> Iterator[ast.expr]:
    """Yield the names and attributes whose memory an expression may be, with those that it is called by."""
    waiting = [value]
    while waiting:
        each = waiting.pop()
        yield each
        waiting += alternatives(each)
        if isinstance(each, (ast.Attribute, ast.Subscript, ast.Starred)):
            waiting.append(each.value)
        elif isinstance(each, ast.Call):
            waiting += [each.func, *(each.args if last_name(each.func) in SAME else ())]
        elif isinstance(each, (ast.Tuple, ast.List)):
            waiting += each.elts


def _changed(statement: ast.stmt) -> Iterator[ast.expr]:
    """Yield the expressions whose tensors a statement may change in place."""
    if isinstance(statement, ast.AugAssign):
        yield statement.target
    elif isinstance(statement, ast.Assign):
        yield from (
            each.value
            for target in statement.targets
            for each in walk(target)
            if isinstance(each, ast.Subscript)
        )
    for node in walk(statement):
        if isinstance(node, ast.Call):
            name = last_name(node.func)
            if _is_in_place(name):
                yield from (node.func, *node.args)
            made = node.func.keywords if isinstance(node.func, ast.Call) else []
            if any(each.arg == "inplace" for each in (*node.keywords, *made)):
                yield from (*node.args, *(each.value for each in node.keywords))


def changed_name(statement: ast.stmt) -> str | None:
    """Return the variable whose tensor a statement changes in place, if it does."""
    found = (each for value in _changed(statement) for each in _beginnings(value))
    return next((each.id for each in found if isinstance(each, ast.Name)), None)


def changes_seen(network: Network) -> Iterator[InPlaceChange]:
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
                yield InPlaceChange(file, function, statement, name, None, symbol)


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
