"""Configurations become tiny, and their fields still fit one another."""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from gclint.verify.worker.synthesis.configurations.defaults import use_native_backbones  # noqa: E402
from gclint.verify.worker.synthesis.configurations.layers import drop_unread_layers  # noqa: E402
from gclint.verify.worker.synthesis.configurations.shrinking import Sizes, shrink  # noqa: E402
from gclint.verify.worker.synthesis.configurations.tree import own_fields  # noqa: E402
from tests.verify.synthesis.one_layer import OneLayerConfig  # noqa: E402


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


def test_a_tower_hands_on_as_many_layers_as_the_text_has_to_add_them_to() -> None:
    config = OneLayerConfig()
    config.text_config, config.vision_config = OneLayerConfig(), OneLayerConfig()
    config.text_config.num_hidden_layers = 2
    config.vision_config.deepstack_visual_indexes = [2, 3, 4]
    drop_unread_layers(config)
    assert config.vision_config.deepstack_visual_indexes == [2, 3]


@pytest.mark.parametrize(
    ("fields", "indices"),
    [({}, [4]), ({"num_feature_levels": 1}, [4]), ({"num_feature_levels": 4}, [2, 3, 4])],
)
def test_a_native_backbone_returns_several_levels_only_where_they_are_read(
    fields: dict[str, int], indices: list[int]
) -> None:
    config = OneLayerConfig(use_timm_backbone=True, backbone="resnet50", backbone_config=None, **fields)
    use_native_backbones(config)
    assert list(config.backbone_config.out_indices) == indices
    assert (config.use_timm_backbone, config.backbone) == (False, None)


def test_kinds_of_layers_that_are_not_listed_are_named() -> None:
    small = shrink(OneLayerConfig(num_hidden_layers=12, mlp_layer_types=None), Sizes())
    assert small.mlp_layer_types == ["dense", "dense", "sparse", "sparse"]
    assert small.num_hidden_layers == 4


def test_of_the_numbers_of_rotary_positions_only_the_length_shrinks() -> None:
    config = OneLayerConfig(num_attention_heads=12)
    config.rope_parameters = {"original_max_position_embeddings": 4096, "beta_fast": 128, "factor": 4.0}
    small = shrink(config, Sizes())
    assert small.rope_parameters == {"original_max_position_embeddings": 64, "beta_fast": 128, "factor": 4.0}


@pytest.mark.parametrize("sequence", [list, tuple])
def test_the_channels_between_stages_stay_and_other_widths_shrink(sequence: type) -> None:
    channels = sequence((32, 48, 96)), sequence((48, 96, 192))
    small = shrink(OneLayerConfig(in_channels=channels[0], out_channels=channels[1]), Sizes())
    assert (small.out_channels, small.hidden_size) == (channels[1], 64)
    assert shrink(OneLayerConfig(out_channels=768, in_channels=3), Sizes()).out_channels == 64


@pytest.mark.parametrize(("depths", "width"), [([2, 2, 6, 2], 128), ((2, 2, 6, 2), 128), (None, 64)])
def test_a_stage_of_a_pyramid_is_wider_than_the_first(depths: Any, width: int) -> None:
    config = OneLayerConfig(hidden_size=768, embed_dim=96, depths=depths)
    assert shrink(config, Sizes()).hidden_size == width


@pytest.mark.parametrize(
    "name",
    [
        *("transformers_version", "architectures", "id2label", "label2id", "dtype", "torch_dtype"),
        *("problem_type", "return_dict", "output_hidden_states", "output_attentions"),
        *("chunk_size_feed_forward", "name_or_path", "_name_or_path"),
    ],
)
def test_what_says_how_a_model_was_loaded_is_not_among_its_fields(name: str) -> None:
    assert own_fields({name: 1, "hidden_size": 8, 4: 1}) == [("hidden_size", 8)]


def _layered(count: int, **fields: Any) -> Any:
    config = OneLayerConfig()
    for name, value in {"num_hidden_layers": count, **fields}.items():
        setattr(config, name, value)
    return shrink(config, Sizes())


@pytest.mark.parametrize(
    ("fields", "kept", "shared"),
    [
        # The last four share, and they alone are full.
        (
            {"num_kv_shared_layers": 4, "layer_types": ["linear"] * 8 + ["full"] * 4},
            ["linear", "linear", "full", "full"],
            2,
        ),
        # Both kinds of layers share, and both kinds do not.
        (
            {"num_kv_shared_layers": 2, "layer_types": ["linear", "full"] * 6},
            # One that shares alone would show nothing of what it shares.
            ["linear", "full", "linear", "full", "linear", "linear", "full", "full"],
            4,
        ),
        pytest.param(
            {"num_kv_shared_layers": 4, "layer_types": ["linear", "full"] * 6},
            ["linear", "full"] * 4,
            4,
            marks=pytest.mark.xfail(
                reason="how many layers share is taken for the size of a stack, and made small once more"
            ),
        ),
        # All share, or none.
        ({"num_kv_shared_layers": 12, "layer_types": ["linear", "full"] * 6}, ["linear", "full"] * 2, 4),
        ({"num_kv_shared_layers": 0, "layer_types": ["linear", "full"] * 6}, ["linear", "full"] * 2, 0),
    ],
)
def test_the_last_layers_share_keys_and_values(fields: dict[str, Any], kept: list[str], shared: int) -> None:
    small = _layered(12, **fields)
    assert small.layer_types == kept
    assert (small.num_hidden_layers, small.num_kv_shared_layers) == (len(kept), shared)


def test_the_first_layers_are_the_dense_ones() -> None:
    small = _layered(12, first_k_dense_replace=3, layer_types=["linear"] * 10 + ["full"] * 2)
    assert small.layer_types == ["linear"] * 4 + ["full"] * 2
    assert (small.num_hidden_layers, small.first_k_dense_replace) == (6, 2)


@pytest.mark.parametrize(
    ("name", "indices", "kept", "left"),
    [
        # Two layers of each kind, numbered anew.
        ("cross_attention_layers", [3, 7], 4, [2, 3]),
        ("cross_attention_layers", [-1, 7], 4, [-1, 2]),
        # All the layers that are read stay, and no others are needed for them.
        ("out_indices", [3, 7, 11], 5, [2, 3, 4]),
        ("out_indices", [3, -1], 4, [2, -1]),
    ],
)
def test_indices_of_layers_are_those_of_the_layers_that_stay(
    name: str, indices: list[int], kept: int, left: list[int]
) -> None:
    small = _layered(12, **{name: indices})
    assert (small.num_hidden_layers, getattr(small, name)) == (kept, left)


def test_a_layer_stays_with_the_one_that_it_takes_something_from() -> None:
    kinds, sources = ["linear"] * 8 + ["full"] * 2, [0, 1, 2, 3, 4, 5, 6, 7, 5, 5]
    small = _layered(10, layer_types=kinds, kv_source_layers=sources)
    at = small.layer_types.index("full")
    assert small.layer_types[small.kv_source_layers[at]] == "linear"
    assert small.kv_source_layers[at] not in (at, 0, 1)


def test_lists_that_are_no_numbers_of_layers_are_left_alone() -> None:
    small = _layered(12, layer_types=["linear"] * 12, some_ids=[0, 1], flags_idx=[True, False])
    assert (small.num_hidden_layers, small.some_ids, small.flags_idx) == (2, [0, 1], [True, False])
