"""Tensors that require grad in containers that calls make, in named tuples and in nested ones read later."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tests.contract.kinds.models import Pair, pair


@dataclass(frozen=True)
class _Container:
    """How a value ``$v`` is put into a container, and read from one that is called ``held``."""

    made: str
    read: str
    top: str = ""
    imports: str = ""
    filled: str = ""
    """Statements before it."""


_TUPLE = 'Held = namedtuple("Held", ["bias", "other"])'
_NAMED = "from collections import namedtuple"
_CONTAINERS = {
    "tuple": _Container("($v,)", "held[0]"),
    "second of a tuple": _Container("(None, $v)", "held[1]"),
    "nested tuple": _Container("(0, ($v, 1))", "held[1][0]"),
    "deep tuple": _Container("((($v,),),)", "held[0][0][0]"),
    "tuple by a call": _Container("tuple([$v])", "held[0]"),
    "tuple of a generator": _Container("tuple(each for each in [$v])", "held[0]"),
    "tuple by addition": _Container("(0,) + ($v,)", "held[1]"),
    "tuple by repetition": _Container("($v,) * 2", "held[1]"),
    "tuple by a function": _Container("hold($v)", "held[0]", "def hold(*given):\n    return given"),
    "tuple by a lambda": _Container("(lambda *given: given)($v)", "held[0]"),
    "grown tuple": _Container("grown", "held[0]", filled="grown = ()\ngrown += ($v,)"),
    "starred tuple": _Container("(*[$v], 0)", "held[0]"),
    "unpacked tuple": _Container("($v, 0)", "next(iter(held))"),
    "list": _Container("[$v]", "held[0]"),
    "list by a call": _Container("list(($v,))", "held[-1]"),
    "list by a map": _Container("list(map(lambda each: each, [$v]))", "held[0]"),
    "list by a comprehension": _Container("[each for each in ($v,)]", "held[0]"),
    "filled list": _Container("grown", "held[0]", filled="grown = []\ngrown.append($v)"),
    "sliced list": _Container("[0, $v][1:]", "held[0]"),
    "dict": _Container('{"bias": $v}', 'held["bias"]'),
    "dict by a call": _Container("dict(bias=$v)", 'held.get("bias")'),
    "dict of pairs": _Container('dict([("bias", $v)])', 'held["bias"]'),
    "dict by a zip": _Container('dict(zip(["bias"], [$v]))', 'held["bias"]'),
    "dict from keys": _Container('dict.fromkeys(["bias"], $v)', 'held["bias"]'),
    "dict by a union": _Container('{"other": 0} | {"bias": $v}', 'held["bias"]'),
    "dict by a comprehension": _Container('{name: $v for name in ["bias"]}', 'held["bias"]'),
    "filled dict": _Container("grown", 'held["bias"]', filled='grown = {}\ngrown["bias"] = $v'),
    "ordered dict": _Container(
        "OrderedDict(bias=$v)", 'held["bias"]', imports="from collections import OrderedDict"
    ),
    "deque": _Container("deque([$v])", "held[0]", imports="from collections import deque"),
    "named tuple": _Container("Held($v, 0)", "held.bias", _TUPLE, _NAMED),
    "named tuple by keyword": _Container("Held(other=0, bias=$v)", "held[0]", _TUPLE, _NAMED),
    "named tuple by _make": _Container("Held._make([$v, 0])", "held.bias", _TUPLE, _NAMED),
    "named tuple by _replace": _Container("Held(0, 0)._replace(bias=$v)", "held.bias", _TUPLE, _NAMED),
    "typed named tuple": _Container(
        "Held($v)",
        "held.bias",
        "class Held(NamedTuple):\n    bias: torch.Tensor",
        "from typing import NamedTuple",
    ),
    "data class": _Container(
        "Held($v)",
        "held.bias",
        "@dataclass\nclass Held:\n    bias: torch.Tensor",
        "from dataclasses import dataclass",
    ),
    "object": _Container(
        "Held($v)", "held.bias", "class Held:\n    def __init__(self, bias):\n        self.bias = bias"
    ),
    "namespace": _Container(
        "SimpleNamespace(bias=$v)", "held.bias", imports="from types import SimpleNamespace"
    ),
    "output of the library": _Container(
        "BaseModelOutput(last_hidden_state=$v)",
        "held.last_hidden_state",
        imports="from transformers.modeling_outputs import BaseModelOutput",
    ),
    "copied tuple": _Container("copy.copy([$v])", "held[0]", imports="import copy"),
    "reduced tuple": _Container(
        "reduce(lambda one, other: (*one, other), [$v], ())",
        "held[0]",
        imports="from functools import reduce",
    ),
}
_INIT = """\
self.bias = nn.Linear(config.hidden_size, config.hidden_size)
self.register_buffer("table", torch.linspace(0, 1, config.hidden_size))"""
_GIVEN = {
    "an output": ("self.bias(states)", "self.bias(states).detach()"),
    "early states": ("states * 2", "self.table * 2"),
    "a computed weight": ("self.bias.weight[0].tanh()", "self.table.tanh()"),
}
_RETURNED = {
    "states": ("states * 0.5", "states.detach() * 0.5"),
    "a sum": ("states.sum(-1, keepdim=True)", "mask.sum()"),
}
"""What is in the container, and what is there instead that requires no grad."""


def pairs() -> Iterator[Pair]:
    """Yield each container as an argument of the blocks, and as something that they return."""
    for number, (name, container) in enumerate(_CONTAINERS.items()):
        for turn in range(2):
            what = list(_GIVEN)[(number + turn) % len(_GIVEN)]
            slots = (_given(container, value) for value in _GIVEN[what])
            yield pair(f"{what} given in a {name}", "plain block", slots)
        what = list(_RETURNED)[number % len(_RETURNED)]
        slots = (_returned(container, value) for value in _RETURNED[what])
        yield pair(f"{what} returned in a {name}", "plain block", slots)


def _given(container: _Container, value: str) -> dict[str, str]:
    lines = [container.filled, f"bias = {container.made}"]
    return {
        **_common(container),
        "before_loop": "\n".join(each for each in lines if each).replace("$v", value),
        "parameters": ", held=None",
        "arguments": "states, mask, bias",
        "layer_start": f"states = states + {container.read}",
    }


def _returned(container: _Container, value: str) -> dict[str, str]:
    return {
        **_common(container),
        "layer_end": container.filled.replace("$v", value),
        "returned": f"states, {container.made}".replace("$v", value),
        "before_loop": "kept = []",
        "loop": f"states, held = layer(<<arguments>>)\nkept.append({container.read})",
        "after_loop": "states = states + sum(kept)",
    }


def _common(container: _Container) -> dict[str, str]:
    top = f"{container.top}\n\n\n" * bool(container.top)
    return {"encoder_init": _INIT, "imports": container.imports, "top": top}
