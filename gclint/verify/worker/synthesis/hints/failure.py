"""An error and the lines of source that it came through."""

from __future__ import annotations

import linecache
import re
from collections.abc import Iterator
from functools import cached_property
from typing import Any


class Failure:
    """An exception with the code and the variables of the frames that it passed."""

    def __init__(self, error: BaseException) -> None:
        self.error = error
        self.message = str(error)

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

    def words(self) -> Iterator[str]:
        """Yield the names in the message and in the failing lines, innermost first."""
        yield from re.findall(r"[A-Za-z_]\w+", self.message)
        for _, line in self.frames:
            yield from re.findall(r"[A-Za-z_]\w+", line)

    def numbers(self, pattern: str) -> tuple[int, ...] | None:
        """Return the groups of ``pattern`` in the message as numbers, or None where it does not match."""
        found = re.search(pattern, self.message, re.S)
        return tuple(int(group) for group in found.groups()) if found else None
