"""Tensors that have a shape but no content, among a few real ones, and a meter of what is computed with them.

The tensors on which a model bases decisions are real: token ids, positions and masks, which are small. So the
model takes the same branches as with real tensors: a mask that masks nothing is dropped, and images replace
their placeholder tokens. Everything else is fake, so that a step of a model of any size takes seconds and
hardly any memory.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes
from torch.utils._pytree import tree_map_only
from torch.utils.flop_counter import flop_registry, sdpa_backward_flop_count, sdpa_flop_count

from gclint.verify.worker.examination.tensors import all_tensors
from gclint.verify.worker.footprint.keeping import Keeping

_MOST_WHOLE = 1 << 26
"""The bytes of the largest real integer or Boolean tensor."""
_MOST_CONSTANTS = 1 << 22
"""The same for floating-point tensors that are constant, or count."""
_MOST_FRACTIONS = 1 << 12
"""The same for tensors that are computed from these."""
_aten = torch.ops.aten
_CONSTANT = {_aten.arange, _aten.linspace, _aten.logspace, _aten.ones, _aten.zeros, _aten.full}
"""Operations that make floating-point numbers on which models decide, such as masks."""
_SHAPED_BY_VALUES = {torch.Tag.dynamic_output_shape, torch.Tag.data_dependent_output}
_CHOOSING = {_aten.topk, _aten.sort, _aten.argmax, _aten.argmin, _aten.multinomial}
"""Operations that choose among fake numbers, such as experts."""


class TooManyOperations(Exception):
    """A model runs more operations than it is allowed to."""


class PartlyFake(TorchDispatchMode):  # type: ignore[misc]
    """Makes everything that is computed while it is entered fake, except for what models decide on.

    If a model chooses by computed values, such as the experts of a token, each option is chosen equally
    often.
    """

    def __init__(self, most: int | None = None) -> None:
        """Allow this many operations, or any number."""
        super().__init__()
        self._fake = FakeTensorMode(allow_non_fake_inputs=True)
        self._most = most
        self.operations = 0
        """How many operations were run."""
        self.has_chosen = False
        """Whether anything was chosen by the values of a fake tensor."""
        self.has_decided = False
        """Whether the truth value of a fake tensor was needed, such as whether a number is infinite."""
        self.is_building = False
        """Whether the model is being built: only initialisers that retry read the values of weights."""

    def convert(self, value: Any) -> Any:
        """Return a value with fake tensors in place of floating-point ones."""
        return tree_map_only(Tensor, lambda each: self._converted(each), value)

    def convert_parameters(self, model: nn.Module) -> None:
        """Make the remaining parameters of a model fake; shared ones stay shared."""
        converted: dict[nn.Parameter, nn.Parameter] = {}
        for module in model.modules():
            for name, parameter in module._parameters.items():
                if parameter is None or isinstance(parameter, FakeTensor):
                    continue
                if parameter not in converted:
                    # A tensor with fake data claims to be a meta tensor.
                    with self._fake:
                        fake = torch.empty(parameter.shape, dtype=parameter.dtype)
                    converted[parameter] = nn.Parameter(fake, requires_grad=parameter.requires_grad)
                module._parameters[name] = converted[parameter]

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.operations += 1
        # Where torch asks for a device or a size, an exception would end the process.
        if self._most is not None and self.operations > self._most and torch.Tag.pointwise in func.tags:
            raise TooManyOperations
        # Without a GPU, memory cannot be pinned.
        kwargs = {name: each for name, each in (kwargs or {}).items() if name != "pin_memory"}
        given = list(all_tensors((args, kwargs)))
        if not any(isinstance(each, FakeTensor) for each in given):
            return self._among_real(func, given, args, kwargs)
        packet = func.overloadpacket
        if packet is _aten._local_scalar_dense and (self.is_building or args[0].dtype is torch.bool):
            self.has_decided |= not self.is_building
            return False if args[0].dtype is torch.bool else 0.0
        if packet is _aten.embedding:
            _check_range(*args[:2])
        if packet in _SHAPES:
            return _SHAPES[packet](*args, **kwargs)
        if packet in _MASKED:
            args = _MASKED[packet](*args)
            func = _aten.index.Tensor
        result = self._faked(func, args, kwargs)
        if packet is _aten.native_layer_norm:
            return _with_statistics(result, *args)
        if packet in _CHOOSING:
            return self._chosen(result, args)
        if func._schema.is_mutable and given and not isinstance(given[0], FakeTensor):
            # A tensor that is written to must stay real or fake, whatever is written.
            return given[0] if isinstance(result, Tensor) else result
        return result

    def _among_real(self, func: Any, given: list[Tensor], args: Any, kwargs: Any) -> Any:
        """Return the result of an operation on real arguments, or on none."""
        if func._schema.is_mutable or (given and func.is_view) or _SHAPED_BY_VALUES.intersection(func.tags):
            return func(*args, **kwargs)
        expected = self._faked(func, args, kwargs)
        if all(_stays_real(func, each, given) for each in all_tensors(expected)):
            return func(*args, **kwargs)
        return expected

    def _faked(self, func: Any, args: Any, kwargs: Any) -> Any:
        with self._fake:
            return func(*args, **kwargs)

    def _converted(self, tensor: Tensor) -> Tensor:
        if isinstance(tensor, FakeTensor) or _is_whole(tensor):
            return tensor
        # Torch makes a meta tensor in between, which this mode ignores.
        with _disable_current_modes():
            return self._fake.from_tensor(tensor)

    def _chosen(self, result: Any, args: Any) -> Any:
        """Replace the indices of what was chosen by real numbers."""
        self.has_chosen = True
        source = args[0]
        places = [each for each in args[1:] if isinstance(each, int) and not isinstance(each, bool)]
        dimension = places[-1] if places and -source.dim() <= places[-1] < source.dim() else -1
        options = source.shape[dimension] if source.dim() else 1

        def even(each: Tensor) -> Tensor:
            if not _is_whole(each) or not _is_small(each):
                return each
            return (torch.arange(each.numel(), dtype=each.dtype) % max(options, 1)).reshape(each.shape)

        return tree_map_only(Tensor, even, result)


def _stays_real(func: Any, made: Tensor, given: list[Tensor]) -> bool:
    if _is_whole(made):
        return _is_small(made)
    if not given:
        return bool(made.numel() <= (_MOST_CONSTANTS if func.overloadpacket in _CONSTANT else 1))
    return bool(made.numel() <= _MOST_FRACTIONS)


def _check_range(weight: Tensor, indices: Tensor) -> None:
    """Raise the error of a real embedding for indices out of range, which a fake one does not check."""
    is_known = not isinstance(indices, FakeTensor) and indices.numel()
    if is_known and not 0 <= int(indices.min()) <= int(indices.max()) < len(weight):
        raise IndexError(f"index {int(indices.max())} is out of range for an embedding of {len(weight)}")


def _is_small(tensor: Tensor) -> bool:
    return bool(tensor.numel() * tensor.element_size() <= _MOST_WHOLE)


def _is_whole(tensor: Tensor) -> bool:
    return not (tensor.is_floating_point() or tensor.is_complex())


def _with_statistics(result: Any, given: Tensor, _shape: Any, weight: Tensor | None, *_: Any) -> Any:
    """Return the results of a norm whose weight has another type than its input, as under autocast.

    The kernel keeps mean and deviation in the type of the weight, and torch's fake one in that of the input.
    """
    if weight is None or weight.dtype is given.dtype:
        return result
    output, *statistics = result
    return (output, *(each.new_empty(each.shape, dtype=weight.dtype) for each in statistics))


def _by_places(source: Tensor, indices: Any) -> tuple[Any, ...]:
    """Replace masks by indices, as far as they are real."""
    found: list[Any] = []
    for each in indices:
        is_mask = isinstance(each, Tensor) and each.dtype in (torch.bool, torch.uint8)
        found += each.nonzero(as_tuple=True) if is_mask and not isinstance(each, FakeTensor) else [each]
    return source, found


def _by_mask(source: Tensor, mask: Tensor) -> tuple[Any, ...]:
    both = torch.broadcast_shapes(source.shape, mask.shape)
    return _by_places(source.expand(both), [mask.expand(both)])


def _grouped(one: Tensor, other: Tensor, offsets: Tensor | None = None, *_: Any, **__: Any) -> Tensor:
    """Return the grouped matrix product, whose shape torch knows only for bfloat16."""
    if one.dim() == other.dim() == 2:
        assert offsets is not None
        return one.new_empty(len(offsets), one.shape[0], other.shape[1])
    if one.dim() == 3:
        return one.new_empty(*one.shape[1 if other.dim() == 2 else 0 : -1], other.shape[-1])
    return one.new_empty(one.shape[0], other.shape[-1])


def _alignment(
    chances: Tensor, _targets: Tensor, _lengths: Any, of_targets: Any, *_: Any, **__: Any
) -> tuple[Tensor, Tensor]:
    """Return the internal result of the CTC loss."""
    longest = max((int(each) for each in of_targets), default=0)
    batch = chances.shape[1]
    return chances.new_empty(batch), chances.new_empty(batch, chances.shape[0], 2 * longest + 1)


_SHAPES: dict[Any, Callable[..., Any]] = {_aten._grouped_mm: _grouped, _aten._ctc_loss: _alignment}
"""Operations whose shapes torch does not know, or not for all types."""
_MASKED: dict[Any, Callable[..., Any]] = {_aten.index: _by_places, _aten.masked_select: _by_mask}
"""Operations that select by masks, so that the size of the result depends on their content."""


def _attention(query: Tensor, key: Tensor, value: Tensor, *_: Any, **__: Any) -> int:
    return int(sdpa_flop_count(query.shape, key.shape, value.shape))


def _attention_backward(gradient: Tensor, *tensors: Any, **__: Any) -> int:
    return int(sdpa_backward_flop_count(gradient.shape, *(each.shape for each in tensors[:3])))


def _grouped_flops(one: Tensor, other: Tensor, *_: Any, **__: Any) -> int:
    groups = one.shape[0] if one.dim() == other.dim() == 3 else 1
    return int(2 * groups * one.shape[-2] * one.shape[-1] * other.shape[-1])


_FLOPS = {
    _aten._grouped_mm: _grouped_flops,
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

    def __init__(self, model: nn.Module, keeping: Keeping | None = None) -> None:
        """Begin with the weights of a model, which may take less than their tensors do."""
        super().__init__()
        self.flops = 0
        self.alive = 0
        """Bytes that are alive now."""
        self.part: Callable[[], Hashable] = lambda: None
        """Returns the part of the step that is running."""
        self.peaks: dict[Hashable, int] = {}
        """The most bytes that have been alive in each part, and after each of its operations."""
        self.where: Callable[[], tuple[str, str]] = lambda: ("", "")
        """Returns the current module and the block that started last."""
        self._known: dict[int, Alive] = {}
        for each in chain(model.parameters(), model.buffers()):
            self._note(each)
        if keeping is not None:
            for parameter in model.parameters():
                self._take_off(parameter, keeping.weight(parameter))
                if parameter.requires_grad:
                    size = keeping.gradient(parameter)
                    parameter.register_post_accumulate_grad_hook(partial(self._reduce, size))
        self.begin()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        count = _FLOPS.get(func.overloadpacket)
        if count is not None:
            self.flops += count(*args, **kwargs, out_val=result)
        before = self.alive
        for each in all_tensors(result):
            self._note(each)
        if self.alive > before:
            part = self.part()
            key = part and (part, str(func))
            self.peaks[key] = max(self.peaks.get(key, 0), self.alive)
        return result

    def begin(self) -> None:
        """Count anew: what is alive now was there before."""
        self.flops, self.peaks = 0, {None: self.alive}

    def made_in_blocks(self) -> Iterator[Alive]:
        """Yield what blocks have made and is alive now."""
        yield from (each for each in list(self._known.values()) if each.block)

    def _reduce(self, size: int, parameter: Tensor) -> None:
        """Count a gradient with this size from now on, since the rest is on other ranks."""
        if parameter.grad is not None:
            self._take_off(parameter.grad, size)

    def _take_off(self, tensor: Tensor, size: int) -> None:
        """Count a tensor that is alive with another size."""
        storage = tensor.untyped_storage()
        known = self._known.get(storage._cdata)
        if known is not None and known.size != size:
            self.alive += size - known.size
            reference = weakref.ref(storage, partial(self._forget, known.storage, size))
            self._known[known.storage] = replace(known, size=size, reference=reference)

    def _note(self, tensor: Tensor) -> None:
        storage = tensor.untyped_storage()
        key, size = storage._cdata, storage.nbytes()
        if key not in self._known:
            reference = weakref.ref(storage, partial(self._forget, key, size))
            shape = tuple(tensor.shape)
            self._known[key] = Alive(key, size, shape, tensor.dtype, *self.where(), reference)
            self.alive += size

    def _forget(self, key: int, size: int, _reference: Any) -> None:
        del self._known[key]
        self.alive -= size
