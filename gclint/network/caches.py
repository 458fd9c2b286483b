"""Caches: which of them a call passes, whether checkpointing disables them, and which blocks need them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gclint.code.walk import Arg, children, dotted_name, walk
from gclint.network.activation import is_constant, is_guarded
from gclint.network.assignments import is_simple
from gclint.network.binding import bind
from gclint.network.construction import flag_settings
from gclint.network.evaluation.classes import ClassInfo
from gclint.network.outside import FLAG
from gclint.network.runsite import RunSite
from gclint.network.words import words_in
from gclint.releases import EVER_NEUTRALISED
from gclint.verify.worker.vocabulary import CACHE_ARGUMENTS, CACHES, USE_CACHE

_CACHES = (EVER_NEUTRALISED | CACHES) - {USE_CACHE}


def live_caches(site: RunSite) -> Iterator[tuple[str, Arg]]:
    """Yield the caches that a call passes by keyword and that stay enabled while the model checkpoints."""
    for arg in site.args:
        if arg.keyword in _CACHES and not is_off(site, arg.value):
            yield arg.keyword, arg


def is_off(site: RunSite, value: ast.expr) -> bool:
    """Return whether a value, by itself or by a statement before it, is no cache while checkpointing."""
    if is_constant(value) or is_guarded(value):
        return True
    variable = dotted_name(value.value if isinstance(value, ast.Subscript) else value)
    if variable is None:
        return False
    bindings = site.scope.bindings(variable)
    if bindings and not site.scope.parameters.has(variable) and all(is_constant(b.value) for b in bindings):
        return True
    return any(_disables(node, variable) for node in site.scope.body.nodes)


def _disables(node: ast.AST, variable: str) -> bool:
    """Return whether this is an ``if`` on the checkpointing flag that disables the cache or ``use_cache``."""
    if not isinstance(node, ast.If) or not any(
        isinstance(each, ast.Attribute) and each.attr == FLAG for each in walk(node.test)
    ):
        return False
    return any(
        isinstance(each, ast.Assign)
        and is_constant(each.value)
        and any(dotted_name(target) in (variable, USE_CACHE) for target in each.targets)
        for statement in node.body
        for each in walk(statement)
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
        for name in CACHE_ARGUMENTS.intersection(scope.parameters.names):
            # A part may only be run where there is a cache.
            reads = part is block and not scope.bindings(name)
            if any(
                _unpacks(statement, name) or (reads and _reads(statement, name))
                for statement in scope.body.roots
            ):
                return name
    return None


def _unpacks(statement: ast.AST, name: str) -> bool:
    """Return whether a statement at the top level of a body unpacks or indexes the cache ``name``."""
    if not isinstance(statement, ast.Assign):
        return False
    value = statement.value
    if isinstance(value, ast.Subscript):
        return dotted_name(value.value) == name
    return dotted_name(value) == name and isinstance(statement.targets[0], ast.Tuple)


def _reads(statement: ast.AST, name: str) -> bool:
    """Return whether a statement at the top level of a body always reads an attribute of ``name``."""
    waiting = [statement] if is_simple(statement) else []
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == name:
            return True
        if not isinstance(node, (ast.IfExp, ast.BoolOp, ast.Lambda)):
            waiting += children(node)
    return False


def fills_cache(site: RunSite, block: ClassInfo) -> bool:
    """Return whether a method creates the cache that it passes to its blocks, whatever ``use_cache`` is.

    If it does, the cache is needed in training.
    """
    if block.signature is None:
        return False
    for bound in bind(site.args, block.signature).arguments:
        if bound.name in EVER_NEUTRALISED - {USE_CACHE} and isinstance(bound.arg.value, ast.Name):
            variable = bound.arg.value.id
            if any(_creates_cache(statement, variable) for statement in site.scope.body.roots):
                return True
    return False


def _creates_cache(statement: ast.AST, variable: str) -> bool:
    """Return whether a statement assigns a new cache to a variable without checking ``use_cache``."""
    if isinstance(statement, ast.If):
        is_asked = _asks_for_cache(statement.test)
        return not is_asked and any(_creates_cache(inner, variable) for inner in statement.body)
    if not isinstance(statement, (ast.Assign, ast.AnnAssign)) or statement.value is None:
        return False
    target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
    return dotted_name(target) == variable and _is_new_cache(statement.value)


def _is_new_cache(value: ast.expr) -> bool:
    """Return whether a value is, or may be, a new cache without a check of ``use_cache``."""
    if isinstance(value, ast.BoolOp):
        # `use_cache and DynamicCache()` checks it, `past_key_values or DynamicCache()` does not.
        return isinstance(value.op, ast.Or) and _is_new_cache(value.values[-1])
    if isinstance(value, ast.IfExp):
        return not _asks_for_cache(value.test) and (_is_new_cache(value.body) or _is_new_cache(value.orelse))
    return isinstance(value, ast.Call) and (dotted_name(value.func) or "").endswith("Cache")


def _asks_for_cache(test: ast.expr) -> bool:
    return any(word in (USE_CACHE, "training") for word in words_in(test))


def has_flag(owner: ClassInfo) -> bool:
    """Return whether a class has the library's checkpointing flag, initialized to False."""
    return any(setting.is_librarys for setting in flag_settings(owner))
