"""Blocks that need their cache in training, so that checkpointing must not take it away."""

from __future__ import annotations

import libcst as cst

from gclint.network.binding import bind
from gclint.network.evaluation.classes import ClassInfo
from gclint.network.evaluation.walk import children, dotted_name, walk
from gclint.network.runsite import RunSite
from gclint.releases import EVER_NEUTRALISED
from gclint.verify.worker.vocabulary import CACHE_ARGUMENTS, USE_CACHE


def requires_cache(block: ClassInfo) -> str | None:
    """Return the cache parameter that a block takes apart without asking whether it is there.

    Such a block needs its cache in training too, and checkpointing would take it away.
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
                    _takes_apart(statement, name) or (reads and _reads(statement, name))
                    for statement in piece.nodes or ()
                ):
                    return name
    return None


def _takes_apart(statement: cst.CSTNode, name: str) -> bool:
    """Tell whether a statement at the top of a body unpacks or indexes the cache ``name``."""
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
    """Tell whether a statement at the top of a body takes an attribute of ``name``, whatever it is."""
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
    """Tell whether a stack makes the cache that it hands to its blocks itself, whatever ``use_cache`` says.

    Then something reads in training what the blocks have written.
    """
    if block.signature is None or site.scope.body is None:
        return False
    for bound in bind(site.args, block.signature).arguments:
        name = None if bound.parameter is None else bound.parameter.name
        if name in EVER_NEUTRALISED - {USE_CACHE} and isinstance(bound.arg.value, cst.Name):
            variable = bound.arg.value.value
            for piece in site.scope.body.pieces(variable):
                if any(_makes_cache(node, variable) for node in piece.nodes or ()):
                    return True
    return False


def _makes_cache(statement: cst.CSTNode, variable: str) -> bool:
    """Tell whether a statement assigns a new cache to a variable without asking for ``use_cache``."""
    if isinstance(statement, cst.If):
        asked = any(
            isinstance(node, cst.Name) and node.value in (USE_CACHE, "training")
            for node in walk(statement.test)
        )
        return not asked and any(_makes_cache(inner, variable) for inner in statement.body.body)
    if not isinstance(statement, cst.SimpleStatementLine):
        return False
    for small in statement.body:
        if isinstance(small, cst.Assign) and isinstance(small.value, cst.Call):
            made = dotted_name(small.value.func) or ""
            target = small.targets[0].target
            if isinstance(target, cst.Name) and target.value == variable and made.endswith("Cache"):
                return True
    return False
