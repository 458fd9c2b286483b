"""What output formats say of findings: headline, documentation, level, whether they can be fixed, counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gclint.finding import RESERVED, Applicability, Finding, Refusal
from gclint.level import Level
from gclint.wording import counted

if TYPE_CHECKING:
    from gclint.report.report import Files
    from gclint.rule import Rule

_DOCUMENTATION = "https://github.com/gclint/gclint/blob/main/docs/rules"


_MOST_CHARACTERS = 600
"""How much a finding says, in the format for people, about why there is no safe fix."""


def documentation_url(named: Finding | Rule) -> str | None:
    """Return the URL of the documentation of a rule, or of that of a finding; None if it is not gclint's."""
    if not named.code.startswith(RESERVED):
        return None
    return f"{_DOCUMENTATION}/{named.code.lower()}_{named.name.replace('-', '_')}.md"


def is_fixable(finding: Finding, *, unsafe: bool) -> bool:
    """Return whether ``--fix`` repairs a finding without a run, with or without unsafe fixes."""
    made = (Applicability.SAFE, Applicability.UNSAFE) if unsafe else (Applicability.SAFE,)
    return finding.fix is not None and finding.fix.applicability in made


def is_provable(finding: Finding) -> bool:
    """Return whether a finding has a fix that is made only if a run proves it."""
    return finding.fix is not None and finding.fix.applicability is Applicability.PROVABLE


def obstacle(finding: Finding) -> str | None:
    """Return why a finding has no safe fix, or None if it has one."""
    if isinstance(finding.remedy, Refusal):
        return f"no fix: {finding.remedy.reason}"
    if finding.remedy.reason is None:
        return None
    return f"{'fix with --verify' if is_provable(finding) else 'unsafe fix'}: {finding.remedy.reason}"


def remarks(finding: Finding) -> Iterator[str]:
    """Yield what follows a finding: why it has no safe fix, and what to write instead."""
    why = obstacle(finding)
    if why is not None:
        yield _shortened(why)
    if finding.fix is not None:
        yield f"help: {finding.fix.message}"


def _shortened(reasons: str) -> str:
    """Return the first of many reasons, and how many more there are."""
    if len(reasons) <= _MOST_CHARACTERS:
        return reasons
    shown, *more = reasons.split("; ")
    while more and len(shown) + len(more[0]) < _MOST_CHARACTERS:
        shown += f"; {more.pop(0)}"
    return f"{shown}; and {len(more)} more, which `--output-format json` has" if more else shown


def headline(finding: Finding) -> str:
    """Return the rule's code, the message, and whether a run confirms or contradicts it."""
    evidence = f" ({finding.evidence.value})" if finding.evidence else ""
    return f"{finding.code} {finding.message}{evidence}"


def with_obstacle(finding: Finding) -> str:
    """Return the headline, and why there is no safe fix, in one line."""
    why = obstacle(finding)
    return f"{headline(finding)}; {why}" if why else headline(finding)


def placed(finding: Finding, project: Files, *, unsafe: bool) -> str:
    """Return the headline after its place and level, with a star if ``--fix`` repairs it."""
    position = project.file(finding.path).position(finding.start)
    star = " [*]" if is_fixable(finding, unsafe=unsafe) else ""
    place = f"{finding.path}:{position.row}:{position.column}"
    return f"{place}: {finding.level.value}: {headline(finding)}{star}"


@dataclass(frozen=True)
class RuleCount:
    """The number of findings of a rule, and how many of them ``--fix`` repairs."""

    code: str
    name: str
    count: int
    fixable: int


def count_by_rule(findings: Iterable[Finding], *, unsafe: bool) -> list[RuleCount]:
    """Return the counts of the rules with findings, the most frequent first."""
    findings = list(findings)
    rules = Counter((finding.code, finding.name) for finding in findings)
    fixable = Counter(finding.code for finding in findings if is_fixable(finding, unsafe=unsafe))
    counts = [RuleCount(code, name, count, fixable[code]) for (code, name), count in rules.items()]
    return sorted(counts, key=lambda each: (-each.count, each.code))


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
