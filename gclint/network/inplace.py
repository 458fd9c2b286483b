"""Finds in-place changes of the output of input embeddings."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import libcst as cst

from gclint.network.evaluation.classes import ClassInfo
from gclint.network.evaluation.walk import dotted_name, walk
from gclint.network.model import Network
from gclint.network.support import supports_checkpointing
from gclint.source.fragment import Fragment, parse_definition
from gclint.source.outline import Definition
from gclint.source.words import any_between

_GETTER = "get_input_embeddings"
_RETURNED = re.compile(
    rf"def {_GETTER}(?:\[[^\]\n]*\])?\((\w+)\)[^\n]*:\s*return \1(?:\.\w+)*\.(\w+)\s*$", re.MULTILINE
)
_DEFAULT = re.compile(r"^[ \t]+_input_embed_layer = [\"'](\w+)[\"']", re.MULTILINE)
_USUAL = "embed_tokens"
_IN_PLACE = re.compile(
    r"^[ \t]+(\w+)(?:[ \t]*[-+*/]=|\[.*\][ \t]*[-+*/]?=(?!=)|(?:\[.*\])?\.\w+_\()", re.MULTILINE
)
_TARGET = re.compile(r"^[ \t]+(\w+)[ \t]*(?::[^=]*)?=(?!=)")
_ALIAS = re.compile(r"^[ \t]+(\w+)[ \t]*=[ \t]*(\w+)[ \t]*(?:#.*)?\r?$", re.MULTILINE)
_NOT_IN_TRAINING = re.compile(r"generat|^_?prepare_(?:model_)?inputs")
"""Names of methods that only generation calls."""
_NOT_A_CHANGE = frozenset(("requires_grad_", "retain_grad_"))


@dataclass(frozen=True)
class Change:
    """A statement that changes the output of an embedding module in place."""

    fragment: Fragment = field(repr=False)
    statement: cst.SimpleStatementLine
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


def changes_in_place(network: Network) -> Iterator[Change]:
    """Yield the statements in a file that change the output of a model's input embeddings in place."""
    text = network.file.outline.code
    names = frozenset((_USUAL, *_names_in(text)))
    places = _places_of(text, names)
    for owner in network.module.classes.values() if places else ():
        for method in owner.methods():
            if not any_between(places, method.header, method.end) or _NOT_IN_TRAINING.search(method.name):
                continue
            changed = set(_IN_PLACE.findall(text, method.header, method.end))
            if changed and not changed.isdisjoint(_held(text, places, method)):
                fragment = parse_definition(network.file, method)
                found = list(_Flow(names).of(fragment.body[0]))
                if found and supports_checkpointing(owner):
                    for statement, name, module, source in found:
                        yield Change(fragment, statement, name, module, owner.name, source, owner)


def embeddings_called(network: Network, owner: ClassInfo) -> tuple[str, ...]:
    """Return the names under which methods of a class call input embeddings."""
    text = network.file.outline.code
    definition = owner.definition
    names = sorted({_USUAL, *_names_in(text)})
    calls = {f".{name}(": name for name in names} | {f"{_GETTER}()(": _GETTER}
    return tuple(
        name for call, name in calls.items() if text.find(call, definition.header, definition.end) != -1
    )


def _names_in(text: str) -> Iterator[str]:
    """Yield the names of attributes that hold input embeddings, according to a file."""
    if _GETTER in text:
        yield from (match[2] for match in _RETURNED.finditer(text))
    if "_input_embed_layer" in text:
        yield from _DEFAULT.findall(text)


def _held(text: str, places: Iterable[int], method: Definition) -> set[str]:
    """Return the variables of a method that may hold the output of embeddings, by a search of the text."""
    found = set()
    for place in places:
        if method.header <= place < method.end:
            line = text[text.rfind("\n", 0, place) + 1 : place]
            found.update(_TARGET.findall(line))
    aliases = _ALIAS.findall(text, method.header, method.end)
    return found.union(name for name, source in aliases if source in found)


def _places_of(text: str, names: Iterable[str]) -> list[int]:
    """Return the offsets at which input embeddings may be called, by their names."""
    found = []
    for call in (*(f".{name}(" for name in names), f"{_GETTER}()("):
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


class _Flow:
    """Follows the names that hold the output of an embedding module, statement by statement."""

    def __init__(self, names: frozenset[str]) -> None:
        self._names = names
        self._found: dict[cst.SimpleStatementLine, tuple[str, str, cst.Call | None]] = {}
        self._calls: dict[str, cst.Call] = {}
        """The latest call of each module."""

    def of(
        self, function: cst.CSTNode
    ) -> Iterator[tuple[cst.SimpleStatementLine, str, str, cst.Call | None]]:
        """Yield each statement that changes such a name in place, with the name, the module and the call."""
        if isinstance(function, cst.FunctionDef):
            self._block(function.body, {})
        for statement, found in self._found.items():
            yield statement, *found

    def _block(self, block: cst.BaseSuite, held: dict[str, str]) -> dict[str, str]:
        for statement in block.body:
            held = self._statement(statement, held)
        return held

    def _statement(self, statement: cst.CSTNode, held: dict[str, str]) -> dict[str, str]:
        if isinstance(statement, cst.SimpleStatementLine):
            for small in statement.body:
                held = self._simple(statement, small, held)
            return held
        if isinstance(statement, cst.If):
            return {**self._block(statement.body, held), **self._orelse(statement.orelse, held)}
        if isinstance(statement, (cst.For, cst.While)):
            once = {**held, **self._block(statement.body, held)}
            return {**held, **self._block(statement.body, once)}
        if isinstance(statement, (cst.With, cst.Try)):
            return self._block(statement.body, held)
        return held

    def _orelse(self, orelse: cst.If | cst.Else | None, held: dict[str, str]) -> dict[str, str]:
        if orelse is None:
            return held
        return self._statement(orelse, held) if isinstance(orelse, cst.If) else self._block(orelse.body, held)

    def _simple(
        self, line: cst.SimpleStatementLine, statement: cst.CSTNode, held: dict[str, str]
    ) -> dict[str, str]:
        name = changed_name(statement)
        if name is not None:
            if name in held:
                self._found.setdefault(line, (name, held[name], self._calls.get(held[name])))
                # Forget all names of the same tensor, since one clone is enough.
                return {other: module for other, module in held.items() if module != held[name]}
            return held
        if isinstance(statement, (cst.Assign, cst.AnnAssign)):
            targets = [each.target for each in statement.targets] if isinstance(statement, cst.Assign) else []
            if isinstance(statement, cst.AnnAssign):
                targets = [statement.target]
            source = None if statement.value is None else self._source(statement.value, held)
            bound = {each.value for target in targets for each in _names(target)}
            held = {other: module for other, module in held.items() if other not in bound}
            if source is not None:
                held.update(dict.fromkeys(bound, source) if len(bound) == 1 else {})
        return held

    def _source(self, value: cst.BaseExpression, held: dict[str, str]) -> str | None:
        """Return the module that a value comes from unchanged, if it is one of the embeddings."""
        if isinstance(value, cst.Name):
            return held.get(value.value)
        if isinstance(value, cst.IfExp):
            return self._source(value.body, held) or self._source(value.orelse, held)
        if not isinstance(value, cst.Call):
            return None
        module = self._called(value.func)
        if module is not None:
            self._calls[module] = value
        return module

    def _called(self, function: cst.BaseExpression) -> str | None:
        """Return the name of the embedding module that is called, if it is one."""
        if isinstance(function, cst.Call) and isinstance(function.func, cst.Attribute):
            return _GETTER if function.func.attr.value == _GETTER else None
        if isinstance(function, cst.Attribute) and dotted_name(function) is not None:
            return function.attr.value if function.attr.value in self._names else None
        return None


def changed_name(statement: cst.CSTNode) -> str | None:
    """Return the variable whose tensor a statement changes in place, if it does."""
    target: cst.BaseExpression | None = None
    if isinstance(statement, cst.AugAssign):
        target = statement.target
    elif isinstance(statement, cst.Assign) and isinstance(statement.targets[0].target, cst.Subscript):
        target = statement.targets[0].target
    elif isinstance(statement, cst.Expr) and isinstance(statement.value, cst.Call):
        function = statement.value.func
        if isinstance(function, cst.Attribute):
            method = function.attr.value
            if method.endswith("_") and not method.endswith("__") and method not in _NOT_A_CHANGE:
                target = function.value
    while isinstance(target, cst.Subscript):
        target = target.value
    return target.value if isinstance(target, cst.Name) else None


def _names(target: cst.BaseExpression) -> Iterator[cst.Name]:
    if isinstance(target, cst.Name):
        yield target
    elif isinstance(target, (cst.Tuple, cst.List)):
        for element in target.elements:
            yield from _names(element.value)
