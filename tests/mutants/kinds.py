"""The ways in which one node of the code is changed: each would be a defect, if behaviour hangs on it.

Why these are our own: going by their documentation, neither mutmut 3 nor cosmic-ray removes a part of a
condition, a statement or an element of a set of names, which is what the tests had missed; mutmut mutates
only what stands in functions, wordings of messages among it, and both run the tests of a mutant in a
process that imports everything anew. What executes which line is taken from coverage.py.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

Change = tuple[ast.expr | ast.stmt, str]
"""A node, and the text in its place."""

_NOTHING = "pass"
_OPPOSITES: dict[type[ast.cmpop], ast.cmpop] = {
    ast.Eq: ast.NotEq(),
    ast.NotEq: ast.Eq(),
    ast.Lt: ast.LtE(),
    ast.LtE: ast.Lt(),
    ast.Gt: ast.GtE(),
    ast.GtE: ast.Gt(),
    ast.Is: ast.IsNot(),
    ast.IsNot: ast.Is(),
    ast.In: ast.NotIn(),
    ast.NotIn: ast.In(),
}
_OTHER_FUNCTIONS = {"any": "all", "all": "any", "min": "max", "max": "min"}
_TAKE_ONE_LESS = frozenset(
    {"dict", "find", "get", "getattr", "min", "max", "next", "pop", "range", "replace", "split", "sum", "zip"}
)
_TYPES = frozenset({"annotation", "returns", "decorator_list", "bases"})
_ONLY_FOR_TYPES = frozenset({"TypeVar", "NewType", "NamedTuple", "TypedDict"})


@dataclass(frozen=True)
class Place:
    """A node that can be changed, and the function or class that it stands in."""

    node: ast.expr | ast.stmt
    owner: str
    """Its qualified name; empty at the top of the module."""
    role: str
    """What it is to the node around it: the name of the field; ``kinds`` for those of ``isinstance``."""


def places(tree: ast.Module) -> Iterator[Place]:
    """Yield the nodes of a module whose change could be told, but by its words and its types."""
    for statement in tree.body:
        yield from _places(statement, "", "body")


def changes(place: Place) -> Iterator[Change]:
    """Yield each change of a node itself, not of what is in it."""
    node = place.node
    yield from _of_statement(node) if isinstance(node, ast.stmt) else _of_expression(node, place.role)


def _places(node: ast.AST, owner: str, role: str) -> Iterator[Place]:
    if _is_left_alone(node):
        return
    if isinstance(node, ast.expr | ast.stmt):
        yield Place(node, owner, role)
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        owner = f"{owner}.{node.name}".lstrip(".")
    for name, child in _parts(node):
        yield from _places(child, owner, name)


def _parts(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    left_out = _TYPES | {"keywords"} if isinstance(node, ast.ClassDef) else _TYPES
    for name, value in ast.iter_fields(node):
        if name not in left_out:
            children = value if isinstance(value, list) else [value]
            yield from ((name, each) for each in children if isinstance(each, ast.AST))
    if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("isinstance", "issubclass"):
        yield "kinds", node.args[-1]


def _is_left_alone(node: ast.AST) -> bool:
    """Tell what is words, types or imports."""
    match node:
        case ast.Import() | ast.ImportFrom() | ast.JoinedStr() | ast.Assert():
            return True
        case ast.Expr(value=ast.Constant()):
            return True
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return True
        case ast.Assign(targets=[ast.Name(id="__all__")]):
            return True
        case ast.Assign(value=ast.Subscript(value=ast.Name(id=name))):
            # A name for a type.
            return name[:1].isupper() or name in ("tuple", "dict", "list", "frozenset", "type")
        case ast.Call(func=ast.Name(id=name)):
            return name in _ONLY_FOR_TYPES
        case ast.Call(func=ast.Attribute(value=ast.Name(id="os"), attr="kill" | "killpg")):
            return True  # Another signal, or another process, would be none of ours.
    return False


def _of_statement(node: ast.stmt) -> Iterator[Change]:
    match node:
        case ast.Expr(value=ast.Yield() | ast.YieldFrom()):
            yield node, "yield from ()"
        case ast.Expr() | ast.AugAssign() | ast.Delete() | ast.Continue() | ast.Break() | ast.Raise():
            yield node, _NOTHING
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield node, _NOTHING
        case ast.Return(value=value) if value is not None and not isinstance(value, ast.Constant):
            yield node, "return None"


def _of_expression(node: ast.expr, role: str) -> Iterator[Change]:
    if role in ("test", "ifs") and isinstance(
        node, ast.Name | ast.Attribute | ast.Call | ast.BoolOp | ast.NamedExpr
    ):
        yield node, f"(not ({ast.unparse(node)}))"
    match node:
        case ast.Compare():
            yield from _of_comparison(node)
        case ast.BoolOp(op=operator, values=values):
            other: ast.boolop = ast.Or() if isinstance(operator, ast.And) else ast.And()
            yield node, _written(ast.BoolOp(other, values))
            for number in range(len(values)):
                left = [*values[:number], *values[number + 1 :]]
                yield node, _written(ast.BoolOp(operator, left) if len(left) > 1 else left[0])
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield node, _written(operand)
        case ast.Constant(value=value):
            yield from _of_constant(node, value)
        case ast.Tuple() | ast.Set() | ast.List():
            yield from _of_collection(node, role)
        case ast.Dict(keys=keys, values=values) if len(keys) > 1:
            for number in range(len(keys)):
                rest = (keys[:number] + keys[number + 1 :], values[:number] + values[number + 1 :])
                yield node, _written(ast.Dict(*rest))
        case ast.Call():
            yield from _of_call(node)
        case ast.BinOp():
            yield from _of_operation(node)


def _of_comparison(node: ast.Compare) -> Iterator[Change]:
    for number, operator in enumerate(node.ops):
        operators = [*node.ops[:number], _OPPOSITES[type(operator)], *node.ops[number + 1 :]]
        yield node, _written(ast.Compare(node.left, operators, node.comparators))


def _of_constant(node: ast.Constant, value: object) -> Iterator[Change]:
    if isinstance(value, bool):
        yield node, str(not value)
    elif isinstance(value, int):
        yield node, f"({value + 1})"
    elif isinstance(value, str) and value and not _is_wording(value):
        yield node, repr(f"{value}?")


def _is_wording(text: str) -> bool:
    """Tell what is said to people from names and keys."""
    return " " in text or not any(each.isalpha() for each in text)


def _of_collection(node: ast.Tuple | ast.Set | ast.List, role: str) -> Iterator[Change]:
    """Yield the collection without one of its members, where it is a list of names or kinds."""
    constants = all(isinstance(each, ast.Constant) for each in node.elts)
    names = all(isinstance(each, ast.Attribute | ast.Name) for each in node.elts)
    if len(node.elts) < 2 or not (constants or (names and role in ("comparators", "kinds"))):
        return
    for number in range(len(node.elts)):
        yield node, _written(type(node)([*node.elts[:number], *node.elts[number + 1 :]]))


def _of_call(node: ast.Call) -> Iterator[Change]:
    if isinstance(node.func, ast.Name) and node.func.id in _OTHER_FUNCTIONS:
        other = ast.Name(_OTHER_FUNCTIONS[node.func.id])
        yield node, _written(ast.Call(other, node.args, node.keywords))
    name = getattr(node.func, "id", getattr(node.func, "attr", ""))
    if len(node.args) > 1 and name in _TAKE_ONE_LESS:
        yield node, _written(ast.Call(node.func, node.args[:-1], node.keywords))
    for number in range(len(node.keywords)):
        keywords = [*node.keywords[:number], *node.keywords[number + 1 :]]
        yield node, _written(ast.Call(node.func, node.args, keywords))


def _of_operation(node: ast.BinOp) -> Iterator[Change]:
    sides = (node.left, node.right)
    if any(isinstance(each, ast.JoinedStr) for each in sides):
        return
    if any(isinstance(each, ast.Constant) and isinstance(each.value, int) for each in sides):
        if isinstance(node.op, ast.Add | ast.Sub):
            other: ast.operator = ast.Sub() if isinstance(node.op, ast.Add) else ast.Add()
            yield node, _written(ast.BinOp(node.left, other, node.right))
    elif isinstance(node.op, ast.Add | ast.Sub | ast.BitOr | ast.BitAnd):
        yield node, _written(node.left)


def _written(node: ast.expr) -> str:
    return f"({ast.unparse(node)})"
