"""What texts may import and inherit from, found without parsing them: most files need not be read closely."""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import cast

from gclint.code.file import SourceFile
from gclint.code.lines import normal
from gclint.code.project import Project
from gclint.code.questions import Topic
from gclint.code.remembered import remembered

_WORD = re.compile(r"\w+")
_COMMENT = r"\#[^\r\n]*(?=[\r\n]|\Z)"
_IMPORT = re.compile(r"import\b")
"""It begins with letters, which Python finds faster than the border of a word."""
_BEFORE = re.compile(r"[:;]?[\s\\]*(?:from\b.*)?", re.DOTALL)
"""What stands before that word in its statement."""
_AFTER = re.compile(rf"(?:[^\r\n;#(\\]|\\(?:\r\n|.)|\((?:[^)#]|{_COMMENT})*\)?)*", re.DOTALL)
_IMPORTED_BYTES = re.compile(rb"import\b" + _AFTER.pattern.encode(), re.DOTALL)
_FROM_BYTES = re.compile(rb"from\b(?:[^\r\n;#\\]|\\(?:\r\n|.))*", re.DOTALL)
_WORD_BYTES = re.compile(rb"\w+")
_ALIASED = re.compile(r"\b(\w+)[\s\\]+as\b")
_CLASS = re.compile(r"class(?=[\s\\])")
_HEADER = re.compile(rf"(?:[^#]|{_COMMENT})*?(?::[ \t\f]*(?:{_COMMENT})?(?=[\r\n])|\Z)", re.DOTALL)
"""The rest of a header, up to a line that a colon ends."""


@remembered
def likely_imported(file: SourceFile) -> frozenset[str]:
    """Return the words in the imports of a file, and in what only looks like one."""
    return words(_imports(file))


def possibly_imported(data: bytes) -> frozenset[bytes] | None:
    """Return at least the words of :func:`likely_imported`, and much faster; None if some are not ASCII."""
    found = (*_FROM_BYTES.findall(data), *_IMPORTED_BYTES.findall(data))
    if not all(map(bytes.isascii, found)):
        return None
    return frozenset(word for each in found for word in _WORD_BYTES.findall(each))


@remembered
def likely_bases(file: SourceFile) -> frozenset[str]:
    """Return the words in the headers of classes, and what they may stand for by an ``as`` of an import."""
    headers = [*_headers(file.text)]
    aliased = (word for text in _imports(file) for word in _ALIASED.findall(text))
    is_clear = all(text.count("(") == text.count(")") for text in headers)
    written = () if is_clear else (base for each in file.outline.definitions for base in each.bases)
    return words((*headers, *aliased, *written))


def given_by_word(
    project: Project, words_of: Callable[[SourceFile], frozenset[str]]
) -> Mapping[str, Sequence[Path]]:
    """Return the given files by their ``words_of``, in order."""
    if words_of not in project.derived:
        found: defaultdict[str, list[Path]] = defaultdict(list)
        with project.read_for(None):
            for file in project.readable(project.paths):
                for word in words_of(file):
                    found[word].append(file.path)
        project.derived[words_of] = dict(found)
    return cast("Mapping[str, Sequence[Path]]", project.derived[words_of])


def given_answer(
    project: Project,
    topic: Topic,
    key: str,
    words_of: Callable[[SourceFile], frozenset[str]],
    user: SourceFile,
) -> tuple[Path, ...]:
    """Return the given files for which a topic holds, in order; the verdict on ``user`` depends on them.

    Only those are asked among whose ``words_of`` is the first word of the key: it is parted by ``|``.
    """

    def found() -> Iterator[Path]:
        likely = given_by_word(project, words_of).get(key.partition("|")[0], ())
        return (path for path in likely if topic.holds(project.file(path), key))

    return project.in_order(project.asked(topic, key, found, user.path))


def _imports(file: SourceFile) -> Iterator[str]:
    text, seen = file.text, 0
    while match := _IMPORT.search(text, seen):
        start, row = match.start(), file.places.row(match.start())
        while row > 1 and file.row_start(row) > seen and file.line(row - 1).endswith("\\"):
            row -= 1
        begin = max(seen, file.row_start(row))
        begin = max(begin, text.rfind(":", begin, start), text.rfind(";", begin, start))
        seen = match.end()
        if _BEFORE.fullmatch(text, begin, start):
            after = _AFTER.match(text, seen)
            seen = after.end() if after else seen
            yield text[begin:seen]


def _headers(text: str) -> Iterator[str]:
    seen = 0
    while match := _CLASS.search(text, seen):
        before, seen = match.start(), match.end()
        while before and text[before - 1] in " \t\f":
            before -= 1
        header = _HEADER.match(text, seen)
        if header and (not before or text[before - 1] in "\r\n"):
            seen = header.end()
            yield header[0]


def words(texts: Iterable[str]) -> frozenset[str]:
    """Return the words of texts, each in the letters that Python takes it for."""
    return frozenset(map(sys.intern, {word for text in texts for word in _WORD.findall(normal(text))}))
