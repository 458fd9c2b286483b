"""The table of output formats, each of which is a module in this package."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, TextIO, cast

if TYPE_CHECKING:
    from gclint.report.report import Report


@dataclass(frozen=True)
class FormatEntry:
    """What is known of a format without importing its module."""

    module: str
    is_for_people: bool = False
    """Whether people read it, so that progress and hints are shown, too."""
    shows_runs: bool = False
    """Whether it can show results of runs, so that ``gclint verify`` offers it."""
    counts: bool = False
    """Whether it supports ``--statistics``."""


FORMATS: Mapping[str, FormatEntry] = {
    "full": FormatEntry("gclint.report.full", is_for_people=True, shows_runs=True, counts=True),
    "concise": FormatEntry("gclint.report.concise", is_for_people=True, shows_runs=True),
    "json": FormatEntry("gclint.report.json", shows_runs=True, counts=True),
    "sarif": FormatEntry("gclint.report.sarif"),
    "github": FormatEntry("gclint.report.github", shows_runs=True),
    "gitlab": FormatEntry("gclint.report.gitlab"),
    "junit": FormatEntry("gclint.report.junit", shows_runs=True),
}
"""The formats by the names that ``--output-format`` takes."""

DEFAULT = "full"
_RENAMED = {"text": "full"}
"""The current names of formats by those in earlier versions."""


def written_as(name: str, *, statistics: bool = False) -> Callable[[Report, TextIO], None]:
    """Import the module of a format, and return its function that writes a report.

    With ``statistics``, that writes the number of findings of each rule instead of the findings.
    """
    module = import_module(FORMATS[name].module)
    return cast("Callable[[Report, TextIO], None]", module.write_statistics if statistics else module.write)


def format_complaint(name: str, known: Mapping[str, FormatEntry] | None = None) -> str | None:
    """Return an error message if no known format, by default of all, has this name; otherwise None."""
    known = FORMATS if known is None else known
    if name in known:
        return None
    if _RENAMED.get(name) in known:
        return f"the format {name!r} is now called {_RENAMED[name]!r}"
    return f"there is no format {name!r} here; choose from {', '.join(known)}"


def formats_of_runs() -> Mapping[str, FormatEntry]:
    """Return the formats that can show results of runs."""
    return {name: entry for name, entry in FORMATS.items() if entry.shows_runs}
