"""Uses large pages for the memory that a process shares with those that it forks.

Each fork copies the page table, and each process end frees one; with large pages, it has hundreds of times
fewer entries.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from pathlib import Path

_LARGE = 2 << 20
_MADV_COLLAPSE = 25


def enlarge_pages() -> None:
    """Move this process's own memory to large pages, if the system can (Linux from 6.1 on)."""
    if sys.platform != "linux":
        return
    madvise = ctypes.CDLL(None).madvise
    madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    try:
        for begin, end in _own_memory():
            madvise(begin, end - begin, _MADV_COLLAPSE)  # If the system refuses, nothing is lost.
    except OSError:
        return


def _own_memory() -> Iterator[tuple[int, int]]:
    """Yield the ranges of anonymous memory, in whole large pages."""
    for line in Path("/proc/self/maps").read_text(encoding="utf-8").splitlines():
        addresses, rights, _, _, inode, *name = line.split()
        if rights == "rw-p" and inode == "0" and name in ([], ["[heap]"]):
            first, last = (int(each, 16) for each in addresses.split("-"))
            begin, end = -(-first // _LARGE) * _LARGE, last // _LARGE * _LARGE
            if begin < end:
                yield begin, end
