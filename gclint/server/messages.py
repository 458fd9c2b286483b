"""Findings and problems as diagnostics of the protocol, and the documentation that is shown over code."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from lsprotocol import types

from gclint.code.suppressions import Suppressions
from gclint.finding import Finding, Problem
from gclint.report.findings import LEVELS, documentation_url, obstacle
from gclint.report.rules import documentation
from gclint.rule import CommentRule, all_rules, codes_by_word
from gclint.server.area import Area
from gclint.server.documents import Document, Documents, Lines

SOURCE = "gclint"


def diagnostics(documents: Documents, area: Area, path: Path) -> list[types.Diagnostic]:
    """Return the diagnostics of a file."""
    problems = [_of_problem(documents, path, area, each) for each in area.problems_in(path)]
    return [*problems, *diagnostics_of(documents, area, area.findings_in(path))]


def diagnostics_of(documents: Documents, area: Area, findings: Iterable[Finding]) -> list[types.Diagnostic]:
    """Return the diagnostics for findings."""
    return [_of_finding(documents, area, each) for each in findings]


def span(documents: Documents, area: Area, path: Path, start: int, end: int) -> types.Range:
    """Return the range of ``[start, end)`` of the text of the file at ``path``."""
    lines, shift = places(documents, area, path)
    return lines.range(start + shift, end + shift)


def places(documents: Documents, area: Area, path: Path) -> tuple[Lines, int]:
    """Return the lines of a file as the editor has it, and the number to add to offsets in its text."""
    document = documents.at(path)
    if document is not None:
        return document.lines, document.shift
    try:
        return Lines(area.project.file(path).text, documents.encoding), 0
    except Exception:  # It cannot be read, so the problem is shown at its beginning.
        return Lines("", documents.encoding), 0


def _of_finding(documents: Documents, area: Area, finding: Finding) -> types.Diagnostic:
    why = obstacle(finding)
    url = documentation_url(finding)
    about_comments = {rule.code for rule in area.rules if isinstance(rule, CommentRule)}
    related = [
        types.DiagnosticRelatedInformation(
            types.Location(
                documents.uri_of(step.path), span(documents, area, step.path, step.start, step.end)
            ),
            step.message,
        )
        for step in finding.story
        if area.identify(step.path) not in area.broken
    ]
    return types.Diagnostic(
        range=span(documents, area, finding.path, finding.start, finding.end),
        message=finding.message if why is None else f"{finding.message}\n{why}",
        severity=types.DiagnosticSeverity[LEVELS[finding.level].editor],
        code=finding.code,
        code_description=None if url is None else types.CodeDescription(url),
        source=SOURCE,
        tags=[types.DiagnosticTag.Unnecessary] if finding.code in about_comments else None,
        related_information=related or None,
    )


def _of_problem(documents: Documents, path: Path, area: Area, problem: Problem) -> types.Diagnostic:
    lines, shift = places(documents, area, path)
    start = 0
    if problem.position is not None:
        start = lines.row_start(problem.position.row - 1) + problem.position.column - 1
        start += shift if problem.position.row == 1 else 0
    start = min(start, len(lines.text))
    start = min(start, lines.line_end(start))
    return types.Diagnostic(
        range=lines.range(start, max(start, lines.line_end(start))),
        message=problem.message,
        severity=types.DiagnosticSeverity.Error,
        source=SOURCE,
    )


def hover(document: Document, area: Area, at: types.Position) -> types.Hover | None:
    """Return the documentation to show at a position; None if there is none."""
    path = area.identify(document.path)
    if path in area.broken:
        return None
    offset = document.lines.offset(at) - document.shift
    codes: dict[str, tuple[int, int]] = {}
    for finding in area.findings_in(path):
        if finding.start <= offset <= finding.end:
            codes.setdefault(finding.code, (finding.start, finding.end))
    codes = codes or _in_comment(area, document, offset)
    rules = [rule for rule in all_rules() if rule.code in codes]
    if not rules:
        return None
    start, end = codes[rules[0].code]
    return types.Hover(
        types.MarkupContent(types.MarkupKind.Markdown, "\n---\n\n".join(map(documentation, rules))),
        document.lines.range(start + document.shift, end + document.shift),
    )


def _in_comment(area: Area, document: Document, offset: int) -> dict[str, tuple[int, int]]:
    """Return the codes that the ignore comment at an offset names, with their spans.

    If the offset is on one of the names, only that one is returned.
    """
    file = area.project.file(area.identify(document.path))
    for ignore in Suppressions(file, codes_by_word(all_rules())).ignores:
        if ignore.start <= offset <= ignore.end:
            found = {}
            for word in ignore.words or ():
                start = file.text.find(word.text, *ignore.words_span)
                if word.code is not None and start != -1:
                    found[word.code] = (start, start + len(word.text))
            here = {code: span for code, span in found.items() if span[0] <= offset <= span[1]}
            return here or dict.fromkeys(found, (ignore.start, ignore.end))
    return {}
