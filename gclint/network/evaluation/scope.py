"""Evaluates expressions to the classes, instances and containers that they may be.

The evaluation is lazy. The values of a name are those of the bindings that reach the place where it is used;
the values of an attribute are those of all its bindings. What cannot be followed has no values, so that
nothing is claimed about it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import libcst as cst

from gclint.network.evaluation.body import Binding, Body, Piece
from gclint.network.evaluation.reaching import Entry, Reaching
from gclint.network.evaluation.signature import Parameters
from gclint.network.evaluation.values import (
    NOTHING,
    Bound,
    ClassValue,
    Container,
    External,
    ExternalInstance,
    Function,
    Instance,
    ModuleValue,
    Values,
    items_of,
    list_of,
    merge_containers,
)
from gclint.network.evaluation.walk import walk_scope

if TYPE_CHECKING:
    from gclint.network.evaluation.classes import ClassInfo
    from gclint.network.evaluation.modules import Module
    from gclint.source.fragment import Fragment

_MAX_DEPTH = 4
_CONTAINERS = {
    "itertools.chain",
    "itertools.islice",
    "iter",
    "list",
    "reversed",
    "sorted",
    "torch.nn.ModuleDict",
    "torch.nn.ModuleList",
    "tuple",
}
_PROPERTY = re.compile(r"\s*@[ \t]*(?:functools\.)?(?:cached_)?property\b")
_TAKING = ("pop", "popleft")
_SEQUENCES = {"torch.nn.Sequential"}
_TRANSPARENT = {"copy.deepcopy", "copy.copy", "torch.compile", "torch.jit.script"}
_MAKING = {"numpy.random.default_rng"}
"""Functions that create an instance of a class with another name."""


class Scope:
    """The names in a function or comprehension; without a body, those of a module."""

    def __init__(
        self,
        module: Module,
        body: Body | None,
        *,
        owner: ClassInfo | None = None,
        parent: Scope | None = None,
        self_name: str | None = None,
        parameters: Parameters | None = None,
        arguments: Mapping[str, tuple[Scope, cst.BaseExpression]] | None = None,
        depth: int = 0,
        place: cst.CSTNode | None = None,
    ) -> None:
        """Open a scope.

        Args:
            module: the module that contains the code.
            body: the code; None for the module itself.
            owner: the class whose method this is.
            self_name: the name of the first parameter, which is the instance.
            parent: the enclosing function's scope.
            parameters: the function's parameters.
            arguments: the expressions that parameters receive, with the scopes to evaluate them in.
            depth: how many calls were followed to get here.
            place: the node of the function or comprehension in the parent's code.
        """
        self.module = module
        self.body = body
        self.owner: ClassInfo | None = (
            owner if owner is not None else (parent.owner if parent is not None else None)
        )
        self.self_name = self_name
        self.parameters = parameters or Parameters()
        self.depth = depth
        self._parent = parent
        self._place = place
        self._arguments = dict(arguments or {})
        self._memo: dict[cst.CSTNode, Values] = {}
        self._bound_memo: dict[str, Values] = {}
        self._reaching: dict[str, Reaching] = {}
        self._open: set[object] = set()

    def forget(self) -> None:
        """Clear the caches, whose functions refer to this scope, so that it can be freed."""
        self._memo.clear()
        self._bound_memo.clear()
        self._reaching.clear()

    @property
    def parent(self) -> Scope | None:
        """The enclosing function's scope."""
        return self._parent

    def argument(self, name: str) -> tuple[Scope, cst.BaseExpression] | None:
        """Return the expression that a parameter receives in the call that led here, with its scope."""
        return self._arguments.get(name)

    def _pieces(self, name: str) -> Sequence[Piece]:
        return () if self.body is None else self.body.pieces(name)

    def bindings(self, name: str) -> Iterator[Binding]:
        """Yield the bindings of a name, or of an attribute (``self.layers``), in this scope itself."""
        for piece in self._pieces(name):
            yield from piece.bindings.get(name, ())

    def binds(self, name: str) -> bool:
        """Return whether this scope itself binds a name."""
        return any(name in piece.bindings or name in piece.functions for piece in self._pieces(name))

    def local_function(self, name: str, at: cst.CSTNode | None = None) -> Function | None:
        """Return the function that this scope defines as ``name`` and that reaches the place ``at``."""
        entries = self._entries(name, at)
        if entries:
            functions = [entry for entry in entries if isinstance(entry, cst.FunctionDef)]
            return self._function(name, functions[0]) if len(functions) == 1 else None
        for piece in self._pieces(name):
            function = piece.functions.get(name)
            if function is not None and piece.fragment is not None:
                return Function(function, self, piece.fragment)
        return None

    # -- names

    def name(self, name: str, at: cst.CSTNode | None = None) -> Values:
        """Return the possible values of a name.

        Args:
            name: the name.
            at: the node that uses it, if known: some of several bindings may not reach it.
        """
        if name == self.self_name and self.owner is not None:
            return frozenset((Instance(self.owner),))
        entries = self._entries(name, at)
        if entries:
            return self._entry_values(name, entries)
        if name in self._arguments:
            scope, value = self._arguments[name]
            return scope.evaluate(value) | self.bound(name)
        values = self.bound(name)
        if values or self.binds(name):
            return values
        if self.parameters.has(name):
            default = self.parameters.default(name)
            return NOTHING if default is None else self.evaluate(default)
        return self.module.lookup(name) if self._parent is None else self._parent.name(name, self._place)

    def _entries(self, name: str, at: cst.CSTNode | None) -> frozenset[Entry]:
        """Return which of several bindings of a name reach a place; empty if all of them may."""
        if at is None or self.body is None:
            return frozenset()
        known = self._reaching.get(name)
        if known is None:
            bindings = sum(len(piece.bindings.get(name, ())) for piece in self._pieces(name))
            functions = sum(name in piece.functions for piece in self._pieces(name))
            known = self._reaching[name] = (
                Reaching(name, ()) if bindings + functions < 2 else self._followed(name)
            )
        if not known.pieces:
            return frozenset()
        if not known.has(at):
            # Further statements may have been parsed since.
            known = self._reaching[name] = self._followed(name, known)
        return known.at(at)

    def _followed(self, name: str, known: Reaching | None = None) -> Reaching:
        assert self.body is not None
        pieces = self.body.pieces_following(name)
        return known if known is not None and len(known.pieces) == len(pieces) else Reaching(name, pieces)

    def _entry_values(self, name: str, entries: frozenset[Entry]) -> Values:
        found: set[object] = set()
        for entry in entries:
            if isinstance(entry, Binding):
                found |= self._binding_values(entry) or self._handed_through(name, entry)
            elif entry is not None:
                found.add(self._function(name, entry))
            elif name in self._arguments:
                scope, value = self._arguments[name]
                found |= scope.evaluate(value)
            else:
                default = self.parameters.default(name) if self.parameters.has(name) else None
                found |= NOTHING if default is None else self.evaluate(default)
        return merge_containers(found)

    def _function(self, name: str, node: cst.FunctionDef) -> Function:
        return Function(node, self, self._reaching[name].fragments[node])

    def _handed_through(self, name: str, binding: Binding) -> Values:
        """Return the previous values of a name that an unknown function wraps: ``layer = wrap(layer)``."""
        if binding.iterated or not isinstance(binding.value, cst.Call):
            return NOTHING
        found: set[object] = set()
        for arg in binding.value.args:
            if isinstance(arg.value, cst.Name) and arg.value.value == name:
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

    def evaluate(self, node: cst.CSTNode) -> Values:
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

    def _evaluate(self, node: cst.CSTNode) -> Values:
        if isinstance(node, cst.Name):
            return self.name(node.value, node)
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
            inner = Scope(
                self.module,
                Body([Piece(None, [node])], self.module.file),
                parent=self,
                depth=self.depth,
                place=node,
            )
            return list_of(inner.evaluate(node.value if isinstance(node, cst.DictComp) else node.elt))
        if isinstance(node, cst.IfExp):
            return self.evaluate(node.body) | self.evaluate(node.orelse)
        if isinstance(node, (cst.BooleanOperation, cst.BinaryOperation)):
            return merge_containers(self.evaluate(node.left) | self.evaluate(node.right))
        if isinstance(node, cst.NamedExpr):
            return self.evaluate(node.value)
        if isinstance(node, cst.Lambda):
            return frozenset((Function(node, self, None),))
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
            elif isinstance(value, ModuleValue):
                found |= value.module.member(node.attr.value, value.name)
            elif isinstance(value, Instance):
                attribute = value.info.attribute(node.attr.value)
                if not attribute and value.info.has_method(node.attr.value):
                    attribute = self._method(value, node.attr.value)
                found |= attribute
            elif isinstance(value, ClassValue):
                found |= value.info.class_attribute(node.attr.value)
        return frozenset(found)  # type: ignore[arg-type]

    def _method(self, instance: Instance, name: str) -> Values:
        """Return a method of an object; for a property that returns a stack, the values that it returns."""
        found = instance.info.find_method(name)
        if found is not None and _PROPERTY.match(found[1].code) is not None:
            inner = self.enter_method(instance.info, name, ())
            given = NOTHING if inner is None else inner.returned()
            if any(isinstance(value, Container) for value in given):
                return given
        return frozenset((Bound(instance, name),))

    def _call(self, node: cst.Call) -> Values:
        if isinstance(node.func, cst.Attribute) and node.func.attr.value in ("values", "items", "modules"):
            return self.evaluate(node.func.value)
        if isinstance(node.func, cst.Attribute) and node.func.attr.value in _TAKING:
            return items_of(self.evaluate(node.func.value))
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
        if name.rpartition(".")[2][:1].isupper() or name in _MAKING:
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
            return NOTHING  # The output of a block is not a block.
        inner = self.enter_method(bound.instance.info, bound.method, args)
        return NOTHING if inner is None else inner.returned()

    def enter_method(self, info: ClassInfo, method: str, args: Sequence[cst.Arg]) -> Scope | None:
        """Return the scope of a method's body in a call from this scope; None if calls are too deep."""
        scope = info.method_scope(method)
        if scope is None or scope.body is None or self.depth > _MAX_DEPTH:
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

    def call_function(self, function: Function, args: Sequence[cst.Arg]) -> Values:
        """Return the possible values of calling ``function`` with these arguments."""
        if self.depth > _MAX_DEPTH:
            return NOTHING
        inner = self.enter(function, args)
        return (
            inner.evaluate(function.node.body) if isinstance(function.node, cst.Lambda) else inner.returned()
        )

    def enter(self, function: Function, args: Sequence[cst.Arg]) -> Scope:
        """Return the scope of a function's body in a call from this scope."""
        params = Parameters(function.node)
        code = [] if isinstance(function.node, cst.Lambda) else [function.node.body]
        return Scope(
            function.scope.module,
            Body([Piece(function.fragment, code)], function.scope.module.file),
            parent=function.scope,
            parameters=params,
            arguments=self._matched(params.names, args),
            depth=self.depth + 1,
            place=function.node,
        )

    def _matched(
        self, names: Sequence[str], args: Sequence[cst.Arg]
    ) -> dict[str, tuple[Scope, cst.BaseExpression]]:
        """Return the arguments by parameter, each with this scope to evaluate it in."""
        matched: dict[str, tuple[Scope, cst.BaseExpression]] = {}
        for index, arg in enumerate(args):
            if arg.keyword is not None:
                matched[arg.keyword.value] = (self, arg.value)
            elif not arg.star and index < len(names):
                matched[names[index]] = (self, arg.value)
        return matched

    def returned(self) -> Values:
        """Return the possible values of the function's ``return`` statements."""
        found: set[object] = set()
        for _, value in self.returns():
            found |= self.evaluate(value)
        return frozenset(found)  # type: ignore[arg-type]

    def returns(self) -> Iterator[tuple[int | None, cst.BaseExpression]]:
        """Yield the expressions in the function's ``return`` statements, each with its offset in the file."""
        for piece in () if self.body is None else self.body.pieces_naming(("return",)):
            for root in piece.nodes or ():
                for node in (root, *walk_scope(root)):
                    if isinstance(node, cst.Return) and node.value is not None:
                        at = None if piece.fragment is None else self.range_of(piece.fragment, node)[0]
                        yield at, node.value

    def range_of(self, fragment: Fragment, node: cst.CSTNode) -> tuple[int, int]:
        """Return the start and end of a node, or of its statement if that is all that matters."""
        return fragment.statement_range(node) if self._parent is None else fragment.span(node)


def parallel_iterables(node: cst.CSTNode) -> list[cst.BaseExpression | None] | None:
    """Return the iterables of ``enumerate(x)`` or ``zip(x, y)``, one for each part of a loop's target."""
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Name):
        values: list[cst.BaseExpression | None] = [arg.value for arg in node.args if arg.keyword is None]
        if node.func.value == "enumerate" and values:
            return [None, values[0]]
        if node.func.value == "zip":
            return values
    if (
        isinstance(node, cst.Call)
        and isinstance(node.func, cst.Attribute)
        and node.func.attr.value == "items"
    ):
        return [None, node.func.value]
    return None
