"""What a run showed: failures of one cause each, which say what to do, and what else results tell.

That is a verdict on all that it showed, a fingerprint of what it computed, and a recipe to repeat it.
"""

from __future__ import annotations

import copy
import hashlib
import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from inspect import Parameter, signature
from typing import Any

import torch
from torch import Tensor

from gclint.verify.worker.examination.comparison import Comparison, FailedCheck
from gclint.verify.worker.examination.explaining import passing, recomputing, switching
from gclint.verify.worker.examination.explaining.explanation import Diagnosis, places
from gclint.verify.worker.examination.model_under_test import holders, is_computed, probabilities
from gclint.verify.worker.examination.phrases import capitalised, line
from gclint.verify.worker.examination.run import Run
from gclint.verify.worker.protocol import Failure, Fingerprint, Observation, Recipe, Verdict
from gclint.verify.worker.tiny_model import TinyModel
from gclint.verify.worker.vocabulary import USE_CACHE

_POSSIBLE_CAUSES = (
    *switching.SWITCHES,
    *passing.CACHES,
    *passing.RECORDED,
    *passing.MESSAGES,
    *recomputing.CLOSURES,
    *switching.EMBEDDINGS,
    *recomputing.DETACHED,
    *passing.LOST,
    *passing.DICTIONARIES,
    *recomputing.RECOMPUTED,
    *recomputing.FORWARD,
    *passing.UNSEEN,
    *switching.STATISTICS,
    *switching.NESTED,
    *switching.NOTHING,
    *recomputing.LEFT_BEHIND,
    *switching.STATE,
    *recomputing.UNKNOWN,
)
"""The known causes; the first one that is found explains all failed checks that it may cause."""
_VECTORS = 4
"""The number of fixed vectors that a tensor is multiplied with: together they miss hardly any difference."""
_BEGINNING = 12
_FEW = 64
"""The most numbers of a tensor that are written out; larger tensors are random."""


def diagnose(comparison: Comparison, failed_checks: Iterable[FailedCheck]) -> list[Failure]:
    """Return the failures that the failed checks, the gravest first, amount to."""
    return [
        _failure(comparison, group, explanation)
        for group, explanation in explained(comparison, failed_checks)
    ]


def explained(
    comparison: Comparison, failed_checks: Iterable[FailedCheck]
) -> list[tuple[list[FailedCheck], Diagnosis]]:
    """Return the failed checks in groups of one cause each, with what it is."""
    left = list(failed_checks)
    found = []
    for possible in _POSSIBLE_CAUSES:
        group = [each for each in left if each.check in possible.explains]
        explanation = possible.find(comparison, group) if group else None
        if explanation is not None:
            left = [each for each in left if each not in group]
            found.append((group, explanation))
    return found + [([each], Diagnosis(each.cause)) for each in left]


def _failure(comparison: Comparison, failed_checks: Sequence[FailedCheck], explanation: Diagnosis) -> Failure:
    first, *others = failed_checks
    blocks = {name for each in failed_checks for name in each.blocks}
    text = capitalised(explanation.text)
    return Failure(
        first.check,
        comparison.run.mode,
        comparison.run.conditions.scenario.name,
        "; ".join([first.message, *(each.message for each in others)]),
        tuple(dict.fromkeys(name for each in failed_checks for name in each.parameters)),
        explanation.places
        or tuple(dict.fromkeys(place for each in failed_checks for place in each.places))
        or places(call for call in comparison.run.calls if call.block in blocks),
        explanation.cause,
        " ".join(each for each in (text, _hard_coded(comparison)) if each),
        explanation.difference,
        blocks=tuple(sorted(blocks)),
        step=0 if comparison.run.error is None else len(comparison.run.steps),
    )


def _hard_coded(comparison: Comparison) -> str:
    """Return a sentence about checkpoints that ignore the requested mode; empty if there are none."""
    others = [
        each
        for each in comparison.checkpoints
        if each.place is not None and each.is_reentrant and comparison.run.mode == "non-reentrant"
    ]
    if not others:
        return ""
    lines = dict.fromkeys(line(each.place) for each in others if each.place is not None)
    return (
        f"The checkpoint at {' and '.join(lines)} is reentrant although `use_reentrant=False` was "
        "requested: the call sets `use_reentrant=True`, or does not set it. Pass on the arguments of "
        "`gradient_checkpointing_enable`, or call `self._gradient_checkpointing_func`."
    )


def verdict(comparison: Comparison, failed_checks: Iterable[FailedCheck]) -> Verdict:
    """Return everything that a run showed."""
    run = comparison.run
    ran = [block.name for block in comparison.blocks if run.forward[block.name]]
    saved = run.steps[0].saved_bytes if run.steps else None
    return Verdict(
        run.conditions.scenario.name,
        run.mode,
        tuple(_observations(comparison, list(failed_checks))),
        comparison.compared + len(comparison.vanishing),
        (
            *(name for name in comparison.blurred if name not in comparison.vanishing),
            *comparison.changing,
            *comparison.not_finite,
        ),
        tuple(name for name in ran if name in comparison.recomputed) if run.error is None else (),
        None if saved is None else saved + run.steps[0].held_bytes,
    )


def _observations(comparison: Comparison, failed_checks: list[FailedCheck]) -> Iterator[Observation]:
    for group, explanation in explained(comparison, failed_checks):
        for failed_check in group:
            about = failed_check.about or failed_check.parameters or failed_check.blocks
            yield Observation(
                failed_check.kind or failed_check.check,
                failed_check.message,
                about,
                explanation.cause,
                explanation.text,
            )
    # The check of the later steps applies only if the first one is right.
    if failed_checks and comparison.later and not any(each.check == "second step" for each in failed_checks):
        yield Observation("second step", "a later step has further differences", comparison.later)


def fingerprint(run: Run, again: Run | None = None, name: str | None = None) -> Fingerprint:
    """Return what the steps of a run computed, under the name of its scenario or another one.

    If a GPU computes other bits each time, values are compared, and it takes a second run.
    """
    whole = hashlib.sha256()
    parts, sketches = {}, {}
    repetitions = dict(_computed(again)) if again is not None else {}
    for key, tensor in _computed(run):
        digest = hashlib.sha256(f"{key} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.cpu().contiguous().flatten().view(torch.uint8).numpy().tobytes())
        whole.update(digest.digest())
        parts[key] = digest.hexdigest()[:_BEGINNING]
        if again is not None:
            sketches[key] = _sketch(key, tensor, repetitions.get(key))
    scenario = name or run.conditions.scenario.name
    return Fingerprint(scenario, whole.hexdigest(), run.steps[0].loss, parts, sketches)


def _computed(run: Run) -> Iterator[tuple[str, Tensor]]:
    """Yield all tensors that a run computed, and what it left behind."""
    for number, step in enumerate(run.steps, start=1):
        later = f" of step {number}" if number > 1 else ""
        yield f"the loss{later}", torch.tensor(step.loss, dtype=torch.float64)
        for name, output in sorted(step.outputs.items()):
            yield f"the output {name}{later}", _dense(output)
        for name, gradient in sorted(step.gradients.items()):
            if gradient is not None:
                yield f"the gradient of {name}{later}", _dense(gradient)
    gradients = run.steps[0].gradients if run.steps else {}
    for name, value in sorted(run.values.items()):
        # Only an optimizer would change parameters, and there is none.
        if name not in gradients:
            yield f"the value of {name}", _dense(value)


def _dense(tensor: Tensor) -> Tensor:
    return (tensor.to_dense() if tensor.is_sparse else tensor).detach()


def _sketch(name: str, tensor: Tensor, repetition: Tensor | None) -> list[float]:
    """Return the norm, the distance to the repetition, the count of non-finite values, and the products."""
    values = _real(tensor)
    products = _products(name, values)
    off = 0.0
    if repetition is not None and repetition.shape == tensor.shape:
        others = _products(name, _real(repetition))
        off = (sum((one - other) ** 2 for one, other in zip(products, others, strict=True)) / _VECTORS) ** 0.5
    return [float(_finite(values).norm()), off, float((~values.isfinite()).sum()), *products]


def _real(tensor: Tensor) -> Tensor:
    return (torch.view_as_real(tensor) if tensor.is_complex() else tensor).double().flatten()


def _finite(values: Tensor) -> Tensor:
    return torch.where(values.isfinite(), values, torch.zeros_like(values))


def _products(name: str, values: Tensor) -> list[float]:
    generator = torch.Generator().manual_seed(zlib.crc32(name.encode()))
    vectors = torch.randn((_VECTORS, values.numel()), generator=generator, dtype=torch.float64)
    return [float(each) for each in vectors.to(values.device) @ _finite(values)]


def recipe(tiny_model: TinyModel) -> Recipe:
    """Return what it takes to reproduce a failure."""
    kind, model = type(tiny_model.config), tiny_model.build()
    needed, parts = signature(model.forward).parameters, holders(model)
    return Recipe(
        f"{kind.__module__}.{kind.__qualname__}",
        _fields(tiny_model.config),
        _inputs(tiny_model.inputs(), needed),
        _inputs(tiny_model.other_inputs(), needed) if tiny_model.other_inputs else {},
        tiny_model.keeps_cache,
        tiny_model.scenario,
        USE_CACHE in needed or any(hasattr(part, USE_CACHE) for part in parts),
        any(probability for _, _, probability in probabilities(parts)),
        any(getattr(part, "gradient_checkpointing", False) for part in parts),
    )


def _inputs(values: dict[str, Any], parameters: Mapping[str, Parameter]) -> dict[str, str]:
    """Return expressions of inputs, but for those that are None by default."""
    return {
        name: _input(name, value)
        for name, value in values.items()
        if value is not None or name not in parameters or parameters[name].default is not None
    }


def _input(name: str, value: Any) -> str:
    made = expression(value)
    # Its graph can be used only once, as if another network had computed it.
    return f"{made}.requires_grad_() * torch.ones(())" if is_computed(name, value) else made


def _fields(config: Any) -> dict[str, Any]:
    """Return the fields to make ``config`` from: as few as make the same one as all of them."""
    fields = _written(config)

    def made() -> dict[str, Any] | None:
        try:
            return _written(type(config)(**copy.deepcopy(fields)))
        except Exception:  # A configuration may reject a part of its fields.
            return None

    wanted = made()
    if wanted is not None:
        _reduce(fields, lambda: made() == wanted)
    return fields


def _reduce(fields: dict[str, Any], is_enough: Callable[[], bool]) -> None:
    """Remove the fields without which the others are enough, and the same within nested ones."""
    for name in list(fields):
        value = fields.pop(name)
        if is_enough():
            continue
        fields[name] = value
        if isinstance(value, dict):
            _reduce(value, is_enough)


def _written(config: Any) -> dict[str, Any]:
    """Return a configuration as it is written to a file, without what says which release wrote it."""
    fields: dict[str, Any] = json.loads(config.to_json_string(use_diff=False))
    fields.pop("transformers_version", None)
    return fields


def expression(value: Any) -> str:
    """Return Python that makes ``value``, or a similar value for large floating-point tensors."""
    if isinstance(value, Tensor):
        return _tensor(value)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key!r}: {expression(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list | tuple):
        inner = ", ".join(expression(each) for each in value)
        return f"[{inner}]" if isinstance(value, list) else f"({inner}{',' if len(value) == 1 else ''})"
    return repr(value)


def _tensor(value: Tensor) -> str:
    shape = tuple(value.shape)
    usual = {True: torch.float32, False: torch.int64}[value.is_floating_point()]
    kind = "" if value.dtype in (usual, torch.bool) else f", dtype={value.dtype}"
    if value.numel() == 0:
        return f"torch.zeros({shape}{kind})"
    if value.is_floating_point() and value.numel() > _FEW:
        return f"torch.randn({shape}{kind})"
    if bool((value == value.flatten()[0]).all()):
        return f"torch.full({shape}, {value.flatten()[0].item()!r}{kind})"
    return f"torch.tensor({value.tolist()!r}{kind})"
