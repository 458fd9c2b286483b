"""What an embedding's output is, what changes it in place, and what ends that."""

from __future__ import annotations

from tests.decisions.outside import INPLACE, Pair, decided, found, silent
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


def _sharing(decision: str, statements: str, change: tuple[str, str]) -> Pair:
    """Return the pair of a change of what shares memory, and of what does not."""
    return Pair(decision, _doing(statements), change, _SHARED, _NONE)


def _beginning(decision: str, statements: str, change: tuple[str, str], **more: str) -> Pair:
    """Return the pair of no change in place, and of one."""
    return Pair(decision, _doing(statements, **more), change, _NONE, _FOUND)


def _ending(decision: str, statements: str, change: tuple[str, str], **more: str) -> Pair:
    """Return the pair of a change in place, and of what ends it."""
    return Pair(decision, _doing(statements, **more), change, _FOUND, _NONE)


test_changes = decided(
    _ending("an operator in place", "x += 1", ("x += 1", "x = x + 1")),
    _ending("an item", "x[0] = 1", ("x[0] = 1", "y = x[0]")),
    _ending("a method in place", "x.add_(1)", ("add_(1)", "add(1)")),
    _ending("its flag", "x.mul_(1)", ("mul_(1)", "requires_grad_()")),
    _beginning("after a clone", "x = x.clone()\nx += 1", ("x.clone()", "x.contiguous()")),
    _ending("of what a call returns", "y = x[0](mask)(mask)\nx += 1", ("x += 1", "y += 1")),
    _sharing("a view", "y = x.view(-1)\ny += 1", (".view(-1)", ".exp()")),
    _ending("a part of a view", "x.T[0] = 1", ("x.T[0]", "x.exp()[0]")),
    _sharing("a basic index is a view", "y = x[:, 0]\ny += 1", ("x[:, 0]", "x[mask]")),
    _sharing("an index of -1 is a view", "y = x[-1]\ny += 1", ("x[-1]", "x[-mask]")),
    _sharing("another name", "y = x\ny += 1", ("y = x\n", "y = mask\n")),
    _sharing("one of two", "y = x if mask else 1\ny += 1", ("x if mask", "2 if mask")),
    _beginning("bound anew", "x = mask\nx += 1", ("x = mask", "y = mask")),
    _beginning("bound anew by a loop", "for x in mask:\n    x += 1", ("for x in", "for y in")),
    _ending(
        "behind a return", "if mask:\n    return x\nx += 1", ("if mask:\n            return x", "return x")
    ),
    _ending(
        "behind `continue`",
        "for y in mask:\n    if y:\n        continue\n    x += 1",
        ("if y:\n                continue", "continue"),
    ),
    _beginning("without gradients", "with torch.no_grad():\n    x += 1", ("no_grad", "enable_grad")),
    _ending(
        "after an exception",
        "try:\n    x = x.clone()\nexcept ValueError:\n    pass\nx += 1",
        ("    pass\n        x", "    raise\n        x"),
    ),
    _sharing(
        "in the second step of a loop",
        "y = 1\nfor z in mask:\n    y += 1\n    y = x",
        ("    y = x", "    y = z"),
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
    _ending("in one of two cases", "match mask:\n    case 1:\n        x += 1", ("x += 1", "x = 1")),
)


_FLAT = "y = x.view(-1)\n"


test_views = decided(
    Pair(
        "a view is read above, and again in the next step",
        _doing(f"{_FLAT}for z in mask:\n    w = y + z\n    x += 1"),
        ("for z in mask", "for z in mask:\n            pass\n        if mask"),
        _SHARED,
        _FOUND,
    ),
    Pair(
        "a view is read above in `while`",
        _doing(f"{_FLAT}while mask:\n    w = y + 1\n    x += 1"),
        ("while mask", "if mask"),
        _SHARED,
        _FOUND,
    ),
    Pair(
        "a view is read in a loop above",
        _doing(f"{_FLAT}for z in mask:\n    w = y + z\nx += 1"),
        ("x += 1", "    x += 1"),
        _FOUND,
        _SHARED,
    ),
    Pair(
        "a view that is deleted",
        _doing("y = x\ndel y\nx += 1\ny = 2"),
        ("del y", "del mask"),
        _FOUND,
        _SHARED,
    ),
    Pair(
        "the output for something else",
        _doing("y = self.get_input_embeddings()(mask)\nx += 1\nx = x + y"),
        ("self.get_input_embeddings()(mask)", "x[0]"),
        _FOUND,
        _SHARED,
    ),
)


_SPARED = "x = x.clone()"


test_tests = decided(
    _ending(
        "a test that is over",
        "if mask:\n    w = 1\nif not mask:\n    x += 1",
        ("if mask:\n            w = 1", "if not mask:\n            return x"),
    ),
    _beginning(
        "a test behind another",
        f"if mask:\n    {_SPARED}\nif self.y:\n    w = 1\nif mask:\n    x += 1",
        ("w = 1", "mask = 1"),
    ),
    _beginning(
        "what is tested is counted down",
        f"if mask:\n    {_SPARED}\nself.y -= 1\nif mask:\n    x += 1",
        ("self.y -= 1", "mask -= 1"),
    ),
    _beginning(
        "an attribute that is tested changes",
        f"if self.y:\n    {_SPARED}\nself.z = mask\nif self.y:\n    x += 1",
        ("self.z = mask", "self.y = mask"),
    ),
    _beginning(
        "an item that is tested changes",
        f"if mask[0]:\n    {_SPARED}\nhidden_states[0] = 1\nif mask[0]:\n    x += 1",
        ("hidden_states[0] = 1", "mask[0] = 1"),
    ),
    _beginning(
        "neither of two is true, or not both",
        f"if mask or self.y:\n    {_SPARED}\nif mask:\n    x += 1",
        ("mask or self.y", "mask and self.y"),
    ),
    _beginning(
        "no leaf, and more",
        f"if mask or x.is_leaf:\n    {_SPARED}\nx += 1",
        ("mask or x.is_leaf", "mask and x.is_leaf"),
    ),
    _beginning("where it is no leaf", "if not x.is_leaf:\n    x += 1", ("x.is_leaf", "x.is_sparse")),
    _beginning(
        "in training only", f"if self.training:\n    {_SPARED}\nx += 1", ("self.training", "self.scaling")
    ),
)


test_ways = decided(
    _ending(
        "a loop may have no step",
        f"for y in mask:\n    {_SPARED}\nx += 1",
        ("for y in mask", "with mask as y"),
    ),
    _ending("the `else` of a loop", "for y in mask:\n    pass\nelse:\n    x += 1", ("x += 1", "y += 1")),
    _sharing(
        "out of a loop",
        "for z in mask:\n    y = x\n    if z:\n        break\n    y = 1\ny += 1",
        ("break", "pass"),
    ),
    _beginning("behind `break`", "for y in mask:\n    break\n    x += 1", ("break", "pass")),
    Pair(
        "out of an inner loop only",
        _doing("for z in mask:\n    for w in z:\n        y = x\n        break\n    y = 1\ny += 1"),
        ("    y = 1", "    v = 1"),
        _NONE,
        _SHARED,
    ),
    _beginning("one of two contexts", "with torch.no_grad(), mask:\n    x += 1", ("no_grad", "enable_grad")),
    _ending(
        "the `else` of `try`",
        "try:\n    pass\nexcept ValueError:\n    pass\nelse:\n    x += 1",
        ("x += 1", "mask += 1"),
    ),
    _sharing(
        "in a handler, after a part of what was tried",
        "try:\n    y = x\n    mask.check()\nexcept ValueError:\n    y += 1",
        ("y = x", "y = mask"),
    ),
    _ending("in `finally`", "try:\n    pass\nfinally:\n    x += 1", ("x += 1", "mask += 1")),
    Pair(
        "no case may match",
        _doing(f"match mask:\n    case 1:\n        {_SPARED}\nx += 1"),
        ("case 1:", "case _:"),
        _FOUND,
        _NONE,
        wrong="a case that always matches counts as one that may not",
    ),
    _ending(
        "a case knows nothing of another",
        f"match mask:\n    case 1:\n        {_SPARED}\n    case 2:\n        x += 1",
        ("x += 1", "mask += 1"),
    ),
    Pair(
        "one clone is enough, until the embeddings are called again",
        _doing("x += 1\ny = 1\nx += 2"),
        ("y = 1", "x = self.embed_tokens(mask)"),
        _FOUND,
        _FOUND * 2,
    ),
    _beginning(
        "in another context within one without gradients",
        "with torch.no_grad():\n    with torch.autocast('cpu'):\n        x += 1",
        ("torch.no_grad()", "torch.autocast('cuda')"),
    ),
)


test_statements = decided(
    _sharing("a tensor among the indices makes a copy", "y = x[0, 1]\ny += 1", ("x[0, 1]", "x[0, mask]")),
    _ending(
        "an item that a mask selects, and a copy of it", "x[mask] += 1", ("x[mask] += 1", "x[mask].add_(1)")
    ),
    _ending("an inner function", "y = [x.add_(1)]", ("[x.add_(1)]", "lambda: x.add_(1)")),
    _beginning("a method of an operator", "y = x.__abs__()", ("x.__abs__()", "x.abs_()")),
    _sharing("an annotated name", "y: object = x\ny += 1", ("object = x", "object = 1")),
)


_GETTER = "def get_input_embeddings(self):\n    return self.words\n"
_WORDS = "self.words = nn.Embedding(4, 4)"
_CHANGING = "x = self.embed_tokens(hidden_states)\nx += 1\nfor layer in self.layers:\n    x = layer(x)"


test_modules = decided(
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
    _ending(
        "only in generation",
        "pass",
        ("def run(", "def generate("),
        more="def run(self, hidden_states):\n    x = self.embed_tokens(hidden_states)\n    x += 1\n",
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
    Pair(
        "another of two that a model has",
        _doing("x += 1", init=f"{_WORDS}\n{_NAME}", more=_GETTER),
        ("return self.words", "return self.embed_tokens"),
        _OTHER,
        _FOUND,
    ),
    _beginning(
        "the embeddings of something else",
        "x += 1",
        ("mask.get_input", "self.get_input"),
        made="x = mask.get_input_embeddings()(hidden_states)",
    ),
    _beginning(
        "a method without gradients",
        "pass",
        ("no_grad", "enable_grad"),
        more="@torch.no_grad()\n"
        "def run(self, hidden_states):\n    x = self.embed_tokens(hidden_states)\n    x += 1\n",
    ),
    _ending(
        "what prepares generation",
        "pass",
        ("def run(", "def _prepare_model_inputs("),
        more="def run(self, hidden_states):\n    x = self.embed_tokens(hidden_states)\n    x += 1\n",
    ),
    Pair(
        "the name of the attribute in a file that calls `get_input_embeddings()` too",
        _doing(
            "x += 1",
            made="x = self.words(hidden_states)",
            init=_WORDS,
            more="_input_embed_layer = 'words'\n\ndef look(self):\n    return self.get_input_embeddings()\n",
        ),
        ("_input_embed_layer = 'words'", "_input_embed_layer = 'other'"),
        _FOUND,
        _OTHER,
    ),
)
