"""Repairs that are run before they are written: each file's is proven, or not made."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gclint.engine.fix import FixResult
from gclint.engine.units import fixed_together
from gclint.finding import Applicability, Finding
from gclint.rule import Rule
from gclint.source.generated import is_modular
from gclint.source.project import Project
from gclint.verify.files import FileRun, Runner
from gclint.verify.worker.cause import Cause
from gclint.verify.worker.protocol import ClassResult, Failure, Fingerprint, RunSite

_TOLERANCE = 1e-3
"""Relative, for steps that need not give the same bits."""


@dataclass(frozen=True)
class Proof:
    """What became of the repair of files that are written together or not at all."""

    paths: tuple[Path, ...]
    repairs: tuple[Finding, ...]
    before: Mapping[Path, FileRun]
    after: Mapping[Path, FileRun]
    obstacles: tuple[str, ...]
    """What keeps the repair from being written; none if it is proven."""


def prove(project: Project, repaired: FixResult, rules: Iterable[Rule], run: Runner) -> list[Proof]:
    """Run the changed files as they are and as they would be, and judge each repair.

    A file whose repair does not stand stays as it was for those that import from it, so these are
    run once more with what is left.

    Args:
        project: the files, repaired in memory.
        repaired: what was repaired.
        rules: the rules that were run; they know what their defects look like in a run.
        run: runs files.

    Raises:
        NothingRuns: no file at all can be run.
        OSError: a file cannot be read.
    """
    units = _units(project, repaired)
    by_code = {rule.code: rule for rule in rules}
    texts = {path: after for path, (_, after) in repaired.changed.items()}
    files = [path for unit in units for path in unit.run_files]
    before, after = run(files, {}), dict(run(files, texts))
    proofs: dict[int, Proof] = {}
    waiting = units
    while waiting:
        judged = {id(unit): _proof(unit, by_code, before, after) for unit in waiting}
        proofs.update(judged)
        refused = {path for proof in judged.values() if proof.obstacles for path in proof.paths}
        texts = {path: text for path, text in texts.items() if path not in refused}
        touched = project.dependents(refused)
        waiting = [
            unit for unit in units if not proofs[id(unit)].obstacles and not touched.isdisjoint(unit.paths)
        ]
        again = [path for unit in waiting for path in unit.run_files]
        after.update(run(again, texts) if again else {})
    return [proofs[id(unit)] for unit in units]


@dataclass
class _Unit:
    """Files whose repairs stand or fall together."""

    paths: list[Path]
    repairs: list[Finding] = field(default_factory=list)

    @property
    def run_files(self) -> list[Path]:
        """The files whose runs decide: not a modular source, which no model is imported from."""
        return [path for path in self.paths if not is_modular(path)]


def _units(project: Project, repaired: FixResult) -> list[_Unit]:
    units = [_Unit(paths) for paths in fixed_together(project, repaired)]
    unit_of = {path: unit for unit in units for path in unit.paths}
    for finding in repaired.applied:
        changed = [edit.path for edit in finding.edits if edit.path in unit_of]
        if changed:
            unit_of[changed[0]].repairs.append(finding)
    return units


def _proof(
    unit: _Unit, rules: Mapping[str, Rule], before: Mapping[Path, FileRun], after: Mapping[Path, FileRun]
) -> Proof:
    obstacles = list(_obstacles(unit, rules, before, after))
    own = unit.run_files
    return Proof(
        tuple(unit.paths),
        tuple(unit.repairs),
        {path: before[path] for path in own},
        {path: after[path] for path in own},
        tuple(obstacles),
    )


def _obstacles(
    unit: _Unit, rules: Mapping[str, Rule], before: Mapping[Path, FileRun], after: Mapping[Path, FileRun]
) -> Iterator[str]:
    """Yield what is wrong with the repaired files, and what nobody has seen to be right."""
    if not unit.run_files:
        yield "the file that is generated from it is not repaired with it, and that is what runs"
    for path in unit.run_files:
        problem = after[path].problem
        if problem is not None:
            yield problem
            continue
        earlier = {result.name: result for result in before[path].results}
        # A GPU may add in another order each time.
        exact = before[path].device == "cpu"
        for result in after[path].results:
            if result.name in earlier:
                yield from _regressions(earlier[result.name], result, exact=exact)
                for failure in _new_failures(earlier[result.name], result):
                    if not _is_outside(failure, unit.repairs):
                        yield f"{result.name}, {failure.mode}, {failure.scenario}: {failure.text}"
    sites = [site for path in unit.run_files for result in after[path].results for site in result.sites]
    for finding in unit.repairs:
        yield from _doubts(finding, rules.get(finding.code), sites)


def _regressions(before: ClassResult, after: ClassResult, *, exact: bool) -> Iterator[str]:
    """Yield what a class did before and does not do any more."""
    if before.outcome == "not run":
        return
    if after.outcome == "not run":
        yield f"{after.name} cannot be run any more: {after.reason}"
        return
    expected = {each.scenario: each for each in before.fingerprints}
    for found in after.fingerprints:
        if found.scenario in expected and not _same(expected[found.scenario], found, exact=exact):
            yield _difference(after.name, expected[found.scenario], found)


def _new_failures(before: ClassResult, after: ClassResult) -> list[Failure]:
    if "not run" in (before.outcome, after.outcome):
        return []
    known = {_key(failure) for failure in before.failures}
    return [failure for failure in after.failures if _key(failure) not in known]


def _is_outside(failure: Failure, repairs: Sequence[Finding]) -> bool:
    """Tell whether a failure that shows only once something is recomputed is no fault of the repair."""
    if failure.cause is Cause.NO_INPUT_GRADIENT:
        # The hook on the embeddings, which is as it was, does not reach the blocks.
        return True
    # Who asks for unsafe fixes has been told of the statistics: they are why this one is unsafe.
    unsafe = any(each.fix and each.fix.applicability is Applicability.UNSAFE for each in repairs)
    return unsafe and failure.cause is Cause.STATISTICS


def _key(failure: Failure) -> tuple[str, str, str]:
    return failure.check, failure.mode, failure.scenario


def _same(expected: Fingerprint, found: Fingerprint, *, exact: bool) -> bool:
    if exact or expected.digest == found.digest:
        return expected.digest == found.digest
    return expected.norms.keys() == found.norms.keys() and all(
        _close(each, found.norms[name]) for name, each in expected.norms.items()
    )


def _close(expected: float, found: float) -> bool:
    return abs(expected - found) <= _TOLERANCE * max(abs(expected), abs(found))


def _difference(name: str, expected: Fingerprint, found: Fingerprint) -> str:
    where = f"{name} computes something else without checkpointing ({expected.scenario})"
    if expected.loss != found.loss:
        return f"{where}: the loss is {found.loss!r} instead of {expected.loss!r}"
    names = sorted(expected.norms.keys() | found.norms.keys())
    different = [each for each in names if expected.norms.get(each) != found.norms.get(each)]
    return f"{where}: the gradients of {', '.join(different[:3]) or 'some parameters'} are different"


def _doubts(finding: Finding, rule: Rule | None, sites: Sequence[RunSite]) -> Iterator[str]:
    """Yield why a repair is not proven: the defect is still there, or no run shows that it is gone."""
    if rule is not None and not rule.changes_code:
        return
    names = {finding.symbol, *(heir.symbol for heir in finding.heirs)}
    own = [site for site in sites if site.block in names and site.calls]
    if not own:
        yield f"{finding.code}: no model that could be run runs `{finding.symbol}`, so nothing is proven"
        return
    flagged = {rule.flags(site) if rule else None for site in own}
    if True in flagged:
        yield f"{finding.code}: `{finding.symbol}` still has the defect when it is run"
    elif None in flagged:
        yield f"{finding.code}: no run can show whether `{finding.symbol}` is repaired"
