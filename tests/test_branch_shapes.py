"""Which shapes of a legacy branch are taken apart, and which stay with the block as it is."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from gclint.finding import Finding, Fix, Refusal
from tests.test_leftover import find, toy
from tests.toy_models import LAYERS

_TUPLES = """
class ToyLayer(nn.Module):
    def __init__(self, config, index=0):
        super().__init__()
        self.attention = nn.MultiheadAttention(config.size, 2)

    def forward(self, hidden_states, mask=None):
        outputs = (self.attention(hidden_states, hidden_states, hidden_states)[0],)
        if mask is not None:
            outputs = outputs + (hidden_states,)
        return outputs
"""
_CUSTOM = """
for layer in self.layers:
    if self.gradient_checkpointing and self.training:
        def create_custom_forward(module):
            def custom_forward(*inputs):
                return {inner}
            return custom_forward
        states = checkpoint(create_custom_forward(layer), hidden_states, mask)
    else:
        states = {plain}
    hidden_states = states[0]
"""
_PLAIN = """
for layer in self.layers:
    states = {plain}
    hidden_states = states[0]
"""
_IF = """
for layer in self.layers:
    if {test}:
        hidden_states = {one}
    else:
        hidden_states = {other}
"""
_LEGACY, _CALL = "checkpoint(layer.__call__, hidden_states, mask)", "layer(hidden_states, mask)"
_RESULT = "for layer in self.layers:\n    hidden_states = {}\n"


def _if(
    one: str = _LEGACY, other: str = _CALL, test: str = "self.gradient_checkpointing and self.training"
) -> str:
    return _IF.format(test=test, one=one, other=other)


def _finding(folder: Path, loop: str, layers: str | None = None) -> Finding:
    return find(folder, toy(loop, layers=layers or LAYERS.partition("class ToyOtherLayer")[0]))


_REMOVED = {
    "a lambda": (_if("checkpoint(lambda states: layer(states, mask), hidden_states)"), _RESULT.format(_CALL)),
    "a lambda of all": (
        _if("checkpoint(lambda *all: layer(*all), hidden_states, mask)"),
        _RESULT.format(_CALL),
    ),
    "a lambda of all, by name too": (
        _if(
            "checkpoint(lambda *all, **named: layer(*all, **named), hidden_states, mask=mask)",
            "layer(hidden_states, mask=mask)",
        ),
        _RESULT.format("layer(hidden_states, mask=mask)"),
    ),
    "a lambda that picks": (
        _if("checkpoint(lambda states: layer(states)[0], hidden_states)", "layer(hidden_states)[0]"),
        _RESULT.format("layer(hidden_states)[0]"),
    ),
    "the plain call first": (
        _if(_CALL, _LEGACY, "not (self.gradient_checkpointing and self.training)"),
        _RESULT.format(_CALL),
    ),
}


@pytest.mark.parametrize("case", _REMOVED)
def test_branch_goes(case: str, tmp_path: Path) -> None:
    loop, expected = _REMOVED[case]
    fix = _finding(tmp_path, loop).remedy
    assert isinstance(fix, Fix)
    assert fix.reason is None
    _is_made(tmp_path, fix, expected)


def _is_made(folder: Path, fix: Fix, expected: str) -> None:
    text = (folder / "modeling_toy.py").read_text(encoding="utf-8")
    for edit in sorted(fix.edits, reverse=True):
        text = text[: edit.start] + edit.content + text[edit.end :]
    assert textwrap.indent(expected.strip(), " " * 8) in text


@pytest.mark.parametrize(
    ("inner", "plain"),
    [
        ("tuple(module(*inputs))", _CALL),
        ("tuple(module(*inputs))", f"tuple({_CALL})"),
        ("module(*inputs)[:1]", f"{_CALL}[:1]"),
    ],
)
def test_what_a_custom_forward_does_with_the_result_is_seen(inner: str, plain: str, tmp_path: Path) -> None:
    fix = _finding(tmp_path, _CUSTOM.format(inner=inner, plain=plain), _TUPLES).remedy
    assert isinstance(fix, Fix)
    assert fix.reason is None
    _is_made(tmp_path, fix, _PLAIN.format(plain=plain))


@pytest.mark.parametrize(
    ("inner", "plain"),
    [
        ("module(*inputs)[0]", _CALL),
        ("module(*inputs)[:1]", f"{_CALL}[:2]"),
        ("list(module(*inputs))", _CALL),
        ("module(*inputs, *inputs)", _CALL),
    ],
)
def test_another_result_keeps_the_branch(inner: str, plain: str, tmp_path: Path) -> None:
    finding = _finding(tmp_path, _CUSTOM.format(inner=inner, plain=plain), _TUPLES)
    assert isinstance(finding.remedy, Refusal)


def test_list_that_becomes_a_tuple_keeps_the_branch(tmp_path: Path) -> None:
    layers = _TUPLES.replace("return outputs", "return list(outputs)")
    finding = _finding(tmp_path, _CUSTOM.format(inner="tuple(module(*inputs))", plain=_CALL), layers)
    assert isinstance(finding.remedy, Refusal)


_USED_BEHIND = """
if self.gradient_checkpointing and self.training:
    def run(layer):
        return layer.__call__
    hidden_states = checkpoint(self.layers[0].__call__, hidden_states)
else:
    hidden_states = self.layers[0](hidden_states)
for layer in self.layers:
    hidden_states = layer(hidden_states)
if self.gradient_checkpointing:
    run(self.layers[0])
"""
_KEPT = {
    "no training and the plain call first": _if(_CALL, _LEGACY, "not self.training or not self.training"),
    "a function used behind it": _USED_BEHIND,
    "a lambda with a block": _if("checkpoint(lambda layer, states: layer(states), layer, hidden_states)"),
    "a lambda that computes": _if("checkpoint(lambda states: layer(states + 1, mask), hidden_states)"),
    "a conditional expression": """
for layer in self.layers:
    hidden_states = checkpoint(layer.__call__, hidden_states) if self.training else layer(hidden_states)
""",
    "continue": """
for layer in self.layers:
    if self.gradient_checkpointing and self.training:
        hidden_states = checkpoint(layer.__call__, hidden_states)
        continue
    hidden_states = layer(hidden_states)
""",
    "stars": _if("checkpoint(layer.__call__, *mask)", "layer(mask)"),
    "a partial of a position": _if("checkpoint(partial(layer, hidden_states), mask)"),
    "a partial of the second position": _if("checkpoint(partial(layer, mask), hidden_states)"),
}


@pytest.mark.parametrize("case", _KEPT)
def test_branch_stays(case: str, tmp_path: Path) -> None:
    assert isinstance(_finding(tmp_path, _KEPT[case]).remedy, Refusal)
