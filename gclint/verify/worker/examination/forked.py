"""Runs functions in forks of this process, so that each starts from the same state and changes nothing here.

The result of a function is pickled: tensors as bytes, whatever their device.
"""

from __future__ import annotations

import gc
import io
import pickle
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from typing import IO, Any

import torch
from torch import Tensor

from gclint.verify.worker import child
from gclint.verify.worker.ending import End

_GARBAGE = 20_000
"""New objects after which garbage is collected: a run is short, and makes little garbage."""


@dataclass(frozen=True)
class Fork:
    """The connection to the process that was forked."""

    send: Callable[[str], None]
    """Sends a line, which arrives at once."""
    _file: IO[bytes]

    def keep(self, value: Any) -> None:
        """Send ``value``, which replaces the last one; it arrives even if this process dies later."""
        buffer = io.BytesIO()
        _Pickler(buffer, pickle.HIGHEST_PROTOCOL).dump(value)
        self._file.write(buffer.getbuffer())


def in_fork(
    function: Callable[[Fork], None], receive: Callable[[str], None], seconds: float
) -> tuple[Any, End]:
    """Run ``function`` in a fork of this process, as :func:`in_forks` does with several."""
    return in_forks([function], lambda _, line: receive(line), seconds)[0]


def in_forks(
    functions: Sequence[Callable[[Fork], None]], receive: Callable[[int, str], None], seconds: float
) -> list[tuple[Any, End]]:
    """Run all ``functions`` at once, each in a fork of this process.

    Args:
        functions: what to run; each receives its connection.
        receive: called with the index of a function and each line that it sends.
        seconds: the time limit.

    Returns:
        For each function the value that was sent last, or None, and how its process ended.
    """
    with ExitStack() as stack:
        files = [stack.enter_context(tempfile.TemporaryFile(buffering=0)) for _ in functions]
        tasks = [
            child.Task(partial(_run_function, function, file), seconds)
            for function, file in zip(functions, files, strict=True)
        ]
        ends = [End("killed") for _ in tasks]
        for task, event in child.run(tasks, len(tasks)):
            index = tasks.index(task)
            if isinstance(event, End):
                ends[index] = event
            else:
                receive(index, event)
        return [(_kept(file), end) for file, end in zip(files, ends, strict=True)]


def _run_function(function: Callable[[Fork], None], file: IO[bytes], send: child.Send, _slot: int) -> None:
    # The threads of a pool do not survive a fork, and shared objects are not garbage of this process.
    torch.set_num_threads(1)
    gc.freeze()
    gc.set_threshold(_GARBAGE)
    function(Fork(send, file))


def _kept(file: IO[bytes]) -> Any:
    """Return the last value that has arrived completely."""
    file.seek(0)
    data, found = io.BytesIO(file.read()), None
    with suppress(EOFError, pickle.UnpicklingError):
        while True:
            found = pickle.load(data)
    return found


class _Pickler(pickle.Pickler):
    def reducer_override(self, value: Any) -> Any:
        if not isinstance(value, Tensor):
            return NotImplemented
        plain = value.detach().cpu()
        dense = (plain.to_dense() if plain.layout != torch.strided else plain).resolve_conj().resolve_neg()
        data = dense.contiguous().flatten().view(torch.uint8) if dense.numel() else torch.empty(0)
        return _tensor, (dense.dtype, tuple(dense.shape), bytearray(data.numpy()))


def _tensor(dtype: torch.dtype, shape: tuple[int, ...], data: bytearray) -> Tensor:
    if not data:
        return torch.empty(shape, dtype=dtype)
    return torch.frombuffer(data, dtype=dtype).view(shape)
