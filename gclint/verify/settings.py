"""How models are run, as far as the user decides it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class RunSettings:
    """How files are run."""

    python: Path
    """The interpreter."""
    device: str = "auto"
    """``auto``, ``cpu``, ``cuda`` or ``cuda:n``."""
    jobs: int = 1
    """How many processes run at once, on a CPU."""
    seconds: float = 120.0
    """The time limit of a class."""
    gigabytes: float = 8.0
    """The memory limit of a process, on a CPU."""
    complete: bool = False
    """Whether to run also what only a comparison of two texts of a model needs."""
