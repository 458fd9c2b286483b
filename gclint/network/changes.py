"""Finds changes in place, and what they change: an argument, the object itself, or a global."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from functools import cached_property

from gclint.network.differentiable import makes_constants
from gclint.network.evaluation.body import Binding, Body, unstarred
from gclint.network.evaluation.reaching import Entry, Reaching
from gclint.network.evaluation.scope import Scope
from gclint.network.evaluation.values import (
    ClassValue,
    Container,
    External,
    ExternalInstance,
    Instance,
    ModuleValue,
    Value,
)
from gclint.network.evaluation.walk import arguments, dotted_name, is_constant, text_of
from gclint.network.learned import is_buffer, is_learned_value
from gclint.network.reached import Code, is_known_method
from gclint.network.traits import FILLING as FILLING_ITEMS
from gclint.network.traits import IN_PLACE
from gclint.source.file import SourceFile, of_text
from gclint.source.tree import DEFINITIONS

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
_VIEW_NAMES = """
adjoint as_strided broadcast_to chunk contiguous diagonal dsplit expand expand_as flatten hsplit movedim
moveaxis narrow permute ravel reshape reshape_as select split split_with_sizes squeeze swapaxes swapdims t
tensor_split transpose unbind unflatten unfold unsqueeze view view_as view_as_complex view_as_real vsplit
"""
VIEWS = frozenset(_VIEW_NAMES.split())
"""Methods of tensors whose result may share the tensor's memory."""
_SAME_NAMES = """
alpha_dropout as_tensor asarray atleast_1d atleast_2d atleast_3d bfloat16 conj cpu cuda detach double dropout
dropout1d dropout2d dropout3d feature_alpha_dropout float from_dlpack from_numpy half imag nn numpy Parameter
requires_grad_ resolve_conj to type type_as vmap
"""
_SAME = frozenset(_SAME_NAMES.split())
"""Other functions and methods of torch whose result may be their argument."""
_DROPOUT = r"(?:Feature)?(?:Alpha)?Dropout(?:\dd)?"
_SAME_MODULES = re.compile(rf"torch\.nn\.(?:Identity|{_DROPOUT}|Flatten|Unflatten)")
_MAY_BE_IN_PLACE = re.compile(
    rf"(?:R?ReLU6?|LeakyReLU|[CS]?ELU|SiLU|Mish|Hard[a-z]{{4,7}}|Threshold|{_DROPOUT})"
)
"""Matches the names of modules that change their input if they are made so."""
_OPERATOR = re.compile(
    r"__(?:(?:set|del)(?:item|attr)|i(?:add|sub|mul|matmul|truediv|floordiv|mod|pow|and|or|xor))__"
)
"""Matches the methods behind statements that change an object."""
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


def changed(scope: Scope, node: ast.AST) -> Iterator[ast.expr]:
    """Yield the expressions that a statement or call changes in place: tensors, containers and objects."""
    if isinstance(node, ast.AugAssign):
        if not isinstance(node.target, ast.Name) or not isinstance(node.value, ast.Tuple):
            yield node.target
    elif isinstance(node, (ast.Assign, ast.Delete, ast.For, ast.AsyncFor)):
        targets = [node.target] if isinstance(node, (ast.For, ast.AsyncFor)) else node.targets
        for target in (inner for each in targets for inner in _targets(each)):
            if isinstance(target, ast.Subscript):
                yield target.value
            elif dotted_name(target.value) != scope.self_name:
                yield target
    elif isinstance(node, ast.Call):
        yield from _changed_by_call(scope, node)


def _targets(target: ast.expr) -> Iterator[ast.Subscript | ast.Attribute]:
    if isinstance(target, (ast.Subscript, ast.Attribute)):
        yield target
    elif isinstance(target, (ast.Tuple, ast.List)):
        for each in target.elts:
            yield from _targets(unstarred(each))


def _changed_by_call(scope: Scope, call: ast.Call) -> Iterator[ast.expr]:
    method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    given = arguments(call)
    options = {arg.keyword: arg.value for arg in given if arg.keyword is not None}
    name = dotted_name(call.func) or method
    last = name.rpartition(".")[2]
    if IN_PLACE.fullmatch(last) is not None or _OPERATOR.fullmatch(last) is not None:
        yield from _changed_in_place(scope, call)
    elif isinstance(call.func, ast.Attribute):
        may_change = _CHANGING.fullmatch(method) is not None and not is_known_method(scope, call.func)
        if method in FILLING or may_change:
            yield call.func.value
    out = options.get("out")
    if out is not None:
        yield from map(unstarred, out.elts) if isinstance(out, ast.Tuple) else (out,)
    # Functions that change their argument, such as `dropout(states, inplace=True)` and `next(noise)`.
    is_flagged = "inplace" in options and not is_constant(options["inplace"], False)
    is_got = name == "getattr" and any(IN_PLACE.fullmatch(text_of(arg.value) or "") for arg in given[1:])
    if given and (is_flagged or is_got or name in ("next", "setattr") or _is_in_place(scope, call)):
        yield given[0].value
    if any(_is_method_in_place(arg.value) for arg in given):
        # What gets such a method runs it.
        yield from (arg.value for arg in given)


def _is_method_in_place(value: ast.expr) -> bool:
    return isinstance(value, ast.Attribute) and IN_PLACE.fullmatch(value.attr) is not None


def _is_in_place(scope: Scope, call: ast.Call) -> bool:
    """Return whether a function or module of torch may change its argument, as it is told by position."""
    for value in scope.evaluate(call.func):
        if isinstance(value, External):
            flags = [is_constant(arg.value, True) for arg in arguments(call)]
            is_dropout = value.name.endswith("dropout")
            if value.name.startswith("torch.nn.functional.") and any(flags[3 if is_dropout else 1 :]):
                return True
            if value.name.startswith("operator."):
                return True
        elif (
            isinstance(value, ExternalInstance)
            and scope.owner is not None
            and _MAY_BE_IN_PLACE.fullmatch(value.name.rpartition(".")[2])
        ):
            return any(_makes_in_place(node) for base in scope.owner.mro for node in base.nodes)
    return False


def _makes_in_place(node: ast.AST) -> bool:
    """Return whether a call makes a module that changes its input."""
    if not isinstance(node, ast.Call):
        return False
    name = (dotted_name(node.func) or "").rpartition(".")[2]
    return _MAY_BE_IN_PLACE.fullmatch(name) is not None and any(
        is_constant(arg.value, True) or (arg.keyword == "inplace" and not is_constant(arg.value, False))
        for arg in arguments(node)
    )


def _changed_in_place(scope: Scope, call: ast.Call) -> Iterator[ast.expr]:
    """Yield what a function or method changes whose name ends in an underscore.

    Methods of tensors change the tensor alone; others, such as `torch.relu_(states)` and
    `self.memory.update_(states)`, may change their arguments.
    """
    if isinstance(call.func, ast.Attribute):
        holders = scope.evaluate(call.func.value)
        if not any(isinstance(each, (External, ModuleValue)) for each in holders):
            yield call.func.value
            is_tensor = not any(isinstance(each, Instance) for each in holders)
            if is_tensor and call.func.attr in TENSOR_METHODS:
                return
    yield from (arg.value for arg in arguments(call))


class Origins:
    """Finds the origins of an expression: parameters, the object itself, or names of the module."""

    def __init__(self, code: Code) -> None:
        """Prepare to trace expressions in the body of a function."""
        self._scope, self._code = code.scope, code
        self._reaching: dict[str, Reaching] = {}

    @cached_property
    def _added(self) -> set[ast.expr]:
        # An added item is bound to the name as well, but the name does not become an alias of it.
        added = {node.value for node in self._code.nodes if isinstance(node, ast.AugAssign)}
        return added | {
            given[-1].value
            for call in self._code.calls
            if isinstance(call.func, ast.Attribute) and call.func.attr in FILLING
            for given in (arguments(call),)
            if given
        }

    @cached_property
    def _inner(self) -> set[str]:
        """The parameters of inner functions, which may get anything that the function has."""
        return {node.arg for node in self._code.nodes if isinstance(node, ast.arg)}

    def of_change(self, statement: ast.AST) -> set[str]:
        """Return the origins of what a statement or call changes."""
        found: set[str] = set()
        for node in changed(self._scope, statement):
            # `count = self.count; count += 1` does not change `self`.
            is_number = isinstance(statement, ast.AugAssign) and isinstance(node, ast.Name)
            found |= self.of(node, keeps_items=not is_number)
        return found

    def of(self, node: ast.expr, *, keeps_items: bool = True) -> set[str]:
        """Return the possible origins of an expression, or of the object that it is a part of."""
        is_display = isinstance(node, (ast.Tuple, ast.List))
        return self._of(node, set(), is_item=is_display, keeps_items=keeps_items)

    def _of(
        self, node: ast.expr, seen: set[tuple[ast.expr, bool]], *, is_item: bool, keeps_items: bool
    ) -> set[str]:
        """Return the origins, but for those by way of names that were ``seen``: many ways lead to some."""
        found: set[str] = set()
        if isinstance(node, ast.Name):
            if (node, is_item) in seen:
                return set()
            seen.add((node, is_item))
            if node.id == self._scope.self_name:
                return {OWN} if is_item else set()
            for value, is_part in self._values(node, is_item=is_item):
                if value is None:
                    found |= self._from_outside(node.id, is_item=is_item)
                else:
                    found |= self._of(value, seen, is_item=is_part, keeps_items=keeps_items)
            return found
        if isinstance(node, ast.Attribute):
            if node.attr in _FIGURES:
                return set()
            if not keeps_items:
                return {OWN} if is_buffer(self._scope, node) else set()
        for value, is_part in self._shared(node, is_item=is_item):
            found |= self._of(value, seen, is_item=is_part, keeps_items=keeps_items)
        return found

    def _values(self, name: ast.Name, *, is_item: bool) -> Iterator[tuple[ast.expr | None, bool]]:
        """Yield what a name may be, and whether it is a part of that; None is what it is from outside."""
        for entry in self._at(name):
            if not isinstance(entry, Binding):
                yield None, is_item
            elif entry.added or entry.value in self._added:
                if is_item and isinstance(entry.value, (ast.Tuple, ast.List)):
                    yield entry.value, True
            elif entry.literal is not entry.value:
                yield entry.literal, is_item
            else:
                yield entry.value, is_item or entry.iterated or bool(entry.path)

    def _shared(self, node: ast.expr, *, is_item: bool) -> Iterator[tuple[ast.expr, bool]]:
        """Yield what an expression may be the same as, and whether it is a part of that."""
        if isinstance(node, (ast.Attribute, ast.Subscript)):
            yield node.value, True
        elif isinstance(node, ast.IfExp):
            yield from ((node.body, is_item), (node.orelse, is_item))
        elif isinstance(node, ast.BoolOp):
            yield from ((each, is_item) for each in node.values)
        elif isinstance(node, (ast.NamedExpr, ast.Starred)):
            yield node.value, is_item
        elif isinstance(node, (ast.Tuple, ast.List, ast.Set)) and is_item:
            yield from ((unstarred(each), True) for each in node.elts)
        elif isinstance(node, ast.Dict) and is_item:
            yield from ((each, True) for each in node.values)
        elif isinstance(node, (ast.ListComp, ast.GeneratorExp)) and is_item:
            yield node.elt, True
        elif isinstance(node, ast.Call):
            method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
            is_same = method in VIEWS or method in _SAME or IN_PLACE.fullmatch(method) is not None
            if isinstance(node.func, ast.Attribute) and (is_same or method in _ITEMS):
                yield node.func.value, is_item or method in _ITEMS
            given = arguments(node)
            is_own = bool(given) and dotted_name(given[0].value) == self._scope.self_name
            if self._hands_back(node) and not is_own:
                yield from ((arg.value, True) for arg in given)

    def _hands_back(self, call: ast.Call) -> bool:
        """Return whether the result of a call may be one of its arguments, or a part of it."""
        values = self._scope.evaluate(call.func)
        if not values:
            return isinstance(call.func, ast.Name) and not makes_constants(call.func.id)
        return any(map(_is_handing_back, values))

    def _from_outside(self, name: str, *, is_item: bool) -> set[str]:
        """Return the origin of a name that the function itself does not bind."""
        scope = self._scope
        if name in scope.parameters.variable:
            return {name} if is_item else set()
        if scope.parameters.has(name):
            return {name}
        if name in self._inner:
            return {*scope.parameters.names} - {scope.self_name or ""}
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
            return name in _assigned_names(self._scope.module.file)
        values = self._scope.module.lookup(name)
        return imported.name is not None and not any(
            isinstance(value, ModuleValue)
            or (isinstance(value, External) and value.name.startswith(("torch", "transformers")))
            for value in values
        )

    def _at(self, name: ast.Name) -> Iterable[Entry]:
        if name.id not in self._reaching:
            assert self._scope.body is not None
            self._reaching[name.id] = Reaching(name.id, self._scope.body.roots)
        # In an inner function, any of them may reach the name.
        return self._reaching[name.id].at(name) or (None, *self._scope.bindings(name.id))


@of_text
def _assigned_names(file: SourceFile) -> frozenset[str]:
    """Return the names that the statements of a module itself assign."""
    statements = () if file.tree is None else file.tree.module.body
    return frozenset(Body(file, [each for each in statements if not isinstance(each, DEFINITIONS)]).bindings)


def _is_handing_back(value: Value) -> bool:
    if isinstance(value, Instance):
        return not is_learned_value(value)
    if isinstance(value, ExternalInstance):
        return _SAME_MODULES.fullmatch(value.name) is not None
    if isinstance(value, External):
        is_of_torch, last = value.name.startswith("torch."), value.name.rpartition(".")[2]
        return last in VIEWS or last in _SAME if is_of_torch else not makes_constants(value.name)
    return not isinstance(value, (ClassValue, Container))


def global_name(origin: str) -> str | None:
    """Return the name of a global from its origin; None for any other origin."""
    return origin.removeprefix(_GLOBAL) if origin.startswith(_GLOBAL) else None
