"""Makes a configuration tiny by rules."""

from __future__ import annotations

import copy
import inspect
import re
from dataclasses import dataclass
from typing import Any

from gclint.verify.worker.synthesis.configurations.fields import Unit, kind_of
from gclint.verify.worker.synthesis.configurations.layers import (
    clamp_layer_numbers,
    compress_layers,
    fit_stages,
    is_stages,
    name_layers,
)
from gclint.verify.worker.synthesis.configurations.rope import shrink_rope
from gclint.verify.worker.synthesis.configurations.tokens import remap_tokens
from gclint.verify.worker.synthesis.configurations.tree import (
    descendants,
    fields_of,
    is_configuration_class,
    is_whole,
    own_fields,
)

_STEM = 8
_WIDEST = 128
_STAGE_FIELDS = ("stage_names", "_out_indices", "_out_features")
_WIDTHS = (Unit.WIDTH, Unit.HEADS, Unit.KEY_HEADS, Unit.HEAD_WIDTH, Unit.STEM, Unit.COORDINATE, Unit.GROUPS)
_OF_INPUTS = (
    *(Unit.VOCABULARY, Unit.POSITIONS, Unit.IMAGE, Unit.PATCH, Unit.WINDOW, Unit.MEL),
    *(Unit.IMAGE_TOKENS, Unit.PATCHES_PER_SIDE, Unit.PINPOINTS),
)
_MAIN_WIDTHS = ("hidden_size", "d_model", "n_embd", "embed_dim", "dim", "hidden_dim")
"""Fields for the width of the hidden states; the first that a configuration has counts."""


def fit_codec(part: Any, original: dict[str, Any]) -> None:
    """Reduce the first channels of the codec ``part``, and all widths that follow from them.

    ``original`` has its fields before it was made tiny.
    """
    fields = fields_of(part)
    _fit_vocoder(fields, original)
    _fit_quantiser(fields, original)
    down, stem = original.get("downsampling_ratios"), original.get("encoder_hidden_size")
    if isinstance(down, list | tuple) and isinstance(original.get("num_filters"), int):
        fields["num_filters"] = max(2, _WIDEST >> len(down))
    if not isinstance(down, list | tuple) or not isinstance(stem, int):
        return
    fields["encoder_hidden_size"] = _STEM
    width = original.get("hidden_size")
    if isinstance(width, int) and original.get("quantization_dim") == 2 * width:
        # The features of the samples and those of the spectrogram, concatenated.
        fields["quantization_dim"] = 2 * fields["hidden_size"]
    if original.get("hidden_size") == stem * 2 ** len(down):
        fields["hidden_size"] = _STEM * 2 ** len(down)


def _fit_quantiser(fields: dict[str, Any], original: dict[str, Any]) -> None:
    """Keep attention as wide as the last stage, if it was before."""
    first, factors = original.get("base_channels"), original.get("channel_multiplier")
    if not isinstance(first, int) or not isinstance(factors, list | tuple) or not factors:
        return
    if original.get("hidden_size") == first * factors[-1]:
        fields["hidden_size"] = fields["base_channels"] * fields["channel_multiplier"][-1]


def _fit_vocoder(fields: dict[str, Any], original: dict[str, Any]) -> None:
    """Choose the first channels so that two are left after all upsampling steps."""
    up, channels = original.get("upsample_rates"), original.get("upsample_initial_channel")
    if isinstance(up, list | tuple) and isinstance(channels, int):
        fields["upsample_initial_channel"] = 2 << len(up)


def derive(config: Any) -> Any:
    """Return ``config`` rebuilt from the fields that its class takes, so that it derives all others again.

    A number whose default is None counts as derived. Errors of the class are passed on.
    """
    rebuilt: dict[int, Any] = {}
    for part in reversed(list(descendants(config))):
        if is_configuration_class(type(part)):
            rebuilt[id(part)] = _rebuild(part, rebuilt)
    return rebuilt[id(config)]


def _rebuild(part: Any, rebuilt: dict[int, Any]) -> Any:
    fields = fields_of(part)
    given: dict[str, Any] = {}
    for name, parameter in inspect.signature(type(part).__init__).parameters.items():
        value = fields.get(name, parameter.empty)
        derived = (
            parameter.default is None and isinstance(value, int | float) and kind_of(name) is not Unit.TOKEN
        )
        if value is not parameter.empty and not derived:
            given[name] = rebuilt.get(id(value), value)
    new = type(part)(**given)
    fields_of(new).update({name: value for name, value in own_fields(part) if not hasattr(new, name)})
    if all(name in fields for name in _STAGE_FIELDS) and len(new.stage_names) == len(fields["stage_names"]):
        fields_of(new).update({name: fields[name] for name in _STAGE_FIELDS})
    return new


@dataclass(frozen=True)
class Sizes:
    """How large a tiny model is."""

    width: int = 64
    heads: int = 4
    layers: int = 2
    vocabulary: int = 128
    positions: int = 128
    image: int = 32
    patch: int = 8
    mel: int = 32
    experts: int = 4
    queries: int = 6
    stage_width: int = 16
    """The width of the first stage of a pyramid, which doubles from stage to stage."""
    multiples: bool = False
    """Keep each width that is a multiple or a divisor of that of the hidden states the same one."""
    proportional: bool = False
    """Divide all widths by the same power of two, so that equations between them still hold."""
    plain: bool = False
    """Leave widths and numbers of heads unchanged."""
    derived: bool = False
    """Let the configuration class derive again what follows from the smaller fields."""
    fits_inputs: bool = False
    """Leave what inputs depend on unchanged, such as the vocabulary and the size of images."""


def shrink(config: Any, sizes: Sizes) -> Any:
    """Return a tiny copy of ``config`` whose fields still agree with one another."""
    small = copy.deepcopy(config)
    parts = list(descendants(small))
    factor = _factor(parts, sizes) if sizes.proportional else 0
    originals = [dict(fields_of(part)) for part in parts]
    for part, original in zip(parts, originals, strict=True):
        name_layers(part, sizes.layers)
        clamp_layer_numbers(part, sizes.layers)
        compress_layers(part, sizes.layers)
        _shrink_part(part, original, sizes)
        if factor:
            _divide_widths(part, original, factor)
        _restore_products(part, original)
        fit_stages(part, original)
        fit_codec(part, original)
        shrink_rope(part, original)
    if not sizes.fits_inputs:
        remap_tokens(parts, sizes.vocabulary)
    return derive(small) if sizes.derived else small


def _factor(parts: list[Any], sizes: Sizes) -> int:
    """Return the power of two that divides the widest hidden states to about the width in ``sizes``."""
    widths = [fields_of(part).get(name) for part in parts for name in _MAIN_WIDTHS]
    widest = max((width for width in widths if is_whole(width)), default=sizes.width)
    return 1 << max(0, (widest // sizes.width).bit_length() - 1)


def _divide_widths(part: Any, original: dict[str, Any], factor: int) -> None:
    fields = fields_of(part)
    for name, value in original.items():
        kind = kind_of(name)
        if kind in (Unit.WIDTH, Unit.COORDINATE):
            fields[name] = _divided(value, factor, 8)


def _divided(value: Any, factor: int, least: int) -> Any:
    if isinstance(value, list | tuple):
        return type(value)(_divided(each, factor, least) for each in value)
    return max(value // factor, min(value, least)) if is_whole(value) else value


def _shrink_part(part: Any, original: dict[str, Any], sizes: Sizes) -> None:
    fields = fields_of(part)
    widths = {value for name, value in original.items() if kind_of(name) is Unit.WIDTH and is_whole(value)}
    pyramid = isinstance(original.get("in_channels"), list | tuple)
    stages = {len(value) for name, value in original.items() if is_stages(name, value)}
    for name, value in own_fields(part):
        kind = kind_of(name)
        if kind is None and is_whole(value) and value > sizes.width and value in widths:
            kind = Unit.WIDTH
        if value is True and re.fullmatch(r"use_\w*kernels?", name):
            # The kernels need a GPU, and the model requires this to be false on other machines.
            fields[name] = False
            continue
        if (sizes.plain and kind in _WIDTHS) or (sizes.fits_inputs and kind in _OF_INPUTS):
            continue
        if re.fullmatch("(width|depth)_coefficient", name):
            fields[name] = min(value, 1.0)
        if pyramid and name == "out_channels":
            # These are the input channels of the next stage, which stay as they are.
            continue
        if kind is None or (kind in (Unit.LAYERS, Unit.DENSE) and value != original[name]):
            continue
        if kind is Unit.LAYERS and is_whole(value) and value in stages:
            continue
        fields[name] = _shrink_value(kind, value, original, sizes)
    spec = fields.get("_heterogeneity_spec")
    for overrides in spec.per_layer_overrides.values() if spec is not None else ():
        before = dict(overrides)
        for name, value in before.items():
            kind = kind_of(name)
            if kind is not None:
                overrides[name] = _shrink_value(kind, value, {**original, **before}, sizes)


def _shrink_value(kind: Unit, value: Any, original: dict[str, Any], sizes: Sizes) -> Any:
    if isinstance(value, list | tuple):
        if kind is Unit.IMAGE and value and all(is_whole(each) for each in value):
            return type(value)(sizes.image * (each // min(value)) for each in value)
        if all(isinstance(each, int | float | list | tuple) for each in value):
            return type(value)(_shrink_value(kind, each, original, sizes) for each in value)
        return value
    if kind is Unit.DROP and isinstance(value, float):
        return 0.0
    if kind is Unit.DEPTH and isinstance(value, float):
        return min(value, 1.0)
    if kind is Unit.SPREAD and isinstance(value, float):
        return max(value, 0.1)
    return _shrink_number(kind, value, original, sizes) if is_whole(value) else value


def _shrink_number(kind: Unit, value: int, original: dict[str, Any], sizes: Sizes) -> int:
    if kind is Unit.WIDTH:
        return _shrink_width(value, original, sizes)
    if kind is Unit.WINDOW and is_whole(original.get("patch_size")) and value > 2 * original["patch_size"]:
        # The window is in pixels.
        patch: int = original["patch_size"]
        return value // patch * min(sizes.patch, patch)
    if kind is Unit.PINPOINTS:
        smallest: int = min(min(each) for each in original["image_grid_pinpoints"])
        return sizes.image * max(1, value // smallest)
    if kind is Unit.IMAGE_TOKENS:
        return _image_tokens(value, original, sizes)
    if kind is Unit.KEY_HEADS:
        heads = next((v for n, v in original.items() if kind_of(n) is Unit.HEADS and is_whole(v)), value)
        return sizes.heads if value == heads else min(value, sizes.heads // 2)
    return min(value, _limits(value, original, sizes).get(kind, value))


def _limits(value: int, original: dict[str, Any], sizes: Sizes) -> dict[Unit, int]:
    """Return the largest number of each kind."""
    return {
        Unit.HEADS: _power_of_two(sizes.heads, value),
        Unit.HEAD_WIDTH: sizes.width // sizes.heads,
        Unit.LAYERS: max(sizes.layers, _layer_count(original, sizes)),
        Unit.VOCABULARY: sizes.vocabulary,
        Unit.POSITIONS: sizes.positions,
        Unit.IMAGE: max(sizes.image, _least_image(original)),
        Unit.PATCH: sizes.patch,
        Unit.WINDOW: 2 if isinstance(original.get("depths"), list | tuple) and value > 4 else 8,
        Unit.MEL: sizes.mel,
        Unit.EXPERTS: sizes.experts,
        Unit.CHOSEN: 2,
        Unit.GROUPS: 2,
        Unit.QUERIES: sizes.queries,
        Unit.PERIOD: 2,
        Unit.OFFSET: 1,
        Unit.DENSE: 2,
        Unit.MASK: 2,
        Unit.RANK: 16,
        Unit.PATCHES_PER_SIDE: sizes.image // sizes.patch,
        Unit.HALF: sizes.width // 2,
        Unit.STEM: 8,
        Unit.CODEBOOKS: 4,
        Unit.COORDINATE: sizes.width // 6,
        Unit.CHUNK: 16,
    }


def _least_image(original: dict[str, Any]) -> int:
    """Return the side of the smallest image, in pixels, that leaves two positions in the last stage.

    It is 0 for a model that is not a pyramid.
    """
    depths, patch = original.get("depths"), original.get("patch_size")
    if isinstance(depths, list | tuple) and is_whole(patch) and patch <= 8:
        return patch << len(depths)
    return 0


def _shrink_width(value: int, original: dict[str, Any], sizes: Sizes) -> int:
    base = original.get("embed_dim")
    if is_whole(base) and base and isinstance(original.get("depths"), list | tuple) and value % base == 0:
        return sizes.stage_width * (value // base)
    main: int | None = next((original[name] for name in _MAIN_WIDTHS if is_whole(original.get(name))), None)
    if sizes.multiples and main and value != main:
        if value % main == 0 and value // main <= 8:
            return sizes.width * (value // main)
        if main % value == 0 and sizes.width % (main // value) == 0:
            return sizes.width // (main // value)
    return sizes.width if value >= 32 else value


def _repeats(original: dict[str, Any]) -> int:
    """Return how many layers two repetitions of a pattern of layers take; 0 without such a pattern."""
    patterns = [
        len(value)
        for name, value in original.items()
        if re.fullmatch("_?block_types", name) and isinstance(value, list | tuple)
    ]
    return 2 * max(patterns, default=0)


def _image_tokens(value: int, original: dict[str, Any], sizes: Sizes) -> int:
    """Return how many tokens stand for an image: the same share of its patches as before."""
    vision = original.get("vision_config")
    image, patch = (getattr(vision, name, None) for name in ("image_size", "patch_size"))
    small = (sizes.image // sizes.patch) ** 2
    if not is_whole(image) or not is_whole(patch):
        return min(value, small)
    return max(1, value * small // (image // patch) ** 2)


def _power_of_two(limit: int, value: int) -> int:
    """Return the largest power of two that is neither above ``limit`` nor above ``value``."""
    return 1 << (min(limit, value).bit_length() - 1) if value > 0 else value


def _layer_count(original: dict[str, Any], sizes: Sizes) -> int:
    """Return how many layers are needed for two of each kind in a periodic stack."""
    alternating = any(
        kind_of(name) in (Unit.PERIOD, Unit.DENSE)
        and is_whole(value)
        and value > (kind_of(name) is Unit.PERIOD)
        for name, value in original.items()
    )
    return max(2 * sizes.layers if alternating else sizes.layers, _repeats(original))


def _restore_products(part: Any, original: dict[str, Any]) -> None:
    """Keep the width of a head times the number of heads the same multiple of a width as before."""
    fields = fields_of(part)
    nope, rope = fields.get("qk_nope_head_dim"), fields.get("qk_rope_head_dim")
    latent = is_whole(nope) and is_whole(rope)
    if is_whole(nope) and is_whole(rope) and "qk_head_dim" in fields:
        fields["qk_head_dim"] = nope + rope
    widths = {n: v for n, v in original.items() if kind_of(n) is Unit.WIDTH and is_whole(v) and v >= 32}
    heads = {n: v for n, v in original.items() if kind_of(n) is Unit.HEADS and is_whole(v) and v > 0}
    for name, value in original.items():
        if kind_of(name) is not Unit.HEAD_WIDTH or not is_whole(value):
            continue
        if latent and name in ("qk_nope_head_dim", "qk_rope_head_dim", "qk_head_dim", "head_dim"):
            # The widths of the parts of a head, of which one is rotated.
            continue
        for head_name, count in heads.items():
            if _stem(head_name) != _stem(name):
                continue
            width, multiple = _multiple_of(value * count, widths, _stem(name))
            if width is not None:
                fields[name] = multiple * fields[width] // fields[head_name]


def _multiple_of(product: int, widths: dict[str, int], stem: str) -> tuple[str | None, int]:
    """Return the width that ``product`` is a small multiple of, preferably one of the same ``stem``."""
    order = sorted(
        widths, key=lambda name: (_stem(name) != stem, name not in ("hidden_size", "d_model"), name)
    )
    for multiple in (1, 2, 3, 4):
        for name in order:
            if widths[name] * multiple == product:
                return name, multiple
    return None, 1


def _stem(name: str) -> str:
    """Return what ``name`` is about: ``mamba`` in both ``mamba_n_heads`` and ``mamba_d_head``."""
    first = name.split("_")[0]
    return first if first in ("mamba", "linear", "ssm", "index", "indexer", "encoder", "decoder") else ""
