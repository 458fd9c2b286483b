"""What a block returns through operations whose derivative may be infinite.

Reentrant checkpointing hands a gradient of zeros to what a block returns and nobody uses. Zero times infinity
is no number, and it reaches all that the operation computes with. Without checkpointing, nothing is handed
there.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from gclint.code.names import names
from gclint.model.frames import Frame
from gclint.model.interpreter import Interpreter
from gclint.model.notes import Kind, Root
from gclint.model.objects import is_argument
from gclint.model.values import (
    Box,
    Call,
    Constant,
    Fixed,
    ModelSetting,
    Origin,
    Plain,
    Tensor,
    Unknown,
    Value,
    with_roots,
)

_STEEP = names(
    """
    acos acosh arccos arccosh arcsin arctanh asin atanh cholesky_ex cholesky_solve corrcoef digamma eig eigh
    entr erfinv gammaln hypot inv_ex lgamma log log10 log1p log2 logdet logit lu lu_factor_ex multigammaln
    mvlgamma ndtri pca_lowrank pinv polygamma psi qr reciprocal rsqrt slogdet solve_ex sqrt svd svd_lowrank
    triangular_solve
    """
)
"""What makes no number of a gradient of zeros, at 0, 1, -1 or a singular matrix; tried with torch 2.13.0."""
_DIVIDING = names("div divide true_divide")
_RAISING = names("pow float_power")
_BOUNDING = names("clamp clamp_min clip maximum")
_AWAY = Root(Kind.MADE, "what is away from zero")
"""Of what something was added to, or what was clamped, also where it is seen as a view."""


class Steepness(Interpreter):
    """Follows a block; the sources of tensors are the operations with infinite derivatives they come from."""

    def tensor(self, values: Iterable[Value], roots: Iterable[Root] = ()) -> Value:
        """Return a tensor that is computed from these, and from what they come from."""
        given = tuple(values)
        return _with_sources(super().tensor(given, roots), steep(given))

    def combine(self, node: ast.AST, left: Value, right: Value, frame: Frame) -> Value:
        """Return what an operator makes of two values."""
        found, operator = super().combine(node, left, right, frame), getattr(node, "op", None)
        if isinstance(operator, ast.Add) and (_is_number(left) or _is_number(right)):
            return with_roots(found, (_AWAY,))
        is_steep = (isinstance(operator, ast.Div) and _may_be_zero(right)) or (
            isinstance(operator, ast.Pow) and _may_be_zero(left) and not _is_whole(right)
        )
        return self._marked(found, node, frame) if is_steep else found

    def _compute(self, last: str, call: Call, node: ast.expr, frame: Frame) -> Value:
        found = super()._compute(last, call, node, frame)
        return self._operated(found, last, call.all(), node, frame)

    def _call_of_tensor(
        self, receiver: Value, name: str, call: Call, roots: frozenset[Root], node: ast.expr, frame: Frame
    ) -> Value:
        found = super()._call_of_tensor(receiver, name, call, roots, node, frame)
        return self._operated(found, name, (receiver, *call.all()), node, frame)

    def _call_made(self, name: str, call: Call, node: ast.expr, frame: Frame) -> Value:
        return _with_sources(super()._call_made(name, call, node, frame), steep(call.all()))

    def _operated(
        self, found: Value, name: str, given: tuple[Value, ...], node: ast.expr, frame: Frame
    ) -> Value:
        """Return what an operation gives, which it marks if its derivative may be infinite."""
        name, first, second = name.rstrip("_"), given[:1], given[1:2]
        if name in _BOUNDING or (name == "add" and any(map(_is_number, given))):
            return with_roots(found, (_AWAY,))
        is_steep = (
            (name in _STEEP and any(map(_may_be_zero, first)))
            or (name in _DIVIDING and any(map(_may_be_zero, second)))
            or (name in _RAISING and any(map(_may_be_zero, first)) and not all(map(_is_whole, second)))
        )
        return self._marked(found, node, frame) if is_steep else found

    def _marked(self, found: Value, node: ast.AST, frame: Frame) -> Value:
        place = node.value if isinstance(node, ast.AugAssign) else node
        return _with_sources(found, {Origin(place, frame.space)}) if isinstance(place, ast.expr) else found


def steep(values: Iterable[Value]) -> set[Origin]:
    """Return the operations with infinite derivatives that values come from, or what is in them."""
    found, waiting, met = set[Origin](), list(values), set[int]()
    while waiting:
        for thing in waiting.pop().things:
            if isinstance(thing, Tensor):
                found |= {each for each in thing.sources if isinstance(each, Origin)}
            elif isinstance(thing, Fixed):
                waiting += thing.items
            elif isinstance(thing, Box) and id(thing) not in met:
                met.add(id(thing))
                waiting.append(thing.item)
    return found


def _with_sources(value: Value, sources: set[Origin]) -> Value:
    """Return a value whose tensors that require grad also come from some operations."""
    if not sources:
        return value
    things = []
    for each in value.things:
        if isinstance(each, Tensor) and not each.is_constant:
            every = sources.union(one for one in each.sources if isinstance(one, Origin))
            in_order = sorted(
                every, key=lambda one: (str(one.space.file.path), one.node.lineno, id(one.node))
            )
            each = Tensor(is_inside=each.is_inside, sources=tuple(in_order))
        elif isinstance(each, Fixed):
            each = Fixed(tuple(_with_sources(item, sources) for item in each.items))
        things.append(each)
    return Value(frozenset(things), value.roots)


def _is_number(value: Value) -> bool:
    """Tell whether a value is no tensor, nor an argument that may be one."""
    return bool(value.things) and all(
        isinstance(each, (Plain, Constant, ModelSetting))
        or (isinstance(each, Unknown) and not is_argument(each))
        for each in value.things
    )


def _may_be_zero(value: Value) -> bool:
    """Tell whether a value may be a tensor with zeros in it."""
    return not _is_number(value) and _AWAY not in value.roots


def _is_whole(value: Value) -> bool:
    """Tell whether a value is an exponent with which the derivative is finite everywhere."""
    return all(
        isinstance(each, Constant) and isinstance(each.value, (int, float)) and each.value >= 1
        for each in value.things
    )
