"""What stays in memory until the backward pass, which line put it there, and what each block adds."""

from __future__ import annotations

import functools
import inspect
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from operator import attrgetter
from typing import Any
from weakref import WeakSet

import torch
from torch import Tensor, nn

from gclint.verify.worker.estimates import Addition, Saved
from gclint.verify.worker.examination.block_calls import innermost_place
from gclint.verify.worker.examination.inspection.checkpoints import CheckpointCall, Checkpoints, Observer
from gclint.verify.worker.examination.inspection.parts import captured
from gclint.verify.worker.examination.state import state_tensors
from gclint.verify.worker.examination.tensors import tensors_in
from gclint.verify.worker.footprint.fake import Alive
from gclint.verify.worker.modes import Mode

AUTOGRAD, CHECKPOINT, OTHERS = "autograd", "checkpoint", "something else"
"""The keepers of tensors."""
_NUMBER = re.compile(r"\.\d+(?=\.|$)")


class Record:
    """A kept tensor, as long as it is alive."""

    __slots__ = ("__weakref__", "block", "is_after", "keeper", "module", "number", "place", "tensor")

    def __init__(
        self, tensor: Tensor, keeper: str, module: str, block: str, number: int, *, is_after: bool
    ) -> None:
        self.tensor = tensor
        self.keeper = keeper
        self.module = module
        self.block = block
        self.number = number
        self.is_after = is_after
        self.place = innermost_place()

    @property
    def size(self) -> int:
        """The bytes of the whole storage, of which the tensor may be a part."""
        return int(self.tensor.untyped_storage().nbytes())


class Kept(Observer):
    """Observes, while it is entered, a forward pass; afterwards, it knows what stays in memory.

    What autograd saves lives as long as the graph that needs it. So only what is still alive at the end
    counts: a branch that the model discards costs nothing.
    """

    def __init__(self, model: nn.Module, blocks: Mapping[str, nn.Module], *, keeps_boundaries: bool) -> None:
        self._keeps_boundaries = keeps_boundaries
        self._known = {storage_of(each) for each in state_tensors(model).values()}
        self._names = {module: name for name, module in model.named_modules()}
        self._blocks = {module: name for name, module in blocks.items()}
        self.kinds = {name: type(module).__name__ for name, module in blocks.items()}
        """The classes of the blocks."""
        self._alive: WeakSet[Record] = WeakSet()
        self._held: list[Record] = []
        self._running: list[str] = [""]
        self._block = ""
        self._count = 0
        self.order: list[str] = []
        """The blocks in the order in which they started."""
        self.boundaries: dict[str, Tensor] = {}
        """The hidden states that were passed to each block."""
        self.checkpointed: set[str] = set()
        """The blocks whose modules ran in checkpoints."""
        self.others: list[Alive] = []
        """What something else keeps, such as a cache or a list, after :meth:`take_others`."""
        self._open = 0
        self._exit = ExitStack()

    def records(self) -> list[Record]:
        """Return what is kept now: the first record of each storage, in order."""
        found: dict[int, Record] = {}
        for each in sorted((*self._alive, *self._held), key=lambda each: each.number):
            storage = storage_of(each.tensor)
            if storage is not None and storage not in self._known:
                found.setdefault(storage, each)
        return list(found.values())

    def here(self) -> tuple[str, str]:
        """Return the current module and the block that started last."""
        return self._running[-1], self._block

    def take_others(self, alive: Iterable[Alive], outputs: Any) -> None:
        """Record what blocks have made and neither autograd, checkpoints nor the caller keeps alive."""
        known = self._known | {storage_of(each.tensor) for each in self.records()}
        known |= {storage_of(each) for _, each in tensors_in((outputs,))}
        known |= {storage_of(each) for each in self.boundaries.values()}
        self.others = [each for each in alive if each.storage not in known]

    def boundary_owners(self) -> dict[int | None, str]:
        """Return the blocks by the storages of their boundaries."""
        owners: dict[int | None, str] = {}
        for name, tensor in self.boundaries.items():
            owners.setdefault(storage_of(tensor), name)
        return owners

    @property
    def total(self) -> int:
        """The bytes of everything that is kept now."""
        return sum(each.size for each in self.records())

    def forget(self) -> None:
        """Release everything."""
        self._held.clear()
        self.boundaries.clear()

    def __enter__(self) -> Kept:
        enter = self._exit.enter_context
        enter(Checkpoints((self,)))
        enter(torch.autograd.graph.saved_tensors_hooks(self._pack, attrgetter("tensor")))
        for module in self._names:
            before = module.register_forward_pre_hook(self._before, with_kwargs=True, prepend=True)
            after = module.register_forward_hook(self._after, always_call=True)
            self._exit.callback(before.remove)
            self._exit.callback(after.remove)
        return self

    def __exit__(self, *_: object) -> None:
        self._exit.close()

    def begin(self, region: CheckpointCall, arguments: tuple[Any, ...]) -> None:
        """Record what a checkpoint holds unseen by autograd: everything but its arguments."""
        self._open += 1
        if region.outer is None and not region.is_again:
            for value in (*_bound_in(region.function), region.keywords):
                for _, tensor in tensors_in(value):
                    self._held.append(self._record(tensor, CHECKPOINT))

    def end(self, region: CheckpointCall, result: Any, is_complete: bool) -> None:
        """Record that the checkpoint has ended."""
        self._open -= 1

    def _before(self, module: nn.Module, args: Any, kwargs: Any) -> None:
        self._running.append(self._names[module])
        if self._open and self._running[-1].startswith(f"{self._block}."):
            self.checkpointed.add(self._block)
        if module in self._blocks:
            self._block = self._blocks[module]
            self.order.append(self._block)
            states = next((each for _, each in tensors_in((args, kwargs)) if each.is_floating_point()), None)
            if states is not None and self._keeps_boundaries:
                self.boundaries.setdefault(self._block, states)

    def _after(self, module: nn.Module, args: Any, output: Any) -> None:
        self._running.pop()

    def _pack(self, tensor: Tensor) -> Record:
        record = self._record(tensor, AUTOGRAD)
        self._alive.add(record)
        return record

    def _record(self, tensor: Tensor, keeper: str) -> Record:
        self._count += 1
        is_after = self._block not in self._running
        return Record(tensor, keeper, self._running[-1], self._block, self._count, is_after=is_after)


def storage_of(tensor: Tensor) -> int | None:
    """Return the identity of a tensor's storage, also of a fake one; None if it has none."""
    try:
        return int(tensor.untyped_storage()._cdata)
    except (NotImplementedError, RuntimeError):
        return None  # Sparse tensors and those of function transforms have no storage of their own.


def _bound_in(function: Any) -> Iterator[Any]:
    """Yield what a function is bound to, and what it captures."""
    while isinstance(function, functools.partial):
        yield function.args
        yield function.keywords
        function = function.func
    if inspect.isfunction(function):
        yield from (each for _, each in captured(function))


def additions(mode: Mode, records: Sequence[Record], kept: Kept) -> list[Addition]:
    """Return what each additional block of each stack adds in a checkpointed mode."""
    stacks: dict[tuple[str, str], list[str]] = {}
    for name in dict.fromkeys(kept.order):
        stacks.setdefault((re.sub(r"\.\d+$", "", name), kept.kinds[name]), []).append(name)
    found = (_addition(mode, stack, kind, blocks, records, kept) for (stack, kind), blocks in stacks.items())
    return [each for each in found if each is not None]


def _addition(
    mode: Mode, stack: str, kind: str, blocks: list[str], records: Sequence[Record], kept: Kept
) -> Addition | None:
    # The first block also keeps what all blocks share.
    inner = blocks[1:]
    if not inner or any(name not in kept.boundaries for name in inner):
        return None
    owners = kept.boundary_owners()
    own: dict[str, int] = {}
    extras: dict[str, list[Saved]] = {}
    for name in inner:
        # What follows the last one does not belong to it.
        is_last = name == blocks[-1]
        mine = [each for each in records if owners.get(storage_of(each.tensor), each.block) == name]
        beside = [each for each in mine if storage_of(each.tensor) not in owners]
        own[name] = sum(each.size for each in mine) - sum(each.size for each in beside)
        beside = [each for each in beside if not (is_last and each.is_after)]
        alive = [each for each in kept.others if each.block == name and not is_last]
        extras[name] = [*saved(beside), *_elsewhere(alive)]
    # What only one of several blocks keeps is shared by the later ones.
    times = Counter(each for listed in extras.values() for each in listed)
    again = {
        name: tuple(each for each in listed if times[each] > 1 or len(inner) == 1)
        for name, listed in extras.items()
    }
    sizes = {name: own[name] + sum(each.size for each in again[name]) for name in inner}
    most = max(sizes, key=lambda name: sizes[name])
    boundary = kept.boundaries[most]
    if not sizes[most]:
        return None
    return Addition(
        mode,
        stack,
        kind,
        len(blocks),
        boundary.untyped_storage().nbytes(),
        tuple(boundary.shape),
        sizes[most],
        again[most],
        recomputed=all(name in kept.checkpointed for name in blocks),
    )


def saved(records: Iterable[Record]) -> tuple[Saved, ...]:
    """Return records of the same line and shape together, in the order in which they are first seen."""
    groups: dict[Any, list[Record]] = {}
    for each in records:
        module = _NUMBER.sub(".*", each.module)
        key = (module, each.place, each.keeper, tuple(each.tensor.shape), str(each.tensor.dtype))
        groups.setdefault(key, []).append(each)
    return tuple(
        Saved(
            module, place, keeper, shape, dtype.removeprefix("torch."), len(same), sum(e.size for e in same)
        )
        for (module, place, keeper, shape, dtype), same in groups.items()
    )


def largest_first(lines: Iterable[Saved]) -> tuple[Saved, ...]:
    """Return lines sorted by what they save."""
    return tuple(sorted(lines, key=lambda each: -each.size))


def _elsewhere(alive: Iterable[Alive]) -> Iterator[Saved]:
    """Yield what neither autograd nor a checkpoint keeps."""
    for each in alive:
        dtype = str(each.dtype).removeprefix("torch.")
        yield Saved(_NUMBER.sub(".*", each.module), None, OTHERS, each.shape, dtype, 1, each.size)
