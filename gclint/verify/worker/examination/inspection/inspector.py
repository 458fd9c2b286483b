"""Inspects one run: what it does, what its checkpoints recompute, and what has changed in between."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from gclint.verify.worker.examination.block_calls import call_place, calling_place, model_frames
from gclint.verify.worker.examination.inspection.checkpoints import CheckpointCall, Checkpoints, Observer
from gclint.verify.worker.examination.inspection.difference import FirstDifference, first_difference
from gclint.verify.worker.examination.inspection.parts import digest, tensors_within
from gclint.verify.worker.examination.inspection.readable import (
    AttributeAssignment,
    ReadableState,
    StateChange,
    closure,
)
from gclint.verify.worker.examination.inspection.tape import Event, Tape
from gclint.verify.worker.examination.tensors import tensors_in
from gclint.verify.worker.protocol import SourcePlace

AS_TUPLE = "which arrives as a plain tuple"
"""What becomes of a tuple of another class in reentrant checkpointing."""


@dataclass(frozen=True)
class Checkpointed:
    """The observations on one checkpoint."""

    place: SourcePlace | None
    """Where the checkpoint function is called."""
    modules: tuple[str, ...]
    """The outermost modules that run in it."""
    is_reentrant: bool
    preserves_random_state: bool
    outer: SourcePlace | None
    """The place of the checkpoint around it, if there is one."""
    returned_in: str
    """The container in which the function returns tensors that reentrant checkpointing does not see, if
    any."""
    captured: tuple[str, ...]
    """The variables through which the function captures tensors that require grad."""
    has_gradient: bool
    """Whether a tensor that is passed to it by position requires grad."""
    drawn: frozenset[str]
    """The random generators that are used in it, other than torch's own."""
    first: Event
    """Its first run."""
    origin: FirstDifference | None
    """Where the recomputation begins to differ."""
    changes: tuple[StateChange, ...]
    """What had changed when the recomputation began."""
    modified: tuple[str, ...]
    """The arguments that the function changes in place."""
    stored: tuple[str, ...] = ()
    """Where the function leaves tensors, beside what it returns, that have a graph only once recomputed."""
    again: Event | None = None
    """Its second run."""
    stopped_at: tuple[SourcePlace, ...] = ()
    """Where torch ended a recomputation, from the innermost line on, although something ran after that."""

    @property
    def lines(self) -> tuple[SourcePlace, ...]:
        """Lines of the functions that it runs, of those outside of modules first."""
        blocks = [each for each in self.first.events if each.kind == "module"]
        events = [each for within in (self.first, *blocks) for each in within.events]
        return tuple(dict.fromkeys(place for each in events for place in each.stack[:1]))


@dataclass(frozen=True)
class Inspection:
    """The results of an inspection."""

    forward: Event
    """The first forward pass."""
    checkpoints: tuple[Checkpointed, ...]
    """In the order in which they were made."""
    settings: dict[str, AttributeAssignment]
    """Where attributes were last set, by their dotted names."""
    evaluated: frozenset[str] = frozenset()
    """The modules that were in evaluation mode when a forward pass began."""
    hooks: tuple[SourcePlace, ...] = ()
    """Where checkpointed code registers hooks."""


class Inspector(Observer):
    """Inspects, while it is entered, the steps of a run."""

    def __init__(self, model: nn.Module) -> None:
        self._model = model
        self._tape = Tape(model)
        self._observed: dict[CheckpointCall, _Observed] = {}
        self._settings: dict[str, AttributeAssignment] = {}
        self._names = {module: name for name, module in model.named_modules()}
        self._running = 0
        self._evaluated: set[str] = set()
        self._hooks: dict[SourcePlace, None] = {}
        self._exit = ExitStack()

    def __enter__(self) -> Inspector:
        self._exit.enter_context(Checkpoints((self, self._tape)))
        self._record_settings()
        self._record_hooks()
        self._exit.enter_context(self._tape)
        return self

    def __exit__(self, *_: object) -> None:
        self._exit.close()

    def forward(self) -> AbstractContextManager[None]:
        """Return the context manager for a forward pass."""
        self._evaluated |= {name for module, name in self._names.items() if not module.training}
        return self._tape.forward()

    def inspection(self) -> Inspection:
        """Return the results."""
        return Inspection(
            self._tape.root,
            tuple(self._checkpointed(region, observed) for region, observed in self._observed.items()),
            self._settings,
            frozenset(self._evaluated),
            tuple(self._hooks),
        )

    def begin(self, region: CheckpointCall, arguments: tuple[Any, ...]) -> None:
        """Record what a checkpoint can read when it begins."""
        self._running += 1
        with self._tape.quiet():
            observed = self._observed.get(region)
            if observed is None:
                observed = _Observed(region, self._state(region, arguments), self._all_settings())
                self._observed[region] = observed
            elif observed.changes is None:
                observed.compare(self._state(region, arguments), self._all_settings())

    def end(self, region: CheckpointCall, result: Any, is_complete: bool) -> None:
        """Record what it has returned."""
        self._running -= 1
        observed = self._observed[region]
        if not region.is_again:
            with self._tape.quiet():
                observed.end(self._state(region, region.arguments))
        elif region.is_reentrant:
            with self._tape.quiet():
                # What has no graph then either was not to have one.
                observed.stored &= observed.readable.stored(
                    self._state(region, region.arguments), has_graph=True
                )
        if region.is_reentrant and is_complete:
            observed.returned_in = observed.returned_in or _hidden_in(result)

    def _all_settings(self) -> dict[Any, AttributeAssignment]:
        """Return what has set each attribute, and written to each storage, last."""
        return {**self._settings, **self._tape.written}

    def _state(self, region: CheckpointCall, arguments: tuple[Any, ...]) -> ReadableState:
        return ReadableState(self._model, region.function, arguments, region.keywords, region.saving)

    def _checkpointed(self, region: CheckpointCall, observed: _Observed) -> Checkpointed:
        first, *others = self._tape.runs[region]
        origins = [origin for each in others if (origin := first_difference(first, each)) is not None]
        outer = self._observed[region.outer] if region.outer is not None else None
        return Checkpointed(
            observed.place,
            tuple(each.name for each in first.events if each.kind == "module"),
            region.is_reentrant,
            region.preserves_random_state,
            outer.place if outer is not None else None,
            observed.returned_in,
            observed.captured,
            observed.has_gradient,
            observed.drawn,
            first,
            next((each for each in origins if not each.is_rounding), origins[0] if origins else None),
            observed.changes or (),
            observed.modified,
            tuple(sorted(observed.stored)) if region.is_reentrant else (),
            others[0] if others else None,
            next(filter(None, map(self._tape.stopped_at, others)), ()),
        )

    def _record_settings(self) -> None:
        original = nn.Module.__setattr__

        def recorded(module: nn.Module, name: str, value: Any) -> None:
            original(module, name, value)
            place = next(model_frames(), None)
            if module in self._names and place is not None:
                owner = self._names[module]
                self._settings[f"{owner}.{name}" if owner else name] = AttributeAssignment(
                    place, self._running > 0
                )

        nn.Module.__setattr__ = recorded
        self._exit.callback(setattr, nn.Module, "__setattr__", original)

    def _record_hooks(self) -> None:
        original = RemovableHandle.__init__

        def recorded(handle: RemovableHandle, *args: Any, **kwargs: Any) -> None:
            original(handle, *args, **kwargs)
            if self._running and (place := calling_place()) is not None:
                self._hooks[place] = None

        RemovableHandle.__init__ = recorded
        self._exit.callback(setattr, RemovableHandle, "__init__", original)


class _Observed:
    """The observations on a checkpoint while it runs."""

    def __init__(
        self,
        region: CheckpointCall,
        readable: ReadableState,
        settings: dict[Any, AttributeAssignment],
    ) -> None:
        self.place = call_place()
        self.readable = readable
        self._settings = settings
        self.arguments = _Contents(region)
        self.has_gradient = any(isinstance(each, Tensor) and each.requires_grad for each in region.arguments)
        self.captured = tuple(dict.fromkeys((*_captured(region), *readable.entering())))
        self.returned_in = ""
        self.changes: tuple[StateChange, ...] | None = None
        self.modified: tuple[str, ...] = ()
        self.drawn: frozenset[str] = frozenset()
        self.stored: frozenset[str] = frozenset()
        self._in_block: tuple[StateChange, ...] = ()

    def end(self, now: ReadableState) -> None:
        """Record what the first run has done besides returning something."""
        self.modified = self.arguments.changed()
        self.drawn = self.readable.drawn()
        self.stored = self.readable.stored(now)
        self._in_block = self.readable.changes(now)

    def compare(self, now: ReadableState, settings: dict[Any, AttributeAssignment]) -> None:
        """Record what has changed when the recomputation begins, and what has done that since."""
        in_block = {(each.holder, each.place, each.part) for each in self._in_block}
        since = {key: each for key, each in settings.items() if each is not self._settings.get(key)}
        self.changes = tuple(
            replace(
                each,
                in_block=(each.holder, each.place, each.part) in in_block,
                set_by=since.get(each.place) or since.get(self.readable.address(each)),
            )
            for each in self.readable.changes(now)
        )


class _Contents:
    """The contents of arguments when a checkpoint began."""

    def __init__(self, region: CheckpointCall) -> None:
        named = (
            *((str(index), each) for index, each in enumerate(region.arguments)),
            *region.keywords.items(),
        )
        self._values = [(name, each, _content(each)) for name, each in named]
        self._held = [
            list(each.values() if isinstance(each, dict) else each)
            for _, each in named
            if isinstance(each, list | dict)
        ]
        # As long as it is alive, its identity stays unique.

    def changed(self) -> tuple[str, ...]:
        """Return the names or positions of the arguments that have other contents now."""
        return tuple(name for name, value, before in self._values if _content(value) != before)


def _content(value: Any) -> Any:
    if isinstance(value, Tensor):
        return digest(value).key
    if isinstance(value, list):
        return [(id(each), _content(each)) for each in value]
    if isinstance(value, dict):
        return [(key, id(each), _content(each)) for key, each in value.items()]
    return None


def _captured(region: CheckpointCall) -> Iterator[str]:
    """Yield the names of the closure variables that hold tensors which require grad."""
    for _, name, value in closure(region.function):
        if any(each.requires_grad and not each.is_leaf for _, each in tensors_in(value)):
            yield name


def _hidden_in(result: Any) -> str:
    """Return the container whose tensors reentrant checkpointing cannot connect, in words, or nothing."""
    for each in result if isinstance(result, tuple) else (result,):
        if not isinstance(each, Tensor) and any(inner.is_floating_point() for inner in tensors_within(each)):
            kind = type(each).__name__
            return f"a tuple that holds a `{kind}`" if isinstance(result, tuple) else f"a `{kind}`"
    if isinstance(result, tuple) and type(result) is not tuple:
        return f"a `{type(result).__name__}`, {AS_TUPLE}"
    return ""
