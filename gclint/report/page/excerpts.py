"""What a page shows of code: places in sources, if these are still the ones that were run, and repairs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from gclint.code.file import SourceFile, UnreadableFile
from gclint.code.packages import INSTALLED
from gclint.code.paths import shown
from gclint.facts import read_bytes, real_path
from gclint.finding import Finding
from gclint.proof.evidence import Hint
from gclint.proof.proving import Proof
from gclint.report.diff import unified_diff
from gclint.report.findings import headline, obstacle
from gclint.report.proofs import outcome, reasons, run_lines
from gclint.report.report import Files, Report, texts_of_fixes
from gclint.report.verification import repair_command
from gclint.verify.sources import digest, target_of
from gclint.verify.worker.protocol import SourcePlace

_AROUND = 2
"""Lines before and after."""
_MOST = 16
"""The most lines of one place, even if a call is longer."""
_STARTS = {"---": "file", "+++": "file", "@@": "hunk", "+": "added", "-": "removed", "\\": "same"}


Line = tuple[int, str, bool]
"""A line of source code: its number and text, and whether it is meant, rather than around that."""


@dataclass(frozen=True)
class Excerpt:
    """A place in a source, with its lines."""

    place: str
    lines: tuple[Line, ...] = ()
    missing: str = ""
    """Why there are no lines."""


def brief(path: Path | str) -> str:
    """Return a path for people: relative to the package folder if it is in an environment."""
    return shown(path).rpartition("/site-packages/")[2]


class Sources:
    """The texts that were run."""

    def __init__(self, digests: Mapping[str, str], texts: Mapping[Path, str]) -> None:
        """Remember the digests of sources when they were run, and texts that are not on the disk."""
        self._digests = digests
        targets = map(target_of, (*map(Path, digests), *texts))
        self._roots = {real_path(each.tree or Path(each.source.path).parent) for each in targets}
        self._texts = {str(path.absolute()): text for path, text in texts.items()}
        self._known: dict[str, list[str] | str] = {}

    def excerpt(self, place: SourcePlace) -> Excerpt:
        """Return a place with its lines and some around them, or with the reason why there are none."""
        written = f"{brief(place.path)}:{place.line}"
        lines = self._lines(place.path)
        if isinstance(lines, str):
            return Excerpt(written, missing=lines)
        if not 1 <= place.line <= len(lines):
            return Excerpt(written, missing="the file has fewer lines now")
        first = max(place.line - _AROUND, 1)
        last = min(place.end_line + _AROUND, len(lines), first + _MOST)
        return Excerpt(
            written,
            tuple(
                (number, lines[number - 1], place.line <= number <= place.end_line)
                for number in range(first, last + 1)
            ),
        )

    def _lines(self, path: str) -> list[str] | str:
        """Return the lines of a source, or why they cannot be shown."""
        if path not in self._known:
            self._known[path] = self._read(path)
        return self._known[path]

    def _read(self, path: str) -> list[str] | str:
        text = self._texts.get(path)
        if text is None:
            try:
                known = self._digests.get(path)
                if known is not None and digest(target_of(Path(path)).source, {}) != known:
                    return "the file has changed since it was run"
                if known is None and not self._is_among_the_code(path):
                    return "the file is not among those that were run"
                text = SourceFile(Path(path), read_bytes(Path(path))).text
            except (OSError, UnreadableFile):
                return "the file cannot be read here"
        return text.splitlines()

    def _is_among_the_code(self, path: str) -> bool:
        """Return whether lines of a file may be shown: a result, which a model made, may name any."""
        real = real_path(path)
        inside = not self._roots.isdisjoint(real.parents) or not INSTALLED.isdisjoint(real.parts)
        return real.suffix == ".py" and inside


@dataclass(frozen=True)
class RepairSection:
    """A change of the source, and the verdict of runs."""

    title: str
    outcome: Literal["proven", "refused", "suggested"]
    summary: str
    """Its outcome, in a line."""
    reasons: tuple[str, ...]
    diff: tuple[tuple[str, str], ...]
    """The lines of a unified diff, each with its kind before it."""
    runs: tuple[tuple[str, ...], ...] = ()
    """What each class did before the repair, and does after it, with what failed."""
    command: str = ""
    """The command that makes it, if it has not been made."""


def suggested_repairs(report: Report, hints: Iterable[Hint]) -> Iterator[RepairSection]:
    """Yield the repairs of a failure, one finding at a time, with the command that makes them."""
    for finding, command in dict.fromkeys(
        (finding, repair_command(hint)) for hint in hints for finding in hint.findings if finding.fix
    ):
        yield _of_finding(report.project, finding, command)


def repair_of_proof(proof: Proof) -> RepairSection:
    """Return a repair that was run."""
    codes = dict.fromkeys(f"{each.code} {each.name}" for each in proof.repairs)
    files = " and ".join(brief(path) for path in proof.paths)
    return RepairSection(
        f"{files}: {', '.join(codes)}" if codes else files,
        "refused" if proof.obstacles else "proven",
        outcome(proof),
        tuple(reasons(proof)),
        tuple(_diff(proof.changed)),
        _runs(proof),
    )


def _runs(proof: Proof) -> tuple[tuple[str, ...], ...]:
    """Return the lines about runs; indented lines belong to the one above."""
    found: list[tuple[str, ...]] = []
    for line in run_lines(proof):
        above = found.pop() if line.startswith(" ") else ()
        found.append((*above, line.lstrip()))
    return tuple(found)


def _of_finding(project: Files, finding: Finding, command: str) -> RepairSection:
    row = project.file(finding.path).position(finding.start).row
    why = obstacle(finding)
    return RepairSection(
        f"{brief(finding.path)}:{row}: {headline(finding)}",
        "suggested",
        finding.fix.message if finding.fix else "",
        (why,) if why else (),
        tuple(_diff(texts_of_fixes(project, [finding]))),
        command=command,
    )


def _diff(changed: Mapping[Path, tuple[str, str]]) -> Iterator[tuple[str, str]]:
    for line in unified_diff(changed):
        kind = next((kind for start, kind in _STARTS.items() if line.startswith(start)), "same")
        yield kind, line.rstrip("\r\n")
