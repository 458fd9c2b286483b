"""Code that replaces the `forward` of a block: from 5.23 on, the base class recomputes what it was before."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path
from textwrap import indent

import pytest

from gclint.code.file import SourceFile
from gclint.code.project import Project
from gclint.finding import Applicability, Fix
from gclint.model.replacements import replacements
from gclint.releases import releases
from gclint.rule import all_rules
from gclint.run.check import check
from gclint.settings import Settings
from tests.test_leftover import toy
from tests.toy_models import LAYERS, LOOP

_LAYERS = LAYERS.partition("class ToyOtherLayer")[0]
_IMPORT = "from modeling_toy import ToyLayer\n"
_REPLACING = {
    "the class's": _IMPORT + "ToyLayer.forward = None",
    "the class's, by its module": "import modeling_toy\nmodeling_toy.ToyLayer.forward = None",
    "an object's": _IMPORT + "for layer in model.layers:\n    layer.forward = wrapped(layer.forward)",
    "that of a class by its module's name": (
        "import importlib\nimportlib.import_module('modeling_' + 'toy').ToyLayer.forward = None"
    ),
    "that of a loaded module": "import sys\nsys.modules['modeling_toy'].ToyLayer.forward = None",
    "that of a package": "import models\nmodels.modeling_toy.ToyLayer.forward = None",
    "that of a star": "from models import *\nToyLayer.forward = None",
    "an item's": _IMPORT + "model.encoder.layers[0].forward = None",
}
_FAR = {
    "an attribute's": "for each in model.layers:\n    each.forward = None",
    "in wide letters": "for each in model.\uff4cayers:\n    each.forward = None",
    "by a sum of texts": "for each in getattr(model, 'lay' + 'ers'):\n    each.forward = None",
    "by texts in a row": "NAME = 'lay' 'ers'\nfor each in getattr(model, NAME):\n    each.forward = None",
    "of a name": "found = getattr(model, 'lay' + 'ers')\nfor each in found:\n    each.forward = None",
}
"""In files that import nothing of the model."""
_OTHER = {
    "that of a class of another name": "import models\nmodels.modeling_toy.ToyAttention.forward = None",
    "that of a known class of this name": ("class ToyLayer:\n    pass\n\n\nToyLayer.forward = None"),
    "a part's": _IMPORT + "for layer in model.layers:\n    layer.attention.forward = None",
    "another model's": "from modeling_other import OtherLayer\nlayer.forward = None",
    "a comparison": _IMPORT + "assert ToyLayer.forward == None",
    "a comment": _IMPORT + "# ToyLayer.forward = None",
}


def _reason(folder: Path, script: str, target: str) -> str | None:
    (folder / "modeling_toy.py").write_text(toy(LOOP, layers=_LAYERS), encoding="utf-8")
    (folder / "train.py").write_text(script, encoding="utf-8")
    settings = replace(Settings(), target_version=releases(target))
    project = Project(settings, [folder / "modeling_toy.py"], [folder])
    (finding,) = check(project, [rule for rule in all_rules() if "GC001" in rule.codes]).findings
    assert isinstance(finding.remedy, Fix)
    assert (finding.remedy.applicability is Applicability.UNSAFE) == (finding.remedy.reason is not None)
    return finding.remedy.reason


@pytest.mark.parametrize("script", _REPLACING.values(), ids=list(_REPLACING))
def test_replaced_forward_is_not_recomputed_by_later_releases(script: str, tmp_path: Path) -> None:
    reason = _reason(tmp_path, script, ">=4.53")
    assert reason is not None
    assert ".forward` is replaced on line" in reason
    assert _reason(tmp_path, script, ">=4.53,<5.23") is None


@pytest.mark.parametrize("script", _FAR.values(), ids=list(_FAR))
def test_files_that_import_nothing_replace_what_holds_blocks_by_its_name(script: str, tmp_path: Path) -> None:
    reason = _reason(tmp_path, f"def patch(model):\n{indent(script, '    ')}\n", ">=4.53")
    assert reason is not None
    assert ".forward` is replaced on line" in reason


@pytest.mark.parametrize("script", [_REPLACING["the class's"], _REPLACING["that of a package"]])
def test_files_that_name_a_block_are_followed_in_a_large_project(script: str, tmp_path: Path) -> None:
    for number in range(61):
        (tmp_path / f"other_{number}.py").write_text(
            "def patch(x):\n    x.forward = None\n", encoding="utf-8"
        )
    reason = _reason(tmp_path, script, ">=4.53")
    assert reason is not None
    assert ".forward` is replaced on line 2 of" in reason


@pytest.mark.parametrize("script", _OTHER.values(), ids=list(_OTHER))
def test_what_is_replaced_elsewhere_changes_nothing(script: str, tmp_path: Path) -> None:
    assert _reason(tmp_path, script, ">=4.53") is None


_ODD = (
    "layer . forward = f\n",
    "layer.\\\n    forward = f\n",
    "(layer\n    .forward) = f\n",
    "layer.__call__, x = f, 1\n",
    "for layer.forward in fs:\n    pass\n",
    "setattr (layer, 'for' 'ward', f)\n",
    "setattr(\n    layer,\n    name,\n    f,\n)\n",
    "@patch.object(layer, 'forward')\ndef f():\n    pass\n",
    "@other\n@patch(\n    forward=f)\nclass C:\n    pass\n",
    "vars (layer)['x'] = f\n",
    "layer . __dict__['x'] = f\n",
    "x = [run(layer, '_call_impl') for layer in layers if layer]\n",
    "match x:\n    case 1:\n        layer.forward = f\n",
    "mock(layer, forward=f)\n",
)


@pytest.mark.parametrize("text", _ODD)
def test_the_filter_skips_no_place(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def places() -> list[str]:
        found = replacements(SourceFile(Path("x.py"), text.encode()))
        return [ast.dump(each, include_attributes=True) for each in found]

    filtered = places()
    monkeypatch.setattr("gclint.model.replacements.places_of_words", lambda each: range(len(each)))
    assert filtered == places() != []
