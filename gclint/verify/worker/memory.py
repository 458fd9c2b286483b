"""The memory limit of a process, and the errors that speak of it."""

from __future__ import annotations

import errno

# torch's allocators raise a plain RuntimeError on the CPU, and a subclass of it on a GPU.
_SIGNS = ("can't allocate memory", "cannot allocate memory", "not enough memory", "out of memory")


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
