"""Evaluates expressions to the classes, instances and containers that they may be.

The evaluation is lazy. The values of a name are those of the bindings that reach the place where it is used;
the values of an attribute are those of all its bindings. What cannot be followed has no values, so that
nothing is claimed about it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from gclint.code.names import names
from gclint.code.tree import Tree
from gclint.code.walk import (
    COMPREHENSIONS,
    FUNCTIONS,
    Arg,
    FunctionNode,
    arguments,
    dotted_name,
    text_of,
)
from gclint.network.evaluation.body import COMPUTED, Body, NameBinding, unstarred
from gclint.network.evaluation.reaching import Entry, Reaching
from gclint.network.evaluation.signature import Parameters
from gclint.network.evaluation.values import (
    NOTHING,
    ClassValue,
    Container,
    EvaluatedExternal,
    EvaluatedFunction,
    EvaluatedMethod,
    ExternalInstance,
    Instance,
    ModuleValue,
    Values,
    items_of,
    list_of,
    merge_containers,
)

if TYPE_CHECKING:
    from gclint.network.evaluation.classes import ClassInfo
    from gclint.network.evaluation.modules import ModuleInfo

_MAX_DEPTH = 4
_CONTAINERS = names(
    """
    itertools.chain itertools.islice iter list reversed sorted torch.nn.ModuleDict
    torch.nn.ModuleList tuple
    """
)
_PROPERTIES = ("property", "cached_property", "functools.cached_property", "functools.property")
_TAKING = ("pop", "popleft")
_SEQUENCES = {"torch.nn.Sequential"}
_TRANSPARENT = {"copy.deepcopy", "copy.copy", "torch.compile", "torch.jit.script"}
_MAKING = {"numpy.random.default_rng"}
"""Functions that create an instance of a class with another name."""


class Scope:
    """The names in a function or comprehension; without a body, those of a module."""

    def __init__(
        self,
        module: ModuleInfo,
        body: Body | None,
        *,
        owner: ClassInfo | None = None,
        parent: Scope | None = None,
        self_name: str | None = None,
        parameters: Parameters | None = None,
        arguments: Mapping[str, tuple[Scope, ast.expr]] | None = None,
        depth: int = 0,
        place: ast.AST | None = None,
        tree: Tree | None = None,
    ) -> None:
        """Open a scope: without a ``body``, that of the module itself.

        A method has an ``owner``, a ``self_name`` for its first parameter, and the ``tree`` that it is part
        of, which is held: another tree of the same text would have other nodes. What is inside of a function
        has a ``parent`` and a ``place`` in its code. The ``arguments`` are what parameters receive, each with
        the scope to evaluate it in, after ``depth`` calls were followed to get here.
        """
        self.module = module
        self.body = Body(module.file, ()) if body is None else body
        self.owner: ClassInfo | None = owner or (parent.owner if parent is not None else None)
        self.self_name = self_name
        self.parameters = parameters or Parameters()
        self.depth = depth
        self.parent = parent
        self._place = place
        self._tree = tree
        self._arguments = dict(arguments or {})
        self._memo: dict[ast.AST, Values] = {}
        self._bound_memo: dict[str, Values] = {}
        self._reaching: dict[str, Reaching] = {}
        self._open: set[object] = set()

    def forget(self) -> None:
        """Clear the caches, whose functions refer to this scope, so that it can be freed."""
        self._memo.clear()
        self._bound_memo.clear()
        self._reaching.clear()

    def argument(self, name: str) -> tuple[Scope, ast.expr] | None:
        """Return the expression that a parameter receives in the call that led here, with its scope."""
        return self._arguments.get(name)

    def bindings(self, name: str) -> Sequence[NameBinding]:
        """Return the bindings of a name, or of an attribute (``self.layers``), in this scope itself."""
        return self.body.bindings.get(name, ())

    def binds(self, name: str) -> bool:
        """Return whether this scope itself binds a name."""
        return name in self.body.bindings or name in self.body.functions

    def local_function(self, name: str, at: ast.AST | None = None) -> EvaluatedFunction | None:
        """Return the function that this scope defines as ``name`` and that reaches the place ``at``."""
        entries = self.reaching(name, at)
        if entries:
            reaching = [entry for entry in entries if isinstance(entry, FUNCTIONS)]
            return EvaluatedFunction(reaching[0], self) if len(reaching) == 1 else None
        functions = self.body.functions.get(name, ())
        return EvaluatedFunction(functions[-1], self) if functions else None

    # -- names

    def name(self, name: str, at: ast.AST | None = None) -> Values:
        """Return the possible values of a name; not all of several bindings may reach the node ``at``."""
        if name == self.self_name and self.owner is not None:
            return frozenset((Instance(self.owner),))
        entries = self.reaching(name, at)
        if entries:
            return self._entry_values(name, entries)
        if name in self._arguments:
            return self._given(name) | self.bound(name)
        values = self.bound(name)
        if values or self.binds(name):
            return values
        if self.parameters.has(name):
            return self._given(name)
        return self.module.lookup(name) if self.parent is None else self.parent.name(name, self._place)

    def reaching(self, name: str, at: ast.AST | None) -> frozenset[Entry]:
        """Return which of several bindings of a name reach a place; empty if all of them may."""
        if at is None:
            return frozenset()
        known = self._reaching.get(name)
        if known is None:
            ways = (*self.bindings(name), *self.body.functions.get(name, ()))
            nodes = self.body.roots if len(ways) + self.parameters.has(name) > 1 else ()
            known = self._reaching[name] = Reaching(name, nodes)
        return known.at(at)

    def _entry_values(self, name: str, entries: frozenset[Entry]) -> Values:
        found: set[object] = set()
        for entry in entries:
            if isinstance(entry, NameBinding):
                found |= self._binding_values(entry) or self._handed_through(name, entry)
            elif entry is not None:
                found.add(EvaluatedFunction(entry, self))
            else:
                found |= self._given(name)
        return merge_containers(found)

    def _given(self, name: str) -> Values:
        """Return the values of what a parameter receives in the call that led here, or of its default."""
        if name in self._arguments:
            scope, value = self._arguments[name]
            return scope.evaluate(value)
        default = self.parameters.default(name) if self.parameters.has(name) else None
        return NOTHING if default is None else self.evaluate(default)

    def _handed_through(self, name: str, binding: NameBinding) -> Values:
        """Return the previous values of a name that an unknown function wraps: ``layer = wrap(layer)``."""
        if binding.iterated or not isinstance(binding.value, ast.Call):
            return NOTHING
        found: set[object] = set()
        for arg in arguments(binding.value):
            if dotted_name(arg.value) == name:
                found |= self.evaluate(arg.value)
        return frozenset(found)  # type: ignore[arg-type]

    def bound(self, name: str) -> Values:
        """Return the values that this scope itself binds to a name, or an attribute (``self.layers``)."""
        known = self._bound_memo.get(name)
        if known is not None:
            return known
        if name in self._open:
            return NOTHING
        self._open.add(name)
        try:
            found: set[object] = set()
            for binding in self.bindings(name):
                found |= self._binding_values(binding)
            function = self.local_function(name)
            if function is not None:
                found.add(function)
            values = self._bound_memo[name] = merge_containers(found)
            return values
        finally:
            self._open.discard(name)

    def _binding_values(self, binding: NameBinding) -> Values:
        if binding.added:
            return list_of(self.evaluate(binding.value))
        if binding.iterated:
            return self._iterated(binding.value, binding.path)
        value, path = binding.unpacked
        return self._follow(self.evaluate(value), path)

    def _iterated(self, iterable: ast.expr, path: tuple[int, ...]) -> Values:
        """Return the values that the part of a loop's target at ``path`` gets from an iterable."""
        parallel = parallel_iterables(iterable)
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

    def evaluate(self, node: ast.AST) -> Values:
        """Return the possible values of an expression."""
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
        # Inside a cycle the values may be incomplete, but the name that closes the cycle has the others.
        self._memo[node] = values
        return values

    def _evaluate(self, node: ast.AST) -> Values:
        if isinstance(node, ast.Name):
            return self.name(node.id, node)
        if isinstance(node, ast.Attribute):
            return self._attribute(node)
        if isinstance(node, ast.Call):
            return self._call(node)
        if isinstance(node, ast.Subscript):
            values = self.evaluate(node.value)
            indices = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            return values if any(isinstance(each, ast.Slice) for each in indices) else items_of(values)
        if isinstance(node, (ast.List, ast.Tuple, ast.Set, ast.Dict)):
            return self._display(node)
        if isinstance(node, COMPREHENSIONS):
            body = Body(self.module.file, [node])
            inner = Scope(self.module, body, parent=self, depth=self.depth, place=node)
            return list_of(inner.evaluate(node.value if isinstance(node, ast.DictComp) else node.elt))
        if isinstance(node, ast.IfExp):
            return self.evaluate(node.body) | self.evaluate(node.orelse)
        if isinstance(node, ast.BoolOp):
            return merge_containers(value for each in node.values for value in self.evaluate(each))
        if isinstance(node, ast.BinOp):
            # Of what may be added or multiplied, only containers are of interest.
            both = self.evaluate(node.left) | self.evaluate(node.right)
            return merge_containers(each for each in both if isinstance(each, Container))
        if isinstance(node, ast.NamedExpr):
            return self.evaluate(node.value)
        if isinstance(node, ast.Lambda):
            return frozenset((EvaluatedFunction(node, self),))
        return NOTHING

    def _display(self, node: ast.List | ast.Tuple | ast.Set | ast.Dict) -> Values:
        found: set[object] = set()
        if isinstance(node, ast.Dict):
            pairs = zip(node.keys, node.values, strict=True)
            elements = [value for key, value in pairs if key is not None]
        else:
            elements = node.elts
        for element in elements:
            if isinstance(element, ast.Starred):
                found |= items_of(self.evaluate(element.value))
            else:
                found |= self.evaluate(element)
        return list_of(frozenset(found))  # type: ignore[arg-type]

    def _attribute(self, node: ast.Attribute) -> Values:
        found: set[object] = set()
        for value in self.evaluate(node.value):
            if isinstance(value, EvaluatedExternal):
                found.add(EvaluatedExternal(f"{value.name}.{node.attr}"))
            elif isinstance(value, ModuleValue):
                found |= value.module.member(node.attr, value.name)
            elif isinstance(value, Instance):
                attribute = value.info.attribute(node.attr)
                found |= attribute or self._method(value, node.attr)
            elif isinstance(value, ClassValue):
                found |= value.info.class_attribute(node.attr)
        return frozenset(found)  # type: ignore[arg-type]

    def _method(self, instance: Instance, name: str) -> Values:
        """Return a method of an object; for a property that returns a stack, the values that it returns.

        Every module has ``__call__``.
        """
        found = instance.info.find_method(name)
        if found is None and name != "__call__":
            return NOTHING
        if found is not None and is_property(found[1].function):
            inner = self.enter_method(instance.info, name, ())
            given = NOTHING if inner is None else inner.returned()
            if any(isinstance(value, Container) for value in given):
                return given
        return frozenset((EvaluatedMethod(instance, name),))

    def _call(self, node: ast.Call) -> Values:
        func, given = node.func, arguments(node)
        if isinstance(func, ast.Attribute) and func.attr in ("values", "items", "modules"):
            return self.evaluate(func.value)
        if isinstance(func, ast.Attribute) and func.attr in _TAKING:
            return items_of(self.evaluate(func.value))
        if isinstance(func, ast.Name) and func.id == "getattr" and len(given) >= 2:
            return self._getattr(given)
        found: set[object] = set()
        for value in self.evaluate(func):
            if isinstance(value, ClassValue):
                found.add(Instance(value.info))
            elif isinstance(value, EvaluatedExternal):
                found |= self._external_call(value.name, given)
            elif isinstance(value, EvaluatedFunction):
                found |= self.call_function(value, given)
            # The output of a block is not a block.
            elif isinstance(value, EvaluatedMethod) and value.method not in ("__call__", "forward"):
                inner = self.enter_method(value.instance.info, value.method, given)
                found |= NOTHING if inner is None else inner.returned()
        return frozenset(found)  # type: ignore[arg-type]

    def _getattr(self, given: Sequence[Arg]) -> Values:
        found: set[object] = set()
        name = text_of(given[1].value)
        for value in self.evaluate(given[0].value):
            if isinstance(value, Instance):
                found |= value.info.attribute(COMPUTED if name is None else name)
        return frozenset(found)  # type: ignore[arg-type]

    def _external_call(self, name: str, given: Sequence[Arg]) -> Values:
        positional = [arg for arg in given if arg.keyword is None]
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
            return self._partial(given)
        if name.rpartition(".")[2][:1].isupper() or name in _MAKING:
            return frozenset((ExternalInstance(name),))
        return NOTHING

    def _partial(self, given: Sequence[Arg]) -> Values:
        keywords = tuple(arg for arg in given[1:] if arg.keyword is not None or arg.star == "**")
        found: set[object] = set()
        for value in self.evaluate(given[0].value):
            if isinstance(value, EvaluatedMethod):
                found.add(EvaluatedMethod(value.instance, value.method, value.keywords + keywords))
            elif isinstance(value, Instance):
                found.add(EvaluatedMethod(value, "__call__", keywords))
            else:
                found.add(replace(value, is_partial=True) if isinstance(value, EvaluatedExternal) else value)
        return frozenset(found)  # type: ignore[arg-type]

    def enter_method(self, info: ClassInfo, method: str, args: Sequence[Arg]) -> Scope | None:
        """Return the scope of a method's body in a call from this scope; None if calls are too deep."""
        scope = info.method_scope(method)
        if scope is None or self.depth > _MAX_DEPTH:
            return None
        return Scope(
            scope.module,
            scope.body,
            owner=scope.owner,
            self_name=scope.self_name,
            parameters=scope.parameters,
            arguments=self._matched(scope.parameters.names[1:], args),
            depth=self.depth + 1,
        )

    def call_function(self, function: EvaluatedFunction, args: Sequence[Arg]) -> Values:
        """Return the possible values of calling ``function`` with these arguments."""
        if self.depth > _MAX_DEPTH:
            return NOTHING
        inner = self.enter(function, args)
        node = function.node
        return inner.evaluate(node.body) if isinstance(node, ast.Lambda) else inner.returned()

    def enter(self, function: EvaluatedFunction, args: Sequence[Arg]) -> Scope:
        """Return the scope of a function's body in a call from this scope."""
        node = function.node
        params = Parameters(node.args)
        code: Sequence[ast.AST] = [] if isinstance(node, ast.Lambda) else node.body
        return Scope(
            function.scope.module,
            Body(function.scope.module.file, code),
            parent=function.scope,
            parameters=params,
            arguments=self._matched(params.names, args),
            depth=self.depth + 1,
            place=node,
        )

    def _matched(self, names: Sequence[str], args: Sequence[Arg]) -> dict[str, tuple[Scope, ast.expr]]:
        """Return the arguments by parameter, each with this scope to evaluate it in."""
        matched: dict[str, tuple[Scope, ast.expr]] = {}
        for index, arg in enumerate(args):
            if arg.keyword is not None:
                matched[arg.keyword] = (self, arg.value)
            elif not arg.star and index < len(names):
                matched[names[index]] = (self, arg.value)
        return matched

    def returned(self) -> Values:
        """Return the possible values of the function's ``return`` statements."""
        found: set[object] = set()
        for value in self.returns():
            found |= self.evaluate(value)
        return frozenset(found)  # type: ignore[arg-type]

    def returns(self) -> Iterator[ast.expr]:
        """Yield the expressions in the function's ``return`` statements."""
        for node in self.body.own_nodes:
            if isinstance(node, ast.Return) and node.value is not None:
                yield node.value

    def span(self, node: ast.AST) -> tuple[int, int]:
        """Return the start and end of a node of this scope, as offsets in its file."""
        return self.module.file.places.span(node)

    def source(self, node: ast.AST) -> str:
        """Return the code of a node of this scope, without brackets around it."""
        return self.module.file.source(node)


def is_property(function: FunctionNode) -> bool:
    """Return whether a method is a property."""
    return bool(function.decorator_list) and dotted_name(function.decorator_list[0]) in _PROPERTIES


def parallel_iterables(node: ast.AST) -> list[ast.expr | None] | None:
    """Return the iterables of ``enumerate(x)`` or ``zip(x, y)``, one for each part of a loop's target."""
    if not isinstance(node, ast.Call):
        return None
    if isinstance(node.func, ast.Name):
        values: list[ast.expr | None] = [unstarred(each) for each in node.args]
        if node.func.id == "enumerate" and values:
            return [None, values[0]]
        if node.func.id == "zip":
            return values
    if isinstance(node.func, ast.Attribute) and node.func.attr == "items":
        return [None, node.func.value]
    return None
