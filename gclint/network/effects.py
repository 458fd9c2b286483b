"""Finds side effects of a block's ``forward``, which recomputation repeats."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

import libcst as cst

from gclint.network.activation import is_constant
from gclint.network.binding import bind
from gclint.network.changes import OWN, Origins, global_name
from gclint.network.evaluation.classes import ClassInfo, remembered
from gclint.network.evaluation.scope import Scope
from gclint.network.evaluation.values import External, ExternalInstance, Function, Instance
from gclint.network.evaluation.walk import dotted_name
from gclint.network.learned import is_buffer
from gclint.network.outside import receiver_before
from gclint.network.reached import Code, reached
from gclint.network.traits import changes_own_state, stores_on_self
from gclint.source.words import word_ends
from gclint.verify.worker.vocabulary import CACHE_ARGUMENTS

_RANDOM = re.compile(r"(?:random|numpy\.random|secrets|uuid)\.\w|os\.urandom$")
_GENERATOR = re.compile(r"(?:random|numpy\.random)\.\w+$")
_ASSIGNED = re.compile(r"[ \t]{0,99}=(?!=)")
_INITIALIZING = "_init_weights"
_MAX_DEPTH = 3
_GRADED = frozenset(("requires_grad", "grad_fn", "is_leaf"))
"""Attributes of a tensor that depend on whether gradients are recorded."""
_GRADING = frozenset(("register_hook", "retain_grad", "backward", "register_post_accumulate_grad_hook"))
"""Methods of a tensor that need recorded gradients."""


def effects(info: ClassInfo) -> Iterator[str]:
    """Yield clauses that say what recomputation repeats or does differently."""
    for part in sorted(info.all_parts, key=lambda part: (part is not info, part.name)):
        name = f"`{part.name}.forward`"
        if (part is not info and changes_own_state(part)) or _changes_own(part):
            yield f"{name} changes the state of `self`, which recomputation repeats"
        if part is not info:
            yield from _kept_for_others(part)
        for code in reached(part):
            yield from (f"{name} {what}" for check in _CHECKS for what in check(code))
    for name in sorted(changed_inputs(info)):
        yield f"`{info.name}.forward` changes `{name}` in place, which recomputation repeats"


def _changes_own(info: ClassInfo) -> bool:
    """Return whether ``forward`` changes the object through an alias, or a method of something it holds."""
    if stores_on_self(info):
        return False  # This is reported separately.
    return any(
        OWN in origins.of_change(node) or _sets_object(info, code.scope, node)
        for code in reached(info)
        for origins in (Origins(code),)
        for node in code.nodes
    )


def _sets_object(info: ClassInfo, scope: Scope, node: cst.CSTNode) -> bool:
    """Return whether a method of another class, called on something the object holds, sets an attribute."""
    return (
        scope.owner is not None
        and scope.owner not in info.mro
        and isinstance(node, (cst.AssignTarget, cst.AugAssign))
        and isinstance(node.target, cst.Attribute)
        and dotted_name(node.target.value) == scope.self_name
    )


def _kept_for_others(info: ClassInfo) -> Iterator[str]:
    """Yield the attributes that a part stores in its call, if code outside of its class reads them."""
    text = info.file.outline.code
    for name in sorted(_kept(info)):
        ends = word_ends(text, f".{name}", 0, len(text))
        if any(_is_read_of_part(info, name, end) for end in ends):
            yield (
                f"`{info.name}.forward` keeps `{name}` for others, and losses computed from it have no "
                "gradient under reentrant checkpointing"
            )


def _is_read_of_part(info: ClassInfo, name: str, end: int) -> bool:
    """Return whether the attribute that ends at ``end`` is read from another object than ``self``."""
    if info.definition.start <= end < info.definition.end:
        return False
    text = info.file.outline.code
    around = [each for each in info.file.outline.definitions if each.start <= end < each.end]
    if any(each.name == _INITIALIZING for each in around):
        return False
    receiver = receiver_before(text, end - len(name) - 1)
    own = {each.first_parameter for each in around if each.parent is not None and each.parent.is_class}
    return receiver not in own and "config" not in receiver and _ASSIGNED.match(text, end) is None


def _kept(info: ClassInfo) -> set[str]:
    """Return the attributes to which ``forward`` assigns computed values."""
    return {
        target.target.attr.value
        for code in reached(info)
        for node in code.nodes
        if isinstance(node, cst.Assign) and not is_constant(node.value)
        for target in node.targets
        if isinstance(target.target, cst.Attribute)
        and dotted_name(target.target.value) == code.scope.self_name
        and not is_buffer(code.scope, target.target)
    }


# -- checks of one function


def _draws(code: Code) -> Iterator[str]:
    """Yield if random numbers do not come from torch's global generators."""
    if any(_is_drawn(code.scope, call) for call in code.calls):
        yield "draws random numbers that are not torch's, so recomputation draws different ones"
    options = (arg for call in code.calls for arg in call.args if arg.keyword is not None)
    given = (arg for arg in options if arg.keyword is not None and arg.keyword.value == "generator")
    if any(dotted_name(arg.value) != "None" for arg in given):
        yield (
            "draws random numbers with a `generator` of its own, whose state checkpointing does not restore, "
            "so recomputation draws different ones"
        )


def _is_drawn(scope: Scope, call: cst.Call) -> bool:
    values = scope.module.resolve(dotted_name(call.func) or "")
    if any(isinstance(value, External) and _RANDOM.match(value.name) for value in values):
        return True
    if not isinstance(call.func, cst.Attribute) or isinstance(call.func.value, cst.Call):
        return False
    made = scope.evaluate(call.func.value)
    return any(isinstance(value, ExternalInstance) and _GENERATOR.match(value.name) for value in made)


def _asks_for_gradients(code: Code) -> Iterator[str]:
    """Yield if the code depends on whether gradients are recorded."""
    asked = next((what for node in code.nodes for what in _asked(code.scope, node)), None)
    if asked is not None:
        yield f"{asked}, but reentrant checkpointing disables them in the forward pass"


def _asked(scope: Scope, node: cst.CSTNode) -> Iterator[str]:
    if isinstance(node, cst.Call):
        name = dotted_name(node.func) or ""
        called = node.func.attr.value if isinstance(node.func, cst.Attribute) else name
        if called == "is_grad_enabled":
            yield "checks whether gradients are enabled"
        elif called in _GRADING or name.endswith("autograd.grad"):
            yield f"calls `{called}`, which needs gradients to be enabled"
    elif isinstance(node, (cst.If, cst.IfExp)):
        for each in _tested(node.test):
            if isinstance(each, cst.Attribute) and each.attr.value in _GRADED:
                root = (dotted_name(each) or "").partition(".")[0]
                if root != scope.self_name:
                    yield f"checks `{each.attr.value}` of a tensor, and so whether gradients are enabled"


def _tested(test: cst.CSTNode) -> Iterator[cst.CSTNode]:
    waiting = [test]
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, cst.BooleanOperation):
            waiting += [node.left, node.right]
        elif isinstance(node, cst.UnaryOperation):
            waiting.append(node.expression)
        elif isinstance(node, cst.Comparison):
            waiting += [node.left]


def _changes_globals(code: Code) -> Iterator[str]:
    """Yield if a global is changed."""
    if any(isinstance(node, cst.Global) for node in code.nodes):
        yield "changes a global variable, which recomputation repeats"
        return
    origins = Origins(code)
    found = (global_name(origin) for node in code.nodes for origin in origins.of_change(node))
    name = next(filter(None, found), None)
    if name is not None:
        yield f"changes the global `{name}`, which recomputation repeats"


def _calls_back(code: Code) -> Iterator[str]:
    """Yield if a function that was passed in is called without using its result."""
    scope = code.scope
    for node in code.nodes:
        if isinstance(node, cst.Expr) and isinstance(node.value, cst.Call):
            func = node.value.func
            name = dotted_name(func)
            is_given = isinstance(func, cst.Name) and scope.parameters.has(func.value)
            if (is_given or _is_held(scope, func)) and not scope.evaluate(func):
                yield f"calls `{name}`, which recomputation repeats"
                return


def _is_held(scope: Scope, func: cst.BaseExpression) -> bool:
    """Return whether ``func`` is an attribute of the object that is assigned, not a method."""
    if scope.owner is None or not isinstance(func, cst.Attribute):
        return False
    if dotted_name(func.value) != scope.self_name:
        return False
    name = func.attr.value
    assigned = re.compile(rf"\.{name}[ \t]*=(?!=)")
    return any(name in base.text and assigned.search(base.text) for base in scope.owner.mro)


_CHECKS: Sequence[Callable[[Code], Iterator[str]]] = (
    _draws,
    _asks_for_gradients,
    _changes_globals,
    _calls_back,
)


# -- changes of arguments


@remembered
def changed_inputs(info: ClassInfo) -> frozenset[str]:
    """Return the parameters of ``forward`` whose arguments it changes in place, except caches."""
    scope = info.method_scope("forward")
    return frozenset() if scope is None else _changed_arguments(scope, ())


def _changed_arguments(scope: Scope, outer: tuple[object, ...]) -> frozenset[str]:
    """Return the parameters whose arguments a function changes in place, itself or in functions it calls."""
    if scope.body is None or len(outer) > _MAX_DEPTH:
        return frozenset()
    code = Code(scope)
    origins = Origins(code)
    found = {origin for node in code.nodes for origin in origins.of_change(node)}
    for call in code.calls:
        for value in _changed_by_called(scope, call, outer):
            found |= origins.of(value)
    named = {*scope.parameters.names, *scope.parameters.variable} - {scope.self_name}
    return frozenset(found & named) - CACHE_ARGUMENTS


def _changed_by_called(
    scope: Scope, call: cst.Call, outer: tuple[object, ...]
) -> Iterator[cst.BaseExpression]:
    """Yield the arguments of a call that the called module, method or function changes in place."""
    for value in scope.evaluate(call.func):
        if isinstance(value, Instance) and value.info not in outer and value.info.signature is not None:
            inner = value.info.method_scope("forward")
            changed = frozenset() if inner is None else _changed_arguments(inner, (*outer, value.info))
            for bound in bind(call.args, value.info.signature).arguments if changed else ():
                if bound.parameter is not None and bound.parameter.name in changed:
                    yield bound.arg.value
        elif isinstance(value, Function) and value.node not in outer:
            entered = scope.enter(value, call.args)
            changed = _changed_arguments(entered, (*outer, value.node))
            yield from _given(entered, changed).values()
    if isinstance(call.func, cst.Attribute) and scope.owner is not None and scope.self_name is not None:
        method = call.func.attr.value
        if dotted_name(call.func.value) == scope.self_name and method not in outer:
            own = scope.enter_method(scope.owner, method, call.args)
            if own is not None:
                yield from _given(own, _changed_arguments(own, (*outer, method))).values()


def _given(scope: Scope, names: frozenset[str]) -> Mapping[str, cst.BaseExpression]:
    """Return the arguments of the call that ``scope`` was entered by, for some parameters."""
    given = ((name, scope.argument(name)) for name in names)
    return {name: argument[1] for name, argument in given if argument is not None}
