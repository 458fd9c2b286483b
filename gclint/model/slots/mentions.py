"""Whether all code that names the layers of a model, or their numbers, is such that these stay what they are.

Nothing is known of what has not been followed, so each place counts that names one of them in another way
than one of those that are known to only read.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass

from gclint.code.file import SourceFile
from gclint.code.walk import COMPREHENSIONS, FUNCTIONS, LOOPS, children, last_name, walk
from gclint.model import known
from gclint.model.usage import FILLING, usage_of

_READING = frozenset(("enumerate", "zip", "reversed", "len", "list", "tuple", "iter", "islice", "isinstance"))
"""Functions that put nothing into what they get."""
_READING_METHODS = frozenset(("values", "items", "keys"))
_PARTS = known.PARTS | {"get_submodule"}
"""Methods that give any parts of a module."""
_MAKING = "__init__"
_INITIALISING = "_init_weights"
"""The method that gets each part of a model."""
_LOOKING = frozenset(("isinstance", "issubclass", "register", "super"))
_READING_BY_NAME = frozenset(("getattr", "hasattr"))
_PUTTING = frozenset(("append", "extend", "insert", "add_module", "register_module"))
_SETTINGS = "config"
"""What the names of settings end with, or begin."""
_SETTING = frozenset(("__setattr__", "__setstate__", "__delattr__", "__dict__"))
"""What gives something any attributes."""
_OF_ATTRIBUTES = _SETTING | {"__getattribute__", "__getattr__"}
"""Methods that make of any attribute something else."""


@dataclass(frozen=True)
class Layers:
    """What is to stay as it was made."""

    owner: str
    """The name of the class that runs them."""
    homes: frozenset[SourceFile]
    """The files that define it and its bases."""
    line: frozenset[str]
    """Its name, and those of its bases."""
    kinds: frozenset[str]
    """The names of the layers' classes, and of those that lead to their numbers, with their bases."""
    filling: frozenset[ast.AST]
    """Where they assign and fill stacks."""
    stacks: frozenset[str]
    """The attributes that hold them."""
    numbers: frozenset[str]
    """Those that lead from a layer to its number."""


@dataclass(frozen=True)
class _Mention:
    """Where a node stands."""

    parent: ast.AST | None = None
    around: ast.AST | None = None
    """What the parent stands in."""
    kind: str = ""
    """The name of the class around it."""
    function: ast.AST | None = None
    """The method around it."""
    own: str = ""
    """What the method calls its object."""
    is_repeated: bool = False
    """Whether it is in a loop."""
    parts: frozenset[str] = frozenset()
    """The names of what may be any part of a module, by a loop around it or by whoever calls a function."""


def stay(layers: Layers, files: Iterable[SourceFile]) -> bool:
    """Tell whether nothing in some files may change which layers there are, or their numbers."""
    read = [*files]
    classes = {each: _classes_in(layers, each) for each in read}
    family = {layers.owner}
    while new := {
        name
        for its in classes.values()
        for name, bases in its.items()
        if name not in family and bases & family
    }:
        family |= new
    return all(_stays_in(layers, file, (layers.line | family) & classes[file].keys()) for file in read)


def _classes_in(layers: Layers, file: SourceFile) -> dict[str, set[str]]:
    """Return the classes of a file with their bases, without others of the same name as those of a model."""
    nodes = () if file.tree is None else walk(file.tree.module)
    found = {each.name: {*map(last_name, each.bases)} for each in nodes if isinstance(each, ast.ClassDef)}
    others = set() if file in layers.homes else layers.line & found.keys()
    return {name: bases - others for name, bases in found.items() if name not in others}


def _stays_in(layers: Layers, file: SourceFile, family: Set[str]) -> bool:
    if file.tree is None:
        return False
    if not any(each in file.text for each in (layers.owner, *layers.stacks, *layers.numbers)):
        return True
    usage = usage_of(file.tree)
    if usage.names_attributes or any(each in usage.set_up for each in layers.numbers):
        return False
    places = _places(file.tree.module)
    return all(_is_known(layers, node, place, place.kind in family) for node, place in places)


def _places(tree: ast.Module) -> Iterator[tuple[ast.AST, _Mention]]:
    """Yield the nodes of a module, with where they stand."""
    calls = (each for each in walk(tree) if isinstance(each, ast.Call) and last_name(each.func) == "apply")
    applied = {_INITIALISING, *(last_name(each) for call in calls for each in call.args)}
    waiting: list[tuple[ast.AST, _Mention]] = [(tree, _Mention())]
    while waiting:
        node, place = waiting.pop()
        yield node, place
        kind, function, own, is_repeated = place.kind, place.function, place.own, place.is_repeated
        parts = place.parts
        if isinstance(node, ast.ClassDef):
            kind, function, own = node.name, None, ""
        elif isinstance(node, (*FUNCTIONS, ast.Lambda)):
            parameters = [each.arg for each in (*node.args.posonlyargs, *node.args.args)]
            parts = parts.union(parameters if getattr(node, "name", "") in applied else ())
            if function is None and isinstance(node, FUNCTIONS):
                function, own, is_repeated = node, parameters[0] if kind and parameters else "", False
        elif isinstance(node, (*LOOPS, *COMPREHENSIONS)):
            parts = parts.union(*map(_parts_bound, (node, *getattr(node, "generators", ()))))
        is_repeated |= isinstance(node, (*LOOPS, *COMPREHENSIONS, ast.Lambda))
        inner = _Mention(node, place.parent, kind, function, own, is_repeated, parts)
        waiting += [(each, inner) for each in children(node)]


def _parts_bound(loop: ast.AST) -> set[str]:
    """Return the names that a loop binds which goes over parts of modules."""
    source = getattr(loop, "iter", None)
    calls = () if source is None else (each for each in walk(source) if isinstance(each, ast.Call))
    is_over_parts = any(last_name(each.func) in _PARTS for each in calls)
    bound = walk(loop.target) if is_over_parts else ()  # type: ignore[attr-defined]
    return {each.id for each in bound if isinstance(each, ast.Name)}


def _is_known(layers: Layers, node: ast.AST, place: _Mention, is_of_family: bool) -> bool:
    """Tell whether a node leaves layers as they are, which may be in a class of the model's family."""
    if isinstance(node, ast.Attribute):
        is_own = isinstance(node.value, ast.Name) and node.value.id == place.own
        if node.attr in layers.numbers and not isinstance(node.ctx, ast.Load):
            is_making = getattr(place.function, "name", "") == _MAKING
            return is_own and is_making and isinstance(node.ctx, ast.Store)
        if node.attr in _PUTTING and isinstance(node.value, ast.Name) and node.value.id in place.parts:
            return node in layers.filling
        if node.attr in layers.stacks and (is_of_family or not is_own):
            return _SETTINGS in last_name(node.value) or _leaves_stack(layers, node, place)
        return node.attr not in _SETTING
    if isinstance(node, ast.Subscript):
        is_given = isinstance(node.value, ast.Name) and node.value.id in place.parts
        return isinstance(node.ctx, ast.Load) or not is_given
    if isinstance(node, ast.Call) and last_name(node.func) in _PARTS:
        if isinstance(place.parent, ast.comprehension):
            return not isinstance(getattr(place.around, "elt", None), ast.Name)
        is_filled = isinstance(place.parent, ast.Attribute) and place.parent.attr in FILLING
        return isinstance(place.parent, (ast.For, ast.Attribute)) and not is_filled
    if isinstance(node, ast.Constant):
        return _only_reads_by_name(layers, node, place)
    if isinstance(node, ast.Name):
        is_defined = isinstance(place.parent, ast.ClassDef) or isinstance(place.around, ast.ClassDef)
        if node.id in layers.numbers and not isinstance(node.ctx, ast.Load) and is_defined:
            return False
        return node.id != layers.owner or _makes_one(node, place)
    if isinstance(node, FUNCTIONS):
        if not isinstance(place.parent, ast.ClassDef):
            return True
        is_asked = is_of_family or place.kind in layers.kinds
        return node.name not in layers.numbers | layers.stacks | (_OF_ATTRIBUTES if is_asked else set())
    return True


def _only_reads_by_name(layers: Layers, node: ast.Constant, place: _Mention) -> bool:
    """Tell whether a text that is the name of something only serves to read it."""
    is_name = isinstance(node.value, str) and node.value in layers.stacks | layers.numbers | _SETTING
    if not is_name or not isinstance(place.parent, (ast.Call, ast.Subscript, ast.keyword)):
        return True
    is_read = isinstance(place.parent, ast.Call) and last_name(place.parent.func) in _READING_BY_NAME
    return is_read and node.value not in layers.stacks


def _leaves_stack(layers: Layers, node: ast.Attribute, place: _Mention) -> bool:
    """Tell whether a place that names a stack only reads it, or is one that was followed."""
    parent = place.parent
    if not isinstance(node.ctx, ast.Load):
        return node in layers.filling
    if isinstance(parent, (ast.For, ast.comprehension)):
        return parent.iter is node
    if isinstance(parent, ast.Call):
        return last_name(parent.func) in _READING
    if isinstance(parent, ast.Subscript):
        return isinstance(parent.ctx, ast.Load)
    if isinstance(parent, ast.Attribute):
        return parent.attr in _READING_METHODS or parent in layers.filling
    return isinstance(parent, (ast.Starred, ast.Compare))


def _makes_one(node: ast.Name, place: _Mention) -> bool:
    """Tell whether a place that names a class makes one object of it, or none."""
    parent = place.parent
    if isinstance(parent, ast.Tuple) and isinstance(place.around, ast.Call):
        return last_name(place.around.func) in _LOOKING
    if isinstance(parent, ast.Call):
        return not place.is_repeated if parent.func is node else last_name(parent.func) in _LOOKING
    if isinstance(parent, ast.Attribute):
        return parent.attr not in known.MODEL_MAKERS or not place.is_repeated
    if isinstance(parent, ast.AnnAssign):
        return node is parent.annotation
    return isinstance(parent, (ast.arg, ast.ClassDef, *FUNCTIONS)) or not isinstance(node.ctx, ast.Load)
