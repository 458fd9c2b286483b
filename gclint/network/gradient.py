"""Traces the values of arguments back through a file, to find out whether they require grad."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import Flag, auto

from gclint.code.walk import COMPREHENSIONS, Comprehension, arguments, dotted_name, is_constant
from gclint.network.assignments import Assignment, assignments, entries_at, names_needed
from gclint.network.binding import bind
from gclint.network.callers import Callers
from gclint.network.dataflow import CUTTING_ATTRIBUTES, CUTTING_METHODS
from gclint.network.evaluation.body import Body, unstarred
from gclint.network.evaluation.reaching import Entry
from gclint.network.evaluation.scope import Scope, is_property, parallel_iterables
from gclint.network.evaluation.signature import method_signature
from gclint.network.evaluation.values import (
    Container,
    EvaluatedExternal,
    EvaluatedFunction,
    EvaluatedMethod,
    ExternalInstance,
    Instance,
    Value,
)
from gclint.network.learned import (
    KEEPING_BUILTINS,
    KEEPING_METHODS,
    MIXING_METHODS,
    PARAMETER,
    PARAMETERS,
    SAME_ATTRIBUTES,
    hands_on,
    is_constant_buffer,
    is_frozen,
    is_learned_module,
    is_learned_value,
    is_unrecorded,
    makes_constants,
)
from gclint.network.runsite import RunSite
from gclint.network.search import RUNNING_METHODS

_ANY = -1
"""An index that stands for some item when it is not known which."""
_MAX_DEPTH = 3
_MAX_NAMES = 60
_MAX_STEPS = 200
_STATES = re.compile(r"(?:^|_)hidden_states?$|(?:^|_)attention_states$")
_Path = tuple[int, ...]
_Key = tuple[Scope, str, frozenset[Entry], _Path]


class Carries(Flag):
    """What a value may be, on all paths that lead to its use; ``NOTHING`` if it is always None."""

    NOTHING = 0
    CONSTANT = auto()
    """Something that does not require grad."""
    UNKNOWN = auto()
    GRADIENT = auto()
    """A tensor that is computed from parameters, and so requires grad."""
    NESTED = auto()
    """A list, tuple or dict that contains such a tensor."""


@dataclass(frozen=True)
class GradientOrigin:
    """An expression where a gradient originates: a parameter, or the output of a module with parameters."""

    scope: Scope
    node: ast.expr


class Gradients:
    """Traces values back to the parameters that they are computed from."""

    def __init__(self, callers: Callers, named: Collection[str]) -> None:
        """Prepare to trace values in one file; users say that the ``named`` parameters get activations."""
        self.named = named
        self.callers = callers
        self._known: dict[_Key, Carries] = {}
        self._open: list[_Key] = []
        self._met: set[_Key] = set()
        self._steps = 0
        self._entered: dict[tuple[Scope, ast.Call, Value], Scope | None] = {}
        self._origins: dict[ast.expr, GradientOrigin] | None = None
        """The origins that were met, if they are to be collected."""

    def at(self, site: RunSite, value: ast.expr) -> Carries:
        """Return what an argument of a call site carries."""
        self._steps = 0
        return self.of(site.scope, value)

    def origins(self, site: RunSite, value: ast.expr) -> tuple[GradientOrigin, ...]:
        """Return the origins of the gradients that an argument of a call site carries, the nearest first."""
        # A new tracer, since this one would not visit again what it has already judged.
        tracer = Gradients(self.callers, self.named)
        tracer._origins = {}
        tracer.at(site, value)
        return tuple(tracer._origins.values())

    def _begun(self, scope: Scope, node: ast.expr) -> Carries:
        """Record an expression as the origin of a gradient, and return what it carries."""
        if self._origins is not None:
            self._origins.setdefault(node, GradientOrigin(scope, node))
        return Carries.GRADIENT

    def of(self, scope: Scope, value: ast.expr, path: _Path = ()) -> Carries:
        """Return what an expression carries, or what is at a path of indices in its result."""
        if isinstance(value, ast.Name):
            return self._name(scope, value.id, value, path)
        if is_constant(value, None):
            return Carries.NOTHING
        if isinstance(value, ast.IfExp):
            sides = [(value.body, True), (value.orelse, False)]
            alive = [side for side, holds in sides if not self._is_dead(scope, value.test, holds)]
            return united(self.of(scope, side, path) for side in alive)
        if isinstance(value, ast.Call):
            return self._call(scope, value, path)
        if isinstance(value, ast.Subscript):
            return self._subscript(scope, value, path)
        if path and isinstance(value, (ast.Tuple, ast.List)):
            return self._element(scope, value, path)
        if path and isinstance(value, (ast.ListComp, ast.GeneratorExp)):
            return self.of(inside(scope, value), value.elt, path[1:])
        found = self._whole(scope, value)
        return _items(found) if path else found

    def _whole(self, scope: Scope, value: ast.expr) -> Carries:
        """Return what an expression carries as a whole, without distinguishing its items."""
        if isinstance(value, ast.Attribute):
            return self._attribute(scope, value)
        if isinstance(value, ast.BinOp):
            return self.of(scope, value.left) | self.of(scope, value.right)
        if isinstance(value, ast.BoolOp):
            return united(self.of(scope, each) for each in value.values)
        if isinstance(value, ast.UnaryOp) and not isinstance(value.op, ast.Not):
            return self.of(scope, value.operand)
        if isinstance(value, (ast.Tuple, ast.List, ast.Set)):
            return _container(united(self.of(scope, unstarred(each)) for each in value.elts))
        if isinstance(value, ast.Dict):
            return _container(united(self.of(scope, each) for each in value.values))
        if isinstance(value, COMPREHENSIONS):
            item = value.value if isinstance(value, ast.DictComp) else value.elt
            return _container(self.of(inside(scope, value), item))
        if isinstance(value, ast.NamedExpr):
            return self.of(scope, value.value)
        constants = (ast.Compare, ast.Constant, ast.UnaryOp, ast.JoinedStr, ast.Lambda)
        return Carries.CONSTANT if isinstance(value, constants) else Carries.UNKNOWN

    def _element(self, scope: Scope, value: ast.Tuple | ast.List, path: _Path) -> Carries:
        """Return what an item of a list or tuple display carries."""
        before = value.elts[: path[0] + 1] if path[0] >= 0 else []
        if len(before) > path[0] >= 0 and not any(isinstance(each, ast.Starred) for each in before):
            return self.of(scope, before[-1], path[1:])
        return united(self.of(scope, unstarred(each), path[1:]) for each in value.elts)

    # -- names

    def _name(self, scope: Scope, name: str, at: ast.AST | None, path: _Path) -> Carries:
        """Return what a name carries, or what is at a path in it, where a node uses it."""
        if name == scope.self_name:
            return Carries.CONSTANT
        key = scope, name, entries_at(scope, name, at), path
        if key in self._open:
            self._met.add(key)
            return Carries.NOTHING
        if key in self._known:
            return self._known[key]
        self._steps += 1
        if len(self._open) >= _MAX_NAMES or self._steps > _MAX_STEPS:
            return Carries.UNKNOWN
        self._open.append(key)
        found = self._bound(scope, name, key[2], path)
        self._open.pop()
        self._met.discard(key)
        # Inside a cycle, the result is incomplete until the name that began the cycle is finished.
        if not self._met:
            self._known[key] = found
        return found

    def _bound(self, scope: Scope, name: str, entries: frozenset[Entry], path: _Path) -> Carries:
        """Return what a name carries, over all assignments and arguments that may reach a place."""
        given = assignments(scope, name, entries)
        argument = scope.argument(name)
        found = Carries.NOTHING
        if entries and None not in entries:
            pass  # The argument has been replaced.
        elif argument is not None:
            found = self.of(*argument, path)
        elif scope.parameters.has(name):
            found = self._parameter(scope, name, path)
        elif not given:
            return self._free(scope, name, path)
        filled = any(each.makes_container for each in given)
        for each in given:
            if not each.requires(name):
                found |= self._assigned(scope, each, path, filled)
        # An assignment that requires the name not to be None cannot run if it is always None.
        for each in given if found else ():
            if each.requires(name):
                found |= self._assigned(scope, each, path, filled)
        return found

    def _assigned(self, scope: Scope, assignment: Assignment, path: _Path, filled: bool) -> Carries:
        place = assignment.place
        if any(self._is_dead(scope, arm.node.test, arm.taken) for arm in place.arms):
            return Carries.NOTHING
        if not place.records:
            return Carries.CONSTANT
        binding = assignment.binding
        if binding.added:
            if filled:
                item = self.of(scope, binding.value, path[1:])
                return item if path else _container(item)
            return self.of(scope, binding.value)
        if binding.iterated:
            return self._iterated(scope, binding.value, (*binding.path, *path))
        return self.of(scope, binding.value, (*binding.path, *path))

    def _iterated(self, scope: Scope, iterable: ast.expr, path: _Path) -> Carries:
        parallel = parallel_iterables(iterable)
        if parallel is None or not path:
            return self.of(scope, iterable, (_ANY, *path))
        part = parallel[path[0]] if path[0] < len(parallel) else None
        return Carries.CONSTANT if part is None else self._iterated(scope, part, path[1:])

    def _is_dead(self, scope: Scope, test: ast.expr, holds: bool) -> bool:
        """Return whether a side of a condition is never reached, because a name is always None."""
        return any(
            all(key[:2] != (scope, each.id) for key in self._open)
            and not self._name(scope, each.id, each, ())
            for each in names_needed(test, holds)
        )

    def _free(self, scope: Scope, name: str, path: _Path) -> Carries:
        """Return what a name carries if the scope itself does not bind it."""
        if scope.parent is not None:
            # A function may run later than where it is defined.
            return self._name(scope.parent, name, None, path)
        return Carries.CONSTANT if scope.module.lookup(name) else Carries.UNKNOWN

    def _parameter(self, scope: Scope, name: str, path: _Path) -> Carries:
        """Return what a parameter carries, according to the calls in the file."""
        default = scope.parameters.default(name)
        unpassed = Carries.UNKNOWN if default is None else self.of(scope, default)
        method = scope.body.definition
        if scope.depth or method is None or scope.owner is None:
            return unpassed
        signature = method_signature(method)
        callers = self.callers.of(scope.owner, method.name)
        if signature is None or not callers:
            return Carries.UNKNOWN
        found = Carries.NOTHING
        for caller in callers:
            binding = bind(caller.args, signature)
            bound = binding.argument(name)
            if bound is not None:
                found |= self.of(caller.scope, bound.arg.value, path)
            else:
                found |= Carries.UNKNOWN if binding.unpacks_list else unpassed
        is_open = self.callers.may_be_elsewhere(scope.owner, method.name, only_users=bool(found))
        return found | Carries.UNKNOWN if is_open else found

    # -- attributes and items

    def _attribute(self, scope: Scope, node: ast.Attribute) -> Carries:
        name = node.attr
        if name in CUTTING_ATTRIBUTES or "config" in (dotted_name(node) or "").split("."):
            return Carries.CONSTANT
        if name in SAME_ATTRIBUTES:
            return self.of(scope, node.value)
        values = scope.evaluate(node)
        if ExternalInstance(PARAMETER) in values:
            return Carries.CONSTANT if is_frozen(scope, node) else self._begun(scope, node)
        if any(map(_holds_parameters, values)):
            return _container(self._begun(scope, node))
        if name == "weight" and any(map(is_learned_value, scope.evaluate(node.value))):
            return self._begun(scope, node)
        computed = [each for each in values if isinstance(each, EvaluatedMethod) and _is_property(each)]
        if computed:
            return united(self._computed(scope, each) for each in computed)
        if values or is_constant_buffer(scope, node):
            return Carries.CONSTANT
        if _STATES.search(name) and Carries.GRADIENT in self.of(scope, node.value):
            return Carries.GRADIENT
        return Carries.UNKNOWN

    def _computed(self, scope: Scope, called: EvaluatedMethod) -> Carries:
        """Return what the value of a property carries."""
        inner = scope.enter_method(called.instance.info, called.method, ())
        if inner is None or scope.depth >= _MAX_DEPTH:
            return Carries.UNKNOWN
        return united(self.of(inner, value) for value in inner.returns())

    def _subscript(self, scope: Scope, node: ast.Subscript, path: _Path) -> Carries:
        index = node.slice
        if isinstance(index, ast.Constant) and type(index.value) is int:
            return self.of(scope, node.value, (index.value, *path))
        return self.of(scope, node.value, path if isinstance(index, ast.Slice) else (_ANY, *path))

    # -- calls

    def _call(self, scope: Scope, call: ast.Call, path: _Path) -> Carries:
        method = call.func.attr if isinstance(call.func, ast.Attribute) else None
        if method in CUTTING_METHODS:
            return Carries.CONSTANT
        values = scope.evaluate(call.func)
        if values:
            return united(self._result(scope, call, value, path) for value in values)
        if not isinstance(call.func, ast.Attribute):
            return Carries.UNKNOWN
        if method in KEEPING_METHODS:
            found = self.of(scope, call.func.value)
            return _items(found) if path else found
        if method in MIXING_METHODS:
            return self.of(scope, call.func.value) | self._arguments(scope, call)
        return Carries.UNKNOWN

    def _arguments(self, scope: Scope, call: ast.Call) -> Carries:
        return united(_items(self.of(scope, arg.value)) for arg in arguments(call))

    def _result(self, scope: Scope, call: ast.Call, called: Value, path: _Path) -> Carries:
        """Return what a call carries if it calls ``called``."""
        if isinstance(called, EvaluatedMethod) and called.method in RUNNING_METHODS:
            called = called.instance
        if isinstance(called, Instance):
            return self._module(scope, call, EvaluatedMethod(called, "forward"), path)
        if isinstance(called, (EvaluatedMethod, EvaluatedFunction)):
            return self._returned(scope, call, called, path)
        if isinstance(called, ExternalInstance):
            if is_learned_module(called.name):
                return self._begun(scope, call)
            return self._arguments(scope, call) if hands_on(called.name) else Carries.UNKNOWN
        if isinstance(called, EvaluatedExternal):
            return self._external(scope, call, called.name, path)
        # Since a list cannot be called, it is an `nn.Sequential`.
        is_learned = isinstance(called, Container) and any(map(is_learned_value, called.items))
        return self._begun(scope, call) if is_learned else Carries.UNKNOWN

    def _external(self, scope: Scope, call: ast.Call, name: str, path: _Path) -> Carries:
        if makes_constants(name):
            return Carries.CONSTANT
        given = arguments(call)
        if name in KEEPING_BUILTINS and given:
            return self.of(scope, given[0].value, path)
        return self._arguments(scope, call) if hands_on(name) else Carries.UNKNOWN

    def _module(self, scope: Scope, call: ast.Call, forward: EvaluatedMethod, path: _Path) -> Carries:
        """Return what the output of a module carries: the first item requires grad if it has parameters."""
        if all(each <= 0 for each in path) and is_learned_value(forward.instance):
            return self._begun(scope, call)
        return self._returned(scope, call, forward, path)

    def _returned(
        self, scope: Scope, call: ast.Call, called: EvaluatedMethod | EvaluatedFunction, path: _Path
    ) -> Carries:
        """Return what the result of a function of the project carries in this call."""
        if is_unrecorded(called):
            return Carries.CONSTANT
        inner = self._enter(scope, call, called)
        if inner is None:
            return Carries.UNKNOWN
        if isinstance(called, EvaluatedFunction) and isinstance(called.node, ast.Lambda):
            return self.of(inner, called.node.body, path)
        returns = list(inner.returns())
        found = united(self.of(inner, value, path) for value in returns)
        return found if returns else Carries.UNKNOWN

    def _enter(
        self, scope: Scope, call: ast.Call, called: EvaluatedMethod | EvaluatedFunction
    ) -> Scope | None:
        if scope.depth >= _MAX_DEPTH:
            return None
        key = scope, call, called
        if key not in self._entered:
            given = arguments(call)
            if isinstance(called, EvaluatedFunction):
                self._entered[key] = scope.enter(called, given)
            else:
                self._entered[key] = scope.enter_method(called.instance.info, called.method, given)
        return self._entered[key]


def _is_property(called: EvaluatedMethod) -> bool:
    """Return whether a method is a property."""
    found = called.instance.info.find_method(called.method)
    return found is not None and is_property(found[1].function)


def _holds_parameters(value: Value) -> bool:
    """Return whether a value is a list, tuple or dict of parameters."""
    if isinstance(value, Container):
        return ExternalInstance(PARAMETER) in value.items or any(map(_holds_parameters, value.items))
    return isinstance(value, ExternalInstance) and value.name in PARAMETERS


def inside(scope: Scope, value: Comprehension) -> Scope:
    """Return the scope in which the item of a comprehension is evaluated."""
    body = Body(scope.module.file, [value])
    return Scope(scope.module, body, parent=scope, depth=scope.depth)


def united(found: Iterable[Carries]) -> Carries:
    """Return what a value carries that is one of several."""
    result = Carries.NOTHING
    for each in found:
        result |= each
    return result


def _container(items: Carries) -> Carries:
    """Return what a list, tuple or dict of such items carries."""
    held = Carries.NESTED if items & (Carries.GRADIENT | Carries.NESTED) else Carries.CONSTANT
    return held | (items & Carries.UNKNOWN)


def _items(found: Carries) -> Carries:
    """Return what an item of such a value carries."""
    return (found & ~Carries.NESTED) | Carries.GRADIENT if Carries.NESTED in found else found
