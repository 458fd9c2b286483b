"""Carries fixes to all code that has to stay the same: copies, and generated code.

A fix that changes one side of a pair stands only if the other one changes alike: by another finding's
fix, with which it is then linked, or by the same change, mirrored. Otherwise it is not made.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from pathlib import Path
from typing import TypeVar

from gclint.code.file import SourceFile
from gclint.code.project import Project
from gclint.copies.pairs import CopyPair, Region, header_region
from gclint.edit.edits import by_file
from gclint.edit.imports import drop_unused_imports, import_checkpointing_base
from gclint.finding import Applicability, Duty, Edit, Finding, Refusal
from gclint.network.evaluation.classes import CHECKPOINTING_BASE, ClassInfo
from gclint.network.evaluation.modules import library_of
from gclint.network.model import Network
from gclint.run.copy_index import CopyIndex

_Member = TypeVar("_Member", bound=Hashable)
_WORD = re.compile(r"[A-Za-z_][\w.]*")


@dataclass
class _Carried:
    """A finding with everything else that its fix has to change."""

    finding: Finding
    edits: dict[Path, list[Edit]]
    applicability: Applicability = Applicability.SAFE
    """The applicability of the fix, including everything else that it has to change."""
    doubts: list[str] = field(default_factory=list)
    """Why it is not safe, in addition to the fix's own reason."""
    refusal: str | None = None
    outside: dict[Path, str] = field(default_factory=dict)
    """Files with the other side of a pair that are not among the given ones, and what they need."""
    links: set[int] = field(default_factory=set)
    """The numbers of the findings that have to be repaired together with this one."""


def carry(
    project: Project, findings: Sequence[Finding], suppressed: Sequence[Finding], tree: CopyIndex
) -> tuple[list[Finding], list[frozenset[int]]]:
    """Return the findings with fixes that keep both sides of all pairs alike, and which of them go together.

    What is ``suppressed`` is not reported, so its code must not change.
    """
    work = _CopyPropagation(project, findings, suppressed, tree)
    for number in range(len(findings)):
        work.follow(number)
    work.link_shared()
    groups = work.groups()
    for group in groups:
        work.share(group)
    return [work.result(number) for number in range(len(findings))], groups


class _CopyPropagation:
    def __init__(
        self, project: Project, findings: Sequence[Finding], suppressed: Sequence[Finding], tree: CopyIndex
    ) -> None:
        self._project = project
        self._tree = tree
        self._carried = [_carried(each) for each in findings]
        self._editing: defaultdict[Path, list[int]] = defaultdict(list)
        for number, carried in enumerate(self._carried):
            for path in carried.edits:
                self._editing[path].append(number)
        # These stay as they are: a comment says so, or there is no fix.
        self._fixed_places: defaultdict[Path, list[Finding]] = defaultdict(list)
        for each in [*suppressed, *(finding for finding in findings if finding.fix is None)]:
            self._fixed_places[each.path].append(each)

    # -- one finding

    def follow(self, number: int) -> None:
        """Look at every pair that a finding's fix changes, and at those that this changes in turn."""
        carried = self._carried[number]
        waiting = list(carried.edits)
        seen: set[CopyPair] = set()
        while waiting and carried.refusal is None:
            path = waiting.pop()
            if path not in self._project.fixable:
                continue
            edits = carried.edits[path]
            # Headers first: whether a call may change depends on the block after its fix.
            pairs = list(self._tree.touched(path, edits))
            headers = [each for each in pairs if changes_header_only(_sides(each, path)[0], edits)]
            for pair in dict.fromkeys([*headers, *pairs]):
                if pair in seen or (pair.is_copy and not pair.in_force):
                    continue
                seen.add(pair)
                changed = self._settle(number, pair, path)
                if changed is not None:
                    waiting.append(changed)
                    seen.clear()

    def _settle(self, number: int, pair: CopyPair, path: Path) -> Path | None:
        """Make the other side of a pair change alike; return its file if something was added for that."""
        carried = self._carried[number]
        here, there = _sides(pair, path)
        other = there.file.path
        if other not in self._project.fixable:
            name = there.file.path.name
            follows = here is pair.source and not pair.is_copy
            needed = "has to be regenerated" if follows else "has the same code, which has to change too"
            carried.outside[other] = f"{name} {needed}"
            return None
        mine = _inside(here, carried.edits.get(path, ()))
        if mine is None:
            carried.refusal = (
                f"the fix of {_where(here)} goes beyond the code that it shares with {_where(there)}"
            )
            return None
        theirs = [edit for edit in carried.edits.get(other, ()) if there.touches(edit)]
        if theirs:
            if not _alike(pair, here, mine, theirs):
                carried.refusal = f"the fixes of {_where(there)} and {_where(here)}, which share code, differ"
            return None
        for candidate in self._editing[other]:
            edits = [edit for edit in self._carried[candidate].edits[other] if there.touches(edit)]
            if candidate != number and edits and _alike(pair, here, mine, edits):
                carried.links.add(candidate)
                return None
        return self._mirror(carried, pair, here, there, mine)

    def _mirror(
        self, carried: _Carried, pair: CopyPair, here: Region, there: Region, edits: list[Edit]
    ) -> Path | None:
        """Make the same change on the other side of a pair."""
        mirrored = self._mirrored(pair, here, there, edits, carried)
        if isinstance(mirrored, str):
            carried.refusal = mirrored
            return None
        path = there.file.path
        added = [*mirrored, *self._import_edits(there.file, mirrored)]
        carried.edits.setdefault(path, []).extend(added)
        if pair.is_copy:
            carried.doubts.append(f"the fix also changes {_where(there)}, a copy of this code")
            carried.applicability = Applicability.UNSAFE
        return path

    def _mirrored(
        self, pair: CopyPair, here: Region, there: Region, edits: list[Edit], carried: _Carried
    ) -> Sequence[Edit] | str:
        """Return the same change for the other side, or why there is none."""
        why = f"{_where(there)} shares this code and has to change too"
        for each in self._fixed_places[there.file.path]:
            if each.kind == carried.finding.kind and any(a <= each.start < b for a, b in there.spans):
                refused = isinstance(each.remedy, Refusal)
                return (
                    f"{why}, but {each.remedy.reason if refused else 'an ignore comment keeps it as it is'}"
                )
        is_other = pair.is_copy or pair.renaming.replacements
        if is_other and not changes_header_only(here, edits):
            changed = carried.edits.get(there.file.path, ())
            obstacle = call_obstacle(self._project, pair, here, there, edits, changed)
            if obstacle is not None:
                return f"{why}, but {obstacle}"
        found = pair.mirrored(edits, to_source=here is pair.derived)
        if found is None:
            return f"{why}, but the fix cannot be carried over"
        return found

    def _import_edits(self, file: SourceFile, edits: Sequence[Edit]) -> Iterator[Edit]:
        """Yield what the imports of a file need after mirrored edits."""
        new = {word for edit in edits for word in _WORD.findall(edit.content)}
        gone = {word for edit in edits for word in _WORD.findall(file.text[edit.start : edit.end])} - new
        module = Network(self._project, file).checkpointing_module
        if CHECKPOINTING_BASE in new and module is not None:
            yield from import_checkpointing_base(file, module, edits)
        if gone:
            yield from drop_unused_imports(self._project, file, gone, edits)

    # -- findings that go together

    def link_shared(self) -> None:
        """Link findings of different files that change the same code: one repair is a part of the other."""
        changing: dict[Edit, int] = {}
        for number, carried in enumerate(self._carried):
            for edits in carried.edits.values():
                for edit in edits:
                    first = changing.setdefault(edit, number)
                    differs = self._carried[first].finding.path != carried.finding.path
                    if differs and edit.start < edit.end:
                        carried.links.add(first)

    def groups(self) -> list[frozenset[int]]:
        """Return the numbers of findings that are linked, each in one group."""
        ties = ((number, *carried.links) for number, carried in enumerate(self._carried))
        units = joined(range(len(self._carried)), ties)
        return [frozenset(unit) for unit in units if len(unit) > 1]

    def share(self, group: frozenset[int]) -> None:
        """Let linked findings share the reasons why one of them has no fix, or an unsafe one."""
        members = [self._carried[number] for number in sorted(group)]
        refused = next((each for each in members if each.refusal is not None), None)
        doubtful = max(members, key=lambda each: [*Applicability].index(each.applicability))
        for member in members:
            if refused is not None and member.refusal is None:
                member.refusal = f"{_name(refused)} has to change in the same way, but {refused.refusal}"
            elif member.applicability is not doubtful.applicability:
                member.doubts.append(f"{_name(doubtful)} changes in the same way: {_doubts(doubtful)[0]}")
                member.applicability = doubtful.applicability

    def result(self, number: int) -> Finding:
        """Return a finding with its final fix."""
        carried = self._carried[number]
        finding, fix = carried.finding, carried.finding.fix
        if fix is None:
            return finding
        if carried.outside:
            needed = "; ".join(sorted(set(carried.outside.values())))
            finding = replace(finding, message=f"{finding.message}; {needed}")
        if carried.refusal is not None:
            return finding.refused(carried.refusal)
        edits = [edit for own in carried.edits.values() for edit in own]
        added = tuple(edit for edit in edits if edit not in fix.edits)
        reasons = [*([fix.reason] if fix.reason else []), *dict.fromkeys(carried.doubts)]
        fixed = replace(
            fix,
            edits=(*fix.edits, *added),
            applicability=carried.applicability,
            reason="; ".join(reasons) or None,
            duties=tuple(Duty(path, text) for path, text in sorted(carried.outside.items())),
        )
        return replace(finding, remedy=fixed)


def joined(members: Iterable[_Member], ties: Iterable[Iterable[_Member]]) -> list[list[_Member]]:
    """Return members in units of those that are tied, directly or through others."""
    units = {each: [each] for each in members}
    for tie in ties:
        known = [each for each in tie if each in units]
        for each in known[1:]:
            kept, dropped = units[known[0]], units[each]
            if kept is not dropped:
                kept.extend(dropped)
                units.update(dict.fromkeys(dropped, kept))
    return list({id(unit): unit for unit in units.values()}.values())


def _carried(finding: Finding) -> _Carried:
    applicability = Applicability.SAFE if finding.fix is None else finding.fix.applicability
    return _Carried(finding, by_file(finding.edits), applicability)


def _sides(pair: CopyPair, path: Path) -> tuple[Region, Region]:
    """Return the region of a pair in the file at ``path``, and the other one."""
    own = pair.source.file.path == path
    return (pair.source, pair.derived) if own else (pair.derived, pair.source)


def _inside(region: Region, edits: Sequence[Edit]) -> list[Edit] | None:
    """Return the edits that touch a region; None where one goes beyond it."""
    found = [edit for edit in edits if region.touches(edit)]
    return found if all(region.holds(edit) for edit in found) else None


def _alike(pair: CopyPair, here: Region, mine: list[Edit], theirs: list[Edit]) -> bool:
    if here is pair.source:
        return pair.changes_alike(mine, theirs)
    return pair.changes_alike(theirs, mine)


def _doubts(carried: _Carried) -> list[str]:
    fix = carried.finding.fix
    return [*([fix.reason] if fix is not None and fix.reason else []), *carried.doubts]


def _name(carried: _Carried) -> str:
    return f"`{carried.finding.symbol}` in {carried.finding.path.name}"


def _where(region: Region) -> str:
    start = region.spans[0][0] + len(region.text) - len(region.text.lstrip())
    around = (each for each in region.file.outline.definitions if each.header <= start < each.end)
    names = [each.name for each in around]
    return f"`{'.'.join(names[:2])}` in {region.file.path.name}"


def changes_header_only(region: Region, edits: Sequence[Edit]) -> bool:
    """Return whether edits change only the header of a region that is a class."""
    definitions, start = region.file.outline.definitions, region.spans[0][0]
    index = bisect_left(definitions, start, key=attrgetter("header"))
    if index == len(definitions) or not definitions[index].is_class:
        return False
    end = definitions[index].header_end
    return all(edit.start < end for edit in edits if region.touches(edit))


def call_obstacle(
    project: Project,
    pair: CopyPair,
    here: Region,
    there: Region,
    edits: Sequence[Edit],
    changed: Collection[Edit],
) -> str | None:
    """Return why edits of calls on one side of a pair are not right on the other one, which uses other names.

    What a call means depends on the block that it runs. So the other method's class has to name a block
    that corresponds and takes the same parameters; and it has to be a checkpointing layer, or become
    one by what is ``changed`` in that file, where a legacy branch goes.
    """
    network = Network(project, here.file)
    module = library_of(project).module(there.file)
    start = there.spans[0][0]
    owner = next(
        (e for e in module.classes.values() if e.definition.header <= start < e.definition.end),
        None,
    )
    own = (site for site in network.run_sites if site.scope.module.file is here.file)
    sites = [site for site in own if any(_overlaps(site.span(site.call), edit) for edit in edits)]
    if owner is None or not sites:
        return f"the calls there could not be matched to those in {here.file.path.name}"
    goes = any(site.checkpointed for site in sites)
    for block in dict.fromkeys(block for site in sites for block in site.blocks):
        renamed = pair.renaming.apply(block.name) if here is pair.source else pair.renaming.undo(block.name)
        other = module.classes.get(renamed or "")
        if other is None or not owner.names(other.name):
            return f"its calls do not run the counterpart of `{block.name}`"
        if _parameters(other) != _parameters(block):
            return f"`{other.name}.forward` does not have the parameters of `{block.name}.forward`"
        header = header_region(other.file, other.definition)
        if goes and not other.is_checkpointing and not any(map(header.touches, changed)):
            return f"`{other.name}` is not a checkpointing layer"
    return None


def _overlaps(span: tuple[int, int], edit: Edit) -> bool:
    overlaps = edit.start < span[1] and span[0] < edit.end
    return overlaps or span[0] <= edit.start == edit.end <= span[1]


def _parameters(info: ClassInfo) -> list[str] | None:
    return None if info.signature is None else [parameter.name for parameter in info.signature.parameters]
