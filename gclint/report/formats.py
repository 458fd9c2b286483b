"""The output formats: a module each, and an entry in this table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TextIO

from gclint.report import json, text
from gclint.report.report import Report


@dataclass(frozen=True)
class Format:
    """How a report is written."""

    write: Callable[[Report, TextIO], None]
    """Write all of it."""
    write_statistics: Callable[[Report, TextIO], None]
    """Write how many findings each rule has, in place of the findings."""


FORMATS: Mapping[str, Format] = {
    "text": Format(text.write, text.write_statistics),
    "json": Format(json.write, json.write_statistics),
}
