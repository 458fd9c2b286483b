"""What the text shows of branches that no run has executed."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from gclint.code.file import UnreadableFile
from gclint.code.project import Project
from gclint.edit.doubts import recorded_doubts
from gclint.edit.group import BlockGroup
from gclint.edit.recomputed import all_doubts, recomputation_notes
from gclint.edit.replaced import replaced_doubts
from gclint.edit.surroundings import container_doubts, doubted_around, is_followed, surrounding_doubts
from gclint.edit.without_cache import site_doubts
from gclint.network.evaluation.classes import ClassInfo
from gclint.network.model import Network
from gclint.verify.worker.protocol import Unreached


@dataclass(frozen=True)
class TextEvidence:
    """What the text shows of blocks, and of the code that runs them."""

    is_harmless_inside: bool
    """Whether recomputing the blocks, without their caches, is right whatever branches are taken."""
    doubted: Mapping[Path, frozenset[int]]
    """By file that was followed: the lines around the blocks of which that is not shown."""
    calls: Mapping[Path, frozenset[int]]
    """The lines of the calls that run them, which have to be executed all the same."""
    undecided: tuple[str, ...]
    """What is in doubt of those that are recomputed for the first time, whatever runs show, in words."""

    def asks_for(self, branch: Unreached, path: Path) -> bool:
        """Tell whether a branch of a file has to be executed, since it may do harm otherwise."""
        if branch.part == "inside" and not self.is_harmless_inside:
            return True
        if path not in self.doubted:
            return branch.part != "elsewhere"
        own = range(branch.branch.line, branch.branch.last + 1)
        function = range(branch.branch.function, branch.branch.end + 1)
        # What is in doubt may hang on a branch beside it: on one that leaves a copy out, for example.
        return not self.doubted[path].isdisjoint(function) or not self.calls[path].isdisjoint(own)


def shown(
    project: Project,
    paths: Collection[Path],
    texts: Mapping[Path, str],
    names: Collection[str],
    new: Collection[str],
) -> TextEvidence:
    """Return what the text shows of blocks and of what runs them, once the files are repaired.

    Args:
        project: the files as they are.
        paths: the files that define the blocks, or run them.
        texts: those of the repaired ones.
        names: of the blocks.
        new: of those that are recomputed for the first time.
    """
    repaired = Project(project.settings, project.paths)
    for path, text in texts.items():
        repaired.replace(path, text)
    networks = [*_networks(repaired, paths)]
    blocks = [info for network in networks for info in network.module.classes.values() if info.name in names]
    are_found = bool(names) and {info.name for info in blocks} == set(names)
    doubted: dict[Path, set[int]] = {each.file.path: set() for each in networks if is_followed(each)}
    for network in networks:
        for each in doubted_around(network, blocks):
            doubted.get(each.file.path, set()).add(each.row)
    return TextEvidence(
        are_found and all(_is_recomputed_right(info, networks) for info in blocks),
        {path: frozenset(lines) for path, lines in doubted.items()},
        {network.file.path: frozenset(_calls(network, blocks)) for network in networks},
        tuple(dict.fromkeys(_undecided(networks, new))),
    )


def _networks(project: Project, paths: Collection[Path]) -> Iterator[Network]:
    for path in paths:
        try:
            yield Network(project, project.file(path))
        except (OSError, UnreadableFile):
            continue


def _is_recomputed_right(info: ClassInfo, networks: Collection[Network]) -> bool:
    sites = [site for network in networks for site in network.run_sites if info in site.blocks]
    doubts = chain(
        recomputation_notes(info),
        site_doubts(info, sites),
        *(replaced_doubts(network, [info]) for network in networks),
    )
    return not any(True for _ in doubts)


def _undecided(networks: Collection[Network], names: Collection[str]) -> Iterator[str]:
    """Yield what blocks repeat, or the code around them does, that may do harm in a step like no other.

    A run shows that a gradient is lost only if something is made of it there.
    """
    known = [info for network in networks for info in network.module.classes.values() if info.name in names]
    for info in known:
        yield from all_doubts(info)
    for network in networks if known else ():
        yield from replaced_doubts(network, known)
        yield from surrounding_doubts(network, known)
        yield from container_doubts(network, known)
        yield from recorded_doubts(network, BlockGroup(dict.fromkeys(known)))


def _calls(network: Network, blocks: Collection[ClassInfo]) -> Iterator[int]:
    for site in network.run_sites:
        if not set(blocks).isdisjoint(site.blocks):
            yield network.file.position(site.span(site.call)[0]).row
