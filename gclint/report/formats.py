"""The output formats: a module each, and an entry in this table that says what it needs and can show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Protocol, TextIO, cast

if TYPE_CHECKING:
    from gclint.report.report import Report


@dataclass(frozen=True)
class Entry:
    """A format, as the table knows it without importing its module."""

    module: str
    is_for_people: bool = False
    """Whether its readers get progress as well, and remarks about what would be better understood."""
    shows_runs: bool = False
    """Whether it can show what runs of models say, so that ``gclint verify`` offers it."""
    counts: bool = False
    """Whether it has a form for ``--statistics``."""


FORMATS: Mapping[str, Entry] = {
    "full": Entry("gclint.report.full", is_for_people=True, shows_runs=True, counts=True),
    "concise": Entry("gclint.report.concise", is_for_people=True, shows_runs=True),
    "json": Entry("gclint.report.json", shows_runs=True, counts=True),
    "sarif": Entry("gclint.report.sarif"),
    "github": Entry("gclint.report.github", shows_runs=True),
    "gitlab": Entry("gclint.report.gitlab"),
    "junit": Entry("gclint.report.junit", shows_runs=True),
}
"""The formats by the names that ``--output-format`` takes; their modules are imported when needed."""

DEFAULT = "full"
_RENAMED = {"text": "full"}
"""Names that formats had in earlier versions."""


class Format(Protocol):
    """What the module of a format defines; ``write_statistics`` only where its entry says that it counts."""

    def write(self, report: Report, stream: TextIO) -> None:
        """Write all of a report."""

    def write_statistics(self, report: Report, stream: TextIO) -> None:
        """Write how many findings each rule has, in place of the findings, and the rest of the report."""


def format_named(name: str) -> Format:
    """Return the format that has a name in the table."""
    return cast("Format", import_module(FORMATS[name].module))


def format_complaint(name: str, known: Mapping[str, Entry] | None = None) -> str | None:
    """Return what is wrong with the name of a format, or None if there is one of that name.

    Args:
        name: the name that the user wrote.
        known: the formats to choose from; all of the table unless given.
    """
    known = FORMATS if known is None else known
    if name in known:
        return None
    if _RENAMED.get(name) in known:
        return f"the format {name!r} is now called {_RENAMED[name]!r}"
    return f"there is no format {name!r} here; choose from {', '.join(known)}"


def formats_of_runs() -> Mapping[str, Entry]:
    """Return the formats that can show what runs of models say."""
    return {name: entry for name, entry in FORMATS.items() if entry.shows_runs}
