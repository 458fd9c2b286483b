"""Questions about the memory of a training step, and their answers, as both sides of the verifier know them.

Bytes are whole bytes, sizes of tensors are in elements, and FLOPs count a multiplication and an addition as
two. Everything is about one process that trains all parameters, or adapters, without a cache and without
dropout of attention weights; where weights, gradients and states are sharded, about one of the ranks.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from gclint.verify.worker.modes import Mode, SourcePlace

Dimension = Literal["batch", "sequence"]


@dataclass(frozen=True)
class Lora:
    """Adapters of peft on a frozen model."""

    rank: int = 16
    targets: tuple[str, ...] = ()
    """The names of the layers that have them, as peft knows them; empty for all linear ones."""


@dataclass(frozen=True)
class Sharding:
    """What ranks share among them."""

    stage: int
    """That of ZeRO: 1 for the optimizer's state, 2 for gradients as well, and 3, or FSDP, for weights too."""
    ranks: int


@dataclass(frozen=True)
class EstimateRequest:
    """Which model to estimate, and at which size."""

    model_class: str = ""
    """The name of the class; empty for the one that is most likely trained."""
    batch: int = 1
    sequence: int | None = None
    """Tokens per item; None for the verifier's choice."""
    padding: bool = False
    """Whether texts have different lengths, so that a mask says where they end."""
    dtype: str = "bfloat16"
    """The type of the weights, as torch names it."""
    layers: int | None = None
    """The depth of each stack, in place of the configuration's."""
    fields: dict[str, Any] = field(default_factory=dict)
    """Fields of the configuration to set, by their dotted names."""
    config: dict[str, Any] | None = None
    """The content of a ``config.json``; None for the defaults of the configuration class."""
    optimizer: str = "adamw"
    """One of :data:`OPTIMIZERS`, or :data:`ADAFACTOR`."""
    autocast: bool = False
    """Whether a model in float32 computes in bfloat16, as ``TrainingArguments(bf16=True)`` has it."""
    lora: Lora | None = None
    """The adapters that are trained; None to train all parameters."""
    bits: int | None = None
    """The bits of a frozen weight that is quantised: 4 or 8."""
    accumulates: bool = False
    """Whether gradients of an earlier batch are there already."""
    sharding: Sharding | None = None
    budget: int | None = None
    """Bytes that a step may need, to find the largest batch and sequence; None not to search."""
    measure: bool = False
    """Whether to run the same step with real tensors as well, on the worker's device."""


OPTIMIZERS: dict[str, tuple[int, int | None]] = {
    "adamw": (2, None),
    "adamw-fp32": (3, 4),
    "adamw-8bit": (2, 1),
    "sgd": (0, None),
    "sgd-momentum": (1, None),
    "none": (0, None),
}
"""How many numbers an optimizer keeps for each parameter, and the bytes of each; None stands for those of the
parameter, as torch's optimizers have it. ``adamw-fp32`` keeps a copy of the weights in fp32 as well."""
ADAFACTOR = "adafactor"
"""Keeps a row and a column for each matrix, in fp32."""


@dataclass(frozen=True)
class Saved:
    """Tensors of one shape that one line of the source keeps in memory until the backward pass."""

    module: str
    """The module that ran, with ``*`` for the numbers of blocks; empty for the model itself."""
    place: SourcePlace | None
    """The line, if it is known."""
    operation: str
    """What keeps it: ``autograd``, ``checkpoint`` for arguments of a checkpoint that autograd does not see,
    or ``something else``, such as a cache or a list of the model."""
    shape: tuple[int, ...]
    dtype: str
    count: int
    """How many such tensors there are."""
    size: int
    """Bytes, all together."""


@dataclass(frozen=True)
class BlockBytes:
    """What one block adds to what is saved for the backward pass."""

    name: str
    """The name of the module, such as ``model.layers.3``."""
    kind: str
    """The name of its class."""
    saved_bytes: int


@dataclass(frozen=True)
class ModeEstimate:
    """One step in one mode."""

    mode: Mode
    saved_bytes: int = 0
    """Bytes saved for the backward pass at the end of the forward pass, without parameters and buffers."""
    blocks: tuple[BlockBytes, ...] = ()
    """The blocks in the order in which they run; the rest of ``saved_bytes`` is saved outside of them."""
    peak_bytes: int | None = None
    """The most memory that is alive at once in a step, with weights and gradients and without an optimizer's
    state; None if it is not known."""
    forward_flops: int = 0
    flops: int = 0
    """FLOPs of the forward and the backward pass, and of recomputation."""
    largest: tuple[Saved, ...] = ()
    """The largest saved tensors, in descending order."""
    error: str = ""
    """Why there are no numbers for this mode."""


@dataclass(frozen=True)
class Addition:
    """What each additional block of a stack adds with checkpointing: its boundary, and anything else."""

    mode: Mode
    stack: str
    """The name of the stack, such as ``model.layers``."""
    kind: str
    """The class of the blocks."""
    blocks: int
    boundary_bytes: int
    """Bytes of the hidden states that are passed to such a block, from which it is recomputed."""
    boundary_shape: tuple[int, ...]
    added_bytes: int
    """The most that a block after the first adds, without what only one of several adds."""
    extras: tuple[Saved, ...] = ()
    """What else each block adds."""
    recomputed: bool = True
    """Whether the blocks are checkpointed at all."""

    @property
    def is_exact(self) -> bool:
        """Whether an additional block adds only its boundary."""
        return self.recomputed and self.added_bytes == self.boundary_bytes


@dataclass(frozen=True)
class Fit:
    """The largest batch or sequence that fits the budget, if everything else stays the same."""

    dimension: Dimension
    mode: Mode
    largest: int
    """0 if not even one fits."""
    needed_bytes: int
    """The peak of that, with the optimizer's state; the peak of 1 if not even that fits."""
    is_limit: bool = False
    """Whether the search stopped at the limit of positions, or of realistic sizes."""
    error: str = ""
    """Why this is unknown: the error of one of the sizes that were tried; the numbers are 0 then."""


@dataclass(frozen=True)
class Help:
    """What one item needs with checkpointing if it is trained in another way."""

    option: str
    """The options of the command that say how."""
    needed_bytes: int
    """The peak, with the optimizer's state."""


@dataclass(frozen=True)
class Option:
    """The effect of a checkpointing option of the release, in non-reentrant mode."""

    every_n_layers: int
    offload: bool
    saved_bytes: int
    """On the device."""
    host_bytes: int
    """In the host's memory."""
    flops: int
    peak_bytes: int
    """As in a :class:`ModeEstimate`; with offloading, it includes the host's memory."""


@dataclass(frozen=True)
class Measurement:
    """The same step, run with real tensors."""

    mode: Mode
    device: str
    """``cpu``, or the name of the GPU."""
    saved_bytes: int = 0
    seconds: float = 0.0
    """Wall-clock time of the step, after one to warm up."""
    peak_bytes: int | None = None
    """The peak of allocated memory on the GPU; None on a CPU."""
    error: str = ""
    """Why nothing was measured."""


@dataclass(frozen=True)
class MemoryEstimate:
    """Everything that is known about one model at one size."""

    source: str
    """The file that the class is defined in."""
    name: str
    """The class."""
    batch: int = 1
    sequence: int | None = None
    """None if the model does not take tokens."""
    dtype: str = "bfloat16"
    settings: dict[str, Any] = field(default_factory=dict)
    """The sizes that the configuration has, by their dotted names."""
    inputs: dict[str, str] = field(default_factory=dict)
    """The inputs of the model: names, with type and shape in words."""
    training: str = ""
    """How it is trained, in words, if not all parameters by one process."""
    by_formula: bool = False
    """Whether bytes of weights, gradients or states follow from formulas: quantised or sharded ones."""
    parameters: int = 0
    trained: int = 0
    """How many of the parameters are trained."""
    weight_bytes: int = 0
    """Parameters and buffers."""
    gradient_bytes: int = 0
    optimizer: str = "adamw"
    optimizer_bytes: int = 0
    modes: tuple[ModeEstimate, ...] = ()
    additions: tuple[Addition, ...] = ()
    fits: tuple[Fit, ...] = ()
    budget: int | None = None
    helps: tuple[Help, ...] = ()
    """What may help, if not even one item fits."""
    options: tuple[Option, ...] = ()
    """Empty if the release has none."""
    measurements: tuple[Measurement, ...] = ()
    notes: tuple[str, ...] = ()
    """Remarks on the numbers, in sentences."""
    seconds: float = 0.0
    """How long the estimate took."""
    missing: tuple[str, ...] = ()
    """What is not known, since the estimate ended before: modes, and other parts in words."""
    ended: str = ""
    """How it ended before all was known, as words that follow "there was"."""

    def mode(self, name: Mode) -> ModeEstimate | None:
        """Return the estimate of a mode, if there is one with numbers."""
        return next((each for each in self.modes if each.mode == name and not each.error), None)
