"""Finds the attributes of a class that hold blocks."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Collection, Iterator

from gclint.code.file import SourceFile
from gclint.code.lines import normal
from gclint.code.remembered import remembered
from gclint.code.tree import statements_around
from gclint.code.walk import alternatives, arguments, called_name, statements_in, walk
from gclint.network.evaluation.body import COMPUTED, COMPUTING, Body, NameBinding, collect_bindings
from gclint.network.evaluation.classes import ClassInfo, may_have
from gclint.network.evaluation.modules import ModuleInfo
from gclint.network.evaluation.values import Container, Instance, Value, Values, list_of
from gclint.network.traits import mixes_sequence

_STACKS = ("ModuleList", "ModuleDict")
_SEQUENCE = "Sequential"
_CHECKPOINT_CALLS = ("checkpoint", "checkpointing_func")
"""What the names of checkpoint functions end with."""
_CALLED = re.compile(r"checkpoint(?:ing_func)?(?!\w)")
"""Matches where such a name ends in a text."""


def holding_attributes(info: ClassInfo) -> Iterator[str]:
    """Yield the attributes of a class that hold a stack, or a single checkpointing layer."""
    if not info.is_module:
        return
    for base in info.mro:
        checkpoints = _calls_checkpoint(base)
        for name in _assigned_attributes(base):
            values = info.attribute(name)
            # Attributes with computed names form a stack together.
            held = list_of(values) if name == COMPUTED else values
            if any(_may_run_blocks(value, checkpoints) for value in held):
                yield name


def single_attributes(module: ModuleInfo, names: Collection[str]) -> Iterator[str]:
    """Yield the attributes that a statement of a file sets to what creates one of these classes."""
    for attribute, called in _creations(module.file):
        if not called.isdisjoint(names):
            yield attribute


@remembered
def _creations(file: SourceFile) -> tuple[tuple[str, frozenset[str]], ...]:
    """Return the attributes that statements of a file set, and the names of what their values call."""
    found: defaultdict[str, list[NameBinding]] = defaultdict(list)
    for statement, _ in () if file.tree is None else statements_around(file.tree.module.body):
        if isinstance(statement, (ast.Assign, ast.AnnAssign)):
            collect_bindings(found, statement)
    return tuple(
        (key.partition(".")[2], frozenset(filter(None, map(called_name, walk(binding.unpacked[0])))))
        for key, bindings in found.items()
        for binding in bindings
        if "." in key and not binding.added
    )


def accessors(module: ModuleInfo, names: Collection[str]) -> frozenset[str]:
    """Return the names of methods in a file that return an item of one of these attributes."""
    return frozenset(name for name, holders in _returning(module.file) if not holders.isdisjoint(names))


@remembered
def _returning(file: SourceFile) -> tuple[tuple[str, frozenset[str]], ...]:
    """Return the functions of a file that return items of attributes, with the names of these."""
    found = []
    for definition in file.outline.definitions:
        if not definition.is_class and "return" in definition.text and "[" in definition.text:
            statements = statements_in(definition.function.body)
            values = [each.value for each in statements if isinstance(each, ast.Return) and each.value]
            found.append((definition.name, frozenset(name for each in values for name in _holders(each))))
    return tuple(found)


def _holders(value: ast.expr) -> Iterator[str]:
    """Yield the attributes of an object of which an expression may be an item."""
    parts = value.elts if isinstance(value, (ast.Tuple, ast.List)) else alternatives(value)
    yield from (name for each in parts for name in _holders(each))
    if isinstance(value, ast.Subscript):
        holder = value.value
        if isinstance(holder, ast.Attribute) and isinstance(holder.value, ast.Name):
            yield holder.attr
        yield from _holders(holder)


@remembered
def _calls_checkpoint(info: ClassInfo) -> bool:
    """Return whether a class's own methods call a checkpoint function themselves."""
    return _CALLED.search(normal(info.definition.text)) is not None and any(
        (called_name(node) or "").endswith(_CHECKPOINT_CALLS) for node in info.nodes
    )


@remembered
def _assigned_attributes(base: ClassInfo) -> frozenset[str]:
    """Return the attributes that a class's own methods assign in statements that create modules."""
    layers = _layers(base.module)
    words = (*COMPUTING, *_STACKS, _SEQUENCE, *layers)
    found: set[str] = set()
    for method in base.methods():
        all_of_it = _calls_checkpoint(base) and method.name == "__init__"
        if not all_of_it and not may_have(method, words):
            continue
        scope = base.scope(method)
        if scope.self_name is None:
            continue
        roots = scope.body.roots
        if not all_of_it:
            roots = [root for root in roots if any(_creates(node, layers) for node in walk(root))]
        prefix = scope.self_name + "."
        keys = Body(base.file, roots).bindings
        found |= {key.removeprefix(prefix) for key in keys if key.startswith(prefix)}
    return frozenset(found)


@remembered
def _layers(module: ModuleInfo) -> frozenset[str]:
    """Return the names of the checkpointing layers in a file."""
    return frozenset(name for name, info in module.classes.items() if info.is_checkpointing)


def _creates(node: ast.AST, layers: frozenset[str]) -> bool:
    """Return whether a node creates a stack that may hold blocks, or a checkpointing layer."""
    name = called_name(node)
    if not isinstance(node, ast.Call) or name is None:
        return False
    if name == _SEQUENCE:
        # Only a sequence that is made from a list can be a stack.
        return any(arg.star == "*" for arg in arguments(node)[:1])
    return name in COMPUTING or name.endswith(_STACKS) or name in layers


def _may_run_blocks(value: Value, checkpoints: bool) -> bool:
    """Return whether calls of the value of an attribute may matter to a rule.

    They may if the class with the attribute ``checkpoints`` something itself.
    """
    if isinstance(value, Instance):
        return value.info.is_module and (value.info.is_checkpointing or checkpoints)
    return isinstance(value, Container) and any(
        info.is_module and (info.is_checkpointing or checkpoints or mixes_sequence(info))
        for info in held_classes(value.items)
    )


def held_classes(values: Values) -> frozenset[ClassInfo]:
    """Return the classes of the objects in the value of an attribute, at any depth."""
    found: set[ClassInfo] = set()
    for value in values:
        if isinstance(value, Container):
            found |= held_classes(value.items)
        elif isinstance(value, Instance):
            found.add(value.info)
    return frozenset(found)
