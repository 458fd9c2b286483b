"""Finds side effects of a block's ``forward``, which recomputation repeats."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from gclint.network.activation import is_constant
from gclint.network.binding import bind
from gclint.network.changes import OWN, Origins, global_name
from gclint.network.evaluation.classes import ClassInfo, remembered
from gclint.network.evaluation.scope import Scope
from gclint.network.evaluation.values import External, ExternalInstance, Function, Instance
from gclint.network.evaluation.walk import arguments, dotted_name, walk
from gclint.network.evaluation.walk import is_constant as is_literal
from gclint.network.learned import is_buffer
from gclint.network.reached import Code, reached
from gclint.network.traits import changes_own_state, stores_on_self
from gclint.network.words import words_in
from gclint.verify.worker.vocabulary import CACHE_ARGUMENTS

_RANDOM = re.compile(r"(?:random|numpy\.random|secrets|uuid)\.\w|os\.urandom$")
_GENERATOR = re.compile(r"(?:random|numpy\.random)\.\w+$")
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


def _sets_object(info: ClassInfo, scope: Scope, node: ast.AST) -> bool:
    """Return whether a method of another class, called on something the object holds, sets an attribute."""
    if scope.owner is None or scope.owner in info.mro or not isinstance(node, (ast.Assign, ast.AugAssign)):
        return False
    return any(
        isinstance(target, ast.Attribute) and dotted_name(target.value) == scope.self_name
        for target in (node.targets if isinstance(node, ast.Assign) else (node.target,))
    )


def _kept_for_others(info: ClassInfo) -> Iterator[str]:
    """Yield the attributes that a part stores in its call, if code outside of its class reads them."""
    kept, tree = _kept(info), info.file.tree
    nodes = tuple(walk(tree.module)) if kept and tree is not None else ()
    assigned = {target for node in nodes if isinstance(node, ast.Assign) for target in node.targets}
    read = {
        node.attr
        for node in nodes
        if isinstance(node, ast.Attribute)
        and node.attr in kept
        and node not in assigned
        and _is_of_part(info, node)
    }
    for name in sorted(read):
        yield (
            f"`{info.name}.forward` keeps `{name}` for others, and losses computed from it have no "
            "gradient under reentrant checkpointing"
        )


def _is_of_part(info: ClassInfo, node: ast.Attribute) -> bool:
    """Return whether code outside of a class names an attribute of another object than ``self``."""
    place = info.file.places.start(node)
    if info.definition.start <= place < info.definition.end:
        return False
    around = [each for each in info.file.outline.definitions if each.start <= place < each.end]
    if any(each.name == _INITIALIZING for each in around):
        return False
    own = {each.first_parameter for each in around if each.parent is not None and each.parent.is_class}
    return (dotted_name(node.value) or "") not in own and not any(
        "config" in word for word in words_in(node.value)
    )


def _kept(info: ClassInfo) -> set[str]:
    """Return the attributes to which ``forward`` assigns computed values."""
    return {
        target.attr
        for code in reached(info)
        for node in code.nodes
        if isinstance(node, ast.Assign) and not is_constant(node.value)
        for target in node.targets
        if isinstance(target, ast.Attribute)
        and dotted_name(target.value) == code.scope.self_name
        and not is_buffer(code.scope, target)
    }


# -- checks of one function


def _draws(code: Code) -> Iterator[str]:
    """Yield if random numbers do not come from torch's global generators."""
    if any(_is_drawn(code.scope, call) for call in code.calls):
        yield "draws random numbers that are not torch's, so recomputation draws different ones"
    given = (arg for call in code.calls for arg in arguments(call) if arg.keyword == "generator")
    if any(not is_literal(arg.value, None) for arg in given):
        yield (
            "draws random numbers with a `generator` of its own, whose state checkpointing does not restore, "
            "so recomputation draws different ones"
        )


def _is_drawn(scope: Scope, call: ast.Call) -> bool:
    values = scope.module.resolve(dotted_name(call.func) or "")
    if any(isinstance(value, External) and _RANDOM.match(value.name) for value in values):
        return True
    if not isinstance(call.func, ast.Attribute) or isinstance(call.func.value, ast.Call):
        return False
    made = scope.evaluate(call.func.value)
    return any(isinstance(value, ExternalInstance) and _GENERATOR.match(value.name) for value in made)


def _asks_for_gradients(code: Code) -> Iterator[str]:
    """Yield if the code depends on whether gradients are recorded."""
    asked = next((what for node in code.nodes for what in _asked(code.scope, node)), None)
    if asked is not None:
        yield f"{asked}, but reentrant checkpointing disables them in the forward pass"


def _asked(scope: Scope, node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Call):
        name = dotted_name(node.func) or ""
        called = node.func.attr if isinstance(node.func, ast.Attribute) else name
        if called == "is_grad_enabled":
            yield "checks whether gradients are enabled"
        elif called in _GRADING or name.endswith("autograd.grad"):
            yield f"calls `{called}`, which needs gradients to be enabled"
    elif isinstance(node, (ast.If, ast.IfExp)):
        for each in _tested(node.test):
            if isinstance(each, ast.Attribute) and each.attr in _GRADED:
                root = (dotted_name(each) or "").partition(".")[0]
                if root != scope.self_name:
                    yield f"checks `{each.attr}` of a tensor, and so whether gradients are enabled"


def _tested(test: ast.expr) -> Iterator[ast.expr]:
    waiting = [test]
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, ast.BoolOp):
            waiting += node.values
        elif isinstance(node, ast.UnaryOp):
            waiting.append(node.operand)
        elif isinstance(node, ast.Compare):
            waiting.append(node.left)


def _changes_globals(code: Code) -> Iterator[str]:
    """Yield if a global is changed."""
    if any(isinstance(node, ast.Global) for node in code.nodes):
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
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            func = node.value.func
            name = dotted_name(func)
            is_given = isinstance(func, ast.Name) and scope.parameters.has(func.id)
            if (is_given or _is_held(scope, func)) and not scope.evaluate(func):
                yield f"calls `{name}`, which recomputation repeats"
                return


def _is_held(scope: Scope, func: ast.expr) -> bool:
    """Return whether ``func`` is an attribute of the object that is assigned, not a method."""
    if scope.owner is None or not isinstance(func, ast.Attribute):
        return False
    if dotted_name(func.value) != scope.self_name:
        return False
    return any(
        isinstance(node, ast.Attribute) and node.attr == func.attr and isinstance(node.ctx, ast.Store)
        for base in scope.owner.mro
        for node in base.nodes
    )


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


def _changed_by_called(scope: Scope, call: ast.Call, outer: tuple[object, ...]) -> Iterator[ast.expr]:
    """Yield the arguments of a call that the called module, method or function changes in place."""
    given = arguments(call)
    for value in scope.evaluate(call.func):
        if isinstance(value, Instance) and value.info not in outer and value.info.signature is not None:
            inner = value.info.method_scope("forward")
            changed = frozenset() if inner is None else _changed_arguments(inner, (*outer, value.info))
            for bound in bind(given, value.info.signature).arguments if changed else ():
                if bound.parameter is not None and bound.parameter.name in changed:
                    yield bound.arg.value
        elif isinstance(value, Function) and value.node not in outer:
            entered = scope.enter(value, given)
            changed = _changed_arguments(entered, (*outer, value.node))
            yield from _given(entered, changed).values()
    if isinstance(call.func, ast.Attribute) and scope.owner is not None and scope.self_name is not None:
        method = call.func.attr
        if dotted_name(call.func.value) == scope.self_name and method not in outer:
            own = scope.enter_method(scope.owner, method, given)
            if own is not None:
                yield from _given(own, _changed_arguments(own, (*outer, method))).values()


def _given(scope: Scope, names: frozenset[str]) -> Mapping[str, ast.expr]:
    """Return the arguments of the call that ``scope`` was entered by, for some parameters."""
    given = ((name, scope.argument(name)) for name in names)
    return {name: argument[1] for name, argument in given if argument is not None}
