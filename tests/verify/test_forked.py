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


def test_what_was_handed_over_last_is_there_after_a_death() -> None:
    def function(fork: Any) -> None:
        fork.send("begun")
        fork.keep("first")
        fork.keep("second")
        os._exit(3)

    assert _in_fork(function) == ("second", "exit", ["begun"])


@pytest.mark.parametrize("share", [0.001, 0.5, 0.999])
def test_what_had_not_arrived_completely_before_a_death_is_as_if_never_sent(share: float) -> None:
    import torch

    def function(fork: Any) -> None:
        fork.keep("first")
        begin = fork._file.tell()
        fork.keep({"numbers": list(range(1000)), "tensor": torch.ones(1 << 16)})
        fork._file.truncate(begin + int(share * (fork._file.tell() - begin)))
        os._exit(3)

    assert _in_fork(function)[0] == "first"


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
