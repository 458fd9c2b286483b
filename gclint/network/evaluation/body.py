"""The statements of a function, and the names that they bind."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from gclint.code.outline import Definition, Text
from gclint.code.tree import DEFINITIONS
from gclint.code.walk import FUNCTIONS, FunctionNode, last_name, text_of, walk, walk_scope

COMPUTED = "*"
"""The key of attributes with computed names."""
_NAMING = ("add_module", "register_module")
COMPUTING = ("setattr", *_NAMING)
"""Functions that set an attribute whose name may be computed."""
ADDING_METHODS = frozenset(("append", "add", "extend", "insert", "update", *_NAMING))
"""Methods that add their last argument to a list or a module."""
_ADDING = ADDING_METHODS | {"setattr"}
BINDING_KINDS = frozenset(
    (
        ast.Assign,
        ast.AnnAssign,
        ast.AugAssign,
        ast.NamedExpr,
        ast.For,
        ast.AsyncFor,
        ast.comprehension,
        ast.withitem,
        ast.Call,
    )
)


@dataclass(frozen=True)
class NameBinding:
    """One way in which a name gets a value."""

    value: ast.expr
    path: tuple[int, ...] = ()
    """Positions of the name in nested tuple targets."""
    iterated: bool = False
    """Whether the name is bound to the items of the value, as a loop's target is."""
    added: bool = False
    """Whether the value is added to the container that the name refers to."""

    @property
    def unpacked(self) -> tuple[ast.expr, tuple[int, ...]]:
        """The item of the value at the name's position, and the path in it that is not written as tuples."""
        value, path = self.value, self.path
        while path and isinstance(value, (ast.Tuple, ast.List)) and path[0] < len(value.elts):
            value, path = unstarred(value.elts[path[0]]), path[1:]
        return value, path


def unstarred(node: ast.expr) -> ast.expr:
    """Return an expression without the ``*`` before it."""
    return node.value if isinstance(node, ast.Starred) else node


class Body:
    """The statements of a function, or a comprehension, or an expression."""

    def __init__(self, file: Text, nodes: Sequence[ast.AST], definition: Definition | None = None) -> None:
        """Hold the code of one body; ``definition`` is its function, if a file defines it."""
        self.file = file
        self.roots = nodes
        self.definition = definition

    @classmethod
    def of_definition(cls, definition: Definition) -> Body:
        """Return the body of a function, or the code of a class outside of its functions and classes.

        It is made once for each tree.
        """
        tree = definition.outline.file.tree
        assert tree is not None  # the definition was found in it
        key = (cls, definition.number)
        known = tree.facts.get(key)
        if not isinstance(known, Body):
            nodes: Sequence[ast.stmt] = definition.node.body
            if definition.is_class:
                nodes = [each for each in nodes if not isinstance(each, DEFINITIONS)]
            known = tree.facts[key] = cls(definition.outline.file, nodes, definition)
        return known

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """All nodes, each before those below it."""
        return tuple(node for root in self.roots for node in walk(root))

    @cached_property
    def collections(self) -> frozenset[str]:
        """The names that are bound to a list or tuple, or to which items are added."""
        return frozenset(
            name
            for name, bindings in self.bindings.items()
            for each in bindings
            if not each.path and (each.added or isinstance(each.value, (ast.Tuple, ast.List)))
        )

    @property
    def own_nodes(self) -> Iterator[ast.AST]:
        """The nodes, without the bodies of nested functions and classes."""
        for root in self.roots:
            yield root
            if not isinstance(root, DEFINITIONS):
                yield from walk_scope(root)

    @property
    def bindings(self) -> Mapping[str, Sequence[NameBinding]]:
        """The bindings by name; the key of an attribute is ``self.name``."""
        return self._bound[0]

    @property
    def functions(self) -> Mapping[str, Sequence[FunctionNode]]:
        """The functions that the body defines, by their names."""
        return self._bound[1]

    @cached_property
    def _bound(self) -> tuple[Mapping[str, Sequence[NameBinding]], Mapping[str, Sequence[FunctionNode]]]:
        collected: defaultdict[str, list[NameBinding]] = defaultdict(list)
        functions: defaultdict[str, list[FunctionNode]] = defaultdict(list)
        for node in self.own_nodes:
            if type(node) in BINDING_KINDS:
                collect_bindings(collected, node)
            elif isinstance(node, FUNCTIONS):
                functions[node.name].append(node)
        return dict(collected), dict(functions)

    def calls(self) -> Iterator[ast.Call]:
        """Yield all calls."""
        return (node for node in self.nodes if isinstance(node, ast.Call))


def collect_bindings(collected: defaultdict[str, list[NameBinding]], node: ast.AST) -> None:
    """Record the bindings that a node itself makes."""
    if isinstance(node, ast.Call):
        _bind_addition(collected, node)
    elif isinstance(node, ast.Assign):
        for target in node.targets:
            _bind(collected, target, NameBinding(node.value))
    elif isinstance(node, (ast.AnnAssign, ast.AugAssign, ast.NamedExpr)):
        if node.value is not None:
            _bind(collected, node.target, NameBinding(node.value))
    elif isinstance(node, (ast.For, ast.AsyncFor, ast.comprehension)):
        _bind(collected, node.target, NameBinding(node.iter, iterated=True))
    elif isinstance(node, ast.withitem) and isinstance(node.optional_vars, ast.Name):
        _bind(collected, node.optional_vars, NameBinding(node.context_expr))


def _bind(collected: defaultdict[str, list[NameBinding]], target: ast.expr, binding: NameBinding) -> None:
    """Record the bindings of the names in an assignment target."""
    if isinstance(target, ast.Name):
        collected[target.id].append(binding)
    elif isinstance(target, (ast.Tuple, ast.List)):
        for index, element in enumerate(target.elts):
            inner = NameBinding(binding.value, (*binding.path, index), binding.iterated)
            _bind(collected, unstarred(element), inner)
    elif isinstance(target, ast.Subscript):
        key = _container_key(target.value)
        if key is not None:
            collected[key].append(NameBinding(binding.value, binding.path, binding.iterated, added=True))
    elif isinstance(target, ast.Attribute):
        key = _container_key(target)
        if key is not None:
            collected[key].append(binding)


def _bind_addition(collected: defaultdict[str, list[NameBinding]], call: ast.Call) -> None:
    """Record ``name.append(value)`` and similar calls, and ``setattr(self, …, value)``."""
    if last_name(call.func) not in _ADDING:
        return  # As most calls.
    given = [*(unstarred(each) for each in call.args), *(each.value for each in call.keywords)]
    if isinstance(call.func, ast.Name) and call.func.id == "setattr" and len(given) == 3:
        holder = _container_key(given[0])
        if holder is not None:
            name = text_of(given[1])
            collected[f"{holder}.{COMPUTED if name is None else name}"].append(NameBinding(given[2]))
        return
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in ADDING_METHODS or not given:
        return
    key = _container_key(call.func.value)
    if key is None:
        return
    method, value = call.func.attr, given[-1]
    if method in _NAMING and "." not in key:
        collected[f"{key}.{COMPUTED}"].append(NameBinding(value))
    elif method in ("extend", "update"):
        collected[key].append(NameBinding(value))
    else:
        collected[key].append(NameBinding(value, added=True))


def _container_key(node: ast.AST) -> str | None:
    """Return the key of a name (``layers``) or an attribute (``self.layers``) in bindings."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return f"{node.value.id}.{node.attr}"
    if isinstance(node, ast.Subscript):
        return _container_key(node.value)
    return None
