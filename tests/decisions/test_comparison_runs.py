"""What counts as a difference between a plain run and one with checkpointing."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tests.decisions import proofs
from tests.decisions.proofs import RIGHT, comparison, failing, one_step

pytestmark = pytest.mark.torch

_ZERO = [0.0, 0.0]
_NAN = [math.nan, math.nan]


def _gradients(**changed: Any) -> dict[str, Any]:
    """Return the right gradients, but for those of some parameters; dots are written as ``__``."""
    return {**RIGHT, **{name.replace("__", "."): each for name, each in changed.items()}}


def _with(expected: Any, found: Any, **facts: Any) -> Any:
    """Return the comparison of two gradients of one parameter, in runs that are the same otherwise."""
    return comparison(
        one_step(gradients=_gradients(embed=expected)), one_step(gradients=_gradients(embed=found)), **facts
    )


def test_runs_that_are_the_same_show_nothing() -> None:
    compared = comparison()
    assert failing(compared) == {}
    assert (compared.lost, compared.wrong, compared.compared) == ((), (), 3)


@pytest.mark.parametrize(
    ("expected", "found", "check"),
    [
        ([5.0, 6.0], None, "missing gradients"),
        ([5.0, 6.0], _ZERO, "missing gradients"),
        ([5.0, 6.0], [5.0, 0.0], "gradients"),
        ([5.0, 6.0], [5.0, 6.1], "gradients"),
        ([5.0, 6.0], _NAN, "gradients"),
        # A gradient that nothing should have.
        (None, [5.0, 6.0], "gradients"),
        (_ZERO, [5.0, 6.0], "gradients"),
        ([5.0, 6.0], [5.0, 6.0 + 1e-6], None),
        # None and zero are the same: neither trains anything.
        (None, _ZERO, None),
        (_ZERO, None, None),
        (None, None, None),
        (_ZERO, _ZERO, None),
    ],
)
def test_a_gradient_is_lost_or_wrong_or_right(expected: Any, found: Any, check: str | None) -> None:
    compared = _with(expected, found)
    assert failing(compared) == ({check: ("embed",)} if check else {})
    # Where neither run has a gradient, nothing was compared.
    is_nothing = expected in (None, _ZERO) and found in (None, _ZERO)
    assert compared.compared == (2 if is_nothing else 3)


def test_a_parameter_that_only_one_run_names_is_compared_with_nothing() -> None:
    assert failing(comparison({}, one_step(gradients=_gradients(more=[1.0])))) == {"gradients": ("more",)}
    assert failing(comparison({}, one_step(gradients=_gradients(more=[0.0])))) == {}
    assert failing(comparison(one_step(gradients=_gradients(more=[1.0])), {})) == {
        "missing gradients": ("more",)
    }


def test_a_gradient_of_another_shape_is_wrong() -> None:
    assert failing(_with([5.0, 5.0], [5.0])) == {"gradients": ("embed",)}


@pytest.mark.parametrize(
    ("unstable", "expected"), [("embed", {}), ("layers.0.weight", {"gradients": ("embed",)})]
)
def test_what_differs_between_plain_runs_is_not_judged(unstable: str, expected: Any) -> None:
    compared = _with([5.0, 6.0], [6.0, 5.0], unstable=frozenset({("gradient", unstable)}))
    assert failing(compared) == expected
    assert (compared.changing, compared.blurred) == ((unstable,), ())
    assert compared.compared == 2


@pytest.mark.parametrize(
    ("noise", "found", "check", "counted"),
    [
        (0.0, [5.0, 6.03], "gradients", 3),
        (4e-3, [5.0, 6.03], None, 3),
        (0.5, [5.0, 6.03], None, 2),
        (0.5, [5.0, 60.0], "gradients", 3),
        # What is lost looks like rounding as well.
        (2.0, None, None, 2),
        (1e-3, None, "missing gradients", 3),
    ],
)
def test_rounding_explains_what_it_was_seen_to_do(
    noise: float, found: Any, check: str | None, counted: int
) -> None:
    compared = _with([5.0, 6.0], found, noise={("gradient", "embed"): noise})
    assert failing(compared) == ({check: ("embed",)} if check else {})
    assert compared.compared == counted
    assert compared.blurred == (("embed",) if counted == 2 else ())


def test_the_noise_of_an_output_explains_no_gradient() -> None:
    assert failing(_with([5.0, 6.0], [5.0, 6.03], noise={("output", "embed"): 4e-3}))


@pytest.mark.parametrize(("exact", "check"), [([5.0, 6.03], "gradients"), ([5.0, 6.0], None)])
@pytest.mark.parametrize("noise", [0.5, 1e-3])
def test_double_precision_settles_what_rounding_blurs_or_nearly_explains(
    noise: float, exact: Any, check: str | None
) -> None:
    known = {("gradient", "embed"): noise}
    # In single precision it is unknown, or near.
    compared = _with([5.0, 6.0], [5.0, 6.03], noise=known, exact=_with([5.0, 6.0], exact))
    assert failing(compared) == ({check: ("embed",)} if check else {})
    assert compared.compared == 3


def test_double_precision_settles_nothing_that_is_settled() -> None:
    wrong, right = _with([5.0, 6.0], [6.0, 5.0]), _with([5.0, 6.0], [5.0, 6.0])
    assert failing(_with([5.0, 6.0], [6.0, 5.0], exact=right)) == {"gradients": ("embed",)}
    assert failing(_with([5.0, 6.0], [5.0, 6.0], exact=wrong)) == {}


def test_a_near_miss_is_wrong_unless_double_precision_says_otherwise() -> None:
    compared = _with([5.0, 6.0], [5.0, 6.03], noise={("gradient", "embed"): 1e-3})
    assert compared.near == ("embed",)
    assert failing(compared) == {"gradients": ("embed",)}


@pytest.mark.parametrize(
    ("expected", "found", "hidden"),
    [(_NAN, _NAN, True), (_NAN, [1.0, 2.0], True), ([math.nan, 1.0], [math.nan, 1.0], False)],
)
def test_a_reference_without_any_number_hides_what_is_compared(
    expected: Any, found: Any, hidden: bool
) -> None:
    compared = _with(expected, found)
    assert (compared.not_finite, compared.blurred) == (("embed",) if hidden else (), ())
    assert compared.compared == (2 if hidden else 3)
    assert failing(compared) == {}


@pytest.mark.parametrize(("blurred", "is_meaningful"), [(0, True), (3, True), (4, False), (10, False)])
def test_seven_of_ten_gradients_have_to_be_compared(blurred: int, is_meaningful: bool) -> None:
    names = [f"p{number}" for number in range(10)]
    unstable = frozenset(("gradient", name) for name in names[:blurred])
    step = one_step(gradients={name: [1.0] for name in names})
    assert comparison(step, step, unstable=unstable).is_meaningful is is_meaningful


def test_a_run_without_steps_is_no_less_meaningful() -> None:
    assert comparison({}, {"steps": []}).is_meaningful
    assert comparison({}, {"steps": []}).compared == 0


@pytest.mark.parametrize(
    ("expected", "found", "different"),
    [
        ({"logits": [1.0]}, {"logits": [1.0]}, ()),
        ({"logits": [1.0]}, {"logits": [1.0 + 1e-7]}, ()),
        ({"logits": [1.0]}, {"logits": [1.1]}, ("logits",)),
        ({"logits": [1.0]}, {}, ("logits",)),
        ({}, {"logits": [1.0]}, ("logits",)),
        ({"logits": [1.0]}, {"logits": [[1.0]]}, ("logits",)),
        ({"chosen": [1, 2]}, {"chosen": [1, 3]}, ("chosen",)),
        # An output of zeros is one; a missing one is not the same.
        ({"logits": [0.0]}, {}, ("logits",)),
        ({"logits": [math.nan]}, {"logits": [math.nan]}, ()),
    ],
)
def test_outputs_are_the_same_set_with_the_same_values(expected: Any, found: Any, different: Any) -> None:
    compared = comparison(one_step(outputs=expected), one_step(outputs=found))
    assert failing(compared) == ({"outputs": different} if different else {})


@pytest.mark.parametrize(
    ("expected", "found", "words"),
    [
        ({"a": [1.0]}, {}, "missing: `a`"),
        ({}, {"a": [1.0]}, "new: `a`"),
        ({"a": [1.0]}, {"a": [2.0]}, "with other values: `a`"),
    ],
)
def test_an_output_is_missing_new_or_other(expected: Any, found: Any, words: str) -> None:
    seen = proofs.failed_checks(comparison(one_step(outputs=expected), one_step(outputs=found)))["outputs"]
    assert seen.message.endswith(words)


def test_an_output_that_comes_and_goes_is_not_judged() -> None:
    compared = comparison(
        one_step(outputs={"a": [1.0], "b": [1.0]}),
        one_step(outputs={"b": [2.0]}),
        unstable=frozenset({("output", "a")}),
    )
    assert failing(compared) == {"outputs": ("b",)}


@pytest.mark.parametrize(("noise", "is_right"), [(0.0, False), (4e-3, False), (6e-3, True), (1.0, True)])
def test_rounding_explains_outputs_as_well(noise: float, is_right: bool) -> None:
    compared = comparison(
        one_step(outputs={"a": [1.0, 100.0]}),
        one_step(outputs={"a": [1.0, 100.15]}),
        noise={("output", "a"): noise},
    )
    assert (failing(compared) == {}) is is_right


@pytest.mark.parametrize(("exact", "is_right"), [([1.0, 100.15], False), ([1.0, 100.0], True)])
def test_double_precision_settles_outputs_as_well(exact: Any, is_right: bool) -> None:
    def outputs(values: Any) -> Any:
        return one_step(outputs={"a": values})

    before = outputs([1.0, 100.0])
    compared = comparison(
        before,
        outputs([1.0, 100.15]),
        noise={("output", "a"): 4e-3},
        exact=comparison(before, outputs(exact)),
    )
    assert (failing(compared) == {}) is is_right


@pytest.mark.parametrize(
    ("expected", "found", "is_right"),
    [(2.0, 2.0, True), (2.0, 2.5, False), (None, 2.5, True), (None, None, True), (2.0, 2.0 + 1e-6, True)],
)
def test_the_models_own_loss_is_compared_if_it_has_one(
    expected: float | None, found: float | None, is_right: bool
) -> None:
    compared = comparison(one_step(loss=expected), one_step(loss=found))
    assert failing(compared) == ({} if is_right else {"loss": ()})


def test_the_loss_is_no_other_output() -> None:
    compared = comparison(one_step(loss=1.0, outputs={"a": [1.0]}), one_step(loss=2.0, outputs={"a": [1.0]}))
    assert compared.different_outputs(0) == ()
    assert compared.differs(0)


@pytest.mark.parametrize(
    ("expected", "found", "different"),
    [
        ({}, {}, ()),
        ({"mean": [1.0]}, {"mean": [1.0]}, ()),
        ({"mean": [1.0]}, {"mean": [1.2]}, ("mean",)),
        # A buffer that only one of the runs has changed or made.
        ({"mean": [1.0]}, {}, ("mean",)),
        ({}, {"mean": [1.0]}, ("mean",)),
        ({"count": 3}, {"count": 6}, ("count",)),
        ({"count": 3}, {"count": 3}, ()),
    ],
)
def test_buffers_are_the_same_afterwards(expected: Any, found: Any, different: Any) -> None:
    compared = comparison({"values": expected}, {"values": found})
    assert failing(compared) == ({"buffers": different} if different else {})


@pytest.mark.parametrize("kind", ["value", "output"])
def test_a_buffer_that_differs_between_plain_runs_is_not_judged(kind: str) -> None:
    compared = comparison({"values": {"mean": [1.0]}}, {"values": {}}, unstable=frozenset({(kind, "mean")}))
    assert (failing(compared) == {}) is (kind == "value")


@pytest.mark.parametrize(
    ("expected", "found", "is_right"),
    [({"n": 1}, {"n": 1}, True), ({"n": 1}, {"n": 2}, False), ({"n": 1}, {}, False), ({"n": None}, {}, True)],
)
def test_attributes_are_the_same_afterwards(expected: Any, found: Any, is_right: bool) -> None:
    compared = comparison({"attributes": expected}, {"attributes": found})
    assert failing(compared) == ({} if is_right else {"state": ("n",)})


@pytest.mark.parametrize(
    "how", [{"unstable": frozenset({("attribute", "n")})}, {"noise": {("attribute", "n"): 1.0}}]
)
def test_an_attribute_that_differs_between_plain_runs_is_not_judged(how: Any) -> None:
    assert failing(comparison({"attributes": {"n": 1}}, {"attributes": {"n": 2}}, **how)) == {}
    assert failing(comparison({"attributes": {"m": 1}}, {"attributes": {"m": 2}}, **how)) == {"state": ("m",)}


@pytest.mark.parametrize("what", [{"values": {"mean": [1.0]}}, {"attributes": {"n": 2}}])
def test_what_a_run_leaves_that_ended_early_is_not_compared(what: Any) -> None:
    assert failing(comparison({}, what))
    assert set(failing(comparison({}, {**what, "error": ("ValueError", "no")}))) == {"error"}


_RIGHT_STEP: dict[str, Any] = {}
_WRONG_STEP: dict[str, Any] = {"gradients": _gradients(embed=[1.0, 1.0])}
_LOST_STEP: dict[str, Any] = {"gradients": _gradients(embed=None)}
_OTHER_STEP: dict[str, Any] = {"outputs": {"a": [1.0]}}


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([_RIGHT_STEP, _RIGHT_STEP], {}),
        ([_RIGHT_STEP, _WRONG_STEP], {"second step": ("embed",)}),
        ([_RIGHT_STEP, _LOST_STEP], {"second step": ("embed",)}),
        ([_RIGHT_STEP, _OTHER_STEP], {"second step": ("a",)}),
        # If the first step is wrong, the second one is too.
        ([_WRONG_STEP, _WRONG_STEP], {"gradients": ("embed",)}),
        ([_WRONG_STEP, _RIGHT_STEP], {"gradients": ("embed",)}),
        # What is not there cannot be compared.
        ([_RIGHT_STEP], {}),
    ],
)
def test_the_second_step_is_judged_only_after_a_right_one(steps: Any, expected: Any) -> None:
    assert failing(comparison({"steps": [{}, {}]}, {"steps": steps})) == expected


def test_what_is_wrong_in_both_steps_is_nothing_new_in_the_second() -> None:
    both = {"gradients": _gradients(embed=None, layers__0__weight=None)}
    compared = comparison({"steps": [{}, {}]}, {"steps": [_LOST_STEP, both]})
    assert compared.later == ("layers.0.weight",)
    assert comparison({"steps": [{}, {}]}, {"steps": [both, _LOST_STEP]}).later == ()


@pytest.mark.parametrize(
    ("expected", "found", "is_nothing"),
    [
        # The others have gradients of about 4: a ten-thousandth of it is 4e-4.
        (1e-5, 2e-4, True),
        (2e-4, 1e-5, True),
        (1e-5, 6e-4, False),
        (6e-4, 1e-5, False),
    ],
)
def test_what_is_zero_in_both_runs_but_for_rounding_agrees(
    expected: float, found: float, is_nothing: bool
) -> None:
    compared = _with([expected, 0.0], [found, 0.0], noise={("gradient", "embed"): 1.0})
    assert compared.blurred == ("embed",)
    assert compared.vanishing == (("embed",) if is_nothing else ())


def test_outputs_that_require_grad_only_without_checkpointing_are_gone() -> None:
    def requiring(*names: str) -> Any:
        return one_step(outputs={"a": [1.0], "b": [1.0]}, requiring=names)

    assert comparison(requiring("a", "b"), requiring("a")).gone == ("b",)
    assert comparison(requiring("a"), requiring("a", "b")).gone == ()
    assert comparison(requiring("a"), {"steps": []}).gone == ()
