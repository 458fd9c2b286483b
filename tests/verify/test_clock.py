"""What a step on a GPU needs is measured from where it began."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.torch


def test_memory_that_was_allocated_before_a_step_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    from gclint.verify.worker.examination.observers import Clock

    done: list[str] = []
    peaks = {"before": 900, "since": 150}

    def reset(_device: object) -> None:
        done.append("reset")
        del peaks["before"]

    monkeypatch.setattr(torch.cuda, "synchronize", lambda _device: done.append("wait"))
    monkeypatch.setattr(torch.cuda, "reset_peak_memory_stats", reset)
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda _device: 100)
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda _device: max(peaks.values()))
    with Clock(torch.device("cuda")) as clock:
        assert done == ["wait", "reset"]
    assert done == ["wait", "reset", "wait"]
    assert clock.peak_bytes == 50
    assert Clock(torch.device("cpu")).peak_bytes is None
