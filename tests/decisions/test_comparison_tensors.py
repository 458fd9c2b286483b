"""What counts as the same tensor: by its type, its size, its rounding, and what is no number."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tests.decisions import proofs

pytestmark = pytest.mark.torch


@pytest.mark.parametrize(
    ("dtype", "within", "beyond"),
    [
        ("float64", 5e-7, 5e-6),
        ("float32", 5e-4, 5e-3),
        ("float16", 5e-3, 5e-2),
        ("bfloat16", 2e-2, 2e-1),
        ("complex128", 5e-7, 5e-6),
        ("complex64", 5e-4, 5e-3),
    ],
)
def test_each_type_has_its_own_tolerance(dtype: str, within: float, beyond: float) -> None:
    one = proofs.tensor([1.0, 1.0], dtype)
    assert proofs.agreement(one, proofs.tensor([1.0 + within, 1.0], dtype)) == "SAME"
    assert proofs.agreement(one, proofs.tensor([1.0 + beyond, 1.0], dtype)) == "DIFFERENT"


@pytest.mark.parametrize(
    ("dtype", "within", "beyond"),
    [
        ("float64", 5e-11, 1e-9),
        ("float32", 1e-6, 1e-5),
        ("float16", 5e-4, 5e-3),
        ("bfloat16", 5e-3, 5e-2),
    ],
)
def test_a_value_that_is_zero_may_differ_by_a_share_of_the_largest_one(
    dtype: str, within: float, beyond: float
) -> None:
    one = proofs.tensor([100.0, 0.0], dtype)
    assert proofs.agreement(one, proofs.tensor([100.0, 100 * within], dtype)) == "SAME"
    assert proofs.agreement(one, proofs.tensor([100.0, 100 * beyond], dtype)) == "DIFFERENT"


def test_the_size_of_the_reference_counts_and_not_that_of_the_other() -> None:
    assert proofs.agreement([0.0, 1.0], [2e-5, 1.0]) == "DIFFERENT"
    assert proofs.agreement([0.0, 1e3], [2e-5, 1e3]) == "SAME"
    assert proofs.agreement([0.0, 1.0], [0.0, 1e3]) == "DIFFERENT"


def test_whole_numbers_are_the_same_or_not() -> None:
    assert proofs.agreement([1, 0], [1, 0]) == "SAME"
    assert proofs.agreement([1, 0], [1, 1]) == "DIFFERENT"


def test_masks_are_the_same() -> None:
    assert proofs.agreement([True, False], [True, False]) == "SAME"


def test_masks_are_different() -> None:
    assert proofs.agreement([True, False], [True, True]) == "DIFFERENT"


def test_whole_numbers_that_rounding_was_seen_to_change_may_be_any() -> None:
    one, other = proofs.tensor([1, 5], "int64"), proofs.tensor([4, 5], "int64")
    assert proofs.agreement(one, other, noise=0.0) == "DIFFERENT"
    assert proofs.agreement(one, other, noise=1.0) == "UNKNOWN"


@pytest.mark.parametrize("noise", [0.0, 1e6])
@pytest.mark.parametrize("dtype", ["float64", "float16", "int64"])
def test_another_type_is_different_whatever_rounding_does(dtype: str, noise: float) -> None:
    one = proofs.tensor([1.0, 2.0])
    assert proofs.agreement(one, proofs.tensor([1, 2], dtype), noise) == "DIFFERENT"
    assert proofs.agreement(one, proofs.tensor([1.0, 2.0]), noise) == "SAME"


@pytest.mark.parametrize("noise", [0.0, 1e6])
@pytest.mark.parametrize("found", [[1.0], [[1.0, 1.0]], [1.0, 1.0, 1.0]])
def test_another_shape_is_different_even_if_it_could_be_broadcast(found: Any, noise: float) -> None:
    assert proofs.agreement([1.0, 1.0], found, noise) == "DIFFERENT"


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_agrees_only_with_itself(value: float) -> None:
    assert proofs.agreement([1.0, value], [1.0, value]) == "SAME"
    assert proofs.agreement([1.0, value], [1.0, 1.0]) == "DIFFERENT"
    assert proofs.agreement([1.0, 1.0], [1.0, value]) == "DIFFERENT"
    assert proofs.agreement([1.0, value], [2.0, value]) == "DIFFERENT"


def test_infinities_of_other_signs_are_different() -> None:
    assert proofs.agreement([math.inf, 1.0], [-math.inf, 1.0]) == "DIFFERENT"


def test_an_infinite_value_makes_no_tolerance_for_the_others() -> None:
    assert proofs.agreement([math.inf, 1.0], [math.inf, 1.01]) == "DIFFERENT"
    assert proofs.agreement([math.inf, 1.0], [math.inf, 1.0 + 1e-7]) == "SAME"


def test_a_large_noise_lets_no_number_become_none() -> None:
    assert proofs.agreement([1.0, 1.0], [1.0, math.nan], noise=1.0) == "DIFFERENT"


@pytest.mark.parametrize(
    ("noise", "verdict"), [(0.0, "DIFFERENT"), (4e-4, "NEAR"), (6e-4, "SAME"), (1.2e-3, "UNKNOWN")]
)
def test_rounding_explains_ten_times_what_it_was_seen_to_do(noise: float, verdict: str) -> None:
    """And if ten times that is over a hundredth of the largest value, nothing can be judged."""
    assert proofs.agreement([1.0, 0.0], [1.0, 6e-3], noise) == verdict


@pytest.mark.parametrize(
    ("dtype", "noise", "verdict"), [("bfloat16", 3e-2, "SAME"), ("float32", 3e-2, "UNKNOWN")]
)
def test_coarse_types_can_be_compared_with_more_rounding(dtype: str, noise: float, verdict: str) -> None:
    one, other = proofs.tensor([1.0, 0.0], dtype), proofs.tensor([1.0, 0.25], dtype)
    assert proofs.agreement(one, other, noise) == verdict


@pytest.mark.parametrize(("found", "verdict"), [(9e-3, "NEAR"), (1.2e-2, "DIFFERENT")])
def test_a_near_miss_is_within_ten_times_the_slack(found: float, verdict: str) -> None:
    """But never more than a hundredth of the largest value."""
    assert proofs.agreement([1.0, 0.0], [1.0, found], noise=5e-4) == verdict
    assert proofs.agreement([1.0, 0.0], [1.0, found / 10], noise=1e-5) == (
        "NEAR" if found < 1e-2 else "DIFFERENT"
    )


def test_empty_tensors_of_one_shape_are_the_same() -> None:
    assert proofs.agreement([], []) == "SAME"
    assert proofs.agreement([], [[]]) == "DIFFERENT"


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ([1.0, 2.0], [1.0, 2.0], 0.0),
        ([1.0, 2.0], [1.5, 0.0], 2.0),
        ([math.inf, math.nan, 1.0], [math.inf, math.nan, 1.5], 0.5),
        ([1.0, math.nan], [1.5, 1.0], math.inf),
        ([1.0, math.inf], [1.0, -math.inf], math.inf),
        ([1.0, 2.0], [1.0], math.inf),
    ],
)
def test_the_deviation_is_the_largest_difference(one: Any, other: Any, expected: float) -> None:
    from gclint.verify.worker.examination.agreement import deviation

    assert deviation(proofs.tensor(one), proofs.tensor(other)) == expected
    assert deviation(proofs.tensor(other), proofs.tensor(one)) == expected


def test_tensors_of_two_types_deviate_without_end() -> None:
    from gclint.verify.worker.examination.agreement import deviation

    assert deviation(proofs.tensor([1.0]), proofs.tensor([1.0], "float64")) == math.inf


@pytest.mark.parametrize(
    ("gradient", "is_nothing", "hides"),
    [
        (None, True, None),
        ([0.0, 0.0], True, False),
        ([0.0, 1e-30], False, False),
        ([math.nan, math.nan], False, True),
        ([math.inf, 0.0], False, True),
        ([math.nan, 1.0], False, False),
    ],
)
def test_a_gradient_is_nothing_or_hides_all(gradient: Any, is_nothing: bool, hides: bool | None) -> None:
    from gclint.verify.worker.examination import agreement

    made = proofs.tensor(gradient)
    assert agreement.is_nothing(made) is is_nothing
    if hides is not None:
        assert agreement.hides_all(made) is hides


@pytest.mark.parametrize(
    ("values", "size"),
    [([], 0.0), ([1.0, -3.0], 3.0), ([math.inf, -2.0], 2.0), ([math.nan, 2.0], 2.0), ([math.nan], 0.0)],
)
def test_the_largest_value_is_the_largest_finite_one(values: Any, size: float) -> None:
    from gclint.verify.worker.examination.agreement import largest

    assert largest(proofs.tensor(values)) == size


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (1, 1, True),
        (1, 2, False),
        (1, 1.0, False),
        (1, True, False),
        ("a", "a", True),
        (None, None, True),
        (None, 0, False),
        (math.nan, math.nan, True),
        ((1, "a"), (1, "a"), True),
        ((1, "a"), (1, "b"), False),
        ((1,), (1, 2), False),
        ((math.nan, (1,)), (math.nan, (1,)), True),
        ((1, (2,)), (1, (3,)), False),
    ],
)
def test_attributes_are_the_same_with_type_and_items(one: Any, other: Any, expected: bool) -> None:
    from gclint.verify.worker.examination.agreement import same

    assert same(one, other) is expected
    assert same(other, one) is expected


def test_an_attribute_that_is_a_tensor_is_compared_as_one_also_in_a_container() -> None:
    from gclint.verify.worker.examination.agreement import same

    one, close, other = (proofs.tensor(each) for each in ([1.0], [1.0 + 1e-7], [1.1]))
    assert same(("kept", one), ("kept", close))
    assert not same(("kept", one), ("kept", other))
    assert not same(one, 1.0)
