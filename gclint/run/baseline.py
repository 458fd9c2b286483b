"""Which findings are reported: those in changed files, without those of a baseline.

A baseline is a file of known findings, which are not reported as long as they stay the same.

A finding is recognised by its rule, file and symbol and by a hash of the flagged code, never by its
line: changes elsewhere in the file, and of the layout, make no difference.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import TypeVar

from gclint.code.paths import as_argument
from gclint.code.project import Project
from gclint.code.tokens import code_hash
from gclint.facts import exists, read_json
from gclint.finding import Finding
from gclint.rule import Rule, has_decided
from gclint.run.check import LintResult, check

_VERSION = 1


class BaselineError(Exception):
    """The baseline cannot be used; the message names it and is meant for the user."""


@dataclass(frozen=True, order=True)
class BaselineEntry:
    """What identifies a known finding."""

    file: str
    """From the folder of the baseline, with slashes."""
    rule: str
    symbol: str
    hash: str


class Baseline:
    """The known findings, with the number of times that each occurs."""

    def __init__(self, path: Path, known: Mapping[BaselineEntry, int]) -> None:
        """Hold the entries that the file at ``path`` has, or is to have."""
        self.path = path
        self.known = Counter(known)
        self._folder = Path(os.path.realpath(path)).parent

    @classmethod
    def read(cls, path: Path) -> Baseline:
        """Return the baseline in the file at ``path``.

        Raises:
            BaselineError: there is none, or it is not as gclint writes it.
        """
        advice = f"create it with --write-baseline {as_argument(path)}"
        try:
            document = read_json(path)
        except FileNotFoundError:
            raise BaselineError(f"{path}: this baseline does not exist; {advice}") from None
        except OSError as error:
            raise BaselineError(f"{path}: this baseline cannot be read: {error.strerror}") from None
        except ValueError as error:
            raise BaselineError(f"{path}: this baseline is not JSON ({error}); {advice}") from None
        try:
            return cls(path, _entries(document))
        except ValueError as error:
            raise BaselineError(f"{path}: this is not a baseline: {error}; {advice}") from None

    @classmethod
    def of(cls, path: Path, project: Project, findings: Iterable[Finding]) -> Baseline:
        """Return a baseline for ``path`` in which all of ``findings`` are known."""
        baseline = cls(path, {})
        baseline.known.update(baseline.entry(project, finding) for finding in findings)
        return baseline

    @property
    def text(self) -> str:
        """What the file holds: an entry a line, in their order, so that a difference is easy to read."""
        lines = [json.dumps({**asdict(entry), "count": self.known[entry]}) for entry in sorted(self.known)]
        listed = ",\n    ".join(lines)
        findings = f"\n    {listed}\n  " if lines else ""
        return f'{{\n  "version": {_VERSION},\n  "findings": [{findings}]\n}}\n'

    def entry(self, project: Project, finding: Finding) -> BaselineEntry:
        """Return the entry that identifies ``finding``."""
        code = project.file(finding.path).text[finding.start : finding.end]
        return BaselineEntry(
            self._name(project.location(finding.path)), finding.code, finding.symbol, code_hash(code)
        )

    def without_known(self, project: Project, findings: Iterable[Finding]) -> list[Finding]:
        """Return the findings that are not in the baseline, or occur more often than it has them."""
        unknown, _ = self._compared(project, findings)
        return unknown

    def _compared(
        self, project: Project, findings: Iterable[Finding]
    ) -> tuple[list[Finding], Counter[BaselineEntry]]:
        """Return the findings that are not in the baseline, and what is in it beside the others."""
        left = Counter(self.known)
        unknown = []
        for finding in findings:
            entry = self.entry(project, finding)
            under = (replace(entry, rule=code) for code in finding.codes)
            known = next((each for each in under if left[each]), None)
            if known is None:
                unknown.append(finding)
            else:
                left[known] -= 1
        return unknown, +left

    def stale(
        self,
        project: Project,
        findings: Iterable[Finding],
        ran: Mapping[Path, Collection[str]],
        folders: Iterable[Path],
    ) -> Counter[BaselineEntry]:
        """Return the entries that no longer occur, and how many of each are superfluous.

        Entries of rules that did not run on their file are not judged; a file that no longer exists, in one
        of the searched ``folders``, has no findings.
        """
        codes = {self._name(project.location(path)): own for path, own in ran.items()}
        searched = [Path(os.path.realpath(folder)) for folder in folders if folder.is_dir()]

        def is_judged(entry: BaselineEntry) -> bool:
            if entry.file in codes:
                return has_decided(entry.rule, codes[entry.file])
            path = self.place(entry)
            return any(path.is_relative_to(folder) for folder in searched) and not exists(path)

        _, surplus = self._compared(project, findings)
        return Counter({entry: count for entry, count in surplus.items() if is_judged(entry)})

    def place(self, entry: BaselineEntry) -> Path:
        """Return the resolved path of the file that an entry is about."""
        return Path(os.path.realpath(self._folder / entry.file))

    def _name(self, path: Path) -> str:
        try:
            return _with_slashes(os.path.relpath(path, self._folder))
        except ValueError:  # On Windows, there is no way from one drive to another.
            return _with_slashes(str(path))


def _with_slashes(path: str) -> str:
    """Return a path as baselines have it, with slashes on every system."""
    return path.replace("\\", "/")


def _entries(document: object) -> Counter[BaselineEntry]:
    """Return the entries of a baseline.

    Raises:
        ValueError: it is none; the message says what is wrong.
    """
    if not isinstance(document, dict) or "version" not in document:
        raise ValueError("it has no version")
    version = document["version"]
    if type(version) is not int or version != _VERSION:
        # A setting may name any file, of which nothing is to be printed.
        given = f"version is {version}" if type(version) is int else "version is not a number"
        raise ValueError(f"its {given}, but this release of gclint reads version {_VERSION}")
    listed = document.get("findings")
    if not isinstance(listed, list):
        raise ValueError("it has no list of findings")
    entries: Counter[BaselineEntry] = Counter()
    for number, each in enumerate(listed, start=1):
        values = (
            [each.get(field.name) for field in fields(BaselineEntry)] if isinstance(each, dict) else [None]
        )
        count = each.get("count") if isinstance(each, dict) else None
        if not all(isinstance(value, str) for value in values) or type(count) is not int or count < 1:
            raise ValueError(f"entry {number} lacks one of rule, file, symbol, hash and count")
        entry = BaselineEntry(*values)
        if not _may_be_name(entry.file):
            raise ValueError(f"no file can have the name in entry {number}")
        entries[replace(entry, file=_with_slashes(entry.file))] += count
    return entries


def _may_be_name(file: str) -> bool:
    try:
        return b"\0" not in os.fsencode(file)
    except UnicodeEncodeError:  # JSON can hold half of a character.
        return False


_Result = TypeVar("_Result", bound=LintResult)


@dataclass(frozen=True)
class Recognised:
    """The findings that a baseline and a run have in common, and those that only the baseline has."""

    known: int = 0
    """How many findings are not reported, since they are in the baseline."""
    stale: Mapping[BaselineEntry, int] = field(default_factory=dict)
    """The entries that no longer occur, and how many of each are superfluous."""


@dataclass(frozen=True)
class Selection:
    """Which findings are reported, and with ``--fix`` repaired."""

    project: Project
    paths: Sequence[Path]
    """What the user gave."""
    changed: Set[Path] | None = None
    """The resolved paths of changed files; None to report findings in all files."""
    baseline: Baseline | None = None

    def reported(self, findings: Sequence[Finding]) -> Sequence[Finding]:
        """Return the findings to report; the dependents of a changed file are known only after a check."""
        scope = self._scope()
        if scope is not None:
            # So is what is generated from their places.
            findings = [
                each
                for each in findings
                if each.path in scope or any(inherited.path in scope for inherited in each.inherited_by)
            ]
        return self.baseline.without_known(self.project, findings) if self.baseline else findings

    def files(self, rules: Sequence[Rule]) -> Sequence[Path]:
        """Return the files that may have findings to report; ``rules`` show what depends on a change."""
        if self.changed is None:
            return self.project.paths
        check(self.project, rules)  # The dependencies are known afterwards.
        scope = self.project.dependents(self.changed)
        return [path for path in self.project.paths if path in scope]

    def narrowed(self, result: _Result) -> tuple[_Result, Recognised]:
        """Return ``result`` with the findings to report and the number of files they can be in."""
        scope, recognised = self._scope(), Recognised()
        findings = self.reported(result.findings)
        if self.baseline is not None:
            stale = self.baseline.stale(
                self.project, (*result.findings, *result.pending), result.ran, self.paths
            )
            if scope is not None:
                places = {each: self.project.identify(self.baseline.place(each)) for each in stale}
                stale = Counter({each: n for each, n in stale.items() if places[each] in scope})
            everything = replace(self, baseline=None).reported(result.findings)
            recognised = Recognised(len(everything) - len(findings), stale)
        files = result.files
        if scope is not None:
            files = sum(path in scope for path in result.ran)
        return replace(result, findings=tuple(findings), files=files), recognised

    def _scope(self) -> Set[Path] | None:
        return None if self.changed is None else self.project.dependents(self.changed)
