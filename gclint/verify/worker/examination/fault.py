"""The error or death that ended a run early, in a form that can be sent to another process."""

from __future__ import annotations

from dataclasses import dataclass, replace

from gclint.verify.worker.ending import FOREIGN, frames_of, innermost
from gclint.verify.worker.protocol import SourcePlace

ENDLESS = "endless recomputation"
"""The kind of fault in which a block is recomputed again and again in one backward pass."""
NO_GRADIENT = "no gradient"
"""The kind of fault in which no output requires grad, so that there is no backward pass."""
NO_INPUT = "None of the inputs have requires_grad"
"""Begins the warning of torch about reentrant checkpoints whose inputs do not require grad."""
DEATHS = FOREIGN | {"time limit", "memory limit", "process limit", "crash", "exit"}
"""The kinds of fault that end the process."""


@dataclass(frozen=True)
class Fault:
    """An error with which a run ended, or the death of its process."""

    kind: str
    """The name of the exception's class, one of the above, or how the process ended."""
    message: str
    frames: tuple[SourcePlace, ...] = ()
    """The frames of the code, the innermost first."""
    is_foreign: bool = False
    """Whether the code may not be at fault: it was slow, or its process was ended from outside."""

    @property
    def is_death(self) -> bool:
        """Whether it ended the process."""
        return self.kind in DEATHS

    def place_in(self, path: str) -> SourcePlace | None:
        """Return the innermost line of the file at ``path`` that was being executed."""
        frame = innermost(self.frames, path)
        return replace(frame, path=path) if frame else None


def fault_of(error: Exception) -> Fault:
    """Return the fault of an exception, which itself may hold a graph or not be picklable."""
    return Fault(_KINDS.get(type(error), type(error).__name__), _message(error), frames_of(error))


def _message(error: Exception) -> str:
    # An exception class of the model may be broken as well.
    try:
        return str(error)
    except Exception as other:
        return f"its message cannot be made: {type(other).__name__}"


class EndlessRecomputation(RuntimeError):
    """A block, which is the message, is recomputed again and again in one backward pass."""


class NoGradient(RuntimeError):
    """No output requires grad, so there is no backward pass."""


_KINDS: dict[type, str] = {EndlessRecomputation: ENDLESS, NoGradient: NO_GRADIENT}
