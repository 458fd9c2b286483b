"""Training steps of one model in one mode, and everything that is seen of them."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from torch import Tensor, nn

from gclint.verify.worker.examination.blocks import Block
from gclint.verify.worker.examination.clock import Clock
from gclint.verify.worker.examination.comparison import largest, touched
from gclint.verify.worker.examination.evidence import Consequences, Evidence
from gclint.verify.worker.examination.loss import OWN, total_loss
from gclint.verify.worker.examination.phases import Phases
from gclint.verify.worker.examination.saved import SavedBytes
from gclint.verify.worker.examination.state import Attributes, state_tensors
from gclint.verify.worker.examination.subject import Subject, seed
from gclint.verify.worker.examination.tensors import tensors_in
from gclint.verify.worker.examination.trace import Call, Trace
from gclint.verify.worker.memory import is_out_of_memory
from gclint.verify.worker.protocol import Mode
from gclint.verify.worker.scenarios import Scenario
from gclint.verify.worker.watch import Watch

REQUIRING = "enable_input_require_grads()"
"""The stage in which the embeddings' output is made to require grad."""


class NoGradient(RuntimeError):
    """No output carries gradient, so there is nothing to go backward from."""


@dataclass(frozen=True)
class Conditions:
    """How a run is to be made."""

    scenario: Scenario
    mode: Mode
    shaken: bool = False
    """Whether to change all parameters by about what rounding does, to see what that alone changes."""


@dataclass(frozen=True)
class Step:
    """What one training step computed and cost."""

    loss: float
    own_loss: float | None
    outputs: dict[str, Tensor]
    gradients: dict[str, Tensor | None]
    saved_bytes: int
    seconds: float
    peak_bytes: int | None

    @cached_property
    def largest(self) -> float:
        """The largest absolute value in all gradients."""
        return largest(self.gradients)

    @cached_property
    def touched(self) -> dict[str, Tensor]:
        """The gradients that are more than noise."""
        return touched(self.gradients, self.largest)


@dataclass
class Run:
    """What was seen of some steps after one another."""

    conditions: Conditions
    steps: list[Step] = field(default_factory=list)
    error: Exception | None = None
    stage: str = ""
    """What the error came in."""
    warnings: tuple[str, ...] = ()
    forward: Counter[str] = field(default_factory=Counter)
    """How often each block ran in forward passes."""
    backward: Counter[str] = field(default_factory=Counter)
    """How often each block ran in backward passes."""
    calls: list[Call] = field(default_factory=list)
    nested: frozenset[str] = frozenset()
    consequences: Consequences = field(default_factory=Consequences)
    values: dict[str, Tensor] = field(default_factory=dict)
    """Parameters and buffers afterwards."""
    attributes: dict[str, Any] = field(default_factory=dict)
    """The attributes of modules that the steps have set."""
    still_off: tuple[str, ...] = ()
    """The modules that switching on left off."""
    still_on: tuple[str, ...] = ()
    """The modules that switching off left on."""

    @property
    def mode(self) -> Mode:
        """How the steps were run."""
        return self.conditions.mode


class Runner:
    """Runs steps of one subject."""

    def __init__(self, subject: Subject, watch: Watch) -> None:
        self.subject = subject
        self.blocks: tuple[Block, ...] = ()
        """The blocks to be watched."""
        self.watched: dict[nn.Module, str] = {}
        """The modules whose calls are traced, and their names."""
        self.before_backward: Callable[[Run], None] = lambda run: None
        """Called with what is known before each backward pass of a checkpointed step."""
        self._watch = watch
        self._trace: Trace | None = None

    def run(self, conditions: Conditions, observer: AbstractContextManager[Any] | None = None) -> Run:
        """Run steps from the start; an error of the model ends the run and is part of it.

        Args:
            conditions: how.
            observer: entered around the first forward pass.
        """
        run = Run(conditions)
        try:
            with self._caught_warnings() as caught:
                self._run(run, observer or nullcontext())
        except Exception as error:
            if is_out_of_memory(error):
                raise
            # Whatever a model raises is what there is to know about it; its traceback would keep the graph.
            run.error = error.with_traceback(None)
        finally:
            run.warnings = tuple(caught)
            self.subject.take_gradients()
        return run

    @contextmanager
    def _caught_warnings(self) -> Iterator[list[str]]:
        """Gather the warnings, but for those from where no gradient is recorded on purpose.

        Such as a checkpoint within a forward pass that another one repeats: no input requires grad there.
        """
        caught: list[str] = []

        def show(message: Any, *_: Any) -> None:
            if self._trace is None or self._trace.records_gradients:
                caught.append(str(message))

        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.showwarning = show  # type: ignore[assignment]
            yield caught

    def _run(self, run: Run, observer: AbstractContextManager[Any]) -> None:
        conditions, subject = run.conditions, self.subject
        scenario = conditions.scenario
        run.stage = "the construction"
        subject.restore(dropout=scenario.dropout)
        if conditions.shaken:
            subject.shake()
        if scenario.frozen_base:
            subject.freeze(each.module for each in self.blocks)
        if conditions.mode != "plain":
            run.stage = "switching checkpointing on"
            subject.switch_on(conditions.mode)
            run.still_off = tuple(name for name, on in subject.switches().items() if not on)
        # Releases from 5.0 on do so by themselves for models that take tokens.
        if scenario.require_input_grads and not hasattr(subject.model, "_require_grads_hook"):
            run.stage = REQUIRING
            subject.model.enable_input_require_grads()
        before = Attributes(subject.model)
        for number in range(scenario.steps):
            self._step(run, number, observer if number == 0 else nullcontext(), before)
        run.values = {name: each.detach().clone() for name, each in state_tensors(subject.model).items()}
        run.attributes = {name: _kept(value) for name, value in before.changes().items()}
        if conditions.mode != "plain":
            run.stage = "switching checkpointing off"
            subject.switch_off()
            run.still_on = tuple(name for name, on in subject.switches().items() if on)

    def _step(self, run: Run, number: int, observer: AbstractContextManager[Any], before: Attributes) -> None:
        conditions, subject = run.conditions, self.subject
        seed(number)
        inputs = subject.inputs(use_cache=conditions.scenario.use_cache)
        saved, clock, phases = SavedBytes(subject.model), Clock(subject.device), Phases(self.blocks)
        trace = self._trace = Trace(self.watched, phases, run.calls)
        evidence = None
        try:
            with phases, trace if conditions.mode != "plain" else nullcontext():
                self._begin(run, "the forward pass")
                with clock, saved, observer:
                    outputs = _outputs(subject.model(**inputs))
                    loss = total_loss(outputs)
                if loss is None:
                    raise NoGradient
                if conditions.mode != "plain":
                    evidence = Evidence(subject.model, run.calls, before)
                    self.before_backward(run)
                self._begin(run, "the backward pass")
                phases.backward = True
                with clock:
                    loss.backward()
        finally:
            if evidence is not None:
                run.consequences = _both(run.consequences, evidence.consequences())
            run.forward += phases.runs[False]
            run.backward += phases.runs[True]
            run.nested |= trace.nested
        run.steps.append(_seen(loss, outputs, subject.take_gradients(), saved.total, clock))

    def _begin(self, run: Run, stage: str) -> None:
        run.stage = stage
        self._watch.begin(run.conditions.scenario.name, run.mode, stage)


def _seen(
    loss: Tensor,
    outputs: dict[str, Tensor],
    gradients: dict[str, Tensor | None],
    saved_bytes: int,
    clock: Clock,
) -> Step:
    own = outputs.get(OWN)
    return Step(
        float(loss.detach()),
        float(own.detach()) if own is not None and own.numel() == 1 else None,
        {name: each.detach() for name, each in outputs.items()},
        gradients,
        saved_bytes,
        clock.seconds,
        clock.peak_bytes,
    )


def _outputs(value: Any) -> dict[str, Tensor]:
    return dict(
        tensors_in(value if isinstance(value, dict) else (value,) if isinstance(value, Tensor) else value)
    )


def _kept(value: Any) -> Any:
    """Return what is left of an attribute to compare: a value, a tensor, or the length of a container."""
    if isinstance(value, Tensor):
        return value.detach().clone()
    if isinstance(value, Sequence | dict | set) and not isinstance(value, str):
        return len(value)
    return value if isinstance(value, bool | int | float | str) else type(value).__name__


def _both(one: Consequences, other: Consequences) -> Consequences:
    return Consequences(
        tuple(dict.fromkeys(one.generators + other.generators)),
        tuple(dict.fromkeys(one.attributes + other.attributes)),
        tuple(dict.fromkeys(one.set_before + other.set_before)),
        one.caches | other.caches,
        one.dictionaries | other.dictionaries,
    )
