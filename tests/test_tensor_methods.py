"""The methods of tensors that are known to change nothing but the tensor are methods of torch's tensors."""

from __future__ import annotations

import pytest

from gclint.network.changes import TENSOR_METHODS

_TAKING_MORE = {"apply_", "map_", "map2_", "requires_grad_", "set_"}
"""Those that call a function, share memory with an argument, or change no values."""


@pytest.mark.torch
def test_the_known_methods_are_those_of_torch() -> None:
    import torch

    own = {name for name in dir(torch.Tensor) if name.endswith("_") and not name.startswith("_")}
    assert own - TENSOR_METHODS <= _TAKING_MORE
    assert not TENSOR_METHODS & _TAKING_MORE
