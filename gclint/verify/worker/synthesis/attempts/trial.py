"""Builds a model, runs one step, and finds out which of its parts took part."""

from __future__ import annotations

import copy
import inspect
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from gclint.verify.worker import randomness
from gclint.verify.worker.examination.tensors import all_tensors
from gclint.verify.worker.synthesis.configurations.tree import along, find
from gclint.verify.worker.tiny_model import NotSynthesisable

LARGEST = 20_000_000
"""The parameters of the largest model that is built."""
_SEED = 20
_DIGITS = re.compile(r"\d+")
_SHARE = 0.05
"""The share of the parameters below which an unused part, such as a pooler, does not matter."""
_SMALL = 0.05
"""The standard deviation of the random numbers that replace zeros and uninitialised memory."""


def constructor_arguments(model_class: Any, config: Any) -> dict[str, Any]:
    """Return values for the required parameters of ``model_class`` other than its configuration."""
    parameters = list(inspect.signature(model_class.__init__).parameters.values())[2:]
    needed = [
        each for each in parameters if each.default is each.empty and each.kind is each.POSITIONAL_OR_KEYWORD
    ]
    return {each.name: _value(each, config) for each in needed}


def _value(parameter: inspect.Parameter, config: Any) -> Any:
    if "grid" in parameter.name or "resolution" in parameter.name:
        side = along(find(config, "image_size", default=32), 0)
        patch = along(find(config, "patch_size", default=8), 0)
        return (side // patch, side // patch)
    found = find(config, parameter.name)
    # The number of the first layer, unless the configuration has a field of that name.
    return 0 if found is None else found


def seed() -> None:
    """Seed every random generator with its first state."""
    randomness.seed(_SEED)


def build(model_class: Any, config: Any) -> Any:
    """Return a new model in training mode, the same one each time.

    What a model leaves uninitialised, or initialises with zeros, gets small random numbers: a gate that is
    zero hides everything behind it.
    """
    with torch.random.fork_rng(devices=[]), _marked_memory():
        seed()
        model = create(model_class, config)
        _perturb(model)
    for module in model.modules():
        if isinstance(getattr(module, "layerdrop", None), float):
            module.layerdrop = 0.0
    return model.train()


def create(model_class: Any, config: Any) -> Any:
    """Return a new ``model_class`` made of a copy of ``config``."""
    own = copy.deepcopy(config)
    return model_class(own, **constructor_arguments(model_class, own))


def size(model_class: Any, config: Any) -> int:
    """Return the number of parameters, without making them.

    Raises:
        NotSynthesisable: More than :data:`LARGEST`.
        ImportError: A library is not installed.
    """
    try:
        with torch.device("meta"):
            model = create(model_class, config)
    except ImportError:
        # The build would fail as well, but only after a long time.
        raise
    except Exception:
        # Some constructors read the values of tensors, and any other error occurs in the build again.
        return 0
    count: int = sum(parameter.numel() for parameter in model.parameters())
    if count > LARGEST:
        raise NotSynthesisable("too large", f"{count:,} parameters")
    return count


def step(model: Any, inputs: dict[str, Any]) -> tuple[str, ...]:
    """Run forward and backward once; return the names of sizeable parts of the model that did not run.

    Raise NotSynthesisable if no output requires grad, or no parameter receives a gradient.
    """
    seed()
    with _running() as ran:
        outputs = [
            each for each in all_tensors(model(**inputs)) if each.is_floating_point() and each.requires_grad
        ]
    if not outputs:
        raise NotSynthesisable("no gradient", "no output requires grad")
    loss = sum((each.float() * torch.randn(each.shape)).sum() for each in outputs)
    loss.backward()
    if not any(parameter.grad is not None for parameter in model.parameters()):
        raise NotSynthesisable("no gradient", "no parameter receives a gradient")
    return _idle(model, ran)


def has_finite_gradients(model: Any) -> bool:
    """Return whether all gradients are finite numbers."""
    gradients = (each.grad for each in model.parameters())
    return all(bool(each.to_dense().isfinite().all()) for each in gradients if each is not None)


def shapes(value: Any) -> list[tuple[int, ...]]:
    """Return the shapes of the tensors in ``value``."""
    return [tuple(each.shape) for each in all_tensors(value)]


@contextmanager
def _running() -> Iterator[set[nn.Module]]:
    """Collect the modules that run."""
    ran: set[nn.Module] = set()
    handle = nn.modules.module.register_module_forward_pre_hook(lambda module, _inputs: ran.add(module))
    try:
        yield ran
    finally:
        handle.remove()


def _idle(model: Any, ran: set[nn.Module]) -> tuple[str, ...]:
    """Return the names of sizeable parts that neither ran nor received a gradient."""
    found: dict[str, nn.Module] = {}
    _collect(model, "", ran, found, 3)
    total = sum(each.numel() for each in model.parameters())
    # The same part of each layer counts as one.
    sizes: Counter[str] = Counter()
    for name, part in found.items():
        sizes[_DIGITS.sub("", name)] += sum(each.numel() for each in part.parameters())
    return tuple(name for name in found if sizes[_DIGITS.sub("", name)] >= _SHARE * total)


def _collect(
    module: nn.Module, prefix: str, ran: set[nn.Module], found: dict[str, nn.Module], depth: int
) -> None:
    for name, child in module.named_children():
        trained = [each for each in child.parameters() if each.is_floating_point() and each.requires_grad]
        if not trained:
            continue
        if all(each.grad is None for each in trained) and ran.isdisjoint(child.modules()):
            found[prefix + name] = child
        elif depth and any(each.grad is None for each in trained):
            _collect(child, f"{prefix}{name}.", ran, found, depth - 1)


def _perturb(model: Any) -> None:
    with torch.no_grad():
        for parameter in model.parameters():
            if not parameter.is_floating_point():
                continue
            undefined = ~parameter.isfinite()
            if undefined.any():
                parameter[undefined] = torch.randn_like(parameter[undefined]) * _SMALL
            if parameter.numel() and not parameter.any():
                parameter.copy_(torch.randn_like(parameter) * _SMALL)


@contextmanager
def _marked_memory() -> Iterator[None]:
    """Fill uninitialised memory with NaN, which distinguishes it from weights."""
    before = (
        torch.are_deterministic_algorithms_enabled(),
        torch.is_deterministic_algorithms_warn_only_enabled(),
    )
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before[0], warn_only=before[1])
