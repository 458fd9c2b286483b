"""The format with exactly one line per finding: for editors, ``grep`` and short logs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TextIO

from gclint.code.paths import printable
from gclint.report.findings import placed
from gclint.report.full import summary_lines
from gclint.report.report import Report


def write(report: Report, stream: TextIO) -> None:
    """Write ``path:line:column: CODE message`` for each finding, and a summary."""
    stream.writelines(f"{printable(line)}\n" for line in _lines(report))


def _lines(report: Report) -> Iterator[str]:
    yield from (placed(each, report.project, unsafe=report.unsafe) for each in report.findings)
    if report.runs is None:
        yield from summary_lines(report)
        return
    from gclint.report.verification import outcomes
    from gclint.report.verification import summary_lines as summary_of_runs

    for each in outcomes(report):
        if each.status != "passed":
            yield f"{each.path}:{each.line}:1: {each.headline}"
    yield from summary_of_runs(report.runs)
