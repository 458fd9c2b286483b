"""Finds the calls of a class's methods in its own file, which pass values to its parameters."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from gclint.code.file import SourceFile
from gclint.code.project import Project
from gclint.code.remembered import remembered
from gclint.code.tree import DEFINITIONS
from gclint.code.walk import Arg, arguments, is_super, text_of, walk
from gclint.network.evaluation.body import Body
from gclint.network.evaluation.classes import ClassInfo, may_have
from gclint.network.evaluation.modules import ModuleInfo
from gclint.network.evaluation.scope import Scope
from gclint.network.evaluation.values import EvaluatedMethod, Instance
from gclint.network.holders import single_attributes
from gclint.network.importers import given_importing
from gclint.network.runsite import RunSite
from gclint.network.search import RUNNING_METHODS

_ALL = "__all__"


@dataclass(frozen=True)
class Caller:
    """A call of a method, and the scope in which its arguments are evaluated."""

    scope: Scope
    args: Sequence[Arg]


class Callers:
    """Finds the calls of methods in one file."""

    def __init__(self, project: Project, module: ModuleInfo, sites: Sequence[RunSite]) -> None:
        """Prepare the search; the call ``sites`` of the file are not looked for again."""
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

    def may_be_elsewhere(self, info: ClassInfo, method: str, *, only_users: bool) -> bool:
        """Return whether code outside of the file may call a class's method with any arguments.

        With ``only_users``, only users of the model count, not the other files of the run.
        """
        if self._is_for_users(info, method):
            return True
        if only_users or method not in RUNNING_METHODS:
            return False
        if info not in self._open:
            naming = given_importing(self._project, info.file, info.name)
            self._open[info] = any(path != info.file.path for path in naming) or self._is_super(info)
        return self._open[info]

    def _is_for_users(self, info: ClassInfo, method: str) -> bool:
        """Return whether users of the model may call a class's method, with any arguments."""
        if method not in RUNNING_METHODS and method.startswith("_"):
            return False
        exported = _exported(info.file)
        return info.is_model if exported is None else info.name in exported

    def _is_super(self, info: ClassInfo) -> bool:
        classes = self._module.classes.values()
        return any(info in other.mro for other in classes if other is not info) and any(
            any(_calls_in(each, frozenset(("super",)), _is_call_of_base)) for each in classes
        )

    def _of_objects(self, info: ClassInfo) -> Iterator[Caller]:
        """Yield the calls of instances of the class, or of a class that inherits its ``forward``."""
        kinds = {each for each in self._module.classes.values() if info in each.mro} | {info}
        stacked = set[ast.Call]()
        for site in self._sites:
            if not site.checkpointed and site.function is None and kinds.intersection(site.blocks):
                stacked.add(site.call)
                yield Caller(site.scope, site.args)
        attributes = frozenset(single_attributes(self._module, {each.name for each in kinds}))
        if not attributes:
            return
        for scope, call in self._calls(attributes):
            if call not in stacked and any(_runs(value, kinds) for value in scope.evaluate(call.func)):
                yield Caller(scope, arguments(call))

    def _of_method(self, info: ClassInfo, method: str) -> Iterator[Caller]:
        """Yield the calls of another method of the class, on ``self`` or on an attribute."""
        for scope, call in self._calls(frozenset((method,))):
            if any(
                isinstance(value, EvaluatedMethod)
                and value.method == method
                and info in value.instance.info.mro
                for value in scope.evaluate(call.func)
            ):
                yield Caller(scope, arguments(call))

    def _calls(self, attributes: frozenset[str]) -> Iterator[tuple[Scope, ast.Call]]:
        """Yield the calls ``….name(…)`` and ``….name.forward(…)`` in methods of the file."""
        for info in self._module.classes.values():
            yield from _calls_in(info, attributes, lambda func: _called_attribute(func) in attributes)


def _calls_in(
    info: ClassInfo, words: frozenset[str], is_meant: Callable[[ast.expr], bool]
) -> Iterator[tuple[Scope, ast.Call]]:
    """Yield the calls in methods of a class that are meant, which one of ``words`` stands in."""
    for method in info.methods():
        if may_have(method, words):
            scope = info.scope(method)
            for call in scope.body.calls():
                if is_meant(call.func):
                    yield scope, call


def _is_call_of_base(func: ast.expr) -> bool:
    """Return whether a call is one of ``super().forward(…)``."""
    return isinstance(func, ast.Attribute) and func.attr in RUNNING_METHODS and is_super(func.value)


def _called_attribute(func: ast.expr) -> str | None:
    if isinstance(func, ast.Attribute) and func.attr in RUNNING_METHODS:
        func = func.value
    return func.attr if isinstance(func, ast.Attribute) else None


def _runs(value: object, kinds: set[ClassInfo]) -> bool:
    if isinstance(value, EvaluatedMethod):
        return value.method in RUNNING_METHODS and value.instance.info in kinds
    return isinstance(value, Instance) and value.info in kinds


@remembered
def _exported(file: SourceFile) -> frozenset[str] | None:
    """Return the names that a module lists in ``__all__``; None without such a list."""
    if file.tree is None or _ALL not in file.text:
        return None
    statements = [each for each in file.tree.module.body if not isinstance(each, DEFINITIONS)]
    lists = Body(file, statements).bindings.get(_ALL, ())
    texts = (text_of(node) for each in lists for node in walk(each.value))
    return frozenset(filter(None, texts)) if lists else None
