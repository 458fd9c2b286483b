"""Which caches a call hands to a block, and whether something disables them while the model checkpoints."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from gclint.network.activation import is_constant, is_guarded
from gclint.network.construction import flag_settings
from gclint.network.evaluation.body import nodes_in
from gclint.network.evaluation.classes import ClassInfo
from gclint.network.evaluation.walk import dotted_name, walk
from gclint.network.outside import FLAG
from gclint.network.runsite import RunSite
from gclint.releases import EVER_NEUTRALISED
from gclint.verify.worker.vocabulary import CACHES, USE_CACHE

_CACHES = (EVER_NEUTRALISED | CACHES) - {USE_CACHE}


def live_caches(site: RunSite) -> Iterator[tuple[str, cst.Arg]]:
    """Yield the caches that a call passes by keyword and that can be there while the model checkpoints."""
    for arg in site.args:
        name = None if arg.keyword is None else arg.keyword.value
        if name in _CACHES and not is_off(site, arg.value):
            yield name, arg


def is_off(site: RunSite, value: cst.BaseExpression) -> bool:
    """Tell whether a value is no cache while the model checkpoints, by itself or by a statement before."""
    if is_constant(value) or is_guarded(value):
        return True
    variable = dotted_name(value.value if isinstance(value, cst.Subscript) else value)
    if variable is None or site.scope.body is None:
        return False
    bindings = list(site.scope.bindings(variable))
    if bindings and not site.scope.parameters.has(variable) and all(is_constant(b.value) for b in bindings):
        return True
    pieces = site.scope.body.pieces_naming((FLAG,))
    return any(_switches_off(node, variable) for node in nodes_in(pieces))


def _switches_off(node: cst.CSTNode, variable: str) -> bool:
    """Tell whether this is an ``if`` on the checkpointing flag that takes the cache, or its flag, away."""
    if not isinstance(node, cst.If) or not any(
        isinstance(each, cst.Attribute) and each.attr.value == FLAG for each in walk(node.test)
    ):
        return False
    return any(
        isinstance(each, cst.Assign)
        and is_constant(each.value)
        and any(dotted_name(target.target) in (variable, USE_CACHE) for target in each.targets)
        for each in walk(node.body)
    )


def has_flag(owner: ClassInfo) -> bool:
    """Tell whether a class has the flag that the library sets while it checkpoints, False at first."""
    return any(setting.is_librarys for setting in flag_settings(owner))
