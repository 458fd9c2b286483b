"""What layers find in a cache when they first write to it: nothing, if each has a slot of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from gclint.code.project import Project
from gclint.finding import Applicability, Fix
from gclint.releases import releases
from gclint.rule import all_rules
from gclint.run.check import check
from gclint.settings import Settings
from tests.decisions.toy import NUMBERED, PROTECTED, block, model, toy
from tests.toy_models import applicability

_IMPORTS = (
    "import copy\nimport itertools\nfrom functools import partial\nfrom types import SimpleNamespace\n"
    "from transformers.cache_utils import DynamicCache, StaticCache\n"
)
_UPDATED = (
    "if past_key_values is not None:\n"
    "    hidden_states, _ = past_key_values.update(hidden_states, hidden_states, self.slot)\n"
    "return hidden_states + self.attention(hidden_states)"
)
_EMPTY = "self.layers = nn.ModuleList()"
_CACHE = "cache = DynamicCache()"
_CALL = "hidden_states = layer(hidden_states, cache)"
_LOOP = f"for layer in self.layers:\n    {_CALL}"
_OWN_CLASS = (
    "class ToyCache(DynamicCache):\n"
    "    def update(self, keys, values, index):\n"
    "        return keys * 2, values\n\n\n"
)

_OTHER_CLASS = "class ToyOther(ToyLayer):\n    pass\n\n\n"
_IN_TURN = "for i in range(config.depth)])"
_TWO_CLASSES = "self.layers = nn.ModuleList([ToyLayer(config, i) if config.kinds[i] else ToyOther(config)"
_STACKS = {
    "one after the other": (
        f"{_EMPTY}\nfor i in range(config.depth):\n    self.layers.append(ToyLayer(config, i))",
        f"{_EMPTY}\nfor i in range(config.depth):\n    for _ in range(2):\n"
        "        self.layers.append(ToyLayer(config, i))",
    ),
    "shifted": (
        NUMBERED.replace(", index)", ", config.first + index)"),
        NUMBERED.replace(", index)", ", index % 2)"),
    ),
    "by name": (NUMBERED.replace(", index)", ", index=index)"), NUMBERED.replace(", index)", ", index=0)")),
    "default": (NUMBERED, NUMBERED.replace(", index)", ")")),
    "enumerated": (
        "self.layers = nn.ModuleList([ToyLayer(config, i) for i, _ in enumerate(config.kinds)])",
        "self.layers = nn.ModuleList([ToyLayer(config, i) for _, i in enumerate(config.kinds)])",
    ),
    "two loops": (
        NUMBERED,
        "self.layers = nn.ModuleList([ToyLayer(config, i) for i in range(2) for _ in range(config.depth)])",
    ),
    "two in a turn": (
        f"{_EMPTY}\nfor i in range(config.depth):\n    if config.kinds[i]:\n"
        "        self.layers.append(ToyLayer(config, i))\n    else:\n"
        "        self.layers.append(ToyLayer(config, i + 0))",
        f"{_EMPTY}\nfor i in range(config.depth):\n    self.layers.append(ToyLayer(config, i))\n"
        "    self.layers.append(ToyLayer(config, i))",
    ),
    "one or the other": (
        NUMBERED.replace(", index)", ", index + 1)"),
        NUMBERED.replace(", index)", ", index + (1 if index % 2 == 0 else 0))"),
    ),
    "the next one": (
        f"{_EMPTY}\nfor i in range(config.depth):\n    self.layers.append(ToyLayer(config, i + 1))",
        f"{_EMPTY}\nfor i in range(config.depth):\n    if config.kinds[i]:\n"
        "        self.layers.append(ToyLayer(config, i))\n    else:\n"
        "        self.layers.append(ToyLayer(config, i + 1))",
    ),
    "a list": (
        "made = []\nfor i in range(config.depth):\n    made.append(ToyLayer(config, i))\n"
        "self.layers = nn.ModuleList(made)",
        "made = []\nfor i in range(config.depth):\n    made.append(ToyLayer(config, i))\n"
        "made.append(made[0])\nself.layers = nn.ModuleList(made)",
    ),
    "twice in a turn": (
        f"{_EMPTY}\nfor i in range(config.depth):\n    layer = ToyLayer(config, i)\n"
        "    self.layers.append(layer)",
        f"{_EMPTY}\nfor i in range(config.depth):\n    layer = ToyLayer(config, i)\n"
        "    self.layers.append(layer)\n    self.layers.append(layer)",
    ),
    "multiplied": (NUMBERED, NUMBERED.replace("config.depth)])", "config.depth)] * 2)")),
    "the first of a range": (NUMBERED, NUMBERED.replace(", index)", ", range(3)[0])")),
    "a table": (NUMBERED, NUMBERED.replace(", index)", ", config.slots[index])")),
    "two lists": (
        NUMBERED,
        f"{NUMBERED}\nself.layers.extend([ToyLayer(config, i) for i in range(config.depth)])",
    ),
    "a list in a loop": (
        f"{_EMPTY}\nfor i in range(config.depth):\n    self.layers.append(ToyLayer(config, i))",
        f"{NUMBERED}\nfor i in range(config.depth):\n    self.layers.append(ToyLayer(config, i))",
    ),
    "once more": (NUMBERED, f"{NUMBERED}\nself.layers.append(self.layers[0])"),
    "instead": (NUMBERED, f"{NUMBERED}\nself.layers[1] = self.layers[0]"),
    "copies": (NUMBERED, NUMBERED.replace("ToyLayer(config, index)", "copy.deepcopy(ToyLayer(config, 0))")),
    "assigned": (NUMBERED, f"{NUMBERED}\nfor layer in self.layers:\n    layer.slot = 0"),
    "a list for each": (
        NUMBERED.replace(", index)", ", index + config.first)"),
        NUMBERED.replace(", index)", ", index + config.shifts[index])"),
    ),
    "a number in between": (
        f"{_EMPTY}\nfor i in range(config.depth):\n    self.layers.append(ToyLayer(config, i))",
        f"{_EMPTY}\nfor i in range(config.depth):\n    shift = config.shifts[i]\n"
        "    self.layers.append(ToyLayer(config, i + shift))",
    ),
    "two classes": (
        f"{_TWO_CLASSES[:-1]}, i) {_IN_TURN}",
        f"{_TWO_CLASSES[:-1]}, i + 1) {_IN_TURN}",
    ),
    "a name for it": (NUMBERED, f"{NUMBERED}\nlayers = self.layers\nlayers.append(self.layers[0])"),
    "as a module": (NUMBERED, f"{NUMBERED}\nself.layers.add_module('9', ToyLayer(config))"),
    "a part by its name": (NUMBERED, f"{NUMBERED}\nself.get_submodule('layers').append(ToyLayer(config))"),
    "the first part": (NUMBERED, f"{NUMBERED}\nnext(self.children())[1] = self.layers[0]"),
    "by namespace": (NUMBERED, f"{NUMBERED}\nfor layer in self.layers:\n    vars(layer)['slot'] = 0"),
    "assigned twice": (
        NUMBERED,
        f"{NUMBERED}\nself.layers = nn.ModuleList([*self.layers, self.layers[0]])",
    ),
    "added to": (NUMBERED, f"{NUMBERED}\nself.layers += self.layers[:1]"),
    "by a function": (
        NUMBERED,
        "twice = lambda layers: nn.ModuleList([*layers, *layers])\n"
        f"{NUMBERED.replace('nn.ModuleList', 'twice')}",
    ),
    "the one before": (
        f"{_EMPTY}\nfor i in range(config.depth):\n    layer = ToyLayer(config, i)\n"
        "    self.layers.append(layer)",
        f"{_EMPTY}\nfor i in range(config.depth):\n    if i % 2 == 0:\n        layer = ToyLayer(config, i)\n"
        "    self.layers.append(layer)",
    ),
    "in a context": (
        f"{_EMPTY}\nfor i in range(config.depth):\n    with torch.no_grad():\n"
        "        self.layers.append(ToyLayer(config, i))",
        f"{_EMPTY}\nfor i in range(config.depth):\n    if i % 2 == 0:\n        layer = ToyLayer(config, i)\n"
        "    with torch.no_grad():\n        self.layers.append(layer)",
    ),
    "the number of another": (
        f"{_EMPTY}\nfor i in range(config.depth):\n    number = i + 1\n"
        "    self.layers.append(ToyLayer(config, number))",
        f"{_EMPTY}\nfor i in range(config.depth):\n    if i % 2 == 0:\n        number = i\n"
        "    self.layers.append(ToyLayer(config, number))",
    ),
    "a setting that is set": (
        NUMBERED.replace(", index)", ", index + config.first)"),
        f"config.first = 0\n{NUMBERED.replace(', index)', ', index + config.first)')}",
    ),
    "a loop over parts": (
        f"{NUMBERED}\nfor part in self.children():\n    part.requires_grad_(True)",
        f"{NUMBERED}\nfor part in self.children():\n    part.append(part[0])",
    ),
    "by its name": (NUMBERED, f"{NUMBERED}\ngetattr(self, 'layers').append(self.layers[0])"),
    "by a name put together": (
        f"{NUMBERED}\nself.count = len(self.layers)",
        f"{NUMBERED}\nfor layer in self.layers:\n    setattr(layer, 'sl' + 'ot', 0)",
    ),
}
_LOOPS = {
    "one after the other": (_LOOP, _LOOP.replace("self.layers", "[*self.layers, *self.layers]")),
    "a part": (
        _LOOP.replace("self.layers", "self.layers[: self.config.depth]"),
        _LOOP.replace("self.layers", "list(self.layers) * 2"),
    ),
    "by number": (
        "for i in range(len(self.layers)):\n    hidden_states = self.layers[i](hidden_states, cache)",
        "for i in range(9):\n    hidden_states = self.layers[i // 2](hidden_states, cache)",
    ),
    "enumerated": (
        f"for _, layer in enumerate(self.layers):\n    {_CALL}",
        f"for _, layer in enumerate(itertools.chain(self.layers, self.layers)):\n    {_CALL}",
    ),
    "reversed": (
        _LOOP.replace("self.layers", "reversed(self.layers)"),
        _LOOP.replace("self.layers", "reversed([*self.layers, *self.layers])"),
    ),
    "around": (_LOOP, f"for _ in range(2):\n    for layer in self.layers:\n        {_CALL}"),
    "within": (_LOOP, f"for layer in self.layers:\n    for _ in range(2):\n        {_CALL}"),
    "an index of its own": (
        f"for index, layer in enumerate(self.layers):\n    {_CALL}",
        f"index = 0\nwhile self.training:\n    layer = self.layers[index]\n    {_CALL}\n"
        "    index = (index + 1) % 2",
    ),
    "an item of its own": (
        f"for item in self.layers:\n    {_CALL.replace('layer(', 'item(')}",
        "item = 0\nfor _ in range(9):\n    hidden_states = self.layers[item](hidden_states, cache)\n"
        "    item = (item + 1) % 2",
    ),
    "parts of the input": (
        _LOOP,
        "for layer in self.layers:\n"
        "    hidden_states = torch.cat([layer(part, cache) for part in hidden_states.split(4, 1)], 1)",
    ),
    "two generators": (
        "for layer in self.layers:\n    hidden_states = layer(hidden_states, cache)",
        "[hidden_states := layer(hidden_states, cache) for _ in range(2) for layer in self.layers]",
    ),
    "while": (_LOOP, f"i = 0\nwhile i < 9:\n    layer = self.layers[i % 2]\n    {_CALL}\n    i = i + 1"),
    "in a method": (
        "hidden_states = self.run(hidden_states, cache)",
        "hidden_states = self.run(self.run(hidden_states, cache), cache)",
    ),
    "in a function": (
        _LOOP,
        f"def run(hidden_states):\n    for layer in self.layers:\n        {_CALL}\n    return hidden_states\n"
        "hidden_states = run(run(hidden_states))",
    ),
}
_LOOPS |= {
    "with its length": (
        f"hidden_states = hidden_states + cache.get_seq_length()\n{_LOOP}",
        f"for layer in self.layers:\n    hidden_states = hidden_states + cache.get_seq_length()\n    {_CALL}",
    ),
    "if something is in it": (
        f"if cache is not None:\n    hidden_states = hidden_states * 2\n{_LOOP}",
        f"for layer in self.layers:\n    if cache:\n        hidden_states = hidden_states * 2\n    {_CALL}",
    ),
    "with the number of layers in it": (
        f"for layer in self.layers:\n    hidden_states = hidden_states + len(self.layers)\n    {_CALL}",
        f"for layer in self.layers:\n    hidden_states = hidden_states + len(cache)\n    {_CALL}",
    ),
    "backwards": (
        "for i in range(1, 2):\n    hidden_states = self.layers[i](hidden_states, cache)",
        "for i in range(-1, 2):\n    hidden_states = self.layers[i](hidden_states, cache)",
    ),
    "from an end that is spread": (
        "for i in range(len(self.layers)):\n    hidden_states = self.layers[i](hidden_states, cache)",
        "for i in range(*self.ends):\n    hidden_states = self.layers[i](hidden_states, cache)",
    ),
    "another one by a function": (
        f"def other():\n    return DynamicCache()\ncache = other()\n{_LOOP}",
        f"def other():\n    nonlocal cache\n    cache = StaticCache(self.config)\nother()\n{_LOOP}",
    ),
    "in a container": (
        f"held = {{'cache': cache}}\n{_LOOP}",
        f"held = {{'cache': cache}}\n{_LOOP}\nhidden_states = hidden_states + held['cache'].get_seq_length()",
    ),
}
_KEPT = {
    "an object": ("held = SimpleNamespace(cache=cache)", "held.cache.get_seq_length()"),
    "a set": ("held = {cache}", "held.pop().get_seq_length()"),
    "a list that is filled": ("held = []\nheld.insert(0, cache)", "held[0].get_seq_length()"),
    "one of two": ("held = self.config.held or cache", "held.get_seq_length()"),
    "an iterator": ("held = iter([cache])", "next(held).get_seq_length()"),
    "a partial": ("held = partial(len, cache)", "held()"),
    "a part of the model": ("self.held = cache", "self.count()"),
    "a global name": ("global held\nheld = cache", "self.count()"),
    "a function that a function makes": (
        "def keeping(kept):\n    return lambda: kept.get_seq_length()\nheld = keeping(cache)",
        "held()",
    ),
}
"""Where caches may be kept that are not followed, and how they are read from there."""
_BODIES = {
    "a loop": _UPDATED.replace("if past", "for _ in range(2 if past").replace(
        "not None:", "not None else 0):"
    ),
    "a comprehension": "if past_key_values is not None:\n"
    "    given = (hidden_states, hidden_states, self.slot)\n"
    "    hidden_states = sum([past_key_values.update(*given)[0] for _ in (1, 2)])\n"
    "return hidden_states + self.attention(hidden_states)",
    "the length of another": "n = 0\nif past_key_values is not None:\n"
    "    n = past_key_values.get_seq_length(self.other)\n"
    f"hidden_states = hidden_states + n\n{_UPDATED}",
    "twice": f"{_UPDATED.rpartition('return')[0]}{_UPDATED}",
}
_OUTER = (
    "class ToyOuter(PreTrainedModel):\n    def __init__(self, config):\n        super().__init__(config)\n"
    "        self.model = ToyModel(config)\n\n    def forward(self, hidden_states):\n        {}\n"
)
_ELSEWHERE = {
    "an outer model appends": (
        "class ToyOuter(PreTrainedModel):\n    def __init__(self, config):\n"
        "        super().__init__(config)\n"
        "        self.model = ToyModel(config)\n        {}\n\n    def forward(self, hidden_states):\n"
        "        return self.model(hidden_states)\n",
        "self.count = len(self.model.layers)",
        "self.model.layers.append(ToyLayer(config))",
    ),
    "an heir appends": (
        "class ToyHeir(ToyModel):\n    def __init__(self, config):\n"
        "        super().__init__(config)\n        {}\n",
        "self.count = len(self.layers)",
        "self.layers.append(ToyLayer(config))",
    ),
    "an heir has others": (
        "class ToyHeir(ToyModel):\n    def __init__(self, config):\n"
        "        super().__init__(config)\n        {}\n",
        "self.others = nn.ModuleList([nn.Linear(2, 2) for _ in range(2)])",
        "self.layers = nn.ModuleList([ToyLayer(config, 0) for _ in range(2)])",
    ),
    "a function": (
        "def count(model):\n    {}\n",
        "return len(model.layers)",
        "model.layers.append(model.layers[0])",
    ),
    "a base model": (
        _OUTER,
        "cache = DynamicCache()\n        return self.base_model(hidden_states, cache=cache)",
        "cache = DynamicCache()\n        "
        "return self.base_model(hidden_states, cache=cache) + cache.get_seq_length()",
    ),
    "what a property gives": (
        "class ToyHeir(ToyModel):\n    @property\n    def {}(self):\n"
        "        return [ToyLayer(self.config)] * 2\n",
        "others",
        "layers",
    ),
    "a cache for each part": (
        _OUTER,
        "return torch.cat([self.model(part) for part in hidden_states.split(2, 1)], 1)",
        "cache = DynamicCache()\n        "
        "return torch.cat([self.model(part, cache=cache) for part in hidden_states.split(2, 1)], 1)",
    ),
    "what comes back": (
        _OUTER,
        "return (lambda out: out[0])(self.model(hidden_states))",
        "return (lambda out: out[0] + out[1].get_seq_length())(self.model(hidden_states))",
    ),
    "another class makes several": (
        "def make(config):\n    {}\n",
        "return ToyModel(config)",
        "return [*map(ToyModel, [config] * 2)]",
    ),
}
_STAGES = """
class ToyStages(PreTrainedModel):
    def __init__(self, config):
        super().__init__(config)
        self.stages = nn.ModuleList([ToyModel(config) for _ in range(2)])

    def forward(self, hidden_states, cache=None):
        for stage in self.stages:
            hidden_states = stage(hidden_states, cache)
        return hidden_states
"""
_CACHES = {
    "of changed methods": "DynamicCache.update = ToyCache.update\ncache = DynamicCache()",
    "kept by the model": "if self.cache is None:\n    self.cache = DynamicCache()\ncache = self.cache",
    "a default": "",
    "of a fixed length": "cache = StaticCache(self.config, max_cache_len=9)",
    "of its own": "cache = ToyCache()",
}
_METHOD = f"""
def run(self, hidden_states, cache):
    for layer in self.layers:
        {_CALL}
    return hidden_states
"""


def _text(stack: str, cache: str, loop: str, *, body: str = _UPDATED, more: str = "") -> str:
    takes = "hidden_states, past_key_values=None"
    layer = block(body, base=PROTECTED, takes=takes, init="self.slot = index\nself.other = index // 2")
    method = _METHOD if "self.run" in loop else ""
    given = "cache=None" if "if cache is None" in cache else "mask=None" if cache else "cache=DynamicCache()"
    whole = model(f"{cache}\n{loop}\n", init=stack, more=method, takes=f"hidden_states, {given}")
    return toy(_OWN_CLASS + layer, _OTHER_CLASS, whole, more, imports=_IMPORTS)


def _check(
    folder: Path, stack: str, cache: str, loop: str, *, is_right: bool, body: str = _UPDATED, more: str = ""
) -> None:
    text = _text(stack, cache, loop, body=body, more=more)
    found = applicability(folder, text, code="GC002", target="5.17")
    assert found is (Applicability.SAFE if is_right else Applicability.UNSAFE)


@pytest.mark.parametrize("is_right", [True, False])
@pytest.mark.parametrize("name", _STACKS)
def test_how_layers_are_made(name: str, tmp_path: Path, *, is_right: bool) -> None:
    _check(tmp_path, _STACKS[name][not is_right], _CACHE, _LOOP, is_right=is_right)


@pytest.mark.parametrize("is_right", [True, False])
@pytest.mark.parametrize("name", _LOOPS)
def test_how_they_are_run(name: str, tmp_path: Path, *, is_right: bool) -> None:
    _check(tmp_path, NUMBERED, _CACHE, _LOOPS[name][not is_right], is_right=is_right)


@pytest.mark.parametrize("name", _KEPT)
def test_what_keeps_a_cache_that_is_read_later(name: str, tmp_path: Path) -> None:
    keeping, reading = _KEPT[name]
    loop = f"{keeping}\n{_LOOP}\nhidden_states = hidden_states + {reading}"
    _check(tmp_path, NUMBERED, _CACHE, loop, is_right=False)


@pytest.mark.parametrize("is_right", [True, False])
@pytest.mark.parametrize("name", _ELSEWHERE)
def test_what_other_code_does_with_them(name: str, tmp_path: Path, *, is_right: bool) -> None:
    text, *statements = _ELSEWHERE[name]
    is_given = any("cache=" in each for each in statements)
    cache = "if cache is None:\n    cache = DynamicCache()" if is_given else _CACHE
    more = text.format(statements[not is_right])
    _check(tmp_path, NUMBERED, cache, _LOOP, is_right=is_right, more=more)


_ATTRIBUTES = ("__getattr__", "__getattribute__")


@pytest.mark.parametrize("name", _ATTRIBUTES)
def test_attributes_that_a_method_gives(name: str, tmp_path: Path) -> None:
    method = f"    def {name}(self, name):\n        return 0 if name == 'slot' else super().{name}(name)\n"
    text = _text(NUMBERED, _CACHE, _LOOP, more=f"\n\nclass ToyNames:\n{method}")
    assert applicability(tmp_path, text, code="GC002", target="5.17") is Applicability.SAFE
    start = "    def forward(self, hidden_states, past_key_values"
    text = text.replace(start, f"{method}\n{start}")
    assert applicability(tmp_path, text, code="GC002", target="5.17") is Applicability.UNSAFE


@pytest.mark.parametrize("name", _CACHES)
def test_what_holds_something_from_the_start(name: str, tmp_path: Path) -> None:
    _check(tmp_path, f"{NUMBERED}\nself.cache = None", _CACHES[name], _LOOP, is_right=False)


@pytest.mark.parametrize("name", _BODIES)
def test_what_a_layer_writes_again(name: str, tmp_path: Path) -> None:
    _check(tmp_path, NUMBERED, _CACHE, _LOOP, is_right=False, body=_BODIES[name])


@pytest.mark.parametrize("is_right", [True, False])
def test_several_models_on_one_cache(tmp_path: Path, *, is_right: bool) -> None:
    stages = (
        _STAGES
        if not is_right
        else _STAGES.replace("[ToyModel(config) for _ in range(2)]", "[ToyModel(config)]")
    )
    _check(tmp_path, NUMBERED, _CACHE, _LOOP, is_right=is_right, more=stages)


def test_a_stack_that_runs_after_a_method_has_run_it(tmp_path: Path) -> None:
    path = tmp_path / "modeling_toy.py"
    loop = f"hidden_states = self.run(hidden_states, cache)\n{_LOOP}"
    path.write_text(_text(NUMBERED, _CACHE, loop), encoding="utf-8")
    rules = [rule for rule in all_rules() if "GC002" in rule.codes]
    result = check(Project(Settings(target_version=releases("5.17")), [path]), rules)
    assert result.problems == ()
    remedies = [each.remedy for each in result.findings]
    assert [isinstance(each, Fix) and each.applicability for each in remedies] == [Applicability.UNSAFE] * 2


def test_a_stack_that_is_none_of_those_that_were_followed(tmp_path: Path) -> None:
    stack = f"{NUMBERED}\nsetattr(self, 'order', nn.ModuleList([*self.layers, *self.layers]))"
    _check(tmp_path, stack, _CACHE, _LOOP.replace("self.layers", "self.order"), is_right=False)
