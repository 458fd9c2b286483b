"""The model under test: its inputs, its flags, and adapters on it."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from inspect import signature
from typing import Any

import torch
import transformers
from torch import Tensor, nn
from transformers import PretrainedConfig
from transformers.pytorch_utils import Conv1D

from gclint.verify.worker import randomness
from gclint.verify.worker.examination.state import state_tensors
from gclint.verify.worker.examination.tensors import dense, in_type, move
from gclint.verify.worker.memory_limits import apply_gpu_limit
from gclint.verify.worker.protocol import Mode
from gclint.verify.worker.scenarios import Scenario
from gclint.verify.worker.tiny_model import TinyModel
from gclint.verify.worker.vocabulary import OUTPUT_ROUTER_LOGITS, PAST_KEY_VALUES, USE_CACHE

_RANK = 2
_SCALE = 0.1
_SEED = 1789
_COMPUTED = re.compile(r"(^|_)(hidden_states?|states|embeds|embeddings|latents?)$")
"""The names of inputs that another network computes; all others are data."""
_DROPPING = re.compile(r"drop", re.IGNORECASE)
_LAYERDROP = 0.5
"""The probability that a layer is dropped, for layerdrop: high, since there are few layers."""


def freeze_under_adapters(model: nn.Module, around: Iterable[nn.Module]) -> dict[str, nn.Parameter]:
    """Freeze a model and put adapters, which are returned, on the linear layers inside of some modules.

    Adapters elsewhere would make the hidden states require grad before the first block, which those of
    adapter libraries usually do not.
    """
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    adapters: dict[str, nn.Parameter] = {}
    for name, module in _adaptable(model, around):
        adapters |= _adapt(name, module)
    return adapters


def is_adaptable(model: nn.Module, around: Iterable[nn.Module]) -> bool:
    """Return whether some modules contain a linear layer that can have an adapter."""
    return any(True for _ in _adaptable(model, around))


def _adaptable(model: nn.Module, around: Iterable[nn.Module]) -> Iterator[tuple[str, Any]]:
    inside = {module for block in around for module in block.modules()}
    for name, module in model.named_modules():
        if module in inside and isinstance(module, nn.Linear | Conv1D) and module.weight.is_floating_point():
            yield name, module


def _adapt(name: str, module: Any) -> dict[str, nn.Parameter]:
    taken, returned = module.weight.shape if isinstance(module, Conv1D) else module.weight.shape[::-1]
    down, up = (
        _parameter(f"{name}.down", (taken, _RANK), module),
        _parameter(f"{name}.up", (_RANK, returned), module),
    )

    def add(_module: nn.Module, arguments: tuple[Any, ...], output: Any) -> Any:
        # A layer that does more than its linear map gets no adapter.
        return output + arguments[0] @ down @ up if arguments and isinstance(output, Tensor) else output

    module.register_forward_hook(add)
    return {f"{name}.down": down, f"{name}.up": up}


def _parameter(name: str, shape: tuple[int, int], module: Any) -> nn.Parameter:
    # Neither is zero, so that gradients flow through both.
    values = torch.randn(shape, generator=torch.Generator().manual_seed(zlib.crc32(name.encode()))) * _SCALE
    return nn.Parameter(values.to(module.weight))


class ModelUnderTest:
    """A built model with everything needed to run it; each run takes place in a copy of its process."""

    def __init__(self, tiny_model: TinyModel, device: str) -> None:
        self.device = torch.device(device)
        self.model: Any = tiny_model.build()
        self.model.train()
        if any(self.flags().values()):
            # What it does by default is no reference. An error is one of disabling, and is seen there.
            with suppress(Exception):
                self.disable_checkpointing()
        self._extra: dict[str, nn.Parameter] = {}
        self.tiny_model = tiny_model
        """The tiny model; its inputs may be replaced."""
        self._parameters = dict(self.model.named_parameters())
        self._leaves: dict[str, Tensor] = {}
        self._configurations = list(_configurations(self.model))
        parts = holders(self.model)
        self._probabilities = list(probabilities(parts))
        self._least = tiny_model.least_dropout
        """The least probability in scenarios with dropout."""
        self._layerdrops = list(_layerdrops(parts))
        self._has_routers = any(hasattr(each, OUTPUT_ROUTER_LOGITS) for each in parts)
        # What is cached in making inputs is then shared by all runs.
        tiny_model.inputs()
        parameters = signature(self.model.forward).parameters
        self._names = frozenset(parameters)
        self.switches = {name for name, each in parameters.items() if isinstance(each.default, bool)}
        """The arguments that are true or false."""
        self.state = {name: each.detach() for name, each in state_tensors(self.model).items()}
        """The parameters and buffers with which every run starts; a run may change them."""

    def allows(self, scenario: Scenario, blocks: Iterable[str]) -> bool:
        """Return whether the model has what a scenario enables, and blocks for adapters if it needs them."""
        knows_cache = USE_CACHE in self._names or any(
            hasattr(each, USE_CACHE) for each in self._configurations
        )
        return not (
            (scenario.dropout and not self._drops())
            or (scenario.layerdrop and not self._layerdrops)
            or (scenario.cache_object and PAST_KEY_VALUES not in self._names)
            or (scenario.use_cache and not scenario.cache_object and not knows_cache)
            or (scenario.router_losses and not self._has_routers)
            or (scenario.frozen_base and not is_adaptable(self.model, self._modules(blocks)))
        )

    def prepare(self, scenario: Scenario) -> None:
        """Move the model to its device, and enable only the random dropping that the scenario has."""
        if self.device.type == "cuda":
            apply_gpu_limit(torch, self.device)
            self.model.to(self.device)
        for holder, key, value in self._probabilities:
            setattr(holder, key, max(value, self._least) if scenario.dropout else 0.0)
        for holder, key in self._layerdrops:
            setattr(holder, key, _LAYERDROP if scenario.layerdrop else 0.0)
        self._execute(scenario.setup, {})

    def _execute(self, lines: str, inputs: dict[str, Any]) -> dict[str, Any]:
        """Run lines of a scenario as its scripts do, and return the inputs that they make of some."""
        names = {
            "model": self.model,
            "inputs": inputs,
            "holders": lambda _: (*self.model.modules(), *self._configurations),
            "signature": signature,
            "torch": torch,
            "transformers": transformers,
        }
        exec(lines, names)
        made: dict[str, Any] = names["inputs"]
        return made

    def drop_by_default(self) -> bool:
        """Leave probabilities at their defaults; return whether any is not zero."""
        self._least = 0.0
        return self._drops()

    def freeze(self, blocks: Iterable[str]) -> None:
        """Freeze the model under adapters on the blocks with these names."""
        self._extra = freeze_under_adapters(self.model, self._modules(blocks))

    def inputs(
        self, scenario: Scenario, number: int = 0, *, exact: bool = False, sets_cache: bool = True
    ) -> dict[str, Any]:
        """Return new inputs; those that another network would compute require grad.

        Batches of two lengths alternate by number. ``use_cache`` may be left at its default.
        """
        make = self.tiny_model.other_inputs if number % 2 else None
        inputs: dict[str, Any] = move((make or self.tiny_model.inputs)(), self.device)
        if exact:
            inputs = in_type(inputs, torch.float64)
        for name, value in inputs.items():
            if is_computed(name, value):
                which = f" of batch {number + 1}" if scenario.forwards > 1 else ""
                self._leaves[f"input {name}{which}"] = leaf = value.detach().requires_grad_()
                # Its graph can be used only once, as if another network had computed it.
                inputs[name] = leaf * torch.ones_like(leaf)
        if sets_cache and (scenario.use_cache or not self.tiny_model.keeps_cache):
            for config in self._configurations:
                if hasattr(config, USE_CACHE):
                    config.use_cache = scenario.use_cache
            if USE_CACHE in self._names:
                inputs[USE_CACHE] = scenario.use_cache
        return self._execute(scenario.batch, inputs)

    def take_gradients(self) -> dict[str, Tensor | None]:
        """Return the gradients of everything that can have one by name, and reset them.

        A parameter that the model has made meanwhile is one of these, in place of another one of its name.
        """
        gradients = {}
        known = {**self._parameters, **self._extra, **self._leaves}
        met = set(map(id, known.values()))
        known |= {name: each for name, each in self.model.named_parameters() if id(each) not in met}
        for name, tensor in known.items():
            if tensor.requires_grad:
                gradients[name] = None if tensor.grad is None else dense(tensor.grad)
            tensor.grad = None
        self._leaves = {}
        return gradients

    def perturb(self, number: int, kind: torch.dtype | None = None) -> None:
        """Perturb the parameters by a rounding error of their types, or of one type; numbers differ in it."""
        generator = torch.Generator().manual_seed(_SEED + number)
        with torch.no_grad():
            for parameter in self._parameters.values():
                if parameter.is_floating_point():
                    noise = torch.randn(parameter.shape, generator=generator).to(parameter)
                    parameter.detach().mul_(1 + torch.finfo(kind or parameter.dtype).eps * noise)

    def enable_checkpointing(self, mode: Mode) -> frozenset[str]:
        """Enable checkpointing in a mode that has it; return the modules whose flag that disabled."""
        with _disabled_flags(self.model) as found:
            if mode != "plain":
                enable_checkpointing(self.model, {"use_reentrant": mode == "reentrant"})
        return frozenset(found)

    def disable_checkpointing(self) -> None:
        """Disable checkpointing as the release does."""
        disable_checkpointing(self.model)

    def flags(self) -> dict[str, bool]:
        """Return the modules that have a flag for checkpointing, with its value."""
        return {
            name: bool(module.gradient_checkpointing)
            for name, module in self.model.named_modules()
            if hasattr(module, "gradient_checkpointing")
        }

    def _modules(self, names: Iterable[str]) -> list[nn.Module]:
        return [self.model.get_submodule(name) for name in names]

    def _drops(self) -> bool:
        return any(value or self._least for _, key, value in self._probabilities if "layerdrop" not in key)


@contextmanager
def _disabled_flags(model: nn.Module) -> Iterator[set[str]]:
    """Collect the modules of a model whose checkpointing flag is disabled meanwhile."""
    names = {module: name for name, module in model.named_modules()}
    usual = nn.Module.__setattr__
    found: set[str] = set()

    def note(module: nn.Module, name: str, value: Any) -> None:
        if name == "gradient_checkpointing" and not value and module in names:
            found.add(names[module])
        usual(module, name, value)

    nn.Module.__setattr__ = note
    try:
        yield found
    finally:
        nn.Module.__setattr__ = usual


def enable_checkpointing(model: Any, arguments: Mapping[str, Any] | None, **options: Any) -> None:
    """Enable checkpointing as the release does, with arguments of the checkpoint and its own options."""
    kind = _kind_of_checkpointing(model)
    getattr(model, f"{kind}_enable")(**{f"{kind}_kwargs": arguments}, **options)


def disable_checkpointing(model: Any) -> None:
    """Disable checkpointing as the release does."""
    getattr(model, f"{_kind_of_checkpointing(model)}_disable")()


def _kind_of_checkpointing(model: Any) -> str:
    """Return what the release calls it: newer ones warn about the older name."""
    is_newer = hasattr(model, "activation_checkpointing_enable")
    return "activation_checkpointing" if is_newer else "gradient_checkpointing"


def is_computed(name: str, value: Any) -> bool:
    """Return whether an input is computed by another network, so that it requires grad."""
    return isinstance(value, Tensor) and value.is_floating_point() and _COMPUTED.search(name) is not None


def seed(step: int) -> None:
    """Seed every random generator for this step of a run."""
    randomness.seed(_SEED + step)


def seed_in_turn(step: int) -> None:
    """Seed torch's generators, and the others only for the first step: what that leaves of them remains."""
    if step:
        randomness.seed_torch(_SEED + step)
    else:
        seed(step)


def holders(model: nn.Module) -> tuple[Any, ...]:
    """Return the modules and their configurations, which hold what can be set."""
    return (*model.modules(), *_configurations(model))


def probabilities(parts: tuple[Any, ...]) -> Iterator[tuple[Any, str, float]]:
    """Yield the probabilities of dropping something: holder, attribute and value."""
    for holder in parts:
        drops = _DROPPING.search(type(holder).__name__) is not None
        for key, value in list(vars(holder).items()):
            if type(value) is float and value >= 0 and (_DROPPING.search(key) or (drops and key == "p")):
                yield holder, key, value


def _layerdrops(parts: tuple[Any, ...]) -> Iterator[tuple[Any, str]]:
    """Yield where the probabilities of dropping a layer are: holder and attribute."""
    for holder in parts:
        for key, value in list(vars(holder).items()):
            if "layerdrop" in key and isinstance(value, float | int):
                yield holder, key


def _configurations(model: nn.Module) -> Iterator[Any]:
    """Yield the configurations of all modules and those inside of them, each once."""
    waiting = [
        module.config
        for module in model.modules()
        if isinstance(getattr(module, "config", None), PretrainedConfig)
    ]
    seen = set()
    while waiting:
        config = waiting.pop()
        if id(config) not in seen:
            seen.add(id(config))
            yield config
            waiting += [each for each in vars(config).values() if isinstance(each, PretrainedConfig)]
