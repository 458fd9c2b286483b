"""Trains with checkpointing other than transformers' own: the wrappers of accelerate, and torch's FSDP2."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any

from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

from gclint.verify.worker.examination.blocks import Block
from gclint.verify.worker.examination.model_under_test import ModelUnderTest
from gclint.verify.worker.examination.phrases import capitalised, names
from gclint.verify.worker.examination.tensors import is_cache
from gclint.verify.worker.practices import SHARDED, WRAPPER, Practice, WrapperPractice
from gclint.verify.worker.protocol import Advice, SetUp
from gclint.verify.worker.scenarios import scenario_named
from gclint.verify.worker.training.group import (
    BadPractice,
    PracticeGroup,
    Prepared,
    Rank,
    batches,
    calls_with,
    library,
    listed,
    trained_parameters,
)
from gclint.verify.worker.training.parallel import join

_WRAPPED = "_checkpoint_wrapped_module"
_DROPOUT = scenario_named("dropout")
_FSDP_SETTINGS = {
    "cache": "fsdp_activation_checkpointing",
    "no-cache": "fsdp_activation_checkpointing with use_cache=False",
    "named": "fsdp_activation_checkpointing with use_cache=False and "
    "fsdp_transformer_layer_cls_to_wrap naming the blocks' classes",
}
"""Settings of accelerate, the simplest first, by the practices that show whether they work."""


def _prepare(practice: Practice, under_test: ModelUnderTest, blocks: Sequence[Block], rank: Rank) -> Prepared:
    assert isinstance(practice, WrapperPractice)
    if practice.has_dropout:
        under_test.prepare(_DROPOUT)
    # Wrapped modules have other names.
    parameters, given = (
        trained_parameters(under_test.model),
        calls_with(_hold_cache, under_test.model, blocks),
    )
    made = batches(under_test, sets_cache=not practice.is_cached)
    if practice.by == SHARDED:
        _shard(under_test, blocks, rank)
        under_test.enable_checkpointing(practice.mode)
        return Prepared(under_test.model, trained_parameters(under_test.model), made)
    if practice.mode == "plain":
        return Prepared(under_test.model, parameters, made)
    plugin = _plugin(under_test.model, practice, blocks)
    _FSDP[practice.by](under_test.model, plugin)
    return Prepared(
        under_test.model,
        parameters,
        made,
        _wrapped_parts(under_test.model, blocks),
        remark=lambda: _remark(practice, under_test.model, given),
    )


def _wrapped_parts(model: nn.Module, blocks: Sequence[Block]) -> dict[str, nn.Module]:
    """Return the wrapped modules inside blocks that are not wrapped themselves."""
    return {
        name: wrapper._checkpoint_wrapped_module
        for name, wrapper in model.named_modules()
        if hasattr(wrapper, _WRAPPED) and any(name.startswith(f"{each.name}.") for each in blocks)
    }


def _hold_cache(args: Any, kwargs: Any) -> bool:
    return any(map(is_cache, (*args, *kwargs.values())))


def _remark(practice: WrapperPractice, model: nn.Module, given: Mapping[str, Sequence[bool]]) -> str:
    """Return the likely reason why a row fails."""
    remarks = []
    cached = [name for name, calls in given.items() if any(calls)]
    if cached:
        remarks.append(f"{names(cached)} got a cache, which is not removed before they are recomputed")
    if practice.by in _FSDP:
        wrapped = [each.checkpoint_fn for each in model.modules() if hasattr(each, _WRAPPED)]
        if not wrapped:
            remarks.append("the model names none of its blocks in _no_split_modules")
        if practice.has_dropout and any(
            isinstance(each, partial) and each.keywords.get("preserve_rng_state") is False for each in wrapped
        ):
            remarks.append(
                "the recomputation draws other dropout masks, since accelerate passes "
                "preserve_rng_state=False"
            )
    return "; ".join(remarks)


def _shard(under_test: ModelUnderTest, blocks: Sequence[Block], rank: Rank) -> None:
    join(rank)
    mesh = init_device_mesh(under_test.device.type, (rank.count,))
    for block in blocks:
        fully_shard(under_test.model.get_submodule(block.name), mesh=mesh)
    fully_shard(under_test.model, mesh=mesh)


def _plugin(model: Any, practice: WrapperPractice, blocks: Sequence[Block]) -> Any:
    """Return accelerate's settings for a model, from its options for what to wrap."""
    classes = dict.fromkeys(type(model.get_submodule(each.name)).__name__ for each in blocks)
    plugin = library("accelerate", WRAPPER).FullyShardedDataParallelPlugin(
        fsdp_version=1 if practice.by == "fsdp" else 2,
        auto_wrap_policy="transformer_based_wrap",
        activation_checkpointing=True,
        transformer_cls_names_to_wrap=list(classes) if practice.are_named else None,
    )
    try:
        plugin.set_auto_wrap_policy(model)
    except ValueError as error:
        # The names are in a set, and the error is about whichever comes first.
        present = {type(each).__name__ for each in model.modules()}
        missing = sorted(set(model._no_split_modules) - present)
        if not missing:
            raise
        message = f"accelerate finds no {names(missing)} in the model, which names them in _no_split_modules"
        raise BadPractice("unknown layer class", message) from error
    return plugin


def _first_generation(model: Any, plugin: Any) -> None:
    """Wrap blocks as accelerate does for ``FullyShardedDataParallel``."""
    wrappers = library("torch.distributed.algorithms._checkpoint.checkpoint_wrapper", WRAPPER)
    kind = wrappers.CheckpointImpl.NO_REENTRANT
    wrappers.apply_activation_checkpointing(
        model,
        checkpoint_wrapper_fn=partial(wrappers.checkpoint_wrapper, checkpoint_impl=kind),
        auto_wrap_policy=plugin.auto_wrap_policy,
    )


def _second_generation(model: Any, plugin: Any) -> None:
    """Wrap blocks as accelerate does for ``fully_shard``, by its own function."""
    accelerator = SimpleNamespace(state=SimpleNamespace(fsdp_plugin=plugin))
    library("accelerate.utils.fsdp_utils", WRAPPER).fsdp2_apply_ac(accelerator, model)


_FSDP = {"fsdp": _first_generation, "fsdp2": _second_generation}
"""How accelerate wraps blocks, by the version of FSDP."""


def _exists(practice: Practice, under_test: ModelUnderTest) -> bool:
    assert isinstance(practice, WrapperPractice)
    return not practice.has_dropout or under_test.allows(_DROPOUT, ())


def advise(rows: Sequence[SetUp]) -> Advice | None:
    """Return which settings of accelerate to use."""
    settings = _sharding({each.name: each.outcome for each in rows})
    if settings:
        return Advice(WRAPPER, "; ".join(settings), f"{capitalised('; '.join(settings))}.")
    failing = listed([each for each in rows if each.outcome == "fails"])
    return Advice(WRAPPER, "", f"No set-up that was run works: {failing}.") if failing else None


def _sharding(outcomes: Mapping[str, str]) -> list[str]:
    found = []
    for version, words in (("fsdp", "with FSDP"), ("fsdp2", "with FSDP2")):
        working = [
            setting
            for name, setting in _FSDP_SETTINGS.items()
            if outcomes.get(f"{version}/{name}") == "works"
        ]
        if version == "fsdp2" and outcomes.get(SHARDED) == "works":
            # Transformers' own disables caches, and restores the random state.
            found.append(f"{words}, use transformers' own checkpointing")
        elif working:
            found.append(f"{words}, use {working[0]}")
    return found


WRAPPING = PracticeGroup(_prepare, advise, exists=_exists, load=lambda: library("accelerate", WRAPPER))
"""Training with blocks that other libraries checkpoint."""
