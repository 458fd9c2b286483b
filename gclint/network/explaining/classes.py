"""What is known of a class: its bases, the stacks that hold it, and what switches checkpointing on for it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from gclint.code.naming import MODEL_BASE
from gclint.code.outline import ImportStatement
from gclint.code.packages import LIBRARY
from gclint.network.construction import flag_settings
from gclint.network.evaluation.classes import CHECKPOINTING_BASE, ClassInfo
from gclint.network.evaluation.modules import ModuleInfo
from gclint.network.evaluation.values import (
    ClassValue,
    Container,
    EvaluatedExternal,
    EvaluatedFunction,
    ModuleValue,
)
from gclint.network.exclusion import Exclusion
from gclint.network.explaining.facts import Fact, class_place
from gclint.network.holders import held_classes
from gclint.network.importers import users
from gclint.network.model import Network
from gclint.network.outside import FLAG
from gclint.network.override import old_overrides
from gclint.network.runsite import RunSite
from gclint.network.story import stack_steps
from gclint.network.support import SUPPORT, flag, models_running
from gclint.network.switch import other_switch
from gclint.network.traits import mixes_sequence

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


def _outside(name: str, base: EvaluatedExternal | None, user: ClassInfo, *, is_at_hand: bool) -> str:
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
            elif isinstance(value, EvaluatedExternal):
                yield Fact(f"`{name.bound}` is {value.name}, whose code was not examined", place)
            elif isinstance(value, ModuleValue):
                yield Fact(f"`{name.bound}` is the module {value.name}", (value.module.file.path, 0))
            elif isinstance(value, EvaluatedFunction):
                yield Fact(f"`{name.bound}` is a function", place)
            else:
                yield Fact(f"`{name.bound}` could not be resolved", place)
    if not statement.names:
        yield Fact("it binds no names", place)


_MOST = 6


def stacks_of(info: ClassInfo, sites: tuple[RunSite, ...]) -> tuple[Fact, ...]:
    """Return the attributes that hold instances of a class, which ``sites`` run.

    If they are not stacks, it is said why not.
    """
    facts = [Fact.of(step) for site in sites if info in site.blocks for step in stack_steps(site, info)]
    if not facts:
        facts = list(_holders(info.module, info))
    for module in () if facts else users(info.module):
        facts += _holders(module, info)
    found = tuple({(fact.text, fact.place): fact for fact in facts}.values())
    if len(found) > _MOST:
        return (*found[:_MOST], Fact(f"and {len(found) - _MOST} more"))
    return found or (
        Fact("no class in this file, or in the given files that import it, creates one: it is in no stack"),
    )


def _holders(module: ModuleInfo, info: ClassInfo) -> Iterator[Fact]:
    """Yield the attributes of the classes of a file that hold instances of ``info``."""
    for owner in module.classes.values():
        # A class that inherits from ``info`` only looks as if it created one.
        if info in owner.parts and info not in owner.mro:
            yield from _held(owner, info)


def _held(owner: ClassInfo, info: ClassInfo) -> Iterator[Fact]:
    """Yield the attributes of ``owner`` that hold instances of ``info``."""
    is_held = False
    for name, place in _attributes(owner).items():
        values = owner.attribute(name)
        if info not in held_classes(values):
            continue
        is_held = True
        held = f"`self.{name}` of `{owner.name}`"
        if not any(isinstance(value, Container) and info in held_classes(value.items) for value in values):
            yield Fact(f"{held} is a single `{info.name}`, not a stack", place)
        elif not info.is_checkpointing and not mixes_sequence(info):
            reason = Exclusion.NO_MIXER.of(info, None)
            yield Fact(f"{held} is a list of `{info.name}`, whose calls are not examined: {reason}", place)
        else:
            yield Fact(f"{held} is a list of `{info.name}`, and no call of its items was found", place)
    if not is_held:
        what = f"`{owner.name}` creates a `{info.name}`, but not in an attribute that could be followed"
        yield Fact(what, class_place(owner))


def _attributes(owner: ClassInfo) -> dict[str, tuple[Path, int]]:
    """Return the attributes that the ``__init__`` of a class assigns, with their places."""
    found: dict[str, tuple[Path, int]] = {}
    for base in owner.mro:
        method = base.definition.method("__init__")
        scope = None if method is None else owner.scope(method, base.module)
        if scope is None:
            continue
        for key, bindings in scope.body.bindings.items():
            holder, _, name = key.rpartition(".")
            if holder == scope.self_name and name not in found:
                found[name] = base.file.path, scope.span(bindings[0].value)[0]
    return found


def stacks_in(network: Network) -> tuple[Fact, ...]:
    """Return the stacks in a file whose calls are examined."""
    facts = []
    for site in network.run_sites:
        for info in site.blocks:
            facts += [Fact.of(step) for step in stack_steps(site, info)]
    return tuple({(fact.text, fact.place): fact for fact in facts}.values())


_MODELS_NAMED = 3


def switches_of(network: Network, owner: ClassInfo, sites: tuple[RunSite, ...]) -> tuple[Fact, ...]:
    """Return what enables checkpointing for a class that runs blocks at ``sites``, and whether it works."""
    return (*_models(owner), *_flags(owner), *_others(network, owner, sites))


def _models(owner: ClassInfo) -> Iterator[Fact]:
    models = models_running(owner)
    if not models:
        yield Fact(
            f"no transformers model was found that contains `{owner.name}`, so nothing enables checkpointing"
        )
    for model in models[:_MODELS_NAMED]:
        held = f"`{model.name}` is the model" if model is owner else f"the model `{model.name}` contains it"
        yield Fact(f"{held} and {_support(model)}", class_place(model))
    if len(models) > _MODELS_NAMED:
        more = len(models) - _MODELS_NAMED
        yield Fact(f"{more} more model{' contains' if more == 1 else 's contain'} it")


def _support(model: ClassInfo) -> str:
    """Return whether a model declares that it supports checkpointing, and in which class."""
    value = flag(model)
    for info in model.mro:
        if info.switch(SUPPORT) is not None:
            where = "" if info is model else f" in its base `{info.name}`"
            raises = "" if value else ", so `gradient_checkpointing_enable()` raises"
            return f"sets `{SUPPORT} = {value}`{where}{raises}"
    if value is None:
        return f"has a base that could not be found and may set `{SUPPORT}`"
    return f"does not set `{SUPPORT} = True`, so `gradient_checkpointing_enable()` raises"


def _flags(owner: ClassInfo) -> Iterator[Fact]:
    settings = list(flag_settings(owner))
    for setting in settings:
        place = setting.file.path, setting.offset
        if setting.is_librarys:
            what = (
                f"`{FLAG}` of `{owner.name}` is initially False, and `gradient_checkpointing_enable()` "
                "sets it"
            )
        else:
            where = "in the class body" if setting.method is None else f"in `{setting.method}`"
            what = (
                f"`{owner.name}.{FLAG}` is set to `{setting.code}` {where}, which the library does not expect"
            )
        yield Fact(what, place)
    if not settings:
        yield Fact(f"`{owner.name}` has no `{FLAG}` flag of its own; each checkpointing layer has one")


def _others(network: Network, owner: ClassInfo, sites: tuple[RunSite, ...]) -> Iterator[Fact]:
    for override in old_overrides(models_running(owner)):
        yield Fact(override.description, (override.model.file.path, override.method.header))
    switch = other_switch(network.project, sites) if sites else None
    if switch is not None:
        yield Fact(switch.seen_from(network.file), (switch.file.path, switch.offset))
    elif any(site.checkpointed for site in sites):
        yield Fact("only the library sets the flag: no script, property or override does")
