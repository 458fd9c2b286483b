"""Which names of transformers only some releases have.

Written by ``python3 -m tests.ecosystem.released_names --write`` from 4.45.2 to 5.23.0. A
name is a module below ``transformers``, or something in one.
"""

from typing import Final

ONLY_IN: Final = {
    "<4.47": """
        deepspeed
    """,
    "<4.57": """
        cache_utils.MambaCache generation.BeamSearchScorer
    """,
    "<5.0": """
        cache_utils.HybridCache kernels.falcon_mamba pytorch_utils.find_pruneable_heads_and_indices
        pytorch_utils.prune_conv1d_layer utils.is_safetensors_available utils.is_torch_fx_available
        utils.model_parallel_utils
    """,
    "<5.10": """
        pytorch_utils.isin_mps_friendly utils.backbone_utils.load_backbone
    """,
    "<5.23": """
        modeling_utils.ModelOutput modeling_utils.PoolerAnswerClass modeling_utils.PoolerEndLogits
        modeling_utils.PoolerStartLogits modeling_utils.PretrainedConfig modeling_utils.SQuADHead
        modeling_utils.SequenceSummary modeling_utils.apply_chunking_to_forward
        modeling_utils.find_pruneable_heads_and_indices modeling_utils.get_parameter_device
        modeling_utils.get_parameter_dtype modeling_utils.prune_linear_layer
    """,
    ">=4.46": """
        generation.CompileConfig integrations.fsdp modeling_flash_attention_utils.FlashAttentionKwargs
        utils.is_torch_flex_attn_available utils.is_torch_greater_or_equal
    """,
    ">=4.46,<4.55": """
        utils.LossKwargs
    """,
    ">=4.48": """
        integrations.flash_attention integrations.flex_attention modeling_utils.ALL_ATTENTION_FUNCTIONS
        pytorch_utils.compile_compatible_method_lru_cache
    """,
    ">=4.50": """
        integrations.accelerate integrations.hub_kernels integrations.use_kernel_forward_from_hub
        modeling_flash_attention_utils.flash_attn_supports_top_left_mask
        modeling_flash_attention_utils.is_flash_attn_available modeling_rope_utils.dynamic_rope_update
        modeling_utils.AttentionInterface utils.can_return_tuple utils.generic.can_return_tuple
        utils.is_torchdynamo_exporting
    """,
    ">=4.50,<4.55": """
        modeling_flash_attention_utils.apply_rotary_emb
    """,
    ">=4.50,<5.0": """
        cache_utils.HybridChunkedCache
    """,
    ">=4.52": """
        modeling_layers modeling_utils.get_torch_context_manager_or_global_device utils.auto_docstring
        utils.check_torch_load_is_safe utils.is_kernels_available utils.is_torch_accelerator_available
    """,
    ">=4.53": """
        masking_utils modeling_utils.PreTrainedAudioTokenizerBase utils.is_cuda_platform
    """,
    ">=4.54": """
        cache_utils.DFlashCache cache_utils.DynamicLayer cache_utils.DynamicSlidingWindowLayer
        cache_utils.KVSharingDict cache_utils.StaticLayer cache_utils.StaticSlidingWindowLayer
        modeling_layers.GenericForQuestionAnswering modeling_layers.GenericForSequenceClassification
        modeling_layers.GenericForTokenClassification modeling_utils.EmbeddingAccessMixin
        utils.TransformersKwargs utils.generic.TransformersKwargs utils.generic.check_model_inputs
        utils.is_xlstm_available
    """,
    ">=4.54,<5.0": """
        cache_utils.SlidingWindowLayer
    """,
    ">=4.54,<5.10": """
        utils.generic.OutputRecorder
    """,
    ">=4.56": """
        generation.utils.GENERATION_MODES_MAPPING modeling_utils.PreTrainedConfig
        modeling_utils.slice_logits_to_keep
    """,
    ">=5.0": """
        audio_utils.conv1d_output_length configuration_utils.PreTrainedConfig integrations.lazy_load_kernel
        integrations.use_experts_implementation integrations.use_kernel_func_from_hub
        integrations.use_kernelized_func masking_utils.bidirectional_mask_function
        masking_utils.create_bidirectional_mask utils.generic.is_flash_attention_requested
        utils.generic.maybe_autocast utils.is_grouped_mm_available utils.is_tracing
        utils.torch_compilable_check
    """,
    ">=5.1": """
        backbone_utils masking_utils.blockwise_overlay
        masking_utils.create_bidirectional_sliding_window_mask masking_utils.maybe_pad_block_sequence_ids
        masking_utils.sliding_window_bidirectional_overlay utils.generic.accepts_precomputed_kwargs
        utils.generic.merge_with_config_defaults utils.generic.split_attention_implementation
        utils.output_capturing vision_utils
    """,
    ">=5.11": """
        decision integrations.use_kernel_func_from_hub_with_fallback
        masking_utils.create_recurrent_attention_mask utils.generic.get_max_seqlen
        utils.get_current_accelerator vision_utils.get_max_seqlen vision_utils.get_vision_attention_seqlens
        vision_utils.get_vision_interpolation_indices_and_weights
        vision_utils.get_vision_nearest_position_ids
    """,
}
