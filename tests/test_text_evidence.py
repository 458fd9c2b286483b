"""What the text leaves in doubt of a block that is recomputed for the first time, no run takes away."""

from __future__ import annotations

from pathlib import Path

import pytest

from gclint.code.project import Project
from gclint.proof.text_evidence import shown
from gclint.rule import all_rules
from gclint.run.check import check
from gclint.settings import Settings
from tests.decisions.toy import LOOP, STACK, block, model, toy

_LAYER = "GradientCheckpointingLayer"
_ATTENDED = "y = self.attention(hidden_states)\n{}return hidden_states + y"
_TUPLES = "\nfor layer in self.layers:\n    hidden_states, found = layer(hidden_states)\n"
_WITHIN = """
with torch.random.fork_rng():
    for layer in self.layers:
        hidden_states = layer(hidden_states)
"""
_DOUBTED = {
    "keeps something for others": (
        block(_ATTENDED.format("self.seen = y\n"), base=_LAYER),
        f"{LOOP}hidden_states = hidden_states + 0 * self.layers[0].seen\n",
    ),
    "returns a container": (
        block("y = self.attention(hidden_states)\nreturn hidden_states + y, {'y': y}", base=_LAYER),
        f"{_TUPLES}hidden_states = hidden_states + 0 * found['y']\n",
    ),
    "asks whether gradients are recorded": (
        block(_ATTENDED.format("y = y * (1 + torch.is_grad_enabled())\n"), base=_LAYER),
        LOOP,
    ),
    "returns what is detached": (
        block("y = self.attention(hidden_states)\nreturn hidden_states + y, y.detach()", base=_LAYER),
        _TUPLES,
    ),
    "is run in a context": (block(_ATTENDED.format(""), base=_LAYER), _WITHIN),
    "gives out more than its result": (
        block(_ATTENDED.format(""), base=_LAYER),
        LOOP,
        "_can_record_outputs = {'energies': ToyAttention}",
    ),
    "is asked for its class": (
        block(_ATTENDED.format(""), base=_LAYER),
        f"{LOOP}hidden_states = hidden_states * len(type(self.layers[0]).__mro__)\n",
    ),
}


@pytest.mark.parametrize("name", _DOUBTED)
def test_what_is_in_doubt(name: str, tmp_path: Path) -> None:
    layer, loop, *more = _DOUBTED[name]
    assert _undecided(tmp_path, toy(layer, model(loop, init=STACK, more="\n".join(more))))


def test_what_is_not(tmp_path: Path) -> None:
    text = toy(block(_ATTENDED.format(""), base=_LAYER), model(LOOP, init=STACK))
    assert _undecided(tmp_path, text) == ()
    assert (
        _undecided(tmp_path, text.replace("return hidden_states + y", "self.y = y\n        return y"), new=())
        == ()
    )


def _undecided(folder: Path, text: str, new: tuple[str, ...] = ("ToyLayer",)) -> tuple[str, ...]:
    path = folder / "modeling_toy.py"
    path.write_text(text, encoding="utf-8")
    project = Project(Settings(), [path])
    return shown(project, [path], {path: text}, ["ToyLayer"], new).undecided


@pytest.mark.parametrize(
    ("decorator", "is_decided"),
    [("@counting\n", False), ("", True)],
)
def test_who_sees_how_arguments_are_passed(decorator: str, is_decided: bool, tmp_path: Path) -> None:
    counting = """
def counting(forward):
    def inner(self, *args, **kwargs):
        return forward(self, *args, **kwargs) * (1 + len(kwargs))
    return inner


"""
    layer = block(_ATTENDED.format(""), base=_LAYER)
    layer = layer.replace(
        "    def forward", f"    {decorator}    def forward" if decorator else "    def forward"
    )
    loop = LOOP.replace("layer(hidden_states)", "layer(hidden_states=hidden_states)")
    path = tmp_path / "modeling_toy.py"
    path.write_text(toy(counting, layer, model(loop, init=STACK)), encoding="utf-8")
    (found,) = [each for each in check(Project(Settings(), [path]), all_rules()).findings if each.fix]
    assert found.code == "GC003"
    assert found.fix is not None
    assert (found.fix.undecided == ()) is is_decided
