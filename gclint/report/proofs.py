"""What runs say about repairs, for people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from gclint.finding import Applicability
from gclint.report.findings import counted

if TYPE_CHECKING:
    from pathlib import Path

    from gclint.engine.proof import Proof
    from gclint.verify.files import FileRun
    from gclint.verify.worker.protocol import ClassResult

_CHECKPOINTED = "non-reentrant"
"""The mode whose memory is shown."""


def proof_lines(proofs: Iterable[Proof]) -> Iterator[str]:
    """Yield what becomes of the repair of each file, and why."""
    for proof in proofs:
        names = " and ".join(map(str, proof.paths))
        yield f"{names}: {'not repaired' if proof.obstacles else 'repaired'}"
        for line in (*_repairs(proof), *_runs(proof)):
            yield f"    {line}"


def _repairs(proof: Proof) -> Iterator[str]:
    yield from (f"not proven: {obstacle}" for obstacle in proof.obstacles)
    for finding in proof.repairs:
        if finding.fix is not None and finding.fix.reason:
            unsafe = "unsafe " if finding.fix.applicability is Applicability.UNSAFE else ""
            yield f"{unsafe}{finding.code} of {finding.symbol}: {finding.fix.reason}"


def _runs(proof: Proof) -> Iterator[str]:
    earlier = _by_name(proof.before)
    for name, after in _by_name(proof.after).items():
        before = earlier.get(name)
        if before is None:
            continue
        if after.outcome == "not run":
            yield f"{name} is not run ({after.category}): {after.reason}"
            continue
        yield (
            f"{name}: {before.outcome} before, {after.outcome} after; recomputes {before.recomputed} of "
            f"{counted(before.blocks, 'block')} before, {after.recomputed} of {after.blocks} after"
            f"{_bytes(before, after)}"
        )
        for when, result in (("before", before), ("after", after)):
            for failure in result.failures:
                yield f"    {when}, {failure.mode}, {failure.scenario}: {failure.text}"


def _by_name(runs: Mapping[Path, FileRun]) -> dict[str, ClassResult]:
    return {result.name: result for run in runs.values() for result in run.results}


def _bytes(before: ClassResult, after: ClassResult) -> str:
    saved = [
        next((cost.saved_bytes for cost in result.costs if cost.mode == _CHECKPOINTED), None)
        for result in (before, after)
    ]
    if None in saved:
        return ""
    return f"; keeps {saved[0]:,} bytes before, {saved[1]:,} after"
