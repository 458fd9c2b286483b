"""The tree around the given files: which contain copies of which code, or are generated from it.

Findings of generated files are moved to where they have to be repaired, which is their source.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from pathlib import Path

from gclint.code.file import SourceFile, UnreadableFile
from gclint.code.project import Project
from gclint.code.questions import Topic
from gclint.copies.generated import is_modular, modular_path
from gclint.copies.marked import (
    MARKER,
    CopyComment,
    copy_comments,
    module_of,
    named_origins,
    origin_module,
    pair_of,
)
from gclint.copies.pairs import CopyPair
from gclint.facts import entries, matching, search
from gclint.finding import Applicability, Edit, Finding, Fix, InheritedDefect, Refusal
from gclint.level import Level
from gclint.network.evaluation.modules import library_of
from gclint.network.lineage import ClassPlace, Lineage, place_at

_MODELS = "models"
_NOT_CARRIED = "this code is generated from different code in {}: repair that file, then regenerate this one"


def _copies_from(file: SourceFile, module: str) -> bool:
    return any(origin_module(comment.path) == module for comment in copy_comments(file))


COPIES = Topic("copies", _copies_from)
"""Which given files call something a copy of code in a module."""


class CopyIndex:
    """Which code in the files of a run is a copy of which."""

    def __init__(self, project: Project, paths: tuple[Path, ...] | None = None) -> None:
        """Look at the given files and, for a fix, at those beside them: all ``paths``, if they are known."""
        self._project = project
        self._known_paths = paths
        self.paired_files: set[Path] = set()
        """The files on both sides of the pairs that edits were found to change."""
        self._pairs: dict[Path, list[CopyPair]] = {}
        self._pairs_by_place: dict[ClassPlace, list[CopyPair]] = {}

    def scan(self) -> None:
        """Ask all files at once: later, only some of them are read."""
        self.lineage.scan()
        _ = self._naming

    @cached_property
    def paths(self) -> tuple[Path, ...]:
        """The given files, and all others below the same folders of models."""
        if self._known_paths is not None:
            return self._known_paths
        given = self._project.paths
        around = {self._project.location(path).parent.parent for path in given}
        beside = sorted(path for folder in around if folder.name == _MODELS for path in _models(folder))
        return tuple(dict.fromkeys((*given, *map(self._project.identify, beside))))

    @cached_property
    def lineage(self) -> Lineage:
        """Which files of the tree are generated from which."""
        return Lineage(library_of(self._project), self.paths)

    @cached_property
    def _naming(self) -> Mapping[str, Sequence[SourceFile]]:
        """The files that may call something a copy, by the modules of its origins."""
        found: defaultdict[str, list[SourceFile]] = defaultdict(list)
        for path in self.paths:
            try:
                if path not in self._project.given and MARKER.encode() not in search(path):
                    continue
                file = self._project.file(path)
            except (OSError, UnreadableFile):
                continue  # The run reports it if it is one of its files.
            for module in named_origins(file):
                found[module].append(file)
        return found

    def touched(self, path: Path, edits: list[Edit]) -> Iterator[CopyPair]:
        """Yield the pairs that ``edits`` of the file at ``path`` change on one side."""
        file = self._project.file(path)
        for pair in [*self._copies(file), *self._generated(file, edits)]:
            for region in (pair.source, pair.derived):
                if region.file is file and any(region.touches(edit) for edit in edits):
                    self.paired_files |= {pair.source.file.path, pair.derived.file.path}
                    yield pair
                    break

    def _copies(self, file: SourceFile) -> list[CopyPair]:
        known = self._pairs.get(file.path)
        if known is None:
            pairs = (pair_of(self._project, copy, comment) for copy, comment in self._comments(file))
            known = self._pairs[file.path] = [pair for pair in pairs if pair is not None]
        return known

    def _comments(self, file: SourceFile) -> Iterator[tuple[SourceFile, CopyComment]]:
        """Yield the comments that call something in a file a copy, or something a copy of code in it."""
        module = module_of(self._project, file)
        if module is None:
            return

        def copying() -> Iterator[Path]:  # Hardly any other file is parsed.
            return (each.path for each in self._naming.get(module, ()) if _copies_from(each, module))

        others = self._project.asked(COPIES, module, copying)
        for path in self._in_order({*others, file.path}):
            copy = self._project.file(path)
            if module_of(self._project, copy) is not None:
                for comment in copy_comments(copy):
                    if copy is file or origin_module(comment.path) == module:
                        yield copy, comment

    def _in_order(self, paths: Set[Path]) -> list[Path]:
        """Return some files of the tree in the order of all of them."""
        if paths <= self._project.given:
            return [*self._project.in_order(paths)]
        return [path for path in self.paths if path in paths]

    def _generated(self, file: SourceFile, edits: list[Edit]) -> Iterator[CopyPair]:
        module = library_of(self._project).module(file)
        for place in dict.fromkeys(place_at(module, edit.start) for edit in edits):
            if place is not None:
                known = self._pairs_by_place.get(place)
                if known is None:
                    places = [place, *self.lineage.inheriting(place)]
                    pairs = (self.lineage.copy_pair(each) for each in places)
                    known = self._pairs_by_place[place] = [pair for pair in pairs if pair is not None]
                yield from known


def _models(folder: Path) -> Iterator[Path]:
    """Yield the modeling files in the folders of a folder of models."""
    with suppress(OSError):
        for each in entries(folder, "/"):
            if each.is_folder:
                yield from matching(folder / each.name, "mod*_*.py")


_LINE = re.compile(r"in \w+\.py, | (?:in|on) line \d+")
_Piece = tuple[Path, str, str | None]
"""A header or method: its file, class and name."""


@dataclass
class _Moved:
    """The findings of one kind that belong to the same header or method."""

    target: ClassPlace
    groups: dict[tuple[Path, _Piece], list[Finding]] = field(default_factory=dict)
    """By the place where they were found, in the order of the text."""
    places: dict[Finding, ClassPlace] = field(default_factory=dict)


def attribute(project: Project, findings: Sequence[Finding], lineage: Lineage) -> list[Finding]:
    """Return the findings, with those of generated files merged into those of their source."""
    moved: dict[tuple[_Piece, str], _Moved] = {}
    left: list[Finding] = []
    for finding in findings:
        place = _found_at(project, finding)
        target = None if place is None else _target(project, place, lineage)
        if place is None or target is None or (target == place and finding.class_elsewhere is None):
            left.append(_without_source(project, finding, place, lineage))
            continue
        several = moved.setdefault((_piece(target), finding.kind), _Moved(target))
        several.groups.setdefault((finding.path, _piece(place)), []).append(finding)
        several.places[finding] = place
    natives = _natives(project, left, moved)
    merged: list[Finding] = []
    for key, several in moved.items():
        merged += _merge(project, several, natives[key], lineage)
    replaced = {finding for group in natives.values() for finding in group}
    return [finding for finding in left if finding not in replaced] + merged


def may_belong_elsewhere(project: Project, finding: Finding) -> bool:
    """Return whether a finding may be one of those that are reported in another file."""
    file = project.file(finding.path)
    return finding.class_elsewhere is not None or is_modular(file.path) or modular_path(file) is not None


def _found_at(project: Project, finding: Finding) -> ClassPlace | None:
    """Return the place of a finding that may belong to another file; None for all others."""
    library = library_of(project)
    if finding.class_elsewhere is not None:
        path, start, _ = finding.class_elsewhere
        return place_at(library.module(project.file(path)), start)
    if not may_belong_elsewhere(project, finding):
        return None
    return place_at(library.module(project.file(finding.path)), finding.start)


def _target(project: Project, place: ClassPlace, lineage: Lineage) -> ClassPlace | None:
    """Return the last place in a chain of sources that is in one of the given files."""
    target = None
    seen = set()
    following: ClassPlace | None = place
    while following is not None and following not in seen:
        seen.add(following)
        if following.file.path in project.given:
            target = following
        following = lineage.source(following)
    return target


def _without_source(
    project: Project, finding: Finding, place: ClassPlace | None, lineage: Lineage
) -> Finding:
    """Return a finding that stays where it is, without a fix if that would be undone by the generator."""
    source = None if place is None else lineage.source(place)
    if source is None or source.file.path in project.given:
        return finding
    if finding.fix is None or is_modular(finding.path):
        return finding
    name = source.file.path.name
    return finding.refused(f"this file is generated from {name}: repair that file, then regenerate this one")


def _piece(place: ClassPlace) -> _Piece:
    return place.file.path, place.info.name, place.method


def _natives(
    project: Project, left: Iterable[Finding], moved: Mapping[tuple[_Piece, str], _Moved]
) -> defaultdict[tuple[_Piece, str], list[Finding]]:
    """Return the findings at the sources themselves, in the order of the text."""
    targets = {key[0][0] for key in moved}
    natives: defaultdict[tuple[_Piece, str], list[Finding]] = defaultdict(list)
    for finding in sorted(left, key=lambda each: each.start):
        if finding.path not in targets:
            continue
        place = place_at(library_of(project).module(project.file(finding.path)), finding.start)
        if place is not None and (key := (_piece(place), finding.kind)) in moved:
            natives[key].append(finding)
    return natives


def _merge(project: Project, several: _Moved, natives: Sequence[Finding], lineage: Lineage) -> list[Finding]:
    groups = [sorted(group, key=lambda each: each.start) for group in several.groups.values()]
    number = len(natives) or len(groups[0])
    merged: list[list[Finding]] = [[native] for native in natives] or [[] for _ in range(number)]
    unmerged: list[Finding] = []
    for group in groups:
        if len(group) == number:
            for members, finding in zip(merged, group, strict=True):
                members.append(finding)
        else:
            unmerged += group
    result = list(unmerged)
    for all_members in merged:
        # What is no defect yet at its source may be one where that is inherited.
        members = [each for each in all_members if each.awaits is None] or all_members
        native = all_members[0] if natives else None
        if native is not None and native is not members[0]:
            own = replace(members[0], path=native.path, start=native.start, end=native.end)
            first = replace(own, symbol=native.symbol, class_elsewhere=None, inherited_by=())
            result.append(_united(project, first, members, is_moved=True))
            continue
        # One thing is said of a block: the gravest.
        grave = min(members, key=lambda each: [*Level].index(each.level))
        said = {name: getattr(grave, name) for name in ("code", "name", "message", "level", "formerly")}
        if natives:
            result.append(_united(project, replace(members[0], **said), members[1:]))
            continue
        span = _span(several.target, members[0], several.places[members[0]], lineage)
        if span is None:
            result += [each.refused(_NOT_CARRIED.format(several.target.file.path.name)) for each in members]
            continue
        path = several.target.file.path
        symbol = several.target.info.name if several.target.method is None else members[0].symbol
        first = replace(
            members[0],
            path=path,
            start=span[0],
            end=span[1],
            symbol=symbol,
            class_elsewhere=None,
            inherited_by=(),
            **said,
        )
        result.append(_united(project, first, members, is_moved=True))
    return result


def _span(
    target: ClassPlace, finding: Finding, place: ClassPlace, lineage: Lineage
) -> tuple[int, int] | None:
    """Return the span of a finding in the source of its place."""
    if target.method is None:
        return target.info.definition.heading
    start, end = finding.start, finding.end
    while place != target:
        pair = lineage.copy_pair(place)
        source = lineage.source(place)
        if pair is None or source is None:
            return None
        span = pair.source_span(start, end)
        if span is None:
            return None
        (start, end), place = span, source
    return start, end


def _united(
    project: Project, finding: Finding, others: Sequence[Finding], *, is_moved: bool = False
) -> Finding:
    """Return a finding that stands for the same defect in other files too, with one fix for all of them."""
    message = finding.message
    # A file of another tree may have no code of its own, and use this very class.
    runners = [each for each in others if each.class_elsewhere is not None and not is_modular(each.path)]
    inherited_by = tuple(
        InheritedDefect(each.path, each.symbol, defines=each not in runners) for each in others
    )
    for relation, those in ("inherited by", set(others) - set(runners)), ("run by", set(runners)):
        models = {project.model(each.path) for each in those} - {project.model(finding.path)}
        if models:
            message += f"; {relation} {', '.join(sorted(models))}"
    remedy = _united_remedy(finding, others, is_moved=is_moved)
    return replace(finding, message=message, remedy=remedy, inherited_by=inherited_by, class_elsewhere=None)


def _united_remedy(finding: Finding, others: Sequence[Finding], *, is_moved: bool) -> Fix | Refusal:
    fixes: list[Fix] = []
    reasons: dict[str, str] = {}
    for each in (finding, *others):
        if isinstance(each.remedy, Refusal):
            where = "" if each is finding else f"in {each.path.name}, "
            return Refusal(where + each.remedy.reason)
        if each is finding and is_moved:
            continue
        fixes.append(each.remedy)
        if each.remedy.reason is not None:
            where = "" if each.path == finding.path else f"in {each.path.name}, "
            reasons.setdefault(_LINE.sub("", each.remedy.reason), where + each.remedy.reason)
    applicabilities = (fix.applicability for fix in fixes)
    message = fixes[0].message
    return Fix(
        _LINE.sub("", message) if is_moved else message,
        tuple(dict.fromkeys(edit for fix in fixes for edit in fix.edits)),
        reduce(Applicability.joined, applicabilities, Applicability.SAFE),
        "; ".join(reasons.values()) or None,
        tuple(dict.fromkeys(repair for fix in fixes for repair in fix.repairs)),
        undecided=tuple(dict.fromkeys(doubt for fix in fixes for doubt in fix.undecided)),
    )
