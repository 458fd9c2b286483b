"""Comments that keep findings from being reported.

``# gclint: ignore[GC001]``, ``# gclint: ignore[positional-cache, GC003]``, or ``# gclint: ignore`` for all
rules, which are named by their codes or their names, in any case:

- after code, it applies to the findings that start or end on its line; on the first or the last line
  of a statement's header, for those of the whole header;
- alone on a line, it applies to the statement, or the line of a longer one, that follows directly or
  after further comments; above a decorator, to what that decorates.

``# gclint: ignore-file[GC001]``, alone on any line, applies to the whole file. A reason may follow the
brackets.

``# noqa: GC001`` is the same as ``# gclint: ignore[GC001]``. Codes of other linters in it are theirs, and so
is a ``# noqa`` without codes.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate
from operator import itemgetter
from pathlib import Path

from gclint.code.file import SourceFile
from gclint.code.lines import Comment, LogicalLine, logical_lines
from gclint.finding import Edit, Finding

_ATTEMPT = re.compile(r"#[ \t]*gclint(?::[^#]*|[ \t]+ignore(?:-file)?[ \t]*(?:\[[^#]*|$))")
"""Without the colon, only what can be nothing else: a comment may well speak of gclint."""
_NOQA = re.compile(
    r"#[ \t]*noqa[ \t]*:[ \t]*(?P<codes>[a-z]+\d+\b(?:[ \t,]+[a-z]+\d+\b)*)[^#]*", re.IGNORECASE
)
_OWN_CODE = re.compile(r"GC\d+", re.IGNORECASE)
_IGNORE = re.compile(
    r"#[ \t]*gclint:[ \t]*ignore(?P<whole_file>-file)?(?:[ \t]*\[(?P<words>[^\]]*)\]|(?![\w-]|[ \t]*\[))"
)


@dataclass(frozen=True)
class Word:
    """A word for a rule in an ignore comment."""

    text: str
    """The word as it is written."""
    code: str | None
    """The rule's code, or None if there is no such rule."""


@dataclass(frozen=True)
class Ignore:
    """One ignore comment; offsets are those of the file's text."""

    path: Path
    start: int
    end: int
    text: str
    words: tuple[Word, ...] | None
    """The rules that it ignores; None for all."""
    words_span: tuple[int, int]
    covered: tuple[int, int]
    surroundings: tuple[int, int]
    """What is deleted with the comment: the space before it, or its whole line."""
    mistake: str | None
    """Why the comment can never suppress anything."""
    others: tuple[str, ...] = ()
    """Codes of other linters in the same comment, which remain."""

    def suppresses(self, finding: Finding) -> bool:
        """Return whether the comment applies to the code that ``finding`` is about, and to its rule."""
        if self.mistake is not None or not (self.words is None or any(map(self.names, finding.codes))):
            return False
        start, end = self.covered
        last = max(finding.start, finding.end - 1)
        return start <= finding.start < end or start <= last < end

    def names(self, code: str) -> bool:
        """Return whether the comment has a word for the rule with this code."""
        return self.words is not None and any(word.code == code for word in self.words)

    def removed(self) -> Edit:
        """Return the edit that deletes the comment, or what is ours in it."""
        return self.reduced_to(()) if self.others else Edit(self.path, *self.surroundings, "")

    def reduced_to(self, words: Iterable[Word]) -> Edit:
        """Return the edit that leaves only these words in the comment."""
        kept = (*self.others, *(word.text for word in words))
        return Edit(self.path, *self.words_span, ", ".join(kept))


class Suppressions:
    """The ignore comments of a file, without its text."""

    def __init__(self, file: SourceFile | None, codes: Mapping[str, str]) -> None:
        """Find the comments, which is cheap if there are none; no file stands for one without comments.

        The ``codes`` of all rules are by the words for them, in lower case.
        """
        self.codes = codes
        self.ignores = () if file is None else tuple(_ignores(file, codes))
        self._ordered = sorted(self.ignores, key=lambda each: each.covered)
        """By the beginning of the code that they apply to."""
        self._starts = [each.covered[0] for each in self._ordered]
        self._furthest = [*accumulate((each.covered[1] for each in self._ordered), max)]
        """The furthest end of the code that each, or one before it, applies to."""

    def around(self, finding: Finding) -> list[Ignore]:
        """Return the comments that apply to the code of ``finding``, whatever they ignore, in order."""
        found = {}
        for place in (finding.start, max(finding.start, finding.end - 1)):
            number = bisect_right(self._starts, place) - 1
            # There may be thousands of findings and comments.
            while number >= 0 and self._furthest[number] > place:
                if self._ordered[number].covered[1] > place:
                    found[self._ordered[number].start] = self._ordered[number]
                number -= 1
        return [found[start] for start in sorted(found)]

    def suppressing(self, finding: Finding) -> Iterator[Ignore]:
        """Yield the comments that suppress ``finding``."""
        return (ignore for ignore in self.around(finding) if ignore.suppresses(finding))

    def covers(self, finding: Finding) -> bool:
        """Return whether a comment suppresses ``finding``."""
        return any(self.suppressing(finding))


def has_ignores(file: SourceFile) -> bool:
    """Return whether a file has ignore comments, malformed ones among them."""
    return any(True for _ in _ignores(file, {}))


def _ignores(file: SourceFile, codes: Mapping[str, str]) -> Iterator[Ignore]:
    if "gclint" not in file.text and "noqa" not in file.text.lower():
        return  # Reading comments takes longer than that.
    lines = [*logical_lines(file)]
    comments = [comment for line in lines for comment in line.comments]
    code = _CodeRows(lines, {comment.row for comment in comments if comment.is_alone})
    for comment in comments:
        first, last = code.covered_rows(comment)
        covered = (file.row_start(first), file.row_start(last + 1))
        for attempt in _ATTEMPT.finditer(comment.text):
            yield _ignore(file, codes, comment, attempt, covered)
        for noqa in _NOQA.finditer(comment.text):
            if any(map(_OWN_CODE.fullmatch, _codes_in(noqa))):
                yield _of_noqa(file, codes, comment, noqa, covered)


def _codes_in(noqa: re.Match[str]) -> list[str]:
    return [*dict.fromkeys(re.split(r"[ \t,]+", noqa["codes"]))]


def _of_noqa(
    file: SourceFile,
    codes: Mapping[str, str],
    comment: Comment,
    noqa: re.Match[str],
    covered: tuple[int, int],
) -> Ignore:
    start, end = comment.start + noqa.start(), comment.start + noqa.end()
    span = comment.start + noqa.start("codes"), comment.start + noqa.end("codes")
    named = _codes_in(noqa)
    words = tuple(Word(each, codes.get(each.lower())) for each in named if _OWN_CODE.fullmatch(each))
    others = tuple(each for each in named if not _OWN_CODE.fullmatch(each))
    surroundings = _surroundings(file, comment, start, end)
    text = noqa[0].rstrip()
    return Ignore(file.path, start, start + len(text), text, words, span, covered, surroundings, None, others)


def _ignore(
    file: SourceFile,
    codes: Mapping[str, str],
    comment: Comment,
    attempt: re.Match[str],
    covered: tuple[int, int],
) -> Ignore:
    start, end = comment.start + attempt.start(), comment.start + attempt.end()
    text = attempt[0].rstrip()
    match = _IGNORE.match(text)
    mistake = words = None
    words_span = (end, end)
    if match is None:
        mistake = "it is not of the form `# gclint: ignore[GC001]` or `# gclint: ignore-file[GC001]`"
    elif match["words"] is not None:
        written = dict.fromkeys(word.strip() for word in match["words"].split(",") if word.strip())
        words = tuple(Word(word, codes.get(word.lower())) for word in written)
        words_span = (start + match.start("words"), start + match.end("words"))
    if match is not None and match["whole_file"]:
        covered = (0, len(file.text))
        if not comment.is_alone:
            mistake = "`ignore-file` must be on a line of its own"
    surroundings = _surroundings(file, comment, start, end)
    end = start + len(text)
    return Ignore(file.path, start, end, text, words, words_span, covered, surroundings, mistake)


def _surroundings(file: SourceFile, comment: Comment, start: int, end: int) -> tuple[int, int]:
    """Return what to delete so that no trace of ``[start, end)`` of a comment remains."""
    if end < comment.end:
        return start, end
    line_start = file.line_starts[comment.row - 1]
    if start == comment.start and comment.is_alone:
        return line_start, file.row_start(comment.row + 1)
    return line_start + len(file.text[line_start:start].rstrip()), end


class _CodeRows:
    """The rows that comments apply to."""

    def __init__(self, lines: list[LogicalLine], comment_rows: set[int]) -> None:
        statements = [(line.rows, line.is_decorator) for line in lines if line.rows is not None]
        self._rows = [rows for rows, _ in statements]
        # For each comment alone on its row, the row after it and the comments that follow directly. There may
        # be thousands of comments in a row, and of decorators.
        self._after: dict[int, int] = {}
        for row in sorted(comment_rows, reverse=True):
            self._after[row] = self._after.get(row + 1, row + 1)
        self._last_rows = [last for _, last in self._rows]
        for index in range(len(statements) - 2, -1, -1):
            if statements[index][1]:
                self._last_rows[index] = self._last_rows[index + 1]

    def covered_rows(self, comment: Comment) -> tuple[int, int]:
        """Return the first and last row of the code that a comment applies to."""
        row = self._after[comment.row] if comment.is_alone else comment.row
        index = bisect_left(self._rows, row, key=itemgetter(1))
        if index == len(self._rows) or row < self._rows[index][0]:
            return row, row
        first, last = self._rows[index]
        # A comment alone between the lines of a statement is about the next line, even if that is the last.
        if row != first and (row != last or comment.is_alone):
            return row, row
        return first, self._last_rows[index]
