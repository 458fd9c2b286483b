"""What is a stack, and a block in it: a loop that feeds back, a mixer inside, a model around."""

from __future__ import annotations

from textwrap import indent

from tests.decisions.outside import LAYER, Pair, decided, found, silent
from tests.decisions.toy import STACK, block, model, toy

_SAFE = [found(LAYER, "safe")]
_TWO = [found(LAYER, "safe"), found(LAYER, "safe", of="ToyOther")]
_OTHER = "self.others = nn.ModuleList([ToyOther(config) for _ in range(2)])"
_BOTH = f"{STACK}\n{_OTHER}"


def _loop(loop: str, **more: str) -> str:
    return toy(block(), model(loop, **more))


def _fed_back(decision: str, loop: str, change: tuple[str, str]) -> Pair:
    """Return the pair of a loop that feeds the output back, and of one that does not."""
    return Pair(decision, _loop(loop), change, _SAFE, [silent(LAYER, "not fed back")])


test_feeding_back = decided(
    Pair(
        "the output is fed back",
        toy(),
        ("hidden_states = layer(", "outputs = layer("),
        _SAFE,
        [silent(LAYER, "not fed back")],
    ),
    Pair(
        "one of two calls feeds the other",
        _loop(
            "x = hidden_states\nfor layer in self.layers:\n    if mask is None:\n        y = layer(x)\n"
            "    else:\n        z = layer(hidden_states)\n    x = z"
        ),
        ("x = z", "w = z"),
        _SAFE,
        [silent(LAYER, "not fed back")],
        at="= layer(",
    ),
    Pair(
        "the class has no such attribute",
        toy(block(), model(init=STACK.replace("ToyLayer(config)", "ToyLayer.absent(config)"))),
        (".absent(config)", "(config)"),
        [],
        _SAFE,
    ),
    _fed_back(
        "it is fed back by another name",
        "for layer in self.layers:\n    out = layer(hidden_states)\n    hidden_states = out",
        ("hidden_states = out", "final = out"),
    ),
    Pair(
        "it is assigned anew before the call",
        _loop("for layer in self.layers:\n    x = mask\n    x = layer(x)"),
        ("    x = mask\n", "    y = mask\n"),
        [silent(LAYER, "not fed back")],
        _SAFE,
    ),
    _fed_back(
        "only its shape is fed back",
        "size = 1\nfor layer in self.layers:\n    out = layer(hidden_states, size)\n    size = out.mean(0)",
        ("out.mean(0)", "out.size(0)"),
    ),
    _fed_back(
        "only the number of its dimensions is fed back",
        "size = 1\nfor layer in self.layers:\n    out = layer(hidden_states, size)\n    size = out.mean()",
        ("out.mean()", "out.dim()"),
    ),
    _fed_back(
        "a figure of it is fed back",
        "size = 1\nfor layer in self.layers:\n    out = layer(hidden_states, size)\n    size = out.mT",
        ("out.mT", "out.shape"),
    ),
    _fed_back(
        "what a comparison says is not fed back",
        "seen = None\nfor layer in self.layers:\n    out = layer(hidden_states, seen)\n    seen = out + mask",
        ("out + mask", "out == mask"),
    ),
    _fed_back(
        "what a conditional expression asks is not fed back",
        "seen = None\nfor layer in self.layers:\n    out = layer(hidden_states, seen)\n"
        "    seen = out if self.x else mask",
        ("out if self.x else mask", "mask if out else self.x"),
    ),
    _fed_back(
        "a walrus feeds back",
        "for layer in self.layers:\n    if (x := layer(hidden_states)) is not None:\n"
        "        hidden_states = x",
        ("hidden_states = x", "hidden_states = mask"),
    ),
    Pair(
        "a list grows",
        _loop(
            "every = [hidden_states]\nfor layer in self.layers:\n    out = layer(every)\n"
            "    every.append(out)"
        ),
        ("every.append(out)", "every.count(out)"),
        [found(LAYER, "unsafe", "changed around", "holds gradients")],
        [silent(LAYER, "not fed back")],
    ),
    Pair(
        "an item is filled in",
        _loop("every = {}\nfor layer in self.layers:\n    out = layer(every)\n    every[0] = out"),
        ("every[0] = out", "other[0] = out"),
        [found(LAYER, "unsafe", "container stays")],
        [silent(LAYER, "not fed back")],
    ),
    Pair(
        "a sum is fed back",
        _loop("for layer in self.layers:\n    x = layer(hidden_states)\n    hidden_states += x"),
        ("hidden_states += x", "self.count += x"),
        [found(LAYER, "unsafe", "changed around")],
        [silent(LAYER, "not fed back")],
    ),
    _fed_back(
        "one arm of an `if` feeds back",
        "for layer in self.layers:\n    out = layer(hidden_states)\n    if mask is None:\n        pass\n"
        "    else:\n        hidden_states = out",
        ("hidden_states = out", "mask = out"),
    ),
    _fed_back(
        "a handler of an exception feeds back",
        "for layer in self.layers:\n    out = layer(hidden_states)\n    try:\n        pass\n"
        "    except ValueError:\n        hidden_states = out",
        ("hidden_states = out", "mask = out"),
    ),
    _fed_back(
        "an inner loop feeds back",
        "for layer in self.layers:\n    out = layer(hidden_states)\n    for _ in range(2):\n"
        "        hidden_states = out",
        ("hidden_states = out", "mask = out"),
    ),
    _fed_back(
        "it is unpacked and fed back",
        "for layer in self.layers:\n    hidden_states, rest = layer(hidden_states)",
        ("hidden_states, rest", "first, rest"),
    ),
    Pair(
        "a loop is needed",
        _loop("for _ in range(2):\n    hidden_states = self.layers[0](hidden_states)"),
        ("for _ in range(2)", "if True"),
        _SAFE,
        [silent(LAYER, "no loop")],
        at="self.layers[0](",
    ),
    Pair(
        "a loop may stand on one line",
        _loop("for layer in self.layers:\n    hidden_states = layer(hidden_states)"),
        ("self.layers:\n            hidden", "self.layers: hidden"),
        _SAFE,
        _SAFE,
    ),
    Pair(
        "`while` is a loop",
        _loop("while mask:\n    hidden_states = self.layers[0](hidden_states)"),
        ("while mask", "if mask"),
        _SAFE,
        [silent(LAYER, "no loop")],
        at="self.layers[0](",
    ),
    Pair(
        "the `else` of a loop is outside of it",
        _loop("for _ in self.layers:\n    pass\nelse:\n    hidden_states = self.layers[0](hidden_states)"),
        ("    pass\n        else:", "    pass"),
        [silent(LAYER, "no loop")],
        _SAFE,
        at="self.layers[0](",
    ),
)


def _filled(init: str) -> str:
    return toy(block(), model(init=init))


_MADE = "ToyLayer(config)"


def _stacked(decision: str, loop: str, change: tuple[str, str], **more: str) -> Pair:
    """Return the pair of a loop that runs a stack, and of one that does not."""
    return Pair(
        decision, _loop(loop, **more), change, _SAFE, [silent(LAYER, "not in a stack")], at="class ToyLayer"
    )


def _filling(decision: str, statements: str, change: tuple[str, str]) -> Pair:
    """Return the pair of statements that fill a stack, and of some that do not."""
    return Pair(
        decision, _filled(statements), change, _SAFE, [silent(LAYER, "not in a stack")], at="class ToyLayer"
    )


test_filling = decided(
    _filling(
        "append",
        f"self.layers = nn.ModuleList()\nself.layers.append({_MADE})",
        ("self.layers.append", "self.other.append"),
    ),
    _filling(
        "a list of a function's own",
        f"made = []\nmade.append({_MADE})\nself.layers = nn.ModuleList(made)",
        ("ModuleList(made)", "ModuleList(more)"),
    ),
    Pair(
        "a name that is computed",
        _filled(f'for i in range(2):\n    setattr(self, f"layer_{{i}}", {_MADE})').replace(
            "for layer in self.layers:", "for i in range(2):\n            layer = getattr(self, f'layer_{i}')"
        ),
        ("layer = getattr(self", "layer = getattr(mask"),
        _SAFE,
        [silent(LAYER, "not in a stack")],
        at="class ToyLayer",
    ),
    Pair(
        "a sequence of torch, called as a whole",
        toy(
            block(),
            model(
                "hidden_states = self.layers(hidden_states)",
                init="self.layers = nn.Sequential(*[ToyLayer(config)])",
            ),
        ),
        ("nn.Sequential(*", "nn.Identity(*"),
        _SAFE,
        [silent(LAYER, "not in a stack")],
        at="class ToyLayer",
    ),
    Pair(
        "a method that makes layers",
        _filled("self.layers = nn.ModuleList([self.make(config)])").replace(
            "    def forward(self, hidden_states, mask=None):\n        for",
            f"    def make(self, config):\n        return {_MADE}\n"
            "    def forward(self, hidden_states, mask=None):\n        for",
        ),
        ("self.make(config)]", "self.mend(config)]"),
        _SAFE,
        [silent(LAYER, "not in a stack")],
        at="class ToyLayer",
    ),
    Pair(
        "what a table holds",
        toy(
            block(),
            'KINDS = {"toy": ToyLayer}\n',
            model(init='self.layers = nn.ModuleList([KINDS["toy"](config)])'),
        ),
        ('"toy": ToyLayer', '"toy": ToyAttention'),
        _SAFE,
        [silent(LAYER, "not in a stack")],
        at="class ToyLayer",
    ),
    Pair(
        "a copy of a module",
        toy(
            block(),
            model(init=f"self.layers = nn.ModuleList([copy.deepcopy({_MADE})])"),
            imports="import copy\n",
        ),
        ("copy.deepcopy(", "copy.unknown("),
        _SAFE,
        [silent(LAYER, "not in a stack")],
        at="class ToyLayer",
    ),
    _stacked(
        "the second of a pair",
        "for index, layer in enumerate(self.layers):\n    hidden_states = layer(hidden_states)",
        ("index, layer", "layer, index"),
    ),
    _stacked(
        "the first of two",
        "for layer, other in zip(self.layers, mask):\n    hidden_states = layer(hidden_states)",
        ("zip(self.layers, mask)", "zip(mask, self.layers)"),
    ),
    _stacked(
        "a part of the stack",
        "for layer in self.layers[1:]:\n    hidden_states = layer(hidden_states)",
        ("self.layers[1:]", "self.config[1:]"),
    ),
    _stacked(
        "the values of a dict",
        "for layer in self.layers.values():\n    hidden_states = layer(hidden_states)",
        (".values()", ".keys()"),
        init=f'self.layers = nn.ModuleDict({{"a": {_MADE}}})',
    ),
    Pair(
        "a list of the items of a dict",
        _loop(
            "for name, layer in self.layers.items():\n    hidden_states = layer(hidden_states)",
            init=f'self.layers = nn.ModuleDict({{"a": {_MADE}}})',
        ),
        ("self.layers.items()", "list(self.layers.items())"),
        _SAFE,
        _SAFE,
        wrong="what a list of the items of a dict holds is taken for its values",
    ),
    _stacked(
        "a dict that is made of the items of another",
        "for layer in self.layers.values():\n    hidden_states = layer(hidden_states)",
        ("made.items()", "made.keys()"),
        init=f'made = {{"a": {_MADE}}}\nself.layers = nn.ModuleDict(made.items())',
    ),
    _stacked(
        "the items of a dict",
        "for name, layer in self.layers.items():\n    hidden_states = layer(hidden_states)",
        ("name, layer", "layer, name"),
        init=f'self.layers = nn.ModuleDict({{"a": {_MADE}}})',
    ),
    _filling(
        "one side of a choice",
        "self.layers = nn.ModuleList([ToyLayer(config) if config.x else None])",
        ("ToyLayer(config) if", "ToyLayer if"),
    ),
    Pair(
        "what the loop goes over",
        toy(block(), block(name="ToyOther"), model(init=_BOTH)),
        ("for layer in self.layers:", "for layer in self.layers or self.others:"),
        _SAFE,
        _TWO,
    ),
    Pair(
        "two stacks in one list",
        toy(block(), block(name="ToyOther"), model(init=_BOTH)),
        ("for layer in self.layers:", "for layer in [*self.layers, *self.others]:"),
        _SAFE,
        _TWO,
    ),
    Pair(
        "the name is bound anew",
        toy(
            block(),
            block(name="ToyOther"),
            model(
                "for i, layer in enumerate(self.layers):\n    if i:\n        layer = self.others[i]\n"
                "    hidden_states = layer(hidden_states)",
                init=_BOTH,
            ),
        ),
        ("layer = self.others[i]", "other = self.others[i]"),
        _TWO,
        _SAFE,
    ),
    Pair(
        "a method gives one of them",
        toy(
            block(),
            model(
                "for i in range(2):\n    layer = self.pick(i)\n    hidden_states = layer(hidden_states)",
                more="def pick(self, i):\n    return self.layers[i]\n",
            ),
        ),
        ("return self.layers[i]", "return self.config[i]"),
        _SAFE,
        [silent(LAYER, "not in a stack")],
        at="class ToyLayer",
    ),
    Pair(
        "a dict that another is put into",
        toy(
            block(),
            block(name="ToyOther"),
            model(
                "for layer in self.layers.values():\n    hidden_states = layer(hidden_states)",
                init=f'self.layers = nn.ModuleDict({{"a": {_MADE}}})\n'
                'self.layers.update({"b": ToyOther(config)})',
            ),
        ),
        ("self.layers.update(", "self.others.update("),
        _TWO,
        _SAFE,
    ),
    _filling("a name that hides a class", f"ToyOther = config.kind\n{STACK}", ("ToyOther = ", "ToyLayer = ")),
    Pair(
        "a list that is extended",
        toy(
            block(),
            block(name="ToyOther"),
            model(init=f"self.layers = nn.ModuleList([{_MADE}])\nself.layers.extend([ToyOther(config)])"),
        ),
        ("self.layers.extend(", "self.others.extend("),
        _TWO,
        _SAFE,
    ),
    Pair(
        "what a method gets, or takes instead",
        toy(
            block(),
            block(name="ToyOther"),
            model(
                init="self.layers = nn.ModuleList([self.make(config, ToyLayer)])",
                more="def make(self, config, kind):\n    if config.x:\n        kind = ToyOther\n"
                "    return kind(config)\n",
            ),
        ),
        ("    kind = ToyOther", "    other = ToyOther"),
        _TWO,
        _SAFE,
    ),
    Pair(
        "a parameter that hides a class",
        toy().replace("(self, config):\n        super().__init__(config)", "(self, config, ToyOther):"),
        ("config, ToyOther)", "config, ToyLayer)"),
        _SAFE,
        [silent(LAYER, "not in a stack")],
        at="class ToyLayer",
    ),
    Pair(
        "a function that wraps it",
        _loop(
            "for other in self.layers:\n    layer = other\n    layer = wrap(layer)\n"
            "    hidden_states = layer(hidden_states)"
        ),
        ("wrap(layer)", "wrap(other)"),
        [found(LAYER, "unsafe", "unknown around")],
        [silent(LAYER, "not in a stack")],
        at="class ToyLayer",
    ),
    _filling(
        "a name that is written as a string",
        f'setattr(self, "layers", nn.ModuleList([{_MADE}]))',
        ('"layers"', '"others"'),
    ),
    Pair(
        "a list that a module is added to",
        toy(
            block(),
            block(name="ToyOther"),
            model(
                init=f"self.layers = nn.ModuleList([{_MADE}])\nself.layers.add_module('1', ToyOther(config))"
            ),
        ),
        ("self.layers.add_module(", "self.others.add_module("),
        _TWO,
        _SAFE,
    ),
    Pair(
        "a class with some of its arguments",
        toy(
            block(),
            model(init="make = partial(ToyLayer, config)\nself.layers = nn.ModuleList([make()])"),
            imports="from functools import partial\n",
        ),
        ("partial(ToyLayer,", "partial(ToyAttention,"),
        _SAFE,
        [silent(LAYER, "not in a stack")],
        at="class ToyLayer",
    ),
    _stacked(
        "an attribute whose name is a string",
        "for layer in getattr(self, 'layers'):\n    hidden_states = layer(hidden_states)",
        ("'layers'", "'others'"),
    ),
    Pair(
        "a property",
        _loop(
            "for layer in self.every:\n    hidden_states = layer(hidden_states)",
            more="@property\ndef every(self):\n    return self.config\n",
        ),
        ("return self.config", "return self.layers"),
        [silent(LAYER, "not in a stack")],
        _SAFE,
        at="class ToyLayer",
        wrong="a property is only looked into where an attribute that holds blocks has the same name",
    ),
    Pair(
        "a function makes what runs the layers",
        toy(
            block(),
            model(name="ToyEncoder", base="nn.Module", supports="None"),
            "def make(config):\n    return ToyEncoder(config)\n",
            model("hidden_states = self.encoder(hidden_states)", init="self.encoder = make(config)"),
        ),
        ("self.encoder = make(", "self.encoder = made("),
        _SAFE,
        [silent(LAYER, "no model")],
        at="class ToyLayer",
    ),
    Pair(
        "sequences in a list",
        toy(
            block(),
            model(
                "for stage in self.stages:\n    for layer in stage:\n"
                "        hidden_states = layer(hidden_states)",
                init=f"self.stages = nn.ModuleList([nn.Sequential({_MADE}, {_MADE})])",
            ),
        ),
        ("nn.Sequential(", "nn.Identity("),
        _SAFE,
        [silent(LAYER, "not in a stack")],
        at="class ToyLayer",
    ),
    _filling(
        "an item of a list is put in, and the list is not replaced",
        f"made = [{_MADE}]\nmade[0] = ToyAttention(config)\nself.layers = nn.ModuleList(made)",
        ("made[0] = ", "made = "),
    ),
    _filling(
        "a loop that leaves before its `else`",
        'for kind in config.kinds:\n    if kind == "toy":\n        made = ToyLayer\n        break\n'
        "else:\n    made = ToyAttention\nself.layers = nn.ModuleList([made(config)])",
        ("        made = ToyLayer", "        kind = ToyLayer"),
    ),
    _stacked(
        "a second name of the stack",
        "one = two = self.layers\nfor layer in two:\n    hidden_states = layer(hidden_states)",
        ("one = two = self.layers", "one = other = self.layers"),
    ),
    Pair(
        "an inner function of which it is not known which of two it is",
        _loop(
            "def run(layer, x):\n    return layer(x)\nif mask is None:\n"
            "    def run(layer, x):\n        return layer(x + 1)\n"
            "for layer in self.layers:\n    hidden_states = run(layer, hidden_states)"
        ),
        (
            "    def run(layer, x):\n                return layer(x + 1)",
            "    def walk(x):\n                return x",
        ),
        [silent(LAYER, "not in a stack")],
        _SAFE,
        at="class ToyLayer",
    ),
    _filling(
        "what a loop binds counts behind it",
        "made = ToyAttention\nfor made in (ToyAttention, ToyLayer):\n    pass\n"
        "self.layers = nn.ModuleList([made(config)])",
        ("(ToyAttention, ToyLayer)", "(ToyAttention,)"),
    ),
)


_ONE = [found(LAYER, "safe")]
_RUN = "for layer in stack:\n    hidden_states = layer(hidden_states)\n"
_INNER = indent(_RUN, "    ")


def _stacks(
    decision: str,
    loop: str,
    change: tuple[str, str] = ("    stack = self.second", "    other = self.second"),
    said: list[str] = _TWO,
) -> Pair:
    """Return the pair of code in which the second of two stacks reaches a loop, and of one without it."""
    first = "self.first = nn.ModuleList([ToyLayer(config)])"
    second = "self.second = nn.ModuleList([ToyOther(config)])"
    code = toy(block(), block(name="ToyOther"), model(loop, init=f"{first}\n{second}"))
    return Pair(decision, code, change, said, _ONE)


test_what_reaches_a_loop = decided(
    _stacks(
        "from the round before",
        f"stack = self.first\nfor _ in range(2):\n{_INNER}    stack = self.second\n",
    ),
    _stacks(
        "from the round before, under `while`",
        f"stack = self.first\nwhile mask is None:\n{_INNER}    stack = self.second\n",
    ),
    _stacks(
        "from the round before, which ends early",
        f"stack = self.first\nfor _ in range(2):\n{_INNER}    if mask:\n        stack = self.second\n"
        "        continue\n    stack = self.first\n",
    ),
    _stacks(
        "from the round before, into a function",
        f"stack = self.first\nfor _ in range(2):\n    def run(hidden_states):\n{indent(_INNER, '    ')}"
        "        return hidden_states\n    hidden_states = run(hidden_states)\n    stack = self.second\n",
    ),
    _stacks(
        "from a loop that is over",
        f"stack = self.first\nfor _ in range(2):\n    stack = self.second\n{_RUN}",
    ),
    _stacks(
        "from an attempt that failed",
        "stack = self.first\ntry:\n    stack = self.second\n    self.check(mask)\n    stack = self.first\n"
        f"except ValueError:\n    mask = None\n{_RUN}",
    ),
    _stacks(
        "into what is done at last",
        f"stack = self.first\ntry:\n    stack = self.second\nfinally:\n{_INNER}",
        said=[found(LAYER, "safe", of="ToyOther")],
    ),
    _stacks(
        "from a case",
        f"stack = self.first\nmatch mask:\n    case 1:\n        stack = self.second\n{_RUN}",
    ),
    _stacks(
        "from a condition",
        f"stack = self.first\nif mask and (stack := self.second):\n    mask = None\n{_RUN}",
        ("(stack := self", "(other := self"),
    ),
    _stacks(
        "from a context",
        f"stack = self.first\nwith self.context(mask):\n    stack = self.second\n{_RUN}",
        said=[found(LAYER, "safe", of="ToyOther")],
    ),
    _stacks(
        "from where the method goes on",
        f"stack = self.first\nif mask is None:\n    stack = self.second\n    self.check(mask)\n{_RUN}",
        ("    self.check(mask)\n", "    return hidden_states\n"),
    ),
    _stacks(
        "from the end of a loop",
        "stack = self.second\nfor _ in range(2):\n    if mask:\n        break\nelse:\n"
        f"    stack = self.first\n{_RUN}",
        ("stack = self.second\n", "other = self.second\n"),
    ),
    _stacks(
        "into a function that is made before",
        "for _ in range(2):\n    stack = self.first\n"
        f"def run(hidden_states):\n{_INNER}    return hidden_states\n"
        "hidden_states = run(hidden_states)\nstack = self.second\nhidden_states = run(hidden_states)\n",
        ("\n        stack = self.second", "\n        other = self.second"),
    ),
)
