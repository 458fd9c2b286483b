"""What classes of several releases need: configurations from examples, counted features, sections."""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from gclint.verify.worker.known import Known  # noqa: E402
from gclint.verify.worker.specimen import NotSynthesisable  # noqa: E402
from gclint.verify.worker.synthesis.configurations import known  # noqa: E402
from gclint.verify.worker.synthesis.configurations.defaults import default_configuration  # noqa: E402
from gclint.verify.worker.synthesis.configurations.derivation import derive  # noqa: E402
from gclint.verify.worker.synthesis.configurations.shrinking import Sizes, shrink  # noqa: E402
from gclint.verify.worker.synthesis.hints import configuration, placeholders, rope, tokens  # noqa: E402
from gclint.verify.worker.synthesis.hints.failure import Failure  # noqa: E402
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


def test_features_are_counted_by_their_content_where_the_numbers_agree() -> None:
    error = ValueError("Image features and image tokens do not match: tokens: 4, features: 4")
    situation = _multimodal()
    situation = Situation(Carried, situation.config, Plan(counts={"image": 2}), situation.config)
    features = torch.zeros(2, 2, 2, 64)
    plan = placeholders.counted(situation, _failure(error, image_features=features))
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
