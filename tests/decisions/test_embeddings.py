"""What an embedding's output is, what changes it in place, and what ends that."""

from __future__ import annotations

from tests.decisions.outside import INPLACE, Decision, Outside, Pair, decisions, found, silent
from tests.decisions.toy import PROTECTED, STACK, block, model, toy

_FOUND = [found(INPLACE, "when proven", "needs a run", of="ToyModel")]
_SHARED = [found(INPLACE, "none", "shared memory", of="ToyModel")]
_NONE = [silent(INPLACE, "not changed")]
_OTHER = [silent(INPLACE, "no embeddings called")]
_NAME = "self.embed_tokens = nn.Embedding(4, 4)"


def _doing(statements: str, *, made: str = "x = self.embed_tokens(hidden_states)", **more: str) -> str:
    """Write a file that does something with the output of the embeddings; its block is a layer."""
    loop = f"{made}\n{statements}\nfor layer in self.layers:\n    x = layer(x)"
    init = more.pop("init", _NAME)
    return toy(block(base=PROTECTED), model(loop, init=f"{STACK}\n{init}", **more))


@decisions(
    Pair("an operator in place", _doing("x += 1"), ("x += 1", "x = x + 1"), _FOUND, _NONE),
    Pair("an item", _doing("x[0] = 1"), ("x[0] = 1", "y = x[0]"), _FOUND, _NONE),
    Pair("a method in place", _doing("x.add_(1)"), ("add_(1)", "add(1)"), _FOUND, _NONE),
    Pair("its flag", _doing("x.mul_(1)"), ("mul_(1)", "requires_grad_()"), _FOUND, _NONE),
    Pair("after a clone", _doing("x = x.clone()\nx += 1"), ("x.clone()", "x.contiguous()"), _NONE, _FOUND),
    Pair(
        "of what a call returns", _doing("y = x[0](mask)(mask)\nx += 1"), ("x += 1", "y += 1"), _FOUND, _NONE
    ),
    Pair("a view", _doing("y = x.view(-1)\ny += 1"), (".view(-1)", ".exp()"), _SHARED, _NONE),
    Pair("a part of a view", _doing("x.T[0] = 1"), ("x.T[0]", "x.exp()[0]"), _FOUND, _NONE),
    Pair("a basic index is a view", _doing("y = x[:, 0]\ny += 1"), ("x[:, 0]", "x[mask]"), _SHARED, _NONE),
    Pair("an index of -1 is a view", _doing("y = x[-1]\ny += 1"), ("x[-1]", "x[-mask]"), _SHARED, _NONE),
    Pair("another name", _doing("y = x\ny += 1"), ("y = x\n", "y = mask\n"), _SHARED, _NONE),
    Pair("one of two", _doing("y = x if mask else 1\ny += 1"), ("x if mask", "2 if mask"), _SHARED, _NONE),
    Pair("bound anew", _doing("x = mask\nx += 1"), ("x = mask", "y = mask"), _NONE, _FOUND),
    Pair(
        "bound anew by a loop", _doing("for x in mask:\n    x += 1"), ("for x in", "for y in"), _NONE, _FOUND
    ),
    Pair(
        "behind a return",
        _doing("if mask:\n    return x\nx += 1"),
        ("if mask:\n            return x", "return x"),
        _FOUND,
        _NONE,
    ),
    Pair(
        "behind `continue`",
        _doing("for y in mask:\n    if y:\n        continue\n    x += 1"),
        ("if y:\n                continue", "continue"),
        _FOUND,
        _NONE,
    ),
    Pair(
        "without gradients",
        _doing("with torch.no_grad():\n    x += 1"),
        ("no_grad", "enable_grad"),
        _NONE,
        _FOUND,
    ),
    Pair(
        "after an exception",
        _doing("try:\n    x = x.clone()\nexcept ValueError:\n    pass\nx += 1"),
        ("    pass\n        x", "    raise\n        x"),
        _FOUND,
        _NONE,
    ),
    Pair(
        "in the second step of a loop",
        _doing("y = 1\nfor z in mask:\n    y += 1\n    y = x"),
        ("    y = x", "    y = z"),
        _SHARED,
        _NONE,
    ),
    Pair(
        "read again in the next step of a loop",
        _doing(
            "y = e\nx = mask\nfor z in mask:\n    w = e\n    y += 1",
            made="e = self.embed_tokens(hidden_states)",
        ),
        ("    w = e", "    w = z"),
        _SHARED,
        _FOUND,
    ),
    Pair(
        "a view that is used no more",
        _doing("y = x.view(-1)\ny += 1\nx = x + y"),
        ("x = x + y", "x = y"),
        _SHARED,
        _FOUND,
        wrong="a name that is bound anew behind the change counts as used",
    ),
    Pair(
        "in one of two cases",
        _doing("match mask:\n    case 1:\n        x += 1"),
        ("x += 1", "x = 1"),
        _FOUND,
        _NONE,
    ),
)
def test_changes(decision: Decision, outside: Outside) -> None:
    assert decision.answers(outside) == decision.said


_GETTER = "def get_input_embeddings(self):\n    return self.words\n"
_WORDS = "self.words = nn.Embedding(4, 4)"
_CHANGING = "x = self.embed_tokens(hidden_states)\nx += 1\nfor layer in self.layers:\n    x = layer(x)"


@decisions(
    Pair(
        "the usual name",
        _doing("x += 1"),
        ("self.embed_tokens(", "self.embed_types("),
        _FOUND,
        _OTHER,
        releases=">=4.57",
    ),
    Pair(
        "the name that a getter returns",
        _doing("x += 1", made="x = self.words(hidden_states)", init=_WORDS, more=_GETTER),
        ("return self.words", "return self.types"),
        _FOUND,
        _OTHER,
    ),
    Pair(
        "what a getter is",
        _doing("x += 1", made="x = self.words(hidden_states)", init=_WORDS, more=_GETTER),
        ("get_input_embeddings", "get_output_embeddings"),
        _FOUND,
        _OTHER,
    ),
    Pair(
        "what a getter gives is called",
        _doing("x += 1", made="x = self.get_input_embeddings()(hidden_states)", more=_GETTER, init=_WORDS),
        ("self.get_input_embeddings()(hidden_states)", "self.get_input_shapes()(hidden_states)"),
        _FOUND,
        _OTHER,
    ),
    Pair(
        "the name that the model says",
        _doing(
            "x += 1", made="x = self.words(hidden_states)", init=_WORDS, more='_input_embed_layer = "words"\n'
        ),
        ('"words"', '"types"'),
        _FOUND,
        _OTHER,
        releases=">=4.57",
    ),
    Pair(
        "only in generation",
        _doing(
            "pass",
            more="def run(self, hidden_states):\n    x = self.embed_tokens(hidden_states)\n    x += 1\n",
        ),
        ("def run(", "def generate("),
        _FOUND,
        _NONE,
    ),
    Pair(
        "the model has no support",
        _doing("x += 1"),
        ("checkpointing = True", "checkpointing = False"),
        _FOUND,
        [silent(INPLACE, "no support")],
    ),
    Pair(
        "the model is an heir of what calls them",
        toy(
            block(base=PROTECTED),
            model(_CHANGING, name="ToyBase", base="nn.Module"),
            "class ToyModel(ToyBase, PreTrainedModel):\n    def __init__(self, config):\n"
            f"        super().__init__(config)\n        {_NAME}\n"
            "    def get_input_embeddings(self):\n        return self.embed_tokens\n",
        ),
        ("return self.embed_tokens", "return self.embed_types"),
        [found(INPLACE, "when proven", "needs a run", of="ToyBase")],
        _OTHER,
    ),
    Pair(
        "what the getter returns is in something unknown",
        _doing(
            "x += 1",
            made="x = self.words(hidden_states)",
            init=f"{_WORDS}\nself.other = config.other",
            more=_GETTER,
        ),
        ("return self.words", "return self.other.words"),
        _FOUND,
        _OTHER,
    ),
    Pair(
        "they are in the inner model",
        toy(
            block(base=PROTECTED),
            model(_CHANGING, name="ToyInner", base="nn.Module", init=f"{STACK}\n{_NAME}"),
            model("hidden_states = self.model(hidden_states)", init="self.model = ToyInner(config)"),
        ),
        ("self.model = ToyInner", "self.encoder = ToyInner"),
        [found(INPLACE, "when proven", "needs a run", of="ToyInner")],
        _OTHER,
        releases=">=4.57",
        at="for layer",
    ),
    Pair(
        "the name that the base of the model says",
        toy(
            block(base=PROTECTED),
            model("pass", name="ToyBase", more='_input_embed_layer = "words"\n'),
            model(
                "x = self.words(hidden_states)\nx += 1\nfor layer in self.layers:\n    x = layer(x)",
                base="ToyBase",
                init=f"{STACK}\n{_WORDS}",
            ),
        ),
        ('"words"', '"types"'),
        _FOUND,
        _OTHER,
        releases=">=4.57",
        at="for layer",
    ),
)
def test_modules(decision: Decision, outside: Outside) -> None:
    assert decision.answers(outside) == decision.said
