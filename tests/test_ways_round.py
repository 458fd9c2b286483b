"""Ways round the names of what blocks are given, or hold, each with a harmless one like it."""

from __future__ import annotations

from pathlib import Path

import pytest

from gclint.finding import Applicability
from tests.decisions.toy import LOOP, STACK, block, model, toy
from tests.toy_models import applicability

_BEFORE = """
import collections
import contextlib
import functools
import itertools
import types

from transformers.modeling_outputs import BaseModelOutput


class Failure(Exception):
    pass


class Quiet:
    def __enter__(self):
        torch.set_grad_enabled(False)

    def __exit__(self, *args):
        torch.set_grad_enabled(True)


"""
_ATTENDED = "return hidden_states + self.attention(hidden_states)"
_LOOP = """
for layer in self.layers:
    hidden_states = layer(hidden_states, mask)
"""
_CHANGED = {
    "the key of max": ("max([mask], key=torch.Tensor.zero_)", "max([mask], key=torch.Tensor.sum)"),
    "the key of min": (
        "min(mask, hidden_states, key=lambda x: x.zero_())",
        "min(mask.shape, key=lambda x: -x)",
    ),
    "the key of sorted": (
        "sorted([mask], key=lambda x: x.zero_().sum())",
        "sorted([mask], key=lambda x: x.sum())",
    ),
    "the key of sort": ("[mask].sort(key=torch.Tensor.zero_)", "[mask].sort(key=torch.Tensor.sum)"),
    "what max gives": ("max([mask, mask]).zero_()", "max([1, 2])"),
    "starmap": (
        "list(itertools.starmap(torch.Tensor.add_, [(mask, 1)]))",
        "list(itertools.starmap(torch.Tensor.add, [(mask, 1)]))",
    ),
    "what starmap gives": (
        "for each in itertools.starmap(lambda x: x, [(mask,)]):\n    each.zero_()",
        "for each in itertools.starmap(lambda x: x, [(mask,)]):\n    each.sum()",
    ),
    "accumulate": (
        "list(itertools.accumulate([mask, mask], torch.Tensor.add_))",
        "list(itertools.accumulate([mask, mask], torch.Tensor.add))",
    ),
    "groupby": (
        "list(itertools.groupby([mask], torch.Tensor.zero_))",
        "list(itertools.groupby([mask], torch.Tensor.sum))",
    ),
    "a named tuple": (
        "Pair = collections.namedtuple('Pair', 'a b')\nPair(mask, 1).a.zero_()",
        "Pair = collections.namedtuple('Pair', 'a b')\nPair(mask + 1, 1).a.zero_()",
    ),
    "a namespace": (
        "types.SimpleNamespace(x=mask).x.zero_()",
        "types.SimpleNamespace(x=mask, y=mask + 1).y.zero_()",
    ),
    "an error": (
        "try:\n    raise ValueError(mask)\nexcept ValueError as error:\n    error.args[0].zero_()",
        "try:\n    raise ValueError(mask.shape)\nexcept ValueError as error:\n    len(error.args)",
    ),
    "an error that is not raised": ("ValueError(mask).args[0].zero_()", "ValueError(mask.shape).args"),
    "fields by position": ("BaseModelOutput(mask)[0].zero_()", "BaseModelOutput(mask + 1)[0].zero_()"),
    "a field by position": ("BaseModelOutput(mask).last_hidden_state.zero_()", "BaseModelOutput(mask).loss"),
    "fields of a dict": (
        "types.SimpleNamespace(**{'x': mask}).x.zero_()",
        "types.SimpleNamespace(**{'x': mask + 1}).x.zero_()",
    ),
    "a field that is set": (
        "x = types.SimpleNamespace()\nx.y = mask\nx.y.zero_()",
        "x = types.SimpleNamespace()\nx.y = mask + 1\nx.y.zero_()",
    ),
    "a dict of its own": (
        "class Own(dict):\n    def __init__(self, x):\n        super().__init__(x=x)\nOwn(mask)['x'].zero_()",
        "class Own(dict):\n    def __init__(self, x):\n        super().__init__(x=x)\nOwn(1)['x']",
    ),
    "an error of its own": (
        "try:\n    raise Failure(mask)\nexcept Failure as error:\n    error.args[0].zero_()",
        "try:\n    raise Failure('no mask')\nexcept Failure as error:\n    len(error.args)",
    ),
    "what a generator gets": (
        "def taking():\n    given = yield\n    given.zero_()\n    yield\n"
        "work = taking()\nnext(work)\nwork.send(mask)",
        "def giving():\n    yield mask + 1\nfor each in giving():\n    each.zero_()",
    ),
    "the body of a class": ("class Inner:\n    x = mask.zero_()", "class Inner:\n    x = mask.sum()"),
    "a list of its own": (
        "class Own(list):\n    pass\nOwn([mask])[0].zero_()",
        "class Own(list):\n    pass\nOwn([mask + 1])[0].zero_()",
    ),
    "the making of an object": (
        "class Own:\n    def __new__(cls, x):\n        return x.zero_()\nOwn(mask)",
        "class Own:\n    def __new__(cls, x):\n        return x.sum()\nOwn(mask)",
    ),
    "the making of a class": (
        "class Own:\n    def __init_subclass__(cls, x):\n        x.zero_()\n"
        "class More(Own, x=mask):\n    pass",
        "class Own:\n    def __init_subclass__(cls, x):\n        x.sum()\nclass More(Own, x=mask):\n    pass",
    ),
    "a descriptor": (
        "class Get:\n    def __get__(self, one, kind):\n        return mask\n"
        "class Own:\n    x = Get()\nOwn().x.zero_()",
        "class Own:\n    x = mask + 1\nOwn().x.zero_()",
    ),
    "the type of a tensor": ("type(mask).zero_(mask)", "type(mask).sum(mask)"),
    "an array": ("mask.numpy().fill(0)", "mask.shape"),
    "a factory of items": (
        "collections.defaultdict(lambda: mask)['a'].zero_()",
        "collections.defaultdict(int)['a']",
    ),
    "a chain": (
        "next(itertools.chain.from_iterable([[mask]])).zero_()",
        "next(itertools.chain.from_iterable([[mask + 1]])).zero_()",
    ),
    "an iterator's own method": (
        "(x for x in [mask]).__next__().zero_()",
        "(x + 1 for x in [mask]).__next__().zero_()",
    ),
    "a part of a list": ("x = []\nx[:0] = [mask]\nx[0].zero_()", "x = []\nx[:0] = [mask + 1]\nx[0].zero_()"),
    "a context": (
        "class Own:\n    def __enter__(self):\n        return mask\n"
        "    def __exit__(self, *args):\n        pass\nwith Own() as x:\n    x.zero_()",
        "class Own:\n    def __enter__(self):\n        return mask + 1\n"
        "    def __exit__(self, *args):\n        pass\nwith Own() as x:\n    x.zero_()",
    ),
    "the end of a context": (
        "class Own:\n    def __enter__(self):\n        pass\n"
        "    def __exit__(self, *args):\n        mask.zero_()\nwith Own():\n    pass",
        "class Own:\n    def __enter__(self):\n        pass\n"
        "    def __exit__(self, *args):\n        mask.sum()\nwith Own():\n    pass",
    ),
    "the end of an object": (
        "class Own:\n    def __del__(self):\n        mask.zero_()\nOwn()",
        "class Own:\n    def __del__(self):\n        mask.sum()\nOwn()",
    ),
    "a class that is put together": ("type('Own', (), {'x': mask}).x.zero_()", "type('Own', (), {'x': 1}).x"),
    "all local names": ("locals()['mask'].zero_()", "dict(mask=mask + 1)['mask'].zero_()"),
    "a method by an option": (
        "getattr(self.layers[0], self.config.name, 3)",
        "getattr(self.config, self.config.name, 3)",
    ),
}
"""What is done after the blocks have run."""
_BEFORE_BLOCKS = {
    "a switch": ("with torch.set_grad_enabled(mask.shape[1] < 9):", "with torch.set_grad_enabled(True):"),
    "another name of it": (
        "with torch.autograd.grad_mode.set_grad_enabled(mask.shape[1] < 9):",
        "with torch.autocast('cpu'):",
    ),
    "a table": (
        "with [contextlib.nullcontext, torch.no_grad][mask.shape[1] // 9]():",
        "with contextlib.nullcontext():",
    ),
    "a context of its own": ("with Quiet():", "with torch.enable_grad():"),
}
"""What is computed before the blocks may require no grad."""
_MADE = {
    "a table of parts": ("self._modules['act'] = Noisy()", "self._modules['other'] = Noisy()"),
    "stacks that are added": (
        "self.act = nn.Sequential(nn.ReLU()) + nn.Sequential(Noisy())",
        "self.act = nn.Sequential(nn.ReLU()) + nn.Sequential(nn.Tanh())",
    ),
    "stacks several times": (
        "self.act = nn.Sequential(Noisy()) * 2",
        "self.act = nn.Sequential(nn.ReLU()) * 2",
    ),
}
_NOISY = """
class Noisy(nn.Module):
    def forward(self, x):
        return x * random.random()


"""


@pytest.mark.parametrize("name", _CHANGED)
def test_what_blocks_were_given(name: str, tmp_path: Path) -> None:
    wrong, right = (
        applicability(tmp_path, toy(_BEFORE, block(_ATTENDED), model(f"{_LOOP}{statements}\n", init=STACK)))
        for statements in _CHANGED[name]
    )
    assert (wrong, right) == (Applicability.UNSAFE, Applicability.SAFE)


@pytest.mark.parametrize("name", _BEFORE_BLOCKS)
def test_what_blocks_are_given(name: str, tmp_path: Path) -> None:
    made = f"{STACK}\nself.project = nn.Linear(8, 8)"
    wrong, right = (
        applicability(
            tmp_path,
            toy(
                _BEFORE,
                block(_ATTENDED),
                model(f"\n{context}\n    hidden_states = self.project(hidden_states){LOOP}", init=made),
            ),
        )
        for context in _BEFORE_BLOCKS[name]
    )
    assert (wrong, right) == (Applicability.UNSAFE, Applicability.SAFE)


def test_a_decorator_that_records_nothing(tmp_path: Path) -> None:
    found = [
        applicability(
            tmp_path,
            toy(
                _BEFORE,
                block(_ATTENDED),
                model(
                    f"\nhidden_states = self.first(hidden_states){LOOP}",
                    init=f"{STACK}\nself.project = nn.Linear(8, 8)",
                    more=f"@torch.set_grad_enabled({records})\n"
                    "def first(self, x):\n    return self.project(x)",
                ),
            ),
        )
        for records in (False, True)
    ]
    assert found == [Applicability.UNSAFE, Applicability.SAFE]


@pytest.mark.parametrize(
    ("asks", "expected"),
    [("torch.autograd.grad(model(x).sum(), x)", Applicability.UNSAFE), ("model(x)", Applicability.SAFE)],
)
def test_a_function_that_asks_for_gradients(asks: str, expected: Applicability, tmp_path: Path) -> None:
    function = f"\n\ndef penalty(model, x):\n    return {asks}\n"
    text = toy(_BEFORE, block(_ATTENDED), model(LOOP, init=STACK)) + function
    assert applicability(tmp_path, text) is expected


@pytest.mark.parametrize("name", _MADE)
def test_what_blocks_are_made_of(name: str, tmp_path: Path) -> None:
    wrong, right = (
        applicability(
            tmp_path,
            toy(
                f"import random\n{_NOISY}",
                block(
                    "return hidden_states + self.act(self.attention(hidden_states))",
                    init=f"self.act = nn.ReLU()\n{made}",
                ),
                model(LOOP, init=STACK),
            ),
        )
        for made in _MADE[name]
    )
    assert (wrong, right) == (Applicability.UNSAFE, Applicability.SAFE)
