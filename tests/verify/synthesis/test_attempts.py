"""The tiny models that the verifier makes for itself: they run, hide nothing, and are the same each time."""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from gclint.verify.worker.synthesis.attempts import trial  # noqa: E402
from gclint.verify.worker.synthesis.attempts.outer import recorded  # noqa: E402
from gclint.verify.worker.synthesis.attempts.search import tiny_models  # noqa: E402
from gclint.verify.worker.synthesis.attempts.trial import constructor_arguments  # noqa: E402
from gclint.verify.worker.tiny_model import NotSynthesisable  # noqa: E402
from tests.verify.synthesis.one_layer import OneLayerConfig, OneLayerModel, first  # noqa: E402


class InnerModel(OneLayerModel):
    """A model that others run."""


class InnerHeir(InnerModel):
    def another(self) -> Any:
        return InnerModel(self.config)


class Holder(torch.nn.Module):  # type: ignore[misc, name-defined]
    def __init__(self, config: Any) -> None:
        super().__init__()
        self.inner = InnerModel(config)


class OuterModel(OneLayerModel):
    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.holder = Holder(config)


def same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def test_a_tiny_model_gives_the_same_weights_and_inputs_each_time() -> None:
    tiny_model = first(transformers.BertModel)
    torch.manual_seed(1)
    weights, inputs = tiny_model.build().state_dict(), tiny_model.inputs()
    torch.manual_seed(2)
    assert same(weights, tiny_model.build().state_dict())
    assert same(inputs, tiny_model.inputs())


def test_building_leaves_the_random_numbers_of_others_alone() -> None:
    tiny_model = first(transformers.BertModel)
    torch.manual_seed(1)
    expected = torch.rand(3)
    torch.manual_seed(1)
    tiny_model.build()
    assert torch.equal(torch.rand(3), expected)


def test_gates_of_zeros_and_memory_that_nobody_initialises_become_small_numbers() -> None:
    model = first(OneLayerModel).build()
    for parameter in (model.gate, model.forgotten):
        assert parameter.isfinite().all()
        assert 0 < parameter.abs().max() < 1


def test_what_the_inputs_do_not_run_is_named_unless_it_is_a_trifle() -> None:
    assert first(OneLayerModel).not_covered == ("unused",)


def test_a_model_is_in_training_mode_and_drops_no_layers() -> None:
    tiny_model = first(transformers.BartModel)
    model = tiny_model.build()
    assert model.training
    assert {each.layerdrop for each in model.modules() if hasattr(each, "layerdrop")} == {0.0}
    assert tiny_model.config.dropout == transformers.BartConfig().dropout > 0


def test_cross_attention_is_a_scenario_of_its_own() -> None:
    found = {each.scenario: each for each in tiny_models(transformers.BertLMHeadModel)}
    assert list(found) == ["default", "cross-attention", "option is_decoder=True"]
    model = found["cross-attention"].build()
    trial.step(model, found["cross-attention"].inputs())
    crossing = [each for name, each in model.named_parameters() if "crossattention" in name]
    assert crossing and all(each.grad is not None for each in crossing)


def test_layers_that_share_keys_and_values_are_a_scenario_of_its_own() -> None:
    found = {each.scenario: each for each in tiny_models(transformers.Gemma4ForCausalLM)}
    assert list(found) == ["default", "key-value sharing"]
    config = found["key-value sharing"].config
    assert config.num_hidden_layers == 2 * config.num_kv_shared_layers > 0
    assert found["default"].config.num_kv_shared_layers == 0


def test_a_model_that_needs_a_library_says_so() -> None:
    class Needy(OneLayerModel):
        def __init__(self, config: Any) -> None:
            super().__init__(config)
            raise ImportError("Needy requires the frobnicate library")

    with pytest.raises(NotSynthesisable, match="frobnicate") as caught:
        first(Needy)
    assert caught.value.category == "extra library"


def test_a_model_whose_outputs_carry_no_gradient_says_so() -> None:
    class Detached(OneLayerModel):
        def forward(self, hidden_states: Any) -> Any:
            return super().forward(hidden_states).detach()

    with pytest.raises(NotSynthesisable) as caught:
        first(Detached)
    assert caught.value.category == "no gradient"


def test_a_model_that_stays_large_is_not_built() -> None:
    class Large(OneLayerModel):
        def __init__(self, config: Any) -> None:
            super().__init__(config)
            self.layer = torch.nn.Linear(10_000, 10_000, device="meta")

    with pytest.raises(NotSynthesisable) as caught:
        first(Large)
    assert caught.value.category == "too large"


def test_only_models_that_are_others_are_tried_as_the_outer_ones() -> None:
    tried = []

    def make(outer_class: Any) -> Any:
        tried.append(outer_class)
        raise NotSynthesisable("too large", "it is too large")

    assert recorded(InnerModel, "default", make) is None
    assert tried == [OuterModel]


@pytest.mark.parametrize(
    ("fields", "side"),
    [
        ({}, 4),
        ({"image_size": 64}, 8),
        ({"image_size": (64, 48)}, 8),
        ({"patch_size": 4}, 8),
        ({"patch_size": [16, 16]}, 2),
    ],
)
def test_a_grid_has_as_many_places_as_an_image_has_patches(fields: dict[str, Any], side: int) -> None:
    class Gridded(OneLayerModel):
        def __init__(self, config: Any, input_resolution: Any) -> None:
            super().__init__(config)

    assert constructor_arguments(Gridded, OneLayerConfig(**fields)) == {"input_resolution": (side, side)}
