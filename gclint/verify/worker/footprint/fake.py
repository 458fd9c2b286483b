"""Tensors that have a shape and no content, among a few real ones.

What a model decides by is real: the numbers of tokens, their places and masks, which are small. What it
computes with them is fake, so that a step of a model of any size takes seconds and hardly any memory. So the
model takes the same ways as with real tensors: a mask that is found to mask nothing is left out, and images
are put in the places that tokens keep for them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes
from torch.utils._pytree import tree_flatten, tree_map_only

_MOST_WHOLE = 1 << 26
"""The bytes of the largest real tensor of whole numbers or truth values."""
_MOST_CONSTANTS = 1 << 22
"""The same of fractions that are all alike, or count."""
_MOST_FRACTIONS = 1 << 12
"""The same of what is computed from these."""
_aten = torch.ops.aten
_CONSTANT = {_aten.arange, _aten.linspace, _aten.logspace, _aten.ones, _aten.zeros, _aten.full}
"""Make fractions that decisions are made by: the probabilities of dropping layers, and masks."""
_SHAPED_BY_VALUES = {torch.Tag.dynamic_output_shape, torch.Tag.data_dependent_output}
_CHOOSING = {_aten.topk, _aten.sort, _aten.argmax, _aten.argmin, _aten.multinomial}
"""Choose among fake numbers: what chooses experts."""


class PartlyFake(TorchDispatchMode):  # type: ignore[misc]
    """Lets everything that is computed while it is entered be fake, but for what decisions are made by.

    Where a model chooses by what it has computed, such as the experts of a token, each is chosen as often as
    any other.
    """

    def __init__(self) -> None:
        super().__init__()
        self._fake = FakeTensorMode(allow_non_fake_inputs=True)
        self.has_chosen = False
        """Whether anything was chosen by what has no content."""
        self.has_decided = False
        """Whether a truth value was asked for that has no content, such as whether a number is infinite."""
        self.is_building = False
        """Whether weights are made, whose values decide nothing but when there have been enough attempts."""

    def convert(self, value: Any) -> Any:
        """Return a value with fake tensors in place of those that hold fractions."""
        return tree_map_only(Tensor, lambda each: self._converted(each), value)

    def convert_parameters(self, model: nn.Module) -> None:
        """Let the parameters of a model be fake that are not yet; what is shared stays so."""
        converted: dict[nn.Parameter, nn.Parameter] = {}
        for module in model.modules():
            for name, parameter in module._parameters.items():
                if parameter is None or isinstance(parameter, FakeTensor):
                    continue
                if parameter not in converted:
                    # One that was given fake data calls itself a meta tensor.
                    with self._fake:
                        fake = torch.empty(parameter.shape, dtype=parameter.dtype)
                    converted[parameter] = nn.Parameter(fake, requires_grad=parameter.requires_grad)
                module._parameters[name] = converted[parameter]

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        # What is meant for a GPU may be kept where none is.
        kwargs = {name: each for name, each in (kwargs or {}).items() if name != "pin_memory"}
        given = [each for each in tree_flatten((args, kwargs))[0] if isinstance(each, Tensor)]
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
        if packet in _CHOOSING:
            return self._chosen(result, args)
        if func._schema.is_mutable and given and not isinstance(given[0], FakeTensor):
            # What is written into has to stay what it is, whatever it holds.
            return given[0] if isinstance(result, Tensor) else result
        return result

    def _among_real(self, func: Any, given: list[Tensor], args: Any, kwargs: Any) -> Any:
        """Return what comes of real arguments, or of none."""
        if func._schema.is_mutable or (given and func.is_view) or _SHAPED_BY_VALUES.intersection(func.tags):
            return func(*args, **kwargs)
        expected = self._faked(func, args, kwargs)
        tensors = [each for each in tree_flatten(expected)[0] if isinstance(each, Tensor)]
        if all(_stays_real(func, each, given) for each in tensors):
            return func(*args, **kwargs)
        return expected

    def _faked(self, func: Any, args: Any, kwargs: Any) -> Any:
        with self._fake:
            return func(*args, **kwargs)

    def _converted(self, tensor: Tensor) -> Tensor:
        if isinstance(tensor, FakeTensor) or _is_whole(tensor):
            return tensor
        # Torch makes a meta tensor on the way, which is no concern of this mode.
        with _disable_current_modes():
            return self._fake.from_tensor(tensor)

    def _chosen(self, result: Any, args: Any) -> Any:
        """Put real numbers in place of those of what was chosen."""
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
    """Raise what a real embedding raises, which a fake one does not look for."""
    is_known = not isinstance(indices, FakeTensor) and indices.numel()
    if is_known and not 0 <= int(indices.min()) <= int(indices.max()) < len(weight):
        raise IndexError(f"index {int(indices.max())} is out of range for an embedding of {len(weight)}")


def _is_small(tensor: Tensor) -> bool:
    return bool(tensor.numel() * tensor.element_size() <= _MOST_WHOLE)


def _is_whole(tensor: Tensor) -> bool:
    return not (tensor.is_floating_point() or tensor.is_complex())


def _by_places(source: Tensor, indices: Any) -> tuple[Any, ...]:
    """Return what to index with in place of masks, of which only the real ones are known."""
    found: list[Any] = []
    for each in indices:
        is_mask = isinstance(each, Tensor) and each.dtype in (torch.bool, torch.uint8)
        found += each.nonzero(as_tuple=True) if is_mask and not isinstance(each, FakeTensor) else [each]
    return source, found


def _by_mask(source: Tensor, mask: Tensor) -> tuple[Any, ...]:
    both = torch.broadcast_shapes(source.shape, mask.shape)
    return _by_places(source.expand(both), [mask.expand(both)])


def _grouped(one: Tensor, other: Tensor, offsets: Tensor | None = None, *_: Any, **__: Any) -> Tensor:
    """Return the product of groups of rows, which torch knows the shape of for bfloat16 only."""
    if one.dim() == other.dim() == 2:
        assert offsets is not None
        return one.new_empty(len(offsets), one.shape[0], other.shape[1])
    if one.dim() == 3:
        return one.new_empty(*one.shape[1 if other.dim() == 2 else 0 : -1], other.shape[-1])
    return one.new_empty(one.shape[0], other.shape[-1])


def _alignment(
    chances: Tensor, _targets: Tensor, _lengths: Any, of_targets: Any, *_: Any, **__: Any
) -> tuple[Tensor, Tensor]:
    """Return what the loss of connectionist temporal classification makes for itself."""
    longest = max((int(each) for each in of_targets), default=0)
    batch = chances.shape[1]
    return chances.new_empty(batch), chances.new_empty(batch, chances.shape[0], 2 * longest + 1)


_SHAPES: dict[Any, Callable[..., Any]] = {_aten._grouped_mm: _grouped, _aten._ctc_loss: _alignment}
"""Whose shapes torch does not know, or does not for all types."""
_MASKED: dict[Any, Callable[..., Any]] = {_aten.index: _by_places, _aten.masked_select: _by_mask}
"""What chooses by masks, so that how much it returns depends on what they hold."""
