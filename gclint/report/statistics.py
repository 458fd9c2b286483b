"""How many findings each rule has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, TextIO

from gclint.report.findings import is_fixable
from gclint.report.json import write_list

if TYPE_CHECKING:
    from gclint.finding import Finding


@dataclass(frozen=True)
class RuleCount:
    """A rule's findings, and how many of them ``--fix`` repairs."""

    code: str
    name: str
    count: int
    fixable: int


def count_by_rule(findings: Iterable[Finding], *, unsafe: bool) -> list[RuleCount]:
    """Return the counts of the rules that found something, the most frequent first."""
    findings = list(findings)
    rules = Counter((finding.code, finding.name) for finding in findings)
    fixable = Counter(finding.code for finding in findings if is_fixable(finding, unsafe=unsafe))
    counts = [RuleCount(code, name, count, fixable[code]) for (code, name), count in rules.items()]
    return sorted(counts, key=lambda each: (-each.count, each.code))


def write_text(stream: TextIO, counts: Iterable[RuleCount]) -> None:
    """Write a line for every rule."""
    for each in counts:
        stream.write(f"{each.count:>6}  {each.code}  {each.name} ({each.fixable} fixable)\n")


def write_json(stream: TextIO, counts: Iterable[RuleCount]) -> None:
    """Write an object for every rule, as a list."""
    write_list(stream, (asdict(each) for each in counts))
