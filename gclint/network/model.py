"""A file's network: the stacks in it, the blocks they are made of, and the calls that run them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property

from gclint.network.activation import ACTIVATION_NAMES, fills_cache, requires_cache
from gclint.network.callers import Callers
from gclint.network.evaluation.classes import ClassInfo
from gclint.network.evaluation.modules import library_of
from gclint.network.gradient import Gradients
from gclint.network.holders import accessors, attribute_uses, holding_attributes, single_attributes
from gclint.network.runsite import RunSite, run_sites
from gclint.network.search import Holders
from gclint.network.support import supports_checkpointing
from gclint.network.traits import is_named_as_mixer, mixes_sequence
from gclint.source.file import SourceFile
from gclint.source.project import Project
from gclint.source.words import any_between

_LIBRARY_MODULES = frozenset(("modeling_utils", "modeling_outputs", "modeling_layers"))
_BASE_MODULE = "modeling_layers"


@dataclass(frozen=True)
class UnprotectedBlock:
    """A block that should be a checkpointing layer and is none, with the calls that say so."""

    info: ClassInfo
    sites: tuple[RunSite, ...]


class Network:
    """What a file's code means for gradient checkpointing."""

    def __init__(self, project: Project, file: SourceFile) -> None:
        """Describe ``file``; nothing is parsed until a rule asks."""
        self.project = project
        self.file = file
        self.library = library_of(project)
        self.module = self.library.module(file)

    @cached_property
    def checkpointing_module(self) -> str | None:
        """The module that the file would import the base class from, with dots if relative.

        None inside a release of the library that has no such class yet.
        """
        imported = self.file.outline.all_imported()
        levels = sorted(
            {name.level for name in imported if name.level and name.module in _LIBRARY_MODULES},
            reverse=True,
        )
        for level in levels:
            if self.project.module(self.file, _BASE_MODULE, level) is not None:
                return "." * level + _BASE_MODULE
            if self.project.module(self.file, "modeling_utils", level) is not None:
                return None
        if levels:
            return "." * levels[0] + _BASE_MODULE
        absolute = f"transformers.{_BASE_MODULE}"
        if self.project.module(self.file, absolute, 0) is None:
            in_library = self.project.module(self.file, "transformers.modeling_utils", 0) is not None
            return None if in_library else absolute
        return absolute

    @cached_property
    def gradients(self) -> Gradients:
        """Where what is passed to blocks comes from."""
        callers = Callers(self.project, self.module, lambda: self.run_sites)
        return Gradients(callers, self.project.settings.given(ACTIVATION_NAMES) or ())

    @cached_property
    def run_sites(self) -> tuple[RunSite, ...]:
        """The calls in the file that run an object of a class of the project."""
        return self._sites(self._holding_attributes)

    @cached_property
    def _holding_attributes(self) -> frozenset[str]:
        classes = self.module.classes.values()
        return frozenset(name for info in classes for name in holding_attributes(info))

    def sites_running(self, names: Collection[str]) -> tuple[RunSite, ...]:
        """Return the run sites, and the calls of single objects of the classes with these ``names``."""
        single = frozenset(single_attributes(self.module, names))
        if single <= self._holding_attributes:
            return self.run_sites
        return self._sites(self._holding_attributes | single)

    def _sites(self, names: frozenset[str]) -> tuple[RunSite, ...]:
        if not names:
            return ()
        classes = self.module.classes.values()
        holders = Holders(names, accessors(self.module, names))
        uses = attribute_uses(self.module, holders.attributes | holders.accessors)
        sites: list[RunSite] = []
        for info in classes:
            for method in info.methods():
                if method.name != "__init__" and any_between(uses, method.header, method.limit):
                    sites.extend(run_sites(info.scope(method), holders))
        return tuple(sites)

    @cached_property
    def unprotected_blocks(self) -> tuple[UnprotectedBlock, ...]:
        """The blocks run in this file that should be checkpointing layers, in the order of the text."""
        checkpointed: dict[ClassInfo, list[RunSite]] = {}
        trunks: dict[ClassInfo, list[RunSite]] = {}
        for site in self.run_sites:
            for info in site.blocks:
                if _can_need_protection(info):
                    if site.checkpointed:
                        checkpointed.setdefault(info, []).append(site)
                    elif self._is_trunk_block(info, site):
                        trunks.setdefault(info, []).append(site)
        found = {info: sites + trunks.get(info, []) for info, sites in checkpointed.items()}
        for info, sites in trunks.items():
            outermost = [site for site in sites if not self._is_inside(site.owner, checkpointed, trunks)]
            if outermost and info not in found and not self._holds_layers(info, checkpointed):
                found[info] = outermost
        blocks = [
            UnprotectedBlock(info, tuple(sites))
            for info, sites in found.items()
            # A checkpointed call is the model's own word that it supports checkpointing.
            if any(site.checkpointed or supports_checkpointing(site.owner) for site in sites)
        ]
        if not blocks or self.checkpointing_module is None:
            return ()
        return tuple(
            sorted(blocks, key=lambda block: (block.info.file is not self.file, block.info.definition.start))
        )

    @staticmethod
    def _is_trunk_block(info: ClassInfo, site: RunSite) -> bool:
        if not site.is_trunk or not mixes_sequence(info) or is_named_as_mixer(info):
            return False
        # What has to fill a cache in training cannot be run twice: no checkpointing is as it must be.
        return not fills_cache(site, info) and requires_cache(info) is None

    def _is_inside(self, owner: ClassInfo, *blocks: dict[ClassInfo, list[RunSite]]) -> bool:
        """Tell whether a class that runs blocks is recomputed itself, as a block or a part of one."""
        outer = {info for group in blocks for info in group}
        outer.update(info for info in self.module.classes.values() if info.is_checkpointing)
        return any(owner in info.all_parts for info in outer)

    @staticmethod
    def _holds_layers(info: ClassInfo, checkpointed: dict[ClassInfo, list[RunSite]]) -> bool:
        """Tell whether a class is a stage whose own layers are checkpointed."""
        return any(
            part.is_checkpointing or (part in checkpointed and not is_named_as_mixer(part))
            for part in info.all_parts
            if part is not info
        )


def _can_need_protection(info: ClassInfo) -> bool:
    return not info.is_checkpointing and info.resolved and not info.is_model
