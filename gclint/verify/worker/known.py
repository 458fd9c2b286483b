"""What no rule can know about a class, so that somebody has to say it: in gclint's own table or in settings.

A module of its own, since the settings need it in every run of the linter, and the rest of the protocol in
none.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Known:
    """What is known about a configuration class or a model class."""

    name: str
    """The name of the class."""
    fields: dict[str, Any] = field(default_factory=dict)
    """Fields of the configuration, and their values in a tiny model."""
    config: dict[str, Any] | None = None
    """A whole configuration of a tiny model, as in a ``config.json``."""
    inputs: str | None = None
    """The function that makes inputs of a model class: ``module:function``, or ``file.py:function``."""
    origin: str = ""
    """Where it is said, in words for the user; nothing for gclint's own table."""
    folder: str = ""
    """Where modules are looked for first."""
