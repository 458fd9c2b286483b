"""Comments and docstrings full of telling words, which say nothing about what the code does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tests.contract.kinds.models import Pair, Ways


@dataclass(frozen=True)
class _Construct:
    """What does harm, and words around it."""

    frame: str
    slots: Mapping[str, str]
    soothing: tuple[str, str]
    """Around what does harm."""
    alarming: tuple[str, str]
    """Where nothing does."""
    ways: Ways = ()


_SCALE = "states = states * (1 + 0.1 * $n)"
_CONSTRUCTS = {
    "in place": _Construct(
        "plain block",
        {"layer_start": "mask.mul_(2)\nstates = states + mask.mean()"},
        ("mask = mask.clone()", "nothing is changed in place: mask.mul(2)"),
        ("mask.mul_(2)", "mask[0] = 1; states += mask; torch.mul(mask, 2, out=mask)"),
    ),
    "state": _Construct(
        "plain block",
        {
            "layer_init": "self.calls = 0",
            "layer_start": "self.calls = self.calls + 1\n" + _SCALE.replace("$n", "self.calls"),
        },
        ("calls = self.calls + 1", "the block keeps no state, and self.calls is never assigned"),
        ("self.calls += 1", "self.seen.append(states); setattr(self, 'calls', 1)"),
    ),
    "statistics": _Construct(
        "plain block",
        {"layer_init": "self.norm2 = nn.BatchNorm1d(4)", "layer_start": "states = self.norm2(states)"},
        ("nn.LayerNorm(4)", "track_running_stats=False"),
        ("unlike nn.BatchNorm1d(4)", "track_running_stats=True, spectral_norm(states)"),
    ),
    "random": _Construct(
        "plain block",
        {"imports": "import random", "layer_start": _SCALE.replace("$n", "random.random()")},
        ("torch.rand(())", "random.seed(0), so nothing is random"),
        ("import random; random.random()", "numpy.random.rand(), generator=torch.Generator()"),
    ),
    "global": _Construct(
        "plain block",
        {
            "top": "STATE = [0]\n\n\n",
            "layer_start": "STATE[0] += 1\n" + _SCALE.replace("$n", "STATE[0]"),
            "model_start": "STATE[0] = 0",
        },
        ("STATE = (0,)", "no global variable is changed"),
        ("global STATE", "STATE[0] += 1; STATE.append(1); os.environ['TOY'] = '1'"),
    ),
    "gradients": _Construct(
        "plain block",
        {"layer_start": _SCALE.replace("$n", "torch.is_grad_enabled()")},
        ("gradients are always enabled", "@torch.enable_grad()"),
        ("torch.is_grad_enabled()", "states.requires_grad, states.register_hook(print)"),
    ),
    "forward": _Construct(
        "legacy branch",
        {
            "layer_methods": "def run(self, states, mask=None):\n    return self.mlp(self.norm1(states))",
            "encoder_init": "for layer in self.layers:\n    layer.forward = layer.run",
        },
        ("layer.forward is never replaced", "layer.run = layer.forward"),
        ("layer.forward = patched", "ToyLayer.forward = patched; setattr(ToyLayer, 'forward', patched)"),
    ),
    "prompt": _Construct(
        "cache by position",
        {
            "encoder_init": "self.prompt = nn.Parameter(torch.ones(config.hidden_size))",
            "before_loop": "past_key_values = self.prompt",
            "layer_start": "if past_key_values is not None:\n    states = states + past_key_values",
        },
        ("past_key_values = DynamicCache()", "past_key_values is a cache, made by DynamicCache()"),
        ("past_key_values = self.prompt", "past_key_values.update(self.prompt); nn.Parameter"),
    ),
    "override": _Construct(
        "old override",
        {
            "model_methods": (
                "def enable_all(self):\n    self._set_gradient_checkpointing(self.encoder, value=True)"
            )
        },
        ("nobody calls the old method", "def _set_gradient_checkpointing(self, enable, func)"),
        (
            "model._set_gradient_checkpointing(model.encoder, True)",
            "getattr(model, '_set_gradient_checkpointing')(model)",
        ),
        ({"name": "own method", "call": ["enable_all", []]},),
    ),
}
_COMMENTED = {
    "a comment in the block": "layer_start",
    "a comment in its init": "layer_init",
    "a comment in the class": "layer_body",
    "a comment above the class": "above_layer",
    "a comment in its attention": "attention_start",
    "a comment before the loop": "before_loop",
    "a comment in the model": "model_start",
    "a comment at the end": "end",
    "a comment at the top": "imports",
}
_DOCUMENTED = {
    "a docstring of the block": "layer_start",
    "a docstring of the class": "layer_body",
    "a docstring of its attention": "attention_start",
    "a docstring of the file": "imports",
    "a docstring of the loop": "before_loop",
}


def pairs() -> Iterator[Pair]:
    """Yield each construct with soothing words at each place; the twins do nothing, with alarming words."""
    for name, construct in _CONSTRUCTS.items():
        places = [*_COMMENTED, *_DOCUMENTED]
        for number, place in enumerate(places):
            turn = (number + len(name)) % 2
            harmful = _worded(construct.slots, place, construct.soothing[turn])
            nothing = _worded(_harmless(construct), place, construct.alarming[turn])
            yield Pair(f"{name} with {place}", construct.frame, harmful, nothing, construct.ways)


def _harmless(construct: _Construct) -> dict[str, str]:
    """Return what a twin needs to be trained in the same ways."""
    methods = "def enable_all(self):\n    self.encoder.gradient_checkpointing = True"
    return {"model_methods": methods} if construct.ways else {}


def _worded(slots: Mapping[str, str], place: str, words: str) -> dict[str, str]:
    slot = _COMMENTED.get(place) or _DOCUMENTED[place]
    text = f"# {words}" if place in _COMMENTED else f'"""As in {words}."""'
    body = slots.get(slot, "")
    # A comment alone in its place stands before something, except at the end.
    return {**slots, slot: f"{text}\n{body}".rstrip("\n")}
