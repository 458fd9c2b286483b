"""Whether a block takes its cache for a tuple of tensors, as before there were classes of caches."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gclint.code.walk import walk
from gclint.model.cache_values import ARGUMENT
from gclint.network.evaluation.classes import ClassInfo


def takes_tuples(info: ClassInfo) -> bool:
    """Tell whether a block, with its parts, takes items of its cache, and asks it for nothing else."""
    uses = {use for part in info.all_parts for base in part.mro for use in _uses(base)}
    return uses == {"item"}


def _uses(info: ClassInfo) -> Iterator[str]:
    """Yield how the methods of a class use what they call a cache: as a tuple, or as an object."""
    for method in info.methods():
        for node in walk(method.function):
            if isinstance(node, ast.Attribute) and _is_cache(node.value):
                yield "attribute"
            elif isinstance(node, ast.Subscript) and _is_cache(node.value):
                yield "item"
            elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple):
                yield from ("item",) if _is_cache(node.value) else ()


def _is_cache(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and ARGUMENT.fullmatch(node.id) is not None
