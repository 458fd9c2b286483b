"""What is a whole call site, and how it is rewritten: by position, by keyword, in which order."""

from __future__ import annotations

from tests.decisions.outside import (
    CACHE,
    KEYWORD,
    LAYER,
    NESTED,
    Pair,
    decided,
    found,
    silent,
)
from tests.decisions.toy import BRANCH, FLAG, LOOP, PLAIN, PROTECTED, block, call, model, toy

_CALL = "hidden_states = layer("
_BASE = "class ToyLayer(GradientCheckpointingLayer):"


def _written(arguments: str) -> list[str]:
    """Return the finding of an activation by keyword, and what the call becomes."""
    return [found(KEYWORD, "safe", code=f"{_CALL}{arguments})")]


def _refused(*kinds: str, rule: str = KEYWORD) -> list[str]:
    return [found(rule, "none", *kinds)]


_BOTH = "hidden_states, mask=None, encoder_hidden_states=None"
_KEYWORDS = "hidden_states, encoder_hidden_states=mask"


test_order = decided(
    Pair(
        "a literal default is written out",
        call(_KEYWORDS, takes=_BOTH),
        ("mask=None, encoder", "mask=NOTHING, encoder"),
        _written("hidden_states, None, mask"),
        _refused("no literal default"),
    ),
    Pair(
        "a number is a literal default",
        call(_KEYWORDS, takes=_BOTH),
        ("mask=None, encoder", "mask=-1.5, encoder"),
        _written("hidden_states, None, mask"),
        _written("hidden_states, -1.5, mask"),
    ),
    Pair(
        "a string is a literal default",
        call(_KEYWORDS, takes=_BOTH),
        ("mask=None, encoder", "mask='a', encoder"),
        _written("hidden_states, None, mask"),
        _written("hidden_states, 'a', mask"),
    ),
    Pair(
        "what has no default has to be passed",
        call(_KEYWORDS, takes="hidden_states, mask, encoder_hidden_states=None"),
        ("hidden_states, encoder_hidden_states=mask)", "hidden_states, mask=1, encoder_hidden_states=mask)"),
        _refused("no literal default"),
        _written("hidden_states, 1, mask"),
    ),
    Pair(
        "unpacked keywords may hold what comes before",
        call(f"{_KEYWORDS}, **kwargs", takes=f"{_BOTH}, **kwargs", given="kwargs = unknown()"),
        (", **kwargs)\n        return hidden_states\n", ")\n        return hidden_states\n"),
        _refused("among unpacked"),
        _written("hidden_states, None, mask"),
    ),
    Pair(
        "only by keyword",
        call(_KEYWORDS, takes=_BOTH),
        ("mask=None, encoder", "mask=None, *, encoder"),
        _written("hidden_states, None, mask"),
        _refused("keyword only"),
    ),
    Pair(
        "what is behind stays a keyword",
        call("hidden_states=hidden_states, mask=mask"),
        ("mask=mask)", "mask=1)"),
        _written("hidden_states, mask=mask"),
        _written("hidden_states, mask=1"),
    ),
    Pair(
        "a container stays a keyword",
        call("hidden_states=hidden_states, pair=mask", takes="hidden_states, pair=None"),
        ("pair=mask", "pair=(hidden_states, mask)"),
        _written("hidden_states, mask"),
        [
            found(
                KEYWORD,
                "unsafe",
                "container stays",
                code=f"{_CALL}hidden_states, pair=(hidden_states, mask))",
            ),
            found(NESTED, "none", "one by one", code=""),
        ],
    ),
    Pair(
        "arguments change places",
        call("encoder_hidden_states=mask, hidden_states=hidden_states, mask=1", takes=_BOTH),
        ("hidden_states=hidden_states, mask=1", "hidden_states=hidden_states"),
        _written("hidden_states, 1, mask"),
        _written("hidden_states, None, mask"),
    ),
    Pair(
        "calls do not change places",
        call("encoder_hidden_states=self.a(1), hidden_states=hidden_states, mask=self.m[0]", takes=_BOTH),
        ("self.m[0]", "mask"),
        _refused("order of calls"),
        _written("hidden_states, mask, self.a(1)"),
    ),
    Pair(
        "a name that is longer for Python than it is written",
        call("\ufb06ates=hidden_states, mask=mask", takes="states, mask=None").replace(
            "forward(self, states, mask=None):\n        return hidden_states +",
            "forward(self, states, mask=None):\n        hidden_states = states\n        return states +",
        ),
        ("\ufb06ates=hidden_states", "states  # = x\n            = hidden_states"),
        _written("hidden_states, mask=mask"),
        _written("hidden_states, mask=mask"),
    ),
    Pair(
        "an attribute that may be a property",
        call("mask=self.mask, hidden_states=self.states", takes=_BOTH),
        ("self.states", "hidden_states"),
        _refused("order of calls"),
        _written("hidden_states, mask=self.mask"),
    ),
    Pair(
        "a name that an inner function binds",
        call(
            "mask=other(), hidden_states=hidden_states",
            takes=_BOTH,
            given="def other():\n    nonlocal hidden_states\n    return hidden_states",
        ),
        ("nonlocal hidden_states", "nonlocal mask"),
        _refused("order of calls"),
        _written("hidden_states, other()"),
    ),
    Pair(
        "two calls in their order",
        call("hidden_states=hidden_states, mask=self.a(), encoder_hidden_states=self.b()", takes=_BOTH),
        ("mask=self.a(), encoder_hidden_states=self.b()", "encoder_hidden_states=self.b(), mask=self.a()"),
        _written("hidden_states, self.a(), self.b()"),
        _refused("order of calls"),
    ),
    Pair(
        "a walrus does not change places",
        call("encoder_hidden_states=(x := mask), hidden_states=hidden_states, mask=mask", takes=_BOTH),
        ("(x := mask)", "mask"),
        _refused("order of calls"),
        _written("hidden_states, mask, mask"),
    ),
    Pair(
        "no cache comes before an activation",
        call(
            "hidden_states, past_key_values=None, encoder_hidden_states=mask",
            takes="hidden_states, past_key_values=None, encoder_hidden_states=None",
        ),
        ("layer(hidden_states, past_key_values=None", "layer(hidden_states, past_key_values=mask"),
        _written("hidden_states, None, mask"),
        [found(KEYWORD, "unsafe", "reordered")],
    ),
    Pair(
        "a call in evaluation stays as it is",
        toy(
            block(),
            model(
                "if not self.training:\n    for layer in self.layers:\n"
                f"        {_CALL}hidden_states=hidden_states)\n"
                f"for layer in self.layers:\n    {_CALL}hidden_states)\n"
            ),
        ),
        ("not self.training", "not self.scales"),
        [found(LAYER, "safe", code=_BASE)],
        [found(LAYER, "safe", code=f"{_BASE} | {_CALL}hidden_states)")],
    ),
    Pair(
        "what may be a tensor moves along",
        call("hidden_states=hidden_states, x=mask.shape", takes="hidden_states, x=None"),
        ("x=None):", "x: int = None):"),
        _written("hidden_states, mask.shape"),
        _written("hidden_states, x=mask.shape"),
    ),
)


def _positional(
    arguments: str, takes: str = "hidden_states, past_key_values=None, mask=None", **more: str
) -> str:
    loop = f"for layer in self.layers:\n    {_CALL}{arguments})"
    own = "hidden_states, past_key_values=None, mask=None, use_cache=None"
    return toy(block(base=PROTECTED, takes=takes), model(loop, takes=own, **more))


_LONG = "m" * 84


def _moved(arguments: str) -> list[str]:
    return [found(CACHE, "safe", code=f"{_CALL}{arguments})")]


test_caches = decided(
    Pair(
        "what is behind a cache goes by keyword, too",
        _positional("hidden_states, past_key_values, mask"),
        ("past_key_values, mask)", "past_key_values)"),
        _moved("hidden_states, past_key_values=past_key_values, mask=mask"),
        _moved("hidden_states, past_key_values=past_key_values"),
    ),
    Pair(
        "what is in front stays",
        _positional("hidden_states, mask, past_key_values", "hidden_states, mask=None, past_key_values=None"),
        ("mask, past_key_values)", "1, past_key_values)"),
        _moved("hidden_states, mask, past_key_values=past_key_values"),
        _moved("hidden_states, 1, past_key_values=past_key_values"),
    ),
    Pair(
        "two caches",
        _positional(
            "hidden_states, past_key_values, use_cache", "hidden_states, past_key_values=None, use_cache=None"
        ),
        ("past_key_values, use_cache)", "past_key_values, None)"),
        _moved("hidden_states, past_key_values=past_key_values, use_cache=use_cache"),
        _moved("hidden_states, past_key_values=past_key_values, use_cache=None"),
    ),
    Pair(
        "what is written into the rows above makes the last one no longer",
        _positional(
            f"hidden_states, past_key_values, use_cache,\n        mask, {_LONG}",
            "hidden_states, past_key_values=None, use_cache=None, mask=None, scale: float = 1",
        ),
        ("mask, m", "mask, mmmmmm"),
        _moved(
            f"hidden_states, past_key_values=past_key_values, use_cache=use_cache, | mask=mask, scale={_LONG}"
        ),
        _moved(
            " | hidden_states, | past_key_values=past_key_values, | use_cache=use_cache, | mask=mask, | "
            f"scale=mmmmm{_LONG} | "
        ),
    ),
    Pair(
        "only by position",
        _positional("hidden_states, past_key_values"),
        (
            "past_key_values=None, mask=None):\n        return",
            "past_key_values=None, /, mask=None):\n        return",
        ),
        _moved("hidden_states, past_key_values=past_key_values"),
        _refused("positional only", rule=CACHE),
    ),
    Pair(
        "an activation behind the cache",
        _positional("hidden_states, past_key_values, mask", "hidden_states, past_key_values=None, mask=None"),
        (
            "past_key_values=None, mask=None):\n        return hidden_states +",
            "past_key_values=None, encoder_hidden_states=None):\n        return hidden_states +",
        ),
        [found(CACHE, "safe")],
        [found(CACHE, "unsafe", "reordered")],
    ),
    Pair(
        "what may be an activation, behind the cache of a block that becomes a layer",
        _positional("hidden_states, past_key_values, mask").replace(
            "ToyLayer(GradientCheckpointingLayer)", "ToyLayer(nn.Module)"
        ),
        (
            "past_key_values=None, mask=None):\n        return hidden_states +",
            "past_key_values=None, x=None):\n        return hidden_states +",
        ),
        [found(LAYER, "safe")],
        [found(LAYER, "unsafe", "uncertain keyword")],
    ),
    Pair(
        "names that arrive elsewhere",
        _positional("hidden_states, past_key_values, mask"),
        ("layer(hidden_states, past_key_values, mask)", "layer(mask, past_key_values, hidden_states)"),
        [found(CACHE, "safe")],
        _refused("shifted", rule=CACHE),
    ),
    Pair(
        "a name of another thing",
        _positional("mask, past_key_values", "hidden_states, past_key_values=None, x=None"),
        ("past_key_values=None, x=None", "past_key_values=None, mask=None"),
        [found(CACHE, "safe")],
        _refused("shifted", rule=CACHE),
    ),
    Pair(
        "a name that arrives where it belongs, too",
        _positional("mask, past_key_values, mask=mask"),
        ("past_key_values, mask=mask)", "past_key_values, mask=1)"),
        [found(CACHE, "safe")],
        _refused("shifted", rule=CACHE),
    ),
    Pair(
        "an unpacked list",
        _positional("hidden_states, past_key_values"),
        ("layer(hidden_states, past", "layer(*hidden_states, past"),
        [found(CACHE, "safe")],
        [silent(CACHE, "not matched")],
    ),
    Pair(
        "an unpacked tuple that is written down",
        _positional("*(hidden_states, past_key_values)"),
        ("*(hidden_states, past_key_values)", "hidden_states, past_key_values"),
        _refused("unpacked", rule=CACHE),
        [found(CACHE, "safe")],
    ),
    Pair(
        "too many arguments",
        _positional("hidden_states, past_key_values, 1"),
        ("past_key_values, 1)", "past_key_values, 1, 2)"),
        [found(CACHE, "safe")],
        [silent(CACHE, "not matched")],
    ),
    Pair(
        "one argument twice",
        _positional("hidden_states, past_key_values, mask=1"),
        ("past_key_values, mask=1", "past_key_values, hidden_states=1"),
        [found(CACHE, "safe")],
        [silent(CACHE, "not matched")],
    ),
    Pair(
        "a name that is not taken",
        _positional("hidden_states, past_key_values, mask=1"),
        ("past_key_values, mask=1", "past_key_values, task=1"),
        [found(CACHE, "safe")],
        [silent(CACHE, "not matched")],
    ),
    Pair(
        "a name that is collected",
        _positional("hidden_states, past_key_values, task=1"),
        (
            "past_key_values=None, mask=None):\n        return",
            "past_key_values=None, mask=None, **kwargs):\n        return",
        ),
        [silent(CACHE, "not matched")],
        [found(CACHE, "safe")],
    ),
)


_BY_POSITION = "hidden_states, past_key_values"


def _two(first: str, second: str, loop: str = BRANCH, base: str = PLAIN) -> str:
    """Write a file with a call that runs two blocks, which take other parameters."""
    loop = loop.replace("(hidden_states)", f"({_BY_POSITION})").replace("hidden_states, mask", _BY_POSITION)
    init = f"self.layers = nn.ModuleList([ToyLayer(config), ToyOther(config)])\n{FLAG}"
    blocks = (block(takes=first), block(name="ToyOther", takes=second, base=base))
    return toy(*blocks, model(loop, init=init, takes=f"{_BY_POSITION}=None"))


def _wrong_for(*blocks: str) -> list[str]:
    """Return that blocks would become layers, and that a call of both would still be wrong for one."""
    return [found(LAYER, "unsafe", "other orders", of=name) for name in blocks]


_PAST = f"{_BY_POSITION}=None"
_MASK = "hidden_states, mask=None"
_ALONE = ("ToyOther(config)", "ToyLayer(config)")


test_blocks_of_one_call = decided(
    Pair(
        "only the first of two blocks gets a cache",
        _two(_PAST, _MASK),
        _ALONE,
        _wrong_for("ToyLayer", "ToyOther"),
        [found(LAYER, "safe")],
    ),
    Pair(
        "only the second of two blocks gets a cache",
        _two(_MASK, _PAST),
        _ALONE,
        _wrong_for("ToyLayer", "ToyOther"),
        [found(LAYER, "safe")],
    ),
    Pair(
        "the other block is a layer and gets no cache",
        _two(_PAST, _MASK, LOOP, PROTECTED),
        _ALONE,
        _wrong_for("ToyLayer"),
        [found(LAYER, "safe")],
    ),
)
