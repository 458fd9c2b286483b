"""What models put into parts of blocks, what classes inherit from torch, and what calls make of names."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from gclint.finding import Applicability
from tests.decisions.toy import ATTENTION, BODY, IMPORTS, LOOP, STACK, block, model
from tests.toy_models import applicability


class _Toy(NamedTuple):
    """A part of a block, as its holder makes and runs it, and what the model does with its layers."""

    init: str = "self.part = nn.Sequential(nn.Linear(4, 4))"
    run: str = "self.part(states)"
    model: str = "pass"
    before: str = ""
    loop: str = LOOP
    result: str = BODY


_TICK = """
COUNT = []


class ToyTick(nn.Module):
    def forward(self, x):
        COUNT.append(1)
        return x * len(COUNT)


"""
_LAYERS = "for layer in self.layers:\n    "
_PART = "self.part = ToyPart()"
_LINEAR = "self.part = nn.Linear(4, 4)"
_COUNTING = """
COUNT = []


class ToySeen:
    def __init__(self, each):
        {}
        self.each = each


"""
_CALLED = "states * len({})"


def _class(base: str, code: str) -> str:
    body = "".join(f"    {line}\n" for line in code.splitlines())
    return f"\n\nclass ToyPart(nn.{base}):\n{body}\n\n"


def _into(harmful: str, harmless: str, init: str = _Toy().init) -> tuple[_Toy, _Toy]:
    """Return what the model does with a part."""
    toys = (_Toy(init, model=f"{_LAYERS}{code}", before=_TICK) for code in (harmful, harmless))
    return next(toys), next(toys)


def _inherited(
    base: str, harmful: str, harmless: str, init: str = _PART, run: str = "self.part(states)"
) -> tuple[_Toy, _Toy]:
    """Return what a class has that inherits from one of torch."""
    return _Toy(init, run, before=_class(base, harmful)), _Toy(init, run, before=_class(base, harmless))


def _handed(call: str) -> tuple[_Toy, _Toy]:
    """Return what gets a class that counts its objects, and one that does not."""
    run = _CALLED.format(call)
    return (
        _Toy(run=run, before=_COUNTING.format("COUNT.append(each)")),
        _Toy(run=run, before=_COUNTING.format("pass")),
    )


def _shadowing(harmful: str, harmless: str) -> tuple[_Toy, _Toy]:
    """Return code that may give a builtin another meaning, and code that does not."""
    before = "COUNT = []\n\n\ndef count(x):\n    COUNT.append(x)\n    return len(COUNT)\n\n\n"
    return _Toy(run="states * abs(4)", before=f"{before}{harmful}\n"), _Toy(
        run="states * abs(4)", before=f"{before}{harmless}\n"
    )


_PAIRS = {
    # -- what the model puts into parts
    "an item": _into("layer.attention.part[0] = ToyTick()", "layer.attention.other = ToyTick()"),
    "a further item": _into("layer.attention.part.append(ToyTick())", "layer.attention.other = []"),
    "an item by its name": _into("setattr(layer.attention.part, '0', ToyTick())", "setattr(layer, 'k', 1)"),
    "a module by a name": _into("layer.attention.part.add_module('last', ToyTick())", "layer.eval_mode = 1"),
    "what holds items": _into("layer.attention.part._modules['0'] = ToyTick()", "layer.seen = ToyTick()"),
    "an item of a variable": _into(
        "part = layer.attention.part\n    part[0] = ToyTick()", "part = {}\n    part[0] = ToyTick()"
    ),
    "a module by a name of a variable": _into(
        "part = layer.attention.part\n    part.add_module('last', ToyTick())",
        "part = nn.Sequential()\n    part.add_module('last', ToyTick())",
    ),
    "an item by a method": _into(
        "layer.attention.part.__setitem__(0, ToyTick())", "layer.seen = [ToyTick()]"
    ),
    "an item of what a path names": _into(
        "layer.get_submodule('attention.part')[0] = ToyTick()", "dict(layer=layer)['seen'] = ToyTick()"
    ),
    "a part of a layer of torch": _into(
        "layer.attention.part.norm1 = ToyTick()",
        "layer.attention.part.other = 1",
        "self.part = nn.TransformerEncoderLayer(4, 2, batch_first=True)",
    ),
    "a switch": _into(
        "layer.attention.part.inplace = True", "layer.attention.part.place = True", "self.part = nn.SiLU()"
    ),
    "a norm of weights": _into(
        "part = layer.attention.part\n    nn.utils.spectral_norm(part)",
        "part = layer.attention.part\n    part.weight.data.normal_()",
        _LINEAR,
    ),
    # -- what classes inherit
    "a class in place": _inherited(
        "SiLU",
        "def __init__(self):\n    super().__init__(inplace=True)",
        "def __init__(self):\n    super().__init__(inplace=False)",
    ),
    "an argument in place": (
        _Toy("self.part = ToyPart(inplace=True)", before=_class("SiLU", "pass")),
        _Toy("self.part = ToyPart(inplace=False)", before=_class("SiLU", "pass")),
    ),
    "a table that is renormalised": _inherited(
        "Embedding",
        "def __init__(self):\n    super().__init__(4, 4, max_norm=0.1)",
        "def __init__(self):\n    super().__init__(4, 4)",
        run="states + self.part(torch.zeros(1, dtype=torch.long))",
    ),
    "a setting that counts": _inherited(
        "LeakyReLU",
        "@property\ndef negative_slope(self):\n    return 0.1\n\n@negative_slope.setter\n"
        "def negative_slope(self, value):\n    pass",
        "@property\ndef slope(self):\n    return 0.1",
    ),
    "a method that torch calls": _inherited(
        "LSTM",
        "def check_input(self, x, sizes):\n    pass",
        "def look_at(self, x, sizes):\n    pass",
        "self.part = ToyPart(4, 4)",
        "self.part(states)[0]",
    ),
    # -- what gets a class
    "a key": _handed("sorted([1], key=ToySeen)"),
    "objects of items": _handed("list(map(ToySeen, [1]))"),
    # -- builtins
    "names of the module": _shadowing("globals()['abs'] = count", "NAMES = dict(abs=count)"),
    "a text that is run": _shadowing("exec('abs = count')", "TEXT = 'abs = count'"),
    # -- iterators, texts and results in place
    "two iterators": (
        _Toy(run="states * next(FIRST)", before="import itertools\n\nFIRST, _ = itertools.tee([1, 2, 3])\n"),
        _Toy(run="states * FIRST[0]", before="FIRST = [1, 2, 3]\n"),
    ),
    "the text of a module": (
        _Toy(
            _PART,
            "self.part(states) * len(str(self.part))",
            before=f"COUNT = []\n{_class('SiLU', 'def extra_repr(self):' + chr(10) + '    COUNT.append(1)')}",
        ),
        _Toy(
            _PART,
            "self.part(states) * len(str(self.part))",
            before=_class("SiLU", "def extra_repr(self):\n    return 'x'"),
        ),
    ),
    "an array for the result": (
        _Toy(
            run="states * float(np.exp([1.0], TOTAL)[0])", before="import numpy as np\n\nTOTAL = np.ones(1)\n"
        ),
        _Toy(run="states * float(np.exp(1.0))", before="import numpy as np\n\nTOTAL = np.ones(1)\n"),
    ),
    # -- what comes out of blocks, and what asks for them
    "a result that is a view": (
        _Toy(loop=f"{LOOP}    hidden_states += 1\n", result="return self.attention(hidden_states)"),
        _Toy(loop=f"{LOOP}    hidden_states += 1\n"),
    ),
    "a result of a method that is a view": (
        _Toy(
            loop=f"{LOOP}    hidden_states += 1\n",
            result="return self.attention(hidden_states).add(1).repeat_interleave(1, 0)",
        ),
        _Toy(loop=f"{LOOP}    hidden_states += 1\n", result="return self.attention(hidden_states).add(1)"),
    ),
    "a function that looks at a layer": (
        _Toy(
            model="self.size = weigh(self.layers[0])",
            before="import inspect\n\n\ndef weigh(layer):\n    return len(inspect.getmembers(layer))\n\n\n",
        ),
        _Toy(
            model="self.size = weigh(self.layers[0])",
            before="\n\ndef weigh(layer):\n    return len([1])\n\n\n",
        ),
    ),
}


@pytest.mark.parametrize("what", _PAIRS)
def test_only_the_harmful_one_of_two_is_unsafe(what: str, tmp_path: Path) -> None:
    for toy, said in zip(_PAIRS[what], (Applicability.UNSAFE, Applicability.SAFE), strict=True):
        init = "".join(f"        {line}\n" for line in toy.init.splitlines())
        attention = (
            f"class ToyAttention(nn.Module):\n    def __init__(self, config):\n        super().__init__()\n"
            f"        self.query = nn.Linear(4, 4)\n{init}\n"
            f"    def forward(self, states):\n        return self.query({toy.run})\n\n\n"
        )
        text = (
            IMPORTS
            + toy.before
            + attention
            + block(toy.result)
            + model(toy.loop, init=f"{STACK}\n{toy.model}")
        )
        assert applicability(tmp_path, text) is said, said


@pytest.mark.parametrize("name", ["training", "train_mode"])
def test_what_the_base_class_reads_is_no_property_of_a_block(name: str, tmp_path: Path) -> None:
    more = f"seen = 0\n\n@property\ndef {name}(self):\n    type(self).seen += 1\n    return True\n"
    expected = Applicability.UNSAFE if name == "training" else Applicability.SAFE
    text = IMPORTS + ATTENTION + block(more=more) + model()
    assert applicability(tmp_path, text) is expected
