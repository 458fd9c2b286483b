"""What gclint is known to get wrong, as tests that fail: the list may only become shorter.

Each test says what should be, and fails today for the reason in its mark. Whoever mends one removes the
mark: it is strict, so a test that begins to pass fails the run. No new defect is accepted by adding it here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from gclint.code.project import Project
from gclint.finding import Finding
from gclint.rule import all_rules
from gclint.run.check import check
from gclint.settings import Settings
from tests.cache.shell import run

_ONE_READING = pytest.mark.xfail(strict=True, reason="one reading")
_IMPORTS = """\
import torch
from torch import nn
from transformers import PreTrainedModel
from transformers.modeling_layers import GradientCheckpointingLayer

"""
_MODEL = """
class {prefix}Model(PreTrainedModel):
    supports_gradient_checkpointing = True

    def __init__(self, config):
        super().__init__(config)
        self.layers = nn.ModuleList([{prefix}Layer(config) for _ in range(4)])
        self.embed = nn.Conv2d(3, 4, 4)
        self.patches = Patches(config)

    def forward(self, x, flag=None):
{body}
        return x
"""
_LOOP = """\
        for layer in self.layers:
            x = layer(x)"""
_ATTENTION = """\
class {prefix}Layer({base}):
    def __init__(self, config):
        super().__init__()
        self.attention = nn.MultiheadAttention(4, 4)
        self.cache = None

    def forward(self, x, grid=None):
{body}
        return self.attention(x, x, x)[0]


class Patches(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.projection = nn.Conv2d(3, 4, 4)

    def forward(self, pixels):
        x = self.projection(pixels)
        _, _, height, width = x.shape
        return {returned}
"""


def _text(
    *, base: str = "nn.Module", block: str = "pass", returned: str = "x", loop: str = _LOOP, prefix: str = "A"
) -> str:
    body = "\n".join(" " * 8 + line for line in block.splitlines())
    layer = _ATTENTION.format(prefix=prefix, base=base, body=body, returned=returned)
    return _IMPORTS + layer + _MODEL.format(prefix=prefix, body=loop)


@pytest.fixture
def findings(tmp_path: Path) -> Callable[..., tuple[Finding, ...]]:
    """Return a function that writes files, given by name and text, and returns their findings."""

    def found(files: dict[str, str]) -> tuple[Finding, ...]:
        for name, text in files.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text, encoding="utf-8")
        return check(Project(Settings(), [tmp_path / name for name in files]), all_rules()).findings

    return found


_Findings = Callable[[dict[str, str]], tuple[Finding, ...]]


def _verdicts(found: tuple[Finding, ...]) -> list[tuple[str, str, str, str | None]]:
    """Return what findings say, without their places, and the kinds of their fixes."""
    return [
        (
            each.code,
            each.symbol,
            each.message,
            None if each.fix is None else each.fix.applicability.name,
        )
        for each in found
    ]


# -- comments and docstrings


@pytest.mark.parametrize(
    "words",
    [
        "# unlike nn.BatchNorm1d(4)",
        "# self.gradient_checkpointing",
        '"""There is no batch_norm(x)."""',
    ],
)
@pytest.mark.parametrize("place", ["class", "method"])
def test_words_do_not_decide_the_kind_of_a_fix(findings: _Findings, words: str, place: str) -> None:
    header = "class ALayer(nn.Module):\n"
    text = (
        _text(block=f"{words}\npass")
        if place == "method"
        else _text().replace(header, f"{header}    {words}\n")
    )
    assert [fix for *_, fix in _verdicts(findings({"modeling_a.py": text}))] == ["SAFE"]


# -- flags of other models

_LEGACY = """\
        for layer in self.layers:
            if self.gradient_checkpointing and self.training:
                x = torch.utils.checkpoint.checkpoint(layer, x, use_reentrant=False)
            else:
                x = layer(x)"""
_ENCODER = _MODEL.replace("{prefix}Model(PreTrainedModel)", "{prefix}Encoder(nn.Module)").replace(
    "    supports_gradient_checkpointing = True\n\n", ""
)
_HOLDER = """

class AModel(PreTrainedModel):
    supports_gradient_checkpointing = True

    def __init__(self, config):
        super().__init__(config)
        self.encoder = AEncoder(config)

    def forward(self, x):
        return self.encoder(x)
"""
_OTHER = """\
import torch


class BModel(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = torch.nn.Linear(4, 4)


"""


@_ONE_READING
@pytest.mark.parametrize(
    "script",
    [
        _OTHER + "model = BModel()\nmodel.encoder.gradient_checkpointing = True\n",
        "from transformers import TrainingArguments\n\n"
        "setup = TrainingArguments()\nsetup.gradient_checkpointing = True\n",
    ],
)
def test_the_flag_of_another_model_does_not_enable_this_one(findings: _Findings, script: str) -> None:
    layer = _text().partition("\nclass AModel")[0]
    encoder = _ENCODER.format(prefix="A", body=_LEGACY).replace(
        "self.patches = Patches(config)", "self.gradient_checkpointing = False"
    )
    found = findings({"modeling_a.py": layer + encoder + _HOLDER, "train.py": script})
    assert [fix for *_, fix in _verdicts(found)] == ["SAFE"]


# -- values


@_ONE_READING
@pytest.mark.parametrize(
    ("returned", "call"),
    [
        ("height, width", "height, width = self.patches(x)\nx = self.embed(x)"),
        ("(height, width), x", "(height, width), x = self.patches(x)"),
        ("height, width, x", "height, width, x = self.patches(x)"),
        (
            '{"x": x, "grid": (height, width)}',
            'out = self.patches(x)\nx = out["x"]\nheight, width = out["grid"]',
        ),
    ],
)
def test_a_pair_of_ints_is_no_container_of_tensors(findings: _Findings, returned: str, call: str) -> None:
    lines = [*call.splitlines(), "for layer in self.layers:", "    x = layer(x, grid=(height, width))"]
    loop = "\n".join(" " * 8 + line for line in lines)
    text = _text(base="GradientCheckpointingLayer", returned=returned, loop=loop)
    assert "GC103" not in [code for code, *_ in _verdicts(findings({"modeling_a.py": text}))]


@_ONE_READING
@pytest.mark.parametrize(
    "block",
    [
        "if self.cache is None:\n    self.cache = torch.arange(4)",
        "if self.cache is None:\n    self.cache = x.new_ones(4)",
        "if self.cache is None:\n    self.cache = torch.zeros(x.shape[1], device=x.device)",
    ],
)
def test_a_constant_that_is_made_once_is_no_state(findings: _Findings, block: str) -> None:
    found = _verdicts(findings({"modeling_a.py": _text(block=f"{block}\nx = x + self.cache")}))
    assert [fix for *_, fix in found] == ["SAFE"]


# -- classes

_MODULAR = """\
from ..a.modeling_a import AModel, APreTrainedModel


class BPreTrainedModel(APreTrainedModel):
    supports_gradient_checkpointing = True


class BModel(AModel):
    pass
"""
_GENERATED = "# This file was automatically generated from src/transformers/models/b/modular_b.py.\n"


@_ONE_READING
def test_a_finding_names_classes_of_its_own_file(findings: _Findings) -> None:
    pretrained = "\n\nclass {}PreTrainedModel(PreTrainedModel):\n    base_model_prefix = 'model'\n"
    text = _text().replace(
        "class AModel(PreTrainedModel):", pretrained.format("A") + "\n\nclass AModel(APreTrainedModel):"
    )
    text = text.replace("    supports_gradient_checkpointing = True\n", "")
    generated = re.sub(r"\bA(?=[A-Z])", "B", text).replace(
        "'model'", "'model'\n    supports_gradient_checkpointing = True"
    )
    files = {
        "a/modeling_a.py": text,
        "b/modular_b.py": _MODULAR,
        "b/modeling_b.py": _GENERATED + generated,
    }
    found = findings(files)
    assert found
    for each in found:
        own = re.findall(r"^class (\w+)", files[each.path.relative_to(each.path.parents[1]).as_posix()], re.M)
        named = {each.symbol, *re.findall(r"`([AB][A-Z]\w+)`", each.message)}
        assert named <= set(own)


@_ONE_READING
@pytest.mark.slow
def test_json_and_text_count_the_same(tmp_path: Path) -> None:
    (tmp_path / "modeling_a.py").write_text(_text(), encoding="utf-8")
    (tmp_path / "modeling_b.py").write_text("def f(:\n", encoding="utf-8")
    listed = json.loads(run(tmp_path, ".", "--no-cache", "--output-format", "json").output)
    (counted,) = re.findall(r"Found (\d+) ", run(tmp_path, ".", "--no-cache").output)
    assert len(listed) == int(counted)


@_ONE_READING
def test_a_long_chain_of_subclasses_is_followed_or_named(tmp_path: Path) -> None:
    chain = "".join(f"class A{number + 1}Layer(A{number}Layer):\n    pass\n\n\n" for number in range(400))
    layer, model = _text(base="GradientCheckpointingLayer", prefix="A0").split("\nclass A0Model")
    text = layer + "\n\n" + chain + "class A0Model" + model.replace("A0Layer", "A400Layer")
    text = text.replace("layer(x)", "layer(x, grid=self.embed(x))")
    path = tmp_path / "modeling_a.py"
    path.write_text(text, encoding="utf-8")
    checked = check(Project(Settings(), [path]), all_rules())
    assert [each.code for each in checked.findings] == ["GC003"] or "A400Layer" in str(checked)


# -- fixes

_PROMPT = """

class Prompted(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.model = AModel(config)
        self.prompt = nn.Parameter(torch.zeros(4))


def run(prompted, x):
    return {call}
"""


_CACHED = (
    _text(base="GradientCheckpointingLayer", block="pass", loop=_LOOP.replace("(x)", "(x, past_key_values)"))
    .replace("x, grid=None", "x, past_key_values=None")
    .replace("x, flag=None", "x, past_key_values=None")
)


@pytest.mark.xfail(strict=True, reason="what functions outside of classes hand to a model is not traced")
@pytest.mark.parametrize(
    "call",
    [
        "prompted.model(x, past_key_values=prompted.prompt)",
        "partial(prompted.model, past_key_values=prompted.prompt)(x)",
    ],
)
def test_a_prompt_of_a_function_is_not_dropped(findings: _Findings, call: str) -> None:
    found = _verdicts(findings({"modeling_a.py": _CACHED + _PROMPT.format(call=call)}))
    assert [(code, fix) for code, *_, fix in found] == [("GC002", None)]


@pytest.mark.xfail(strict=True, reason="a model that an unknown function has made may be of any class")
def test_a_prompt_for_a_model_that_is_not_known_is_not_dropped(findings: _Findings) -> None:
    start = _PROMPT.partition("\n\n\ndef run")[0].replace("AModel(config)", "made(config)")
    call = "\n\n    def forward(self, x):\n        return self.model(x, past_key_values=self.prompt)\n"
    found = _verdicts(findings({"modeling_a.py": _CACHED + start + call}))
    assert [(code, fix) for code, *_, fix in found] == [("GC002", None)]


@pytest.mark.parametrize(
    "block",
    [
        "double = grid.mul_\ndouble(2)",
        "double = torch.Tensor.mul_\ndouble(grid, 2)",
        "torch.ops.aten.mul_.Tensor(grid, x)",
        "held = [grid]\ntorch._foreach_mul_(held, 2)",
        "match grid:\n    case other:\n        other.mul_(2)",
    ],
)
def test_a_change_in_place_by_a_roundabout_way_is_seen(findings: _Findings, block: str) -> None:
    text = _text(block=f"{block}\nx = x + grid", loop=_LOOP.replace("layer(x)", "layer(x, flag)"))
    assert [fix for *_, fix in _verdicts(findings({"modeling_a.py": text}))] == ["UNSAFE"]


@pytest.mark.parametrize("name", ['"_set_gradient_" "checkpointing"', 'f"_set_{what}_checkpointing"'])
def test_an_override_that_is_used_by_a_name_in_parts_is_kept(findings: _Findings, name: str) -> None:
    override = """
    def _set_gradient_checkpointing(self, module, value=False):
        if isinstance(module, AModel):
            module.gradient_checkpointing = value

    def enable(self, what):
        getattr(self, {name})(self, True)
"""
    text = _text(base="GradientCheckpointingLayer").replace(
        "self.patches = Patches(config)",
        "self.gradient_checkpointing = False",
    )
    found = _verdicts(findings({"modeling_a.py": text + override.format(name=name)}))
    assert [fix for code, *_, fix in found if code == "GC301"] == ["UNSAFE"]


@pytest.mark.xfail(
    strict=True, reason="only imports of a name are looked for, not what a module is asked for"
)
@pytest.mark.parametrize(
    "other", ["from modeling_a import *\nassert OD\n", "import modeling_a\nassert modeling_a.OD\n"]
)
def test_an_import_that_another_file_takes_from_the_module_is_kept(findings: _Findings, other: str) -> None:
    text = _text(base="GradientCheckpointingLayer").replace(
        "self.patches = Patches(config)",
        "self.gradient_checkpointing = False",
    )
    text = (
        "from collections import OrderedDict as OD\n"
        + text
        + """
    def _set_gradient_checkpointing(self, module, value=False):
        if isinstance(module, (AModel, OD)):
            module.gradient_checkpointing = value
"""
    )
    found = findings({"modeling_a.py": text, "other.py": other})
    edits = [edit for each in found if each.code == "GC301" and each.fix for edit in each.fix.edits]
    assert len(edits) == 1


def test_a_hook_of_a_script_reads_the_arguments(findings: _Findings) -> None:
    text = _CACHED + "\n\ndef hook(model):\n    model.layers[0].register_forward_pre_hook(print)\n"
    assert [fix for *_, fix in _verdicts(findings({"modeling_a.py": text}))] == ["UNSAFE"]


def test_a_global_that_changes_between_calls_is_seen(findings: _Findings) -> None:
    loop = "        for layer in self.layers:\n            SCALE[0] += 1\n            x = layer(x)"
    text = _text(block="x = x * SCALE[0]", loop=loop)
    found = _verdicts(
        findings({"modeling_a.py": text.replace("\nclass ALayer", "\nSCALE = [1]\n\n\nclass ALayer")})
    )
    assert [fix for *_, fix in found] == ["UNSAFE"]
