"""What is a cache: by the name it is passed under, by where it comes from, and by who needs it."""

from __future__ import annotations

from tests.decisions.outside import (
    CACHE,
    LAYER,
    Pair,
    decided,
    found,
    silent,
)
from tests.decisions.toy import FLAG, PROTECTED, STACK, block, model, toy

_PAST = "hidden_states, past_key_values=None"
_OTHER = [found(CACHE, "none", "no cache")]
_NO_CACHE = [found(LAYER, "none", "no cache")]
_FREE = [found(LAYER, "safe")]


def _made(statements: str, **more: str) -> str:
    """Write a file that passes by position what a model's own statements make."""
    loop = f"{statements}\nfor layer in self.layers:\n    hidden_states = layer(hidden_states, cache)\n"
    takes = "hidden_states, past_key_values=None, x=None"
    imports = "from transformers.cache_utils import DynamicCache\n"
    return toy(block(base=PROTECTED, takes=_PAST), model(loop, takes=takes, **more), imports=imports)


def _origin(decision: str, statements: str, change: tuple[str, str], **more: str) -> Pair:
    """Return the pair of a value that can only be a cache, and of one that may be something else."""
    return Pair(decision, _made(statements, **more), change, [found(CACHE, "safe")], _OTHER)


def _unpacking(mapping: str, statements: str = "pass") -> str:
    """Write a file that unpacks a dict, which may be a model's own options, in the call of a plain block."""
    loop = f"{statements}\nfor layer in self.layers:\n    hidden_states = layer(hidden_states, **{mapping})"
    takes = "hidden_states, x=None, **options"
    return toy(block(takes=f"{_PAST}, **options"), model(loop, takes=takes))


def _head(given: str) -> str:
    """Write a model that runs the other one."""
    call = f"hidden_states = self.model(hidden_states, {given})"
    return model(call, name="ToyHead", init="self.model = ToyModel(config)")


_LEARNING = """
class PrefixCache(nn.Module):
    def __init__(self):
        super().__init__()
        self.keys = torch.zeros(4)

    def update(self, keys):
        return self.keys + keys
"""


test_origins = decided(
    _origin("an argument of the model", "cache = past_key_values", ("cache = past_key_values", "cache = x")),
    _origin("None", "cache = None if x else past_key_values", ("None if x", "self.x if x")),
    _origin("a class of caches", "cache = DynamicCache()", ("DynamicCache()", "DynamicPrompt()")),
    _origin(
        "a cache made of the configuration",
        "cache = DynamicCache(self.config)",
        ("self.config", "self.prompt(x)"),
    ),
    _origin(
        "a cache made of what requires grad",
        "cache = DynamicCache(4)",
        ("Cache(4)", "Cache(self.up(x))"),
        init=f"{STACK}\nself.up = nn.Linear(4, 4)",
    ),
    _origin(
        "converted from tuples",
        "cache = DynamicCache.from_legacy_cache(past_key_values)",
        ("from_legacy_cache(past_key_values)", "from_prompt(past_key_values)"),
    ),
    _origin(
        "converted to tuples",
        "cache = past_key_values.to_legacy_cache()",
        (".to_legacy_cache()", ".to_prompt()"),
    ),
    _origin("an item of a cache", "cache = past_key_values[0]", ("past_key_values[0]", "x[0]")),
    _origin(
        "an attribute of a cache",
        "cache = past_key_values.self_attention_cache",
        ("= past_key_values.", "= x."),
    ),
    _origin("a list of nothing", "cache = [None] * 2", ("[None] * 2", "[x] * 2")),
    _origin(
        "a tuple of caches", "cache = tuple([past_key_values])", ("tuple([past_key_values])", "tuple([x])")
    ),
    _origin("what `or` leaves", "cache = past_key_values or DynamicCache()", ("or DynamicCache()", "or x")),
    _origin(
        "the default of an argument",
        "cache = past_key_values",
        ("past_key_values=None, x=None):", "past_key_values=PROMPT, x=None):"),
    ),
    _origin("the left of `or`", "cache = past_key_values or DynamicCache()", ("past_key_values or", "x or")),
    _origin(
        "what `and` leaves",
        "cache = x and past_key_values",
        ("x and past_key_values", "past_key_values and x"),
    ),
    _origin(
        "either side",
        "cache = past_key_values if x else DynamicCache()",
        ("else DynamicCache()", "else self.memory"),
    ),
    _origin(
        "the test is no side",
        "cache = past_key_values if x else None",
        ("past_key_values if x", "x if past_key_values"),
    ),
    _origin(
        "assigned under a condition",
        "cache = past_key_values\nif x:\n    y = self.memory",
        ("    y = self", "    cache = self"),
    ),
    _origin(
        "assigned anew",
        "cache = self.memory\ncache = past_key_values",
        ("cache = past_key_values", "other = past_key_values"),
    ),
    _origin("filled", "cache = []\ncache += [None]", ("[None]", "[x]")),
    _origin("filled by an item", "cache = [None]\ncache[0] = None", ("cache[0] = None", "cache[0] = x")),
    _origin("handed to what may fill it", "cache = []\nlen(cache)", ("len(cache)", "self.fill(cache, x)")),
    _origin(
        "a name that a function has for something else",
        "cache = past_key_values\nrun = lambda cache=None: cache or x\nrun()",
        ("lambda cache=None: cache or x", "lambda: cache.append(x)"),
    ),
    _origin(
        "asked for its length",
        "cache = past_key_values\ncache.get_seq_length()",
        ("cache.get_seq_length()", "cache.update(x)"),
    ),
    _origin(
        "asked for what it can use",
        "cache = past_key_values\ncache.get_usable_length(x)",
        ("get_usable_length(x)", "get_used(x)"),
    ),
    _origin(
        "what a loop takes out",
        "for cache in past_key_values:\n    pass",
        ("in past_key_values", "in self.memories"),
    ),
    _origin(
        "what a loop counts",
        "for i, cache in enumerate(past_key_values):\n    pass",
        ("i, cache in", "cache, i in"),
    ),
    _origin(
        "handed to a method that fills it",
        "cache = past_key_values\ny = self.look(cache)",
        ("return past", "past.append(self.x)"),
        more="def look(self, past):\n    return past\n",
    ),
    Pair(
        "options, in a header with a comment",
        toy(
            block(base=PROTECTED, takes=_PAST),
            model(
                "for layer in self.layers:\n"
                "    hidden_states = layer(hidden_states, options.get('past_key_values'))",
                takes="hidden_states,  # and more\n            **options",
            ),
        ),
        ("options.get(", "self.options.get("),
        [found(CACHE, "safe")],
        _OTHER,
    ),
    Pair(
        "what a caller passes",
        _made("cache = past_key_values") + _head("past_key_values=None"),
        (
            "self.model(hidden_states, past_key_values=None)",
            "self.model(hidden_states, past_key_values=self.prompt)",
        ),
        [found(CACHE, "safe")],
        _OTHER,
    ),
    Pair(
        "a class of caches that learns",
        f"{_made('cache = PrefixCache()')}\n{_LEARNING}",
        ("self.keys = torch", "self.keys = nn.Parameter(1) + torch"),
        [found(CACHE, "safe")],
        _OTHER,
    ),
    Pair(
        "what is put into options that a call unpacks",
        _unpacking("options", "options.update(scale=1)"),
        ("update(scale=1)", "update(x, scale=1)"),
        _FREE,
        _NO_CACHE,
    ),
    _origin(
        "handed to a lambda",
        "cache = []\nfill = lambda y: y.append(x)\nlen(cache)",
        ("len(cache)", "fill(cache)"),
    ),
    Pair(
        "what a caller passes where there is a default",
        _made("cache = past_key_values").replace(
            "past_key_values=None, x=None):", "past_key_values=(), x=None):"
        )
        + _head("past_key_values=None"),
        ("(hidden_states, past_key_values=None)", "(hidden_states, past_key_values=self.prompt)"),
        [found(CACHE, "safe")],
        _OTHER,
    ),
    Pair(
        "what a caller unpacks",
        _made("cache = past_key_values") + _head("None"),
        ("self.model(hidden_states, None)", "self.model(hidden_states, *x)"),
        [found(CACHE, "safe")],
        _OTHER,
    ),
    Pair(
        "what a caller passes to options",
        _unpacking("options") + _head("past_key_values=None"),
        ("(hidden_states, past_key_values=None)", "(hidden_states, past_key_values=self.prompt)"),
        _FREE,
        _NO_CACHE,
    ),
    Pair(
        "what a caller passes to options under another name",
        _unpacking("made", "made = {'past_' + k: v for k, v in options.items()}") + _head("key_values=None"),
        ("(hidden_states, key_values=None)", "(hidden_states, key_values=self.prompt)"),
        _FREE,
        _NO_CACHE,
    ),
    Pair(
        "options under a name that is not written down",
        _unpacking("made", "made = {'scale': x}"),
        ("'scale': x", "x: x"),
        _FREE,
        _NO_CACHE,
    ),
    _origin("its items are filled", "cache = [[]]\nfor y in cache:\n    len(y)", ("len(y)", "y.append(x)")),
    _origin(
        "filled by another name", "cache = []\nother = cache\nlen(other)", ("len(other)", "other.append(x)")
    ),
    _origin(
        "a cache made of the configuration and more",
        "cache = DynamicCache(self.config, None)",
        ("None)\n", "self.up(x))\n"),
        init=f"{STACK}\nself.up = nn.Linear(4, 4)",
    ),
    Pair(
        "an argument whose name only begins like that of a cache",
        _made("pass").replace("x=None):\n        pass", "cache=None, cache_prompt=None):\n        pass"),
        ("layer(hidden_states, cache)", "layer(hidden_states, cache_prompt)"),
        [found(CACHE, "safe")],
        _OTHER,
    ),
    Pair(
        "options that are made of others",
        _unpacking("made", "made = {**options}"),
        ("{**options}", "{**self.options}"),
        _FREE,
        _NO_CACHE,
    ),
    Pair(
        "options under the names of others",
        _unpacking("made", "made = {k: v for k, v in options.items()}"),
        ("k: v for", "k: x for"),
        _FREE,
        _NO_CACHE,
    ),
    Pair(
        "a call of a variable that may be the model or something else",
        _made("cache = past_key_values")
        + model(
            "run = self.model if x is None else self.other\nhidden_states = run(hidden_states, x)",
            name="ToyHead",
            takes="hidden_states, x=None, past_key_values=None",
            init="self.model = ToyModel(config)\nself.other = ToyAttention(config)",
        ),
        ("run(hidden_states, x)", "run(hidden_states, past_key_values)"),
        _OTHER,
        [found(CACHE, "safe")],
    ),
    Pair(
        "one of two dicts is not known",
        _unpacking("made", "made = {**x}\nif x:\n    made = {**options}"),
        ("{**x}", "{**options}"),
        _NO_CACHE,
        _FREE,
    ),
    Pair(
        "a comprehension whose second loop gives the values",
        _unpacking("made", "made = {k: v for k, v in options.items()}"),
        ("options.items()}", "options.items() for v in x}"),
        _FREE,
        _NO_CACHE,
    ),
    Pair(
        "an inner function's own parameter is named like the options around it",
        toy(
            block(takes=f"{_PAST}, **options"),
            model(
                "def run(layer, states, options):\n    return layer(states, **options)\n"
                "for layer in self.layers:\n    hidden_states = run(layer, hidden_states, x)",
                takes="hidden_states, x=None, **options",
            ),
        ),
        ("states, options)", "states, other)"),
        _NO_CACHE,
        _FREE,
    ),
    Pair(
        "one of two classes of caches learns",
        _made("MyCache = DynamicCache\nif x:\n    MyCache = PrefixCache\ncache = MyCache()")
        + _LEARNING.replace("torch.zeros(4)", "nn.Parameter(torch.zeros(4))"),
        ("    MyCache = PrefixCache", "    OtherCache = PrefixCache"),
        _OTHER,
        [found(CACHE, "safe")],
    ),
)


def _needing(body: str, **more: str) -> str:
    """Write a file with a block that is no layer, and does something with its cache."""
    takes = "hidden_states, past_key_values=None, use_cache=False"
    loop = (
        "for layer in self.layers:\n    hidden_states = layer(hidden_states, past_key_values=past_key_values)"
    )
    text = block(f"{body}\nreturn hidden_states + self.attention(hidden_states)", takes=takes)
    return toy(text, model(loop, takes=takes, **more))


_NEEDED = [silent(LAYER, "needs its cache")]


def _needed(decision: str, statements: str, change: tuple[str, str]) -> Pair:
    """Return the pair of statements that need the cache, and of some that do not."""
    return Pair(decision, _needing(statements), change, _NEEDED, _FREE)


test_needed_caches = decided(
    _needed("unpacked", "k, v = past_key_values", ("k, v =", "k =")),
    _needed("an item is read", "k = past_key_values[0]", ("past_key_values[0]", "hidden_states[0]")),
    _needed(
        "an item is read if there is a cache",
        "k = past_key_values[0]",
        ("k = past_key_values[0]", "k = past_key_values[0] if past_key_values else 0"),
    ),
    _needed(
        "an attribute is read if there is a cache",
        "k = past_key_values.stop",
        ("past_key_values.stop", "past_key_values.stop if past_key_values else 0"),
    ),
    _needed(
        "an attribute is read",
        "k = past_key_values.stop",
        ("past_key_values.stop", "past_key_values and past_key_values.stop"),
    ),
    _needed(
        "read where the parameter was replaced",
        "k = past_key_values.stop",
        ("k = past_key_values", "past_key_values = slice(1)\n        k = past_key_values"),
    ),
    _needed("an unpacking under `if`", "k, v = past_key_values", ("k, v", "if past_key_values: k, v")),
)


_FILLED = [silent(LAYER, "fills its cache")]


test_caches_that_a_model_makes = decided(
    Pair(
        "a cache is made whatever is asked for",
        _needing("pass").replace(
            "        for layer", "        past_key_values = DynamicCache()\n        for layer"
        ),
        ("= DynamicCache()", "= DynamicCache() if use_cache else None"),
        _FILLED,
        _FREE,
    ),
    Pair(
        "a cache is made if there is none",
        _needing("pass").replace(
            "        for layer",
            "        past_key_values = past_key_values or DynamicCache()\n        for layer",
        ),
        ("past_key_values or Dyn", "use_cache and Dyn"),
        _FILLED,
        _FREE,
    ),
    Pair(
        "a cache is made under a condition",
        _needing("pass").replace(
            "        for layer",
            "        if past_key_values is None:\n            past_key_values = DynamicCache()\n"
            "        for layer",
        ),
        ("if past_key_values is None:", "if past_key_values is None and use_cache:"),
        _FILLED,
        _FREE,
    ),
    Pair(
        "a cache is made outside of training",
        _needing("pass").replace(
            "        for layer",
            "        if past_key_values is None:\n            past_key_values = DynamicCache()\n"
            "        for layer",
        ),
        ("if past_key_values is None:", "if past_key_values is None and not self.training:"),
        _FILLED,
        _FREE,
    ),
    Pair(
        "another variable is filled",
        _needing("pass").replace(
            "        for layer", "        past_key_values = DynamicCache()\n        for layer"
        ),
        ("        past_key_values = DynamicCache()", "        other = DynamicCache()"),
        _FILLED,
        _FREE,
    ),
)


_SINCE = ">=4.52"
"""With the first of these releases, a cache stays on whatever its name."""
_ON = [found(LAYER, "unsafe", "release")]


def _on(
    decision: str, statements: str, change: tuple[str, str], value: str = "cache", wrong: str = ""
) -> Pair:
    """Return the pair of a cache that may be on while checkpointing, and of one that is off."""
    loop = f"for layer in self.layers:\n    hidden_states = layer(hidden_states, past_key_values={value})"
    takes = "hidden_states, use_cache=None, past_key_values=None"
    imports = "from transformers.cache_utils import DynamicCache\n"
    text = model(f"{statements}\n{loop}", takes=takes, init=f"{STACK}\n{FLAG}")
    code = toy(block(takes=_PAST), text, imports=imports)
    sides = (_FREE, _ON) if wrong else (_ON, _FREE)
    return Pair(decision, code, change, *sides, releases=_SINCE, wrong=wrong)


_OFF = "cache = past_key_values\nif self.gradient_checkpointing:\n    cache = None"
_BRANCH = "        if self.gradient_checkpointing:\n            cache = None\n"
_CALLED = """\
        for layer in self.layers:
            hidden_states = layer(hidden_states, past_key_values=cache)
"""


test_caches_that_stay_on = decided(
    _on(
        "None at first",
        "cache = None\nif use_cache:\n    cache = DynamicCache()",
        ("    cache = DynamicCache()", "    cache = None"),
    ),
    _on(
        "None for a while, and then what a loop takes out",
        "cache = None\nfor cache in past_key_values or ():\n    pass",
        ("for cache in", "for other in"),
    ),
    _on(
        "an argument that is off under another condition",
        "if use_cache:\n    past_key_values = None",
        ("if use_cache:", "if self.gradient_checkpointing:"),
        "past_key_values",
    ),
    _on(
        "an item",
        _OFF.replace("    cache", "    other"),
        ("    other = None", "    cache = None"),
        "cache[0]",
    ),
    _on(
        "off under another condition beside the flag",
        "cache = past_key_values\nif cache:\n    x = self.gradient_checkpointing\n    if use_cache:\n"
        "        cache = None",
        ("if use_cache:", "if self.gradient_checkpointing:"),
    ),
    _on(
        "the other side of the flag",
        "if self.gradient_checkpointing:\n    cache = past_key_values\nelse:\n    cache = None",
        (
            "cache = past_key_values\n        else:\n            cache = None",
            "cache = None\n        else:\n            cache = past_key_values",
        ),
    ),
    _on(
        "a value under a condition",
        "cache = past_key_values",
        ("if use_cache", "if not self.gradient_checkpointing"),
        "cache if use_cache else None",
    ),
    _on(
        "the flag of a branch that disables something else",
        _OFF.replace("    cache = None", "    other = None"),
        ("    other = None", "    use_cache = False"),
    ),
    _on(
        "off without the flag only",
        _OFF,
        ("if self.gradient_checkpointing:", "if not self.gradient_checkpointing:"),
        wrong="A test of the flag counts as one that it is set, although there is a `not`.",
    ),
    _on(
        "off behind the call only",
        _OFF,
        (f"{_BRANCH}{_CALLED}", f"{_CALLED}{_BRANCH}"),
        wrong="Where the statement stands is not looked at.",
    ),
    _on(
        "what is asked for is a cache",
        _OFF.replace("    cache = None", "    use_cache = False"),
        ("use_cache = False", "use_cache = True"),
        wrong="Any constant counts as one that disables caches, True as well.",
    ),
)
