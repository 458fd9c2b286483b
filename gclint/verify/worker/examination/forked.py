"""Runs functions in forks of this process, so that each starts from the same state and changes nothing here.

The result of a function is pickled: tensors as bytes, whatever their device, and tensors that this process
already has as numbers.
"""

from __future__ import annotations

import gc
import io
import pickle
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import IO, Any

import torch
from torch import Tensor

from gclint.verify.worker import child
from gclint.verify.worker.ending import End

_LENGTH = 8
_GARBAGE = 20_000
"""New objects after which garbage is collected: a run is short, and makes little garbage."""


@dataclass(frozen=True)
class Fork:
    """The connection to the process that was forked."""

    send: Callable[[str], None]
    """Sends a line, which arrives at once."""
    _file: IO[bytes]
    _shared: Sequence[Tensor]

    def keep(self, value: Any) -> None:
        """Send ``value``, which replaces the last one; it arrives even if this process dies later."""
        data = _packed(value, self._shared)
        self._file.write(len(data).to_bytes(_LENGTH, "big"))
        self._file.write(data)


def in_fork(
    function: Callable[[Fork], None],
    receive: Callable[[str], None],
    seconds: float,
    shared: Sequence[Tensor] = (),
) -> tuple[Any, End]:
    """Run ``function`` in a fork of this process, as :func:`in_forks` does with several."""
    return in_forks([function], lambda _, line: receive(line), seconds, shared)[0]


def in_forks(
    functions: Sequence[Callable[[Fork], None]],
    receive: Callable[[int, str], None],
    seconds: float,
    shared: Sequence[Tensor] = (),
) -> list[tuple[Any, End]]:
    """Run all ``functions`` at once, each in a fork of this process.

    Args:
        functions: what to run; each receives its connection.
        receive: called with the index of a function and each line that it sends.
        seconds: the time limit.
        shared: tensors that are not sent: where they are part of a result, the originals are returned.
            They must not be changed.

    Returns:
        For each function the value that was sent last, or None, and how its process ended.
    """
    with ExitStack() as stack:
        files = [stack.enter_context(tempfile.TemporaryFile(buffering=0)) for _ in functions]
        tasks = [
            child.Task(partial(_run_function, function, file, shared), seconds)
            for function, file in zip(functions, files, strict=True)
        ]
        ends = [End("killed") for _ in tasks]
        for task, event in child.run(tasks, len(tasks)):
            index = tasks.index(task)
            if isinstance(event, End):
                ends[index] = event
            else:
                receive(index, event)
        return [(_kept(file, shared), end) for file, end in zip(files, ends, strict=True)]


def _run_function(
    function: Callable[[Fork], None], file: IO[bytes], shared: Sequence[Tensor], send: child.Send, _slot: int
) -> None:
    # The threads of a pool do not survive a fork, and shared objects are not garbage of this process.
    torch.set_num_threads(1)
    gc.freeze()
    gc.set_threshold(_GARBAGE)
    function(Fork(send, file, shared))


def _kept(file: IO[bytes], shared: Sequence[Tensor]) -> Any:
    file.seek(0)
    return _last(file.read(), shared)


def _last(data: bytes, shared: Sequence[Tensor]) -> Any:
    """Return the last value that has arrived completely."""
    begin, size = 0, 0
    while True:
        length = int.from_bytes(data[begin + size : begin + size + _LENGTH], "big")
        following = begin + size + _LENGTH
        if not length or following + length > len(data):
            return _Unpickler(memoryview(data)[begin : begin + size], shared).load() if size else None
        begin, size = following, length


def _packed(value: Any, shared: Sequence[Tensor]) -> memoryview:
    buffer = io.BytesIO()
    _Pickler(buffer, shared).dump(value)
    return buffer.getbuffer()


class _Pickler(pickle.Pickler):
    def __init__(self, buffer: IO[bytes], shared: Sequence[Tensor]) -> None:
        super().__init__(buffer, pickle.HIGHEST_PROTOCOL)
        self._numbers = {id(each): number for number, each in enumerate(shared)}

    def persistent_id(self, value: Any) -> int | None:
        return self._numbers.get(id(value))

    def reducer_override(self, value: Any) -> Any:
        if not isinstance(value, Tensor):
            return NotImplemented
        plain = value.detach().cpu()
        dense = (plain.to_dense() if plain.layout != torch.strided else plain).resolve_conj().resolve_neg()
        data = dense.contiguous().flatten().view(torch.uint8) if dense.numel() else torch.empty(0)
        return _tensor, (dense.dtype, tuple(dense.shape), bytearray(data.numpy()))


class _Unpickler(pickle.Unpickler):
    def __init__(self, data: memoryview, shared: Sequence[Tensor]) -> None:
        super().__init__(io.BytesIO(data))
        self._shared = shared

    def persistent_load(self, number: int) -> Tensor:
        return self._shared[number]


def _tensor(dtype: torch.dtype, shape: tuple[int, ...], data: bytearray) -> Tensor:
    if not data:
        return torch.empty(shape, dtype=dtype)
    return torch.frombuffer(data, dtype=dtype).view(shape)
