"""A comparison: a run to judge, with the reference that it should agree with."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from statistics import median

from torch import Tensor

from gclint.verify.worker.cause import Cause
from gclint.verify.worker.examination.agreement import (
    Agreement,
    compare,
    hides_all,
    is_nothing,
    largest,
    same,
)
from gclint.verify.worker.examination.blocks import Block
from gclint.verify.worker.examination.deliberate import left_out
from gclint.verify.worker.examination.inspection.difference import (
    FirstDifference,
    first_difference,
    only_cut,
    only_unrecorded,
)
from gclint.verify.worker.examination.inspection.inspector import Checkpointed, Inspection
from gclint.verify.worker.examination.inspection.tape import Event
from gclint.verify.worker.examination.run import Key, Noise, Run, gradients
from gclint.verify.worker.examination.tensors import OWN
from gclint.verify.worker.importing import coverage, outer_branches
from gclint.verify.worker.protocol import SourcePlace

ENOUGH = 0.7
"""The share of the parameters whose gradients must be compared. In a model of only linear layers and
normalisations, a quarter may be biases before normalisations, whose gradients are pure rounding."""
ZERO = 1e-4
"""The share of the median size of all gradients up to which one may be zero except for rounding."""
UNSETTLED = (Agreement.UNKNOWN, Agreement.NEAR)
"""Outcomes that double precision may settle."""
_OTHER = (Agreement.DIFFERENT, Agreement.NEAR)
"""Outcomes that are wrong unless double precision shows otherwise."""


@dataclass(frozen=True)
class FailedCheck:
    """What a check has found, before its cause is known."""

    check: str
    message: str
    parameters: tuple[str, ...] = ()
    blocks: tuple[str, ...] = ()
    """The names of the blocks that it is about."""
    cause: Cause | None = None
    """Its cause, if the check itself has seen that."""
    places: tuple[SourcePlace, ...] = ()
    """The lines that it is about, if the check itself has seen them."""
    about: tuple[str, ...] = ()
    """The outputs, modules or attributes that it is about, if it is not about parameters or blocks."""
    kind: str = ""
    """The name of the check that saw it, if that is not ``check``."""


@dataclass(frozen=True)
class Comparison:
    """A run with checkpointing, and the plain run that it is compared with."""

    reference: Run
    run: Run
    blocks: tuple[Block, ...]
    kinds: Mapping[str, type] = field(default_factory=dict)
    """The classes of the model's modules."""
    source: str = ""
    """The file that the model's class is defined in."""
    unstable: frozenset[Key] = frozenset()
    """What differs between two plain runs from the same state."""
    noise: Noise = field(default_factory=dict)
    """The known effect of rounding on the reference."""
    exact: Comparison | None = None
    """The same in double precision, if that was run."""
    lone: tuple[Block, ...] = ()
    """Modules that may be blocks in larger models, and are not judged here."""
    inspection: Inspection | None = None
    """The inspection of the run, if there was one."""
    plain: Event | None = None
    """The first forward pass of the reference, if it was inspected."""
    is_shown: bool = True
    """Whether the inspected run fails as well, in which nothing that was computed is ever deleted."""
    _agreements: dict[int, dict[str, Agreement]] = field(default_factory=dict, init=False, compare=False)

    @cached_property
    def left(self) -> tuple[str, ...]:
        """The names of the blocks that ran but were not recomputed, unless they lost all gradients."""
        lost = set(self.lost)
        return tuple(
            each.name
            for each in self.blocks
            if self.run.forward[each.name]
            and each.name not in self.recomputed
            and not lost.issuperset(self.expected(each))
        )

    @cached_property
    def deliberate(self) -> dict[str, str]:
        """The blocks in ``left`` that the model deliberately leaves out, each with the evidence."""
        run = self.run
        return left_out(self.kinds, self.recomputed, self.left, run.calls, run.still_off, run.set_to_off)

    @cached_property
    def divergent(self) -> Checkpointed | None:
        """The first checkpoint whose recomputation differs from its forward pass."""
        return next((each for each in self.checkpoints if each.origin and not each.origin.is_rounding), None)

    @cached_property
    def forward_origin(self) -> FirstDifference | None:
        """Where the forward pass begins to differ from the one without checkpointing."""
        if self.inspection is None or self.plain is None:
            return None
        origin = first_difference(self.plain, self.inspection.forward)
        return None if origin is None or origin.is_rounding else origin

    @cached_property
    def cut(self) -> Event | None:
        """Where a tensor is detached from its graph, or gets none, only with checkpointing."""
        if self.inspection is None or self.plain is None:
            return None
        # Only the recomputation of reentrant checkpointing records a graph.
        runs = [(each.first, each.again if each.is_reentrant else each.first) for each in self.checkpoints]
        cuts = [only_cut(first, again) for first, again in runs if again is not None]
        found = (only_unrecorded(self.plain, again) for _, again in runs if again is not None)
        return only_cut(self.plain, self.inspection.forward) or next(filter(None, (*cuts, *found)), None)

    @cached_property
    def only_with(self) -> tuple[tuple[SourcePlace, bool], ...]:
        """The branches that only the run with checkpointing has executed, and whether they are statements."""
        return tuple(outer_branches(self.run.executed - self.reference.executed))

    @cached_property
    def only_without(self) -> tuple[tuple[SourcePlace, bool], ...]:
        """The branches that only the reference has executed, and whether they are statements."""
        return tuple(outer_branches(self.reference.executed - self.run.executed))

    @property
    def checkpoints(self) -> tuple[Checkpointed, ...]:
        """The checkpoints that were seen in the run."""
        return self.inspection.checkpoints if self.inspection is not None else ()

    @property
    def is_reentrant(self) -> bool:
        """Whether anything was checkpointed with reentrant autograd, whatever was requested."""
        if not self.checkpoints:
            return self.run.mode == "reentrant"
        return any(each.is_reentrant for each in self.checkpoints)

    @cached_property
    def lost(self) -> tuple[str, ...]:
        """The parameters that have a gradient only in the first step of the reference."""
        return self._lost(0)

    @cached_property
    def wrong(self) -> tuple[str, ...]:
        """The parameters whose gradients in the first step are different."""
        return self._wrong(0)

    @cached_property
    def gone(self) -> tuple[str, ...]:
        """The outputs of the first step that require grad only in the reference."""
        if not self.has(0):
            return ()
        return tuple(sorted(self.reference.steps[0].requiring_grad - self.run.steps[0].requiring_grad))

    @cached_property
    def compared(self) -> int:
        """How many parameters' gradients could be compared."""
        return sum(each is not Agreement.UNKNOWN for each in self.agreements(0).values())

    @cached_property
    def blurred(self) -> tuple[str, ...]:
        """The parameters whose gradients in the first step may differ by rounding alone."""
        others = {*self.changing, *self.not_finite}
        return tuple(
            name
            for name, agreement in self.agreements(0).items()
            if agreement is Agreement.UNKNOWN and name not in others
        )

    @cached_property
    def vanishing(self) -> tuple[str, ...]:
        """Those in ``blurred`` that are zero in both runs except for rounding.

        An example is a bias before a normalisation. They agree in being zero, with nothing more to compare.
        """
        gradients = [each.steps[0].gradients for each in (self.reference, self.run)] if self.blurred else []
        sizes = [{name: largest(each) for name, each in of.items() if each is not None} for of in gradients]
        return tuple(
            name
            for name in self.blurred
            if all(of.get(name, 0.0) <= ZERO * median(of.values()) for of in sizes if of)
        )

    @cached_property
    def changing(self) -> tuple[str, ...]:
        """The parameters whose gradients in the first step differ between plain runs."""
        return tuple(name for name in self.agreements(0) if ("gradient", name) in self.unstable)

    @cached_property
    def not_finite(self) -> tuple[str, ...]:
        """The parameters whose gradients in the first step of the reference hide all that is compared."""
        expected = self.reference.steps[0].gradients if self.has(0) else {}
        found = {name: expected.get(name) for name in self.agreements(0) if name not in self.changing}
        return tuple(name for name, each in found.items() if each is not None and hides_all(each))

    @property
    def is_meaningful(self) -> bool:
        """Whether enough gradients could be compared to judge the run."""
        return not self.has(0) or self.compared >= ENOUGH * len(self.agreements(0))

    def is_partial(self, names: Collection[str]) -> bool:
        """Return whether any of some blocks ran again at all."""
        return any(self.run.backward[name] > self.reference.backward[name] for name in names)

    def steps_with(self, names: Collection[str]) -> tuple[int, ...]:
        """Return the steps in whose backward passes any of some blocks ran."""
        return tuple(number for number, each in enumerate(self.run.steps) if not each.again.isdisjoint(names))

    @cached_property
    def unreached(self) -> tuple[SourcePlace, ...]:
        """The branches that the run has not executed, of functions that it has."""
        return tuple(
            SourcePlace(each.path, branch.line, branch.last)
            for each in coverage(self.run.executed)
            if not each.is_inside
            for branch in each.missed
        )

    @property
    def is_idle(self) -> bool:
        """Whether nothing at all was recomputed, neither a block nor what else was checkpointed."""
        return not (self.recomputed or self.run.replay.again)

    def expected(self, block: Block) -> frozenset[str]:
        """Return the parameters of a block that have a gradient to compare."""
        known = block.parameters.intersection(self.agreements(0))
        return known.difference(self.blurred, self.changing, self.not_finite)

    def differs(self, step: int) -> bool:
        """Return whether any result of a step differs from the reference."""
        return bool(
            self._lost(step) or self._wrong(step) or self.different_outputs(step) or self.different_loss(step)
        )

    def different_loss(self, step: int) -> bool:
        """Return whether the model's own loss in a step, if it has one, differs from the reference."""
        if not self.has(step) or self.reference.steps[step].own_loss is None:
            return False
        return self._is_other_output(step, OWN)

    def different_outputs(self, step: int) -> tuple[str, ...]:
        """Return the names of the outputs of a step that are missing, new, or differ from the reference.

        This does not include the model's own loss.
        """
        if not self.has(step):
            return ()
        names = {**self.reference.steps[step].outputs, **self.run.steps[step].outputs}
        return tuple(name for name in names if name != OWN and self._is_other_output(step, name))

    @cached_property
    def different_values(self) -> tuple[str, ...]:
        """The parameters and buffers that differ from those after the reference."""
        return tuple(
            name for name in {**self.reference.values, **self.run.values} if self._is_other_value(name)
        )

    @cached_property
    def different_attributes(self) -> tuple[str, ...]:
        """The attributes of modules that differ from those after the reference."""
        expected, found = self.reference.attributes, self.run.attributes
        return tuple(
            name
            for name in {**expected, **found}
            if ("attribute", name) not in {*self.unstable, *self.noise}
            and not same(expected.get(name), found.get(name))
        )

    @cached_property
    def left_over(self) -> tuple[str, ...]:
        """The variables and attributes of classes that only this run leaves otherwise than it found them."""
        return tuple(sorted(self.run.shared - self.reference.shared))

    def agreements(self, step: int) -> dict[str, Agreement]:
        """Return the result of comparing each parameter's gradient in a step, if it has one."""
        if step not in self._agreements:
            self._agreements[step] = self._compared(step) if self.has(step) else {}
        return self._agreements[step]

    def _compared(self, step: int) -> dict[str, Agreement]:
        found = self._in_this_precision(step)
        unsettled = {name: each for name, each in found.items() if each in UNSETTLED}
        if self.exact is not None and unsettled:
            # A difference that is only rounding in single precision is far smaller in double precision.
            exact = self.exact.agreements(step)
            found |= {name: exact.get(name, each) for name, each in unsettled.items()}
        return {name: Agreement.DIFFERENT if each is Agreement.NEAR else each for name, each in found.items()}

    @property
    def near(self) -> tuple[str, ...]:
        """The parameters whose gradients in the first step differ slightly, in this precision."""
        found = self._in_this_precision(0) if self.has(0) else {}
        return tuple(name for name, each in found.items() if each is Agreement.NEAR)

    def _in_this_precision(self, step: int) -> dict[str, Agreement]:
        pairs = gradients(self.reference.steps[step], self.run.steps[step])
        return {
            name: Agreement.UNKNOWN if hides_all(one) else self._agreement(("gradient", name), one, other)
            for name, one, other in pairs
        }

    def _is_other_output(self, step: int, name: str) -> bool:
        outputs = (self.reference.steps[step].outputs, self.run.steps[step].outputs)
        expected, found = (each.get(name) for each in outputs)
        if expected is None or found is None:
            return ("output", name) not in self.unstable
        agreement = self._agreement(("output", name), expected, found)
        if agreement in UNSETTLED and self.exact is not None and self.exact.has(step):
            return self.exact._is_other_output(step, name)
        return agreement in _OTHER

    def _is_other_value(self, name: str) -> bool:
        expected, found = self.reference.values.get(name), self.run.values.get(name)
        if expected is None or found is None:
            return ("value", name) not in self.unstable
        return self._agreement(("value", name), expected, found) in _OTHER

    def _agreement(self, key: Key, expected: Tensor, found: Tensor) -> Agreement:
        if key in self.unstable:
            return Agreement.UNKNOWN
        return compare(expected, found, self.noise.get(key, 0.0))

    @property
    def later(self) -> tuple[str, ...]:
        """What is lost or wrong in the steps after the first, but not in that."""
        first = {*self.lost, *self.wrong, *self.different_outputs(0)}
        found = [
            name
            for step in range(1, len(self.run.steps))
            for name in (*self._lost(step), *self._wrong(step), *self.different_outputs(step))
        ]
        return tuple(name for name in dict.fromkeys(found) if name not in first)

    def has(self, step: int) -> bool:
        """Return whether both runs completed a step."""
        return len(self.reference.steps) > step and len(self.run.steps) > step

    @cached_property
    def recomputed(self) -> frozenset[str]:
        """The names of the blocks that ran as often in the backward passes as before with gradients."""
        return frozenset(
            each.name for each in (*self.blocks, *self.lone) if self.again(each) >= self.times(each)
        )

    def again(self, block: Block) -> int:
        """Return how often a block ran again in backward passes, beside what it does there by itself."""
        return self.run.backward[block.name] - self.reference.backward[block.name]

    def times(self, block: Block) -> int:
        """Return how often a block should be recomputed in all steps of the run."""
        return self.reference.recorded[block.name]

    def most(self, block: Block) -> int:
        """Return the same with the runs without gradients that the recomputation repeats."""
        times = self.times(block)
        return times + min(self.run.unrecorded[block.name], self.run.forward[block.name] - times)

    def _lost(self, step: int) -> tuple[str, ...]:
        return tuple(
            name for name in self._different(step) if is_nothing(self.run.steps[step].gradients.get(name))
        )

    def _wrong(self, step: int) -> tuple[str, ...]:
        lost = self._lost(step)
        return tuple(name for name in self._different(step) if name not in lost)

    def _different(self, step: int) -> tuple[str, ...]:
        return tuple(name for name, each in self.agreements(step).items() if each is Agreement.DIFFERENT)
