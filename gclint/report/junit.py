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
class _TestCase:
    """One test of a suite."""

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
    cases = [case for suite in suites.values() for case in suite]
    root = ElementTree.Element("testsuites", _attributes(name="gclint", **_counts(cases)))
    for name, own in suites.items():
        suite = ElementTree.SubElement(root, "testsuite", _attributes(name=name, **_counts(own)))
        for case in own:
            _add(suite, name, case)
    ElementTree.indent(root)
    text = ElementTree.tostring(root).decode("ascii")
    stream.write(f'<?xml version="1.0" encoding="utf-8"?>\n{text}\n')


def _suites(report: Report, places: Places) -> dict[str, list[_TestCase]]:
    """Return the tests by file; if there is nothing to report, a single one that passed."""
    suites: defaultdict[str, list[_TestCase]] = defaultdict(list)
    for problem in report.problems:
        suites[places.name(problem.path)].append(_problem(problem))
    for finding in report.findings:
        suites[places.name(finding.path)].append(_finding(report, places, finding))
    if report.runs is not None:
        from gclint.report.verification import outcomes

        if report.runs.problem:
            why = report.runs.problem
            suites["gclint"].append(_TestCase("verify", 1, "error", "error", why, why))
        kinds = {"passed": "", "failed": "failure", "not run": "skipped", "error": "error"}
        for each in outcomes(report):
            message = each.texts[0] if each.texts else ""
            case = _TestCase(
                each.name,
                each.line,
                kinds[each.status],
                each.status,
                message,
                "\n".join(each.texts),
                each.seconds,
            )
            suites[places.name(Path(each.path))].append(case)
    return dict(suites) or {"gclint": [_TestCase("check")]}


def _finding(report: Report, places: Places, finding: Finding) -> _TestCase:
    start = places.position(finding.path, finding.start)
    place = f"{places.name(finding.path)}:{start.row}:{start.column}"
    why = obstacle(finding)
    text = f"{place}: {finding.level.value}: {headline(finding)}" + (f"\n{why}" if why else "")
    name = f"{finding.code} {finding.symbol} ({start.row}:{start.column})"
    kind = "failure" if report.fails(finding) else ""
    return _TestCase(name, start.row, kind, finding.code, headline(finding), text)


def _problem(problem: Problem) -> _TestCase:
    row = 1 if problem.position is None else problem.position.row
    return _TestCase("readable", row, "error", "error", problem.message, problem.message)


def _add(suite: ElementTree.Element, name: str, case: _TestCase) -> None:
    class_name = name.removesuffix(".py").replace("/", ".")
    time = f"{case.seconds:.3f}"
    head = _attributes(name=case.name, classname=class_name, file=name, line=case.line, time=time)
    added = ElementTree.SubElement(suite, "testcase", head)
    if case.kind:
        inside = _attributes(message=case.message, type=case.type)
        ElementTree.SubElement(added, case.kind, inside).text = _text(case.text)
    elif case.message:
        ElementTree.SubElement(added, "system-out").text = _text(case.text)


def _counts(cases: Sequence[_TestCase]) -> dict[str, object]:
    def count(kind: str) -> int:
        return sum(case.kind == kind for case in cases)

    return {
        "tests": len(cases),
        "failures": count("failure"),
        "errors": count("error"),
        "skipped": count("skipped"),
        "time": f"{sum(case.seconds for case in cases):.3f}",
    }


def _attributes(**values: object) -> dict[str, str]:
    return {name: _text(str(value)) for name, value in values.items()}


def _text(text: str) -> str:
    r"""Return text with control characters, which XML cannot contain, as ``\x1b``."""
    return "\n".join(map(printable, text.split("\n")))
