"""What classes of several releases need: configurations from examples, counted features, sections."""

from __future__ import annotations

import linecache
from typing import Any

import pytest

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from gclint.verify.worker.known import Known  # noqa: E402
from gclint.verify.worker.specimen import NotSynthesisable  # noqa: E402
from gclint.verify.worker.synthesis.configurations import known  # noqa: E402
from gclint.verify.worker.synthesis.configurations.backbones import refused_in_place  # noqa: E402
from gclint.verify.worker.synthesis.configurations.defaults import default_configuration  # noqa: E402
from gclint.verify.worker.synthesis.configurations.derivation import derive  # noqa: E402
from gclint.verify.worker.synthesis.configurations.shrinking import Sizes, shrink  # noqa: E402
from gclint.verify.worker.synthesis.hints import (  # noqa: E402
    configuration,
    fields,
    images,
    inputs,
    layers,
    placeholders,
    rope,
    tokens,
)
from gclint.verify.worker.synthesis.hints.failure import Failure  # noqa: E402
from gclint.verify.worker.synthesis.inputs.documentation import documented  # noqa: E402
from gclint.verify.worker.synthesis.inputs.placeholders import placeholder_tokens  # noqa: E402
from gclint.verify.worker.synthesis.inputs.plan import Plan  # noqa: E402
from gclint.verify.worker.synthesis.inputs.situation import Situation  # noqa: E402
from tests.verify.synthesis.one_layer import OneLayerConfig, OneLayerModel, first  # noqa: E402


class PairConfig(transformers.PretrainedConfig):  # type: ignore[misc, name-defined]
    """A configuration that has no defaults.

    Example:

    ```python
    >>> from transformers import BertConfig, ViTConfig

    >>> first = ViTConfig()
    >>> second = BertConfig(hidden_size=24)
    >>> loaded = BertConfig.from_pretrained("bert")

    >>> configuration = PairConfig.from_both(first, second)
    >>> model = PairModel(configuration)
    ```"""

    model_type = "pair"

    def __init__(self, first: Any = None, second: Any = None, **others: Any) -> None:
        if not others and first is None:
            raise ValueError("not both parts are given")
        self.first, self.second = first, second
        super().__init__(**others)

    @classmethod
    def from_both(cls, first: Any, second: Any) -> Any:
        return cls(first=first, second=second)


class PairModel(OneLayerModel):
    config_class: Any = PairConfig


class Carried(OneLayerModel):
    """Takes images with its text."""

    def forward(
        self, input_ids: Any = None, pixel_values: Any = None, pixel_values_videos: Any = None
    ) -> Any:
        raise NotImplementedError


def _failure(error: BaseException, **variables: Any) -> Failure:
    """Return the failure of a line that sees ``variables``."""
    try:
        exec("raise error", {**variables, "error": error}, {**variables, "error": error})
    except BaseException as raised:
        return Failure(raised)
    raise AssertionError


def _multimodal(width: int = 64) -> Situation:
    config = OneLayerConfig(hidden_size=width)
    config.image_token_id, config.video_token_id, config.vocab_size = 9, 10, 32
    return Situation(Carried, config, Plan(), config)


def test_a_configuration_without_defaults_is_made_as_its_documentation_makes_one() -> None:
    config = default_configuration(PairModel)
    assert (type(config.first), config.second.hidden_size) == (transformers.ViTConfig, 24)


def test_the_modality_that_a_message_names_first_is_counted() -> None:
    error = ValueError("Videos features and image tokens do not match: tokens: 64, features 128")
    plan = placeholders.counted(_multimodal(), _failure(error))
    assert plan is not None
    assert set(plan.counts) == {"video"}


def test_embeddings_that_are_wanted_are_placeholders() -> None:
    error = ValueError("Mismatch: final_mask wants 32 embeddings, but multi_modal_projector returned 8")
    situation = _multimodal()
    situation = Situation(
        Carried, situation.config, Plan(without=frozenset({"pixel_values_videos"})), situation.config
    )
    plan = placeholders.counted(situation, _failure(error))
    assert plan is not None
    assert plan.counts == {"image": 4}


def test_as_many_heads_as_a_normalisation_has_groups() -> None:
    error = ValueError(
        "The hidden_size + number of attention heads must be divisible by 8 as the number of groups is 8"
    )
    plan = configuration.more_heads(_multimodal(), _failure(error))
    assert plan is not None
    assert plan.sizes.heads == 8


@pytest.mark.parametrize("shape", [(2, 2, 2, 64), (8 * 64,)])
def test_features_are_counted_by_their_content_where_the_numbers_agree(shape: tuple[int, ...]) -> None:
    error = ValueError("Image features and image tokens do not match: tokens: 4, features: 4")
    situation = _multimodal()
    situation = Situation(Carried, situation.config, Plan(counts={"image": 2}), situation.config)
    plan = placeholders.counted(situation, _failure(error, image_features=torch.zeros(shape)))
    assert plan is not None
    assert plan.counts == {"image": 4}


@pytest.mark.parametrize(
    "error",
    [
        IndexError("index 2 is out of bounds for dimension 0 with size 2"),
        RuntimeError("Number of elements of source < number of ones in mask"),
    ],
)
def test_features_that_are_written_into_too_many_places_are_counted(error: Exception) -> None:
    plan = placeholders.written_into_places(
        _multimodal(), _failure(error, image_hidden_states=torch.zeros(2, 3, 64))
    )
    assert plan is not None
    assert plan.counts == {"image": 3}


def test_sections_without_a_default_add_up_to_half_the_width_of_a_head() -> None:
    config = OneLayerConfig(hidden_size=64)
    config.num_attention_heads, config.rope_parameters = 4, {"rope_type": "default"}
    situation = Situation(OneLayerModel, config, Plan(), config)
    plan = rope.named_sections(situation, _failure(KeyError("mrope_section")))
    assert plan is not None
    assert plan.values["OneLayerConfig", "rope_parameters"]["mrope_section"] == [2, 3, 3]


def test_sections_that_are_split_twice_add_up_to_half() -> None:
    config = OneLayerConfig()
    config.rope_parameters = {"rope_type": "default", "mrope_section": [2, 3, 3]}
    situation = Situation(OneLayerModel, config, Plan(), config)
    message = (
        "split_with_sizes expects split_sizes to sum exactly to 8, but got split_sizes=[2, 3, 3, 2, 3, 3]"
    )
    plan = rope.sections(situation, _failure(RuntimeError(message)))
    assert plan is None  # Nothing says that it is about sections.
    plan = rope.sections(situation, _failure(RuntimeError(f"mrope_section: {message}")))
    assert plan is not None
    assert plan.values["=", "rope_parameters"]["mrope_section"] == [2, 1, 1]


def test_a_sequence_is_as_short_as_the_list_that_it_runs_through() -> None:
    config = OneLayerConfig()
    config.num_codebooks = 4
    situation = Situation(OneLayerModel, config, Plan(), config)
    plan = tokens.shorter(situation, _failure(IndexError("index 3 is out of range")))
    assert plan is not None
    assert plan.length == 3


def test_the_part_of_a_configuration_with_all_that_constructors_read_is_wanted() -> None:
    class Inner(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self, config: Any) -> None:
            super().__init__()
            self.sizes = (config.river, config.otters, config.pups)

    whole, first, second = PairConfig(wide=True), OneLayerConfig(), OneLayerConfig()
    first.river, second.river, second.otters, second.pups = 1, 1, 2, 3
    whole.first, whole.second = first, second
    situation = Situation(OneLayerModel, whole, Plan(), whole)
    error = AttributeError("'PairConfig' object has no attribute 'river'")
    inner = Inner(second)
    try:
        exec(compile("x = 1\nraise error", "toy", "exec"), {}, {"self": inner, "error": error})
    except AttributeError as raised:
        failure = Failure(raised)
    fitting = configuration._fitting_by_text(situation, failure, ["first", "second"])
    assert fitting == ["second"]


def test_tokens_are_not_derived() -> None:
    class TokenConfig(OneLayerConfig):
        def __init__(self, pad_token_id: Any = None, inner_size: Any = None, **others: Any) -> None:
            self.inner_size = inner_size
            super().__init__(pad_token_id=pad_token_id, **others)

    rebuilt = derive(TokenConfig(pad_token_id=3, inner_size=7))
    assert (rebuilt.pad_token_id, rebuilt.inner_size) == (3, None)


def test_the_parts_of_a_head_keep_their_widths() -> None:
    config = OneLayerConfig(hidden_size=7168)
    config.num_attention_heads, config.moe_intermediate_size = 128, 2048
    config.qk_nope_head_dim, config.qk_rope_head_dim, config.qk_head_dim, config.head_dim = 128, 64, 192, 64
    small = shrink(config, Sizes())
    assert small.qk_head_dim == small.qk_nope_head_dim + small.qk_rope_head_dim
    assert small.head_dim == small.qk_rope_head_dim


@pytest.mark.parametrize(
    ("error", "library"),
    [
        (ModuleNotFoundError("No module named 'scipy'", name="scipy"), "scipy"),
        (ImportError("DetaModel requires the Torchvision library but it was not found"), "torchvision"),
    ],
)
def test_a_missing_library_is_named(error: ImportError, library: str) -> None:
    told = NotSynthesisable.for_import(error)
    assert told.category == "extra library"
    assert str(told).endswith(f"; it needs {library}: pip install {library}")


def test_numbers_stay_the_keys_that_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known, "_KNOWN", [Known("OneLayerConfig", {"queries": {"16": 4}})])
    config = OneLayerConfig()
    config.queries = {1225: 128}
    known.apply_known(OneLayerModel, config)
    assert config.queries == {16: 4}


def test_attention_in_a_quantiser_is_as_wide_as_its_stage() -> None:
    config = OneLayerConfig(hidden_size=1024)
    config.base_channels, config.channel_multiplier = 256, [1, 2, 2, 4]
    small = shrink(config, Sizes())
    assert small.hidden_size == small.base_channels * small.channel_multiplier[-1]


def test_a_mask_over_more_than_the_sequence_is_longer() -> None:
    class Masked(OneLayerModel):
        def forward(self, hidden_states: Any, attention_mask: Any = None) -> Any:
            attention_mask = torch.ones(hidden_states.shape[:2]) if attention_mask is None else attention_mask
            length = hidden_states.shape[1]
            scores = torch.zeros(len(hidden_states), 1, length, 2 * length)
            return super().forward(hidden_states) + (scores + attention_mask[:, None, None, :]).mean()

    specimen = first(Masked)
    inputs = specimen.inputs()
    assert inputs["attention_mask"].shape[1] == 2 * inputs["hidden_states"].shape[1]


def test_a_mask_of_audio_alone_has_its_frames() -> None:
    class Heard(OneLayerModel):
        def forward(self, input_features: Any, attention_mask: Any) -> Any:  # type: ignore[override]
            return super().forward(input_features) * attention_mask.unsqueeze(-1)

    inputs = first(Heard).inputs()
    assert inputs["attention_mask"].shape == inputs["input_features"].shape[:2]


def test_a_class_for_videos_alone_takes_them_where_others_take_images() -> None:
    class Filmed(OneLayerModel):
        def forward(self, input_ids: Any = None, pixel_values: Any = None) -> Any:
            raise NotImplementedError

    config = OneLayerConfig()
    config.video_token_index = 9
    assert placeholder_tokens(Situation(Filmed, config, Plan(), config)) == {"video": 9}
    without = Plan(without=frozenset(("pixel_values",)))
    assert placeholder_tokens(Situation(Filmed, config, without, config)) == {}


def test_features_that_are_written_flat_are_counted() -> None:
    message = (
        "shape mismatch: value tensor of shape [768] cannot be broadcast to indexing result of shape [256]"
    )
    situation = _multimodal()
    situation = Situation(Carried, situation.config, Plan(counts={"image": 2}), situation.config)
    plan = placeholders.counted(situation, _failure(RuntimeError(message)))
    assert plan is not None
    assert plan.counts["image"] == 6


def test_a_head_that_reads_more_stages_of_its_backbone_gets_them() -> None:
    config = PairConfig(first=transformers.ResNetConfig(out_indices=[4]), second=OneLayerConfig())
    situation = Situation(PairModel, config, Plan(), config)
    plan = images.every_stage(situation, _failure(IndexError("list index out of range")))
    assert plan is not None
    assert plan.values["=", "_out_indices"] == [1, 2, 3, 4]


def test_images_are_larger_where_nothing_is_left_of_them() -> None:
    message = "cannot reshape tensor of 0 elements into shape [2, -1, 0, 3] because -1 is ambiguous"
    plan = images.larger_for_pyramid(_multimodal(), _failure(RuntimeError(message)))
    assert plan is not None
    assert plan.sizes.image == 64


def _failure_of(line: str, error: Exception) -> Failure:
    """Return the failure of a line that reads like ``line``."""
    name = f"<{line}>"
    linecache.cache[name] = (len(line), None, [line], name)
    try:
        exec(compile("raise error", name, "exec"), {"error": error})
    except Exception as raised:
        return Failure(raised)
    raise AssertionError


def test_heads_are_as_wide_as_the_angles_that_turn_them() -> None:
    config = OneLayerConfig()
    config.kv_channels = 32
    message = "The size of tensor a (32) must match the size of tensor b (16) at non-singleton dimension 3"
    situation = Situation(OneLayerModel, config, Plan(), config)
    plan = rope.turned_width(situation, _failure_of("q * cos", RuntimeError(message)))
    assert plan is not None
    assert plan.values == {("OneLayerConfig", "kv_channels"): 16}
    assert rope.turned_width(situation, _failure_of("q * mask", RuntimeError(message))) is None


def test_a_field_that_another_library_class_reads_has_the_default_of_its_configuration() -> None:
    class Reader(transformers.BertModel):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            raise NotImplementedError

    Reader.__module__ = transformers.BertModel.__module__
    error = AttributeError("'OneLayerConfig' object has no attribute 'hidden_act'")
    plan = fields.missing(_multimodal(), _failure(error, self=object.__new__(Reader)))
    assert plan is not None
    assert plan.values["OneLayerConfig", "hidden_act"] == "gelu"


def test_of_two_inputs_that_exclude_each_other_the_first_is_given() -> None:
    class Scorer(OneLayerModel):
        def forward(self, other_ids: Any = None, other_states: Any = None) -> Any:
            raise NotImplementedError

    config = OneLayerConfig()
    situation = Situation(Scorer, config, Plan(), config)
    error = ValueError("You have to specify either other_ids or other_states.")
    plan = inputs.asked_for(situation, _failure(error))
    assert plan is not None
    assert plan.also == {"other_ids"}


def test_tokens_whose_codebooks_are_taken_one_by_one_have_three_dimensions() -> None:
    class Coded(OneLayerModel):
        def forward(self, input_ids: Any) -> Any:
            raise NotImplementedError

    config = OneLayerConfig()
    config.n_codes_total = 5
    situation = Situation(Coded, config, Plan(), config)
    error = IndexError("too many indices for tensor of dimension 2")
    plan = tokens.beside_one_another(situation, _failure_of("embed(input_ids[:, :, i])", error))
    assert plan is not None
    assert plan.shapes == {"input_ids": (2, 12, 5)}


class KindsConfig(OneLayerConfig):
    """Names the kinds of its layers, and has none by default."""

    attribute_map = {"block_types": "layer_types"}  # noqa: RUF012

    def __init__(self, layer_types: Any = None, num_hidden_layers: int = 2, **others: Any) -> None:
        if layer_types is not None and any(each not in ["river", "otter"] for each in layer_types):
            raise ValueError(layer_types)
        super().__init__(**others)
        self.layer_types, self.num_hidden_layers = layer_types, num_hidden_layers


def test_layers_are_of_the_kinds_that_the_configuration_class_names() -> None:
    config = KindsConfig()
    situation = Situation(OneLayerModel, config, Plan(), config)
    error = TypeError("'NoneType' object is not subscriptable")
    plan = layers.kinds(situation, _failure_of('config.block_types[layer_idx] == "river"', error))
    assert plan is not None
    assert plan.values == {
        ("KindsConfig", "layer_types"): ["river", "river", "otter", "otter"],
        ("KindsConfig", "num_hidden_layers"): 4,
    }


def test_hidden_states_are_numbers_whatever_their_documentation_says() -> None:
    class Documented(OneLayerModel):
        def forward(self, last_hidden_state: Any = None) -> Any:
            """
            Args:
                last_hidden_state (`torch.LongTensor` of shape `(batch_size, sequence_length, 8)`): copied
            """

    config = OneLayerConfig()
    value = documented(Situation(Documented, config, Plan(), config), "last_hidden_state")
    assert value.is_floating_point()


def test_a_tower_that_nothing_native_can_replace_asks_for_its_library() -> None:
    error = TypeError("ResNetModel.forward() got an unexpected keyword argument 'do_pooling'")
    config = OneLayerConfig()
    assert refused_in_place(config, error) is None
    config.vision_config = transformers.ResNetConfig(architecture="mobilenetv5")
    told = refused_in_place(config, error)
    assert told is not None
    assert told.category == "extra library"
    assert str(told).endswith("it needs timm: pip install timm")


def test_a_field_is_looked_up_where_its_module_was_left_out_of_the_loaded_ones() -> None:
    class Lost:
        pass

    Lost.__module__ = "a.module.that.nobody.has.loaded"
    error = AttributeError("'OneLayerConfig' object has no attribute 'depth_of_the_sea'")
    fields.missing(_multimodal(), _failure(error, self=Lost()))
