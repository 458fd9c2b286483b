"""Repairs: their changes, as a diff, and the verdicts of runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from gclint.edit.edits import by_file, edited
from gclint.finding import Finding
from gclint.proof.evidence import Hint
from gclint.proof.proving import Proof
from gclint.report.diff import unified_diff
from gclint.report.findings import headline, obstacle
from gclint.report.page.excerpts import brief
from gclint.report.proofs import outcome, reasons, run_lines
from gclint.report.report import Files, Report
from gclint.report.verification import repair_command

_STARTS = {"---": "file", "+++": "file", "@@": "hunk", "+": "added", "-": "removed", "\\": "same"}


@dataclass(frozen=True)
class RepairSection:
    """A change of the source, and the verdict of runs."""

    title: str
    outcome: Literal["proven", "refused", "suggested"]
    summary: str
    """Its outcome, in a line."""
    reasons: tuple[str, ...]
    diff: tuple[tuple[str, str], ...]
    """The lines of a unified diff, each with its kind before it."""
    runs: tuple[tuple[str, ...], ...] = ()
    """What each class did before the repair, and does after it, with what failed."""
    command: str = ""
    """The command that makes it, if it has not been made."""


def suggested(report: Report, hints: Iterable[Hint]) -> Iterator[RepairSection]:
    """Yield the repairs of a failure, one finding at a time, with the command that makes them."""
    for finding, command in dict.fromkeys(
        (finding, repair_command(hint)) for hint in hints for finding in hint.findings if finding.fix
    ):
        yield _of_finding(report.project, finding, command)


def of_proof(proof: Proof) -> RepairSection:
    """Return a repair that was run."""
    codes = dict.fromkeys(f"{each.code} {each.name}" for each in proof.repairs)
    files = " and ".join(brief(path) for path in proof.paths)
    return RepairSection(
        f"{files}: {', '.join(codes)}" if codes else files,
        "refused" if proof.obstacles else "proven",
        outcome(proof),
        tuple(reasons(proof)),
        tuple(_diff(proof.changed)),
        _runs(proof),
    )


def _runs(proof: Proof) -> tuple[tuple[str, ...], ...]:
    """Return the lines about runs; indented lines belong to the one above."""
    found: list[tuple[str, ...]] = []
    for line in run_lines(proof):
        above = found.pop() if line.startswith(" ") else ()
        found.append((*above, line.lstrip()))
    return tuple(found)


def _of_finding(project: Files, finding: Finding, command: str) -> RepairSection:
    changed = {}
    for path, edits in by_file(finding.edits).items():
        before = project.file(path).text
        changed[path] = before, edited(before, edits)
    row = project.file(finding.path).position(finding.start).row
    why = obstacle(finding)
    return RepairSection(
        f"{brief(finding.path)}:{row}: {headline(finding)}",
        "suggested",
        finding.fix.message if finding.fix else "",
        (why,) if why else (),
        tuple(_diff(changed)),
        command=command,
    )


def _diff(changed: Mapping[Path, tuple[str, str]]) -> Iterator[tuple[str, str]]:
    for line in unified_diff(changed):
        kind = next((kind for start, kind in _STARTS.items() if line.startswith(start)), "same")
        yield kind, line.rstrip("\r\n")
