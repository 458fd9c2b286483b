"""The results of a command, independent of the output format."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from gclint.edit.edits import by_file, edited
from gclint.finding import Duty, Finding, Problem, Repair, RepairKind
from gclint.level import Level

if TYPE_CHECKING:
    from gclint.code.file import SourceFile
    from gclint.proof.evidence import Weighed
    from gclint.proof.proving import Proof
    from gclint.run.baseline import Recognised
    from gclint.verify.results import Results


class Files(Protocol):
    """The files that a report is about."""

    @property
    def paths(self) -> tuple[Path, ...]:
        """Those that were given."""

    @property
    def given(self) -> frozenset[Path]:
        """The same as a set."""

    def file(self, path: Path) -> SourceFile:
        """Return the file at ``path``, with its current text."""

    def location(self, path: Path) -> Path:
        """Return ``path`` with all links resolved."""

    def model(self, path: Path) -> str:
        """Return the model that the file at ``path`` belongs to."""


def texts_of_fixes(project: Files, findings: Iterable[Finding]) -> dict[Path, tuple[str, str]]:
    """Return the files that the fixes of some findings change, each with its text before and after."""
    changed = {}
    for path, edits in by_file(edit for finding in findings for edit in finding.edits).items():
        before = project.file(path).text
        changed[path] = before, edited(before, edits)
    return changed


_UNWRITTEN = "its file cannot be written"


@dataclass(frozen=True)
class Repairs:
    """The repairs that ``--fix`` makes, or ``--diff`` shows."""

    made: tuple[Finding, ...] = ()
    """The findings whose fixes were made, with their places before the repair."""
    lost: tuple[Finding, ...] = ()
    """The findings whose fixes could not be made because a file is not writable."""
    changed: Mapping[Path, tuple[str, str]] = field(default_factory=dict)
    """The changed files, each with its text before and after."""

    @classmethod
    def of(
        cls,
        applied: Iterable[Finding],
        changed: Mapping[Path, tuple[str, str]],
        unwritten: Collection[Path] = (),
    ) -> Repairs:
        """Return the repairs of a run in which the files in ``unwritten`` could not be written."""
        made, lost = [], []
        for each in applied:
            if each.path in unwritten or any(edit.path in unwritten for edit in each.edits):
                lost.append(each.refused(_UNWRITTEN))
            else:
                made.append(each)
        return cls(
            tuple(made), tuple(lost), {path: own for path, own in changed.items() if path not in unwritten}
        )

    @cached_property
    def pieces(self) -> tuple[Repair, ...]:
        """The repaired pieces of code, each once, however many findings it had."""
        fixes = [finding.fix for finding in self.made if finding.fix is not None]
        return tuple(dict.fromkeys(repair for fix in fixes for repair in fix.repairs))

    @cached_property
    def duties(self) -> tuple[Duty, ...]:
        """What is left to do by hand after the fixes, each once."""
        fixes = [finding.fix for finding in self.made if finding.fix is not None]
        return tuple(sorted({duty for fix in fixes for duty in fix.duties}))

    @cached_property
    def parts(self) -> Counter[RepairKind]:
        """The number of repaired pieces of code by kind."""
        return Counter(repair.part for repair in self.pieces)


@dataclass(frozen=True)
class Report:
    """The results of a command."""

    project: Files
    """The files that were checked, with their current texts."""
    findings: tuple[Finding, ...] = ()
    """The findings, or those left after repairs, in reading order."""
    problems: tuple[Problem, ...] = ()
    """The files that could not be read, checked or written, and why."""
    files: int = 0
    """How many files were checked."""
    unsafe: bool = False
    """Whether unsafe fixes are included."""
    repairs: Repairs = field(default_factory=Repairs)
    proofs: tuple[Proof, ...] | None = None
    """The results of running the repaired models; None without ``--verify``."""
    ignored: int = 0
    """How many findings got an ignore comment."""
    unignored: int = 0
    """How many did not get one because the file is not writable."""
    quiet: bool = False
    """Whether to print only findings and errors."""
    runs: Results | None = None
    """The results of ``gclint verify``; None for any other command."""
    weighed: Weighed | None = None
    """The findings that these results confirm or contradict, and the rules that repair failures."""
    baseline: Path | None = None
    recognised: Recognised | None = None
    """The entries of the baseline that were found again, and those that were not."""
    unknown_bases: tuple[str, ...] = ()
    """Base classes that could not be found."""
    assumed: tuple[str, ...] = ()
    """The releases that files with findings are taken to run with where nobody says so, and why."""
    unparsed: tuple[Path, ...] = ()
    """Consulted files that the running Python cannot parse."""
    overlooked: tuple[Path, ...] = ()
    """Files in the given folders that look like models, and were not checked because of their names."""
    empty: tuple[Problem, ...] = ()
    """The given folders in which there was nothing to check, and why."""
    outside: tuple[Path, ...] = ()
    """Links in the given folders that were not followed, since they lead out of the given paths."""
    shows_fixes: bool = False
    """Whether to list the repaired findings, too."""
    fail_level: Level = Level.WARNING
    """The lowest level of findings with which a run fails."""
    exit_status: int = 0
    """The exit status, as far as it is known before the report is written."""
    verbose: bool = False
    """Whether to list the classes that passed."""

    @property
    def left(self) -> tuple[Finding, ...]:
        """The findings, and those that could not be repaired because their file is not writable."""
        return (*self.findings, *self.repairs.lost)

    def fails(self, finding: Finding) -> bool:
        """Return whether a finding that is left makes the run fail."""
        return finding.level.is_at_least(self.fail_level)

    def also(self, problems: Iterable[Problem]) -> Report:
        """Return this report with further problems."""
        return replace(self, problems=(*self.problems, *problems))

    @cached_property
    def models(self) -> list[str]:
        """The names of the models with repaired or remaining findings."""
        findings = (*self.repairs.made, *self.left)
        paths = (*self.repairs.changed, *(each.path for each in findings))
        return sorted({self.project.model(path) for path in paths})
