"""Which findings of a run are reported: those in changed files, without those of a baseline."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from gclint.engine.check import CheckResult, check
from gclint.finding import Finding
from gclint.rule import Rule
from gclint.source.project import Project

if TYPE_CHECKING:
    from gclint.engine.baseline import Baseline, Entry

_Result = TypeVar("_Result", bound=CheckResult)


@dataclass(frozen=True)
class Recognised:
    """The findings that a baseline and a run have in common, and those that only the baseline has."""

    known: int = 0
    """How many findings are not reported, since they are in the baseline."""
    stale: Mapping[Entry, int] = field(default_factory=dict)
    """The entries that no longer occur, and how many of each are superfluous."""


@dataclass(frozen=True)
class Selection:
    """Which findings are reported, and with ``--fix`` repaired."""

    project: Project
    paths: Sequence[Path]
    """What the user gave."""
    changed: Set[Path] | None = None
    """The resolved paths of changed files; None to report findings in all files."""
    baseline: Baseline | None = None

    def reported(self, findings: Sequence[Finding]) -> Sequence[Finding]:
        """Return the findings to report; the dependents of a changed file are known only after a check."""
        scope = self._scope()
        if scope is not None:
            findings = [each for each in findings if _is_in(each, scope)]
        return self.baseline.without_known(self.project, findings) if self.baseline else findings

    def files(self, rules: Sequence[Rule]) -> Sequence[Path]:
        """Return the files that may have findings to report; ``rules`` show what depends on a change."""
        if self.changed is None:
            return self.project.paths
        check(self.project, rules)  # The dependencies are known afterwards.
        scope = self.project.dependents(self.changed)
        return [path for path in self.project.paths if path in scope]

    def narrowed(self, result: _Result) -> tuple[_Result, Recognised]:
        """Return ``result`` with the findings to report and the number of files they can be in."""
        scope, recognised = self._scope(), Recognised()
        findings = self.reported(result.findings)
        if self.baseline is not None:
            stale = self.baseline.stale(self.project, result.findings, result.ran, self.paths)
            if scope is not None:
                places = {each: self.project.identify(self.baseline.place(each)) for each in stale}
                stale = Counter({each: n for each, n in stale.items() if places[each] in scope})
            everything = replace(self, baseline=None).reported(result.findings)
            recognised = Recognised(len(everything) - len(findings), stale)
        files = result.files
        if scope is not None:
            files = sum(path in scope for path in result.ran)
        return replace(result, findings=tuple(findings), files=files), recognised

    def _scope(self) -> Set[Path] | None:
        return None if self.changed is None else self.project.dependents(self.changed)


def _is_in(finding: Finding, scope: Set[Path]) -> bool:
    """Return whether a finding, or what is generated from its place, is in one of these files."""
    return finding.path in scope or any(heir.path in scope for heir in finding.heirs)
