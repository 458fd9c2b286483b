"""Traces as they are kept: what was read, and whether the same would be read now."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from gclint.facts import answer, holds, is_kind, read_unnoted
from gclint.trace import Fact, Signature, Trace


class Answer(NamedTuple):
    """An answer that was kept."""

    text: str
    signature: Signature | None = None
    """The file's with that answer, where it may be trusted."""
    layout_free: str | None = None
    """What stands for the file but for its layout, where that is no matter."""


Known = dict[Fact, Answer]
LayoutFree = Callable[[Path, bytes], "str | None"]
"""Returns what stands for the content of a Python file but for its layout; None for anything else."""
_OF_FILES = ("content", "search")
_Row = tuple[str, str, str, "Mapping[str, Any]"]


class Damaged(ValueError):
    """What was kept is not what gclint keeps."""


def encoded(trace: Trace, shown: Container[str] = ()) -> list[Any]:
    """Return a trace as JSON has it: the answers by path, for each kind of question.

    Args:
        trace: what was read.
        shown: the files whose layout matters.
    """
    kinds: dict[tuple[str, str, str], dict[str, list[Any]]] = {}
    for fact, found in trace.answers.items():
        seen = trace.signatures.get(fact.path) if fact.kind in _OF_FILES else None
        key = fact.kind, fact.detail, trace.phases.get(fact, "")
        # A file without a phase was read for something else as well, which may see its layout.
        layout_free = trace.layout_free.get(fact.path) if fact.kind in _OF_FILES and key[-1] else None
        own = () if layout_free is None or fact.path in shown else (layout_free,)
        kinds.setdefault(key, {})[fact.path] = [found, *(seen or ()), *own]
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


def still_holds(document: object, layout_free: LayoutFree) -> bool:
    """Tell whether all questions still have the answers that were kept, or such as come to the same.

    Args:
        document: what was kept.
        layout_free: what stands for the content of a Python file but for its layout.

    Raises:
        Damaged: something else was kept.
    """
    for kind, detail, _, answers in _rows(document):
        for path, row in answers.items():
            # Most answers are a word, and stand: thousands of them are asked for in a run that is replayed.
            if type(row) is list and len(row) == 1 and type(row[0]) is str:
                if not holds(kind, path, detail, row[0]):
                    return False
            elif not _still(kind, path, detail, _answer(row), layout_free):
                return False
    return True


def changed(known: Known) -> dict[Fact, str]:
    """Return the questions that have other answers now, with these."""
    others = (
        fact
        for fact, kept in known.items()
        if not holds(fact.kind, fact.path, fact.detail, kept.text, kept.signature)
    )
    return {fact: answer(fact) for fact in others}


def differs_in_layout_only(path: str, kept: Answer, layout_free: LayoutFree) -> bool:
    """Tell whether a file of which something was kept is the same but for its layout."""
    if kept.layout_free is None:
        return False
    try:
        return layout_free(Path(path), read_unnoted(path)) == kept.layout_free
    except OSError:
        return False


def _still(kind: str, path: str, detail: str, kept: Answer, layout_free: LayoutFree) -> bool:
    if holds(kind, path, detail, kept.text, kept.signature):
        return True
    return differs_in_layout_only(path, kept, layout_free)


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


def _answer(row: object) -> Answer:
    if not (isinstance(row, list) and row and isinstance(row[0], str)):
        raise Damaged("an answer is something else")
    layout_free = row[-1] if len(row) > 1 and isinstance(row[-1], str) else None
    numbers = row[1:] if layout_free is None else row[1:-1]
    if not numbers:
        return Answer(row[0], None, layout_free)
    if len(numbers) != 4 or not all(type(each) is int for each in numbers):
        raise Damaged("a signature is something else")
    return Answer(row[0], (numbers[0], numbers[1], numbers[2], numbers[3]), layout_free)
