"""How models are run, as far as the user decides it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from gclint.verify.worker.known import Known

GIGABYTES = 8.0


@dataclass(frozen=True)
class RunSettings:
    """How files are run."""

    python: Path
    """The interpreter."""
    device: str = "auto"
    """``auto``, ``cpu``, ``cuda`` or ``cuda:n``."""
    jobs: int | None = None
    """How many processes run at once; one for each core, or for each GPU, if that is not said."""
    seconds: float = 120.0
    """The time limit of a class."""
    gigabytes: float | None = None
    """The memory limit of a process; :data:`GIGABYTES` on a CPU, and none on a GPU, if that is not said."""
    known: tuple[Known, ...] = ()
    """What users say about classes of theirs."""
    complete: bool = False
    """Whether to run also what only a comparison of two texts of a model needs."""
    executor: str = "local"
    """The name of what starts the workers, in the table of them."""
    practices: tuple[str, ...] = ()
    """The names of the practices in training that are run beside the scenarios."""
