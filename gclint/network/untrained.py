"""Calls that are never recomputed: no gradients are recorded there, or the model is not training."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from enum import Enum

from gclint.code.file import SourceFile
from gclint.code.names import names
from gclint.code.remembered import remembered
from gclint.code.walk import all_nodes, arguments, dotted_name, text_of, walk
from gclint.network.assignments import GRADIENT_SWITCHES
from gclint.network.evaluation.classes import ClassInfo, may_have
from gclint.network.evaluation.modules import ModuleInfo
from gclint.network.evaluation.scope import Scope
from gclint.network.evaluation.values import ClassValue, Instance
from gclint.network.holders import single_attributes
from gclint.network.importers import importers, likely_importers
from gclint.network.learned import is_decorated_unrecorded
from gclint.network.runsite import RunSite, calls_as_sites

_KEEPING = names(
    "config eval load_state_dict modules named_parameters parameters requires_grad_ state_dict train"
)
"""Uses of a module that do not run it."""
_MAX_DEPTH = 3


class Untrained(Enum):
    """Why what a call runs is never recomputed."""

    UNRECORDED = "no gradients are recorded at this call, so there is nothing to recompute"
    EVALUATING = "the call is never reached in training, and nothing else is recomputed"


def untrained(site: RunSite, _depth: int = _MAX_DEPTH) -> Untrained | None:
    """Return why checkpointing never recomputes what a call runs; None if it may."""
    method = site.scope.body.definition
    if not site.place.records or (method is not None and is_decorated_unrecorded(method)):
        return Untrained.UNRECORDED
    choices: list[tuple[ast.If | ast.IfExp, bool]] = [(arm.node, arm.taken) for arm in site.arms]
    choices += _choices(site)
    is_left = any(_is_left_in_training(site, choice, holds=holds) for choice, holds in choices)
    if is_left or _is_behind_training(site):
        return Untrained.EVALUATING
    # What is frozen as a whole is run by its model without gradients.
    is_forward = method is not None and method.name == "forward"
    is_frozen = is_forward and _depth > 0 and _is_run_unrecorded(site.owner, _depth)
    return Untrained.UNRECORDED if is_frozen else None


def _choices(site: RunSite) -> Iterator[tuple[ast.IfExp, bool]]:
    """Yield the conditional expressions that the call is a side of, and whether their tests hold there."""
    for node in () if site.statement is None else walk(site.statement):
        if isinstance(node, ast.IfExp):
            for side, holds in ((node.body, True), (node.orelse, False)):
                if site.call in walk(side):
                    yield node, holds


def _is_left_in_training(site: RunSite, choice: ast.If | ast.IfExp, *, holds: bool) -> bool:
    """Return whether training takes the other side of a choice, which hands on nothing that the call runs."""
    other = choice.orelse if holds else choice.body
    name = dotted_name(site.receiver)
    nodes = (node for each in (other if isinstance(other, list) else [other]) for node in walk(each))
    handed = (arg for node in nodes if isinstance(node, ast.Call) for arg in arguments(node))
    is_handed = name is not None and any(dotted_name(arg.value) == name for arg in handed)
    return not is_handed and _excludes_training(site, choice.test, holds=holds)


def _is_run_unrecorded(owner: ClassInfo, depth: int) -> bool:
    """Return whether no gradients are recorded wherever an object of a class is used."""
    if owner.is_model:
        return False
    project, found = owner.module.library.project, False
    known = {owner.file.path}
    likely = frozenset(likely_importers(project, owner.file, owner.name))
    # Which of them import it is only worth finding out if one of them switches gradients off.
    files = (owner.file, *(project.consult(owner.file, each) for each in sorted(likely)))
    if not any(word in each.text for each in files for word in GRADIENT_SWITCHES):
        return False
    for module, name in ((owner.module, owner.name), *_importers(owner)):
        recorded = _is_recorded_in(module, name, owner, depth)
        if recorded:
            return False
        found = found or recorded is False
        known.add(module.file.path)
    return found and known >= likely


def _importers(owner: ClassInfo) -> Iterator[tuple[ModuleInfo, str]]:
    """Yield the modules that import a class, with the names that it has there."""
    for module in importers(owner.module.library.project, owner):
        for each in module.file.outline.all_imported():
            if each.name == owner.name and ClassValue(owner) in module.lookup(each.bound):
                yield module, each.bound


def _is_recorded_in(module: ModuleInfo, name: str, owner: ClassInfo, depth: int) -> bool | None:
    """Return whether gradients may be recorded where a file uses objects of a class; None if it uses none.

    Args:
        module: the file.
        name: what it calls the class.
        owner: the class.
        depth: how many callers are still looked at.
    """
    attributes = list(single_attributes(module, (name,)))
    # Any other mention beside its own definition may be of an object that is trained.
    if len(attributes) != _mentions(module.file)[name]:
        return True
    if any(owner in info.mro for info in module.classes.values() if info is not owner):
        return True
    found: bool | None = None
    for info in module.classes.values() if attributes else ():
        for method in info.methods():
            # Not where the object is only made.
            if method.name == "__init__" or not may_have(method, attributes):
                continue
            scope = info.scope(method)
            for use in _uses(scope, attributes):
                unrecorded = info is not owner and _is_unrecorded_at(owner, scope, use, depth)
                if unrecorded is False:
                    return True
                found = False if unrecorded else found
    return found


@remembered
def _mentions(file: SourceFile) -> Counter[str]:
    """Return how often the code of a file names something that may be a class, beside defining it."""
    return Counter(word for word in map(_mentioned, all_nodes(file.tree)) if word and word.isidentifier())


def _mentioned(node: ast.AST) -> str | None:
    """Return the name that a node itself reads or spells."""
    if isinstance(node, ast.Name):
        return node.id
    return node.attr if isinstance(node, ast.Attribute) else text_of(node)


def _uses(scope: Scope, attributes: list[str]) -> Iterator[ast.Attribute]:
    """Yield where a method uses one of some attributes, other than to look at it without running it."""
    nodes = scope.body.nodes
    found = [node for node in nodes if isinstance(node, ast.Attribute)]
    kept = {node.value for node in found if node.attr in _KEEPING}
    return (node for node in found if node.attr in attributes and node not in kept)


def _is_unrecorded_at(owner: ClassInfo, scope: Scope, use: ast.Attribute, depth: int) -> bool | None:
    """Return whether no gradients are recorded where an attribute is used; None if it is something else."""
    sites = list(calls_as_sites(scope, scope.span(use)[0], (owner,)))
    if any(site.call.func is use for site in sites):
        values = scope.evaluate(use)
        if values and Instance(owner) not in values:
            return None
    around = (site for site in sites if use in walk(site.call))
    return any(untrained(site, depth - 1) is Untrained.UNRECORDED for site in around)


def _excludes_training(site: RunSite, test: ast.expr, *, holds: bool) -> bool:
    """Return whether the model cannot be training if a test is true, or if it is false."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _excludes_training(site, test.operand, holds=not holds)
    if isinstance(test, ast.BoolOp):
        sides = [_excludes_training(site, side, holds=holds) for side in test.values]
        return any(sides) if isinstance(test.op, ast.And) is holds else all(sides)
    if isinstance(test, ast.Call):
        return not holds and (dotted_name(test.func) or "").rpartition(".")[2] == "is_grad_enabled"
    return not holds and dotted_name(test) == f"{site.scope.self_name}.training"


def _is_behind_training(site: RunSite) -> bool:
    """Return whether a statement before the call returns while the model is training."""
    scope = site.scope
    if scope.body.definition is None:
        return False
    start, _ = scope.span(site.call)
    return any(
        isinstance(node, ast.If)
        and not node.orelse
        and scope.span(node)[1] <= start
        and isinstance(node.body[-1], (ast.Return, ast.Raise))
        and _excludes_training(site, node.test, holds=False)
        for node in scope.body.roots
    )
