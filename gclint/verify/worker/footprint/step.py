"""Runs one training step with fake tensors, and records it: what is alive at any moment, and computed."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry, sdpa_backward_flop_count, sdpa_flop_count

from gclint.verify.worker.examination.blocks import BlockFinder
from gclint.verify.worker.examination.subject import enable_checkpointing
from gclint.verify.worker.examination.tensors import OWN, outputs_of
from gclint.verify.worker.footprint.building import Trainee
from gclint.verify.worker.footprint.fake import PartlyFake
from gclint.verify.worker.footprint.kept import Kept
from gclint.verify.worker.modes import Mode

_aten = torch.ops.aten


def _attention(query: Tensor, key: Tensor, value: Tensor, *_: Any, **__: Any) -> int:
    return int(sdpa_flop_count(query.shape, key.shape, value.shape))


def _attention_backward(gradient: Tensor, *tensors: Any, **__: Any) -> int:
    return int(sdpa_backward_flop_count(gradient.shape, *(each.shape for each in tensors[:3])))


def _grouped(one: Tensor, other: Tensor, *_: Any, **__: Any) -> int:
    groups = one.shape[0] if one.dim() == other.dim() == 3 else 1
    return int(2 * groups * one.shape[-2] * one.shape[-1] * other.shape[-1])


_FLOPS = {
    _aten._grouped_mm: _grouped,
    **flop_registry,
    _aten._scaled_dot_product_flash_attention_for_cpu: _attention,
    _aten._scaled_dot_product_flash_attention_for_cpu_backward: _attention_backward,
}
"""The FLOPs of torch's counter, and of what some releases lack: experts, and attention on a CPU."""


@dataclass(frozen=True)
class Alive:
    """A storage, and the first tensor in it."""

    storage: int
    size: int
    shape: tuple[int, ...]
    dtype: torch.dtype
    module: str
    """The module that made it."""
    block: str
    """The block that had started last."""
    reference: Any
    """A weak reference that tells the meter when it is freed."""


class Meter(TorchDispatchMode):  # type: ignore[misc]
    """Counts, while it is entered, the bytes of all tensors that are alive, and the FLOPs.

    The bytes are those of torch's own tracker (``torch.distributed._tools.mem_tracker``), whose time grows
    with the square of a model's depth.
    """

    def __init__(self, model: nn.Module) -> None:
        """Begin with the weights of a model."""
        super().__init__()
        self.flops = 0
        self.alive = 0
        """Bytes that are alive now."""
        self.peak = 0
        """The most bytes that have been alive."""
        self.where: Callable[[], tuple[str, str]] = lambda: ("", "")
        """Returns the current module and the block that started last."""
        self._known: dict[int, Alive] = {}
        for each in chain(model.parameters(), model.buffers()):
            self._note(each)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        count = _FLOPS.get(func.overloadpacket)
        if count is not None:
            self.flops += count(*args, **kwargs, out_val=result)
        for each in tree_leaves(result):
            if isinstance(each, Tensor):
                self._note(each)
        return result

    def made_in_blocks(self) -> Iterator[Alive]:
        """Yield what blocks have made and is alive now."""
        yield from (each for each in list(self._known.values()) if each.block)

    def _note(self, tensor: Tensor) -> None:
        storage = tensor.untyped_storage()
        key, size = storage._cdata, storage.nbytes()
        if key not in self._known:
            reference = weakref.ref(storage, partial(self._forget, key, size))
            shape = tuple(tensor.shape)
            self._known[key] = Alive(key, size, shape, tensor.dtype, *self.where(), reference)
            self.alive += size
            self.peak = max(self.peak, self.alive)

    def _forget(self, key: int, size: int, _reference: Any) -> None:
        del self._known[key]
        self.alive -= size


_Seen = TypeVar("_Seen")


@dataclass(frozen=True)
class Step(Generic[_Seen]):
    """The record of a step."""

    left: _Seen
    """The caller's evaluation of what the forward pass left in memory."""
    forward_flops: int
    flops: int
    peak_bytes: int


@dataclass(frozen=True)
class Structure:
    """How a model works, observed once."""

    blocks: tuple[str, ...]
    """The names of its blocks, the outermost of nested ones."""
    has_chosen: bool
    """Whether it chose anything by computed numbers."""
    has_decided: bool
    """Whether it needed a computed truth value, which was taken to be false."""


def built(trainee: Trainee, fake: PartlyFake) -> Any:
    """Return the model of a question with fake weights; ``fake`` must be entered."""
    fake.is_building = True
    try:
        model = trainee.build()
        fake.convert_parameters(model)
    finally:
        fake.is_building = False
    return model


def structure_of(trainee: Trainee) -> Structure:
    """Return how a model works.

    This takes a whole step, so any error that prevents running the class is raised here.
    """
    fake = PartlyFake()
    with fake:
        model = built(trainee, fake)
        inputs = fake.convert(trainee.inputs())
        with BlockFinder(model) as finder:
            loss = loss_of(model(**inputs))
        loss.backward()
    trained = [name for name, each in model.named_parameters() if each.grad is not None]
    found = [each.name for each in finder.blocks(trained) if each.is_trunk or each.is_layer]
    outer = [name for name in found if not any(name.startswith(f"{other}.") for other in found)]
    return Structure(tuple(outer), fake.has_chosen, fake.has_decided)


def take_step(
    trainee: Trainee, mode: Mode, names: Collection[str], evaluate: Callable[[Kept], _Seen], **options: Any
) -> Step[_Seen]:
    """Run a step with fake tensors, with the release's options of checkpointing.

    ``evaluate`` evaluates what the forward pass leaves in memory, while it is there.
    """
    fake = PartlyFake()
    with fake:
        model = built(trainee, fake)
        if mode != "plain":
            enable_checkpointing(model, mode, **options)
        inputs = fake.convert(trainee.inputs())
        meter = Meter(model)
        with meter:
            left, loss = forward(model, inputs, names, evaluate, is_plain=mode == "plain", meter=meter)
            forward_flops = meter.flops
            loss.backward()
    return Step(left, forward_flops, meter.flops, meter.peak)


def forward(
    model: Any,
    inputs: Mapping[str, Any],
    names: Collection[str],
    evaluate: Callable[[Kept], _Seen],
    *,
    is_plain: bool,
    meter: Meter | None = None,
) -> tuple[_Seen, Tensor]:
    """Run a forward pass, with fake or real tensors; return what it leaves in memory, and the loss."""
    modules = dict(model.named_modules())
    kept = Kept(model, {name: modules[name] for name in names}, keeps_boundaries=not is_plain)
    if meter is not None:
        meter.where = kept.here
    with kept:
        outputs = model(**inputs)
    if meter is not None:
        kept.take_others(meter.made_in_blocks(), outputs)
    left = evaluate(kept)
    # The local variables would otherwise outlive the graph.
    kept.forget()
    return left, loss_of(outputs)


def loss_of(outputs: Any) -> Tensor:
    """Return the tensor for the backward pass: the model's own loss, or else the sum of its outputs.

    Raises:
        RuntimeError: no output requires grad.
    """
    found = outputs_of(outputs)
    own = found.get(OWN)
    if own is not None and own.requires_grad:
        return own.sum()
    terms = [each.float().sum() for each in found.values() if each.requires_grad and not each.is_complex()]
    if not terms:
        raise RuntimeError("no output of the model requires grad")
    return torch.stack(terms).sum()
