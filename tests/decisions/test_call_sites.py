"""What is a whole call site, and how it is rewritten: by position, by keyword, in which order, for whom else."""

from __future__ import annotations

from tests.decisions.outside import CACHE, KEYWORD, LAYER, NESTED, Outside, Pair, Side, found, sides, silent
from tests.decisions.toy import PROTECTED, STACK, block, call, model, toy

_CALL = "hidden_states = layer("


def _written(arguments: str) -> list[str]:
    """Return the finding of an activation by keyword, and what the call becomes."""
    return [found(KEYWORD, "safe", code=f"{_CALL}{arguments})")]


def _refused(*kinds: str, rule: str = KEYWORD) -> list[str]:
    return [found(rule, "none", *kinds)]


_BOTH = "hidden_states, mask=None, encoder_hidden_states=None"
_KEYWORDS = "hidden_states, encoder_hidden_states=mask"


@sides(
    Pair("a literal default is written out", call(_KEYWORDS, takes=_BOTH), ("mask=None, encoder", "mask=NOTHING, encoder"),
         _written("hidden_states, None, mask"), _refused("no literal default")),
    Pair("a number is a literal default", call(_KEYWORDS, takes=_BOTH), ("mask=None, encoder", "mask=-1.5, encoder"),
         _written("hidden_states, None, mask"), _written("hidden_states, -1.5, mask")),
    Pair("a string is a literal default", call(_KEYWORDS, takes=_BOTH), ("mask=None, encoder", "mask='a', encoder"),
         _written("hidden_states, None, mask"), _written("hidden_states, 'a', mask")),
    Pair("what has no default has to be passed", call(_KEYWORDS, takes="hidden_states, mask, encoder_hidden_states=None"),
         ("hidden_states, encoder_hidden_states=mask)", "hidden_states, mask=1, encoder_hidden_states=mask)"),
         _refused("no literal default"), _written("hidden_states, 1, mask")),
    Pair("unpacked keywords may hold what comes before", call(f"{_KEYWORDS}, **kwargs", takes=f"{_BOTH}, **kwargs", given="kwargs = unknown()"),
         (", **kwargs)\n        return hidden_states\n", ")\n        return hidden_states\n"), _refused("among unpacked"), _written("hidden_states, None, mask")),
    Pair("only by keyword", call(_KEYWORDS, takes=_BOTH), ("mask=None, encoder", "mask=None, *, encoder"), _written("hidden_states, None, mask"), _refused("keyword only")),
    Pair("what is behind stays a keyword", call("hidden_states=hidden_states, mask=mask"), ("mask=mask)", "mask=1)"),
         _written("hidden_states, mask=mask"), _written("hidden_states, mask=1")),
    Pair("arguments change places", call("encoder_hidden_states=mask, hidden_states=hidden_states, mask=1", takes=_BOTH), ("hidden_states=hidden_states, mask=1", "hidden_states=hidden_states"),
         _written("hidden_states, 1, mask"), _written("hidden_states, None, mask")),
    Pair("calls do not change places", call("encoder_hidden_states=self.a(1), hidden_states=hidden_states, mask=self.m[0]", takes=_BOTH), ("self.m[0]", "mask"),
         _refused("order of calls"), _written("hidden_states, mask, self.a(1)")),
    Pair("two calls in their order", call("hidden_states=hidden_states, mask=self.a(), encoder_hidden_states=self.b()", takes=_BOTH),
         ("mask=self.a(), encoder_hidden_states=self.b()", "encoder_hidden_states=self.b(), mask=self.a()"),
         _written("hidden_states, self.a(), self.b()"), _refused("order of calls")),
    Pair("a walrus does not change places", call("encoder_hidden_states=(x := mask), hidden_states=hidden_states, mask=mask", takes=_BOTH), ("(x := mask)", "mask"),
         _refused("order of calls"), _written("hidden_states, mask, mask")),
)
def test_order(side: Side, outside: Outside) -> None:
    assert side.answers(outside) == side.said


def _positional(arguments: str, takes: str = "hidden_states, past_key_values=None, mask=None", **more: str) -> str:
    loop = f"for layer in self.layers:\n    {_CALL}{arguments})"
    own = "hidden_states, past_key_values=None, mask=None, use_cache=None"
    return toy(block(base=PROTECTED, takes=takes), model(loop, takes=own, **more))


def _moved(arguments: str) -> list[str]:
    return [found(CACHE, "safe", code=f"{_CALL}{arguments})")]


@sides(
    Pair("what is behind a cache goes by keyword, too", _positional("hidden_states, past_key_values, mask"), ("past_key_values, mask)", "past_key_values)"),
         _moved("hidden_states, past_key_values=past_key_values, mask=mask"), _moved("hidden_states, past_key_values=past_key_values")),
    Pair("what is in front stays", _positional("hidden_states, mask, past_key_values", "hidden_states, mask=None, past_key_values=None"), ("mask, past_key_values)", "1, past_key_values)"),
         _moved("hidden_states, mask, past_key_values=past_key_values"), _moved("hidden_states, 1, past_key_values=past_key_values")),
    Pair("two caches", _positional("hidden_states, past_key_values, use_cache", "hidden_states, past_key_values=None, use_cache=None"), ("past_key_values, use_cache)", "past_key_values, None)"),
         _moved("hidden_states, past_key_values=past_key_values, use_cache=use_cache"), _moved("hidden_states, past_key_values=past_key_values, use_cache=None")),
    Pair("only by position", _positional("hidden_states, past_key_values"), ("past_key_values=None, mask=None):\n        return", "past_key_values=None, /, mask=None):\n        return"),
         _moved("hidden_states, past_key_values=past_key_values"), _refused("positional only", rule=CACHE)),
    Pair("an activation behind the cache", _positional("hidden_states, past_key_values, mask", "hidden_states, past_key_values=None, mask=None"),
         ("past_key_values=None, mask=None):\n        return hidden_states +", "past_key_values=None, encoder_hidden_states=None):\n        return hidden_states +"),
         [found(CACHE, "safe")], [found(CACHE, "unsafe", "reordered")]),
    Pair("names that arrive elsewhere", _positional("hidden_states, past_key_values, mask"), ("layer(hidden_states, past_key_values, mask)", "layer(mask, past_key_values, hidden_states)"),
         [found(CACHE, "safe")], _refused("shifted", rule=CACHE)),
    Pair("a name of another thing", _positional("mask, past_key_values", "hidden_states, past_key_values=None, x=None"), ("past_key_values=None, x=None", "past_key_values=None, mask=None"),
         [found(CACHE, "safe")], _refused("shifted", rule=CACHE)),
    Pair("a name that arrives where it belongs, too", _positional("mask, past_key_values, mask=mask"), ("past_key_values, mask=mask)", "past_key_values, mask=1)"),
         [found(CACHE, "safe")], _refused("shifted", rule=CACHE)),
    Pair("an unpacked list", _positional("hidden_states, past_key_values"), ("layer(hidden_states, past", "layer(*hidden_states, past"), [found(CACHE, "safe")], [silent(CACHE, "not matched")]),
    Pair("an unpacked tuple that is written down", _positional("*(hidden_states, past_key_values)"), ("*(hidden_states, past_key_values)", "hidden_states, past_key_values"),
         _refused("unpacked", rule=CACHE), [found(CACHE, "safe")]),
    Pair("too many arguments", _positional("hidden_states, past_key_values, 1"), ("past_key_values, 1)", "past_key_values, 1, 2)"), [found(CACHE, "safe")], [silent(CACHE, "not matched")]),
    Pair("one argument twice", _positional("hidden_states, past_key_values, mask=1"), ("past_key_values, mask=1", "past_key_values, hidden_states=1"), [found(CACHE, "safe")], [silent(CACHE, "not matched")]),
    Pair("a name that is not taken", _positional("hidden_states, past_key_values, mask=1"), ("past_key_values, mask=1", "past_key_values, task=1"), [found(CACHE, "safe")], [silent(CACHE, "not matched")]),
    Pair("a name that is collected", _positional("hidden_states, past_key_values, task=1"), ("past_key_values=None, mask=None):\n        return", "past_key_values=None, mask=None, **kwargs):\n        return"),
         [silent(CACHE, "not matched")], [found(CACHE, "safe")]),
)
def test_caches(side: Side, outside: Outside) -> None:
    assert side.answers(outside) == side.said


def _two(other: str, loop: str = "", more: str = "") -> str:
    """Write a file whose call runs two layers, the second of which takes other parameters."""
    init = "self.layers = nn.ModuleList([ToyLayer(config), ToyOther(config)])"
    text = loop or f"for layer in self.layers:\n    {_CALL}hidden_states=hidden_states, mask=mask)"
    return toy(block(base=PROTECTED), block(name="ToyOther", base=PROTECTED, takes=other), model(text, init=init, more=more))


@sides(
    Pair("two layers of two orders", _two("hidden_states, mask=None", f"for layer in self.layers:\n    {_CALL}hidden_states=hidden_states)"),
         ("(self, hidden_states, mask=None):\n        return hidden_states + self.attention(hidden_states)\n\n\nclass ToyModel", "(self, mask=None, hidden_states=None):\n        return hidden_states + self.attention(hidden_states)\n\n\nclass ToyModel"),
         [found(KEYWORD, "safe")], _refused("other orders")),
)
def test_several_blocks(side: Side, outside: Outside) -> None:
    assert side.answers(outside) == side.said


_KEYWORD = f"for layer in self.layers:\n    {_CALL}hidden_states=hidden_states)"


def _received(init: str = STACK, more: str = "", before: str = "", **block_more: str) -> str:
    return toy(before, block(base=PROTECTED, **block_more), model(_KEYWORD, init=init, more=more))


_OK = [found(KEYWORD, "safe")]


def _doubt(*kinds: str) -> list[str]:
    return [found(KEYWORD, "unsafe", *kinds)]


@sides(
    Pair("a call of its own", _received(more="", init=STACK).replace("    def forward(self, hidden_states, mask=None):\n        return", "    def call(self, *args):\n        pass\n    def forward(self, hidden_states, mask=None):\n        return"),
         ("def call(", "def __call__("), _OK, _doubt("own call")),
    Pair("`forward` is replaced", toy(block(base=PROTECTED, init="self.backward = print"), model(_KEYWORD)), ("self.backward = print", "self.forward = print"), _OK, _doubt("replaced forward")),
    Pair("the class is replaced", _received() + "\nToyOther = print\n", ("\nToyOther = print", "\nToyLayer = print"), _OK, _doubt("replaced")),
    Pair("a decorator that hands on", toy("def wrap(f):\n    def inner(*args, **kwargs):\n        return f(*args, **kwargs)\n    return inner\n", block(base=PROTECTED), model(_KEYWORD)).replace(
        "    def forward(self, hidden_states, mask=None):\n        return", "    @wrap\n    def forward(self, hidden_states, mask=None):\n        return"),
         ("return f(*args, **kwargs)", "return f(*args)"), _OK, _doubt("decorator")),
    Pair("a decorator that reads", toy("def wrap(f):\n    def inner(*args, **kwargs):\n        return f(*args, **kwargs)\n    return inner\n", block(base=PROTECTED), model(_KEYWORD)).replace(
        "    def forward(self, hidden_states, mask=None):\n        return", "    @wrap\n    def forward(self, hidden_states, mask=None):\n        return"),
         ("        return f(*args, **kwargs)", "        kwargs.get('x')\n        return f(*args, **kwargs)"), _OK, _doubt("reading decorator")),
    Pair("a hook that sees keywords", _received(f"{STACK}\nself.register_forward_hook(print, with_kwargs=True)"), ("register_forward_hook", "register_state_hook"), _doubt("hooks see"), _OK),
    Pair("a hook in front", _received(f"{STACK}\nself.register_forward_pre_hook(print)"), ("forward_pre_hook", "state_pre_hook"), _doubt("hooks see"), _OK),
    Pair("a hook behind that sees no keywords", _received(f"{STACK}\nself.register_forward_hook(print)"), ("(print)", "(print, with_kwargs=True)"), _OK, _doubt("hooks see")),
    Pair("a class from a library in the stack", _received("self.layers = nn.ModuleList([ToyLayer(config), Other(config)])").replace("import nn\n", "import nn\nfrom toy import Other\n", 1),
         ("from toy import Other", "from torch.nn import Other"), _doubt("unknown filling", "unknown receiver"), _doubt("unknown filling")),
    Pair("a class that a parameter hands in", _received(f"{STACK}\nself.more(ToyLayer)", more="def more(self, kind):\n    self.layers.append(kind(1))\n"),
         ("self.layers.append(", "self.others.append("), _doubt("unknown filling"), _OK),
    Pair("the stack is handed away", _received(f"{STACK}\nfill(self.layers)"), ("fill(self.layers)", "len(self.layers)"), _doubt("unknown filling"), _OK),
    Pair("a function of the file fills it", _received(f"{STACK}\nfill(self.layers)", before="def fill(layers):\n    layers.append(make())\n"), ("layers.append(make())", "layers.count(make())"), _doubt("unknown filling"), _OK),
    Pair("an item is replaced", _received(f"{STACK}\nself.layers[0] = make()"), ("self.layers[0] = make()", "x = self.layers[0]"), _doubt("unknown filling"), _OK),
    Pair("an item is replaced by the same", _received(f"{STACK}\nself.layers[0] = make()"), ("= make()", "= ToyLayer(config)"), _doubt("unknown filling"), _OK),
    Pair("another name for the stack", _received(f"{STACK}\nx = self.layers\nx.append(make())"), ("x = self.layers", "x = self.others"), _doubt("unknown filling"), _OK),
    Pair("another method fills it", _received(more="def more(self):\n    self.layers.extend(make())\n"), ("self.layers.extend", "self.others.extend"), _doubt("unknown filling"), _OK),
    Pair("its name is computed", _received(more="def more(self):\n    setattr(self, 'layers', make())\n"), ("'layers', make()", "'others', make()"), _doubt("unknown filling"), _OK),
    Pair("a loop over it", _received(f"{STACK}\nfor x in self.layers:\n    x.train()"), ("    x.train()", "    self.layers.append(make())"), _OK, _doubt("unknown filling")),
    Pair("what it is may be chosen", _received("self.layers = make() if config.x else nn.ModuleList([ToyLayer(config)])"), ("make() if config.x else ", ""), _doubt("unknown filling"), _OK),
)
def test_receivers(side: Side, outside: Outside) -> None:
    assert side.answers(outside) == side.said


def _caught(loop: str, **more: str) -> str:
    takes = "hidden_states, past_key_values=None"
    return toy(block(base=PROTECTED, takes=takes), model(loop, takes="hidden_states, past_key_values=None, mask=None", **more))


_FOUND = [found(CACHE, "safe")]
_POSITIONAL = "layer(hidden_states, past_key_values)"


@sides(
    Pair("a direct call of `forward`", _caught(f"for layer in self.layers:\n    hidden_states = {_POSITIONAL}"), ("= layer(", "= layer.forward("), _FOUND, _FOUND),
    Pair("another method", _caught(f"for layer in self.layers:\n    hidden_states = {_POSITIONAL}"), ("= layer(", "= layer.train("), _FOUND, []),
    Pair(
        "a single layer",
        _caught("hidden_states = self.one.forward(hidden_states, past_key_values)", init="self.one = ToyLayer(config)"),
        ("self.one.forward(", "self.one("),
        _FOUND,
        _FOUND,
        wrong="what a single layer returns is taken for the attribute that holds it",
    ),
    Pair("a single part that is no layer", _caught("hidden_states = self.one.forward(hidden_states, past_key_values)", init="self.one = ToyLayer(config)"),
         ("self.one = ToyLayer", "self.one = ToyAttention"), _FOUND, []),
    Pair("in a comprehension", _caught("x = [layer(hidden_states, past_key_values) for layer in self.layers]"), ("in self.layers]", "in self.config]"), _FOUND, []),
    Pair("in a test", _caught("if self.layers[0](hidden_states, past_key_values):\n    pass"), ("self.layers[0](", "self.config[0]("), _FOUND, []),
    Pair("in a function of the method", _caught(f"def run(layer):\n    return {_POSITIONAL}\nfor layer in self.layers:\n    hidden_states = run(layer)"), ("= run(layer)", "= run(mask)"), _FOUND, []),
    Pair("through a checkpoint function", _caught("for layer in self.layers:\n    hidden_states = self._gradient_checkpointing_func(layer.__call__, hidden_states, past_key_values)"),
         ("self._gradient_checkpointing_func(layer.__call__, ", "layer("), [silent(CACHE, "checkpointed")], _FOUND, at="hidden_states, past_key_values)"),
    Pair("by `partial`", _caught("run = partial(self.layers[0], hidden_states)\nhidden_states = self.layers[0](hidden_states, past_key_values)").replace("import nn\n", "import nn\nfrom functools import partial\n", 1),
         ("self.layers[0](hidden_states, past", "mask(hidden_states, past"), _FOUND, []),
    Pair("in `__init__`", _caught(f"for layer in self.layers:\n    hidden_states = {_POSITIONAL}").replace("    def forward(self, hidden_states, past_key_values=None, mask", "    def __init__(self, hidden_states, past_key_values=None, mask"),
         ("def __init__(self, hidden_states, past_key_values=None, mask", "def run(self, hidden_states, past_key_values=None, mask"), [], _FOUND),
    Pair("in a method of a base", _caught(f"for layer in self.layers:\n    hidden_states = {_POSITIONAL}", name="ToyBase") + "class ToyModel(ToyBase):\n    pass\n",
         ("class ToyModel(ToyBase)", "class ToyModel(PreTrainedModel)"), _FOUND, _FOUND),
)
def test_where_calls_are(side: Side, outside: Outside) -> None:
    assert side.answers(outside) == side.said


_UNSAFE_ORDER = [found(CACHE, "unsafe", "reordered")]


def _reordered(override: str = "pass\n", more: str = "", takes: str = "hidden_states, past_key_values=None, encoder_hidden_states=None") -> str:
    loop = f"for layer in self.layers:\n    {_CALL}hidden_states, past_key_values, mask)"
    heir = f"class ToyHeir(ToyLayer):\n    {override}\n"
    return toy(block(base=PROTECTED, takes=takes), heir, model(loop, takes="hidden_states, past_key_values=None, mask=None", more=more))


_SIGNATURE = "    def forward(self, hidden_states, encoder_hidden_states=None, past_key_values=None):"


@sides(
    Pair("an override of the same order", _reordered("def forward(self, hidden_states, past_key_values=None, encoder_hidden_states=None):\n        pass\n"),
         ("encoder_hidden_states=None):\n        pass", "other=None):\n        pass"), _UNSAFE_ORDER, _refused("not reordered", rule=CACHE)),
    Pair("another method of that class", _reordered("def backward(self, x):\n        pass\n"), ("def backward(self, x)", "def forward(self, x)"), _UNSAFE_ORDER, _refused("not reordered", rule=CACHE)),
    Pair("a cache without a default", _reordered(), ("past_key_values=None, encoder_hidden_states=None):\n        return", "past_key_values, encoder_hidden_states=None):\n        return"), _UNSAFE_ORDER, _refused("not reordered", rule=CACHE)),
    Pair("`super().forward` by position", _reordered("def go(self, x):\n        return super().forward(x)\n").replace("def go(self, x)", "def forward(self, hidden_states, past_key_values=None, encoder_hidden_states=None)"),
         ("super().forward(x)", "super().forward(*x)"), _UNSAFE_ORDER, _refused("not reordered", rule=CACHE)),
    Pair("`forward` of the class itself", _reordered(more="def go(self, x):\n    return ToyLayer.train(x)\n"), ("ToyLayer.train(x)", "ToyLayer.forward(x)"), _UNSAFE_ORDER, _refused("not reordered", rule=CACHE)),
    Pair("a checkpoint function runs it", _reordered(more="def go(self, x):\n    return self._gradient_clipping_func(self.layers[0].__call__, x)\n"), ("_gradient_clipping_func", "_gradient_checkpointing_func"),
         _UNSAFE_ORDER, _refused("not reordered", rule=CACHE)),
    Pair("another call cannot be matched", _reordered(more="def go(self, x):\n    return self.layers[0](x, 1, 2)\n"), ("(x, 1, 2)", "(x, 1, 2, 3)"), _UNSAFE_ORDER, _refused("not reordered", rule=CACHE)),
)
def test_reordering(side: Side, outside: Outside) -> None:
    assert side.answers(outside) == side.said


def _nested(given: str, arguments: str = "hidden_states, x", takes: str = "hidden_states, x=None") -> str:
    init = f"{STACK}\nself.up = nn.Linear(4, 4)"
    return toy(block(base=PROTECTED, takes=takes), model(f"{given}\nfor layer in self.layers:\n    {_CALL}{arguments})", init=init))


_INSIDE = [found(NESTED, "none", "one by one")]
_NOTHING = [silent(NESTED, "no container")]


@sides(
    Pair("a list of computed values", _nested("x = [self.up(mask)]"), ("[self.up(mask)]", "[torch.zeros(4)]"), _INSIDE, _NOTHING),
    Pair("a dict of computed values", _nested("x = {'a': self.up(mask)}"), ("'a': self.up(mask)", "'a': torch.zeros(4)"), _INSIDE, _NOTHING),
    Pair("a list that is filled", _nested("x = []\nx.append(self.up(mask))"), ("append(self.up(mask))", "append(mask.shape)"), _INSIDE, _NOTHING),
    Pair("a comprehension", _nested("x = [self.up(y) for y in mask]"), ("self.up(y) for", "y.shape for"), _INSIDE, _NOTHING),
    Pair("an item of a list", _nested("x = [self.up(mask)]"), ("= [self.up(mask)]", "= [self.up(mask)][0]"), _INSIDE, _NOTHING),
    Pair("a list of parameters", _nested("x = self.tables").replace("self.up = nn.Linear(4, 4)", "self.tables = nn.ParameterList([1])"), ("nn.ParameterList([1])", "nn.ModuleList([])"), _INSIDE, _NOTHING),
    Pair("a tuple of two that is annotated", _nested("x = (self.up(mask), self.up(mask))", takes="hidden_states, x: tuple[torch.Tensor, torch.Tensor] = None"),
         ("x: tuple[torch.Tensor, torch.Tensor] = None", "x: tuple[torch.Tensor, ...] = None"), _INSIDE, _INSIDE),
    Pair("a tuple of two without a default", _nested("x = (self.up(mask), self.up(mask))", takes="hidden_states, x: tuple[torch.Tensor, torch.Tensor]"),
         ("tuple[torch.Tensor, torch.Tensor]", "tuple[torch.Tensor, ...]"), [found(NESTED, "unsafe", "outside callers")], _INSIDE),
    Pair("the loop feeds a tuple back", toy(block("x, y = hidden_states\nreturn self.attention(x), y", base=PROTECTED), model()), ("x, y = hidden_states", "x, y = mask"),
         [found(NESTED, "none", "one by one")], _NOTHING),
    Pair("the loop unpacks the tuple", toy(block("x, y = hidden_states\nreturn self.attention(x), y", base=PROTECTED), model("for layer in self.layers:\n    hidden_states = layer(hidden_states)\n    mask = hidden_states[0]")),
         ("mask = hidden_states[0]", "hidden_states = hidden_states[0]"), [found(NESTED, "none", "one by one")], _NOTHING),
)
def test_containers(side: Side, outside: Outside) -> None:
    assert side.answers(outside) == side.said
