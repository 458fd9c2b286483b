"""Inputs run all parts of a model."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from tests.verify.synthesis.one_layer import first  # noqa: E402


def test_an_image_takes_part_where_a_text_has_places_for_it() -> None:
    specimen = first(transformers.LlavaForConditionalGeneration)
    assert "pixel_values" in specimen.inputs()
    assert not [each for each in specimen.not_covered if each.endswith("vision_tower")]
