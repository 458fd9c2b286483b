"""The modules of a project: their trees, and what their names may be."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

from gclint.model import known
from gclint.model.frames import Frame
from gclint.model.names import names
from gclint.model.notes import Kind, Root
from gclint.model.values import NEVER, Box, Class, External, Module, Object, Value, join, of, unknown
from gclint.source.file import SourceFile, of_text
from gclint.source.packages import LIBRARY
from gclint.source.project import Project

if TYPE_CHECKING:
    from gclint.model.values import Call

_SETTERS = frozenset(
    ("setattr", "__setattr__", "register_buffer", "register_parameter", "register_module", "add_module")
)
_SETTING_UP = frozenset(("__init__", "__post_init__", "_init_weights", "reset_parameters", "__setstate__"))
_RUNNING = names(
    """
    forward backward __call__ __enter__ __exit__ __getitem__ __setitem__ __getattr__ __get__ __set__
    __iter__ __next__ __del__
    """
)
READING_BY_NAME = frozenset(("getattr", "attrgetter", "methodcaller", "__getattribute__"))
"""The functions that read attributes whose names are computed."""
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_NAMESPACES = frozenset(("globals", "vars", "exec", "eval", "locals", "__import__", "delattr"))
_NAMESPACE_ATTRIBUTES = frozenset(
    ("__dict__", "__class__", "__setattr__", "__bases__", "__code__", "__defaults__")
)
_KNOWN = (
    known.FUNCTIONS
    | known.COMPUTING
    | known.TABLES
    | known.MAKERS
    | known.MODULES
    | known.DECORATORS
    | known.MODULE_BASES
    | known.OTHER_BASES
    | known.LOGGERS
)


Targets: TypeAlias = "dict[ast.AST, set[ast.ClassDef | str]]"
"""The classes of what has an attribute, by the place in the code; words for what is not known."""


Search: TypeAlias = "Callable[[Space, frozenset[ast.AST] | None], Spaces]"


@dataclass(frozen=True)
class Imported:
    """A name that an import statement binds."""

    module: str
    level: int
    name: str | None
    """None for the module itself."""
    space: Space


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
        self.hooked: set[ast.ClassDef] = set()
        """The classes whose methods register hooks."""
        self.all_names_used: dict[ast.AST, frozenset[str] | None] = {}
        """The names under which attributes are read by ``getattr``, by its place; None for any."""
        self.objects: dict[tuple[Class, Call | None], Object] = {}
        self.members: dict[Class, dict[str, Value]] = {}
        self.version = 0
        """How often it has become known that something may be more than was known before."""

    def of(self, file: SourceFile) -> Space:
        """Return the module of a file."""
        found = self._spaces.get(file)
        if found is None:
            found = self._spaces[file] = Space(self, file)
        return found

    def read(self) -> Iterator[Space]:
        """Yield the modules that were read so far."""
        yield from self._spaces.values()


class Space:
    """A module."""

    def __init__(self, spaces: Spaces, file: SourceFile) -> None:
        """Parse ``file``; a text that is not Python defines nothing that is known."""
        self.spaces = spaces
        self.file = file
        self.tree = tree_of(file)
        self.frame = Frame(self, outlives=True)
        self.is_run = False
        self.stars: list[Imported] = []
        self._resolved: dict[Imported, Value] = {}
        self._targets_at: dict[tuple[ast.AST, ...], Targets] = {}

    def value(self, name: str) -> Value | None:
        """Return what a module-level name may be; None if there is none."""
        if not self.is_run:
            self.is_run = True
            self.spaces.follow(self)
        return self.frame.names.get(name)

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
        self.value("")
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
        name = self._absolute(imported)
        full = ".".join(filter(None, (name, imported.name)))
        if full in _KNOWN or (self._is_of_library(name) and not name.startswith(f"{LIBRARY}.models.")):
            return of(External(full))
        project = self.spaces.project
        if self._is_of_neighbour(name):
            return of(External(full))
        file = project.module(self.file, imported.module, imported.level)
        if file is None or file is self.file:
            return of(External(full))
        space = self.spaces.of(file)
        if imported.name is None:
            return of(Module(space), roots=(Root(Kind.GLOBAL, full),))
        found = space.value(imported.name)
        if found is None:
            inner = ".".join(filter(None, (imported.module, imported.name)))
            part = project.module(self.file, inner, imported.level)
            if part is not None:
                return of(Module(self.spaces.of(part)), roots=(Root(Kind.GLOBAL, full),))
        return found or unknown(f"`{imported.name}`")

    def _is_of_library(self, name: str) -> bool:
        return name == LIBRARY or name.startswith(f"{LIBRARY}.")

    def _is_of_neighbour(self, name: str) -> bool:
        """Tell whether a module is of another package that is installed where this one is."""
        project = self.spaces.project
        return project.is_context(self.file.path) and not self._is_of_library(name)

    def _absolute(self, imported: Imported) -> str:
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

    @cached_property
    def stored(self) -> defaultdict[str, list[ast.AST]]:
        """Where code that a run may reach assigns attributes to what is made already, by their names."""
        return self._stores(self.running)

    @cached_property
    def set_up(self) -> defaultdict[str, list[ast.AST]]:
        """The same for all code: methods that somebody calls before the model is run, or between two runs."""
        return self._stores(None)

    def _stores(self, functions: frozenset[ast.AST] | None) -> defaultdict[str, list[ast.AST]]:
        found: defaultdict[str, list[ast.AST]] = defaultdict(list)
        for node, name in () if self.tree is None else _stores(self.tree, functions):
            found[name].append(node)
        return found

    @cached_property
    def targets(self) -> Targets:
        """What has the attributes that running code reads and assigns."""
        return self.reading.targets

    @cached_property
    def reading(self) -> Spaces:
        """What is known if all of the module's functions are followed, with any arguments."""
        return self.spaces.search(self, None)

    @cached_property
    def reading_by_name(self) -> Spaces:
        """The same, if only what leads to where names of attributes are computed is followed."""
        return self.spaces.search(self, frozenset() if self.tree is None else _leading_to_names(self.tree))

    def targets_at(self, nodes: tuple[ast.AST, ...]) -> Targets:
        """Return what has attributes at some places, if only those functions are followed that lead there."""
        if nodes not in self._targets_at:
            functions = frozenset() if self.tree is None else _leading_to(self.tree, set(nodes).__contains__)
            self._targets_at[nodes] = self.spaces.search(self, functions).targets
        return self._targets_at[nodes]

    @cached_property
    def loaded(self) -> defaultdict[str, list[tuple[ast.AST, ast.AST]]]:
        """Where attributes are read, or their names are texts, and in which function; but not to set up."""
        found: defaultdict[str, list[tuple[ast.AST, ast.AST]]] = defaultdict(list)
        waiting: list[tuple[ast.AST, ast.AST]] = [(self.tree, self.tree)] if self.tree is not None else []
        while waiting:
            node, function = waiting.pop()
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                if node.name in _SETTING_UP:
                    continue
                function = node
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                found[node.attr].append((node, function))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found[node.value].append((node, function))
            waiting += [(child, function) for child in ast.iter_child_nodes(node)]
        return found

    @cached_property
    def running(self) -> frozenset[ast.AST]:
        """The functions that a forward or a backward pass may run."""
        return frozenset() if self.tree is None else frozenset(_reached(self.tree))

    @cached_property
    def namespace(self) -> str | None:
        """What running code uses to assign names that cannot be known."""
        running = frozenset() if self.tree is None else _reached(self.tree, with_computed=False)
        return next((each for node in running for each in _namespaces(node)), None)

    @cached_property
    def rebound(self) -> frozenset[str]:
        """The module-level names that functions assign."""
        nodes = () if self.tree is None else ast.walk(self.tree)
        return frozenset(
            name for node in nodes if isinstance(node, (ast.Global, ast.Nonlocal)) for name in node.names
        )

    @cached_property
    def touched(self) -> frozenset[str]:
        """The names that are used in another way than to read something from them."""
        return frozenset() if self.tree is None else frozenset(_touched(self.tree))


@of_text
def tree_of(file: SourceFile) -> ast.Module | None:
    """Return the tree of a file, which stays as long as the file; None if Python cannot parse it."""
    return None if file.tree is None else file.tree.module


def _reached(tree: ast.Module, *, with_computed: bool = True) -> set[ast.AST]:
    """Return the functions that running a model may run, by their names, or because something holds them.

    Args:
        tree: the module.
        with_computed: whether a name that is put together may be that of any function.
    """
    functions: dict[str, list[ast.AST]] = {}
    waiting: list[ast.AST] = []
    held = set[str]()
    for node, is_setting_up in _with_place(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            functions.setdefault(node.name, []).append(node)
            if node.name in _RUNNING:
                waiting.append(node)
        elif isinstance(node, ast.Call):
            if "hook" in _last(node.func):
                waiting.append(node)
        elif is_setting_up and isinstance(node, (ast.Name, ast.Attribute)):
            held.add(_last(node))
    for name in held:
        waiting += [each for each in functions.get(name, ()) if each not in waiting]
    running = set(waiting)
    named = set[str]()
    while waiting:
        for node in ast.walk(waiting.pop()):
            if with_computed and _names_any(node):
                return {each for several in functions.values() for each in several}
            name = _last(node) if isinstance(node, (ast.Name, ast.Attribute)) else ""
            if name and name not in named and name not in _SETTING_UP:
                named.add(name)
                new = set(functions.get(name, ())) - running
                running |= new
                waiting += new
    return running


def _with_place(tree: ast.Module) -> Iterator[tuple[ast.AST, bool]]:
    """Yield all nodes, and whether they are names in code that sets up, where nothing calls them at once."""
    waiting: list[tuple[ast.AST, bool]] = [(tree, True)]
    while waiting:
        node, is_setting_up = waiting.pop()
        yield node, is_setting_up
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            is_setting_up = getattr(node, "name", "") in _SETTING_UP
        called = node.func if isinstance(node, ast.Call) else None
        waiting += [(each, is_setting_up and each is not called) for each in ast.iter_child_nodes(node)]


def _names_any(node: ast.AST) -> bool:
    """Tell whether a node gets an attribute whose name is put together."""
    if not (isinstance(node, ast.Call) and _last(node.func) == "getattr" and len(node.args) > 1):
        return False
    holder = node.args[0]
    return not isinstance(node.args[1], ast.Constant) and isinstance(holder, ast.Name) and holder.id == "self"


def _leading_to_names(tree: ast.Module) -> frozenset[ast.AST]:
    """Return the functions that compute names of attributes, and those that may call one."""
    return _leading_to(
        tree,
        lambda node: isinstance(node, (ast.Name, ast.Attribute)) and _last(node) in READING_BY_NAME,
    )


def _leading_to(tree: ast.Module, is_wanted: Callable[[ast.AST], bool]) -> frozenset[ast.AST]:
    """Return the functions that contain certain nodes, and those that may call one, by their names."""
    nodes = list(ast.walk(tree))
    words = {each: _mentioned(each) for each in nodes if isinstance(each, _FUNCTIONS)}
    classes = frozenset(each.name for each in nodes if isinstance(each, ast.ClassDef))
    found: set[ast.AST] = {each for each in words if any(map(is_wanted, ast.walk(each)))}
    waiting, done = set(found), set[ast.AST]()
    while waiting:
        function = waiting.pop()
        done.add(function)
        name = getattr(function, "name", "")
        if name.startswith("__") and name != "__init__":
            return frozenset(words)  # It is called without its name.
        calling = {name} if name != "__init__" else {name, *classes}
        found |= {each for each in words if not words[each].isdisjoint(calling)}
        waiting |= found - done
    return frozenset(found)


def _mentioned(node: ast.AST) -> frozenset[str]:
    return frozenset(_last(each) for each in ast.walk(node) if isinstance(each, (ast.Name, ast.Attribute)))


def _last(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _stores(tree: ast.Module, functions: frozenset[ast.AST] | None) -> Iterator[tuple[ast.AST, str]]:
    """Yield where attributes are assigned, with their names, but for those that a method sets up on its own.

    Args:
        tree: the module.
        functions: the functions in which this counts; None for all of the module.
    """
    waiting: list[tuple[ast.AST, str | None, bool]] = [(tree, None, functions is None)]
    while waiting:
        node, own, is_inside = waiting.pop()
        is_inside = is_inside or (functions is not None and node in functions)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            first = [*node.args.posonlyargs, *node.args.args][:1]
            own = first[0].arg if first and node.name in _SETTING_UP else None
        if is_inside:
            yield from ((node, name) for name in _assigned(node, own))
        waiting += [(child, own, is_inside) for child in ast.iter_child_nodes(node)]


def _assigned(node: ast.AST, own: str | None) -> Iterator[str]:
    """Yield the attribute that a node assigns to something else than what has this name."""
    if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
        if not (isinstance(node.value, ast.Name) and node.value.id == own):
            yield node.attr
    elif isinstance(node, ast.Call) and _last(node.func) in _SETTERS:
        holder = node.func.value if isinstance(node.func, ast.Attribute) else None
        if isinstance(holder, ast.Name) and holder.id == own:
            return
        names_given = [each.value for each in node.args[:2] if isinstance(each, ast.Constant)]
        yield from (each for each in names_given[:1] if isinstance(each, str))


def _namespaces(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in _NAMESPACES:
            yield node.id
        elif isinstance(node, ast.Attribute) and node.attr in _NAMESPACE_ATTRIBUTES:
            if node.attr != "__class__" or not isinstance(node.ctx, ast.Load):
                yield node.attr
        elif isinstance(node, ast.Attribute):
            if node.attr == "modules" and _last(node.value) == "sys":
                yield "sys.modules"
        elif isinstance(node, ast.Call) and _last(node.func) == "setattr" and not _has_literal_name(node):
            yield "setattr"


def _has_literal_name(node: ast.Call) -> bool:
    return len(node.args) > 1 and isinstance(node.args[1], ast.Constant)


def _touched(tree: ast.AST) -> Iterator[str]:
    """Yield the names that stand where more than an item may be read from what they are."""
    for node in ast.walk(tree):
        for child in ast.iter_child_nodes(node):
            if (isinstance(child, ast.Name) and not _only_reads(node, child)) or (
                isinstance(child, ast.Name)
                and isinstance(node, ast.Attribute)
                and node.attr not in known.READING_METHODS
            ):
                yield child.id


def _only_reads(node: ast.AST, name: ast.Name) -> bool:
    """Tell whether a node only reads an item of what a name is, or binds the name."""
    if isinstance(name.ctx, ast.Store):
        return not isinstance(node, ast.AugAssign)
    if isinstance(node, ast.Subscript):
        return node.slice is name or isinstance(node.ctx, ast.Load)
    if isinstance(node, (ast.For, ast.comprehension)):
        return node.iter is name
    return isinstance(node, (ast.Attribute, ast.Compare))
