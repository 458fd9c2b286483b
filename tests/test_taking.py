"""An import stays if another file may use its name, or if its module may do something."""

from __future__ import annotations

from pathlib import Path

import pytest

from gclint.code.project import Project
from gclint.edit.edits import edited
from gclint.edit.imports import drop_unused_imports
from gclint.finding import Edit
from gclint.settings import Settings

_IMPORT = "from torch.utils.checkpoint import checkpoint\n"
_TAKING = {
    "an import of the name": (
        "from modeling_toy import checkpoint\n",
        "from modeling_other import checkpoint\n",
    ),
    "an attribute": (
        "import modeling_toy\nmodeling_toy.checkpoint\n",
        "import modeling_toy\nmodeling_toy.build\n",
    ),
    "an attribute of another name": (
        "import modeling_toy as toy\ntoy.checkpoint\n",
        "import modeling_toy as toy\ntoy.build\n",
    ),
    "an attribute of a text": (
        "import modeling_toy as toy\ngetattr(toy.build, 'checkpoint')\n",
        "import modeling_toy as toy\ngetattr(toy.build, 'checkpoints')\n",
    ),
    "a module that is handed on": (
        "import modeling_toy as toy\nprint(vars(toy))\n",
        "import modeling_toy as toy\nprint(vars(toy.build))\n",
    ),
    "a star": ("from modeling_toy import *\n", "from modeling_other import *\n"),
    "a module by a text": (
        "import importlib\ntoy = importlib.import_module('modeling_toy')\ntoy.checkpoint\n",
        "import importlib\ntoy = importlib.import_module('modeling_toy')\ntoy.build\n",
    ),
    "a stand-in": (
        "from unittest import mock\nmock.patch('modeling_toy.checkpoint')\n",
        "from unittest import mock\nmock.patch('modeling_toy.build')\n",
    ),
    "several stand-ins": (
        "from unittest import mock\nmock.patch.multiple('modeling_toy', checkpoint=1)\n",
        "from unittest import mock\nmock.patch.multiple('modeling_toy', build=1)\n",
    ),
    "a text about it": (
        "from unittest import mock\nmock.patch('modeling_toy.checkpoint')\n",
        "'''Calls modeling_toy.checkpoint.'''\nfrom unittest import mock\n",
    ),
}


def _after(folder: Path, before: str, others: dict[str, str], name: str = "checkpoint") -> str:
    """Return a text after its use of a name has gone, in a project with other files."""
    use = f"gone({name})\n"
    for path, text in {"modeling_toy.py": before + use, **others}.items():
        (folder / path).write_text(text, encoding="utf-8")
    project = Project(Settings(), [folder / "modeling_toy.py"])
    file = project.file(folder / "modeling_toy.py")
    gone = Edit(file.path, len(before), len(before + use), "")
    return edited(file.text, [gone, *drop_unused_imports(project, file, {name}, [gone])])


@pytest.mark.parametrize("name", _TAKING)
def test_an_import_stays_that_another_file_may_use(name: str, tmp_path: Path) -> None:
    taking, other = _TAKING[name]
    assert _after(tmp_path, _IMPORT, {"use.py": taking}) == _IMPORT
    assert _after(tmp_path, _IMPORT, {"use.py": other}) == ""


def test_a_star_gives_what_is_listed(tmp_path: Path) -> None:
    listed = f"{_IMPORT}__all__ = ['build']\n"
    assert _after(tmp_path, listed, {"use.py": "from modeling_toy import *\n"}) == listed.removeprefix(
        _IMPORT
    )


@pytest.mark.parametrize(
    ("reading", "other"),
    [
        ("MADE = globals()[KIND]\n", "MADE = table()[KIND]\n"),
        ("MADE = getattr(sys.modules[__name__], KIND)\n", "MADE = getattr(sys.path, KIND)\n"),
        ("MADE = eval(KIND)\n", "MADE = model.eval(KIND)\n"),
    ],
)
def test_an_import_stays_that_may_be_read_by_a_text(reading: str, other: str, tmp_path: Path) -> None:
    assert _after(tmp_path, _IMPORT + reading, {}) == _IMPORT + reading
    assert _after(tmp_path, _IMPORT + other, {}) == other


@pytest.mark.parametrize(
    ("kept", "gone"),
    [
        ("from encoder import Encoder\n", "from torch.nn import Encoder\n"),
        ("from .encoder import Encoder\n", "from collections import Encoder\n"),
        ("from .missing import Encoder\n", "from missing import Encoder\n"),
        ("import encoder as Encoder\n", "import torch as Encoder\n"),
    ],
)
def test_an_import_stays_that_runs_a_module_of_the_project(kept: str, gone: str, tmp_path: Path) -> None:
    others = {"encoder.py": "from registry import KINDS\n\n\nclass Encoder: ...\n\n\nKINDS.append(Encoder)\n"}
    assert _after(tmp_path, kept, others, "Encoder") == kept
    assert _after(tmp_path, gone, others, "Encoder") == ""


def test_an_import_goes_if_its_module_is_imported_before(tmp_path: Path) -> None:
    others = {"encoder.py": "class Encoder: ...\n"}
    first, second = "from encoder import Encoder as _E\n", "from encoder import Encoder\n"
    assert _after(tmp_path, first + second, others, "Encoder") == first
    assert _after(tmp_path, second + first, others, "Encoder") == second + first
    local = f"def f():\n    {first}"
    assert _after(tmp_path, local + second, others, "Encoder") == local + second
