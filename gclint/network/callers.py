"""Finds the calls of a class's methods in its own file, which pass values to its parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import libcst as cst

from gclint.network.evaluation.body import nodes_in
from gclint.network.evaluation.classes import ClassInfo
from gclint.network.evaluation.modules import Module
from gclint.network.evaluation.scope import Scope
from gclint.network.evaluation.values import Bound, External, Instance
from gclint.network.evaluation.walk import dotted_name
from gclint.network.holders import single_attributes
from gclint.network.importers import given_importing, importers
from gclint.network.index import subclasses
from gclint.network.runsite import RunSite
from gclint.network.search import RUNNING_METHODS
from gclint.source.project import Project
from gclint.source.words import has_word


@dataclass(frozen=True)
class Caller:
    """A call of a method, and the scope in which its arguments are evaluated."""

    scope: Scope
    args: Sequence[cst.Arg]
    at: int
    """The offset of the statement that contains the call."""


class Callers:
    """Finds the calls of methods in one file."""

    def __init__(self, project: Project, module: Module, sites: Sequence[RunSite]) -> None:
        """Prepare the search.

        Args:
            project: the files of the run, to find out whether others import the class.
            module: the file.
            sites: the call sites in the file.
        """
        self._project = project
        self._module = module
        self._sites = sites
        self._found: dict[tuple[ClassInfo, str], tuple[Caller, ...]] = {}
        self._open: dict[ClassInfo, bool] = {}

    def of(self, info: ClassInfo, method: str) -> tuple[Caller, ...]:
        """Return the calls of a class's method in the file."""
        key = info, method
        if key not in self._found:
            runs = method in RUNNING_METHODS
            found = self._of_objects(info) if runs else self._of_method(info, method)
            self._found[key] = tuple(found)
        return self._found[key]

    def everywhere(self, info: ClassInfo, method: str) -> Iterator[Caller]:
        """Yield the same, the calls in files that import the class, and those by ``super()``."""
        yield from self.everywhere_in_file(info, method)
        for module in importers(self._project, info):
            yield from Callers(self._project, module, ()).everywhere_in_file(info, method)
        own = (each for each in self._module.classes.values() if info in each.mro and each is not info)
        for heir in dict.fromkeys((*own, *subclasses(self._project, info))):
            calls = _calls_in(heir, frozenset(("super",)), lambda func: _is_super(func, method))
            yield from (Caller(scope, call.args, at) for scope, call, at in calls)

    def everywhere_in_file(self, info: ClassInfo, method: str) -> Iterator[Caller]:
        """Yield the calls in the file, also those by the names of variables."""
        yield from self.of(info, method)
        if method in RUNNING_METHODS:
            yield from self._by_other_names(info)

    def may_be_elsewhere(self, info: ClassInfo, method: str, *, only_users: bool) -> bool:
        """Return whether code outside of the file may call a class's method with any arguments.

        Args:
            info: the class.
            method: the name of the method.
            only_users: whether to consider only users of the model, not the other files of the run.
        """
        if self.is_for_users(info, method):
            return True
        if only_users or method not in RUNNING_METHODS:
            return False
        if info not in self._open:
            self._open[info] = self._is_named_elsewhere(info) or self._is_super(info)
        return self._open[info]

    def is_for_users(self, info: ClassInfo, method: str) -> bool:
        """Return whether users of the model may call a class's method, with any arguments."""
        return (method in RUNNING_METHODS or not method.startswith("_")) and self._is_public(info)

    def _is_public(self, info: ClassInfo) -> bool:
        text = info.file.text
        exported = text.rfind("\n__all__")
        return info.is_model if exported == -1 else has_word(text, info.name, exported, len(text))

    def _is_named_elsewhere(self, info: ClassInfo) -> bool:
        return any(path != info.file.path for path in given_importing(self._project, info.file, info.name))

    def _is_super(self, info: ClassInfo) -> bool:
        return "super().forward(" in info.file.text and any(
            info in other.mro for other in self._module.classes.values() if other is not info
        )

    def _of_objects(self, info: ClassInfo) -> Iterator[Caller]:
        """Yield the calls of instances of the class, or of a class that inherits its ``forward``."""
        kinds = {each for each in self._module.classes.values() if info in each.mro} | {info}
        stacked = set[cst.Call]()
        for site in self._sites:
            if not site.checkpointed and site.function is None and kinds.intersection(site.blocks):
                stacked.add(site.call)
                yield Caller(site.scope, site.args, site.scope.range_of(site.fragment, site.call)[0])
        attributes = frozenset(single_attributes(self._module, {each.name for each in kinds}))
        if not attributes:
            return
        for scope, call, at in self._calls(attributes):
            if call not in stacked and any(_runs(value, kinds) for value in scope.evaluate(call.func)):
                yield Caller(scope, call.args, at)

    def _by_other_names(self, info: ClassInfo) -> Iterator[Caller]:
        """Yield the calls of what may be an instance of the class, such as ``model(…)``."""
        kinds = {each for each in self._module.classes.values() if info in each.mro} | {info}
        attributes = frozenset(single_attributes(self._module, {each.name for each in kinds}))
        for user in self._module.classes.values():
            for method in user.methods():
                text = user.file.text
                if not any(has_word(text, name, method.header, method.limit) for name in attributes):
                    continue
                scope = user.scope(method)
                for piece in () if scope.body is None else scope.body.pieces():
                    calls = (node for node in nodes_in((piece,)) if isinstance(node, cst.Call))
                    for call in calls if piece.fragment is not None else ():
                        if _called_attribute(call.func) not in attributes and _may_run(scope, call, kinds):
                            at = 0 if piece.fragment is None else scope.range_of(piece.fragment, call)[0]
                            yield Caller(scope, call.args, at)

    def _of_method(self, info: ClassInfo, method: str) -> Iterator[Caller]:
        """Yield the calls of another method of the class, on ``self`` or on an attribute."""
        for scope, call, at in self._calls(frozenset((method,))):
            if any(
                isinstance(value, Bound) and value.method == method and info in value.instance.info.mro
                for value in scope.evaluate(call.func)
            ):
                yield Caller(scope, call.args, at)

    def _calls(self, attributes: frozenset[str]) -> Iterator[tuple[Scope, cst.Call, int]]:
        """Yield the calls ``….name(…)`` and ``….name.forward(…)`` in methods of the file."""
        for info in self._module.classes.values():
            yield from _calls_in(info, attributes, lambda func: _called_attribute(func) in attributes)


def _calls_in(
    info: ClassInfo, words: frozenset[str], is_meant: Callable[[cst.BaseExpression], bool]
) -> Iterator[tuple[Scope, cst.Call, int]]:
    """Yield the calls in methods of a class that are meant, which one of ``words`` stands in."""
    text = info.file.text
    for method in info.methods():
        if not any(has_word(text, word, method.header, method.limit) for word in words):
            continue
        scope = info.scope(method)
        for piece in () if scope.body is None else scope.body.pieces_naming(words):
            for node in nodes_in((piece,)):
                if isinstance(node, cst.Call) and is_meant(node.func) and piece.fragment is not None:
                    yield scope, node, scope.range_of(piece.fragment, node)[0]


def _is_super(func: cst.BaseExpression, method: str) -> bool:
    """Return whether a call is one of ``super().method(…)``."""
    return (
        isinstance(func, cst.Attribute)
        and (func.attr.value == method or {func.attr.value, method} <= RUNNING_METHODS)
        and isinstance(func.value, cst.Call)
        and dotted_name(func.value.func) == "super"
    )


def _called_attribute(func: cst.BaseExpression) -> str | None:
    if isinstance(func, cst.Attribute) and func.attr.value in RUNNING_METHODS:
        func = func.value
    return func.attr.value if isinstance(func, cst.Attribute) else None


def _runs(value: object, kinds: set[ClassInfo]) -> bool:
    if isinstance(value, Bound):
        return value.method in RUNNING_METHODS and value.instance.info in kinds
    return isinstance(value, Instance) and value.info in kinds


def _may_run(scope: Scope, call: cst.Call, kinds: set[ClassInfo]) -> bool:
    """Return whether a call runs an instance of one of some classes, itself or by ``partial``."""
    values = scope.evaluate(call.func)
    if External("functools.partial") in values and call.args:
        values = scope.evaluate(call.args[0].value)
    return any(_runs(value, kinds) for value in values)
