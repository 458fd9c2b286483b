"""Traces as they are kept: what was read, and whether the same would be read now."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gclint.facts import Fact, Signature, Trace, holds, is_kind

Known = dict[Fact, tuple[str, "Signature | None"]]


class Damaged(ValueError):
    """What was kept is not what gclint keeps."""


def encoded(trace: Trace) -> list[Any]:
    """Return a trace as JSON has it: the answers by path, for each kind of question."""
    kinds: dict[tuple[str, str], dict[str, list[Any]]] = {}
    for fact, answer in trace.answers.items():
        seen = trace.signatures.get(fact.path) if fact.kind == "search" else None
        kinds.setdefault((fact.kind, fact.detail), {})[fact.path] = [answer, *(seen or ())]
    return [[kind, detail, answers] for (kind, detail), answers in kinds.items()]


def decoded(document: object) -> Known:
    """Return what was kept.

    Raises:
        Damaged: it is something else.
    """
    known: Known = {}
    for kind, detail, answers in _rows(document):
        for path, row in answers.items():
            known[Fact(kind, path, detail)] = _answer(row)
    return known


def _rows(document: object) -> list[tuple[str, str, Mapping[str, Any]]]:
    found: list[tuple[str, str, Mapping[str, Any]]] = []
    if not isinstance(document, list):
        raise Damaged
    for row in document:
        if not (isinstance(row, list) and len(row) == 3):
            raise Damaged
        kind, detail, answers = row
        if not (is_kind(kind) and isinstance(detail, str) and isinstance(answers, dict)):
            raise Damaged
        found.append((kind, detail, answers))
    return found


def _answer(row: object) -> tuple[str, Signature | None]:
    if not (isinstance(row, list) and row and isinstance(row[0], str)):
        raise Damaged
    if len(row) == 1:
        return row[0], None
    if len(row) != 5 or not all(type(each) is int for each in row[1:]):
        raise Damaged
    return row[0], (row[1], row[2], row[3], row[4])


def still_holds(known: Known) -> bool:
    """Tell whether all questions still have the answers that are known."""
    return all(holds(fact, answer, seen) for fact, (answer, seen) in known.items())


def changed(known: Known) -> set[Fact]:
    """Return the questions that have other answers now."""
    return {fact for fact, (answer, seen) in known.items() if not holds(fact, answer, seen)}
