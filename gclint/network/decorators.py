"""Which functions of the project decorate the `forward` of a class."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gclint.network.evaluation.classes import ClassInfo
from gclint.network.evaluation.values import Function
from gclint.source.walk import dotted_name


def forward_decorators(info: ClassInfo) -> Iterator[tuple[str, Function]]:
    """Yield the decorators of ``forward`` whose code is at hand, each with the name that it is used by."""
    if info.forward is None:
        return
    owner, method, _ = info.forward
    for decorator in method.function.decorator_list:
        name = dotted_name(decorator.func if isinstance(decorator, ast.Call) else decorator)
        for value in owner.module.resolve(name) if name is not None else ():
            if name is not None and isinstance(value, Function):
                yield name, value
