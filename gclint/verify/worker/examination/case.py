"""One run to judge, next to the reference that it should agree with."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from torch import Tensor

from gclint.verify.worker.cause import Cause
from gclint.verify.worker.examination.blocks import Block
from gclint.verify.worker.examination.comparison import close, near, same
from gclint.verify.worker.examination.deliberate import left_out
from gclint.verify.worker.examination.inspection.difference import Origin, first_difference, only_cut
from gclint.verify.worker.examination.inspection.inspector import Checkpointed, Inspection
from gclint.verify.worker.examination.inspection.tape import Event
from gclint.verify.worker.examination.loss import OWN
from gclint.verify.worker.examination.run import Run, Step
from gclint.verify.worker.protocol import Place

_TIMES = 10
"""How many times what rounding is seen to change it may change at most."""


@dataclass(frozen=True)
class Symptom:
    """What a check has found, before anybody asked why."""

    check: str
    message: str
    parameters: tuple[str, ...] = ()
    blocks: tuple[str, ...] = ()
    """The names of the blocks that it is about."""
    cause: Cause | None = None
    """What it comes from, where the check itself has seen that."""
    places: tuple[Place, ...] = ()
    """The lines that it is about, where the check itself has seen them."""
    about: tuple[str, ...] = ()
    """All that it is about, where that is neither parameters nor blocks."""
    kind: str = ""
    """The name of the check that saw it, if that is another one."""


@dataclass(frozen=True)
class Case:
    """A run with checkpointing, and the plain run that it is compared with."""

    reference: Run
    run: Run
    blocks: tuple[Block, ...]
    stacked: frozenset[str] = frozenset()
    """The names of modules in stacks that feed one another, whether they are worth recomputing or not."""
    kinds: Mapping[str, type] = field(default_factory=dict)
    """The classes of the model's modules."""
    source: str = ""
    """The file that the model's class is defined in."""
    unstable: frozenset[str] = frozenset()
    """What differed between two plain runs: names of gradients, outputs, values and attributes."""
    lone: tuple[Block, ...] = ()
    """What may be blocks in larger models, and is not judged here."""
    inspection: Inspection | None = None
    """What a close look at the run has seen, if there was one."""
    plain: Event | None = None
    """The first forward pass of the reference, if it was looked at closely."""

    @cached_property
    def left(self) -> tuple[str, ...]:
        """The names of the blocks that ran and were not recomputed, but for those that lost all gradients."""
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
        """The names of those of them that the model leaves out on purpose, each with what shows it."""
        run = self.run
        return left_out(self.kinds, self.recomputed, self.left, run.calls, run.still_off)

    @cached_property
    def divergent(self) -> Checkpointed | None:
        """The first checkpoint whose recomputation does something else than its forward pass did."""
        return next((each for each in self.checkpoints if each.origin and not each.origin.is_rounding), None)

    @cached_property
    def forward_origin(self) -> Origin | None:
        """Where the forward pass begins to do something else than it does without checkpointing."""
        if self.inspection is None or self.plain is None:
            return None
        origin = first_difference(self.plain, self.inspection.forward)
        return None if origin is None or origin.is_rounding else origin

    @cached_property
    def cut(self) -> Event | None:
        """Where a tensor is cut off from its graph with checkpointing only, in the forward pass."""
        if self.inspection is None or self.plain is None:
            return None
        return only_cut(self.plain, self.inspection.forward)

    @property
    def checkpoints(self) -> tuple[Checkpointed, ...]:
        """What was seen of the checkpoints in the run."""
        return self.inspection.checkpoints if self.inspection is not None else ()

    @property
    def is_reentrant(self) -> bool:
        """Whether anything was checkpointed with reentrant autograd, whatever was asked for."""
        if not self.checkpoints:
            return self.run.mode == "reentrant"
        return any(each.is_reentrant for each in self.checkpoints)

    @cached_property
    def lost(self) -> tuple[str, ...]:
        """The parameters that have a gradient in the reference's first step only."""
        return self._lost(0)

    @cached_property
    def wrong(self) -> tuple[str, ...]:
        """The parameters whose gradients in the first step are different ones."""
        return self._wrong(0)

    @cached_property
    def compared(self) -> int:
        """How many parameters have a gradient to compare."""
        return len(self._touched(0)) if self.has(0) else 0

    def expected(self, block: Block) -> frozenset[str]:
        """Return the parameters of a block that have a gradient to compare."""
        return block.parameters.intersection(self._touched(0)) if self.has(0) else frozenset()

    def differs(self, step: int) -> bool:
        """Return whether anything that a step computed is not that of the reference."""
        return bool(
            self._lost(step) or self._wrong(step) or self.different_outputs(step) or self.different_loss(step)
        )

    def different_loss(self, step: int) -> bool:
        """Return whether the model's own loss in a step, if it has one, is not that of the reference."""
        if not self.has(step) or OWN in self.unstable:
            return False
        expected, found = self.reference.steps[step].own_loss, self.run.steps[step].own_loss
        return expected is not None and (found is None or not near(expected, found))

    def different_outputs(self, step: int) -> tuple[str, ...]:
        """Return the names of the outputs of a step that are missing, new, or not those of the reference.

        The model's own loss is none of them.
        """
        if not self.has(step):
            return ()
        expected, found = self.reference.steps[step].outputs, self.run.steps[step].outputs
        return tuple(
            name
            for name in {**expected, **found}
            if name not in self.unstable
            and name != OWN
            and (name not in expected or name not in found or not close(expected[name], found[name]))
        )

    @property
    def later(self) -> tuple[str, ...]:
        """What is lost or wrong in the steps after the first, and was not in that."""
        first = {*self.lost, *self.wrong, *self.different_outputs(0)}
        found = [
            name
            for step in range(1, len(self.run.steps))
            for name in (*self._lost(step), *self._wrong(step), *self.different_outputs(step))
        ]
        return tuple(name for name in dict.fromkeys(found) if name not in first)

    def has(self, step: int) -> bool:
        """Return whether both runs came to the end of a step."""
        return len(self.reference.steps) > step and len(self.run.steps) > step

    @cached_property
    def recomputed(self) -> frozenset[str]:
        """The names of the blocks that ran as often in the backward passes as for a gradient before."""
        return frozenset(
            each.name
            for each in (*self.blocks, *self.lone)
            if self.run.backward[each.name] >= self.times(each)
        )

    def times(self, block: Block) -> int:
        """Return how often a block is to be recomputed in all steps of the run."""
        return block.runs * len(self.run.steps)

    def _lost(self, step: int) -> tuple[str, ...]:
        if not self.has(step):
            return ()
        found = self.run.steps[step].gradients
        return tuple(
            name
            for name in self._touched(step)
            if (gradient := found.get(name)) is None or not gradient.any()
        )

    def _wrong(self, step: int) -> tuple[str, ...]:
        if not self.has(step):
            return ()
        found, lost = self.run.steps[step].gradients, self._lost(step)
        scale = self.reference.steps[step].largest
        return tuple(
            name
            for name, gradient in self._touched(step).items()
            if name not in lost and not close(gradient, found[name], scale)
        )

    def _touched(self, step: int) -> dict[str, Tensor]:
        gradients = self.reference.steps[step].touched
        return {name: each for name, each in gradients.items() if name not in self.unstable}


@dataclass(frozen=True)
class Check:
    """Something that must hold of every run with checkpointing."""

    name: str
    symptoms: Callable[[Case], Iterable[Symptom]]


def differences(one: Run, other: Run) -> frozenset[str]:
    """Return the names of whatever two runs of the same kind do not agree in."""
    names: set[str] = set()
    for mine, yours in zip(one.steps, other.steps, strict=False):
        names |= _unequal(mine, yours)
    if len(one.steps) == len(other.steps):
        names |= {name for name, each in one.values.items() if not close(each, other.values[name])}
        attributes = {**one.attributes, **other.attributes}
        names |= {
            name for name in attributes if not same(one.attributes.get(name), other.attributes.get(name))
        }
    return frozenset(names)


def rounding(reference: Run, shaken: Run, found: Run) -> frozenset[str]:
    """Return the names of what differs no more than rounding explains.

    Args:
        reference: the plain run.
        shaken: the same with parameters that differ by a rounding error.
        found: the run that does not agree with the reference.
    """
    explained, observed = _deviations(reference, shaken), _deviations(reference, found)
    names = differences(reference, shaken)
    return frozenset(each for each in names if observed.get(each, 0.0) <= _TIMES * explained.get(each, 0.0))


def _deviations(one: Run, other: Run) -> dict[str, float]:
    """Return the largest absolute differences of what can be compared."""
    found: dict[str, float] = {}
    pairs: list[tuple[str, Any, Any]] = [
        (name, each, other.values.get(name)) for name, each in one.values.items()
    ]
    for mine, yours in zip(one.steps, other.steps, strict=False):
        pairs += [(name, each, yours.gradients.get(name)) for name, each in mine.gradients.items()]
        pairs += [(name, each, yours.outputs.get(name)) for name, each in mine.outputs.items()]
        if mine.own_loss is not None and yours.own_loss is not None:
            found[OWN] = max(found.get(OWN, 0.0), abs(mine.own_loss - yours.own_loss))
    for name, mine, yours in pairs:
        if (
            isinstance(mine, Tensor)
            and isinstance(yours, Tensor)
            and mine.shape == yours.shape
            and mine.numel()
        ):
            difference = float((mine.double() - yours.double()).abs().max())
            found[name] = max(found.get(name, 0.0), difference)
    return found


def _unequal(mine: Step, yours: Step) -> set[str]:
    names = set()
    scale = mine.largest
    for name, gradient in mine.gradients.items():
        twin = yours.gradients.get(name)
        if (gradient is None) != (twin is None) or (
            gradient is not None and twin is not None and not close(gradient, twin, scale)
        ):
            names.add(name)
    outputs = {**mine.outputs, **yours.outputs}
    names |= {
        name
        for name in outputs
        if name not in mine.outputs
        or name not in yours.outputs
        or not close(mine.outputs[name], yours.outputs[name])
    }
    return names
