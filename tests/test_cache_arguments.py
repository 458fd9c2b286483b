"""What reaches a call under the name of a cache, on ways that tests of single decisions do not take."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner

from gclint.cli.check import check_command
from tests.decisions.toy import PROTECTED, STACK, block, model, toy

_IMPORTS = (
    "import contextlib, functools, operator, types\nfrom transformers.cache_utils import DynamicCache\n"
)
_OTHERS: Mapping[str, str | tuple[str, str]] = {
    "concat tuple": "cache = past_key_values + (x,)",
    "iadd": "cache = past_key_values\ncache += (x,)",
    "list mul": "cache = [x] * 3",
    "setitem": "cache = past_key_values\ncache[0] = x",
    "dunder setitem": "cache = [None]\ncache.__setitem__(0, x)",
    "operator setitem": "cache = [None]\noperator.setitem(cache, 0, x)",
    "setattr": "cache = past_key_values\nsetattr(cache, 'keys', x)",
    "setattr part": "cache = past_key_values\nsetattr(cache.layers[0], 'keys', x)",
    "augattr": "cache = past_key_values\ncache.keys += x",
    "copy_": "cache = past_key_values\ncache[0][0].copy_(x)",
    "add_": "cache = past_key_values\ncache[0][0].add_(x)",
    "out": "cache = past_key_values\ntorch.add(x, 1, out=cache[0][0])",
    "init": "cache = past_key_values\nnn.init.normal_(cache[0][0], x)",
    "closure nonlocal": "cache = past_key_values\ndef put():\n    nonlocal cache\n    cache = x\nput()",
    "closure map": "cache = []\nlist(map(cache.append, [x]))",
    "lambda default": "cache = []\n(lambda c=cache: c.append(x))()",
    "walrus comp": "cache = None\n[cache := y for y in [x]]",
    "walrus if": "if (cache := x) is not None:\n    pass",
    "try": "try:\n    cache = x\nexcept ValueError:\n    cache = None",
    "for else": "cache = None\nfor _ in x:\n    break\nelse:\n    cache = x",
    "match": "cache = None\nmatch x:\n    case [cache, *_]:\n        pass\n    case _:\n        pass",
    "match mapping": "cache = None\nmatch {'a': x}:\n    case {'a': cache}:\n        pass",
    "starred": "*cache, y = [x, x]",
    "nested unpack": "(y, (cache, z)) = (None, (x, None))",
    "with as": "with contextlib.nullcontext(x) as cache:\n    pass",
    "with own": "with self.ctx(x) as cache:\n    pass",
    "generator": "def gen():\n    yield None\n    yield x\ncache = list(gen())",
    "generator next": "def gen():\n    yield x\ncache = next(gen())",
    "generator send": "def gen():\n    y = yield\n    yield y\ng = gen()\nnext(g)\ncache = g.send(x)",
    "send recv": (
        "cache = None\ndef gen():\n    nonlocal cache\n    cache = yield\ng = gen()\nnext(g)\ng.send(x)"
    ),
    "yield from": (
        "def inner():\n"
        "    yield None\n"
        "    return x\n"
        "def gen():\n"
        "    nonlocal cache\n"
        "    cache = yield from inner()\n"
        "cache = None\n"
        "list(gen())"
    ),
    "dict get": "d = {'a': None}\nd['a'] = x\ncache = d.get('a')",
    "dict update kw": "d = {'a': None, 'b': None}\nd.update(a=x, b=None)\ncache = d['a']",
    "dict update dict": "d = {'a': None}\nd.update({'a': x})\ncache = d['a']",
    "dict ior": "d = {'a': None}\nd |= {'a': x}\ncache = d['a']",
    "dict or": "d = {'a': None} | {'a': x}\ncache = d['a']",
    "dict setdefault": "d = {}\nd.setdefault('a', x)\ncache = d['a']",
    "dict computed key": "k = 'a' + 'b'\nd = {'ab': None}\nd[k] = x\ncache = d['ab']",
    "dict pair": "d = dict([('a', x)])\ncache = d['a']",
    "dict kw pair": "d = dict(a=(None, (x, None)))\ncache = d['a'][1]",
    "dict fromkeys": "d = dict.fromkeys(['a'], x)\ncache = d['a']",
    "dict popitem": "d = {'a': x}\ncache = d.popitem()[1]",
    "list insert": "cache = []\ncache.insert(0, x)",
    "slice assign": "cache = [None]\ncache[:] = [x]",
    "zip": "cache = [b for a, b in zip([None], [x])]",
    "reduce": "cache = functools.reduce(lambda a, b: b, [None, x])",
    "partial": "f = functools.partial(lambda y: y, x)\ncache = f()",
    "ifexp": "cache = None if self.training else x\nif x is None:\n    cache = x",
    "property": ("cache = self.memory", "@property\ndef memory(self):\n    return self.layers[0].weight\n"),
    "cached attr": "self.cache = x\ncache = self.cache",
    "attr reassigned by method": (
        "self.held = None\nself.fill(x)\ncache = self.held",
        "def fill(self, y):\n    self.held = y\n",
    ),
    "attr by setattr": "self.held = None\nsetattr(self, 'held', x)\ncache = self.held",
    "attr by dict": "self.held = None\nself.__dict__['held'] = x\ncache = self.held",
    "attr by vars": "self.held = None\nvars(self)['held'] = x\ncache = self.held",
    "attr alias": "self.held = []\nother = self.held\nother.append(x)\ncache = self.held",
    "attr list method": (
        "self.held = past_key_values\nself.fill(x)\ncache = past_key_values",
        "def fill(self, y):\n    self.held.update(y)\n",
    ),
    "namespace": "n = types.SimpleNamespace(a=None)\nn.a = x\ncache = n.a",
    "methodcaller": "cache = past_key_values\noperator.methodcaller('update', x)(cache)",
    "attrgetter": "cache = past_key_values\noperator.attrgetter('update')(cache)(x)",
    "bound method": "cache = past_key_values\nf = cache.update\nf(x)",
    "unknown function": "cache = past_key_values\nenrich(cache, x)",
    "unknown function closure": "cache = past_key_values\nenrich(lambda y: cache.update(y))",
    "unknown result": "cache = enrich(past_key_values)",
    "unknown method": "cache = past_key_values.with_prompt()",
    "exec": "cache = past_key_values\nexec('cache.update(x)', {'cache': cache, 'x': x})",
    "global": "global KEPT\nKEPT = x\ncache = KEPT",
    "recursion": (
        "cache = self.rec(x, 3)",
        "def rec(self, y, n):\n    return y if n == 0 else self.rec(y, n - 1)\n",
    ),
    "classm": ("cache = self.clm(x)", "@classmethod\ndef clm(cls, y):\n    return y\n"),
    "star kwargs": ("cache = self.var(a=None, b=x)", "def var(self, **k):\n    return k['b']\n"),
    "star kwargs get": (
        "cache = self.var(b=x)",
        "def var(self, past_key_values=None, **k):\n    return k.get('b', past_key_values)\n",
    ),
    "default arg": ("cache = self.var()", "def var(self, past=PROMPT):\n    return past\n"),
    "mutable default": (
        "self.var(x)\ncache = self.var(None)",
        "def var(self, y, kept=[]):\n    kept.append(y)\n    return kept\n",
    ),
    "class in method": "class Hold:\n    def __init__(self):\n        self.v = x\ncache = Hold().v",
    "class getitem": "class Hold:\n    def __getitem__(self, i):\n        return x\ncache = Hold()[0]",
    "class iter": (
        "class Hold:\n    def __iter__(self):\n        return iter([x])\nfor cache in Hold():\n    pass"
    ),
    "del and rebind": "cache = None\ndel cache\ncache = x",
    "loop carried": (
        "cache = None\n"
        "for layer in self.layers:\n"
        "    hidden_states = layer(hidden_states, cache)\n"
        "    cache = hidden_states"
    ),
    "cache with prompt": "cache = DynamicCache(x)",
    "getattr default": "cache = getattr(past_key_values, 'a', x)",
    "getattr name": "cache = getattr(self, x)",
    "and": "cache = past_key_values and x",
    "late fill in loop": (
        "cache = past_key_values\n"
        "for layer in self.layers:\n"
        "    hidden_states = layer(hidden_states, cache)\n"
        "    cache.update(hidden_states)"
    ),
    "hook": (
        "self.layers[0].register_forward_pre_hook(lambda m, a, k: (a, {'past_key_values': x}))\n"
        "cache = past_key_values"
    ),
    "globals": "cache = globals()['PROMPT']",
    "module write": (
        "cache = past_key_values\n"
        "self.layers[0].attention.cache = cache\n"
        "self.layers[0].attention.cache.update(x)"
    ),
}
"""Statements after which ``cache`` may be something else; some with further methods."""
_CALLERS: Mapping[str, str | tuple[str, str]] = {
    "kw": "hidden_states = self.model(hidden_states, past_key_values=self.prompt)",
    "pos": "hidden_states = self.model(hidden_states, self.prompt)",
    "star": "hidden_states = self.model(*[hidden_states, self.prompt])",
    "star tuple var": "a = (hidden_states, self.prompt)\nhidden_states = self.model(*a)",
    "dict": "k = {'past_key_values': self.prompt}\nhidden_states = self.model(hidden_states, **k)",
    "partial": "hidden_states = functools.partial(self.model, past_key_values=self.prompt)(hidden_states)",
    "forward": "hidden_states = self.model.forward(hidden_states, self.prompt)",
    "call": "hidden_states = self.model.__call__(hidden_states, self.prompt)",
    "class": "hidden_states = ToyModel.forward(self.model, hidden_states, self.prompt)",
    "lambda": "run = lambda p: self.model(hidden_states, p)\nhidden_states = run(self.prompt)",
    "list": "for m in [self.model]:\n    hidden_states = m(hidden_states, self.prompt)",
    "map": "hidden_states = list(map(self.model, [hidden_states], [self.prompt]))[0]",
    "reduce": "hidden_states = functools.reduce(lambda h, p: self.model(h, p), [self.prompt], hidden_states)",
    "getattr": "hidden_states = getattr(self, 'model')(hidden_states, self.prompt)",
    "getattr computed": "hidden_states = getattr(self, x)(hidden_states, self.prompt)",
    "dict attr": "hidden_states = self.__dict__['_modules']['model'](hidden_states, self.prompt)",
    "vars": "hidden_states = vars(self)['_modules']['model'](hidden_states, self.prompt)",
    "modules": (
        "for m in self.modules():\n"
        "    if m is not self:\n"
        "        hidden_states = m(hidden_states, self.prompt)"
    ),
    "children": "hidden_states = next(self.children())(hidden_states, self.prompt)",
    "checkpoint": "hidden_states = torch.utils.checkpoint.checkpoint(self.model, hidden_states, self.prompt)",
    "compile": "hidden_states = torch.compile(self.model)(hidden_states, self.prompt)",
    "unknown": "hidden_states = launch(self.model, hidden_states, self.prompt)",
    "unknown wrap": "hidden_states = wrap(self.model)(hidden_states, self.prompt)",
    "property": (
        "hidden_states = self.core(hidden_states, self.prompt)",
        "@property\ndef core(self):\n    return self.model\n",
    ),
    "method": (
        "hidden_states = self.get()(hidden_states, self.prompt)",
        "def get(self):\n    return self.model\n",
    ),
    "other method": (
        "hidden_states = hidden_states",
        "def prefill(self, hidden_states):\n    return self.model(hidden_states, self.prompt)\n",
    ),
    "if": (
        "if x is None:\n"
        "    hidden_states = self.model(hidden_states, past_key_values)\n"
        "else:\n"
        "    hidden_states = self.model(hidden_states, self.prompt)"
    ),
    "or": "hidden_states = self.model(hidden_states, past_key_values or self.prompt)",
    "fill": "past_key_values.update(self.prompt)\nhidden_states = self.model(hidden_states, past_key_values)",
    "fill2": (
        "out = self.model(hidden_states, past_key_values)\n"
        "past_key_values.update(self.prompt)\n"
        "hidden_states = self.model(hidden_states, past_key_values)"
    ),
    "methodcaller": (
        "hidden_states = operator.methodcaller('forward', hidden_states, self.prompt)(self.model)"
    ),
    "with": (
        "with contextlib.nullcontext(self.model) as m:\n    hidden_states = m(hidden_states, self.prompt)"
    ),
    "walrus": "hidden_states = (m := self.model)(hidden_states, self.prompt)",
    "tuple": "m, p = self.model, self.prompt\nhidden_states = m(hidden_states, p)",
    "after return value": "y = self.model(hidden_states, past_key_values)\nhidden_states = self.model(y, y)",
}
"""Statements of another model that pass something else to the first one."""
_BEHIND = {
    "an heir": "\nclass ToyHeir(ToyModel):\n    def remember(self, past):\n        return self.prompt\n",
    "a patch": (
        "\n_old = ToyModel.forward\n\ndef _new(self, states, past_key_values=None):\n"
        "    return _old(self, states, self.prompt)\n\nToyModel.forward = _new\n"
    ),
    "an heir that calls it": (
        "\nclass ToyHeir(ToyModel):\n    def forward(self, states, past_key_values=None):\n"
        "        return super().forward(states, self.prompt)\n"
    ),
    "a function": "\ndef run(config, states):\n    return ToyModel(config)(states, states)\n",
    "a table of classes": (
        "\nKINDS = {'a': ToyModel}\n\nclass ToyHead(PreTrainedModel):\n    def __init__(self, config):\n"
        "        super().__init__(config)\n        self.m = KINDS[config.kind](config)\n\n"
        "    def forward(self, states):\n        return self.m(states, states)\n"
    ),
}
"""Code behind the model that makes something else of its cache."""
_CACHES: Mapping[str, str | tuple[str, str]] = {
    "plain": "cache = past_key_values",
    "none": "cache = None",
    "legacy": "cache = DynamicCache.from_legacy_cache(past_key_values)",
    "legacy if": (
        "cache = past_key_values\n"
        "if not isinstance(cache, DynamicCache):\n"
        "    cache = DynamicCache.from_legacy_cache(cache)"
    ),
    "length": "cache = past_key_values\nn = cache.get_seq_length() if cache is not None else 0",
    "nones": "cache = past_key_values\nif cache is None:\n    cache = tuple([None] * len(self.layers))",
    "zip": (
        "for layer, cache in zip(self.layers, past_key_values):\n"
        "    hidden_states = layer(hidden_states, cache)"
    ),
    "item": "cache = past_key_values[0] if past_key_values is not None else None",
    "flag": "cache = past_key_values\ncache.seen = True",
    "own flag": "cache = past_key_values if x is not None else None",
    "helper": (
        "cache = self.prepare(past_key_values)",
        (
            "def prepare(self, past_key_values):\n    "
            "if past_key_values is None:\n"
            "        past_key_values = DynamicCache()\n    return past_key_values\n"
        ),
    ),
    "attr": "self.held = past_key_values\ncache = self.held",
    "dict": "d = {'past': past_key_values}\ncache = d['past']",
    "lambda": "f = lambda: past_key_values\ncache = f()",
    "len": "cache = past_key_values\nn = len(cache)",
    "shape": "cache = past_key_values\nn = cache[0][0].shape[2]",
    "logger": "cache = past_key_values\nprint(cache)",
}
"""Statements after which ``cache`` can only be a cache."""
_HANDED = {
    "by position": "self.model(hidden_states, past_key_values)",
    "by keyword": "self.model(hidden_states, past_key_values=past_key_values)",
    "not at all": "self.model(hidden_states)",
    "by a list": "self.model(*[hidden_states, past_key_values])",
    "by a partial": "functools.partial(self.model, past_key_values=past_key_values)(hidden_states)",
}
"""Calls of another model that pass a cache."""


def _made(statements: str | tuple[str, str], behind: str = "") -> str:
    written, more = (statements, "") if isinstance(statements, str) else statements
    loop = f"{written}\nfor layer in self.layers:\n    hidden_states = layer(hidden_states, cache)\n"
    takes = "hidden_states, past_key_values=None"
    layer = block(base=PROTECTED, takes=takes)
    return toy(layer, model(loop, takes=f"{takes}, x=None", init=STACK, more=more), imports=_IMPORTS) + behind


def _run(statements: str | tuple[str, str]) -> str:
    written, more = (statements, "") if isinstance(statements, str) else statements
    return model(
        written,
        name="ToyHead",
        takes="hidden_states, past_key_values=None, x=None",
        init="self.model = ToyModel(config)\nself.prompt = nn.Parameter(torch.zeros(2))",
        more=more,
    )


_PLAIN = "cache = past_key_values"
_REMEMBERED = (
    "cache = self.remember(past_key_values)",
    "def remember(self, past_key_values):\n    return past_key_values\n",
)
_WRAPPED = """\
cache = {cache}
for layer in self.layers:
    if self.gradient_checkpointing and self.training:
        def wrapped(module):
            def call(*inputs):
                return module(*inputs, {passed})
            return call
        hidden_states = torch.utils.checkpoint.checkpoint(wrapped(layer), hidden_states)
    else:
        hidden_states = layer(hidden_states, {passed})
"""
"""A loop with a function around a block that is checkpointed in its place, and passes it a cache."""


def _wrapped(cache: str, passed: str = "cache") -> str:
    loop = _WRAPPED.format(cache=cache, passed=passed)
    takes = "hidden_states, past_key_values=None, x=None"
    init = f"{STACK}\nself.gradient_checkpointing = False"
    layer = block(takes="hidden_states, past_key_values=None")
    return toy(layer, model(loop, takes=takes, init=init), imports="import torch.utils.checkpoint\n")


_MODELS: Mapping[str, Mapping[str, str]] = {
    "none": {
        **{name: _made(each) for name, each in _OTHERS.items()},
        **{f"a caller, {name}": _made(_PLAIN, _run(each)) for name, each in _CALLERS.items()},
        **{name: _made(_REMEMBERED, each) for name, each in _BEHIND.items()},
    },
    "safe": {
        **{name: _made(each) for name, each in _CACHES.items()},
        **{
            f"a caller, {name}": _made(_PLAIN, _run(f"hidden_states = {each}"))
            for name, each in _HANDED.items()
        },
    },
}


@pytest.mark.parametrize("expected", list(_MODELS))
def test_only_what_can_only_be_a_cache_is_passed_by_its_name(expected: str, tmp_path: Path) -> None:
    for name, text in _MODELS[expected].items():
        path = tmp_path / name / "modeling_toy.py"
        path.parent.mkdir()
        path.write_text(text, encoding="utf-8")
    options = ["--no-cache", "--jobs", "1", "--output-format", "json"]
    result = CliRunner().invoke(check_command, [*options, str(tmp_path)])
    fixes = {
        Path(each["filename"]).parent.name: (each["fix"] or {"applicability": "none"})["applicability"]
        for each in json.loads(result.stdout)
        if each["code"] == "GC002"
    }
    assert fixes == dict.fromkeys(_MODELS[expected], expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (_wrapped("past_key_values"), {"applicability": "safe"}),
        (_wrapped("past_key_values", "cache[0]"), {"applicability": "safe"}),
        (_wrapped("x"), {}),
        (_wrapped("past_key_values if x is None else (x,)"), {}),
        (_wrapped("past_key_values", "(cache, x)"), {}),
    ],
)
def test_a_function_around_a_block_passes_a_cache_if_it_is_one(
    text: str, expected: Mapping[str, str], tmp_path: Path
) -> None:
    path = tmp_path / "modeling_toy.py"
    path.write_text(text, encoding="utf-8")
    result = CliRunner().invoke(
        check_command, ["--no-cache", "--jobs", "1", "--output-format", "json", str(path)]
    )
    (fix,) = (each["fix"] or {} for each in json.loads(result.stdout) if each["code"] == "GC302")
    assert expected.items() <= fix.items() and bool(fix) == bool(expected)
