"""What a condition on the mode, the flag or the cache decides: what is not recomputed, and what is off."""

from __future__ import annotations

from tests.decisions.outside import (
    CACHE,
    FILE,
    GUARD,
    LAYER,
    Pair,
    decided,
    found,
    silent,
)
from tests.decisions.toy import FLAG, PROTECTED, STACK, block, model, toy

_SAFE = [found(LAYER, "safe")]
_EVALUATING = [silent(LAYER, "not in training")]
_UNRECORDED = [silent(LAYER, "no gradients recorded")]
_STEP = "for layer in self.layers:\n    hidden_states = layer(hidden_states)"


def _under(test: str, *, other: bool = False) -> str:
    """Write a file whose loop runs under a condition, or under its ``else``."""
    step = _STEP.replace("\n", "\n    ")
    loop = f"if {test}:\n    pass\nelse:\n    {step}" if other else f"if {test}:\n    {step}"
    return toy(block(), model(loop))


def _evaluating(decision: str, condition: str, change: tuple[str, str], *, other: bool = False) -> Pair:
    """Return the pair of a condition that means evaluation, and of one that does not."""
    return Pair(decision, _under(condition, other=other), change, _EVALUATING, _SAFE)


test_modes = decided(
    _evaluating("outside of training", "not self.training", ("if not self.", "if self.")),
    _evaluating("the other side of training", "self.training", ("if self.", "if not self."), other=True),
    _evaluating("another attribute", "not self.training", ("not self.training", "not self.drafting")),
    _evaluating("another object", "not self.training", ("not self.training", "not mask.training")),
    _evaluating("and something else", "not self.training and mask", (" and ", " or ")),
    _evaluating(
        "or something else, that excludes it too",
        "not self.training or not self.training and mask",
        ("or not self.training and", "or self.training and"),
    ),
    _evaluating("the other side of both", "self.training or mask", (" or ", " and "), other=True),
    _evaluating("gradients are asked for", "not torch.is_grad_enabled()", ("if not", "if")),
    _evaluating(
        "another function is asked",
        "not torch.is_grad_enabled()",
        ("is_grad_enabled", "is_inference_mode_enabled"),
    ),
    Pair(
        "what comes before has left",
        toy(block(), model(f"if self.training:\n    return mask\n{_STEP}")),
        ("return mask", "mask = 1"),
        _EVALUATING,
        _SAFE,
    ),
    Pair(
        "what comes before has raised",
        toy(block(), model(f"if self.training:\n    raise ValueError\n{_STEP}")),
        ("if self.training", "if not self.training"),
        _EVALUATING,
        _SAFE,
    ),
    Pair(
        "what comes before has another side",
        toy(block(), model(f"if self.training:\n    return mask\nelse:\n    mask = 1\n{_STEP}")),
        ("        else:\n            mask = 1\n", ""),
        _SAFE,
        _EVALUATING,
    ),
    Pair(
        "what comes behind has left",
        toy(block(), model(f"if self.training:\n    return mask\n{_STEP}")),
        (
            "if self.training:\n            return mask\n        for layer in self.layers:\n"
            "            hidden_states = layer(hidden_states)",
            "for layer in self.layers:\n            hidden_states = layer(hidden_states)\n"
            "        if self.training:\n            return mask",
        ),
        _EVALUATING,
        _SAFE,
    ),
    Pair(
        "one side of an expression",
        toy(
            block(),
            model(
                "for layer in self.layers:\n"
                "    hidden_states = hidden_states if self.training else layer(hidden_states)"
            ),
        ),
        ("hidden_states if self", "hidden_states if not self"),
        _EVALUATING,
        _SAFE,
    ),
    Pair(
        "the layer is handed on where it trains",
        toy(
            block(),
            model(
                "for layer in self.layers:\n    if self.training:\n"
                "        hidden_states = unknown(layer, hidden_states)\n"
                "    else:\n        hidden_states = layer(hidden_states)"
            ),
        ),
        ("unknown(layer,", "unknown(mask,"),
        [found(LAYER, "unsafe", "unknown around")],
        _EVALUATING,
    ),
)


def _in_context(context: str) -> str:
    return toy(block(), model(f"with {context}:\n    " + _STEP.replace("\n", "\n    ")))


test_contexts = decided(
    Pair(
        "`no_grad`",
        _in_context("torch.no_grad()"),
        ("torch.no_grad()", "torch.enable_grad()"),
        _UNRECORDED,
        _SAFE,
    ),
    Pair(
        "`inference_mode`",
        _in_context("torch.inference_mode()"),
        ("inference_mode()", "autocast('cpu')"),
        _UNRECORDED,
        _SAFE,
    ),
    Pair(
        "`set_grad_enabled`",
        _in_context("torch.set_grad_enabled(False)"),
        ("(False)", "(mask)"),
        _UNRECORDED,
        [found(LAYER, "unsafe", "context")],
    ),
    Pair(
        "the second of two contexts",
        _in_context("torch.profiler.profile(), torch.no_grad()"),
        ("no_grad", "enable_grad"),
        _UNRECORDED,
        _SAFE,
    ),
    Pair(
        "a decorator of the method",
        toy(block(), model()).replace(
            "    def forward(self, hidden_states, mask=None):\n        for",
            "    @torch.no_grad()\n    def forward(self, hidden_states, mask=None):\n        for",
        ),
        ("@torch.no_grad()", "@torch.enable_grad()"),
        _UNRECORDED,
        _SAFE,
    ),
    Pair(
        "a part that its model runs without gradients",
        toy(
            block(),
            model(name="ToyEncoder", base="nn.Module", supports="None").replace(
                "super().__init__(config)", "super().__init__()"
            ),
            model(
                "with torch.no_grad():\n    hidden_states = self.encoder(hidden_states)",
                init="self.encoder = ToyEncoder(config)",
            ),
        ),
        ("torch.no_grad()", "torch.enable_grad()"),
        _UNRECORDED,
        _SAFE,
    ),
    Pair(
        "a part that its model runs once more",
        toy(
            block(),
            model(name="ToyEncoder", base="nn.Module", supports="None").replace(
                "super().__init__(config)", "super().__init__()"
            ),
            model(
                "with torch.no_grad():\n    hidden_states = self.encoder(hidden_states)\n"
                "mask = self.config(hidden_states)",
                init="self.encoder = ToyEncoder(config)",
            ),
        ),
        ("self.config(hidden_states)", "self.encoder(hidden_states)"),
        _UNRECORDED,
        [found(LAYER, "unsafe", "no gradients in")],
    ),
    Pair(
        "of a part only the parameters are used",
        toy(
            block(),
            model(name="ToyEncoder", base="nn.Module", supports="None").replace(
                "super().__init__(config)", "super().__init__()"
            ),
            model(
                "with torch.no_grad():\n    hidden_states = self.encoder(hidden_states)\n"
                "mask = self.encoder.parameters()",
                init="self.encoder = ToyEncoder(config)",
            ),
        ),
        ("self.encoder.parameters()", "self.encoder.layers[0](mask)"),
        _UNRECORDED,
        [found(LAYER, "unsafe", "no gradients in")],
    ),
    Pair(
        "a part that another file trains",
        {
            FILE: toy(
                block(),
                model(name="ToyEncoder", base="nn.Module", supports="None").replace(
                    "super().__init__(config)", "super().__init__()"
                ),
                model(
                    "with torch.no_grad():\n    hidden_states = self.encoder(hidden_states)",
                    init="self.encoder = ToyEncoder(config)",
                ),
            ),
            "modeling_other.py": "from transformers import PreTrainedModel\n"
            "from modeling_toy import ToyModel, ToyEncoder\n\n"
            + model(
                "hidden_states = self.encoder(hidden_states)",
                name="OtherModel",
                init="self.encoder = ToyEncoder(config)",
            ),
        },
        ("import ToyModel, ToyEncoder", "import ToyModel"),
        _SAFE,
        _UNRECORDED,
    ),
)


_RUN = "with torch.no_grad():\n    hidden_states = self.encoder(hidden_states)"
_HOLDS = "self.encoder = ToyEncoder(config)"


def _frozen(more: str = "", method: str = "forward") -> str:
    """Write a file with a part that a model runs without gradients, and more of it."""
    part = model(name="ToyEncoder", base="nn.Module", supports="None")
    part = part.replace("super().__init__(config)", "super().__init__()")
    part = part.replace("def forward(", f"def {method}(")
    return toy(block(), part, more, model(_RUN, init=_HOLDS))


test_frozen_parts = decided(
    Pair(
        "a function makes such a part as well",
        _frozen("def make(config):\n    return ToyEncoder(config)\n"),
        ("return ToyEncoder(config)", "return ToyAttention(config)"),
        _SAFE,
        _UNRECORDED,
    ),
    Pair(
        "a part that may be trained by itself",
        toy(block(), model(name="ToyEncoder"), model(_RUN, init=_HOLDS)),
        ("class ToyEncoder(PreTrainedModel)", "class ToyEncoder(nn.Module)"),
        _SAFE,
        _UNRECORDED,
    ),
    Pair(
        "another method of such a part",
        _frozen(method="run"),
        ("def run(", "def forward("),
        _SAFE,
        _UNRECORDED,
    ),
)


_PAST = "hidden_states, past_key_values=None"


def _branch(test: str, *, arguments: str = "hidden_states, past_key_values") -> str:
    """Write a file with a layer that is checkpointed under a condition, and called under its ``else``."""
    loop = (
        f"for layer in self.layers:\n    if {test}:\n"
        "        hidden_states = unknown(layer, hidden_states)\n"
        f"    else:\n        hidden_states = layer({arguments})"
    )
    return toy(block(base=PROTECTED, takes=_PAST), model(loop, takes=_PAST, init=f"{STACK}\n{FLAG}"))


_SPARED = [silent(CACHE, "spared")]
_LIVE = [found(CACHE, "safe")]


def _sparing(decision: str, condition: str, change: tuple[str, str]) -> Pair:
    """Return the pair of a condition that spares the cache, and of one that does not."""
    return Pair(decision, _branch(condition), change, _SPARED, _LIVE)


test_spared_calls = decided(
    _sparing(
        "the flag and the mode",
        "self.gradient_checkpointing and self.training",
        ("self.gradient_checkpointing and", "self.gradient_clipping and"),
    ),
    _sparing(
        "the flag alone", "self.gradient_checkpointing", ("if self.gradient_ch", "if not self.gradient_ch")
    ),
    _sparing(
        "the flag or something else", "self.gradient_checkpointing and self.training", (" and ", " or ")
    ),
    _sparing(
        "the flag and something else",
        "self.gradient_checkpointing and self.training",
        ("self.training:", "self.drafting:"),
    ),
    _sparing(
        "the flag by its name",
        "getattr(self, 'gradient_checkpointing', False) and self.training",
        ("'gradient_checkpointing'", "'gradient_clipping'"),
    ),
    _sparing(
        "the flag and gradients",
        "self.gradient_checkpointing and torch.is_grad_enabled()",
        ("is_grad_enabled()", "is_anomaly_enabled()"),
    ),
)


def _unknown_name(
    guard: str = "", made: str = "if use_cache:\n    cache = DynamicCache()", **more: str
) -> str:
    """Write a file that makes a cache if it is asked for, and passes it under an unknown name."""
    takes = "hidden_states, memory=None, use_cache=False"
    step = "for layer in self.layers:\n    hidden_states = layer(hidden_states, memory=cache)"
    loop = f"cache = None\n{made}\n{guard}\n{step}"
    init = f"{STACK}\nself.gradient_checkpointing = False"
    return toy(block(base=PROTECTED, takes=takes), model(loop, takes=takes, init=init, **more))


_GUARD = "if self.gradient_checkpointing and self.training:\n    use_cache = False"
_EARLY = [found(GUARD, "when proven", "needs a run")]
_OK = [silent(GUARD, "guarded")]


test_guards_of_caches = decided(
    Pair(
        "a cache that nothing guards",
        _unknown_name(),
        ("if use_cache:", "if use_cache and not self.training:"),
        _EARLY,
        _OK,
    ),
    Pair(
        "a cache that is not asked for",
        _unknown_name(),
        ("if use_cache:", "if memory:"),
        _EARLY,
        [silent(GUARD, "no unknown cache")],
    ),
    Pair(
        "a guard behind it",
        _unknown_name(_GUARD),
        (
            "        if use_cache:\n            cache = DynamicCache()\n"
            "        if self.gradient_checkpointing and self.training:\n            use_cache = False\n",
            "        if self.gradient_checkpointing and self.training:\n            use_cache = False\n"
            "        if use_cache:\n            cache = DynamicCache()\n",
        ),
        _EARLY,
        _OK,
    ),
    Pair(
        "a guard of something else",
        _unknown_name(made=f"{_GUARD}\nif use_cache:\n    cache = DynamicCache()"),
        ("            use_cache = False", "            use_caches = False"),
        _OK,
        _EARLY,
    ),
    Pair("a name that releases know", _unknown_name(), ("memory=cache)", "use_cache=cache)"), _EARLY, _OK),
    Pair(
        "no flag to ask for",
        _unknown_name(),
        ("gradient_checkpointing = False", "gradient_checkpointing = True"),
        _EARLY,
        [silent(GUARD, "no flag")],
    ),
    Pair(
        "no layer",
        _unknown_name(),
        ("class ToyLayer(GradientCheckpointingLayer)", "class ToyLayer(ToyAttention)"),
        _EARLY,
        [found(LAYER, "safe"), silent(GUARD, "not a layer")],
    ),
    Pair(
        "the layer runs in a function that leaves the cache",
        _unknown_name("def run(states, memory):\n    return layer(states)"),
        (
            "hidden_states = layer(hidden_states, memory=cache)",
            "hidden_states = run(hidden_states, memory=cache)",
        ),
        _EARLY,
        [silent(GUARD, "not a layer")],
        at="= run(",
    ),
    Pair(
        "the same name under another condition",
        _unknown_name(),
        ("            cache = DynamicCache()", "            other = DynamicCache()"),
        _EARLY,
        [silent(GUARD, "no unknown cache")],
    ),
)
