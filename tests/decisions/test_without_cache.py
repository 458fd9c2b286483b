"""What a block, and the code that runs it, come to when checkpointing takes the cache away."""

from __future__ import annotations

from tests.decisions.outside import CACHE, LAYER, Pair, decided, found
from tests.decisions.toy import NUMBERED, PROTECTED, block, model, toy

_PAST = "hidden_states, past_key_values=None"
_IMPORTS = "from transformers.cache_utils import DynamicCache\n"
_UPDATED = (
    "key = hidden_states[:, None]\nif past_key_values is not None:\n"
    "    key, value = past_key_values.update(key, key, self.index)\n"
)
_ADDED = (
    "if past_key_values is not None:\n"
    "    key, _ = past_key_values.update(key[:, None], key[:, None], self.index)\n"
    "    key = key[:, 0]\n"
)
_SAFE = [found(CACHE, "safe")]
_OTHERWISE = [found(CACHE, "unsafe", "without its cache")]


def _layer(statements: str) -> str:
    """Write a file whose layer is run with a cache, and has an attention after these statements."""
    body = f"{statements}\nreturn hidden_states + self.attention(hidden_states)"
    loop = (
        "cache = DynamicCache()\nfor layer in self.layers:\n    hidden_states = layer(hidden_states, cache)\n"
    )
    init = "self.index = index\nself.scale = nn.Linear(4, 4)"
    return toy(
        block(body, base=PROTECTED, takes=_PAST, init=init), model(loop, init=NUMBERED), imports=_IMPORTS
    )


def _differs(decision: str, statements: str, change: tuple[str, str]) -> Pair:
    """Return the pair of a layer that is the same without its cache, and of one that is not."""
    return Pair(decision, _layer(statements), change, _SAFE, _OTHERWISE)


def _owner(after: str, change: tuple[str, str], before: str = "cache = DynamicCache()") -> Pair:
    """Return the pair of a model that does the same without caches in its layers."""
    loop = f"{before}\nfor layer in self.layers:\n    hidden_states = layer(hidden_states, cache)\n{after}"
    body = f"{_UPDATED}return hidden_states + self.attention(hidden_states)"
    layer = block(body, base=PROTECTED, takes=_PAST, init="self.index = index")
    return Pair(
        f"{after}, {change[1]}",
        toy(layer, model(loop, init=NUMBERED), imports=_IMPORTS),
        change,
        _SAFE,
        _OTHERWISE,
    )


test_layers = decided(
    _differs(
        "a factor",
        "hidden_states = hidden_states * (2 if past_key_values is None else 2)",
        ("else 2", "else 3"),
    ),
    _differs(
        "a dimension that is added for the cache, and taken away again",
        f"key = hidden_states\n{_ADDED}hidden_states = hidden_states + key",
        ("key = key[:, 0]", "key = key[:, :, 0]"),
    ),
    _differs(
        "the length of an empty cache",
        "start = 0 if past_key_values is None else past_key_values.get_seq_length(self.index)\n"
        "hidden_states = hidden_states + start",
        ("start = 0", "start = 1"),
    ),
    _differs(
        "the length of the cache of another layer",
        "start = 0 if past_key_values is None else past_key_values.get_seq_length(self.index)\n"
        "hidden_states = hidden_states + start\n"
        f"{_UPDATED}",
        ("get_seq_length(self.index)", "get_seq_length(0)"),
    ),
    _differs(
        "what an empty cache gives back",
        _UPDATED + "hidden_states = hidden_states + key[:, 0]",
        ("update(key, key, ", "update(key.sin(), key, "),
    ),
    _differs(
        "the cache of one layer for all",
        _UPDATED + "hidden_states = hidden_states + key[:, 0]",
        ("self.index)", "0)"),
    ),
    _differs(
        "what a cache with something gives back",
        _UPDATED
        + "    past_key_values.get_seq_length(self.index)\nhidden_states = hidden_states + key[:, 0]",
        (
            "past_key_values.get_seq_length(self.index)",
            "key, value = past_key_values.update(key, key, self.index)",
        ),
    ),
    _differs(
        "the first keys",
        _UPDATED + "    key = key[:, :, : hidden_states.shape[1]]\nhidden_states = hidden_states + key[:, 0]",
        (": hidden_states.shape[1]", "1:"),
    ),
    _differs(
        "which module is run",
        "part = self.scale if past_key_values is None else self.scale\nhidden_states = part(hidden_states)",
        ("else self.scale", "else self.attention"),
    ),
    _differs(
        "an early return",
        "if hidden_states is None:\n    return hidden_states",
        ("if hidden_states", "if past_key_values"),
    ),
    _differs(
        "random numbers",
        "if past_key_values is not None:\n    other = hidden_states.sin()",
        ("hidden_states.sin()", "nn.functional.dropout(hidden_states)"),
    ),
    _differs(
        "how often a loop turns",
        "for _ in range(2 if past_key_values is None else 2):\n    hidden_states = hidden_states.sin()",
        ("else 2", "else 3"),
    ),
    _differs(
        "the mean of a list",
        "parts = [hidden_states]\nif past_key_values is not None:\n    parts = parts\n"
        "hidden_states = torch.stack(parts).sum(0)",
        ("parts = parts", "parts.append(hidden_states)"),
    ),
    _differs(
        "a default of a function",
        "scaled = lambda x, past=hidden_states: x if past is None else x * 2\n"
        "hidden_states = scaled(hidden_states)",
        ("past=hidden_states", "past=past_key_values"),
    ),
    _differs(
        "what sees all names",
        "past = [hidden_states][0]\nhidden_states = hidden_states if past is None else hidden_states.sin()",
        ("[hidden_states][0]", "locals()['past_key_values']"),
    ),
)


test_what_runs_layers = decided(
    _owner("length = cache", ("length = cache", "hidden_states = hidden_states * cache.get_seq_length()")),
    _owner("keys = cache", ("keys = cache", "for each in cache or ():\n            hidden_states = each")),
    Pair(
        "a cache that is disabled while the model checkpoints",
        toy(
            block(
                "hidden_states = hidden_states * (1.5 if past_key_values is None else 1)\n"
                "return hidden_states + self.attention(hidden_states)",
                takes=_PAST,
            ),
            model(
                "cache = None if self.gradient_checkpointing and self.training else DynamicCache()\n"
                "for layer in self.layers:\n"
                "    hidden_states = layer(hidden_states, past_key_values=cache)\n",
                init="self.gradient_checkpointing = False\n"
                "self.layers = nn.ModuleList([ToyLayer(config) for _ in range(config.depth)])",
            ),
            imports=_IMPORTS,
        ),
        ("and self.training else", "and not self.training else"),
        [found(LAYER, "safe")],
        [found(LAYER, "unsafe", "without its cache")],
    ),
)
