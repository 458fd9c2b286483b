"""What is worse after a repair: of classes that are new, and told once for all that it happens to."""

from __future__ import annotations

from typing import Any

import pytest

from gclint.proof.regression import regressions, summarised
from gclint.verify.worker.protocol import ClassResult, Fingerprint, Mode, Observation, Verdict

_PLAIN = Fingerprint("default", "abc", 1.5, {"the gradient of weight": "abc"})


def _result(
    name: str, *observations: Observation, compared: int = 8, left_out: tuple[str, ...] = ()
) -> ClassResult:
    verdict = Verdict("default", "reentrant", observations, compared, left_out, ("layers.0",))
    return ClassResult(
        "modeling_x.py",
        name,
        "failed" if observations else "passed",
        fingerprints=(_PLAIN,),
        verdicts=(verdict,),
    )


def test_a_class_that_is_new_and_fails_is_worse() -> None:
    lost = Observation("missing gradients", "1 of 8 parameters gets no gradient", ("weight",))
    (found,) = regressions(None, _result("New", lost), exact=True)
    assert (found.name, found.mode) == ("New", "reentrant")
    assert [*regressions(None, _result("New"), exact=True)] == []


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ({"compared": 5}, {"compared": 3}, "5 parameters are compared"),
        ({"left_out": ("a",)}, {"left_out": ("b",)}, "`a` could be compared before"),
    ],
)
def test_classes_of_which_less_can_be_compared_are_told_of_together(
    first: dict[str, Any], second: dict[str, Any], expected: str
) -> None:
    found = [
        each
        for name, facts in (("First", first), ("Second", second))
        for each in regressions(_result(name), _result(name, **facts), exact=True)
    ]
    modes = frozenset[Mode](("plain", "reentrant"))
    ((told, _),) = summarised(found, {"x": modes})
    assert told.startswith(f"First (and 1 other class), reentrant, default: {expected}")
