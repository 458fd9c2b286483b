"""The meaning of a field of a configuration, judged by its name."""

from __future__ import annotations

import re
from enum import Enum, auto
from functools import cache


class Unit(Enum):
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


_TABLE = r"""
DROP .*layer_?drop.*
DEPTH depth_coefficient
LAYERS num_block_repeats
# It counts tokens of audio, despite its name.
KEEP audio_soft_tokens_per_image
IMAGE_TOKENS mm_tokens_per_image|image_seq_len(gth)?|.*tokens_per_image|num_image_tokens
IMAGE_TOKENS vision_soft_tokens.*
COORDINATE .*(coordinate|shape)_size
STEM num_filters|n_filters|stem_width
CODEBOOKS (num|n)_(codebooks|quantizers|codebook|code_groups)
HALF num_pos_feats
PATCHES_PER_SIDE image_embedding_size
PINPOINTS image_grid_pinpoints
SPREAD initializer_range|init_std|.*_initializer_range|initializer_std
TOKEN .*(token|tok)_?(id|index|idx|ids)|.*_token_ids?|.*_(token|start|end|bos|eos|pad)_(id|index)
TOKEN (image|video|audio)_token|image_patch_id|.*blank_id
KEEP .*type_vocab_size|num_labels|num_channels|in_chan(nel)?s|.*num_classes
VOCABULARY .*vocab_size.*|.*_vocab|codebook_size|n_words|vocab_.*_size|num_embeddings|.*_bins_vocab
KEEP max_2d_position_embeddings|max_rel.*|rel.*_bins|.*num_buckets.*|.*relative_attention_max.*
POSITIONS .*max_.*position.*|n_positions|max_seq_len(gth)?|.*max_sequence_length|seq_len(gth)?|n_ctx
POSITIONS block_size|max_length|context_length|max_.*_positions
KEY_HEADS (.*_)?(num_)?(key_value|kv)(_attention)?_heads(_per_layer)?|n_kv_heads|n_head_kv|.*num_kv_heads
KEY_HEADS multi_query_group_num
HEADS .*(num|n)_.*heads?|.*attention_heads|heads|n_heads?|num_heads?|.*_nhead
KEEP .*num_(image|video|audio)?_?hidden_groups|.*num_hash.*|num_inner_groups|num_inner_group
DENSE .*first_k_dense.*|num_dense_layers|.*n_dense.*|first_dense.*
DENSE .*max_window_layers
PERIOD .*(_period|_interval|_pattern|_frequency|_every.*|layer_freq|sparse_step|layer_step|_every_n|every_n.*)
OFFSET .*layer_offset
LAYERS (.*_)?(num_)?(n_)?(hidden_|encoder_|decoder_|.*_)?(layers|layer|blocks|depth)|n_layers?|num_blocks
LAYERS depth|.*depths|.*num_hidden_layers.*|.*_n_layers?|num_encoder_blocks|.*_layers_num|num_.*_layers
LAYERS .*_num_blocks
HEAD_WIDTH .*head_dim|.*head_size|d_kv|kv_channels|dim_head|d_head|.*_d_head|.*headdim|attention_dim_head
HEAD_WIDTH .*dim_per_head
CHOSEN .*(num|n)_.*experts_per_tok.*|.*top_?k(_experts)?|num_selected_experts|moe_k|experts_per_token
CHOSEN .*num_experts_per.*
KEEP .*shared_experts?|.*zero_expert.*
EXPERTS .*(num|n)_.*experts?|num_experts|.*expert_num|.*num_expert
KEEP .*group_tokens|num_output_groups
GROUPS .*_group|.*groups|n_group.*|topk_group|num_groups
IMAGE .*(image|img|input)_(size|resolution).*|.*image_(height|width)|pretrain_image_size|img_size
IMAGE .*crop_size
PATCH .*patch_size.*|.*tubelet_size|.*patch_embedding_size
KEEP num_windows.*|n_window(_infer)?
WINDOW .*window.*
MEL .*mel_bins|.*n_mels|.*num_mel.*|mel_dim|n_mel_channels|num_freq_bins
QUERIES .*num_quer(y|ies).*|num_latents|.*query_length|.*num_object_queries|.*n_latents|.*num_query_tokens
QUERIES .*query_num
MASK mask_.*_length
RANK .*lora_rank|.*_rank|.*d_state|state_size|.*ssm_state.*|.*time_step_rank|.*dt_rank
# It counts samples, many of which become one position.
KEEP .*tokenizer_chunk_size
CHUNK .*chunk_(size|len(gth)?)|.*chunk_size.*
KEEP .*kernel.*|.*stride.*|.*dilation.*|.*padding.*|.*ratio.*|.*factor.*|.*_rate|.*scale.*|.*groups
KEEP .*num_frames
WIDTH .*hidden.*|.*_dims?|dim|d_model|.*_size|.*_width|width|.*embd|.*channels.*|.*intermediate.*|.*ffn.*
WIDTH d_ff|n_inner|.*feature_dim.*|.*inner.*|.*_d_.*|.*d_embed|emb.*|d_.*|.*_planes|.*_dim_.*|.*features
"""
"""Kinds of fields, with patterns of names; the first pattern that matches decides."""
_PATTERNS = [
    (Unit[kind], re.compile(pattern))
    for kind, pattern in (row.split() for row in _TABLE.split("\n") if row and not row.startswith("#"))
]


@cache
def kind_of(name: str) -> Unit | None:
    """Return the meaning of the field ``name``, or None if its name does not tell."""
    for kind, pattern in _PATTERNS:
        if pattern.fullmatch(name):
            return kind
    return None
