"""Which repairs are worth a proof: those whose code an earlier run has executed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from gclint.engine.fix import FixResult
from gclint.finding import Finding
from gclint.rule import Rule
from gclint.source.project import Project


class Reached:
    """The repairs that a run can prove: those of calls that it has executed."""

    def __init__(self, project: Project, rules: Iterable[Rule]) -> None:
        """Judge findings by what ``project`` has observed."""
        self._about_calls = frozenset(rule.code for rule in rules if rule.is_about_calls)
        observed = (each for path in project.paths for each in project.observations.of(path))
        self._files: set[Path] = set()
        self._blocks = frozenset(each.block for each in observed)

    def provable(self, findings: Sequence[Finding]) -> list[Finding]:
        """Return the findings without those that would keep others in their files from being proven."""
        # A repaired finding does not occur in the next pass.
        self._files.update(each.path for each in findings if self._has(each))
        return [each for each in findings if self._has(each) or each.path not in self._files]

    def judged(self, result: FixResult) -> FixResult:
        """Return what is left, without fixes that no run can prove."""
        left = (_not_reached(each) if each.fix and not self._has(each) else each for each in result.findings)
        return replace(result, findings=tuple(left))

    def _has(self, finding: Finding) -> bool:
        """Return whether the calls that a repair is about allow a proof."""
        names = {finding.symbol, *(heir.symbol for heir in finding.heirs)}
        return finding.code not in self._about_calls or not self._blocks.isdisjoint(names)


def _not_reached(finding: Finding) -> Finding:
    return finding.refused(
        f"none of the classes that were run uses `{finding.symbol}`, so the repair cannot be proven"
    )
