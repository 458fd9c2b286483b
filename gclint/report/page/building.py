"""The page of a report: its parts, put together in words and numbers, and rendered as one HTML file."""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from hashlib import sha256
from importlib.resources import files

from jinja2 import Environment as Templates
from jinja2 import PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from gclint import __version__
from gclint.report.findings import headline, obstacle
from gclint.report.page import classes, matrix
from gclint.report.page.classes import OUTCOMES, Outcome, Row
from gclint.report.page.excerpts import (
    Excerpt,
    RepairSection,
    Sources,
    brief,
    repair_of_proof,
    suggested_repairs,
)
from gclint.report.page.matrix import Column, State
from gclint.report.printing import binary_size
from gclint.report.report import Report
from gclint.report.verification import advised, by_group, fates, remark_lines
from gclint.verify.worker.protocol import ClassResult, Environment, SetUpOutcome

_SETUPS: dict[SetUpOutcome, str] = {"works": "work", "fails": "fail", "not run": "were not run"}


_FINE, _UNKNOWN = "Nothing: it works", "Not known: it was not run"
_NOTHING_WORKS = "No setting that was run works: see the failures"
_TEMPLATES = "templates"


@dataclass(frozen=True)
class Page:
    """The whole page."""

    facts: tuple[tuple[str, str], ...]
    """What was run, and where, each with its name before it."""
    lead: str
    """The overall result, in a sentence."""
    problems: tuple[str, ...]
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    repairs: tuple[RepairSection, ...]
    findings: tuple[Excerpt, ...]
    remarks: tuple[str, ...]
    repeat: str
    """The command that runs files in the same way, without the files."""

    @cached_property
    def answers(self) -> list[tuple[str, str, State, tuple[str, ...]]]:
        """What to do about which classes: for each kind of training, what concerns most of them first."""
        found: dict[tuple[str, str, State], dict[str, None]] = {}
        for row in self.rows:
            for key in _answers(row):
                found.setdefault(key, {})[row.result.name] = None
        order = list(dict.fromkeys(group for group, _, _ in found))
        counted = sorted(found.items(), key=lambda each: (order.index(each[0][0]), -len(each[1])))
        return [(*key, tuple(names)) for key, names in counted]

    @property
    def groups(self) -> tuple[tuple[str, int], ...]:
        """The headings above columns, each with the number of columns under it."""
        return tuple(Counter(column.group for column in self.columns).items())

    @property
    def kinds(self) -> tuple[tuple[str, int], ...]:
        """The kinds of failures, the most frequent first."""
        counts = Counter(kind for row in self.rows for kind in row.kinds)
        return tuple(sorted(counts.items(), key=lambda each: (-each[1], each[0])))

    @property
    def outcomes(self) -> tuple[tuple[Outcome, int], ...]:
        """The outcomes that occur, with the number of rows."""
        counts = Counter(row.outcome for row in self.rows)
        return tuple((each, counts[each]) for each in OUTCOMES if counts[each])


def _answers(row: Row) -> Iterator[tuple[str, str, State]]:
    """Yield what to do about a class in each kind of training."""
    usual = "one process"
    if row.setting is not None:
        # What is not a setting alone has code in it.
        yield usual, f"Use {row.setting}" if "`" in row.setting else f"Use `{row.setting}`", "partly"
    elif row.outcome == "failed":
        yield usual, _NOTHING_WORKS, "fails"
    elif row.outcome == "not run":
        yield usual, _UNKNOWN, "not run"
    else:
        yield usual, _FINE if row.outcome == "passed" else "Nothing: with its repair, it works", "works"
    for group in dict.fromkeys(each.group for each in row.result.setups):
        setting = next((each.setting for each in row.result.advice if each.group == group), "")
        outcomes = {each.outcome for each in row.result.setups if each.group == group}
        if "fails" not in outcomes:
            yield group, *((_FINE, "works") if "works" in outcomes else (_UNKNOWN, "not run"))
        elif setting:
            yield group, f"Use `{setting}`", "partly"
        else:
            yield group, _NOTHING_WORKS, "fails"


def page(report: Report, command: str, made: datetime, repeat: str) -> Page:
    """Return the page of a report that a command has made; ``repeat`` runs files in the same way."""
    all_repairs = tuple(map(repair_of_proof, report.proofs or ()))
    found = [*_run(report), *_repaired(report, all_repairs)]
    results = [each.result for each in found]
    models = classes.models(results)
    rows = [
        replace(
            each, model=models[each.result.source], repairs=(*each.repairs, *_hinted(report, each.result))
        )
        for each in found
    ]
    return Page(
        tuple(_facts(report, command, made)),
        " ".join((_counted(rows), *_counted_setups(results))),
        tuple(_problems(report)),
        matrix.columns(results),
        tuple(sorted(rows, key=lambda each: (OUTCOMES.index(each.outcome), each.model, each.result.name))),
        all_repairs,
        tuple(_findings(report)),
        tuple(remark_lines(report.runs)) if report.runs is not None else (),
        repeat,
    )


def _run(report: Report) -> Iterator[Row]:
    if report.runs is not None:
        sources = Sources(report.runs.digests, {})
        yield from (Row(result, sources) for result in report.runs.sorted())


def _repaired(report: Report, all_repairs: Iterable[RepairSection]) -> Iterator[Row]:
    """Yield each class that repairs were run with, as it is with the proven ones."""
    proofs = report.proofs or ()
    texts = {path: own for proof in proofs for path, own in proof.changed.items()}
    refused = {path for proof in proofs if proof.obstacles for path in proof.changed}
    old = Sources({}, {path: before for path, (before, _) in texts.items()})
    new = Sources({}, {path: own[path not in refused] for path, own in texts.items()})
    found: dict[tuple[str, str], Row] = {}
    for proof, repair in zip(proofs, all_repairs, strict=True):
        earlier = {_key(each): each for run in proof.before.values() for each in run.results}
        later = {_key(each): each for run in proof.after.values() for each in run.results}
        for key, before in earlier.items():
            known = found.get(key, Row(before, old))
            if not proof.obstacles and key in later:
                known = Row(later[key], new, Row(before, old), known.repairs)
            found[key] = replace(known, repairs=(*known.repairs, repair))
    yield from (found[key] for key in sorted(found))


def _key(result: ClassResult) -> tuple[str, str]:
    return result.source, result.name


def _hinted(report: Report, result: ClassResult) -> Iterator[RepairSection]:
    if report.weighed is not None:
        weighed = report.weighed
        hints = (hint for failure in result.failures for hint in weighed.hints_of(result, failure))
        yield from suggested_repairs(report, hints)


def _facts(report: Report, command: str, made: datetime) -> Iterator[tuple[str, str]]:
    yield "Command", command
    yield "Made", made.strftime("%Y-%m-%d %H:%M %Z").strip()
    yield "gclint", __version__
    for environment in _environments(report):
        for name in ("transformers", "torch", "Python", "Device"):
            yield name, getattr(environment, name.lower())
        if environment.isolation:
            yield "Isolation", "; ".join(environment.isolation)
        if environment.numerics:
            yield "Numbers", "; ".join(environment.numerics)


def _environments(report: Report) -> list[Environment]:
    runs = report.runs.environments.values() if report.runs is not None else ()
    proofs = (run.environment for proof in report.proofs or () for run in proof.after.values())
    return list(dict.fromkeys(each for each in (*runs, *proofs) if each is not None))


def _problems(report: Report) -> Iterator[str]:
    for problem in report.problems:
        where = f":{problem.position.row}" if problem.position else ""
        yield f"{brief(problem.path)}{where}: {problem.message}"
    if report.runs is None:
        return
    if report.runs.problem:
        yield report.runs.problem
    for source in sorted(report.runs.unusable):
        yield f"{brief(source)}: {report.runs.unusable[source].message}"


def _findings(report: Report) -> Iterator[Excerpt]:
    for finding in report.findings:
        file = report.project.file(finding.path)
        row = file.position(finding.start).row
        yield Excerpt(
            f"{brief(finding.path)}:{row}: {headline(finding)}",
            ((row, file.line(row), True),),
            obstacle(finding) or "",
        )


def _counted(rows: Sequence[Row]) -> str:
    """Return how many classes had which outcome, in a line."""
    counts = Counter(row.outcome for row in rows)
    parts = ", ".join(f"{counts[outcome]:,} {outcome}" for outcome in OUTCOMES if counts[outcome])
    number = "1 class" if len(rows) == 1 else f"{len(rows):,} classes"
    return f"{number}: {parts}." if rows else "No class was run."


def _counted_setups(results: Iterable[ClassResult]) -> Iterator[str]:
    counts = Counter(setup.outcome for result in results for setup in result.setups)
    if counts:
        parts = ", ".join(f"{counts[outcome]:,} {word}" for outcome, word in _SETUPS.items())
        yield f"Of {counts.total():,} runs in further set-ups, {parts}."


# -- HTML


def rendered(page: Page) -> str:
    """Return the HTML."""
    templates = Templates(
        loader=PackageLoader(__package__, _TEMPLATES),
        # Names and messages of models are text, whatever they contain.
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters |= {"brief": brief, "percent": _percent, "prose": _prose, "size": binary_size}
    templates.globals |= {
        "advised": advised,
        "by_group": by_group,
        "cells": matrix.cells,
        "classes": classes,
        "fates": fates,
        "spelled": matrix.spelled,
    }
    script = _asset("page.js")
    return templates.get_template("page.html").render(
        page=page,
        style=Markup(_asset("page.css")),
        script=Markup(script),
        script_hash=base64.b64encode(sha256(script.encode()).digest()).decode(),
    )


def _percent(share: float) -> str:
    return f"{share:.0%}" if share >= 0.095 else f"{share:.1%}"


def _prose(text: str) -> Markup:
    """Return a sentence with the text between backticks set as code."""
    parts = text.split("`")
    if len(parts) % 2 == 0:
        return escape(text)
    pieces = [
        Markup("<code>{}</code>").format(each) if number % 2 else escape(each)
        for number, each in enumerate(parts)
    ]
    return Markup("").join(pieces)


def _asset(name: str) -> str:
    return (files(__package__) / _TEMPLATES / name).read_text(encoding="utf-8")
