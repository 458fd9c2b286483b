"""The page of a report: its parts, put together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from gclint import __version__
from gclint.proof.evidence import Weighed
from gclint.report.findings import headline, obstacle
from gclint.report.page import classes, matrix, repairs
from gclint.report.page.classes import Ran
from gclint.report.page.excerpts import Sources, brief
from gclint.report.page.view import OUTCOMES, Excerpt, Fact, Line, Origin, Page, Repair, Row
from gclint.report.report import Report
from gclint.report.verification import remark_lines
from gclint.verify.worker.protocol import ClassResult, Environment, SetUpOutcome

_SETUPS: dict[SetUpOutcome, str] = {"works": "work", "fails": "fail", "not run": "were not run"}


def page(report: Report, origin: Origin) -> Page:
    """Return the page of a report."""
    all_repairs = tuple(map(repairs.of_proof, report.proofs or ()))
    found = [*_run(report), *_repaired(report, all_repairs)]
    results = [each.now.result for each in found]
    columns, models = matrix.columns(results), classes.models(results)
    rows = tuple(
        classes.row(
            each.now,
            models[each.now.result.source],
            columns,
            (*each.repairs, *_hinted(report, each)),
            each.before,
            origin.repeat,
        )
        for each in found
    )
    return Page(
        "Gradient checkpointing, checked by gclint",
        tuple(_facts(report, origin)),
        lead=" ".join((_counted(rows), *_counted_setups(results))),
        problems=tuple(_problems(report)),
        columns=columns,
        rows=tuple(sorted(rows, key=lambda each: (OUTCOMES.index(each.outcome), each.model, each.name))),
        repairs=all_repairs,
        findings=tuple(_findings(report)),
        remarks=tuple(remark_lines(report.runs)) if report.runs is not None else (),
    )


@dataclass(frozen=True)
class _Found:
    """The result of a class, and of its repair."""

    now: Ran
    before: Ran | None = None
    repairs: tuple[Repair, ...] = ()


def _run(report: Report) -> Iterator[_Found]:
    if report.runs is not None:
        sources = Sources(report.runs.digests, {})
        yield from (_Found(Ran(result, sources)) for result in report.runs.sorted())


def _repaired(report: Report, all_repairs: Iterable[Repair]) -> Iterator[_Found]:
    """Yield each class that repairs were run with, as it is with the proven ones."""
    proofs = report.proofs or ()
    texts = {path: own for proof in proofs for path, own in proof.changed.items()}
    refused = {path for proof in proofs if proof.obstacles for path in proof.changed}
    old = Sources({}, {path: before for path, (before, _) in texts.items()})
    new = Sources({}, {path: own[path not in refused] for path, own in texts.items()})
    found: dict[tuple[str, str], _Found] = {}
    for proof, repair in zip(proofs, all_repairs, strict=True):
        earlier = {_key(each): each for run in proof.before.values() for each in run.results}
        later = {_key(each): each for run in proof.after.values() for each in run.results}
        for key, before in earlier.items():
            known = found.get(key, _Found(Ran(before, old)))
            if not proof.obstacles and key in later:
                known = _Found(Ran(later[key], new), Ran(before, old), known.repairs)
            found[key] = replace(known, repairs=(*known.repairs, repair))
    yield from (found[key] for key in sorted(found))


def _key(result: ClassResult) -> tuple[str, str]:
    return result.source, result.name


def _hinted(report: Report, found: _Found) -> Iterator[Repair]:
    weighed: Weighed | None = report.weighed
    if weighed is None:
        return
    result = found.now.result
    hints = (hint for failure in result.failures for hint in weighed.hints_of(result, failure))
    yield from repairs.suggested(report, hints)


def _facts(report: Report, origin: Origin) -> Iterator[Fact]:
    yield Fact("Command", origin.command)
    yield Fact("Made", origin.moment)
    yield Fact("gclint", __version__)
    for environment in _environments(report):
        for name in ("transformers", "torch", "Python", "Device"):
            yield Fact(name, getattr(environment, name.lower()))
        if environment.isolation:
            yield Fact("Isolation", "; ".join(environment.isolation))
        if environment.numerics:
            yield Fact("Numbers", "; ".join(environment.numerics))


def _environments(report: Report) -> list[Environment]:
    runs = report.runs.environments.values() if report.runs is not None else ()
    proofs = (run.environment for proof in report.proofs or () for run in proof.after.values())
    return list(dict.fromkeys(each for each in (*runs, *proofs) if each is not None))


def _problems(report: Report) -> Iterator[str]:
    for problem in report.problems:
        where = f":{problem.position.row}" if problem.position else ""
        yield f"{brief(problem.path)}{where}: {problem.message}"
    if report.runs is None:
        return
    if report.runs.problem:
        yield report.runs.problem
    for source in sorted(report.runs.unusable):
        yield f"{brief(source)}: {report.runs.unusable[source].message}"


def _findings(report: Report) -> Iterator[Excerpt]:
    """Yield what the linter says about the files that were run."""
    for finding in report.findings:
        file = report.project.file(finding.path)
        row = file.position(finding.start).row
        why = obstacle(finding)
        yield Excerpt(
            f"{brief(finding.path)}:{row}: {headline(finding)}",
            (Line(row, file.line(row), True),),
            why or "",
        )


def _counted(rows: Sequence[Row]) -> str:
    """Return how many classes had which outcome, in a line."""
    counts = Counter(row.outcome for row in rows)
    parts = ", ".join(f"{counts[outcome]:,} {outcome}" for outcome in OUTCOMES if counts[outcome])
    number = "1 class" if len(rows) == 1 else f"{len(rows):,} classes"
    return f"{number}: {parts}." if rows else "No class was run."


def _counted_setups(results: Iterable[ClassResult]) -> Iterator[str]:
    counts = Counter(setup.outcome for result in results for setup in result.setups)
    if counts:
        parts = ", ".join(f"{counts[outcome]:,} {word}" for outcome, word in _SETUPS.items())
        yield f"Of {counts.total():,} runs in further set-ups, {parts}."
