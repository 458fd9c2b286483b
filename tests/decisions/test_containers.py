"""What a container of activations is, and where the calls are that pass one, or anything."""

from __future__ import annotations

from tests.decisions.outside import (
    CACHE,
    NESTED,
    Decision,
    Outside,
    Pair,
    decisions,
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


@decisions(
    Pair(
        "a direct call of `forward`",
        _caught(
            "for layer in self.layers:\n    hidden_states = layer.forward(hidden_states, past_key_values)"
        ),
        ("= layer.forward(", "= layer.backward("),
        _FOUND,
        [],
    ),
    Pair(
        "another method",
        _caught(f"for layer in self.layers:\n    hidden_states = {_POSITIONAL}"),
        ("= layer(", "= layer.train("),
        _FOUND,
        [],
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
    Pair(
        "a single part that is no layer",
        _caught(
            "hidden_states = self.one.forward(hidden_states, past_key_values)",
            init="self.one = ToyLayer(config)",
        ),
        ("self.one = ToyLayer", "self.one = ToyAttention"),
        _FOUND,
        [],
    ),
    Pair(
        "in a comprehension",
        _caught("x = [layer(hidden_states, past_key_values) for layer in self.layers]"),
        ("in self.layers]", "in self.config]"),
        _FOUND,
        [],
    ),
    Pair(
        "in a test",
        _caught("if self.layers[0](hidden_states, past_key_values):\n    pass"),
        ("self.layers[0](", "self.config[0]("),
        _FOUND,
        [],
    ),
    Pair(
        "in a function of the method",
        _caught(
            f"def run(layer):\n    return {_POSITIONAL}\nfor layer in self.layers:\n"
            "    hidden_states = run(layer)"
        ),
        ("= run(layer)", "= run(mask)"),
        _FOUND,
        [],
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
def test_where_calls_are(decision: Decision, outside: Outside) -> None:
    assert decision.answers(outside) == decision.said


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


@decisions(
    Pair(
        "a list of computed values",
        _nested("x = [self.up(mask)]"),
        ("[self.up(mask)]", "[torch.zeros(4)]"),
        _INSIDE,
        _NOTHING,
    ),
    Pair(
        "a dict of computed values",
        _nested("x = {'a': self.up(mask)}"),
        ("'a': self.up(mask)", "'a': torch.zeros(4)"),
        _INSIDE,
        _NOTHING,
    ),
    Pair(
        "a list that is filled",
        _nested("x = []\nx.append(self.up(mask))"),
        ("append(self.up(mask))", "append(mask.shape)"),
        _INSIDE,
        _NOTHING,
    ),
    Pair(
        "a comprehension",
        _nested("x = [self.up(y) for y in mask]"),
        ("self.up(y) for", "y.shape for"),
        _INSIDE,
        _NOTHING,
    ),
    Pair(
        "an item of a list",
        _nested("x = [self.up(mask)]"),
        ("= [self.up(mask)]", "= [self.up(mask)][0]"),
        _INSIDE,
        _NOTHING,
    ),
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
    Pair(
        "a list that a call makes, and that is filled",
        _nested("x = list()\nx.append(self.up(mask))"),
        ("append(self.up(mask))", "append(mask.shape)"),
        _INSIDE,
        _NOTHING,
    ),
)
def test_containers(decision: Decision, outside: Outside) -> None:
    assert decision.answers(outside) == decision.said
