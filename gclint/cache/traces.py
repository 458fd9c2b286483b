"""Traces as they are kept: what was read, and whether the same would be read now."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gclint.facts import Fact, Signature, Trace, answer, holds, is_kind

Known = dict[Fact, tuple[str, "Signature | None"]]
_Row = tuple[str, str, str, "Mapping[str, Any]"]


class Damaged(ValueError):
    """What was kept is not what gclint keeps."""


def encoded(trace: Trace) -> list[Any]:
    """Return a trace as JSON has it: the answers by path, for each kind of question."""
    kinds: dict[tuple[str, str, str], dict[str, list[Any]]] = {}
    for fact, found in trace.answers.items():
        seen = trace.signatures.get(fact.path) if fact.kind == "search" else None
        key = fact.kind, fact.detail, trace.phases.get(fact, "")
        kinds.setdefault(key, {})[fact.path] = [found, *(seen or ())]
    return [[*key, answers] for key, answers in kinds.items()]


def decoded(document: object) -> tuple[Known, dict[Fact, str]]:
    """Return what was kept, and the phases of the facts.

    Raises:
        Damaged: it is something else.
    """
    known: Known = {}
    phases = {}
    for kind, detail, phase, answers in _rows(document):
        for path, row in answers.items():
            fact = Fact(kind, path, detail)
            known[fact] = _answer(row)
            phases[fact] = phase
    return known, phases


def still_holds(document: object) -> bool:
    """Tell whether all questions still have the answers that were kept.

    Raises:
        Damaged: something else was kept.
    """
    return all(
        holds(kind, path, detail, *_answer(row))
        for kind, detail, _, answers in _rows(document)
        for path, row in answers.items()
    )


def changed(known: Known) -> dict[Fact, str]:
    """Return the questions that have other answers now, with these."""
    others = (fact for fact, (found, seen) in known.items() if not holds(*fact[:2], fact.detail, found, seen))
    return {fact: answer(fact) for fact in others}


def _rows(document: object) -> Iterator[_Row]:
    if not isinstance(document, list):
        raise Damaged("there is no list of questions")
    for row in document:
        if not (isinstance(row, list) and len(row) == 4):
            raise Damaged("a row has another length")
        kind, detail, phase, answers = row
        if not (is_kind(kind) and isinstance(detail, str) and isinstance(phase, str)):
            raise Damaged("there is no such question")
        if not isinstance(answers, dict):
            raise Damaged("there are no answers")
        yield kind, detail, phase, answers


def _answer(row: object) -> tuple[str, Signature | None]:
    if not (isinstance(row, list) and row and isinstance(row[0], str)):
        raise Damaged("an answer is something else")
    if len(row) == 1:
        return row[0], None
    if len(row) != 5 or not all(type(each) is int for each in row[1:]):
        raise Damaged("a signature is something else")
    return row[0], (row[1], row[2], row[3], row[4])
