"""Steps of training, in the interpreter of a release: needs nothing but torch and transformers."""

from __future__ import annotations

import random
import signal
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType, ModuleType
from typing import Any

import torch
from torch import Tensor, nn

SECONDS = 5.0
"""Of CPU time, for a step that takes some hundredths of one: more is a hang."""
_FLAGS = ("gradient_checkpointing", "use_checkpoint")
_COUNTED = "norm1"
"""The child that each block of a generated model, and nothing else, runs once."""


class Hang(Exception):
    """A step does not end."""


@dataclass
class Outcome:
    """What one step has shown."""

    error: str | None = None
    values: dict[str, Tensor] = field(default_factory=dict)
    """Loss and outputs."""
    cache: dict[str, Tensor] = field(default_factory=dict)
    """What is in the cache; empty after a step of training, since checkpointing rightly removes caches."""
    gradients: dict[str, Tensor | None] = field(default_factory=dict)
    state: dict[str, Any] = field(default_factory=dict)
    """Buffers, and what blocks have assigned to themselves."""
    runs: dict[str, int] = field(default_factory=dict)
    """How often each block ran, in both passes."""


def step(modeling: ModuleType, script: ModuleType | None, way: Mapping[str, Any], scenario: str) -> Outcome:
    """Build a model in one of its ways, and run one step of one scenario."""
    outcome = Outcome()
    try:
        with _limited():
            _seed()
            _run(_built(modeling, script, way, scenario), modeling, way, scenario, outcome)
    except Exception as error:
        first = (str(error).splitlines() or [""])[0]
        outcome.error = f"{type(error).__name__}: {first[:150]}"
    return outcome


def _seed() -> None:
    torch.manual_seed(0)
    random.seed(0)


@contextmanager
def _limited() -> Iterator[None]:
    def stop(_number: int, _frame: FrameType | None) -> None:
        raise Hang("the step does not end")

    before = signal.signal(signal.SIGVTALRM, stop)
    # CPU time, so that a busy machine makes no difference.
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def _built(
    modeling: ModuleType, script: ModuleType | None, way: Mapping[str, Any], scenario: str
) -> nn.Module:
    config = modeling.ToyConfig(**way.get("config", {}))
    model: nn.Module = modeling.ToyModel(config, **way.get("model", {}))
    model.train(not scenario.startswith(("eval", "inference")))
    if way.get("script"):
        assert script is not None
        script.prepare(model)
    if "call" in way:
        name, arguments = way["call"]
        getattr(model, name)(*arguments)
    if scenario.startswith("frozen base"):
        for name, parameter in model.named_parameters():
            # As adapters do it: something in every block, and the head.
            parameter.requires_grad_(_COUNTED in name or name.startswith("head"))
        getattr(model, "enable_input_require_grads")()  # noqa: B009
    if way.get("off"):
        _switch_off(model)
    return model


def _switch_off(model: nn.Module) -> None:
    for module in model.modules():
        for name in _FLAGS:
            if getattr(module, name, False) and not isinstance(getattr(type(module), name, None), property):
                setattr(module, name, False)


def _run(
    model: nn.Module, modeling: ModuleType, way: Mapping[str, Any], scenario: str, outcome: Outcome
) -> None:
    runs: Counter[str] = Counter()
    for name, module in model.named_modules():
        if name.endswith(f".{_COUNTED}"):
            module.register_forward_pre_hook(lambda *_, name=name: runs.update([name]))
    states = _encoder_states(scenario)
    inputs = {
        "input_ids": torch.tensor([[1, 5, 2, 7], [3, 3, 9, 4]]),
        "attention_mask": torch.tensor([0.0, -1.0, 0.5, 0.25]).expand(2, 1, 4),
        # What another network has made: all blocks share its graph, which goes with the first use.
        "encoder_hidden_states": states.sin(),
        "use_cache": "with cache" in scenario,
        **way.get("inputs", {}),
    }
    run = model if "run" not in way else lambda **given: getattr(modeling, way["run"])(model, **given)
    _seed()
    with torch.set_grad_enabled(not scenario.startswith("inference")):
        loss, logits, cache = run(**inputs)
    outcome.values = {"loss": loss.detach(), "logits": logits.detach()}
    outcome.cache = {} if model.training else dict(_in_cache(cache))
    if loss.requires_grad:
        loss.backward()
    elif not scenario.startswith("inference"):
        raise RuntimeError("the loss requires no grad")
    outcome.gradients = {name: parameter.grad for name, parameter in model.named_parameters()}
    outcome.gradients["encoder states"] = states.grad
    outcome.state = dict(_state(model))
    outcome.runs = dict(runs)


def _encoder_states(scenario: str) -> Tensor:
    states = torch.linspace(-1, 1, 2 * 3 * 8).reshape(2, 3, 8)
    # A frozen base's encoder is frozen as well.
    return states.requires_grad_(not scenario.startswith("frozen") and "fixed" not in scenario)


def _in_cache(cache: Any) -> Iterator[tuple[str, Tensor]]:
    for number, layer in enumerate(getattr(cache, "layers", ())):
        if getattr(layer, "keys", None) is not None:
            yield f"keys {number}", layer.keys.detach()


def _state(model: nn.Module) -> Iterator[tuple[str, Any]]:
    for name, buffer in model.named_buffers():
        yield name, buffer.clone()
    for name, module in model.named_modules():
        for key, value in vars(module).items():
            if not key.startswith("_") and type(value) in (int, list) and key != "layer_idx":
                yield f"{name}.{key}", list(value) if isinstance(value, list) else value
