"""Where the base class is taken from, where its import is put, and which imports go with a branch."""

from __future__ import annotations

import pytest

from tests.decisions.outside import FILE, LAYER, Files, Outside, Pair, decided, found
from tests.decisions.toy import BRANCH, FLAG, STACK, block, model, toy

_TOY = toy().replace("from transformers.modeling_layers import GradientCheckpointingLayer\n", "")
_IMPORT = "from transformers.modeling_layers import GradientCheckpointingLayer"
_HEADER = "class ToyLayer(GradientCheckpointingLayer):"


def _repaired(outside: Outside, files: Files) -> str:
    """Return the lines that the safe fixes add to the file, with its imports."""
    outside.write(files)
    diff = outside.run("check", "--no-cache", "--diff", ".")
    lines = [line for line in diff.splitlines() if line[:1] in "+-" and line[:3] not in ("+++", "---")]
    return "\n".join(line for line in lines if line.strip("+-"))


def _where(outside: Outside, text: str, words: str = _IMPORT) -> list[str]:
    """Return the line in front of an import that the safe fixes add, and the line behind it."""
    outside.write({FILE: text})
    outside.run("check", "--no-cache", "--fix", ".")
    lines = (outside.folder / FILE).read_text(encoding="utf-8").splitlines()
    place = lines.index(words)
    return [lines[place - 1], lines[place + 1]]


@pytest.mark.parametrize(
    ("text", "around"),
    [
        pytest.param(
            _TOY, ["from transformers import PreTrainedModel", ""], id="behind the package's import"
        ),
        pytest.param(
            _TOY.replace(
                "from transformers import",
                "from transformers.processing_utils import Unpack\nfrom transformers import",
            ),
            ["from torch import nn", "from transformers.processing_utils import Unpack"],
            id="in front of a later module",
        ),
        pytest.param(
            _TOY.replace(
                "from transformers import",
                "from transformers.cache_utils import Cache\nfrom transformers import",
            ),
            ["from transformers import PreTrainedModel", ""],
            id="behind an earlier module",
        ),
        pytest.param(
            _TOY.replace("import torch\n", "import torch\nimport typing\n"),
            ["from transformers import PreTrainedModel", ""],
            id="not by the names of other packages",
        ),
        pytest.param(
            _TOY.replace("from transformers import", "from .base import"),
            ["from torch import nn", "from .base import PreTrainedModel"],
            id="behind other packages, in front of relative ones",
        ),
    ],
)
def test_place_of_the_import(text: str, around: list[str], outside: Outside) -> None:
    assert _where(outside, text) == around


@pytest.mark.parametrize(
    ("imports", "line"),
    [
        (
            "from transformers.modeling_layers import ABC",
            "from transformers.modeling_layers import ABC, GradientCheckpointingLayer",
        ),
        (
            "from transformers.modeling_layers import Zebra",
            "from transformers.modeling_layers import GradientCheckpointingLayer, Zebra",
        ),
        (
            "from transformers.modeling_layers import zebra",
            "from transformers.modeling_layers import GradientCheckpointingLayer, zebra",
        ),
        ("from transformers.modeling_layers import (\n    Attention,\n)", "    GradientCheckpointingLayer,"),
    ],
)
def test_import_that_is_extended(imports: str, line: str, outside: Outside) -> None:
    text = _TOY.replace("import PreTrainedModel\n", f"import PreTrainedModel\n{imports}\n")
    assert f"+{line}" in _repaired(outside, {FILE: text}).splitlines()


@pytest.mark.parametrize(
    ("imports", "is_there"),
    [
        ("from transformers.modeling_layers import *", True),
        ("from transformers.modeling_layers import GradientCheckpointingLayer", True),
        ("from transformers.modeling_utils import *", False),
        ("from transformers.modeling_layers import Other as GradientCheckpointingLayer", None),
        ("from modeling_utils import Other", False),
        ("with (open('x') as GradientCheckpointingLayer):\n    pass", None),
    ],
)
def test_import_that_is_there(imports: str, is_there: bool | None, outside: Outside) -> None:
    text = _TOY.replace("import PreTrainedModel\n", f"import PreTrainedModel\n{imports}\n")
    added = _repaired(outside, {FILE: text}).splitlines()
    assert (f"+{_IMPORT}" in added) is (is_there is False)
    assert (f"+{_HEADER}" in added) is (is_there is not None)


_USED = "from torch.utils.checkpoint import checkpoint\n"
_LEGACY = BRANCH.replace("self._gradient_checkpointing_func(layer.__call__", "checkpoint(layer")


def _legacy(more: str = "", imports: str = _USED, before: str = "") -> str:
    return toy(block(), model(f"{before}\n{_LEGACY}{more}", init=f"{STACK}\n{FLAG}"), imports=imports)


@pytest.mark.parametrize(
    ("text", "goes"),
    [
        pytest.param(_legacy(), True, id="used by the branch alone"),
        pytest.param(_legacy(before='"""Uses checkpoint."""'), True, id="named in a docstring"),
        pytest.param(
            _legacy("print(checkpoint)  # used\n").replace("print(checkpoint)", "x = 1"),
            True,
            id="named in a comment",
        ),
        pytest.param(_legacy(imports=_USED.replace("\n", "  # noqa: F401\n")), False, id="kept on purpose"),
        pytest.param(_legacy(imports=_USED.replace("\n", "  # noqa: E501\n")), True, id="another comment"),
        pytest.param(
            _legacy(imports=_USED.replace("import checkpoint", "import checkpoint as checkpoint")),
            False,
            id="under its own name",
        ),
        pytest.param(_legacy() + '\n__all__ = ["checkpoint"]\n', False, id="exported"),
        pytest.param(_legacy() + "\ncheckpoint_path = 1\n", True, id="a part of another name"),
    ],
)
def test_import_that_goes_with_the_branch(text: str, goes: bool, outside: Outside) -> None:
    removed = _repaired(outside, {FILE: text}).splitlines()
    assert f"+{_HEADER}" in removed or "-class ToyLayer(nn.Module):" in removed
    assert any(line.startswith("-from torch.utils.checkpoint") for line in removed) is goes


def test_one_of_several_imports_goes(outside: Outside) -> None:
    text = _legacy(imports=_USED.replace("import checkpoint", "import checkpoint, noop"))
    assert "+from torch.utils.checkpoint import noop" in _repaired(outside, {FILE: text}).splitlines()


def test_an_import_that_another_file_takes_stays(outside: Outside) -> None:
    other = {"modeling_other.py": "from modeling_toy import checkpoint\n"}
    line = "-from torch.utils.checkpoint import checkpoint"
    assert line in _repaired(outside, {FILE: _legacy(), "modeling_other.py": "x = 1\n"}).splitlines()
    assert line not in _repaired(outside, {FILE: _legacy(), **other}).splitlines()


def test_an_import_that_another_file_takes_by_its_own_name_stays(outside: Outside) -> None:
    line = "import torch.utils.checkpoint as saving"
    files = {FILE: _legacy(imports=f"{line}\n").replace("checkpoint(layer", "saving.checkpoint(layer")}
    wrong = {"modeling_other.py": "from modeling_toy import torch\n"}
    assert f"-{line}" in _repaired(outside, {**files, **wrong}).splitlines()
    other = {"modeling_other.py": "from modeling_toy import saving\n"}
    assert f"-{line}" not in _repaired(outside, {**files, **other}).splitlines()


_HELPER = """\
def create_custom_forward(module):
    from typing import Any

    def custom_forward(*inputs: Any):
        return module(*inputs)

    return custom_forward
"""


def test_what_is_imported_in_a_function_goes_with_it(outside: Outside) -> None:
    loop = BRANCH.replace("layer.__call__", "create_custom_forward(layer)")
    text = toy(block(), model(f"{_HELPER}\n{loop}", init=f"{STACK}\n{FLAG}"))
    removed = _repaired(outside, {FILE: text}).splitlines()
    lines = [f"-        {line}" for line in _HELPER.splitlines() if line]
    assert [line for line in removed if line in lines] == lines


_OVERRIDE = """\
def _set_gradient_checkpointing(self, module: Any, value=False):
    if isinstance(module, ToyModel):
        module.gradient_checkpointing = value
"""


@pytest.mark.parametrize(("takes", "goes"), [("hidden_states", True), ("hidden_states: Any", False)])
def test_import_that_goes_with_an_override(takes: str, goes: bool, outside: Outside) -> None:
    layer = block(base="GradientCheckpointingLayer", takes=takes)
    line = "from typing import Any"
    text = toy(layer, model(init=f"{STACK}\n{FLAG}", more=_OVERRIDE), imports=f"{line}\n")
    removed = _repaired(outside, {FILE: text}).splitlines()
    assert any("def _set_gradient_checkpointing" in each for each in removed)
    assert (f"-{line}" in removed) is goes


_RELATIVE = _TOY.replace(
    "from transformers import PreTrainedModel", "from ...modeling_utils import PreTrainedModel"
)
_INSIDE = {
    "transformers/__init__.py": "",
    "transformers/modeling_layers.py": "class GradientCheckpointingLayer: ...\n",
    "transformers/modeling_utils.py": "class PreTrainedModel: ...\n",
    "transformers/models/toy/modeling_toy.py": _RELATIVE,
}


@pytest.mark.parametrize(
    ("change", "line"),
    [
        pytest.param(
            ("", ""),
            "+from ...modeling_layers import GradientCheckpointingLayer",
            id="beside the library's modules",
        ),
        pytest.param(
            ("from ...modeling_utils", "from ...toy_utils"), f"+{_IMPORT}", id="beside other modules"
        ),
        pytest.param(
            ("from ...modeling_utils", "from transformers.modeling_utils"),
            f"+{_IMPORT}",
            id="by the full name",
        ),
    ],
)
def test_module_of_the_base_class(change: tuple[str, str], line: str, outside: Outside) -> None:
    files = {name: text.replace(*change) if change[0] else text for name, text in _INSIDE.items()}
    added = [each for each in _repaired(outside, files).splitlines() if "import" in each]
    assert added == [line]


test_base_class_that_may_be_missing = decided(
    Pair(
        "a release that has no such class",
        _INSIDE,
        ("class GradientCheckpointingLayer: ...", "class OtherLayer: ..."),
        [found(LAYER, "safe")],
        [],
    ),
    Pair(
        "an import without a fallback",
        toy().replace(
            _IMPORT, f"try:\n    {_IMPORT}\nexcept ImportError:\n    GradientCheckpointingLayer = nn.Module"
        ),
        (f"try:\n    {_IMPORT}\nexcept ImportError:", f"if torch:\n    {_IMPORT}\nelse:"),
        [found(LAYER, "safe")],
        [found(LAYER, "none", "name taken")],
        releases=">=4.49",
    ),
)


@pytest.mark.parametrize(
    ("releases", "said"),
    [
        (">=4.53", found(LAYER, "safe")),
        (">=4.51", found(LAYER, "unsafe", "release")),
        ("<4.52", found(LAYER, "none", "release")),
    ],
)
def test_first_release(releases: str, said: str, outside: Outside) -> None:
    outside.write({FILE: toy()})
    assert outside.findings(releases) == [said]
