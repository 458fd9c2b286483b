"""Checkpointing that is not transformers' own: what wraps blocks, and other checkpoint functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any

from torch import nn
from torch.utils.checkpoint import checkpoint

from gclint.verify.worker.examination.blocks import Block
from gclint.verify.worker.examination.subject import Subject
from gclint.verify.worker.examination.words import names
from gclint.verify.worker.practices import WRAPPER, Practice, WrapperPractice
from gclint.verify.worker.protocol import Advice, SetUp
from gclint.verify.worker.scenarios import scenario_named
from gclint.verify.worker.training.group import Dressed, Group, Rank, library
from gclint.verify.worker.training.looks import CachesGiven
from gclint.verify.worker.training.usual import batches, trained_parameters

_ACCELERATE = ("fsdp", "fsdp2")
_DROPOUT = scenario_named("dropout")


_SETTINGS = {
    "fsdp/cache": "fsdp_activation_checkpointing",
    "fsdp/no-cache": "fsdp_activation_checkpointing with use_cache=False",
    "custom/func.args[0]": "a checkpoint function that finds its layer by func.args[0]",
    "custom/func.func.__self__": "a checkpoint function that finds its layer by func.func.__self__",
    "custom/func.__self__": "a checkpoint function that finds its layer by func.__self__",
}
"""What to say of the practices, the best first."""


def _dress(practice: Practice, subject: Subject, blocks: Sequence[Block], _rank: Rank) -> Dressed:
    assert isinstance(practice, WrapperPractice)
    if practice.has_dropout:
        subject.prepare(_DROPOUT)
    # Wrapped, they go by other names.
    parameters, given = trained_parameters(subject.model), CachesGiven(subject.model, blocks)
    made = batches(subject, says_cache=not practice.is_cached)
    if practice.mode == "plain":
        return Dressed(subject.model, parameters, made)
    _APPLIED[practice.by](subject.model)
    return Dressed(subject.model, parameters, made, remark=lambda: _remark(practice, subject.model, given))


def _remark(practice: WrapperPractice, model: nn.Module, given: CachesGiven) -> str:
    """Return what may be the reason why a row fails."""
    said = []
    if given.names:
        said.append(f"{names(given.names)} got a cache, and nothing takes it away before they are recomputed")
    if practice.by in _ACCELERATE:
        wrapped = [each.checkpoint_fn for each in model.modules() if hasattr(each, "checkpoint_fn")]
        if not wrapped:
            said.append("the model names none of its blocks in _no_split_modules")
        if practice.has_dropout and any(_forgets_randomness(each) for each in wrapped):
            said.append(
                "accelerate has dropout drawn anew where blocks are recomputed (preserve_rng_state=False)"
            )
    return "; ".join(said)


def _forgets_randomness(function: Any) -> bool:
    return isinstance(function, partial) and function.keywords.get("preserve_rng_state") is False


def _first_generation(model: Any) -> None:
    """Wrap blocks as accelerate does for ``FullyShardedDataParallel``."""
    plugin = _plugin(model, 1)
    wrappers = library("torch.distributed.algorithms._checkpoint.checkpoint_wrapper", WRAPPER)
    kind = wrappers.CheckpointImpl.NO_REENTRANT
    wrappers.apply_activation_checkpointing(
        model,
        checkpoint_wrapper_fn=partial(wrappers.checkpoint_wrapper, checkpoint_impl=kind),
        auto_wrap_policy=plugin.auto_wrap_policy,
    )


def _second_generation(model: Any) -> None:
    """Wrap blocks as accelerate does for ``fully_shard``, by its own function."""
    state = SimpleNamespace(fsdp_plugin=_plugin(model, 2))
    library("accelerate.utils.fsdp_utils", WRAPPER).fsdp2_apply_ac(SimpleNamespace(state=state), model)


def _plugin(model: Any, version: int) -> Any:
    """Return accelerate's settings for a model, with the blocks to wrap that the model itself names."""
    plugin = library("accelerate", WRAPPER).FullyShardedDataParallelPlugin(
        fsdp_version=version, auto_wrap_policy="transformer_based_wrap", activation_checkpointing=True
    )
    plugin.set_auto_wrap_policy(model)
    return plugin


def _custom(find: Callable[[Any], Any], model: Any) -> None:
    """Set a checkpoint function that looks at the layer it is called for."""

    def custom(function: Any, *args: Any, **kwargs: Any) -> Any:
        assert isinstance(find(function), nn.Module)
        return checkpoint(function, *args, use_reentrant=False, **kwargs)

    model._set_gradient_checkpointing(enable=True, gradient_checkpointing_func=custom)


def _of_method(function: Any) -> Any:
    return function.__self__


def _of_partial(function: Any) -> Any:
    return _called(function).__self__


def _of_whatever(function: Any) -> Any:
    method = _called(function)
    return method.__self__ if hasattr(method, "__self__") else function.args[0]


def _called(function: Any) -> Any:
    return function.func if isinstance(function, partial) else function


_APPLIED: dict[str, Callable[[Any], None]] = {
    "fsdp": _first_generation,
    "fsdp2": _second_generation,
    "func.__self__": partial(_custom, _of_method),
    "func.func.__self__": partial(_custom, _of_partial),
    "func.args[0]": partial(_custom, _of_whatever),
}
"""What makes blocks recompute, by what does so."""


def _exists(practice: Practice, subject: Subject) -> bool:
    assert isinstance(practice, WrapperPractice)
    return not practice.has_dropout or subject.allows(_DROPOUT, ())


def _advise(rows: Sequence[SetUp]) -> Advice | None:
    outcomes = {each.name: each.outcome for each in rows}
    failing = [f"{each.name} ({each.symptom})" for each in rows if each.outcome == "fails"]
    working = [name for name in _SETTINGS if outcomes.get(name) == "works"]
    if working:
        setting = _SETTINGS[working[0]]
        instead = f"; this fails: {', '.join(failing)}" if failing else ""
        return Advice(
            WRAPPER, setting, f"In place of transformers' own checkpointing, use {setting}{instead}."
        )
    if failing:
        return Advice(WRAPPER, "", f"Use transformers' own checkpointing; this fails: {', '.join(failing)}.")
    return None


WRAPPING = Group(_dress, _advise, exists=_exists, load=lambda: library("accelerate", WRAPPER))
"""Training with blocks that others make recompute."""
