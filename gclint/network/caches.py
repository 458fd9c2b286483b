"""Caches: which of them a call passes, whether checkpointing disables them, and which blocks need them."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from gclint.network.activation import is_constant, is_guarded
from gclint.network.binding import bind
from gclint.network.construction import flag_settings
from gclint.network.evaluation.body import nodes_in
from gclint.network.evaluation.classes import ClassInfo
from gclint.network.evaluation.walk import children, dotted_name, walk
from gclint.network.outside import FLAG
from gclint.network.runsite import RunSite
from gclint.releases import EVER_NEUTRALISED
from gclint.verify.worker.vocabulary import CACHE_ARGUMENTS, CACHES, USE_CACHE

_CACHES = (EVER_NEUTRALISED | CACHES) - {USE_CACHE}


def live_caches(site: RunSite) -> Iterator[tuple[str, cst.Arg]]:
    """Yield the caches that a call passes by keyword and that stay enabled while the model checkpoints."""
    for arg in site.args:
        name = None if arg.keyword is None else arg.keyword.value
        if name in _CACHES and not is_off(site, arg.value):
            yield name, arg


def is_off(site: RunSite, value: cst.BaseExpression) -> bool:
    """Return whether a value, by itself or by a statement before it, is no cache while checkpointing."""
    if is_constant(value) or is_guarded(value):
        return True
    variable = dotted_name(value.value if isinstance(value, cst.Subscript) else value)
    if variable is None or site.scope.body is None:
        return False
    bindings = list(site.scope.bindings(variable))
    if bindings and not site.scope.parameters.has(variable) and all(is_constant(b.value) for b in bindings):
        return True
    pieces = site.scope.body.pieces_naming((FLAG,))
    return any(_disables(node, variable) for node in nodes_in(pieces))


def _disables(node: cst.CSTNode, variable: str) -> bool:
    """Return whether this is an ``if`` on the checkpointing flag that disables the cache or ``use_cache``."""
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


def requires_cache(block: ClassInfo) -> str | None:
    """Return the cache parameter that a block unpacks without a check for None, if any.

    Such a block needs its cache in training, too, but checkpointing would disable it.
    """
    for part in sorted(block.all_parts, key=lambda part: (part is not block, part.name)):
        found = part.find_method("forward")
        if found is None or not any(name in found[1].text for name in CACHE_ARGUMENTS):
            continue
        scope = part.scope(found[1], found[0].module)
        if scope.body is None:
            continue
        for name in CACHE_ARGUMENTS.intersection(scope.parameters.names):
            # A part may only be run where there is a cache.
            reads = part is block and not any(True for _ in scope.bindings(name))
            for piece in scope.body.pieces_naming((name,)):
                if any(
                    _unpacks(statement, name) or (reads and _reads(statement, name))
                    for statement in piece.nodes or ()
                ):
                    return name
    return None


def _unpacks(statement: cst.CSTNode, name: str) -> bool:
    """Return whether a statement at the top level of a body unpacks or indexes the cache ``name``."""
    if not isinstance(statement, cst.SimpleStatementLine):
        return False
    for small in statement.body:
        if isinstance(small, cst.Assign):
            value = small.value
            if isinstance(value, cst.Subscript) and dotted_name(value.value) == name:
                return True
            if dotted_name(value) == name and isinstance(small.targets[0].target, cst.Tuple):
                return True
    return False


def _reads(statement: cst.CSTNode, name: str) -> bool:
    """Return whether a statement at the top level of a body always reads an attribute of ``name``."""
    if not isinstance(statement, cst.SimpleStatementLine):
        return False
    waiting: list[cst.CSTNode] = list(statement.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, cst.Attribute) and isinstance(node.value, cst.Name) and node.value.value == name:
            return True
        if not isinstance(node, (cst.IfExp, cst.BooleanOperation, cst.Lambda)):
            waiting += children(node)
    return False


def fills_cache(site: RunSite, block: ClassInfo) -> bool:
    """Return whether a method creates the cache that it passes to its blocks, whatever ``use_cache`` is.

    If it does, the cache is needed in training.
    """
    if block.signature is None or site.scope.body is None:
        return False
    for bound in bind(site.args, block.signature).arguments:
        name = None if bound.parameter is None else bound.parameter.name
        if name in EVER_NEUTRALISED - {USE_CACHE} and isinstance(bound.arg.value, cst.Name):
            variable = bound.arg.value.value
            for piece in site.scope.body.pieces(variable):
                if any(_creates_cache(node, variable) for node in piece.nodes or ()):
                    return True
    return False


def _creates_cache(statement: cst.CSTNode, variable: str) -> bool:
    """Return whether a statement assigns a new cache to a variable without checking ``use_cache``."""
    if isinstance(statement, cst.If):
        is_asked = _asks_for_cache(statement.test)
        return not is_asked and any(_creates_cache(inner, variable) for inner in statement.body.body)
    if not isinstance(statement, cst.SimpleStatementLine):
        return False
    for small in statement.body:
        if isinstance(small, (cst.Assign, cst.AnnAssign)) and small.value is not None:
            target = small.targets[0].target if isinstance(small, cst.Assign) else small.target
            if dotted_name(target) == variable and _is_new_cache(small.value):
                return True
    return False


def _is_new_cache(value: cst.BaseExpression) -> bool:
    """Return whether a value is, or may be, a new cache without a check of ``use_cache``."""
    if isinstance(value, cst.BooleanOperation):
        # `use_cache and DynamicCache()` checks it, `past_key_values or DynamicCache()` does not.
        return isinstance(value.operator, cst.Or) and _is_new_cache(value.right)
    if isinstance(value, cst.IfExp):
        return not _asks_for_cache(value.test) and (_is_new_cache(value.body) or _is_new_cache(value.orelse))
    return isinstance(value, cst.Call) and (dotted_name(value.func) or "").endswith("Cache")


def _asks_for_cache(test: cst.BaseExpression) -> bool:
    return any(isinstance(node, cst.Name) and node.value in (USE_CACHE, "training") for node in walk(test))


def has_flag(owner: ClassInfo) -> bool:
    """Return whether a class has the library's checkpointing flag, initialized to False."""
    return any(setting.is_librarys for setting in flag_settings(owner))
