"""Functions of the project that checkpoint layers, and see the arguments of each call as they are passed."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gclint.code.lines import mentions
from gclint.code.outline import Definition
from gclint.code.paths import behind_line
from gclint.code.remembered import remembered
from gclint.code.walk import arguments, last_name, text_of
from gclint.edit.replaced import files_imported, is_machinery
from gclint.edit.users import code_of, users
from gclint.model.notes import quoted
from gclint.network.evaluation.modules import ModuleInfo
from gclint.network.evaluation.scope import Scope
from gclint.network.evaluation.values import EvaluatedExternal
from gclint.network.model import Network
from gclint.network.outside import CHECKPOINT_FUNCTION
from gclint.network.runsite import CHECKPOINT_FUNCTIONS

_OPTION = CHECKPOINT_FUNCTION.removeprefix("_")
"""The parameter by which models hand the function on to their parts."""
_SETTERS = frozenset(("setattr", "__setattr__"))


def checkpointing_doubts(network: Network) -> Iterator[str]:
    """Yield where code around may give layers another checkpoint function than torch's."""
    imported = map(network.library.module, files_imported(network))
    for module in dict.fromkeys((network.module, *users(network), *imported)):
        for code, row in _given(module) if not is_machinery(network.project, module.file) else ():
            where = f"on line {row}{behind_line(module.file.path, network.file.path)}"
            yield f"`{code}` {where} may checkpoint layers, and mind how their arguments are passed"


@remembered
def _given(module: ModuleInfo) -> tuple[tuple[str, int], ...]:
    """Return the checkpoint functions of its own that a module sets, or has as methods, with their rows."""

    def is_named(definition: Definition) -> bool:
        return mentions(definition.text, _OPTION)

    own = (info.definition.method(CHECKPOINT_FUNCTION) for info in module.classes.values())
    found = [(each.name, each.node.lineno) for each in own if each is not None]
    for info in module.classes.values():
        if info.class_attribute(CHECKPOINT_FUNCTION):
            found.append((CHECKPOINT_FUNCTION, info.definition.node.lineno))
    for _, scope in code_of(module, is_named) if mentions(module.file.text, _OPTION) else ():
        values = (value for node in scope.body.nodes for value in _set(node))
        found += [(quoted(each), each.lineno) for each in values if not _is_known(each, scope)]
    return tuple(found)


def _set(node: ast.AST) -> Iterator[ast.expr]:
    """Yield what a node makes the checkpoint function of something."""
    if isinstance(node, ast.Assign) and any(last_name(each) == CHECKPOINT_FUNCTION for each in node.targets):
        yield node.value
    elif isinstance(node, ast.Call):
        given = [arg.value for arg in arguments(node)]
        if last_name(node.func) in _SETTERS and CHECKPOINT_FUNCTION in map(text_of, given):
            yield given[-1]
        yield from (each.value for each in node.keywords if each.arg == _OPTION)


def _is_known(value: ast.expr, scope: Scope) -> bool:
    """Return whether a function is torch's, or the one that something was given itself."""
    if isinstance(value, ast.Constant) or last_name(value) in (CHECKPOINT_FUNCTION, _OPTION):
        return True
    values = scope.evaluate(value)
    return bool(values) and all(
        isinstance(each, EvaluatedExternal) and each.name in CHECKPOINT_FUNCTIONS for each in values
    )
