"""What is observed in a step: the runs of blocks in each phase, time, memory, and what autograd keeps."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Iterable
from threading import get_ident
from typing import Any

import torch
from torch import Tensor, nn

from gclint.verify.worker.examination.blocks import Block, on_calls
from gclint.verify.worker.examination.fault import EndlessRecomputation
from gclint.verify.worker.examination.state import state_tensors
from gclint.verify.worker.examination.tensors import address_of, tensors_in
from gclint.verify.worker.scenarios import ENDLESS

_SIZE = 2.0**-8
"""The relative size of the noise: about a rounding error of bfloat16."""
_NORM = re.compile(r"norm", re.IGNORECASE)
_EXPERTS = re.compile(r"expert|moe|router", re.IGNORECASE)
_IMPLEMENTATION = "_experts_implementation"
_IMPLEMENTATIONS = ("eager", "grouped_mm")


class Phases:
    """Counts, while it is entered, the runs of blocks in forward and in backward passes."""

    def __init__(self, model: nn.Module, blocks: Iterable[Block]) -> None:
        self.backward = False
        self.runs: dict[bool, Counter[str]] = {False: Counter(), True: Counter()}
        """The runs of each block by name, in backward passes (True) and otherwise."""
        self.recorded: dict[bool, Counter[str]] = {False: Counter(), True: Counter()}
        """Those that recorded a gradient."""
        self.is_threaded = False
        """Whether a module recorded gradients in another thread, where the hooks of this one see nothing."""
        self._thread = get_ident()
        self._blocks: dict[nn.Module, list[str]] = {}
        for block in blocks:
            self._blocks.setdefault(model.get_submodule(block.inside), []).append(block.name)
        self._hooks: list[Any] = []

    def watch(self, name: str, module: nn.Module) -> None:
        """Count the runs of another module as well, once this is entered."""
        self._blocks.setdefault(module, []).append(name)

    def __enter__(self) -> Phases:
        self._hooks = on_calls(self._count)
        return self

    def __exit__(self, *_: object) -> None:
        for hook in self._hooks:
            hook.remove()

    def _count(self, module: nn.Module, _arguments: Any) -> None:
        is_recorded = torch.is_grad_enabled()
        if is_recorded and not self.backward and get_ident() != self._thread:
            self.is_threaded = True
        for name in self._blocks.get(module, ()):
            self.runs[self.backward][name] += 1
            if is_recorded:
                self.recorded[self.backward][name] += 1
            if self.backward and self.runs[True][name] > ENDLESS * max(self.runs[False][name], 1):
                raise EndlessRecomputation(name)


class RecomputeNoise:
    """Adds, while it is entered, noise to the inputs of the norms of blocks, only in the backward pass."""

    def __init__(self, model: nn.Module, blocks: Iterable[Block], phases: Phases, seed: int) -> None:
        self._norms = {
            module: None
            for block in blocks
            for module in model.get_submodule(block.name).modules()
            if _NORM.search(type(module).__name__) and next(module.children(), None) is None
        }
        self._phases = phases
        self._generator = torch.Generator().manual_seed(seed)
        self._hooks: list[Any] = []

    def __enter__(self) -> RecomputeNoise:
        self._hooks = on_calls(self._add_noise)
        return self

    def __exit__(self, *_: object) -> None:
        for hook in self._hooks:
            hook.remove()

    def _add_noise(self, module: nn.Module, arguments: tuple[Any, ...]) -> Any:
        if not (module in self._norms and self._phases.backward):
            return None
        if not (arguments and isinstance(arguments[0], Tensor)):
            return None
        first, *others = arguments
        noise = torch.randn(first.shape, generator=self._generator).to(first)
        # An addition saves nothing for the backward pass, where everything that is saved is compared.
        return (first + first.detach() * _SIZE * noise, *others)


def has_experts(model: nn.Module) -> bool:
    """Return whether a model has experts, judging by the class names of its modules."""
    return any(_EXPERTS.search(type(module).__name__) for module in model.modules())


def expert_implementations(model: nn.Module) -> tuple[str, ...]:
    """Return the implementations of a model's experts by name; an empty name if there is only one."""
    has_choice = any(hasattr(getattr(module, "config", None), _IMPLEMENTATION) for module in model.modules())
    return _IMPLEMENTATIONS if has_choice else ("",)


def use_experts(model: nn.Module, implementation: str) -> None:
    """Make a model compute its experts with one of the implementations of its release."""
    for module in model.modules():
        config = getattr(module, "config", None)
        if hasattr(config, _IMPLEMENTATION):
            setattr(config, _IMPLEMENTATION, implementation)


class Clock:
    """Adds up the time while it is entered, and has the GPU's peak memory since it was created."""

    def __init__(self, device: torch.device) -> None:
        self.seconds = 0.0
        self._device = device
        self._started = 0.0
        self._before = 0
        if device.type == "cuda":
            torch.cuda.synchronize(device)
            torch.cuda.reset_peak_memory_stats(device)
            self._before = torch.cuda.memory_allocated(device)

    @property
    def peak_bytes(self) -> int | None:
        """The peak of allocated memory beyond that at the start, or None without a GPU."""
        if self._device.type != "cuda":
            return None
        return int(torch.cuda.max_memory_allocated(self._device)) - self._before

    def __enter__(self) -> Clock:
        self._started = time.perf_counter()
        return self

    def __exit__(self, *_: object) -> None:
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
        self.seconds += time.perf_counter() - self._started


class SavedBytes:
    """Counts, while it is entered, the storages that are saved for the backward pass, each once.

    The hooks are called by autograd itself, so this works on any device and does not depend on blocks.
    """

    def __init__(
        self, model: torch.nn.Module, note: Callable[[int, int], None] = lambda _address, _size: None
    ) -> None:
        """Prepare; ``note`` is called with address and size of each storage when it is first saved."""
        self._note = note
        self._known = {each.untyped_storage().data_ptr() for each in state_tensors(model).values()}
        self._sizes: dict[int, int] = {}
        self._held: dict[int, int] = {}
        self._hooks = torch.autograd.graph.saved_tensors_hooks(self._pack, lambda tensor: tensor)

    @property
    def total(self) -> int:
        """Bytes, without parameters and buffers."""
        return sum(self._sizes.values())

    @property
    def held(self) -> int:
        """Bytes that checkpoints hold in addition: their keyword arguments, which autograd does not see."""
        return sum(size for address, size in self._held.items() if address not in self._sizes)

    def hold(self, value: object) -> None:
        """Record that a checkpoint holds the tensors in a value."""
        for _, tensor in tensors_in(value):
            self._count(tensor, self._held)

    def __enter__(self) -> SavedBytes:
        self._hooks.__enter__()
        return self

    def __exit__(self, *raised: Any) -> None:
        self._hooks.__exit__(*raised)

    def _pack(self, tensor: Tensor) -> Tensor:
        self._count(tensor, self._sizes)
        return tensor

    def _count(self, tensor: Tensor, sizes: dict[int, int]) -> None:
        address = address_of(tensor)
        if address is not None and address not in self._known:
            size = tensor.untyped_storage().nbytes()
            if sizes is self._sizes and address not in sizes:
                self._note(address, size)
            sizes[address] = size
