"""What a repair may not make worse, and what counts as the same."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from gclint.proof.regression import Regression, regressions, summarised, was_run
from gclint.verify.worker.cause import Cause
from gclint.verify.worker.protocol import (
    ClassResult,
    Cost,
    Failure,
    Fingerprint,
    Mode,
    Observation,
    Verdict,
)


def _class(outcome: Any = "passed", **facts: Any) -> ClassResult:
    return ClassResult(**{"source": "modeling_toy.py", "name": "Toy", "outcome": outcome, **facts})


_LOST = Observation("missing gradients", "2 of 9 receive no gradient", ("a", "b"))
_RAISES = Observation("error", "the forward pass raises ValueError: 3")
_WARNS = Observation("warning", "torch warns")
_DIGEST = Fingerprint("default", "abc", 1.5)


def _verdict(*observations: Observation, **facts: Any) -> Verdict:
    made: dict[str, Any] = {"scenario": "default", "mode": "reentrant", "compared": 8}
    return Verdict(**{**made, "observations": observations, "recomputed": ("layers.0",), **facts})


def _ran(*verdicts: Verdict, **facts: Any) -> ClassResult:
    return _class(**{"verdicts": verdicts or (_verdict(),), "fingerprints": (_DIGEST,), **facts})


def _worse(before: ClassResult | None, after: ClassResult | None, *, exact: bool = True) -> list[Any]:
    """Return the kinds of what is worse, or the text where it has none."""
    return [each.kind[0] if each.kind else each.text for each in regressions(before, after, exact=exact)]


def test_the_same_is_not_worse() -> None:
    assert _worse(_ran(), _ran()) == []
    assert _worse(_ran(_verdict(_LOST)), _ran(_verdict(_LOST))) == []
    assert _worse(None, None) == []


@pytest.mark.parametrize(
    ("before", "after", "is_worse"),
    [
        (None, _class("not run"), False),
        (None, _ran(_verdict(_LOST)), True),
        (_class("not run"), _class("not run"), False),
        (_class("not run"), _ran(), False),
        (_class("not run"), _ran(_verdict(_LOST)), True),
        # It failed before anything was run, and now it is run.
        (_class("failed"), _ran(), False),
    ],
)
def test_a_class_that_is_gone_or_not_run_any_more_is_worse(before: Any, after: Any, is_worse: bool) -> None:
    assert bool(_worse(before, after)) is is_worse


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (None, False),
        (_class(), False),
        (_class(scenarios=("default",)), True),
        (_class(verdicts=(_verdict(),)), True),
        (_class(fingerprints=(_DIGEST,)), True),
        (_class("not run", scenarios=("default",)), False),
    ],
)
def test_a_class_was_run_if_there_is_anything_of_a_run(result: Any, expected: bool) -> None:
    assert was_run(result) is expected


@pytest.mark.parametrize(
    ("before", "after", "is_covered"),
    [
        (("layers.0",), ("layers.0",), True),
        (("layers.0",), ("layers.0.inner",), True),
        (("layers.0.inner",), ("layers.0",), True),
        (("layers.0",), ("",), True),
        (("layers.1",), ("layers.10",), False),
        (("layers.10",), ("layers.1",), False),
        ((), ("layers.0",), True),
    ],
)
def test_what_was_recomputed_still_is_in_whole_or_as_a_part(
    before: Any, after: Any, is_covered: bool
) -> None:
    worse = _worse(_ran(_verdict(recomputed=before)), _ran(_verdict(recomputed=after)))
    assert worse == ([] if is_covered else ["recomputed"])


@pytest.mark.parametrize(
    ("before", "after", "plain", "is_worse"),
    [
        (400, 700, 1000, False),
        (400, 701, 1000, True),
        (400, 400, 1000, False),
        (1000, 1000, 1000, False),
        (1000, 1001, 1000, True),
        (None, 900, 1000, False),
        (400, None, 1000, False),
        (400, 900, None, False),
    ],
)
def test_half_of_what_was_saved_may_be_kept_again(
    before: Any, after: Any, plain: Any, is_worse: bool
) -> None:
    costs = () if plain is None else (Cost("plain", plain, 0.1), Cost("reentrant", 1, 0.1))
    found = _worse(_ran(_verdict(saved_bytes=before)), _ran(_verdict(saved_bytes=after), costs=costs))
    assert found == (["saved"] if is_worse else [])


@pytest.mark.parametrize(
    ("facts", "is_compared"),
    [
        ({}, True),
        ({"scenario": "frozen base"}, False),
        ({"compared": 9}, False),
        ({"observations": (_LOST,)}, False),
    ],
)
def test_bytes_are_compared_only_of_runs_that_were_right_and_alike(facts: Any, is_compared: bool) -> None:
    now = {} if "compared" in facts else facts
    before = _ran(_verdict(**{"saved_bytes": 400, **now}))
    after = _ran(_verdict(**{"saved_bytes": 900, **facts}), costs=(Cost("plain", 1000, 0.1),))
    assert ("saved" in _worse(before, after)) is is_compared


@pytest.mark.parametrize(
    ("before", "after", "kinds"),
    [
        ({}, {"compared": 7}, ["not compared"]),
        ({}, {"compared": 9}, []),
        ({}, {"not_compared": ("a",)}, ["not compared"]),
        ({"not_compared": ("a", "b")}, {"not_compared": ("a",)}, []),
        ({"not_compared": ("a",)}, {"not_compared": ("b",)}, ["not compared"]),
        # After an error nothing else can be said, and the error itself is.
        ({"observations": (_RAISES,)}, {"compared": 0, "recomputed": (), "observations": (_RAISES,)}, []),
        ({"observations": (_RAISES,)}, {"compared": 0, "recomputed": ()}, []),
        ({}, {"compared": 0, "recomputed": (), "observations": (_RAISES,)}, ["error"]),
    ],
)
def test_as_much_is_compared_as_before(before: Any, after: Any, kinds: list[str]) -> None:
    assert _worse(_ran(_verdict(**before)), _ran(_verdict(**after))) == kinds


def _about(*names: str, cause: Cause | None = None) -> Observation:
    return Observation("gradients", "wrong", names, cause)


def _gone(cause: Cause | None = None) -> Observation:
    return Observation("missing gradients", "lost", ("a",), cause)


@pytest.mark.parametrize(
    ("before", "after", "is_worse"),
    [
        ([], [_WARNS], True),
        ([_WARNS], [_WARNS], False),
        # What torch warns of is seen as well.
        ([_about("a")], [_about("a"), _WARNS], False),
        ([_about("a", "b")], [_about("a")], False),
        ([_gone()], [_about("a")], True),
        ([_about("a"), _about("b")], [_about("b")], False),
        ([_RAISES], [replace(_RAISES, message="the forward pass raises ValueError: 12,345")], False),
        ([_RAISES], [], False),
    ],
)  # fmt: skip
def test_a_failure_is_worse_unless_it_was_as_grave(before: Any, after: Any, is_worse: bool) -> None:
    assert bool(_worse(_ran(_verdict(*before)), _ran(_verdict(*after)))) is is_worse


@pytest.mark.parametrize(
    ("where", "is_worse"),
    [
        ({}, False),
        ({"mode": "non-reentrant"}, True),
        ({"scenario": "cache"}, True),
        ({"mode": "plain"}, True),
    ],
)
def test_a_failure_without_a_verdict_counts_in_its_scenario_and_mode(where: Any, is_worse: bool) -> None:
    hang = Failure("time limit", "reentrant", "default", "no end")
    before = _ran(failures=(hang,))
    assert bool(_worse(before, _ran(failures=(replace(hang, **where),)))) is is_worse


@pytest.mark.parametrize(
    ("found", "exact", "is_worse"),
    [
        ({}, True, False),
        ({"digest": "abd"}, True, True),
        # On a GPU the values decide, and what a second run of the same was off by.
        ({"digest": "abd", "sketches": {"a": [2.0, 0.0, 0.0, 1.1]}, "parts": {"a": "2"}}, False, True),
        ({"digest": "abd", "sketches": {"a": [2.0, 0.02, 0.0, 1.1]}, "parts": {"a": "2"}}, False, False),
    ],
)
def test_what_is_computed_without_checkpointing_is_the_same(found: Any, exact: bool, is_worse: bool) -> None:
    known = replace(_DIGEST, parts={"a": "1"}, sketches={"a": [2.0, 0.0, 0.0, 1.0]})
    before, after = _ran(fingerprints=(known,)), _ran(fingerprints=(replace(known, **found),))
    assert _worse(before, after, exact=exact) == (["plain"] if is_worse else [])


def _told(found: Iterable[Regression], ran: Iterable[Mode]) -> list[str]:
    return [text for text, _ in summarised(found, {"Toy": frozenset(ran)})]


@pytest.mark.parametrize(
    ("modes", "ran", "names_other"),
    [
        (["reentrant"], ["reentrant", "non-reentrant"], True),
        (["reentrant"], ["reentrant"], False),
        (["reentrant", "non-reentrant"], ["reentrant", "non-reentrant"], False),
        (["plain", "reentrant"], ["reentrant", "non-reentrant"], False),
        ([None, "reentrant"], ["reentrant", "non-reentrant"], False),
    ],
)
def test_the_mode_that_is_spared_is_named(modes: Any, ran: Any, names_other: bool) -> None:
    found = [Regression("Toy", f"worse {number}", "default", mode) for number, mode in enumerate(modes)]
    assert any(
        "Under non-reentrant checkpointing nothing is worse" in each for each in _told(found, ran)
    ) is (names_other)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ({"compared": 5}, {"compared": 3}, "5 parameters are compared"),
        ({"not_compared": ("a",)}, {"not_compared": ("b",)}, "`a` could be compared before"),
    ],
)
def test_classes_of_which_less_can_be_compared_are_told_of_together(
    first: Any, second: Any, expected: str
) -> None:
    found = [
        each
        for name, facts in (("First", first), ("Second", second))
        for each in regressions(_ran(name=name), _ran(_verdict(**facts), name=name), exact=True)
    ]
    (told,) = _told(found, ["plain", "reentrant"])
    assert told.startswith(f"First (and 1 other class), reentrant, default: {expected}")
