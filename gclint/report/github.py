"""The format for logs of GitHub Actions, which shows each line as an annotation of the code.

GitHub shows at most ten errors, ten warnings and ten notices per step. Each is one line: characters that
would end the line or a property are escaped as GitHub's runner expects.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from gclint.code.paths import printable
from gclint.finding import Finding, Problem
from gclint.level import Level
from gclint.report.findings import LEVELS, with_obstacle
from gclint.report.places import Places
from gclint.report.report import Report
from gclint.wording import counted

_SHOWN = 10
"""How many annotations of each kind GitHub shows per step."""


def write(report: Report, stream: TextIO) -> None:
    """Write a line for each finding, problem and class that did not pass."""
    stream.writelines(f"{line}\n" for line in _lines(report))


def _lines(report: Report) -> Iterator[str]:
    places = Places(report.project)
    found = [
        *((Level.ERROR, _problem(places, each)) for each in report.problems),
        *((each.level, _finding(places, each)) for each in report.findings),
        *_runs(report, places),
    ]
    if max(Counter(level for level, _ in found).values(), default=0) > _SHOWN:
        number = counted(len(found), "annotation")
        text = f"{number} in all: GitHub shows {_SHOWN} of each kind per step; the log contains all of them."
        yield _command(Level.NOTE, text, title="gclint")
    yield from (line for _, line in found)


def _finding(places: Places, finding: Finding) -> str:
    start = places.position(finding.path, finding.start)
    end = places.last(finding.path, finding.start, finding.end)
    name = places.name(finding.path)
    # GitHub accepts columns only if the span is on one line.
    columns = {"col": start.column, "endColumn": end.column} if start.row == end.row else {}
    text = f"{name}:{start.row}:{start.column}: {with_obstacle(finding)}"
    title = f"gclint ({finding.code} {finding.name})"
    return _command(finding.level, text, title=title, file=name, line=start.row, endLine=end.row, **columns)


def _problem(places: Places, problem: Problem) -> str:
    name = places.name(problem.path)
    position = problem.position
    where = {} if position is None else {"line": position.row, "col": position.column}
    place = "" if position is None else f":{position.row}:{position.column}"
    return _command(Level.ERROR, f"{name}{place}: {problem.message}", title="gclint", file=name, **where)


def _runs(report: Report, places: Places) -> Iterator[tuple[Level, str]]:
    """Yield the annotations for results of runs, each with its level."""
    if report.runs is None:
        return
    from gclint.report.verification import outcomes

    if report.runs.problem:
        yield Level.ERROR, _command(Level.ERROR, report.runs.problem, title="gclint verify")
    for each in outcomes(report):
        level = Level.WARNING if each.status == "not run" else Level.ERROR
        if each.status == "passed":
            continue
        name = places.name(Path(each.path))
        text = f"{name}:{each.line}:1: {each.headline}"
        title = f"gclint verify ({each.name})"
        yield level, _command(level, text, title=title, file=name, line=each.line)


def _command(level: Level, text: str, **properties: str | int) -> str:
    listed = ",".join(f"{name}={_property(str(value))}" for name, value in properties.items())
    return f"::{LEVELS[level].github} {listed}::{_data(text)}"


def _data(text: str) -> str:
    text = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    # Escapes other characters that some programs treat as line ends, or that cannot be encoded.
    return printable(text)


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
