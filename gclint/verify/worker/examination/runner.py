"""Runs one model under test, each time in a process of its own, so that all runs start from the same state.

Runs that differ only in rounding distinguish wrong results from it, and show what it does to a mixture of
experts: there, a little noise can route a token to another expert. Then recomputed tensors have different
shapes, or the gradients are those of other experts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace

from torch import nn

from gclint.verify.worker import child
from gclint.verify.worker.ending import FOREIGN, End
from gclint.verify.worker.examination.blocks import Block
from gclint.verify.worker.examination.comparison import Comparison
from gclint.verify.worker.examination.embeddings import embeddings
from gclint.verify.worker.examination.fault import Fault
from gclint.verify.worker.examination.forked import Fork, in_fork
from gclint.verify.worker.examination.model_under_test import ModelUnderTest
from gclint.verify.worker.examination.observers import expert_implementations
from gclint.verify.worker.examination.phrases import described
from gclint.verify.worker.examination.run import Conditions, Key, Run, differences, noise
from gclint.verify.worker.examination.steps import Steps
from gclint.verify.worker.protocol import InputEmbedding, Stability
from gclint.verify.worker.scenarios import scenario_named
from gclint.verify.worker.watch import Watch

_SECONDS = 120.0
"""The time limit of a class that has none."""
_SHARE = 3
"""How many hanging runs fit into the time of a class: one in each mode, so that the others can go on."""
_TIMES = 2
"""How many runs with perturbed parameters are made."""
_SEEDS = (1, 2, 3, 4)
_AMPLIFIED = 0.05
"""Noise counts as amplified if gradients change by more than this share of their norm; those of models
without experts change by less than 0.01."""
_FAINT = 1e-3
"""Gradients below this share of the largest one are left out: rounding changes them, too."""


class Runner:
    """Makes runs of one model under test."""

    def __init__(self, under_test: ModelUnderTest, watch: Watch) -> None:
        self.blocks: tuple[Block, ...] = ()
        """The blocks whose runs are counted."""
        self.watched: frozenset[str] = frozenset()
        """The names of the modules whose calls are traced."""
        self.measures = True
        """Whether to measure what autograd saves."""
        self._under_test = under_test
        self._watch = watch
        self._longest: dict[str, float] = defaultdict(float)
        """The seconds of the longest plain run, by scenario."""

    def run(self, conditions: Conditions, scales: Mapping[str, float]) -> Run:
        """Run steps from the start; an error of the model, or the death of its process, is part of the run.

        The loss is scaled by the sizes of the outputs in the run with which this one will be compared.
        """
        conditions = replace(conditions, measured=self.measures and not conditions.bare)
        run = self._run(conditions, scales)
        if (
            conditions.mode == "plain"
            and conditions.measured
            and run.error is not None
            and not run.error.is_death
        ):
            # Where nobody may hook saved tensors, it may be this alone.
            other = self._run(replace(conditions, measured=False), scales)
            if other.error is None:
                self.measures, run = False, other
        return run

    def _run(self, conditions: Conditions, scales: Mapping[str, float]) -> Run:
        stages = ["the construction"]
        name, mode = conditions.scenario.name, conditions.mode
        self._watch.begin(name, mode, stages[-1])

        def receive(stage: str) -> None:
            stages.append(stage)
            self._watch.begin(name, mode, stage)

        def work(fork: Fork) -> None:
            watched = (self.blocks, self.watched)
            fork.keep(Steps(self._under_test, conditions, *watched, scales, fork.send, fork.keep).take())

        run, end = in_fork(work, receive, (child.seconds() or _SECONDS) / _SHARE)
        run = run or Run(conditions)
        assert isinstance(run, Run)
        if end.cause == "error":
            raise RuntimeError(end.message)
        if end.cause != "done":
            run.stage, run.error = stages[-1], self._fault(end, conditions)
        elif mode == "plain":
            self._longest[name] = max(self._longest[name], end.seconds)
        # Unchanged values are not sent.
        run.values = self._under_test.state | run.values
        return run

    def embeddings(self) -> tuple[InputEmbedding, ...]:
        """Return which modules would give the first blocks inputs that require grad with a frozen base."""

        def work(fork: Fork) -> None:
            names = [each.name for each in self.blocks if not each.is_lone]
            fork.keep(embeddings(self._under_test, names))

        found, end = in_fork(work, lambda _line: None, (child.seconds() or _SECONDS) / _SHARE)
        # If this fails, the model is judged without it.
        return found if end.cause == "done" else ()

    def _fault(self, end: End, conditions: Conditions) -> Fault:
        """Return the fault for the death of a process, distinguishing slowness from a hang."""
        longest = self._longest.get(conditions.scenario.name)
        is_slow = end.cause == "time limit" and not end.is_hang(end.seconds, longest)
        return Fault(end.cause, end.message, end.frames, is_slow or end.cause in FOREIGN)


class Rounding:
    """Makes the necessary runs, once for each reference."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self._known: dict[Conditions, tuple[frozenset[Key], dict[Key, float]]] = {}

    def sharpened(self, comparison: Comparison) -> Comparison:
        """Return the comparison with what differs between plain runs, and with the effect of rounding.

        If gradients cannot be compared then, or differ only slightly, the run is repeated in double
        precision, if the model allows it: there, the effect of rounding is far smaller, and errors are as
        large as before. This would not help with gradients that are zero except for rounding, such as that
        of a bias before a normalisation.
        """
        comparison = self._measured(comparison)
        if not (comparison.near or set(comparison.blurred).difference(comparison.vanishing)):
            return comparison  # Double precision would only show that a gradient is zero.
        reference, run = (self._again(each, exact=True) for each in (comparison.reference, comparison.run))
        if reference.error is not None or run.error is not None:
            return comparison
        return replace(comparison, exact=self._measured(replace(comparison, reference=reference, run=run)))

    def _measured(self, comparison: Comparison) -> Comparison:
        reference = comparison.reference
        if reference.conditions not in self._known:
            again = self._again(reference)
            others = (again, *(self._again(reference, perturbed=number + 1) for number in range(_TIMES)))
            self._known[reference.conditions] = (
                differences(reference, again),
                noise(reference, (each for each in others if each.error is None)),
            )
        unstable, noises = self._known[reference.conditions]
        return replace(comparison, unstable=comparison.unstable | unstable, noise=noises)

    def _again(self, run: Run, *, perturbed: int = 0, exact: bool = False) -> Run:
        conditions = replace(
            run.conditions, perturbed=perturbed, exact=exact or run.conditions.exact, finds_blocks=False
        )
        return self._runner.run(conditions, run.scales)


def stability(model: nn.Module, runner: Runner, scales: Mapping[str, float]) -> Iterator[Stability]:
    """Yield how a model with experts reacts to noise, for each implementation of the experts."""
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
