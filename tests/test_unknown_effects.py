"""Blocks of which it is not known what a second run of their ``forward`` does, as an attacker would write them."""  # noqa: E501

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from gclint.code.project import Project
from gclint.finding import Applicability, Fix
from gclint.rule import all_rules
from gclint.run.check import check
from gclint.settings import Settings
from tests.decisions.toy import block, model, toy

_RULES = [rule for rule in all_rules() if "GC001" in rule.codes]
_MIXED = "return hidden_states + self.attention(hidden_states)"


@dataclass(frozen=True)
class _Case:
    """A block: what stands before it, what its ``__init__`` and ``forward`` do, and its other methods."""

    body: str
    init: str = ""
    more: str = ""
    before: str = ""
    of_model: str = ""
    """More of the model's ``__init__``."""

    @property
    def text(self) -> str:
        stack = "self.layers = nn.ModuleList([ToyLayer(config) for _ in range(config.depth)])"
        layer = block(f"{self.body}\n{_MIXED}", init=self.init, more=self.more)
        return toy(self.before, layer, model(init=f"{stack}\n{self.of_model}"), imports="import functools\n")


_STATEFUL = (
    "class ToyCount(nn.Module):\n    def forward(self, x):\n        SEEN.append(1)\n        return x\n\n"
)
_UNKNOWN = {
    "a module that the model hands over": _Case("self.norm(mask)", init="self.norm = index"),
    "a module that the model sets later": _Case(
        "if self.adapter is not None:\n    hidden_states = self.adapter(hidden_states)",
        init="self.adapter = None",
        of_model="for layer in self.layers:\n    layer.adapter = nn.BatchNorm1d(4)",
    ),
    "a method that is held": _Case(
        "mask = self.run(mask)",
        "self.n = 0\nself.run = self._eager",
        "def _eager(self, x):\n    self.n += 1\n    return x * self.n\n",
    ),
    "a partial of what is held": _Case(
        "mask = self.run(mask)",
        "self.held = {'n': 0}\nself.run = functools.partial(tick, self.held)",
        before="def tick(held, x):\n    held['n'] += 1\n    return x\n\n",
    ),
    "a method of a container that is held": _Case(
        "mask = self.take()", "self.items = [1, 2]\nself.take = self.items.pop"
    ),
    "an attribute that is made when it is missing": _Case(
        "n = getattr(self, 'n', 0)\nself.n = n + 1\nif n % 2:\n    return hidden_states"
    ),
    "numbers that are drawn once": _Case(
        "if not hasattr(self, 'scale'):\n    self.scale = torch.rand(1)\nhidden_states = hidden_states * self.scale"  # noqa: E501
    ),
    "a property that is computed once": _Case(
        "hidden_states = hidden_states * self.scale",
        more="@functools.cached_property\ndef scale(self):\n    return torch.rand(1)\n",
    ),
    "a buffer that is registered again": _Case(
        "self.register_buffer('ema', self.ema * 0.9)\nhidden_states = hidden_states - self.ema",
        "self.register_buffer('ema', torch.zeros(1))",
    ),
    "an attribute that the object's base sets": _Case(
        "object.__setattr__(self, 'n', self.n + 1)\nhidden_states = hidden_states * self.n", "self.n = 0"
    ),
    "a queue": _Case("hidden_states = hidden_states * self.scales.get()", "self.scales = make_queue()"),
    "a codebook": _Case("hidden_states = self.book.encode(hidden_states)", "self.book = make_book()"),
    "a hook of a part": _Case(
        "mask = 1",
        "self.attention.register_forward_hook(self.look)",
        "def look(self, *args):\n    self.seen = args\n",
    ),
    "a hook of its own": _Case("mask = 1", "self.register_forward_pre_hook(print)"),
    "a table that the file fills": _Case(
        "hidden_states = ACT2FN['noisy'](hidden_states)",
        before="from transformers.activations import ACT2FN\nACT2FN['noisy'] = make_noise()\n",
    ),
    "a method that torch's own calls": _Case(
        "hidden_states = self.conv(hidden_states)",
        "self.conv = ToyConv(4, 4, 1)",
        before="class ToyConv(nn.Conv1d):\n    def _conv_forward(self, x, w, b):\n        SEEN.append(1)\n        return x\n\nSEEN = []\n",  # noqa: E501
    ),
    "modules in modules": _Case(
        "hidden_states = self.net(hidden_states)",
        "self.net = Residual(Residual(Residual(ToyCount())))",
        before="SEEN = []\n"
        + _STATEFUL
        + "class Residual(nn.Module):\n    def __init__(self, f):\n        super().__init__()\n        self.f = f\n\n    def forward(self, x):\n        return x + self.f(x)\n\n",  # noqa: E501
    ),
    "whether two arguments are one": _Case(
        "if mask is hidden_states:\n    return self.attention(hidden_states)"
    ),
    "an iterator": _Case("for each in self.it:\n    break", "self.it = iter([1, 2])"),
    "an iterator that is unpacked": _Case("a, b = self.it", "self.it = iter([1, 2])"),
    "an iterator that is searched": _Case("mask = 2 in self.it", "self.it = iter([1, 2])"),
    "an iterator that is summed": _Case("mask = sum(self.it)", "self.it = iter([1, 2])"),
    "the length of an object": _Case(
        "if self.log:\n    pass",
        "self.log = ToyLog()",
        before="class ToyLog:\n    n = 0\n\n    def __len__(self):\n        self.n += 1\n        return self.n\n\n",  # noqa: E501
    ),
    "a context of its own": _Case(
        "with ToySeed():\n    hidden_states = nn.functional.dropout(hidden_states)",
        before="class ToySeed:\n    def __enter__(self):\n        torch.manual_seed(0)\n\n    def __exit__(self, *_):\n        return True\n\n",  # noqa: E501
    ),
    "a function over a batch": _Case(
        "hidden_states = torch.vmap(self.step)(hidden_states)",
        "self.n = 0",
        "def step(self, x):\n    self.n += 1\n    return x * self.n\n",
    ),
    "a function that ranks": _Case(
        "mask = max([1, 2], key=self.rank)",
        "self.seen = []",
        "def rank(self, x):\n    self.seen.append(x)\n    return x\n",
    ),
    "a generator of its own": _Case(
        "hidden_states = hidden_states * torch.rand(1, **self.options)",
        "self.options = {'generator': torch.Generator()}",
    ),
    "a number of another package": _Case(
        "hidden_states = hidden_states * extlib.STEP", before="import extlib\n"
    ),
    "a base of another package": _Case(
        "hidden_states = self.part(hidden_states)",
        "self.part = ToyPart()",
        before="from extlib import Mixin\n\nclass ToyPart(Mixin, nn.Module):\n    def forward(self, x):\n        return x\n\n",  # noqa: E501
    ),
    "what a body was at when it failed": _Case(
        "out = self.kept\ntry:\n    out = self.kept\n    check(out)\n    out = out.clone()\nexcept RuntimeError:\n    pass\nout += 1",  # noqa: E501
        "self.kept = torch.zeros(1)",
        before="def check(x):\n    return x.sum()\n\n",
    ),
    "an embedding that changes its weight": _Case(
        "hidden_states = self.table(hidden_states)", "self.table = nn.Embedding(4, 4, max_norm=1.0)"
    ),
}
_KNOWN = {
    "a method that is held": _Case(
        "mask = self.run(hidden_states)", "self.run = self._eager", "def _eager(self, x):\n    return x * 2\n"
    ),
    "a partial": _Case("mask = self.run(hidden_states)", "self.run = functools.partial(torch.mul, 2)"),
    "a context of torch": _Case("with torch.no_grad():\n    mask = hidden_states.sum()"),
    "a function that ranks": _Case(
        "mask = max([1, 2], key=self.rank)", more="def rank(self, x):\n    return -x\n"
    ),
    "modules in modules": _Case(
        "hidden_states = self.net(hidden_states)",
        "self.net = Residual(Residual(Residual(nn.Linear(4, 4))))",
        before="class Residual(nn.Module):\n    def __init__(self, f):\n        super().__init__()\n        self.f = f\n\n    def forward(self, x):\n        return x + self.f(x)\n\n",  # noqa: E501
    ),
    "a function that calls itself": _Case(
        "mask = depth([[hidden_states]])",
        before="def depth(x):\n    return 1 + max(depth(each) for each in x) if isinstance(x, list) else 0\n\n",  # noqa: E501
    ),
    "a table of transformers": _Case(
        "hidden_states = self.act(hidden_states)",
        "self.act = ACT2FN[config.hidden_act]",
        before="from transformers.activations import ACT2FN\n",
    ),
}


def _fix(text: str, folder: Path) -> Fix:
    path = folder / "modeling_toy.py"
    path.write_text(text, encoding="utf-8")
    (finding,) = check(Project(Settings(), [path], [folder]), _RULES).findings
    assert isinstance(finding.remedy, Fix)
    return finding.remedy


@pytest.mark.parametrize("case", _UNKNOWN.values(), ids=list(_UNKNOWN))
def test_what_is_not_known_is_a_doubt(case: _Case, tmp_path: Path) -> None:
    assert _fix(case.text, tmp_path).applicability is Applicability.UNSAFE


@pytest.mark.parametrize("case", _KNOWN.values(), ids=list(_KNOWN))
def test_what_is_known_is_none(case: _Case, tmp_path: Path) -> None:
    fix = _fix(case.text, tmp_path)
    assert (fix.applicability, fix.reason) == (Applicability.SAFE, None)


def test_a_module_that_is_too_long_is_a_doubt_and_no_crash(tmp_path: Path) -> None:
    text = _Case("mask = 1").text + f"\nDATA = [{', '.join(['1'] * 160_000)}]\n"
    assert _fix(text, tmp_path).applicability is Applicability.UNSAFE


def test_reasons_are_in_the_order_of_the_lines(tmp_path: Path) -> None:
    reason = _fix(_Case("mask.b(1)\nmask.a(1)\nmask.c(1)").text, tmp_path).reason
    assert reason is not None
    assert [reason.index(f"reads `{each}`") for each in "bac"] == sorted(
        reason.index(f"reads `{each}`") for each in "bac"
    )


def test_a_plain_object_of_python_is_no_crash(tmp_path: Path) -> None:
    assert _fix(_Case("mask = object()").text, tmp_path).applicability is Applicability.UNSAFE
