"""What operations on tensors change and share, and which modules and functions keep no state.

Written by ``python3 -m tests.tensor_tables --write`` from the schemas of torch 2.13.0, and from calls
where these say too little. Names are the last parts: ``matmul`` stands for ``torch.matmul`` and
``torch.Tensor.matmul``, and ``norm`` for ``torch.linalg.norm`` too. What is in no set is unknown.
"""

from typing import Final


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


FRESH: Final = _names("""
    Size abs absolute acos acosh adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d
    adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d add addbmm addcdiv addcmul addmm addmv addr
    affine_grid_generator airy_ai alias_copy all allclose amax amin aminmax angle any arange arccos arccosh
    arcsin arcsinh arctan arctan2 arctanh argmax argmin argsort argwhere as_strided_copy as_strided_scatter
    asin asinh atan atan2 atanh avg_pool1d avg_pool2d avg_pool3d baddbmm bartlett_window batch_norm_elemt
    batch_norm_stats bernoulli bessel_j0 bessel_j1 bessel_y0 bessel_y1 bilinear binary_cross_entropy
    binary_cross_entropy_with_logits bincount binomial bitwise_and bitwise_left_shift bitwise_not bitwise_or
    bitwise_right_shift bitwise_xor blackman_window block_diag bmm broadcast_shapes bucketize can_cast cat
    ccol_indices_copy cdist ceil celu chebyshev_polynomial_t chebyshev_polynomial_u chebyshev_polynomial_v
    chebyshev_polynomial_w cholesky cholesky_ex cholesky_inverse cholesky_solve choose_qparams_optimized clamp
    clamp_max clamp_min clip clone col_indices_copy column_stack combinations complex concat concatenate
    constant_pad_nd conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d conv_transpose3d
    convolution copysign corrcoef cos cosh cosine_embedding_loss cosine_similarity count_nonzero cross
    crow_indices_copy ctc_loss cummax cummin cumprod cumsum cumulative_trapezoid deg2rad dense_dim det
    detach_copy device diag diag_embed diagflat diagonal_copy diagonal_scatter diff digamma dim dist div
    divide dot dsmm dstack eig eigh eigvals eigvalsh elu embedding embedding_bag empty empty_like
    empty_permuted empty_strided entr eq equal erf erfc erfcx erfinv exp exp2 expand_copy expit expm1 eye
    fake_quantize_per_channel_affine fake_quantize_per_tensor_affine fft fft2 fftfreq fftn fftshift fill finfo
    fix flip fliplr flipud float_power floor floor_divide fmax fmin fmod frac fractional_max_pool2d
    fractional_max_pool3d frexp frobenius_norm full full_like gammainc gammaincc gammaln gather gcd ge gelu
    geqrf ger get_autocast_cpu_dtype get_autocast_dtype get_autocast_gpu_dtype get_default_device
    get_default_dtype get_device glu gradient greater greater_equal grid_sampler grid_sampler_2d
    grid_sampler_3d group_norm gru gru_cell gt hamming_window hann_window hardshrink hardsigmoid hardswish
    hardtanh hash_tensor heaviside hermite_polynomial_h hermite_polynomial_he hfft hfft2 hfftn
    hinge_embedding_loss histc histogram householder_product hsmm hspmm hstack huber_loss hypot i0 i0e i1 i1e
    ifft ifft2 ifftn ifftshift igamma igammac ihfft ihfft2 ihfftn iinfo index index_add index_copy index_fill
    index_put index_reduce index_select indices_copy inner int_repr inv inv_ex inverse irfft irfft2 irfftn
    is_autocast_cpu_enabled is_autocast_enabled is_coalesced is_complex is_conj is_contiguous is_distributed
    is_floating_point is_grad_enabled is_inference is_inference_mode_enabled is_neg is_nonzero is_pinned
    is_same_size is_set_to is_signed is_storage is_tensor isclose isfinite isin isinf isnan isneginf isposinf
    isreal istft item kaiser_window kl_div kron kthvalue l1_loss laguerre_polynomial_l layer_norm lcm ldexp
    ldl_factor ldl_factor_ex ldl_solve le leaky_relu legendre_polynomial_p lerp less less_equal lgamma linear
    linspace lobpcg log log10 log1p log2 log_ndtr log_softmax logaddexp logaddexp2 logcumsumexp logdet
    logical_and logical_not logical_or logical_xor logit logspace logsumexp lstm lstm_cell lstsq lt lu
    lu_factor lu_factor_ex lu_solve lu_unpack margin_ranking_loss masked_fill masked_scatter masked_select
    matmul matrix_exp matrix_norm matrix_power matrix_rank max max_pool1d max_pool1d_with_indices max_pool2d
    max_pool2d_with_indices max_pool3d max_pool3d_with_indices max_unpool2d max_unpool3d maximum mean median
    min minimum mish mm mode modified_bessel_i0 modified_bessel_i1 modified_bessel_k0 modified_bessel_k1
    mse_loss msort mul multi_dot multi_margin_loss multigammaln multilabel_margin_loss multinomial multiply mv
    mvlgamma nan_to_num nanmean nanmedian nanquantile nansum narrow_copy native_group_norm native_layer_norm
    native_norm ndtr ndtri ne neg negative new_empty new_empty_strided new_full new_ones new_tensor new_zeros
    nextafter nll_loss nonzero nonzero_static norm norm_except_dim normal not_equal nuclear_norm numel one_hot
    ones ones_like orgqr ormqr outer pad pairwise_distance pca_lowrank pdist permute_copy pinv pinverse
    poisson poisson_nll_loss polar polygamma pow prelu prod promote_types psi put qr qscheme quantile rad2deg
    rand rand_like randint randint_like randn randn_like randperm range reciprocal relu relu6 remainder renorm
    repeat repeat_interleave result_type rfft rfft2 rfftfreq rfftn rms_norm rnn_relu rnn_relu_cell rnn_tanh
    rnn_tanh_cell roll rot90 round row_indices_copy row_stack rrelu rsqrt rsub saddmm scalar_tensor
    scaled_dot_product_attention scaled_modified_bessel_k0 scaled_modified_bessel_k1 scatter scatter_add
    scatter_reduce searchsorted segment_reduce select_copy select_scatter selu sgn
    shifted_chebyshev_polynomial_t shifted_chebyshev_polynomial_u shifted_chebyshev_polynomial_v
    shifted_chebyshev_polynomial_w sigmoid sign signbit silu sin sinc sinh size slice_copy slice_scatter
    slogdet smm smooth_l1_loss soft_margin_loss softmax softplus softshrink solve solve_ex solve_triangular
    sort sparse_dim sparse_mask spherical_bessel_j0 split_copy split_with_sizes_copy spmm sqrt square
    squeeze_copy sspaddmm stack std std_mean stft storage_offset stride sub subtract sum svd svd_lowrank
    svdvals symeig t_copy take take_along_dim tan tanh tensor tensordot tensorinv tensorsolve threshold tile
    topk trace transpose_copy trapezoid trapz triangular_solve tril tril_indices triplet_margin_loss triu
    triu_indices true_divide trunc unbind_copy unfold_copy unique unique_consecutive unravel_index
    unsqueeze_copy values_copy vander var var_mean vdot vecdot vector_norm view_as_complex_copy
    view_as_real_copy view_copy vstack where xlog1py xlogy zeros zeros_like zeta
""")
"""Operations that change nothing, and whose results share memory with no argument; `out=` apart."""

VIEWS: Final = _names("""
    H T adjoint alpha_dropout as_strided as_subclass as_tensor asarray atleast_1d atleast_2d atleast_3d
    bfloat16 bool broadcast_tensors broadcast_to byte cartesian_prod ccol_indices cdouble cfloat chain_matmul
    chalf channel_shuffle char chunk coalesce col_indices conj conj_physical contiguous cpu crow_indices cuda
    dequantize detach diagonal double dropout dropout1d dropout2d dropout3d dsplit einsum expand expand_as
    feature_alpha_dropout feature_dropout flatten float from_dlpack from_numpy frombuffer half histogramdd
    hsplit imag indices int ipu long mH mT meshgrid moveaxis movedim mtia narrow native_channel_shuffle
    native_dropout nested_to_padded_tensor numpy permute pin_memory pixel_shuffle pixel_unshuffle positive
    ravel real reshape reshape_as resolve_conj resolve_neg row_indices select short slice_inverse
    sparse_bsc_tensor sparse_bsr_tensor sparse_compressed_tensor sparse_coo_tensor sparse_csc_tensor
    sparse_csr_tensor split split_with_sizes squeeze sum_to_size swapaxes swapdims t tensor_split to to_dense
    to_mkldnn to_padded_tensor to_sparse to_sparse_bsc to_sparse_bsr to_sparse_coo to_sparse_csc to_sparse_csr
    transpose type type_as unbind unflatten unfold unsafe_chunk unsafe_split unsafe_split_with_sizes unsqueeze
    values view view_as view_as_complex view_as_real vsplit xpu
""")
"""Operations and attributes that change nothing, and may return memory of an argument."""

CHANGING: Final = _names("""
    abs_ absolute_ acos_ acosh_ add_ addbmm_ addcdiv_ addcmul_ addmm_ addmv_ addr_ alpha_dropout_ apply_
    arccos_ arccosh_ arcsin_ arcsinh_ arctan2_ arctan_ arctanh_ as_strided_ asin_ asinh_ atan2_ atan_ atanh_
    baddbmm_ batch_norm batch_norm_gather_stats batch_norm_gather_stats_with_counts batch_norm_update_stats
    bernoulli_ bitwise_and_ bitwise_left_shift_ bitwise_not_ bitwise_or_ bitwise_right_shift_ bitwise_xor_
    cauchy_ ceil_ celu_ clamp_ clamp_max_ clamp_min_ clip_ conj_physical_ copy_ copysign_ cos_ cosh_ cov
    cumprod_ cumsum_ deg2rad_ detach_ digamma_ div_ divide_ dropout_ elu_ embedding_renorm_ eq_ erf_ erfc_
    erfinv_ exp2_ exp_ expm1_ exponential_ feature_alpha_dropout_ feature_dropout_ fill_ fill_diagonal_ fix_
    float_power_ floor_ floor_divide_ fmod_ frac_ fused_moving_avg_obs_fake_quant gcd_ ge_ geometric_ greater_
    greater_equal_ gt_ hardtanh_ heaviside_ hypot_ i0_ igamma_ igammac_ index_add_ index_copy_ index_fill_
    index_put_ index_reduce_ instance_norm lcm_ ldexp_ le_ leaky_relu_ lerp_ less_ less_equal_ lgamma_ log10_
    log1p_ log2_ log_ log_normal_ logical_and_ logical_not_ logical_or_ logical_xor_ logit_ lt_ map2_ map_
    masked_fill_ masked_scatter_ mul_ multiply_ mvlgamma_ nan_to_num_ native_batch_norm ne_ neg_ negative_
    nextafter_ normal_ not_equal_ polygamma_ pow_ put_ rad2deg_ random_ reciprocal_ record_stream relu_
    remainder_ renorm_ requires_grad_ resize_ resize_as_ resize_as_sparse_ retain_grad round_ rrelu_ rsqrt_
    scatter_ scatter_add_ scatter_reduce_ selu_ set_ sgn_ share_memory_ sigmoid_ sign_ sin_ sinc_ sinh_
    sparse_resize_ sparse_resize_and_clear_ sqrt_ square_ squeeze_ sub_ subtract_ swapaxes_ swapdims_ t_ tan_
    tanh_ threshold_ transpose_ tril_ triu_ true_divide_ trunc_ uniform_ unsqueeze_ xlogy_ zero_
""")
"""Operations that change an argument in some overload, or may do so in training mode."""

METHODS_ONLY_READ: Final = _names("""
    dense_dim device dim dim_order dtype element_size equal get_device is_coalesced is_complex is_conj
    is_contiguous is_cpu is_cuda is_distributed is_floating_point is_ipu is_maia is_meta is_mkldnn is_mps
    is_mtia is_neg is_nested is_nonzero is_pinned is_quantized is_same_size is_set_to is_shared is_signed
    is_sparse is_sparse_csr is_vulkan is_xla is_xpu item itemsize layout nbytes ndim ndimension nelement numel
    shape size sparse_dim storage_offset stride tolist
""")
"""Attributes and methods of tensors that only read, and return no tensor."""

NO_METHODS: Final = _names("""
    Size adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool2d
    adaptive_max_pool3d affine_grid_generator airy_ai alias_copy alpha_dropout alpha_dropout_ arange
    as_strided_copy as_tensor asarray atleast_1d atleast_2d atleast_3d avg_pool1d avg_pool2d avg_pool3d
    bartlett_window batch_norm batch_norm_elemt batch_norm_gather_stats batch_norm_gather_stats_with_counts
    batch_norm_stats batch_norm_update_stats bessel_j0 bessel_j1 bessel_y0 bessel_y1 bilinear
    binary_cross_entropy binary_cross_entropy_with_logits binomial blackman_window block_diag broadcast_shapes
    broadcast_tensors bucketize can_cast cartesian_prod cat ccol_indices_copy cdist celu celu_ chain_matmul
    channel_shuffle chebyshev_polynomial_t chebyshev_polynomial_u chebyshev_polynomial_v
    chebyshev_polynomial_w cholesky_ex choose_qparams_optimized col_indices_copy column_stack combinations
    complex concat concatenate constant_pad_nd conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d
    conv_transpose3d convolution cosine_embedding_loss cosine_similarity crow_indices_copy ctc_loss
    cumulative_trapezoid detach_copy diagonal_copy dropout dropout1d dropout2d dropout3d dropout_ dsmm dstack
    eigh eigvals eigvalsh einsum elu elu_ embedding embedding_bag embedding_renorm_ empty empty_like
    empty_permuted empty_strided entr erfcx expand_copy expit eye fake_quantize_per_channel_affine
    fake_quantize_per_tensor_affine feature_alpha_dropout feature_alpha_dropout_ feature_dropout
    feature_dropout_ fft fft2 fftfreq fftn fftshift fill finfo fractional_max_pool2d fractional_max_pool3d
    frobenius_norm from_dlpack from_numpy frombuffer full full_like fused_moving_avg_obs_fake_quant gammainc
    gammaincc gammaln gelu get_autocast_cpu_dtype get_autocast_dtype get_autocast_gpu_dtype get_default_device
    get_default_dtype glu gradient grid_sampler grid_sampler_2d grid_sampler_3d group_norm gru gru_cell
    hamming_window hann_window hardsigmoid hardswish hardtanh hardtanh_ hermite_polynomial_h
    hermite_polynomial_he hfft hfft2 hfftn hinge_embedding_loss histogramdd householder_product hsmm hspmm
    hstack huber_loss i0e i1 i1e ifft ifft2 ifftn ifftshift ihfft ihfft2 ihfftn iinfo indices_copy
    instance_norm inv inv_ex irfft irfft2 irfftn is_autocast_cpu_enabled is_autocast_enabled is_grad_enabled
    is_inference_mode_enabled is_storage is_tensor isin kaiser_window kl_div l1_loss laguerre_polynomial_l
    layer_norm ldl_factor ldl_factor_ex ldl_solve leaky_relu leaky_relu_ legendre_polynomial_p linear linspace
    lobpcg log_ndtr logspace lstm lstm_cell lu_factor lu_factor_ex lu_unpack margin_ranking_loss matrix_norm
    matrix_rank max_pool1d max_pool1d_with_indices max_pool2d max_pool2d_with_indices max_pool3d
    max_pool3d_with_indices max_unpool2d max_unpool3d meshgrid mish modified_bessel_i0 modified_bessel_i1
    modified_bessel_k0 modified_bessel_k1 mse_loss multi_dot multi_margin_loss multigammaln
    multilabel_margin_loss native_batch_norm native_channel_shuffle native_dropout native_group_norm
    native_layer_norm native_norm ndtr ndtri nested_to_padded_tensor nll_loss norm_except_dim normal
    nuclear_norm one_hot ones ones_like pad pairwise_distance pca_lowrank pdist permute_copy pinv
    pixel_shuffle pixel_unshuffle poisson poisson_nll_loss polar promote_types psi rand rand_like randint
    randint_like randn randn_like randperm range relu6 result_type rfft rfft2 rfftfreq rfftn rms_norm rnn_relu
    rnn_relu_cell rnn_tanh rnn_tanh_cell row_indices_copy row_stack rrelu rrelu_ rsub saddmm scalar_tensor
    scaled_dot_product_attention scaled_modified_bessel_k0 scaled_modified_bessel_k1 searchsorted
    segment_reduce select_copy selu selu_ shifted_chebyshev_polynomial_t shifted_chebyshev_polynomial_u
    shifted_chebyshev_polynomial_v shifted_chebyshev_polynomial_w silu slice_copy smooth_l1_loss
    soft_margin_loss softplus softshrink solve_ex solve_triangular sparse_bsc_tensor sparse_bsr_tensor
    sparse_compressed_tensor sparse_coo_tensor sparse_csc_tensor sparse_csr_tensor spherical_bessel_j0
    split_copy split_with_sizes_copy spmm squeeze_copy stack std_mean svd_lowrank svdvals t_copy tensor
    tensordot tensorinv tensorsolve threshold threshold_ transpose_copy trapezoid trapz tril_indices
    triplet_margin_loss triu_indices unbind_copy unfold_copy unravel_index unsqueeze_copy values_copy vander
    var_mean vecdot vector_norm view_as_complex view_as_complex_copy view_as_real view_as_real_copy view_copy
    vstack xlog1py zeros zeros_like zeta
""")
"""Operations of the sets above that are no methods or attributes of tensors."""

MODULES: Final = _names("""
    AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d AdaptiveLogSoftmaxWithLoss AdaptiveMaxPool1d
    AdaptiveMaxPool2d AdaptiveMaxPool3d AlphaDropout AvgPool1d AvgPool2d AvgPool3d BCELoss BCEWithLogitsLoss
    Bilinear CELU CTCLoss ChannelShuffle CircularPad1d CircularPad2d CircularPad3d ConstantPad1d ConstantPad2d
    ConstantPad3d Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d CosineEmbeddingLoss
    CosineSimilarity CrossEntropyLoss CrossMapLRN2d Dropout Dropout1d Dropout2d Dropout3d ELU Embedding
    EmbeddingBag FeatureAlphaDropout Flatten Fold FractionalMaxPool2d FractionalMaxPool3d GELU GLU GRU GRUCell
    GaussianNLLLoss GroupNorm Hardshrink Hardsigmoid Hardswish Hardtanh HingeEmbeddingLoss HuberLoss Identity
    KLDivLoss L1Loss LPPool1d LPPool2d LPPool3d LSTM LSTMCell LayerNorm LeakyReLU Linear
    LinearCrossEntropyLoss LocalResponseNorm LogSigmoid LogSoftmax MSELoss MarginRankingLoss MaxPool1d
    MaxPool2d MaxPool3d MaxUnpool1d MaxUnpool2d MaxUnpool3d Mish MultiLabelMarginLoss MultiLabelSoftMarginLoss
    MultiMarginLoss MultiheadAttention NLLLoss NLLLoss2d PReLU PairwiseDistance PixelShuffle PixelUnshuffle
    PoissonNLLLoss RMSNorm RNN RNNCell RReLU ReLU ReLU6 ReflectionPad1d ReflectionPad2d ReflectionPad3d
    ReplicationPad1d ReplicationPad2d ReplicationPad3d SELU SiLU Sigmoid SmoothL1Loss SoftMarginLoss Softmax
    Softmax2d Softmin Softplus Softshrink Softsign Tanh Tanhshrink Threshold TransformerDecoderLayer
    TransformerEncoderLayer TripletMarginLoss Unflatten Unfold Upsample UpsamplingBilinear2d
    UpsamplingNearest2d ZeroPad1d ZeroPad2d ZeroPad3d
""")
"""Classes of `torch.nn` whose `forward` keeps no state and changes nothing but its result.

`inplace=` apart, and `max_norm=` of embeddings, which changes the weight. Results may share memory with an
argument, as those of `Dropout`, `Flatten` and `Identity` do.
"""

NAMES_OF_MODULES: Final = _names("""
    activation add_bias_kv add_zero_attn affine align_corners all_weights alpha approximate batch_first beta
    bias bias_k bias_v bidirectional blank ceil_mode check_forward_args check_hidden_size check_input
    count_include_pad cutoffs d_model delta device dilation dim dim_feedforward div_value divisor_override
    downscale_factor dropout dtype elementwise_affine embed_dim embedding_dim end_dim eps flatten_parameters
    freeze full get_expected_cell_size get_expected_hidden_size groups head head_bias hidden_size ignore_index
    in1_features in2_features in_channels in_features include_last_offset init inplace input_size k kdim
    keepdim kernel_size label_smoothing lambd layer_norm_eps log_input log_prob log_target lower margin
    max_norm max_val max_value merge_masks min_val min_value mode n_classes name negative_slope nhead
    nonlinearity norm norm_first norm_type normalized_shape num_channels num_chunks num_classes num_embeddings
    num_groups num_heads num_layers num_parameters options out_channels out_features output_padding
    output_ratio output_size p padding padding_idx padding_mode permute_hidden pos_weight predict proj_size
    recompute_scale_factor reduce reduction return_indices scale_factor scale_grad_by_freq size size_average
    sparse start_dim stride swap tail threshold transposed unflattened_size upper upscale_factor value vdim
    weight weight_hh weight_ih zero_infinity
""")
"""Attributes, methods and settings of these classes, which their methods may read."""

UNDIFFERENTIABLE: Final = _names("""
    airy_ai all any arange argmax argmin argsort argwhere bessel_j0 bessel_j1 bessel_y0 bessel_y1 bincount
    bitwise_and bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor bool bucketize byte
    char chebyshev_polynomial_t chebyshev_polynomial_u chebyshev_polynomial_v chebyshev_polynomial_w
    choose_qparams_optimized count_nonzero data detach detach_ dim empty empty_like eq equal eye from_numpy
    full full_like gcd ge greater greater_equal gt hash_tensor hermite_polynomial_h hermite_polynomial_he
    histc int isclose isfinite isin isinf isnan isneginf isposinf isreal laguerre_polynomial_l lcm le
    legendre_polynomial_p less less_equal linspace logical_and logical_not logical_or logical_xor logspace
    long lt matrix_rank modified_bessel_i0 modified_bessel_i1 modified_bessel_k0 modified_bessel_k1
    multinomial ne new_empty new_empty_strided new_full new_ones new_tensor new_zeros nonzero nonzero_static
    not_equal numel numpy one_hot ones ones_like rand rand_like randint randint_like randn randn_like randperm
    scaled_modified_bessel_k0 scaled_modified_bessel_k1 searchsorted shifted_chebyshev_polynomial_t
    shifted_chebyshev_polynomial_u shifted_chebyshev_polynomial_v shifted_chebyshev_polynomial_w short signbit
    spherical_bessel_j0 tensor tolist tril_indices triu_indices unique unique_consecutive zeros zeros_like
""")
"""Operations whose results never require grad, unless a new tensor is asked for that does."""

WITH_INDICES: Final = _names("""
    adaptive_max_pool1d adaptive_max_pool2d cholesky_ex cummax cummin frexp inv_ex kthvalue lu_factor max
    max_pool2d_with_indices median min mode nanmedian solve_ex sort topk
""")
"""Operations that may give two tensors, of which only the first may require grad."""

FUNCTIONAL: Final = _names("""
    adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d
    adaptive_max_pool1d_with_indices adaptive_max_pool2d adaptive_max_pool2d_with_indices adaptive_max_pool3d
    adaptive_max_pool3d_with_indices affine_grid alpha_dropout avg_pool1d avg_pool2d avg_pool3d bilinear
    binary_cross_entropy binary_cross_entropy_with_logits celu channel_shuffle conv1d conv2d conv3d conv_tbc
    conv_transpose1d conv_transpose2d conv_transpose3d cosine_embedding_loss cosine_similarity cross_entropy
    ctc_loss dropout dropout1d dropout2d dropout3d elu embedding embedding_bag feature_alpha_dropout fold
    fractional_max_pool2d fractional_max_pool2d_with_indices fractional_max_pool3d
    fractional_max_pool3d_with_indices gaussian_nll_loss gelu glu grid_sample group_norm gumbel_softmax
    hardshrink hardsigmoid hardswish hardtanh hinge_embedding_loss huber_loss interpolate kl_div l1_loss
    layer_norm leaky_relu linear linear_cross_entropy local_response_norm log_softmax logsigmoid lp_pool1d
    lp_pool2d lp_pool3d margin_ranking_loss max_pool1d max_pool1d_with_indices max_pool2d
    max_pool2d_with_indices max_pool3d max_pool3d_with_indices max_unpool1d max_unpool2d max_unpool3d mish
    mse_loss multi_head_attention_forward multi_margin_loss multilabel_margin_loss multilabel_soft_margin_loss
    native_channel_shuffle nll_loss normalize one_hot pad pairwise_distance pdist pixel_shuffle
    pixel_unshuffle poisson_nll_loss prelu relu relu6 rms_norm rrelu scaled_dot_product_attention selu sigmoid
    silu smooth_l1_loss soft_margin_loss softmax softmin softplus softshrink softsign tanh tanhshrink
    threshold triplet_margin_loss unfold upsample upsample_bilinear upsample_nearest
""")
"""Functions of `torch.nn.functional` that change nothing without `inplace=` and `out=`.

With `max_norm=`, `embedding` and `embedding_bag` change the weight: who asks has to look for it. A function
that is in `VIEWS` too may return memory of an argument; the others do not.
"""
