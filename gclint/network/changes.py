"""Finds changes in place, and what they change: an argument, the object itself, or a global."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property

import libcst as cst

from gclint.network.evaluation.body import Binding
from gclint.network.evaluation.reaching import Reaching
from gclint.network.evaluation.scope import Scope
from gclint.network.evaluation.values import External, Instance, ModuleValue
from gclint.network.evaluation.walk import dotted_name
from gclint.network.learned import is_buffer
from gclint.network.reached import Code, is_known_method
from gclint.network.traits import FILLING as FILLING_ITEMS
from gclint.network.traits import IN_PLACE

OWN = "self"
"""The origin of everything that the object itself holds."""
_GLOBAL = "global "
FILLING = FILLING_ITEMS | {"update"}
"""Methods that change a list or dict."""
_CHANGING = re.compile(
    r"(?:write|push|put|store|record|save|enqueue|track|collect|accumulate|increment|advance|observe)(?:_\w+)?"
    r"|(?:append|add|update|set|reset|register)_(?!hook\b)\w+"
)
"""Matches names of methods that probably change their object, and that no tensor has."""
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
_IN_PLACE_NAMES = """
abs_ absolute_ acos_ acosh_ add_ addbmm_ addcdiv_ addcmul_ addmm_ addmv_ addr_ arccos_ arccosh_ arcsin_
arcsinh_ arctan2_ arctan_ arctanh_ as_strided_ asin_ asinh_ atan2_ atan_ atanh_ baddbmm_ bernoulli_
bitwise_and_ bitwise_left_shift_ bitwise_not_ bitwise_or_ bitwise_right_shift_ bitwise_xor_ cauchy_ ceil_
clamp_ clamp_max_ clamp_min_ clip_ conj_physical_ copy_ copysign_ cos_ cosh_ cumprod_ cumsum_ deg2rad_
detach_ digamma_ div_ divide_ eq_ erf_ erfc_ erfinv_ exp2_ exp_ expm1_ exponential_ fill_ fill_diagonal_
fix_ float_power_ floor_ floor_divide_ fmod_ frac_ gcd_ ge_ geometric_ greater_ greater_equal_ gt_
heaviside_ hypot_ i0_ igamma_ igammac_ index_add_ index_copy_ index_fill_ index_put_ index_reduce_ lcm_
ldexp_ le_ lerp_ less_ less_equal_ lgamma_ log10_ log1p_ log2_ log_ log_normal_ logical_and_ logical_not_
logical_or_ logical_xor_ logit_ lt_ masked_fill_ masked_scatter_ mul_ multiply_ mvlgamma_ nan_to_num_ ne_
neg_ negative_ nextafter_ normal_ not_equal_ polygamma_ pow_ put_ rad2deg_ random_ reciprocal_ relu_
remainder_ renorm_ resize_ resize_as_ resize_as_sparse_ round_ rsqrt_ scatter_ scatter_add_
scatter_reduce_ sgn_ share_memory_ sigmoid_ sign_ sin_ sinc_ sinh_ sparse_resize_ sparse_resize_and_clear_
sqrt_ square_ squeeze_ sub_ subtract_ swapaxes_ swapdims_ t_ tan_ tanh_ transpose_ tril_ triu_ true_divide_
trunc_ uniform_ unsqueeze_ xlogy_ zero_
"""
TENSOR_METHODS = frozenset(_IN_PLACE_NAMES.split())
"""Methods of tensors that change the tensor in place, and only read their arguments."""
_SCALING = (cst.MultiplyAssign, cst.DivideAssign)
"""In-place operators with a number that only tensors need; ``+=`` is also how code counts."""


def changed(scope: Scope, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """Yield the expressions that a statement or call changes in place: tensors, containers and objects."""
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
    name = dotted_name(call.func) or method
    if IN_PLACE.fullmatch(name.rpartition(".")[2]) is not None:
        yield from _changed_in_place(scope, call)
    elif isinstance(call.func, cst.Attribute):
        may_change = _CHANGING.fullmatch(method) is not None and not is_known_method(scope, call.func)
        if method in FILLING or may_change:
            yield call.func.value
    out = options.get("out")
    if out is not None:
        yield from (each.value for each in out.elements) if isinstance(out, cst.Tuple) else (out,)
    # Functions that change their argument, such as `dropout(states, inplace=True)` and `next(noise)`.
    is_flagged = dotted_name(options.get("inplace", cst.Name("False"))) != "False"
    if call.args and (is_flagged or name in ("next", "setattr")):
        yield call.args[0].value


def _changed_in_place(scope: Scope, call: cst.Call) -> Iterator[cst.CSTNode]:
    """Yield what a function or method changes whose name ends in an underscore.

    Methods of tensors change the tensor alone; others, such as `torch.relu_(states)` and
    `self.memory.update_(states)`, may change their arguments.
    """
    if isinstance(call.func, cst.Attribute):
        holders = scope.evaluate(call.func.value)
        if not any(isinstance(each, (External, ModuleValue)) for each in holders):
            yield call.func.value
            is_tensor = not any(isinstance(each, Instance) for each in holders)
            if is_tensor and call.func.attr.value in TENSOR_METHODS:
                return
    yield from (arg.value for arg in call.args)


class Origins:
    """Finds the origins of an expression: parameters, the object itself, or names of the module."""

    def __init__(self, code: Code) -> None:
        """Prepare to trace expressions in the body of a function."""
        self._scope, self._code = code.scope, code
        self._reaching: dict[str, Reaching] = {}

    @cached_property
    def _added(self) -> set[cst.CSTNode]:
        # An added item is bound to the name as well, but the name does not become an alias of it.
        added = {node.value for node in self._code.nodes if isinstance(node, cst.AugAssign)}
        return added | {
            call.args[-1].value
            for call in self._code.calls
            if isinstance(call.func, cst.Attribute) and call.func.attr.value in FILLING and call.args
        }

    def of_change(self, statement: cst.CSTNode) -> set[str]:
        """Return the origins of what a statement or call changes."""
        found: set[str] = set()
        for node in changed(self._scope, statement):
            # `count = self.count; count += 1` does not change `self`.
            is_number = isinstance(statement, cst.AugAssign) and isinstance(node, cst.Name)
            found |= self.of(node, keeps_items=not is_number)
        return found

    def of(self, node: cst.CSTNode, *, keeps_items: bool = True) -> set[str]:
        """Return the possible origins of an expression, or of the object that it is a part of."""
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
        """Return the origin of a name that the function itself does not bind."""
        scope = self._scope
        if name in scope.parameters.variable:
            return {name} if is_item else set()
        if scope.parameters.has(name):
            return {name}
        if scope.parent is not None and scope.parent.body is not None:
            return set()
        return {_GLOBAL + name} if self._is_of_module(name, is_item=is_item) else set()

    def _is_of_module(self, name: str, *, is_item: bool) -> bool:
        """Return whether a module-level name refers to an object that can be changed."""
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
        """Return whether a binding makes the name an alias of the value, not of a part of it."""
        return not (binding.added or binding.iterated or binding.path or binding.value in self._added)

    def _at(self, name: cst.Name) -> frozenset[Binding | cst.FunctionDef | None]:
        if name.value not in self._reaching:
            assert self._scope.body is not None
            self._reaching[name.value] = Reaching(name.value, self._scope.body.pieces())
        return self._reaching[name.value].at(name)


def global_name(origin: str) -> str | None:
    """Return the name of a global from its origin; None for any other origin."""
    return origin.removeprefix(_GLOBAL) if origin.startswith(_GLOBAL) else None
