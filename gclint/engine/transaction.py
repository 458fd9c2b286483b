"""Undoes the repairs that are not proven."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from gclint.engine.check import collector_paused
from gclint.engine.fix import FixResult
from gclint.engine.proof import Proof
from gclint.finding import Finding
from gclint.rule import Rule
from gclint.source.project import Project


def proven_only(
    project: Project, repaired: FixResult, proofs: Iterable[Proof], rules: Sequence[Rule]
) -> FixResult:
    """Return ``repaired`` without the files whose repair is not proven, and with their findings again.

    Args:
        project: the files, repaired in memory; those that are refused get their old texts back.
        repaired: what was repaired.
        proofs: the verdicts on the repairs.
        rules: the rules that were run.
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
    if proof is None or not any(_is_same(finding, each) for each in proof.repairs):
        return finding
    first, _, _ = proof.obstacles[0].partition(". ")
    return finding.refused(f"its repair was run and is not proven: {first}")


def _is_same(finding: Finding, other: Finding) -> bool:
    return (finding.code, finding.symbol) == (other.code, other.symbol)
