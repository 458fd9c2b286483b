"""The settings that are proven for classes that failed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest

from gclint.verify.proven import proven_setting
from gclint.verify.worker.cause import Cause
from gclint.verify.worker.protocol import ClassResult, Failure, Mode, Observation, Verdict

_EVERYTHING = ("default", "dropout", "cache", "frozen base")
_MODES: tuple[Mode, ...] = ("non-reentrant", "reentrant")
_WRONG = Observation("gradients", "wrong")
_TWICE = Observation("cache", "written twice", cause=Cause.WRITTEN_CACHE)
_MOVED = Observation("buffers", "moved", cause=Cause.STATISTICS)


def _result(
    wrong: dict[tuple[str, Mode], Observation],
    scenarios: Iterable[str] = _EVERYTHING,
    not_run: Iterable[tuple[str, Mode]] = (),
    *,
    hook_fails: bool = False,
) -> ClassResult:
    """Return the result of a class that was wrong in some scenarios and modes."""
    names = tuple(scenarios)
    verdicts = tuple(
        Verdict(name, mode, (wrong[name, mode],) if (name, mode) in wrong else ())
        for name in names
        for mode in _MODES
        if (name, mode) not in not_run
    )
    failures = [Failure("gradients", mode, name, "wrong") for name, mode in wrong]
    if hook_fails:
        failures.append(Failure("frozen base", "plain", "frozen base", "it raises", cause=Cause.HOOK))
    return ClassResult("x.py", "X", "failed", scenarios=names, failures=tuple(failures), verdicts=verdicts)


def _always(observation: Observation, *modes: Mode) -> dict[tuple[str, Mode], Observation]:
    return {(name, mode): observation for name in _EVERYTHING for mode in modes}


@pytest.mark.parametrize(
    ("result", "setting"),
    [
        (_result({("frozen base", "reentrant"): _WRONG}), "use_reentrant=False"),
        (_result(_always(_WRONG, "reentrant")), "use_reentrant=False"),
        (_result(_always(_WRONG, "non-reentrant")), "use_reentrant=True"),
        (_result({("cache", mode): _WRONG for mode in _MODES}), "use_cache=False"),
        (_result(_always(_WRONG, *_MODES)), None),
        (
            _result(_always(_WRONG, "reentrant") | {("cache", "non-reentrant"): _TWICE}),
            "use_reentrant=False, use_cache=False",
        ),
        (
            _result(_always(_WRONG, "reentrant") | {("default", "non-reentrant"): _TWICE}),
            "use_reentrant=False",
        ),
        (_result({("frozen base", mode): _WRONG for mode in _MODES}), "nothing frozen"),
        (_result({}, hook_fails=True), "without `enable_input_require_grads()`"),
        (
            _result({}, not_run=[("frozen base", mode) for mode in _MODES], hook_fails=True),
            "nothing frozen",
        ),
    ],
)
def test_the_setting_that_asks_for_least_is_named(result: ClassResult, setting: str | None) -> None:
    assert proven_setting(result) == setting


@pytest.mark.parametrize("missing", _EVERYTHING)
def test_what_was_not_run_proves_nothing(missing: str) -> None:
    result = _result(_always(_WRONG, "reentrant"), not_run=[(missing, "non-reentrant")])
    assert proven_setting(result) != "use_reentrant=False"


def test_what_ended_early_proves_nothing() -> None:
    result = _result(_always(_WRONG, "reentrant"), ["default", "dropout"])
    assert proven_setting(result) == "use_reentrant=False"
    assert proven_setting(replace(result, is_cut_short=True)) is None


def test_what_passed_needs_no_setting() -> None:
    assert proven_setting(ClassResult("x.py", "X", "passed", scenarios=("default",))) is None


@pytest.mark.parametrize(
    ("frozen", "setting"),
    [
        ({}, "layers with running statistics in `eval()`"),
        (
            {("frozen statistics", "reentrant"): _WRONG},
            "use_reentrant=False, layers with running statistics in `eval()`",
        ),
        ({("frozen statistics", mode): _WRONG for mode in _MODES}, None),
    ],
)
def test_statistics_that_move_twice_may_be_frozen(
    frozen: dict[tuple[str, Mode], Observation], setting: str | None
) -> None:
    wrong = _always(_MOVED, *_MODES) | frozen
    assert proven_setting(_result(wrong, (*_EVERYTHING, "frozen statistics"))) == setting
    assert proven_setting(_result(_always(_MOVED, *_MODES))) is None
