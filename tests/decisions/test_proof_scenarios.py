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
from tests.verify.planted import imported, specimen

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
        steps = facts.pop("steps", [each] * conditions.scenario.steps)
        run = proofs.run(conditions.mode, steps, **facts)
        run.conditions = conditions
        if conditions.finds_blocks:
            run.blocks = tuple(map(proofs.block, proofs.LAYERS))
        if replay is not None:
            run.replay = replay
        return run

    def embeddings(self) -> tuple[()]:
        return ()


@pytest.fixture(scope="module")
def toy() -> Iterator[Any]:
    """Yield a specimen of a model with which nothing is wrong."""
    with imported("healthy") as module:
        yield specimen(module)


Examine = Callable[..., Any]


@pytest.fixture
def examine(toy: Any, monkeypatch: pytest.MonkeyPatch) -> Examine:
    """Return a function that examines the model in its first scenario and in those that are named."""
    from gclint.verify.worker.examination import scenarios
    from gclint.verify.worker.examination.findings import Findings
    from gclint.verify.worker.protocol import Source
    from gclint.verify.worker.watch import Unwatched

    def examined(given: Given, *wanted: str, **facts: Any) -> tuple[Any, list[Any]]:
        runner = _Runner(given)
        monkeypatch.setattr(scenarios, "Runner", lambda *_: runner)
        source = Source("modeling_toy.py", "toy", **facts)
        findings = Findings(source, type("Toy", (), {}), ())
        made = replace(toy, wanted=frozenset(wanted))
        doubt = scenarios.Scenarios(made, "cpu", findings, Unwatched()).run()
        return (findings.result() if doubt is None else findings.not_run(doubt)), runner.made

    return examined


def _replayed(different: int) -> Any:
    from gclint.verify.worker.examination.inspection.replay import Replay

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
