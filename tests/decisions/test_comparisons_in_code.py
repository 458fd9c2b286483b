"""What a test in the code says of what it asks: comparisons, `not`, `and`, `or`, and what they hand on."""

from __future__ import annotations

from tests.decisions.outside import (
    BRANCHES,
    INPLACE,
    KEYWORD,
    LAYER,
    Pair,
    decided,
    found,
    passed,
    silent,
)
from tests.decisions.toy import FLAG, STACK, block, call, model, toy

_MADE = "self.layers = nn.ModuleList([ToyLayer(config)])\nself.up = nn.Linear(4, 4)"
_FOUND = [found(KEYWORD, "safe"), passed("x", "activation", "computed")]
_NOT = [passed("x", "not an activation", "not computed")]


def _if(test: str) -> str:
    """Write a file that passes what is computed only under a test of ``y``, which is always None."""
    given = f"y = None\nx = torch.zeros(4)\nif {test}:\n    x = self.up(mask)"
    return call("hidden_states, x=x", takes="hidden_states, x=None", given=given, init=_MADE)


test_what_is_never_reached = decided(
    Pair("a name that is always None", _if("y"), ("if y:", "if z:"), _NOT, _FOUND),
    Pair("`not` of it", _if("y"), ("if y:", "if not y:"), _NOT, _FOUND),
    Pair("`is not None`", _if("y is not None"), ("y is not None", "y is None"), _NOT, _FOUND),
    Pair("`not … is None`", _if("not y is None"), ("not y is None", "y is None"), _NOT, _FOUND),
    Pair(
        "`!= None`",
        _if("y is not None"),
        ("y is not None", "y != None"),
        _NOT,
        _NOT,
        wrong="`!= None` is not understood as `is not None`",
    ),
    Pair(
        "compared with something else", _if("y is not None"), ("y is not None", "y is not mask"), _NOT, _FOUND
    ),
    Pair("`and`", _if("y and mask"), ("y and mask", "y or mask"), _NOT, _FOUND),
    Pair("the right of `and`", _if("mask and y is not None"), ("mask and y", "mask or y"), _NOT, _FOUND),
    Pair("`not` of `or`", _if("not (y is None or mask)"), (" or mask", " and mask"), _NOT, _FOUND),
    Pair(
        "the other side",
        _if("y is None").replace(
            "            x = self.up(mask)", "            pass\n        else:\n            x = self.up(mask)"
        ),
        ("y is None", "y is not None"),
        _NOT,
        _FOUND,
    ),
    Pair(
        "the other side of a chain",
        _if("y is None").replace(
            "            x = self.up(mask)", "            pass\n        else:\n            x = self.up(mask)"
        ),
        ("y is None", "y is None is mask"),
        _NOT,
        _FOUND,
    ),
    Pair(
        "the other side of `or`",
        _if("y is None or mask").replace(
            "            x = self.up(mask)", "            pass\n        else:\n            x = self.up(mask)"
        ),
        (" or mask", " and mask"),
        _NOT,
        _FOUND,
    ),
    Pair(
        "`elif` has both conditions",
        _if("mask").replace(
            "            x = self.up(mask)",
            "            pass\n        elif y:\n            x = self.up(mask)",
        ),
        ("elif y:", "elif not y:"),
        _NOT,
        _FOUND,
    ),
    Pair(
        "a test within a test",
        _if("mask").replace(
            "            x = self.up(mask)", "            if y:\n                x = self.up(mask)"
        ),
        ("if y:", "if not y:"),
        _NOT,
        _FOUND,
    ),
    Pair(
        "a choice in one line",
        _if("mask").replace("self.up(mask)", "self.up(mask) if y else torch.ones(4)"),
        ("if y else", "if not y else"),
        _NOT,
        _FOUND,
    ),
)


def _branches(test: str, plain: str = "other", legacy: str = "None", around: str = "") -> str:
    """Write a file whose two calls pass different values, which a test around them may exclude."""
    takes = "hidden_states, other=None"
    first, second = (
        f"hidden_states = self._gradient_checkpointing_func(layer.__call__, hidden_states, {legacy})",
        f"hidden_states = layer(hidden_states, {plain})",
    )
    loop = (
        f"for layer in self.layers:\n    if self.gradient_checkpointing and self.training and {test}:\n"
        f"        {first}\n    else:\n        {second}"
    )
    return toy(block(takes=takes), model(loop, takes=takes, init=f"{STACK}\n{FLAG}"))


_DIFFER = [found(BRANCHES, "none", "author"), found(LAYER, "none", "another condition")]
_SAME = [found(LAYER, "none", "another condition")]


def _differing(decision: str, test: str, change: tuple[str, str]) -> Pair:
    """Return the pair of branches that are the same, and of others."""
    return Pair(decision, _branches(test), change, _SAME, _DIFFER)


test_what_a_branch_excludes = decided(
    _differing("`is None` excludes the value", "other is None", ("other is None:", "other is not None:")),
    _differing("`not` excludes the value", "not other", ("not other:", "other:")),
    _differing("another value is excluded", "not other", ("not other:", "not mask:")),
    _differing("`or` does not exclude", "(not other and not x)", ("not other and", "not other or")),
    _differing("`not` of `or` excludes", "not (other or x)", ("(other or x)", "(other and x)")),
    _differing(
        "a chain does not exclude",
        "not other is not None",
        ("other is not None:", "other is not None is not x:"),
    ),
    _differing("what is passed has to be off", "not other", ("hidden_states, None)", "hidden_states, 1)")),
)


_EMBEDDED = f"{STACK}\nself.embed_tokens = nn.Embedding(4, 4)"


def _changed(statements: str) -> str:
    """Write a file that does something with the output of the embeddings; its block is a layer."""
    loop = f"x = self.embed_tokens(hidden_states)\n{statements}\nfor layer in self.layers:\n    x = layer(x)"
    return toy(block(base="GradientCheckpointingLayer"), model(loop, init=_EMBEDDED))


_IN_PLACE = [found(INPLACE, "when proven", "needs a run", of="ToyModel")]
_NONE = [silent(INPLACE, "not changed")]


def _in_place(decision: str, test: str, change: tuple[str, str]) -> Pair:
    """Return the pair of a test that excludes a change in place, and of one that does not."""
    return Pair(decision, _changed(test), change, _NONE, _IN_PLACE)


test_what_an_embedding_may_meet = decided(
    Pair(
        "changed under a condition",
        _changed("if mask is None:\n    x *= 2"),
        ("x *= 2", "x = x * 2"),
        _IN_PLACE,
        _NONE,
    ),
    _in_place(
        "cloned under the same condition",
        "if mask is None:\n    x = x.clone()\nif mask is None:\n    x *= 2",
        ("if mask is None:\n            x *= 2", "if mask is not None:\n            x *= 2"),
    ),
    _in_place(
        "cloned under the contrary",
        "if mask is not None:\n    y = 1\nelse:\n    x = x.clone()\nif mask is None:\n    x *= 2",
        ("if mask is not None", "if mask is None"),
    ),
    _in_place(
        "cloned under a part of the condition",
        "if mask:\n    x = x.clone()\nif mask and y:\n    x *= 2",
        ("mask and y", "mask or y"),
    ),
    _in_place(
        "the condition has changed meanwhile",
        "if mask:\n    x = x.clone()\ny = 1\nif mask:\n    x *= 2",
        ("        y = 1", "        mask = 1"),
    ),
    _in_place("it has asked for leaves", "if not x.is_leaf:\n    x *= 2", ("not x.is_leaf", "x.is_leaf")),
    _in_place(
        "it has asked for gradients",
        "if not x.requires_grad:\n    x *= 2",
        ("not x.requires_grad", "not x.is_sparse"),
    ),
    _in_place(
        "it has asked for the mode",
        "if not self.training:\n    x *= 2",
        ("not self.training", "self.training"),
    ),
    _in_place(
        "it has asked for the mode and more",
        "if not self.training and mask:\n    x *= 2",
        (" and mask", " or mask"),
    ),
    _in_place(
        "the other side of the mode",
        "if self.training or mask:\n    y = 1\nelse:\n    x *= 2",
        (" or mask", " and mask"),
    ),
)
