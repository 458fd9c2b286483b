"""An error, the source lines that it passed, and the inputs of the model.

Hints inspect tensors and modules but create none, so they need neither torch nor transformers.
"""

from __future__ import annotations

import inspect
import linecache
import re
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeGuard

if TYPE_CHECKING:
    import torch


def is_tensor(value: Any) -> TypeGuard[torch.Tensor]:
    """Return whether ``value`` is a tensor."""
    # ``torch.dtype`` has ``is_floating_point`` as well.
    return hasattr(type(value), "dim") and hasattr(type(value), "is_floating_point")


def is_module(value: Any) -> bool:
    """Return whether ``value`` is a part of a model."""
    return hasattr(type(value), "named_parameters")


def constructor_of(module: Any) -> str:
    """Return the source of the constructor of a part of a model; empty if it has none."""
    try:
        return inspect.getsource(type(module).__init__)
    except (OSError, TypeError):
        # The class was created dynamically.
        return ""


class ForwardError:
    """An exception, with the code and the variables of the frames that it passed, and the model's inputs."""

    def __init__(self, error: BaseException, make: Callable[[], dict[str, Any]]) -> None:
        self.error = error
        self.message = str(error)
        self._make = make

    @cached_property
    def inputs(self) -> dict[str, Any]:
        """The inputs of the model, made again, since the model may have changed those that it got."""
        return self._make()

    @cached_property
    def frames(self) -> list[tuple[dict[str, Any], str]]:
        """The local variables and the text of the failing line of each frame, innermost first."""
        found = []
        traceback = self.error.__traceback__
        while traceback is not None:
            frame = traceback.tb_frame
            line = linecache.getline(frame.f_code.co_filename, traceback.tb_lineno)
            found.append((frame.f_locals, line))
            traceback = traceback.tb_next
        return found[::-1]

    @property
    def line(self) -> str:
        """The line that raised the error; empty for an error without a traceback."""
        return self.frames[0][1] if self.frames else ""

    def words(self) -> Iterator[str]:
        """Yield the names in the message and in the failing lines, innermost first."""
        yield from re.findall(r"[A-Za-z_]\w+", self.message)
        for _, line in self.frames:
            yield from re.findall(r"[A-Za-z_]\w+", line)

    def mismatch(self, dimension: int) -> tuple[int, ...] | None:
        """Return the sizes of two tensors, if the message says that they do not match in a dimension."""
        sizes = r"tensor a \((\d+)\) must match the size of tensor b \((\d+)\) at non-singleton dimension"
        return self.numbers(f"{sizes} {dimension}")

    def numbers(self, pattern: str) -> tuple[int, ...] | None:
        """Return the groups of ``pattern`` in the message as numbers, or None if it does not match."""
        found = re.search(pattern, self.message, re.S)
        return tuple(int(group) for group in found.groups()) if found else None
