"""What a function's code changes in place, and whose that is: an argument's, the object's, the module's."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property

import libcst as cst

from gclint.network.evaluation.body import Binding
from gclint.network.evaluation.reaching import Reaching
from gclint.network.evaluation.scope import Scope
from gclint.network.evaluation.values import External, ModuleValue
from gclint.network.evaluation.walk import dotted_name
from gclint.network.learned import is_buffer
from gclint.network.reached import Code, is_known_method
from gclint.network.traits import FILLING as FILLING_ITEMS
from gclint.network.traits import IN_PLACE

OWN = "self"
"""Stands for what the object holds."""
_GLOBAL = "global "
FILLING = FILLING_ITEMS | {"update"}
"""Methods that change a list or a dict."""
_CHANGING = re.compile(
    r"(?:write|push|put|store|record|save|enqueue|track|collect|accumulate|increment|advance|observe)(?:_\w+)?"
    r"|(?:append|add|update|set|reset|register)_(?!hook\b)\w+"
)
"""What methods are called that change their object, and that no tensor has."""
_ITEMS = frozenset(("get", "pop", "setdefault", "values", "items"))
_FIGURES = frozenset(("shape", "dtype", "device", "ndim", "training", "config", "__name__"))
VIEWS = frozenset(
    [
        "chunk",
        "contiguous",
        "expand",
        "expand_as",
        "flatten",
        "movedim",
        "narrow",
        "permute",
        "reshape",
        "select",
        "squeeze",
        "swapaxes",
        "t",
        "transpose",
        "unbind",
        "unflatten",
        "unsqueeze",
        "view",
        "view_as",
    ]
)
"""Methods of tensors whose result may share the tensor's memory."""
_SCALING = (cst.MultiplyAssign, cst.DivideAssign)
"""What is done to a tensor with a number; a number is added to another as well."""


def changed(scope: Scope, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """Yield what a statement or a call changes in place, if that is a tensor, a container or an object."""
    if isinstance(node, cst.AugAssign):
        is_counted = isinstance(node.value, cst.BaseNumber) and not isinstance(node.operator, _SCALING)
        if not isinstance(node.target, cst.Name) or not (is_counted or isinstance(node.value, cst.Tuple)):
            yield node.target
    elif isinstance(node, (cst.AssignTarget, cst.Del)):
        if isinstance(node.target, cst.Subscript):
            yield node.target.value
        elif isinstance(node.target, cst.Attribute) and dotted_name(node.target.value) != scope.self_name:
            yield node.target
    elif isinstance(node, cst.Call):
        yield from _changed_by_call(scope, node)


def _changed_by_call(scope: Scope, call: cst.Call) -> Iterator[cst.CSTNode]:
    method = call.func.attr.value if isinstance(call.func, cst.Attribute) else ""
    options = {arg.keyword.value: arg.value for arg in call.args if arg.keyword is not None}
    is_in_place = IN_PLACE.fullmatch(method) is not None
    if isinstance(call.func, cst.Attribute):
        may_change = _CHANGING.fullmatch(method) is not None and not is_known_method(scope, call.func)
        if is_in_place or method in FILLING or may_change:
            yield call.func.value
    if "out" in options:
        yield options["out"]
    # Functions such as `torch.relu_(states)`, and `next(noise)`.
    is_flagged = "inplace" in options and dotted_name(options["inplace"]) == "True"
    name = dotted_name(call.func)
    if call.args and (is_in_place or is_flagged or name in ("next", "setattr")):
        yield call.args[0].value


class Origins:
    """Finds out whose an expression may be: a parameter's, the object's own, or one of the module's names."""

    def __init__(self, code: Code) -> None:
        """Look into the body of a function."""
        self._scope, self._code = code.scope, code
        self._reaching: dict[str, Reaching] = {}

    @cached_property
    def _added(self) -> set[cst.CSTNode]:
        # What is added to a tensor or a container in place is not what it stands for from then on.
        added = {node.value for node in self._code.nodes if isinstance(node, cst.AugAssign)}
        return added | {
            call.args[-1].value
            for call in self._code.calls
            if isinstance(call.func, cst.Attribute) and call.func.attr.value in FILLING and call.args
        }

    def of_change(self, statement: cst.CSTNode) -> set[str]:
        """Return whose something is that a statement, or a call, changes."""
        found: set[str] = set()
        for node in changed(self._scope, statement):
            # A figure that is taken out of something and counted up stays what it is there.
            is_figure = isinstance(statement, cst.AugAssign) and isinstance(node, cst.Name)
            found |= self.of(node, keeps_items=not is_figure)
        return found

    def of(self, node: cst.CSTNode, *, keeps_items: bool = True) -> set[str]:
        """Return whose an expression may be, or that of which it is a part."""
        return self._of(node, frozenset(), is_item=False, keeps_items=keeps_items)

    def _of(
        self, node: cst.CSTNode, seen: frozenset[cst.CSTNode], *, is_item: bool, keeps_items: bool
    ) -> set[str]:
        while not isinstance(node, cst.Name):
            if not keeps_items and isinstance(node, (cst.Attribute, cst.Subscript)):
                return {OWN} if is_buffer(self._scope, node) else set()
            if isinstance(node, (cst.Attribute, cst.Subscript)):
                if isinstance(node, cst.Attribute) and node.attr.value in _FIGURES:
                    return set()
                node, is_item = node.value, True
            elif isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
                method = node.func.attr.value
                if method not in VIEWS and method not in _ITEMS:
                    return set()
                node, is_item = node.func.value, is_item or method in _ITEMS
            else:
                return set()
        if node in seen:
            return set()
        if node.value == self._scope.self_name:
            return {OWN} if is_item else set()
        found: set[str] = set()
        for entry in self._at(node):
            if entry is None:
                found |= self._from_outside(node.value, is_item=is_item)
            elif isinstance(entry, Binding) and self._is_whole(entry):
                found |= self._of(entry.value, seen | {node}, is_item=is_item, keeps_items=keeps_items)
        return found

    def _from_outside(self, name: str, *, is_item: bool) -> set[str]:
        """Return what a name is that the function itself does not bind."""
        scope = self._scope
        if name in scope.parameters.variable:
            return {name} if is_item else set()
        if scope.parameters.has(name):
            return {name}
        if scope.parent is not None and scope.parent.body is not None:
            return set()
        return {_GLOBAL + name} if self._is_of_module(name, is_item=is_item) else set()

    def _is_of_module(self, name: str, *, is_item: bool) -> bool:
        """Tell whether a name at the top of the file stands for an object that code can change."""
        outline = self._scope.module.file.outline
        if name in outline.classes or name in outline.functions:
            return is_item
        imported = outline.imported(name)
        if imported is None:
            assigned = re.compile(rf"^{re.escape(name)}[ \t]*(?::[^=\n]+)?=(?!=)", re.MULTILINE)
            return assigned.search(outline.code) is not None
        values = self._scope.module.lookup(name)
        return imported.name is not None and not any(
            isinstance(value, ModuleValue)
            or (isinstance(value, External) and value.name.startswith(("torch", "transformers")))
            for value in values
        )

    def _is_whole(self, binding: Binding) -> bool:
        """Tell whether a name stands for all of what is bound to it."""
        return not (binding.added or binding.iterated or binding.path or binding.value in self._added)

    def _at(self, name: cst.Name) -> frozenset[Binding | cst.FunctionDef | None]:
        if name.value not in self._reaching:
            assert self._scope.body is not None
            self._reaching[name.value] = Reaching(name.value, self._scope.body.pieces())
        return self._reaching[name.value].at(name)


def global_name(origin: str) -> str | None:
    """Return the module's name that an origin is; None for any other."""
    return origin.removeprefix(_GLOBAL) if origin.startswith(_GLOBAL) else None
