"""What the system limits of a process, and errors about its memory."""

from __future__ import annotations

import errno
import math
import os
import re
import sys
from typing import Any

from gclint.verify.worker.processes import all_processes

# torch's allocators raise a plain RuntimeError on the CPU, and a subclass of it on a GPU.
_SIGNS = ("can't allocate memory", "cannot allocate memory", "not enough memory", "out of memory")

# A GPU has no memory left even for its own libraries.
_FULL = ("CUDA error: out of memory", "CUBLAS_STATUS_ALLOC_FAILED", "CUDNN_STATUS_ALLOC_FAILED")
_SIZE = r"([\d.]{1,12}) (bytes|[KMGT]iB)"
_UNITS = {"bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
_TRIED = re.compile(rf"Tried to allocate {_SIZE}")
_TOTAL = re.compile(rf"total capacity of {_SIZE}")
_ALLOWED = re.compile(rf"{_SIZE} allowed;")
_OWN = (
    re.compile(rf"{_SIZE} is allocated by PyTorch"),
    re.compile(rf"{_SIZE} is reserved by PyTorch but un"),
)
_SHARE = 0.9
"""The share of a GPU that a process would have had alone."""
_gpu_limit: list[float] = []
"""The limit in gigabytes of this process and those that it forks."""


def limit_gpu_memory(gigabytes: float) -> None:
    """Set the GPU memory limit, in gigabytes, of this process and of each one that it forks."""
    _gpu_limit[:] = [gigabytes]


def apply_gpu_limit(torch: Any, device: Any) -> None:
    """Apply the limit in this process, which uses the GPU from now on."""
    if _gpu_limit:
        total = torch.cuda.get_device_properties(device).total_memory
        torch.cuda.set_per_process_memory_fraction(min(1.0, _gpu_limit[-1] * 1e9 / total), device)


def limit_memory(gigabytes: float) -> None:
    """Limit the memory of this process, and of each one that it forks, in gigabytes (10^9 bytes)."""
    # Not the address space: libraries reserve much more of that than they ever use.
    # A system without such a limit kills a process that runs out of memory, which is reported as well.
    _limit("RLIMIT_DATA", int(gigabytes * 1e9))


def limit_seconds(seconds: float) -> None:
    """Limit the CPU time of this process since its start; a process that it forks begins anew."""
    _limit("RLIMIT_CPU", math.ceil(seconds))


def limit_threads(more: int) -> None:
    """Limit how many more threads and processes this user may have, for this process and those that it forks.

    Not all systems count them, and none does so for the superuser.
    """
    user = os.getuid()
    if sys.platform == "linux" and user:
        own = (each for each in all_processes().values() if _is_of(each.number, user))
        _limit("RLIMIT_NPROC", more + sum(each.threads for each in own))


def without_core_dump() -> None:
    """Let a crash of this process leave no file."""
    _limit("RLIMIT_CORE", 0)


def _limit(name: str, wanted: int) -> None:
    """Lower a limit of this process, or set it anew below what it may be, if the system has it."""
    try:
        import resource

        which = getattr(resource, name)
        _, hard = resource.getrlimit(which)
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(which, (soft, hard))
    except (ImportError, AttributeError, OSError, ValueError):
        return


def _is_of(process: int, user: int) -> bool:
    try:
        return os.stat(f"/proc/{process}").st_uid == user  # noqa: PTH116
    except OSError:
        return False


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether ``error`` is about a lack of memory."""
    if isinstance(error, MemoryError):
        return True
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    return isinstance(error, RuntimeError) and any(sign in str(error).lower() for sign in _SIGNS)


def is_crowded_out(error: BaseException) -> bool:
    """Return whether a GPU lacked memory only because other processes use it."""
    text = str(error)
    if not isinstance(error, RuntimeError):
        return False
    if any(sign in text for sign in _FULL):
        return True
    tried, total, allowed = (_bytes(pattern, text) for pattern in (_TRIED, _TOTAL, _ALLOWED))
    if tried is None or total is None:
        return False
    wanted = tried + sum(_bytes(pattern, text) or 0.0 for pattern in _OWN)
    return wanted <= _SHARE * total and (allowed is None or wanted <= allowed)


def _bytes(pattern: re.Pattern[str], text: str) -> float | None:
    found = pattern.search(text)
    return float(found[1]) * _UNITS[found[2]] if found else None
