"""Where instances of a class are held, and why that is a stack of blocks or not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from gclint.network.evaluation.classes import ClassInfo
from gclint.network.evaluation.modules import Module
from gclint.network.evaluation.values import Container
from gclint.network.explaining.facts import Fact, class_place
from gclint.network.holders import held_classes
from gclint.network.importers import users
from gclint.network.model import Network
from gclint.network.runsite import RunSite
from gclint.network.standing import Standing
from gclint.network.story import stack_steps
from gclint.network.traits import mixes_sequence

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


def _holders(module: Module, info: ClassInfo) -> Iterator[Fact]:
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
            reason = Standing.NO_MIXER.of(info, None)
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
        if scope is None or scope.body is None:
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
