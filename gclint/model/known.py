"""What functions, classes and decorators of other packages do, as far as that is known.

Nothing is known by the beginning of its name: what is in no table here is unknown, and so is its effect.
"""

from __future__ import annotations

import builtins
import re

from gclint.code.names import names
from gclint.model import tensors

TORCH = frozenset(("torch", "torch.nn.functional", "torch.linalg", "torch.fft", "torch.special"))
"""The modules whose functions are known by their last name."""
MODULE_BASES = frozenset(
    (
        "torch.nn.Module",
        "transformers.modeling_layers.GradientCheckpointingLayer",
        "transformers.modeling_utils.PreTrainedModel",
        "transformers.PreTrainedModel",
        "transformers.GradientCheckpointingLayer",
    )
)
OTHER_BASES = frozenset(
    (
        "object",
        "abc.ABC",
        "typing.NamedTuple",
        "typing.TypedDict",
        "typing.Generic",
        "typing.Protocol",
        "enum.Enum",
        "transformers.utils.ModelOutput",
        "transformers.utils.generic.ModelOutput",
        "transformers.file_utils.ModelOutput",
        "transformers.modeling_outputs.ModelOutput",
        "transformers.utils.TransformersKwargs",
    )
)
HOLDING_BASES = frozenset(
    (
        "typing.NamedTuple",
        "typing.TypedDict",
        "transformers.utils.ModelOutput",
        "transformers.utils.generic.ModelOutput",
        "transformers.file_utils.ModelOutput",
    )
)
"""Those of them whose objects have what they are made with as items, too."""
METACLASSES = frozenset(("type", "abc.ABCMeta"))
"""Metaclasses that make what the code of a class shows."""
FUNCTIONS = names(
    """
    len range int float bool str bytes isinstance issubclass hasattr callable max min sum abs round any all
    type slice repr ord chr divmod pow print format complex math.ceil math.floor math.sqrt math.log
    math.log2 math.log10 math.exp math.pow math.prod math.gcd math.isnan math.isinf math.sin math.cos
    math.tan math.fabs math.trunc math.hypot math.lcm math.comb operator.mul operator.add operator.sub
    operator.truediv operator.floordiv operator.attrgetter numpy.sqrt numpy.prod numpy.log numpy.log2
    numpy.ceil numpy.floor numpy.arange numpy.array numpy.ones numpy.zeros numpy.full numpy.linspace
    numpy.exp numpy.abs numpy.cumsum numpy.sum numpy.mean numpy.max numpy.min warnings.warn torch.finfo
    torch.iinfo torch.device torch.Size torch.is_tensor torch.is_floating_point torch.is_complex
    torch.is_autocast_enabled torch.get_autocast_gpu_dtype torch.get_autocast_dtype torch.no_grad
    torch.is_autocast_cpu_enabled torch.get_autocast_cpu_dtype torch.enable_grad torch.autocast
    torch.amp.autocast torch.cuda.amp.autocast torch.jit.is_tracing torch.jit.is_scripting
    torch.cuda.is_available torch.compiler.is_compiling torch.compiler.is_exporting
    torch._dynamo.is_compiling torch.onnx.is_in_onnx_export torch.broadcast_shapes torch.result_type
    torch.promote_types torch.nn.init._calculate_fan_in_and_fan_out torch._check torch._check_is_size
    torch.is_inference_mode_enabled torch.get_default_dtype contextlib.nullcontext inspect.signature
    transformers.integrations.deepspeed.is_deepspeed_available
    transformers.integrations.is_deepspeed_available transformers.deepspeed.is_deepspeed_available
    transformers.integrations.fsdp.is_fsdp_managed_module
    transformers.integrations.deepspeed.is_deepspeed_zero3_enabled
    transformers.integrations.is_deepspeed_zero3_enabled transformers.deepspeed.is_deepspeed_zero3_enabled
    deepspeed.utils.is_initialized deepspeed.comm.comm.is_initialized
    transformers.utils.requires_backends transformers.utils.import_utils.requires_backends
    transformers.utils.is_torchdynamo_compiling transformers.utils.is_torch_xla_available
    transformers.utils.is_flash_attn_2_available transformers.utils.is_torch_flex_attn_available
    transformers.utils.import_utils.is_torchdynamo_compiling transformers.utils.is_tracing
    transformers.utils.logging.get_logger transformers.utils.logging.warning_once
    transformers.utils.is_flash_attn_greater_or_equal_2_10 transformers.utils.is_flash_attn_greater_or_equal
    transformers.modeling_flash_attention_utils.flash_attn_supports_top_left_mask
    transformers.modeling_flash_attention_utils.is_flash_attn_available
    transformers.utils.generic.is_flash_attention_requested transformers.utils.generic.maybe_autocast
    transformers.utils.generic.is_torchdynamo_compiling
    transformers.pytorch_utils.is_torch_greater_or_equal_than_1_13
    transformers.integrations.fsdp.is_fsdp_managed_module
    """
)
"""Functions that change nothing, and whose results share nothing with their arguments, but for some."""
ARRAYS = names("numpy.arange numpy.array numpy.ones numpy.zeros numpy.full numpy.linspace numpy.cumsum")
"""Those of them that make arrays."""
GIVING = names("max min sum operator.add operator.mul operator.attrgetter contextlib.nullcontext")
"""Those of them that may give an argument, an item of one, or a list or tuple of items."""
ERRORS = frozenset(
    name
    for name, each in vars(builtins).items()
    if isinstance(each, type) and issubclass(each, BaseException)
)
"""Classes of errors, which only hold what they are made with."""
MASKING = {
    "transformers.modeling_attn_mask_utils._prepare_4d_attention_mask": (0, "mask"),
    "transformers.modeling_attn_mask_utils._prepare_4d_causal_attention_mask": (0, "attention_mask"),
    "transformers.masking_utils.create_causal_mask": (2, "attention_mask"),
    "transformers.masking_utils.create_bidirectional_mask": (2, "attention_mask"),
    "transformers.masking_utils.create_sliding_window_causal_mask": (2, "attention_mask"),
    "transformers.masking_utils.create_bidirectional_sliding_window_mask": (2, "attention_mask"),
}
"""Functions that make masks, and which of their arguments may be a part of the mask."""
COMPUTING = frozenset(MASKING) | names(
    """
    transformers.modeling_flash_attention_utils._flash_attention_forward
    transformers.integrations.sdpa_attention.sdpa_attention_forward
    transformers.integrations.flash_attention.flash_attention_forward
    transformers.integrations.flex_attention.flex_attention_forward
    xlstm.xlstm_large.model.soft_cap einops.rearrange einops.repeat einops.reduce einops.einsum einops.pack
    einops.unpack
    transformers.pytorch_utils.softmax_backward_data transformers.pytorch_utils.meshgrid
    torch.cuda.amp.custom_fwd torchvision.ops.roi_align torch.nn.utils.rnn.pad_sequence
    """
)
"""Functions that change nothing, and whose results may share memory with their arguments."""
RUNNING_NOTHING = names(
    """
    object.__init__ accelerate.cpu_offload_with_hook transformers.modeling_utils.get_parameter_device
    """
)
"""Functions that run none of the modules that they get while they are called."""
MODEL_METHODS = names(
    """
    invert_attention_mask get_extended_attention_mask create_extended_attention_mask_for_decoder get_head_mask
    get_input_embeddings get_output_embeddings tie_weights num_parameters
    warn_if_padding_and_no_attention_mask _tie_encoder_decoder_weights _tie_or_clone_weights
    _get_resized_lm_head _get_resized_embeddings _init_weights loss_function
    """
)
"""Methods of the library's models that run no module, and put nothing into what they get."""
DRAWING = frozenset(("random", "numpy.random", "secrets", "uuid", "os.urandom"))
"""Functions, and modules of functions, that draw random numbers otherwise than torch does."""
DRAWING_BY_POSITION = frozenset(("binomial", "poisson"))
"""Operations of torch that take a generator also without its name."""
GENERATORS = names(
    """
    random.Random random.SystemRandom numpy.random.default_rng numpy.random.Generator
    numpy.random.RandomState
    """
)
"""Classes of objects, and functions that make some, whose methods do so."""
PARTS = frozenset(("children", "named_children", "modules", "named_modules"))
"""The methods of a module that give its parts."""
TABLES_OF_PARTS = frozenset(("_modules", "_parameters", "_buffers"))
"""The attributes of a module in which its others are."""
MODEL_MAKERS = frozenset(("from_pretrained", "from_config", "_from_config"))
"""The methods of a class of models that make one."""
TRAINING_PACKAGES = frozenset(("accelerate", "peft", "transformers", "trl"))
"""The packages that make whole models ready for training."""
NEEDING_GRADIENTS = frozenset(("torch.is_grad_enabled", "torch.autograd.grad", "torch.autograd.backward"))
"""Functions whose results depend on whether gradients are recorded."""
ABOUT_GRADIENTS = names(
    "requires_grad grad_fn is_leaf register_hook retain_grad backward register_post_accumulate_grad_hook"
)
"""Attributes and methods of tensors that do."""
IN_PLACE_AT = {
    **dict.fromkeys(("ReLU", "ReLU6", "SELU", "SiLU", "Mish", "Hardswish", "Hardsigmoid"), 0),
    **dict.fromkeys(("LeakyReLU", "ELU", "CELU"), 1),
    **dict.fromkeys(("Dropout", "Dropout1d", "Dropout2d", "Dropout3d"), 1),
    **dict.fromkeys(("AlphaDropout", "FeatureAlphaDropout"), 1),
    **dict.fromkeys(("Threshold", "Hardtanh", "RReLU"), 2),
    **dict.fromkeys(("relu", "relu6", "selu", "silu", "mish", "hardswish", "hardsigmoid"), 1),
    **dict.fromkeys(("leaky_relu", "elu", "celu"), 2),
    **dict.fromkeys(("dropout", "dropout1d", "dropout2d", "dropout3d"), 3),
    **dict.fromkeys(("alpha_dropout", "feature_alpha_dropout", "threshold", "hardtanh"), 3),
    "rrelu": 4,
}
"""At which place modules, when they are made, and functions are told to change what they get."""
UNREPEATABLE = names("RReLU rrelu rrelu_")
"""What keeps its random numbers for the backward pass, where recomputation writes others over them."""
RENORMALISING_AT = {"Embedding": 3, "EmbeddingBag": 2, "embedding": 3, "embedding_bag": 3}
"""At which place those that look something up are told to change their weight in place meanwhile."""
NOT_READ_BY_TORCH = names("__init__ __doc__ __module__ __annotations__ _init_weights")
"""What a class may have whose name begins with an underscore, and no method of torch's modules reads."""
MADE_AS_VIEWS = names(
    """
    AdaptiveAvgPool1d AdaptiveMaxPool1d AvgPool1d Bilinear Conv1D Conv1d ConvTranspose1d Dropout Dropout1d
    Linear MaxPool1d MultiheadAttention adaptive_avg_pool1d adaptive_max_pool1d avg_pool1d bilinear conv1d
    conv_transpose1d cov corrcoef dropout einsum inner linear matmul max_pool1d multi_dot repeat_interleave
    tensordot
    """
)
"""What may make something new that is a view of something else that is new, or of what it gets.

What comes out of a reentrant checkpoint as a view raises an error where it is changed in place.
"""
COMPOSITE = names(
    """
    GRU GRUCell LSTM LSTMCell MultiheadAttention RNN RNNCell Transformer TransformerDecoder
    TransformerDecoderLayer TransformerEncoder TransformerEncoderLayer
    """
)
"""The modules of torch that run parts or methods of their own by name."""
RUN_BY_COMPOSITE = names(
    """
    activation check_forward_args check_hidden_size check_input decoder dropout dropout1 dropout2 dropout3
    encoder get_expected_cell_size get_expected_hidden_size layers linear1 linear2 multihead_attn norm norm1
    norm2 norm3 num_heads out_proj permute_hidden self_attn _ff_block _mha_block _sa_block
    """
)
"""By which names they do."""
CHANGING_SETTINGS = names("inplace max_norm")
"""Settings by which modules of torch change what they get, or their weight, when they run."""
TABLES = names(
    """
    transformers.activations.ACT2FN transformers.activations.ACT2CLS
    transformers.modeling_utils.ALL_ATTENTION_FUNCTIONS transformers.modeling_rope_utils.ROPE_INIT_FUNCTIONS
    transformers.pytorch_utils.ALL_LAYERNORM_LAYERS
    """
)
"""Tables of functions that change nothing."""
COMPUTING_OBJECT = "a function of a table of transformers"
PART = "a part of a module of torch"
MAKERS = frozenset(("transformers.activations.get_activation",))
"""Functions that make one of these."""
CHECKPOINT = "torch.utils.checkpoint.checkpoint"
CHECKPOINT_FUNCTION = "_gradient_checkpointing_func"
"""The attribute that holds such a function once checkpointing is enabled."""
_CACHES = names(
    """
    DynamicCache EncoderDecoderCache HybridCache HybridChunkedCache MambaCache OffloadedCache
    OffloadedStaticCache QuantizedCache SlidingWindowCache StaticCache
    """
)
CACHES = frozenset(
    f"transformers.{module}{name}{made}"
    for module in ("", "cache_utils.")
    for name in _CACHES
    for made in ("", ".from_legacy_cache")
)
"""What makes a cache, which holds what it is made of."""
CACHE_BASES = frozenset(("transformers.Cache", "transformers.cache_utils.Cache"))
"""What classes of caches derive from."""
CACHE_PARTS = names("self_attention_cache cross_attention_cache")
"""Attributes of caches that are caches themselves, each with slots of its own."""
STATIC_CACHES = names("HybridCache HybridChunkedCache OffloadedStaticCache SlidingWindowCache StaticCache")
"""Classes of caches that give back as many keys as they have room for, with whatever was put there."""
NAMED_TUPLES = frozenset(("collections.namedtuple",))
"""Functions that make classes of tuples."""
MODULES_BY_NAME = "sys.modules"
"""The table of modules."""
REGISTRY = "auto"
"""The package beside the library's models that makes them by their names, whatever they are."""
LOGGERS = frozenset(("transformers.utils.logging.get_logger", "logging.getLogger", "logging.get_logger"))
LOGGING = names(
    """
    debug info warning warning_once warning_advice error log exception info_once critical
    """
)
MODULES = frozenset(f"torch.nn.{name}" for name in tensors.MODULES) | names(
    """
    transformers.activations.GELUActivation transformers.activations.NewGELUActivation
    transformers.activations.QuickGELUActivation transformers.activations.SiLUActivation
    transformers.activations.FastGELUActivation transformers.activations.ClippedGELUActivation
    transformers.pytorch_utils.Conv1D xlstm.xlstm_large.model.RMSNorm
    """
)
"""Modules that keep no state."""
STACKS = frozenset(
    ("torch.nn.ModuleList", "torch.nn.Sequential", "torch.nn.ModuleDict", "torch.nn.ParameterList")
)
UNCALLABLE = (STACKS - {"torch.nn.Sequential"}) | {"list", "tuple", "set", "dict"}
"""The kinds of containers that raise an error when they are called."""
CONTAINERS = frozenset(
    (
        "list",
        "tuple",
        "set",
        "dict",
        "frozenset",
        "collections.OrderedDict",
        "collections.defaultdict",
        "collections.deque",
    )
)
OUTPUTS = names(
    """
    transformers.modeling_outputs transformers.utils.ModelOutput transformers.utils.generic.ModelOutput
    transformers.file_utils.ModelOutput types.SimpleNamespace
    """
)
"""Classes, and modules of classes, of objects that only hold what they are made with."""
ITERATORS = frozenset(
    (
        "iter",
        "reversed",
        "sorted",
        "enumerate",
        "zip",
        "filter",
        "map",
    )
)
DECORATORS = names(
    """
    staticmethod classmethod property abc.abstractmethod functools.wraps typing.overload
    functools.cached_property torch.no_grad torch.enable_grad torch.jit.script torch.jit.ignore
    torch.jit.unused torch.compiler.disable torch._dynamo.disable torch.inference_mode torch.jit.export
    torch.compile torch.fx.wrap torch.cuda.amp.autocast torch.autocast dataclasses.dataclass
    transformers.utils.deprecation.deprecate_kwarg transformers.utils.auto_docstring
    transformers.utils.generic.can_return_tuple transformers.utils.can_return_tuple
    transformers.integrations.use_kernel_forward_from_hub transformers.integrations.use_kernel_func_from_hub
    transformers.integrations.use_kernelized_func
    transformers.integrations.hub_kernels.use_kernel_forward_from_hub
    transformers.utils.add_start_docstrings transformers.utils.add_start_docstrings_to_model_forward
    transformers.utils.add_code_sample_docstrings transformers.utils.replace_return_docstrings
    transformers.file_utils.add_start_docstrings transformers.utils.generic.check_model_inputs
    transformers.utils.torchdynamo_disable transformers.utils.generic.merge_with_config_defaults
    transformers.utils.output_capturing.capture_outputs
    transformers.pytorch_utils.compile_compatible_method_lru_cache
    """
)
"""Decorators that leave what a function does to its caller as it is."""
KEEPING = frozenset(("cached_property", "compile_compatible_method_lru_cache"))
"""The last names of those of them that give the same result again."""
MODULE_READS = names(
    """
    parameters named_parameters buffers named_buffers modules named_modules children named_children
    state_dict get_parameter get_submodule get_buffer extra_repr generate
    """
)
HOOKING_METHODS = frozenset(("enable_input_require_grads",))
"""Methods of models whose hooks only let what they see require grad."""
REPLACING_METHODS = frozenset(("set_input_embeddings", "set_output_embeddings", "set_encoder", "set_decoder"))
"""Methods of models by which users put in something else, and which no model calls."""
MODULE_SETTINGS = names(
    """
    apply train eval to cuda cpu half float double bfloat16 requires_grad_ post_init init_weights zero_grad
    gradient_checkpointing_enable gradient_checkpointing_disable
    """
)
"""Methods of modules that code calls where it makes them, and that leave their attributes as they are."""
MODULE_CHANGES = MODULE_SETTINGS.difference(
    names("zero_grad gradient_checkpointing_enable gradient_checkpointing_disable")
) | names(
    "_apply compile ipu load_state_dict mtia set_extra_state set_submodule share_memory to_empty type xpu"
)
"""Methods of modules that may change what these hold, and what is computed with it."""
SHARING = frozenset(("set_",))
"""Methods after which a tensor shares the memory of an argument, which the schemas do not tell."""
READING_METHODS = names(
    """
    get_interface valid_keys items keys values get copy index count split rsplit strip lstrip rstrip lower
    upper startswith endswith format join replace partition rpartition isdigit is_integer bit_length title
    union intersection difference issubset issuperset isdisjoint encode decode to_dict get_text_config
    """
)
"""Methods of containers, texts, numbers and settings that change nothing."""
FILLING_METHODS = frozenset(("append", "add", "insert", "extend", "update", "setdefault", "appendleft"))
"""Methods that add their last argument to a container."""
TAKING_METHODS = frozenset(("pop", "popitem", "remove", "clear", "discard", "popleft", "sort", "reverse"))
"""Methods that change a container in another way."""

CACHED = re.compile(
    r"(?i)past|present|cache|(?<!hidden_)state|key|value|\bkv\b|memory|mems|attn|attention|weights|prob"
)
"""Matches words in expressions for caches or attention weights."""

PAIRS = names(
    """
    aminmax atleast_1d atleast_2d atleast_3d broadcast_tensors chunk cummax cummin dsplit frexp geqrf gru
    gru_cell histogram hsplit kthvalue lstm lstm_cell max_pool1d_with_indices max_pool2d_with_indices
    max_pool3d_with_indices meshgrid mode qr rnn_relu rnn_tanh slogdet sort split split_with_sizes std_mean
    svd tensor_split topk unbind unsafe_chunk unsafe_split unsafe_split_with_sizes var_mean vsplit
    """
)
"""Operations that give several tensors."""
NORMALISING = names("batch_norm instance_norm")
"""Operations that change statistics, if they get any, and nothing else."""
PAIRS_ALONG = names("max min median nanmedian")
"""Operations that do so along a dimension."""
CONTEXTS = names(
    """
    torch.no_grad torch.enable_grad torch.autocast torch.amp.autocast torch.cuda.amp.autocast
    contextlib.nullcontext transformers.utils.generic.maybe_autocast
    """
)
"""Contexts that leave no trace."""
RESTORED = CONTEXTS | names(
    """
    torch.inference_mode torch.cuda.device torch.cuda.stream torch.profiler.profile
    torch.profiler.record_function torch.autograd.profiler.record_function torch.autograd.profiler.profile
    torch.autograd.graph.save_on_cpu
    """
)
"""Contexts that recomputation is in as well, or that do not change what is computed."""
SAME = names(
    """
    transformers.pytorch_utils.prune_linear_layer transformers.pytorch_utils.prune_conv1d_layer
    transformers.modeling_utils.prune_linear_layer transformers.modeling_utils.prune_conv1d_layer
    """
)
"""Functions that give something of the kind of their first argument."""
LITERALS = names(
    "numpy.inf numpy.pi math.pi math.e math.inf math.nan math.tau torch.pi torch.inf torch.nan torch.e"
)
"""Names of other packages that are numbers."""

ALL = FUNCTIONS | COMPUTING | TABLES | MAKERS | MODULES | DECORATORS | MODULE_BASES | OTHER_BASES | LOGGERS
"""The full names of what is known of other packages."""
OPERATIONS = tensors.FRESH | tensors.VIEWS | tensors.CHANGING | tensors.FUNCTIONAL
"""The last names of the operations of torch whose effects are known."""
READ_BY_TORCH = tensors.NAMES_OF_MODULES | RUN_BY_COMPOSITE | {"training"}
"""What methods of torch's modules may read, or call, of a class that inherits them."""
