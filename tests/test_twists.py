"""What hides that a block changes something, keeps it, or gives it away, each with what looks like it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from gclint.finding import Applicability
from tests.decisions.toy import LOOP, NUMBERED, STACK, block, model, toy
from tests.toy_models import applicability

_BEFORE = """
import contextlib
import copy
import itertools
import operator
from transformers.pytorch_utils import compile_compatible_method_lru_cache
SEEN = []


def tick(x):
    SEEN.append(1)
    return x


class Gate:
    value = torch.ones(1)


"""
_ATTENDED = "return hidden_states + self.attention(hidden_states)"


def _indented(text: str) -> str:
    return text.replace("\n", "\n    ")


@dataclass(frozen=True)
class _Twist:
    """Statements of a block, or around it, that are wrong, and others like them that are right."""

    wrong: str
    right: str
    takes: str = "hidden_states, mask=None"
    right_takes: str = ""
    """Of the right block, if it has other parameters."""
    init: str = ""
    more: str = ""
    gives: str = ""
    right_gives: str = ""
    """What the block returns, if it does not return the hidden states."""


_STEEP = {
    "root": ("y = hidden_states.sqrt()", "y = (hidden_states + 1e-6).sqrt()"),
    "inverse root": (
        "y = torch.rsqrt(hidden_states)",
        "y = hidden_states * torch.rsqrt(hidden_states.pow(2).mean(-1) + self.eps)",
    ),
    "logarithm": ("y = torch.log(hidden_states)", "y = torch.log(hidden_states.clamp(min=1e-6))"),
    "entropy": ("y = hidden_states.softmax(-1)\ny = y * y.log()", "y = hidden_states.log_softmax(-1)"),
    "power": ("y = hidden_states ** 0.5", "y = hidden_states ** 2"),
    "power by a method": ("y = hidden_states.pow(-1)", "y = hidden_states.pow(3)"),
    "quotient": ("y = hidden_states / mask.sum(-1)", "y = hidden_states / self.eps"),
    "quotient in place": ("y = hidden_states * 2\ny /= y.sum(-1)", "y = hidden_states * 2\ny /= 2"),
    "before a part": ("y = self.attention(hidden_states.log())", "y = self.attention(hidden_states)"),
    "part of a stack": ("y = torch.stack([mask, hidden_states.acos()])", "y = hidden_states.norm(dim=-1)"),
    "what is used as well": (
        "y = self.attention(hidden_states).sqrt()",
        "y = self.attention(hidden_states).sqrt()\nhidden_states = hidden_states + y",
    ),
}
"""What a block computes for an output that its caller drops."""
_TWISTS = {
    "plus": _Twist("y = +mask\ny.mul_(2)", "y = -mask\ny.mul_(2)"),
    "max": _Twist("max([mask, mask], key=id).mul_(2)", "y = max(mask.shape[0], 2)"),
    "sum of lists": _Twist("sum([[mask]], [])[0].mul_(2)", "y = sum([mask, 1])\ny.mul_(2)"),
    "added lists": _Twist("operator.add([mask], [])[0].mul_(2)", "operator.sub(mask, 1).mul_(2)"),
    "context": _Twist(
        "with contextlib.nullcontext(mask) as y:\n    y.mul_(2)", "with contextlib.nullcontext():\n    y = 1"
    ),
    "parameter": _Twist("nn.Parameter(mask, requires_grad=False).mul_(2)", "y = nn.Parameter(mask)"),
    "generator": _Twist(
        "y = nn.init.normal_(torch.empty(3), generator=self.generator)",
        "y = nn.init.normal_(torch.empty(3))",
        init="self.generator = torch.Generator()",
    ),
    "class": _Twist("Gate().value.mul_(2)", "y = Gate().value * 2"),
    "text": _Twist("y = len(f'{hidden_states * 2}')", "y = len(f'{hidden_states.shape}')"),
    "repr": _Twist("y = len('%s' % self.attention(hidden_states))", "y = len('%s' % hidden_states.shape[0])"),
    "str": _Twist("y = 'grad_fn' in str(self.attention(hidden_states))", "y = str(hidden_states.shape)"),
    "address": _Twist("y = mask.data_ptr() % 3", "y = mask.shape[0] % 3"),
    "at least": _Twist("torch.atleast_1d(mask).add_(1)", "y = torch.atleast_1d(mask) + 1"),
    "array": _Twist(
        "self.array.fill(1)", "y = self.array[0] * 2", init="import numpy\nself.array = numpy.zeros(3)"
    ),
    "defaultdict": _Twist(
        "y = self.table[1]",
        "y = self.other.get(1)",
        init="import collections\nself.table = collections.defaultdict(int)\nself.other = {1: 2}",
    ),
    "keys": _Twist(
        "y = dict.fromkeys(self.items)",
        "y = dict.fromkeys(self.names)",
        init="self.items, self.names = iter([1, 2]), (1, 2)",
    ),
    "argument": _Twist("y = mask.normal(1, 2)", "y = mask.abs()"),
    "kept": _Twist(
        "self.buffer(3).mul_(2)",
        "y = self.buffer(3) * 2",
        more="@compile_compatible_method_lru_cache(maxsize=4)\n"
        "def buffer(self, size):\n    return torch.ones(size)",
    ),
    "default": _Twist(
        "if use_cache:\n    tick(1)",
        "if use_cache:\n    tick(1)",
        takes="hidden_states, mask=None, use_cache=True",
        right_takes="hidden_states, mask=None, use_cache=False",
    ),
    "activation": _Twist(
        "y = self.inner(hidden_states)",
        "y = self.plain(hidden_states)",
        init="self.inner = nn.TransformerEncoderLayer(8, 2, activation=tick)\n"
        "self.plain = nn.TransformerEncoderLayer(8, 2)",
    ),
    "detached": _Twist(
        "y = hidden_states.mean(-1)",
        "y = hidden_states.mean(-1)",
        gives="hidden_states, y.detach()",
        right_gives="hidden_states, y",
    ),
    "computed mask": _Twist(
        "y = 1 - mask",
        "y = 1 - hidden_states",
        gives="hidden_states, y",
        right_gives="hidden_states, y",
    ),
    "any error": _Twist(
        "try:\n    mask = mask * 2\nexcept (ValueError, Exception):\n    pass",
        "try:\n    mask = mask * 2\nexcept (ValueError, KeyError):\n    pass",
    ),
    "detached input": _Twist("hidden_states = hidden_states.detach()", "y = hidden_states.detach()"),
    "signs alone": _Twist("hidden_states = (hidden_states > 0).float()", "y = hidden_states > 0"),
    "without gradients": _Twist(
        "with torch.no_grad():\n    hidden_states = hidden_states * 2",
        "with torch.no_grad():\n    y = hidden_states * 2",
    ),
    "parameter returned": _Twist(
        "y = self.attention.query.weight",
        "y = self.attention.query.weight * 2",
        gives="hidden_states, y",
        right_gives="hidden_states, y",
    ),
    "renormalised": _Twist(
        "y = self.table(mask)",
        "y = self.other(mask)",
        init="self.table, self.other = nn.Embedding(8, 8, None, 1.0), nn.Embedding(8, 8, None, None)",
    ),
    "leaky at random": _Twist("y = nn.functional.rrelu(mask)", "y = nn.functional.leaky_relu(mask)"),
    "printed into something": _Twist("print('x', file=mask)", "print('x', sep='')"),
    "formatted": _Twist(
        "y = len('{}'.format(self.attention(hidden_states)))", "y = len('{}'.format(hidden_states.shape))"
    ),
    "renormalised by a function": _Twist(
        "y = nn.functional.embedding(mask, self.attention.query.weight, None, 1.0)",
        "y = nn.functional.embedding(mask, self.attention.query.weight)",
    ),
    "class of an argument": _Twist(
        "y = 2 if isinstance(mask, nn.Parameter) else 1",
        "y = 2 if isinstance(self.attention.query.weight, nn.Parameter) else 1",
    ),
    "type of an argument": _Twist("y = type(mask) is nn.Parameter", "y = type(mask) is tuple"),
    "key of a dict": _Twist("y = {mask: 1}.get(hidden_states)", "y = {1: mask}.get(1)"),
    "items of a set": _Twist("y = len({mask, hidden_states})", "y = len({1, 2})"),
    "attribute of a tensor": _Twist("y = hasattr(mask, 'scale')", "y = hasattr(mask, 'shape')"),
    "copy that may fail": _Twist(
        "try:\n    y = copy.deepcopy(hidden_states)\nexcept RuntimeError:\n    y = 1",
        "try:\n    y = copy.deepcopy(1)\nexcept RuntimeError:\n    y = 1",
    ),
    "array that may fail": _Twist(
        "try:\n    y = hidden_states.numpy()\nexcept RuntimeError:\n    y = 1",
        "try:\n    y = hidden_states.detach().numpy()\nexcept RuntimeError:\n    y = 1",
    ),
    "template": _Twist(
        "y = len('{0.requires_grad}'.format(hidden_states))", "y = len('{0.ndim}'.format(hidden_states))"
    ),
    "template with names": _Twist(
        "y = len('{x.grad_fn:>3}'.format(x=mask))", "y = len('{x:.2f}'.format(x=mask.shape[0]))"
    ),
    "mask": _Twist("y = 1", "y = 1", gives="hidden_states, mask", right_gives="hidden_states, None"),
    **{
        name: _Twist(wrong, right, gives="hidden_states, y", right_gives="hidden_states, y")
        for name, (wrong, right) in _STEEP.items()
    },
}
_TUPLES = "\nfor layer in self.layers:\n    hidden_states, _ = layer(hidden_states, mask)\n"
_PASSED = "\nfor layer in self.layers:\n    hidden_states = layer(hidden_states, {})\n"
_AROUND = {
    "apply": (f"self.apply(quiet){LOOP}self.apply(loud)\n", f"quiet(1){LOOP}loud(1)\n"),
    "slice": (
        _PASSED.format("itertools.islice([1, 2], 1)"),
        _PASSED.format("[1, 2][:1]"),
    ),
    "in a tuple": (_PASSED.format("(iter([1, 2]), 1)"), _PASSED.format("(1, 2)")),
    "parameters": (_PASSED.format("self.norm.parameters()"), _PASSED.format("self.norm.weight")),
}
_OPTIMIZER = "self.optimizer = torch.optim.SGD({}, lr=0.1)"
_STEP = f"{LOOP}self.optimizer.step()\n"
_EMBEDDED = "\nhidden_states = self.embed(mask){}" + LOOP
_MADE_BY_THE_MODEL = {
    "an inherited method": ("", f"{LOOP}self.set_adapter('x')\n", f"{LOOP}self.get_input_embeddings()\n"),
    "an optimizer": (_OPTIMIZER.format("self.parameters()"), _STEP, LOOP),
    "that of a stack": (_OPTIMIZER.format("self.layers.parameters()"), _STEP, LOOP),
    "that of a list": (_OPTIMIZER.format("list(self.parameters())"), _STEP, LOOP),
    "a method that is kept": (
        "step = torch.optim.SGD(self.parameters()).step\nself.step = lambda: step()",
        f"{LOOP}self.step()\n",
        LOOP,
    ),
    "a type of integers": ("", _EMBEDDED.format(".to(mask.dtype)"), _EMBEDDED.format(".to(self.dtype)")),
    "the name of one": ("", _EMBEDDED.format(".type(mask.type())"), _EMBEDDED.format(".float()")),
    "contexts in a list": (
        "",
        "with ContextManagers([torch.random.fork_rng()]):" + _indented(LOOP),
        "with ContextManagers([torch.no_grad()] if self.off else []):" + _indented(LOOP),
    ),
    "contexts by keyword": (
        "",
        "with ContextManagers(context_managers=[torch.random.fork_rng()]):" + _indented(LOOP),
        "with ContextManagers(context_managers=[]):" + _indented(LOOP),
    ),
}
"""What a model does with what it has made: how that is made, a loop that is wrong, one that is right."""
_TAKEN_AWAY = (
    "self.embed.register_buffer('weight', torch.zeros(3))",
    "self.embed._parameters.pop('weight')",
    "self.embed.__dict__['weight'] = torch.zeros(3)",
    "del self.embed.weight",
)
_ADAPTER = """
class Counting(nn.Linear):
    def forward(self, x):
        SEEN.append(1)
        return super().forward(x)


"""
_QUIET = "def quiet(module):\n    module.p = 0.0\n\n\ndef loud(module):\n    module.p = 0.5\n\n\n"


def _of_block(folder: Path, twist: _Twist, *, is_wrong: bool) -> Applicability:
    statements = twist.wrong if is_wrong else twist.right
    gives = twist.gives if is_wrong else twist.right_gives
    body = f"{statements}\n{_ATTENDED}"
    if gives:
        body = f"{statements}\nhidden_states = hidden_states + self.attention(hidden_states)\nreturn {gives}"
    takes = twist.takes if is_wrong or not twist.right_takes else twist.right_takes
    layer = block(body, takes=takes, init=f"{twist.init}\nself.eps = config.eps", more=twist.more)
    return applicability(folder, toy(_BEFORE, layer, model(_TUPLES if gives else LOOP, init=STACK)))


@pytest.mark.parametrize("name", _TWISTS)
def test_what_is_hidden_in_a_block_is_a_doubt(name: str, tmp_path: Path) -> None:
    assert _of_block(tmp_path, _TWISTS[name], is_wrong=True) is Applicability.UNSAFE


@pytest.mark.parametrize("name", [each for each in _TWISTS if each != "activation"])
def test_what_only_looks_like_that_is_none(name: str, tmp_path: Path) -> None:
    assert _of_block(tmp_path, _TWISTS[name], is_wrong=False) is Applicability.SAFE


@pytest.mark.parametrize("name", _AROUND)
def test_the_same_around_a_block(name: str, tmp_path: Path) -> None:
    wrong, right = (
        applicability(
            tmp_path,
            toy(
                _BEFORE + _QUIET, block(_ATTENDED), model(loop, init=f"{STACK}\nself.norm = nn.LayerNorm(8)")
            ),
        )
        for loop in _AROUND[name]
    )
    assert (wrong, right) == (Applicability.UNSAFE, Applicability.SAFE)


@pytest.mark.parametrize("name", _MADE_BY_THE_MODEL)
def test_what_the_model_does_with_what_it_has_made(name: str, tmp_path: Path) -> None:
    init, *loops = _MADE_BY_THE_MODEL[name]
    made = f"{STACK}\nself.embed = nn.Embedding(8, 8)\n{init}"
    before = f"from transformers.utils import ContextManagers\n{_BEFORE}"
    wrong, right = (
        applicability(tmp_path, toy(before, block(_ATTENDED), model(loop, init=made))) for loop in loops
    )
    assert (wrong, right) == (Applicability.UNSAFE, Applicability.SAFE)


_HOOKS = {
    "self.layers[0].attention.query.weight.register_hook(print)": "self.layers[0].attention.query(1)",
    "self.embed.weight.register_post_accumulate_grad_hook(print)": "self.embed.weight.data.normal_()",
}


@pytest.mark.parametrize("hooking", _HOOKS)
def test_hooks_on_gradients(hooking: str, tmp_path: Path) -> None:
    made = f"{STACK}\nself.embed = nn.Embedding(8, 8)\n"
    wrong, right = (
        applicability(tmp_path, toy(_BEFORE, block(_ATTENDED), model(LOOP, init=f"{made}{each}")))
        for each in (hooking, _HOOKS[hooking])
    )
    assert (wrong, right) == (Applicability.UNSAFE, Applicability.SAFE)


_REMADE = {
    "nn.utils.parametrizations.spectral_norm(self.layers[0].attention.query)": Applicability.UNSAFE,
    "for part in self.layers.modules():\n    anything.prune(part)": Applicability.UNSAFE,
    "nn.utils.parametrizations.spectral_norm(self.embed)": Applicability.SAFE,
}


@pytest.mark.parametrize("statement", _REMADE)
def test_what_gets_a_part_of_a_block_where_the_model_is_made(statement: str, tmp_path: Path) -> None:
    made = f"{STACK}\nself.embed = nn.Embedding(8, 8)\n{statement}"
    text = toy(f"import anything\n{_BEFORE}", block(_ATTENDED), model(LOOP, init=made))
    assert applicability(tmp_path, text) is _REMADE[statement]


@pytest.mark.parametrize(
    ("base", "expected"),
    [("GradientCheckpointingLayer", Applicability.UNSAFE), ("nn.Module", Applicability.SAFE)],
)
def test_a_layer_that_another_one_holds(base: str, expected: Applicability, tmp_path: Path) -> None:
    stage = model(LOOP, name="ToyStage", base=base, init="self.layers = nn.ModuleList([ToyLayer(config)])")
    stage = stage.replace("super().__init__(config)", "super().__init__()")
    is_layer = base != "nn.Module"
    held = f"{STACK}\nself.{'layers.append(ToyStage(config))' if is_layer else 'stage = ToyLayer(config)'}"
    text = toy(_BEFORE, block(_ATTENDED), stage if is_layer else "", model(LOOP, init=held))
    assert applicability(tmp_path, text) is expected


_RUN_BY = {
    "torch.func.functional_call(self.encoder, {}, (hidden_states,))": Applicability.UNSAFE,
    "torch.func.vmap(self.encoder)(hidden_states)": Applicability.UNSAFE,
    "anything.run(self.encoder, hidden_states)": Applicability.UNSAFE,
    "anything.run([self.encoder], hidden_states)": Applicability.UNSAFE,
    "anything.run({'it': (1, self.encoder)}, hidden_states)": Applicability.UNSAFE,
    "anything.run([lambda x: self.encoder(x)], hidden_states)": Applicability.UNSAFE,
    "anything.run([self.encoder.forward], hidden_states)": Applicability.UNSAFE,
    "anything.Runner().run(self.encoder, hidden_states)": Applicability.UNSAFE,
    "mask.runner.run([self.encoder], hidden_states)": Applicability.UNSAFE,
    "self.config.run([self.encoder], hidden_states)": Applicability.UNSAFE,
    "self.encoder(hidden_states)": Applicability.SAFE,
    "self.encoder(anything.run([self.norm], hidden_states))": Applicability.SAFE,
    "self.encoder(anything.run([lambda x: x], hidden_states))": Applicability.SAFE,
    "self.encoder(anything.Runner().run(self.norm, hidden_states))": Applicability.SAFE,
}


@pytest.mark.parametrize("call", _RUN_BY)
def test_what_runs_blocks_for_a_model(call: str, tmp_path: Path) -> None:
    text = toy(
        f"import anything\n{_BEFORE}",
        block(_ATTENDED),
        model(LOOP, name="ToyEncoder", base="nn.Module").replace(
            "super().__init__(config)", "super().__init__()"
        ),
        model(
            f"hidden_states = {call}", init="self.encoder = ToyEncoder(config)\nself.norm = nn.LayerNorm(8)"
        ),
    )
    assert applicability(tmp_path, text) is _RUN_BY[call]


@pytest.mark.parametrize("statement", _TAKEN_AWAY)
def test_a_weight_that_is_taken_away(statement: str, tmp_path: Path) -> None:
    made = f"{STACK}\nself.embed = nn.Embedding(8, 8)\n"
    given = (statement, "self.embed.weight.data.normal_()")
    wrong, right = (
        applicability(
            tmp_path, toy(_BEFORE, block(_ATTENDED), model(_EMBEDDED.format(""), init=f"{made}{each}"))
        )
        for each in given
    )
    assert (wrong, right) == (Applicability.UNSAFE, Applicability.SAFE)


@pytest.mark.parametrize(
    ("part", "expected"), [("Counting", Applicability.UNSAFE), ("nn.Linear", Applicability.SAFE)]
)
def test_what_a_model_puts_into_its_blocks(part: str, expected: Applicability, tmp_path: Path) -> None:
    layer = block("return self.dense(hidden_states)", init="self.dense = nn.Linear(8, 8)")
    replaced = f"{STACK}\nfor layer in self.layers:\n    layer.dense = {part}(8, 8)"
    text = toy(_BEFORE + _ADAPTER, layer, model(LOOP, init=replaced))
    assert applicability(tmp_path, text) is expected


_CACHED = """
class ToyCached(nn.Module):
    def __init__(self, config, index):
        super().__init__()
        self.index = index
        self.key = nn.Linear(8, 8)

    def forward(self, states, past_key_values=None):
        key = self.key(states)
        if past_key_values is not None:
            key, _ = past_key_values.update(key, key, self.index)
        return states @ key.transpose(-1, -2) @ key


"""
_LENGTH = """
def length(cache):
    return 0 if cache is None else cache.get_seq_length()


"""
_WITH_CACHE = "hidden_states, mask=None, past_key_values=None, use_cache=None"
_FILLING = """
if use_cache and past_key_values is None:
    past_key_values = DynamicCache()
for layer in self.layers:
    hidden_states = layer(hidden_states, mask, past_key_values=past_key_values, use_cache=use_cache)
return BaseModelOutputWithPast(last_hidden_state=hidden_states, past_key_values=past_key_values)
"""
_MADE = "past_key_values = DynamicCache()\n"
_RUN_MODEL = "out = self.model(hidden_states, mask, past_key_values=past_key_values, use_cache=use_cache)\n"
_SCALED = "hidden_states = out[0] * n"
_AFTER = {
    "a length": (
        f"{_RUN_MODEL}hidden_states = out[0] * out.past_key_values.get_seq_length()",
        f"{_RUN_MODEL}hidden_states = out[0] * hidden_states.shape[1]",
    ),
    "a shape": (
        f"{_RUN_MODEL}hidden_states = out[0][:, -out.past_key_values[0][0].shape[-2]:]",
        f"{_RUN_MODEL}hidden_states = out[0][:, -mask.shape[-2]:]",
    ),
    "another name": (
        f"{_RUN_MODEL}kept = out.past_key_values\nhidden_states = out[0] * len(kept)",
        f"{_RUN_MODEL}kept = out.past_key_values\nhidden_states = out[0]",
    ),
    "a cache of its own": (
        f"{_MADE}{_RUN_MODEL}hidden_states = out[0] * past_key_values.get_seq_length()",
        f"{_MADE}n = past_key_values.get_seq_length()\n{_RUN_MODEL}hidden_states = out[0] * n",
    ),
    "its truth": (
        f"{_RUN_MODEL}if out.past_key_values:\n    hidden_states = out[0]",
        f"{_RUN_MODEL}if out.past_key_values is not None:\n    hidden_states = out[0]",
    ),
    "what users pass": (
        f"{_RUN_MODEL}n = 1\nif past_key_values is not None:\n    n = len(past_key_values.layers)\n{_SCALED}",
        f"{_RUN_MODEL}n = 1\nif past_key_values is not None:\n    n = 2\n{_SCALED}",
    ),
    "what users ask for": (
        f"{_RUN_MODEL}n = past_key_values.get_seq_length() if use_cache else 1\nhidden_states = out[0] * n",
        f"{_RUN_MODEL}n = hidden_states.shape[1] if use_cache else 1\nhidden_states = out[0] * n",
    ),
    "under another name": (
        f"{_RUN_MODEL}n = 1\nif (kept := past_key_values) is not None:\n    n = len(kept.layers)\n{_SCALED}",
        f"{_RUN_MODEL}n = 1\nif (kept := past_key_values) is not None:\n    n = 2\n{_SCALED}",
    ),
    "by a function": (
        f"{_RUN_MODEL}hidden_states = out[0] * length(past_key_values)",
        f"{_RUN_MODEL}hidden_states = out[0] * length(None)",
    ),
    "its items": (
        f"{_RUN_MODEL}for each in out.past_key_values:\n    hidden_states = hidden_states + each[0].mean()",
        f"{_RUN_MODEL}for each in self.model.layers:\n    hidden_states = hidden_states + out[0]",
    ),
    "what it is handed to": (
        f"{_RUN_MODEL}hidden_states = anything.cut(out[0], out.past_key_values)",
        f"{_RUN_MODEL}hidden_states = BaseModelOutputWithPast(out[0], out.past_key_values)[0]",
    ),
    "a second run": (
        f"{_RUN_MODEL}hidden_states = self.model(out[0], mask, past_key_values=out.past_key_values)[0]",
        f"{_RUN_MODEL}hidden_states = self.model(out[0], mask)[0]",
    ),
}
"""What calls a model that fills a cache."""


@pytest.mark.parametrize("name", _AFTER)
def test_what_reads_a_cache_that_blocks_no_longer_fill(name: str, tmp_path: Path) -> None:
    layer = block(
        "return hidden_states + self.cached(hidden_states, past_key_values)",
        takes=_WITH_CACHE,
        init="self.cached = ToyCached(config, index)",
    )
    imports = (
        "import anything\nfrom transformers import DynamicCache\n"
        "from transformers.modeling_outputs import BaseModelOutputWithPast\n"
    )
    inner = model(_FILLING, takes=_WITH_CACHE, init=NUMBERED)
    wrong, right = (
        applicability(
            tmp_path,
            toy(
                _CACHED,
                _LENGTH,
                layer,
                inner,
                model(each, name="ToyHead", takes=_WITH_CACHE, init="self.model = ToyModel(config)"),
                imports=imports,
            ),
        )
        for each in _AFTER[name]
    )
    assert (wrong, right) == (Applicability.UNSAFE, Applicability.SAFE)


_QUERY = "model.layers[0].attention.query"
_GIVEN = {
    f"nn.utils.parametrizations.spectral_norm({_QUERY})": "nn.utils.clip_grad_norm_(model.parameters(), 1.0)",
    f"anything.prune({_QUERY}, 'weight')": f"nn.init.normal_({_QUERY}.weight)",
    "for each in model.modules():\n        anything.prune(each)": (
        "for each in model.modules():\n        print(each)"
    ),
    "for name, each in model.layers[0].named_children():\n        anything.prune(each)": (
        "for name, each in model.named_parameters():\n        anything.count(each)"
    ),
    "model.layers[0].__class__ = anything.Layer": "anything.Layer = model.layers[0].__class__",
    "model.layers[0]._modules['attention'] = anything.part()": (
        "anything.use(model.layers[0]._modules['attention'].query.weight)"
    ),
    "model.layers[0].add_module('attention', anything.part())": (
        "model.layers[0].add_module('extra', anything.part())"
    ),
}
"""What a function does to a model: what is wrong, and what only looks like it."""


@pytest.mark.parametrize("statement", _GIVEN)
@pytest.mark.parametrize("is_beside", [False, True])
def test_what_other_code_puts_into_blocks(statement: str, tmp_path: Path, *, is_beside: bool) -> None:
    def said(each: str) -> Applicability:
        code = f"import anything\nfrom torch import nn\n\n\ndef prepare(model):\n    {each}\n"
        text = toy(block(_ATTENDED), model(LOOP))
        if is_beside:
            return applicability(tmp_path, text, {"train.py": f"from modeling_toy import ToyModel\n{code}"})
        return applicability(tmp_path, f"{text}\n\n{code}")

    assert (said(statement), said(_GIVEN[statement])) == (Applicability.UNSAFE, Applicability.SAFE)


_WHOLE = {
    "model that is made": (
        "def prepare(config):\n    model = ToyModel(config)\n    {}(model)",
        "anything.prune",
        "print",
    ),
    "model that is loaded": (
        "def prepare(path):\n    model = ToyModel.from_pretrained(path)\n    {}(model)",
        "anything.prune",
        "peft.get_peft_model",
    ),
    "part": (
        "def change(each):\n    {}(each)\n\n\ndef prepare(model):\n    model.apply(change)",
        "anything.prune",
        "print",
    ),
}
"""What gives whole models, or each part in turn, to something unknown, and to what does no harm."""


@pytest.mark.parametrize("name", _WHOLE)
def test_what_something_unknown_does_to_whole_models(name: str, tmp_path: Path) -> None:
    code, *functions = _WHOLE[name]
    text = toy(block(_ATTENDED), model(LOOP))
    imports = "import anything\nimport peft\nfrom modeling_toy import ToyModel\n\n\n"
    wrong, right = (
        applicability(tmp_path, text, {"train.py": f"{imports}{code.format(each)}\n"}) for each in functions
    )
    assert (wrong, right) == (Applicability.UNSAFE, Applicability.SAFE)


_WHOLE_GRAPH = "fullgraph=True"
_RUN_LAYERS = f"@torch.compile({{}})\ndef run(self, hidden_states, mask=None):\n    {_indented(LOOP)}"
_COMPILED = {
    "object": (f"{STACK}\nself.compile({{}})", LOOP, ""),
    "stack": (
        f"{STACK}\nself.layers = nn.ModuleList([torch.compile(e, {{}}) for e in self.layers])",
        LOOP,
        "",
    ),
    "method": (
        f"{STACK}\nself.quick = torch.compile(self.run, {{}})",
        LOOP,
        _RUN_LAYERS[_RUN_LAYERS.find("def") :],
    ),
    "function that is made first": (f"{STACK}\ntorch.compile({{}})(self.forward)", LOOP, ""),
    "decorator": (STACK, "hidden_states = self.run(hidden_states, mask)", _RUN_LAYERS),
}
"""What compiles a block or what runs it: statements where the model is made, those of it, and methods."""


@pytest.mark.parametrize("name", _COMPILED)
def test_what_is_compiled_as_one_graph(name: str, tmp_path: Path) -> None:
    init, body, more = _COMPILED[name]
    wrong, right = (
        applicability(
            tmp_path,
            toy(block(_ATTENDED), model(body, init=init.format(option), more=more.format(option))),
        )
        for option in (_WHOLE_GRAPH, "dynamic=True")
    )
    assert (wrong, right) == (Applicability.UNSAFE, Applicability.SAFE)


def test_a_part_of_a_block_is_compiled_as_one_graph(tmp_path: Path) -> None:
    layer = block(_ATTENDED, init=f"self.attention.compile({_WHOLE_GRAPH})")
    assert applicability(tmp_path, toy(layer, model(LOOP))) is Applicability.SAFE


_SEVERAL = "for layer in self.layers:\n    hidden_states, gate = layer(hidden_states, mask)\n    y = {}"
_ONE = "for layer in self.layers:\n    hidden_states = layer(hidden_states, mask)\n    y = {}"
_TOLD = {
    "whether it requires grad": (_SEVERAL, "gate.requires_grad", "gate.is_cuda"),
    "whether what is computed with it does": (_SEVERAL, "(gate * 2).requires_grad", "(gate * 2).is_cuda"),
    "whether it is a leaf": (_SEVERAL, "getattr(gate, 'is_leaf')", "getattr(gate, 'is_cuda')"),
    "what has computed it": (_ONE, "hidden_states.grad_fn", "hidden_states.requires_grad"),
    "a pattern": (
        _ONE.replace("y = {}", "match layer:\n        case {}:\n            pass"),
        "GradientCheckpointingLayer()",
        "ToyLayer()",
    ),
    "a class": (_ONE, "ToyLayer.gradient_checkpointing", "ToyLayer.forward"),
    "a protocol": (_ONE, "isinstance(layer, Flagged)", "isinstance(hidden_states, Flagged)"),
    "a union": (
        _ONE,
        "isinstance(layer, GradientCheckpointingLayer | ToyLayer)",
        "isinstance(layer, ToyLayer)",
    ),
    "its class by `super`": (
        _ONE,
        "super(ToyLayer, layer).__self_class__",
        "super(ToyLayer, layer).__init__",
    ),
    "what its method wraps": (_ONE, "hasattr(layer.forward, '__wrapped__')", "hasattr(layer, 'attention')"),
    "its method": (_ONE, "layer.forward == mask", "layer.attention == mask"),
    "its cache": (
        _ONE,
        "hasattr(layer, '_can_checkpoint_' + 'with_cache')",
        "hasattr(layer, '_can_checkpoint_' + 'without')",
    ),
    "a hook": (_ONE, "isinstance(layer, Hooked)", "isinstance(layer, Plain)"),
}
"""What asks for what becomes different, and for what does not."""
_KINDS_ASKED = """
from abc import ABC
from typing import Protocol, runtime_checkable


@runtime_checkable
class Flagged(Protocol):
    gradient_checkpointing: bool


class Plain(ABC):
    pass


class Hooked(ABC):
    @classmethod
    def __subclasshook__(cls, other):
        return hasattr(other, "gradient_checkpointing")


"""


@pytest.mark.parametrize("name", _TOLD)
def test_what_asks_for_what_becomes_different(name: str, tmp_path: Path) -> None:
    body, *asked = _TOLD[name]
    returned = f"{_ATTENDED}, self.attention(hidden_states)" if body is _SEVERAL else _ATTENDED
    imports = "from transformers.modeling_layers import GradientCheckpointingLayer\n"
    wrong, right = (
        applicability(tmp_path, toy(_KINDS_ASKED, block(returned), model(body.format(each)), imports=imports))
        for each in asked
    )
    assert (wrong, right) == (Applicability.UNSAFE, Applicability.SAFE)


@pytest.mark.parametrize(
    ("asked", "expected"), [("__mro__", Applicability.UNSAFE), ("__name__", Applicability.SAFE)]
)
def test_what_a_script_asks_of_types(asked: str, expected: Applicability, tmp_path: Path) -> None:
    script = (
        "from modeling_toy import ToyLayer\n\n\ndef kinds(model):\n"
        f"    return [type(each).{asked} for each in model.modules() if isinstance(each, ToyLayer)]\n"
    )
    text = toy(block(_ATTENDED), model(LOOP))
    assert applicability(tmp_path, text, {"train.py": script}) is expected


_ROOT = "class Root(nn.Module{}):\n    def __init_subclass__(cls, **further):\n        {}\n"
_CALLED = "        super().__init_subclass__(**further)\n\n\n"
_META = "class Meta(type):\n    pass\n\n\n"
_CLASSES = {
    "asks for its bases": (
        _ROOT.format("", "assert cls.__bases__ == (Root,)") + _CALLED,
        _ROOT.format("", "assert cls.__name__") + _CALLED,
    ),
    "asks for its order": (
        _ROOT.format("", "assert len(cls.mro()) == 4") + _CALLED,
        _ROOT.format("", "cls.size = 4") + _CALLED,
    ),
    "has a metaclass": (
        _META + _ROOT.format(", metaclass=Meta", "pass") + _CALLED,
        "from abc import ABCMeta\n" + _ROOT.format(", metaclass=ABCMeta", "pass") + _CALLED,
    ),
}


@pytest.mark.parametrize("name", _CLASSES)
def test_what_sees_the_bases_of_a_block(name: str, tmp_path: Path) -> None:
    wrong, right = (
        applicability(tmp_path, toy(before, block(_ATTENDED, base="Root"), model(LOOP)))
        for before in _CLASSES[name]
    )
    assert (wrong, right) == (Applicability.UNSAFE, Applicability.SAFE)


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("assert kind.__base__ is nn.Module", Applicability.UNSAFE),
        ("kind.size = kind.forward.__code__.co_argcount", Applicability.UNSAFE),
        ("assert kind.forward", Applicability.SAFE),
    ],
)
def test_what_a_decorator_of_a_block_sees(statement: str, expected: Applicability, tmp_path: Path) -> None:
    before = f"def register(kind):\n    {statement}\n    return kind\n\n\n@register"
    assert applicability(tmp_path, toy(before, block(_ATTENDED), model(LOOP))) is expected


@pytest.mark.parametrize("method", ["__call__", "_call_impl", "_slow_forward", "_wrapped_call_impl"])
@pytest.mark.parametrize("code", ["GC001", "GC003"])
def test_blocks_that_run_in_a_way_of_their_own(method: str, code: str, tmp_path: Path) -> None:
    base = "GradientCheckpointingLayer" if code == "GC003" else "nn.Module"
    loop = "for layer in self.layers:\n    hidden_states = layer({})"
    loop = loop.format("hidden_states=hidden_states, mask=mask" if code == "GC003" else "hidden_states")

    def said(name: str) -> Applicability:
        more = f"def {name}(self, *args, **options):\n    return super().{method}(*args, **options)"
        return applicability(tmp_path, toy(block(_ATTENDED, base=base, more=more), model(loop)), code=code)

    assert (said(method), said("run")) == (Applicability.UNSAFE, Applicability.SAFE)


_HELD = """
class Holder:
    def __init__(self, held):
        self.held = held

    def get(self):
        return self.held


"""
_MASKED = "for layer in self.layers:\n    hidden_states = layer(hidden_states, mask)\n"
_HANDED = {
    "anything.use(Holder({}))": "1",
    "anything.use([Holder({})])": "1",
    "anything.use(Holder({}).get)": "1",
    "anything.use([lambda: {}])": "1",
    "anything.use([partial(torch.add, {})])": "1",
    "anything.use([{}.add_])": "torch.ones(1)",
    "anything.STORE['held'] = {}": "1",
    "y = anything.STORE @ {}": "1",
    "y = math.pi * {}": "",
}
"""Statements that give something unknown what blocks were given, and what they may give it."""


@pytest.mark.parametrize("statement", _HANDED)
def test_what_something_unknown_gets_of_blocks(statement: str, tmp_path: Path) -> None:
    before = f"import anything\nimport math\nfrom functools import partial\n{_BEFORE}{_HELD}"
    wrong, right = (
        applicability(
            tmp_path, toy(before, block(_ATTENDED), model(f"{_MASKED}{statement.format(each or 'mask')}"))
        )
        for each in ("mask", _HANDED[statement])
    )
    is_known = not _HANDED[statement]
    assert (wrong, right) == (Applicability.SAFE if is_known else Applicability.UNSAFE, Applicability.SAFE)


@pytest.mark.parametrize(
    "given",
    ["[{{'params': list({}.parameters())}}]", "dict({}.named_parameters())", "[p for p in {}.parameters()]"],
)
def test_what_keeps_parameters_in_something(given: str, tmp_path: Path) -> None:
    wrong, right = (
        applicability(
            tmp_path,
            toy(
                f"import anything\n{_BEFORE}",
                block(_ATTENDED),
                model(
                    f"{LOOP}self.kept.run()",
                    init=f"{STACK}\nself.norm = nn.LayerNorm(8)\n"
                    f"self.kept = anything.Keeper({given.format(each) if each else ''})",
                ),
            ),
        )
        for each in ("self.layers", "")
    )
    assert (wrong, right) == (Applicability.UNSAFE, Applicability.SAFE)
