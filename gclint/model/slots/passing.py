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
    alternatives,
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
    """Yield the functions of a module that may run a model: methods of what may hold one, or get one."""
    makers = {*models, *known.MODEL_MAKERS, *_other_names(tree, models)}
    for node in tree.body:
        if isinstance(node, FUNCTIONS):
            yield node
        elif isinstance(node, ast.ClassDef) and node.name not in models:
            inside = [each for each in walk(node) if isinstance(each, (ast.Name, ast.Attribute))]
            is_holding = any(last_name(each) in makers for each in inside)
            methods = (each for each in node.body if isinstance(each, FUNCTIONS))
            yield from (each for each in methods if is_holding or any(_runs_of_given(each)))


def _other_names(tree: ast.Module, models: Collection[str]) -> Iterator[str]:
    """Yield the other names under which a module imports models."""
    for node in tree.body:
        for each in node.names if isinstance(node, ast.ImportFrom) else ():
            if each.name in models and each.asname is not None:
                yield each.asname


def _runs_of_given(function: FunctionNode) -> Iterator[ast.Call]:
    """Yield the calls with caches of what a function gets or makes, as training steps run a model."""
    arguments = function.args
    own = {each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
    for node in walk(function):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            own.update(each.id for each in node.targets if isinstance(each, ast.Name))
    for node in walk(function):
        is_own = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in own
        if is_own and any(_is_cache_argument(each.arg) for each in node.keywords):  # type: ignore[attr-defined]
            yield node  # type: ignore[misc]


def _is_cache_argument(name: str | None) -> bool:
    return name is not None and name != USE_CACHE and ARGUMENT.fullmatch(name) is not None


def _read_later(function: FunctionNode, runs: Iterable[ast.Call]) -> Iterator[ast.AST]:
    """Yield where a function reads one of its own caches behind a run that got it."""
    for run in runs:
        given = {each.value.id for each in run.keywords if isinstance(each.value, ast.Name)}
        for node in walk(function):
            if isinstance(node, ast.Attribute) and node.attr in _READING and _row(node) > _row(run):
                yield from [node] if isinstance(node.value, ast.Name) and node.value.id in given else []


def _row(node: ast.expr) -> int:
    return node.end_lineno or node.lineno


def _doubtful(function: FunctionNode, calls: Collection[ast.AST]) -> Iterator[ast.AST]:
    runs = [each for each in _runs_of_given(function) if each not in calls]
    yield from _read_later(function, runs)
    passed: Counter[str] = Counter()
    waiting: list[tuple[ast.AST, bool]] = [(each, False) for each in function.body]
    names = _fresh_names(function)
    while waiting:
        node, is_repeated = waiting.pop()
        if isinstance(node, ast.Attribute) and node.attr in _READING and not isinstance(node.value, ast.Name):
            yield node
        elif isinstance(node, ast.Call) and node not in calls and (node in runs or _may_run(node)):
            for each in node.keywords:
                if not _is_cache_argument(each.arg):
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
    ways = alternatives(node)
    if ways:
        return all(_is_fresh(each, names) for each in ways)
    if isinstance(node, ast.Name):
        return node.id in names
    if isinstance(node, ast.Call):
        return last_name(node.func) in _FRESH and not node.args
    return is_constant(node, None)
