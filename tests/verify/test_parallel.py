"""Training with DistributedDataParallel: what several processes come to, and what is said of it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gclint.verify.run import verify
from gclint.verify.settings import RunSettings
from gclint.verify.sources import target_of
from gclint.verify.worker.practices import DDP, practices_named
from gclint.verify.worker.protocol import SetUp
from tests.verify.planted_setups import FOLDER, load_planted_setups, train_planted

if TYPE_CHECKING:
    from gclint.verify.worker.training.practice_run import PracticeRun

pytestmark = pytest.mark.torch

_CLOSED = "[../gloo/transport/tcp/pair.cc:547] Connection closed by peer [127.0.0.1]:38211"
_WAITED = "[../gloo/transport/tcp/unbound_buffer.cc:78] Timed out waiting 15000ms for recv operation"
_UNUSED = "Expected to have finished reduction in the prior iteration before starting a new one."


def _run(message: str = "", kind: str = "RuntimeError", stage: str = "the backward pass") -> PracticeRun:
    from gclint.verify.worker.examination.fault import Fault
    from gclint.verify.worker.training.practice_run import PracticeRun

    return PracticeRun(stage=stage, error=Fault(kind, message) if message else None)


def _row(name: str, outcome: Any = "works", symptom: str = "", data: str = "", *names: str) -> SetUp:
    return SetUp(DDP, name, data, outcome, symptom, parameters=names)


def _trained(name: str) -> tuple[SetUp, ...]:
    return train_planted(next(each for each in load_planted_setups() if each.name == name)).setups


@pytest.mark.parametrize(
    ("first", "second", "blamed"),
    [
        (_CLOSED, _UNUSED, "rank 1"),
        (_UNUSED, _CLOSED, "rank 0"),
        (_WAITED, "ValueError of the model", "rank 1"),
        ("Broken pipe", _UNUSED, "rank 1"),
    ],
)
def test_the_process_that_fails_first_is_told(first: str, second: str, blamed: str) -> None:
    from gclint.verify.worker.training.practice_run import together

    found = together([_run(first), _run(second)])
    assert found.stage == f"the backward pass of {blamed}"


def test_a_process_that_dies_is_told_before_those_that_wait_for_it() -> None:
    from gclint.verify.worker.training.practice_run import together

    dead, waiting = _run("an exit", "exit"), _run(_WAITED)
    assert together([waiting, dead]).error == dead.error
    hanging = _run("no end within 5 s", "time limit")
    assert together([hanging, waiting]).error == hanging.error
    assert together([hanging, _run(_UNUSED)]).stage.endswith("rank 1"), "what hangs may wait as well"


def test_processes_that_train_together_have_the_mean_of_their_gradients() -> None:
    import torch

    from gclint.verify.worker.training.practice_run import PracticeRun, average

    one = PracticeRun(gradients=[{"seen": torch.tensor([2.0]), "by one": None, "by none": None}])
    other = PracticeRun(
        gradients=[{"seen": torch.tensor([4.0]), "by one": torch.tensor([8.0]), "by none": None}]
    )
    for gradients in average([one, other]).gradients:
        assert gradients == {"seen": torch.tensor([3.0]), "by one": torch.tensor([4.0]), "by none": None}
    assert len(average([one, other]).gradients) == 2, "each of the two is compared"


def test_nothing_is_left_running_when_one_of_two_processes_dies() -> None:
    before = _children()
    rows = _trained("rank_dies")
    assert [each.outcome for each in rows] == ["works", "fails"]
    assert _children() == before


def _children() -> set[str]:
    """Return the processes that this one has started and not waited for; other tests may have left some."""
    tasks = Path("/proc/self/task").glob("*/children")
    return {number for each in tasks for number in each.read_text(encoding="ascii").split()}


def test_processes_meet_in_the_network_that_the_worker_has_for_itself() -> None:
    asked = ("ddp:N/plain:two-ranks", "ddp:N/Trainer")
    settings = RunSettings(Path(sys.executable), "cpu", jobs=1, seconds=60, gigabytes=6, practices=asked)
    found = verify([target_of(FOLDER / "block_of_its_own" / "modeling_toy.py")], settings)
    assert found.problem is None
    (result,) = found.sorted()
    assert [(each.title, each.outcome) for each in result.setups] == [(each, "works") for each in asked]


def test_without_a_loopback_interface_the_row_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    from gclint.verify.worker.training import parallel

    monkeypatch.setattr(parallel, "_LOOPBACK", "none7")
    rows = _trained("branch_used")
    assert {(each.outcome, each.symptom) for each in rows} == {("not run", "no process group")}
    assert "gloo cannot use the network interface 'none7' of this machine" in rows[0].message


def test_a_process_that_has_a_process_group_gets_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch.distributed

    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    rows = _trained("branch_used")
    assert {each.message for each in rows} == {"this process is a member of a process group already"}


def test_advice_is_the_first_setting_that_always_works_and_what_it_avoids() -> None:
    from gclint.verify.worker.training.parallel import advise

    unused = _row("N/plain", "fails", "unused parameters", "text", "visual.patches.bias", "visual.norm.bias")
    works = _row("N/find-unused", "works", "", "text"), _row("R/static")
    advice = advise([_row("N/plain"), unused, *works])
    assert advice is not None
    assert advice.setting == "use_reentrant=False, find_unused_parameters=True"
    assert advice.sentence == (
        "With DistributedDataParallel, use use_reentrant=False with find_unused_parameters=True "
        "(ddp_find_unused_parameters=True in the Trainer): "
        "on text, no gradient reaches 2 parameters, such as `visual.patches.bias`."
    )


def test_advice_says_that_nothing_works() -> None:
    from gclint.verify.worker.training.parallel import advise

    advice = advise([_row("N/plain", "fails", "wrong gradients"), _row("R/Trainer")])
    assert advice is not None
    assert advice.setting == ""
    assert advice.sentence == (
        "With DistributedDataParallel, no setting that was run works with all data: "
        "N/plain fails (wrong gradients)."
    )
    assert advise([_row("N/plain", "not run", "no process group")]) is None


def test_all_settings_of_the_same_data_are_compared_with_one_run() -> None:
    practices = practices_named([DDP])
    references = {each.reference() for each in practices}
    data = {(each.data, each.name.endswith("LoRA")) for each in practices}
    assert len(references) == len(data)


def test_batches_leave_out_modalities_with_their_placeholders() -> None:
    from transformers.models.qwen2_vl.modeling_qwen2_vl import Qwen2VLForConditionalGeneration

    from gclint.verify.worker.synthesis.attempts.search import tiny_models

    tiny_model = next(tiny_models(Qwen2VLForConditionalGeneration))
    assert tiny_model.variants is not None
    assert tiny_model.modalities() == {"image", "video"}
    usual, text = tiny_model.inputs(), tiny_model.variants.inputs(())
    images = tiny_model.variants.inputs(("image",))
    assert [name for name in usual if name not in text] == [
        *("pixel_values", "pixel_values_videos", "image_grid_thw", "video_grid_thw")
    ]
    assert [name for name in usual if name not in images] == ["pixel_values_videos", "video_grid_thw"]
    lengths = [len(each["input_ids"][0]) for each in (text, images, usual)]
    assert lengths == sorted(set(lengths)), "what is not there has no placeholders"


def test_a_setting_that_was_not_run_with_all_data_is_not_advised() -> None:
    from gclint.verify.worker.training.parallel import advise

    late = _row("N/plain", "not run", "time limit", "images")
    advice = advise([_row("N/plain"), late, _row("N/find-unused")])
    assert advice is not None
    assert advice.setting == "use_reentrant=False, find_unused_parameters=True"
    assert advise([_row("N/plain"), late]) is None


def test_what_is_slow_without_checkpointing_is_no_hang_with_it() -> None:
    from gclint.verify.worker.ending import End
    from gclint.verify.worker.training.training import _run_of

    end = End("time limit", "no end within 5 s")
    for is_slow in (True, False):
        error = _run_of(None, end, "the backward pass", is_slow).error
        assert error is not None
        assert error.is_foreign is is_slow
