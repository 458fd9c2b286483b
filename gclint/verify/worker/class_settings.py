"""What cannot be derived about a class, and is stated in gclint's own table or in the settings.

This is a module of its own, since the settings need it in every run of the linter, but not the rest of the
protocol.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class ClassSettings:
    """What is stated about a configuration class or a model class."""

    name: str
    """The name of the class."""
    fields: dict[str, Any] = field(default_factory=dict)
    """Fields of the configuration, and their values in a tiny model."""
    config: dict[str, Any] | None = None
    """A whole configuration of a tiny model, as in a ``config.json``."""
    inputs: str | None = None
    """The function that makes inputs of a model class: ``module:function``, or ``file.py:function``."""
    origin: str = ""
    """Where it is stated, in words for the user; empty for gclint's own table."""
    folder: str = ""
    """The folder in which modules are searched first."""
