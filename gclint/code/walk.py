"""Walks over the nodes of Python's syntax trees, in the order of the text as far as that matters."""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from gclint.code.names import names
from gclint.code.remembered import remembered
from gclint.code.tree import DEFINITIONS, Tree, blocks_of

FunctionNode: TypeAlias = "ast.FunctionDef | ast.AsyncFunctionDef"
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
Loop: TypeAlias = "ast.For | ast.AsyncFor | ast.While"
LOOPS = (ast.For, ast.AsyncFor, ast.While)
LEAVING = (ast.Return, ast.Raise, ast.Break, ast.Continue)
"""Statements behind which a block does not go on."""
WITHS = (ast.With, ast.AsyncWith)
Comprehension: TypeAlias = "ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp"
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)
_NEW_SCOPES = frozenset((*FUNCTIONS, ast.ClassDef, ast.Lambda))
_LEAVES = frozenset((ast.Name, ast.Constant))
"""Most of all nodes are of these kinds, which have nothing below them."""
_ENDS_OF_SCOPE = _NEW_SCOPES | _LEAVES
_DEFINITIONS = frozenset(DEFINITIONS)
_ENDS_OF_DEFINITION = _DEFINITIONS | _LEAVES
_WITHOUT_CODE = names(
    """
    arg attr conversion ctx id is_async kind kwd_attrs level module name names op ops rest simple
    type_comment type_ignores
    """
)
"""Fields that hold no expressions or statements, although some hold nodes."""


@dataclass(frozen=True)
class Arg:
    """An argument as a call has it."""

    value: ast.expr
    keyword: str | None = None
    star: str = ""
    """What stands before it: nothing, ``*`` or ``**``."""


def arguments(call: ast.Call | ast.ClassDef) -> tuple[Arg, ...]:
    """Return the arguments of a call, or of a class's header, in the order of the text."""
    positional = call.args if isinstance(call, ast.Call) else call.bases
    found = [
        Arg(each.value, None, "*") if isinstance(each, ast.Starred) else Arg(each) for each in positional
    ]
    named = [Arg(each.value, each.arg, "" if each.arg else "**") for each in call.keywords]
    if named and found and _place(found[-1].value) > _place(named[0].value):
        return tuple(sorted((*found, *named), key=lambda each: _place(each.value)))
    return (*found, *named)


def _place(node: ast.expr) -> tuple[int, int]:
    return node.lineno, node.col_offset


class _Fields(dict[type[ast.AST], tuple[str, ...]]):
    """The fields of each type of nodes that may contain code, the last one first."""

    def __missing__(self, kind: type[ast.AST]) -> tuple[str, ...]:
        is_literal = issubclass(kind, (ast.Constant, ast.MatchSingleton))
        fields = () if is_literal else kind._fields[::-1]
        known = self[kind] = tuple(name for name in fields if name not in _WITHOUT_CODE)
        return known


_FIELDS = _Fields()


def children(node: ast.AST) -> list[ast.AST]:
    """Return the child nodes of ``node`` that contain code."""
    return _backwards(node)[::-1]


def _backwards(node: ast.AST) -> list[ast.AST]:
    """Return the same, the last one first."""
    found: list[ast.AST] = []
    for name in _FIELDS[node.__class__]:
        value = getattr(node, name)
        if value.__class__ is list:
            found += value[::-1] if None not in value else filter(None, value[::-1])
        elif value is not None:
            found.append(value)
    return found


def _walk(waiting: list[ast.AST], ends: frozenset[type[ast.AST]]) -> Iterator[ast.AST]:
    """Yield nodes, of which the last is the first, each before those below it; some types are ends."""
    while waiting:
        node = waiting.pop()
        yield node
        if node.__class__ not in ends:
            # Half of the time of all walks would be spent on calls of a function for this.
            for name in _FIELDS[node.__class__]:
                value = getattr(node, name)
                if value.__class__ is list:
                    waiting += value[::-1] if None not in value else filter(None, value[::-1])
                elif value is not None:
                    waiting.append(value)


def is_alike(one: ast.AST, other: ast.AST) -> bool:
    """Return whether two nodes are the same code, apart from their children."""
    return type(one) is type(other) and all(
        _shape(getattr(one, name)) == _shape(getattr(other, name))
        for name in one._fields
        if name not in ("ctx", "type_comment", "kind")
    )


def _shape(value: object) -> object:
    """Return the value of a node's field, with code in it replaced by placeholders."""
    if isinstance(value, list):
        return [_shape(each) for each in value]
    if isinstance(value, (ast.operator, ast.unaryop, ast.boolop, ast.cmpop)):
        return type(value)
    if isinstance(value, ast.alias):
        return value.name, value.asname
    return True if isinstance(value, ast.AST) else (type(value), value)


def structure(node: ast.AST) -> Hashable:
    """Return a value that is equal for nodes with the same code, apart from layout and brackets."""
    return dotted_name(node) or (
        type(node),
        *(_structure(getattr(node, name)) for name in node._fields if name not in ("ctx", "kind")),
    )


def _structure(value: object) -> Hashable:
    if isinstance(value, list):
        return tuple(map(_structure, value))
    return structure(value) if isinstance(value, ast.AST) else (type(value), value)


def alternatives(node: ast.AST) -> list[ast.expr]:
    """Return the expressions one of which an expression gives as it is; none if it gives something else."""
    if isinstance(node, ast.IfExp):
        return [node.body, node.orelse]
    if isinstance(node, ast.BoolOp):
        return node.values
    return [node.value] if isinstance(node, ast.NamedExpr) else []


def walk(node: ast.AST) -> Iterator[ast.AST]:
    """Yield ``node`` and all nodes below it, in preorder."""
    return _walk([node], _LEAVES)


def walk_scope(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes below ``node``, without the bodies of nested functions and classes."""
    return _walk(_backwards(node), _ENDS_OF_SCOPE)


def all_nodes(tree: Tree | None) -> Sequence[ast.AST]:
    """Return all nodes of a tree, each before those below it; none without one."""
    return () if tree is None else listing(tree)[0]


@remembered
def listing(tree: Tree) -> tuple[list[ast.AST], dict[ast.AST, tuple[int, int]]]:
    """Return all nodes of a tree, and which part of that its definitions are; many ask for them."""
    return listed(tree.module)


def listed(node: ast.AST) -> tuple[list[ast.AST], dict[ast.AST, tuple[int, int]]]:
    """Return what ``walk`` yields, and which part of that the definitions in it are."""
    found: list[ast.AST] = []
    parts: dict[ast.AST, tuple[int, int]] = {}
    _list(node, found, parts)
    return found, parts


def _list(node: ast.AST, found: list[ast.AST], parts: dict[ast.AST, tuple[int, int]]) -> None:
    # Python's parser allows a hundred definitions in each other.
    start = len(found)
    found.append(node)
    for each in _walk(_backwards(node), _ENDS_OF_DEFINITION):
        if each.__class__ in _DEFINITIONS:
            _list(each, found, parts)
        else:
            found.append(each)
    parts[node] = start, len(found)


def names_in(node: ast.AST) -> Iterator[str]:
    """Yield the names that an expression reads, without names of attributes and keywords."""
    return (each.id for each in walk(node) if isinstance(each, ast.Name))


def dotted_name(node: ast.AST) -> str | None:
    """Return the dotted name ``a.b.c`` that an expression spells; None for any other expression."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        base = dotted_name(node.value)
        return None if base is None else f"{base}.{node.attr}"
    return None


def last_name(node: ast.AST) -> str:
    """Return the name that an expression ends with, ``c`` of ``a.b.c``; nothing for any other expression."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def called_name(node: ast.AST) -> str | None:
    """Return the last name of what a call calls; None for any other node."""
    return last_name(node.func) if isinstance(node, ast.Call) else None


def is_super(node: ast.AST) -> bool:
    """Return whether an expression is ``super()``, with arguments or without."""
    return isinstance(node, ast.Call) and dotted_name(node.func) == "super"


def assigned(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield the targets of a plain or annotated assignment, each with the value."""
    if isinstance(node, ast.AnnAssign) and node.value is not None:
        yield node.target, node.value
    elif isinstance(node, ast.Assign):
        yield from ((target, node.value) for target in node.targets)


def conjuncts(test: ast.expr) -> Iterator[ast.expr]:
    """Yield the operands of ``and`` in a test, or the test itself."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        for each in test.values:
            yield from conjuncts(each)
    else:
        yield test


def is_docstring(statement: ast.AST) -> bool:
    """Return whether a statement consists of a string only."""
    return isinstance(statement, ast.Expr) and text_of(statement.value) is not None


def text_of(node: ast.AST) -> str | None:
    """Return the value of a string literal; None for any other expression."""
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def is_constant(node: ast.AST, *values: object) -> bool:
    """Return whether a node is one of the literals ``values``; 1, 1.0 and True are different ones."""
    return isinstance(node, ast.Constant) and any(
        type(node.value) is type(value) and node.value == value for value in values
    )


def statements_in(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield statements and those in them, without those of nested functions and classes."""
    waiting = body[::-1]
    while waiting:
        statement = waiting.pop()
        yield statement
        if not isinstance(statement, DEFINITIONS):
            for block in reversed([*blocks_of(statement)]):
                waiting += block[::-1]
