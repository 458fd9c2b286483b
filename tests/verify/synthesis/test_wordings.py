"""The installed torch still words its errors as the recorded cases of hints do."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

import pytest

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

from torch import zeros  # noqa: E402
from torch.nn import functional as F  # noqa: E402, N812

from tests.verify.synthesis import recorded  # noqa: E402

_RECORDED = {
    case.message
    for each in iter_modules(recorded.__path__)
    for cases in getattr(import_module(f"{recorded.__name__}.{each.name}"), "CASES", {}).values()
    for case in cases
}
_ERRORS: dict[str, Callable[[], Any]] = {
    "reflected padding": lambda: F.pad(zeros(2, 64, 2, 2), (2, 2, 2, 2), mode="reflect"),
    "broadcast": lambda: zeros(2, 4, 16, 16) + zeros(64, 64),
    "broadcast in place": lambda: zeros(2, 4, 1, 1).add_(zeros(2, 4, 64, 64)),
    "bmm": lambda: torch.bmm(zeros(2, 12, 64), zeros(2, 24, 64)),
    "cat": lambda: torch.cat([zeros(2, 64, 16, 16), zeros(2, 3, 8, 8)], 1),
    "conv1d": lambda: F.conv1d(zeros(2, 7760), zeros(64, 1, 320)),
    "conv2d": lambda: F.conv2d(zeros(2, 64, 4, 4), zeros(64, 128, 1, 1)),
    "conv2d of a matrix": lambda: F.conv2d(zeros(32, 192), zeros(8, 3, 8, 8)),
    "kernel": lambda: F.conv2d(zeros(2, 64, 1, 1), zeros(64, 64, 2, 2)),
    "pool": lambda: F.max_pool2d(zeros(2, 64, 1, 1), 2),
    "unfold": lambda: F.unfold(zeros(2, 64, 1, 1), 2),
    "reshape to nothing": lambda: zeros(2, 0, 0, 3).reshape(2, -1, 0, 3),
    "reshape": lambda: zeros(512).reshape(2, 64, 16),
    "view": lambda: zeros(2, 3, 4).mT.view(24),
    "index": lambda: zeros(2, 3)[:, 0, :3],
    "gather": lambda: zeros(2, 16, 64).gather(1, torch.full((2, 1, 64), 36)),
    "index by a tensor": lambda: zeros(8, 64)[torch.tensor([8])],
    "write": lambda: zeros(32, 64).__setitem__(torch.arange(32) < 8, zeros(26, 64)),
    "write flat": lambda: zeros(512).__setitem__(torch.arange(512) < 256, zeros(768)),
    "scatter": lambda: zeros(8).masked_scatter(torch.ones(8).bool(), zeros(4)),
    "mask": lambda: zeros(2, 12, 64)[zeros(2, 3).bool()],
    "split": lambda: zeros(2, 8).split([16, 24, 24], -1),
    "transpose": lambda: zeros(2, 64, 32).transpose(1, 3),
    "layer_norm": lambda: F.layer_norm(zeros(24, 64), [24]),
    "linear": lambda: F.linear(zeros(2, 12, 64), zeros(64, 24)),
    "add": lambda: zeros(2, 12, 64) + zeros(2, 12, 24),
    "embedding": lambda: F.embedding(zeros(2, 10), zeros(4, 8)),
    "embedding out of range": lambda: F.embedding(torch.tensor([9]), zeros(4, 8)),
    "list of modules": lambda: torch.nn.ModuleList([torch.nn.Linear(1, 1)] * 3)[3],
    "topk": lambda: zeros(3).topk(None),
    "cross_entropy": lambda: F.cross_entropy(zeros(24, 4), torch.zeros(2).long()),
}


@pytest.mark.parametrize("error", _ERRORS.values(), ids=_ERRORS)
def test_a_message_of_torch_is_recorded_as_it_is(error: Callable[[], Any]) -> None:
    with pytest.raises((RuntimeError, IndexError, TypeError, ValueError)) as caught:
        error()
    assert str(caught.value) in _RECORDED
