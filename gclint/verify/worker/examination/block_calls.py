"""Traces the calls of blocks: the place of each in the source, and its arguments."""

from __future__ import annotations

import inspect
import linecache
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from itertools import count, islice
from types import CodeType, FrameType
from typing import Any

import torch
from torch import Tensor, nn

from gclint.verify.worker.examination.blocks import is_layer
from gclint.verify.worker.examination.observers import Phases
from gclint.verify.worker.examination.tensors import (
    is_cache,
    is_cache_name,
    nodes_behind,
    requires_grad,
    tensors_in,
)
from gclint.verify.worker.protocol import SourcePlace
from gclint.verify.worker.vocabulary import USE_CACHE

_NOT_OF_MODELS = (
    "torch.",
    "transformers.modeling_layers",
    "transformers.utils.",
    "functools",
    "contextlib",
    "concurrent.",
    "threading",
    __name__.rpartition(".")[0],
)
_INSPECTION = f"{__name__.rpartition('.')[0]}.inspection."
_CHECKPOINTS = ("torch.utils.checkpoint", f"{_INSPECTION}checkpoints")
"""The modules that call the function of a checkpoint."""
OWN_MODULES = "gclint.verify.worker."
_COUNTER = count()


@dataclass(frozen=True)
class BlockCall:
    """One call of a block in a forward pass."""

    block: str
    """The name of the block in the model."""
    place: SourcePlace
    keyword: Mapping[str, int]
    """The keyword arguments that require grad, each with the identity of its tensor."""
    contained: Mapping[str, tuple[int, ...]]
    """The containers among the arguments with such tensors."""
    positional_caches: tuple[str, ...]
    caches: Mapping[int, str]
    """The caches that were passed in any way, by identity, with their classes."""
    dictionaries: Mapping[str, int]
    """The identities of the dictionaries that were passed, by parameter."""
    has_gradient: bool
    """Whether any tensor that was passed requires grad."""
    graphs: Mapping[str, frozenset[int]] = field(default_factory=dict)
    """The graph nodes behind each keyword argument or container, numbered within the run."""


@dataclass
class CallRecorder:
    """Records, while it is entered, the calls of blocks."""

    names: Mapping[nn.Module, str]
    """The blocks, with their names in the model."""
    phases: Phases
    calls: list[BlockCall] = field(default_factory=list)
    hold: Callable[[object], None] = lambda _value: None
    """Called with the keyword arguments of checkpoints."""
    records_gradients: bool = True
    """Whether gradients were recorded when the current block was called."""
    caches: dict[int, Any] = field(default_factory=dict)
    """The caches that calls were passed, by their identities."""
    dictionaries: dict[int, dict[Any, Any]] = field(default_factory=dict)
    """The dictionaries that calls were passed, by their identities."""
    _kept: list[Any] = field(default_factory=list)
    # All arguments: while they are alive, their identities stay unique.
    _nodes: dict[Any, int] = field(default_factory=dict)
    _running: set[nn.Module] = field(default_factory=set)
    _originals: list[tuple[type, Any]] = field(default_factory=list)

    def __enter__(self) -> CallRecorder:
        for kind in dict.fromkeys(type(module) for module in self.names):
            self._originals.append((kind, vars(kind).get("__call__")))
            kind.__call__ = self._recording(kind.__call__)
        return self

    def __exit__(self, *_: object) -> None:
        for owner, original in self._originals:
            if original is None:
                del owner.__call__
            else:
                owner.__call__ = original  # type: ignore[method-assign]
        self._originals.clear()

    def _recording(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def recorded(module: Any, *args: Any, **kwargs: Any) -> Any:
            # A class and its base may both be patched, and calls in the backward pass have no place.
            if module not in self.names or module in self._running or self.phases.backward:
                return original(module, *args, **kwargs)
            self._running.add(module)
            self._record(module, args, kwargs)
            outside, self.records_gradients = self.records_gradients, torch.is_grad_enabled()
            try:
                result = original(module, *args, **kwargs)
            finally:
                self._running.discard(module)
                self.records_gradients = outside
            return result

        return recorded

    def _record(self, module: nn.Module, args: Any, kwargs: Any) -> None:
        place = call_place()
        if place is None:
            return
        self._kept.append((args, kwargs))
        is_enabled = getattr(module, "gradient_checkpointing", False) and module.training
        if len(self._running) == 1 and is_layer(module) and is_enabled:
            self.hold(kwargs)
        named = bound(type(module), args, kwargs)
        contained = {name: found for name, each in named if (found := tuple(_inner(each)))}
        by_keyword = {name: id(each) for name, each in kwargs.items() if requires_grad(each)}
        hidden = {**by_keyword, **contained}
        caches = [each for name, each in named if each is not True and _is_cache_argument(name, each)]
        dictionaries = {name: each for name, each in named if type(each) is dict}
        self.caches |= {id(each): each for each in caches}
        self.dictionaries |= {id(each): each for each in dictionaries.values()}
        call = BlockCall(
            self.names[module],
            place,
            by_keyword,
            contained,
            tuple(name for name, each in _named(type(module), args) if _is_cache_argument(name, each)),
            {id(each): type(each).__name__ for each in caches},
            {name: id(each) for name, each in dictionaries.items()},
            any(requires_grad(each) for _, each in tensors_in((args, kwargs))),
            {name: frozenset(self._numbers(each)) for name, each in named if name in hidden},
        )
        self.calls.append(call)

    def _numbers(self, value: object) -> Iterator[int]:
        """Yield the numbers of the graph nodes that compute a value; each step has new ones."""
        for node in nodes_behind(value, self._nodes):
            yield self._nodes.setdefault(node, next(_COUNTER))


@cache
def definition(kind: type) -> SourcePlace:
    """Return where a class is defined, in the text that was imported."""
    module = inspect.getmodule(kind)
    path = file_of(kind)
    lines = _lines(module, path)
    codes = (
        [code for each in vars(kind).values() if (code := getattr(inspect.unwrap(each), "__code__", None))]
        if lines
        else []
    )
    last = min((code.co_firstlineno for code in codes if code.co_filename == path), default=len(lines))
    starts = [
        number
        for number, line in enumerate(lines[:last], start=1)
        if line.lstrip().startswith((f"class {kind.__name__}(", f"class {kind.__name__}:"))
    ]
    if not starts:
        return SourcePlace(path, 1, 1)
    start = starts[-1]
    return SourcePlace(path, start, start + len(inspect.getblock(lines[start - 1 :])) - 1)


def file_of(kind: type) -> str:
    """Return the path of the file that defines a class; empty for interactive code."""
    try:
        return inspect.getsourcefile(kind) or ""
    except (OSError, TypeError):
        return ""


def source_lines(path: str) -> list[str]:
    """Return the text of a file of the model, as it was imported."""
    module = next(
        (each for each in list(sys.modules.values()) if getattr(each, "__file__", None) == path), None
    )
    return _lines(module, path)


@cache
def _lines(module: Any, path: str) -> list[str]:
    source = None
    loader: Any = getattr(module, "__loader__", None)
    if hasattr(loader, "get_source"):
        # The text that was imported, which may differ from the file. A module that was not imported, such as
        # that of an interactive session, has none.
        with suppress(ImportError):
            source = loader.get_source(module.__name__)
    # A notebook registers its source in ``linecache``.
    return linecache.getlines(path) if source is None else source.splitlines(keepends=True)


def _named(kind: type, args: tuple[Any, ...]) -> list[tuple[str, Any]]:
    names = _positional_parameters(kind)
    return [
        (names[index] if index < len(names) else f"argument {index}", each) for index, each in enumerate(args)
    ]


@cache
def _positional_parameters(kind: Any) -> list[str]:
    parameters = list(inspect.signature(kind.forward).parameters.values())[1:]
    return [
        each.name for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)
    ]


def _is_cache_argument(name: str, value: Any) -> bool:
    if name == USE_CACHE:
        return value is True
    if value is None or isinstance(value, bool):
        return False
    return is_cache(value) or (is_cache_name(name) and any(True for _ in tensors_in((value,))))


def _inner(value: Any) -> Iterable[int]:
    """Yield the identities of the tensors inside a container that require grad."""
    if not isinstance(value, Tensor):
        yield from (id(each) for _, each in tensors_in(value) if requires_grad(each))


def model_frames() -> Iterator[SourcePlace]:
    """Yield the lines of the model that are being executed, the innermost first."""
    for frame in _frames():
        if _is_of_model(frame):
            yield SourcePlace(frame.f_code.co_filename, frame.f_lineno, frame.f_lineno)
        elif _module(frame).startswith(OWN_MODULES) and not _is_recording(frame):
            return


def is_asked_by_model() -> bool:
    """Return whether the caller of the calling function is a line of the model."""
    frame = next(islice(_frames(), 3, None), None)
    return frame is not None and _is_of_model(frame)


def innermost_place() -> SourcePlace | None:
    """Return the line of the model that is being executed."""
    frame = next(filter(_is_of_model, _frames()), None)
    return None if frame is None else SourcePlace(frame.f_code.co_filename, *_span(frame.f_code, frame)[:2])


def calling_place() -> SourcePlace | None:
    """Return the line of the model that calls, or None if torch does so as a part of calling a module."""
    for frame in _frames():
        if _is_of_model(frame):
            return SourcePlace(frame.f_code.co_filename, frame.f_lineno, frame.f_lineno)
        if frame.f_code.co_name == "_call_impl":
            break
    return None


def bound(kind: type, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Return the arguments of a call of a module, by the parameters of its ``forward``."""
    return [*_named(kind, args), *kwargs.items()]


def _is_of_model(frame: FrameType) -> bool:
    return not _is_not_of_model(frame) and not _module(frame).startswith(OWN_MODULES)


def _is_recording(frame: FrameType) -> bool:
    return _module(frame) == __name__ or _module(frame).startswith(_INSPECTION)


def call_place() -> SourcePlace | None:
    """Return the place of the call that is being recorded."""
    frames = [frame for frame in _frames() if not _is_not_of_model(frame)]
    for frame in frames:
        # The place of a local function that torch calls is the call that passed it to torch.
        local = frame.f_code.co_flags & inspect.CO_NESTED
        if not (local and frame.f_back is not None and _module(frame.f_back) in _CHECKPOINTS):
            return SourcePlace(frame.f_code.co_filename, *_span(frame.f_code, frame))
    return None


def _frames() -> Iterator[FrameType]:
    frame = inspect.currentframe()
    while frame is not None:
        yield frame
        frame = frame.f_back


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))


def _is_not_of_model(frame: FrameType) -> bool:
    return f"{_module(frame)}.".startswith(_NOT_OF_MODELS)


def _span(code: CodeType, frame: FrameType) -> tuple[int, int, tuple[int, ...]]:
    if hasattr(code, "co_positions") and frame.f_lasti >= 0:
        first, last, *columns = next(islice(code.co_positions(), frame.f_lasti // 2, None))
        if first is not None and last is not None:
            return first, last, () if None in columns else tuple(columns)
    # Python 3.10 knows only the first line.
    return frame.f_lineno, frame.f_lineno, ()
