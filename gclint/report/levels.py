"""How each output format shows the levels of findings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from gclint.finding import Finding
from gclint.level import Level
from gclint.wording import counted


@dataclass(frozen=True)
class LevelNames:
    """What stands for a level; text, JSON and SARIF have its name."""

    github: str
    """The command of an annotation."""
    gitlab: str
    """The severity in a code quality report."""
    code_scanning: str
    """The severity of a rule in SARIF, as GitHub's code scanning reads it."""
    editor: str
    """The name of a severity in the protocol of editors."""
    style: str
    """The colour on a terminal."""


LEVELS: Mapping[Level, LevelNames] = {
    Level.ERROR: LevelNames("error", "major", "error", "Error", "bold red"),
    Level.WARNING: LevelNames("warning", "minor", "warning", "Warning", "bold yellow"),
    Level.NOTE: LevelNames("notice", "info", "recommendation", "Information", "bold cyan"),
}


def counted_by_level(findings: Iterable[Finding]) -> str:
    """Return the numbers of findings by level, such as ``2 errors, 1 note``; the gravest first."""
    numbers = Counter(finding.level for finding in findings)
    return ", ".join(counted(numbers[level], level.value) for level in Level if numbers[level])
