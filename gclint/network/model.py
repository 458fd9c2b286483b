"""A file's network: the stacks in it, the blocks they are made of, and the calls that run them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from weakref import WeakKeyDictionary

from gclint.network.classes import ClassInfo, Library
from gclint.network.runsite import RunSite, run_sites
from gclint.network.support import supports_checkpointing
from gclint.network.traits import is_named_as_mixer, mixes_sequence
from gclint.network.values import Container, Instance, Value, Values
from gclint.source.file import SourceFile
from gclint.source.project import Project
from gclint.source.words import any_between

_LIBRARY_MODULES = frozenset(("modeling_utils", "modeling_outputs", "modeling_layers"))
_BASE_MODULE = "modeling_layers"
_LIBRARIES: WeakKeyDictionary[Project, tuple[int, Library]] = WeakKeyDictionary()


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
        generation, library = _LIBRARIES.get(project, (-1, None))
        if library is None or generation != project.generation:
            library = Library(project)
            _LIBRARIES[project] = (project.generation, library)
        self.library = library
        self.module = library.module(file)

    @cached_property
    def checkpointing_module(self) -> str | None:
        """The module that the file would import the base class from, with dots if relative.

        None inside a release of the library that has no such class yet.
        """
        imported = self.file.outline.imported.values()
        levels = sorted(
            {name.level for name in imported if name.level and name.module in _LIBRARY_MODULES},
            reverse=True,
        )
        for level in levels:
            if self.project.module(self.file, _BASE_MODULE, level) is not None:
                return "." * level + _BASE_MODULE
            if self.project.module(self.file, "modeling_utils", level) is not None:
                return None
        return "." * levels[0] + _BASE_MODULE if levels else f"transformers.{_BASE_MODULE}"

    @cached_property
    def run_sites(self) -> tuple[RunSite, ...]:
        """The calls in the file that run an object of a class of the project."""
        names = {name for info in self.module.classes.values() for name in self._holding_attributes(info)}
        if not names:
            return ()
        sites: list[RunSite] = []
        uses = self.module.attribute_uses(names)
        for info in self.module.classes.values():
            for method in info.methods():
                if method.name != "__init__" and any_between(uses, method.header, method.limit):
                    sites.extend(run_sites(info.scope(method), names))
        return tuple(sites)

    def _holding_attributes(self, info: ClassInfo) -> Iterator[str]:
        """Yield the attributes of a class that hold a stack, or a checkpointing layer alone."""
        if not info.is_module:
            return
        for base in info.mro:
            definition = base.definition
            checkpoints = base.module.checkpoints(definition.header, definition.limit)
            if not checkpoints and not base.module.makes_layers(definition.header, definition.limit):
                continue
            for name in self._assigned_attributes(info, base, checkpoints):
                if any(_may_run_blocks(value, checkpoints) for value in info.attribute(name)):
                    yield name

    @staticmethod
    def _assigned_attributes(info: ClassInfo, base: ClassInfo, checkpoints: bool) -> set[str]:
        """Return the attributes that a class's own methods assign where they make modules."""
        found: set[str] = set()
        for method in base.methods():
            all_of_it = checkpoints and method.name == "__init__"
            if not all_of_it and not base.module.makes_layers(method.header, method.limit):
                continue
            scope = info.scope(method, base.module)
            if scope.self_name is None or scope.body is None:
                continue
            prefix = scope.self_name + "."
            for piece in scope.body.pieces_between(_always if all_of_it else base.module.makes_layers):
                found |= {key[len(prefix) :] for key in piece.bindings if key.startswith(prefix)}
        return found

    @cached_property
    def unprotected_blocks(self) -> tuple[UnprotectedBlock, ...]:
        """The blocks run in this file that should be checkpointing layers, in the order of the text."""
        if self.checkpointing_module is None:
            return ()
        checkpointed: dict[ClassInfo, list[RunSite]] = {}
        trunks: dict[ClassInfo, list[RunSite]] = {}
        for site in self.run_sites:
            for info in site.blocks:
                if _can_need_protection(info):
                    if site.checkpointed:
                        checkpointed.setdefault(info, []).append(site)
                    elif site.is_trunk and mixes_sequence(info) and not is_named_as_mixer(info):
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
        return tuple(
            sorted(blocks, key=lambda block: (block.info.file is not self.file, block.info.definition.start))
        )

    def _is_inside(self, owner: ClassInfo, *blocks: dict[ClassInfo, list[RunSite]]) -> bool:
        """Tell whether a class that runs blocks is recomputed itself, as a block or a part of one."""
        outer = {info for group in blocks for info in group}
        outer.update(info for info in self.module.classes.values() if info.is_checkpointing)
        return any(owner in info.all_parts for info in outer)

    @staticmethod
    def _holds_layers(info: ClassInfo, checkpointed: dict[ClassInfo, list[RunSite]]) -> bool:
        """Tell whether a class is a stage whose own layers are checkpointed."""
        return any(
            part.is_checkpointing or part in checkpointed for part in info.all_parts if part is not info
        )


def _can_need_protection(info: ClassInfo) -> bool:
    return not info.is_checkpointing and info.resolved and not info.is_model


def _may_run_blocks(value: Value, checkpoints: bool) -> bool:
    """Tell whether calls of what an attribute holds can matter to a rule.

    Args:
        value: what the attribute holds.
        checkpoints: whether the class that holds it calls a checkpoint function by itself.
    """
    if isinstance(value, Instance):
        return value.info.is_module and (value.info.is_checkpointing or checkpoints)
    return isinstance(value, Container) and any(
        info.is_module and (info.is_checkpointing or checkpoints or mixes_sequence(info))
        for info in _held(value.items)
    )


def _always(_start: int, _end: int) -> bool:
    return True


def _held(values: Values) -> Iterator[ClassInfo]:
    for value in values:
        if isinstance(value, Container):
            yield from _held(value.items)
        elif isinstance(value, Instance):
            yield value.info
