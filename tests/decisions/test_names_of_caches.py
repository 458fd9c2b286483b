"""Under which names which releases disable a cache."""

from __future__ import annotations

from tests.decisions.outside import (
    CACHE,
    LAYER,
    NAME,
    Pair,
    decided,
    found,
    passed,
    silent,
)
from tests.decisions.toy import FLAG, PROTECTED, STACK, block, call, model, toy

_PAST = "hidden_states, past_key_values=None"
_OTHER = [found(CACHE, "none", "no cache")]


test_names = decided(
    *(
        Pair(
            f"`{name}` is a cache to the base class",
            call(
                f"hidden_states, {name}", takes=f"hidden_states, {name}=None", given=f"{name} = None or mask"
            )
            .replace("mask=None):\n", f"mask=None, {name}=None):\n")
            .replace(f"{name} = None or mask\n", "pass\n"),
            (f"layer(hidden_states, {name})", f"layer(hidden_states, {name}={name})"),
            [found(CACHE, "safe"), passed(name, "cache", "cache", "not by name")],
            [silent(CACHE, "no cache by position"), passed(name, "cache", "cache", "disabled by name")],
        )
        for name in ("past_key_values", "past_key_value", "layer_past", "use_cache")
    ),
    Pair(
        "another name is no cache to it",
        call("hidden_states, past_key_values", takes=_PAST).replace(
            "mask=None):\n        pass", "past_key_values=None):\n        pass"
        ),
        ("forward(self, hidden_states, past_key_values=None)", "forward(self, hidden_states, memory=None)"),
        _OTHER,
        [silent(CACHE, "no cache by position")],
    ),
    Pair(
        "a literal is none",
        call("hidden_states, past_key_values", takes=_PAST),
        ("layer(hidden_states, past_key_values)", "layer(hidden_states, None)"),
        _OTHER,
        [silent(CACHE, "no cache by position"), passed("past_key_values", "not a cache here", "literal")],
    ),
    Pair(
        "True is a literal as well",
        call("hidden_states, use", takes="hidden_states, use_cache=None", given="use = self.x"),
        ("layer(hidden_states, use)", "layer(hidden_states, True)"),
        [found(CACHE, "safe")],
        [silent(CACHE, "no cache by position")],
    ),
    Pair(
        "the block is no layer",
        call("hidden_states, past_key_values", takes=_PAST).replace(
            "mask=None):\n        pass", "past_key_values=None):\n        pass"
        ),
        ("class ToyLayer(GradientCheckpointingLayer)", "class ToyLayer(ToyAttention)"),
        _OTHER,
        [found(LAYER, "none", "no cache")],
    ),
)


def _named(name: str = "past_key_value", given: str = "", init: str = "") -> str:
    """Write a file whose call passes a cache under a name that later releases do not disable."""
    takes = f"hidden_states, {name}=None, use_cache=False"
    loop = f"{given}\nfor layer in self.layers:\n    hidden_states = layer(hidden_states, {name}={name})"
    flag = init or "self.gradient_checkpointing = False"
    return toy(block(base=PROTECTED, takes=takes), model(loop, takes=takes, init=f"{STACK}\n{flag}"))


_LATER = ">=5.17"
_GUARDED = "hidden_states = layer(hidden_states, past_key_value="
_GUARDED += "None if self.gradient_checkpointing and self.training else past_key_value)"
_LIVE = [found(NAME, "safe", code=_GUARDED)]
_RUNNING = """
def run(layer, states, past_key_value):
    return layer(states, past_key_value=past_key_value)
for layer in self.layers:
    hidden_states = run(layer, hidden_states, past_key_value=past_key_value)
"""


def _called(statement: str) -> str:
    """Write a file whose loop has one statement."""
    takes = "hidden_states, past_key_value=None"
    loop = f"for layer in self.layers:\n    {statement}"
    return toy(block(base=PROTECTED, takes=takes), model(loop, takes=takes, init=f"{STACK}\n{FLAG}"))


test_names_of_some_releases = decided(
    Pair(
        "a name that no later release disables",
        _named(),
        ("layer(hidden_states, past_key_value=past", "layer(hidden_states, use_cache=past"),
        _LIVE,
        [silent(NAME, "no live cache")],
        releases=_LATER,
    ),
    Pair(
        "a literal",
        _named(),
        ("past_key_value=past_key_value)", "past_key_value=None)"),
        _LIVE,
        [silent(NAME, "no live cache")],
        releases=_LATER,
    ),
    Pair(
        "an attribute, which the method does not bind",
        _named(),
        ("past_key_value=past_key_value)", "past_key_value=self.past)"),
        _LIVE,
        [found(NAME, "none", "no cache", code="")],
        releases=_LATER,
    ),
    Pair(
        "a guard at the call",
        _named(),
        (
            "past_key_value=past_key_value)",
            "past_key_value=None if self.gradient_checkpointing else past_key_value)",
        ),
        _LIVE,
        [silent(NAME, "no live cache")],
        releases=_LATER,
    ),
    Pair(
        "set to None somewhere, but given by the caller",
        _named(given="if mask:\n    past_key_value = None\n    cache = None"),
        ("past_key_value=past_key_value)", "past_key_value=cache)"),
        _LIVE,
        [silent(NAME, "no live cache")],
        releases=_LATER,
    ),
    Pair(
        "a call in evaluation",
        _called(
            "if not self.training:\n"
            "        hidden_states = layer(hidden_states, past_key_value=past_key_value)"
        ),
        ("not self.training", "not self.scales"),
        [],
        [found(NAME, "safe")],
        releases=_LATER,
    ),
    Pair(
        "a call by a checkpoint function",
        _called(
            "hidden_states = self._gradient_checkpointing_func(\n"
            "        layer.__call__, hidden_states, past_key_value=past_key_value)"
        ),
        ("self._gradient_checkpointing_func(\n                layer.__call__, ", "layer("),
        [],
        [found(NAME, "safe")],
        releases=_LATER,
    ),
    Pair(
        "a guard before the loop",
        _named(given="if self.gradient_checkpointing and self.training:\n    past_key_value = None"),
        ("    past_key_value = None\n", "    past_key_value = self.x\n"),
        [silent(NAME, "no live cache")],
        [found(NAME, "none", "no cache")],
        releases=_LATER,
    ),
    Pair(
        "a guard that sets the flag",
        _named(given="if self.gradient_checkpointing and self.training:\n    use_cache = False"),
        ("    use_cache = False", "    use_caches = False"),
        [silent(NAME, "no live cache")],
        _LIVE,
        releases=_LATER,
    ),
    Pair(
        "a guard that asks for something else",
        _named(given="if self.gradient_checkpointing and self.training:\n    use_cache = False"),
        ("if self.gradient_checkpointing and", "if self.gradient_clipping and"),
        [silent(NAME, "no live cache")],
        _LIVE,
        releases=_LATER,
    ),
    Pair(
        "on the path that does not checkpoint",
        _named().replace(
            "    hidden_states = layer(",
            "    if self.gradient_checkpointing and self.training:\n"
            "                hidden_states = unknown(layer, hidden_states)\n            else:\n"
            "                hidden_states = layer(",
        ),
        ("if self.gradient_checkpointing and", "if self.gradient_clipping and"),
        [silent(NAME, "spared")],
        _LIVE,
        releases=_LATER,
    ),
    Pair(
        "no flag to ask for",
        _named(),
        ("self.gradient_checkpointing = False", "self.gradient_checkpointing = True"),
        _LIVE,
        [found(NAME, "none", "no flag")],
        releases=_LATER,
    ),
    Pair(
        "beside a cache under a name that no release disables",
        _named().replace("past_key_value=None, use", "cache=None, past_key_value=None, use"),
        ("layer(hidden_states, past", "layer(hidden_states, cache=cache, past"),
        _LIVE,
        [found(NAME, "safe", code=_GUARDED.replace("(hidden_states, ", "(hidden_states, cache=cache, "))],
        releases=_LATER,
    ),
    Pair(
        "a name that no release disables",
        _named().replace("past_key_value=None, use", "cache=None, past_key_value=None, use"),
        ("layer(hidden_states, past_key_value=past_key_value)", "layer(hidden_states, cache=cache)"),
        _LIVE,
        [silent(NAME, "disabled by no release")],
        releases=_LATER,
    ),
    Pair(
        "something else than a cache",
        _named(),
        ("past_key_value=past_key_value)", "past_key_value=self.prompt)"),
        _LIVE,
        [found(NAME, "none", "no cache")],
        releases=_LATER,
    ),
    Pair(
        "a walrus has side effects",
        _named(),
        ("past_key_value=past_key_value)", "past_key_value=(x := past_key_value))"),
        _LIVE,
        [found(NAME, "none", "side effects")],
        releases=_LATER,
    ),
    Pair(
        "the block is no layer",
        _named(),
        ("class ToyLayer(GradientCheckpointingLayer)", "class ToyLayer(nn.Module)"),
        _LIVE,
        [found(LAYER, "unsafe", "release"), silent(NAME, "not a layer")],
        releases=_LATER,
    ),
    Pair(
        "in an inner function, whose own call does not reach the base class",
        toy(
            block(base=PROTECTED, takes="hidden_states, past_key_value=None"),
            model(_RUNNING, takes="hidden_states, past_key_value=None", init=f"{STACK}\n{FLAG}"),
        ),
        ("return layer(states, past_key_value=past_key_value)", "return layer(states)"),
        [found(NAME, "none", "no flag")],
        [],
        releases=_LATER,
    ),
    Pair(
        "on another path of those that do not checkpoint",
        _named().replace(
            "    hidden_states = layer(",
            "    if self.gradient_checkpointing and self.training:\n"
            "                hidden_states = unknown(layer, hidden_states)\n            elif use_cache:\n"
            "                hidden_states = layer(",
        ),
        ("if self.gradient_checkpointing and", "if self.gradient_clipping and"),
        [silent(NAME, "spared")],
        _LIVE,
        releases=_LATER,
    ),
)


test_releases = decided(
    Pair(
        "a cache by position under that name",
        _named().replace("past_key_value=past_key_value)", "past_key_value)"),
        ("layer(hidden_states, past_key_value)", "layer(hidden_states, past_key_value=past_key_value)"),
        [found(CACHE, "none", "release")],
        [found(NAME, "safe")],
        releases=_LATER,
    ),
    Pair(
        "a cache by position under that name, in some releases",
        _named().replace("past_key_value=past_key_value)", "past_key_value)"),
        ("layer(hidden_states, past_key_value)", "layer(hidden_states, past_key_value=past_key_value)"),
        [found(CACHE, "unsafe", "release")],
        [found(NAME, "safe")],
        releases=">=4.53",
    ),
)
