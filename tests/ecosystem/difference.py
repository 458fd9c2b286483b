"""What two versions of gclint say otherwise, matched by what findings are about and not by their lines."""

from __future__ import annotations

import difflib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from tests.ecosystem.versions import Output

Text = Callable[[str], str]
"""Returns the text of a file of a sample."""


@dataclass(frozen=True, order=True)
class Said:
    """A finding as it is compared."""

    code: str
    filename: str
    symbol: str
    flagged: str
    """The code that is flagged, in one line."""
    message: str
    kind: str
    """``safe``, ``when proven``, ``unsafe`` or ``no fix``."""
    reason: str
    diff: str
    """What the fix changes, without line numbers."""
    row: int

    @property
    def subject(self) -> tuple[str, str, str]:
        """What it is about, whatever is said of it."""
        return self.code, self.filename, self.symbol

    @property
    def words(self) -> tuple[str, ...]:
        """All that makes a difference."""
        return self.message, self.kind, self.reason, self.diff


@dataclass(frozen=True)
class Change:
    """A finding that only one version has, or that both have and say otherwise."""

    before: Said | None
    after: Said | None

    @property
    def said(self) -> Said:
        """What is said now, or was."""
        said = self.after or self.before
        assert said is not None
        return said

    @property
    def kind(self) -> str:
        """What has changed."""
        if self.before is None:
            return "added"
        if self.after is None:
            return "removed"
        if self.before.kind != self.after.kind:
            return f"{self.before.kind} → {self.after.kind}"
        return "other fix" if self.before.diff != self.after.diff else "other words"


def said_by(output: Output, text: Text) -> list[Said]:
    """Return the findings of an output in the form in which they are compared."""
    return sorted(_said(each, text) for each in output.findings)


def changes(before: Sequence[Said], after: Sequence[Said]) -> Iterator[Change]:
    """Yield the differences, by rule and file; that a finding stands on another line is none."""
    subjects: defaultdict[tuple[str, str, str], tuple[list[Said], list[Said]]] = defaultdict(lambda: ([], []))
    for side, found in enumerate((before, after)):
        for each in found:
            subjects[each.subject][side].append(each)
    for subject in sorted(subjects):
        yield from _unequal(*subjects[subject])


_ALIKE: tuple[Callable[[Said, Said], bool], ...] = (
    lambda one, other: one.words == other.words and one.flagged == other.flagged,
    lambda one, other: one.words == other.words,
    lambda one, other: one.flagged == other.flagged,
)
"""What makes two findings about the same symbol one, the most certain first."""


def _unequal(before: list[Said], after: list[Said]) -> Iterator[Change]:
    """Yield the differences between findings about the same, of which the most alike belong together."""
    for alike in _ALIKE:
        for one in list(before):
            partner = next((each for each in after if alike(one, each)), None)
            if partner is not None:
                before.remove(one)
                after.remove(partner)
                if one.words != partner.words:
                    yield Change(one, partner)
    yield from (Change(*pair) for pair in zip_longest(before, after))


def _said(finding: dict[str, Any], text: Text) -> Said:
    filename = finding["filename"]
    source = text(filename)
    lines = source.splitlines(keepends=True)
    start, end = _place(finding, lines)
    fix = finding["fix"]
    return Said(
        finding["code"],
        filename,
        finding["symbol"],
        " ".join(source[start:end].split()),
        finding["message"],
        "no fix" if fix is None else fix["applicability"],
        (finding["reason"] if fix is None else fix["reason"]) or "",
        "" if fix is None else _diff(fix["edits"], text),
        finding["location"]["row"],
    )


def _diff(edits: Iterable[dict[str, Any]], text: Text) -> str:
    """Return what edits change as a diff whose lines have no numbers."""
    by_file: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for edit in edits:
        by_file[edit["filename"]].append(edit)
    parts = []
    for filename, group in sorted(by_file.items()):
        old = text(filename)
        lines = old.splitlines(keepends=True)
        new = old
        for edit in sorted(group, key=lambda edit: _place(edit, lines), reverse=True):
            start, end = _place(edit, lines)
            new = new[:start] + edit["content"] + new[end:]
        diff = difflib.unified_diff(old.splitlines(), new.splitlines(), n=1, lineterm="")
        body = ["@@" if line.startswith("@@") else line for line in list(diff)[2:]]
        parts.append("\n".join([f"--- {filename}", *body]))
    return "\n".join(parts)


def _place(entry: dict[str, Any], lines: Sequence[str]) -> tuple[int, int]:
    return _offset(lines, entry["location"]), _offset(lines, entry["end_location"])


def _offset(lines: Sequence[str], location: dict[str, int]) -> int:
    return sum(map(len, lines[: location["row"] - 1])) + location["column"] - 1
