"""Findings for people: one line each when piped, and with the source line on a terminal."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, TextIO

from gclint.report.findings import counted, headline, is_fixable, obstacle

if TYPE_CHECKING:
    from pathlib import Path

    from gclint.engine.baseline import Baseline
    from gclint.engine.check import CheckResult
    from gclint.engine.selection import Recognised
    from gclint.finding import Finding, Problem
    from gclint.source.project import Project


def write_findings(stream: TextIO, project: Project, findings: Iterable[Finding], *, unsafe: bool) -> None:
    """Write findings in their order; ``unsafe`` says whether an unsafe fix counts as one."""
    if stream.isatty():
        from gclint.report.terminal import console_on, show_finding

        console = console_on(stream)
        for finding in findings:
            show_finding(console, project.file(finding.path), finding, unsafe=unsafe)
        return
    for finding in findings:
        position = project.file(finding.path).position(finding.start)
        star = " [*]" if is_fixable(finding, unsafe=unsafe) else ""
        place = f"{finding.path}:{position.row}:{position.column}"
        stream.write(f"{place}: {headline(finding)}{star}\n")
        why = obstacle(finding)
        if why:
            stream.write(f"    {why}\n")


def write_problems(stream: TextIO, problems: Iterable[Problem]) -> None:
    """Write a line for everything that went wrong."""
    for problem in problems:
        position = f":{problem.position.row}:{problem.position.column}" if problem.position else ""
        stream.write(f"{problem.path}{position}: error: {problem.message}\n")


def summary(result: CheckResult, *, fixed: int, lost: int, unsafe: bool) -> str:
    """Return the closing line: what was found or repaired, and what can be.

    Args:
        result: what is left.
        fixed: how many findings were repaired.
        lost: how many more would have been if their files could be written.
        unsafe: whether an unsafe fix counts as one.
    """
    left = len(result.findings) + lost
    if not left:
        outcome = f"Fixed {counted(fixed, 'finding')}; none is left" if fixed else "No findings"
        return f"{outcome} in {counted(result.files, 'file')}."
    outcome = (
        f"Fixed {counted(fixed, 'finding')}; {left} left" if fixed else f"Found {counted(left, 'finding')}"
    )
    unwritten = f", {lost} in files that cannot be written" if lost else ""
    return f"{outcome} ({_fixable(result.findings, unsafe=unsafe)}{unwritten})."


def diff_summary(*, fixed: int, changed: int, left: int) -> str:
    """Return the closing line to a diff: what it repairs in so many files, and what it leaves."""
    if not fixed:
        return f"Nothing would be fixed; {counted(left, 'finding')} left."
    return f"Would fix {counted(fixed, 'finding')} in {counted(changed, 'file')}; {left} left."


def baseline_summary(baseline: Baseline, *, fixed: int) -> str:
    """Return the closing line where what was found has become the baseline."""
    known = baseline.known.total()
    if fixed:
        return f"Fixed {counted(fixed, 'finding')}; {known} left, and written to {baseline.path}."
    return f"{counted(known, 'finding')} written to {baseline.path}."


def write_recognised(stream: TextIO, baseline: Path, recognised: Recognised) -> None:
    """Write what a baseline hides, and which of its entries do not occur any more."""
    if recognised.known:
        known = counted(recognised.known, "known finding")
        stream.write(f"{baseline}: {known} not reported\n")
    for entry, count in sorted(recognised.stale.items()):
        often = f" {count} times" if count > 1 else ""
        stream.write(
            f"{baseline}: {entry.rule} for {entry.symbol} in {entry.file} no longer occurs{often}; "
            f"drop it, or write it anew with --write-baseline\n"
        )


def _fixable(findings: Collection[Finding], *, unsafe: bool) -> str:
    in_any_way = sum(is_fixable(finding, unsafe=True) for finding in findings)
    safely = sum(is_fixable(finding, unsafe=False) for finding in findings)
    if not in_any_way:
        return "none fixable"
    if unsafe or not safely:
        return f"{in_any_way} fixable with --fix --unsafe-fixes"
    more = f", {in_any_way - safely} more with --unsafe-fixes" if in_any_way > safely else ""
    return f"{safely} fixable with --fix{more}"
