"""What classes of several releases need: configurations from examples, masks, what is known of them."""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from gclint.verify.worker.class_settings import ClassSettings  # noqa: E402
from gclint.verify.worker.synthesis.configurations import class_settings  # noqa: E402
from gclint.verify.worker.synthesis.configurations.defaults import (  # noqa: E402
    default_configuration,
    unsuitable_backbone,
)
from gclint.verify.worker.synthesis.configurations.shrinking import Sizes, derive, shrink  # noqa: E402
from gclint.verify.worker.synthesis.inputs.placeholders import placeholder_tokens  # noqa: E402
from gclint.verify.worker.synthesis.inputs.situation import (  # noqa: E402
    Plan,
    Situation,
    documented,
)
from gclint.verify.worker.tiny_model import NotSynthesisable  # noqa: E402
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


def test_a_configuration_without_defaults_is_made_as_its_documentation_makes_one() -> None:
    config = default_configuration(PairModel)
    assert (type(config.first), config.second.hidden_size) == (transformers.ViTConfig, 24)


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
    monkeypatch.setattr(class_settings, "_KNOWN", [ClassSettings("OneLayerConfig", {"queries": {"16": 4}})])
    config = OneLayerConfig()
    config.queries = {1225: 128}
    class_settings.apply_known(OneLayerModel, config)
    assert config.queries == {16: 4}


def test_attention_in_a_quantiser_is_as_wide_as_its_stage() -> None:
    config = OneLayerConfig(hidden_size=1024)
    config.base_channels, config.channel_multiplier = 256, [1, 2, 2, 4]
    small = shrink(config, Sizes())
    assert small.hidden_size == small.base_channels * small.channel_multiplier[-1]


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
    assert unsuitable_backbone(config, error) is None
    config.vision_config = transformers.ResNetConfig(architecture="mobilenetv5")
    raised = unsuitable_backbone(config, error)
    assert raised is not None
    assert raised.category == "extra library"
    assert str(raised).endswith("it needs timm: pip install timm")
