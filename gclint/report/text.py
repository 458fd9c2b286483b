"""Findings for people: one line each when piped, and with the source line on a terminal."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, TextIO

from gclint.report.findings import counted, in_order, is_fixable, obstacle

if TYPE_CHECKING:
    from gclint.finding import Finding, Problem
    from gclint.source.project import Project


def write_findings(stream: TextIO, project: Project, findings: Iterable[Finding], *, unsafe: bool) -> None:
    """Write every finding; ``unsafe`` says whether an unsafe fix counts as one."""
    if stream.isatty():
        from gclint.report.terminal import console_on, show_finding

        console = console_on(stream)
        for finding in in_order(findings):
            show_finding(console, project.file(finding.path), finding, unsafe=unsafe)
        return
    for finding in in_order(findings):
        position = project.file(finding.path).position(finding.start)
        star = " [*]" if is_fixable(finding, unsafe=unsafe) else ""
        place = f"{finding.path}:{position.row}:{position.column}"
        stream.write(f"{place}: {finding.code} {finding.message}{star}\n")
        why = obstacle(finding)
        if why:
            stream.write(f"    {why}\n")


def write_problems(stream: TextIO, problems: Iterable[Problem]) -> None:
    """Write a line for everything that went wrong."""
    for problem in problems:
        position = f":{problem.position.row}:{problem.position.column}" if problem.position else ""
        stream.write(f"{problem.path}{position}: error: {problem.message}\n")


def summary(left: Collection[Finding], *, fixed: int, files: int, unsafe: bool) -> str:
    """Return the closing line: what is left in so many files, what was repaired and what can be."""
    if not left:
        outcome = f"Fixed {counted(fixed, 'finding')}; none is left" if fixed else "No findings"
        return f"{outcome} in {counted(files, 'file')}."
    outcome = (
        f"Fixed {counted(fixed, 'finding')}; {len(left)} left"
        if fixed
        else f"Found {counted(len(left), 'finding')}"
    )
    return f"{outcome} ({_fixable(left, unsafe=unsafe)})."


def diff_summary(left: Collection[Finding], *, fixed: int, files: int) -> str:
    """Return the closing line to a diff: what it repairs in so many files, and what it leaves."""
    if not fixed:
        return f"Nothing would be fixed; {counted(len(left), 'finding')} left."
    return f"Would fix {counted(fixed, 'finding')} in {counted(files, 'file')}; {len(left)} left."


def _fixable(findings: Collection[Finding], *, unsafe: bool) -> str:
    in_any_way = sum(is_fixable(finding, unsafe=True) for finding in findings)
    safely = sum(is_fixable(finding, unsafe=False) for finding in findings)
    if not in_any_way:
        return "none fixable"
    if unsafe or not safely:
        return f"{in_any_way} fixable with --fix --unsafe-fixes"
    more = f", {in_any_way - safely} more with --unsafe-fixes" if in_any_way > safely else ""
    return f"{safely} fixable with --fix{more}"
