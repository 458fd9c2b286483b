"""Which repairs are worth a proof, since a run has executed their code, and which are undone without one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from gclint.code.project import Project
from gclint.finding import Finding
from gclint.proof.proving import Proof
from gclint.rule import Rule
from gclint.run.check import collector_paused
from gclint.run.fix import FixResult
from gclint.verify.worker.cause import Cause


class Reached:
    """The repairs that a run can prove: those of calls that it has executed, and whose damage it has seen."""

    def __init__(self, project: Project, rules: Iterable[Rule]) -> None:
        """Judge findings by what ``project`` has observed."""
        self._project = project
        rules = list(rules)
        self._about_calls = frozenset(rule.code for rule in rules if rule.is_about_calls)
        self._files: set[Path] = set()
        self._hiding = {rule.code for rule in rules if Cause.NOT_A_LAYER in rule.causes}

    def provable(self, findings: Sequence[Finding]) -> list[Finding]:
        """Return the findings without those that would keep others in their files from being proven."""
        own = [each for each in findings if self._doubt(each) is None]
        known = {*own, *(each for each in findings if any(each.is_part_of(other) for other in own))}
        # A repaired finding does not occur in the next pass.
        self._files.update(each.path for each in known)
        return [each for each in findings if each in known or each.path not in self._files]

    def judged(self, result: FixResult) -> FixResult:
        """Return what is left, without fixes that no run can prove."""
        return replace(result, findings=tuple(map(self._judged, result.findings)))

    def _judged(self, finding: Finding) -> Finding:
        doubt = None if finding.fix is None else self._doubt(finding)
        return finding if doubt is None else finding.refused(f"{doubt}, so the repair cannot be proven")

    def _doubt(self, finding: Finding) -> str | None:
        """Return why the calls that a repair is about allow no proof; None if they do."""
        if finding.code not in self._about_calls:
            return None
        names = {finding.symbol, *(inherited.symbol for inherited in finding.inherited_by)}
        observed = (each for path in self._project.paths for each in self._project.observations.of(path))
        run = [each for each in observed if each.block in names]
        if not run:
            return f"none of the classes that were run uses `{finding.symbol}`"
        row = self._project.file(finding.path).position(finding.start).row
        here = [each for each in run if each.path == finding.path and each.first <= row <= each.last]
        shown = {code for each in here or run for code in each.shown}
        # A block that nothing recomputes cannot show what is wrong once it is recomputed.
        if finding.code in shown or self._hiding & shown:
            return None
        return f"no run of `{finding.symbol}` showed the damage"


def proven_only(
    project: Project, repaired: FixResult, proofs: Iterable[Proof], rules: Sequence[Rule]
) -> FixResult:
    """Return ``repaired`` without the files whose repair is not proven, and with their findings again.

    These files get their old texts back in the project.
    """
    refused = {path: proof for proof in proofs if proof.obstacles for path in proof.paths}
    if not refused:
        return repaired
    for path in refused:
        project.replace(path, repaired.changed[path][0])
    with collector_paused():
        left = repaired.rechecked(project, refused.keys(), rules)
    undone = {id(finding) for proof in refused.values() for finding in proof.repairs}
    return replace(
        left,
        findings=tuple(_refused(each, refused) for each in left.findings),
        applied=tuple(each for each in left.applied if id(each) not in undone),
        changed={path: texts for path, texts in left.changed.items() if path not in refused},
    )


def _refused(finding: Finding, refused: dict[Path, Proof]) -> Finding:
    """Return a finding of a refused file, with the reason in place of its fix."""
    proof = refused.get(finding.path)
    same = (finding.code, finding.symbol)
    if proof is None or not any((each.code, each.symbol) == same for each in proof.repairs):
        return finding
    first, _, _ = proof.obstacles[0].partition(". ")
    return finding.refused(f"its repair was run and is not proven: {first}")
