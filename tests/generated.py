"""Generated modeling files with a stack of layers, a signature and calls of every kind; for Hypothesis."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from hypothesis import strategies as st

CACHES = ("layer_past", "past_key_value", "past_key_values", "use_cache")
"""What the base class switches off where it is passed by keyword."""
STREAMS = ("hidden_states", "hidden_state", "x")
ACTIVATIONS = ("encoder_hidden_states", "cross_attention_states", "vision_hidden_state", *STREAMS)
VARIABLES = (
    *CACHES,
    *ACTIVATIONS[:3],
    *("attention_mask", "head_mask", "position_ids", "cache_params", "output_attentions", "cache_position"),
)
"""What the models' ``forward`` is given, beside the stream."""

_CONSTANTS = ("None", "False", "True", "0", "1e-5", '"eager"')
_LITERALS = (*_CONSTANTS, "-1.5", "()")


@dataclass(frozen=True)
class Parameter:
    """A parameter of a generated ``forward``."""

    name: str
    default: str | None
    annotation: str
    by_position: bool
    by_keyword: bool

    @property
    def code(self) -> str:
        equals = " = " if self.annotation else "="
        return self.name + self.annotation + ("" if self.default is None else equals + self.default)


@dataclass(frozen=True)
class Signature:
    """A generated ``forward``, without ``self``."""

    parameters: tuple[Parameter, ...]
    collects_list: bool
    collects_mapping: bool

    @property
    def positional(self) -> tuple[Parameter, ...]:
        return tuple(each for each in self.parameters if each.by_position)

    @property
    def stream(self) -> str:
        """The parameter that gets the loop's variable."""
        return next(each.name for each in self.parameters if each.name in STREAMS)

    @property
    def items(self) -> list[str]:
        """What stands between the brackets, without ``self``."""
        items = [each.code for each in self.positional]
        positional_only = sum(not each.by_keyword for each in self.parameters)
        if positional_only:
            items.insert(positional_only, "/")
        keyword_only = [each.code for each in self.parameters if not each.by_position]
        if self.collects_list or keyword_only:
            items.append("*args" if self.collects_list else "*")
        return items + keyword_only + ["**kwargs"] * self.collects_mapping


@dataclass(frozen=True)
class Argument:
    """An argument of a generated call, and the parameter that receives it."""

    value: str
    parameter: str | None = None
    keyword: bool = False

    @property
    def code(self) -> str:
        return f"{self.parameter}={self.value}" if self.keyword else self.value

    @property
    def hides_a_cache(self) -> bool:
        return self.parameter in CACHES and not self.keyword and self.value not in _CONSTANTS

    @property
    def names_an_activation(self) -> bool:
        return self.parameter in ACTIVATIONS and self.keyword and self.value not in _CONSTANTS


Call = Sequence[Argument]


@dataclass(frozen=True)
class Models:
    """Files with a stack of layers and calls of them."""

    texts: Mapping[str, str]
    """By name, an imported file before its users."""
    calls: tuple[Call, ...]


@dataclass
class Writer:
    """Draws code, and how it is laid out; every comment and every effect has a number of its own."""

    draw: st.DrawFn
    remark: str = "comment"
    """The first word of each comment."""
    count: int = field(default=0)

    def number(self) -> int:
        self.count += 1
        return self.count

    def chance(self, one_in: int) -> bool:
        # The simplest choice, to which examples shrink, is no.
        return bool(self.draw(st.integers(0, one_in - 1)) == one_in - 1)

    def one_of(self, *choices: str) -> str:
        return self.draw(st.sampled_from(choices))

    # -- layout

    def listed(self, items: Sequence[str], indent: str) -> str:
        """Write a list as it stands between brackets."""
        style = self.one_of("one line", "one line", "an item a line", "commented", "filled")
        if style == "one line" or not items:
            return ", ".join(items)
        inner = f"{indent}    "
        if style == "filled":
            middle = len(items) // 2 + 1
            lines = [", ".join(items[:middle]), ", ".join(items[middle:])]
            return f",\n{inner}".join(filter(None, lines))
        often = (2, 4, 3) if style == "commented" else (0, 0, 0)
        text = self.comment("  ", often[0])
        for index, item in enumerate(items):
            comma = "," if index + 1 < len(items) or not self.chance(3) else ""
            text += self.comment(f"\n{inner}", often[1]) + f"\n{inner}{item}{comma}"
            text += self.comment("  ", often[2])
        return text + self.comment(f"\n{inner}", often[1]) + f"\n{indent}"

    def comment(self, before: str, one_in: int, behind: str = "") -> str:
        """Write a comment, or, mostly, none; never one where ``one_in`` is 0."""
        return f"{before}# {self.remark} {self.number()}{behind}" if one_in and self.chance(one_in) else ""

    # -- signatures and calls

    def signature(self) -> Signature:
        """Draw the parameters of a ``forward``."""
        names = self.draw(st.lists(st.sampled_from(VARIABLES), unique=True, max_size=6))
        stream = self.draw(st.integers(0, 1)) if names else 0
        names.insert(stream, self.one_of(*STREAMS))
        normal = len(names) - (self.draw(st.integers(0, 2)) if self.chance(3) else 0)
        normal = max(normal, stream + 1)
        required = self.draw(st.integers(stream + 1, normal))
        positional_only = int(self.chance(8))
        parameters = [
            Parameter(
                name,
                self._default() if index >= required else None,
                self._annotation(name),
                by_position=index < normal,
                by_keyword=index >= positional_only,
            )
            for index, name in enumerate(names)
        ]
        return Signature(tuple(parameters), self.chance(12), self.chance(3))

    def similar(self, signature: Signature, call: Call) -> Signature:
        """Draw the same parameters in another order, as far as that makes no difference to a call."""
        fixed = {each.parameter for each in call if not each.keyword}
        normal = [
            each
            for each in signature.positional
            if each.default is not None and each.by_keyword and each.name not in fixed
        ]
        rest = iter(self.draw(st.permutations(normal)))
        return replace(
            signature,
            parameters=tuple(next(rest) if each in normal else each for each in signature.parameters),
        )

    def _default(self) -> str:
        return self.one_of("None", "None", "False", *_LITERALS, "DEFAULT", "[0][0]")

    def _annotation(self, name: str) -> str:
        if name in ACTIVATIONS:
            return self.one_of("", "", ": torch.Tensor", ": Optional[torch.Tensor]")
        return self.one_of("", "", ": Any", ': "dict[str, (int)]"')

    def call(self, signature: Signature, stream: str) -> list[Argument]:
        """Draw arguments that fit a signature."""
        positional = signature.positional
        fewest = sum(not each.by_keyword for each in positional if each.default is None)
        count = self.draw(st.integers(fewest, len(positional)))
        passed = [Argument(self._value(each.name, stream), each.name) for each in positional[:count]]
        if signature.collects_list and count == len(positional) and self.chance(2):
            passed.append(Argument("rest"))
        keywords = [
            Argument(self._value(each.name, stream), each.name, keyword=True)
            for each in signature.parameters
            if each not in positional[:count] and each.by_keyword
            if each.default is None or not self.chance(3)
        ]
        if signature.collects_mapping and self.chance(3):
            keywords.append(Argument("extra", "extra", keyword=True))
        keywords = list(self.draw(st.permutations(keywords)))
        if self.chance(5):
            keywords.insert(self.draw(st.integers(0, len(keywords))), Argument("**kwargs"))
        return passed + keywords

    def _value(self, name: str, stream: str) -> str:
        if name in STREAMS:
            return stream
        lines = f"(\n{' ' * 20}{name}{self.comment('  ', 2)}\n{' ' * 16})"
        guard = f"{name} if not (self.gradient_checkpointing and self.training) else None"
        effect = f'effect("{self.number()}")'
        literal = self.one_of(*_LITERALS)
        return self.one_of(name, name, name, literal, f"{name}[index]", guard, lines, effect, effect)


_HEAD = """\
from typing import Any, Optional

import torch
from torch import nn

from ...modeling_layers import GradientCheckpointingLayer
from ...modeling_utils import PreTrainedModel
"""
_IMPORT = "from .modeling_toy import ToyLayer\n"
_BLOCK = """

class {name}({base}):
    def forward({signature}):
        trace("{name}", locals())
        return {returned}
"""
_MODEL = """

class {name}(PreTrainedModel):
    supports_gradient_checkpointing = True

    def __init__(self, config):
        super().__init__(config)
        self.layers = nn.ModuleList([{block}(config) for index in range(2)])

    def forward(self, hidden_states, {variables}, rest, extra, **kwargs):
        for index, layer in enumerate(self.layers):
            {body}
        return hidden_states
"""


def _block(writer: Writer, name: str, base: str, signature: Signature, returned: str = "") -> str:
    items = writer.listed(["self", *signature.items], " " * 4)
    returned = returned or f"advance({signature.stream})"
    return _BLOCK.format(name=name, base=base, signature=items, returned=returned)


def _model(name: str, block: str, body: str) -> str:
    return _MODEL.format(name=name, block=block, variables=", ".join(VARIABLES), body=body)


def _arguments(writer: Writer, call: Iterable[Argument], indent: int) -> str:
    return writer.listed([each.code for each in call], " " * indent)


@st.composite
def converted_models(draw: st.DrawFn) -> Models:
    """Generate checkpointing layers, perhaps overridden or of two kinds, and models that run them."""
    writer = Writer(draw)
    signature = writer.signature()
    text = _HEAD + '\nDEFAULT = "a default"\n'
    text += _block(writer, "ToyLayer", "GradientCheckpointingLayer", signature)
    call = writer.call(signature, "hidden_states")
    block = "ToyLayer"
    if writer.chance(4):
        passed_on = _passed_on(writer.call(signature, signature.stream), signature)
        returned = f"super().forward({_arguments(writer, passed_on, 8)})"
        text += _block(writer, "ToyOtherLayer", "ToyLayer", signature, returned)
        block = writer.one_of("ToyLayer", "ToyOtherLayer")
    elif writer.chance(4):
        other = writer.similar(signature, call)
        text += _block(writer, "ToyOtherLayer", "GradientCheckpointingLayer", other)
        block = "(ToyOtherLayer if index else ToyLayer)"
    texts = {"modeling_toy.py": text + _model("ToyModel", block, _loop(writer, call))}
    if not writer.chance(4):
        return Models(texts, (call,))
    second = writer.call(signature, "hidden_states")
    texts["modeling_box.py"] = _HEAD + _IMPORT + _model("BoxModel", "ToyLayer", _loop(writer, second))
    return Models(texts, (call, second))


def _loop(writer: Writer, call: Call) -> str:
    return f"hidden_states = layer({_arguments(writer, call, 12)})"


def _passed_on(call: Call, signature: Signature) -> list[Argument]:
    """Return a call as an override makes it, with nothing but its own parameters."""
    own = {each.name for each in signature.parameters}
    return [replace(each, value=each.parameter) for each in call if each.parameter in own and each.parameter]


_LEGACY = """\
{before}if self.gradient_checkpointing and self.training:
                {inside}hidden_states = self._gradient_checkpointing_func({legacy})
            else:
                {other}hidden_states = layer({plain})"""
_ATTENTION = """
DEFAULT = "a default"


class ToyAttention(nn.Module):
    pass
"""


@st.composite
def legacy_models(draw: st.DrawFn) -> Models:
    """Generate a model that checkpoints its layers in a branch of its own, more or less as they run."""
    writer, legacy_writer = Writer(draw), Writer(draw, "legacy", 1000)
    signature = writer.signature()
    plain = writer.call(signature, "hidden_states")
    how = writer.one_of("the same", "by position", "without caches", "anything")
    legacy = {
        "the same": plain,
        "by position": _by_position(plain, signature),
        "without caches": [replace(each, value="None") if _is_cache(each) else each for each in plain],
        "anything": legacy_writer.call(signature, "hidden_states"),
    }[how]
    indent = " " * 16
    body = _LEGACY.format(
        before=writer.comment("", 3, f"\n{' ' * 12}"),
        inside=legacy_writer.comment("", 3, f"\n{indent}"),
        legacy=_arguments(legacy_writer, [Argument("layer.__call__"), *legacy], 16),
        other=writer.comment("", 3, f"\n{indent}"),
        plain=_arguments(writer, plain, 16),
    )
    text = _HEAD + _ATTENTION + _block(writer, "ToyLayer", "nn.Module", signature)
    return Models({"modeling_toy.py": text + _model("ToyModel", "ToyLayer", body)}, (plain,))


def _is_cache(argument: Argument) -> bool:
    return argument.parameter in (*CACHES, "cache_params")


def _by_position(call: Call, signature: Signature) -> list[Argument]:
    """Return a call with as many of its arguments as possible by position."""
    by_name = {each.parameter: each for each in call if each.parameter is not None}
    if any(each.parameter is None for each in call):
        return list(call)
    moved: list[Argument] = []
    for parameter in signature.positional:
        if not by_name:
            break
        passed = by_name.pop(parameter.name, None)
        value = parameter.default if passed is None else passed.value
        if value is None:
            break
        moved.append(Argument(value, parameter.name))
    return moved + list(by_name.values())
