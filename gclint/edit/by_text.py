"""Code that gives names of a module another meaning without writing them as names: by their text."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from gclint.code.file import SourceFile
from gclint.code.lines import mentions
from gclint.code.paths import behind_line
from gclint.code.remembered import remembered
from gclint.code.walk import all_nodes, called_name, children, dotted_name, text_of
from gclint.edit.replaced import files_imported, is_machinery
from gclint.edit.users import users
from gclint.model.notes import quoted
from gclint.model.usage import FILLING, SETTERS
from gclint.network.evaluation.classes import ClassInfo
from gclint.network.model import Network

_NAMESPACES = frozenset(("globals", "locals", "vars"))
_MODULES = "sys.modules"
_EXECUTING = "exec"
_WORDS = (*_NAMESPACES, "modules", _EXECUTING)


def text_doubts(network: Network, blocks: Collection[ClassInfo]) -> Iterator[str]:
    """Yield where code may put another class, or another ``forward``, in the place of a block's."""
    around = {base for info in blocks for base in info.mro}
    homes = (network.file, *(base.file for base in around))
    using = (module.file for module in users(network))
    for file in dict.fromkeys((*homes, *using, *files_imported(network))):
        if is_machinery(network.project, file):
            continue
        for code, row in (*_setting_any(file), *_naming(file, {base.name for base in around})):
            where = f"on line {row}{behind_line(file.path, network.file.path)}"
            yield f"`{code}` {where} may put something else in a block's place"


@remembered
def _setting_any(file: SourceFile) -> tuple[tuple[str, int], ...]:
    """Return the code and rows of a file that may set names of which nothing is known."""
    tree = file.tree if any(mentions(file.text, word) for word in _WORDS) else None
    nodes = all_nodes(tree)
    parents = {child: node for node in nodes for child in children(node)}
    return tuple(_placed(node) for node in nodes if _may_set(node, parents.get(node)))


def _placed(node: ast.AST) -> tuple[str, int]:
    return quoted(node), getattr(node, "lineno", 0)


def _may_set(node: ast.AST, parent: ast.AST | None) -> bool:
    """Return whether a node executes a text, or something is done with a namespace but to read from it."""
    if isinstance(node, ast.Subscript) and dotted_name(node.value) == _MODULES:
        is_set = isinstance(parent, ast.Attribute) and not isinstance(parent.ctx, ast.Load)
        is_kept = isinstance(parent, (ast.Assign, ast.AnnAssign, ast.NamedExpr)) and parent.value is node
        return is_set or is_kept or called_name(parent or node) in SETTERS
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        return False
    if node.func.id not in _NAMESPACES or node.args:
        return node.func.id == _EXECUTING
    if isinstance(parent, ast.Subscript):
        return not isinstance(parent.ctx, ast.Load)
    if isinstance(parent, ast.Attribute):
        return parent.attr in FILLING
    return node.func.id == "globals" and isinstance(parent, (ast.Assign, ast.NamedExpr))


def _naming(file: SourceFile, names: Collection[str]) -> Iterator[tuple[str, int]]:
    """Yield the calls of a file that get the full name of something of a class as a text."""
    tree = file.tree if any(mentions(file.text, name) for name in names) else None
    for node in all_nodes(tree):
        for each in node.args if isinstance(node, ast.Call) else ():
            parts = (text_of(each) or "").split(".")
            if len(parts) > 1 and all(map(str.isidentifier, parts)) and not set(parts[1:]).isdisjoint(names):
                yield _placed(node)
