"""Reports that are known from an earlier run of the same command, in the cache as data.

A report is known as long as all that the run has consulted is the same, from its settings to its files. It is
found before click, the rules or LibCST are imported.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gclint.cache.codec import decoded, encoded
from gclint.cache.consulted import Damaged, consulted, still_holds
from gclint.facts import digest, read_unnoted
from gclint.finding import Finding, Problem
from gclint.level import Level
from gclint.report import full
from gclint.report.formats import written_as
from gclint.report.printing import write_lines
from gclint.report.report import Report

if TYPE_CHECKING:
    from gclint.cache.store import Store
    from gclint.code.file import SourceFile
    from gclint.trace import Trace

_VOLATILE = frozenset(("_", "OLDPWD", "PWD", "SHLVL", "PYTEST_CURRENT_TEST", "WINDOWID", "COLUMNS", "LINES"))
"""Environment variables that differ from run to run, and of which no report depends."""


_KEPT: Mapping[str, Any] = {
    "findings": tuple[Finding, ...],
    "files": int,
    "unsafe": bool,
    "quiet": bool,
    "unknown_bases": tuple[str, ...],
    "overlooked": tuple[Path, ...],
    "empty": tuple[Problem, ...],
    "outside": tuple[Path, ...],
    "assumed": tuple[str, ...],
    "unparsed": tuple[Path, ...],
    "fail_level": Level,
    "exit_status": int,
}
"""What of a report is data, with its types; all else in it is as it is in any report without repairs."""


@dataclass(frozen=True)
class ReportOptions:
    """How a report on some files is printed."""

    paths: tuple[Path, ...]
    format: str
    statistics: bool
    notes: tuple[str, ...]
    """What is printed to standard error before it."""


class _Files:
    def __init__(self, paths: tuple[Path, ...]) -> None:
        self.paths = paths
        self.given = frozenset(paths)
        self._read: dict[Path, SourceFile] = {}

    def has_places_of(self, findings: Sequence[Finding]) -> bool:
        """Read the files that findings are in, before anything is printed; tell whether all can be read."""
        if not findings:
            return True
        from gclint.code.file import UnreadableFile

        try:
            for each in findings:
                self.file(each.path)
        except (OSError, UnreadableFile):
            return False
        return True

    def file(self, path: Path) -> SourceFile:
        from gclint.code.file import SourceFile  # Most reports name no place.

        if path not in self._read:
            self._read[path] = SourceFile(path, read_unnoted(path))
        return self._read[path]

    def location(self, path: Path) -> Path:
        return Path(os.path.realpath(path))

    def model(self, path: Path) -> str:
        return self.location(path).parent.name


def keep(store: Store, arguments: Sequence[str], trace: Trace, report: Report, shown: ReportOptions) -> None:
    """Store the report of a command that has printed it and done nothing else."""
    code, facts = consulted(trace)
    if code is None or facts is None or report.problems:
        return
    kept = {name: encoded(getattr(report, name)) for name in _KEPT}
    document = {"code": code, "facts": facts, "shown": encoded(shown), "report": kept}
    store.write(_key(arguments), document)


def show(store: Store, arguments: Sequence[str]) -> int | None:
    """Print the report of a command, and return its exit status; None if it is not known.

    Raises:
        OSError: it cannot be written.
    """
    document = store.read(_key(arguments))
    if document is None:
        return None
    try:
        if not (still_holds(document.get("code")) and still_holds(document.get("facts"))):
            return None
        shown = decoded(ReportOptions, document.get("shown"))
        kept = {name: decoded(kind, document["report"].get(name)) for name, kind in _KEPT.items()}
    except (Damaged, AttributeError, KeyError):
        return None
    files = _Files(shown.paths)
    if not files.has_places_of(kept["findings"]):
        return None
    report = Report(files, **kept)
    write_lines(shown.notes, sys.stderr)
    written_as(shown.format, statistics=shown.statistics)(report, sys.stdout)
    full.write_notices(report, sys.stderr)
    sys.stdout.flush()
    return report.exit_status


def _key(arguments: Sequence[str]) -> str:
    """Return the key of a command: a digest of all in its process that can make a difference."""
    described = (
        list(arguments),
        os.getcwd(),  # noqa: PTH109 (as the system says it)
        sorted(item for item in os.environ.items() if item[0] not in _VOLATILE),
        (sys.version, sys.executable, sys.path, sys.flags, sys.platform),
    )
    return f"report-{digest(repr(described).encode('utf-8', 'surrogatepass'))}"
