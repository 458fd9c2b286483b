"""The user's settings for running models."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from gclint.verify.worker.class_settings import ClassSettings

GIGABYTES = 8.0


@dataclass(frozen=True)
class RunSettings:
    """How files are run."""

    python: Path
    """The interpreter."""
    device: str = "auto"
    """``auto``, ``cpu``, ``cuda`` or ``cuda:n``."""
    jobs: int | None = None
    """The number of processes; by default one per core, or per GPU."""
    seconds: float = 120.0
    """The time limit of a class, in CPU time of all its processes."""
    gigabytes: float | None = None
    """The memory limit of a class; by default :data:`GIGABYTES` on a CPU, and none on a GPU."""
    known: tuple[ClassSettings, ...] = ()
    """The user's settings for classes."""
    complete: bool = False
    """Whether to run everything that a comparison of two versions of a model needs."""
    executor: str = "local"
    """The name of the executor."""
    classes: tuple[str, ...] = ()
    """The names of the classes to run; empty for all."""
    practices: tuple[str, ...] = ()
    """The names of the practices that are run in addition to the scenarios."""
