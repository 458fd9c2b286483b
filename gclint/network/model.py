"""A file's network: the stacks in it, the blocks they are made of, and the calls that run them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

from gclint.code.candidates import may_train
from gclint.code.file import SourceFile
from gclint.code.likely import likely_imported
from gclint.code.packages import LIBRARY
from gclint.code.project import Project
from gclint.code.trainer_settings import are_settings
from gclint.code.tree import Tree
from gclint.copies.generated import is_modular
from gclint.model.scripts import PACKAGES, Script, script_of
from gclint.network.activation import ACTIVATION_NAMES
from gclint.network.base_class import BASE_MODULE, fallbacks
from gclint.network.callers import Callers
from gclint.network.evaluation.classes import CHECKPOINTING_BASE, ClassInfo, may_have
from gclint.network.evaluation.modules import library_of
from gclint.network.exclusion import (
    Exclusion,
    disqualified,
    needs_no_layer,
    outside_of_trunks,
    without_model,
)
from gclint.network.further_sites import foreign_sites, with_seen, with_substitutes
from gclint.network.gradient import Gradients
from gclint.network.holders import accessors, holding_attributes, single_attributes
from gclint.network.importers import words_in
from gclint.network.runsite import RunSite, run_sites
from gclint.network.search import Holders
from gclint.network.support import supports_checkpointing
from gclint.network.traits import is_named_as_mixer, mixes_sequence
from gclint.releases import Releases

_LIBRARY_MODULES = frozenset(("modeling_utils", "modeling_outputs", "modeling_layers"))


@dataclass(frozen=True)
class UnprotectedBlock:
    """A block that should be a checkpointing layer but is not, with the call sites that show it."""

    info: ClassInfo
    sites: tuple[RunSite, ...]

    @property
    def is_seen(self) -> bool:
        """Whether only a run has shown this."""
        return any(self.info in site.left_out for site in self.sites) and not any(
            site.checkpointed
            or (outside_of_trunks(self.info, site) is None and supports_checkpointing(site.owner))
            for site in self.sites
        )


class Network:
    """The meaning of a file's code for gradient checkpointing; everything is computed on first use."""

    def __init__(self, project: Project, file: SourceFile) -> None:
        """Describe ``file``; nothing is parsed until it is needed."""
        self.project = project
        self.file = file
        self.library = library_of(project)
        self.module = self.library.module(file)
        self.facts: dict[object, object] = {}
        self._tree: Tree | None = None
        """Held as long as call sites name its nodes, which another tree of the same text would not have."""

    @cached_property
    def releases(self) -> Releases:
        """The releases of transformers that the file may run with."""
        return self.project.releases(self.file)

    def is_of_other_release(self, info: ClassInfo) -> bool:
        """Return whether a class, or a base, is known from a release that the file does not run with."""
        trees = [each for each in (self.project.home(base.file) for base in info.mro) if each is not None]
        if self._imports_missing and any(each != self.project.home(self.file) for each in trees):
            return True
        found = filter(None, (each.releases for each in trees))
        return any(each.within(self.releases) is None for each in found)

    @cached_property
    def _imports_missing(self) -> bool:
        """Whether a model of the library that the file imports names of does not have one of them."""
        for statement in self.file.outline.imports:
            module = statement.module or ""
            if module.startswith(f"{LIBRARY}.") and statement.is_always_run:
                found = self.project.module(self.file, module, 0)
                names = {each.name or "" for each in statement.names}
                if found is not None and not names <= words_in(found) and found.path.stem != "__init__":
                    return True
        return False

    def only_known_release(self, info: ClassInfo) -> Releases | None:
        """Return the release that a class of the library is known from, if the file may run with others."""
        found = info.forward
        home = None if found is None else self.project.home(found[0].file)
        if home is None or home.releases is None or home == self.project.home(self.file):
            return None
        return None if self.releases.within(home.releases) == self.releases else home.releases

    @cached_property
    def script(self) -> Script | None:
        """What the file does if it is a script, and no modeling file; None if it trains nothing."""
        file = self.file
        is_script = are_settings(file.path) or (
            may_train(file.path.name, file.text) and not likely_imported(file).isdisjoint(PACKAGES)
        )
        return script_of(self.project, file) if is_script and file.tree is not None else None

    @cached_property
    def checkpointing_module(self) -> str | None:
        """The module to import the base class from, with leading dots if relative.

        None if the file belongs to a release of the library that has no such class yet.
        """
        imported = {(name.level, name.module) for name in self.file.outline.all_imported()}
        beside = sorted((each for each in imported if each[0] and each[1] in _LIBRARY_MODULES), reverse=True)
        for level, module in beside:
            is_at_hand = self.project.module(self.file, module, level) is not None
            if not is_at_hand or self._has_base_class(BASE_MODULE, level):
                return "." * level + BASE_MODULE
        absolute = f"{LIBRARY}.{BASE_MODULE}"
        tree = self.project.library(self.file)
        if tree is None or tree.is_context or self._has_base_class(absolute, 0):
            return absolute
        return None

    def _has_base_class(self, module: str, level: int) -> bool:
        """Return whether a module defines or imports the base class."""
        file = self.project.module(self.file, module, level)
        return file is not None and bool(self.library.module(file).lookup(CHECKPOINTING_BASE))

    @property
    def guards_base_class(self) -> bool:
        """Whether the file imports the base class, with a fallback for releases that do not have it."""
        return bool(fallbacks(self.module))

    @cached_property
    def gradients(self) -> Gradients:
        """The tracer of gradients in this file."""
        callers = Callers(self.project, self.module, self.run_sites)
        return Gradients(callers, self.project.settings.of(self.file.path).given(ACTIVATION_NAMES) or ())

    @cached_property
    def run_sites(self) -> tuple[RunSite, ...]:
        """The call sites in the file: calls that run an instance of a class of the project."""
        return self._sites(self.holding_attributes)

    @cached_property
    def holding_attributes(self) -> frozenset[str]:
        """The names of attributes in the file that hold blocks or stacks of them."""
        classes = self.module.classes.values()
        return frozenset(name for info in classes for name in holding_attributes(info))

    def sites_running(self, names: Collection[str]) -> tuple[RunSite, ...]:
        """Return the call sites, and the calls of single instances of the classes with these ``names``."""
        single = frozenset(single_attributes(self.module, names))
        if single <= self.holding_attributes:
            return self.run_sites
        return self._sites(self.holding_attributes | single)

    def _sites(self, names: frozenset[str]) -> tuple[RunSite, ...]:
        self._tree = self.file.tree
        if not names:
            return with_seen(self.module, ())
        holders = self._holders(names)
        words = (*holders.names, "getattr")
        sites: list[RunSite] = []
        for info in self.module.classes.values():
            for method in info.methods():
                if method.name != "__init__" and may_have(method, words):
                    sites.extend(run_sites(info.scope(method), holders))
        return with_seen(self.module, with_substitutes(self.module, sites, holders))

    def _holders(self, names: frozenset[str]) -> Holders:
        return Holders(names, accessors(self.module, names))

    @cached_property
    def foreign_sites(self) -> tuple[RunSite, ...]:
        """The call sites in other files that run blocks of this one, in methods that classes here inherit."""
        if not self.holding_attributes or is_modular(self.file.path):
            # The inherited code is written out in the file that is generated from a modular one.
            return ()
        return foreign_sites(self.module, self._holders(self.holding_attributes))

    @cached_property
    def unprotected_blocks(self) -> tuple[UnprotectedBlock, ...]:
        """The blocks run in this file that should be checkpointing layers, in the order of the text."""
        checkpointed, trunks = self._candidates
        found = {info: sites + trunks.get(info, []) for info, sites in checkpointed.items()}
        for info, sites in trunks.items():
            outermost = [site for site in sites if self._sheltered(info, site) is None]
            if outermost and info not in found:
                found[info] = outermost
        blocks = [
            UnprotectedBlock(info, tuple(sites))
            for info, sites in found.items()
            if any(self._unused(site) is None for site in sites)
        ]
        if not blocks or self.checkpointing_module is None:
            return ()
        return tuple(
            sorted(blocks, key=lambda block: (block.info.file is not self.file, block.info.definition.start))
        )

    @cached_property
    def _candidates(self) -> tuple[dict[ClassInfo, list[RunSite]], dict[ClassInfo, list[RunSite]]]:
        """The classes that checkpointed calls run, and the blocks of trunks, each with the call sites."""
        checkpointed: dict[ClassInfo, list[RunSite]] = {}
        trunks: dict[ClassInfo, list[RunSite]] = {}
        for site in (*self.run_sites, *self.foreign_sites):
            for info in site.blocks:
                if disqualified(info, site) is None:
                    if site.checkpointed:
                        checkpointed.setdefault(info, []).append(site)
                    elif needs_no_layer(info, site) is None:
                        trunks.setdefault(info, []).append(site)
        return checkpointed, trunks

    def exclusion(self, info: ClassInfo, site: RunSite) -> Exclusion | None:
        """Return why a class that a call runs is not an unprotected block; None if it is."""
        found = disqualified(info, site)
        if found is None and not site.checkpointed:
            found = needs_no_layer(info, site) or self._sheltered(info, site)
        found = found or self._unused(site)
        if found is None and self.checkpointing_module is None:
            return Exclusion.NO_BASE_CLASS
        return found

    def reasons(self, info: ClassInfo, sites: Collection[RunSite]) -> tuple[str, ...]:
        """Return why a class, which ``sites`` may run, is not an unprotected block; nothing if it is one."""
        if any(block.info is info for block in self.unprotected_blocks):
            return ()
        if not info.is_module:
            return () if info.resolved else (Exclusion.UNKNOWN_BASE.of(info, None),)
        found = [(self.exclusion(info, site), site) for site in sites if info in site.blocks]
        words = [exclusion.of(info, site) for exclusion, site in found if exclusion is not None]
        # Calls of lists of such classes are not examined, so they are not among the call sites.
        if not info.is_checkpointing and info.resolved and not mixes_sequence(info):
            words.append(Exclusion.NO_MIXER.of(info, None))
        if not found:
            if info.is_checkpointing:
                words.append(Exclusion.LAYER.of(info, None))
            words.append(f"no call in this file runs `{info.name}` as part of a stack")
        return tuple(dict.fromkeys(words))

    def _sheltered(self, info: ClassInfo, site: RunSite) -> Exclusion | None:
        """Return why a block of a trunk is not needed: something around or inside it is checkpointed."""
        # What runs blocks may itself be recomputed, as a block or a part of one.
        layers = (info for info in self.module.classes.values() if info.is_checkpointing)
        if any(site.owner in info.all_parts for info in {*layers, *chain(*self._candidates)}):
            return Exclusion.WITHIN_BLOCK
        return Exclusion.HOLDS_LAYERS if self._holds_layers(info, self._candidates[0]) else None

    def _unused(self, site: RunSite) -> Exclusion | None:
        """Return why checkpointing cannot be enabled for a call, or is done around it."""
        found = without_model(site)
        # The call may be in a block, stacked elsewhere in the file, that checkpoints one part.
        if found is None and site.checkpointed and not site.loops:
            is_inside = any(site.owner in info.all_parts for info in self._stacked)
            return Exclusion.WITHIN_BLOCK if is_inside else None
        return found

    @cached_property
    def _stacked(self) -> frozenset[ClassInfo]:
        """The classes that loops run, and the checkpointing layers in the file."""
        layers = {info for info in self.module.classes.values() if info.is_checkpointing}
        return frozenset(layers.union(*(site.blocks for site in self.run_sites if site.loops)))

    @staticmethod
    def _holds_layers(info: ClassInfo, checkpointed: dict[ClassInfo, list[RunSite]]) -> bool:
        """Return whether a class is a stage whose own layers are checkpointed."""
        return any(
            part.is_checkpointing or (part in checkpointed and not is_named_as_mixer(part))
            for part in info.all_parts
            if part is not info
        )
