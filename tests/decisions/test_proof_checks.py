"""What each check of a run with checkpointing takes for a failure, and what not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.decisions import proofs
from tests.decisions.proofs import LAYERS, RIGHT, comparison, failed_checks, failing, one_step

pytestmark = pytest.mark.torch

_DENSE = "embed"


def _cause(compared: Any, check: str) -> str | None:
    cause = failed_checks(compared)[check].cause
    return None if cause is None else cause.name


@pytest.mark.parametrize(
    ("kind", "check"),
    [
        ("ValueError", "error"),
        ("endless recomputation", "error"),
        ("no gradient", "error"),
        ("time limit", "time limit"),
        ("memory limit", "memory limit"),
        ("crash", "crash"),
        ("exit", "exit"),
    ],
)
def test_an_error_fails_under_its_own_name_only_if_it_ends_the_process(kind: str, check: str) -> None:
    seen = failing(comparison({}, {"steps": [], "error": (kind, "layers.0"), "stage": "the backward pass"}))
    assert list(seen) == [check]


def test_an_endless_recomputation_is_about_the_block_that_its_message_names() -> None:
    endless = comparison({}, {"steps": [], "error": ("endless recomputation", "layers.1")})
    assert failing(endless) == {"error": ("layers.1",)}
    assert failing(comparison({}, {"steps": [], "error": ("RuntimeError", "layers.1")})) == {"error": ()}


@pytest.mark.parametrize(
    ("stage", "layers", "about"),
    [
        ("enabling checkpointing", False, LAYERS),
        ("enabling checkpointing", True, ()),
        ("the forward pass", False, ()),
    ],
)
def test_an_error_in_enabling_is_about_blocks_that_are_not_layers(
    stage: str, layers: bool, about: tuple[str, ...]
) -> None:
    run = {"steps": [], "error": ("ValueError", "no"), "stage": stage}
    assert failing(comparison({}, run, layers=layers)) == {"error": about}


@pytest.mark.parametrize(
    ("facts", "about"),
    [
        ({}, None),
        ({"still_off": ("encoder",)}, ("encoder",)),
        ({"still_on": ("decoder",)}, ("decoder",)),
        # Both are said; the one that stays enabled comes last.
        ({"still_off": ("encoder",), "still_on": ("decoder",)}, ("decoder",)),
    ],
)
def test_a_flag_that_keeps_its_value_fails(facts: Any, about: tuple[str, ...] | None) -> None:
    assert failing(comparison({}, facts)) == ({} if about is None else {"switches": about})


@pytest.mark.parametrize(
    ("again", "layers", "about", "cause"),
    [
        ({"layers.0": 1, "layers.1": 1}, True, None, None),
        ({"layers.0": 1}, True, ("layers.1",), "NOTHING_RECOMPUTED"),
        ({"layers.0": 1}, False, ("layers.1",), "NOT_A_LAYER"),
        ({}, True, LAYERS, "NOTHING_RECOMPUTED"),
        ({}, False, LAYERS, "NOT_A_LAYER"),
    ],
)
def test_each_block_that_ran_is_recomputed(
    again: Any, layers: bool, about: tuple[str, ...] | None, cause: str | None
) -> None:
    compared = comparison({}, {"again": again}, layers=layers)
    assert failing(compared) == ({} if about is None else {"recomputation": about})
    if about is not None:
        assert _cause(compared, "recomputation") == cause


@pytest.mark.parametrize(("again", "is_all"), [({}, True), ({"layers.0": 1}, False)])
def test_nothing_recomputed_is_said_otherwise_than_some(again: Any, is_all: bool) -> None:
    message = failed_checks(comparison({}, {"again": again}))["recomputation"].message
    assert message.startswith("nothing is recomputed") is is_all
    assert message.startswith("stacked blocks are not recomputed: 1 of ToyLayer") is not is_all


def test_nothing_is_said_of_all_blocks_if_some_lost_their_gradients() -> None:
    gradients = {**RIGHT, "layers.1.weight": None}
    seen = failed_checks(comparison({}, {**one_step(gradients=gradients), "again": {}}))["recomputation"]
    assert seen.message.startswith("stacked blocks are not recomputed: 1 of ToyLayer")


def test_a_block_that_only_the_plain_run_needs_is_not_left_out() -> None:
    assert failing(comparison({}, {"ran": {"layers.0": 1}, "again": {"layers.0": 1}})) == {}
    assert failing(comparison({}, {"again": {"layers.0": 1}})) == {"recomputation": ("layers.1",)}


def test_a_block_that_did_not_run_need_not_be_recomputed() -> None:
    ran = {"ran": {"layers.0": 1}, "again": {"layers.0": 1}}
    assert failing(comparison(ran, ran)) == {}


def test_a_block_has_to_be_recomputed_as_often_as_it_ran() -> None:
    ran = {"layers.0": 2, "layers.1": 2}
    assert failing(comparison({"ran": ran}, {"ran": ran, "again": ran})) == {}
    once = {"ran": ran, "again": {"layers.0": 2, "layers.1": 1}}
    assert failing(comparison({"ran": ran}, once)) == {"recomputation": ("layers.1",)}


@pytest.mark.parametrize(("lost", "about"), [(True, None), (False, ("layers.1",))])
def test_a_block_without_any_gradient_is_reported_as_that(lost: bool, about: tuple[str, ...] | None) -> None:
    gradients = {**RIGHT, "layers.1.weight": None} if lost else RIGHT
    seen = failing(comparison({}, {**one_step(gradients=gradients), "again": {"layers.0": 1}}))
    assert seen.get("recomputation") == about
    assert ("missing gradients" in seen) is lost


def test_a_block_that_lost_only_some_gradients_has_to_be_recomputed() -> None:
    def gradients(*lost: str) -> Any:
        known = {**RIGHT, "layers.1.bias": [1.0]}
        return one_step(gradients={name: None if name in lost else each for name, each in known.items()})

    def compared(*lost: str) -> Any:
        own = frozenset({"layers.1.weight", "layers.1.bias"})
        blocks = tuple(proofs.block(name, parameters=own if name == "layers.1" else None) for name in LAYERS)
        return comparison(gradients(), {**gradients(*lost), "again": {"layers.0": 1}}, blocks=blocks)

    assert "recomputation" in failing(compared("layers.1.bias"))
    assert "recomputation" not in failing(compared("layers.1.bias", "layers.1.weight"))


@pytest.mark.parametrize(
    ("again", "about"),
    [
        ({"layers.0": 1, "layers.1": 1}, None),
        ({"layers.0": 2, "layers.1": 1}, ("layers.0",)),
        ({"layers.0": 2, "layers.1": 3}, LAYERS),
    ],
)
def test_a_block_is_recomputed_once(again: Any, about: tuple[str, ...] | None) -> None:
    compared = comparison({}, {"again": again})
    assert failing(compared) == ({} if about is None else {"double recomputation": about})


def test_the_number_of_recomputations_is_the_largest_share() -> None:
    ran = {"layers.0": 2, "layers.1": 2}
    seen = failed_checks(comparison({"ran": ran}, {"ran": ran, "again": {"layers.0": 6, "layers.1": 3}}))
    assert "recomputed 3 times" in seen["double recomputation"].message


def test_a_block_within_a_recomputed_one_runs_with_it() -> None:
    blocks = tuple(map(proofs.block, ("layers.0", "layers.0.inner")))
    ran = {"layers.0": 1, "layers.0.inner": 1}
    inner = {"layers.0": 1, "layers.0.inner": 2}
    outer = {"layers.0": 2, "layers.0.inner": 1}
    assert failing(comparison({"ran": ran}, {"ran": ran, "again": inner}, blocks=blocks)) == {}
    seen = failing(comparison({"ran": ran}, {"ran": ran, "again": outer}, blocks=blocks))
    assert seen == {"double recomputation": ("layers.0",)}


def test_a_name_that_only_begins_alike_is_not_within() -> None:
    blocks = tuple(map(proofs.block, ("layers.1", "layers.10")))
    ran = {"layers.1": 1, "layers.10": 1}
    seen = failing(
        comparison({"ran": ran}, {"ran": ran, "again": {"layers.1": 1, "layers.10": 2}}, blocks=blocks)
    )
    assert seen == {"double recomputation": ("layers.10",)}


@pytest.mark.parametrize("check", ["recomputation", "double recomputation"])
def test_what_ended_early_is_not_blamed_for_what_it_did_not_do(check: str) -> None:
    again = {} if check == "recomputation" else {"layers.0": 2, "layers.1": 2}
    assert check in failing(comparison({}, {"again": again}))
    assert check not in failing(comparison({}, {"again": again, "error": ("ValueError", "no")}))


@pytest.mark.parametrize(("saved", "fails"), [(40, False), (99, False), (100, True), (101, True)])
def test_checkpointing_has_to_save_bytes(saved: int, fails: bool) -> None:
    assert ("saved bytes" in failing(comparison({}, one_step(saved=saved)))) is fails


@pytest.mark.parametrize(
    ("facts", "fails"),
    [
        ({}, True),
        ({"scenario": "cache"}, False),
        # There is nothing that could be saved.
        ({"blocks": ()}, False),
        ({"blocks": (replace(proofs.block("layers.0"), saves_more=False),)}, False),
        ({"blocks": (proofs.block("layers.1"), replace(proofs.block("layers.0"), saves_more=False))}, True),
    ],
)
def test_bytes_count_only_where_blocks_are_and_caches_are_not(facts: Any, fails: bool) -> None:
    assert ("saved bytes" in failing(comparison({}, one_step(saved=100), **facts))) is fails


def test_what_lost_its_gradients_saves_nothing() -> None:
    lost = one_step(saved=200, gradients={**RIGHT, _DENSE: None})
    assert set(failing(comparison({}, lost))) == {"missing gradients"}
    wrong = one_step(saved=200, gradients={**RIGHT, _DENSE: [9.0, 9.0]})
    assert set(failing(comparison({}, wrong))) == {"gradients", "saved bytes"}


@pytest.mark.parametrize(
    ("again", "words"),
    # That nothing is recomputed is said already.
    [(None, "checkpointing saves nothing: "), ({}, "autograd keeps 100 bytes")],
)
def test_saving_nothing_is_said_otherwise_if_nothing_was_recomputed(again: Any, words: str) -> None:
    seen = failed_checks(comparison({}, {**one_step(saved=100), "again": again}))["saved bytes"]
    assert seen.message.startswith(words)
    assert seen.cause is not None
    assert seen.cause.name == "NOTHING_SAVED"


@pytest.mark.parametrize(
    ("warning", "fails"),
    [
        ("None of the inputs have requires_grad=True. Gradients will be None", True),
        ("some inputs have requires_grad=True", False),
    ],
)
def test_only_the_warning_of_torch_about_inputs_fails(warning: str, fails: bool) -> None:
    assert ("warning" in failing(comparison({}, {"warnings": (warning,)}))) is fails


def _call(block: str, caches: dict[int, str]) -> Any:
    from gclint.verify.worker.examination.block_calls import BlockCall
    from gclint.verify.worker.protocol import SourcePlace

    return BlockCall(block, SourcePlace("modeling_toy.py", 1, 1), {}, {}, (), caches, {}, True)


@pytest.mark.parametrize(
    ("written", "about"), [({7}, ("layers.1",)), ({5, 7}, LAYERS), ({9}, None), (set(), None)]
)
def test_a_cache_fails_where_it_is_passed_and_written_twice(written: Any, about: Any) -> None:
    from gclint.verify.worker.examination.state import SideEffects

    calls = [_call("layers.0", {5: "ToyCache"}), _call("layers.1", {7: "ToyCache"})]
    run = {"calls": calls, "side_effects": SideEffects(caches=frozenset(written))}
    assert failing(comparison({}, run)) == ({} if about is None else {"cache": about})


@pytest.mark.parametrize(("different", "fails"), [(0, False), (1, True)])
def test_one_recomputed_tensor_that_differs_fails(different: int, fails: bool) -> None:
    from gclint.verify.worker.examination.inspection.checkpoints import Replay

    replay = Replay(compared=5, different=different, first="float32 tensor")
    assert ("values" in failing(comparison({}, {"replay": replay}))) is fails


@pytest.mark.parametrize(
    ("found", "kinds"),
    [
        ({}, []),
        (one_step(gradients={**RIGHT, _DENSE: None}), ["missing gradients"]),
        (one_step(gradients={**RIGHT, _DENSE: [0.0, 9.0]}), ["gradients"]),
        ({"steps": [], "error": ("ValueError", "no")}, ["error"]),
        # Blocks, buffers and bytes are judged where everything is trained.
        ({"again": {}, "values": {"mean": [1.0]}, **one_step(saved=500, outputs={"a": [1.0]})}, []),
    ],
)
def test_with_a_frozen_base_only_errors_and_gradients_count(found: Any, kinds: list[str]) -> None:
    from gclint.verify.worker.examination.checks import frozen_base

    seen = list(frozen_base(comparison({}, found, scenario="frozen base")))
    assert [each.kind for each in seen] == kinds
    assert all(each.check == "frozen base" for each in seen)


def test_with_a_frozen_base_the_circumstance_is_said_once() -> None:
    from gclint.verify.worker.examination.checks import frozen_base

    gradients = {**RIGHT, _DENSE: None, "layers.0.weight": [9.0, 9.0]}
    seen = list(frozen_base(comparison({}, one_step(gradients=gradients), scenario="frozen base")))
    assert [each.message.startswith("with a frozen base, ") for each in seen] == [True, False]


@pytest.mark.parametrize(
    ("scenario", "check", "is_made"),
    [
        ("default", "recomputation", True),
        ("default", "state", True),
        ("two forwards", "state", False),
        ("two forwards", "gradients", True),
        ("layerdrop", "recomputation", False),
        ("layerdrop", "gradients", True),
        ("cache", "cache", True),
        ("frozen base", "buffers", False),
        ("frozen base", "frozen base", True),
        ("default", "frozen base", False),
    ],
)
def test_each_scenario_has_its_checks(scenario: str, check: str, is_made: bool) -> None:
    from gclint.verify.worker.scenarios import scenario_named

    assert (check in scenario_named(scenario).checks) is is_made


@pytest.mark.parametrize(
    ("mode", "makes_input_require_grad", "steps"),
    [("default", False, 2), ("frozen base", True, 1), ("dropout", False, 1)],
)
def test_scenarios_differ_in_steps_and_in_what_requires_grad(
    mode: str, makes_input_require_grad: bool, steps: int
) -> None:
    from gclint.verify.worker.scenarios import scenario_named

    known = scenario_named(mode)
    assert (known.require_input_grads, known.steps) == (makes_input_require_grad, steps)


def test_both_modes_are_run_and_each_only_once() -> None:
    from gclint.verify.worker.modes import CHECKPOINTED

    assert sorted(CHECKPOINTED) == ["non-reentrant", "reentrant"]
