"""The mode of a step, and a place in the source."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Mode = Literal["plain", "non-reentrant", "reentrant"]
"""How a step is run: without checkpointing, or with it and ``use_reentrant`` off or on."""

CHECKPOINTED: tuple[Mode, ...] = ("non-reentrant", "reentrant")
"""The modes with checkpointing."""


@dataclass(frozen=True)
class Place:
    """A piece of source code; lines count from 1."""

    path: str
    line: int
    end_line: int
