"""Findings for people: one line each when piped, and with the source line on a terminal."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, TextIO

from gclint.report.findings import counted, headline, is_fixable, obstacle

if TYPE_CHECKING:
    from gclint.engine.check import CheckResult
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


def diff_summary(result: CheckResult, *, fixed: int, changed: int) -> str:
    """Return the closing line to a diff: what it repairs in so many files, and what it leaves."""
    left = len(result.findings)
    if not fixed:
        return f"Nothing would be fixed; {counted(left, 'finding')} left."
    return f"Would fix {counted(fixed, 'finding')} in {counted(changed, 'file')}; {left} left."


def _fixable(findings: Collection[Finding], *, unsafe: bool) -> str:
    in_any_way = sum(is_fixable(finding, unsafe=True) for finding in findings)
    safely = sum(is_fixable(finding, unsafe=False) for finding in findings)
    if not in_any_way:
        return "none fixable"
    if unsafe or not safely:
        return f"{in_any_way} fixable with --fix --unsafe-fixes"
    more = f", {in_any_way - safely} more with --unsafe-fixes" if in_any_way > safely else ""
    return f"{safely} fixable with --fix{more}"
