"""What enables checkpointing for the blocks that a class runs."""

from __future__ import annotations

from collections.abc import Iterator

from gclint.network.construction import flag_settings
from gclint.network.evaluation.classes import ClassInfo
from gclint.network.explaining.facts import Fact, class_place
from gclint.network.model import Network
from gclint.network.outside import FLAG
from gclint.network.override import old_overrides
from gclint.network.runsite import RunSite
from gclint.network.support import SUPPORT, flag, models_running
from gclint.network.switch import other_switch

_MODELS_TOLD = 3


def switches_of(network: Network, owner: ClassInfo, sites: tuple[RunSite, ...]) -> tuple[Fact, ...]:
    """Return what enables checkpointing for a class that runs blocks at ``sites``, and whether it works."""
    return (*_models(owner), *_flags(owner), *_others(network, owner, sites))


def _models(owner: ClassInfo) -> Iterator[Fact]:
    models = models_running(owner)
    if not models:
        yield Fact(
            f"no transformers model was found that contains `{owner.name}`, so nothing enables checkpointing"
        )
    for model in models[:_MODELS_TOLD]:
        held = f"`{model.name}` is the model" if model is owner else f"the model `{model.name}` contains it"
        yield Fact(f"{held} and {_support(model)}", class_place(model))
    if len(models) > _MODELS_TOLD:
        more = len(models) - _MODELS_TOLD
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
