"""The format SARIF 2.1.0, which GitHub's code scanning and editors read.

URIs are relative to the root of the repository. Columns count UTF-16 code units, as SARIF does by default.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import TextIO

from gclint import __version__
from gclint.code.paths import printable
from gclint.edit.edits import by_file
from gclint.finding import Finding, Fix, Problem, StoryStep
from gclint.report.findings import LEVELS, documentation_url, with_obstacle
from gclint.report.places import Places, fingerprints
from gclint.report.printing import write_object
from gclint.report.report import Report
from gclint.report.rules import documentation
from gclint.rule import Rule, all_rules

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_HOME = "https://github.com/gclint/gclint"
_ROOT = "%SRCROOT%"
_LINK = re.compile(r"\[(?=[^\[\]]*\]\()")

_Object = dict[str, object]


def write(report: Report, stream: TextIO) -> None:
    """Write the findings and problems."""
    document = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [_SarifRun(report).content()]}
    write_object(document, stream, indent=1)


class _SarifRun:
    """A run of gclint as a SARIF object."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._places = Places(report.project)
        self._rules = {rule.code: number for number, rule in enumerate(all_rules())}

    def content(self) -> _Object:
        """Return the run."""
        findings = self._report.findings
        marks = fingerprints(self._report.project, self._places, findings)
        driver = {
            "name": "gclint",
            "organization": "gclint",
            "semanticVersion": __version__,
            "informationUri": _HOME,
            "rules": [_rule(rule) for rule in all_rules()],
        }
        return {
            "tool": {"driver": driver},
            "columnKind": "utf16CodeUnits",
            # Python ends a line at a lone CR as well, and at nothing else.
            "newlineSequences": ["\r\n", "\n", "\r"],
            "originalUriBaseIds": {
                _ROOT: {
                    "uri": f"{self._places.root.as_uri().rstrip('/')}/",
                    "description": {"text": "The root of the repository, or the folder that gclint ran in."},
                }
            },
            "invocations": [
                {
                    "executionSuccessful": not self._report.problems,
                    "exitCode": self._report.exit_status,
                    "toolExecutionNotifications": [*map(self._notification, self._report.problems)],
                }
            ],
            "results": [self._result(*each) for each in zip(findings, marks, strict=True)],
        }

    def _notification(self, problem: Problem) -> _Object:
        physical: _Object = {"artifactLocation": self._artifact(problem.path)}
        if problem.position is not None:
            # A file that cannot be read has no text in which UTF-16 units could be counted.
            physical["region"] = {"startLine": problem.position.row}
        return {
            "level": "error",
            "message": {"text": _plain(problem.message)},
            "locations": [{"physicalLocation": physical}],
        }

    def _result(self, finding: Finding, fingerprint: str) -> _Object:
        message = with_obstacle(finding).removeprefix(f"{finding.code} ")
        location = self._physical(finding.path, finding.start, finding.end)
        result: _Object = {
            "ruleId": finding.code,
            "level": finding.level.value,
            "message": {"text": _plain(message)},
            "locations": [
                {"physicalLocation": location, "logicalLocations": [{"name": printable(finding.symbol)}]}
            ],
            # GitHub identifies alerts by the second one, and if it is missing, computes it from the line.
            "partialFingerprints": {"gclint/v1": fingerprint, "primaryLocationLineHash": fingerprint},
        }
        if finding.code in self._rules:
            result["ruleIndex"] = self._rules[finding.code]
        if finding.story:
            result["relatedLocations"] = [
                {"id": number, **self._location(step)} for number, step in enumerate(finding.story, start=1)
            ]
            result["codeFlows"] = [self._flow(finding, message)]
        if finding.fix is not None:
            result["fixes"] = [self._fix(finding.fix)]
        return result

    def _flow(self, finding: Finding, message: str) -> _Object:
        """Return the story as a flow, which ends where the finding is."""
        last = {
            "physicalLocation": self._physical(finding.path, finding.start, finding.end),
            "message": {"text": _plain(message)},
        }
        locations = [
            {"location": location, "executionOrder": number}
            for number, location in enumerate([*map(self._location, finding.story), last], start=1)
        ]
        return {"threadFlows": [{"locations": locations}]}

    def _fix(self, fix: Fix) -> _Object:
        why = f" ({fix.applicability.value}: {fix.reason})" if fix.reason else ""
        return {
            "description": {"text": _plain(f"{fix.message}{why}")},
            "artifactChanges": [
                {
                    "artifactLocation": self._artifact(path),
                    "replacements": [
                        {
                            "deletedRegion": self._region(edit.path, edit.start, edit.end),
                            "insertedContent": {"text": edit.content},
                        }
                        for edit in edits
                    ],
                }
                for path, edits in by_file(sorted(fix.edits)).items()
            ],
            "properties": {"applicability": fix.applicability.value},
        }

    # -- places

    def _location(self, step: StoryStep) -> _Object:
        return {
            "physicalLocation": self._physical(step.path, step.start, step.end),
            "message": {"text": _plain(step.message)},
        }

    def _physical(self, path: Path, start: int, end: int) -> _Object:
        return {"artifactLocation": self._artifact(path), "region": self._region(path, start, end)}

    def _artifact(self, path: Path) -> _Object:
        uri = self._places.uri(path)
        return {"uri": uri} if self._places.inside(path) is None else {"uri": uri, "uriBaseId": _ROOT}

    def _region(self, path: Path, start: int, end: int) -> _Object:
        """Return where ``[start, end)`` is; without an end it would be a whole line."""
        names = ("startLine", "startColumn", "endLine", "endColumn")
        return dict(zip(names, (*self._utf16(path, start), *self._utf16(path, end)), strict=True))

    def _utf16(self, path: Path, offset: int) -> tuple[int, int]:
        file = self._report.project.file(path)
        position = file.position(offset)
        if file.text.isascii():
            return position.row, position.column
        before = file.text[offset - position.column + 1 : offset]
        return position.row, position.column + sum(character > "\uffff" for character in before)


def _rule(rule: Rule) -> _Object:
    """Return the description of a rule, with its documentation, which GitHub shows beside an alert."""
    text, url = documentation(rule), documentation_url(rule)
    return {
        "id": rule.code,
        "name": "".join(part.capitalize() for part in rule.name.split("-")),
        "shortDescription": {"text": _plain(rule.summary())},
        "fullDescription": {"text": _plain(rule.summary())},
        "help": {"text": _plain(text), "markdown": text},
        **({} if url is None else {"helpUri": url}),
        "defaultConfiguration": {"level": rule.level.value},
        "properties": {
            "precision": rule.precision,
            "problem.severity": LEVELS[rule.level].code_scanning,
            "tags": ["gradient-checkpointing", "pytorch", "transformers", rule.name],
        },
    }


def _plain(text: str) -> str:
    """Return text for a plain message, in which brackets would be read as a link."""
    lines: Iterable[str] = map(printable, text.split("\n"))
    return _LINK.sub(r"\\[", "\n".join(lines))
