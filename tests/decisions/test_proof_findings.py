"""What becomes of a class: passed, failed or not judged, and which failures are one."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tests.decisions import proofs
from tests.decisions.proofs import RIGHT, comparison, one_step

pytestmark = pytest.mark.torch

_LOST = one_step(gradients={**RIGHT, "embed": None})
_WRONG = one_step(gradients={**RIGHT, "embed": [9.0, 9.0]})
_TEN = [f"p{number}" for number in range(10)]


def _ten(unstable: int = 0, **facts: Any) -> Any:
    """Return a comparison of ten gradients, some of which differ between plain runs."""
    step = one_step(gradients={name: [1.0] for name in _TEN})
    own = frozenset(("gradient", name) for name in _TEN[:unstable])
    return comparison(step, step, unstable=own, **facts)


def test_what_is_the_same_has_passed() -> None:
    result = proofs.result(comparison())
    assert (result.outcome, result.failures, result.reason) == ("passed", (), None)
    assert (result.compared, result.parameters) == (3, 3)


@pytest.mark.parametrize("found", [_LOST, _WRONG, {"values": {"mean": [1.0]}}, {"attributes": {"n": 1}}])
def test_one_run_that_differs_fails_the_class(found: Any) -> None:
    assert proofs.result(comparison(), comparison({}, found), comparison()).outcome == "failed"


@pytest.mark.parametrize(
    ("unstable", "outcome", "category"),
    [(0, "passed", None), (3, "passed", None), (4, "not run", "not reproducible")],
)
def test_what_was_not_compared_has_not_passed(unstable: int, outcome: str, category: str | None) -> None:
    result = proofs.result(_ten(), _ten(unstable))
    assert (result.outcome, result.category) == (outcome, category)
    assert (result.compared, result.parameters) == (10 - unstable, 10)


def test_a_failure_counts_even_if_too_little_was_compared() -> None:
    failed, doubtful = proofs.result(_ten(4), comparison({}, _LOST)), proofs.result(_ten(4), comparison())
    assert (failed.outcome, failed.category) == ("failed", None)
    assert (doubtful.outcome, doubtful.category) == ("not run", "not reproducible")


@pytest.mark.parametrize(
    ("why", "category", "words"),
    [
        (
            {"noise": {("gradient", name): 50.0 for name in RIGHT}},
            "not compared",
            "the effect of rounding on",
        ),
        ({"unstable": frozenset(("gradient", name) for name in RIGHT)}, "not reproducible", "two plain runs"),
    ],
)
def test_the_reason_says_why_nothing_was_compared(why: Any, category: str, words: str) -> None:
    other = one_step(gradients={name: [9.0, 9.0] for name in RIGHT})
    result = proofs.result(comparison({}, other, **why))
    assert (result.outcome, result.category) == ("not run", category)
    assert words in result.reason


def test_gradients_without_numbers_are_no_proof() -> None:
    nan = one_step(gradients={name: [math.nan, math.nan] for name in RIGHT})
    result = proofs.result(comparison(nan, nan))
    assert (result.outcome, result.category, result.compared) == ("not run", "not compared", 0)
    assert "there are no finite values" in result.reason
    (left_out,) = result.not_compared
    assert (left_out.reason, len(left_out.parameters)) == ("not finite", 3)


@pytest.mark.parametrize(
    ("facts", "again", "outcome"),
    [
        ({}, 0, "passed"),
        # A function without blocks is checkpointed.
        ({"blocks": ()}, 1, "passed"),
        ({"blocks": ()}, 0, "not run"),
    ],
)
def test_without_anything_that_was_recomputed_nothing_is_proven(facts: Any, again: int, outcome: str) -> None:
    from gclint.verify.worker.examination.inspection.checkpoints import Replay

    result = proofs.result(comparison({}, {"replay": Replay(again=again)}, **facts))
    assert (result.outcome, result.category) == (
        outcome,
        None if outcome == "passed" else "nothing to recompute",
    )


def test_one_run_that_recomputes_something_is_enough() -> None:
    idle = comparison({}, one_step(saved=100), blocks=())
    assert proofs.result(idle, idle).outcome == "not run"
    assert proofs.result(idle, comparison()).outcome == "passed"
    assert proofs.result(comparison(), idle).outcome == "passed"


def test_a_lone_block_that_is_recomputed_is_something_to_recompute() -> None:
    lone = (proofs.block("layers.0"),)
    assert proofs.result(comparison({}, one_step(saved=100), blocks=(), lone=lone)).outcome == "passed"
    never = {**one_step(saved=100), "again": {}}
    assert proofs.result(comparison({}, never, blocks=(), lone=lone)).outcome == "not run"


def test_the_run_of_which_least_was_compared_is_shown_unless_its_base_is_frozen() -> None:
    assert proofs.result(_ten(), _ten(2), _ten(1)).compared == 8
    assert proofs.result(_ten(), _ten(2, scenario="frozen base")).compared == 10


def test_a_frozen_base_of_which_too_little_was_compared_is_a_doubt_all_the_same() -> None:
    assert proofs.result(_ten(), _ten(4, scenario="frozen base")).outcome == "not run"


@pytest.mark.parametrize(
    ("first", "second", "count"),
    [
        ({}, {}, 1),
        ({}, {"scenario": "dropout"}, 1),
        ({}, {"mode": "non-reentrant"}, 2),
    ],
)
def test_the_same_failure_in_another_scenario_is_one_and_in_another_mode_two(
    first: Any, second: Any, count: int
) -> None:
    result = proofs.result(comparison({}, _LOST, **first), comparison({}, _LOST, **second))
    assert len(result.failures) == count
    assert result.failures[0].scenario == "default"


def test_failures_of_one_cause_are_one_and_those_of_others_are_others() -> None:
    moved = {"values": {"mean": [1.0]}}
    result = proofs.result(comparison({}, _LOST), comparison({}, _WRONG), comparison({}, moved))
    # Nothing explains why gradients are lost or wrong.
    assert [(each.check, each.cause.name) for each in result.failures] == [
        ("missing gradients", "DISAGREEMENT"),
        ("buffers", "STATISTICS"),
    ]


def test_failures_at_other_places_are_others() -> None:
    from gclint.verify.worker.protocol import SourcePlace

    def dead(line: int) -> Any:
        from gclint.verify.worker.examination.fault import Fault

        compared = comparison({}, {"steps": []}, source="modeling_toy.py")
        compared.run.error = Fault("time limit", "no end", (SourcePlace("modeling_toy.py", line, line),))
        return compared

    assert len(proofs.result(dead(3), dead(3)).failures) == 1
    result = proofs.result(dead(3), dead(4))
    assert [each.places for each in result.failures] == [
        (SourcePlace("modeling_toy.py", line, line),) for line in (3, 4)
    ]


def test_a_failure_has_the_mode_scenario_and_parameters_of_its_run() -> None:
    (failure,) = proofs.result(comparison({}, _LOST, mode="non-reentrant", scenario="dropout")).failures
    assert (failure.check, failure.mode, failure.scenario) == (
        "missing gradients",
        "non-reentrant",
        "dropout",
    )
    assert failure.parameters == ("embed",)


@pytest.mark.parametrize(
    ("found", "cause", "rest"),
    [
        # A flag that stays disabled explains that nothing is recomputed.
        ({"still_off": ("encoder",), "again": {}}, "SWITCHES", 0),
        ({"again": {}}, "NOTHING_RECOMPUTED", 0),
        # And it explains no wrong gradient.
        ({"still_off": ("encoder",), **_WRONG}, "SWITCHES", 1),
    ],
)
def test_failed_checks_of_one_cause_are_one_failure(found: Any, cause: str, rest: int) -> None:
    first, *others = proofs.result(comparison({}, found)).failures
    assert (first.cause.name, len(others)) == (cause, rest)


def _verdict(compared: Any) -> Any:
    from gclint.verify.worker.examination.reporting import verdict

    return verdict(compared, list(proofs.failed_checks(compared).values()))


def test_a_verdict_names_what_was_compared_and_recomputed() -> None:
    seen = _verdict(comparison({}, {"again": {"layers.0": 1}}))
    assert (seen.scenario, seen.mode, seen.compared) == ("default", "reentrant", 3)
    assert seen.recomputed == ("layers.0",)
    assert [each.check for each in seen.observations] == ["recomputation"]
    assert [each.about for each in seen.observations] == [("layers.1",)]


def test_a_run_that_failed_recomputed_nothing() -> None:
    assert _verdict(comparison({}, {"error": ("ValueError", "no")})).recomputed == ()
    assert _verdict(comparison({}, {"steps": []})).saved_bytes is None
    assert _verdict(comparison()).saved_bytes == 40


def test_what_checkpoints_hold_is_kept_as_well_and_only_the_first_step_counts() -> None:
    found = {"steps": [{"saved": 40, "held": 30}, {"saved": 70, "held": 80}]}
    assert _verdict(comparison({"steps": [{}, {}]}, found)).saved_bytes == 70


@pytest.mark.parametrize(("noise", "gradient", "left_out"), [(1e-7, 1e-6, False), (0.3, 1.5, True)])
def test_a_gradient_that_is_zero_but_for_rounding_was_compared(
    noise: float, gradient: float, left_out: bool
) -> None:
    step, other = (
        one_step(gradients={**RIGHT, "bias": [each, 0.0]}) for each in (gradient, gradient - 4 * noise)
    )
    seen = _verdict(comparison(step, other, noise={("gradient", "bias"): noise}))
    assert (seen.compared, seen.not_compared) == ((3, ("bias",)) if left_out else (4, ()))


def test_a_gradient_without_numbers_was_not_compared() -> None:
    step = one_step(gradients={**RIGHT, "bias": [math.nan, math.nan]})
    seen = _verdict(comparison(step, step))
    assert (seen.compared, seen.not_compared) == (3, ("bias",))


def test_a_verdict_names_the_check_that_a_frozen_base_fails() -> None:
    (seen,) = _verdict(comparison({}, _WRONG, scenario="frozen base")).observations
    assert (seen.check, seen.about) == ("gradients", ("embed",))


def test_only_blocks_that_ran_were_recomputed() -> None:
    ran = {"ran": {"layers.0": 1}}
    assert _verdict(comparison(ran, {**ran, "again": {"layers.0": 1}})).recomputed == ("layers.0",)


@pytest.mark.parametrize(("unstable", "left_out"), [(0, ()), (2, ("p0", "p1"))])
def test_a_verdict_names_what_was_not_compared(unstable: int, left_out: tuple[str, ...]) -> None:
    seen = _verdict(_ten(unstable))
    assert (seen.compared, seen.not_compared) == (10 - unstable, left_out)


@pytest.mark.parametrize(
    ("steps", "observed"),
    [
        ([{}, {}], []),
        ([{}, *_LOST["steps"]], [("second step", ("embed",))]),
        # A wrong first step, and in the second more than that.
        (
            [*_LOST["steps"], {"gradients": {**RIGHT, "embed": None, "layers.0.weight": None}}],
            [("missing gradients", ("embed",)), ("second step", ("layers.0.weight",))],
        ),
        ([*_LOST["steps"], *_LOST["steps"]], [("missing gradients", ("embed",))]),
    ],
)
def test_a_verdict_records_later_steps_even_after_a_wrong_one(steps: Any, observed: Any) -> None:
    seen = _verdict(comparison({"steps": [{}, {}]}, {"steps": steps}))
    assert [(each.check, each.about) for each in seen.observations] == observed


@pytest.mark.parametrize(
    ("parts", "not_covered"),
    [([["a", "b"]], ("a", "b")), ([["a", "b"], ["b"]], ("b",)), ([["a"], ["b"]], ()), ([], ())],
)
def test_a_part_is_covered_if_any_run_covers_it(parts: Any, not_covered: Any) -> None:
    from gclint.verify.worker.examination.result_builder import ClassResultBuilder
    from gclint.verify.worker.protocol import Source

    builder = ClassResultBuilder(Source("modeling_toy.py", "toy"), type("Toy", (), {}))
    for each in parts:
        builder.add_not_covered(each)
    assert builder.result().not_covered == not_covered


@pytest.mark.parametrize(
    ("reference", "noisy", "grade"),
    [
        (1.0, 1.04, "stable"),
        (1.0, 1.06, "amplifies"),
        (1.0, None, "amplifies"),
        (0.0, 1.0, "stable"),
    ],
)
def test_noise_is_amplified_beyond_a_twentieth(
    reference: float, noisy: float | None, grade: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gclint.verify.worker.examination import runner

    def step(value: float | None) -> Any:
        return one_step(gradients={"w": None if value is None else [value, 0.0], "rest": [1.0, 0.0]})

    class Runner:
        def run(self, conditions: Any, scales: Any) -> Any:
            return proofs.run("non-reentrant", **step(noisy if conditions.noise else reference))

    monkeypatch.setattr(runner, "expert_implementations", lambda _model: ("",))
    nothing: Any = None
    (found,) = runner.stability(nothing, Runner(), {})  # type: ignore[arg-type]
    assert found.grade == grade
