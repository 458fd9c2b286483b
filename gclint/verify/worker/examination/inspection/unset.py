"""Tracks uninitialised memory, whose content is meaningless and differs from run to run."""

from __future__ import annotations

from collections.abc import Iterable

from torch import Tensor

_MAKE = frozenset(
    ("empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided")
)
_FILL = frozenset(
    (
        "bernoulli_",
        "cauchy_",
        "copy_",
        "exponential_",
        "fill_",
        "geometric_",
        "log_normal_",
        "normal_",
        "random_",
        "uniform_",
        "zero_",
    )
)
"""Operations that write to every element of a tensor."""


class Unset:
    """The tensors that were allocated without values, until all of them have been written."""

    def __init__(self) -> None:
        # As long as the tensors are alive, their addresses stay unique.
        self._made: dict[int, Tensor] = {}

    def follow(self, operation: str, outputs: Iterable[Tensor]) -> None:
        """Record what an operation has allocated or filled."""
        for each in outputs:
            if operation in _MAKE and (key := storage(each)):
                self._made[key] = each
            elif operation in _FILL:
                made = self._made.get(storage(each))
                if made is not None and made.numel() == each.numel():
                    del self._made[storage(each)]

    def __contains__(self, value: object) -> bool:
        return bool(self._made) and isinstance(value, Tensor) and storage(value) in self._made


def storage(tensor: Tensor) -> int:
    """Return the address of a tensor's storage, which its views share; 0 if it is unknown."""
    try:
        return int(tensor.untyped_storage().data_ptr())
    except (RuntimeError, NotImplementedError):
        return 0
