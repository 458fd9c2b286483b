"""What is seen of training steps of one model in one mode; it can be sent to another process."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from gclint.verify.worker.examination.blocks import Block
from gclint.verify.worker.examination.comparison import is_nothing
from gclint.verify.worker.examination.evidence import Consequences
from gclint.verify.worker.examination.fault import Fault
from gclint.verify.worker.examination.inspection.inspector import Inspection
from gclint.verify.worker.examination.inspection.replay import Replay
from gclint.verify.worker.examination.trace import Call
from gclint.verify.worker.protocol import Mode, Place
from gclint.verify.worker.scenarios import Scenario, scenario_named

REQUIRING = "enable_input_require_grads()"
"""The stage in which the embeddings' output is made to require grad."""
SWITCHING_ON = "enabling checkpointing"
"""The stage in which a model may say that it has nothing to recompute."""


@dataclass(frozen=True)
class Conditions:
    """How a run is to be made."""

    scenario: Scenario
    mode: Mode
    shaken: int = 0
    """If not 0: changes the last bit of all parameters at random, to see what rounding alone changes; each
    number changes them in another way."""
    exact: bool = False
    """Whether to run in double precision, whatever the model says."""
    dissected: bool = False
    """Whether to look for the blocks and stacks in the first step."""
    inspected: bool = False
    """Whether to look closely at what is done, and done again, and why."""
    traced: bool = False
    """Whether to record the calls of blocks without checkpointing, too."""
    evaluated: bool = False
    """Whether to compute outputs in evaluation mode in place of steps, and more with their caches."""
    experts: str = ""
    """How to compute experts, where the release has several ways."""
    noise: int = 0
    """If not 0: puts noise on what is recomputed; each number puts another."""


_CACHED = replace(scenario_named("default"), use_cache=True, steps=1)
OTHERWISE = {
    "training with a cache": Conditions(_CACHED, "plain"),
    "evaluation": Conditions(scenario_named("default"), "plain", evaluated=True),
    "evaluation with a cache": Conditions(_CACHED, "plain", evaluated=True),
}
"""Ways to compute without checkpointing that no scenario needs, and that a repair leaves as they are."""


@dataclass(frozen=True)
class Step:
    """What one training step computed and cost."""

    loss: float
    own_loss: float | None
    outputs: dict[str, Tensor]
    gradients: dict[str, Tensor | None]
    saved_bytes: int
    seconds: float
    peak_bytes: int | None
    held_bytes: int = 0
    """What checkpoints hold beside what autograd saves."""
    carrying: frozenset[str] = frozenset()
    """The names of the outputs that require grad."""

    @cached_property
    def trained(self) -> frozenset[str]:
        """The names of the parameters that have a gradient."""
        return frozenset(name for name, gradient in self.gradients.items() if not is_nothing(gradient))


@dataclass
class Run:
    """What was seen of some steps after one another."""

    conditions: Conditions
    steps: list[Step] = field(default_factory=list)
    error: Fault | None = None
    stage: str = ""
    """What the error came in."""
    warnings: tuple[str, ...] = ()
    forward: Counter[str] = field(default_factory=Counter)
    """How often each block ran in forward passes."""
    recorded: Counter[str] = field(default_factory=Counter)
    """How often each did while gradients were recorded."""
    backward: Counter[str] = field(default_factory=Counter)
    """How often each block ran in backward passes."""
    calls: list[Call] = field(default_factory=list)
    consequences: Consequences = field(default_factory=Consequences)
    values: dict[str, Tensor] = field(default_factory=dict)
    """Parameters and buffers afterwards."""
    attributes: dict[str, Any] = field(default_factory=dict)
    """The attributes of modules that the steps have set."""
    still_off: tuple[str, ...] = ()
    """The modules that switching on left off."""
    set_to_off: frozenset[str] = frozenset()
    """The modules whose own switch was set to off while it was switched on."""
    still_on: tuple[str, ...] = ()
    """The modules that switching off left on."""
    blocks: tuple[Block, ...] = ()
    """The blocks that were found, if they were looked for."""
    stacked: frozenset[str] = frozenset()
    """The modules in stacks that feed one another, if they were looked for."""
    scales: dict[str, float] = field(default_factory=dict)
    """How large the outputs were; the loss measures each by it."""
    replay: Replay = field(default_factory=Replay)
    """How what is recomputed compares with what was saved in the first step."""
    inspection: Inspection | None = None
    """What was seen, if it was looked at closely."""
    executed: frozenset[Place] = frozenset()
    """The watched places that were come to, in the construction of the model as well."""

    @property
    def mode(self) -> Mode:
        """How the steps were run."""
        return self.conditions.mode

    @property
    def tensors(self) -> list[Tensor]:
        """What the steps computed."""
        return [
            each
            for step in self.steps
            for each in (*step.outputs.values(), *step.gradients.values())
            if each is not None
        ]

    def share(self, other: Run) -> None:
        """Take the tensors of another run in place of those that are the same, bit for bit."""
        for mine, yours in zip(self.steps, other.steps, strict=False):
            for own, others in ((mine.outputs, yours.outputs), (mine.gradients, yours.gradients)):
                own.update({name: each for name, each in others.items() if _are_one(own.get(name), each)})


def _are_one(mine: Tensor | None, yours: Tensor | None) -> bool:
    """Return whether two tensors have the same bits; those that have no plain ones are never one."""
    if mine is None or yours is None or mine.dtype != yours.dtype or mine.shape != yours.shape:
        return False
    if not (_is_plain(mine) and _is_plain(yours)):
        return False
    one, other = (each.detach().contiguous().view(-1).view(torch.uint8) for each in (mine, yours))
    return bool(torch.equal(one, other))


def _is_plain(tensor: Tensor) -> bool:
    return (
        tensor.layout == torch.strided
        and tensor.device.type == "cpu"
        and tensor.numel() > 0
        and not (tensor.is_conj() or tensor.is_neg())
    )
