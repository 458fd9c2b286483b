"""What blocks run may be replaced or hooked into at a distance, and settings changed around them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from gclint.finding import Applicability
from tests.decisions.toy import LOOP, STACK, block, model, toy
from tests.toy_models import applicability, only_fix

_BEFORE = """
import sys
from unittest import mock
import torch.nn.functional as F
SEEN = []


def noisy(x, *more, **options):
    SEEN.append(1)
    return x


def helper(x):
    return x


class Part(nn.Module):
    def forward(self, x):
        return self.step(x)

    def step(self, x):
        return x


"""
_BODY = """
hidden_states = F.dropout(helper(self.part(hidden_states)))
return hidden_states + self.attention(hidden_states)
"""
_REPLACING = (
    "globals()['helper'] = noisy",
    "def patch():\n    globals().update(helper=noisy)",
    "sys.modules[__name__].helper = noisy",
    "exec('helper = noisy')",
    "helper.__code__ = noisy.__code__",
    "Part.step = lambda self, x: noisy(x)",
    "Part._call_impl = lambda self, x: noisy(x)",
    "for kind in nn.Module.__subclasses__():\n    kind.step = lambda self, x: noisy(x)",
    "F.dropout = noisy",
    "def patch():\n    nn.functional.dropout = noisy",
    "setattr(torch.nn.functional, 'dropout', noisy)",
    "F.__dict__['dropout'] = noisy",
    "vars(F).update(dropout=noisy)",
    "mock.patch('torch.nn.functional.dropout', noisy).start()",
    "mock.patch.object(F, 'dropout', noisy).start()",
    "torch.Tensor.__add__ = noisy",
    "torch.utils.checkpoint.checkpoint = noisy",
    "nn.modules.module.register_module_forward_hook(noisy)",
    "from torch.nn.modules.module import register_module_forward_hook as hook\nhook(noisy)",
    "nn.modules.module._global_forward_hooks[0] = noisy",
    "def attach(each):\n    each.register_forward_hook(noisy)",
)
_OTHERWISE = (
    "Part.other = noisy",
    "F.other = noisy",
    "noisy.calls = 0",
    "torch.backends.cudnn.benchmark = True",
    "DROPOUT = F.dropout",
    "class Other(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    "        self.register_forward_hook(noisy)",
)
_ELSEWHERE = {
    "a class's method": "from .modeling_toy import Part\n\nPart.step = print\n",
    "a function of the module": "from . import modeling_toy\n\nmodeling_toy.helper = print\n",
    "by the table of modules": "import sys\n\nsys.modules['modeling_toy'].helper = print\n",
}
_SETTING = (
    "torch.set_default_dtype(torch.float64)",
    "torch.backends.cuda.enable_flash_sdp(False)",
    "torch.backends.cudnn.deterministic = True",
    "self.eval()",
    "torch.autocast('cpu').__enter__()",
    "change()",
)
_CHANGE = "def change():\n    torch.set_default_dtype(torch.float64)\n\n\n"


def _applicability(
    folder: Path, before: str = "", after: str = "", loop: str = LOOP, others: Mapping[str, str] | None = None
) -> Applicability:
    layer = block(_BODY, init="self.part = Part()")
    return applicability(folder, toy(_BEFORE + before, layer, model(loop, init=STACK), after), others)


@pytest.mark.parametrize("code", _REPLACING)
def test_what_is_replaced_is_a_doubt(code: str, tmp_path: Path) -> None:
    assert _applicability(tmp_path, after=f"\n\n{code}\n") is Applicability.UNSAFE


def test_what_is_not_is_none(tmp_path: Path) -> None:
    after = "\n\n".join(("", *_OTHERWISE, ""))
    assert _applicability(tmp_path, after=after) is Applicability.SAFE


@pytest.mark.parametrize("code", _ELSEWHERE)
def test_what_another_file_replaces_is_a_doubt(code: str, tmp_path: Path) -> None:
    others = {"__init__.py": "", "patches.py": _ELSEWHERE[code]}
    assert _applicability(tmp_path, others=others) is Applicability.UNSAFE


def test_what_another_file_has_of_its_own_is_none(tmp_path: Path) -> None:
    text = "from .modeling_toy import Part\n\n\nclass Other(Part):\n    pass\n\n\nOther.step = Part.step\n"
    assert _applicability(tmp_path, others={"__init__.py": "", "other.py": text}) is Applicability.SAFE


def test_a_table_matters_where_it_is_named_or_where_what_it_holds_is_run(tmp_path: Path) -> None:
    text = "from transformers.{} import {table}\n\n{table}[0] = print\n"
    for module, table, said in (
        ("pytorch_utils", "ALL_LAYERNORM_LAYERS", Applicability.SAFE),
        ("activations", "ACT2FN", Applicability.UNSAFE),
    ):
        others = {
            "__init__.py": "from . import modeling_toy, other",
            "other.py": text.format(module, table=table),
        }
        assert _applicability(tmp_path, others=others) is said


def test_of_a_hundred_places_only_the_first_are_told(tmp_path: Path) -> None:
    patches = "".join(f"modeling_toy.helper = len{number}\n" for number in range(100))
    others = {"__init__.py": "", "patches.py": f"from . import modeling_toy\n\n{patches}"}
    layer = block(_BODY, init="self.part = Part()")
    fix = only_fix(tmp_path, toy(_BEFORE, layer, model(LOOP, init=STACK)), others)
    assert (fix.reason or "").count(" replaces something ") == 3


@pytest.mark.parametrize("code", _SETTING)
def test_settings_that_are_changed_around_a_loop_are_a_doubt(code: str, tmp_path: Path) -> None:
    found = _applicability(tmp_path, before=_CHANGE, loop=f"{LOOP}{code}\n")
    assert found is Applicability.UNSAFE


def test_settings_that_are_changed_where_nothing_runs_are_none(tmp_path: Path) -> None:
    loop = f"kind = torch.get_default_dtype()\n{LOOP}"
    assert _applicability(tmp_path, before=_CHANGE, loop=loop, after="\n\nchange()\n") is Applicability.SAFE


_NOISE = """
import torch


def noisy(x, real=torch.tanh, seen=[]):
    seen.append(x)
    return real(x) * len(seen)


"""
_AT_ONCE, _LATER = "torch.tanh = noisy\n", "def prepare():\n    torch.tanh = noisy\n"


@pytest.mark.parametrize(
    ("package", "patch", "expected"),
    [
        ("transformers", _AT_ONCE, Applicability.UNSAFE),
        ("transformers", _LATER, Applicability.SAFE),
        ("toys", _AT_ONCE, Applicability.UNSAFE),
        ("toys", _LATER, Applicability.UNSAFE),
    ],
)
def test_only_functions_of_the_library_itself_are_relied_on(
    package: str, patch: str, expected: Applicability, tmp_path: Path
) -> None:
    body = "return torch.tanh(hidden_states) + self.attention(hidden_states)"
    text = toy("from . import noise\n", block(body), model(LOOP, init=STACK))
    base = "from torch import nn\n\n\nclass PreTrainedModel(nn.Module):\n    pass\n"
    layer = base.replace("PreTrainedModel", "GradientCheckpointingLayer")
    files = {
        "__init__.py": "",
        "modeling_utils.py": base,
        "modeling_layers.py": layer,
        "noise.py": _NOISE + patch,
    }
    folder = tmp_path / package
    folder.mkdir()
    assert applicability(folder, text, files) is expected
