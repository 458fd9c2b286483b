"""``gclint.check`` on trainers: whether a run is fine, and what to write if it is not."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import gclint
from tests.environment import PROJECT
from tests.verify.planted import imported, tiny_model
from tests.verify.process_state import everything

# Libraries warn of each other's names, which change.
pytestmark = [
    pytest.mark.torch,
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore:None of the inputs have requires_grad"),
]
pytest.importorskip("torch")
pytest.importorskip("accelerate")
pytest.importorskip("peft")


@pytest.fixture(scope="module")
def made() -> Any:
    from tests.verify import trainers

    return trainers


def _deny_forks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no copy be made of this process, as if it had used a GPU."""

    def deny() -> None:
        raise PermissionError("an accelerator has been used")

    monkeypatch.setattr(os, "fork", deny)


def _names(result: gclint.CheckResult) -> list[str]:
    return [f"{each.name}: {each.outcome}" for each in result.details.setups]


@pytest.mark.parametrize(
    "name",
    [
        "of_text",
        "classifying",
        "translating",
        "seeing",
        "hearing",
        "of_experts",
        "adapted_text",
        "adapted_images",
    ],
)
def test_a_right_run_is_fine(made: Any, name: str) -> None:
    result = gclint.check(getattr(made, name)(use_reentrant=False))
    assert result.passed, result
    first, *_ = result.text.splitlines()
    assert first.startswith("Your run is fine: ")
    assert "blocks are recomputed, all gradients are those without checkpointing" in first
    assert "% less for its backward pass" in first
    assert "Write:" not in result.text


def test_a_run_without_checkpointing_is_told_what_it_would_save(made: Any) -> None:
    result = gclint.check(made.of_text(label_smoothing_factor=0.1, gradient_accumulation_steps=2, bf16=True))
    assert result.passed, result
    assert "Your run is fine, and does not checkpoint. With checkpointing, a step would keep" in result.text
    assert '_checkpointing_kwargs={"use_reentrant": False},' in result.setting
    assert _names(result) == ["as it is: works", "use_reentrant=False: works", "use_reentrant=True: works"]


@pytest.mark.first
def test_a_frozen_base_loses_gradients_and_the_answer_says_why(made: Any) -> None:
    result = gclint.check(made.adapted_images(use_reentrant=True))
    assert not result.passed
    first, *rest = result.text.splitlines()
    assert first.startswith("Your run loses the gradients of 24 parameters, such as `base_model.model.vit.")
    assert first.endswith(
        "with `use_reentrant=True` and a frozen base, nothing that enters the blocks requires grad."
    )
    assert rest[:3] == ["Write:", "    TrainingArguments(", "        ...,"]
    assert _names(result) == [
        "as it is: fails",
        "without checkpointing: works",
        "use_reentrant=False: works",
        "use_reentrant=True after model.enable_input_require_grads(): works",
    ]
    assert gclint.check(made.adapted_images(use_reentrant=False)).passed
    page = (PROJECT / "docs" / "run.md").read_text(encoding="utf-8")
    assert page.partition("```text\n")[2].partition("```")[0] == f"{result}\n"


def test_what_is_frozen_before_the_blocks_loses_their_gradients(made: Any) -> None:
    result = gclint.check(made.hearing(use_reentrant=True))
    first = result.text.splitlines()[0]
    assert first.startswith(
        "Your run loses the gradients of 32 parameters, such as `wav2vec2.encoder.layers.0."
    )
    assert first.endswith(": with `use_reentrant=True`.")
    assert '"use_reentrant": False' in result.setting


_WITHOUT_STATES = {"use_reentrant": False, "kwargs": {"preserve_rng_state": False}}


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("of_experts", {"use_reentrant": True}, ": with `use_reentrant=True`."),
        ("classifying", _WITHOUT_STATES, ": with `preserve_rng_state=False`."),
        ("translating", _WITHOUT_STATES, ": with `preserve_rng_state=False`."),
        ("seeing", _WITHOUT_STATES, ": with `preserve_rng_state=False`."),
        ("adapted_text", _WITHOUT_STATES, ": with `preserve_rng_state=False`."),
    ],
)
def test_wrong_gradients_are_named_with_the_setting(
    made: Any, name: str, options: dict[str, Any], words: str
) -> None:
    result = gclint.check(getattr(made, name)(**options))
    first = result.text.splitlines()[0]
    assert first.startswith("Your run trains on wrong gradients of ")
    assert first.endswith(words)
    assert '"use_reentrant": False' in result.setting


@pytest.mark.parametrize(
    ("name", "use_reentrant", "words"),
    [
        ("healthy", True, "Your run is fine: 3 of 3 blocks"),
        ("first_forgotten", False, "Your run is right, but only 2 of 3 blocks are recomputed"),
        ("keyword_stream", True, "Your run loses the gradients of 31 parameters"),
        ("batch_norm", False, "Your run does not update 9 buffers, such as `layers.0.norm.running_mean`"),
    ],
)
def test_a_planted_mistake_is_seen_through_a_loss_of_ones_own(
    made: Any, name: str, use_reentrant: bool, words: str
) -> None:
    with imported(name) as module:
        planted = tiny_model(module)
        row = {key: each[0].tolist() for key, each in planted.inputs().items()}
        trainer = made.of_text(use_reentrant, model=planted.build(), data=[row] * 4)
        trainer.compute_loss = lambda model, inputs, **_: model(**inputs)[0].pow(2).mean()
        assert gclint.check(trainer).text.startswith(words)


def test_checkpointing_that_is_on_before_the_trainer_is_seen(made: Any) -> None:
    trainer = made.of_text()
    trainer.model.gradient_checkpointing_enable({"use_reentrant": True})
    result = gclint.check(trainer)
    assert result.passed, result
    assert _names(result)[1:] == ["without checkpointing: works", "use_reentrant=False: works"]


def test_blocks_that_are_left_out_are_counted(made: Any) -> None:
    trainer = made.of_text(model=made.llama(4))
    trainer.model.gradient_checkpointing_enable({"use_reentrant": False})
    trainer.model.model.layers[1].gradient_checkpointing = False
    result = gclint.check(trainer)
    assert result.passed
    assert "Your run is right, but only 3 of 4 blocks are recomputed" in result.text


def _whole(trainer: Any) -> dict[str, Any]:
    """Return all that a check could change of a trainer and of the process."""
    state = everything(trainer.model)
    for whole in (trainer, trainer.args, trainer.accelerator, trainer.state, trainer.control):
        state |= {f"{type(whole).__name__} {name}": repr(value) for name, value in vars(whole).items()}
    state["loaders"] = list(map(id, trainer.accelerator._dataloaders))
    state["callbacks"] = list(map(id, trainer.callback_handler.callbacks))
    return state


def _log_losses(trainer: Any) -> None:
    """Let a trainer keep something of each step, in all sorts of containers."""
    usual = trainer.compute_loss
    trainer.losses, trainer.meter = [], SimpleNamespace(seen={"all": set()})
    trainer.control.noted = {}

    def compute_loss(*args: Any, **kwargs: Any) -> Any:
        loss = usual(*args, **kwargs)
        trainer.losses.append(loss)
        trainer.meter.seen["all"].add(float(loss))
        trainer.meter.last = trainer.control.noted["loss"] = loss
        return loss

    trainer.compute_loss = compute_loss


@pytest.mark.parametrize("way", ["in copies", "afresh", "in place"])
def test_nothing_of_a_trainer_is_changed(made: Any, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    trainer = made.adapted_images(use_reentrant=True)
    trainer.model.eval()
    if way == "in copies":
        trainer.model.base_model.model.vit.layers[0].register_forward_hook(lambda *_: None)
    else:
        _deny_forks(monkeypatch)
    if way == "in place":
        monkeypatch.setattr(type(trainer.model.base_model.model), "__module__", "__main__")
        _log_losses(trainer)
    before = _whole(trainer)
    result = gclint.check(trainer)
    assert _whole(trainer) == before
    assert trainer.optimizer is trainer.lr_scheduler is None
    assert "loses the gradients of" in result.text
    assert ("in a process of its own" in result.text) == (way == "afresh")
    assert ("as single steps in this process show" in result.text) == (way == "in place")


def test_a_model_that_fills_an_accelerator_is_shrunk(made: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from transformers import Trainer

    from gclint.verify.worker import fresh, trainers

    class Mine(Trainer):  # type: ignore[misc]
        pass

    Mine.__module__ = "__main__"
    _deny_forks(monkeypatch)
    monkeypatch.setattr(fresh, "SMALL", 0)
    monkeypatch.setattr(trainers, "SMALL", 0)
    trainer = made.of_text(use_reentrant=False, bf16=True, model=made.llama(6), kind=Mine)
    result = gclint.check(trainer)
    assert result.passed, result
    text = result.text
    assert text.startswith("Your run is fine, as a smaller model in a fresh process shows: 2 of 2 blocks")
    assert "this process may not be copied: an accelerator has been used" in text
    assert re.search(r"in a process of its own on the CPU: .*, and [\d,]+ parameters instead of [\d,]+", text)
    assert "cannot be sent: what Mine does otherwise, since the script itself defines it" in text


_RANKS = """\
import os, sys
import torch, gclint
from tests.verify import trainers

for trainer in (
    trainers.classifying(use_reentrant=False),
    trainers.classifying(use_reentrant=True, ddp_find_unused_parameters=True),
):
    if os.environ["RANK"] == "0":
        print(gclint.check(trainer), flush=True)
one = torch.ones(1)
torch.distributed.all_reduce(one)
print(f"the group still adds up to {one.item():g}", flush=True)
"""


def test_two_processes_are_two_processes(made: Any, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(_RANKS, encoding="utf-8")
    command = [
        sys.executable,
        "-W",
        "ignore",
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc_per_node=2",
    ]
    environment = {**os.environ, "PYTHONPATH": str(PROJECT), "OMP_NUM_THREADS": "1"}
    ran = subprocess.run([*command, str(script)], env=environment, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert "Your run is fine: 2 of 2 blocks" in ran.stdout
    assert "Your run fails (marked as ready twice): the backward pass of rank 0 raises" in ran.stdout
    assert "with `use_reentrant=True` and `ddp_find_unused_parameters=True`." in ran.stdout
    assert "        ddp_find_unused_parameters=True,\n    )" in ran.stdout
    assert ran.stdout.count("the group still adds up to 2") == 2


def test_models_that_are_not_from_transformers_are_switched(made: Any) -> None:
    off = gclint.check(made.of_own())
    line = 'if hasattr(module, "use_checkpoint"):'
    assert (off.passed, off.setting.splitlines()[1].strip()) == (True, line)
    on = gclint.check(made.of_own(is_on=True))
    assert "Your run is fine: " in on.text
    told = gclint.check(made.of_own(kind=made.Told))
    assert (told.passed, told.setting) == (True, "model.set_grad_checkpointing(True)")
    assert "With checkpointing, a step would keep" in told.text
    with pytest.raises(
        gclint.CheckError, match=r"nothing is checkpointed in Own, .* check\(trainer, enable="
    ):
        gclint.check(made.of_own(has_flag=False))
    with pytest.raises(gclint.CheckError, match="does not work: AttributeError: 'Own' object has no"):
        gclint.check(made.of_own(has_flag=False), enable=lambda model: model.save_memory())
    given = gclint.check(
        made.of_own(has_flag=False), enable=lambda model: setattr(model, "saves_memory", True)
    )
    assert "With checkpointing, a step would keep" in given.text


def test_a_model_that_checkpoints_unasked_is_compared_with_itself_without(made: Any) -> None:
    fine = gclint.check(made.of_own(kind=made.Unasked))
    assert "Your run is fine: what it checkpoints is recomputed" in fine.text
    lost = gclint.check(made.of_own(kind=made.Capturing))
    assert (lost.passed, lost.setting) == (False, "")
    assert "Your run loses the gradients of 8 parameters" in lost.text
    # A flag that is off says nothing of what is not asked.
    assert gclint.check(made.of_own(kind=made.Unasked, has_flag=True)).text == fine.text
    wrapped = gclint.check(made.of_text(model=made.wrapped()))
    assert "Your run is fine: 2 of 2 blocks" in wrapped.text


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, ", and does not checkpoint. With checkpointing, a step would keep"),
        ({"is_on": True}, ": what it checkpoints is recomputed"),
        ({"kind": "Unasked"}, ": what it checkpoints is recomputed"),
    ],
)
def test_models_of_ones_own_take_steps_in_place_where_no_copy_can_be_made(
    made: Any, options: dict[str, Any], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "kind" in options:
        options = {**options, "kind": getattr(made, options["kind"])}
    _deny_forks(monkeypatch)
    trainer = made.of_own(**options)
    before = _whole(trainer)
    assert f"Your run is fine, as single steps in this process show{words}" in gclint.check(trainer).text
    assert _whole(trainer) == before


def test_a_model_of_transformers_in_another_is_switched_there(made: Any) -> None:
    off = gclint.check(made.of_own(kind=made.Around))
    assert off.setting == f"model.backbone.{made.WORD}_checkpointing_enable()"
    assert "With checkpointing, a step would keep" in off.text
    trainer = made.of_own(kind=made.Around)
    trainer.model.backbone.gradient_checkpointing_enable()
    assert "Your run is fine: 2 of 2 blocks" in gclint.check(trainer).text


def test_a_flag_that_is_on_in_some_modules_stays_so(made: Any) -> None:
    result = gclint.check(made.of_own(kind=made.Flagged))
    assert "Your run is fine" in result.text
    half, without = (each.saved_bytes or 0 for each in result.details.setups)
    whole = gclint.check(made.of_own(is_on=True)).details.setups[0].saved_bytes
    assert whole is not None and whole < half < without


def test_gradients_that_are_not_numbers_prove_nothing(made: Any) -> None:
    trainer = made.of_own()
    usual = trainer.compute_loss
    trainer.compute_loss = lambda *args, **kwargs: usual(*args, **kwargs) * float("nan")
    with pytest.raises(gclint.CheckError, match="are not finite, so nothing can be compared"):
        gclint.check(trainer)


def _scale(_module: Any, _arguments: Any, output: Any) -> Any:
    return output * 2


def _hook(model: Any) -> None:
    model.model.layers[0].register_forward_hook(_scale)


def _wrap(model: Any) -> None:
    usual = model.model.layers[0].forward
    model.model.layers[0].forward = lambda *args, **kwargs: usual(*args, **kwargs) * 2


def _replace(model: Any) -> None:
    from torch import nn

    model.model.layers[1].mlp = nn.Sequential(nn.Linear(32, 32), nn.ReLU())
    model.model.layers[0].mlp = nn.Identity()


@pytest.mark.parametrize("change", [_hook, _wrap, _replace])
def test_a_model_that_was_changed_is_not_built_anew(
    made: Any, change: Callable[[Any], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    _deny_forks(monkeypatch)
    trainer = made.of_text(use_reentrant=False)
    assert "in a process of its own" in gclint.check(trainer).text
    change(trainer.model)
    text = gclint.check(trainer).text
    assert "Your run is fine, as single steps in this process show" in text
    assert "which cannot be sent" in text


@pytest.mark.parametrize("kind", ["Stream", "Yielding"])
def test_data_that_can_be_read_once_are_still_there(
    made: Any, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = getattr(made, kind)()
    trainer = made.of_text(use_reentrant=False, data=data, max_steps=2)
    assert "note: the data can be read only once" in gclint.check(trainer).text
    with monkeypatch.context() as patched:
        _deny_forks(patched)
        with pytest.raises(gclint.CheckError, match="the data can be read only once: pass a copy"):
            gclint.check(trainer)
    assert len(list(data.left)) == 8
    with pytest.raises(gclint.CheckError, match="no first batch to train on"):
        gclint.check(trainer)


def test_a_collator_that_fails_says_so_where_no_copy_can_be_made(
    made: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    _deny_forks(monkeypatch)
    trainer = _collated_by(made, lambda rows: rows["pixels"])
    before = _whole(trainer)
    with pytest.raises(
        gclint.CheckError, match="the trainer has no first batch to train on: TypeError: list"
    ):
        gclint.check(trainer)
    assert _whole(trainer) == before


def _collated_by(made: Any, collate: Callable[[Any], Any]) -> Any:
    trainer = made.of_text(use_reentrant=False)
    trainer.data_collator = collate
    return trainer


def _wrong_trainers() -> dict[str, tuple[Callable[[Any], Any], str]]:
    def without_data(made: Any) -> Any:
        trainer = made.of_text()
        trainer.train_dataset = None
        return trainer

    def on_meta(made: Any) -> Any:
        trainer = made.of_text()
        trainer.model.to("meta")
        return trainer

    def sharded(made: Any) -> Any:
        trainer = made.of_text()
        trainer.model.lm_head.weight.ds_id = 1
        return trainer

    def frozen(made: Any) -> Any:
        trainer = made.of_text()
        trainer.model.requires_grad_(False)
        return trainer

    def large(made: Any) -> Any:
        import torch

        trainer = made.of_text()
        trainer.compute_loss = lambda *_args, **_kwargs: torch.empty(10**15)
        return trainer

    def told(made: Any) -> Any:
        trainer = made.of_own()
        setattr(trainer.args, f"{made.WORD}_checkpointing", True)
        return trainer

    return {
        "no data": (without_data, "the trainer has no train_dataset"),
        "empty": (lambda made: made.of_text(data=[]), "the trainer's train_dataset is empty"),
        "collator": (
            lambda made: _collated_by(made, lambda rows: rows["pixels"]),
            "the trainer has no first batch to train on: the making of the first batch raises TypeError",
        ),
        "slow": (
            lambda made: _collated_by(made, lambda _: time.sleep(60)),
            "too slow for the time limit: there was no computation for 0.5 s during the making of the first",
        ),
        "large": (large, "too large for this machine: there was no memory left"),
        "meta": (on_meta, "the model is on the meta device"),
        "sharded": (sharded, "the model's weights are sharded already: check a trainer whose model is whole"),
        "frozen": (frozen, "no parameter of the trainer's model requires grad"),
        "method": (told, "your run will fail: the trainer has gradient_checkpointing=True, but Own has no"),
        "broken": (
            lambda made: made.of_text(data=[{"input_ids": [999], "labels": [1]}] * 4),
            "the trainer's own step does not work, with or without checkpointing: the forward pass raises",
        ),
    }


@pytest.mark.parametrize("name", _wrong_trainers())
def test_a_trainer_that_cannot_be_checked_says_why(made: Any, name: str) -> None:
    make, words = _wrong_trainers()[name]
    trainer = make(made)
    before = _whole(trainer)
    with pytest.raises(gclint.CheckError) as raised:
        gclint.check(trainer, seconds=2)
    assert words in str(raised.value)
    assert _whole(trainer) == before


def test_a_system_without_forks_is_named(made: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    trainer = made.of_text()
    monkeypatch.delattr(os, "fork")
    with pytest.raises(gclint.CheckError, match=r"only be run on a system with os\.fork, such as Linux"):
        gclint.check(trainer)


def test_scenarios_are_those_of_models(made: Any) -> None:
    with pytest.raises(gclint.CheckError, match="pass the trainer's model and a batch"):
        gclint.check(made.of_text(), scenarios=["cache"])


def test_the_callback_says_nothing_of_a_right_run_and_warns_of_a_wrong_one(made: Any) -> None:
    trainer = made.adapted_images(use_reentrant=False, max_steps=1, save_strategy="no")
    trainer.add_callback(gclint.GclintCallback)
    trainer.train()
    assert trainer.state.global_step == 1
    trainer = made.adapted_images(use_reentrant=True, max_steps=1, save_strategy="no")
    trainer.add_callback(gclint.GclintCallback())
    with pytest.warns(UserWarning, match="Your run loses the gradients of 24 parameters"):
        trainer.train()
    trainer = made.adapted_images(use_reentrant=True, max_steps=1, save_strategy="no")
    trainer.add_callback(gclint.GclintCallback(raises=True))
    with pytest.raises(gclint.CheckError, match="Your run loses the gradients of 24 parameters"):
        trainer.train()
    assert trainer.state.global_step == 0


def test_the_plugin_checks_trainers(made: Any, tmp_path: Path) -> None:
    (tmp_path / "test_runs.py").write_text(
        f"import sys\nsys.path.insert(0, {str(PROJECT)!r})\nfrom tests.verify import trainers\n\n\n"
        "class TestWrong:\n    def make_trainer(self):\n"
        "        return trainers.adapted_images(use_reentrant=True)\n",
        encoding="utf-8",
    )
    command = [
        sys.executable,
        "-W",
        "ignore",
        "-m",
        "pytest",
        "-rA",
        "-p",
        "gclint.testing.plugin",
        "--gclint",
    ]
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    ran = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert "FAILED test_runs.py::TestWrong::test_gclint" in ran.stdout
    assert "Your run loses the gradients of 24 parameters" in ran.stdout


def test_what_is_switched_on_meanwhile_leaves_nothing_to_compare_with(made: Any) -> None:
    from transformers import Trainer

    class Switching(Trainer):  # type: ignore[misc]
        def train(self, *args: Any, **kwargs: Any) -> Any:
            self.model.gradient_checkpointing_enable()
            return super().train(*args, **kwargs)

    with pytest.raises(gclint.CheckError, match="switched on while the trainer trains"):
        gclint.check(made.of_text(kind=Switching))
    with pytest.raises(gclint.CheckError, match="switched on while the trainer trains"):
        gclint.check(made.adapted_images(use_reentrant=True), enable=lambda model: None)


def test_a_step_in_which_no_block_is_seen_is_not_judged(made: Any) -> None:
    from transformers import Trainer

    class Stepping(Trainer):  # type: ignore[misc]
        def training_step(self, model: Any, inputs: Any, *_more: Any) -> Any:
            loss = model(**self._prepare_inputs(inputs)).loss
            self.accelerator.backward(loss)
            return loss.detach()

    result = gclint.check(made.of_text(False, kind=Stepping))
    assert result.details.outcome == "not run"
    assert "is not known: no block was seen to run" in result.text.splitlines()[0]


def test_what_stands_behind_a_closed_gate_is_compared(made: Any) -> None:
    from torch import nn
    from torch.utils.checkpoint import checkpoint

    class Gated(made.Own):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__(is_on=True)
            self.gates = nn.ParameterList(nn.Parameter(nn.init.zeros_(each)) for each in _scalars())
            self.embedding.requires_grad_(False)

        def forward(self, input_ids: Any, labels: Any) -> dict[str, Any]:
            hidden = self.embedding(input_ids)
            for layer, gate in zip(self.layers, self.gates, strict=True):
                is_on = self.use_checkpoint
                given = checkpoint(layer, hidden, use_reentrant=True) if is_on else layer(hidden)
                hidden = hidden + gate * given
            logits = hidden @ self.embedding.weight.T
            return {"loss": nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten())}

    def _scalars() -> list[Any]:
        import torch

        return [torch.empty(()), torch.empty(())]

    trainer = made.of_own()
    trainer.model = Gated()
    assert not gclint.check(trainer).passed


def test_a_stream_whose_length_raises_is_checked(made: Any) -> None:
    class Long(made.Stream):  # type: ignore[misc]
        def __len__(self) -> int:
            raise TypeError("no length")

    result = gclint.check(made.of_text(False, data=Long(), max_steps=2))
    assert result.passed, result


def test_the_callback_raises_each_time(made: Any) -> None:
    trainer = made.adapted_images(use_reentrant=True)
    trainer.add_callback(gclint.GclintCallback(raises=True))
    for _ in range(2):
        with pytest.raises(gclint.CheckError, match="loses the gradients"):
            trainer.train()
