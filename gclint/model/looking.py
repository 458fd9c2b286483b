"""What becomes of an attribute that is read by its name."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Set

_LOOKING = frozenset(("getattr", "hasattr", "isinstance", "len", "type"))


def is_only_looked_into(tree: ast.Module, node: ast.expr) -> bool:
    """Tell whether an expression only gives a name its value, of which only parts are read.

    A method that the expression may give is then never called: none of its parts does that by a usual name.
    """
    parents = _parents(tree)
    names = _names_given(parents.get(node))
    home = parents.get(node)
    while home is not None and not isinstance(home, (ast.FunctionDef, ast.AsyncFunctionDef)):
        home = parents.get(home)
    inside = [] if home is None else list(ast.walk(home))
    is_shared = any(isinstance(each, (ast.Global, ast.Nonlocal)) for each in inside)
    uses = [each for each in inside if isinstance(each, ast.Name) and each.id in names]
    return (
        bool(names and inside) and not is_shared and all(_only_looks(each, names, parents) for each in uses)
    )


def is_handed_on(tree: ast.Module, name: ast.expr | None) -> bool:
    """Tell whether a name of an attribute is what ``__getattr__`` is asked for, by code that has it."""
    for each in ast.walk(tree):
        if isinstance(each, ast.FunctionDef) and each.name in ("__getattr__", "__getattribute__"):
            inside = [one for one in ast.walk(each) if isinstance(one, ast.Name)]
            if name in inside:
                asked = each.args.args[1].arg if len(each.args.args) > 1 else ""
                same = [one for one in inside if one.id == asked]
                return name in same and all(isinstance(one.ctx, ast.Load) for one in same)
    return False


def is_singled_out(tree: ast.Module | None, asked: ast.expr | None, name: str) -> bool:
    """Tell whether code lets pass only names with certain beginnings and ends, and ``name`` is one of them.

    Args:
        tree: the module.
        asked: the variable that holds the name of an attribute.
        name: a name that it may hold.
    """
    parents = {} if tree is None else _parents(tree)
    tests = [
        (each.func.attr, each.args[0].value, _lets_pass(each, parents))
        for each in parents
        if isinstance(each, ast.Call)
        and isinstance(each.func, ast.Attribute)
        and each.func.attr in ("startswith", "endswith")
        and isinstance(each.func.value, ast.Name)
        and isinstance(asked, ast.Name)
        and each.func.value.id == asked.id
        and each.args
        and isinstance(each.args[0], ast.Constant)
        and isinstance(each.args[0].value, str)
    ]
    return any(passes for *_, passes in tests) and all(
        getattr(name, test)(text) is passes for test, text, passes in tests
    )


def _parents(tree: ast.Module) -> dict[ast.AST, ast.AST]:
    return {child: parent for parent in ast.walk(tree) for child in ast.iter_child_nodes(parent)}


def _lets_pass(test: ast.expr, parents: Mapping[ast.AST, ast.AST]) -> bool:
    """Tell whether code goes on with what a test is true of, and not with what it is false of."""
    passes, node = True, parents.get(test)
    while isinstance(node, (ast.UnaryOp, ast.BoolOp)):
        passes ^= isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)
        node = parents.get(node)
    is_left = isinstance(node, ast.If) and isinstance(node.body[-1], (ast.Continue, ast.Return, ast.Raise))
    return passes ^ is_left


def _names_given(node: ast.AST | None) -> Set[str]:
    """Return the names that a statement gives its value; none if it also does something else with it."""
    names = [getattr(each, "id", "") for each in node.targets] if isinstance(node, ast.Assign) else []
    return set(names) if all(names) else set()


def _only_looks(name: ast.Name, names: Set[str], parents: Mapping[ast.AST, ast.AST]) -> bool:
    node = parents[name]
    if isinstance(name.ctx, ast.Store):
        return True
    if isinstance(node, ast.Attribute):
        return not node.attr.startswith("__")
    if isinstance(node, ast.Subscript):
        return node.value is name
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _LOOKING):
        return False
    of = node.args[1] if node.func.id == "getattr" and len(node.args) > 1 else None
    is_usual = isinstance(of, ast.Constant) and not str(of.value).startswith("__")
    is_looked_into = bool(names & _names_given(parents.get(node)))
    return node.args[:1] == [name] and (of is None or is_usual or is_looked_into)
