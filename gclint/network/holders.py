"""Finds the attributes of a class that hold blocks, without parsing code that cannot create any."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator

from gclint.network.evaluation.body import COMPUTED, COMPUTING
from gclint.network.evaluation.classes import ClassInfo, remembered
from gclint.network.evaluation.modules import Module
from gclint.network.evaluation.values import Container, Instance, Value, Values, list_of
from gclint.network.traits import mixes_sequence
from gclint.source.tokens import closing_bracket
from gclint.source.words import any_between, offsets_of, word_ends

_STACKS = ("ModuleList(", "ModuleDict(")
# Only a sequence that is made from a list can be a stack. The lookbehind comes last, since a search for a
# pattern that begins with `\b` is far slower.
_SEQUENCE = re.compile(r"Sequential\((?<!\wSequential\()\s*\*")
_CHECKPOINT_CALLS = ("checkpoint(", "checkpointing_func(")
_CALLED = re.compile(r"(?<![\w.])(?:([A-Za-z_]\w*)\.)?([A-Za-z_]\w*)\s*\(")
_OPENING = re.compile(r"[ \t]{0,99}\(")
# Any receiver matches here; evaluation shows later whether it is the object itself.
_TARGET = re.compile(r"(?<![\w.])[A-Za-z_]\w*\.(\w+)[ \t]*(?::[^=\n]{1,400})?=(?!=)")
_COUNTING = frozenset(
    (
        "range",
        "len",
        "zip",
        "enumerate",
        "int",
        "max",
        "min",
        "sum",
        "reversed",
        "list",
        "tuple",
        "sorted",
        "str",
    )
)
_RETURNED = re.compile(r"\breturn[\s(]+\w+\Z")
_TORCH_CALL = re.compile(r"\bnn\.\w+\(")


def holding_attributes(info: ClassInfo) -> Iterator[str]:
    """Yield the attributes of a class that hold a stack, or a single checkpointing layer."""
    if not info.is_module:
        return
    for base in info.mro:
        definition = base.definition
        checkpoints = _calls_checkpoint(base)
        if not checkpoints and not any_between(_creations(base.module), definition.header, definition.limit):
            continue
        for name in _assigned_attributes(base):
            values = info.attribute(name)
            # Attributes with computed names form a stack together.
            held = list_of(values) if name == COMPUTED else values
            if any(_may_run_blocks(value, checkpoints) for value in held):
                yield name


def single_attributes(module: Module, names: Collection[str]) -> Iterator[str]:
    """Yield the attributes that a line of a file sets to an expression that creates one of these classes."""
    text = module.file.outline.code
    creations = sorted(
        end - len(name)
        for name in names
        for end in word_ends(text, name, 0, len(text))
        if _OPENING.match(text, end)
    )
    # By the last creation in each line, since the target comes before it.
    last = {text.find("\n", start): start for start in creations}
    for offset in last.values():
        target = _TARGET.search(text, text.rfind("\n", 0, offset) + 1, offset)
        if target is not None:
            yield target[1]


def accessors(module: Module, names: Collection[str]) -> frozenset[str]:
    """Return the names of methods in a file that return the value of one of these attributes."""
    file = module.file
    code = file.outline.code
    returns = sorted(
        end
        for name in names
        for end in word_ends(code, f".{name}", 0, len(code))
        if code.startswith("[", end)
        and _RETURNED.search(code, max(end - len(name) - 80, 0), end - len(name) - 1)
    )
    return frozenset(
        definition.name
        for definition in (file.outline.definitions if returns else ())
        if not definition.is_class and any_between(returns, definition.header, definition.limit)
    )


def attribute_uses(module: Module, names: Iterable[str]) -> list[int]:
    """Return the offsets at which attributes with these names, or with computed names on self, are used."""
    text = module.file.outline.code
    found = offsets_of(text, ["getattr("])
    for name in names:
        found += (end - 1 for end in word_ends(text, f".{name}", 0, len(text)))
    return sorted(found)


@remembered
def _creations(module: Module) -> list[int]:
    """Return the offsets at which a file creates stacks that may hold blocks, or checkpointing layers."""
    text = module.file.outline.code
    layers = [f"{name}(" for name, info in module.classes.items() if info.is_checkpointing]
    found = offsets_of(text, [*COMPUTING, *layers])
    found += (offset for offset in offsets_of(text, _STACKS) if _may_hold_blocks(module, offset))
    if "Sequential" in text:
        found += (match.start() for match in _SEQUENCE.finditer(text))
    return sorted(found)


@remembered
def _checkpoint_calls(module: Module) -> list[int]:
    """Return the offsets at which a file itself calls checkpoint functions, in order."""
    return offsets_of(module.file.outline.code, _CHECKPOINT_CALLS)


def _may_hold_blocks(module: Module, offset: int) -> bool:
    """Return whether the stack that is created at ``offset`` may hold blocks that matter to a rule.

    It cannot if everything in it is a layer of torch, or a class of the file that is neither a checkpointing
    layer nor a token mixer.
    """
    text = module.file.outline.code
    opening = text.index("(", offset)
    inner = text[opening + 1 : closing_bracket(text, opening)]
    called = [
        (match[1], match[2])
        for match in _CALLED.finditer(inner)
        if match[2] not in _COUNTING and (match[1] is None or match[1] in _own_names(module))
    ]
    if not called:
        return _TORCH_CALL.search(inner) is None
    for receiver, name in called:
        info = module.classes.get(name)
        if receiver or info is None or info.is_checkpointing or mixes_sequence(info):
            return True
    return False


@remembered
def _own_names(module: Module) -> frozenset[str]:
    """Return the names of ``self`` in the methods of a file."""
    methods = (method for info in module.classes.values() for method in info.methods())
    return frozenset(name for method in methods if (name := method.first_parameter) is not None)


def _calls_checkpoint(info: ClassInfo) -> bool:
    """Return whether a class's own methods call a checkpoint function themselves."""
    calls = _checkpoint_calls(info.module)
    return any_between(calls, info.definition.header, info.definition.limit)


@remembered
def _assigned_attributes(base: ClassInfo) -> frozenset[str]:
    """Return the attributes that a class's own methods assign in code that creates modules."""
    checkpoints = _calls_checkpoint(base)
    creations = _creations(base.module)
    found: set[str] = set()
    for method in base.methods():
        all_of_it = checkpoints and method.name == "__init__"
        if not all_of_it and not any_between(creations, method.header, method.limit):
            continue
        scope = base.scope(method)
        if scope.self_name is None or scope.body is None:
            continue
        prefix = scope.self_name + "."
        pieces = scope.body.pieces() if all_of_it else scope.body.pieces_at(creations)
        for piece in pieces:
            found |= {key[len(prefix) :] for key in piece.bindings if key.startswith(prefix)}
    return frozenset(found)


def _may_run_blocks(value: Value, checkpoints: bool) -> bool:
    """Return whether calls of the value of an attribute may matter to a rule.

    Args:
        value: the value of the attribute.
        checkpoints: whether the class with the attribute calls a checkpoint function itself.
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
