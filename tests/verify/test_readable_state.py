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


@pytest.mark.parametrize(("name", "value"), [("window", 5), ("scale", 0.25), ("is_causal", False)])
def test_settings_of_all_plain_types_are_read(name: str, value: object) -> None:
    model = _model()
    assert _changed(model, lambda: setattr(model.config, name, value)) == {("config", name)}
