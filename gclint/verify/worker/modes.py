"""The mode of a step, and a place in the source."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Mode = Literal["plain", "non-reentrant", "reentrant"]
"""How a step is run: without checkpointing, or with it and ``use_reentrant`` off or on."""

CHECKPOINTED: tuple[Mode, ...] = ("non-reentrant", "reentrant")
"""The modes with checkpointing."""


@dataclass(frozen=True)
class SourcePlace:
    """A piece of source code; lines count from 1."""

    path: str
    line: int
    end_line: int
    columns: tuple[int, ...] = ()
    """Where it begins and ends in these lines, from 0 in bytes of UTF-8; empty where that is not known."""

    def encloses(self, other: SourcePlace) -> bool:
        """Return whether another place, of which the columns are known as well, is a part of this one."""
        if self.path != other.path or self == other or not (self.columns and other.columns):
            return False
        (start, end), (first, last) = self.columns, other.columns
        return (self.line, start) <= (other.line, first) and (other.end_line, last) <= (self.end_line, end)
