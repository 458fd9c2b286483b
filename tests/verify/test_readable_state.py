"""What a model can read besides its arguments: a change of it is seen, and nothing else is."""

from __future__ import annotations

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

    model: Any = torch.nn.Identity()
    model.register_buffer("mean", torch.ones(3))
    model.seen = {1, 2}
    model.sparse = torch.zeros(3).to_sparse()
    model.config = PretrainedConfig(window=4, scale=0.5, is_causal=True)
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
