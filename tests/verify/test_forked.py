"""Runs in forks: each finds the same state, and what it hands back arrives whatever becomes of it."""

from __future__ import annotations

import os
from typing import Any

import pytest

pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked"),
]
_STATE: list[int] = []


def _in_fork(function: Any) -> tuple[Any, str, list[str]]:
    from gclint.verify.worker.examination.forked import in_fork

    heard: list[str] = []
    value, end = in_fork(function, heard.append, 60)
    return value, end.cause, heard


def test_tensors_of_all_kinds_come_back() -> None:
    import torch

    sent = [
        torch.arange(6).view(2, 3).t(),
        torch.randn(3, dtype=torch.bfloat16),
        torch.randn(2, dtype=torch.complex64).conj(),
        torch.tensor(2.5),
        torch.empty(0, 4),
        torch.tensor([True, False]),
        torch.nn.Parameter(torch.ones(2)),
        torch.eye(3).to_sparse(),
    ]
    found, cause, _ = _in_fork(lambda fork: fork.keep(sent))
    assert cause == "done"
    for one, other in zip(sent, found, strict=True):
        assert one.dtype == other.dtype
        assert torch.equal(one.detach().to_dense() if one.is_sparse else one.detach(), other)


def test_what_both_sides_have_is_not_sent() -> None:
    import torch

    from gclint.verify.worker.examination.forked import in_fork

    shared, other = torch.randn(1 << 16), torch.ones(2)

    def function(fork: Any) -> None:
        fork.keep({"same": shared, "equal": shared.clone(), "other": other})

    found, _ = in_fork(function, lambda _line: None, 60, (other, shared))
    assert found["same"] is shared
    assert found["equal"] is not shared
    assert found["other"] is other


def test_runs_share_only_tensors_of_the_same_bits() -> None:
    import torch

    from gclint.verify.worker.examination.run import Conditions, Run, TrainingStep
    from gclint.verify.worker.scenarios import scenario_named

    def run(**gradients: Any) -> Run:
        step = TrainingStep(0.0, None, {}, gradients, 0, 0.0, None)
        return Run(Conditions(scenario_named("default"), "plain"), [step])

    nan, zero = torch.tensor([float("nan"), 1.0]), torch.tensor([0.0])
    plain = run(a=nan, b=zero, c=torch.ones(2), d=torch.ones(4), e=torch.ones(2), f=torch.eye(2).to_sparse())
    other = run(a=nan.clone(), b=-zero, c=torch.ones(2, dtype=torch.float64), d=torch.ones(2, 2), e=None)
    other.steps[0].gradients["f"] = torch.eye(2).to_sparse()
    other.share(plain)
    shared = [
        name for name, each in plain.steps[0].gradients.items() if other.steps[0].gradients[name] is each
    ]
    assert shared == ["a"]


def test_what_was_handed_over_last_is_there_after_a_death() -> None:
    def function(fork: Any) -> None:
        fork.send("begun")
        fork.keep("first")
        fork.keep("second")
        os._exit(3)

    assert _in_fork(function) == ("second", "exit", ["begun"])


def test_nothing_that_a_fork_does_is_left() -> None:
    def function(fork: Any) -> None:
        _STATE.append(1)
        fork.keep(len(_STATE))

    assert [_in_fork(function)[0] for _ in range(2)] == [1, 1]
    assert _STATE == []


def test_an_exception_of_the_verifier_is_an_error() -> None:
    def function(fork: Any) -> None:
        raise ValueError("a defect")

    value, cause, _ = _in_fork(function)
    assert (value, cause) == (None, "error")
