"""Inputs run all parts of a model."""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from gclint.verify.worker.synthesis.inputs.grids import grid  # noqa: E402
from gclint.verify.worker.synthesis.inputs.masks import fit_masks  # noqa: E402
from gclint.verify.worker.synthesis.inputs.plan import Plan  # noqa: E402
from gclint.verify.worker.synthesis.inputs.situation import Situation  # noqa: E402
from tests.verify.synthesis.one_layer import first  # noqa: E402


def test_an_image_takes_part_where_a_text_has_places_for_it() -> None:
    specimen = first(transformers.LlavaForConditionalGeneration)
    assert "pixel_values" in specimen.inputs()
    assert not [each for each in specimen.not_covered if each.endswith("vision_tower")]


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
