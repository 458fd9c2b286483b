"""What code around a model does with its cache: whether it passes one that is not fresh, or reads it later.

A model whose blocks get no cache while they are checkpointed computes the same only with an empty one that
nobody looks into. Code that passes on a parameter of its own, or makes a usual cache for one call, does so.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator

from gclint.code.file import SourceFile
from gclint.code.walk import (
    COMPREHENSIONS,
    FUNCTIONS,
    LOOPS,
    FunctionNode,
    children,
    is_constant,
    last_name,
    walk,
)
from gclint.model import known
from gclint.model.cache_values import ARGUMENT
from gclint.verify.worker.vocabulary import USE_CACHE

_READING = frozenset(
    ("get_seq_length", "get_usable_length", "get_mask_sizes", "to_legacy_cache", "key_cache", "value_cache")
)
"""Methods and attributes of caches that tell what is in them."""
_FRESH = frozenset(("DynamicCache", "EncoderDecoderCache"))
_NOT_IN_TRAINING = re.compile(r"generat|^_?prepare_(?:model_)?inputs|^_?reorder_")


def not_fresh(
    files: Iterable[SourceFile], models: Collection[str], calls: Collection[ast.AST]
) -> Iterator[tuple[SourceFile, ast.AST]]:
    """Yield where code around a model may pass a cache that is not fresh, or read what has become of one.

    Args:
        files: those whose code may run the model.
        models: the names of its class, and of what is derived from it.
        calls: of blocks, which get caches as well.
    """
    for file in files:
        for function in () if file.tree is None else _running(file.tree.module, models):
            if not _NOT_IN_TRAINING.search(function.name):
                yield from ((file, each) for each in _doubtful(function, calls))


def _running(tree: ast.Module, models: Collection[str]) -> Iterator[FunctionNode]:
    """Yield the functions of a module that may run a model: methods of what may hold one, and no methods."""
    for node in tree.body:
        if isinstance(node, FUNCTIONS):
            yield node
        elif isinstance(node, ast.ClassDef) and node.name not in models:
            inside = [each for each in walk(node) if isinstance(each, (ast.Name, ast.Attribute))]
            if any(last_name(each) in {*models, *known.MODEL_MAKERS} for each in inside):
                yield from (each for each in node.body if isinstance(each, FUNCTIONS))


def _doubtful(function: FunctionNode, calls: Collection[ast.AST]) -> Iterator[ast.AST]:
    passed: Counter[str] = Counter()
    waiting: list[tuple[ast.AST, bool]] = [(each, False) for each in function.body]
    names = _fresh_names(function)
    while waiting:
        node, is_repeated = waiting.pop()
        if isinstance(node, ast.Attribute) and node.attr in _READING and not isinstance(node.value, ast.Name):
            yield node
        elif isinstance(node, ast.Call) and node not in calls and _may_run(node):
            for each in node.keywords:
                if each.arg in (None, USE_CACHE) or not ARGUMENT.fullmatch(each.arg):
                    continue
                name = each.value.id if isinstance(each.value, ast.Name) else ""
                passed[name] += bool(name)
                if not _is_fresh(each.value, names) or (name and is_repeated) or passed[name] > 1:
                    yield node
        is_repeated |= isinstance(node, (*FUNCTIONS, ast.Lambda, *LOOPS, *COMPREHENSIONS))
        waiting += [(each, is_repeated) for each in children(node)]


def _may_run(call: ast.Call) -> bool:
    """Tell whether a call may be one of a model: classes make outputs, and functions masks."""
    return isinstance(call.func, ast.Attribute) and not call.func.attr.startswith("_")


def _fresh_names(function: FunctionNode) -> set[str]:
    """Return the parameters of a function that are None by default, and the names that it assigns."""
    given = function.args
    positional = [*given.posonlyargs, *given.args]
    defaults = [None] * (len(positional) - len(given.defaults)) + given.defaults + given.kw_defaults
    pairs = zip([*positional, *given.kwonlyargs], defaults, strict=True)
    found = {each.arg for each, default in pairs if default is None or is_constant(default, None)}
    assigned = {
        each.id for each in walk(function) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
    }
    return found | assigned


def _is_fresh(node: ast.expr, names: Collection[str]) -> bool:
    """Tell whether an expression is a cache of this call, or what another one has given back."""
    if isinstance(node, ast.IfExp):
        return _is_fresh(node.body, names) and _is_fresh(node.orelse, names)
    if isinstance(node, ast.Name):
        return node.id in names
    if isinstance(node, ast.Call):
        return last_name(node.func) in _FRESH and not node.args
    return is_constant(node, None)
