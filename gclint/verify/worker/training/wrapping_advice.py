"""Advises what to use if something other than transformers checkpoints the blocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gclint.verify.worker.examination.words import capitalised
from gclint.verify.worker.practices import SHARDED, WRAPPER
from gclint.verify.worker.protocol import Advice, SetUp

_FSDP = {
    "cache": "fsdp_activation_checkpointing",
    "no-cache": "fsdp_activation_checkpointing with use_cache=False",
    "named": "fsdp_activation_checkpointing with use_cache=False and "
    "fsdp_transformer_layer_cls_to_wrap naming the blocks' classes",
}
"""Settings of accelerate, the simplest first, by the practices that show whether they work."""
_CUSTOM = ("func.__self__", "func.func.__self__", "func.args[0]")


def advise(rows: Sequence[SetUp]) -> Advice | None:
    """Return which settings of accelerate to use, and how custom checkpoint functions find their layer."""
    outcomes = {each.name: each.outcome for each in rows}
    settings = [*_sharding(outcomes), *_custom(outcomes)]
    if settings:
        return Advice(WRAPPER, "; ".join(settings), f"{capitalised('; '.join(settings))}.")
    failing = [f"{each.name} ({each.symptom})" for each in rows if each.outcome == "fails"]
    if failing:
        return Advice(WRAPPER, "", f"No set-up that was run works: {', '.join(failing)}.")
    return None


def _sharding(outcomes: Mapping[str, str]) -> list[str]:
    found = []
    for version, words in (("fsdp", "with FSDP"), ("fsdp2", "with FSDP2")):
        working = [setting for name, setting in _FSDP.items() if outcomes.get(f"{version}/{name}") == "works"]
        if version == "fsdp2" and outcomes.get(SHARDED) == "works":
            # Transformers' own disables caches, and restores the random state.
            found.append(f"{words}, use transformers' own checkpointing")
        elif working:
            found.append(f"{words}, use {working[0]}")
    return found


def _custom(outcomes: Mapping[str, str]) -> list[str]:
    tried = [each for each in _CUSTOM if f"custom/{each}" in outcomes]
    working = [each for each in tried if outcomes[f"custom/{each}"] == "works"]
    # If all work, there is no advice.
    return (
        [f"a checkpoint function of your own finds its layer by {working[0]}"]
        if working and (len(working) < len(tried) or len(tried) == 1)
        else []
    )
