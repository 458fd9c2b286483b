"""Decides whether a change of the calls in a method is right in the method's twin as well."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Sequence
from operator import attrgetter

from gclint.finding import Edit
from gclint.network.evaluation.classes import ClassInfo
from gclint.network.evaluation.modules import library_of
from gclint.network.model import Network
from gclint.source.project import Project
from gclint.source.twins import Region, Twin, header_region


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
    twin: Twin,
    here: Region,
    there: Region,
    edits: Sequence[Edit],
    changed: Collection[Edit],
) -> str | None:
    """Return why edits of calls in one twin are not right in the other one, which uses other names.

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
        renamed = twin.renaming.apply(block.name) if here is twin.source else twin.renaming.undo(block.name)
        other = module.classes.get(renamed or "")
        if other is None or not owner.names(other.name):
            return f"its calls do not run the counterpart of `{block.name}`"
        if _parameters(other) != _parameters(block):
            return f"`{other.name}.forward` does not have the parameters of `{block.name}.forward`"
        if goes and not other.is_checkpointing and not _becomes_layer(other, changed):
            return f"`{other.name}` is not a checkpointing layer"
    return None


def _overlaps(span: tuple[int, int], edit: Edit) -> bool:
    overlaps = edit.start < span[1] and span[0] < edit.end
    return overlaps or span[0] <= edit.start == edit.end <= span[1]


def _parameters(info: ClassInfo) -> list[str] | None:
    return None if info.signature is None else [parameter.name for parameter in info.signature.parameters]


def _becomes_layer(info: ClassInfo, changed: Collection[Edit]) -> bool:
    header = header_region(info.file, info.definition)
    return any(header.touches(edit) for edit in changed)
