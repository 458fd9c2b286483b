"""The results of running repairs, as text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from gclint.code.paths import shown
from gclint.finding import Applicability
from gclint.proof.proving import Proof
from gclint.verify.files import FileRun
from gclint.verify.worker.protocol import ClassResult, Mode
from gclint.wording import counted, first_of

_CHECKPOINTED: Mode = "non-reentrant"
"""The mode whose saved bytes are shown."""


_SHOWN = 3


def proof_lines(proofs: Iterable[Proof], *, shows_runs: bool) -> Iterator[str]:
    """Yield the outcome of each repair with the reasons, and if wanted what came of each class."""
    for proof in proofs:
        names = " and ".join(map(str, proof.paths))
        yield f"{names}: {outcome(proof)}"
        for line in (*reasons(proof, is_full=shows_runs), *(run_lines(proof) if shows_runs else ())):
            yield f"    {line}"


def outcome(proof: Proof) -> str:
    """Return the outcome of a repair in one line."""
    if proof.obstacles:
        return "not repaired"
    names = [result.name for result in proof.classes]
    if not names:
        return "repaired; no run needed"
    more = counted(len(names) - 1, "more class", "more classes")
    classes = names[0] if len(names) == 1 else f"{names[0]} and {more}"
    scenarios = f" in {counted(len(proof.scenarios), 'scenario')}" if proof.scenarios else ""
    return f"repaired; proven by {classes}{scenarios}"


def reasons(proof: Proof, *, is_full: bool = True) -> Iterator[str]:
    """Yield why a repair is not proven, or the caveats of a proven one.

    Objections of one kind, for several classes, scenarios and modes, are only counted unless this
    ``is_full``.
    """
    kinds = proof.kinds or proof.obstacles
    counts = Counter(kinds)
    printed = set()
    for obstacle, kind in zip(proof.obstacles, kinds, strict=True):
        if is_full or kind not in printed:
            more = 0 if is_full else counts[kind] - 1
            others = f" (and {more} more of this kind; --show-fixes lists all)" if more > 0 else ""
            yield f"not proven: {obstacle}{others}"
            printed.add(kind)
    if proof.users_not_given:
        files = first_of((shown(path) for path in proof.users_not_given), _SHOWN)
        yield f"not run, because not given: {files} (they import the changed code)"
    for finding in proof.repairs:
        if finding.fix is not None and finding.fix.reason:
            unsafe = "unsafe " if finding.fix.applicability is Applicability.UNSAFE else ""
            yield f"{unsafe}{finding.code} of {finding.symbol}: {finding.fix.reason}"


def run_lines(proof: Proof) -> Iterator[str]:
    """Yield the results of each class before and after a repair."""
    from gclint.verify.proven import proven_setting

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
        setting = proven_setting(before if proof.obstacles else after)
        if setting is not None:
            yield f"    proven setting: {setting}"


def _by_name(runs: Mapping[Path, FileRun]) -> dict[str, ClassResult]:
    return {result.name: result for run in runs.values() for result in run.results}


def _bytes(before: ClassResult, after: ClassResult) -> str:
    saved = [result.saved.get(_CHECKPOINTED) for result in (before, after)]
    return "" if None in saved else f"; keeps {saved[0]:,} bytes before, {saved[1]:,} after"
