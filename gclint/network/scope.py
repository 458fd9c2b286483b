"""Evaluating expressions: which classes, instances and containers a name can stand for.

The evaluation is lazy, knows no order of execution, and unites all that a name is ever bound to.
What it cannot follow stands for nothing, so that nothing is claimed about it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst
from libcst.helpers import ensure_type

from gclint.network.values import (
    NOTHING,
    Bound,
    ClassValue,
    Container,
    External,
    ExternalInstance,
    Function,
    Instance,
    Values,
    items_of,
    list_of,
)
from gclint.network.walk import walk_scope
from gclint.source.fragment import Fragment

if TYPE_CHECKING:
    from gclint.network.classes import ClassInfo, Module

_MAX_DEPTH = 4
_CONTAINERS = {"torch.nn.ModuleList", "torch.nn.ModuleDict", "list", "tuple", "reversed", "iter", "sorted"}
_SEQUENCES = {"torch.nn.Sequential"}
_TRANSPARENT = {"copy.deepcopy", "copy.copy", "torch.compile", "torch.jit.script"}
_ADDING_METHODS = {"append", "add", "extend", "insert", "update", "add_module"}
# Looked up by exact type, since most nodes are none of these.
_BINDING_KINDS = frozenset(
    (
        cst.Assign,
        cst.AnnAssign,
        cst.AugAssign,
        cst.NamedExpr,
        cst.For,
        cst.CompFor,
        cst.WithItem,
        cst.FunctionDef,
        cst.Call,
    )
)


@dataclass(frozen=True)
class Binding:
    """One way in which a name gets a value."""

    value: cst.BaseExpression
    path: tuple[int, ...] = ()
    """Positions of the name in nested tuple targets."""
    iterated: bool = False
    """Whether the name stands for an item of the value, as a loop's target does."""
    added: bool = False
    """Whether the value is put into the container that the name stands for."""


class Scope:
    """The names of a function's body, or of a module where ``function`` is None."""

    def __init__(
        self,
        module: Module,
        fragment: Fragment | None,
        function: cst.FunctionDef | cst.Lambda | cst.CSTNode | None,
        *,
        owner: ClassInfo | None = None,
        parent: Scope | None = None,
        arguments: Mapping[str, tuple[Scope, cst.BaseExpression]] | None = None,
        depth: int = 0,
    ) -> None:
        """Open the scope of ``function``.

        Args:
            module: the module that the code stands in.
            fragment: the parsed text that ``function`` is part of.
            function: a function, a lambda or a comprehension.
            owner: the class whose method this is; ``self`` is an instance of it.
            parent: the enclosing function's scope.
            arguments: the expressions that parameters receive, with the scopes they stand in.
            depth: how many calls were followed to come here.
        """
        self.module = module
        self.fragment = fragment
        self.function = function
        self.owner = owner if owner is not None else (parent.owner if parent is not None else None)
        self._parent = parent
        self._arguments = dict(arguments or {})
        self.depth = depth
        self._bindings: dict[str, list[Binding]] | None = None
        self._functions: dict[str, cst.FunctionDef] = {}
        self._memo: dict[cst.CSTNode, Values] = {}
        self._bound_memo: dict[str, Values] = {}
        self._open: set[object] = set()
        self.self_name = self._find_self_name() if owner is not None else None

    def _find_self_name(self) -> str | None:
        if isinstance(self.function, cst.FunctionDef) and self.function.params.params:
            return self.function.params.params[0].name.value
        return None

    @property
    def bindings(self) -> Mapping[str, Sequence[Binding]]:
        """All that each name of the scope is bound to."""
        if self._bindings is None:
            collected: defaultdict[str, list[Binding]] = defaultdict(list)
            if self.function is not None:
                self._collect(collected)
            self._bindings = dict(collected)
        return self._bindings

    def binds(self, name: str) -> bool:
        """Tell whether a name is one of the function's own, or of a function around it."""
        if name in self._arguments or name in self.bindings or name in self._functions:
            return True
        return self._parent is not None and self._parent.binds(name)

    def local_function(self, name: str) -> cst.FunctionDef | None:
        """Return the function that this scope defines under ``name``."""
        return self._functions.get(name) if self.bindings is not None else None

    def _collect(self, collected: defaultdict[str, list[Binding]]) -> None:
        assert self.function is not None
        for node in walk_scope(self.function):
            kind = type(node)
            if kind not in _BINDING_KINDS:
                continue
            if isinstance(node, cst.Assign):
                for target in node.targets:
                    _bind(collected, target.target, Binding(node.value))
            elif isinstance(node, (cst.AnnAssign, cst.AugAssign, cst.NamedExpr)):
                if node.value is not None:
                    _bind(collected, node.target, Binding(node.value))
            elif isinstance(node, (cst.For, cst.CompFor)):
                _bind(collected, node.target, Binding(node.iter, iterated=True))
            elif isinstance(node, cst.WithItem):
                if node.asname is not None and isinstance(node.asname.name, cst.Name):
                    _bind(collected, node.asname.name, Binding(node.item))
            elif isinstance(node, cst.FunctionDef):
                self._functions[node.name.value] = node
            elif isinstance(node, cst.Call):
                _bind_addition(collected, node)

    # -- names

    def name(self, name: str) -> Values:
        """Return what a name stands for here."""
        if name == self.self_name and self.owner is not None:
            return frozenset((Instance(self.owner),))
        if name in self._arguments:
            scope, value = self._arguments[name]
            return scope.evaluate(value) | self.bound(name)
        if name in self.bindings or name in self._functions:
            return self.bound(name)
        if self._parent is not None:
            return self._parent.name(name)
        default = self._default(name)
        return self.module.lookup(name) if default is None else default

    def _default(self, name: str) -> Values | None:
        """Return what a parameter's default stands for; None where ``name`` is no parameter."""
        if isinstance(self.function, cst.FunctionDef):
            for param in parameters(self.function):
                if param.name.value == name:
                    return NOTHING if param.default is None else self.evaluate(param.default)
        return None

    def bound(self, name: str) -> Values:
        """Return what this scope itself binds to a name, or to an attribute (``self.layers``)."""
        known = self._bound_memo.get(name)
        if known is not None:
            return known
        if name in self._open:
            return NOTHING
        self._open.add(name)
        try:
            found: set[object] = set()
            for binding in self.bindings.get(name, ()):
                found |= self._binding_values(binding)
            function = self._functions.get(name)
            if function is not None:
                found.add(Function(function, self))
            values = self._bound_memo[name] = merge_containers(found)
            return values
        finally:
            self._open.discard(name)

    def _binding_values(self, binding: Binding) -> Values:
        if binding.added:
            return list_of(self.evaluate(binding.value))
        value, path = binding.value, binding.path
        if binding.iterated:
            return self._iterated(value, path)
        while path and isinstance(value, (cst.Tuple, cst.List)) and path[0] < len(value.elements):
            value, path = value.elements[path[0]].value, path[1:]
        return self._follow(self.evaluate(value), path)

    def _iterated(self, iterable: cst.BaseExpression, path: tuple[int, ...]) -> Values:
        """Return what the part of a loop's target at ``path`` gets from an iterable."""
        parallel = _parallel_iterables(iterable)
        if parallel is None or not path:
            return self._follow(items_of(self.evaluate(iterable)), path)
        part = parallel[path[0]] if path[0] < len(parallel) else None
        return NOTHING if part is None else self._iterated(part, path[1:])

    @staticmethod
    def _follow(values: Values, path: tuple[int, ...]) -> Values:
        for _ in path:
            values = items_of(values)
        return values

    # -- expressions

    def evaluate(self, node: cst.CSTNode) -> Values:
        """Return what an expression can stand for."""
        known = self._memo.get(node)
        if known is not None:
            return known
        if node in self._open or self.depth > _MAX_DEPTH:
            return NOTHING
        self._open.add(node)
        try:
            values = self._evaluate(node)
        finally:
            self._open.discard(node)
        # Inside a cycle this may lack what the cycle adds, which the name that closes it has anyway.
        self._memo[node] = values
        return values

    def _evaluate(self, node: cst.CSTNode) -> Values:
        if isinstance(node, cst.Name):
            return self.name(node.value)
        if isinstance(node, cst.Attribute):
            return self._attribute(node)
        if isinstance(node, cst.Call):
            return self._call(node)
        if isinstance(node, cst.Subscript):
            values = self.evaluate(node.value)
            is_slice = any(isinstance(element.slice, cst.Slice) for element in node.slice)
            return values if is_slice else items_of(values)
        if isinstance(node, (cst.List, cst.Tuple, cst.Set, cst.Dict)):
            return self._display(node)
        if isinstance(node, (cst.ListComp, cst.GeneratorExp, cst.SetComp, cst.DictComp)):
            inner = Scope(self.module, self.fragment, node, parent=self, depth=self.depth)
            return list_of(inner.evaluate(node.value if isinstance(node, cst.DictComp) else node.elt))
        if isinstance(node, cst.IfExp):
            return self.evaluate(node.body) | self.evaluate(node.orelse)
        if isinstance(node, (cst.BooleanOperation, cst.BinaryOperation)):
            return merge_containers(self.evaluate(node.left) | self.evaluate(node.right))
        if isinstance(node, cst.NamedExpr):
            return self.evaluate(node.value)
        if isinstance(node, cst.Lambda):
            return frozenset((Function(node, self),))
        return NOTHING

    def _display(self, node: cst.List | cst.Tuple | cst.Set | cst.Dict) -> Values:
        found: set[object] = set()
        for element in node.elements:
            if isinstance(element, cst.StarredElement):
                found |= items_of(self.evaluate(element.value))
            elif isinstance(element, (cst.Element, cst.DictElement)):
                found |= self.evaluate(element.value)
        return list_of(frozenset(found))  # type: ignore[arg-type]

    def _attribute(self, node: cst.Attribute) -> Values:
        found: set[object] = set()
        for value in self.evaluate(node.value):
            if isinstance(value, External):
                found.add(External(f"{value.name}.{node.attr.value}"))
            elif isinstance(value, Instance):
                attribute = value.info.attribute(node.attr.value)
                if not attribute and value.info.has_method(node.attr.value):
                    attribute = frozenset((Bound(value, node.attr.value),))
                found |= attribute
            elif isinstance(value, ClassValue):
                found |= value.info.class_attribute(node.attr.value)
        return frozenset(found)  # type: ignore[arg-type]

    def _call(self, node: cst.Call) -> Values:
        if isinstance(node.func, cst.Attribute) and node.func.attr.value in ("values", "items", "modules"):
            return self.evaluate(node.func.value)
        if isinstance(node.func, cst.Name) and node.func.value == "getattr" and len(node.args) >= 2:
            return self._getattr(node)
        found: set[object] = set()
        for value in self.evaluate(node.func):
            if isinstance(value, ClassValue):
                found.add(Instance(value.info))
            elif isinstance(value, External):
                found |= self._external_call(value.name, node)
            elif isinstance(value, Function):
                found |= self.call_function(value, node.args)
            elif isinstance(value, Bound):
                found |= self._method_call(value, node.args)
        return frozenset(found)  # type: ignore[arg-type]

    def _getattr(self, node: cst.Call) -> Values:
        found: set[object] = set()
        name = node.args[1].value
        for value in self.evaluate(node.args[0].value):
            if isinstance(value, Instance):
                if isinstance(name, cst.SimpleString):
                    found |= value.info.attribute(str(name.evaluated_value))
                else:
                    found |= value.info.computed_attributes()
        return frozenset(found)  # type: ignore[arg-type]

    def _external_call(self, name: str, node: cst.Call) -> Values:
        positional = [arg for arg in node.args if arg.keyword is None]
        if name in _CONTAINERS or name in _SEQUENCES:
            items: set[object] = set()
            for arg in positional:
                values = self.evaluate(arg.value)
                items |= items_of(values) if arg.star == "*" or name not in _SEQUENCES else values
            return frozenset((Container(frozenset(items)),))  # type: ignore[arg-type]
        if name == "next" and positional:
            return items_of(self.evaluate(positional[0].value))
        if name in _TRANSPARENT and positional:
            return self.evaluate(positional[0].value)
        if name == "functools.partial" and positional:
            return self._partial(node)
        if name.rpartition(".")[2][:1].isupper():
            return frozenset((ExternalInstance(name),))
        return NOTHING

    def _partial(self, node: cst.Call) -> Values:
        keywords = tuple(arg for arg in node.args[1:] if arg.keyword is not None or arg.star == "**")
        found: set[object] = set()
        for value in self.evaluate(node.args[0].value):
            if isinstance(value, Bound):
                found.add(Bound(value.instance, value.method, value.keywords + keywords))
            elif isinstance(value, Instance):
                found.add(Bound(value, "__call__", keywords))
            else:
                found.add(value)
        return frozenset(found)  # type: ignore[arg-type]

    def _method_call(self, bound: Bound, args: Sequence[cst.Arg]) -> Values:
        if bound.method in ("__call__", "forward"):
            return NOTHING  # what a block computes is no block
        scope = bound.instance.info.method_scope(bound.method)
        if scope is None or not isinstance(scope.function, cst.FunctionDef):
            return NOTHING
        return self._returned(scope.function, scope, args, skip_self=True)

    def call_function(self, function: Function, args: Sequence[cst.Arg]) -> Values:
        """Return what calling ``function`` with these arguments can give."""
        return self._returned(function.node, function.scope, args, skip_self=False)

    def enter(
        self, node: cst.FunctionDef | cst.Lambda, scope: Scope, args: Sequence[cst.Arg], skip_self: bool
    ) -> Scope:
        """Return the scope of a function's body in a call from this scope."""
        names = [param.name.value for param in parameters(node)][1 if skip_self else 0 :]
        arguments: dict[str, tuple[Scope, cst.BaseExpression]] = {}
        for index, arg in enumerate(args):
            if arg.keyword is not None:
                arguments[arg.keyword.value] = (self, arg.value)
            elif not arg.star and index < len(names):
                arguments[names[index]] = (self, arg.value)
        return Scope(
            scope.module,
            scope.fragment,
            node,
            owner=scope.owner if skip_self else None,
            parent=None if skip_self else scope,
            arguments=arguments,
            depth=self.depth + 1,
        )

    def _returned(
        self, node: cst.FunctionDef | cst.Lambda, scope: Scope, args: Sequence[cst.Arg], *, skip_self: bool
    ) -> Values:
        if self.depth > _MAX_DEPTH:
            return NOTHING
        inner = self.enter(node, scope, args, skip_self)
        if isinstance(node, cst.Lambda):
            return inner.evaluate(node.body)
        found: set[object] = set()
        for child in walk_scope(node.body):
            if isinstance(child, cst.Return) and child.value is not None:
                found |= inner.evaluate(child.value)
        return frozenset(found)  # type: ignore[arg-type]


def parameters(function: cst.FunctionDef | cst.Lambda) -> list[cst.Param]:
    """Return a function's parameters that can be given by name or position, in their order."""
    params = function.params
    return [*params.posonly_params, *params.params, *params.kwonly_params]


def merge_containers(values: Iterable[object]) -> Values:
    """Unite lists that one name stands for, since ``append`` fills the list that was assigned."""
    rest: set[object] = set()
    items: set[object] = set()
    has_container = False
    for value in values:
        if isinstance(value, Container):
            items |= value.items
            has_container = True
        else:
            rest.add(value)
    if has_container:
        rest.add(Container(frozenset(items)))  # type: ignore[arg-type]
    return frozenset(rest)  # type: ignore[arg-type]


def _bind(collected: defaultdict[str, list[Binding]], target: cst.CSTNode, binding: Binding) -> None:
    """Record what an assignment to ``target`` gives its names."""
    if isinstance(target, cst.Name):
        collected[target.value].append(binding)
    elif isinstance(target, (cst.Tuple, cst.List)):
        for index, element in enumerate(target.elements):
            _bind(
                collected,
                element.value,
                Binding(binding.value, (*binding.path, index), binding.iterated),
            )
    elif isinstance(target, cst.Subscript):
        key = _container_key(target.value)
        if key is not None:
            collected[key].append(Binding(binding.value, binding.path, binding.iterated, added=True))
    elif isinstance(target, cst.Attribute):
        key = _container_key(target)
        if key is not None:
            collected[key].append(binding)


def _bind_addition(collected: defaultdict[str, list[Binding]], call: cst.Call) -> None:
    """Record ``name.append(value)`` and its like, and ``setattr(self, …, value)``."""
    if isinstance(call.func, cst.Name) and call.func.value == "setattr" and len(call.args) == 3:
        holder = _container_key(call.args[0].value)
        attribute = call.args[1].value
        if holder is not None:
            literal = isinstance(attribute, cst.SimpleString)
            name = str(ensure_type(attribute, cst.SimpleString).evaluated_value) if literal else "*"
            collected[f"{holder}.{name}"].append(Binding(call.args[2].value))
        return
    if not isinstance(call.func, cst.Attribute) or call.func.attr.value not in _ADDING_METHODS or not call.args:
        return
    key = _container_key(call.func.value)
    if key is None:
        return
    method, value = call.func.attr.value, call.args[-1].value
    if method == "add_module" and "." not in key:
        collected[f"{key}.*"].append(Binding(value))
    elif method in ("extend", "update"):
        collected[key].append(Binding(value))
    else:
        collected[key].append(Binding(value, added=True))


def _container_key(node: cst.CSTNode) -> str | None:
    """Return under which key bindings keep a name (``layers``) or an attribute (``self.layers``)."""
    if isinstance(node, cst.Name):
        return node.value
    if isinstance(node, cst.Attribute) and isinstance(node.value, cst.Name):
        return f"{node.value.value}.{node.attr.value}"
    if isinstance(node, cst.Subscript):
        return _container_key(node.value)
    return None


def _parallel_iterables(node: cst.CSTNode) -> list[cst.BaseExpression | None] | None:
    """Return what ``enumerate(x)`` or ``zip(x, y)`` hands to each part of a loop's target."""
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Name):
        values: list[cst.BaseExpression | None] = [arg.value for arg in node.args if arg.keyword is None]
        if node.func.value == "enumerate" and values:
            return [None, values[0]]
        if node.func.value == "zip":
            return values
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.func.attr.value == "items":
        return [None, node.func.value]
    return None
