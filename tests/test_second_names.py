"""What blocks run is replaced, or asked for, under other names or in farther files, and what is alike."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from gclint.finding import Applicability
from tests.decisions.toy import LOOP, PROTECTED, STACK, block, model, toy
from tests.toy_models import applicability

_BEFORE = """
import contextlib
import operator
import torch.nn.functional as F
from transformers.activations import ACT2FN
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS, AttentionInterface
COUNTED = []


def counting(x, *more):
    COUNTED.append(1)
    return x


def scale(x):
    return x * 2


class Own:
    pass


"""
_BODY = """
attend = ALL_ATTENTION_FUNCTIONS["sdpa"]
hidden_states = torch.abs(self.act(F.silu(scale(hidden_states)))).tanh() * abs(-2)
return hidden_states + self.attention(hidden_states)
"""
_REPLACING = {
    "a second name": ("other = F\nother.silu = counting", "other = Own()\nother.silu = counting"),
    "a walrus": (
        "if (other := F):\n    other.silu = counting",
        "if (other := F):\n    other.more = counting",
    ),
    "a choice": ("other = F if COUNTED else torch\nother.silu = counting", "other = F if COUNTED else torch"),
    "unpacking": ("other, more = F, 1\nother.silu = counting", "other, more = F, 1\nother.more = counting"),
    "an item": ("{'x': F}['x'].silu = counting", "{'x': F}['x'].more = counting"),
    "an operand": ("(F or torch).silu = counting", "(F or torch).more = counting"),
    "a parameter": (
        "def install(x):\n    x.silu = counting\n\n\ninstall(F)",
        "def install(x):\n    x.more = counting\n\n\ninstall(F)",
    ),
    "an attribute of a class": (
        "class Patch:\n    kept = F\n    def start(self):\n        self.kept.silu = counting",
        "class Patch:\n    def start(self):\n        self.silu = counting",
    ),
    "a module by its name": (
        "getattr(torch.nn, 'functional').silu = counting",
        "getattr(torch.nn, 'functional').silu",
    ),
    "a special method": ("F.__setattr__('silu', counting)", "F.__getattribute__('silu')"),
    "a setter that is handed on": (
        "list(map(setattr, [F], ['silu'], [counting]))",
        "list(map(getattr, [F], ['silu']))",
    ),
    "a class": ("T = torch.Tensor\nT.tanh = counting", "T = torch.Tensor\nT.tanh"),
    "the call of a class": (
        "Norm = nn.LayerNorm\nNorm.__call__ = counting",
        "Norm = nn.LayerNorm\nNorm.forward",
    ),
    "a loop over classes": (
        "for T in (torch.Tensor,):\n    T.tanh = counting",
        "for T in (torch.Tensor,):\n    T.tanh",
    ),
    "a lambda": (
        "(lambda x: setattr(x, 'silu', counting))(F)",
        "(lambda x: setattr(x, 'more', counting))(F)",
    ),
    "a match": (
        "match F:\n    case other:\n        other.silu = counting",
        "match F:\n    case other:\n        other.more = counting",
    ),
    "the names of Python": ("__builtins__['abs'] = counting", "__builtins__['abs']"),
    "a far function": (
        "other = torch.utils.checkpoint\nother.checkpoint = counting",
        "other = torch.utils.checkpoint\nother.checkpoint",
    ),
    "an operator of a table": ("ACT2FN |= {'gelu': counting}", "{'gelu': counting, 'relu': ACT2FN['relu']}"),
    "a name of the module": ("globals()['ACT2FN']['gelu'] = counting", "ACT2FN['gelu']"),
    "a class that registers": (
        "Other = AttentionInterface\nOther.register('sdpa', counting)",
        "Other = Own\nOther.mark = counting",
    ),
    "a method that registers": (
        "register = AttentionInterface.register\nregister('sdpa', counting)",
        "register = COUNTED.append\nregister('sdpa')",
    ),
    "an heir that registers": ("class Mine(AttentionInterface):\n    pass", "class Mine(Own):\n    pass"),
    "a registry that is given": ("counting(AttentionInterface)", "counting(Own)"),
}
"""What the file of the blocks does beside them."""
_SILENT = "import torch\nimport torch.nn.functional as F\nfrom . import modeling_toy\n\n"
_ELSEWHERE = {
    "a parameter": (
        "def install(x):\n    x.silu = print\n\n\ninstall(F)\n",
        "def install(x):\n    x.more = print\n\n\ninstall(F)\n",
    ),
    "a class": (
        "import torch.nn as nn\nNorm = nn.LayerNorm\nNorm.forward = print\n",
        "import torch.nn as nn\nNorm = nn.LayerNorm\nNorm.forward\n",
    ),
    "a class of a loop": (
        "for kind in (modeling_toy.ToyAttention,):\n    kind.forward = print\n",
        "for kind in (modeling_toy.ToyAttention,):\n    kind.other = print\n",
    ),
    "a module of a loop": (
        "for x in (modeling_toy,):\n    x.scale = print\n",
        "for x in (modeling_toy,):\n    x.further = print\n",
    ),
    "a part's class": (
        "Kind = modeling_toy.ToyActivation\nKind.bend = print\n",
        "Kind = modeling_toy.ToyActivation\nKind.other = print\n",
    ),
    "a registry": (
        "from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS\n"
        "table = ALL_ATTENTION_FUNCTIONS\ntable['sdpa'] = print\n",
        "from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS\n"
        "table = {}\ntable['sdpa'] = ALL_ATTENTION_FUNCTIONS['sdpa']\n",
    ),
}
"""What another file does that imports that of the blocks."""
_PATCHING = "import torch.nn.functional as F\n\nF.silu = print\n"
_FAR = {
    "the package itself": ({"__init__.py": _PATCHING}, {"__init__.py": ""}),
    "a file of the package": (
        {"__init__.py": "from . import patching\n", "patching.py": _PATCHING},
        {"__init__.py": "", "patching.py": _PATCHING},
    ),
    "the second file": (
        {"__init__.py": "", "utils.py": "from . import patching\n", "patching.py": _PATCHING},
        {"__init__.py": "", "utils.py": "", "patching.py": _PATCHING},
    ),
}
_MANY = {f"other_{each}.py": f"from . import modeling_toy\nNUMBER = {each}\n" for each in range(62)}
_HOOK = """
def doubled(module, args):
    return (args[0] * 2, *args[1:])


"""
_KEPT = "def kept(module, args, output):\n    return output\n\n\n"
_AFTER = f"class Recorder:\n    def hook(self, module, args, output):\n        return args[0]\n\n\n{_KEPT}"
_HOOKING = {
    "a class of the file": (
        "class Hooks:\n    def __init__(self, layers):\n        for layer in layers:\n"
        "            layer.register_forward_pre_hook(doubled)",
        "class Hooks:\n    def __init__(self, layers):\n        self.layers = layers",
    ),
    "a method by its name": (
        "def install(x):\n    getattr(x, 'register_forward_pre_hook')(doubled)",
        "def install(x):\n    getattr(x, 'register_buffer')('x', None)",
    ),
    "a method by a name that is put together": (
        "def install(x):\n    getattr(x, 'register_forward_' + 'pre_hook')(doubled)",
        "def install(x):\n    getattr(x, 'register_' + 'buffer')('x', None)",
    ),
    "a method by a name of two halves": (
        "def install(x):\n    getattr(x, 'register_' + 'forward_hook')(print)",
        "def install(x):\n    getattr(x, 'register_' + 'module')('x', None)",
    ),
    "a method of an object": (
        f"{_AFTER}def install(x):\n    x.register_forward_hook(Recorder().hook)",
        f"{_AFTER}def install(x):\n    x.register_forward_hook(kept)",
    ),
    "a function by another name": (
        f"{_AFTER}other = print\n\n\ndef install(x):\n    x.register_forward_hook(hook=other)",
        f"{_AFTER}other = print\n\n\ndef install(x):\n    x.register_forward_hook(hook=kept)",
    ),
    "an inner function": (
        "def install(x):\n    def hook(module, args, output):\n        return args[0]\n"
        "    x.register_forward_hook(hook)",
        "def install(x):\n    def hook(module, args, output):\n        return output\n"
        "    x.register_forward_hook(hook)",
    ),
    "a function that takes whatever there is": (
        "def install(x):\n    x.register_forward_hook(lambda *more: more[1][0])",
        "def install(x):\n    x.register_forward_hook(lambda module, args, *more: more[0])",
    ),
    "a function that looks around": (
        "def install(x):\n    x.register_forward_hook(lambda m, args, output: locals()['args'][0])",
        "def install(x):\n    x.register_forward_hook(lambda m, args, output: globals()['kept'])",
    ),
    "a decorated function": (
        f"@noted\n{_KEPT}def install(x):\n    x.register_forward_hook(kept)",
        f"{_KEPT}def install(x):\n    x.register_forward_hook(kept)",
    ),
    "the method itself": (
        f"{_KEPT}def install(x):\n    for each in map(x.register_forward_hook, [print]):\n        pass",
        f"{_KEPT}def install(x):\n    for each in map(x.register_buffer, ['x']):\n        pass",
    ),
    "a hook on gradients": (
        "def install(x):\n    x.register_full_backward_hook(print)",
        "def install(x):\n    x.register_hook(print)",
    ),
    "a hook on all gradients": (
        "nn.modules.module.register_module_full_backward_hook(print)",
        "nn.modules.module.register_module_buffer_registration_hook(print)",
    ),
}
_ASKING = {
    "at once": (
        "ASKED = hasattr(ToyLayer, 'gradient_checkpointing')",
        "ASKED = hasattr(ToyLayer, 'training')",
    ),
    "in the body of a class": (
        "class More:\n    asked = hasattr(ToyLayer, 'gradient_checkpointing')",
        "class More:\n    asked = getattr(Own, 'gradient_checkpointing', None)",
    ),
    "a getter": (
        "ASKED = operator.attrgetter('gradient_checkpointing')(ToyLayer)",
        "ASKED = operator.attrgetter('training')(ToyLayer)",
    ),
    "a method": (
        "class ToyOther(ToyModel):\n    def _init_weights(self, module):\n"
        "        if hasattr(module, 'gradient_checkpointing'):\n            module.scale = 2",
        "class ToyOther(ToyModel):\n    def _init_weights(self, module):\n"
        "        if hasattr(self, 'gradient_checkpointing'):\n            module.scale = 2",
    ),
    "settings": (
        "def switched(module):\n    return getattr(module, 'gradient_checkpointing', False)",
        "def switched(config):\n    return getattr(config, 'gradient_checkpointing', False)",
    ),
    "an error": (
        "def switched(x):\n    try:\n        return x.gradient_checkpointing\n    except AttributeError:\n"
        "        return False",
        "def switched(x):\n    return x.gradient_checkpointing",
    ),
    "a switch": (
        "def switch(x):\n    if hasattr(x, 'gradient_checkpointing'):\n"
        "        x.gradient_checkpointing = False\n        x.other = 1",
        "def switch(x):\n    if hasattr(x, 'gradient_checkpointing'):\n"
        "        x.gradient_checkpointing = False",
    ),
    "a pattern": (
        "match ToyLayer:\n    case object(gradient_checkpointing=False):\n        ASKED = 1",
        "match ToyLayer:\n    case object(training=False):\n        ASKED = 1",
    ),
    "a special method": (
        "def asked(x, name):\n    return object.__getattribute__(x, name)\n\n\n"
        "ASKED = asked(ToyLayer, 'gradient_checkpointing')",
        "def asked(x, name):\n    return object.__getattribute__(x, name)\n\n\n"
        "ASKED = asked(ToyLayer, 'training')",
    ),
}
_ACTIVATION = """
class ToyActivation(nn.Module):
    def forward(self, x):
        return self.bend(x)

    def bend(self, x):
        return x


"""


def _applicability(folder: Path, after: str = "", others: Mapping[str, str] | None = None) -> Applicability:
    layer = block(_BODY, init="self.act = ToyActivation()")
    text = toy(_BEFORE, _ACTIVATION, layer, model(LOOP, init=STACK), f"\n\n{after}\n")
    folder.mkdir(exist_ok=True)
    return applicability(folder, text, others)


@pytest.mark.parametrize("name", _REPLACING)
def test_what_is_replaced_under_another_name(name: str, tmp_path: Path) -> None:
    found = [_applicability(tmp_path, each) for each in _REPLACING[name]]
    assert found == [Applicability.UNSAFE, Applicability.SAFE]


@pytest.mark.parametrize("name", _ELSEWHERE)
def test_what_another_file_replaces_under_another_name(name: str, tmp_path: Path) -> None:
    found = [
        _applicability(tmp_path, others={"__init__.py": "", "patching.py": _SILENT + each})
        for each in _ELSEWHERE[name]
    ]
    assert found == [Applicability.UNSAFE, Applicability.SAFE]


@pytest.mark.parametrize("name", _FAR)
def test_what_a_farther_file_replaces(name: str, tmp_path: Path) -> None:
    used = "from . import utils" if "utils.py" in _FAR[name][0] else ""
    found = [_applicability(tmp_path / str(index), used, each) for index, each in enumerate(_FAR[name])]
    assert found == [Applicability.UNSAFE, Applicability.SAFE]


@pytest.mark.parametrize(
    ("patching", "expected"),
    [("F.silu = print\n", Applicability.UNSAFE), ("F.more = print\n", Applicability.SAFE)],
)
def test_what_one_of_many_files_replaces(patching: str, expected: Applicability, tmp_path: Path) -> None:
    others = {"__init__.py": "", **_MANY, "patching.py": _SILENT + patching}
    assert _applicability(tmp_path, others=others) is expected


@pytest.mark.parametrize("name", _HOOKING)
def test_hooks_that_read_arguments(name: str, tmp_path: Path) -> None:
    loop = "\nfor layer in self.layers:\n    hidden_states = layer(hidden_states=hidden_states)\n"
    layer = block(base=PROTECTED)
    found = [
        applicability(tmp_path, toy(_HOOK, layer, model(loop), f"\n\n{each}\n"), code="GC003")
        for each in _HOOKING[name]
    ]
    assert found == [Applicability.UNSAFE, Applicability.SAFE]


def test_hooks_of_a_file_that_is_imported_by_a_relative_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = "\nfor layer in self.layers:\n    hidden_states = layer(hidden_states=hidden_states)\n"
    text = toy(block(base=PROTECTED), model(loop), imports="from .hooks import install\n")
    monkeypatch.chdir(tmp_path)
    found = [
        applicability(Path(), text, {"__init__.py": "", "hooks.py": f"{_HOOK}{each}\n"}, code="GC003")
        for each in (
            "def install(layers):\n    for each in layers:\n        each.register_forward_pre_hook(doubled)",
            "def install(layers):\n    for each in layers:\n        each.register_buffer('x', None)",
        )
    ]
    assert found == [Applicability.UNSAFE, Applicability.SAFE]


def test_hooks_of_a_file_that_is_imported_from_another_folder(tmp_path: Path) -> None:
    loop = "\nfor layer in self.layers:\n    hidden_states = layer(hidden_states=hidden_states)\n"
    text = toy(block(base=PROTECTED), model(loop), imports="from tools import install\n")
    (tmp_path / "tools").mkdir()
    found = [
        applicability(
            tmp_path,
            text,
            {"tools/__init__.py": "from .hooks import install\n", "tools/hooks.py": f"{_HOOK}{each}\n"},
            code="GC003",
        )
        for each in (
            "def install(layer):\n    layer.register_forward_pre_hook(doubled)",
            "def install(layer):\n    layer.register_buffer('x', None)",
        )
    ]
    assert found == [Applicability.UNSAFE, Applicability.SAFE]


@pytest.mark.parametrize("name", _ASKING)
def test_what_asks_for_the_base_class(name: str, tmp_path: Path) -> None:
    found = [_applicability(tmp_path, each) for each in _ASKING[name]]
    assert found == [Applicability.UNSAFE, Applicability.SAFE]


@pytest.mark.parametrize("name", ["settings", "an error"])
def test_what_asks_for_it_in_another_file(name: str, tmp_path: Path) -> None:
    found = [
        _applicability(tmp_path, others={"__init__.py": "", "asking.py": _SILENT + each})
        for each in _ASKING[name]
    ]
    assert found == [Applicability.UNSAFE, Applicability.SAFE]
