"""Measures how gradients change if the recomputation rounds differently, as kernels on a GPU do.

In a mixture of experts, a little noise can route a token to another expert. Then recomputed tensors have
different shapes, or the gradients are those of other experts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from torch import nn

from gclint.verify.worker.examination.recompute_noise import expert_implementations
from gclint.verify.worker.examination.run import Conditions, Run
from gclint.verify.worker.examination.runner import Runner
from gclint.verify.worker.examination.words import described
from gclint.verify.worker.protocol import Stability
from gclint.verify.worker.scenarios import scenario_named

_SEEDS = (1, 2, 3, 4)
_AMPLIFIED = 0.05
"""Noise counts as amplified if gradients change by more than this share of their norm; those of models
without experts change by less than 0.01."""
_FAINT = 1e-3
"""Gradients below this share of the largest one are left out: rounding changes them, too."""


def stability(model: nn.Module, runner: Runner, scales: Mapping[str, float]) -> Iterator[Stability]:
    """Yield how a model with experts reacts to noise, for each implementation of the experts.

    Args:
        model: the model; it is not run itself.
        runner: runs it.
        scales: the sizes of its outputs in the first run.
    """
    once = replace(scenario_named("default"), steps=1)
    for implementation in expert_implementations(model):
        conditions = Conditions(once, "non-reentrant", experts=implementation)
        quiet = runner.run(conditions, scales)
        if quiet.error is None:
            noisy = [runner.run(replace(conditions, noise=seed), scales) for seed in _SEEDS]
            yield _graded(implementation or "the only one", quiet, noisy)


def _graded(implementation: str, quiet: Run, noisy: list[Run]) -> Stability:
    moved = [_moved(quiet, each) for each in noisy if each.error is None]
    furthest = max(moved, default=0.0)
    error = next((each.error for each in noisy if each.error is not None), None)
    if error is not None:
        return Stability(implementation, "raises", furthest, described(error))
    return Stability(implementation, "amplifies" if furthest > _AMPLIFIED else "stable", furthest)


def _moved(quiet: Run, noisy: Run) -> float:
    """Return the largest change of the gradient of a parameter, relative to its norm."""
    expected, found = quiet.steps[0].gradients, noisy.steps[0].gradients
    norms = {name: float(each.double().norm()) for name, each in expected.items() if each is not None}
    faint = _FAINT * max(norms.values(), default=0.0)
    shares = []
    for name, norm in norms.items():
        mine, yours = expected[name], found.get(name)
        if norm > faint and mine is not None:
            apart = norm if yours is None else float((mine.double() - yours.double()).norm())
            shares.append(apart / norm)
    return max(shares, default=0.0)
