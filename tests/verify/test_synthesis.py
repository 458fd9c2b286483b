"""The tiny models that the verifier makes for itself: they run, hide nothing, and are the same each time."""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from transformers import PretrainedConfig, PreTrainedModel  # noqa: E402

from gclint.verify.worker.specimen import NotSynthesisable  # noqa: E402
from gclint.verify.worker.synthesis import specimens  # noqa: E402
from gclint.verify.worker.synthesis.attempts import trial  # noqa: E402
from gclint.verify.worker.synthesis.configurations.shrinking import Sizes, shrink  # noqa: E402


class OneLayerConfig(PretrainedConfig):  # type: ignore[misc]
    model_type = "one_layer"

    def __init__(self, hidden_size: int = 768, **others: Any) -> None:
        self.hidden_size = hidden_size
        super().__init__(**others)


class OneLayerModel(PreTrainedModel):  # type: ignore[misc]
    config_class = OneLayerConfig
    main_input_name = "hidden_states"
    supports_gradient_checkpointing = True

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.layer = torch.nn.Linear(config.hidden_size, config.hidden_size)
        self.gate = torch.nn.Parameter(torch.zeros(config.hidden_size))
        self.forgotten = torch.nn.Parameter(torch.empty(config.hidden_size))
        self.unused = torch.nn.Linear(64, 64)
        self.trifle = torch.nn.Linear(4, 4)

    def forward(self, hidden_states: Any) -> Any:
        return self.gate * self.layer(hidden_states) + self.forgotten


def first(model_class: Any) -> Any:
    return next(iter(specimens(model_class)))


def same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def test_a_specimen_gives_the_same_weights_and_inputs_each_time() -> None:
    specimen = first(transformers.BertModel)
    torch.manual_seed(1)
    weights, inputs = specimen.build().state_dict(), specimen.inputs()
    torch.manual_seed(2)
    assert same(weights, specimen.build().state_dict())
    assert same(inputs, specimen.inputs())


def test_building_leaves_the_random_numbers_of_others_alone() -> None:
    specimen = first(transformers.BertModel)
    torch.manual_seed(1)
    expected = torch.rand(3)
    torch.manual_seed(1)
    specimen.build()
    assert torch.equal(torch.rand(3), expected)


def test_gates_of_zeros_and_memory_that_nobody_initialises_become_small_numbers() -> None:
    model = first(OneLayerModel).build()
    for parameter in (model.gate, model.forgotten):
        assert parameter.isfinite().all()
        assert 0 < parameter.abs().max() < 1


def test_what_the_inputs_do_not_run_is_named_unless_it_is_a_trifle() -> None:
    assert first(OneLayerModel).not_covered == ("unused",)


def test_a_model_is_in_training_mode_and_drops_no_layers() -> None:
    specimen = first(transformers.BartModel)
    model = specimen.build()
    assert model.training
    assert {each.layerdrop for each in model.modules() if hasattr(each, "layerdrop")} == {0.0}
    assert specimen.config.dropout == transformers.BartConfig().dropout > 0


def test_cross_attention_is_a_scenario_of_its_own() -> None:
    found = {each.scenario: each for each in specimens(transformers.BertLMHeadModel)}
    assert list(found) == ["default", "cross-attention"]
    model = found["cross-attention"].build()
    trial.step(model, found["cross-attention"].inputs())
    crossing = [each for name, each in model.named_parameters() if "crossattention" in name]
    assert crossing and all(each.grad is not None for each in crossing)


def test_layers_that_share_keys_and_values_are_a_scenario_of_its_own() -> None:
    found = {each.scenario: each for each in specimens(transformers.Gemma4ForCausalLM)}
    assert list(found) == ["default", "key-value sharing"]
    config = found["key-value sharing"].config
    assert config.num_hidden_layers == 2 * config.num_kv_shared_layers > 0
    assert found["default"].config.num_kv_shared_layers == 0


def test_two_layers_of_each_kind_are_kept_and_their_lists_agree() -> None:
    config = OneLayerConfig()
    config.num_hidden_layers = 12
    config.layer_types = ["linear", "linear", "linear", "full"] * 3
    config.cross_attention_layers = [3, 7, 11]
    small = shrink(config, Sizes())
    assert small.layer_types == ["linear", "linear", "full", "full"]
    assert small.num_hidden_layers == 4
    assert small.cross_attention_layers == [2, 3]


def test_special_tokens_stay_apart_in_the_small_vocabulary() -> None:
    config = OneLayerConfig()
    config.vocab_size, config.image_token_id, config.video_token_id = 150_000, 149_999, 149_998
    config.eos_token_id = 2
    small = shrink(config, Sizes())
    assert small.eos_token_id == 2
    assert len({2, small.image_token_id, small.video_token_id}) == 3
    assert max(small.image_token_id, small.video_token_id) < small.vocab_size


def test_heads_times_their_width_stays_the_multiple_of_the_width_that_it_was() -> None:
    config = OneLayerConfig(hidden_size=2048)
    config.num_attention_heads, config.num_key_value_heads, config.head_dim = 16, 4, 256
    small = shrink(config, Sizes())
    assert small.num_attention_heads * small.head_dim == 2 * small.hidden_size
    assert small.num_attention_heads % small.num_key_value_heads == 0
    assert small.num_key_value_heads < small.num_attention_heads


def test_an_image_takes_part_where_a_text_has_places_for_it() -> None:
    specimen = first(transformers.LlavaForConditionalGeneration)
    assert "pixel_values" in specimen.inputs()
    assert not [each for each in specimen.not_covered if each.endswith("vision_tower")]


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
