"""Moves findings to where they have to be repaired: those of generated files to their source."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from pathlib import Path

from gclint.finding import Applicability, Finding, Fix, Heir, Refusal
from gclint.network.evaluation.modules import library_of
from gclint.network.lineage import Lineage, Place, place_at
from gclint.source.generated import is_modular, modular_path
from gclint.source.project import Project

_LINE = re.compile(r"in \w+\.py, | (?:in|on) line \d+")
_Piece = tuple[Path, str, str | None]
"""A header or method: its file, class and name."""


@dataclass
class _Moved:
    """The findings of one rule that belong to the same header or method."""

    target: Place
    groups: dict[tuple[Path, _Piece], list[Finding]] = field(default_factory=dict)
    """By the place where they were found, in the order of the text."""
    places: dict[Finding, Place] = field(default_factory=dict)


def attribute(project: Project, findings: Sequence[Finding], lineage: Lineage) -> list[Finding]:
    """Return the findings, with those of generated files merged into those of their source."""
    moved: dict[tuple[_Piece, str], _Moved] = {}
    left: list[Finding] = []
    for finding in findings:
        place = _found_at(project, finding)
        target = None if place is None else _target(project, place, lineage)
        if place is None or target is None or (target == place and finding.subject is None):
            left.append(_without_source(project, finding, place, lineage))
            continue
        several = moved.setdefault((_piece(target), finding.code), _Moved(target))
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
    return finding.subject is not None or is_modular(file.path) or modular_path(file) is not None


def _found_at(project: Project, finding: Finding) -> Place | None:
    """Return the place of a finding that may belong to another file; None for all others."""
    library = library_of(project)
    if finding.subject is not None:
        path, start, _ = finding.subject
        return place_at(library.module(project.file(path)), start)
    if not may_belong_elsewhere(project, finding):
        return None
    return place_at(library.module(project.file(finding.path)), finding.start)


def _target(project: Project, place: Place, lineage: Lineage) -> Place | None:
    """Return the last place in a chain of sources that is in one of the given files."""
    target = None
    seen = set()
    following: Place | None = place
    while following is not None and following not in seen:
        seen.add(following)
        if following.file.path in project.given:
            target = following
        following = lineage.source(following)
    return target


def _without_source(project: Project, finding: Finding, place: Place | None, lineage: Lineage) -> Finding:
    """Return a finding that stays where it is, without a fix if that would be undone by the generator."""
    source = None if place is None else lineage.source(place)
    if source is None or source.file.path in project.given:
        return finding
    if finding.fix is None or is_modular(finding.path):
        return finding
    name = source.file.path.name
    return finding.refused(f"this file is generated from {name}: repair that file, then regenerate this one")


def _piece(place: Place) -> _Piece:
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
        if place is not None and (key := (_piece(place), finding.code)) in moved:
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
    for members in merged:
        if natives:
            result.append(_united(project, members[0], members[1:]))
            continue
        span = _span(several.target, members[0], several.places[members[0]], lineage)
        if span is None:
            result += [_not_carried(each, several.target) for each in members]
            continue
        path = several.target.file.path
        symbol = several.target.info.name if several.target.method is None else members[0].symbol
        first = replace(
            members[0], path=path, start=span[0], end=span[1], symbol=symbol, subject=None, heirs=()
        )
        result.append(_united(project, first, members, is_moved=True))
    return result


def _not_carried(finding: Finding, target: Place) -> Finding:
    name = target.file.path.name
    return finding.refused(
        f"this code is generated from different code in {name}: repair that file, then regenerate this one"
    )


def _span(target: Place, finding: Finding, place: Place, lineage: Lineage) -> tuple[int, int] | None:
    """Return the span of a finding in the source of its place."""
    if target.method is None:
        definition = target.info.definition
        name = target.file.text.index(definition.name, definition.header + len("class"))
        return definition.header, name + len(definition.name)
    start, end = finding.start, finding.end
    while place != target:
        twin = lineage.twin(place)
        source = lineage.source(place)
        if twin is None or source is None:
            return None
        span = twin.source_span(start, end)
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
    runners = [each for each in others if each.subject is not None and not is_modular(each.path)]
    heirs = tuple(Heir(each.path, each.symbol, defines=each not in runners) for each in others)
    for relation, those in ("inherited by", set(others) - set(runners)), ("run by", set(runners)):
        models = {project.model(each.path) for each in those} - {project.model(finding.path)}
        if models:
            message += f"; {relation} {', '.join(sorted(models))}"
    remedy = _united_remedy(finding, others, is_moved=is_moved)
    return replace(finding, message=message, remedy=remedy, heirs=heirs, subject=None)


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
    return Fix(
        fixes[0].message,
        tuple(dict.fromkeys(edit for fix in fixes for edit in fix.edits)),
        reduce(Applicability.joined, applicabilities, Applicability.SAFE),
        "; ".join(reasons.values()) or None,
        tuple(dict.fromkeys(repair for fix in fixes for repair in fix.repairs)),
    )
