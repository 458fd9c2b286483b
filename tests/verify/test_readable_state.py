"""What a model can read besides its arguments: a change of it is seen, and nothing else is."""

from __future__ import annotations

import io
import os
from collections import deque
from ctypes import c_int
from functools import lru_cache, partial
from itertools import count, cycle
from random import Random
from typing import Any

import pytest

pytestmark = pytest.mark.torch


def _changed(model: Any, change: Any) -> set[tuple[str, str]]:
    """Return the holder and name of what is seen to have changed."""
    from gclint.verify.worker.examination.inspection.readable import ReadableState

    before = ReadableState(model, len)
    change()
    return {(each.holder, each.name) for each in before.changes(ReadableState(model, len))}


def _model() -> Any:
    import torch
    from transformers import PretrainedConfig

    class Model(torch.nn.Identity):  # type: ignore[misc]
        """A module that is not torch's own, so that its attributes are read by their names."""

    model: Any = Model()
    model.register_buffer("mean", torch.ones(3))
    model.seen = {1, 2}
    model.sparse = torch.zeros(3).to_sparse()
    model.config = PretrainedConfig(window=4, scale=0.5, is_causal=True, trace=[])
    return model


def test_a_tensor_has_changed_if_its_values_have() -> None:
    model = _model()
    assert _changed(model, lambda: model.mean.add_(1.0)) == {("attribute", "mean")}

    def replace() -> None:
        model.mean = model.mean.clone()

    assert _changed(model, replace) == set()


def test_a_tensor_that_does_not_show_its_values_has_changed_if_it_is_another() -> None:
    model = _model()
    assert _changed(model, lambda: None) == set()

    def replace() -> None:
        model.sparse = model.sparse.clone()

    assert _changed(model, replace) == {("attribute", "sparse")}


def test_what_torch_reads_of_its_modules_has_no_name_in_the_code() -> None:
    import torch

    model = torch.nn.Dropout(0.5)
    assert _changed(model, lambda: setattr(model, "p", 0.25)) == {("unnamed", "p")}
    own = _model()
    assert _changed(own, lambda: setattr(own, "forward", abs)) == {("unnamed", "forward")}


def test_only_modes_of_the_model_are_a_context() -> None:
    from contextlib import ExitStack

    from torch.overrides import TorchFunctionMode
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils.flop_counter import FlopCounterMode

    class Functions(TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return func(*args, **(kwargs or {}))

    class Operations(TorchDispatchMode):  # type: ignore[misc]
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return func(*args, **(kwargs or {}))

    with ExitStack() as stack:
        assert _changed(_model(), lambda: stack.enter_context(FlopCounterMode(display=False))) == set()
        assert _changed(_model(), lambda: stack.enter_context(Functions())) == {
            ("context", "the modes for functions")
        }
        assert _changed(_model(), lambda: stack.enter_context(Operations())) == {
            ("context", "the modes for operations")
        }


def test_a_set_has_changed_if_its_members_have() -> None:
    model = _model()
    assert _changed(model, lambda: model.seen.add(3)) == {("attribute", "seen")}


class _Seen:
    """What a model might keep in an object of its own."""

    def __init__(self) -> None:
        self.lengths = [4]
        self.by_layer = {"first": [4]}


@pytest.mark.parametrize(
    "change",
    [
        lambda seen: setattr(seen, "lengths", [5]),
        lambda seen: seen.lengths.append(5),
        lambda seen: seen.by_layer.update(second=[4]),
    ],
)
def test_an_object_of_the_model_has_changed_if_what_is_in_it_has(change: Any) -> None:
    model = _model()
    model.kept = _Seen()
    assert _changed(model, lambda: None) == set()
    assert _changed(model, lambda: change(model.kept)) == {("attribute", "kept")}


@pytest.mark.parametrize(("name", "value"), [("window", 5), ("scale", 0.25), ("is_causal", False)])
def test_settings_of_all_plain_types_are_read(name: str, value: object) -> None:
    model = _model()
    assert _changed(model, lambda: setattr(model.config, name, value)) == {("config", name)}


def test_what_a_configuration_holds_is_read() -> None:
    model = _model()
    assert _changed(model, lambda: model.config.trace.append(1)) == {("config", "trace")}


class _Slots:
    __slots__ = ("seen",)

    def __init__(self) -> None:
        self.seen = 0


def _counter() -> Any:
    seen = 0

    def tick() -> int:
        nonlocal seen
        seen += 1
        return seen

    return tick


def _generator() -> Any:
    scale = 0.5
    while True:
        yield scale
        scale *= 2


@pytest.mark.parametrize(
    ("kept", "change", "part"),
    [
        (cycle([1, 2]), next, ""),
        (count(), next, ""),
        (iter([1, 2]), next, ""),
        (map(abs, [1, 2]), next, ""),
        ((each for each in range(3)), next, ""),
        (_generator(), next, ""),
        ([iter((1, 2))], lambda kept: next(kept[0]), "[0]"),
        (io.BytesIO(b"ab"), lambda kept: kept.read(1), ""),
        (deque([1, 2]), lambda kept: kept.rotate(1), "[0]"),
        (_counter(), lambda kept: kept(), ".seen"),
        ({"meter": _Slots()}, lambda kept: setattr(kept["meter"], "seen", 1), "['meter'].seen"),
        (partial(Random.random, self=Random(0)), lambda kept: kept.keywords["self"].random(), ".self"),
        (lru_cache(len), lambda kept: kept("a"), ""),
        ([0.0] * 100, lambda kept: kept.__setitem__(77, 1.0), "[77]"),
        (bytearray(2), lambda kept: kept.__setitem__(0, 1), ""),
        (c_int(0), lambda kept: setattr(kept, "value", 1), ""),
    ],
)
def test_what_python_keeps_of_where_something_stands_is_compared(kept: Any, change: Any, part: str) -> None:
    from gclint.verify.worker.examination.inspection.parts import Parts

    before = Parts().read("kept", kept)
    assert Parts().read("kept", kept) == before
    change(kept)
    after = Parts().read("kept", kept)
    assert part in [path for path in after if after[path] != before.get(path)]


def test_what_surrounds_a_model_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    model = _model()
    model.dense = torch.nn.Linear(2, 2)
    scale = lambda: monkeypatch.setitem(os.environ, "TOY_SCALE", "2")  # noqa: E731
    assert _changed(model, scale) == {("environment", "TOY_SCALE")}
    assert _changed(model, lambda: model.dense.weight.data.mul_(2)) == {("weight", "weight")}
    setting = ("config", "benchmark")
    flip = lambda: monkeypatch.setattr(torch.backends.cudnn, "benchmark", not torch.backends.cudnn.benchmark)  # noqa: E731
    assert _changed(model, flip) == {setting}
    lend = lambda: setattr(model, "dense", torch.nn.ReLU())  # noqa: E731
    assert ("module", "") in _changed(model, lend)
    assert _changed(model, lambda: delattr(model, "seen")) == {("attribute", "seen")}


def test_arguments_are_named_by_the_parameters_of_the_block_and_compared_with_their_attributes() -> None:
    import torch

    from gclint.verify.worker.examination.inspection.readable import ReadableState

    class Block(torch.nn.Module):  # type: ignore[misc]
        def forward(self, states: Any, scales: Any = None) -> Any:
            return states

    block, states, scales = Block(), torch.ones(2), [1.0]
    states.scale = 2.0
    function = partial(Block.forward, block, scales=scales)
    before = ReadableState(block, function, (states,))
    scales[0] = 3.0
    changed = before.changes(ReadableState(block, function, (states.detach(),)))
    assert [(each.holder, each.place, each.part, each.is_gone) for each in changed] == [
        ("argument", "states", ".scale", True),
        ("argument", "scales", "[0]", False),
    ]
