"""What a verdict has consulted, as the cache keeps it: valid as long as all of it is the same.

A file or folder that was old enough when it was read is the same one if its times are, and is not read again.
"""

from __future__ import annotations

import os
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from gclint.facts import answer, follows, is_kind, is_settled, is_unchanged, signature
from gclint.trace import FileFact, Signature, Trace


class Damaged(ValueError):
    """A document in the cache is malformed."""


class RecordedAnswer(NamedTuple):
    """The answer to a question about the file system, as an earlier run got it."""

    text: str
    phase: str
    """The phase in which the question was asked."""
    signature: Signature | None
    """The signature that the file or folder had then; None if it cannot be relied on."""


def encoded(trace: Trace) -> list[Any] | None:
    """Return what was consulted as ``json`` can write it; None if some of it has changed meanwhile."""
    if trace.is_torn:
        return None
    asked: defaultdict[str, list[list[str]]] = defaultdict(list)
    for fact, text in trace.answers.items():
        asked[fact.path].append([fact.kind, fact.detail, text, trace.phases.get(fact, "")])
    return [[path, trace.signatures.get(path), own] for path, own in asked.items()]


def still_holds(document: Any) -> bool:
    """Return whether all questions still have the same answers.

    Raises:
        Damaged: the document is malformed.
    """
    return not any(_changed(_facts(document)))


def decoded(document: Any) -> dict[FileFact, RecordedAnswer]:
    """Return the answers in a document.

    Raises:
        Damaged: the document is malformed.
    """
    return dict(_facts(document))


def _facts(document: Any) -> Iterator[tuple[FileFact, RecordedAnswer]]:
    try:
        for path, seen, asked in document:
            known = None if seen is None else tuple(seen)
            for kind, detail, text, phase in asked:
                if not is_kind(kind) or not all(isinstance(each, str) for each in (path, detail, text)):
                    raise Damaged("there is no such question")
                yield FileFact(kind, path, detail), RecordedAnswer(text, phase, known)
    except (TypeError, ValueError, RecursionError) as error:
        raise Damaged(str(error)) from None


def changed(known: Mapping[FileFact, RecordedAnswer]) -> dict[FileFact, str]:
    """Return the questions whose answers have changed, with their new answers."""
    return {fact: answer(fact) for fact in _changed(known.items())}


def _changed(known: Iterable[tuple[FileFact, RecordedAnswer]]) -> Iterator[FileFact]:
    """Yield the questions whose answers have changed; each file is looked at once for those that follow."""
    unchanged: dict[str, bool] = {}
    for fact, kept in known:
        if fact.path not in unchanged:
            unchanged[fact.path] = is_unchanged(fact.path, kept.signature)
        if not (unchanged[fact.path] and follows(fact.kind, kept.text)) and answer(fact) != kept.text:
            yield fact


_BEGAN = time.time_ns()


def consulted(trace: Trace) -> tuple[list[Any] | None, list[Any] | None]:
    """Return what the code that has been imported so far is, and what it has read, as the cache keeps both.

    Each is None if some of it has changed meanwhile.
    """
    code = _code()
    return None if code is None else encoded(code), encoded(trace)


def _code() -> Trace | None:
    trace = Trace()
    library = os.path.dirname(os.__file__)
    for module in list(sys.modules.values()):
        path = getattr(module, "__file__", None)
        if not isinstance(path, str) or (path.startswith(library) and "-packages" not in path):
            continue
        try:
            status = os.stat(path)
        except OSError:
            return None
        if max(status.st_mtime_ns, status.st_ctime_ns) >= _BEGAN:
            return None
        fact = FileFact("search", path)
        trace.answers[fact] = answer(fact)
        if is_settled(status, _BEGAN):
            trace.see(path, signature(status))
    for folder in getattr(sys.modules.get("gclint.rules"), "__path__", ()):
        fact = FileFact("matching", str(folder), "*.py")
        trace.answers[fact] = answer(fact)
    return trace
