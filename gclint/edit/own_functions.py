"""Finds checkpoint functions of a model's own, which the library replaces once it sets the flags itself.

It gives each module with a flag its function as `_gradient_checkpointing_func`. With an override of the old
switch it does not, and what the code has put there is what runs.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

from gclint.code.file import SourceFile
from gclint.code.lines import mentions
from gclint.code.naming import MODEL_BASE
from gclint.code.neighbouring_files import files_mentioning
from gclint.code.outline import Definition
from gclint.code.paths import behind_line
from gclint.code.questions import Topic
from gclint.code.remembered import remembered
from gclint.code.walk import FUNCTIONS, assigned, dotted_name, is_constant, last_name, text_of, walk
from gclint.network.evaluation.classes import ClassInfo
from gclint.network.evaluation.modules import library_of
from gclint.network.evaluation.values import EvaluatedExternal
from gclint.network.outside import CHECKPOINT_FUNCTION
from gclint.network.override import OldOverride

_OF_TORCH = frozenset((EvaluatedExternal("torch.utils.checkpoint.checkpoint"),))
"""Without options of its own, it does what the library's function does if one asks for the reentrant mode."""
_BY_NAME = frozenset(("getattr", "hasattr", "setattr", "__setattr__"))


@dataclass(frozen=True)
class _OwnFunction:
    """A place that gives a module a checkpoint function, or asks whether it has one."""

    offset: int
    owner: Definition | None
    """The class whose objects are meant; None if any may be."""
    value: str | None = None
    """What is given, if that has a name."""


def own_function_doubts(override: OldOverride, models: Collection[ClassInfo]) -> Iterator[str]:
    """Yield where models with an override, or their parts, may have a checkpoint function of their own."""
    project, home = override.model.module.library.project, override.model.file
    line = {base for part in (*models, *override.parts) for base in part.mro}
    for file in project.chosen(files_mentioning(project, CHECKPOINT_FUNCTION), OWN_FUNCTIONS, "", home):
        project.consult(home, file.path)
        module = library_of(project).module(file)
        for each in _own_functions(file):
            is_torchs = each.value is not None and module.resolve(each.value) == _OF_TORCH
            owner = None if each.owner is None or each.owner.is_local else each.owner
            if not is_torchs and (owner is None or module.classes.get(owner.name) in line):
                where = f"line {file.position(each.offset).row}{behind_line(file.path, home.path)}"
                yield (
                    f"`{CHECKPOINT_FUNCTION}` on {where} may be the model's own, and without the override of "
                    f"`{override.model.name}` the library sets its own instead"
                )
                return


@remembered
def _own_functions(file: SourceFile) -> tuple[_OwnFunction, ...]:
    tree = file.tree if mentions(file.text, CHECKPOINT_FUNCTION) else None
    found = () if tree is None else (each for node in walk(tree.module) for each in _given(file, node))
    # The library's own class of models gives its function to all modules.
    return tuple(each for each in found if MODEL_BASE not in _classes_around(file, each.offset))


OWN_FUNCTIONS = Topic("own-functions", lambda file, _key: bool(_own_functions(file)), is_about_others=True)
"""Asks which files give modules checkpoint functions of their own."""


def _given(file: SourceFile, node: ast.AST) -> Iterator[_OwnFunction]:
    """Yield what a node itself gives a module, or a class, under the name of the checkpoint function."""
    if isinstance(node, FUNCTIONS) and node.name == CHECKPOINT_FUNCTION:
        yield _of(file, node, is_own=True)
    elif isinstance(node, ast.Call) and CHECKPOINT_FUNCTION in map(text_of, node.args):
        is_own = last_name(node.func) in _BY_NAME and _is_self(file, node, node.args[0])
        yield _of(file, node, is_own=is_own)
    elif isinstance(node, ast.keyword) and node.arg == CHECKPOINT_FUNCTION:
        yield _of(file, node, is_own=False)
    for target, value in assigned(node):
        for each in walk(target):
            if is_constant(value, None):
                continue
            if isinstance(each, ast.Attribute) and each.attr == CHECKPOINT_FUNCTION:
                given = None if isinstance(target, (ast.Tuple, ast.List)) else dotted_name(value)
                yield replace(_of(file, each, is_own=_is_self(file, each, each.value)), value=given)
            elif isinstance(each, ast.Name) and each.id == CHECKPOINT_FUNCTION:
                yield _of(file, each, is_own=True)
            elif isinstance(each, ast.Subscript) and text_of(each.slice) == CHECKPOINT_FUNCTION:
                yield _of(file, each, is_own=False)


def _classes_around(file: SourceFile, offset: int) -> dict[str, Definition]:
    return {each.name: each for each in file.outline.around(offset) if each.is_class}


def _is_self(file: SourceFile, node: ast.AST, holder: ast.expr) -> bool:
    return dotted_name(holder) in file.outline.own_names(file.places.start(node))


def _of(file: SourceFile, node: ast.AST, *, is_own: bool) -> _OwnFunction:
    offset = file.places.start(node)
    classes = [*_classes_around(file, offset).values()]
    return _OwnFunction(offset, classes[-1] if is_own and classes else None)
