"""What is in doubt about disabling a cache at a call by the flag and the mode of the object that makes it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gclint.code.file import SourceFile
from gclint.code.paths import behind_line
from gclint.code.walk import FunctionNode, is_docstring, last_name, walk
from gclint.edit.users import subclasses_around, users
from gclint.model.notes import quoted
from gclint.network.construction import flag_doubt
from gclint.network.evaluation.classes import ClassInfo
from gclint.network.model import Network
from gclint.network.outside import FLAG, outside_switches
from gclint.network.runsite import RunSite

_STILL = (
    *(ast.Name, ast.Constant, ast.Attribute, ast.Subscript, ast.Slice, ast.Tuple),
    *(ast.IfExp, ast.BoolOp, ast.Compare, ast.UnaryOp, ast.BinOp),
)
"""Expressions that do nothing but to give a value."""
_MODE = "train"
"""The method that sets the mode of modules, which the base class asks of the block itself."""


def guard_doubts(network: Network, site: RunSite, value: ast.expr) -> Iterator[str]:
    """Yield why a guard around a value may do something else than the base class does with a cache.

    Args:
        network: the file.
        site: the call.
        value: what is only evaluated where the object does not checkpoint.
    """
    if not _is_still(network, value):
        yield f"evaluating `{quoted(value)}` may do something, which the guard leaves out while checkpointing"
    family = (site.owner, *subclasses_around(network, site.owner))
    yield from dict.fromkeys(filter(None, map(flag_doubt, family)))
    yield from _borrowed(network, site)
    yield from _mode_doubts((*family, *site.blocks))
    files = _files(network)
    for switch in outside_switches(network.project, network.file):
        if switch.file in files and not (switch.is_complete or switch.is_off):
            where = f"line {switch.file.position(switch.offset).row}"
            where += behind_line(switch.file.path, network.file.path)
            yield f"`{switch.receiver}.{FLAG}` is set on {where}, maybe without that of the blocks"


def _is_still(network: Network, value: ast.expr) -> bool:
    """Return whether evaluating something does nothing but give a value, functions included."""
    for node in ast.walk(value):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
            function = network.file.outline.functions.get(node.func.id)
            returned = None if function is None else _only_returned(function.function)
            if returned is None or not all(isinstance(each, _STILL) for each in _expressions(returned)):
                return False
        elif isinstance(node, ast.expr) and not isinstance(node, _STILL):
            return False
    return True


def _only_returned(function: FunctionNode) -> ast.expr | None:
    """Return what a function gives that does nothing else; None if it does more."""
    body = [each for each in function.body if not is_docstring(each)]
    return body[0].value if len(body) == 1 and isinstance(body[0], ast.Return) else None


def _expressions(node: ast.AST) -> Iterator[ast.expr]:
    return (each for each in ast.walk(node) if isinstance(each, ast.expr))


def _files(network: Network) -> tuple[SourceFile, ...]:
    return network.file, *(each.file for each in users(network))


def _borrowed(network: Network, site: RunSite) -> Iterator[str]:
    """Yield where code takes the method with the call from its class, for objects that may be any."""
    method = site.scope.body.definition
    if method is None:
        return
    for file in _files(network):
        nodes = () if file.tree is None else walk(file.tree.module)
        taken = (each for each in nodes if isinstance(each, ast.Attribute) and each.attr == method.name)
        for each in taken:
            if last_name(each.value) == site.owner.name:
                where = f"line {each.lineno}{behind_line(file.path, network.file.path)}"
                yield f"`{quoted(each)}` on {where} may be run for an object without `{FLAG}`"


def _mode_doubts(infos: tuple[ClassInfo, ...]) -> Iterator[str]:
    """Yield which classes set the mode of their parts in a way of their own."""
    for info in dict.fromkeys(infos):
        if info.find_method(_MODE) is not None:
            yield f"`{info.name}.{_MODE}` may leave blocks in another mode than the object that runs them"
