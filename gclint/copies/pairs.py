"""Pairs of two pieces of the same code: a copy and its origin, or generated code and its source."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property, lru_cache

from gclint.code.file import SourceFile
from gclint.code.outline import Definition
from gclint.code.tokens import code_tokens
from gclint.finding import Edit

_OWN_NAME = re.compile(r"\s*(?:class|(?:async\s+)?def)\s+(\w+)")
_IGNORE = r"(?<![ \t])[ \t]*\#[ \t]*(?:gclint:[ \t]*ignore|(?i:noqa[ \t]*:[^\r\n#]*\bGC\d))[^\r\n]*"
"""Matches an ignore comment, of which the other side need not know: it says nothing about the code."""
_KEPT_COMPARISONS = 4096
_MOST_PAIRS = 200_000
"""The most pairs of equal lines for which it is found out which belong together."""
_GROWTH = 4
_GROWTH_OF_A_LINE = 1000
"""How much longer a renaming may make a line: nested replacements could double it forty times."""


@dataclass(frozen=True)
class Renaming:
    """Replacements of words, made one after the other as by transformers' check.

    They replace plain text, never a pattern, since they come from a comment in a user's file.
    """

    replacements: tuple[tuple[str, str], ...] = ()

    def apply(self, text: str) -> str:
        """Return the copy of ``text`` in its origin; unchanged if the result would be too long."""
        renamed = _replaced(text, self.replacements)
        return text if renamed is None else renamed

    def undo(self, text: str) -> str | None:
        """Return the text in the origin for ``text`` in a copy, or None if that is not certain."""
        before = _replaced(text, [(new, old) for old, new in reversed(self.replacements) if new])
        return before if before is not None and self.apply(before) == text else None


def _replaced(text: str, replacements: Iterable[tuple[str, str]]) -> str | None:
    """Return a text after replacements, one after the other; None if it became too long."""
    limit = _GROWTH * len(text) + _GROWTH_OF_A_LINE
    for old, new in replacements:
        if len(text) + text.count(old) * (len(new) - len(old)) > limit:
            return None
        text = text.replace(old, new)
    return text


@dataclass(frozen=True)
class Region:
    """A definition's code, or a part of it, in one or several spans of a file's text."""

    file: SourceFile
    spans: tuple[tuple[int, int], ...]

    @cached_property
    def text(self) -> str:
        """The code."""
        return "".join(self.file.text[start:end] for start, end in self.spans)

    def touches(self, edit: Edit) -> bool:
        """Return whether an edit, which is one of this file, changes something in the region."""
        if self.file.text[edit.start : edit.end] == edit.content:
            return False
        return any(
            (edit.start < end and start < edit.end) or start < edit.start == edit.end < end
            for start, end in self.spans
        )

    def holds(self, edit: Edit) -> bool:
        """Return whether an edit changes only the region."""
        return any(start <= edit.start and edit.end <= end for start, end in self.spans)

    def edited(self, edits: Iterable[Edit]) -> str:
        """Return the code after edits inside the region."""
        ordered = sorted(edits)
        pieces: list[str] = []
        for start, end in self.spans:
            for edit in ordered:
                if start <= edit.start and edit.end <= end:
                    pieces += [self.file.text[start : edit.start], edit.content]
                    start = edit.end
            pieces.append(self.file.text[start:end])
        return "".join(pieces)

    @cached_property
    def lines(self) -> list[tuple[int, str]]:
        """The lines with their endings, each with its offset in the file."""
        found: list[tuple[int, str]] = []
        for start, end in self.spans:
            for line in self.file.text[start:end].splitlines(keepends=True):
                found.append((start, line))
                start += len(line)
        return found


def definition_region(file: SourceFile, definition: Definition, exempt: Sequence[Definition] = ()) -> Region:
    """Return the region of a definition without decorators, ``exempt`` methods and the comments after it."""
    start = definition.header - len(definition.indent)
    spans: list[tuple[int, int]] = []
    for hole in sorted(exempt, key=lambda each: each.start):
        spans.append((start, _code_end(file.text, start, hole.start, len(hole.indent))))
        start = _code_end(file.text, hole.header, hole.end, len(hole.indent))
    spans.append((start, _code_end(file.text, start, definition.end, len(definition.indent))))
    return Region(file, tuple(span for span in spans if span[0] < span[1]))


def header_region(file: SourceFile, definition: Definition) -> Region:
    """Return the region of a class's header: all lines down to that of its colon."""
    row = file.position(definition.header_end - 1).row
    end = file.line_starts[row] if row < len(file.line_starts) else len(file.text)
    return Region(file, ((definition.header - len(definition.indent), end),))


def _code_end(text: str, start: int, end: int, indent: int) -> int:
    """Return where the code ends before blank lines, and comments that are indented no further."""
    while end > start:
        line_start = text.rfind("\n", start, end - 1) + 1
        if line_start == 0:
            break
        line = text[line_start:end]
        bare = line.lstrip()
        if bare and not (bare.startswith("#") and len(line) - len(bare) <= indent):
            break
        end = line_start
    return end


@dataclass(frozen=True)
class CopyPair:
    """Two regions that have the same code, after a renaming."""

    source: Region
    derived: Region
    renaming: Renaming
    is_copy: bool
    """Whether a comment marks it as a copy, rather than being generated."""

    @property
    def in_force(self) -> bool:
        """Whether the two are the same now."""
        return _is_alike(self.source.text, self.derived.text, self.renaming)

    def changes_alike(self, source_edits: Sequence[Edit], derived_edits: Sequence[Edit]) -> bool:
        """Return whether edits make the same change on both sides.

        If the two sides are not the same, as with a method that overrides another one and calls it, the
        changed lines have to be.
        """
        if self.in_force:
            after = (self.source.edited(source_edits), self.derived.edited(derived_edits))
            return _is_alike(*after, self.renaming)
        ours, theirs = _line_edits(self.source, source_edits), _line_edits(self.derived, derived_edits)
        if len(ours) != len(theirs):
            return False
        for one, other in zip(ours, theirs, strict=True):
            old = (_joined(self.source, one), _joined(self.derived, other))
            if not _is_alike(*old, self.renaming) or not _is_alike(one[2], other[2], self.renaming):
                return False
        return True

    def mirrored(self, edits: Sequence[Edit], *, to_source: bool) -> tuple[Edit, ...] | None:
        """Return the edits that make the same change on the other side; None if that is not certain."""
        here, there = (self.derived, self.source) if to_source else (self.source, self.derived)
        counterparts = self._counterparts()
        if to_source:
            counterparts = {derived: source for source, derived in counterparts.items()}
        found: list[Edit] = []
        for first, last, content in _line_edits(here, edits):
            # An insertion after the last unchanged line has no line of its own.
            rows = [counterparts.get(row) for row in range(first, last + 1)]
            start = rows[0]
            if start is None or rows != list(range(start, start + len(rows))):
                return None
            theirs = there.lines[start : start + len(rows)]
            new = self._moved(content, to_source, theirs[0][1])
            if new is None:
                return None
            new = new.replace("\r\n", "\n").replace("\n", there.file.newline)
            found.append(Edit(there.file.path, theirs[0][0], theirs[-1][0] + len(theirs[-1][1]), new))
        alike = self.changes_alike(found, edits) if to_source else self.changes_alike(edits, found)
        return tuple(found) if alike else None

    def source_span(self, start: int, end: int) -> tuple[int, int] | None:
        """Return the place in the source of a piece of the derived region's code; None if unknown."""
        rows = [row for row, (offset, _) in enumerate(self.derived.lines) if offset <= start]
        counterparts = {
            derived: source for source, derived in self._counterparts(without_ignores=True).items()
        }
        row = counterparts.get(rows[-1]) if rows else None
        if row is None:
            return None
        offset, line = self.source.lines[row]
        code = self.renaming.undo(_without_ignores(self.derived.file.text[start:end]))
        found = None if code is None else self._found_in_source(code, offset)
        if found is not None and found[0] < offset + len(line):
            return found
        return offset + len(_indent(line)), offset + len(line.rstrip())

    def _found_in_source(self, code: str, offset: int) -> tuple[int, int] | None:
        """Return where code stands in the source, whatever it ignores there."""
        lines = map(re.escape, code.replace("\r\n", "\n").split("\n"))
        pattern = re.compile(rf"(?:{_IGNORE})?\r?\n".join(lines))
        found = pattern.search(self.source.file.text, offset, self.source.spans[-1][1])
        return None if found is None else found.span()

    def _counterparts(self, *, without_ignores: bool = False) -> dict[int, int]:
        """Return which row of the source corresponds to which of the derived one; none if too many may."""
        bare = _without_ignores if without_ignores else str
        source_indent, derived_indent = (
            _indent(region.lines[0][1]) for region in (self.source, self.derived)
        )
        ours = [
            self.renaming.apply(_masked(bare(line))).removeprefix(source_indent).rstrip()
            for _, line in self.source.lines
        ]
        theirs = [_masked(bare(line)).removeprefix(derived_indent).rstrip() for _, line in self.derived.lines]
        of_theirs = Counter(theirs)
        if sum(of_theirs[line] for line in ours) > _MOST_PAIRS:
            return {}
        matcher = SequenceMatcher(None, ours, theirs, autojunk=False)
        return {
            block.a + step: block.b + step
            for block in matcher.get_matching_blocks()
            for step in range(block.size)
        }

    def _moved(self, content: str, to_source: bool, theirs: str) -> str | None:
        """Return new lines with the names of the other side."""
        renamed = self.renaming.undo(content) if to_source else self.renaming.apply(content)
        if renamed is None:
            return None
        name = _OWN_NAME.match(theirs)
        if name is not None:
            own = _OWN_NAME.match(renamed)
            if own is not None:
                renamed = renamed[: own.start(1)] + name[1] + renamed[own.end(1) :]
        old, new = _indent(self.source.text), _indent(self.derived.text)
        if to_source:
            old, new = new, old
        return "".join(
            new + line.removeprefix(old) if line.strip() else line
            for line in renamed.splitlines(keepends=True)
        )


def _line_edits(region: Region, edits: Sequence[Edit]) -> list[tuple[int, int, str]]:
    """Return edits as whole lines: the first and last row of each, and the new text."""
    found: list[tuple[int, int, str]] = []
    lines = region.lines
    for edit in sorted(edits):
        touched = [
            row
            for row, (start, line) in enumerate(lines)
            if start <= edit.start < start + len(line) or edit.start < start < edit.end
        ]
        if not touched:
            continue
        first, last = touched[0], touched[-1]
        start, end = lines[first][0], lines[last][0] + len(lines[last][1])
        before = region.file.text[start : edit.start]
        if found and found[-1][1] >= first:
            previous_first, previous_last, content = found.pop()
            tail = region.file.text[edit.start : lines[previous_last][0] + len(lines[previous_last][1])]
            before = content.removesuffix(tail)
            first = previous_first
        found.append((first, last, before + edit.content + region.file.text[edit.end : end]))
    return found


def _joined(region: Region, edit: tuple[int, int, str]) -> str:
    """Return the lines that a line edit replaces."""
    return "".join(line for _, line in region.lines[edit[0] : edit[1] + 1])


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _without_ignores(text: str) -> str:
    return re.sub(_IGNORE, "", text)


def _masked(line: str) -> str:
    """Return the line of a definition without its name, which may differ between the two."""
    name = _OWN_NAME.match(line)
    return line if name is None else line[: name.start(1)] + "_" + line[name.end(1) :]


@lru_cache(maxsize=_KEPT_COMPARISONS)
def _is_alike(source: str, derived: str, renaming: Renaming) -> bool:
    """Return whether two pieces of code are the same after a renaming.

    Line breaks make no difference, since a formatter breaks lines with longer names, and neither does
    the name of the piece itself.
    """
    expected = renaming.apply(_masked(source))
    actual = _masked(derived)
    return expected == actual or code_tokens(expected, comments=True) == code_tokens(actual, comments=True)
