"""How steps are taken: in training mode, with the randomness of their scenario, and with what they train."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.verify.planted import imported, tiny_model

pytestmark = pytest.mark.torch

_CHECKPOINTED = ("non-reentrant", "reentrant")


def _scenario(name: str) -> Any:
    from gclint.verify.worker.scenarios import scenario_named

    return scenario_named(name)


def _conditions(scenario: str, mode: Any = "plain", **facts: Any) -> Any:
    from gclint.verify.worker.examination.run import Conditions

    return Conditions(_scenario(scenario), mode, **facts)


@pytest.fixture
def under_test() -> Iterator[Any]:
    """Yield a model with which nothing is wrong, and that drops a tenth of one layer's output."""
    from gclint.verify.worker.examination.model_under_test import ModelUnderTest

    with imported("healthy") as module:
        yield ModelUnderTest(tiny_model(module), "cpu")


def _taken(under_test: Any, scenario: str, mode: str = "plain", **facts: Any) -> Any:
    from gclint.verify.worker.examination.blocks import Block
    from gclint.verify.worker.examination.steps import Steps

    names = ("layers.0", "layers.1", "layers.2")
    conditions = _conditions(scenario, mode, **facts)
    blocks = tuple(Block(name, f"{name}.dense", True, True, 1, frozenset()) for name in names)
    before = {name: each.clone() for name, each in under_test.state.items()}
    run = Steps(under_test, conditions, blocks, (), {}, lambda _stage: None, lambda _run: None).take()
    # As every run takes place in a copy of the process, it leaves the model as it was.
    for name, each in before.items():
        under_test.state[name].copy_(each)
    assert run.error is None, run.error
    return run


def _losses(run: Any) -> list[float]:
    return [step.loss for step in run.steps]


@pytest.mark.parametrize("mode", _CHECKPOINTED)
@pytest.mark.parametrize("scenario", ["default", "two forwards", "dropout"])
def test_steps_with_checkpointing_are_the_same_and_recomputed(
    under_test: Any, scenario: str, mode: str
) -> None:
    from tests.decisions.proofs import agreement

    plain, found = _taken(under_test, scenario), _taken(under_test, scenario, mode)
    assert _losses(found) == pytest.approx(_losses(plain))
    for before, after in zip(plain.steps, found.steps, strict=True):
        assert {
            name: agreement(each, after.gradients[name]) for name, each in before.gradients.items()
        } == dict.fromkeys(before.gradients, "SAME")
        assert after.saved_bytes < before.saved_bytes
    assert found.backward == plain.recorded
    assert sum(plain.backward.values()) == 0
    # A reentrant checkpoint records nothing before it recomputes.
    assert bool(found.recorded) is (mode == "non-reentrant")


@pytest.mark.parametrize(
    ("scenario", "steps", "forwards"), [("default", 2, 1), ("two forwards", 1, 2), ("dropout", 1, 2)]
)
def test_blocks_run_once_in_each_forward_pass_of_each_step(
    under_test: Any, scenario: str, steps: int, forwards: int
) -> None:
    run = _taken(under_test, scenario)
    assert len(run.steps) == steps
    assert set(run.forward.values()) == {steps * forwards}


def test_the_same_steps_give_the_same_and_later_ones_something_else(under_test: Any) -> None:
    first, again = _taken(under_test, "default"), _taken(under_test, "default")
    assert _losses(first) == _losses(again)
    # The second batch is longer.
    lengths = [step.outputs["last_hidden_state"].shape[1] for step in first.steps]
    assert lengths == [6, 8]


@pytest.mark.parametrize(
    ("scenario", "drops"), [("default", False), ("two forwards", False), ("dropout", True)]
)
def test_something_is_dropped_only_in_its_scenario(under_test: Any, scenario: str, drops: bool) -> None:
    under_test.prepare(_scenario(scenario))
    assert bool(under_test.model.layers[0].dropout.p) is drops


@pytest.mark.parametrize(("least", "rate"), [(0.0, 0.1), (0.3, 0.3), (0.05, 0.1)])
def test_dropout_is_raised_to_a_least_rate(least: float, rate: float) -> None:
    from dataclasses import replace

    from gclint.verify.worker.examination.model_under_test import ModelUnderTest

    with imported("healthy") as module:
        under_test = ModelUnderTest(replace(tiny_model(module), least_dropout=least), "cpu")
        under_test.prepare(_scenario("dropout"))
        assert under_test.model.layers[0].dropout.p == rate
        assert under_test.drop_by_default()
        under_test.prepare(_scenario("dropout"))
        assert under_test.model.layers[0].dropout.p == 0.1


def test_a_model_is_trained_even_if_it_was_built_for_evaluation() -> None:
    from dataclasses import replace

    from gclint.verify.worker.examination.model_under_test import ModelUnderTest

    with imported("healthy") as module:
        given = tiny_model(module)
        under_test = ModelUnderTest(replace(given, build=lambda: given.build().eval()), "cpu")
        assert all(each.training for each in under_test.model.modules())


def test_checkpointing_that_is_on_by_default_is_off_in_the_reference() -> None:
    from dataclasses import replace

    from gclint.verify.worker.examination.model_under_test import ModelUnderTest, enable_checkpointing

    def build() -> Any:
        model = given.build()
        enable_checkpointing(model, {"use_reentrant": True})
        return model

    with imported("healthy") as module:
        given = tiny_model(module)
        under_test = ModelUnderTest(replace(given, build=build), "cpu")
        assert not any(under_test.flags().values())


@pytest.mark.parametrize("mode", _CHECKPOINTED)
def test_checkpointing_is_switched_on_in_its_mode_and_off_again(under_test: Any, mode: Any) -> None:
    assert set(under_test.flags().values()) == {False}
    assert under_test.enable_checkpointing(mode) == frozenset()
    assert set(under_test.flags().values()) == {True}
    (layer, *_) = under_test.model.layers
    assert layer._gradient_checkpointing_func.keywords["use_reentrant"] is (mode == "reentrant")
    under_test.disable_checkpointing()
    assert set(under_test.flags().values()) == {False}


@pytest.mark.parametrize("mode", ["plain", *_CHECKPOINTED])
def test_with_a_frozen_base_only_adapters_have_gradients_and_nothing_else_moves(
    under_test: Any, mode: str
) -> None:
    run = _taken(under_test, "frozen base", mode)
    (step,) = run.steps
    assert {name.rpartition(".")[2] for name in step.gradients} == {"up", "down"}
    assert all(bool(each.any()) for each in step.gradients.values())
    assert run.values == {}


def test_without_a_frozen_base_all_parameters_have_gradients(under_test: Any) -> None:
    (step, *_) = _taken(under_test, "default").steps
    assert set(step.gradients) == {name for name, _ in under_test.model.named_parameters()}
    assert step.trained == set(step.gradients)


def test_gradients_are_taken_once(under_test: Any) -> None:
    _taken(under_test, "default")
    assert {type(each) for each in under_test.take_gradients().values()} == {type(None)}


@pytest.mark.parametrize(
    ("scenario", "is_allowed"),
    [
        ("default", True),
        ("dropout", True),
        ("frozen base", True),
        ("layerdrop", False),
        ("router losses", False),
        ("cache object", False),
    ],
)
def test_a_scenario_applies_to_models_that_have_what_it_enables(
    under_test: Any, scenario: str, is_allowed: bool
) -> None:
    assert under_test.allows(_scenario(scenario), ["layers.0"]) is is_allowed


@pytest.mark.parametrize(
    ("dropout", "least", "is_allowed"), [(0.1, 0.0, True), (0.0, 0.3, True), (0.0, 0.0, False)]
)
def test_dropout_needs_something_that_drops(dropout: float, least: float, is_allowed: bool) -> None:
    from dataclasses import replace

    from gclint.verify.worker.examination.model_under_test import ModelUnderTest

    with imported("healthy") as module:
        under_test = ModelUnderTest(replace(tiny_model(module, dropout=dropout), least_dropout=least), "cpu")
        assert under_test.allows(_scenario("dropout"), ["layers.0"]) is is_allowed


@pytest.mark.parametrize(("block", "is_allowed"), [("layers.0", True), ("layers.0.norm", False)])
def test_adapters_need_a_linear_layer_in_a_block(under_test: Any, block: str, is_allowed: bool) -> None:
    assert under_test.allows(_scenario("frozen base"), [block]) is is_allowed


def test_perturbed_parameters_differ_by_about_their_last_bit(under_test: Any) -> None:
    from tests.decisions.proofs import agreement

    before = under_test.model.norm.weight.detach().clone()
    under_test.perturb(1)
    first = under_test.model.norm.weight.detach().clone()
    assert not first.equal(before)
    assert agreement(before, first) == "SAME"
    under_test.model.norm.weight.data.copy_(before)
    under_test.perturb(2)
    assert not under_test.model.norm.weight.equal(first)


@pytest.mark.parametrize(("exact", "dtype"), [(False, "torch.float32"), (True, "torch.float64")])
def test_an_exact_run_is_one_in_double_precision(under_test: Any, exact: bool, dtype: str) -> None:
    (step, *_) = _taken(under_test, "default", exact=exact).steps
    assert {str(each.dtype) for each in step.gradients.values()} == {dtype}


@pytest.mark.parametrize(
    ("name", "dtype", "is_computed"),
    [
        ("encoder_hidden_states", "float32", True),
        ("inputs_embeds", "float32", True),
        ("latents", "float32", True),
        ("pixel_values", "float32", False),
        ("attention_mask", "float32", False),
        ("hidden_states", "int64", False),
        ("states_mask", "float32", False),
    ],
)
def test_an_input_that_another_network_computes_requires_grad(
    name: str, dtype: str, is_computed: bool
) -> None:
    from gclint.verify.worker.examination.model_under_test import is_computed as decides
    from tests.decisions.proofs import tensor

    assert decides(name, tensor([1, 2], dtype)) is is_computed
