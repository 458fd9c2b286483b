"""Comments that suppress a finding, put where they stand for it and break nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from gclint.codemod.edits import edited
from gclint.finding import Edit, Finding
from gclint.source.file import SourceFile, UnreadableFile
from gclint.source.suppressions import Ignore, Suppressions, Word
from gclint.source.syntax import syntax_problem
from gclint.source.tokens import logical_lines


def ignoring(file: SourceFile, finding: Finding, codes: Mapping[str, str]) -> Edit | None:
    """Return the edit that suppresses a finding; None where no comment can.

    A comment that is about the code already gets one more word; else there is a new one behind the line
    that the finding starts on or the one that it ends on, or on a line of its own above.

    Args:
        file: where it was found.
        finding: what is to be suppressed.
        codes: the codes of all rules, by the words that stand for them, in lower case.
    """
    for edit in _candidates(file, finding, codes):
        if _suppresses(file, finding, edit, codes):
            return edit
    return None


def _candidates(file: SourceFile, finding: Finding, codes: Mapping[str, str]) -> Iterator[Edit]:
    for ignore in Suppressions(file, codes).ignores:
        # What stands for the whole file would suppress more than was asked for.
        is_local = ignore.covered != (0, len(file.text))
        if ignore.words is not None and is_local and _would_suppress(ignore, finding):
            yield ignore.reduced_to((*ignore.words, Word(finding.code, finding.code)))
    first, last = file.position(finding.start).row, file.position(max(finding.start, finding.end - 1)).row
    # Within a long string there is no room; the statement around it may have some.
    statement = _statement_rows(file, finding)
    for row in dict.fromkeys((first, last, *statement)):
        line = file.line(row)
        end = file.row_start(row) + len(line.rstrip())
        yield Edit(file.path, end, file.row_start(row) + len(line), f"  # gclint: ignore[{finding.code}]")
    for row in dict.fromkeys((first, statement[0])):
        line = file.line(row)
        indent = line[: len(line) - len(line.lstrip())]
        start = file.row_start(row)
        yield Edit(file.path, start, start, f"{indent}# gclint: ignore[{finding.code}]{file.newline}")


def _statement_rows(file: SourceFile, finding: Finding) -> tuple[int, int]:
    """Return the first and last row of the statement, or header, that a finding starts in."""
    for line in logical_lines(file.text):
        if finding.start < line[-1].end:
            return file.position(line[0].start).row, file.position(max(line[0].start, line[-1].end - 1)).row
    row = file.position(finding.start).row
    return row, row


def _would_suppress(ignore: Ignore, finding: Finding) -> bool:
    return replace(ignore, words=(Word(finding.code, finding.code),)).suppresses(finding)


def _suppresses(file: SourceFile, finding: Finding, edit: Edit, codes: Mapping[str, str]) -> bool:
    """Tell whether the text is still Python after the edit, and the finding suppressed."""
    try:
        after = SourceFile(file.path, file.encode(edited(file.text, [edit])))
    except (UnreadableFile, UnicodeEncodeError):
        return False
    moved = len(edit.content) - (edit.end - edit.start)
    start = finding.start + (moved if edit.end <= finding.start else 0)
    end = finding.end + (moved if edit.end <= finding.end and edit.start < finding.end else 0)
    if syntax_problem(after) is not None:
        return False
    return Suppressions(after, codes).covers(replace(finding, start=start, end=max(start, end)))
