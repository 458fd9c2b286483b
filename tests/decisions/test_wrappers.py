"""What a wrapped call runs, what unpacked arguments hold, and what callers pass to a method's parameters."""

from __future__ import annotations

from tests.decisions.outside import (
    BRANCHES,
    KEYWORD,
    LAYER,
    Pair,
    decided,
    found,
    passed,
    silent,
)
from tests.decisions.toy import FLAG, PROTECTED, STACK, block, call, model, toy

_SAFE = [found(LAYER, "safe")]
_IMPORTS = "from functools import partial\nfrom torch.utils.checkpoint import checkpoint\n"
_FUNCTION = "def custom(module):\n    def inner(*inputs):\n        return module(*inputs)\n    return inner\n"


def _wrapped(
    target: str,
    arguments: str = "hidden_states, mask",
    plain: str = "layer(hidden_states, mask)",
    before: str = "",
) -> str:
    """Write a file whose branch checkpoints something that is made of a layer."""
    loop = (
        "for layer in self.layers:\n    if self.gradient_checkpointing and self.training:\n"
        f"        hidden_states = checkpoint({target}, {arguments})\n    else:\n"
        f"        hidden_states = {plain}"
    )
    return toy(before, block(), model(loop, init=f"{STACK}\n{FLAG}"), imports=_IMPORTS)


_LEFT = [found(LAYER, "none", "leftover")]
_DIFFER = [found(BRANCHES, "none", "author"), found(LAYER, "none", "branches differ")]
_OTHERWISE = [found(LAYER, "none", "branches differ")]


def _leaving(decision: str, call: str, change: tuple[str, str], **more: str) -> Pair:
    """Return the pair of a call that is understood, and of one that is left."""
    return Pair(decision, _wrapped(call, **more), change, _SAFE, _LEFT)


test_wrappers = decided(
    _leaving("a method that runs it", "layer.__call__", ("layer.__call__", "layer.backward")),
    Pair(
        "a lambda that hands on",
        _wrapped("lambda x, y: layer(x, y)"),
        ("lambda x, y: layer(x, y)", "lambda x, y: layer(y, x)"),
        _SAFE,
        _DIFFER,
    ),
    _leaving(
        "a lambda whose own name runs", "lambda x, y: layer(x, y)", ("lambda x, y:", "lambda layer, y, x=1:")
    ),
    _leaving(
        "a lambda that computes something of its own parameter",
        "lambda x, y: layer(x, mask.bool())",
        ("layer(x, mask.bool())", "layer(x, y.bool())"),
        plain="layer(hidden_states, mask.bool())",
    ),
    _leaving(
        "a lambda that computes something of the rest",
        "lambda x, *y: layer(x, mask.bool())",
        ("layer(x, mask.bool())", "layer(x, y.bool())"),
        plain="layer(hidden_states, mask.bool())",
    ),
    Pair(
        "a lambda that computes something of its keywords",
        _wrapped("lambda x, **z: layer(x, y.bool())", "hidden_states", "layer(hidden_states, y.bool())"),
        ("**z:", "**y:"),
        _SAFE,
        _LEFT,
    ),
    Pair(
        "a lambda with a keyword of its own",
        _wrapped("lambda x: layer(x, mask)", "hidden_states"),
        ("lambda x:", "lambda x, *, mask=1:"),
        _SAFE,
        _LEFT,
    ),
    _leaving(
        "a lambda that is given unpacked arguments",
        "lambda x, *y: layer(x, *y)",
        ("layer(x, *y), hidden_states, mask)", "layer(x, *y), *mask, hidden_states)"),
    ),
    Pair(
        "a lambda that is given more than it takes",
        _wrapped("lambda x: layer(x)", plain="layer(hidden_states)"),
        ("layer(x), hidden_states, mask)", "layer(x), hidden_states)"),
        _LEFT,
        _SAFE,
    ),
    Pair(
        "a lambda that takes no keywords",
        _wrapped("lambda *y: layer(*y)", "hidden_states, mask=mask"),
        ("lambda *y: layer(*y)", "lambda *y, **z: layer(*y, **z)"),
        _LEFT,
        _SAFE,
    ),
    _leaving(
        "a function that makes two",
        "custom(layer)",
        ("    return inner\n", "    def other(*inputs):\n        return module(inputs)\n    return other\n"),
        before=_FUNCTION,
    ),
    Pair(
        "`partial` with keywords",
        _wrapped("partial(layer.__call__, mask=mask)", "hidden_states"),
        ("mask=mask)", "mask=1)"),
        _SAFE,
        _DIFFER,
    ),
    Pair(
        "`partial` by position",
        _wrapped("partial(layer.__call__, mask=mask)", "hidden_states"),
        ("__call__, mask=mask)", "__call__, mask)"),
        _SAFE,
        _LEFT,
    ),
    Pair(
        "a function that makes one",
        _wrapped("custom(layer)", before=_FUNCTION),
        ("return module(*inputs)", "return module(*inputs, 1)"),
        _SAFE,
        [found(LAYER, "none", "branches differ")],
    ),
    _leaving(
        "a function that does more",
        "custom(layer)",
        ("        return module(*inputs)", "        print(1)\n        return module(*inputs)"),
        before=_FUNCTION,
    ),
    _leaving(
        "a function that runs something else",
        "custom(layer)",
        ("return module(*inputs)", "return torch(*inputs)"),
        before=_FUNCTION,
    ),
    _leaving(
        "a function of two",
        "custom(layer)",
        ("def custom(module):", "def custom(module, x=1):"),
        before=_FUNCTION,
    ),
    Pair(
        "a function that takes the first item",
        _wrapped("custom(layer)", plain="layer(hidden_states, mask)[0]", before=_FUNCTION),
        ("return module(*inputs)", "return module(*inputs)[0]"),
        _OTHERWISE,
        _SAFE,
    ),
    Pair(
        "a function that takes another item",
        _wrapped(
            "custom(layer)",
            plain="layer(hidden_states, mask)[0]",
            before=_FUNCTION.replace("(*inputs)\n", "(*inputs)[0]\n"),
        ),
        ("(*inputs)[0]", "(*inputs)[1]"),
        _SAFE,
        _OTHERWISE,
    ),
    Pair(
        "a lambda whose parameter is named like the layer, and gets another",
        _wrapped("lambda layer: layer(hidden_states, mask)", "self.other"),
        ("lambda layer: layer(hidden_states, mask), self.other", "lambda x: layer(x, mask), hidden_states"),
        _LEFT,
        _SAFE,
    ),
)


def _unpacked(
    given: str,
    arguments: str = "hidden_states, **options",
    takes: str = "hidden_states, x=None, **kwargs",
    **more: str,
) -> str:
    loop = f"{given}\nfor layer in self.layers:\n    hidden_states = layer({arguments})"
    init = f"{STACK}\nself.up = nn.Linear(4, 4)"
    return toy(block(base=PROTECTED, takes=takes), model(loop, init=init, **more))


_INSIDE = [found(KEYWORD, "none", "unpacked")]
_NONE = [silent(KEYWORD, "no activation by keyword")]


def _within(decision: str, code: str, change: tuple[str, str]) -> Pair:
    """Return the pair of what is unpacked with an activation inside, and of what has none."""
    return Pair(decision, _unpacked(code), change, _INSIDE, _NONE)


test_unpacked_arguments = decided(
    _within(
        "a dict that is written down",
        "options = {'x': self.up(mask)}",
        ("'x': self.up(mask)", "'y': self.up(mask)"),
    ),
    _within("a dict by its function", "options = dict(x=self.up(mask))", ("x=self.up(mask)", "x=mask.shape")),
    _within(
        "a dict of two kinds", "options = {'x': self.up(mask)}", ("'x': self.up(mask)", "mask: self.up(mask)")
    ),
    _within(
        "a dict that is filled later",
        "options = {'x': self.up(mask)}\ny = 1",
        ("        y = 1\n", "        options = unknown()\n"),
    ),
    _within(
        "keywords of the method are unknown",
        "options = {'x': self.up(mask)}",
        ("layer(hidden_states, **options)", "layer(hidden_states, **others)"),
    ),
    Pair(
        "the call and what it unpacks are wrong",
        call(
            "hidden_states, encoder_hidden_states=mask, **options",
            takes="hidden_states, encoder_hidden_states=None, bias=None",
            given='options = {"bias": self.up(mask)}',
            init=f"{STACK}\nself.up = nn.Linear(4, 4)",
        ),
        ("self.up(mask)}", "torch.zeros(4)}"),
        _INSIDE,
        [found(KEYWORD, "safe")],
    ),
)


_LOOP = "for layer in self.layers:\n    hidden_states = layer(hidden_states, x=x)"


def _called(
    passes: str = "x=self.up(hidden_states)", name: str = "ToyEncoder", more: str = "", behind: str = ""
) -> str:
    """Write a file whose loop passes on what the caller of its method passes."""
    inner = model(_LOOP, name=name, base="nn.Module", supports="None", takes="hidden_states, x=None")
    outer = model(
        f"hidden_states = self.encoder(hidden_states, {passes})\n{more}",
        init=f"self.encoder = {name}(config)\nself.up = nn.Linear(4, 4)",
    )
    inner = inner.replace("super().__init__(config)", "super().__init__()")
    return toy(block(base=PROTECTED, takes="hidden_states, x=None"), inner, outer) + behind


_ACTIVATION = [found(KEYWORD, "safe"), passed("x", "activation", "computed")]
_NOT = "not an activation"


test_callers = decided(
    Pair(
        "what the caller passes",
        _called(),
        ("x=self.up(hidden_states)", "x=torch.zeros(4)"),
        _ACTIVATION,
        [passed("x", _NOT, "not computed")],
    ),
    Pair(
        "what no caller passes",
        _called(),
        (", x=self.up(hidden_states))", ")"),
        _ACTIVATION,
        [passed("x", _NOT, "always None")],
    ),
    Pair(
        "by position",
        _called("self.up(hidden_states)"),
        (", self.up(hidden_states))", ", mask.shape)"),
        _ACTIVATION,
        [passed("x", _NOT, "not computed")],
    ),
    Pair(
        "what another caller passes",
        _called("x=None", more="mask = self.encoder(mask, x=self.up(mask))"),
        ("x=self.up(mask)", "x=mask.shape"),
        _ACTIVATION,
        [passed("x", _NOT, "not computed")],
    ),
    Pair(
        "what is passed is replaced",
        _called().replace("        for layer", "        y = torch.zeros(4)\n        for layer"),
        ("        y = torch.zeros(4)", "        x = torch.zeros(4)"),
        _ACTIVATION,
        [passed("x", _NOT, "not computed")],
    ),
    Pair(
        "what users pass",
        _called("x=None", behind='\n__all__ = ["ToyModel"]\n'),
        ('["ToyModel"]', '["ToyModel", "ToyEncoder"]'),
        [passed("x", _NOT, "always None")],
        [passed("x", "perhaps an activation", "unknown origin")],
    ),
    Pair(
        "what users pass to a model",
        _called("x=None"),
        ("class ToyEncoder(nn.Module)", "class ToyEncoder(PreTrainedModel)"),
        [passed("x", _NOT, "always None")],
        [passed("x", "perhaps an activation", "unknown origin")],
    ),
    Pair(
        "what another file passes",
        {
            "modeling_toy.py": _called("x=None"),
            "modeling_other.py": "from modeling_toy import ToyEncoder\nx = ToyEncoder(1)\n",
        },
        ("import ToyEncoder", "import ToyModel"),
        [passed("x", "perhaps an activation", "unknown origin")],
        [passed("x", _NOT, "always None")],
    ),
    Pair(
        "what an unpacked list passes",
        _called("x=None"),
        ("self.encoder(hidden_states, x=None)", "self.encoder(*hidden_states)"),
        [passed("x", _NOT, "always None")],
        [passed("x", "perhaps an activation", "unknown origin")],
    ),
)
