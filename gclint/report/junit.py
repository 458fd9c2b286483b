"""The format of JUnit, which most CI systems read: a test suite for each file.

The XML is always well-formed. Characters that are not ASCII are written as references, so that the output
can be printed in any encoding.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO
from xml.etree import ElementTree

from gclint.code.paths import printable
from gclint.finding import Finding, Problem
from gclint.report.findings import headline, obstacle
from gclint.report.places import Places
from gclint.report.report import Report


@dataclass(frozen=True)
class _Test:
    name: str
    line: int = 1
    kind: str = ""
    """The element for a test that did not pass: ``failure``, ``error`` or ``skipped``; empty if it passed."""
    type: str = ""
    message: str = ""
    text: str = ""
    seconds: float = 0.0


def write(report: Report, stream: TextIO) -> None:
    """Write the findings, problems and results of runs."""
    suites = _suites(report, Places(report.project))
    tests = [test for suite in suites.values() for test in suite]
    root = ElementTree.Element("testsuites", _attributes(name="gclint", **_counts(tests)))
    for name, own in suites.items():
        suite = ElementTree.SubElement(root, "testsuite", _attributes(name=name, **_counts(own)))
        for test in own:
            _add(suite, name, test)
    ElementTree.indent(root)
    text = ElementTree.tostring(root).decode("ascii")
    stream.write(f'<?xml version="1.0" encoding="utf-8"?>\n{text}\n')


def _suites(report: Report, places: Places) -> dict[str, list[_Test]]:
    """Return the tests by file; if there is nothing to report, a single one that passed."""
    suites: defaultdict[str, list[_Test]] = defaultdict(list)
    for problem in report.problems:
        suites[places.name(problem.path)].append(_problem(problem))
    for finding in report.findings:
        suites[places.name(finding.path)].append(_finding(report, places, finding))
    if report.runs is not None:
        from gclint.report.verification import outcomes

        if report.runs.problem:
            why = report.runs.problem
            suites["gclint"].append(_Test("verify", 1, "error", "error", why, why))
        kinds = {"passed": "", "failed": "failure", "not run": "skipped", "error": "error"}
        for each in outcomes(report):
            message = each.texts[0] if each.texts else ""
            test = _Test(
                each.name,
                each.line,
                kinds[each.status],
                each.status,
                message,
                "\n".join(each.texts),
                each.seconds,
            )
            suites[places.name(Path(each.path))].append(test)
    return dict(suites) or {"gclint": [_Test("check")]}


def _finding(report: Report, places: Places, finding: Finding) -> _Test:
    start = places.position(finding.path, finding.start)
    place = f"{places.name(finding.path)}:{start.row}:{start.column}"
    why = obstacle(finding)
    text = f"{place}: {finding.level.value}: {headline(finding)}" + (f"\n{why}" if why else "")
    name = f"{finding.code} {finding.symbol} ({start.row}:{start.column})"
    kind = "failure" if report.fails(finding) else ""
    return _Test(name, start.row, kind, finding.code, headline(finding), text)


def _problem(problem: Problem) -> _Test:
    row = 1 if problem.position is None else problem.position.row
    return _Test("readable", row, "error", "error", problem.message, problem.message)


def _add(suite: ElementTree.Element, name: str, test: _Test) -> None:
    class_name = name.removesuffix(".py").replace("/", ".")
    time = f"{test.seconds:.3f}"
    head = _attributes(name=test.name, classname=class_name, file=name, line=test.line, time=time)
    added = ElementTree.SubElement(suite, "testcase", head)
    if test.kind:
        inside = _attributes(message=test.message, type=test.type)
        ElementTree.SubElement(added, test.kind, inside).text = _text(test.text)
    elif test.message:
        ElementTree.SubElement(added, "system-out").text = _text(test.text)


def _counts(tests: Sequence[_Test]) -> dict[str, object]:
    def count(kind: str) -> int:
        return sum(test.kind == kind for test in tests)

    return {
        "tests": len(tests),
        "failures": count("failure"),
        "errors": count("error"),
        "skipped": count("skipped"),
        "time": f"{sum(test.seconds for test in tests):.3f}",
    }


def _attributes(**values: object) -> dict[str, str]:
    return {name: _text(str(value)) for name, value in values.items()}


def _text(text: str) -> str:
    r"""Return text with control characters, which XML cannot contain, as ``\x1b``."""
    return "\n".join(map(printable, text.split("\n")))
