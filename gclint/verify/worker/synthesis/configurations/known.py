"""What no rule can know: values that the text of a model asks for and nothing else hints at."""

from __future__ import annotations

from typing import Any

FIELDS: dict[str, dict[str, Any]] = {
    # The languages have names, and the model refuses to guess which one it reads.
    "XmodConfig": {"default_language": "en_XX"},
    # A tokenizer's table, from which the number of the placeholder of an image is read.
    "ChameleonConfig": {
        "vocabulary_map": {"<image>": 120, "IMGIMGAZ": 4, "IMGIMGBCHZ": 5},
        "image_token_id": 120,
    },
    # As above; the first and the last of the numbers that the quantiser gives are enough.
    "Emu3Config": {
        "vocabulary_map": {
            "<image>": 120,
            "<|extra_200|>": 121,
            "<|visual token 000000|>": 4,
            "<|visual token 000127|>": 5,
        },
        "image_token_id": 120,
    },
    # As wide as the last stage of the tower, whose widths are those of the released model.
    "AlignConfig": {"projection_dim": 320},
    # How many queries an image of so many patches has: a table over the sizes of the released model.
    "AriaConfig": {"projector_patch_to_query_dict": {16: 4}},
    # One section of the rotary dimensions for each axis, for which there is no default anywhere.
    "HunYuanVLTextConfig": {
        "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [2, 2, 2, 2]}
    },
    # Which layer of the text reads which layer of the images: lists that only the released model has.
    "Granite4VisionConfig": {
        "deepstack_layer_map": [(0, 0), (1, 1)],
        "spatial_target_layers": [0, 1, 0, 1],
        "downsample_rate": "2/4",
    },
    # The default is -1, which no model can be built with.
    "ViltConfig": {"num_images": 2, "modality_type_vocab_size": 3},
    # The kinds of layers are open, unlike in its siblings.
    "Lfm2MoeConfig": {
        "layer_types": ["conv", "conv", "full_attention", "full_attention"],
        "num_hidden_layers": 4,
    },
    # The sizes of the selection of keys are open, and hang together.
    "Qwen4ExpTextConfig": {
        "indexer_n_heads": 4,
        "indexer_kv_heads": 1,
        "indexer_head_dim": 32,
        "indexer_budget": 8,
        "indexer_compress_ratio": 4,
    },
    # The channels of the head are open, one for each of as many convolutions as somebody likes.
    "Sapiens2HeadConfig": {
        "upsample_out_channels": [16, 16],
        "upsample_kernel_sizes": [4, 4],
        "conv_out_channels": [16, 16],
        "conv_kernel_sizes": [1, 1],
    },
    # A prompt of so many pixels along the border of the image.
    "TvpConfig": {"visual_prompt_size": 8},
    # As many slots of the cache as cycles use; the number of layers is a product of others.
    "HrmTextConfig": {"num_hidden_layers": 16, "num_layers_per_stack": 2},
    # Tokens of images and of audio are the last ones of the text's vocabulary.
    "Gemma3nVisionConfig": {"vocab_offset": 112},
    "Gemma3nAudioConfig": {"vocab_offset": 120},
}


def apply_known(parts: list[Any]) -> None:
    """Write what is known about them into the ``parts`` of a configuration."""
    for part in parts:
        for name, value in FIELDS.get(type(part).__name__, {}).items():
            vars(part)[name] = value
