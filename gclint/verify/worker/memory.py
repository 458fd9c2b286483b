"""The memory limit of a process, and the errors that speak of it."""

from __future__ import annotations

import errno
import re
from typing import Any

# torch's allocators raise a plain RuntimeError on the CPU, and a subclass of it on a GPU.
_SIGNS = ("can't allocate memory", "cannot allocate memory", "not enough memory", "out of memory")

# Where a GPU has no memory left even for what its libraries need themselves.
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
"""Of a GPU: what a process would have had if it had been alone there."""
_gpu_limit: list[float] = []
"""In gigabytes, of this process and those that it forks."""


def limit_gpu_memory(gigabytes: float) -> None:
    """Let this process, and those that it forks, take so many gigabytes of a GPU each."""
    _gpu_limit[:] = [gigabytes]


def apply_gpu_limit(torch: Any, device: Any) -> None:
    """Let the limit hold in this process, which uses the GPU from now on."""
    if _gpu_limit:
        total = torch.cuda.get_device_properties(device).total_memory
        torch.cuda.set_per_process_memory_fraction(min(1.0, _gpu_limit[-1] * 1e9 / total), device)


def limit_memory(gigabytes: float) -> None:
    """Let this process, and those that it forks, take so many gigabytes (10^9 bytes) each."""
    try:
        import resource

        # Not the address space: libraries reserve much more of that than they ever use.
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        wanted = int(gigabytes * 1e9)
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))
    except (ImportError, AttributeError, OSError, ValueError):
        # A system without such a limit: whoever runs out of memory is killed there, which is told as well.
        return


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether ``error`` says that memory was refused."""
    if isinstance(error, MemoryError):
        return True
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    return isinstance(error, RuntimeError) and any(sign in str(error).lower() for sign in _SIGNS)


def is_crowded_out(error: BaseException) -> bool:
    """Return whether a GPU refused memory that it would have had without what others have there."""
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
