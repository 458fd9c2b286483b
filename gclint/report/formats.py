"""The table of output formats, each of which is a module in this package."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Protocol, TextIO, cast

if TYPE_CHECKING:
    from gclint.report.report import Report


@dataclass(frozen=True)
class Entry:
    """What is known of a format without importing its module."""

    module: str
    is_for_people: bool = False
    """Whether people read it, so that progress and hints are shown, too."""
    shows_runs: bool = False
    """Whether it can show results of runs, so that ``gclint verify`` offers it."""
    counts: bool = False
    """Whether it supports ``--statistics``."""


FORMATS: Mapping[str, Entry] = {
    "full": Entry("gclint.report.full", is_for_people=True, shows_runs=True, counts=True),
    "concise": Entry("gclint.report.concise", is_for_people=True, shows_runs=True),
    "json": Entry("gclint.report.json", shows_runs=True, counts=True),
    "sarif": Entry("gclint.report.sarif"),
    "github": Entry("gclint.report.github", shows_runs=True),
    "gitlab": Entry("gclint.report.gitlab"),
    "junit": Entry("gclint.report.junit", shows_runs=True),
}
"""The formats by the names that ``--output-format`` takes."""

DEFAULT = "full"
_RENAMED = {"text": "full"}
"""The current names of formats by those in earlier versions."""


class Format(Protocol):
    """The interface of a format's module; ``write_statistics`` is needed only if its entry has ``counts``."""

    def write(self, report: Report, stream: TextIO) -> None:
        """Write a report."""

    def write_statistics(self, report: Report, stream: TextIO) -> None:
        """Write a report with the number of findings of each rule instead of the findings."""


def format_named(name: str) -> Format:
    """Import and return the format with a name in the table."""
    return cast("Format", import_module(FORMATS[name].module))


def print_report(report: Report, name: str, *, statistics: bool = False) -> None:
    """Print a report in the format called ``name``."""
    output = format_named(name)
    (output.write_statistics if statistics else output.write)(report, sys.stdout)


def format_complaint(name: str, known: Mapping[str, Entry] | None = None) -> str | None:
    """Return an error message if no known format, by default of all, has this name; otherwise None."""
    known = FORMATS if known is None else known
    if name in known:
        return None
    if _RENAMED.get(name) in known:
        return f"the format {name!r} is now called {_RENAMED[name]!r}"
    return f"there is no format {name!r} here; choose from {', '.join(known)}"


def formats_of_runs() -> Mapping[str, Entry]:
    """Return the formats that can show results of runs."""
    return {name: entry for name, entry in FORMATS.items() if entry.shows_runs}
