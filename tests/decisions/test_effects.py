"""What recomputation repeats, or does otherwise: state, arguments, globals, random numbers, gradients."""

from __future__ import annotations

from tests.decisions.outside import LAYER, Pair, decided, found
from tests.decisions.toy import BODY, BRANCH, FLAG, LOOP, STACK, block, model, toy

_SAFE = [found(LAYER, "safe")]


def _doing(statements: str, **more: str) -> str:
    """Write a file whose block does something in ``forward``."""
    return toy(block(f"{statements}\n{BODY}", **more), model())


def _effect(decision: str, statements: str, change: tuple[str, str], *kinds: str, **more: str) -> Pair:
    """Return the pair of an effect and of code without it."""
    return Pair(decision, _doing(statements, **more), change, [found(LAYER, "unsafe", *kinds)], _SAFE)


test_state = decided(
    Pair(
        "statistics of what a table holds",
        toy(
            "NORMS = {'batch': nn.BatchNorm1d}\n",
            block(init="self.norm = NORMS['batch'](4)"),
            model(),
        ),
        ("nn.BatchNorm1d", "nn.LayerNorm"),
        [found(LAYER, "unsafe", "statistics")],
        _SAFE,
    ),
    _effect("an attribute", "self.last = mask", ("self.last", "last"), "stores on self"),
    _effect("an item of an attribute", "self.seen[0] = mask", ("self.seen[0]", "seen"), "stores on self"),
    _effect(
        "an attribute of an attribute", "self.seen.last = mask", ("self.seen.last", "seen"), "stores on self"
    ),
    _effect("counted", "count = 0\nself.count += 1", ("self.count", "count"), "stores on self"),
    _effect("one of two targets", "last, self.last = 1, 2", ("self.last", "more"), "stores on self"),
    _effect("filled", "self.seen.append(mask)", ("append", "count"), "stores on self", init="self.seen = []"),
    _effect("by its name", "setattr(self, 'last', mask)", ("setattr(self", "getattr(self"), "stores on self"),
    _effect(
        "an attribute in place",
        "self.table.add_(1)",
        ("add_(", "add("),
        "stores on self",
        init="self.table = torch.zeros(1)",
    ),
    _effect(
        "an attribute of a loop",
        "for self.last in range(2):\n    pass",
        ("self.last", "last"),
        "stores on self",
    ),
    _effect("an annotated attribute", "self.last: int = 1", (" = 1", ""), "stores on self"),
    _effect(
        "a context",
        "with torch.autocast('cpu') as self.last:\n    pass",
        ("as self.last", "as last"),
        "stores on self",
    ),
    _effect("of the class", "type(self).last = mask", ("type(self).last", "last"), "global"),
    _effect("of its class", "self.__class__.last = mask", ("self.__class__.last", "last"), "global"),
    _effect(
        "in a method that it calls",
        "self.count()",
        ("self.count()", "self.parameters()"),
        "stores on self",
        more="def count(self):\n    self.last = 1\n",
    ),
    _effect(
        "by an alias", "me = self\nme.last = mask", ("me = self", "me = torch.zeros(4).T"), "stores on self"
    ),
    _effect(
        "what it holds, by an alias",
        "seen = self.seen\nseen.append(mask)",
        ("seen = self.seen", "seen = []"),
        "stores on self",
        init="self.seen = []",
    ),
    _effect(
        "another name for it",
        "seen = self.seen\nseen.append(mask)",
        ("seen.append", "sean = []\n        sean.append"),
        "stores on self",
        init="self.seen = []",
    ),
    _effect(
        "another name for it, that a comprehension goes over",
        "seen = self.seen\nmask = [each for each in seen.pop()]\nseen = []",
        ("mask = [", "seen = [mask]\n        mask = ["),
        "stores on self",
        init="self.seen = []",
    ),
    _effect(
        "another name for it, among the values of a comprehension",
        "seen = self.seen\nmask = {each: seen.pop() for each in mask}\nseen = []",
        ("mask = {", "seen = [mask]\n        mask = {"),
        "stores on self",
        init="self.seen = []",
    ),
    _effect(
        "a copy of it",
        "seen = self.seen\nseen.append(mask)",
        ("seen = self.seen\n        seen.append(mask)", "seen = [1]\n        seen.append(mask)"),
        "stores on self",
        init="self.seen = []",
    ),
    _effect(
        "a number is not changed",
        "count = self.count[0]\ncount += count",
        ("([1],)", "(1,)"),
        "stores on self",
        init="self.count = ([1],)",
    ),
    Pair(
        "by a method that calls the instance by another name",
        toy(
            block(
                "this.keep(hidden_states)\nreturn this.attention(hidden_states)",
                more="def keep(this, x):\n    this.last = x\n",
            ).replace("def forward(self", "def forward(this"),
            model(),
        ),
        ("this.last = x", "this = x"),
        [found(LAYER, "unsafe", "stores on self")],
        _SAFE,
    ),
)


_PART = """\
class ToyPart(nn.Module):
    def __init__(self):
        super().__init__()
        {1}

    def forward(self, states):
        {0}
        return states

"""


def _part(statement: str, of_model: str = "", init: str = "") -> str:
    text = block(
        "return hidden_states + self.attention(self.part(hidden_states))", init="self.part = ToyPart()"
    )
    return toy(_PART.format(statement, init), text, model(more=of_model))


test_parts = decided(
    Pair(
        "a part counts",
        _part("self.count += 1"),
        ("self.count", "count = 0; count"),
        [found(LAYER, "unsafe", "changes state")],
        _SAFE,
    ),
    Pair(
        "a part continues",
        _part("self.last = self.last + 1"),
        ("self.last + 1", "2 + 1"),
        [found(LAYER, "unsafe", "changes state")],
        _SAFE,
    ),
    Pair(
        "a part fills",
        _part("self.seen.append(1)", init="self.seen = []"),
        ("self.seen.append", "[].append"),
        [found(LAYER, "unsafe", "changes state")],
        _SAFE,
    ),
    Pair(
        "a part changes an attribute in place",
        _part("self.table.add_(1)", init="self.table = torch.zeros(1)"),
        ("add_(1)", "add(1)"),
        [found(LAYER, "unsafe", "changes state")],
        _SAFE,
    ),
    Pair(
        "a part writes an item of what it keeps",
        _part("self.memory[0] = states"),
        ("self.memory[0]", "memory = self.memory"),
        [found(LAYER, "unsafe", "changes state")],
        _SAFE,
    ),
    Pair(
        "a part keeps what a model reads",
        _part("self.last = states + 1", "def get(self):\n    return self.layers[0].part.last\n"),
        ("part.last", "part.lost"),
        [found(LAYER, "unsafe", "kept for others")],
        _SAFE,
    ),
    Pair(
        "a part keeps a constant",
        _part("self.last = states + 1", "def get(self):\n    return self.layers[0].part.last\n"),
        ("self.last = states + 1", "self.last = None"),
        [found(LAYER, "unsafe", "kept for others")],
        _SAFE,
    ),
    Pair(
        "a model only sets what a part keeps",
        _part("self.last = states + 1", "def get(self):\n    return self.layers[0].part.last\n"),
        ("return self.layers[0].part.last", "self.layers[0].part.last = None"),
        [found(LAYER, "unsafe", "kept for others")],
        _SAFE,
    ),
    Pair(
        "weights are initialized",
        _part("self.last = states + 1", "def get(self, part):\n    return part.last\n"),
        ("def get(", "def _init_weights("),
        [found(LAYER, "unsafe", "kept for others")],
        _SAFE,
    ),
    Pair(
        "a configuration has the same name",
        _part("self.last = states + 1", "def get(self, part):\n    return part.last\n"),
        ("return part.last", "return self.config.last"),
        [found(LAYER, "unsafe", "kept for others")],
        _SAFE,
    ),
    Pair(
        "a part keeps a buffer",
        _part(
            "self.last = states + 1",
            "def get(self):\n    return self.layers[0].part.last\n",
            "self.last = None",
        ),
        ("        self.last = None", "        self.register_buffer('last', None)"),
        [found(LAYER, "unsafe", "kept for others")],
        _SAFE,
    ),
    Pair(
        "an object that is no module keeps something",
        toy(
            "class ToyMemory:\n    def keep(self, x):\n        self.last = x\n\n",
            block(f"self.memory.keep(mask)\n{BODY}", init="self.memory = ToyMemory()"),
            model(),
        ),
        ("self.last = x", "last = x"),
        [found(LAYER, "unsafe", "changes state")],
        _SAFE,
    ),
    Pair(
        "a method that is named like one that changes its object, whose code shows that it does not",
        _doing("self.attention.add_one(mask)").replace(
            "    def forward(self, states)",
            "    def add_one(self, x):\n        return x\n\n    def forward(self, states)",
        ),
        ("def add_one(", "def other("),
        _SAFE,
        [found(LAYER, "unsafe", "unknown")],
    ),
)


_INPUT = ("changes its input",)


test_arguments = decided(
    _effect("an argument", "hidden_states += 1", ("+= 1", "= hidden_states + 1"), *_INPUT),
    _effect("an item of an argument", "mask[0] = 1", ("mask[0]", "mask"), *_INPUT),
    _effect("a view of an argument", "x = mask.view(-1)\nx += 1", ("mask.view(-1)", "mask.exp()"), *_INPUT),
    _effect("a part of an argument", "x = mask[0]\nx.add_(1)", ("mask[0]", "mask + 1"), *_INPUT),
    _effect("an argument by a method", "hidden_states.mul_(2)", ("mul_(", "mul("), *_INPUT),
    _effect("an argument's flag", "mask.zero_()", ("zero_()", "dim()"), *_INPUT),
    _effect(
        "an argument that may be copied",
        "x = mask.contiguous()\nx += 1",
        (".contiguous()", ".clone()"),
        *_INPUT,
    ),
    _effect(
        "an argument or something else",
        "x = mask or torch.zeros(4)\nx += 1",
        ("mask or", "torch.ones(4) or"),
        *_INPUT,
    ),
    _effect(
        "one side of a choice",
        "x = mask if self.y else 1\nx += 1",
        ("mask if self.y else 1", "1 if mask else 1"),
        *_INPUT,
    ),
    _effect("a walrus", "(x := mask).add_(1)", ("x := mask", "x := mask + 1"), *_INPUT),
    _effect("out of a function", "torch.add(mask, 1, out=mask)", ("out=mask", "out=None"), *_INPUT),
    _effect("a function of torch in place", "torch.relu_(mask)", ("relu_(", "relu("), *_INPUT),
    _effect(
        "a flag of a function",
        "nn.functional.relu(mask, inplace=True)",
        ("inplace=True", "inplace=False"),
        *_INPUT,
    ),
    _effect(
        "a flag of a function by position", "nn.functional.relu(mask, True)", (", True", ", False"), *_INPUT
    ),
    _effect(
        "a module in place",
        "x = self.act(mask)",
        ("nn.ReLU(inplace=True)", "nn.ReLU(inplace=False)"),
        *_INPUT,
        init="self.act = nn.ReLU(inplace=True)",
    ),
    _effect(
        "a part changes what it gets",
        "self.fill(mask)",
        ("x[0] = 1", "x = 1"),
        *_INPUT,
        more="def fill(self, x):\n    x[0] = 1\n",
    ),
    _effect(
        "a part changes another argument",
        "self.fill(mask, 2)",
        ("fill(mask, 2)", "fill(2, mask)"),
        *_INPUT,
        more="def fill(self, x, y):\n    x[0] = 1\n",
    ),
    _effect("a dict is filled", "mask.update(x=1)", ("mask.update", "{}.update"), *_INPUT),
    _effect("an item is taken out", "mask.pop()", ("mask.pop()", "mask.shape[0]"), *_INPUT),
    _effect("a method that records", "mask.push(1)", ("mask.push(1)", "mask.size(1)"), "unknown"),
    Pair(
        "a method of something unknown",
        _doing("x = torch.zeros(1)\nx.store_(hidden_states)"),
        ("store_(", "copy_("),
        [found(LAYER, "unsafe", "unknown")],
        _SAFE,
    ),
    Pair(
        "a method of an object of its own that is named like a tensor's",
        toy(
            "class ToyMemory:\n    def add_(self, x):\n        x[0] = 1\n\n",
            block(f"x = ToyMemory()\nx.add_(hidden_states)\n{BODY}"),
            model(),
        ),
        ("x = ToyMemory()", "x = torch.zeros(4)"),
        [found(LAYER, "unsafe", *_INPUT)],
        _SAFE,
    ),
    _effect(
        "dropout in place",
        "x = nn.functional.dropout(mask, 0.5, True, True)",
        ("True, True", "True, False"),
        *_INPUT,
    ),
    Pair(
        "a module in place that the base holds",
        toy(
            block(name="ToyBase", init="self.act = nn.ReLU(inplace=True)"),
            "class ToyLayer(ToyBase):\n    def forward(self, hidden_states, mask=None):\n"
            "        x = self.act(mask)\n        return hidden_states + self.attention(hidden_states)\n",
            model(),
        ),
        ("inplace=True", "inplace=False"),
        [found(LAYER, "unsafe", *_INPUT)],
        _SAFE,
    ),
    Pair(
        "a part without parameters may hand back what it gets",
        toy(
            _PART.format("pass", ""),
            block(f"x = self.part(mask)\nx += 1\n{BODY}", init="self.part = ToyPart()"),
            model(),
        ),
        ("x = self.part(", "x = self.attention("),
        [found(LAYER, "unsafe", *_INPUT)],
        _SAFE,
    ),
    _effect(
        "a module that may hand back what it gets",
        "x = self.drop(mask)\nx += 1",
        ("nn.Dropout", "nn.Softmax"),
        *_INPUT,
        init="self.drop = nn.Dropout(0.1)",
    ),
    _effect(
        "a cache is to be changed",
        "if mask is not None:\n    mask.append(1)",
        ("mask.append", "past_key_values.append"),
        *_INPUT,
        takes="hidden_states, past_key_values=None, mask=None",
    ),
    _effect(
        "an attribute of an argument",
        "setattr(mask, 'x', 1)",
        ("setattr(mask, 'x', 1)", "getattr(mask, 'shape', 1)"),
        *_INPUT,
    ),
    _effect(
        "a flag that is set elsewhere",
        "nn.functional.relu(mask, inplace=self.flag)",
        ("inplace=self.flag", "inplace=False"),
        *_INPUT,
    ),
    _effect(
        "a method in place that is handed on behind what it changes",
        "self.run(mask, torch.Tensor.zero_)",
        ("Tensor.zero_", "Tensor.relu"),
        *_INPUT,
        more="def run(self, x, f):\n    return f(x)\n",
    ),
    _effect(
        "what an unknown function hands back, unless it only counts",
        "x = unknown(mask)\nx += 1",
        ("unknown(", "len("),
        *_INPUT,
    ),
    _effect(
        "one of two functions hands it back",
        "run = torch.detach if self.y else torch.sum\nx = run(mask)\nx += 1",
        ("torch.detach if", "torch.mean if"),
        *_INPUT,
        init="self.y = 1",
    ),
    _effect(
        "a method in place by its name",
        "getattr(mask, 'add_')(1)",
        ("'add_'", "'relu'"),
        *_INPUT,
    ),
)


def _global(statements: str) -> str:
    return toy(
        "SEEN = []\nCOUNT = 0\n",
        block(f"{statements}\n{BODY}"),
        model(),
        imports="import random\nimport numpy as np\nimport math\n",
    )


def _asking(decision: str, statements: str, change: tuple[str, str]) -> Pair:
    """Return the pair of a block that asks for gradients, and of one that does not."""
    return Pair(decision, _global(statements), change, [found(LAYER, "unsafe", "asks for gradients")], _SAFE)


test_what_is_outside = decided(
    Pair(
        "a global variable",
        _global("global COUNT\nCOUNT = 1"),
        ("global COUNT\n        ", ""),
        [found(LAYER, "unsafe", "global")],
        _SAFE,
    ),
    Pair(
        "a global list",
        _global("SEEN.append(1)"),
        ("SEEN.append", "[].append"),
        [found(LAYER, "unsafe", "global")],
        _SAFE,
    ),
    Pair(
        "a list of another package",
        _global("MEMORY.append(1)").replace("import math\n", "from otters import MEMORY\n"),
        ("MEMORY.append", "[].append"),
        [found(LAYER, "unsafe", "unknown")],
        _SAFE,
    ),
    Pair(
        "a name of its own",
        _global("SEEN.append(1)"),
        ("SEEN.append", "SEEN = []\n        SEEN.append"),
        [found(LAYER, "unsafe", "global")],
        _SAFE,
    ),
    Pair(
        "Python's random numbers",
        _global("x = random.random()"),
        ("random.random()", "math.floor(1)"),
        [found(LAYER, "unsafe", "random")],
        _SAFE,
    ),
    Pair(
        "numpy's random numbers",
        _global("x = np.random.rand(2)"),
        ("np.random.rand", "np.ones"),
        [found(LAYER, "unsafe", "random")],
        _SAFE,
    ),
    Pair(
        "torch's random numbers",
        _global("x = random.random()"),
        ("random.random()", "torch.rand(1)"),
        [found(LAYER, "unsafe", "random")],
        _SAFE,
    ),
    Pair(
        "a generator of its own",
        _global("x = torch.rand(1, generator=self.made)"),
        ("generator=self.made", "generator=None"),
        [found(LAYER, "unsafe", "generator of numbers")],
        _SAFE,
    ),
    _asking(
        "gradients are asked for", "if torch.is_grad_enabled():\n    pass", ("is_grad_enabled", "is_tensor")
    ),
    _asking(
        "a tensor is asked for gradients",
        "if hidden_states.requires_grad:\n    pass",
        ("states.requires_grad", "states.is_sparse"),
    ),
    _asking(
        "a tensor is asked in a comparison",
        "if hidden_states.grad_fn is None:\n    pass",
        ("grad_fn is None", "shape is None"),
    ),
    _asking(
        "a tensor is asked in `not … and`",
        "if mask and not hidden_states.is_leaf:\n    pass",
        ("is_leaf", "is_cuda"),
    ),
    _asking(
        "the object is asked",
        "if hidden_states.requires_grad:\n    pass",
        ("if hidden_states.requires_grad", "if hidden_states.shape"),
    ),
    _asking("a gradient is computed", "x = torch.autograd.grad(mask)", ("autograd.grad", "sum")),
    Pair(
        "a function that was passed in",
        _global("mask(1)"),
        ("mask(1)", "x = mask[1]"),
        [found(LAYER, "unsafe", "calls back")],
        _SAFE,
    ),
    Pair(
        "a function that the object holds",
        toy(block(f"self.report(1)\n{BODY}", init="self.report = config.report"), model()),
        ("self.report(1)", "x = self.report(1)"),
        [found(LAYER, "unsafe", "calls back")],
        _SAFE,
    ),
    Pair(
        "a function that the base holds",
        toy(
            block(name="ToyBase", init="self.report = config.report"),
            "class ToyLayer(ToyBase):\n    def forward(self, hidden_states, mask=None):\n"
            "        self.report(1)\n        return hidden_states + self.attention(hidden_states)\n",
            model(),
        ),
        ("self.report(1)", "x = self.report(1)"),
        [found(LAYER, "unsafe", "calls back")],
        _SAFE,
    ),
    Pair(
        "a function that another object holds",
        toy(block(f"self.report(1)\n{BODY}", init="self.report = config.report"), model()),
        ("        self.report(1)", "        mask.argmax(1)"),
        [found(LAYER, "unsafe", "calls back")],
        _SAFE,
    ),
    Pair(
        "a module whose output is not used",
        toy(block(f"self.report(1)\n{BODY}", init="self.report = config.report"), model()),
        ("        self.report(1)", "        self.attention(mask)"),
        [found(LAYER, "unsafe", "calls back")],
        _SAFE,
    ),
    _asking(
        "a tensor is asked in a conditional expression",
        "x = 1 if hidden_states.requires_grad else 2",
        ("requires_grad else", "is_sparse else"),
    ),
    Pair(
        "numpy's random numbers, by a generator",
        toy(
            block(f"x = self.made.random()\n{BODY}", init="self.made = np.random.default_rng()"),
            model(),
            imports="import numpy as np\n",
        ),
        ("self.made.random()", "np.ones(1)"),
        [found(LAYER, "unsafe", "random")],
        _SAFE,
    ),
)


_DRAWN = "return x * random.random()"
_NOT_DRAWN = ("random.random()", "abs(1)")


def _based(body: str, *bases: str, more: str = "") -> str:
    """Write a file whose block inherits from the last of these bases, the first of which draws numbers."""
    of_bases = [
        f"class {name}({base}):\n    def {method}(self, x):\n        {text}\n"
        for name, base, method, text in (each.split("|") for each in bases)
    ]
    name = bases[-1].partition("|")[0]
    return toy(*of_bases, block(body, base=name, more=more), model(), imports="import random\n")


_MIX = f"ToyBase|nn.Module|mix|{_DRAWN}"


test_code_that_is_called = decided(
    Pair(
        "a method of the base, by `super()`",
        _based("return hidden_states + super().mix(self.attention(hidden_states))", _MIX),
        _NOT_DRAWN,
        [found(LAYER, "unsafe", "random")],
        _SAFE,
    ),
    Pair(
        "a method of the base, by way of another",
        _based(
            "return hidden_states + self.mend(self.attention(hidden_states))",
            f"ToyRoot|nn.Module|mix|{_DRAWN}",
            "ToyBase|ToyRoot|mend|return super().mix(x)",
        ),
        _NOT_DRAWN,
        [found(LAYER, "unsafe", "random", "shared base")],
        [found(LAYER, "unsafe", "shared base")],
    ),
    Pair(
        "a function of the file",
        toy(
            f"def noisy(x):\n    {_DRAWN}\n",
            block("return hidden_states + noisy(self.attention(hidden_states))"),
            model(),
            imports="import random\n",
        ),
        _NOT_DRAWN,
        [found(LAYER, "unsafe", "random")],
        _SAFE,
    ),
    Pair(
        "a method of a part that is not its `forward`",
        toy(
            f"class ToyNoise(nn.Module):\n    def make(self, x):\n        {_DRAWN}\n",
            block(
                "return hidden_states + self.noise.make(self.attention(hidden_states))",
                init="self.noise = ToyNoise()",
            ),
            model(),
            imports="import random\n",
        ),
        _NOT_DRAWN,
        [found(LAYER, "unsafe", "random")],
        _SAFE,
    ),
    Pair(
        "a method of the base, by the method that overrides it",
        _based(
            "return hidden_states + self.mix(self.attention(hidden_states))",
            _MIX.replace(*_NOT_DRAWN),
            more="def mix(self, x):\n    return super().mix(x)\n",
        ),
        _NOT_DRAWN[::-1],
        _SAFE,
        [found(LAYER, "unsafe", "random")],
    ),
    Pair(
        "the `forward` of the base, by `super()`",
        _based(
            "return super().forward(self.attention(hidden_states))",
            f"ToyBase|nn.Module|forward|{_DRAWN}",
        ),
        _NOT_DRAWN,
        [found(LAYER, "unsafe", "random")],
        _SAFE,
    ),
    Pair(
        "the `forward` of the base, by the name of the base",
        _based(
            "return ToyBase.forward(self, self.attention(hidden_states))",
            f"ToyBase|nn.Module|forward|{_DRAWN}",
        ),
        _NOT_DRAWN,
        [found(LAYER, "unsafe", "random")],
        _SAFE,
    ),
    Pair(
        "a method of the base, by the name of the base",
        _based("return hidden_states + ToyBase.mix(self, self.attention(hidden_states))", _MIX),
        _NOT_DRAWN,
        [found(LAYER, "unsafe", "random")],
        _SAFE,
    ),
)


_TORCHS = BRANCH.replace("self._gradient_checkpointing_func(", "torch.utils.checkpoint.checkpoint(")


def _recomputed(
    body: str, branch: str = _TORCHS, kind: str = "random"
) -> tuple[str, tuple[str, str], list[str]]:
    """Return a file whose block torch's own function recomputes, with the library's instead, and a doubt."""
    imports = "import random\nimport torch.utils.checkpoint\n"
    code = toy(block(body), model(branch, init=f"{STACK}\n{FLAG}"), imports=imports)
    change = ("torch.utils.checkpoint.checkpoint(layer", "self._gradient_checkpointing_func(layer")
    return code, change, [found(LAYER, "unsafe", kind)]


_DRAWN = f"mask = random.random()\n{BODY}"
_HELD = f"return {{'x': {BODY.removeprefix('return ')}}}"


test_effects_where_something_recomputes_already = decided(
    Pair("numbers drawn in the mode of torch's function", *_recomputed(_DRAWN), _SAFE),
    Pair(
        "a dict in a mode of torch's function that is written",
        *_recomputed(
            _HELD,
            _TORCHS.replace(
                "__call__, hidden_states, mask", "__call__, hidden_states, mask, use_reentrant=True"
            ),
            "returns a container",
        ),
        _SAFE,
    ),
    Pair(
        "two loops, of which one is in the mode of torch's function",
        *_recomputed(_DRAWN, f"{BRANCH}{_TORCHS.lstrip()}"),
        _SAFE,
    ),
    Pair(
        "two loops, of which the other is in the mode of torch's function",
        *_recomputed(_DRAWN, f"{_TORCHS}{BRANCH.lstrip()}"),
        _SAFE,
    ),
    Pair(
        "a second loop that recomputed nothing",
        toy(
            block(_DRAWN),
            model(f"{BRANCH}{LOOP.lstrip()}", init=f"{STACK}\n{FLAG}"),
            imports="import random\n",
        ),
        ("            hidden_states = layer(hidden_states)\n", "            layer = layer\n"),
        [found(LAYER, "unsafe", "random")],
        _SAFE,
    ),
)
