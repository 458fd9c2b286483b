"""Examines a model that the user has built, in the user's process.

All of it happens in forks, so that the model and the process do not change.
"""

from __future__ import annotations

import copy
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from inspect import Parameter, signature
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PretrainedConfig

from gclint.verify.worker.child import ForkDenied, Send, Task, run
from gclint.verify.worker.ending import End
from gclint.verify.worker.examination.block_calls import file_of
from gclint.verify.worker.examination.examine import examine
from gclint.verify.worker.examination.model_under_test import disable_checkpointing
from gclint.verify.worker.practices import Practice
from gclint.verify.worker.protocol import ClassResult, Source
from gclint.verify.worker.tiny_model import NotSynthesisable, TinyModel
from gclint.verify.worker.training.training import trained
from gclint.verify.worker.watch import ClassRecord, reporting

_WRAPPERS = ("module", "_orig_mod")
"""The attributes in which training wrappers keep the model."""
_CANNOT_FORK = "a GPU has been used in this process"


class NotExaminable(Exception):
    """A model or a batch that cannot be examined; the message says why, and what to do."""


class NotForkable(NotExaminable):
    """What cannot be examined in a copy of this process."""


@dataclass(frozen=True)
class Wanted:
    """What to run."""

    scenarios: frozenset[str] | None = None
    """The names of the scenarios to run in addition to the first; None for all that apply."""
    practices: tuple[Practice, ...] = ()
    """The practices to run in addition to the scenarios."""


def examine_live(model: Any, batch: Any, wanted: Wanted, seconds: float) -> ClassResult:
    """Run a model, which is not changed, with a batch in training scenarios, and judge what happens.

    A batch has keyword arguments of ``forward``; two of them, in a list, alternate. The time limit is that of
    the scenarios, and each practice adds as much.

    Raises:
        NotExaminable: this cannot be done.
    """
    for problem in _problems(model):
        raise NotExaminable(problem)
    batches = _batches(model, batch)
    kind = type(own_model(model))
    # Interactive code is not in a file.
    source = Source(file_of(kind) or f"<{kind.__module__}>", kind.__module__)
    function = partial(_examine_in_fork, source, model, batches, wanted)
    result = forked_result(source, type(model).__name__, function, seconds * (1 + len(wanted.practices)))
    # How to build the model is unknown; only its inputs are known.
    return replace(
        result, recipes=(), notes=(*_notes(model, batches[0], wanted.scenarios, result), *result.notes)
    )


def forked_result(
    source: Source, name: str, function: Callable[[Send, int], None], seconds: float
) -> ClassResult:
    """Return what is known of a model after a function has examined it in a fork of this process.

    Raises:
        NotForkable: this process cannot be forked.
    """
    record = ClassRecord(source.path, name)
    end = End("killed")
    try:
        with _restored_signals():
            for _, event in run([Task(function, seconds)], 1):
                if isinstance(event, End):
                    end = event
                else:
                    record.take(event)
    except ForkDenied as error:
        raise NotForkable(f"this process may not be copied: {error}") from error
    if _CANNOT_FORK in end.message:
        raise NotForkable(end.message)
    return record.result(end)


def _examine_in_fork(
    source: Source, model: Any, batches: Sequence[Mapping[str, Any]], wanted: Wanted, send: Send, _slot: int
) -> None:
    """Examine the model; called in a fork."""
    name = type(model).__name__
    watch = reporting(source.path, name, send)
    configure_process()
    separate(model)

    def build() -> Any:
        _disable(model)
        return model

    makers = [partial(copied, batch) for batch in batches]
    tiny_model = TinyModel(
        "default",
        model.config,
        build,
        makers[0],
        other_inputs=makers[1] if makers[1:] else None,
        wanted=wanted.scenarios,
        least_dropout=0.0,
    )
    with torch.inference_mode(False), torch.enable_grad():
        try:
            result = examine(source, type(model), [tiny_model], "cpu", watch=watch)
        except NotSynthesisable as error:
            result = ClassResult(source.path, name, "not run", str(error), error.category)
        if wanted.practices and result.outcome != "not run":
            result = trained(result, tiny_model, "cpu", wanted.practices, watch)
    watch.known(result)


def configure_process() -> None:
    """Configure this process, a fork, to compute as the worker does."""
    warnings.simplefilter("ignore")
    # The threads of a pool do not survive a fork, and waiting for them would never end.
    torch.set_num_threads(1)
    torch.set_num_threads = lambda _number: None
    torch.set_default_device(None)
    # Run the code as it is written, not compiled.
    os.environ["TORCHDYNAMO_DISABLE"] = "1"
    if "torch._dynamo" in sys.modules:
        sys.modules["torch._dynamo"].config.disable = True
    try:
        torch.ones((), requires_grad=True).backward()
    except RuntimeError as error:
        # Autograd has started its threads for GPUs, which it does even if only the CPU has been used.
        raise RuntimeError(f"{_CANNOT_FORK}, so it cannot be forked") from error


def separate(model: nn.Module) -> None:
    """Reset gradients, which would hide missing ones, and copy what processes share."""
    for tensor in (*model.parameters(), *model.buffers()):
        tensor.grad = None
        with suppress(RuntimeError, NotImplementedError):  # A tensor without a single storage.
            if tensor.is_shared():
                tensor.data = tensor.detach().clone()


def _disable(model: Any) -> None:
    """Disable checkpointing for the plain runs; raise NotSynthesisable if some of it stays enabled."""
    if _enabled(model):
        disable_checkpointing(model)
    left = _enabled(model)
    if left:
        raise NotSynthesisable(
            "checkpointing stays on",
            "`gradient_checkpointing_disable()` leaves checkpointing enabled in "
            f"{left[0] or type(model).__name__}, so there is nothing to compare with",
        )


def _enabled(model: nn.Module) -> list[str]:
    return [name for name, each in model.named_modules() if getattr(each, "gradient_checkpointing", False)]


def _problems(model: Any) -> Iterator[str]:
    """Yield why a model cannot be examined; each reason can be told only if there is none before."""
    kind = type(model).__name__
    if not isinstance(model, nn.Module):
        given = f"the class {model.__name__}; build it first" if isinstance(model, type) else f"a {kind}"
        yield f"the model must be a torch module, not {given}"
    inside = next((each for each in _WRAPPERS if _has_config(model._modules.get(each))), None)
    if inside is not None:
        yield f"{kind} wraps the model; pass the model itself, which is its `{inside}`"
    if not (_has_config(model) and callable(getattr(model, "gradient_checkpointing_enable", None))):
        yield f"{kind} is not a transformers model: it needs a `config` and `gradient_checkpointing_enable()`"
    if not getattr(model, "supports_gradient_checkpointing", False):
        yield f"`supports_gradient_checkpointing` of {kind} is not True, so checkpointing cannot be enabled"
    if getattr(model.config, "gradient_checkpointing", False) is True:
        yield (
            "`config.gradient_checkpointing` is True, so there is no run without checkpointing to compare "
            "with; build the model with False"
        )
    if any(type(each).__name__ == "CheckpointWrapper" for each in model.modules()):
        yield "checkpoint_wrapper has been applied to the model and cannot be removed; build one without it"
    if not any(each.requires_grad for each in model.parameters()):
        yield f"no parameter of {kind} requires grad, so there is nothing to train"
    devices = {each.device.type for each in (*model.parameters(), *model.buffers())}
    if devices != {"cpu"}:
        yield (
            f"the model must be on the CPU, but it is on {', '.join(sorted(devices))}: gclint runs it in "
            "forks of this process, and a process that uses a GPU cannot be forked. Build a small model on "
            "the CPU, in a process that has not used the GPU (such as one started with "
            "CUDA_VISIBLE_DEVICES= in its environment)"
        )


def _batches(model: Any, batch: Any) -> list[dict[str, Any]]:
    """Return the keyword arguments of each batch; raise NotExaminable if it is something else."""
    batches = (
        batch if isinstance(batch, list) and all(isinstance(each, Mapping) for each in batch) else [batch]
    )
    if len(batches) not in (1, 2):
        raise NotExaminable(f"at most two batches can alternate, but there are {len(batches)}")
    return [_arguments(model, each) for each in batches]


def _arguments(model: Any, batch: Any) -> dict[str, Any]:
    """Return the keyword arguments in a batch; raise NotExaminable if it contains something else."""
    forward = "keyword arguments of the model's forward(), such as {'input_ids': ..., 'labels': ...}"
    if not isinstance(batch, Mapping):
        raise NotExaminable(f"the batch must be a dictionary of {forward}, not a {type(batch).__name__}")
    inputs = dict(batch)
    if not inputs:
        raise NotExaminable(f"the batch is empty; it must contain {forward}")
    taken = signature(own_model(model).forward).parameters
    takes_all = any(each.kind is Parameter.VAR_KEYWORD for each in taken.values())
    unknown = [name for name in inputs if not (isinstance(name, str) and (takes_all or name in taken))]
    if unknown:
        raise NotExaminable(
            f"{type(own_model(model)).__name__}.forward() has no argument {unknown[0]!r}, which the batch "
            f"has; it takes {', '.join(taken)}"
        )
    missing = [
        name
        for name, each in taken.items()
        if each.default is Parameter.empty
        and each.kind in (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
        and name not in inputs
    ]
    if missing:
        raise NotExaminable(
            f"the batch lacks {missing[0]!r}, which {type(own_model(model)).__name__}.forward() needs"
        )
    try:
        return {name: copied(value) for name, value in inputs.items()}
    except Exception as error:  # Copying may raise anything.
        raise NotExaminable(f"the batch cannot be copied: {type(error).__name__}: {error}") from error


def copied(value: Any) -> Any:
    """Return a value with detached copies of its tensors on the CPU."""
    if isinstance(value, Tensor):
        return value.detach().to("cpu", copy=True)
    if type(value) in (list, tuple):
        return type(value)(copied(each) for each in value)
    if type(value) is dict:
        return {name: copied(each) for name, each in value.items()}
    return copy.deepcopy(value)


def _notes(
    model: Any, inputs: Mapping[str, Any], wanted: Collection[str] | None, result: ClassResult
) -> Iterator[str]:
    """Yield remarks on what was run."""
    if _enabled(model):
        yield "checkpointing was enabled; both modes were examined"
    if "labels" in signature(own_model(model).forward).parameters and "labels" not in inputs:
        yield "the batch has no labels, so the model's own loss was not computed"
    for name in sorted(set(wanted or ()) - set(result.scenarios)):
        if result.outcome != "not run" and not any(each.startswith(f"{name}, ") for each in result.notes):
            yield f"the scenario {name!r} does not apply to this model"


def own_model(model: Any) -> Any:
    """Return the model that an adapter library has wrapped."""
    inside = getattr(model, "get_base_model", None)
    return inside() if callable(inside) else model


def _has_config(model: Any) -> bool:
    return isinstance(getattr(model, "config", None), PretrainedConfig)


@contextmanager
def _restored_signals() -> Iterator[None]:
    """Restore the signal handlers that waiting for processes changes."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGCHLD)
    try:
        yield
    finally:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL if before is None else before)
