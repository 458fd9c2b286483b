"""Errors that speak of memory are told from others."""

from __future__ import annotations

import errno

import pytest

from gclint.verify.worker.memory_limits import is_crowded_out, is_out_of_memory


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


_HELD = (
    "CUDA out of memory. Tried to allocate {tried}. GPU 0 has a total capacity of {total} of which 12.00 MiB "
    "is free. {allowed}Of the allocated memory {own} is allocated by PyTorch, and 0 bytes is reserved by "
    "PyTorch but unallocated."
)


def _held(tried: str, own: str, total: str = "1.00 GiB", allowed: str = "") -> RuntimeError:
    return RuntimeError(_HELD.format(tried=tried, own=own, total=total, allowed=allowed))


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        # 0.9 of the GPU is about 922 MiB.
        (_held("512.00 MiB", "300.00 MiB"), True),
        (_held("512.00 MiB", "600.00 MiB"), False),
        (_held("1.00 GiB", "0 bytes"), False),
        (_held("1.00 GiB", "0 bytes", "1200.00 MiB"), True),
        (_held("1.00 GiB", "512.00 KiB", "1.00 TiB"), True),
        (_held("1.00 MiB", "1000.00 KiB", "2048.00 KiB"), False),
        (_held("512.00 MiB", "300.00 MiB", allowed="800.00 MiB allowed; "), False),
        (_held("512.00 MiB", "300.00 MiB", allowed="900.00 MiB allowed; "), True),
        (RuntimeError("CUDA error: out of memory"), True),
        (RuntimeError("CUDA out of memory. Tried to allocate 20.00 GiB"), False),
        (ValueError("CUDA error: out of memory"), False),
    ],
)
def test_only_what_a_gpu_would_have_had_room_for_was_crowded_out(
    error: BaseException, expected: bool
) -> None:
    assert is_crowded_out(error) is expected
