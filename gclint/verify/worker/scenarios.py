"""The ways in which a model is trained: one table, by which the worker trains and scripts are written.

A feature is something that the tiny configuration has switched on; a scenario is a way to train a model with
it. Both sides import this module, so it needs nothing but Python.
"""

from __future__ import annotations

from dataclasses import dataclass

_WITHOUT_CACHE = """\
for config in (module.config for module in model.modules() if hasattr(module, "config")):
    config.use_cache = False
if "use_cache" in signature(model.forward).parameters:
    inputs["use_cache"] = False
"""
_WITH_CACHE = _WITHOUT_CACHE.replace("False", "True")
_FROZEN_BASE = """\
model.requires_grad_(False)
for stack in (module for module in model.modules() if isinstance(module, torch.nn.ModuleList)):
    for module in stack.modules():  # What adapters would be added to.
        if isinstance(module, torch.nn.Linear) or type(module).__name__ == "Conv1D":
            module.weight.requires_grad_()
try:  # As training of adapters does, where the model can take it.
    model.enable_input_require_grads()
    model(**inputs)
except Exception:
    if hasattr(model, "_require_grads_hook"):
        model.disable_input_require_grads()
"""

_FROZEN_STATISTICS = """\
for module in model.modules():
    if getattr(module, "running_mean", None) is not None:
        module.eval()
"""

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


class UnknownScenario(ValueError):
    """The table has no such scenario."""


@dataclass(frozen=True)
class Scenario:
    """A way to train a model; what it switches on has to be there in the model, or it does not apply."""

    name: str
    preparation: str
    """The lines of a script that do to ``model`` what the scenario does; ``inputs`` are the keyword arguments
    of its ``forward``."""
    feature: str = "default"
    """The feature of the models that are trained so. The first scenario of a feature has to run before the
    others are tried."""
    steps: int = 1
    dropout: bool = False
    use_cache: bool = False
    frozen_base: bool = False
    """Whether only adapters are trained."""
    require_input_grads: bool = False
    """Whether to call ``enable_input_require_grads()``, as training of adapters does."""
    reference: str | None = None
    """The scenario that the steps are compared with when run plainly, if not this one. What differs from a
    plain run of this one as well is then a failure; what does not is none."""
    checks: tuple[str, ...] = CHECKS
    """The names of the checks that are made."""
    frozen_statistics: bool = False
    """Whether what keeps running statistics is in ``eval()``; tried where they were updated twice."""


SCENARIOS = (
    Scenario("default", _WITHOUT_CACHE, steps=2),
    Scenario("dropout", _WITHOUT_CACHE, dropout=True),
    # A layer that is recomputed drops its cache, so it does what it does without one.
    Scenario("cache", _WITH_CACHE, use_cache=True, reference="default"),
    Scenario(
        "frozen base",
        _WITHOUT_CACHE + _FROZEN_BASE,
        frozen_base=True,
        require_input_grads=True,
        checks=("frozen base",),
    ),
    Scenario("frozen statistics", _WITHOUT_CACHE + _FROZEN_STATISTICS, steps=2, frozen_statistics=True),
    Scenario("cross-attention", _WITHOUT_CACHE, feature="cross-attention"),
    Scenario("key-value sharing", _WITHOUT_CACHE, feature="key-value sharing"),
)
"""All scenarios, in the order in which they are run."""


def scenario_named(name: str) -> Scenario:
    """Return a scenario of the table.

    Raises:
        UnknownScenario: there is none of that name.
    """
    found = next((each for each in SCENARIOS if each.name == name), None)
    if found is None:
        raise UnknownScenario(f"there is no scenario {name!r}")
    return found


def scenarios_of(feature: str) -> tuple[Scenario, ...]:
    """Return the scenarios that models with a feature are trained in.

    Raises:
        UnknownScenario: there are none.
    """
    found = tuple(each for each in SCENARIOS if each.feature == feature)
    if not found:
        raise UnknownScenario(f"there is no scenario for {feature!r}")
    return found
