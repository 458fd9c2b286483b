"""The format for programs: a JSON list of findings with ruff's fields, ``symbol`` and others.

As in ruff's output, a file that cannot be read is in the list with ``code`` null. If models were run, or
``--show-fixes`` is given, the output is an object: the list is its field ``findings``, beside the results of
the runs, and the repaired findings in ``fixed``.
"""

from __future__ import annotations

import os
from dataclasses import asdict
from typing import TYPE_CHECKING, TextIO

from gclint import __version__
from gclint.finding import in_reading_order
from gclint.level import Level
from gclint.report.findings import count_by_rule, documentation_url
from gclint.report.printing import write_object

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from gclint.finding import Duty, Edit, Finding, Fix, Position, Problem, StoryStep
    from gclint.proof.evidence import Hint, Weighed
    from gclint.proof.proving import Proof
    from gclint.report.report import Files, Report
    from gclint.verify.results import Results
    from gclint.verify.worker.protocol import ClassResult


def write(report: Report, stream: TextIO) -> None:
    """Write the findings and results of runs; rows and columns count from 1, columns in characters."""
    entries = [
        *(_finding(report.project, finding) for finding in report.findings),
        *(_problem(problem) for problem in report.problems),
    ]
    if report.runs is None and report.proofs is None and not report.shows_fixes:
        write_object(entries, stream)
        return
    document: dict[str, object] = {"gclint": __version__, "findings": entries}
    if report.shows_fixes:
        document["fixed"] = [_fixed(finding) for finding in in_reading_order(report.repairs.made)]
        document["duties"] = [_duty(duty) for duty in report.repairs.duties]
    if report.proofs is not None:
        document["proofs"] = [_proof(proof) for proof in report.proofs]
    if report.runs is not None:
        document.update(_runs(report.runs, report.weighed))
    write_object(document, stream)


def write_statistics(report: Report, stream: TextIO) -> None:
    """Write a list with an object for each rule that has findings, followed by the problems."""
    counts = count_by_rule(report.findings, unsafe=report.unsafe)
    write_object([*(asdict(each) for each in counts), *(_problem(each) for each in report.problems)], stream)


def _finding(project: Files, finding: Finding) -> dict[str, object]:
    return {
        "code": finding.code,
        "name": finding.name,
        "level": finding.level.value,
        "message": finding.message,
        "reason": None if finding.fix else finding.remedy.reason,
        "symbol": finding.symbol,
        "evidence": finding.evidence.value if finding.evidence else None,
        "filename": str(finding.path),
        **_span(project, finding),
        "fix": _fix(project, finding.fix) if finding.fix else None,
        "inherited_by": [
            {"filename": _spelled(project, inherited.path), "symbol": inherited.symbol}
            for inherited in finding.inherited_by
            if inherited.defines
        ],
        "story": [_step(project, step) for step in finding.story],
        "url": documentation_url(finding),
    }


def _step(project: Files, step: StoryStep) -> dict[str, object]:
    return {
        "message": step.message,
        "filename": _spelled(project, step.path),
        **_span(project, step),
    }


def _spelled(project: Files, path: Path) -> str:
    """Return a path as the user's paths are spelled, which may be relative."""
    if path in project.given or all(each.is_absolute() for each in project.paths):
        return str(path)
    return os.path.relpath(path)


def _problem(problem: Problem) -> dict[str, object]:
    """Return a problem as a finding without a rule."""
    location = None if problem.position is None else _location(problem.position)
    return {
        "code": None,
        "name": None,
        "level": Level.ERROR.value,
        "message": problem.message,
        "reason": None,
        "symbol": None,
        "evidence": None,
        "filename": str(problem.path),
        "location": location,
        "end_location": location,
        "fix": None,
        "inherited_by": [],
        "story": [],
        "url": None,
    }


def _fix(project: Files, fix: Fix) -> dict[str, object]:
    return {
        "applicability": fix.applicability.value,
        "message": fix.message,
        "reason": fix.reason,
        "edits": [
            {
                "content": edit.content,
                "filename": str(edit.path),
                **_span(project, edit),
            }
            for edit in fix.edits
        ],
    }


def _fixed(finding: Finding) -> dict[str, object]:
    """Return a repaired finding without its place, which refers to the text before the repair."""
    fix = finding.fix
    return {
        "code": finding.code,
        "name": finding.name,
        "level": finding.level.value,
        "message": finding.message,
        "symbol": finding.symbol,
        "filename": str(finding.path),
        "applicability": fix.applicability.value if fix else None,
        "fix": fix.message if fix else None,
        "reason": fix.reason if fix else None,
        "changed": sorted({str(edit.path) for edit in finding.edits}),
        "duties": [_duty(duty) for duty in fix.duties] if fix else [],
        "url": documentation_url(finding),
    }


def _duty(duty: Duty) -> dict[str, str]:
    return {"filename": str(duty.path), "message": duty.text}


def _span(project: Files, place: Finding | StoryStep | Edit) -> dict[str, object]:
    file = project.file(place.path)
    ends = {"location": place.start, "end_location": place.end}
    return {name: _location(file.position(offset)) for name, offset in ends.items()}


def _location(position: Position) -> dict[str, int]:
    return {"row": position.row, "column": position.column}


def _proof(proof: Proof) -> dict[str, object]:
    return {
        "filenames": [str(path) for path in proof.paths],
        "proven": not proof.obstacles,
        "obstacles": list(proof.obstacles),
        "scenarios": proof.scenarios,
        "files_run": [str(path) for path in proof.after],
        "files_not_given": [str(path) for path in proof.users_not_given],
        "repairs": [
            {"code": each.code, "symbol": each.symbol, "filename": str(each.path)} for each in proof.repairs
        ],
        "before": [_facts(result) for run in proof.before.values() for result in run.results],
        "after": [_facts(result) for run in proof.after.values() for result in run.results],
    }


def _runs(runs: Results, weighed: Weighed | None) -> dict[str, object]:
    from gclint.verify.results import reasons
    from gclint.verify.worker.coverage import of_all

    return {
        "environments": [
            {"tree": tree, **asdict(environment)} for tree, environment in runs.environments.items()
        ],
        "exit_status": runs.exit_status,
        "problem": runs.problem,
        "summary": {
            "passed": len(runs.of("passed")),
            "failed": len(runs.of("failed")),
            "not_run": dict(reasons(runs.of("not run"))),
            "not_covered": sum(bool(each.not_covered) for each in runs.sorted()),
            "unreached": len(of_all([*runs.of("passed"), *runs.of("failed")])),
        },
        "empty": runs.empty,
        "unusable": [asdict(runs.unusable[source]) for source in sorted(runs.unusable)],
        "results": [_result(result, weighed) for result in runs.sorted()],
    }


def _result(result: ClassResult, weighed: Weighed | None) -> dict[str, object]:
    from gclint.verify.proven import proven_setting

    failures = [
        {**asdict(each), "repaired_by": [] if weighed is None else _hints(weighed.hints_of(result, each))}
        for each in result.failures
    ]
    return {**_facts(result), "failures": failures, "proven_setting": proven_setting(result)}


def _facts(result: ClassResult) -> dict[str, object]:
    """Return the fields of a result, but for the coverage, from which the unreached branches follow."""
    found = asdict(result)
    del found["coverage"]
    return found


def _hints(hints: Iterable[Hint]) -> list[dict[str, object]]:
    return [
        {
            "code": hint.code,
            "filenames": [str(path) for path in hint.paths],
            "unsafe": hint.is_unsafe,
            "verify": hint.needs_run,
            "whole": hint.is_whole,
        }
        for hint in hints
    ]
