"""Observes the checkpoints of a run, whatever makes them: what runs in them, and what is recomputed."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import torch
import torch.utils.checkpoint as torch_checkpoint
from torch import Tensor, nn
from torch.utils._python_dispatch import _disable_current_modes

from gclint.verify.worker.examination.agreement import close
from gclint.verify.worker.examination.block_calls import call_place
from gclint.verify.worker.examination.inspection.parts import is_of_models
from gclint.verify.worker.examination.state import state_tensors
from gclint.verify.worker.examination.tensors import tensors_in
from gclint.verify.worker.protocol import SourcePlace

_OPAQUE = frozenset((torch.uint8, torch.int8))
"""The types of internal data of kernels, which may differ between two runs."""


@dataclass(eq=False)
class CheckpointCall:
    """One call of torch's checkpoint function."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    keywords: dict[str, Any]
    is_reentrant: bool
    preserves_random_state: bool
    outer: CheckpointCall | None
    """The checkpoint around this one."""
    saving: str = ""
    """The class or function of the model whose hooks the tensors went through that were saved around it."""
    runs: int = 0
    """How often its function has started."""

    @property
    def is_generator(self) -> bool:
        """Whether its function only makes a generator, which runs outside of it."""
        function = self.function
        while isinstance(function, functools.partial):
            function = function.func
        owner = getattr(function, "__self__", None)
        return inspect.isgeneratorfunction(owner.forward if isinstance(owner, nn.Module) else function)

    @property
    def is_again(self) -> bool:
        """Whether the current run is the recomputation."""
        return self.runs > 1


class Observer:
    """Observes what runs in checkpoints; by default, it ignores everything."""

    def begin(self, region: CheckpointCall, arguments: tuple[Any, ...]) -> None:
        """The function of a checkpoint begins."""

    def end(self, region: CheckpointCall, result: Any, is_complete: bool) -> None:
        """The function has ended: its result, None if unknown, and whether it was completed."""

    def saved(self, region: CheckpointCall, tensor: Tensor) -> None:
        """Autograd saves a tensor in it."""


class Repeated(Observer):
    """Counts the checkpoints that run again."""

    count = 0

    def begin(self, region: CheckpointCall, arguments: tuple[Any, ...]) -> None:
        """Count a run if it is not the first one."""
        self.count += region.is_again


class Checkpoints:
    """Observes, while it is entered, all calls of torch's checkpoint function in both modes.

    It replaces the parts that torch's function looks up, so that it sees every call, however it is made.
    """

    def __init__(self, observers: Sequence[Observer]) -> None:
        self._observers = observers
        self._running: list[CheckpointCall] = []
        self._exit = ExitStack()

    def __enter__(self) -> Checkpoints:
        known = {name: getattr(torch_checkpoint, name, None) for name in _STAND_INS}
        made = {name: _STAND_INS[name](self, each) for name, each in known.items() if each is not None}
        self._exit.enter_context(_replaced(made))
        return self

    def __exit__(self, *_: object) -> None:
        self._exit.close()

    def open(
        self,
        function: Any,
        arguments: tuple[Any, ...],
        keywords: dict[str, Any],
        reentrant: bool,
        preserves: Any,
    ) -> CheckpointCall:
        """Return a new checkpoint."""
        outer = self._running[-1] if self._running else None
        return CheckpointCall(
            function, arguments, keywords, reentrant, bool(preserves), outer, _saving_hooks()
        )

    @contextmanager
    def run(self, region: CheckpointCall, arguments: tuple[Any, ...]) -> Iterator[list[Any]]:
        """Announce a run of a checkpoint's function; its result goes into the list."""
        region.runs += 1
        self._running.append(region)
        result: list[Any] = []
        is_complete = False
        try:
            for each in self._observers:
                each.begin(region, arguments)
            yield result
            is_complete = True
        finally:
            self._running.remove(region)
            for each in self._observers:
                each.end(region, result[0] if result else None, is_complete)

    def call(self, region: CheckpointCall) -> Callable[..., Any]:
        """Return a replacement for the function of a checkpoint, which announces its runs."""

        @functools.wraps(region.function, assigned=("__name__", "__doc__"), updated=())
        def function(*args: Any, **kwargs: Any) -> Any:
            region.saving = _saving_hooks()
            with self.run(region, args) as results:
                results.append(region.function(*args, **kwargs))
                return results[0]

        return function

    def save(self, tensor: Tensor) -> None:
        """Announce that autograd saves a tensor in the current checkpoint."""
        if self._running:
            for each in self._observers:
                each.saved(self._running[-1], tensor)


def _saving_hooks() -> str:
    """Return the function through which tensors go that are saved now, if it is one of the model."""
    top = getattr(torch._C._autograd, "_top_saved_tensors_default_hooks", None)  # Not in each release.
    hooks = top(False) if top is not None else None
    function = hooks[0] if hooks else None
    is_of_model = is_of_models(getattr(function, "__module__", None) or "torch")
    return str(getattr(function, "__qualname__", type(function).__name__)) if is_of_model else ""


@contextmanager
def without_checkpoints() -> Iterator[None]:
    """Let torch's checkpoint function only call what it is given, whoever calls it."""

    class Uncheckpointed:
        @staticmethod
        def apply(function: Any, _preserves: Any, *args: Any) -> Any:
            return function(*args)

    def generator(*_args: Any, **_kwargs: Any) -> Iterator[None]:
        yield  # Torch calls the function meanwhile.

    with _replaced(
        {"CheckpointFunction": Uncheckpointed, "_checkpoint_without_reentrant_generator": generator}
    ):
        yield


@contextmanager
def _replaced(stand_ins: Mapping[str, Any]) -> Iterator[None]:
    """Put something in place of what torch's checkpoint function looks up under some names."""
    with ExitStack() as undoing:
        for name, each in stand_ins.items():
            undoing.callback(setattr, torch_checkpoint, name, getattr(torch_checkpoint, name))
            setattr(torch_checkpoint, name, each)
        yield


def _reentrant(checkpoints: Checkpoints, original: Any) -> Any:
    class ObservedFunction:
        """Replaces the autograd function of reentrant checkpointing."""

        @staticmethod
        def apply(function: Any, preserves: Any, *args: Any) -> Any:
            region = checkpoints.open(function, args, {}, True, preserves)
            return original.apply(checkpoints.call(region), preserves, *args)

    return ObservedFunction


def _without_reentrant(checkpoints: Checkpoints, original: Any) -> Any:
    # Positional: the function, whether to preserve the random state, and settings before the arguments.
    settings = original.__code__.co_argcount - 2

    def stand_in(function: Any, preserves: Any = True, *rest: Any, **kwargs: Any) -> Iterator[None]:
        region = checkpoints.open(function, rest[settings:], kwargs, False, preserves)
        generator = original(checkpoints.call(region), preserves, *rest, **kwargs)
        next(generator)
        # Torch calls the function itself the first time, while this generator waits.
        try:
            with checkpoints.run(region, region.arguments):
                yield
        except BaseException as error:
            generator.throw(error)
            raise
        next(generator, None)

    return stand_in


def _saving(checkpoints: Checkpoints, original: Any) -> Any:
    class ObservedHooks(original):  # type: ignore[misc]
        """Replaces the hooks that torch enters in a checkpoint."""

        pack_hook: Callable[[Tensor], Any]

        def __init__(self, *args: Any) -> None:
            super().__init__(*args)
            pack: Callable[[Tensor], Any] = self.pack_hook

            def spied(tensor: Tensor) -> Any:
                checkpoints.save(tensor)
                return pack(tensor)

            self.pack_hook = spied

    return ObservedHooks


_STAND_INS: dict[str, Callable[[Checkpoints, Any], Any]] = {
    "CheckpointFunction": _reentrant,
    "_checkpoint_without_reentrant_generator": _without_reentrant,
    "_checkpoint_hook": _saving,
    "_recomputation_hook": _saving,
}
"""The replacements, by torch's names."""


@dataclass(frozen=True)
class Replay:
    """How many tensors were compared, with which results."""

    compared: int = 0
    different: int = 0
    first: str = ""
    """The type and shape of the first different one."""
    again: int = 0
    """How many checkpoints ran again."""
    generator: SourcePlace | None = None
    """The call of the first one whose function only makes a generator."""
    generators: tuple[str, ...] = ()
    """The modules that do so."""


class Replays(Observer):
    """An observer of checkpoints that compares the recomputation with the first run.

    In non-reentrant mode, it compares the tensors that are saved for the backward pass; in reentrant mode,
    which saves nothing in the first run, the outputs of the checkpointed function.
    """

    def __init__(self, model: nn.Module) -> None:
        self._known = {each.untyped_storage().data_ptr() for each in state_tensors(model).values()}
        self._first: dict[CheckpointCall, list[Tensor | None]] = {}
        self._next: dict[CheckpointCall, int] = {}
        self._compared = self._different = 0
        self._shown = ""
        self._again: set[CheckpointCall] = set()
        self._generator: SourcePlace | None = None
        self._generators = tuple(
            name
            for name, each in model.named_modules()
            if inspect.isgeneratorfunction(inspect.unwrap(each.forward))
        )

    @property
    def replay(self) -> Replay:
        """The results so far."""
        names = self._generators if self._generator is not None else ()
        again = len(self._again)
        return Replay(self._compared, self._different, self._shown, again, self._generator, names)

    def begin(self, region: CheckpointCall, arguments: tuple[Any, ...]) -> None:
        """Start again at the first tensor."""
        self._next[region] = 0
        if region.is_again:
            self._again.add(region)
        elif self._generator is None and region.is_generator:
            self._generator = call_place()

    def end(self, region: CheckpointCall, result: Any, is_complete: bool) -> None:
        """Compare the outputs in reentrant mode."""
        if region.is_reentrant and is_complete:
            self._next[region] = 0
            for _, each in tensors_in(result):
                self._see(region, each)

    def saved(self, region: CheckpointCall, tensor: Tensor) -> None:
        """Compare a saved tensor."""
        if not region.is_reentrant:
            self._see(region, tensor)

    def _see(self, region: CheckpointCall, tensor: Tensor) -> None:
        # Selective checkpointing counts each operation, and must not see those of a comparison.
        with _disable_current_modes():
            self._match(region, tensor)

    def _match(self, region: CheckpointCall, tensor: Tensor) -> None:
        first = self._first.setdefault(region, [])
        if not region.is_again:
            first.append(self._kept(tensor))
            return
        index = self._next[region]
        self._next[region] = index + 1
        if index < len(first) and (before := first[index]) is not None:
            self._compare(before, tensor.detach())

    def _compare(self, before: Tensor, now: Tensor) -> None:
        self._compared += 1
        if not close(before, now):
            self._different += 1
            self._shown = self._shown or f"{str(now.dtype).removeprefix('torch.')}{list(now.shape)}"

    def _kept(self, tensor: Tensor) -> Tensor | None:
        """Return a copy of a tensor to compare, or None if it is not compared."""
        try:
            # Parameters do not change before the backward pass is over, running statistics are saved but not
            # used, and a single integer may be a seed, which is a different one each time.
            if (
                tensor.untyped_storage().data_ptr() in self._known
                or tensor.dtype in _OPAQUE
                or (tensor.numel() < 2 and not tensor.is_floating_point())
            ):
                return None
            return tensor.detach().clone()
        except (NotImplementedError, RuntimeError):
            return None
