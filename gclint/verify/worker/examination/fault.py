"""What ended a run before its time, in words that can be sent from one process to another."""

from __future__ import annotations

import traceback
from dataclasses import dataclass

from gclint.verify.worker.ending import FOREIGN, End, Frame
from gclint.verify.worker.protocol import Place

ENDLESS = "endless recomputation"
"""The kind of fault where a block is recomputed again and again in one backward pass."""
NO_GRADIENT = "no gradient"
"""The kind of fault where no output carries gradient, so that there is nothing to go backward from."""
DEATHS = FOREIGN | {"time limit", "memory limit", "crash", "exit"}
"""The kinds of fault that are the death of the process."""


@dataclass(frozen=True)
class Fault:
    """An error that a run ended with, or the death of its process."""

    kind: str
    """The name of the exception's class, one of the above, or how the process ended."""
    message: str
    frames: tuple[Frame, ...] = ()
    """Where the code was; the innermost first."""
    is_foreign: bool = False
    """Whether the code that was run may not be to blame: it was slow, or somebody else ended the process."""

    @property
    def is_death(self) -> bool:
        """Whether the process died of it."""
        return self.kind in DEATHS

    def place_in(self, path: str) -> Place | None:
        """Return the innermost line of the file at ``path`` that was being executed."""
        frame = End("error", frames=self.frames).place_in(path)
        return Place(path, frame.line, frame.line) if frame else None


def fault_of(error: Exception) -> Fault:
    """Return what is left of an exception: itself it may hold a graph, and need not be sendable."""
    frames = tuple(
        Frame(each.filename, each.lineno or 1) for each in reversed(traceback.extract_tb(error.__traceback__))
    )
    kind = _KINDS.get(type(error), type(error).__name__)
    return Fault(kind, str(error), frames)


class EndlessRecomputation(RuntimeError):
    """A block, which is the message, is recomputed again and again in one backward pass."""


class NoGradient(RuntimeError):
    """No output carries gradient, so there is nothing to go backward from."""


_KINDS: dict[type, str] = {EndlessRecomputation: ENDLESS, NoGradient: NO_GRADIENT}
