"""What is tried with a model before it is given up, and what is measured only once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from tests.verify.planted import imported, tiny_model

pytestmark = pytest.mark.torch


def _first_only(module: Any, **changes: Any) -> Any:
    """Return the result of examining a planted model in its first scenario."""
    from gclint.verify.worker.examination.examine import examine
    from gclint.verify.worker.protocol import Source
    from gclint.verify.worker.watch import Watch

    made = replace(tiny_model(module), wanted=frozenset(), **changes)
    return examine(Source(module.__file__, module.__name__), module.ToyModel, [made], "cpu", watch=Watch())


def test_model_that_takes_batches_of_only_one_length_is_run_with_that() -> None:
    import torch

    with imported("healthy") as module:
        # There are 32 tokens.
        result = _first_only(module, other_inputs=lambda: {"input_ids": torch.full((2, 8), 32)})
    assert (result.outcome, result.scenarios, result.blocks) == ("passed", ("default",), 3)
    (note,) = result.notes
    assert note.startswith("run with one length only, since the forward pass of the second step raises")


def test_model_that_needs_its_cache_is_run_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    with imported("cache_by_keyword") as module:
        usual = module.ToyModel.forward

        def forward(self: Any, input_ids: Any, use_cache: Any = None) -> Any:
            if use_cache is False:
                raise ValueError("a cache is needed")
            return usual(self, input_ids, use_cache=False)

        monkeypatch.setattr(module.ToyModel, "forward", forward)
        result = _first_only(module)
    assert (result.outcome, result.scenarios, result.blocks) == ("passed", ("default",), 3)
    (note,) = result.notes
    assert note == (
        "run without `use_cache=False`, with which the forward pass raises ValueError: a cache is needed"
    )


def test_model_that_fails_either_way_is_not_judged_for_what_failed_first() -> None:
    with imported("healthy") as module:
        result = _first_only(module, inputs=lambda: {"input_ids": None})
    assert (result.outcome, result.notes) == ("not run", ())
    assert result.reason is not None
    assert result.reason.startswith("the forward pass raises TypeError")


@pytest.mark.parametrize("has_other_inputs", [True, False])
def test_model_whose_second_step_always_fails_is_not_judged(
    monkeypatch: pytest.MonkeyPatch, has_other_inputs: bool
) -> None:
    with imported("healthy") as module:
        usual = module.ToyModel.forward

        def forward(self: Any, input_ids: Any) -> Any:
            if hasattr(self, "has_run"):
                raise ValueError("once only")
            self.has_run = True
            return usual(self, input_ids)

        monkeypatch.setattr(module.ToyModel, "forward", forward)
        result = _first_only(module, **({} if has_other_inputs else {"other_inputs": None}))
    assert (result.outcome, result.notes) == ("not run", ())
    assert result.reason == "the forward pass of the second step raises ValueError: once only"


@contextmanager
def _scenarios(feature: str) -> Iterator[tuple[Any, Any]]:
    from gclint.verify.worker.examination.result_builder import ClassResultBuilder
    from gclint.verify.worker.examination.scenario_runs import ScenarioRuns
    from gclint.verify.worker.protocol import Source
    from gclint.verify.worker.watch import Watch

    with imported("router_losses_returned") as module:
        builder = ClassResultBuilder(Source(module.__file__, module.__name__), module.ToyModel)
        yield ScenarioRuns(tiny_model(module, feature), "cpu", builder, Watch()), builder


@pytest.mark.parametrize(("feature", "is_measured"), [("default", True), ("cross-attention", False)])
def test_stability_of_experts_is_measured_once_and_not_for_each_feature(
    feature: str, is_measured: bool
) -> None:
    with _scenarios(feature) as (scenarios, builder):
        scenarios._measure_stability()
    assert bool(builder.stability) is is_measured
    assert all(each.grade == "stable" for each in builder.stability)


@pytest.mark.parametrize(
    ("loss", "recorded", "adds_nothing"),
    [
        (1.0, (2, 4), True),
        (1.0, (2, 3), False),
        (1.0, (1, 4), False),
        (2.0, (2, 4), False),
    ],
)
def test_layers_are_dropped_where_any_block_runs_less_often(
    loss: float, recorded: tuple[int, int], adds_nothing: bool
) -> None:
    from gclint.verify.worker.scenarios import SCENARIOS

    scenario = next(each for each in SCENARIOS if each.layerdrop)
    names = ("layers.0", "layers.1")
    blocks = [SimpleNamespace(name=name, runs=runs) for name, runs in zip(names, (1, 2), strict=True)]
    steps = [SimpleNamespace(loss=loss), SimpleNamespace(loss=3.0)]
    run = SimpleNamespace(steps=steps, recorded=dict(zip(names, recorded, strict=True)))
    usual = SimpleNamespace(steps=[SimpleNamespace(loss=1.0)])
    with _scenarios("default") as (scenarios, _):
        scenarios._comparison = SimpleNamespace(reference=usual, blocks=blocks)
        assert scenarios._adds_nothing(scenario, run) is adds_nothing
