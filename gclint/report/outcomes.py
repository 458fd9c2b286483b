"""The results of runs, class by class, for formats that programs read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from gclint.source.file import UnreadableFile
from gclint.verify.results import has_no_way, is_broken

if TYPE_CHECKING:
    from gclint.report.report import Report
    from gclint.verify.worker.protocol import ClassResult, Failure

Status = Literal["passed", "failed", "not run", "error"]


@dataclass(frozen=True)
class Outcome:
    """The outcome of a class, or of a file that cannot be imported."""

    path: Path
    line: int
    name: str
    """The name of the class, or what was done with the whole file."""
    status: Status
    texts: tuple[str, ...] = ()
    """What failed, or why it was not run."""
    seconds: float = 0.0

    @property
    def headline(self) -> str:
        """The outcome in one line; if there are several failures, only the first."""
        more = f" (and {len(self.texts) - 1} more)" if len(self.texts) > 1 else ""
        return f"{self.name} {self.status}{f': {self.texts[0]}{more}' if self.texts else ''}"


def outcomes(report: Report) -> Iterator[Outcome]:
    """Yield the outcomes of all classes by file, and of files that cannot be imported."""
    assert report.runs is not None
    for source in sorted(report.runs.unusable):
        yield Outcome(Path(source), 1, "import", "error", (report.runs.unusable[source].message,))
    lines: dict[str, Mapping[str, int]] = {}
    for result in report.runs.sorted():
        if result.source not in lines:
            lines[result.source] = _class_lines(report, Path(result.source))
        yield _outcome(result, lines[result.source])


def _outcome(result: ClassResult, lines: Mapping[str, int]) -> Outcome:
    path, line = Path(result.source), lines.get(result.name, 1)
    if result.outcome == "not run":
        status: Status = "error" if is_broken(result) else "not run"
        return Outcome(
            path, line, result.name, status, (f"{result.category}: {result.reason}",), result.seconds
        )
    texts = [_text(failure) for failure in result.failures]
    if has_no_way(result):
        texts += (f"{each.group}: {each.sentence}" for each in result.advice if not each.setting)
    status = "failed" if texts or result.outcome == "failed" else "passed"
    return Outcome(path, line, result.name, status, tuple(texts), result.seconds)


def _text(failure: Failure) -> str:
    where = "".join(f" (at line {place.line} of {Path(place.path).name})" for place in failure.places[:1])
    return f"{failure.check} ({failure.mode} {failure.scenario}): {failure.text}{where}"


def _class_lines(report: Report, path: Path) -> Mapping[str, int]:
    """Return the line in which each class of a file begins; empty if the file no longer exists."""
    try:
        file = report.project.file(path)
    except (OSError, UnreadableFile):
        return {}
    return {each.name: file.position(each.header).row for each in file.outline.definitions if each.is_class}
