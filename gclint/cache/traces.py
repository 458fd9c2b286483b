"""Traces in the cache: what a run has read, and whether a run would read the same now."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from gclint.facts import answer, holds, is_kind, read_unnoted
from gclint.trace import Fact, Signature, Trace


class Answer(NamedTuple):
    """The answer to a question about the file system, as an earlier run got it."""

    text: str
    signature: Signature | None = None
    """The signature that the file had then; None if it cannot be relied on."""
    layout_free: str | None = None
    """A digest of the file without its layout; None if its layout matters."""


Known = dict[Fact, Answer]
LayoutFree = Callable[[Path, bytes], "str | None"]
"""Returns a digest of the content of a Python file without its layout; None if it is not Python."""
_OF_FILES = ("content", "search")
_Row = tuple[str, str, str, "Mapping[str, Any]"]


class Damaged(ValueError):
    """A document in the cache is malformed."""


def encoded(trace: Trace, shown: Container[str] = ()) -> list[Any]:
    """Return a trace as ``json`` can write it: the answers by path, for each kind of question.

    Args:
        trace: what was read.
        shown: the paths of the files whose layout matters.
    """
    kinds: dict[tuple[str, str, str], dict[str, list[Any]]] = {}
    for fact, found in trace.answers.items():
        seen = trace.signatures.get(fact.path) if fact.kind in _OF_FILES else None
        key = fact.kind, fact.detail, trace.phases.get(fact, "")
        # A file without a phase was also read for another purpose, for which its layout may matter.
        layout_free = trace.layout_free.get(fact.path) if fact.kind in _OF_FILES and key[-1] else None
        own = () if layout_free is None or fact.path in shown else (layout_free,)
        kinds.setdefault(key, {})[fact.path] = [found, *(seen or ()), *own]
    return [[*key, answers] for key, answers in kinds.items()]


def decoded(document: object) -> tuple[Known, dict[Fact, str]]:
    """Return the answers in a document, and the phases of the facts.

    Raises:
        Damaged: the document is malformed.
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
    """Return whether all questions still have the same answers, apart from layout that does not matter.

    Args:
        document: a trace in the cache.
        layout_free: returns a digest of a Python file without its layout.

    Raises:
        Damaged: the document is malformed.
    """
    for kind, detail, _, answers in _rows(document):
        for path, row in answers.items():
            # A replayed run checks thousands of answers. Most are a single word, and unchanged.
            if type(row) is list and len(row) == 1 and type(row[0]) is str:
                if not holds(kind, path, detail, row[0]):
                    return False
            elif not _still(kind, path, detail, _answer(row), layout_free):
                return False
    return True


def changed(known: Known) -> dict[Fact, str]:
    """Return the questions whose answers have changed, with their new answers."""
    others = (
        fact
        for fact, kept in known.items()
        if not holds(fact.kind, fact.path, fact.detail, kept.text, kept.signature)
    )
    return {fact: answer(fact) for fact in others}


def differs_in_layout_only(path: str, kept: Answer, layout_free: LayoutFree) -> bool:
    """Return whether a file has changed in nothing but its layout."""
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
            raise Damaged("a row has the wrong length")
        kind, detail, phase, answers = row
        if not (is_kind(kind) and isinstance(detail, str) and isinstance(phase, str)):
            raise Damaged("there is no such question")
        if not isinstance(answers, dict):
            raise Damaged("there are no answers")
        yield kind, detail, phase, answers


def _answer(row: object) -> Answer:
    if not (isinstance(row, list) and row and isinstance(row[0], str)):
        raise Damaged("an answer is malformed")
    layout_free = row[-1] if len(row) > 1 and isinstance(row[-1], str) else None
    numbers = row[1:] if layout_free is None else row[1:-1]
    if not numbers:
        return Answer(row[0], None, layout_free)
    if len(numbers) != 4 or not all(type(each) is int for each in numbers):
        raise Damaged("a signature is malformed")
    return Answer(row[0], (numbers[0], numbers[1], numbers[2], numbers[3]), layout_free)
