"""Models of which a run has seen that something else than their input embeddings feeds the first block."""

from __future__ import annotations

from pathlib import Path

import pytest

from gclint.code.project import Project
from gclint.finding import Applicability
from gclint.observations import Feeding, Observations
from gclint.rule import all_rules
from gclint.run.check import check
from gclint.run.fix import fix
from gclint.settings import Settings

_BEFORE = """\
from torch import nn
from transformers import PreTrainedModel


class XModel(PreTrainedModel):
    def __init__(self, config):
        super().__init__(config)
        self.embeddings = XEmbeddings(config)

{getter}    def forward(self, pixel_values):
        return self.embeddings(pixel_values)
"""
_NEW = """\
    def get_input_embeddings(self):
        return {expression}

"""


def _repaired(folder: Path, texts: dict[str, str], *, module: str, fails: bool = False) -> Project:
    """Return a project in which a run has seen what feeds ``XModel``, repaired."""
    for name, text in texts.items():
        (folder / name).write_text(text)
    project = Project(Settings(), [folder / name for name in texts])
    (seen,) = (path for path in project.paths if path.name == "modeling_x.py")
    project.observe(Observations(feeding=[Feeding(seen, "XModel", module, None, fails)]))
    codes = {finding.code for finding in check(project, all_rules()).findings}
    assert codes == {"GC113" if fails else "GC114"}
    result = fix(project, all_rules(), unsafe=True)
    assert result.findings == ()
    assert {each.fix.applicability for each in result.applied if each.fix} == {Applicability.UNSAFE}
    return project


@pytest.mark.parametrize(
    ("module", "expression"),
    [
        ("embeddings.projection", "self.embeddings.projection"),
        ("embeddings.0.tokens", "self.embeddings[0].tokens"),
        ("embeddings.from-2d", 'self.get_submodule("embeddings.from-2d")'),
    ],
)
def test_a_model_gets_the_method_behind_its_constructor(tmp_path: Path, module: str, expression: str) -> None:
    project = _repaired(tmp_path, {"modeling_x.py": _BEFORE.format(getter="")}, module=module)
    new = _NEW.format(expression=expression)
    assert project.file(project.paths[0]).text == _BEFORE.format(getter=new)


def test_the_constructor_need_not_come_first(tmp_path: Path) -> None:
    before = _BEFORE.replace("    def __init__", "    def size(self):\n        return 1\n\n    def __init__")
    project = _repaired(tmp_path, {"modeling_x.py": before.format(getter="")}, module="embeddings")
    new = _NEW.format(expression="self.embeddings")
    assert project.file(project.paths[0]).text == before.format(getter=new)


@pytest.mark.parametrize(
    "header", ["def get_input_embeddings(self)", "def get_input_embeddings(self) -> XPatches"]
)
def test_a_method_that_returns_a_tuple_returns_what_is_inside(tmp_path: Path, header: str) -> None:
    getter = f"    {header}:\n        return self.embeddings\n\n"
    texts = {"modeling_x.py": _BEFORE.format(getter=getter)}
    project = _repaired(tmp_path, texts, module="embeddings.projection", fails=True)
    new = _NEW.format(expression="self.embeddings.projection")
    assert project.file(project.paths[0]).text == _BEFORE.format(getter=new)


def test_a_method_that_does_more_is_left_alone(tmp_path: Path) -> None:
    getter = (
        "    def get_input_embeddings(self):\n        self.asked = True\n        return self.embeddings\n\n"
    )
    path = tmp_path / "modeling_x.py"
    path.write_text(_BEFORE.format(getter=getter))
    project = Project(Settings(), [path])
    project.observe(Observations(feeding=[Feeding(path, "XModel", "embeddings.projection", None, False)]))
    (finding,) = check(project, all_rules()).findings
    assert finding.fix is None


def test_a_generated_model_and_its_source_get_the_method(tmp_path: Path) -> None:
    header = "# This file was automatically generated from src/transformers/models/x/modular_x.py.\n"
    texts = {
        "modular_x.py": "from ..y.modeling_y import YModel\n\n\nclass XModel(YModel):\n    pass\n",
        "modeling_x.py": header + _BEFORE.format(getter=""),
    }
    project = _repaired(tmp_path, texts, module="embeddings")
    new = _NEW.format(expression="self.embeddings")
    modular, modeling = (project.file(tmp_path / name).text for name in texts)
    assert modeling == header + _BEFORE.format(getter=new)
    assert modular.endswith(f"class XModel(YModel):\n    pass\n\n{new.rstrip()}\n")


@pytest.mark.parametrize(("in_generated", "in_source"), [(True, False), (False, True), (False, False)])
def test_what_the_generated_model_returns_is_what_runs(
    tmp_path: Path, in_generated: bool, in_source: bool
) -> None:
    header = "# This file was automatically generated from src/transformers/models/x/modular_x.py.\n"
    new = _NEW.format(expression="self.embeddings")
    modular = (
        f"from ..y.modeling_y import YModel\n\n\nclass XModel(YModel):\n{new if in_source else '    pass'}"
    )
    texts = {
        "modular_x.py": modular,
        "modeling_x.py": header + _BEFORE.format(getter=new if in_generated else ""),
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    project = Project(Settings(), [tmp_path / name for name in texts])
    project.observe(Observations(feeding=[Feeding(project.paths[1], "XModel", "embeddings", None, False)]))
    assert bool(check(project, all_rules()).findings) is not in_generated


def test_a_generated_model_without_its_source_is_not_repaired(tmp_path: Path) -> None:
    header = "# This file was automatically generated from src/transformers/models/x/modular_x.py.\n"
    path = tmp_path / "modeling_x.py"
    path.write_text(header + _BEFORE.format(getter=""))
    project = Project(Settings(), [path])
    project.observe(Observations(feeding=[Feeding(path, "XModel", "embeddings", None, False)]))
    (finding,) = check(project, all_rules()).findings
    assert finding.fix is None


@pytest.mark.parametrize("end", ["\n", ""])
def test_a_line_that_changed_a_leaf_in_a_run_gets_a_clone(tmp_path: Path, end: str) -> None:
    path = tmp_path / "modeling_x.py"
    path.write_text(
        f"def joined(embeddings, more):\n    if more is not None:\n        embeddings += more{end}"
    )
    project = Project(Settings(), [path])
    project.observe(Observations(changed=[(path, 3)]))
    fix(project, all_rules(), unsafe=False, proves=True)
    assert "        embeddings = embeddings.clone()\n        embeddings += more" in project.file(path).text
    assert check(project, all_rules()).findings == ()
