"""Comments that suppress findings, put where they stand for them and break nothing.

All comments of a file are tried at once: each trial parses the file, and there may be thousands of findings.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate

from gclint.code.file import SourceFile, UnreadableFile
from gclint.code.lines import logical_lines
from gclint.code.suppressions import Ignore, Suppressions, Word
from gclint.code.syntax import syntax_problem
from gclint.edit.edits import edited
from gclint.finding import Edit, Finding

Choice = tuple[Finding, Edit]
"""A finding, and the comment that may suppress it."""


def ignoring(file: SourceFile, finding: Finding, codes: Mapping[str, str]) -> Edit | None:
    """Return the edit that suppresses a finding; None where no comment can.

    A comment that is about the code already gets one more word; else there is a new one behind the line
    that the finding starts on or the one that it ends on, or on a line of its own above.

    Args:
        file: where it was found.
        finding: what is to be suppressed.
        codes: the codes of all rules, by the words that stand for them, in lower case.
    """
    candidates = _Room(file, Suppressions(file, codes)).candidates(finding)
    return next((edit for edit in candidates if _after(file, [(finding, edit)], codes) is not None), None)


def suppressed(
    file: SourceFile, findings: Iterable[Finding], codes: Mapping[str, str]
) -> tuple[SourceFile, int]:
    """Return a file with comments for findings, as :func:`ignoring` makes them, and for how many of them.

    Args:
        file: where they were found.
        findings: what is to be suppressed.
        codes: the codes of all rules, by the words that stand for them, in lower case.
    """
    left = sorted(findings, key=lambda each: (each.start, each.end))
    count = 0
    while left:
        comments = Suppressions(file, codes)
        uncovered = [each for each in left if not comments.covers(each)]
        count += len(left) - len(uncovered)
        choices, left = _choices(file, uncovered, comments)
        file, made = _tried(file, choices, codes)
        count += len(made)
        left = _moved(left, made)
    return file, count


def _choices(
    file: SourceFile, findings: Sequence[Finding], comments: Suppressions
) -> tuple[list[Choice], list[Finding]]:
    """Return one comment for each statement, the last one first, and the findings that have to wait."""
    room = _Room(file, comments)
    choices: list[Choice] = []
    waiting = []
    taken: set[int] = set()
    for finding in reversed(findings):
        edit = next(room.candidates(finding))
        statements = {room.statement(finding.start), room.statement_before(edit.start)}
        # A comment for one may do for the other, or has to be joined to it.
        if taken.isdisjoint(statements):
            taken |= statements
            choices.append((finding, edit))
        else:
            waiting.append(finding)
    return sorted(choices, key=lambda each: each[1], reverse=True), waiting[::-1]


def _tried(
    file: SourceFile, choices: Sequence[Choice], codes: Mapping[str, str]
) -> tuple[SourceFile, list[Edit]]:
    """Return a file with the comments that work, and their edits.

    Args:
        file: where they are to stand.
        choices: from the end of the file to its beginning.
        codes: the codes of all rules, by the words that stand for them, in lower case.
    """
    if not choices:
        return file, []
    after = _after(file, choices, codes)
    if after is not None:
        return after, [edit for _, edit in choices]
    if len(choices) == 1:
        edit = ignoring(file, choices[0][0], codes)
        if edit is None:
            return file, []
        return SourceFile(file.path, file.encode(edited(file.text, [edit]))), [edit]
    # What stands further up stays where it is.
    half = len(choices) // 2
    file, later = _tried(file, choices[:half], codes)
    file, earlier = _tried(file, choices[half:], codes)
    return file, later + earlier


def _after(file: SourceFile, choices: Sequence[Choice], codes: Mapping[str, str]) -> SourceFile | None:
    """Return a file with comments; None if it is not Python any more, or one of the findings is left."""
    edits = [edit for _, edit in choices]
    text = edited(file.text, edits)
    try:
        after = SourceFile(file.path, file.encode(text))
    except (UnreadableFile, UnicodeEncodeError):
        return None
    if not file.reads_back(text) or syntax_problem(after) is not None:
        return None
    comments = Suppressions(after, codes)
    return after if all(map(comments.covers, _moved([each for each, _ in choices], edits))) else None


def _moved(findings: Iterable[Finding], edits: Iterable[Edit]) -> list[Finding]:
    """Return findings at their places after edits, none of which changes their own code."""
    ordered = sorted(edits)
    ends = [each.end for each in ordered]
    shifts = [0, *accumulate(len(each.content) - (each.end - each.start) for each in ordered)]

    def moved(offset: int) -> int:
        return offset + shifts[bisect_right(ends, offset)]

    found = []
    for finding in findings:
        start = moved(finding.start)
        found.append(replace(finding, start=start, end=max(start, moved(finding.end - 1) + 1)))
    return found


class _Room:
    """Where comments can stand in a file."""

    def __init__(self, file: SourceFile, comments: Suppressions) -> None:
        self._file = file
        self._comments = comments
        lines = list(logical_lines(file))
        self._starts = [line.start for line in lines]
        self._ends = [line.end for line in lines]

    def statement(self, offset: int) -> int:
        """Return the number of the statement, or header, that does not end before a place."""
        return bisect_right(self._ends, offset)

    def statement_before(self, offset: int) -> int:
        """Return the same of a place that may be the end of it."""
        return bisect_left(self._ends, offset)

    def candidates(self, finding: Finding) -> Iterator[Edit]:
        """Yield comments that may suppress a finding, the best first; there is one at least."""
        file = self._file
        for ignore in self._comments.around(finding):
            # What stands for the whole file would suppress more than was asked for.
            is_local = ignore.covered != (0, len(file.text))
            if ignore.words is not None and is_local and _would_suppress(ignore, finding):
                yield ignore.reduced_to((*ignore.words, Word(finding.code, finding.code)))
        first = file.position(finding.start).row
        last = file.position(max(finding.start, finding.end - 1)).row
        # Within a long string there is no room; the statement around it may have some.
        statement = self._rows(finding)
        for row in dict.fromkeys((first, last, *statement)):
            line = file.line(row)
            end = file.row_start(row) + len(line.rstrip())
            yield Edit(file.path, end, file.row_start(row) + len(line), f"  # gclint: ignore[{finding.code}]")
        for row in dict.fromkeys((first, statement[0])):
            line = file.line(row)
            indent = line[: len(line) - len(line.lstrip())]
            start = file.row_start(row)
            yield Edit(file.path, start, start, f"{indent}# gclint: ignore[{finding.code}]{file.newline}")

    def _rows(self, finding: Finding) -> tuple[int, int]:
        """Return the first and last row of the statement, or header, that a finding starts in."""
        number = self.statement(finding.start)
        if number == len(self._ends):
            row = self._file.position(finding.start).row
            return row, row
        start, end = self._starts[number], self._ends[number]
        return self._file.position(start).row, self._file.position(max(start, end - 1)).row


def _would_suppress(ignore: Ignore, finding: Finding) -> bool:
    return replace(ignore, words=(Word(finding.code, finding.code),)).suppresses(finding)
