"""The levels of findings."""

from __future__ import annotations

from enum import Enum


class Level(Enum):
    """How bad it is what a finding is about; the gravest first."""

    ERROR = "error"
    """Gradients are wrong or missing, or an exception is raised."""
    WARNING = "warning"
    """Memory is not saved."""
    NOTE = "note"
    """It works today: what a migration would change, and what only concerns comments."""

    def is_at_least(self, other: Level) -> bool:
        """Return whether this is as grave as another level, or graver."""
        order = [*Level]
        return order.index(self) <= order.index(other)
