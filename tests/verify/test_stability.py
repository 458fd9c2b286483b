"""Noise on what is recomputed reaches nothing else, and models are graded by what it does to gradients."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.torch


def test_noise_reaches_only_what_is_recomputed() -> None:
    from torch import nn

    from gclint.verify.worker.examination.blocks import Block
    from gclint.verify.worker.examination.observers import Phases, RecomputeNoise

    model: Any = nn.Module()
    model.block = nn.Sequential(nn.Linear(8, 8), nn.LayerNorm(8))
    block = Block("block", "block.0", True, True, 1, frozenset())
    phases = Phases(model, [block])
    given = torch.randn(4, 8)
    expected = model.block(given)
    with phases, RecomputeNoise(model, [block], phases, seed=1):
        assert torch.equal(model.block(given), expected)
        phases.backward = True
        perturbed, kept = _kept(model.block, given)
    assert not torch.equal(perturbed, expected)
    assert torch.allclose(perturbed, expected, atol=0.1)
    # Non-reentrant checkpointing compares what is kept, so the noise may keep nothing.
    again, plain = _kept(model.block, given)
    assert torch.equal(again, expected)
    assert kept == plain


def _kept(module: Any, given: Any) -> tuple[Any, list[object]]:
    """Return what a module computes, and the shapes that autograd keeps of it."""
    shapes: list[object] = []

    def pack(tensor: Any) -> Any:
        shapes.append(tensor.shape)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        return module(given), shapes


@pytest.mark.parametrize(("gradient", "grade"), [(1.04, "stable"), (1.3, "amplifies"), (None, "raises")])
def test_grades(gradient: float | None, grade: str) -> None:
    from gclint.verify.worker.examination.fault import Fault
    from gclint.verify.worker.examination.run import Conditions, Run, TrainingStep
    from gclint.verify.worker.examination.runner import _graded
    from gclint.verify.worker.scenarios import scenario_named

    def run(size: float | None) -> Run:
        conditions = Conditions(scenario_named("default"), "non-reentrant")
        if size is None:
            return Run(conditions, error=Fault("CheckpointError", "another shape", ()))
        gradients = {"weight": torch.full((3,), size), "faint": torch.full((3,), 1e-6 * size * size)}
        return Run(conditions, steps=[TrainingStep(0.0, None, {}, gradients, 0, 0.0, None)])

    found = _graded("eager", run(1.0), [run(1.0), run(gradient)])
    assert found.grade == grade
    assert bool(found.error) is (gradient is None)
