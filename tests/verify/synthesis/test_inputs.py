"""Inputs run all parts of a model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from gclint.verify.worker.synthesis.inputs.audio import fit_masks  # noqa: E402
from gclint.verify.worker.synthesis.inputs.forward import make_inputs  # noqa: E402
from gclint.verify.worker.synthesis.inputs.placeholders import grid  # noqa: E402
from gclint.verify.worker.synthesis.inputs.situation import Plan, Situation  # noqa: E402
from tests.verify.synthesis.one_layer import OneLayerConfig, OneLayerModel, first  # noqa: E402


def _inputs(forward: Callable[..., Any], **fields: Any) -> dict[str, Any]:
    """Return the inputs of a model with this forward pass, for a configuration with these fields."""
    config = OneLayerConfig(**fields)
    model_class = type("Given", (OneLayerModel,), {"forward": forward})
    return make_inputs(Situation(model_class, config, Plan(), config))


def test_an_image_takes_part_where_a_text_has_places_for_it() -> None:
    tiny_model = first(transformers.LlavaForConditionalGeneration)
    assert "pixel_values" in tiny_model.inputs()
    assert not [each for each in tiny_model.not_covered if each.endswith("vision_tower")]


@pytest.mark.parametrize(("fields", "length"), [({}, 4), ({"prediction_length": 7}, 7)])
def test_as_many_future_values_are_given_as_are_to_be_predicted(fields: dict[str, int], length: int) -> None:
    inputs = _inputs(lambda self, future_values: None, **fields)
    assert inputs["future_values"].shape == (2, length)


@pytest.mark.parametrize("size", [(64, 16), (16, 64), [16, 16], 16, {"height": 64, "width": 16}])
def test_points_lie_in_the_image(size: Any) -> None:
    inputs = _inputs(lambda self, input_points, input_boxes: None, image_size=size)
    for places in inputs.values():
        assert places.min() >= 0
        assert 4 < places.max() <= 16


@pytest.mark.parametrize(("fields", "number"), [({}, 4), ({"latent_query_num": 2}, 2)])
def test_a_text_has_as_many_places_as_an_image_has_queries(fields: dict[str, int], number: int) -> None:
    inputs = _inputs(lambda self, image_embeds_position_mask: None, **fields)
    assert inputs["image_embeds_position_mask"].sum(dim=1).tolist() == [number, number]


@pytest.mark.parametrize(
    ("strides", "hop"), [([5, 8], 40), ((5, 8), 40), ((2, 2), 16), (40, 320), (None, 320)]
)
def test_samples_are_enough_for_all_convolutions(strides: Any, hop: int) -> None:
    inputs = _inputs(lambda self, input_values: None, conv_stride=strides)
    assert inputs["input_values"].shape == (2, 24 * hop + 80)


def _situation(**fields: Any) -> Situation:
    """Return the situation of a class without anything special, with these fields of its configuration."""

    class Reading:
        def forward(self, hidden_states: Any) -> Any: ...

    config = transformers.PretrainedConfig(**fields)
    return Situation(Reading, config, Plan(), config)


@pytest.mark.parametrize(
    ("fields", "side"),
    [
        ({}, 2),
        ({"spatial_merge_size": 2}, 4),
        ({"merge_size": 2}, 4),
        ({"merge_kernel_size": [3, 3]}, 6),
        ({"pooling_kernel_size": 3}, 6),
        ({"downsample_factor": 2}, 4),
    ],
)
def test_an_image_has_two_patches_on_each_side_after_they_are_merged(
    fields: dict[str, Any], side: int
) -> None:
    assert grid(_situation(**fields)) == [1, side, side]


@pytest.mark.parametrize(
    ("mask", "content", "length"),
    [
        ("input_features_mask", "input_features", 8),
        ("feature_attention_mask", "input_features", 8),
        ("input_features_mask", "audio_input_features", 8),
        ("input_values_mask", "input_values", 8),
        ("padding_mask", "input_values", 8),
        ("padding_mask", "audio_values", 8),
        ("audio_mel_mask", "audio_mel", 8),
        ("padding_mask_videos", "pixel_values_videos", 8),
        # They are of something else.
        ("padding_mask", "pixel_values_videos", 1),
        ("input_features_mask", "input_values", 1),
    ],
)
def test_a_mask_is_as_long_as_what_it_masks(mask: str, content: str, length: int) -> None:
    inputs = {content: torch.zeros(2, 8), mask: torch.ones(2, 1, dtype=torch.long)}
    fit_masks(_situation(), inputs)
    assert inputs[mask].tolist() == [[1] * length] * 2
    assert inputs[mask].dtype == torch.long
