"""What every output format says about findings: what can be repaired, and where to read more."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Protocol

from gclint.finding import Applicability, Finding, Refusal
from gclint.rule import all_rules

if TYPE_CHECKING:
    from gclint.rule import Level

_DOCUMENTATION = "https://github.com/gclint/gclint/blob/main/docs/rules"


class _Named(Protocol):
    """A rule, or a finding of one."""

    @property
    def code(self) -> str: ...

    @property
    def name(self) -> str: ...


def documentation_url(named: _Named) -> str:
    """Return where a rule is explained: a file named like the rule's module."""
    return f"{_DOCUMENTATION}/{named.code.lower()}_{named.name.replace('-', '_')}.md"


@cache
def _levels() -> dict[str, Level]:
    return {rule.code: rule.level for rule in all_rules()}


def level_of(finding: Finding) -> Level:
    """Return how bad a finding is, as its rule says."""
    return _levels().get(finding.code, "error")


def is_fixable(finding: Finding, *, unsafe: bool) -> bool:
    """Return whether ``--fix`` repairs it without a run; ``unsafe`` says whether it may make unsafe fixes."""
    made = (Applicability.SAFE, Applicability.UNSAFE) if unsafe else (Applicability.SAFE,)
    return finding.fix is not None and finding.fix.applicability in made


def is_provable(finding: Finding) -> bool:
    """Return whether only a run that proves it makes the fix."""
    return finding.fix is not None and finding.fix.applicability is Applicability.PROVABLE


def obstacle(finding: Finding) -> str | None:
    """Return why there is no safe fix, or None where there is one."""
    if isinstance(finding.remedy, Refusal):
        return f"no fix: {finding.remedy.reason}"
    if finding.remedy.reason is None:
        return None
    return f"{'fix with --verify' if is_provable(finding) else 'unsafe fix'}: {finding.remedy.reason}"


def headline(finding: Finding) -> str:
    """Return the rule's code, what is wrong, and what a run says about it."""
    evidence = f" ({finding.evidence.value})" if finding.evidence else ""
    return f"{finding.code} {finding.message}{evidence}"


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """Return a number and its noun: ``1 finding``, ``2 findings``."""
    return f"{number} {noun}" if number == 1 else f"{number} {plural or f'{noun}s'}"
