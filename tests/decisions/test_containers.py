"""What a container of activations is, and where the calls are that pass one, or anything."""

from __future__ import annotations

from tests.decisions.outside import (
    CACHE,
    NESTED,
    Pair,
    decided,
    found,
    silent,
)
from tests.decisions.toy import PROTECTED, STACK, block, model, toy

_CALL = "hidden_states = layer("


def _caught(loop: str, **more: str) -> str:
    takes = "hidden_states, past_key_values=None"
    return toy(
        block(base=PROTECTED, takes=takes),
        model(loop, takes="hidden_states, past_key_values=None, mask=None", **more),
    )


_FOUND = [found(CACHE, "safe")]
_POSITIONAL = "layer(hidden_states, past_key_values)"


def _caught_before(decision: str, code: str, change: tuple[str, str], **more: str) -> Pair:
    """Return the pair of what catches a container, and of what does not."""
    return Pair(decision, _caught(code, **more), change, _FOUND, [])


test_where_calls_are = decided(
    _caught_before(
        "a direct call of `forward`",
        "for layer in self.layers:\n    hidden_states = layer.forward(hidden_states, past_key_values)",
        ("= layer.forward(", "= layer.backward("),
    ),
    _caught_before(
        "another method",
        f"for layer in self.layers:\n    hidden_states = {_POSITIONAL}",
        ("= layer(", "= layer.train("),
    ),
    Pair(
        "a single layer",
        _caught(
            "hidden_states = self.one.forward(hidden_states, past_key_values)",
            init="self.one = ToyLayer(config)",
        ),
        ("self.one.forward(", "self.one("),
        _FOUND,
        _FOUND,
        wrong="what a single layer returns is taken for the attribute that holds it",
    ),
    _caught_before(
        "a single part that is no layer",
        "hidden_states = self.one.forward(hidden_states, past_key_values)",
        ("self.one = ToyLayer", "self.one = ToyAttention"),
        init="self.one = ToyLayer(config)",
    ),
    _caught_before(
        "in a comprehension",
        "x = [layer(hidden_states, past_key_values) for layer in self.layers]",
        ("in self.layers]", "in self.config]"),
    ),
    _caught_before(
        "in a test",
        "if self.layers[0](hidden_states, past_key_values):\n    pass",
        ("self.layers[0](", "self.config[0]("),
    ),
    _caught_before(
        "in a function of the method",
        f"def run(layer):\n    return {_POSITIONAL}\nfor layer in self.layers:\n"
        "    hidden_states = run(layer)",
        ("= run(layer)", "= run(mask)"),
    ),
    Pair(
        "through a checkpoint function",
        _caught(
            "for layer in self.layers:\n"
            "    hidden_states = self._gradient_checkpointing_func(layer.__call__, hidden_states, "
            "past_key_values)"
        ),
        ("self._gradient_checkpointing_func(layer.__call__, ", "layer("),
        [silent(CACHE, "checkpointed")],
        _FOUND,
        at="hidden_states, past_key_values)",
    ),
    Pair(
        "by `partial`",
        _caught(
            "run = partial(self.layers[0], hidden_states)\n"
            "hidden_states = self.layers[0](hidden_states, past_key_values)"
        ).replace("import nn\n", "import nn\nfrom functools import partial\n", 1),
        ("self.layers[0](hidden_states, past", "mask(hidden_states, past"),
        _FOUND,
        [],
    ),
    Pair(
        "in `__init__`",
        _caught(f"for layer in self.layers:\n    hidden_states = {_POSITIONAL}").replace(
            "    def forward(self, hidden_states, past_key_values=None, mask",
            "    def __init__(self, hidden_states, past_key_values=None, mask",
        ),
        (
            "def __init__(self, hidden_states, past_key_values=None, mask",
            "def run(self, hidden_states, past_key_values=None, mask",
        ),
        [],
        _FOUND,
    ),
)


def _nested(given: str, arguments: str = "hidden_states, x", takes: str = "hidden_states, x=None") -> str:
    init = f"{STACK}\nself.up = nn.Linear(4, 4)"
    return toy(
        block(base=PROTECTED, takes=takes),
        model(f"{given}\nfor layer in self.layers:\n    {_CALL}{arguments})", init=init),
    )


def _unpacking(result: str) -> str:
    """Write a file whose layer unpacks what the loop feeds back."""
    return toy(block(f"x, y = hidden_states\nout = self.attention(x)\n{result}", base=PROTECTED), model())


_INSIDE = [found(NESTED, "none", "one by one")]
_NOTHING = [silent(NESTED, "no container")]


def _inside(decision: str, code: str, change: tuple[str, str]) -> Pair:
    """Return the pair of an activation in a container, and of something else."""
    return Pair(decision, _nested(code), change, _INSIDE, _NOTHING)


test_containers = decided(
    _inside("a list of computed values", "x = [self.up(mask)]", ("[self.up(mask)]", "[torch.zeros(4)]")),
    _inside(
        "a dict of computed values", "x = {'a': self.up(mask)}", ("'a': self.up(mask)", "'a': torch.zeros(4)")
    ),
    _inside(
        "a list that is filled",
        "x = []\nx.append(self.up(mask))",
        ("append(self.up(mask))", "append(mask.shape)"),
    ),
    _inside("a comprehension", "x = [self.up(y) for y in mask]", ("self.up(y) for", "y.shape for")),
    _inside("an item of a list", "x = [self.up(mask)]", ("= [self.up(mask)]", "= [self.up(mask)][0]")),
    Pair(
        "a list of parameters",
        _nested("x = self.tables").replace(
            "self.up = nn.Linear(4, 4)", "self.tables = nn.ParameterList([1])"
        ),
        ("nn.ParameterList([1])", "nn.ModuleList([])"),
        _INSIDE,
        _NOTHING,
    ),
    Pair(
        "a tuple of two without a default",
        _nested(
            "x = (self.up(mask), self.up(mask))", takes="hidden_states, x: tuple[torch.Tensor, torch.Tensor]"
        ),
        ("tuple[torch.Tensor, torch.Tensor]", "tuple[torch.Tensor, ...]"),
        [found(NESTED, "unsafe", "outside callers")],
        _INSIDE,
    ),
    Pair(
        "the loop feeds a tuple back",
        toy(block("x, y = hidden_states\nreturn self.attention(x), y", base=PROTECTED), model()),
        ("x, y = hidden_states", "x, y = mask"),
        [found(NESTED, "none", "one by one")],
        _NOTHING,
    ),
    Pair(
        "the loop unpacks the tuple",
        toy(
            block("x, y = hidden_states\nreturn self.attention(x), y", base=PROTECTED),
            model(
                "for layer in self.layers:\n    hidden_states = layer(hidden_states)\n"
                "    mask = hidden_states[0]"
            ),
        ),
        ("mask = hidden_states[0]", "hidden_states = hidden_states[0]"),
        [found(NESTED, "none", "one by one")],
        _NOTHING,
    ),
    Pair(
        "the loop feeds back what one of two layers returns as a tuple",
        toy(
            block("x, y = hidden_states\nreturn self.attention(x), y", base=PROTECTED),
            block("return self.attention(hidden_states)", name="ToyOther", base=PROTECTED),
            model(init="self.layers = nn.ModuleList([ToyLayer(config), ToyOther(config)])"),
        ),
        ("x, y = hidden_states", "x, y = mask"),
        [found(NESTED, "none", "one by one")],
        _NOTHING,
    ),
    Pair(
        "a layer that returns a tuple, or something else",
        _unpacking("return (out, y) if mask is None else out"),
        ("else out", "else (out,)"),
        _NOTHING,
        _INSIDE,
    ),
    Pair(
        "a layer that returns an item of a tuple, or all of them",
        _unpacking("last, z = (self.attention(out), y)\nreturn last"),
        ("return last", "return last, z"),
        _NOTHING,
        _INSIDE,
    ),
    Pair(
        "a layer that returns what is a tuple on one path, or on both",
        _unpacking("if mask is not None:\n    out = (out, y)\nreturn out"),
        ("out = self.attention(x)", "out = (self.attention(x),)"),
        _NOTHING,
        _INSIDE,
    ),
    Pair(
        "a layer that returns one of the values that it looped over, or a tuple of it",
        _unpacking("for last in (x, out):\n    pass\nreturn last"),
        ("return last", "return (last,)"),
        _NOTHING,
        _INSIDE,
    ),
    Pair(
        "a layer that adds something to a tuple",
        _unpacking("return (out,) + y"),
        ("return (out,) + y", "return out + y"),
        _INSIDE,
        _NOTHING,
    ),
    _inside(
        "a list that a call makes, and that is filled",
        "x = list()\nx.append(self.up(mask))",
        ("append(self.up(mask))", "append(mask.shape)"),
    ),
)
