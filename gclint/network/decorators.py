"""Which functions of the project decorate the `forward` of a class."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from gclint.network.evaluation.classes import ClassInfo
from gclint.network.evaluation.signature import header_fragment
from gclint.network.evaluation.values import Function
from gclint.network.evaluation.walk import dotted_name


def forward_decorators(info: ClassInfo) -> Iterator[tuple[str, Function]]:
    """Yield the decorators of ``forward`` whose code is at hand, each with the name that it is used by."""
    if info.forward is None:
        return
    owner, method, _ = info.forward
    header = header_fragment(owner.file, method) if method.start != method.header else None
    node = None if header is None else header.body[0]
    for decorator in node.decorators if isinstance(node, cst.FunctionDef) else ():
        called = decorator.decorator
        name = dotted_name(called.func if isinstance(called, cst.Call) else called)
        for value in owner.module.resolve(name) if name is not None else ():
            if name is not None and isinstance(value, Function):
                yield name, value
