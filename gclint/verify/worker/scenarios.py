"""The table of scenarios, from which the worker trains models and scripts are written.

A feature is something that the tiny configuration enables; a scenario is a way to train a model with it. Both
sides import this module, so it needs only Python.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

NO_DROPOUT = """\
for part in holders(model):  # Avoid randomness.
    for key, value in vars(part).items():
        if isinstance(value, float) and ("drop" in key or (key == "p" and "Drop" in type(part).__name__)):
            setattr(part, key, 0.0)
"""
"""The lines of a script that prepare ``model`` for scenarios without dropout."""
_DROPOUT = """\
for part in holders(model):  # In a tiny model, little is dropped.
    for key, value in vars(part).items():
        if "drop" in key and "layerdrop" not in key and isinstance(value, float):
            setattr(part, key, max(value, LEAST))
for module in model.modules():
    if "Drop" in type(module).__name__ and hasattr(module, "p"):
        module.p = max(module.p, LEAST)
"""
_LAYERDROP = """\
for part in holders(model):
    for key in [key for key in vars(part) if "layerdrop" in key]:
        setattr(part, key, 0.5)
"""
_CACHE_OBJECT = """\
if model.config.is_encoder_decoder or getattr(model.config, "add_cross_attention", False):
    cache = transformers.EncoderDecoderCache(transformers.DynamicCache(), transformers.DynamicCache())
else:
    cache = transformers.DynamicCache()
inputs["past_key_values"] = cache
"""
_FROZEN_BASE = """\
model.requires_grad_(False)
for stack in (module for module in model.modules() if isinstance(module, torch.nn.ModuleList)):
    for module in stack.modules():  # The layers that get adapters.
        if isinstance(module, torch.nn.Linear) or type(module).__name__ == "Conv1D":
            module.weight.requires_grad_()
"""
_FROZEN_STATISTICS = """\
for module in model.modules():
    if getattr(module, "running_mean", None) is not None:
        module.eval()
"""

_ROUTER_LOSSES = """\
for part in holders(model):
    if hasattr(part, "output_router_logits"):
        part.output_router_logits = True
"""

_PLAIN_ATTENTION = """\
for part in holders(model):
    if hasattr(part, "_attn_implementation"):
        part._attn_implementation = "eager"
"""
_EVERY_OUTPUT = (
    _PLAIN_ATTENTION
    + """\
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
    _PLAIN_ATTENTION
    + """\
for part in holders(model):
    if hasattr(part, "return_dict"):
        part.return_dict = False
"""
)
_NO_MASK = """\
inputs = {name: value for name, value in inputs.items() if "mask" not in name}
"""
_ARGUMENTS = """\
config = model.config.get_text_config()
for name, parameter in signature(model.forward).parameters.items():
    if isinstance(parameter.default, bool) and not name.startswith(("use_", "output_", "return_")):
        inputs[name] = not parameter.default
    if name.endswith("head_mask"):  # Of an encoder and a decoder, each has its own.
        side = "decoder" if name.startswith(("decoder", "cross")) else "encoder"
        layers = getattr(config, f"{side}_layers", None) or config.num_hidden_layers
        heads = getattr(config, f"{side}_attention_heads", None) or config.num_attention_heads
        inputs[name] = (torch.arange(layers * heads) % 3 > 0).reshape(layers, heads).float()
"""
_EMBEDDINGS = """\
for side in ("", "decoder_"):
    tokens = inputs.pop(f"{side}input_ids", None)
    if tokens is not None:
        inputs[f"{side}inputs_embeds"] = model.get_input_embeddings()(tokens)
for name in [name for name in inputs if name.endswith("attention_mask")]:
    inputs[name] = inputs[name].flip(-1)  # Padding on the left.
"""
_LONGER = """\
most = getattr(model.config.get_text_config(), "max_position_embeddings", None) or 300
lengths = [value.shape[1] for name, value in inputs.items() if name.endswith("input_ids")]
batches = {value.shape[0] for value in inputs.values() if torch.is_tensor(value) and value.dim()}
for name, value in inputs.items():
    if torch.is_tensor(value) and value.dim() > 1 and value.shape[1] in lengths:
        value = torch.cat([value] * max(most // value.shape[1], 2), 1)
    if torch.is_tensor(value) and value.dim() and len(batches) == 1:
        value = torch.cat([value] * 3)
    inputs[name] = value
"""
_IN_BFLOAT16 = """\
model.to(torch.bfloat16)
"""
_AS_THE_WEIGHTS = """\
kind = next(model.parameters()).dtype
for name, value in inputs.items():
    if torch.is_tensor(value) and value.is_floating_point():
        inputs[name] = value.to(kind)
"""
_SIZES = ("shape", "size", "len", "dim", "numel", "window", "chunk", "span", "bucket", "pad")
"""Parts of the names of lengths, and of what they are compared with."""

ENDLESS = 20
"""Runs of a module in the backward pass, per run in the forward pass, that count as endless. They are nested
on the stack of one thread, which overflows if it is small."""
AGAIN = "is recomputed again and again"
"""The words about a block of which there were so many."""
OPTION = "option"
"""The feature for all options of configurations; each option has scenarios named after it, such as
``option is_decoder=True``."""
_CACHED = ", cache object"
DEEP = "default depth"
"""The feature for as many layers as the default configuration has."""
OF_LAYERS = ("layer", "depth", "idx", "index")
"""Parts of the names in conditions that may hang on which layer it is."""

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
    preparation: str = ""
    """Further lines of a script that prepare ``model``; the worker has a way of its own."""
    setup: str = ""
    """Further lines, which the worker runs, too."""
    batch: str = ""
    """Lines that prepare ``inputs``, the keyword arguments of its ``forward``, in both."""
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
    usual_outputs: bool = False
    """Whether it is trained only on outputs that the first scenario has, too."""
    reaches: tuple[str, ...] = ()
    """It is run only for branches that no other run has reached, and whose conditions name one of these."""
    switches: bool = False
    """Whether it is also run for conditions that name an argument which is true or false."""


_REACHING = (
    Scenario(
        "every output",
        setup=_EVERY_OUTPUT,
        batch=_ASKING,
        usual_outputs=True,
        reaches=("output_attentions", "output_hidden_states", "_attn_implementation", "eager"),
    ),
    Scenario("no mask", setup=_AS_TUPLE, batch=_NO_MASK, reaches=("mask", "return_dict")),
    Scenario(
        "further arguments",
        setup=_PLAIN_ATTENTION,
        batch=_ARGUMENTS,
        reaches=("head_mask",),
        switches=True,
    ),
    Scenario("embeddings", batch=_EMBEDDINGS, reaches=("inputs_embeds", "input_ids", "position", "pad")),
    Scenario("longer", batch=_LONGER, reaches=_SIZES),
    Scenario(
        "bfloat16",
        setup=_IN_BFLOAT16,
        batch=_AS_THE_WEIGHTS,
        reaches=("dtype", "bfloat16", "float16", "half"),
    ),
    Scenario(
        "five steps", steps=5, reaches=("step", "count", "seen", "calls", "runs", "iteration", "number")
    ),
)
"""The scenarios for branches that the others do not reach."""


def _reaching(feature: str) -> Iterator[Scenario]:
    for each in _REACHING:
        yield replace(each, name=f"{feature}, {each.name}", feature=feature)


SCENARIOS = (
    Scenario("default", steps=2),
    # As for losses that compare two batches.
    Scenario("two forwards", forwards=2, checks=_OF_TWO),
    Scenario("dropout", _DROPOUT, forwards=2, dropout=True, checks=_OF_TWO),
    Scenario("layerdrop", _LAYERDROP, forwards=3, layerdrop=True, checks=_OF_VALUES),
    # A recomputed layer gets no cache, so it computes what it does without one.
    Scenario("cache", use_cache=True, reference="default"),
    Scenario("cache object", batch=_CACHE_OBJECT, use_cache=True, cache_object=True, reference="default"),
    Scenario("router losses", setup=_ROUTER_LOSSES, router_losses=True),
    Scenario(
        "frozen base", _FROZEN_BASE, frozen_base=True, require_input_grads=True, checks=("frozen base",)
    ),
    Scenario("frozen statistics", setup=_FROZEN_STATISTICS, steps=2, frozen_statistics=True),
    *_REACHING,
    Scenario("cross-attention", feature="cross-attention"),
    *_reaching("cross-attention"),
    Scenario("key-value sharing", feature="key-value sharing"),
    *_reaching("key-value sharing"),
    Scenario(OPTION, feature=OPTION),
    Scenario(
        f"{OPTION}{_CACHED}",
        feature=OPTION,
        batch=_CACHE_OBJECT,
        use_cache=True,
        cache_object=True,
        reference=OPTION,
    ),
    *_reaching(OPTION),
    Scenario(DEEP, feature=DEEP),
)
"""All scenarios, in the order in which they are run."""


def scenario_named(name: str) -> Scenario:
    """Return a scenario of the table; raise UnknownScenario if there is none with this name."""
    table: Iterable[Scenario] = SCENARIOS
    if name.startswith(f"{OPTION} "):
        kinds = (each.name.removeprefix(OPTION) for each in SCENARIOS if each.feature == OPTION)
        kind = max((each for each in kinds if name.endswith(each)), key=len)
        table = scenarios_of(name.removesuffix(kind))
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
