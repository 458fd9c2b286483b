"""The bases of a class, as far as their code can be found, and what import statements bind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from gclint.network.evaluation.classes import CHECKPOINTING_BASE, ClassInfo
from gclint.network.evaluation.values import ClassValue, External, Function, ModuleValue
from gclint.network.explaining.facts import Fact, class_place
from gclint.network.model import Network
from gclint.source.naming import MODEL_BASE
from gclint.source.outline import ImportStatement
from gclint.source.packages import LIBRARY

_MEANINGS = {
    CHECKPOINTING_BASE: "the library's base class of layers, which recomputes them",
    MODEL_BASE: "the library's base class of models",
    "Module": "torch's base class of modules, which recomputes nothing",
}


def bases_of(info: ClassInfo) -> Fact:
    """Return a class with its bases, their bases, and so on, each once: many ways may lead to one."""
    return _bases_of(info, set())


def _bases_of(info: ClassInfo, seen: set[ClassInfo]) -> Fact:
    inner = []
    if info not in seen:
        seen.add(info)
        for name, base in zip(info.base_names, info.bases, strict=True):
            if isinstance(base, ClassInfo):
                inner.append(_bases_of(base, seen))
            else:
                place = _place(name, info)
                text = _outside(name, base, info, is_at_hand=place is not None)
                inner.append(Fact(f"`{name}`: {text}", place))
        if not info.base_names:
            inner.append(Fact("no base"))
    meaning = _MEANINGS.get(info.name)
    return Fact(f"`{info.name}`{f': {meaning}' if meaning else ''}", class_place(info), tuple(inner))


def _place(name: str, user: ClassInfo) -> tuple[Path, int] | None:
    """Return the place of a base class of the library whose meaning is known without reading its code."""
    imported = user.file.outline.imported(name)
    if imported is None or imported.name is None:
        return None
    file = user.module.library.project.module(user.file, imported.module, imported.level)
    definition = None if file is None else file.outline.classes.get(imported.name)
    return None if file is None or definition is None else (file.path, definition.header)


def _outside(name: str, base: External | None, user: ClassInfo, *, is_at_hand: bool) -> str:
    """Return what is known of a base whose code was not read, or why it was not read."""
    last = name.rpartition(".")[2] if base is None else base.name.rpartition(".")[2]
    known = _MEANINGS.get(last)
    if base is not None and known and (last != "Module" or base.name == "torch.nn.Module"):
        return f"{known} ({base.name})"
    if base is None:
        first = name.partition(".")[0]
        if user.file.outline.imported(first) is None:
            return "unknown: nothing in this file certainly defines or imports that name"
        return "unknown: the import could not be resolved"
    if base.name in ("object", "abc.ABC", "typing.Generic"):
        return f"{base.name}, which has nothing to do with checkpointing"
    if base.name.partition(".")[0] == LIBRARY and user.module.library.project.library(user.file) is None:
        return (
            f"unknown: {base.name} is in transformers, which was not found; pass its source with `--library`"
        )
    if is_at_hand:
        return "unknown: its file is of a kind that defines no layers of models, so it was not searched"
    return f"unknown: the file of {base.name} was not found, or contains no model layers"


def names_given(network: Network, statement: ImportStatement) -> Iterator[Fact]:
    """Yield a fact about each name that a statement binds."""
    place = network.file.path, statement.start
    for name in statement.names:
        for value in network.module.lookup(name.bound) or (None,):
            if isinstance(value, ClassValue):
                bases = bases_of(value.info)
                yield Fact(f"`{name.bound}` is a class", place, (bases,))
            elif isinstance(value, External):
                yield Fact(f"`{name.bound}` is {value.name}, whose code was not examined", place)
            elif isinstance(value, ModuleValue):
                yield Fact(f"`{name.bound}` is the module {value.name}", (value.module.file.path, 0))
            elif isinstance(value, Function):
                yield Fact(f"`{name.bound}` is a function", place)
            else:
                yield Fact(f"`{name.bound}` could not be resolved", place)
    if not statement.names:
        yield Fact("it binds no names", place)
