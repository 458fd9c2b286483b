"""The contract of safe fixes on generated models, and that its measure sees what breaks it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import pytest

from tests.contract.grammar import FEATURES, Shape, draw, once_broken, settled, shape_of
from tests.contract.packages import package
from tests.contract.releases import RELEASES, python_of_release
from tests.contract.repairable import is_repairable
from tests.contract.simplification import simpler
from tests.contract.tables import SHARE, share
from tests.contract.verdicts import Verdict, judge
from tests.environment import EnvironmentUnavailable

_MODELS = 200
_NEWEST = RELEASES[-1]


def test_every_model_is_python() -> None:
    for number in range(200):
        for name, text in package(draw(0, number)).files.items():
            compile(text, name, "exec", dont_inherit=True)


def test_every_value_of_every_feature_is_drawn() -> None:
    drawn = [draw(0, number) for number in range(4000)]
    for name, values in FEATURES.items():
        assert {getattr(shape, name) for shape in drawn} == set(values), name


def test_the_same_number_is_the_same_model() -> None:
    assert draw(3, 14) == draw(3, 14) != draw(3, 15)


def test_models_get_simpler_until_they_are_the_simplest() -> None:
    for number in range(200):
        shape = draw(0, number)
        assert settled(shape) == shape
        steps = 0
        while shape != Shape():
            shape = next(simpler(shape))
            steps += 1
        assert steps < 100


def test_a_shape_is_read_as_it_is_printed() -> None:
    for number in range(300):
        shape = draw(0, number)
        assert shape_of(str(shape)) == shape
    assert len(set(once_broken())) == len(once_broken())


def test_many_models_are_repairable_and_many_are_not() -> None:
    repairable = sum(is_repairable(draw(0, number), "5.23.0") for number in range(400))
    assert 60 < repairable < 280


@pytest.mark.torch
def test_the_measure_sees_each_broken_promise() -> None:
    import torch

    from tests.contract.promises import broken_plainly, broken_with_checkpointing
    from tests.contract.steps import Outcome

    def outcome(*, gradient: float | None = 2.0, runs: int = 1, error: str | None = None) -> Outcome:
        gradients = {"weight": None if gradient is None else torch.tensor([gradient])}
        return Outcome(error, {"loss": torch.tensor(1.0)}, gradients=gradients, runs={"layer": runs})

    plain, twice = outcome(), outcome(runs=2)

    def with_checkpointing(before: Outcome, after: Outcome) -> list[tuple[int, str]]:
        return list(broken_with_checkpointing(plain, before, after))

    assert list(broken_plainly(plain, plain)) == []
    assert list(broken_plainly(plain, outcome(gradient=2.0000002))) == [(1, "gradients differ: weight")]
    assert list(broken_plainly(plain, outcome(error="boom"))) == [(1, "raises boom")]
    assert with_checkpointing(twice, twice) == with_checkpointing(plain, twice) == []
    assert with_checkpointing(twice, plain) == [(2, "no longer recomputed (2 runs of blocks became 1)")]
    assert with_checkpointing(twice, outcome(runs=3)) == [
        (2, "recomputed too often (2 runs of blocks became 3)")
    ]
    assert with_checkpointing(twice, outcome(runs=2, gradient=None)) == [(3, "gradients: weight lost")]
    assert with_checkpointing(twice, outcome(runs=2, gradient=1.0)) == [(3, "gradients: weight wrong")]
    assert with_checkpointing(twice, outcome(error="boom")) == [(3, "raises boom")]
    # What did not work before has no promise to keep.
    assert with_checkpointing(outcome(error="boom"), outcome(error="boom")) == []
    assert with_checkpointing(outcome(gradient=None), outcome(gradient=1.0, runs=2)) == []


_each_release = pytest.mark.parametrize(
    "verdicts",
    [pytest.param(each, marks=pytest.mark.first if each == _NEWEST else ()) for each in RELEASES],
    indirect=True,
)


@pytest.fixture(scope="module")
def verdicts(request: pytest.FixtureRequest) -> Iterator[list[Verdict]]:
    """What came of models under a release."""
    release: str = request.param
    try:
        python_of_release(release)
    except EnvironmentUnavailable as error:
        pytest.skip(str(error))
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        shapes = [*once_broken(), *(draw(0, number) for number in range(_MODELS))]
        yield [each for of_model in pool.map(partial(judge, releases=[release]), shapes) for each in of_model]


@pytest.mark.releases
@pytest.mark.torch
@_each_release
def test_every_model_trains_as_it_is(verdicts: list[Verdict]) -> None:
    assert [f"{each.shape}: {each.invalid}" for each in verdicts if each.invalid] == []


@pytest.mark.releases
@pytest.mark.torch
@_each_release
def test_no_safe_fix_breaks_a_promise(verdicts: list[Verdict]) -> None:
    assert [f"{each.shape} [{each.release}]: {each.broken[0]}" for each in verdicts if each.broken] == []


@pytest.mark.releases
@pytest.mark.torch
@_each_release
def test_what_is_repairable_is_repaired(verdicts: list[Verdict]) -> None:
    assert share(verdicts, verdicts[0].release) >= SHARE
