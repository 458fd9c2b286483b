"""Records the operations of a model, with their source lines."""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from gclint.verify.worker.examination.block_calls import bound, is_asked_by_model, model_frames
from gclint.verify.worker.examination.inspection.checkpoints import CheckpointCall, Observer
from gclint.verify.worker.examination.inspection.parts import Digest, digest, shape
from gclint.verify.worker.examination.inspection.readable import AttributeAssignment
from gclint.verify.worker.examination.tensors import address_of, all_tensors
from gclint.verify.worker.protocol import SourcePlace

_MAKE = frozenset(
    ("empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided")
)
_FILL = frozenset((
    "bernoulli_", "cauchy_", "copy_", "exponential_", "fill_", "geometric_", "log_normal_", "normal_",
    "random_", "uniform_", "zero_",
))  # fmt: skip
"""Operations that write to every element of a tensor."""
_FLAGS = ("requires_grad", "is_leaf", "grad_fn", "grad", "_version")
"""Properties of tensors about gradients, or in which a recomputation's copies of them differ."""
_SILENT = frozenset(("__get__", "__set__", "size", "dim", "numel", "stride", "is_floating_point", "__len__"))
IDENTITY = "`id()` of a tensor"
"""The query whose answer is another one in each run of a model."""
_STOP = "_StopRecomputationError"
"""The exception by which torch ends a recomputation that has everything it needs."""
_MOST = 200_000
"""The most events to keep for one pass."""


def events_within(event: Event) -> Iterator[Event]:
    """Yield all events in one, however deep."""
    for each in event.events:
        yield each
        yield from events_within(each)


class Unset:
    """The tensors that were allocated without values, until all of them have been written."""

    def __init__(self) -> None:
        # As long as the tensors are alive, their addresses stay unique.
        self._made: dict[int | None, Tensor] = {}

    def follow(self, operation: str, outputs: Iterable[Tensor]) -> None:
        """Record what an operation has allocated or filled."""
        for each in outputs:
            if operation in _MAKE and (key := address_of(each)):
                self._made[key] = each
            elif operation in _FILL:
                made = self._made.get(address_of(each))
                if made is not None and made.numel() == each.numel():
                    del self._made[address_of(each)]

    def __contains__(self, value: object) -> bool:
        return bool(self._made) and isinstance(value, Tensor) and address_of(value) in self._made


@dataclass(frozen=True)
class Input:
    """An input of an operation or a module."""

    name: str
    """The name of the parameter, or the position."""
    source: str
    """``result``, ``argument`` (of the checkpoint), ``parameter``, ``kept`` (a tensor from elsewhere), or
    ``value``."""
    digest: Digest
    held: str = ""
    """The name of the parameter, buffer or argument, if it is one."""


@dataclass(eq=False)
class Event:
    """An operation, a call of a module, or a query of the model about its state."""

    kind: str
    """``operation``, ``module``, ``checkpoint`` or ``question``."""
    name: str
    stack: tuple[SourcePlace, ...]
    """Its place and those of its callers, the innermost first."""
    inputs: tuple[Input, ...] = ()
    outputs: tuple[Digest, ...] = ()
    events: list[Event] = field(default_factory=list)
    """The events inside."""
    saved: tuple[Digest, ...] = ()
    """What autograd saved of it, in a checkpoint that saves only that."""
    is_complete: bool = True
    """Whether it was completed."""
    has_graph: bool = False
    """Whether what it computes requires grad."""
    takes_graph: bool = False
    """Whether something that it is given does."""
    written: tuple[str, ...] = ()
    """The positions of the checkpoint's arguments that it changes in place."""

    @property
    def key(self) -> tuple[str, str]:
        """A key that is the same for comparable events."""
        return self.kind, self.name


class Tape(TorchFunctionMode, Observer):  # type: ignore[misc]
    """Records, while it is entered, what the model does; an observer of checkpoints as well."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.root = Event("checkpoint", "", ())
        """The forward pass."""
        self.runs: dict[CheckpointCall, list[Event]] = {}
        """The runs of each checkpoint, of which the first is in the forward pass."""
        self.written: dict[int, AttributeAssignment] = {}
        """What wrote to each storage last."""
        self._open = [Event("checkpoint", "", ())]
        self._names: dict[int, str] = {
            id(each): name for name, each in (*model.named_parameters(), *model.named_buffers())
        }
        self._parameters = {id(each) for each in model.parameters()}
        self._modules = {module: name for name, module in model.named_modules()}
        self._made: dict[int, Tensor] = {}
        self._unset = Unset()
        # As long as they are alive, their identities stay unique.
        self._exit = ExitStack()
        self._left = _MOST
        self._saved: list[Digest] = []
        """What has been saved of the current operation."""
        self._arguments: dict[int | None, str] = {}
        """The arguments of the current checkpoint."""
        self._is_forward = False
        self._has_begun = False
        """Whether the first forward pass has; before it, only a part of the model may run."""
        self._stopped: set[Event] = set()
        """The operations in which torch ended a recomputation."""
        self._is_busy = False
        """Whether the operations that run are those of the inspection itself."""

    def __enter__(self) -> Tape:
        for module in self._modules:
            before = module.register_forward_pre_hook(self._before, with_kwargs=True)
            after = module.register_forward_hook(self._after, with_kwargs=True, always_call=True)
            self._exit.callback(before.remove)
            self._exit.callback(after.remove)
        self._ask(torch, "is_grad_enabled", "whether gradients are recorded (`torch.is_grad_enabled()`)")
        self._ask(builtins, "id", IDENTITY)
        return self

    def __exit__(self, *error: Any) -> None:
        self._exit.close()

    @contextmanager
    def forward(self) -> Iterator[None]:
        """Record a forward pass; of a backward pass, only the recomputation is recorded."""
        self._open = [Event("checkpoint", "", ()) if self._has_begun else self.root]
        self._is_forward = self._has_begun = True
        super().__enter__()
        try:
            yield
        finally:
            super().__exit__(None, None, None)
            self._is_forward = False
            self._open = [Event("checkpoint", "", ())]

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """Record nothing meanwhile."""
        before, self._is_busy = self._is_busy, True
        try:
            yield
        finally:
            self._is_busy = before

    def stopped_at(self, event: Event) -> tuple[SourcePlace, ...]:
        """Return where torch ended a recomputation that has everything it needs, if something ran then."""
        events = [each for each in events_within(event) if each.kind == "operation"]
        return next((each.stack for each in events[:-1] if each in self._stopped), ())

    def begin(self, region: CheckpointCall, arguments: tuple[Any, ...]) -> None:
        """Open an event for a run of a checkpoint."""
        if not self._is_forward:
            super().__enter__()
        with self.quiet():
            inputs = tuple(self._input(str(index), each) for index, each in enumerate(arguments))
            event = Event("checkpoint", "", _stack(), inputs, is_complete=False)
            self.runs.setdefault(region, []).append(event)
            self._begin(event)
            self._arguments = {
                key: str(index)
                for index, each in enumerate(arguments)
                if isinstance(each, Tensor) and (key := address_of(each))
            }

    def end(self, region: CheckpointCall, result: Any, is_complete: bool) -> None:
        """Close it."""
        if not self._is_forward:
            super().__exit__(None, None, None)
        self._end(self.runs[region][-1], result, is_complete)
        self._arguments = {}

    def saved(self, region: CheckpointCall, tensor: Tensor) -> None:
        """Record what is saved of an operation, after which a recomputation may stop."""
        if id(tensor) not in self._parameters:
            with self.quiet():
                self._saved.append(self._digest(tensor))

    def _begin(self, event: Event) -> None:
        self._open[-1].events.append(event)
        self._open.append(event)

    def _end(self, event: Event, result: Any, is_complete: bool) -> None:
        with self.quiet():
            event.outputs = tuple(self._digest(each) for each in all_tensors(result))
            event.is_complete = is_complete
            # An event that ended with an exception was not closed.
            if event in self._open:
                del self._open[self._open.index(event) :]

    def _before(self, module: nn.Module, args: Any, kwargs: Any) -> None:
        with self.quiet():
            arguments = bound(type(module), args, kwargs)
            inputs = tuple(self._input(name, each) for name, each in arguments)
            self._begin(Event("module", self._modules[module], _stack(), inputs, is_complete=False))

    def _after(self, module: nn.Module, _args: Any, _kwargs: Any, output: Any) -> None:
        key = ("module", self._modules[module])
        event = next((each for each in reversed(self._open) if each.key == key), None)
        if event is not None:
            self._end(event, output, output is not None)

    def _ask(self, owner: Any, name: str, question: str) -> None:
        original = getattr(owner, name)

        def asked(*args: Any) -> Any:
            answer = original(*args)
            if (not args or isinstance(args[0], Tensor)) and is_asked_by_model():
                self._add(Event("question", question, _stack(), (), (digest(answer),)))
            return answer

        setattr(owner, name, asked)
        self._exit.callback(setattr, owner, name, original)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if self._is_busy:
            return func(*args, **kwargs)
        name = getattr(func, "__name__", str(func))
        if name in _SILENT:
            result = func(*args, **kwargs)
            flag = getattr(getattr(func, "__self__", None), "__name__", "")
            if name == "__set__" and flag == "data":
                self._write(args[0])
            elif name == "__get__" and flag in (*_FLAGS, "data") and is_asked_by_model():
                self._read(flag, args[0], result)
            return result
        inputs = tuple(self._inputs(args, kwargs)) if self._left else ()
        given = [(each, _version(each)) for each in all_tensors((args, kwargs))]
        self._saved.clear()
        try:
            result = func(*args, **kwargs)
        except BaseException as error:
            saved = tuple(self._saved)
            stopped = Event("operation", name, _stack(), inputs, saved=saved, is_complete=False)
            if type(error).__name__ == _STOP:
                self._stopped.add(stopped)
            self._add(stopped)
            raise
        written = [each for each, version in given if _version(each) != version]
        for each in written:
            self._write(each)
        outputs = list(all_tensors(result))
        scalar = isinstance(result, bool | int | float)
        if outputs or scalar or name.endswith("_"):
            self._made.update({id(each): each for each in outputs})
            self._unset.follow(name, outputs)
            event = Event(
                "operation",
                name,
                _stack(),
                inputs,
                (digest(result),) if scalar else tuple(self._digest(each) for each in outputs),
                saved=tuple(self._saved),
                has_graph=any(each.requires_grad for each in outputs),
                takes_graph=any(each.requires_grad for each, _ in given),
                written=tuple(filter(None, (self._arguments.get(address_of(each)) for each in written))),
            )
            self._add(event)
        return result

    def _read(self, flag: str, tensor: Any, value: Any) -> None:
        if flag == "data":
            read = Event("operation", flag, _stack(), (), (digest(value),), takes_graph=tensor.requires_grad)
            self._add(read)
            return
        # The name of a node does not matter.
        answer = value if flag != "grad_fn" else value is None
        self._add(Event("question", f"`{flag}` of a tensor", _stack(), (), (digest(answer),)))

    def _write(self, tensor: Any) -> None:
        for place in _stack()[:1] if isinstance(tensor, Tensor) else ():
            is_within = any(each.kind == "checkpoint" for each in self._open[1:])
            if (address := address_of(tensor)) is not None:
                self.written[address] = AttributeAssignment(place, is_within)

    def _add(self, event: Event) -> None:
        if self._left:
            self._left -= 1
            self._open[-1].events.append(event)

    def _inputs(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Iterator[Input]:
        for name, value in (*((str(index), each) for index, each in enumerate(args)), *kwargs.items()):
            listed = isinstance(value, list | tuple) and any(isinstance(each, Tensor) for each in value)
            for index, each in enumerate(value if listed else (value,)):
                yield self._input(f"{name}[{index}]" if listed else name, each)

    def _input(self, name: str, value: Any) -> Input:
        if not isinstance(value, Tensor):
            return Input(name, "value", digest(value))
        held = self._names.get(id(value), "")
        if id(value) in self._parameters:
            return Input(name, "parameter", Digest(f"the parameter `{held}`"), held)
        position = self._arguments.get(address_of(value))
        if position is not None:
            return Input(name, "argument", self._digest(value), position)
        source = "result" if id(value) in self._made else "kept"
        return Input(name, source, self._digest(value), held)

    def _digest(self, tensor: Tensor) -> Digest:
        return shape(tensor) if tensor in self._unset else digest(tensor)


def _version(tensor: Tensor) -> int:
    """Return how often a tensor was written to, but for one of inference mode, which is not counted."""
    return 0 if tensor.is_inference() else int(tensor._version)


def _stack() -> tuple[SourcePlace, ...]:
    return tuple(model_frames())
