"""What the code of a module does with names and attributes, whatever they turn out to be."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Collection, Iterator
from functools import cached_property
from typing import TypeAlias

from gclint.code.names import names
from gclint.code.remembered import remembered
from gclint.code.tree import Tree
from gclint.code.walk import children, last_name, walk
from gclint.model import known

READING_BY_NAME = frozenset(("getattr", "attrgetter", "methodcaller", "__getattribute__"))
"""The functions that read attributes whose names are computed."""
FILLING = known.FILLING_METHODS | known.TAKING_METHODS | names("register __delitem__ __iadd__ __setitem__")
"""The methods by which a container gets or loses items."""
SETTERS = frozenset(
    ("setattr", "__setattr__", "register_buffer", "register_parameter", "register_module", "add_module")
)
_SETTING = frozenset(("setattr", "delattr"))
_SETTING_UP = frozenset(("__init__", "__post_init__", "_init_weights", "reset_parameters", "__setstate__"))
_RUNNING = names(
    """
    forward backward __call__ __enter__ __exit__ __getitem__ __setitem__ __getattr__ __get__ __set__
    __iter__ __next__ __del__
    """
)
_NAMESPACES = frozenset(("globals", "vars", "exec", "eval", "locals", "__import__", "delattr"))
_NAMESPACE_ATTRIBUTES = frozenset(
    ("__dict__", "__class__", "__setattr__", "__bases__", "__code__", "__defaults__")
)
_NAMING_ANY = _NAMESPACES | _NAMESPACE_ATTRIBUTES | {"modules"}
_OF_MODULES = frozenset(("globals", "exec", "eval", "modules"))
"""What has the names of a module: of a namespace, these last names."""
_OF_CODE = frozenset(("__code__", "__defaults__", "__kwdefaults__"))
"""Attributes by which a function becomes another one."""
_OF_TENSORS = frozenset(("register_hook", "register_post_accumulate_grad_hook"))
_LOOKING_UP = frozenset(("getattr", "hasattr", "isinstance", "issubclass", "print", "warn", "warning_once"))
_METHODS = (ast.FunctionDef, ast.AsyncFunctionDef)
_FUNCTIONS = (*_METHODS, ast.Lambda)

Stores: TypeAlias = "dict[str, list[ast.AST]]"
_Around: TypeAlias = "tuple[ast.AST, ...]"


class Usage:
    """What the code of a module mentions and assigns, with the functions where it does; read once."""

    def __init__(self, tree: ast.Module | None) -> None:
        """Read a tree; None is a text that the running Python cannot parse."""
        self.tree = tree
        self.touched = set[str]()
        """The names that are used in another way than to read something from them."""
        self.rebound = set[str]()
        """The module-level names that functions assign."""
        self._words: dict[ast.AST, set[str]] = {}
        """What functions, and calls that register hooks, mention."""
        self._by_name: defaultdict[str, list[ast.AST]] = defaultdict(list)
        self._classes = set[str]()
        self._begun: list[ast.AST] = []
        """What is run by its name or position alone."""
        self._held = set[str]()
        """What code that sets up mentions, without calling it at once."""
        self._computing = set[ast.AST]()
        """The functions that get an attribute of ``self`` whose name is put together."""
        self.replacing: list[ast.AST] = []
        """What may replace something in what a name is, or tells by name what to replace."""
        self.hooking: list[ast.AST] = []
        """What names something that hooks into modules."""
        self._stores: list[tuple[ast.AST, str, _Around]] = []
        self._namespaces: list[tuple[ast.AST, _Around]] = []
        if tree is not None:
            self._read(tree)

    def _read(self, tree: ast.Module) -> None:
        waiting: list[tuple[ast.AST, _Around, bool, str | None]] = [(tree, (), True, None)]
        while waiting:
            node, around, is_setting_up, own = waiting.pop()
            # Most nodes are of these two kinds, which have nothing below them.
            if isinstance(node, ast.Name):
                self._read_name(node, around, own, is_setting_up=is_setting_up)
                continue
            if isinstance(node, ast.Constant):
                if isinstance(node.value, str) and "hook" in node.value and _hooks(node.value):
                    self.hooking.append(node)
                continue
            called = None
            if isinstance(node, ast.Attribute):
                self._read_name(node, around, own, is_setting_up=is_setting_up)
            elif isinstance(node, _FUNCTIONS):
                name = getattr(node, "name", "")
                is_setting_up = name in _SETTING_UP
                if isinstance(node, _METHODS):
                    own = _first_parameter(node) if is_setting_up else None
                    self._by_name[name].append(node)
                    self._begun += [node] if name in _RUNNING else []
                around = self._within(node, around)
            elif isinstance(node, ast.Subscript):
                if not isinstance(node.ctx, ast.Load):
                    self.replacing.append(node)
            elif isinstance(node, ast.AugAssign):
                self.replacing += [node] if isinstance(node.target, ast.Name) else []
            elif isinstance(node, ast.Call):
                called = node.func
                around = self._read_call(node, around, own)
            elif isinstance(node, ast.ClassDef):
                self._classes.add(node.name)
            elif isinstance(node, (ast.Global, ast.Nonlocal)):
                self.rebound.update(node.names)
            for child in children(node):
                if isinstance(child, ast.Name) and _may_touch(node, child):
                    self.touched.add(child.id)
                    if child.id in _SETTING and child is not called:
                        self.replacing.append(child)
                waiting.append((child, around, is_setting_up and child is not called, own))

    def _read_name(
        self, node: ast.Name | ast.Attribute, around: _Around, own: str | None, *, is_setting_up: bool
    ) -> None:
        name = last_name(node)
        if "hook" in name and _hooks(name):
            self.hooking.append(node)
        if is_setting_up:
            self._held.add(name)
        for each in around:
            self._words[each].add(name)
        if isinstance(node, ast.Attribute):
            if not isinstance(node.ctx, ast.Load):
                self.replacing.append(node)
                if not (isinstance(node.value, ast.Name) and node.value.id == own):
                    self._stores.append((node, name, around))
            if name in _OF_CODE:
                self.rebound.add(last_name(node.value))
        if name in _NAMING_ANY and _is_namespace(node):
            self._namespaces.append((node, around))

    def _read_call(self, node: ast.Call, around: _Around, own: str | None) -> _Around:
        """Read a call, and return what its parts stand in."""
        name = last_name(node.func)
        if name not in _LOOKING_UP and _may_replace(node):
            self.replacing.append(node)
        if "hook" in name:
            self._begun.append(node)
            around = self._within(node, around)
        if name in SETTERS:
            self._stores += ((node, each, around) for each in _assigned(node, own))
            if name == "setattr" and not _has_literal_name(node):
                self._namespaces.append((node, around))
        elif name == "getattr" and _names_any(node):
            self._computing.update(around)
        return around

    def _within(self, node: ast.AST, around: _Around) -> _Around:
        self._words[node] = set()
        return (*around, node)

    @cached_property
    def set_up(self) -> Stores:
        """Where attributes of what is made already are assigned, by their names.

        This may be between two runs, or before the model is run.
        """
        return _by_name((node, name) for node, name, _ in self._stores)

    @cached_property
    def stored(self) -> Stores:
        """The same, where a run may reach it."""
        running = self._reached(with_computed=True)
        return _by_name((node, name) for node, name, around in self._stores if not running.isdisjoint(around))

    @property
    def names_attributes(self) -> bool:
        """Whether any code assigns attributes whose names cannot be known."""
        return any(last_name(node) not in _OF_MODULES for node, _ in self._namespaces)

    def may_rebind(self, name: str) -> bool:
        """Tell whether functions may assign a name of the module."""
        return name in self.rebound or self.has_namespace

    @cached_property
    def has_namespace(self) -> bool:
        """Whether running code assigns names that cannot be known, or any code those of the module."""
        running = self._reached(with_computed=False)
        return any(
            _is_of_module(node, around) or not running.isdisjoint(around) for node, around in self._namespaces
        )

    def _reached(self, *, with_computed: bool) -> set[ast.AST]:
        """Return what a forward or backward pass may run, by its names, or because something holds it.

        Args:
            with_computed: whether a name that is put together may be that of any function.
        """
        waiting = [*self._begun, *(each for name in self._held for each in self._by_name.get(name, ()))]
        running, named = set(waiting), set[str]()
        while waiting:
            function = waiting.pop()
            if with_computed and function in self._computing:
                return {each for several in self._by_name.values() for each in several}
            for name in self._words[function] - named - _SETTING_UP:
                named.add(name)
                new = [each for each in self._by_name.get(name, ()) if each not in running]
                running.update(new)
                waiting += new
        return running

    @cached_property
    def loaded(self) -> defaultdict[str, list[tuple[ast.AST, ast.AST]]]:
        """Where attributes are read, or their names are texts, and in which function; but not to set up."""
        found: defaultdict[str, list[tuple[ast.AST, ast.AST]]] = defaultdict(list)
        waiting: list[tuple[ast.AST, ast.AST]] = [] if self.tree is None else [(self.tree, self.tree)]
        while waiting:
            node, function = waiting.pop()
            if isinstance(node, _METHODS):
                if node.name in _SETTING_UP:
                    continue
                function = node
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                found[node.attr].append((node, function))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found[node.value].append((node, function))
            waiting += [(child, function) for child in children(node)]
        return found

    @cached_property
    def leading_to_names(self) -> frozenset[ast.AST]:
        """The functions that compute names of attributes, and those that may call one."""
        return self._leading_to(
            {each for each, words in self._functions() if not words.isdisjoint(READING_BY_NAME)}
        )

    def leading_to(self, nodes: Collection[ast.AST]) -> frozenset[ast.AST]:
        """Return the functions that contain certain nodes, and those that may call one."""
        wanted = set(nodes)
        return self._leading_to(
            {each for each, _ in self._functions() if any(one in wanted for one in walk(each))}
        )

    def _functions(self) -> Iterator[tuple[ast.AST, set[str]]]:
        return ((each, words) for each, words in self._words.items() if isinstance(each, _FUNCTIONS))

    def _leading_to(self, found: set[ast.AST]) -> frozenset[ast.AST]:
        """Return functions, and those that may call one, by their names."""
        mentioning: defaultdict[str, set[ast.AST]] = defaultdict(set)
        for each, words in self._functions():
            for word in words:
                mentioning[word].add(each)
        waiting, asked = set(found), set[str]()
        while waiting:
            name = getattr(waiting.pop(), "name", "")
            if name in asked:
                continue
            asked.add(name)
            if name.startswith("__") and name != "__init__":
                return frozenset(each for each, _ in self._functions())  # It is called without its name.
            calling = {name} if name != "__init__" else {name, *self._classes}
            new = {each for word in calling for each in mentioning[word]} - found
            found |= new
            waiting |= new
        return frozenset(found)


@remembered
def usage_of(tree: Tree) -> Usage:
    """Return what the code of a module uses."""
    return Usage(tree.module)


def _by_name(stores: Iterator[tuple[ast.AST, str]]) -> Stores:
    found: defaultdict[str, list[ast.AST]] = defaultdict(list)
    for node, name in stores:
        found[name].append(node)
    return dict(found)


def _first_parameter(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str | None:
    first = [*node.args.posonlyargs, *node.args.args][:1]
    return first[0].arg if first else None


def _names_any(node: ast.Call) -> bool:
    """Tell whether ``getattr`` gets an attribute whose name is put together."""
    if len(node.args) < 2:
        return False
    holder = node.args[0]
    return not isinstance(node.args[1], ast.Constant) and isinstance(holder, ast.Name) and holder.id == "self"


def _assigned(node: ast.Call, own: str | None) -> Iterator[str]:
    """Yield the attribute that a setter assigns to something else than what has this name."""
    holder = node.func.value if isinstance(node.func, ast.Attribute) else None
    if isinstance(holder, ast.Name) and holder.id == own:
        return
    names_given = [each.value for each in node.args[:2] if isinstance(each, ast.Constant)]
    yield from (each for each in names_given[:1] if isinstance(each, str))


def _is_namespace(node: ast.Name | ast.Attribute) -> bool:
    """Tell whether a name may assign names that cannot be known."""
    if isinstance(node, ast.Name):
        return node.id in _NAMESPACES
    if node.attr in _NAMESPACE_ATTRIBUTES:
        return node.attr != "__class__" or not isinstance(node.ctx, ast.Load)
    return node.attr == "modules" and last_name(node.value) == "sys"


def _is_of_module(node: ast.AST, around: _Around) -> bool:
    """Tell whether a node has the names of a module, wherever it stands."""
    name = last_name(node)
    return name in _OF_MODULES or (not around and name in ("vars", "locals"))


def _may_replace(node: ast.Call) -> bool:
    """Tell whether a call gets a name of something, or is one of what has names."""
    return (
        any(isinstance(each, ast.Constant) and isinstance(each.value, str) for each in node.args)
        or last_name(node.func) == "setattr"
        or (
            isinstance(node.func, ast.Attribute)
            and (last_name(node.func.value) in ("__dict__", "vars") or node.func.attr in FILLING)
        )
    )


def _hooks(name: str) -> bool:
    """Tell whether a name is that of what runs functions whenever modules run."""
    if "state_dict" in name:
        return False
    return (name.startswith("register_") and name.endswith("_hook") and name not in _OF_TENSORS) or (
        name.startswith("_") and name.endswith("_hooks")
    )


def _has_literal_name(node: ast.Call) -> bool:
    return len(node.args) > 1 and isinstance(node.args[1], ast.Constant)


def _may_touch(node: ast.AST, name: ast.Name) -> bool:
    """Tell whether a name stands where more than an item may be read from what it is."""
    if isinstance(node, ast.Attribute) and node.attr not in known.READING_METHODS:
        return True
    return not _only_reads(node, name)


def _only_reads(node: ast.AST, name: ast.Name) -> bool:
    """Tell whether a node only reads an item of what a name is, or binds the name."""
    if isinstance(name.ctx, ast.Store):
        return not isinstance(node, ast.AugAssign)
    if isinstance(node, ast.Subscript):
        return node.slice is name or isinstance(node.ctx, ast.Load)
    if isinstance(node, (ast.For, ast.comprehension)):
        return node.iter is name
    return isinstance(node, (ast.Attribute, ast.Compare))
