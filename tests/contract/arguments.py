"""What a generated model hands to its blocks, and how: the parameters of ``forward`` and the calls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tests.contract.grammar import Shape


@dataclass(frozen=True)
class Names:
    """The words that a model's author prefers."""

    stream: str
    item: str
    stack: str


_CHECKPOINTS = "self.gradient_checkpointing and self.training"


def names_of(shape: Shape) -> Names:
    """Return the words of this model."""
    return (
        Names("x", "blk", "blocks") if shape.names == "short" else Names("hidden_states", "layer", "layers")
    )


@dataclass(frozen=True)
class Argument:
    """A parameter of a block's ``forward``, and what the loop passes for it."""

    parameter: str
    value: str
    default: str | None = "None"
    by_position: bool = False
    kind: str = ""
    """``stream``, ``mask``, ``bias``, ``cache`` or ``flag``, where a call form asks for it."""

    @property
    def declared(self) -> str:
        """The parameter as the signature has it."""
        return self.parameter if self.default is None else f"{self.parameter}={self.default}"


def arguments(shape: Shape) -> list[Argument]:
    """Return what a block of this shape takes, in the order of its signature."""
    stream = Argument(names_of(shape).stream, names_of(shape).stream, None, shape.call != "keyword", "stream")
    if shape.stack == "sequential":
        return [stream]
    mask = Argument("attention_mask", "attention_mask", by_position=shape.call == "positional", kind="mask")
    others = [*_encoder(shape), *_bias(shape), *_rotary(shape)]
    caches, extras = _caches(shape), _extras(shape)
    if shape.order == "cache second":
        return [stream, *caches, mask, *others, *extras]
    if shape.order == "mask last":
        return [stream, *others, *caches, *extras, mask]
    return [stream, mask, *others, *caches, *extras]


def _encoder(shape: Shape) -> list[Argument]:
    if shape.encoder == "none":
        return []
    value = {"list": "[encoder_hidden_states]", "alias": "memory"}.get(shape.encoder, "encoder_hidden_states")
    return [Argument("encoder_hidden_states", value, by_position=_is_positional(shape, shape.encoder))]


def _bias(shape: Shape) -> list[Argument]:
    if shape.bias == "none":
        return []
    by_position = _is_positional(shape, shape.bias)
    if shape.bias == "residual by keyword":
        return [Argument("embedding_output", "first", by_position=by_position)]
    value = {
        "per layer": "self.bias(positions)",
        "tuple": "(position_bias,)",
        "dict": '{"bias": position_bias}',
        "weight by keyword": "self.bias.weight",
    }.get(shape.bias, "position_bias")
    return [Argument("position_bias", value, by_position=by_position, kind="bias")]


def _rotary(shape: Shape) -> list[Argument]:
    if shape.rotary == "none":
        return []
    return [Argument("position_embeddings", "(cos, sin)", by_position=_is_positional(shape, shape.rotary))]


def _caches(shape: Shape) -> list[Argument]:
    if shape.cache == "none":
        return []
    value = {
        "guarded position": f"past_key_values if not ({_CHECKPOINTS}) else None",
        "per layer": "caches[index] if caches is not None else None",
    }.get(shape.cache_call, "past_key_values")
    by_position = "position" in shape.cache_call
    return [
        Argument(shape.cache, value, by_position=by_position, kind="cache"),
        Argument("use_cache", "use_cache", "False", kind="cache flag"),
    ]


def _extras(shape: Shape) -> list[Argument]:
    by_position = shape.call == "positional" and shape.cache == "none"
    return {
        "flag": [Argument("output_attentions", "output_attentions", "False", by_position, "flag")],
        "index": [Argument("layer_index", "index", "0", by_position)],
        "shared dict": [Argument("memo", "memo", by_position=by_position)],
    }.get(shape.extra, [])


def _is_positional(shape: Shape, how: str) -> bool:
    return how.endswith("position") or (shape.call == "positional" and not how.endswith("keyword"))


def signature(shape: Shape) -> str:
    """Return what stands between the brackets of ``forward``."""
    declared = [each.declared for each in arguments(shape)]
    return ", ".join(["self", *declared, *["**kwargs"] * (shape.extra == "kwargs")])


def plain_arguments(shape: Shape, stream: str | None = None) -> str:
    """Return the arguments of the plain call.

    Args:
        shape: the model's.
        stream: what to pass as hidden states, if not the loop's variable.
    """
    passed = arguments(shape)
    # What stands before something that goes by position has to go by position as well.
    count = max((number for number, each in enumerate(passed, start=1) if each.by_position), default=0)
    first = [stream or each.value if each.kind == "stream" else each.value for each in passed[:count]]
    rest = [
        f"{each.parameter}={stream or each.value if each.kind == 'stream' else each.value}"
        for each in passed[count:]
    ]
    if shape.call == "shuffled":
        rest.reverse()
    return ", ".join([*first, *rest, *["**kwargs"] * (shape.extra == "kwargs")])


def checkpointed_values(shape: Shape) -> list[tuple[Argument, str]]:
    """Return what the checkpointed call passes for each parameter."""
    values = [(each, _checkpointed(shape, each)) for each in arguments(shape)]
    if shape.sides == "swapped":
        kinds = {each.kind: value for each, value in values}
        swap = {"mask": kinds["bias"], "bias": kinds["mask"]} if "bias" in kinds else {}
        values = [(each, swap.get(each.kind, value)) for each, value in values]
    return values


def _checkpointed(shape: Shape, each: Argument) -> str:
    if shape.sides == "no cache" and each.kind.startswith("cache"):
        return each.default or "None"
    if shape.sides == "no mask" and each.kind == "mask":
        return "None"
    if shape.sides == "tuple bias" and each.kind == "bias":
        return f"({each.value},)"
    if shape.sides == "detached" and each.kind == "stream":
        return f"{each.value}.detach()"
    return each.value


def by_position(values: Sequence[tuple[Argument, str]]) -> str:
    """Return arguments as a checkpoint function gets them."""
    return ", ".join(value for _, value in values)


def by_keyword(values: Sequence[tuple[Argument, str]]) -> str:
    """Return the arguments behind the first one, by keyword."""
    return ", ".join(f"{each.parameter}={value}" for each, value in values[1:])
