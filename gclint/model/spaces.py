"""The modules of a project: their trees, and what their names may be."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

from gclint.code.file import SourceFile
from gclint.code.packages import LIBRARY
from gclint.code.project import Project
from gclint.model import known
from gclint.model.frames import Frame
from gclint.model.notes import Kind, Root
from gclint.model.reading import Members
from gclint.model.star_imports import Bindings, NameGiven, StarImports, bindings_of
from gclint.model.usage import Usage, usage_of
from gclint.model.values import (
    NEVER,
    Attributes,
    Box,
    Class,
    External,
    Imported,
    Module,
    Object,
    Value,
    join,
    of,
    unknown,
)

if TYPE_CHECKING:
    from gclint.model.values import Call

Targets: TypeAlias = "dict[ast.AST, set[ast.ClassDef | str]]"
"""The classes of what has an attribute, by the place in the code; words for what is not known."""


Search: TypeAlias = "Callable[[Space, frozenset[ast.AST] | None], Spaces]"


class Spaces:
    """The modules of a project that were read, each once."""

    def __init__(self, project: Project, follow: Callable[[Space], None], search: Search) -> None:
        """Describe the current files of ``project``.

        Args:
            project: the files.
            follow: follows the statements of a module.
            search: follows functions of a module with any arguments, all of them or only certain ones, and
                returns the modules, which then know what was found.
        """
        self.project = project
        self.follow = follow
        self.search = search
        self._spaces: dict[SourceFile, Space] = {}
        self.boxes: dict[tuple[ast.AST, str], Box] = {}
        """The containers, by the place where they are made."""
        self.targets: Targets = {}
        """What was followed has, or gets, the attribute that stands at a place."""
        self.given: dict[ast.AST, Value] = {}
        """What attributes are set to, by the place."""
        self.thrown = Box("an error")
        """What errors that are raised hold."""
        self.hooked = Members()
        """The classes whose methods register hooks."""
        self.all_names_used: dict[ast.AST, frozenset[str] | None] = {}
        """The names under which attributes are read by ``getattr``, by its place; None for any."""
        self.objects: dict[tuple[Class, Call | None], Object] = {}
        self.classes: dict[tuple[ast.ClassDef, Frame | None], Class] = {}
        """The classes, by their definitions and the frames of functions around them."""
        self.members: dict[Class, dict[str, Value]] = {}
        self.defaults: dict[tuple[ast.AST, Frame], Attributes] = {}
        """The default values of inner functions, by their definitions and the frames around them."""
        self.frames: list[Frame] = []
        """Those of all functions that were entered."""
        self.asked: dict[str, dict[Space, NameGiven | None]] = {}
        """What modules with star imports give for the names that are being looked up; None, if that is not
        known yet."""
        self.circular: set[str] = set()
        """Those of these names for which star imports have led back to where they came from."""
        self.version = 0
        """How often it has become known that something may be more than what was read before."""
        self.epoch = 0
        """The same, of what is read so often that nobody takes note of it."""

    def of(self, file: SourceFile) -> Space:
        """Return the module of a file."""
        found = self._spaces.get(file)
        if found is None:
            found = self._spaces[file] = Space(self, file)
        return found

    @property
    def size(self) -> int:
        """How many modules were read so far, with those that were read in order to follow one of them."""
        return sum(1 + sum(each.size for each in space.readings()) for space in self._spaces.values())

    def begin_epoch(self) -> None:
        """Take note that something global may be more than was known before."""
        self.epoch += 1
        self.version += 1

    def forget(self) -> None:
        """Let go of all that was followed: it holds on to itself, and nothing collects that during a run."""
        for space in self._spaces.values():
            space.forget()
        for thing in self.objects.values():
            thing.attributes.clear()
        for box in self.boxes.values():
            box.clear()
        for frame in self.frames:
            frame.clear()
        for defaults in self.defaults.values():
            defaults.clear()
        for held in vars(self).values():
            if isinstance(held, (dict, list)):
                held.clear()
        self.defaults.clear()


class Space:
    """A module."""

    def __init__(self, spaces: Spaces, file: SourceFile) -> None:
        """Parse ``file``; a text that is not Python defines nothing that is known."""
        self.spaces = spaces
        self.file = file
        self._kept = file.tree
        """Held as long as values name its nodes, which another tree of the same text would not have."""
        self.tree = None if self._kept is None else self._kept.module
        self.frame = Frame(self, outlives=True)
        self.is_run = False
        self.is_complete = False
        """Whether it was followed to its end."""
        self.stars = StarImports(self)
        self._resolved: dict[Imported, Value] = {}
        self._readings: dict[object, Spaces] = {}

    @cached_property
    def usage(self) -> Usage:
        """What the code does with names and attributes, which only matters for what is noted."""
        return Usage(None) if self._kept is None else usage_of(self._kept)

    def forget(self) -> None:
        """Let go of the tree, and of all that was followed."""
        self._kept = self.tree = None
        self.usage = Usage(None)
        self.frame.clear()
        self.stars.forget()
        self._resolved.clear()
        for reading in self.readings():
            reading.forget()
        self._readings.clear()

    def readings(self) -> Iterable[Spaces]:
        """Return what was read in order to follow the module."""
        return self._readings.values()

    @cached_property
    def bindings(self) -> Bindings:
        """Where the text binds names."""
        return Bindings(ast.Module([], [])) if self._kept is None else bindings_of(self._kept)

    def own(self, name: str) -> Value | None:
        """Return what a module-level name may be if no star import counts; None if there is none."""
        if not self.is_run:
            self.is_run = True
            self.spaces.follow(self)
            self.is_complete = True
        return self.frame.names.get(name)

    def given(self, name: str) -> NameGiven:
        """Return what a module-level name may be, and whether the module has it whatever happens."""
        own = self.own(name)
        found = NameGiven(own, own is not None and name in self.bindings.last)
        return self.stars.given(name, found) if self.stars else found

    def value(self, name: str) -> Value | None:
        """Return what a module-level name may be; None if there is none, or that is not known."""
        return self.given(name).value if self.stars else self.own(name)

    def names_used(self, node: ast.AST) -> frozenset[str] | None:
        """Return the names under which a call reads attributes; None for any."""
        return self.reading_by_name.all_names_used.get(node)

    def offset(self, node: ast.AST) -> int:
        """Return where a node begins in the text, in characters."""
        return self.file.places.offset(getattr(node, "lineno", 1), getattr(node, "col_offset", 0))

    def class_node(self, name: str) -> ast.ClassDef | None:
        """Return the definition of a class of the module; None if there is not exactly one."""
        found = [each for each in (self.value(name) or NEVER).things if isinstance(each, Class)]
        return found[0].node if len(found) == 1 else None

    def names(self) -> Iterable[str]:
        """Return the names of the module."""
        self.own("")
        return self.frame.names

    def resolve(self, imported: Imported) -> Value:
        """Return what is imported."""
        found = self._resolved.get(imported)
        if found is None:
            self._resolved[imported] = unknown(f"`{imported.name or imported.module}`")
            found = self._resolve(imported)
            inner = [each for each in found.things if isinstance(each, Imported)]
            if inner:
                found = Value(found.things.difference(inner), found.roots)
                found = join((found, *(each.space.resolve(each) for each in inner)))
            self._resolved[imported] = found
        return found

    def _resolve(self, imported: Imported) -> Value:
        name = self.absolute(imported)
        full = ".".join(filter(None, (name, imported.name)))
        space = None if full in known.ALL else self.source(imported)
        if space is None:
            return of(External(full))
        if imported.name is None:
            return of(Module(space), roots=(Root(Kind.GLOBAL, full),))
        found = space.value(imported.name)
        if found is None:
            inner = ".".join(filter(None, (imported.module, imported.name)))
            part = self.spaces.project.module(self.file, inner, imported.level)
            if part is not None:
                return of(Module(self.spaces.of(part)), roots=(Root(Kind.GLOBAL, full),))
        return found or unknown(f"`{imported.name}`")

    def source(self, imported: Imported) -> Space | None:
        """Return the module from which something is imported, if its code is followed."""
        name, project = self.absolute(imported), self.spaces.project
        if (self._is_of_library(name) and not self._is_of_model(name)) or self._is_of_neighbour(name):
            return None
        file = project.module(self.file, imported.module, imported.level)
        return None if file is None or file is self.file else self.spaces.of(file)

    def _is_of_library(self, name: str) -> bool:
        return name == LIBRARY or name.startswith(f"{LIBRARY}.")

    def _is_of_model(self, name: str) -> bool:
        """Tell whether a module of the library defines a model, and does not only find one by its name."""
        return name.startswith(f"{LIBRARY}.models.") and name.split(".")[2] != known.REGISTRY

    def _is_of_neighbour(self, name: str) -> bool:
        """Tell whether a module is of another package that is installed where this one is."""
        project = self.spaces.project
        return project.is_context(self.file.path) and not self._is_of_library(name)

    def absolute(self, imported: Imported) -> str:
        """Return the full name of a module that is imported, as far as it can be known."""
        if not imported.level:
            return imported.module
        home = self.spaces.project.home(self.file)
        if home is None:
            return imported.module
        try:
            folders = self.spaces.project.location(self.file.path).relative_to(home.folder).parts[:-1]
        except ValueError:
            return imported.module
        kept = (LIBRARY, *folders)[: len(folders) + 2 - imported.level]
        return ".".join(filter(None, (*kept, imported.module)))

    @property
    def targets(self) -> Targets:
        """What has the attributes that running code reads and assigns."""
        return self.reading.targets

    @property
    def reading(self) -> Spaces:
        """What is known if all of the module's functions are followed, with any arguments."""
        return self._reading(None, lambda: None)

    @property
    def reading_by_name(self) -> Spaces:
        """The same, if only what leads to where names of attributes are computed is followed."""
        return self._reading("", lambda: self.usage.leading_to_names)

    def targets_at(self, nodes: tuple[ast.AST, ...]) -> Targets:
        """Return what has attributes at some places, if only those functions are followed that lead there."""
        return self._reading(nodes, lambda: self.usage.leading_to(nodes)).targets

    def _reading(self, key: object, leading: Callable[[], frozenset[ast.AST] | None]) -> Spaces:
        if key not in self._readings:
            self._readings[key] = self.spaces.search(self, leading())
        return self._readings[key]
