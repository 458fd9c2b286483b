"""The output formats: a module each, and an entry in this table."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Protocol, TextIO, cast

if TYPE_CHECKING:
    from gclint.report.report import Report

FORMATS: Mapping[str, str] = {"text": "gclint.report.text", "json": "gclint.report.json"}
"""The modules, by the names that ``--output-format`` takes; they are imported when they are needed."""


class Format(Protocol):
    """What such a module defines."""

    def write(self, report: Report, stream: TextIO) -> None:
        """Write all of a report."""

    def write_statistics(self, report: Report, stream: TextIO) -> None:
        """Write how many findings each rule has, in place of the findings, and the rest of the report."""


def format_named(name: str) -> Format:
    """Return the format that has a name in the table."""
    return cast("Format", import_module(FORMATS[name]))
