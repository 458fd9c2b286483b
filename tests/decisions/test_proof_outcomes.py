"""What runs amount to: the status of all of them, and how one counts that was ended."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gclint.verify.results import Results, has_no_way, is_broken
from gclint.verify.worker.cause import Cause
from gclint.verify.worker.ending import End, end_of_exception, end_of_status
from gclint.verify.worker.protocol import (
    Advice,
    ClassResult,
    Discovered,
    Failure,
    Mode,
    ObservedSite,
    Progress,
    SetUp,
    SourcePlace,
    Unusable,
    encode,
)
from gclint.verify.worker.watch import ClassRecord

_FILE = "modeling_toy.py"


def _class(outcome: Any = "passed", name: str = "Toy", **facts: Any) -> ClassResult:
    return ClassResult(_FILE, name, outcome, **facts)


def _results(*messages: Any) -> Results:
    results = Results()
    for each in messages:
        results.add(each, tree=None)
    return results


def _setup(outcome: Any, group: str = "ddp", symptom: str = "") -> SetUp:
    return SetUp(group, "R", "", outcome, symptom)


@pytest.mark.parametrize(
    ("messages", "status"),
    [
        ([_class()], 0),
        ([_class("failed")], 1),
        ([_class(), _class("failed", "Other")], 1),
        # What cannot be judged neither passes nor fails, but something has to be judged.
        ([_class("not run", category="reference")], 2),
        ([_class(), _class("not run", "Other", category="reference")], 0),
        ([_class("failed"), _class("not run", "Other", category="reference")], 1),
        # A bug of gclint, or a kill from outside, is an error.
        ([_class(), _class("not run", "Other", category="verifier")], 2),
        ([_class(), _class("not run", "Other", category="killed")], 2),
        ([_class(), _class("not run", "Other", category="crowded out")], 2),
        ([_class(), _class("not run", "Other", category="time limit")], 0),
        ([_class(), Unusable("it cannot be imported", "modeling_seal.py")], 2),
        ([_class(), Unusable("there is no torch", None)], 2),
        ([], 2),
        ([_class(setups=(_setup("works"),))], 0),
        ([_class(setups=(_setup("fails"),))], 1),
        ([_class(setups=(_setup("fails"), _setup("works")))], 0),
        ([_class(setups=(_setup("fails"), _setup("works", "fsdp")))], 1),
        ([_class(setups=(_setup("not run", symptom="no embeddings"),))], 0),
        ([_class(setups=(_setup("not run", symptom="missing library"),))], 2),
        ([_class("failed", setups=(_setup("not run", symptom="missing library"),))], 2),
    ],
)
def test_the_status_of_a_run(messages: list[Any], status: int) -> None:
    assert _results(*messages).exit_status == status


@pytest.mark.parametrize(
    ("setups", "advice", "expected"),
    [
        ((), (), False),
        (("works",), (), False),
        (("fails",), (), True),
        (("not run",), (), False),
        (("works", "fails"), (), False),
        (("works",), (Advice("ddp", "", "nothing works"),), True),
        (("works",), (Advice("ddp", "use_reentrant=False", "use this"),), False),
    ],
)
def test_a_class_has_no_way_if_a_group_only_fails(setups: Any, advice: Any, expected: bool) -> None:
    result = _class(setups=tuple(map(_setup, setups)), advice=advice)
    assert has_no_way(result) is expected


@pytest.mark.parametrize(
    ("category", "is_missing", "is_wrong"),
    [
        ("killed", True, True),
        ("crowded out", True, True),
        ("verifier", False, True),
        ("reference", False, False),
        ("time limit", False, False),
    ],
)
def test_what_was_killed_from_outside_is_run_again(category: str, is_missing: bool, is_wrong: bool) -> None:
    result = _class("not run", category=category)
    results = _results(Discovered(_FILE, ("Toy", "Other")), result, _class(name="Other"))
    assert results.missing(_FILE) == (("Toy",) if is_missing else ())
    assert is_broken(result) is is_wrong
    assert not is_broken(replace(result, outcome="failed"))


def test_what_was_never_looked_at_is_missing_as_a_whole() -> None:
    results = _results(Discovered(_FILE, ("Toy",)))
    assert results.missing("modeling_seal.py") is None
    assert results.missing(_FILE) == ("Toy",)
    assert _results(Discovered(_FILE, ())).empty == [_FILE]
    assert results.empty == []


@pytest.mark.parametrize(("digest", "names"), [("a", ["Other", "Toy"]), ("b", ["Other"])])
def test_results_of_a_file_that_has_changed_are_forgotten(digest: str, names: list[str]) -> None:
    results = Results()
    results.add(_class(), tree=None, digest="a")
    results.add(_class(name="Other"), tree=None, digest=digest)
    assert [each.name for each in results.sorted()] == names


def _ended(cause: Any, *steps: Any, seconds: float = 0.0, known: Any = (), **facts: Any) -> ClassResult:
    """Return the result of a class whose process ended so, after it began these steps."""
    record = ClassRecord(_FILE, "Toy")
    for each in known:
        record.take(encode(each))
    for scenario, mode, before in steps:
        record.take(encode(Progress(_FILE, "Toy", scenario, mode, "the backward pass", before)))
    return record.result(End(cause, "an end", seconds=seconds, **facts))


_PLAIN = ("default", "plain", 0.0)


@pytest.mark.parametrize(
    ("cause", "mode", "outcome", "category"),
    [
        ("crash", "reentrant", "failed", None),
        ("memory limit", "non-reentrant", "failed", None),
        ("exit", "reentrant", "failed", None),
        ("process limit", "reentrant", "failed", None),
        # Without checkpointing it is not checkpointing that is wrong.
        ("crash", "plain", "not run", "crash"),
        ("memory limit", "plain", "not run", "memory limit"),
        # Others are at fault, or gclint itself.
        ("killed", "reentrant", "not run", "killed"),
        ("crowded out", "reentrant", "not run", "crowded out"),
        ("tampering", "reentrant", "not run", "tampering"),
        ("error", "reentrant", "not run", "verifier"),
    ],
)
def test_an_early_end_fails_a_class_only_if_checkpointing_caused_it(
    cause: str, mode: Mode, outcome: str, category: str | None
) -> None:
    result = _ended(cause, ("default", "plain", 0.0), ("default", mode, 1.0))
    assert (result.outcome, result.category) == (outcome, category)
    assert [(each.check, each.mode) for each in result.failures] == (
        [(cause, mode)] if outcome == "failed" else []
    )


@pytest.mark.parametrize(
    ("usual", "seconds", "is_idle", "outcome"),
    [
        # Ten times as long as without checkpointing is a hang.
        (1.0, 10.9, False, "not run"),
        (1.0, 11.1, False, "failed"),
        (5.0, 11.1, False, "not run"),
        (5.0, 11.1, True, "failed"),
    ],
)
def test_a_time_limit_is_a_failure_if_it_is_a_hang(
    usual: float, seconds: float, is_idle: bool, outcome: str
) -> None:
    steps = (_PLAIN, ("default", "reentrant", usual))
    result = _ended("time limit", *steps, seconds=usual + seconds - 1.0, is_idle=is_idle)
    assert result.outcome == outcome


def test_a_time_limit_without_a_plain_step_of_the_scenario_is_no_hang() -> None:
    assert _ended("time limit", ("cache", "reentrant", 1.0), seconds=99.0, is_idle=True).outcome == "not run"
    before = ("dropout", "plain", 0.0), ("cache", "reentrant", 1.0)
    assert _ended("time limit", *before, seconds=99.0).outcome == "not run"


def test_an_end_before_the_first_step_is_none_of_checkpointing() -> None:
    result = _ended("crash")
    assert (result.outcome, result.category) == ("not run", "crash")
    assert result.reason == "there was an end before the first step"


def test_an_end_in_a_later_mode_keeps_what_was_found_before() -> None:
    failure = Failure("gradients", "non-reentrant", "default", "wrong")
    known = (_class("failed", failures=(failure,)),)
    crash = _ended("crash", _PLAIN, ("default", "reentrant", 1.0), known=known)
    assert [each.check for each in crash.failures] == ["gradients", "crash"]
    killed = _ended("killed", _PLAIN, ("default", "reentrant", 1.0), known=known)
    assert (killed.outcome, [each.check for each in killed.failures]) == ("failed", ["gradients"])
    assert killed.is_cut_short
    assert killed.notes != ()


def test_what_may_be_forged_is_not_believed() -> None:
    known = (_class("failed", failures=(Failure("gradients", "reentrant", "default", "wrong"),)),)
    forged, told = (_ended(cause, _PLAIN, known=known) for cause in ("tampering", "done"))
    assert (forged.outcome, forged.failures) == ("not run", ())
    assert (told.outcome, len(told.failures)) == ("failed", 1)


@pytest.mark.parametrize(
    ("mode", "cause", "keywords", "expected"),
    [
        ("reentrant", "crash", ("states",), Cause.KEYWORD_ACTIVATION),
        ("reentrant", "time limit", ("states",), Cause.KEYWORD_ACTIVATION),
        ("reentrant", "exit", ("states",), None),
        ("non-reentrant", "crash", ("states",), None),
        ("reentrant", "crash", (), None),
    ],
)
def test_an_endless_recursion_is_explained_by_a_keyword(
    mode: Mode, cause: str, keywords: tuple[str, ...], expected: Cause | None
) -> None:
    place = SourcePlace(_FILE, 7, 7)
    site = ObservedSite(place, "Layer", place, True, True, 2, True, keyword_activations=keywords)
    known = (_class("not run", sites=(site,)),)
    (failure,) = _ended(cause, _PLAIN, ("default", mode, 1.0), seconds=99.0, known=known).failures
    assert failure.cause is expected
    assert failure.places == ((place,) if expected else ())


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (ValueError("no"), "error"),
        (SyntaxError("no"), "error"),
        (SystemExit(3), "exit"),
        (KeyboardInterrupt(), "exit"),
        (MemoryError(), "memory limit"),
    ],
)
def test_exceptions_are_errors_exits_or_out_of_memory(error: BaseException, cause: str) -> None:
    assert end_of_exception(error).cause == cause


@pytest.mark.parametrize(
    ("status", "cause"),
    [
        (256, "exit"),
        (11, "crash"),
        (6, "crash"),
        (8, "crash"),
        (24, "time limit"),
        (9, "killed"),
        (15, "killed"),
    ],
)
def test_signals_are_crashes_limits_or_kills(status: int, cause: str) -> None:
    assert end_of_status(status, "", 5.0).cause == cause


def test_the_place_of_an_end_is_the_innermost_line_of_the_model() -> None:
    dump = '  File "/torch/a.py", line 1 in f\n  File "modeling_toy.py", line 7 in g\n' * 2
    assert end_of_status(11, dump, 5.0).place_in(_FILE) == SourcePlace(_FILE, 7, 7)
    assert end_of_status(11, dump, 5.0).place_in("other.py") is None
