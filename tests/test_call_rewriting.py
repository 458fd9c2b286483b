"""Generated models, repaired and run: every parameter receives what it received before."""

from __future__ import annotations

import io
import tempfile
import tokenize
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gclint.engine.check import check
from gclint.engine.fix import FixResult, fix
from gclint.finding import Finding
from gclint.report.findings import is_fixable
from gclint.rule import all_rules
from gclint.settings import Settings
from gclint.source.project import Project
from tests.stand_ins import Trace, run_models

_CACHES = ("layer_past", "past_key_value", "past_key_values", "use_cache")
_ACTIVATIONS = ("encoder_hidden_states", "cross_attention_states", "vision_hidden_state")
_OTHERS = ("attention_mask", "head_mask", "position_ids", "cache_params", "output_attentions", "cache_position")
_STREAMS = ("hidden_states", "hidden_state", "x")
_LITERALS = ("None", "False", "True", "0", "-1.5", "1e-5", '"eager"', "()")
_VARIABLES = (*_CACHES, *_ACTIVATIONS, *_OTHERS)

EDGES = True
_quick = settings(
    deadline=None, derandomize=True, max_examples=150, suppress_health_check=[HealthCheck.too_slow]
)


@dataclass(frozen=True)
class _Parameter:
    name: str
    default: str | None
    annotation: str
    by_position: bool = True
    """Whether it can be passed so."""
    by_keyword: bool = True

    @property
    def code(self) -> str:
        default = "" if self.default is None else f" = {self.default}" if self.annotation else f"={self.default}"
        return self.name + self.annotation + default


@dataclass(frozen=True)
class _Signature:
    parameters: tuple[_Parameter, ...]
    collects_list: bool
    collects_mapping: bool

    @property
    def positional(self) -> tuple[_Parameter, ...]:
        return tuple(each for each in self.parameters if each.by_position)

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
class _Argument:
    value: str
    parameter: str | None = None
    keyword: bool = False

    @property
    def code(self) -> str:
        return f"{self.parameter}={self.value}" if self.keyword else self.value


@dataclass
class _Writer:
    """Draws code and the way it is laid out; every comment and every effect has its own number."""

    draw: st.DrawFn
    count: int = field(default=0)

    def number(self) -> int:
        self.count += 1
        return self.count

    def chance(self, one_in: int) -> bool:
        # The simplest choice, to which examples shrink, is no.
        return bool(self.draw(st.integers(0, one_in - 1)) == one_in - 1)

    def one_of(self, *choices: str) -> str:
        return self.draw(st.sampled_from(choices))

    def listed(self, items: list[str], indent: str) -> str:
        """Write a list as it stands between brackets."""
        style = self.one_of("one line", "one line", "one an item", "commented", "filled")
        if style == "one line" or not items:
            return ", ".join(items)
        inner = indent + "    "
        if style == "filled":
            middle = len(items) // 2 + 1
            lines = [", ".join(items[:middle]), ", ".join(items[middle:])]
            return f",\n{inner}".join(filter(None, lines))
        text = self._comment(2) if style == "commented" and EDGES else ""
        for index, item in enumerate(items):
            comma = "," if index + 1 < len(items) or not self.chance(3) else ""
            if style == "commented" and (index or EDGES) and self.chance(4):
                text += f"\n{inner}# comment {self.number()}"
            text += f"\n{inner}{item}{comma}"
            text += self._comment(3) if style == "commented" else ""
        if style == "commented" and EDGES and self.chance(4):
            text += f"\n{inner}# comment {self.number()}"
        return f"{text}\n{indent}"

    def _comment(self, one_in: int) -> str:
        return f"  # comment {self.number()}" if self.chance(one_in) else ""

    # -- signatures

    def signature(self) -> _Signature:
        stream = self.one_of(*_STREAMS)
        names = self.draw(st.lists(st.sampled_from(_VARIABLES), unique=True, max_size=6))
        names.insert(self.draw(st.integers(0, 1)) if names else 0, stream)
        normal = len(names) - (self.draw(st.integers(0, 2)) if self.chance(3) else 0)
        normal = max(normal, names.index(stream) + 1)
        positional_only = 1 if self.chance(8) else 0
        required = self.draw(st.integers(names.index(stream) + 1, normal))
        parameters = [
            _Parameter(
                name,
                self._default(index >= required),
                self._annotation(name),
                by_position=index < normal,
                by_keyword=index >= positional_only,
            )
            for index, name in enumerate(names)
        ]
        return _Signature(tuple(parameters), self.chance(12), self.chance(3))

    def _default(self, has_default: bool) -> str | None:
        if not has_default:
            return None
        return self.one_of("None", "None", "False", *_LITERALS, "DEFAULT", "[0][0]")

    def _annotation(self, name: str) -> str:
        if name in _ACTIVATIONS or name in _STREAMS:
            return self.one_of("", "", ": torch.Tensor", ": Optional[torch.Tensor]")
        return self.one_of("", "", ": Any", ': "dict[str, (int)]"')

    # -- calls

    def call(self, signature: _Signature, stream: str, *, effects: bool = True) -> list[_Argument]:
        """Draw arguments that Python accepts."""
        positional = signature.positional
        required = [each for each in signature.parameters if each.default is None]
        must = sum(not each.by_keyword for each in positional if each.default is None)
        count = self.draw(st.integers(must, len(positional)))
        passed = [_Argument(self.value(p, stream, effects), p.name) for p in positional[:count]]
        if signature.collects_list and count == len(positional) and self.chance(2):
            passed.append(_Argument(self._value("rest", effects)))
        keywords = [
            _Argument(self.value(parameter, stream, effects), parameter.name, keyword=True)
            for parameter in signature.parameters
            if parameter not in positional[:count]
            and parameter.by_keyword
            and (parameter in required or not self.chance(3))
        ]
        if signature.collects_mapping and self.chance(3):
            keywords.append(_Argument(self._value("extra", effects), "extra", keyword=True))
        keywords = self.draw(st.permutations(keywords)) if keywords else []
        if self.chance(5):
            keywords.insert(self.draw(st.integers(0, len(keywords))), _Argument("**kwargs"))
        return passed + keywords

    def value(self, parameter: _Parameter, stream: str, effects: bool) -> str:
        """Draw what a parameter is given."""
        return stream if parameter.name in _STREAMS else self._value(parameter.name, effects)

    def _value(self, name: str, effects: bool) -> str:
        kinds = ["variable", "variable", "variable", "literal", "item", "guard", "lines"]
        kind = self.one_of(*kinds, *(["effect", "effect"] if effects else []))
        return {
            "variable": name,
            "literal": self.one_of(*_LITERALS),
            "item": f"{name}[index]",
            "guard": f"{name} if not (self.gradient_checkpointing and self.training) else None",
            "lines": f"(\n{' ' * 20}{name}  # comment {self.number()}\n{' ' * 16})",
            "effect": f'effect("{self.number()}")',
        }[kind]


@dataclass(frozen=True)
class _Models:
    """Files with a checkpointing layer and calls of it, and what is wrong with the calls."""

    texts: Mapping[str, str]
    positional_caches: int
    """How many calls pass a cache that is none by a literal by position."""
    keyword_activations: int


_HEAD = """\
from typing import Any, Optional

import torch
from torch import nn

from ...modeling_layers import GradientCheckpointingLayer
from ...modeling_utils import PreTrainedModel

DEFAULT = "a default"

"""

_BLOCK = """
class {name}({base}):
    def forward({signature}):
        trace("{name}", locals())
        {body}

"""

_MODEL = """
class {name}(PreTrainedModel):
    supports_gradient_checkpointing = True

    def __init__(self, config):
        super().__init__(config)
        self.layers = nn.ModuleList([{block}(config) for _ in range(2)])

    def forward(self, hidden_states, {variables}, rest, extra, **kwargs):
        for index, layer in enumerate(self.layers):
            hidden_states = layer({arguments})
        return hidden_states

"""


@st.composite
def _models(draw: st.DrawFn) -> _Models:
    writer = _Writer(draw)
    signature = writer.signature()
    calls = [writer.call(signature, "hidden_states")]
    text = _HEAD + _block(writer, "ToyLayer", "GradientCheckpointingLayer", signature)
    block = "ToyLayer"
    if writer.chance(4):
        stream = next(each.name for each in signature.parameters if each.name in _STREAMS)
        inner = [each for each in writer.call(signature, stream) if each.value != "**kwargs"]
        inner = [each for each in inner if each.value != "rest" and each.parameter != "extra"]
        forwarded = [_Argument(_plain(each, signature), each.parameter, each.keyword) for each in inner]
        listed = writer.listed([each.code for each in forwarded], " " * 8)
        text += _block(writer, "ToyOtherLayer", "ToyLayer", signature, f"return super().forward({listed})")
        block = writer.one_of("ToyLayer", "ToyOtherLayer")
    texts = {"modeling_toy.py": text + _model(writer, "ToyModel", block, calls[0])}
    if writer.chance(4):
        calls.append(writer.call(signature, "hidden_states"))
        second = _HEAD + "from .modeling_toy import ToyLayer\n\n" + _model(writer, "BoxModel", "ToyLayer", calls[1])
        texts["modeling_box.py"] = second
    known = [call for call in calls if not any(each.parameter is None and "rest" in each.value for each in call)]
    return _Models(texts, sum(map(_hides_cache, known)), sum(map(_names_activation, known)))


def _plain(argument: _Argument, signature: _Signature) -> str:
    """Return a value that an override has: one of its own parameters."""
    names = {each.name for each in signature.parameters}
    return argument.parameter if argument.parameter in names else "None"


def _hides_cache(call: list[_Argument]) -> bool:
    return any(each.parameter in _CACHES and not each.keyword and each.value not in _LITERALS[:-1] for each in call)


def _names_activation(call: list[_Argument]) -> bool:
    activations = (*_ACTIVATIONS, *_STREAMS)
    return any(each.parameter in activations and each.keyword and each.value not in _LITERALS[:-1] for each in call)


def _block(writer: _Writer, name: str, base: str, signature: _Signature, body: str = "") -> str:
    stream = next(each.name for each in signature.parameters if each.name in _STREAMS)
    items = writer.listed(["self", *signature.items], " " * 4)
    return _BLOCK.format(name=name, base=base, signature=items, body=body or f"return advance({stream})")


def _model(writer: _Writer, name: str, block: str, call: list[_Argument]) -> str:
    arguments = writer.listed([each.code for each in call], " " * 12)
    return _MODEL.format(name=name, block=block, arguments=arguments, variables=", ".join(_VARIABLES))


def _repair(texts: Mapping[str, str], *, unsafe: bool) -> tuple[dict[str, str], FixResult]:
    """Repair files in memory; return their texts, and what the run says."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder, name) for name in texts]
        for path, text in zip(paths, texts.values(), strict=True):
            path.write_text(text, encoding="utf-8")
        project = Project(Settings())
        result = fix(project, paths, all_rules(), unsafe=unsafe)
        return {path.name: project.file(path).text for path in paths}, result


def _findings(texts: Mapping[str, str]) -> list[Finding]:
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder, name) for name in texts]
        for path, text in zip(paths, texts.values(), strict=True):
            path.write_text(text, encoding="utf-8")
        result = check(Project(Settings()), paths, all_rules())
        assert result.problems == []
        return result.findings


def _comments(texts: Mapping[str, str]) -> Counter[str]:
    return Counter(
        token.string
        for text in texts.values()
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type == tokenize.COMMENT
    )


def _run(texts: Mapping[str, str]) -> Trace:
    return run_models(texts, {name: f"<{name}>" for name in (*_VARIABLES, "rest", "extra")})


@given(_models(), st.booleans())
@_quick
def test_repaired_calls_give_every_parameter_the_same(models: _Models, unsafe: bool) -> None:
    after, result = _repair(models.texts, unsafe=unsafe)
    assert result.problems == []
    assert _run(after) == _run(models.texts)
    assert _comments(after) == _comments(models.texts)
    assert not [each for each in result.findings if is_fixable(each, unsafe=unsafe)]
    again, second = _repair(after, unsafe=unsafe)
    assert again == after
    assert second.applied == []
