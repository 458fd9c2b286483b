"""Finds the models that run a class, and whether they support gradient checkpointing."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from gclint.code.naming import names_model
from gclint.code.packages import LIBRARY
from gclint.code.remembered import remembered
from gclint.code.tree import DEFINITIONS
from gclint.code.walk import children, dotted_name, text_of
from gclint.facts import matching
from gclint.network.evaluation.classes import ClassInfo, words_of
from gclint.network.evaluation.modules import ModuleInfo
from gclint.network.importers import users

_ALL = "__all__"

SUPPORT = "supports_gradient_checkpointing"
"""The class attribute with which a model declares support."""


@remembered
def supports_checkpointing(owner: ClassInfo) -> bool:
    """Return whether a model that contains ``owner``, or is it, declares that it supports checkpointing."""
    own = any(map(flag, _models_holding(owner, owner.module)))
    return own or any(map(flag, models_running(owner)))


def is_run_by_a_model(owner: ClassInfo) -> bool:
    """Return whether some model contains ``owner``, or is it."""
    return any(True for _ in _models_holding(owner, owner.module)) or bool(models_running(owner))


@remembered
def models_running(owner: ClassInfo) -> tuple[ClassInfo, ...]:
    """Return the models that contain ``owner``, or are it, in its file, those beside it and its users.

    If none is seen to contain it, as when a function creates it, all models of its file that may are taken.
    """
    models = list(_models_holding(owner, owner.module))
    models += (model for module in users(owner.module) for model in _models_holding(owner, module))
    if not models:
        models = [model for module in _siblings(owner.module) for model in _models_holding(owner, module)]
    if not models:
        models = [info for info in owner.module.classes.values() if is_like_a_model(info)]
        reaching = _reaching(owner) if models else None
        models = [info for info in models if reaching is None or info.name in reaching]
    return tuple(dict.fromkeys(models))


@remembered
def is_like_a_model(info: ClassInfo) -> bool:
    """Return whether a class is a model, or has a base that is not available but named like one."""
    return info.is_model or any(
        names_model(name, is_librarys=base is not None and base.name.partition(".")[0] == LIBRARY)
        for each in info.mro
        for base, name in zip(each.bases, each.base_names, strict=True)
        if not isinstance(base, ClassInfo)
    )


@remembered
def flag(model: ClassInfo) -> bool | None:
    """Return whether a model declares support for checkpointing; None if an unknown base may declare it."""
    for info in model.mro:
        switch = info.switch(SUPPORT)
        if switch is not None:
            return switch
    return False if model.is_model else None


def _models_holding(owner: ClassInfo, module: ModuleInfo) -> Iterator[ClassInfo]:
    for info in module.classes.values():
        if is_like_a_model(info) and (owner in info.mro or any(owner in part.mro for part in info.all_parts)):
            yield info


def _reaching(owner: ClassInfo) -> frozenset[str] | None:
    """Return the definitions of a file that use a class, directly or through others.

    None if code outside of definitions uses it.
    """
    outer = [each for each in owner.file.outline.definitions if each.parent is None]
    outside = _words_outside(owner.module)
    found, waiting = {owner.name}, [owner.name]
    while waiting:
        name = waiting.pop()
        around = [each for each in outer if name in each.text and name in words_of(each)]
        if name in outside or any(each.node.decorator_list for each in around):
            return None
        new = {each.name for each in around} - found
        found |= new
        waiting += new
    return frozenset(found)


@remembered
def _words_outside(module: ModuleInfo) -> frozenset[str]:
    """Return the names in the code of a file outside of definitions, and its texts."""
    tree = module.file.tree
    statements = () if tree is None else (each for each in tree.module.body if not _makes_nothing(each))
    nodes = list(_outside(statements))
    words = (getattr(node, field, None) for node in nodes for field in ("id", "attr"))
    return frozenset(filter(None, (*words, *map(text_of, nodes))))


def _outside(statements: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Yield the nodes of statements without the definitions in them."""
    waiting = list(statements)
    while waiting:
        node = waiting.pop()
        if not isinstance(node, DEFINITIONS):
            yield node
            waiting += children(node)


def _makes_nothing(statement: ast.stmt) -> bool:
    """Return whether a statement only exports names, or is the main part of a script."""
    if isinstance(statement, ast.If):
        test = statement.test
        return isinstance(test, ast.Compare) and dotted_name(test.left) == "__name__"
    if isinstance(statement, ast.Assign):
        return any(dotted_name(target) == _ALL for target in statement.targets)
    if isinstance(statement, (ast.AnnAssign, ast.AugAssign)):
        return dotted_name(statement.target) == _ALL
    call = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(call, ast.Call) and (dotted_name(call.func) or "").startswith(f"{_ALL}.")


def _siblings(module: ModuleInfo) -> Iterator[ModuleInfo]:
    path = module.file.path
    for sibling in matching(path.parent, "mod*ing_*.py") + matching(path.parent, "modular_*.py"):
        other = sibling.name != path.name
        file = module.library.project.available(module.file, sibling) if other else None
        if file is not None:
            yield module.library.module(file)
