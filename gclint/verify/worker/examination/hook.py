"""Failures that occur when the output of the embeddings is made to require grad."""

from __future__ import annotations

import os

import torch

from gclint.verify.worker.cause import Cause
from gclint.verify.worker.examination.fault import Fault
from gclint.verify.worker.examination.run import Run
from gclint.verify.worker.examination.words import described
from gclint.verify.worker.protocol import Failure, Place

_HOOK = "enable_input_require_grads()"
_LEAF = "leaf Variable that requires grad"
_NOT_A_TENSOR = "has no attribute 'requires_grad_'"
_TORCH = os.path.dirname(torch.__file__) + os.sep  # noqa: PTH120 (as frames have it)


def is_leaf_changed(fault: Fault) -> bool:
    """Return whether a model changed a leaf that requires grad in place."""
    return _LEAF in fault.message


def is_hook_failed(fault: Fault) -> bool:
    """Return whether the hooked module returns something that cannot require grad."""
    return _NOT_A_TENSOR in fault.message


def changed_at(fault: Fault) -> tuple[Place, ...]:
    """Return the line of the model that changes something in place."""
    frame = next((each for each in fault.frames if not each.path.startswith(_TORCH)), None)
    return () if frame is None else (Place(frame.path, frame.line, frame.line),)


def leaf_explanation(*, frozen: bool) -> str:
    """Return why an in-place change fails, and what to do about it."""
    when = "which checkpointing needs with a frozen base, " if frozen else ""
    return (
        f"`{_HOOK}`, {when}makes the output of the embeddings require grad, and the model changes that "
        "output in place. Clone it first."
    )


HOOK_EXPLANATION = (
    f"`{_HOOK}` makes the output of the module that `get_input_embeddings()` returns require grad, so this "
    "output must be a single tensor. Return a module whose output is one."
)


def failure_of_hook(check: str, run: Run, fault: Fault) -> Failure:
    """Return the failure of a plain run that occurs only if the output of the embeddings requires grad.

    Args:
        check: the name of the check.
        run: the run.
        fault: what it ended with.
    """
    is_leaf = is_leaf_changed(fault)
    return Failure(
        check,
        "plain",
        run.conditions.scenario.name,
        f"with a frozen base, {run.stage} raises {described(fault)} as soon as {_HOOK} is called",
        places=changed_at(fault) if is_leaf else (),
        cause=Cause.LEAF if is_leaf else Cause.HOOK,
        explanation=leaf_explanation(frozen=True) if is_leaf else HOOK_EXPLANATION,
    )
