"""Who else receives the arguments of a call that is rewritten, and which signatures can change."""

from __future__ import annotations

from tests.decisions.outside import (
    CACHE,
    KEYWORD,
    LAYER,
    Decision,
    Outside,
    Pair,
    decisions,
    found,
    silent,
)
from tests.decisions.toy import PROTECTED, STACK, block, model, toy

_CALL = "hidden_states = layer("


def _refused(*kinds: str, rule: str = KEYWORD) -> list[str]:
    return [found(rule, "none", *kinds)]


def _two(other: str, loop: str = "", more: str = "") -> str:
    """Write a file whose call runs two layers, the second of which takes other parameters."""
    init = "self.layers = nn.ModuleList([ToyLayer(config), ToyOther(config)])"
    text = loop or f"for layer in self.layers:\n    {_CALL}hidden_states=hidden_states, mask=mask)"
    return toy(
        block(base=PROTECTED),
        block(name="ToyOther", base=PROTECTED, takes=other),
        model(text, init=init, more=more),
    )


@decisions(
    Pair(
        "two layers of two orders",
        _two(
            "hidden_states, mask=None", f"for layer in self.layers:\n    {_CALL}hidden_states=hidden_states)"
        ),
        (
            "(self, hidden_states, mask=None):\n"
            "        return hidden_states + self.attention(hidden_states)\n\n\nclass ToyModel",
            "(self, mask=None, hidden_states=None):\n"
            "        return hidden_states + self.attention(hidden_states)\n\n\nclass ToyModel",
        ),
        [found(KEYWORD, "safe")],
        _refused("other orders"),
    ),
    Pair(
        "the arguments fit one of two layers",
        _two("hidden_states", f"for layer in self.layers:\n    {_CALL}hidden_states, mask)").replace(
            "ToyLayer(GradientCheckpointingLayer)", "ToyLayer(nn.Module)"
        ),
        ("forward(self, hidden_states):", "forward(self, hidden_states, x=None):"),
        [found(LAYER, "unsafe", "not matched")],
        [found(LAYER, "safe")],
    ),
)
def test_several_blocks(decision: Decision, outside: Outside) -> None:
    assert decision.answers(outside) == decision.said


_KEYWORD = f"for layer in self.layers:\n    {_CALL}hidden_states=hidden_states)"


def _received(init: str = STACK, more: str = "", before: str = "", **block_more: str) -> str:
    return toy(before, block(base=PROTECTED, **block_more), model(_KEYWORD, init=init, more=more))


_OK = [found(KEYWORD, "safe")]


def _doubt(*kinds: str) -> list[str]:
    return [found(KEYWORD, "unsafe", *kinds)]


@decisions(
    Pair(
        "a call of its own",
        _received(more="", init=STACK).replace(
            "    def forward(self, hidden_states, mask=None):\n        return",
            "    def call(self, *args):\n        pass\n    def forward(self, hidden_states, mask=None):\n"
            "        return",
        ),
        ("def call(", "def __call__("),
        _OK,
        _doubt("own call"),
    ),
    Pair(
        "`forward` is replaced",
        toy(block(base=PROTECTED, init="self.backward = print"), model(_KEYWORD)),
        ("self.backward = print", "self.forward = print"),
        _OK,
        _doubt("replaced forward"),
    ),
    Pair(
        "a condition chooses between two definitions of `forward`",
        _received().replace(
            "    def forward(self, hidden_states, mask=None):\n        return",
            "    if torch:\n        def forward(self, hidden_states, mask=None):\n            pass\n"
            "    def forward(self, hidden_states, mask=None):\n        return",
        ),
        ("mask=None):\n            pass", "cache=None):\n            pass"),
        _OK,
        [silent(KEYWORD, "not matched")],
    ),
    Pair(
        "the class is replaced",
        _received() + "\nToyOther = print\n",
        ("\nToyOther = print", "\nToyLayer = print"),
        _OK,
        _doubt("replaced"),
    ),
    Pair(
        "a decorator that hands on",
        toy(
            "def wrap(f):\n    def inner(*args, **kwargs):\n        return f(*args, **kwargs)\n"
            "    return inner\n",
            block(base=PROTECTED),
            model(_KEYWORD),
        ).replace(
            "    def forward(self, hidden_states, mask=None):\n        return",
            "    @wrap\n    def forward(self, hidden_states, mask=None):\n        return",
        ),
        ("return f(*args, **kwargs)", "return f(*args)"),
        _OK,
        _doubt("decorator"),
    ),
    Pair(
        "a decorator that reads",
        toy(
            "def wrap(f):\n    def inner(*args, **kwargs):\n        return f(*args, **kwargs)\n"
            "    return inner\n",
            block(base=PROTECTED),
            model(_KEYWORD),
        ).replace(
            "    def forward(self, hidden_states, mask=None):\n        return",
            "    @wrap\n    def forward(self, hidden_states, mask=None):\n        return",
        ),
        ("        return f(*args, **kwargs)", "        kwargs.get('x')\n        return f(*args, **kwargs)"),
        _OK,
        _doubt("reading decorator"),
    ),
    Pair(
        "a decorator that counts",
        toy(
            "def wrap(f):\n    def inner(*args, **kwargs):\n        count(1)\n"
            "        return f(*args, **kwargs)\n    return inner\n",
            block(base=PROTECTED),
            model(_KEYWORD),
        ).replace(
            "    def forward(self, hidden_states, mask=None):\n        return",
            "    @wrap\n    def forward(self, hidden_states, mask=None):\n        return",
        ),
        ("count(1)", "count(args)"),
        _OK,
        _doubt("reading decorator"),
    ),
    Pair(
        "a hook that sees keywords",
        _received(f"{STACK}\nself.register_forward_hook(print, with_kwargs=True)"),
        ("register_forward_hook", "register_state_hook"),
        _doubt("hooks see"),
        _OK,
    ),
    Pair(
        "a hook in front",
        _received(f"{STACK}\nself.register_forward_pre_hook(print)"),
        ("forward_pre_hook", "state_pre_hook"),
        _doubt("hooks see"),
        _OK,
    ),
    Pair(
        "a hook behind that sees no keywords",
        _received(f"{STACK}\nself.register_forward_hook(print)"),
        ("(print)", "(print, with_kwargs=True)"),
        _OK,
        _doubt("hooks see"),
    ),
    Pair(
        "a class from a library in the stack",
        _received("self.layers = nn.ModuleList([ToyLayer(config), Other(config)])").replace(
            "import nn\n", "import nn\nfrom toy import Other\n", 1
        ),
        ("from toy import Other", "from torch.nn import Other"),
        _doubt("unknown filling", "unknown receiver"),
        _doubt("unknown filling"),
    ),
    Pair(
        "a class that a parameter hands in",
        _received(
            f"{STACK}\nself.more(ToyLayer)", more="def more(self, kind):\n    self.layers.append(kind(1))\n"
        ),
        ("self.layers.append(", "self.others.append("),
        _doubt("unknown filling"),
        _OK,
    ),
    Pair(
        "the stack is handed away",
        _received(f"{STACK}\nfill(self.layers)"),
        ("fill(self.layers)", "len(self.layers)"),
        _doubt("unknown filling"),
        _OK,
    ),
    Pair(
        "a function of the file fills it",
        _received(f"{STACK}\nfill(self.layers)", before="def fill(layers):\n    layers.append(make())\n"),
        ("layers.append(make())", "layers.count(make())"),
        _doubt("unknown filling"),
        _OK,
    ),
    Pair(
        "an item is replaced",
        _received(f"{STACK}\nself.layers[0] = make()"),
        ("self.layers[0] = make()", "x = self.layers[0]"),
        _doubt("unknown filling"),
        _OK,
    ),
    Pair(
        "an item is replaced by the same",
        _received(f"{STACK}\nself.layers[0] = make()"),
        ("= make()", "= ToyLayer(config)"),
        _doubt("unknown filling"),
        _OK,
    ),
    Pair(
        "another name for the stack",
        _received(f"{STACK}\nx = self.layers\nx.append(make())"),
        ("x = self.layers", "x = self.others"),
        _doubt("unknown filling"),
        _OK,
    ),
    Pair(
        "another method fills it",
        _received(more="def more(self):\n    self.layers.extend(make())\n"),
        ("self.layers.extend", "self.others.extend"),
        _doubt("unknown filling"),
        _OK,
    ),
    Pair(
        "its name is computed",
        _received(more="def more(self):\n    setattr(self, 'layers', make())\n"),
        ("'layers', make()", "'others', make()"),
        _doubt("unknown filling"),
        _OK,
    ),
    Pair(
        "a loop over it",
        _received(f"{STACK}\nfor x in self.layers:\n    x.train()"),
        ("    x.train()", "    self.layers.append(make())"),
        _OK,
        _doubt("unknown filling"),
    ),
    Pair(
        "what it is may be chosen",
        _received("self.layers = make() if config.x else nn.ModuleList([ToyLayer(config)])"),
        ("make() if config.x else ", ""),
        _doubt("unknown filling"),
        _OK,
    ),
    Pair(
        "what a choice asks is not what it gives",
        _received(f"{STACK}\nx = self.layers if config.x else config\nx.append(make())"),
        ("self.layers if config.x", "config.x if self.layers"),
        _doubt("unknown filling"),
        _OK,
    ),
    Pair(
        "an heir fills it",
        _received() + "class ToyHeir(ToyModel):\n    def __init__(self, config):\n"
        "        super().__init__(config)\n        self.layers.append(make())\n",
        ("self.layers.append(", "self.others.append("),
        _doubt("unknown filling"),
        _OK,
    ),
    Pair(
        "a list of what it holds",
        toy(
            block(base=PROTECTED),
            model(
                _KEYWORD.replace("in self.layers", "in every"), init=f"{STACK}\nself.layers.append(make())"
            ).replace("        for layer", "        every = list(self.layers)\n        for layer"),
        ),
        ("self.layers.append(", "self.others.append("),
        _doubt("unknown filling"),
        _OK,
    ),
    Pair(
        "a method gives an item of it",
        toy(
            block(base=PROTECTED),
            model(
                f"for i in range(2):\n    layer = self.pick(i)\n    {_CALL}hidden_states=hidden_states)",
                init=f"{STACK}\nself.layers.append(make())",
                more="def pick(self, i):\n    return self.layers[i]\n",
            ),
        ),
        ("self.layers.append(", "self.others.append("),
        _doubt("unknown filling"),
        _OK,
    ),
    Pair(
        "a method gives all of it",
        toy(
            block(base=PROTECTED),
            model(
                _KEYWORD,
                more="def every(self):\n    return self.layers\n",
            ),
        ),
        ("in self.layers:", "in self.every():"),
        _OK,
        _OK,
        wrong="a method that returns a whole stack is not looked into where a loop goes over what it returns",
    ),
    Pair(
        "a decorator that takes something for itself",
        _received(
            before="def wrap(f):\n    def inner(*args, **kwargs):\n        return f(*args, **kwargs)\n"
            "    return inner\n"
        ).replace(
            "    def forward(self, hidden_states, mask=None):\n        return",
            "    @wrap\n    def forward(self, hidden_states, mask=None):\n        return",
        ),
        ("def inner(*args, **kwargs)", "def inner(*args, mask=None, **kwargs)"),
        _OK,
        _doubt("decorator"),
    ),
)
def test_receivers(decision: Decision, outside: Outside) -> None:
    assert decision.answers(outside) == decision.said


_UNSAFE_ORDER = [found(CACHE, "unsafe", "reordered")]


def _reordered(
    override: str = "pass\n",
    more: str = "",
    takes: str = "hidden_states, past_key_values=None, encoder_hidden_states=None",
) -> str:
    loop = f"for layer in self.layers:\n    {_CALL}hidden_states, past_key_values, mask)"
    heir = f"class ToyHeir(ToyLayer):\n    {override}\n"
    return toy(
        block(base=PROTECTED, takes=takes),
        heir,
        model(loop, takes="hidden_states, past_key_values=None, mask=None", more=more),
    )


@decisions(
    Pair(
        "an override of the same order",
        _reordered(
            "def forward(self, hidden_states, past_key_values=None, encoder_hidden_states=None):\n"
            "        pass\n"
        ),
        ("encoder_hidden_states=None):\n        pass", "other=None):\n        pass"),
        _UNSAFE_ORDER,
        _refused("not reordered", rule=CACHE),
    ),
    Pair(
        "another method of that class",
        _reordered("def backward(self, x):\n        pass\n"),
        ("def backward(self, x)", "def forward(self, x)"),
        _UNSAFE_ORDER,
        _refused("not reordered", rule=CACHE),
    ),
    Pair(
        "a cache without a default",
        _reordered(),
        (
            "past_key_values=None, encoder_hidden_states=None):\n        return",
            "past_key_values, encoder_hidden_states=None):\n        return",
        ),
        _UNSAFE_ORDER,
        _refused("not reordered", rule=CACHE),
    ),
    Pair(
        "`super().forward` by position",
        _reordered("def go(self, x):\n        return super().forward(x)\n").replace(
            "def go(self, x)",
            "def forward(self, hidden_states, past_key_values=None, encoder_hidden_states=None)",
        ),
        ("super().forward(x)", "super().forward(*x)"),
        _UNSAFE_ORDER,
        _refused("not reordered", rule=CACHE),
    ),
    Pair(
        "`forward` of the class itself",
        _reordered(more="def go(self, x):\n    return ToyLayer.train(x)\n"),
        ("ToyLayer.train(x)", "ToyLayer.forward(x)"),
        _UNSAFE_ORDER,
        _refused("not reordered", rule=CACHE),
    ),
    Pair(
        "a checkpoint function runs it",
        _reordered(
            more="def go(self, x):\n    return self._gradient_clipping_func(self.layers[0].__call__, x)\n"
        ),
        ("_gradient_clipping_func", "_gradient_checkpointing_func"),
        _UNSAFE_ORDER,
        _refused("not reordered", rule=CACHE),
    ),
    Pair(
        "another call cannot be matched",
        _reordered(more="def go(self, x):\n    return self.layers[0](x, 1, 2)\n"),
        ("(x, 1, 2)", "(x, 1, 2, 3)"),
        _UNSAFE_ORDER,
        _refused("not reordered", rule=CACHE),
    ),
)
def test_reordering(decision: Decision, outside: Outside) -> None:
    assert decision.answers(outside) == decision.said
