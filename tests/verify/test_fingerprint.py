"""What two texts of a model are compared by: bits on a CPU, and values on a GPU."""

from __future__ import annotations

from typing import Any

import pytest

from gclint.proof.regression import regressions
from gclint.verify.worker.protocol import ClassResult, Fingerprint
from gclint.verify.worker.scenarios import scenario_named

pytestmark = pytest.mark.torch


def _run(weight: Any, output: Any = None, loss: float = 1.5, **values: Any) -> Any:
    import torch

    from gclint.verify.worker.examination.run import Conditions, Run, TrainingStep

    outputs = {"last_hidden_state": torch.ones(4) if output is None else output}
    step = TrainingStep(loss, None, outputs, {"weight": weight, "frozen": None}, 0, 0.0, None)
    return Run(Conditions(scenario_named("default"), "plain"), [step], values=values)


def _print(run: Any, again: Any = None) -> Fingerprint:
    from gclint.verify.worker.examination.reporting import fingerprint

    return fingerprint(run, again)


def _is_same(one: Fingerprint, other: Fingerprint, *, exact: bool) -> bool:
    results = [ClassResult("x.py", "Model", "passed", fingerprints=(each,)) for each in (one, other)]
    return not list(regressions(*results, exact=exact))


def test_every_bit_counts_on_a_cpu() -> None:
    import torch

    weight = torch.randn(64, generator=torch.Generator().manual_seed(0))
    first, second = _print(_run(weight)), _print(_run(weight * (1 + 1e-7)))
    assert first == _print(_run(weight.clone()))
    assert not first.sketches
    assert not _is_same(first, second, exact=True)
    for other in (_run(weight, loss=1.25), _run(weight, torch.zeros(4)), _run(weight, mean=torch.ones(1))):
        assert not _is_same(first, _print(other), exact=True)


def test_on_a_gpu_each_tensor_is_judged_by_its_own_size() -> None:
    import torch

    generator = torch.Generator().manual_seed(0)
    small, noise = (torch.randn(1000, generator=generator) for _ in range(2))
    small = small * 1e-6
    # Whatever else is large.
    output = torch.full((4,), 1e7)
    run = _run(small, output)
    first = _print(run, run)
    assert _is_same(first, _print(*[_run(small * (1 + 1e-5 * noise), output)] * 2), exact=False)
    assert not _is_same(first, _print(*[_run(small * (1 + 0.1 * noise), output)] * 2), exact=False)
    # Its norm is that of the other, and its values are not.
    assert not _is_same(first, _print(*[_run(small.flip(0), output)] * 2), exact=False)
    assert not _is_same(first, _print(*[_run(small, output, loss=1.6)] * 2), exact=False)


def test_what_differs_from_run_to_run_may_differ_from_text_to_text() -> None:
    import torch

    generator = torch.Generator().manual_seed(0)
    one, other, third = (torch.randn(1000, generator=generator) * 1e-9 for _ in range(3))
    assert not _is_same(_print(*[_run(one)] * 2), _print(*[_run(other)] * 2), exact=False)
    assert _is_same(_print(_run(one), _run(other)), _print(_run(other), _run(third)), exact=False)


def test_what_is_not_finite_has_to_be_so_in_as_many_places() -> None:
    import torch

    weight = torch.ones(8)
    infinite = weight.clone()
    infinite[0] = float("inf")
    runs = [_print(*[_run(each)] * 2) for each in (weight, infinite, infinite.clone())]
    assert not _is_same(runs[0], runs[1], exact=False)
    assert _is_same(runs[1], runs[2], exact=False)
