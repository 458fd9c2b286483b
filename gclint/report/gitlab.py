"""The format of GitLab's code quality reports: a JSON list whose entries have unique fingerprints."""

from __future__ import annotations

import hashlib
from typing import TextIO

from gclint.finding import Finding, Problem
from gclint.report.findings import LEVELS, documentation_url, with_obstacle
from gclint.report.places import Places, fingerprints
from gclint.report.printing import write_object
from gclint.report.report import Report


def write(report: Report, stream: TextIO) -> None:
    """Write the findings and problems."""
    places = Places(report.project)
    marks = fingerprints(report.project, places, report.findings)
    entries = [_finding(places, *each) for each in zip(report.findings, marks, strict=True)]
    entries += [_problem(places, each, number) for number, each in enumerate(dict.fromkeys(report.problems))]
    write_object(entries, stream)


def _finding(places: Places, finding: Finding, fingerprint: str) -> dict[str, object]:
    url = documentation_url(finding)
    start = places.position(finding.path, finding.start)
    end = places.last(finding.path, finding.start, finding.end)
    return {
        "description": with_obstacle(finding),
        "check_name": f"{finding.code} {finding.name}",
        "fingerprint": fingerprint,
        "severity": LEVELS[finding.level].gitlab,
        "location": {"path": places.name(finding.path), "lines": {"begin": start.row, "end": end.row}},
        **({} if url is None else {"content": {"body": url}}),
    }


def _problem(places: Places, problem: Problem, number: int) -> dict[str, object]:
    row = 1 if problem.position is None else problem.position.row
    name = places.name(problem.path)
    identity = f"{name}\0{problem.message}\0{number}"
    return {
        "description": problem.message,
        "check_name": "gclint",
        "fingerprint": hashlib.sha256(identity.encode(errors="replace")).hexdigest(),
        "severity": "blocker",
        "location": {"path": name, "lines": {"begin": row, "end": row}},
    }
