"""The meaning of a field of a configuration, judged by its name."""

from __future__ import annotations

import re
from enum import Enum, auto
from functools import cache


class Kind(Enum):
    """What a number in a configuration counts or measures."""

    LAYERS = auto()  # blocks in a stack
    WIDTH = auto()  # channels of the hidden states, or inside a block
    HEADS = auto()
    KEY_HEADS = auto()  # heads of keys and values that several query heads share
    HEAD_WIDTH = auto()
    VOCABULARY = auto()
    TOKEN = auto()  # an index into a vocabulary
    POSITIONS = auto()  # the longest sequence
    IMAGE = auto()  # the side of an image in pixels
    PATCH = auto()  # the side of a patch in pixels
    WINDOW = auto()
    MEL = auto()  # frequency bands of a spectrogram
    EXPERTS = auto()
    CHOSEN = auto()  # experts per token
    GROUPS = auto()  # groups of experts, of channels or of heads
    IMAGE_TOKENS = auto()  # tokens that stand for an image
    HALF = auto()  # half the width of the hidden states, for the sines or the cosines of positions
    PATCHES_PER_SIDE = auto()  # patches along the side of an image
    STEM = auto()  # the channels of the first of several convolutions, each of which doubles them
    CODEBOOKS = auto()  # quantisers, each of the residual of the one before
    QUERIES = auto()  # learned queries that attend to a sequence
    PERIOD = auto()  # the distance between layers of another kind, such as 4 if every fourth layer is one
    OFFSET = auto()  # the index of the first such layer
    DENSE = auto()  # how many of the first layers are of another kind
    MASK = auto()  # the length of a span that is masked at random
    DROP = auto()  # the probability with which a whole layer is skipped
    DEPTH = auto()  # the factor by which stacks are deeper than their lists of layers say
    SPREAD = auto()  # the standard deviation of new weights
    RANK = auto()  # the rank of a low-rank projection, or the size of a recurrent state
    PINPOINTS = auto()  # sizes to which a large image is resized before it is cut into tiles
    COORDINATE = auto()  # the width of the embedding of one coordinate of a box, of six in the hidden states
    CHUNK = auto()  # how many positions of a sequence are processed at once
    KEEP = auto()  # a number that must stay as it is


# The first pattern that matches decides.
_PATTERNS: tuple[tuple[str, Kind], ...] = (
    (r".*layer_?drop.*", Kind.DROP),
    (r"depth_coefficient", Kind.DEPTH),
    (r"num_block_repeats", Kind.LAYERS),
    # It counts tokens of audio, despite its name.
    (r"audio_soft_tokens_per_image", Kind.KEEP),
    (
        r"mm_tokens_per_image|image_seq_len(gth)?|.*tokens_per_image|num_image_tokens|vision_soft_tokens.*",
        Kind.IMAGE_TOKENS,
    ),
    (r".*(coordinate|shape)_size", Kind.COORDINATE),
    (r"num_filters|n_filters|stem_width", Kind.STEM),
    (r"(num|n)_(codebooks|quantizers|codebook|code_groups)", Kind.CODEBOOKS),
    (r"num_pos_feats", Kind.HALF),
    (r"image_embedding_size", Kind.PATCHES_PER_SIDE),
    (r"image_grid_pinpoints", Kind.PINPOINTS),
    (r"initializer_range|init_std|.*_initializer_range|initializer_std", Kind.SPREAD),
    (
        r".*(token|tok)_?(id|index|idx|ids)|.*_token_ids?|.*_(token|start|end|bos|eos|pad)_(id|index)|(image|video|audio)_token|image_patch_id|.*blank_id",
        Kind.TOKEN,
    ),
    (r".*type_vocab_size|num_labels|num_channels|in_chan(nel)?s|.*num_classes", Kind.KEEP),
    (
        r".*vocab_size.*|.*_vocab|codebook_size|n_words|vocab_.*_size|num_embeddings|.*_bins_vocab",
        Kind.VOCABULARY,
    ),
    (
        r"max_2d_position_embeddings|max_rel.*|rel.*_bins|.*num_buckets.*|.*relative_attention_max.*",
        Kind.KEEP,
    ),
    (
        r".*max_.*position.*|n_positions|max_seq_len(gth)?|.*max_sequence_length|seq_len(gth)?|n_ctx|block_size"
        r"|max_length|context_length|max_.*_positions",
        Kind.POSITIONS,
    ),
    (
        r"(.*_)?(num_)?(key_value|kv)(_attention)?_heads(_per_layer)?|n_kv_heads|n_head_kv|.*num_kv_heads|multi_query_group_num",
        Kind.KEY_HEADS,
    ),
    (r".*(num|n)_.*heads?|.*attention_heads|heads|n_heads?|num_heads?|.*_nhead", Kind.HEADS),
    (r".*num_(image|video|audio)?_?hidden_groups|.*num_hash.*|num_inner_groups|num_inner_group", Kind.KEEP),
    (r".*first_k_dense.*|num_dense_layers|.*n_dense.*|first_dense.*", Kind.DENSE),
    (r".*max_window_layers", Kind.DENSE),
    (
        r".*(_period|_interval|_pattern|_frequency|_every.*|layer_freq|sparse_step|layer_step|_every_n|every_n.*)",
        Kind.PERIOD,
    ),
    (r".*layer_offset", Kind.OFFSET),
    (
        r"(.*_)?(num_)?(n_)?(hidden_|encoder_|decoder_|.*_)?(layers|layer|blocks|depth)|n_layers?|num_blocks|depth|.*depths"
        r"|.*num_hidden_layers.*|.*_n_layers?|num_encoder_blocks|.*_layers_num|num_.*_layers|.*_num_blocks",
        Kind.LAYERS,
    ),
    (
        r".*head_dim|.*head_size|d_kv|kv_channels|dim_head|d_head|.*_d_head|.*headdim|attention_dim_head|.*dim_per_head",
        Kind.HEAD_WIDTH,
    ),
    (
        r".*(num|n)_.*experts_per_tok.*|.*top_?k(_experts)?|num_selected_experts|moe_k|experts_per_token|.*num_experts_per.*",
        Kind.CHOSEN,
    ),
    (r".*shared_experts?|.*zero_expert.*", Kind.KEEP),
    (r".*(num|n)_.*experts?|num_experts|.*expert_num|.*num_expert", Kind.EXPERTS),
    (r".*group_tokens|num_output_groups", Kind.KEEP),
    (r".*_group|.*groups|n_group.*|topk_group|num_groups", Kind.GROUPS),
    (
        r".*(image|img|input)_(size|resolution).*|.*image_(height|width)|pretrain_image_size|img_size|.*crop_size",
        Kind.IMAGE,
    ),
    (r".*patch_size.*|.*tubelet_size|.*patch_embedding_size", Kind.PATCH),
    (r"num_windows.*|n_window(_infer)?", Kind.KEEP),
    (r".*window.*", Kind.WINDOW),
    (r".*mel_bins|.*n_mels|.*num_mel.*|mel_dim|n_mel_channels|num_freq_bins", Kind.MEL),
    (
        r".*num_quer(y|ies).*|num_latents|.*query_length|.*num_object_queries|.*n_latents|.*num_query_tokens|.*query_num",
        Kind.QUERIES,
    ),
    (r"mask_.*_length", Kind.MASK),
    (r".*lora_rank|.*_rank|.*d_state|state_size|.*ssm_state.*|.*time_step_rank|.*dt_rank", Kind.RANK),
    # It counts samples, many of which become one position.
    (r".*tokenizer_chunk_size", Kind.KEEP),
    (r".*chunk_(size|len(gth)?)|.*chunk_size.*", Kind.CHUNK),
    (
        r".*kernel.*|.*stride.*|.*dilation.*|.*padding.*|.*ratio.*|.*factor.*|.*_rate|.*scale.*|.*groups|.*num_frames",
        Kind.KEEP,
    ),
    (
        r".*hidden.*|.*_dims?|dim|d_model|.*_size|.*_width|width|.*embd|.*channels.*|.*intermediate.*|.*ffn.*|d_ff|n_inner"
        r"|.*feature_dim.*|.*inner.*|.*_d_.*|.*d_embed|emb.*|d_.*|.*_planes|.*_dim_.*|.*features",
        Kind.WIDTH,
    ),
)
_COMPILED = tuple((re.compile(pattern), kind) for pattern, kind in _PATTERNS)


@cache
def kind_of(name: str) -> Kind | None:
    """Return the meaning of the field ``name``, or None if its name does not tell."""
    for pattern, kind in _COMPILED:
        if pattern.fullmatch(name):
            return kind
    return None
