"""The table of scenarios, from which the worker trains models and scripts are written.

A feature is something that the tiny configuration enables; a scenario is a way to train a model with it. Both
sides import this module, so it needs only Python.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

_NO_DROPOUT = """\
for part in holders(model):  # Avoid randomness.
    for key, value in vars(part).items():
        if "drop" in key and isinstance(value, float):
            setattr(part, key, 0.0)
for module in model.modules():
    if "Drop" in type(module).__name__ and hasattr(module, "p"):
        module.p = 0.0
"""
_DROPOUT = """\
for part in holders(model):  # In a tiny model, little is dropped.
    for key, value in vars(part).items():
        if "drop" in key and "layerdrop" not in key and isinstance(value, float):
            setattr(part, key, max(value, LEAST))
for module in model.modules():
    if "Drop" in type(module).__name__ and hasattr(module, "p"):
        module.p = max(module.p, LEAST)
"""
_LAYERDROP = (
    _NO_DROPOUT
    + """\
for part in holders(model):
    for key in [key for key in vars(part) if "layerdrop" in key]:
        setattr(part, key, 0.5)
"""
)
_CACHE_OBJECT = """\
if model.config.is_encoder_decoder or getattr(model.config, "add_cross_attention", False):
    cache = transformers.EncoderDecoderCache(transformers.DynamicCache(), transformers.DynamicCache())
else:
    cache = transformers.DynamicCache()
inputs["past_key_values"] = cache
"""
_FROZEN_BASE = (
    _NO_DROPOUT
    + """\
model.requires_grad_(False)
for stack in (module for module in model.modules() if isinstance(module, torch.nn.ModuleList)):
    for module in stack.modules():  # The layers that get adapters.
        if isinstance(module, torch.nn.Linear) or type(module).__name__ == "Conv1D":
            module.weight.requires_grad_()
"""
)

_FROZEN_STATISTICS = """\
for module in model.modules():
    if getattr(module, "running_mean", None) is not None:
        module.eval()
"""

_ROUTER_LOSSES = (
    _NO_DROPOUT
    + """\
for part in holders(model):
    if hasattr(part, "output_router_logits"):
        part.output_router_logits = True
"""
)

_EVERY_OUTPUT = (
    _NO_DROPOUT
    + """\
for part in holders(model):
    if hasattr(part, "_attn_implementation"):
        part._attn_implementation = "eager"
for part in holders(model):
    for key in ("output_attentions", "output_hidden_states"):
        if hasattr(part, key):
            setattr(part, key, True)
"""
)
_ASKING = """\
for key in ("output_attentions", "output_hidden_states"):
    if key in signature(model.forward).parameters:
        inputs[key] = True
"""
_AS_TUPLE = (
    _NO_DROPOUT
    + """\
for part in holders(model):
    if hasattr(part, "return_dict"):
        part.return_dict = False
"""
)
_NO_MASK = """\
inputs = {name: value for name, value in inputs.items() if "mask" not in name}
"""

ENDLESS = 20
"""Runs of a module in the backward pass, per run in the forward pass, that count as endless. They are nested
on the stack of one thread, which overflows if it is small."""
OPTION = "option"
"""The feature for all options of configurations; each option has scenarios named after it, such as
``option is_decoder=True``."""
_CACHED = ", cache object"

CHECKS = (
    "error",
    "switches",
    "recomputation",
    "missing gradients",
    "gradients",
    "loss",
    "outputs",
    "values",
    "saved bytes",
    "double recomputation",
    "buffers",
    "second step",
    "state",
    "cache",
    "warning",
)
"""The names of the checks of steps with everything trainable, in the order of their importance."""
_OF_VALUES = tuple(
    each for each in CHECKS if each not in ("recomputation", "saved bytes", "double recomputation", "state")
)
_OF_TWO = tuple(each for each in CHECKS if each != "state")
"""The checks of steps with two forward passes: a module may still keep state of the other one."""


class UnknownScenario(ValueError):
    """There is no such scenario."""


@dataclass(frozen=True)
class Scenario:
    """A way to train a model; it applies only to models that have what it enables."""

    name: str
    preparation: str = _NO_DROPOUT
    """The lines of a script that prepare ``model`` for the scenario."""
    batch: str = ""
    """The lines of a script that do the same for ``inputs``, the keyword arguments of its ``forward``."""
    feature: str = "default"
    """The feature of the models that are trained this way. The first scenario of a feature runs before the
    others are tried."""
    steps: int = 1
    forwards: int = 1
    """How many forward passes there are before each backward pass; batches of two lengths alternate."""
    dropout: bool = False
    layerdrop: bool = False
    """Whether layers are dropped at random, if the model supports that."""
    use_cache: bool = False
    cache_object: bool = False
    """Whether the caller passes an empty cache."""
    frozen_base: bool = False
    """Whether only adapters are trained."""
    require_input_grads: bool = False
    """Whether to call ``enable_input_require_grads()``, as training of adapters does."""
    reference: str | None = None
    """The scenario whose plain steps these steps are compared with, if not this one. A difference is then a
    failure only if the steps also differ from plain steps of this scenario."""
    checks: tuple[str, ...] = CHECKS
    """The names of the checks that are made."""
    router_losses: bool = False
    """Whether a mixture of experts returns the logits of its routers, and is trained with their loss."""
    frozen_statistics: bool = False
    """Whether layers with running statistics are in ``eval()``; tried if these were updated twice."""
    every_output: bool = False
    """Whether the model returns its attentions and hidden states, with plain attention."""
    no_mask: bool = False
    """Whether the batch has no masks, and the model returns a tuple."""
    reaches: tuple[str, ...] = ()
    """It is run only for branches that no other run has reached, and whose conditions name one of these."""


SCENARIOS = (
    Scenario("default", steps=2),
    # As for losses that compare two batches.
    Scenario("two forwards", forwards=2, checks=_OF_TWO),
    Scenario("dropout", _DROPOUT, forwards=2, dropout=True, checks=_OF_TWO),
    Scenario("layerdrop", _LAYERDROP, forwards=3, layerdrop=True, checks=_OF_VALUES),
    # A recomputed layer gets no cache, so it computes what it does without one.
    Scenario("cache", use_cache=True, reference="default"),
    Scenario("cache object", batch=_CACHE_OBJECT, use_cache=True, cache_object=True, reference="default"),
    Scenario("router losses", _ROUTER_LOSSES, router_losses=True),
    Scenario(
        "frozen base", _FROZEN_BASE, frozen_base=True, require_input_grads=True, checks=("frozen base",)
    ),
    Scenario("frozen statistics", _NO_DROPOUT + _FROZEN_STATISTICS, steps=2, frozen_statistics=True),
    Scenario(
        "every output",
        _EVERY_OUTPUT,
        _ASKING,
        every_output=True,
        reaches=("output_attentions", "output_hidden_states", "_attn_implementation", "eager"),
    ),
    Scenario("no mask", _AS_TUPLE, _NO_MASK, no_mask=True, reaches=("mask", "return_dict")),
    Scenario("cross-attention", feature="cross-attention"),
    Scenario("key-value sharing", feature="key-value sharing"),
    Scenario(OPTION, feature=OPTION),
    Scenario(
        f"{OPTION}{_CACHED}",
        feature=OPTION,
        batch=_CACHE_OBJECT,
        use_cache=True,
        cache_object=True,
        reference=OPTION,
    ),
)
"""All scenarios, in the order in which they are run."""


def scenario_named(name: str) -> Scenario:
    """Return a scenario of the table; raise UnknownScenario if there is none with this name."""
    feature = name.removesuffix(_CACHED) if name.startswith(f"{OPTION} ") else None
    table = SCENARIOS if feature is None else scenarios_of(feature)
    found = next((each for each in table if each.name == name), None)
    if found is None:
        raise UnknownScenario(f"there is no scenario {name!r}")
    return found


def scenarios_of(feature: str) -> tuple[Scenario, ...]:
    """Return the scenarios for models with a feature; raise UnknownScenario if there are none."""
    if feature.startswith(f"{OPTION} "):
        return tuple(_of_option(each, feature) for each in scenarios_of(OPTION))
    found = tuple(each for each in SCENARIOS if each.feature == feature)
    if not found:
        raise UnknownScenario(f"there is no scenario for {feature!r}")
    return found


def _of_option(scenario: Scenario, option: str) -> Scenario:
    """Return a scenario of the feature for options as one for ``option``."""
    name = scenario.name.replace(OPTION, option, 1)
    return replace(scenario, name=name, feature=option, reference=scenario.reference and option)
