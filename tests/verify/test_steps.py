"""What a run of steps does to a model, and what it records."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.verify.planted import imported, tiny_model

pytestmark = pytest.mark.torch


@contextmanager
def _under_test(name: str) -> Iterator[Any]:
    from gclint.verify.worker.examination.model_under_test import ModelUnderTest

    with imported(name) as module:
        yield ModelUnderTest(tiny_model(module), "cpu")


def _take(under_test: Any, conditions: Any) -> Any:
    from gclint.verify.worker.examination.steps import Steps

    return Steps(under_test, conditions, (), (), {}, lambda _stage: None, lambda _run: None).take()


@pytest.mark.parametrize(("mode", "expected"), [("plain", []), ("reentrant", ["enable", "disable"])])
def test_a_plain_run_leaves_checkpointing_alone(
    monkeypatch: pytest.MonkeyPatch, mode: Any, expected: list[str]
) -> None:
    from gclint.verify.worker.examination.run import Conditions
    from gclint.verify.worker.scenarios import scenario_named

    done: list[str] = []
    with _under_test("healthy") as under_test:
        enable, disable = under_test.enable_checkpointing, under_test.disable_checkpointing

        def enabled(mode: Any) -> Any:
            done.append("enable")
            return enable(mode)

        def disabled() -> None:
            done.append("disable")
            disable()

        monkeypatch.setattr(under_test, "enable_checkpointing", enabled)
        monkeypatch.setattr(under_test, "disable_checkpointing", disabled)
        run = _take(under_test, Conditions(scenario_named("default"), mode))
    assert (run.error, done) == (None, expected)


@pytest.mark.parametrize(("mode", "is_recorded"), [("plain", False), ("reentrant", True)])
def test_only_checkpointed_steps_are_traced_and_kept_before_the_backward_pass(
    mode: Any, is_recorded: bool
) -> None:
    from gclint.verify.worker.examination.run import Conditions
    from gclint.verify.worker.examination.steps import Steps
    from gclint.verify.worker.scenarios import scenario_named

    kept: list[str] = []
    with _under_test("healthy") as under_test:
        conditions = Conditions(scenario_named("default"), mode)
        watched = ["layers.0"]
        run = Steps(
            under_test, conditions, (), watched, {}, lambda _stage: None, lambda run: kept.append(run.stage)
        ).take()
    assert run.error is None
    assert bool(run.calls) is is_recorded
    assert kept == ["the forward pass", "the forward pass of the second step"] * is_recorded


@pytest.mark.parametrize("mode", ["plain", "non-reentrant"])
def test_what_a_model_warns_of_in_a_step_is_recorded(monkeypatch: pytest.MonkeyPatch, mode: Any) -> None:
    import warnings

    from gclint.verify.worker.examination.run import Conditions
    from gclint.verify.worker.scenarios import scenario_named

    with _under_test("healthy") as under_test:
        forward = under_test.model.forward

        def warning(input_ids: Any) -> Any:
            warnings.warn("the tokens are odd", stacklevel=1)
            return forward(input_ids)

        monkeypatch.setattr(under_test.model, "forward", warning)
        run = _take(under_test, Conditions(scenario_named("default"), mode))
    assert run.warnings.count("the tokens are odd") == 2


def test_evaluation_with_a_cache_computes_one_more_token(monkeypatch: pytest.MonkeyPatch) -> None:
    from transformers.modeling_outputs import BaseModelOutputWithPast

    from gclint.verify.worker.examination.model_under_test import ModelUnderTest
    from gclint.verify.worker.examination.run import OTHER_COMPUTATIONS

    with imported("cache_by_keyword") as module:

        def forward(self: Any, input_ids: Any, past_key_values: Any = None, use_cache: Any = None) -> Any:
            cache = past_key_values or module.ToyCache()
            hidden_states = self.embed_tokens(input_ids)
            for layer in self.layers:
                hidden_states = layer(hidden_states, past_key_values=cache)
            return BaseModelOutputWithPast(hidden_states, cache)

        monkeypatch.setattr(module.ToyModel, "forward", forward)
        under_test = ModelUnderTest(tiny_model(module), "cpu")
        run = _take(under_test, OTHER_COMPUTATIONS["evaluation with a cache"])
        last = under_test.tiny_model.inputs()["input_ids"][:, -1:]
        alone = under_test.model(last).last_hidden_state
    first, second = (step.outputs["last_hidden_state"] for step in run.steps)
    assert (first.shape[1], second.shape[1]) == (6, 1)
    # The tokens before it, which are only in the cache, count.
    assert not alone.allclose(second)


@pytest.mark.parametrize(("name", "has_loss"), [("healthy", False), ("ignored_labels", True)])
def test_batches_of_one_step_keep_their_outputs_and_add_their_losses(name: str, has_loss: bool) -> None:
    from gclint.verify.worker.examination.run import Conditions
    from gclint.verify.worker.scenarios import scenario_named

    with _under_test(name) as under_test:
        (one,) = _take(under_test, Conditions(scenario_named("two forwards"), "plain")).steps
    batches = {key: tuple(each.shape[:2]) for key, each in one.outputs.items() if key != "loss"}
    (key, *_) = batches
    assert batches == {key: (2, 6), f"{key} of batch 2": (2, 8)}
    with _under_test(name) as under_test:
        first, second = _take(under_test, Conditions(scenario_named("default"), "plain")).steps
    if has_loss:
        assert one.own_loss == pytest.approx(first.own_loss + second.own_loss)
    else:
        assert one.own_loss is None


def test_configuration_that_knows_no_cache_is_not_given_one() -> None:
    from gclint.verify.worker.scenarios import scenario_named

    with _under_test("healthy") as under_test:
        under_test.inputs(scenario_named("default"))
        assert not hasattr(under_test.model.config, "use_cache")


@pytest.mark.parametrize(("scenario", "expected"), [("default", False), ("cache", True)])
def test_configuration_that_knows_a_cache_has_it_only_where_the_scenario_does(
    scenario: str, expected: bool
) -> None:
    from gclint.verify.worker.scenarios import scenario_named

    with _under_test("healthy") as under_test:
        under_test.model.config.use_cache = not expected
        inputs = under_test.inputs(scenario_named(scenario))
        assert under_test.model.config.use_cache is expected
    assert list(inputs) == ["input_ids"]


def test_each_step_draws_numbers_of_its_own_and_each_run_the_same() -> None:
    import random

    import numpy
    import torch

    from gclint.verify.worker.examination.model_under_test import seed

    def drawn(step: int) -> tuple[float, ...]:
        seed(step)
        return float(torch.rand(())), float(numpy.random.rand()), random.random()

    first, second = drawn(0), drawn(1)
    assert all(one != other for one, other in zip(first, second, strict=True))
    assert (drawn(0), drawn(1)) == (first, second)


@pytest.mark.parametrize(("is_used", "expected"), [(False, []), (True, [7])])
def test_gpus_are_seeded_only_once_they_are_in_use(
    monkeypatch: pytest.MonkeyPatch, is_used: bool, expected: list[int]
) -> None:
    import torch

    from gclint.verify.worker.randomness import seed

    seeded: list[int] = []
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: is_used)
    monkeypatch.setattr(torch.cuda, "manual_seed_all", seeded.append)
    seed(7)
    assert seeded == expected


def test_only_what_a_run_itself_has_changed_counts_as_changed() -> None:
    from gclint.verify.worker.examination.state import Values

    with _under_test("healthy") as under_test:
        model = under_test.model
        model.norm.weight.data.mul_(2)
        values = Values(model)
        assert values.changes() == {}
        model.norm.weight.data.mul_(2)
        assert list(values.changes()) == ["norm.weight"]
        assert values.changes()["norm.weight"].tolist() == [4.0] * 16
