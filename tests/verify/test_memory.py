"""Errors that speak of memory are told from others."""

from __future__ import annotations

import errno

import pytest

from gclint.verify.worker.memory import is_out_of_memory


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (MemoryError(), True),
        (OSError(errno.ENOMEM, "Cannot allocate memory"), True),
        (OSError(errno.ENOENT, "No such file or directory"), False),
        (RuntimeError("[enforce fail at alloc_cpu.cpp] DefaultCPUAllocator: can't allocate memory"), True),
        (RuntimeError("CUDA out of memory. Tried to allocate 20.00 GiB"), True),
        (RuntimeError("mat1 and mat2 shapes cannot be multiplied"), False),
        (ValueError("the memory of the decoder is missing: out of memory slots"), False),
    ],
)
def test_only_errors_about_memory_are(error: BaseException, expected: bool) -> None:
    assert is_out_of_memory(error) is expected
