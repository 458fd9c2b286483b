"""What the runs of a model in all scenarios amount to: which differences are real, and which runs are made.

The model is built, and no run of it takes place: what a run would give is made by hand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest

from tests.decisions import proofs
from tests.decisions.proofs import RIGHT
from tests.verify.planted import imported, tiny_model

pytestmark = pytest.mark.torch

_LOST = {"gradients": {**RIGHT, "embed": None}}
_WRONG = {"gradients": {**RIGHT, "embed": [9.0, 9.0]}}
_STATES = {"outputs": {"states": [1.0]}}
_OTHER_STATES = {"outputs": {"states": [1.1]}}

Facts = Mapping[str, Any]
Given = Callable[[Any], Facts]
"""What is different in a run with these conditions from one that is right."""


class _Runner:
    """Takes the place of the runner of a model."""

    def __init__(self, given: Given) -> None:
        self._given = given
        self.blocks: Any = ()
        self.watched: Any = frozenset()
        self.made: list[Any] = []
        """The conditions of all runs."""

    def run(self, conditions: Any, _scales: Any) -> Any:
        self.made.append(conditions)
        facts = dict(self._given(conditions))
        replay, each = facts.pop("replay", None), facts.pop("step", {})
        total = facts.pop("total", None)
        steps = facts.pop("steps", [each] * conditions.scenario.steps)
        run = proofs.run(conditions.mode, steps, **facts)
        run.conditions = conditions
        if total is not None:
            # The last step is the odd one.
            run.steps[-1] = replace(run.steps[-1], loss=total)
        if conditions.finds_blocks:
            run.blocks = tuple(map(proofs.block, proofs.LAYERS))
        if replay is not None:
            run.replay = replay
        return run

    def embeddings(self) -> tuple[()]:
        return ()


@pytest.fixture(scope="module")
def toy() -> Iterator[Any]:
    """Yield a tiny model of a model with which nothing is wrong."""
    with imported("healthy") as module:
        yield tiny_model(module)


Examine = Callable[..., Any]


@pytest.fixture
def examine(toy: Any, monkeypatch: pytest.MonkeyPatch) -> Examine:
    """Return a function that examines the model in its first scenario and in those that are named."""
    from gclint.verify.worker.examination import scenario_runs
    from gclint.verify.worker.examination.result_builder import ClassResultBuilder
    from gclint.verify.worker.protocol import Source
    from gclint.verify.worker.watch import Watch

    def examined(given: Given, *wanted: str, **facts: Any) -> tuple[Any, list[Any]]:
        runner = _Runner(given)
        monkeypatch.setattr(scenario_runs, "Runner", lambda *_: runner)
        source = Source("modeling_toy.py", "toy", **facts)
        builder = ClassResultBuilder(source, type("Toy", (), {}))
        made = replace(toy, wanted=frozenset(wanted))
        inconclusive = scenario_runs.ScenarioRuns(made, "cpu", builder, Watch()).run()
        return (builder.result() if inconclusive is None else builder.not_run(inconclusive)), runner.made

    return examined


def _replayed(different: int) -> Any:
    from gclint.verify.worker.examination.inspection.checkpoints import Replay

    return Replay(4, different, "float32[2]" if different else "")


def _diverged(is_rounding: bool = False) -> Any:
    """Return an inspection of a checkpoint whose recomputation reads an attribute that has changed."""
    return proofs.inspected(
        proofs.checkpointed(
            origin=proofs.origin(is_rounding=is_rounding),
            changes=(proofs.change("attribute", "count", "layers.0"),),
        )
    )


def _with_checkpointing(facts: Facts, inspection: Any = None) -> Given:
    """Return what is different in runs with checkpointing, and what their inspection shows."""

    def given(conditions: Any) -> Facts:
        if conditions.mode == "plain":
            return {"step": _STATES}
        shown = {"inspection": inspection} if conditions.inspected else {}
        found = {"step": {**_STATES, **facts.get("step", {})}}
        return {**facts, **found, **shown}

    return given


def _checks(result: Any) -> list[str]:
    return sorted({each.check for each in result.failures})


def test_runs_that_are_the_same_have_passed(examine: Examine) -> None:
    result, made = examine(_with_checkpointing({}))
    assert (result.outcome, result.blocks, result.recomputed) == ("passed", 2, 2)
    assert [each.mode for each in made] == ["plain", "plain", "non-reentrant", "reentrant"]


@pytest.mark.parametrize("step", [_WRONG, _LOST, _OTHER_STATES])
@pytest.mark.parametrize("inspection", [None, "rounding", "diverged"])
def test_wrong_results_count_whatever_the_recomputed_tensors_are(
    step: Facts, inspection: str | None, examine: Examine
) -> None:
    shown = None if inspection is None else _diverged(inspection == "rounding")
    found = _with_checkpointing({"step": step, "replay": _replayed(1)}, shown)
    result, _ = examine(found)
    assert result.outcome == "failed"
    (message, *_others) = [each.message for each in result.failures]
    # Tensors that differ by rounding are not named.
    assert ("recomputation gives different values" in message) is (inspection == "diverged")


@pytest.mark.parametrize(
    ("inspection", "outcome"), [(None, "passed"), ("rounding", "passed"), ("diverged", "failed")]
)
def test_recomputed_tensors_alone_count_if_an_operation_differs_by_more_than_rounding(
    inspection: str | None, outcome: str, examine: Examine
) -> None:
    shown = None if inspection is None else _diverged(inspection == "rounding")
    result, made = examine(_with_checkpointing({"replay": _replayed(1)}, shown))
    assert (result.outcome, _checks(result)) == (outcome, ["values"] if outcome == "failed" else [])
    assert {each.cause.name for each in result.failures} == ({"STATE"} if outcome == "failed" else set())
    # Nothing is compared that rounding could explain.
    assert not any(each.perturbed or each.exact for each in made)


_NOISE: dict[str, Facts] = {
    "outputs": {"step": _OTHER_STATES},
    "loss": {"step": {"loss": 1.1}},
    "second step": {"steps": [_STATES, _OTHER_STATES]},
    "buffers": {"values": {"mean": [1.1]}},
    "state": {"attributes": {"count": 2}},
}
_QUIET: dict[str, Facts] = {
    "outputs": {"step": _STATES},
    "loss": {"step": {"loss": 1.0}},
    "second step": {"steps": [_STATES, _STATES]},
    "buffers": {"values": {"mean": [1.0]}},
    "state": {"attributes": {"count": 1}},
}


@pytest.mark.parametrize("is_replayed", [True, False])
@pytest.mark.parametrize("check", _NOISE)
@pytest.mark.parametrize("is_noisy", [True, False])
def test_what_a_perturbation_changes_as_much_is_rounding(
    check: str, is_replayed: bool, is_noisy: bool, examine: Examine
) -> None:
    replay = {"replay": _replayed(1)} if is_replayed else {}

    def given(conditions: Any) -> Facts:
        if conditions.mode != "plain":
            inspection = {"inspection": _diverged()} if conditions.inspected else {}
            return {**_NOISE[check], **replay, **inspection}
        return _NOISE[check] if is_noisy and conditions.perturbed else _QUIET[check]

    result, _ = examine(given)
    assert result.outcome == ("passed" if is_noisy else "failed")
    assert {each.mode for each in result.failures} == (set() if is_noisy else {"reentrant", "non-reentrant"})


def _modes(made: list[Any], scenario: str) -> list[str]:
    """Return the modes in which a scenario was run with checkpointing, without repetitions of a run."""
    return [
        each.mode
        for each in made
        if each.scenario.name == scenario and each.mode != "plain"
        if not (each.inspected or each.perturbed or each.exact or each.bare)
    ]


_BOTH = ["non-reentrant", "reentrant"]


@pytest.mark.parametrize(
    ("found", "with_all", "with_adapters"),
    [
        ({}, _BOTH, _BOTH),
        # A mode that fails, or loses gradients even of the whole model, does not train adapters either.
        ({"error": ("ValueError", "no"), "steps": []}, ["non-reentrant"], ["non-reentrant"]),
        ({"step": _LOST}, _BOTH, ["non-reentrant"]),
        ({"step": _WRONG}, _BOTH, ["non-reentrant"]),
        ({"step": _OTHER_STATES}, _BOTH, _BOTH),
        ({"attributes": {"count": 1}}, _BOTH, _BOTH),
    ],
)
@pytest.mark.parametrize("is_complete", [False, True])
def test_a_mode_that_cannot_be_used_is_not_run_again_unless_versions_are_compared(
    found: Facts, with_all: list[str], with_adapters: list[str], is_complete: bool, examine: Examine
) -> None:
    def given(conditions: Any) -> Facts:
        is_first = (conditions.scenario.name, conditions.mode) == ("default", "reentrant")
        return found if is_first else {"step": _STATES} if conditions.scenario.name == "default" else {}

    _, made = examine(given, "two forwards", "frozen base", complete=is_complete)
    assert _modes(made, "default") == _BOTH
    assert _modes(made, "two forwards") == (_BOTH if is_complete else with_all)
    assert _modes(made, "frozen base") == (_BOTH if is_complete else with_adapters)


def test_what_fails_in_a_later_scenario_stops_no_other(examine: Examine) -> None:
    def given(conditions: Any) -> Facts:
        is_second = (conditions.scenario.name, conditions.mode) == ("two forwards", "reentrant")
        return {"step": _WRONG} if is_second else {}

    result, made = examine(given, "two forwards", "frozen base")
    assert {(each.scenario, each.mode) for each in result.failures} == {("two forwards", "reentrant")}
    assert _modes(made, "frozen base") == _BOTH


@pytest.mark.parametrize(("scenario", "recomputed"), [("two forwards", 0), ("frozen base", 2)])
def test_blocks_count_as_recomputed_by_the_runs_that_train_all_of_them(
    scenario: str, recomputed: int, examine: Examine
) -> None:
    result, _ = examine(
        lambda conditions: {"again": {}} if conditions.scenario.name == scenario else {},
        "two forwards",
        "frozen base",
    )
    assert (result.blocks, result.recomputed) == (2, recomputed)


@pytest.mark.parametrize("is_complete", [False, True])
def test_a_mode_that_is_only_compared_has_verdicts_and_no_more_failures(
    is_complete: bool, examine: Examine
) -> None:
    def given(conditions: Any) -> Facts:
        if conditions.mode != "reentrant":
            return {}
        if conditions.scenario.name == "default":
            return {"error": ("ValueError", "no"), "steps": []}
        return {"values": {"mean": [1.0]}}

    result, _ = examine(given, "two forwards", complete=is_complete)
    assert [(each.check, each.scenario) for each in result.failures] == [("error", "default")]
    seen = {(each.scenario, each.mode): each.observations for each in result.verdicts}
    assert (("two forwards", "reentrant") in seen) is is_complete
    assert bool(seen.get(("two forwards", "reentrant"))) is is_complete


@pytest.mark.parametrize(
    ("loss", "when", "outcome"),
    [
        (1.0, {"default", "two forwards"}, "passed"),
        (float("nan"), {"default"}, "not run"),
        (float("inf"), {"default"}, "not run"),
        # A later scenario that cannot be judged is only noted.
        (float("nan"), {"two forwards"}, "passed"),
    ],
)
def test_losses_that_are_not_finite_judge_nothing(
    loss: float, when: set[str], outcome: str, examine: Examine
) -> None:
    def given(conditions: Any) -> Facts:
        # The repetition has only one step, with which nothing is wrong.
        is_odd = conditions.mode == "plain" and conditions.scenario.name in when and not conditions.traced
        is_wrong = conditions.mode != "plain" and outcome == "not run"
        return {"total": loss} if is_odd else {"step": _WRONG} if is_wrong else {}

    result, made = examine(given, "two forwards")
    assert (result.outcome, result.failures) == (outcome, ())
    assert result.category == ("reference" if outcome == "not run" else None)
    is_noted = loss != 1.0 and outcome == "passed"
    assert list(result.notes) == (
        ["two forwards, without checkpointing: the loss is not a finite number"] if is_noted else []
    )
    assert _modes(made, "two forwards") == (_BOTH if outcome == "passed" and not is_noted else [])
