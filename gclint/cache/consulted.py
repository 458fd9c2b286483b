"""What a verdict has consulted, as the cache keeps it: valid as long as all of it is the same.

The questions about a folder and its entries are kept together. If the folder was old enough when they were
answered, its times tell that its entries are the same ones, and only those have to be looked at whose answers
do not follow from that.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from gclint.facts import (
    answer,
    folder_of,
    follows_from_folder,
    holds,
    is_kind,
    is_settled,
    is_unchanged,
    settled_signature,
    signature,
)
from gclint.trace import FileFact, Signature, Trace

_OF_FILES = ("content", "search")
_Rows = list[Any]
"""Questions of the same kind in the same phase, each with the names that they are about and the answers."""


class Damaged(ValueError):
    """A document in the cache is malformed."""


_MALFORMED = (TypeError, ValueError, KeyError, IndexError, AttributeError, RecursionError)


class RecordedAnswer(NamedTuple):
    """The answer to a question about the file system, as an earlier run got it."""

    text: str
    phase: str
    """The phase in which the question was asked."""
    signature: Signature | None
    """The signature that the file had then; None if it cannot be relied on."""


def encoded(trace: Trace) -> list[Any] | None:
    """Return what was consulted as ``json`` can write it; None if some of it has changed meanwhile.

    What follows from a folder is a text in that, which need not be read as long as the folder is the same.
    """
    folders: defaultdict[str, list[FileFact]] = defaultdict(list)
    for fact in trace.answers:
        folders[folder_of(fact)].append(fact)
    document = []
    for folder, facts in folders.items():
        seen = settled_signature(folder)
        following = {
            each for each in facts if seen is not None and follows_from_folder(each, trace.answers[each])
        }
        # They may have been answered before the folder changed.
        if trace.is_torn or any(answer(each) != trace.answers[each] for each in following):
            return None
        others = _rows(trace, folder, (each for each in facts if each not in following))
        document.append([folder, seen, json.dumps(_rows(trace, folder, following)), others])
    return document


def _rows(trace: Trace, folder: str, facts: Iterable[FileFact]) -> _Rows:
    questions: defaultdict[tuple[str, str | int], list[list[str]]] = defaultdict(list)
    for fact in facts:
        # A file that was read and searched has one content.
        kind = _OF_FILES[0] if fact.kind in _OF_FILES else fact.kind
        asked = [fact.kind, fact.detail, trace.phases.get(fact, "")]
        questions[fact.path, f"{kind} {fact.detail}"].append(asked)
    rows: dict[str, tuple[list[list[str]], dict[str, list[Any]]]] = {}
    for (path, _), asked_of_path in questions.items():
        kind, detail, _ = asked_of_path[0]
        seen = trace.signatures.get(path) if kind in _OF_FILES else None
        found = [trace.answers[FileFact(kind, path, detail)], *([] if seen is None else [seen])]
        rows.setdefault(str(asked_of_path), (asked_of_path, {}))[1][_name(folder, path)] = found
    return [*map(list, rows.values())]


def _name(folder: str, path: str) -> str:
    """Return how a path is named in the rows of a folder: as an entry, if its path is made of the two."""
    prefix = os.path.join(folder, "")
    is_entry = folder and path.startswith(prefix) and path != prefix
    return path.removeprefix(prefix) if is_entry else f"/{path}"


def _path(prefix: str, name: str) -> str:
    return name[1:] if name[0] == "/" else prefix + name


def still_holds(document: Any) -> bool:
    """Return whether all questions still have the same answers.

    Raises:
        Damaged: the document is malformed.
    """
    try:
        return all(
            ((seen is not None and is_unchanged(folder, tuple(seen))) or _hold(folder, json.loads(following)))
            and _hold(folder, others)
            for folder, seen, following, others in document
        )
    except _MALFORMED as error:
        raise Damaged(str(error)) from None


def _hold(folder: str, rows: _Rows) -> bool:
    prefix = os.path.join(folder, "")
    for ((kind, detail, _), *_), answers in rows:
        for name, (known, *seen) in answers.items():
            if not holds(kind, _path(prefix, name), detail, known, tuple(seen[0]) if seen else None):
                return False
    return True


def decoded(document: Any) -> dict[FileFact, RecordedAnswer]:
    """Return the answers in a document.

    Raises:
        Damaged: the document is malformed.
    """
    known = {}
    try:
        for folder, _, following, others in document:
            prefix = os.path.join(folder, "")
            for asked, answers in (*json.loads(following), *others):
                for name, (text, *seen) in answers.items():
                    for kind, detail, phase in asked:
                        if not is_kind(kind):
                            raise Damaged("there is no such question")
                        fact = FileFact(kind, _path(prefix, name), detail)
                        known[fact] = RecordedAnswer(text, phase, tuple(seen[0]) if seen else None)
    except _MALFORMED as error:
        raise Damaged(str(error)) from None
    return known


def changed(known: Mapping[FileFact, RecordedAnswer]) -> dict[FileFact, str]:
    """Return the questions whose answers have changed, with their new answers."""
    return {
        fact: answer(fact)
        for fact, kept in known.items()
        if not holds(fact.kind, fact.path, fact.detail, kept.text, kept.signature)
    }


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
            trace.signatures[path] = signature(status)
    for folder in getattr(sys.modules.get("gclint.rules"), "__path__", ()):
        fact = FileFact("matching", str(folder), "*.py")
        trace.answers[fact] = answer(fact)
    return trace
