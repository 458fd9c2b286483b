"""Scripts of which a rule has something to say, and what makes them right, or no longer known to be wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from gclint.code.project import Project
from gclint.network.model import Network
from gclint.rule import all_rules
from gclint.settings import Settings

_IMPORTS = """
import torch
from peft import LoraConfig, get_peft_model, prepare_model_for_kbit_training
from torch.nn.parallel import DistributedDataParallel
from transformers import AutoModelForCausalLM, AutoModelForImageClassification, Trainer, TrainingArguments
from helpers import look_at

"""
_SWITCH = """
model = AutoModelForCausalLM.from_pretrained("otter")
model.gradient_checkpointing = True
args = TrainingArguments("out")
Trainer(model, args).train()
"""
_ARGUMENTS = """
model = AutoModelForCausalLM.from_pretrained("otter")
args = TrainingArguments(
    "out",
    gradient_checkpointing=True,
    gradient_checkpointing_kwargs={"use_reentrant": True},
    ddp_find_unused_parameters=True,
)
trainer = Trainer(model, args)
trainer.train()
"""
_WRAPPER = """
model = AutoModelForCausalLM.from_pretrained("otter")
model.gradient_checkpointing_enable({"use_reentrant": True})
wrapped = DistributedDataParallel(model, find_unused_parameters=True)
wrapped(**batch).loss.backward()
"""
_PREPARED = """
model = AutoModelForCausalLM.from_pretrained("otter", load_in_4bit=True)
model.gradient_checkpointing_enable({"use_reentrant": False})
model = prepare_model_for_kbit_training(model)
model = get_peft_model(model, LoraConfig())
Trainer(model, TrainingArguments("out")).train()
"""
_FROZEN = """
model = AutoModelForImageClassification.from_pretrained("otter")
config = LoraConfig(r=8, target_modules=["query", "value"], modules_to_save=["classifier"], bias="none")
model = get_peft_model(model, config)
args = TrainingArguments(
    "out", gradient_checkpointing=True, gradient_checkpointing_kwargs={"use_reentrant": True}
)
Trainer(model=model, args=args).train()
"""
_TRAIN = "Trainer(model"
_MADE = "trainer = Trainer(model, args)"

_CASES = [
    ("GC401", _SWITCH, "args = TrainingArguments", "look_at(model)\nargs = TrainingArguments"),
    ("GC401", _SWITCH, '"otter")', '"otter", trust_remote_code=True)'),
    ("GC401", _SWITCH, 'TrainingArguments("out")', "look_at()"),
    ("GC401", _SWITCH, _TRAIN, f"from torch import checkpointing_of\ncheckpointing_of(model)\n{_TRAIN}"),
    ("GC402", _ARGUMENTS, _MADE, f"look_at(args)\n{_MADE}"),
    ("GC402", _ARGUMENTS, _MADE, f"args.ddp_find_unused_parameters = False\n{_MADE}"),
    ("GC402", _ARGUMENTS, _MADE, f'setattr(args, "ddp_find_unused_parameters", False)\n{_MADE}'),
    ("GC402", _ARGUMENTS, _MADE, f'args.gradient_checkpointing_kwargs["use_reentrant"] = False\n{_MADE}'),
    ("GC402", _ARGUMENTS, _MADE, f"args.gradient_checkpointing_kwargs.update(use_reentrant=False)\n{_MADE}"),
    ("GC402", _ARGUMENTS, _MADE, f"args.set_training(gradient_checkpointing=False)\n{_MADE}"),
    ("GC402", _ARGUMENTS, _MADE, f"{_MADE}\ntrainer.args.gradient_checkpointing = False"),
    ("GC402", _WRAPPER, "wrapped(", "wrapped._set_static_graph()\nwrapped("),
    ("GC402", _WRAPPER, "wrapped(", "wrapped.module.gradient_checkpointing_disable()\nwrapped("),
    ("GC402", _WRAPPER, "wrapped =", "model.gradient_checkpointing_disable()\nwrapped ="),
    ("GC402", _WRAPPER, "wrapped(", "look_at(wrapped)\nwrapped("),
    ("GC402", _WRAPPER, "wrapped =", "look_at(model)\nwrapped ="),
    (
        "GC403",
        _PREPARED,
        _TRAIN,
        f'model.gradient_checkpointing_enable({{"use_reentrant": False}})\n{_TRAIN}',
    ),
    ("GC403", _PREPARED, _TRAIN, f"look_at(model)\n{_TRAIN}"),
    ("GC405", _FROZEN, '"none"', '"all"'),
    ("GC405", _FROZEN, "r=8", "trainable_token_indices=[1]"),
    ("GC405", _FROZEN, '"value"', '"convolution"'),
    ("GC405", _FROZEN, '["classifier"]', '["vit.embeddings"]'),
    ("GC405", _FROZEN, '["query", "value"]', '"all-linear"'),
    ("GC405", _FROZEN, "args=args)", "args=args, callbacks=[look_at()])"),
    ("GC405", _FROZEN, _TRAIN, f"look_at(model)\n{_TRAIN}"),
    ("GC405", _FROZEN, _TRAIN, f"for each in model.parameters():\n    each.requires_grad = True\n{_TRAIN}"),
    (
        "GC405",
        _FROZEN,
        _TRAIN,
        f'for each in model.parameters():\n    setattr(each, "requires_grad", True)\n{_TRAIN}',
    ),
    (
        "GC405",
        _FROZEN,
        _TRAIN,
        "class Trainer(Trainer):\n    def _prepare_inputs(self, inputs):\n"
        f"        return {{key: each.requires_grad_() for key, each in inputs.items()}}\n\n{_TRAIN}",
    ),
]


def _codes(folder: Path, text: str) -> set[str]:
    path = folder / "train.py"
    path.write_text(_IMPORTS + text, encoding="utf-8")
    project = Project(Settings(), [path])
    network = Network(project, project.file(path))
    return {finding.code for rule in all_rules() for finding in rule.check(network)}


@pytest.mark.parametrize(("code", "text"), sorted({(code, text) for code, text, _, _ in _CASES}))
def test_what_is_wrong_is_reported(code: str, text: str, tmp_path: Path) -> None:
    assert _codes(tmp_path, text) == {code}


@pytest.mark.parametrize(("code", "text", "before", "after"), _CASES)
def test_what_makes_it_right_is_known(code: str, text: str, before: str, after: str, tmp_path: Path) -> None:
    assert text.count(before) == 1
    assert code not in _codes(tmp_path, text.replace(before, after))
