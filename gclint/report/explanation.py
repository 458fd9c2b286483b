"""An explanation of a place in the code, as text or as JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TextIO

from gclint import __version__
from gclint.code.paths import shown
from gclint.code.project import Project
from gclint.finding import Finding
from gclint.network.explaining.facts import Fact
from gclint.report.findings import obstacle
from gclint.report.printing import write_lines, write_object
from gclint.run.explain import ExplainedCode, Opinion, PlaceExplanation, RuleOutcome


def write_text(explanation: PlaceExplanation, stream: TextIO) -> None:
    """Write an explanation as text."""
    write_lines(_lines(explanation), stream)


def write_json(explanation: PlaceExplanation, stream: TextIO) -> None:
    """Write an explanation as an object; rows and columns count from 1, columns in characters."""
    write_object(_document(explanation), stream)


FORMATS: Mapping[str, Callable[[PlaceExplanation, TextIO], None]] = {"full": write_text, "json": write_json}
"""The functions that write an explanation, by the names that ``--output-format`` takes."""


# -- text

_LONGEST_LINE = 120
_NOT_APPLICABLE = "not applicable here"


def _lines(explanation: PlaceExplanation) -> Iterator[str]:
    place = explanation.place
    column = f":{place.column}" if place.column else ""
    code = explanation.file.line(place.row).strip()
    code = code if len(code) <= _LONGEST_LINE else f"{code[:_LONGEST_LINE]}…"
    yield f"{shown(explanation.file.path)}:{place.row}{column}: {code}"
    for note in explanation.notes:
        yield f"  {note}"
    for ignore, suppressed in explanation.comments:
        codes = " and ".join(dict.fromkeys(each.code for each in suppressed))
        yield f"  `{ignore.text.lstrip('# ')}` suppresses {codes or 'nothing'} here"
    for part in explanation.explained:
        yield ""
        yield from _code(explanation, part)
    yield ""
    yield f"Releases: {explanation.releases}: {explanation.origin}."


def _code(explanation: PlaceExplanation, code: ExplainedCode) -> Iterator[str]:
    yield f"{code.headline[:1].upper()}{code.headline[1:]}."
    found = [each for each in code.opinions if each.findings]
    if found:
        yield from ("", "Findings")
        for opinion in found:
            yield from _findings(explanation, opinion)
    for section in code.sections:
        yield from ("", section.title)
        for fact in section.facts:
            yield from _fact(explanation, fact, "  ")
    silent = [each for each in code.opinions if not each.findings]
    if silent:
        yield from ("", "Silent rules")
        yield from _silent(silent)


def _fact(explanation: PlaceExplanation, fact: Fact, indent: str) -> Iterator[str]:
    where = "" if fact.place is None else f"  [{_where(explanation, *fact.place)}]"
    yield f"{indent}{fact.text}{where}"
    for each in fact.inner:
        yield from _fact(explanation, each, f"{indent}  ")


def _where(explanation: PlaceExplanation, path: Path, offset: int) -> str:
    row = explanation.project.file(path).position(offset).row
    return f"line {row}" if path == explanation.file.path else f"{shown(path)}:{row}"


def _findings(explanation: PlaceExplanation, opinion: Opinion) -> Iterator[str]:
    for finding in opinion.findings:
        how = "" if opinion.outcome is RuleOutcome.FOUND else f"{opinion.outcome.value}: "
        where = _where(explanation, finding.path, finding.start)
        yield f"  {opinion.rule.code} {opinion.rule.name}: {how}{finding.message}  [{where}]"
        why = obstacle(finding)
        if why:
            yield f"    {why}"


def _silent(opinions: Iterable[Opinion]) -> Iterator[str]:
    """Yield why rules are silent, each reason once."""
    by_reason: dict[tuple[str, ...], list[str]] = {}
    for opinion in opinions:
        prefix = "crashed: " if opinion.outcome is RuleOutcome.CRASHED else ""
        reasons = tuple(f"{prefix}{each}" for each in opinion.reasons) or (_NOT_APPLICABLE,)
        by_reason.setdefault(reasons, []).append(opinion.rule.code)
    for (first, *others), codes in sorted(by_reason.items(), key=lambda item: item[0] == (_NOT_APPLICABLE,)):
        yield f"  {', '.join(codes)}: {first}"
        yield from (f"    {reason}" for reason in others)


# -- JSON


def _document(explanation: PlaceExplanation) -> dict[str, object]:
    place = explanation.place
    return {
        "gclint": __version__,
        "filename": str(explanation.file.path),
        "row": place.row,
        "column": place.column or None,
        "notes": [*explanation.notes],
        "releases": {"releases": explanation.releases, "origin": explanation.origin},
        "ignores": [
            {
                "comment": ignore.text,
                "row": explanation.file.position(ignore.start).row,
                "suppresses": list(dict.fromkeys(each.code for each in suppressed)),
            }
            for ignore, suppressed in explanation.comments
        ],
        "subjects": [_code_object(explanation, each) for each in explanation.explained],
    }


def _code_object(explanation: PlaceExplanation, code: ExplainedCode) -> dict[str, object]:
    explained = code.explained
    return {
        "kind": explained.kind.value,
        "name": explained.name,
        "headline": code.headline,
        "location": _location(explanation.project, explanation.file.path, explained.start),
        **{section.name: _facts(explanation, section.facts) for section in code.sections},
        "rules": [_opinion_object(explanation, each) for each in code.opinions],
    }


def _facts(explanation: PlaceExplanation, facts: Iterable[Fact]) -> list[dict[str, object]]:
    return [
        {
            "text": fact.text,
            "location": _location(explanation.project, *fact.place) if fact.place else None,
            **fact.data,
            "details": _facts(explanation, fact.inner),
        }
        for fact in facts
    ]


def _opinion_object(explanation: PlaceExplanation, opinion: Opinion) -> dict[str, object]:
    return {
        "code": opinion.rule.code,
        "name": opinion.rule.name,
        "outcome": opinion.outcome.value,
        "reasons": [*opinion.reasons],
        "findings": [_finding(explanation.project, each) for each in opinion.findings],
    }


def _finding(project: Project, finding: Finding) -> dict[str, object]:
    return {
        "message": finding.message,
        "location": _location(project, finding.path, finding.start),
        "fix": obstacle(finding) or "safe fix",
        "story": [
            {"message": step.message, "location": _location(project, step.path, step.start)}
            for step in finding.story
        ],
    }


def _location(project: Project, path: Path, offset: int) -> dict[str, object]:
    position = project.file(path).position(offset)
    return {"filename": str(path), "row": position.row, "column": position.column}
