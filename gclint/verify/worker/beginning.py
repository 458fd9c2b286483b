"""The callback of a Trainer that looks at it when it begins to train."""

from __future__ import annotations

import sys
from typing import Any

from transformers import Trainer, TrainerCallback


class AtBeginning(TrainerCallback):  # type: ignore[misc]
    """Looks once at the trainer that it is a callback of, when training begins."""

    def __init__(self) -> None:
        self._has_looked = False

    def on_train_begin(self, args: Any, state: Any, control: Any, **_others: Any) -> None:
        """Look at the trainer, in the first of the processes that train together."""
        if not self._has_looked and state.is_world_process_zero:
            self.look(_trainer_that_calls())
            self._has_looked = True  # If that raises, it looks again.

    def look(self, trainer: Any) -> None:
        """Look at the trainer."""
        raise NotImplementedError


def _trainer_that_calls() -> Any:
    """Return the trainer from whose ``train()`` this is called: callbacks are not told which one it is."""
    frame = sys._getframe()
    while frame is not None and not isinstance(frame.f_locals.get("self"), Trainer):
        frame = frame.f_back  # type: ignore[assignment]
    return None if frame is None else frame.f_locals["self"]
