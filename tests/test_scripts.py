"""Which files are scripts, and what is known of what they do; the fixtures of GC4xx have what is reported."""

from __future__ import annotations

from pathlib import Path

import pytest

from gclint.code.candidates import is_modeling
from gclint.code.project import Project
from gclint.model import scripts
from gclint.model.scripts import is_literally
from gclint.network import model
from gclint.network.model import Network
from gclint.network.training import trainings
from gclint.rule import all_rules
from gclint.settings import Settings
from gclint.testing.fixtures import Fixture
from gclint.testing.rules import finding_differences
from tests.harness import load_fixtures

_TRAINING = """
from transformers import Trainer, TrainingArguments

{before}
def main(model, flag):
    {lines}
    Trainer(model, args).train()
"""


def _network(folder: Path, text: str, name: str = "train.py") -> Network:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    project = Project(Settings(), [path])
    return Network(project, project.file(path))


@pytest.mark.parametrize(
    "fixture", [each for each in load_fixtures() if each.name.startswith("GC4")], ids=lambda each: each.name
)
def test_the_words_of_scripts_change_no_verdict(
    fixture: Fixture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model, "may_train", lambda name, _text: not is_modeling(name))
    assert [*finding_differences(fixture, all_rules(), tmp_path)] == []


def test_a_script_without_these_words_has_no_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "import torch\nfrom transformers import AutoModel\nAutoModel.from_pretrained('otter').eval()\n"
    assert _network(tmp_path, text).script is None
    monkeypatch.setattr(model, "may_train", lambda name, _text: not is_modeling(name))
    network = _network(tmp_path, text)
    assert network.script is not None
    rules = [each for each in all_rules() if each.code.startswith("GC4")]
    assert [finding for rule in rules for finding in rule.check(network)] == []


_TWO_MODELS = """
from transformers import BertModel

def main(flag):
    if flag:
        model = BertModel.from_pretrained("otter")
    else:
        model = BertModel.from_pretrained("badger")
    model.gradient_checkpointing = True
    model.train()
"""


def test_of_several_models_the_first_is_named_whatever_the_order_of_sets(tmp_path: Path) -> None:
    (rule,) = (each for each in all_rules() if each.code == "GC401")
    told = set()
    # The nodes of a tree, which sets of values are ordered by, lie elsewhere each time.
    for number in range(15):
        network = _network(tmp_path, _TWO_MODELS + "x = 1\n" * number)
        (finding,) = rule.check(network)
        told.add(tuple(network.file.position(each.start).row for each in finding.story))
    assert told == {(6,)}


@pytest.mark.parametrize(
    ("name", "text", "is_script"),
    [
        ("train.py", "import transformers\nmodel.gradient_checkpointing_enable()\n", True),
        ("layers.py", "from torch.utils import checkpoint\n", True),
        ("modeling_otter.py", "import transformers\nmodel.gradient_checkpointing_enable()\n", False),
        ("modular_otter.py", "from torch.utils import checkpoint\n", False),
        ("train.py", "import jax\nmodel.gradient_checkpointing_enable()\n", False),
        ("train.py", "import transformers\n", False),
        ("train.py", "import transformers\ndef gradient_checkpointing(:\n", False),
    ],
)
def test_script(name: str, text: str, is_script: bool, tmp_path: Path) -> None:
    assert (_network(tmp_path, text, name).script is not None) is is_script


@pytest.mark.parametrize(
    ("before", "lines", "is_known"),
    [
        ("", "args = TrainingArguments('out', gradient_checkpointing=True)", True),
        ("ON = True", "args = TrainingArguments('out', gradient_checkpointing=ON)", True),
        ("OPTIONS = dict(gradient_checkpointing=True)", "args = TrainingArguments('out', **OPTIONS)", True),
        (
            "class Config:\n    on = True\n",
            "args = TrainingArguments('out', gradient_checkpointing=Config.on)",
            True,
        ),
        ("", "args = TrainingArguments('out', gradient_checkpointing=flag)", False),
        ("", "args = TrainingArguments('out', gradient_checkpointing=True if flag else False)", False),
        (
            "",
            "args = TrainingArguments('o', gradient_checkpointing=True); args.gradient_checkpointing = flag",
            False,
        ),
        (
            "OPTIONS = {}",
            "OPTIONS['gradient_checkpointing'] = True; args = TrainingArguments('out', **OPTIONS)",
            False,
        ),
        (
            "OPTIONS = dict(gradient_checkpointing=True)",
            "flag(OPTIONS); args = TrainingArguments('out', **OPTIONS)",
            False,
        ),
    ],
)
def test_argument(before: str, lines: str, is_known: bool, tmp_path: Path) -> None:
    script = _network(tmp_path, _TRAINING.format(before=before, lines=lines)).script
    assert script is not None
    (training,) = trainings(script)
    assert is_literally(training.says("gradient_checkpointing"), True) is is_known


def test_nothing_is_known_of_a_script_that_is_too_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = _TRAINING.format(before="", lines="args = TrainingArguments('out', gradient_checkpointing=True)")
    monkeypatch.setattr(scripts, "_MOST_STEPS", 5)
    script = _network(tmp_path, text).script
    assert script is not None
    assert not script.calls
