"""Learned or foreign values under the name of a cache, which checkpointing drops."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping

from tests.contract.kinds.models import Pair, pair

_FRAMES = ("cache by position", "plain block with cache", "cache that no release disables")
_RECALL = '''\
def recall(states, past, index):
    """Adds what is remembered."""
    if past is None:
        return states
    if isinstance(past, DynamicCache):
        known = past.update(states[:, None], states[:, None], index)[0][:, 0, : -states.shape[1]]
        return states + known.sum(1, keepdim=True)
    if isinstance(past, (tuple, list)):
        past = past[0]
    return states + past


'''
_VALUES = {
    "parameter": "self.prompt",
    "output of a module": "self.project(states.mean(1, keepdim=True))",
    "weight": "self.project.weight[0]",
    "part of a weight": "self.prompts.weight[1:2]",
    "listed parameter": "[self.prompt]",
    "paired parameter": "(self.prompt, None)",
    "early states": "states",
    "buffer": "self.table",
    "computed": "self.prompt.tanh() * 2",
}
"""What is no cache."""
_CACHES = {
    "argument": "past_key_values",
    "new cache": "(DynamicCache() if use_cache else None)",
    "argument or a new one": "past_key_values or (DynamicCache() if use_cache else None)",
}
_INIT = """\
self.prompt = nn.Parameter(torch.linspace(-1, 1, config.hidden_size))
self.project = nn.Linear(config.hidden_size, config.hidden_size)
self.prompts = nn.Embedding(3, config.hidden_size)
self.register_buffer("table", torch.linspace(0, 2, config.hidden_size))"""
_FLOWS: Mapping[str, Mapping[str, str]] = {
    "directly": {"past": "$v"},
    "by a name": {"before_loop": "past = $v", "past": "past"},
    "by two names": {"before_loop": "prompt = $v\npast = prompt", "past": "past"},
    "under its own name": {"before_loop": "past_key_values = $v", "past": "past_key_values"},
    "by a conditional expression": {"before_loop": "past = $v if self.training else None", "past": "past"},
    "by a branch": {"before_loop": "past = None\nif self.training:\n    past = $v", "past": "past"},
    "by an or": {"before_loop": "past = None or ($v)", "past": "past"},
    "by a tuple": {"before_loop": "past, _ = $v, 0", "past": "past"},
    "by a nested tuple": {"before_loop": "held = (0, ($v, 1))\npast = held[1][0]", "past": "past"},
    "by a list": {"before_loop": "held = [$v]", "past": "held[0]"},
    "by a filled list": {"before_loop": "held = []\nheld.append($v)", "past": "held[0]"},
    "by a dict": {"before_loop": 'held = {"past": $v}', "past": 'held["past"]'},
    "by the get of a dict": {"before_loop": "held = dict(past=$v)", "past": 'held.get("past")'},
    "by a method": {
        "encoder_methods": "def remember(self, states, past_key_values, use_cache):\n    return $v",
        "past": "self.remember(states, past_key_values, use_cache)",
    },
    "by a method's pair": {
        "encoder_methods": "def remember(self, states, past_key_values, use_cache):\n    return states, $v",
        "before_loop": "states, past = self.remember(states, past_key_values, use_cache)",
        "past": "past",
    },
    "by a property": {
        "encoder_methods": (
            "@property\ndef memory(self):\n    states, past_key_values, use_cache = self.given\n    return $v"
        ),
        "before_loop": "self.given = states, past_key_values, use_cache",
        "past": "self.memory",
    },
    "by a function": {"top": "def same(each):\n    return each\n\n\n", "past": "same($v)"},
    "by an inner function": {"before_loop": "def remember():\n    return $v\n", "past": "remember()"},
    "by a lambda": {"before_loop": "remember = lambda: $v", "past": "remember()"},
    "by an attribute": {"before_loop": "self._memory = [$v]", "past": "self._memory[0]"},
    "by a look-up": {"before_loop": "self.config.memory = $v", "past": 'getattr(self.config, "memory")'},
    "by a walrus": {"before_loop": "[past := $v]", "past": "past"},
    "by a context": {
        "imports": "from contextlib import nullcontext",
        "before_loop": "with nullcontext($v) as past:\n    pass",
        "past": "past",
    },
    "by a match": {"before_loop": "match $v:\n    case past:\n        pass", "past": "past"},
    "by a loop": {"before_loop": "for past in [$v]:\n    pass", "past": "past"},
    "by a zip": {
        "before_loop": "held = [$v] * len(self.layers)",
        "target": "layer, past",
        "stack": "zip(self.layers, held)",
        "past": "past",
    },
    "by a comprehension": {"before_loop": "held = [each for each in [$v]]", "past": "held[0]"},
    "by a namespace": {
        "imports": "from types import SimpleNamespace",
        "before_loop": "held = SimpleNamespace(past=$v)",
        "past": "held.past",
    },
}
"""How the value reaches the call."""


_CALLS: Mapping[str, str] = {
    "by keyword": "states = self.encoder(states, mask, past_key_values=$v)",
    "by position": "states = self.encoder(states, mask, $v)",
    "by options": 'options = {"past_key_values": $v}\nstates = self.encoder(states, mask, **options)',
    "by later options": (
        'options = dict(use_cache=use_cache)\noptions["past_key_values"] = $v\n'
        "states = self.encoder(states, mask, **options)"
    ),
    "by a list": "states = self.encoder(*[states, mask, $v])",
    "by a partial": ("run = partial(self.encoder, past_key_values=$v)\nstates = run(states, mask)"),
    "by an alias": "encoder = self.encoder\nstates = encoder(states, mask, $v)",
    "by a look-up": 'states = getattr(self, "encoder")(states, mask, $v)',
    "by its forward": "states = self.encoder.forward(states, mask, $v)",
    "by its call": "states = self.encoder.__call__(states, mask, past_key_values=$v)",
    "by a lambda": "run = lambda past: self.encoder(states, mask, past)\nstates = run($v)",
    "by a loop": "for past in [$v]:\n    states = self.encoder(states, mask, past)",
    "by children": "for _, child in self.named_children():\n    if child is self.encoder:\n"
    "        states = child(states, mask, $v)",
    "by its modules": 'states = self._modules["encoder"](states, mask, $v)',
    "by a function": "states = hand_on(self.encoder, states, mask, $v)",
    "by its name": 'states = self.get_submodule("encoder")(states, mask, $v)',
}
"""How the model hands the value to what has the loop."""
_FILLS = {
    "by update": "past.update($v, $v, 0)",
    "by an alias": "other = past\nother.update($v, $v, 0)",
    "by a bound method": "fill = past.update\nfill($v, $v, 0)",
    "by a look-up": 'getattr(past, "update")($v, $v, 0)',
    "by the class": "DynamicCache.update(past, $v, $v, 0)",
    "by a function": "fill(past, $v)",
    "by a lambda": "(lambda each: each.update($v, $v, 0))(past)",
    "by an inner function": "def put():\n    past.update($v, $v, 0)\n\nput()",
    "by a list": "for each in [past]:\n    each.update($v, $v, 0)",
    "by a condition": "chosen = past if self.training else DynamicCache()\nchosen.update($v, $v, 0)",
    "by a caller": 'methodcaller("update", $v, $v, 0)(past)',
    "by a map": "list(map(past.update, [$v], [$v], [0]))",
    "in a comprehension": "[each.update($v, $v, 0) for each in (past,)]",
    "by its vars": "past.update(states[:, None, :0], states[:, None, :0], 0)\n"
    'vars(past.layers[0])["keys"] = $v\nvars(past.layers[0])["values"] = $v',
    "by its layers": "past.update(states[:, None, :0], states[:, None, :0], 0)\n"
    "past.layers[0].keys = past.layers[0].values = $v",
    "by setattr": "past.update(states[:, None, :0], states[:, None, :0], 0)\n"
    'setattr(past.layers[0], "keys", $v)\nsetattr(past.layers[0], "values", $v)',
}
"""How something is put into a new cache."""
_FUNCTIONS = """\
def hand_on(module, states, mask, past):
    return module(states, mask, past)


def fill(past, value):
    past.update(value, value, 0)


"""


def pairs() -> Iterator[Pair]:
    """Yield each way in each frame with one of the values, and with a cache in its place."""
    values, caches = list(_VALUES.items()), list(_CACHES.values())
    for turn, frame in enumerate(_FRAMES):
        for number, (flow, slots) in enumerate(_FLOWS.items()):
            name, value = values[(number + 3 * turn) % len(values)]
            cache = caches[(number + turn) % len(caches)]
            yield Pair(
                f"{name} {flow}, {frame}", frame, _slots(slots, value, frame), _slots(slots, cache, frame)
            )
        for number, (how, call) in enumerate(_CALLS.items()):
            name, value = values[(number + 2 * turn) % len(values)]
            cache = caches[(number + turn) % len(caches)]
            given, harmless = ({"run": call.replace("$v", each)} for each in (value, cache))
            yield pair(
                f"{name} handed on {how}, {frame}",
                frame,
                (_slots(each, "", frame) for each in (given, harmless)),
            )
        for how, call in _FILLS.items():
            learned, nothing = (
                _filled(call, each) for each in ("self.project(states)[:, None]", "states[:, None, :0]")
            )
            yield pair(
                f"filled {how}, {frame}", frame, (_slots(each, "", frame) for each in (learned, nothing))
            )


def _filled(call: str, value: str) -> dict[str, str]:
    lines = textwrap.indent(f"past = DynamicCache()\n{call.replace('$v', value)}", "    ")
    return {"before_loop": f"past = None\nif use_cache:\n{lines}", "past": "past"}


def _slots(flow: Mapping[str, str], value: str, frame: str) -> dict[str, str]:
    parameter = "past_key_value" if frame == _FRAMES[2] else "past_key_values"
    filled = {name: text.replace("$v", value) for name, text in flow.items()}
    body = "\n".join(filled.values())
    imports = ["from functools import partial"] * ("partial(" in body)
    imports += ["from operator import methodcaller"] * ("methodcaller(" in body)
    return {
        "encoder_init": _INIT,
        "model_init": _INIT if "run" in flow else "",
        "layer_start": f"states = recall(states, {parameter}, self.layer_idx)",
        "imports": "\n".join(imports),
        **filled,
        "top": filled.get("top", "") + _RECALL + _FUNCTIONS,
    }
