"""The number of findings per rule."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gclint.report.findings import is_fixable

if TYPE_CHECKING:
    from gclint.finding import Finding


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
