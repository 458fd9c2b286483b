"""Caches that a model is given, whatever its file imports, and what users of a model give as such."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path

import pytest

from gclint.code.project import Project
from gclint.finding import Applicability, Fix
from gclint.rule import all_rules
from gclint.run.check import check
from gclint.settings import Settings
from tests.decisions.toy import ATTENTION, FLAG, IMPORTS, NUMBERED, PROTECTED, block, model
from tests.toy_models import applicability, only_fix

_TAKES = "hidden_states, past_key_values=None, mask=None"
_CACHED = (
    "if past_key_values is not None:\n"
    "    past_key_values.update(hidden_states[:, None], hidden_states[:, None], self.layer_idx)\n"
)
_BODY = f"{_CACHED}return hidden_states + self.attention(hidden_states)"
_CALLS = {"GC002": "hidden_states, past_key_values", "GC305": "hidden_states, past_key_value=past_key_values"}


def _text(
    body: str = _BODY,
    *,
    code: str = "GC002",
    imports: str = "",
    call: str = "",
    given: str = "",
    more: str = "",
) -> str:
    """Write a model that gives its blocks a cache in the way that a rule reports."""
    takes = _TAKES
    if code == "GC305":
        takes = takes.replace("past_key_values", "past_key_value")
        body = body.replace("past_key_values", "past_key_value")
    loop = f"{given}\nfor layer in self.layers:\n    hidden_states = layer({call or _CALLS[code]})"
    return (
        f"{IMPORTS}{imports}{ATTENTION}"
        + block(body, base=PROTECTED, takes=takes, init="self.layer_idx = index")
        + model(loop, takes=_TAKES, init=f"{NUMBERED}\n{FLAG}", more=more)
    )


def remedy(folder: Path, text: str, others: Mapping[str, str], code: str = "GC002") -> str:
    """Return how safe the only fix of a rule is beside other files, if there is one."""
    path = folder / "modeling_toy.py"
    for name, written in {path.name: text, **others}.items():
        (folder / name).write_text(written, encoding="utf-8")
    rules = [rule for rule in all_rules() if code in rule.codes]
    result = check(Project(Settings(), [path], [folder]), rules)
    assert result.problems == ()
    (finding,) = result.findings
    return finding.remedy.applicability.value if isinstance(finding.remedy, Fix) else "none"


_DOUBLED = (
    f"{_CACHED}states = self.attention(hidden_states)\n"
    "return states if past_key_values is None else states * 2"
)
_IMPORTED = {
    "nothing": "",
    "the base class": "from transformers import Cache\n",
    "the package": "import transformers\n",
    "everything": "from transformers.cache_utils import *\n",
    "a class": "from transformers import DynamicCache\n",
}


@pytest.mark.parametrize("imported", _IMPORTED)
@pytest.mark.parametrize("code", _CALLS)
def test_a_cache_is_given_whatever_the_file_imports(code: str, imported: str, tmp_path: Path) -> None:
    imports = _IMPORTED[imported]
    harmful = _text(_DOUBLED, code=code, imports=imports)
    assert applicability(tmp_path, harmful, code=code) is Applicability.UNSAFE
    harmless = _text(code=code, imports=imports)
    assert applicability(tmp_path, harmless, code=code) is Applicability.SAFE


_JOINED = (
    "keys = self.attention(hidden_states)\n"
    "if past_key_values is not None:\n"
    "    keys = torch.cat([past_key_values[0], keys], dim=1){}\n"
    "return hidden_states + keys.mean(1, keepdim=True)"
)


_ITEM = "past_key_values[layer.layer_idx] if past_key_values is not None else None"


@pytest.mark.parametrize("more", ["", " * past_key_values.is_compileable"])
def test_a_layers_tuple_is_never_empty(more: str, tmp_path: Path) -> None:
    text = _text(_JOINED.format(" * 2" + more), call=f"hidden_states, {_ITEM}")
    assert (applicability(tmp_path, text, code="GC002") is Applicability.SAFE) == (not more)
    whole = _text(_JOINED.format(" * 2" + more))
    assert applicability(tmp_path, whole, code="GC002") is Applicability.UNSAFE


_CALLED = "hidden_states, past_key_values, {}"
_BEHIND = {
    "a container by its annotation": (
        "bias: tuple[torch.Tensor] = None",
        ("", "self.embed(hidden_states)"),
        ("", "torch.ones(8)"),
    ),
    "in place": (
        "mask=None",
        ("mask = torch.ones(8)\nmask.add_(self.embed(hidden_states))", "mask"),
        ("mask = torch.ones(8)\nmask.add_(1)", "mask"),
    ),
    "a static method": (
        "mask=None",
        ("", "self.gate(self.embed(hidden_states))"),
        ("", "self.gate(torch.ones(8))"),
    ),
}
_GATE = "@staticmethod\ndef gate(states):\n    return torch.sigmoid(states)\n\n"


@pytest.mark.parametrize("what", _BEHIND)
def test_what_stands_behind_a_cache_becomes_a_keyword(what: str, tmp_path: Path) -> None:
    takes, *ways = _BEHIND[what]
    for (given, value), expected in zip(ways, (Applicability.UNSAFE, Applicability.SAFE), strict=True):
        text = _text(given=given, call=_CALLED.format(value), more=_GATE).replace(
            "mask=None):", f"{takes}):", 1
        )
        text = text.replace("self.layers =", "self.embed = nn.Linear(8, 8)\n        self.layers =")
        fix = only_fix(tmp_path, text, code="GC002")
        assert fix.applicability is expected
        assert (fix.reason is None) or "is then passed by keyword" in fix.reason


_OUTER = (
    "{imported}\nimport torch\nfrom torch import nn\n"
    "from transformers import DynamicCache, PreTrainedModel\n\n\n"
    "{before}class ToyOuter(PreTrainedModel):\n"
    "    def __init__(self, config):\n"
    "        super().__init__(config)\n"
    "        self.model = {base}(config)\n"
    "        self.proj = nn.Linear(8, 8)\n"
    "        self.prefix = nn.Parameter(torch.ones(3, 2, 4, 8))\n\n"
    "    def forward(self, hidden_states, mask=None, past_key_values=None):\n"
    "        return self.model(hidden_states, {given})\n"
)
_IMPORTS_OF_A_MODEL = {
    "by name": ("from modeling_toy import ToyModel", "ToyModel"),
    "by another name": ("from modeling_toy import ToyModel as Base", "Base"),
    "with its module": ("import modeling_toy", "modeling_toy.ToyModel"),
    "with its module under another name": ("import modeling_toy as toy", "toy.ToyModel"),
}


def _outer(way: str, given: str, before: str = "") -> dict[str, str]:
    imported, base = _IMPORTS_OF_A_MODEL[way]
    return {"user.py": _OUTER.format(imported=imported, base=base, given=given, before=before)}


@pytest.mark.parametrize("way", _IMPORTS_OF_A_MODEL)
def test_what_another_file_gives_as_a_cache_or_beside_it(way: str, tmp_path: Path) -> None:
    joined = _text(
        _JOINED.format(""), given="pasts = past_key_values or [None] * 3", call="hidden_states, past"
    )
    joined = joined.replace("for layer in self.layers", "for layer, past in zip(self.layers, pasts)")
    given = "past_key_values={}"
    assert remedy(tmp_path, joined, _outer(way, given.format("past_key_values"))) == "safe"
    assert remedy(tmp_path, joined, _outer(way, given.format("list(self.prefix)"))) == "none"
    masked = _text(call="hidden_states, past_key_values, mask")
    assert remedy(tmp_path, masked, _outer(way, "mask=mask")) == "safe"
    assert remedy(tmp_path, masked, _outer(way, "mask=self.proj(hidden_states)")) == "unsafe"


_HEIR = (
    "import modeling_toy\nfrom torch import nn\n\n\nclass ToyHeir(modeling_toy.ToyLayer):\n"
    "    def forward(self, hidden_states, {cache}=None, mask=None):\n"
    "        output = super().forward(hidden_states, {cache}={cache}, mask=mask)\n"
    "        return output{more}\n\n\n"
    "class ToyModel(modeling_toy.ToyModel):\n"
    "    def __init__(self, config):\n"
    "        super().__init__(config)\n"
    "        self.layers = nn.ModuleList([ToyHeir(config, i) for i in range(config.depth)])\n"
)


@pytest.mark.parametrize("code", _CALLS)
def test_a_block_of_another_file_in_the_stack(code: str, tmp_path: Path) -> None:
    cache = "past_key_values" if code == "GC002" else "past_key_value"
    for more, expected in ((f" * (1 if {cache} is None else 2)", "unsafe"), (" * 2", "safe")):
        others = {"user.py": _HEIR.format(cache=cache, more=more)}
        assert remedy(tmp_path, _text(code=code), others, code) == expected


_TWICE = (
    "class ToyCache(DynamicCache):\n"
    "    def update(self, keys, values, layer_idx, *args, **kwargs):\n"
    "        return keys * 2, values * 2\n\n\n"
)


@pytest.mark.parametrize("way", _IMPORTS_OF_A_MODEL)
def test_a_cache_of_the_project_that_another_file_gives(way: str, tmp_path: Path) -> None:
    for kind, expected in (("ToyCache", "unsafe"), ("DynamicCache", "safe")):
        others = _outer(way, f"past_key_values={kind}()", _TWICE)
        assert remedy(tmp_path, _text(), others) == expected


_STEPS = {
    "a function": "def step(model, inputs):\n{}",
    "a method of a trainer": (
        "class ToyTrainer(Trainer):\n    def compute_loss(self, model, inputs, return_outputs=False):\n{}"
    ),
    "a function that makes the model": "def step(inputs):\n    model = ToyModel(inputs)\n{}",
}
_STEP = (
    "        cache = DynamicCache()\n"
    "        states = model(inputs, past_key_values=cache)\n"
    "        return states * {}\n"
)


@pytest.mark.parametrize("what", _STEPS)
def test_what_runs_a_model_that_it_gets_and_reads_the_cache(what: str, tmp_path: Path) -> None:
    imports = "from modeling_toy import ToyModel\nfrom transformers import DynamicCache, Trainer\n\n\n"
    for read, expected in (("cache.get_seq_length()", "unsafe"), ("inputs.get_seq_length()", "safe")):
        body = _STEP.format(read)
        step = _STEPS[what].format(
            body if "class" in _STEPS[what] else textwrap.indent(textwrap.dedent(body), " " * 4)
        )
        assert remedy(tmp_path, _text(), {"user.py": imports + step}) == expected


_GUARDED = "hidden_states, past_key_value={}"
_NOTED = "def noted(self, past):\n    torch.rand(1)\n    return past\n\n"
_EVALUATED = {
    "a method": ("self.noted(past_key_values)", "unsafe"),
    "a list": ("[past_key_values].pop()", "unsafe"),
    "a walrus within": ("past_key_values if (seen := True) else None", "none"),
    "an item": ("past_key_values[0] if past_key_values is not None else None", "safe"),
    "an attribute": ("past_key_values if self.config.use_cache else None", "safe"),
}


@pytest.mark.parametrize("what", _EVALUATED)
def test_the_guard_leaves_out_what_it_guards(what: str, tmp_path: Path) -> None:
    value, expected = _EVALUATED[what]
    text = _text(code="GC305", call=_GUARDED.format(value), more=_NOTED)
    assert remedy(tmp_path, text, {}, "GC305") == expected


_BORROWING = "\n\nclass ToyBorrower(PreTrainedModel):\n    forward = {}.forward\n"
_SUBCLASS = (
    "from modeling_toy import ToyModel\n\n\nclass ToyWide(ToyModel):\n    def __init__(self, config):\n{}"
)
_SETTING = (
    "from modeling_toy import ToyModel\n\n\n"
    "def make(config):\n    model = ToyModel(config)\n{}    return model\n"
)
_TRAIN = "def {}(self, mode=True):\n    super().train(mode)\n    return self\n\n"
_FLAGS = {
    "an heir that sets none": (
        ("", _SUBCLASS.format("        pass\n")),
        ("", _SUBCLASS.format("        super().__init__(config)\n")),
    ),
    "another class with the method": (
        (_BORROWING.format("ToyModel"), ""),
        (_BORROWING.format("ToyAttention"), ""),
    ),
    "one that is set alone": (
        ("", _SETTING.format("    model.gradient_checkpointing = True\n")),
        ("", _SETTING.format("    model.gradient_checkpointing = False\n")),
    ),
    "the mode of its parts": ((_TRAIN.format("train"), ""), (_TRAIN.format("unfreeze"), "")),
}


@pytest.mark.parametrize("what", _FLAGS)
def test_the_guard_asks_the_object_and_not_its_blocks(what: str, tmp_path: Path) -> None:
    for (more, other), expected in zip(_FLAGS[what], ("unsafe", "safe"), strict=True):
        is_method = more.startswith("def")
        text = _text(code="GC305", more=more if is_method else "") + ("" if is_method else more)
        assert remedy(tmp_path, text, {"user.py": other}, "GC305") == expected


_SHORTER = (
    "states = hidden_states + self.attention(hidden_states)\n"
    "return (states, states.detach()) if use_cache else (states,)"
)
_UNPACKED = {
    "hidden_states, *rest = {}\npresent = rest[0] if use_cache else None": "unsafe",
    "hidden_states, *rest = {}\nif use_cache:\n    (present,) = rest": "unsafe",
    "*rest, hidden_states = {}": "unsafe",
    "hidden_states, *rest = {}": "safe",
    "hidden_states, *rest = {}\npresent = rest[0] if len(rest) > 0 else None": "safe",
}


@pytest.mark.parametrize("statements", _UNPACKED)
def test_a_starred_target_gets_what_the_others_leave(statements: str, tmp_path: Path) -> None:
    takes = "hidden_states, mask=None, use_cache=False"
    inner = statements.format("layer(hidden_states, mask, use_cache)").replace("\n", "\n    ")
    text = (
        f"{IMPORTS}{ATTENTION}"
        + block(_SHORTER, base=PROTECTED, takes=takes)
        + model(f"for layer in self.layers:\n    {inner}", takes=takes, init=f"{NUMBERED}\n{FLAG}")
    )
    assert remedy(tmp_path, text, {}) == _UNPACKED[statements]
