"""The record of training steps of one model in one mode, to be sent elsewhere, and how much two differ."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

from torch import Tensor

from gclint.verify.worker.examination.agreement import deviation, is_nothing, same
from gclint.verify.worker.examination.block_calls import BlockCall
from gclint.verify.worker.examination.blocks import Block
from gclint.verify.worker.examination.fault import Fault
from gclint.verify.worker.examination.inspection.checkpoints import Replay
from gclint.verify.worker.examination.inspection.inspector import Inspection
from gclint.verify.worker.examination.state import SideEffects
from gclint.verify.worker.protocol import Mode
from gclint.verify.worker.scenarios import Scenario, scenario_named

REQUIRING = "enable_input_require_grads()"
"""The stage in which the embeddings' output is made to require grad."""
ENABLING = "enabling checkpointing"
"""The stage in which a model may report that it has nothing to recompute."""
BACKWARD = "the backward pass"
"""The stage in which gradients are computed; that of a later step says so behind it."""
_CACHED = replace(scenario_named("default"), use_cache=True, steps=1)


@dataclass(frozen=True)
class Conditions:
    """How to make a run."""

    scenario: Scenario
    mode: Mode
    perturbed: int = 0
    """If not 0, the last bit of all parameters is changed at random, to measure the effect of rounding; each
    number changes them differently."""
    exact: bool = False
    """Whether to run in double precision, whatever types the model requests."""
    finds_blocks: bool = False
    """Whether to find the blocks and stacks in the first step."""
    inspected: bool = False
    """Whether to inspect what is computed, and what is recomputed, and why."""
    traced: bool = False
    """Whether to record the calls of blocks even without checkpointing."""
    evaluated: bool = False
    """Whether to compute outputs in evaluation mode instead of steps, and one more token with a cache."""
    experts: str = ""
    """How to compute experts, if the release has several ways."""
    noise: int = 0
    """If not 0, noise is added to the recomputation; each number adds a different one."""
    measured: bool = True
    """Whether to measure what autograd saves, with hooks that not every model allows."""
    bare: bool = False
    """Whether to leave out all that watches the model: only what it computes is known then."""


OTHER_COMPUTATIONS = {
    "training with a cache": Conditions(_CACHED, "plain"),
    "evaluation": Conditions(scenario_named("default"), "plain", evaluated=True),
    "evaluation with a cache": Conditions(_CACHED, "plain", evaluated=True),
}
"""Ways to compute without checkpointing that no scenario uses, but that a repair must not change."""


@dataclass(frozen=True)
class TrainingStep:
    """The results and the cost of one training step."""

    loss: float
    own_loss: float | None
    outputs: dict[str, Tensor]
    gradients: dict[str, Tensor | None]
    saved_bytes: int | None
    """None where it was not measured, or other threads saved more."""
    seconds: float
    peak_bytes: int | None
    held_bytes: int = 0
    """Bytes that checkpoints hold in addition to what autograd saves."""
    requiring_grad: frozenset[str] = frozenset()
    """The names of the outputs that require grad."""
    again: frozenset[str] = frozenset()
    """The names of the blocks that ran in its backward pass."""

    @cached_property
    def trained(self) -> frozenset[str]:
        """The names of the parameters that have a gradient."""
        return frozenset(name for name, gradient in self.gradients.items() if not is_nothing(gradient))


@dataclass
class Run:
    """The record of several steps, one after another."""

    conditions: Conditions
    steps: list[TrainingStep] = field(default_factory=list)
    error: Fault | None = None
    stage: str = ""
    """The stage in which the error occurred."""
    warnings: tuple[str, ...] = ()
    forward: Counter[str] = field(default_factory=Counter)
    """How often each block ran in forward passes."""
    recorded: Counter[str] = field(default_factory=Counter)
    """How often each block did so with gradients recorded."""
    backward: Counter[str] = field(default_factory=Counter)
    """How often each block ran in backward passes."""
    unrecorded: Counter[str] = field(default_factory=Counter)
    """How often each block did so without recording gradients."""
    calls: list[BlockCall] = field(default_factory=list)
    side_effects: SideEffects = field(default_factory=SideEffects)
    values: dict[str, Tensor] = field(default_factory=dict)
    """Parameters and buffers afterwards."""
    attributes: dict[str, Any] = field(default_factory=dict)
    """Attributes of modules that the steps have set."""
    shared: frozenset[str] = frozenset()
    """The variables and the attributes of classes that the steps leave changed."""
    still_off: tuple[str, ...] = ()
    """The modules whose flag stayed disabled when checkpointing was enabled."""
    set_to_off: frozenset[str] = frozenset()
    """The modules whose own flag was disabled while checkpointing was enabled."""
    still_on: tuple[str, ...] = ()
    """The modules whose flag stayed enabled when checkpointing was disabled."""
    blocks: tuple[Block, ...] = ()
    """The blocks that were found, if they were looked for."""
    stacked: frozenset[str] = frozenset()
    """The modules in stacks that feed one another, if they were looked for."""
    uncounted: tuple[str, ...] = ()
    """The stacks that are not counted, in words, if they were looked for."""
    scales: dict[str, float] = field(default_factory=dict)
    """The sizes of the outputs, by which the loss divides them."""
    replay: Replay = field(default_factory=Replay)
    """The comparison of recomputed with saved tensors in the first step."""
    inspection: Inspection | None = None
    """The inspection, if there was one."""
    executed: frozenset[int] = frozenset()
    """The numbers of what was executed, also in the construction; those of what blocks did inverted, too."""

    @property
    def mode(self) -> Mode:
        """The mode of the steps."""
        return self.conditions.mode


Key = tuple[Literal["gradient", "output", "value", "attribute"], str]
"""What is compared: its kind and name."""
Noise = Mapping[Key, float]
"""How much each of these may differ although nothing is wrong."""


def noise(reference: Run, others: Iterable[Run]) -> dict[Key, float]:
    """Return the largest differences of runs from the reference, where they are not the same."""
    found: dict[Key, float] = {}
    for other in others:
        for key, one, another in _pairs(reference, other):
            if isinstance(one, Tensor) and isinstance(another, Tensor):
                distance = deviation(one, another)
            else:
                distance = 0.0 if same(one, another) else math.inf
            if distance:
                found[key] = max(found.get(key, 0.0), distance)
    return found


def differences(one: Run, other: Run) -> frozenset[Key]:
    """Return where two runs of the same kind differ."""
    return frozenset(key for key, mine, yours in _pairs(one, other) if not same(mine, yours))


def gradients(mine: TrainingStep, yours: TrainingStep) -> Iterator[tuple[str, Tensor, Tensor]]:
    """Yield the gradients that are not zero in one of two steps; a missing one counts as zero."""
    for name in {**mine.gradients, **yours.gradients}:
        one, other = mine.gradients.get(name), yours.gradients.get(name)
        if not (is_nothing(one) and is_nothing(other)):
            some = one if one is not None else other
            assert some is not None
            yield (
                name,
                some.new_zeros(some.shape) if one is None else one,
                (some.new_zeros(some.shape) if other is None else other),
            )


def _pairs(one: Run, other: Run) -> Iterator[tuple[Key, Any, Any]]:
    for mine, yours in zip(one.steps, other.steps, strict=False):
        for name, first, second in gradients(mine, yours):
            yield ("gradient", name), first, second
        for name in {**mine.outputs, **yours.outputs}:
            yield ("output", name), mine.outputs.get(name), yours.outputs.get(name)
    # The state afterwards can be compared only after the same number of steps.
    if len(one.steps) == len(other.steps):
        for name in {**one.values, **other.values}:
            yield ("value", name), one.values.get(name), other.values.get(name)
        for name in {**one.attributes, **other.attributes}:
            yield ("attribute", name), one.attributes.get(name), other.attributes.get(name)
