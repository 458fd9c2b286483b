"""A block whose line in ``forward`` reads whatever the runs made by hand say has changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

COUNT = 1.0


class ToyLayer:
    """What is read counts, and not what is computed."""

    count = seen = scale = random = 1.0

    def forward(self, states: float, config: Any) -> Any:
        """Return something of all of them."""
        return states * self.count * self.seen * self.scale * self.random * config.scale * COUNT


_PATH = Path(__file__)
LINE = next(
    number for number, line in enumerate(_PATH.read_text().splitlines(), 1) if "return states" in line
)
PATH = str(_PATH)
