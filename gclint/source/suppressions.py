"""Comments that keep findings from being reported, and the comments among them that keep nothing.

``# gclint: ignore[GC001]``, ``# gclint: ignore[GC001, GC002]``, or ``# gclint: ignore`` for all rules:

- behind code it stands for the findings that start or end on its line; on the first or the last line
  of a statement's header, for those of the whole header;
- alone on a line it stands for the statement, or the line of a longer one, that follows at once or
  behind further comments; a decorator stands for what it decorates.

``# gclint: ignore-file[GC001]``, alone on any line, stands for the whole file. Behind the brackets there
is room for a reason. A comment that suppresses nothing, in whole or in part, is a finding itself.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gclint.finding import Edit, Finding, Fix, Refusal
from gclint.source.tokens import Kind, logical_lines

if TYPE_CHECKING:
    from gclint.source.file import SourceFile

CODE = "GC000"
NAME = "unused-ignore"

_ATTEMPT = re.compile(r"#[ \t]*gclint:[^#]*")
_IGNORE = re.compile(
    r"#[ \t]*gclint:[ \t]*ignore(?P<whole_file>-file)?(?:[ \t]*\[(?P<codes>[^\]]*)\]|(?![\w-]|[ \t]*\[))"
)


@dataclass(frozen=True)
class _Ignore:
    """One ignore comment; offsets are those of the file's text."""

    start: int
    end: int
    text: str
    codes: tuple[str, ...] | None
    """What it ignores; None is everything."""
    codes_span: tuple[int, int]
    covered: tuple[int, int]
    removal: tuple[int, int]
    """What goes with the comment when it goes: the space before it, or its whole line."""
    mistake: str | None
    """Why the comment cannot suppress anything, whatever is found."""

    def suppresses(self, finding: Finding) -> bool:
        if self.mistake is not None or not (self.codes is None or finding.code in self.codes):
            return False
        start, end = self.covered
        last = max(finding.start, finding.end - 1)
        return start <= finding.start < end or start <= last < end


class Suppressions:
    """The ignore comments of a file; it keeps no text."""

    def __init__(self, file: SourceFile) -> None:
        """Find the comments, which costs next to nothing where there are none."""
        self.path: Path = file.path
        self._ignores = tuple(_ignores(file)) if "gclint:" in file.text else ()

    def covers(self, finding: Finding) -> bool:
        """Tell whether a comment suppresses ``finding``."""
        return any(ignore.suppresses(finding) for ignore in self._ignores)

    def unused(
        self, findings: Collection[Finding], ran: Collection[str], known: Collection[str]
    ) -> Iterator[Finding]:
        """Yield a finding for each comment that suppresses nothing, in whole or in part.

        Args:
            findings: what was found in the file, also what is suppressed.
            ran: the codes of the rules that looked at the file; only of these it is known whether
                there is something to suppress.
            known: the codes of all rules.
        """
        for ignore in self._ignores:
            used = {finding.code for finding in findings if ignore.suppresses(finding)}
            yield from self._unused(ignore, used, ran, known)

    def _unused(
        self, ignore: _Ignore, used: set[str], ran: Collection[str], known: Collection[str]
    ) -> Iterator[Finding]:
        if ignore.mistake is not None:
            message = f"this comment suppresses nothing: {ignore.mistake}"
            yield self._finding(ignore, message, Refusal("only its author knows what it is meant to ignore"))
        elif ignore.codes is None:
            if not used and set(known) <= set(ran):
                complaint = "this comment suppresses nothing: no rule has a finding here"
                yield self._finding(ignore, complaint, self._removal(ignore))
        else:
            idle = [code for code in ignore.codes if code in ran and code not in used]
            unknown = [code for code in ignore.codes if code not in known]
            kept = [code for code in ignore.codes if code not in (*idle, *unknown)]
            complaints = [f"{code} has no finding here" for code in idle]
            complaints += [f"there is no rule {code}" for code in unknown]
            if not ignore.codes:
                complaints = ["it names no rule"]
            if complaints:
                whole = "part of this comment" if kept else "this comment"
                fix = self._without(ignore, kept) if kept else self._removal(ignore)
                yield self._finding(ignore, f"{whole} suppresses nothing: {'; '.join(complaints)}", fix)

    def _finding(self, ignore: _Ignore, message: str, remedy: Fix | Refusal) -> Finding:
        symbol = ignore.text.lstrip("# \t")
        return Finding(CODE, NAME, message, self.path, ignore.start, ignore.end, symbol, remedy)

    def _removal(self, ignore: _Ignore) -> Fix:
        return Fix("Remove the comment", (Edit(self.path, *ignore.removal, ""),))

    def _without(self, ignore: _Ignore, kept: list[str]) -> Fix:
        edit = Edit(self.path, *ignore.codes_span, ", ".join(kept))
        return Fix("Remove what is not needed from the comment", (edit,))


@dataclass(frozen=True)
class _Statement:
    """The rows of a simple statement, or of a compound one's header."""

    first_row: int
    last_row: int
    is_decorator: bool


@dataclass(frozen=True)
class _Comment:
    row: int
    start: int
    text: str
    is_alone: bool

    @property
    def end(self) -> int:
        return self.start + len(self.text)


def _ignores(file: SourceFile) -> Iterator[_Ignore]:
    statements, comments = _statements_and_comments(file)
    comment_rows = {comment.row for comment in comments if comment.is_alone}
    for comment in comments:
        for attempt in _ATTEMPT.finditer(comment.text):
            rows = _covered_rows(comment, statements, comment_rows)
            covered = (_row_start(file, rows[0]), _row_start(file, rows[1] + 1))
            yield _ignore(file, comment, attempt, covered)


def _ignore(file: SourceFile, comment: _Comment, attempt: re.Match[str], covered: tuple[int, int]) -> _Ignore:
    start, end = comment.start + attempt.start(), comment.start + attempt.end()
    text = attempt[0].rstrip()
    match = _IGNORE.match(text)
    mistake = codes = None
    codes_span = (end, end)
    if match is None:
        mistake = "it is not of the form `# gclint: ignore[GC001]` or `# gclint: ignore-file[GC001]`"
    elif match["codes"] is not None:
        codes = tuple(dict.fromkeys(code.strip() for code in match["codes"].split(",") if code.strip()))
        codes_span = (start + match.start("codes"), start + match.end("codes"))
    if match is not None and match["whole_file"]:
        covered = (0, len(file.text))
        if not comment.is_alone:
            mistake = "`ignore-file` must stand on a line of its own"
    removal = _removal(file, comment, start, end)
    return _Ignore(start, start + len(text), text, codes, codes_span, covered, removal, mistake)


def _removal(file: SourceFile, comment: _Comment, start: int, end: int) -> tuple[int, int]:
    """Return what to delete so that nothing but ``[start, end)`` of a comment is missed."""
    if end < comment.end:
        return start, end
    line_start = file.line_starts[comment.row - 1]
    if start == comment.start and comment.is_alone:
        return line_start, _row_start(file, comment.row + 1)
    return line_start + len(file.text[line_start:start].rstrip()), end


def _row_start(file: SourceFile, row: int) -> int:
    return file.line_starts[row - 1] if row <= len(file.line_starts) else len(file.text)


def _covered_rows(comment: _Comment, statements: list[_Statement], comment_rows: set[int]) -> tuple[int, int]:
    """Return the first and last row of the code that a comment stands for."""
    row = comment.row
    while comment.is_alone and row in comment_rows:
        row += 1
    index = bisect_left(statements, row, key=lambda statement: statement.last_row)
    if index == len(statements) or row < statements[index].first_row:
        return row, row
    first, last = statements[index].first_row, statements[index].last_row
    # A comment alone between the lines of a statement is about the next line, even if that is the last.
    if row != first and (row != last or comment.is_alone):
        return row, row
    while statements[index].is_decorator and index + 1 < len(statements):
        index += 1
    return first, statements[index].last_row


def _statements_and_comments(file: SourceFile) -> tuple[list[_Statement], list[_Comment]]:
    statements: list[_Statement] = []
    comments: list[_Comment] = []
    for line in logical_lines(file.text):
        code = [token for token in line if token.kind is not Kind.COMMENT]
        for token in line:
            if token.kind is Kind.COMMENT:
                row = file.position(token.start).row
                is_alone = not file.text[file.line_starts[row - 1] : token.start].strip()
                comments.append(_Comment(row, token.start, token.text, is_alone))
        if code:
            first, last = file.position(code[0].start).row, file.position(code[-1].end - 1).row
            statements.append(_Statement(first, last, code[0].text == "@"))
    return statements, comments
