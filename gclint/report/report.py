"""Everything that a run has to say, whatever the format it is said in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from gclint.finding import Duty, Finding, Part, Problem, Repair

if TYPE_CHECKING:
    from gclint.engine.evidence import Weighed
    from gclint.engine.proof import Proof
    from gclint.engine.selection import Recognised
    from gclint.source.project import Project
    from gclint.verify.results import Results

_UNWRITTEN = "its file cannot be written"


@dataclass(frozen=True)
class Repairs:
    """What ``--fix`` changes, or ``--diff`` would."""

    made: tuple[Finding, ...] = ()
    """The findings whose fixes are made, as they were found."""
    lost: tuple[Finding, ...] = ()
    """Those whose fixes would have been made, had their files been writable."""
    changed: Mapping[Path, tuple[str, str]] = field(default_factory=dict)
    """The changed files, each with its text before and after."""

    @classmethod
    def of(
        cls,
        applied: Iterable[Finding],
        changed: Mapping[Path, tuple[str, str]],
        unwritten: Collection[Path] = (),
    ) -> Repairs:
        """Return the outcome of a run in which the files in ``unwritten`` stayed as they were."""
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
        """What is put right, each piece of code once, however many findings it had."""
        fixes = [finding.fix for finding in self.made if finding.fix is not None]
        return tuple(dict.fromkeys(repair for fix in fixes for repair in fix.repairs))

    @cached_property
    def duties(self) -> tuple[Duty, ...]:
        """What the fixes leave to do by hand, each once."""
        fixes = [finding.fix for finding in self.made if finding.fix is not None]
        return tuple(sorted({duty for fix in fixes for duty in fix.duties}))

    @cached_property
    def parts(self) -> Counter[Part]:
        """How many pieces of code of each kind are put right."""
        return Counter(repair.part for repair in self.pieces)


@dataclass(frozen=True)
class Report:
    """What came of a run of a command."""

    project: Project
    """The files that findings are about, with their present texts."""
    findings: tuple[Finding, ...] = ()
    """What is found, or left after repairs, in reading order."""
    problems: tuple[Problem, ...] = ()
    """What could not be read, checked or written."""
    files: int = 0
    """How many files were checked."""
    unsafe: bool = False
    """Whether an unsafe fix counts as a fix."""
    repairs: Repairs = field(default_factory=Repairs)
    proofs: tuple[Proof, ...] | None = None
    """What runs of the repaired models say; None where none was asked for."""
    ignored: int = 0
    """How many findings got an ignore comment."""
    unignored: int = 0
    """How many would have got one, had their files been writable."""
    quiet: bool = False
    """Whether there is to be nothing but findings and what went wrong."""
    runs: Results | None = None
    """What runs of the models as they are say; None where none was asked for."""
    weighed: Weighed | None = None
    """What repairs the failures of these runs."""
    baseline: Path | None = None
    recognised: Recognised | None = None
    """What the baseline and the run have in common."""
    unknown_bases: tuple[str, ...] = ()
    """Classes that modules derive from, and that could not be looked up."""
    overlooked: tuple[Path, ...] = ()
    """Files in the given folders that look like models, and were not checked because of their names."""
    shows_fixes: bool = False
    """Whether it is listed what is repaired, too."""
    exit_status: int = 0
    """What gclint exits with, as far as it is known before the report is written."""
    verbose: bool = False
    """Whether what passed is listed by name."""

    @property
    def left(self) -> tuple[Finding, ...]:
        """What is left: the findings, and what could not be repaired since its file cannot be written."""
        return (*self.findings, *self.repairs.lost)

    def also(self, problems: Iterable[Problem]) -> Report:
        """Return this report with further problems."""
        return replace(self, problems=(*self.problems, *problems))

    @cached_property
    def models(self) -> list[str]:
        """The models with something repaired or left, by name."""
        findings = (*self.repairs.made, *self.left)
        paths = (*self.repairs.changed, *(each.path for each in findings))
        return sorted({self.project.model(path) for path in paths})
