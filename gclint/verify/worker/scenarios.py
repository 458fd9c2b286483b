"""The ways in which a model is trained: one table, by which the worker trains and scripts are written.

A feature is something that the tiny configuration has switched on; a scenario is a way to train a model with
it. Both sides import this module, so it needs nothing but Python.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

_NO_DROPOUT = """\
for part in holders(model):  # As little as possible happens at random.
    for key, value in vars(part).items():
        if "drop" in key and isinstance(value, float):
            setattr(part, key, 0.0)
for module in model.modules():
    if "Drop" in type(module).__name__ and hasattr(module, "p"):
        module.p = 0.0
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
    for module in stack.modules():  # What adapters would be added to.
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

ENDLESS = 20
"""Runs of a module in the backward pass, for each in the forward pass, after which there is no end. Each lies
inside the one before, on the stack of one thread, which overflows where it is small."""
OPTION = "option"
"""The feature that stands for all options of configurations; each has scenarios that are called after it,
such as ``option is_decoder=True``."""
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
"""The names of the checks of steps with everything trainable, in the order in which their failures matter."""
_OF_VALUES = tuple(
    each for each in CHECKS if each not in ("recomputation", "saved bytes", "double recomputation", "state")
)


class UnknownScenario(ValueError):
    """The table has no such scenario."""


@dataclass(frozen=True)
class Scenario:
    """A way to train a model; what it switches on has to be there in the model, or it does not apply."""

    name: str
    preparation: str = _NO_DROPOUT
    """The lines of a script that do to ``model`` what the scenario does."""
    batch: str = ""
    """The lines of a script that do the same to ``inputs``, the keyword arguments of its ``forward``."""
    feature: str = "default"
    """The feature of the models that are trained so. The first scenario of a feature has to run before the
    others are tried."""
    steps: int = 1
    forwards: int = 1
    """How many forward passes there are before each backward pass; batches of two lengths take turns."""
    dropout: bool = False
    layerdrop: bool = False
    """Whether layers are dropped at random, where the model can do so."""
    use_cache: bool = False
    cache_object: bool = False
    """Whether the caller hands over an empty cache."""
    frozen_base: bool = False
    """Whether only adapters are trained."""
    require_input_grads: bool = False
    """Whether to call ``enable_input_require_grads()``, as training of adapters does."""
    reference: str | None = None
    """The scenario that the steps are compared with when run plainly, if not this one. What differs from a
    plain run of this one as well is then a failure; what does not is none."""
    checks: tuple[str, ...] = CHECKS
    """The names of the checks that are made."""
    router_losses: bool = False
    """Whether to ask a mixture of experts for what its routers compute, and train by that as well."""
    frozen_statistics: bool = False
    """Whether what keeps running statistics is in ``eval()``; tried where they were updated twice."""


SCENARIOS = (
    Scenario("default", steps=2),
    # As losses that compare two batches need them; what a module keeps of the last one is that of another.
    Scenario("two forwards", forwards=2, checks=tuple(each for each in CHECKS if each != "state")),
    Scenario("dropout", preparation="", dropout=True),
    Scenario("layerdrop", _LAYERDROP, forwards=3, layerdrop=True, checks=_OF_VALUES),
    # A layer that is recomputed drops its cache, so it does what it does without one.
    Scenario("cache", use_cache=True, reference="default"),
    Scenario("cache object", batch=_CACHE_OBJECT, use_cache=True, cache_object=True, reference="default"),
    Scenario("router losses", _ROUTER_LOSSES, router_losses=True),
    Scenario(
        "frozen base",
        _FROZEN_BASE,
        frozen_base=True,
        require_input_grads=True,
        checks=("frozen base",),
    ),
    Scenario("frozen statistics", _NO_DROPOUT + _FROZEN_STATISTICS, steps=2, frozen_statistics=True),
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
    """Return a scenario of the table.

    Raises:
        UnknownScenario: there is none of that name.
    """
    feature = name.removesuffix(_CACHED) if name.startswith(f"{OPTION} ") else None
    table = SCENARIOS if feature is None else scenarios_of(feature)
    found = next((each for each in table if each.name == name), None)
    if found is None:
        raise UnknownScenario(f"there is no scenario {name!r}")
    return found


def scenarios_of(feature: str) -> tuple[Scenario, ...]:
    """Return the scenarios that models with a feature are trained in.

    Raises:
        UnknownScenario: there are none.
    """
    if feature.startswith(f"{OPTION} "):
        return tuple(_of_option(each, feature) for each in scenarios_of(OPTION))
    found = tuple(each for each in SCENARIOS if each.feature == feature)
    if not found:
        raise UnknownScenario(f"there is no scenario for {feature!r}")
    return found


def _of_option(scenario: Scenario, option: str) -> Scenario:
    """Return a scenario of options in general as one of ``option``."""
    name = scenario.name.replace(OPTION, option, 1)
    return replace(scenario, name=name, feature=option, reference=scenario.reference and option)
