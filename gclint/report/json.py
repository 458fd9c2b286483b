"""Findings for programs: a JSON list of objects with the fields that ruff's have, and ``symbol``."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from gclint.report.findings import documentation_url

if TYPE_CHECKING:
    from gclint.finding import Edit, Finding, Fix
    from gclint.source.project import Project


def write_findings(stream: TextIO, project: Project, findings: Iterable[Finding]) -> None:
    """Write findings in their order; rows and columns count from 1, columns in characters."""
    write_list(stream, findings_objects(project, findings))


def findings_objects(project: Project, findings: Iterable[Finding]) -> list[dict[str, object]]:
    """Return findings as JSON has them."""
    return [_finding(project, finding) for finding in findings]


def write_list(stream: TextIO, objects: Iterable[object]) -> None:
    """Write ``objects`` as a JSON list that a person can read too."""
    json.dump(list(objects), stream, indent=2)
    stream.write("\n")


def _finding(project: Project, finding: Finding) -> dict[str, object]:
    return {
        "code": finding.code,
        "name": finding.name,
        "message": finding.message,
        "reason": None if finding.fix else finding.remedy.reason,
        "symbol": finding.symbol,
        "evidence": finding.evidence.value if finding.evidence else None,
        "filename": str(finding.path),
        "location": _location(project, finding.path, finding.start),
        "end_location": _location(project, finding.path, finding.end),
        "fix": _fix(project, finding.fix) if finding.fix else None,
        "inherited_by": [{"filename": str(heir.path), "symbol": heir.symbol} for heir in finding.heirs],
        "url": documentation_url(finding),
    }


def _fix(project: Project, fix: Fix) -> dict[str, object]:
    return {
        "applicability": fix.applicability.value,
        "message": fix.message,
        "reason": fix.reason,
        "edits": [_edit(project, edit) for edit in fix.edits],
    }


def _edit(project: Project, edit: Edit) -> dict[str, object]:
    return {
        "content": edit.content,
        "filename": str(edit.path),
        "location": _location(project, edit.path, edit.start),
        "end_location": _location(project, edit.path, edit.end),
    }


def _location(project: Project, path: Path, offset: int) -> dict[str, int]:
    position = project.file(path).position(offset)
    return {"row": position.row, "column": position.column}
