"""Runs training steps of one model in one mode, in a process of its own."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from typing import Any

import torch
from torch import Tensor

from gclint.verify.worker.examination.block_calls import CallRecorder
from gclint.verify.worker.examination.blocks import Block, BlockFinder
from gclint.verify.worker.examination.fault import NoGradient, fault_of
from gclint.verify.worker.examination.inspection.checkpoints import Checkpoints, Replays
from gclint.verify.worker.examination.inspection.inspector import Inspector
from gclint.verify.worker.examination.inspection.readable import SharedState
from gclint.verify.worker.examination.model_under_test import ModelUnderTest, seed, seed_in_turn
from gclint.verify.worker.examination.observers import Clock, Phases, RecomputeNoise, SavedBytes, use_experts
from gclint.verify.worker.examination.phrases import of_step
from gclint.verify.worker.examination.run import BACKWARD, ENABLING, REQUIRING, Conditions, Run, TrainingStep
from gclint.verify.worker.examination.state import ModuleAttributes, SideEffects, Snapshot, Values, comparable
from gclint.verify.worker.examination.tensors import OWN, DoublePrecision, continued, outputs_of, total_loss
from gclint.verify.worker.importing import all_executed, watch_blocks
from gclint.verify.worker.memory_limits import is_out_of_memory


class Steps:
    """Takes the steps of one run, and records them."""

    def __init__(
        self,
        under_test: ModelUnderTest,
        conditions: Conditions,
        blocks: Iterable[Block],
        watched: Iterable[str],
        scales: Mapping[str, float],
        begin: Callable[[str], None],
        keep: Callable[[Run], None],
    ) -> None:
        """Prepare a run.

        Args:
            under_test: what to run; it is changed.
            conditions: how to run it.
            blocks: the blocks to watch.
            watched: the names of the modules whose calls are traced.
            scales: the sizes of the outputs in the run with which this one will be compared.
            begin: called with the name of each stage when it begins.
            keep: called with the record before each backward pass of a checkpointed step.
        """
        self._run = Run(conditions, scales=dict(scales))
        self._usual = frozenset(scales)
        """The outputs that the first run was trained on."""
        self._under_test = under_test
        self._blocks = tuple(blocks)
        modules = dict(under_test.model.named_modules())
        self._watched = {modules[name]: name for name in watched}
        watch_blocks(type(modules[each.name]) for each in self._blocks)
        self._begin_stage = begin
        self._keep = keep
        self._traces: list[CallRecorder] = []
        """The traces of all steps; what they hold stays alive."""
        self._inspector = Inspector(under_test.model) if conditions.inspected else None

    def take(self) -> Run:
        """Run the steps; an error of the model ends the run and is part of it."""
        run = self._run
        try:
            with (
                self._caught_warnings() as caught,
                DoublePrecision() if self._run.conditions.exact else nullcontext(),
            ):
                self._take()
        except Exception as error:
            if is_out_of_memory(error):
                raise
            # Any error of a model is a result.
            run.error = fault_of(error)
        run.warnings = tuple(caught)
        if self._inspector is not None:
            run.inspection = self._inspector.inspection()
        run.executed = all_executed()
        return run

    @contextmanager
    def _caught_warnings(self) -> Iterator[list[str]]:
        """Collect warnings, except where gradients are deliberately not recorded.

        For example in a checkpoint inside a reentrant one: no input requires grad there.
        """
        caught: list[str] = []

        def show(message: Any, *_: Any) -> None:
            if not self._traces or self._traces[-1].records_gradients:
                caught.append(str(message))

        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.showwarning = show  # type: ignore[assignment]
            yield caught

    def _take(self) -> None:
        run, under_test, conditions = self._run, self._under_test, self._run.conditions
        scenario = conditions.scenario
        run.stage = "the construction"
        under_test.prepare(scenario)
        if conditions.exact:
            under_test.model.double()
        if conditions.perturbed:
            under_test.perturb(conditions.perturbed)
        if scenario.frozen_base:
            under_test.freeze(each.name for each in self._blocks if not each.is_lone)
        if conditions.experts:
            use_experts(under_test.model, conditions.experts)
        if conditions.mode != "plain":
            run.stage = ENABLING
            run.set_to_off = under_test.enable_checkpointing(conditions.mode)
            run.still_off = tuple(name for name, on in under_test.flags().items() if not on)
        # Releases from 5.0 on do this by themselves for models that take tokens.
        if scenario.require_input_grads and not hasattr(under_test.model, "_require_grads_hook"):
            run.stage = REQUIRING
            under_test.model.enable_input_require_grads()
        if conditions.evaluated:
            self._evaluate()
            return
        model = under_test.model
        attributes, values, shared = ModuleAttributes(model), Values(model), SharedState(model)
        with self._inspector or nullcontext():
            for number in range(scenario.steps):
                self._step(number)
        run.values, run.shared = values.changes(), shared.changes()
        run.attributes = {name: comparable(value) for name, value in attributes.changes().items()}
        if conditions.mode != "plain":
            run.stage = "disabling checkpointing"
            under_test.disable_checkpointing()
            run.still_on = tuple(name for name, on in under_test.flags().items() if on)

    def _evaluate(self) -> None:
        """Compute outputs, and those of one more token if they contain caches."""
        model, scenario = self._under_test.model.eval(), self._run.conditions.scenario
        seed(0)
        inputs = self._under_test.inputs(scenario)
        self._begin("the forward pass")
        with torch.no_grad():
            value = model(**inputs)
            self._run.steps.append(_evaluated(value))
            more = continued(inputs, value) if scenario.use_cache else None
            if more is not None:
                # How to continue is a guess, and models need not support it.
                with suppress(Exception):
                    self._run.steps.append(_evaluated(model(**more)))

    def _step(self, number: int) -> None:
        run, under_test, conditions = self._run, self._under_test, self._run.conditions
        is_plain = conditions.mode == "plain"
        seed_in_turn(number)
        finder = BlockFinder(under_test.model) if conditions.finds_blocks and number == 0 else None
        saved = (
            SavedBytes(under_test.model)
            if finder is None
            else SavedBytes(under_test.model, finder.note_saved)
        )
        clock, phases = Clock(under_test.device), Phases(under_test.model, self._blocks)
        trace = CallRecorder(self._watched, phases, run.calls, hold=saved.hold)
        self._traces.append(trace)
        # The later steps show the cost of a step.
        replays = (
            None if is_plain or number or conditions.bare or self._inspector else Replays(under_test.model)
        )
        snapshot = None
        try:
            with (
                nullcontext() if conditions.bare else phases,
                trace if conditions.traced or not (is_plain or conditions.bare) else nullcontext(),
                nullcontext() if replays is None else Checkpoints((replays,)),
                RecomputeNoise(under_test.model, self._blocks, phases, conditions.noise)
                if conditions.noise
                else nullcontext(),
            ):
                which = of_step(number)
                self._begin(f"the forward pass{which}")
                loss, outputs = self._forward(number, clock, saved, finder)
                if not is_plain:
                    snapshot = Snapshot(under_test.model, *self._passed())
                    self._keep(run)
                self._begin(f"{BACKWARD}{which}")
                phases.backward = True
                with clock:
                    loss.backward()
        finally:
            if snapshot is not None:
                run.side_effects = _both(run.side_effects, snapshot.side_effects())
            run.forward += phases.runs[False]
            run.recorded += phases.recorded[False]
            run.backward += phases.runs[True]
            run.unrecorded += phases.runs[True] - phases.recorded[True]
            if replays is not None:
                run.replay = replays.replay
        is_measured = conditions.measured and not conditions.bare and not phases.is_threaded
        gradients = under_test.take_gradients()
        again = frozenset(phases.runs[True])
        run.steps.append(_seen(loss, outputs, gradients, saved if is_measured else None, clock, again))
        if finder is not None:
            run.blocks = finder.blocks(run.steps[0].trained)
            run.stacked, run.uncounted = finder.stacked, finder.uncounted
            run.recorded += Counter({each.name: each.runs for each in run.blocks})
            self._blocks = run.blocks

    def _forward(
        self, number: int, clock: Clock, saved: SavedBytes, finder: BlockFinder | None
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """Run the forward passes of a step; return the total loss and all outputs."""
        scenario, under_test = self._run.conditions.scenario, self._under_test
        losses: list[Tensor | None] = []
        outputs: dict[str, Tensor] = {}
        for batch in range(scenario.forwards):
            inputs = under_test.inputs(
                scenario, number * scenario.forwards + batch, exact=self._run.conditions.exact
            )
            look = self._inspector.forward() if self._inspector is not None else nullcontext()
            is_measured = self._run.conditions.measured and not self._run.conditions.bare
            with clock, saved if is_measured else nullcontext(), finder or nullcontext():
                with look:
                    found = outputs_of(under_test.model(**inputs))
                if scenario.usual_outputs:
                    # Nobody trains on the others, and reentrant checkpointing gives no gradient to what is
                    # recorded inside of a block.
                    found = {name: each for name, each in found.items() if name in self._usual}
                losses.append(total_loss(found, self._run.scales))
            for name, output in found.items():
                if batch and name == OWN and not output.dim():
                    outputs[name] = outputs[name] + output
                else:
                    outputs[f"{name} of batch {batch + 1}" if batch else name] = output
        present = [each for each in losses if each is not None]
        if not present:
            raise NoGradient
        return torch.stack(present).sum(), outputs

    def _passed(self) -> tuple[Mapping[int, Any], Mapping[int, dict[Any, Any]]]:
        """Return the caches and the dictionaries that were passed in the steps up to now."""
        caches = {key: each for trace in self._traces for key, each in trace.caches.items()}
        return caches, {key: each for trace in self._traces for key, each in trace.dictionaries.items()}

    def _begin(self, stage: str) -> None:
        self._run.stage = stage
        self._begin_stage(stage)


def _seen(
    loss: Tensor,
    outputs: dict[str, Tensor],
    gradients: dict[str, Tensor | None],
    saved: SavedBytes | None,
    clock: Clock,
    again: frozenset[str],
) -> TrainingStep:
    own = outputs.get(OWN)
    return TrainingStep(
        float(loss.detach()),
        float(own.detach()) if own is not None and own.numel() == 1 else None,
        {name: each.detach() for name, each in outputs.items()},
        gradients,
        None if saved is None else saved.total,
        clock.seconds,
        clock.peak_bytes,
        0 if saved is None else saved.held,
        frozenset(name for name, each in outputs.items() if each.requires_grad),
        again,
    )


def _evaluated(value: Any) -> TrainingStep:
    return TrainingStep(0.0, None, outputs_of(value), {}, 0, 0.0, None)


def _both(one: SideEffects, other: SideEffects) -> SideEffects:
    return SideEffects(
        tuple(dict.fromkeys(one.generators + other.generators)),
        tuple(dict.fromkeys(one.attributes + other.attributes)),
        one.caches | other.caches,
        one.dictionaries | other.dictionaries,
    )
