"""Who else receives the arguments of a call that is rewritten, and which signatures can change."""

from __future__ import annotations

from itertools import pairwise

from tests.decisions.outside import (
    CACHE,
    FILE,
    KEYWORD,
    LAYER,
    Pair,
    decided,
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


test_several_blocks = decided(
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


_KEYWORD = f"for layer in self.layers:\n    {_CALL}hidden_states=hidden_states)"


_LIST = "nn.ModuleList([ToyLayer(config)])"
_SETTING = "setattr(self, f'layer_{i}'"
_COMPUTED = """
for i in range(2):
    layer = getattr(self, f"layer_{i}")
    hidden_states = layer(hidden_states=hidden_states)
"""
_CHECKPOINTING = """
def more(self):
    self._gradient_checkpointing_func(self.counted, self.layers)

def counted(self, layers):
    return len(layers)
"""


def _received(init: str = STACK, more: str = "", before: str = "", **block_more: str) -> str:
    return toy(before, block(base=PROTECTED, **block_more), model(_KEYWORD, init=init, more=more))


_OK = [found(KEYWORD, "safe")]
_HANDED = "inner(*args, **kwargs):\n        return f(*args, **kwargs)"
_BY_KEYWORD = "inner(self, **kwargs):\n        return f(self, **kwargs)"


def _doubt(*kinds: str) -> list[str]:
    return [found(KEYWORD, "unsafe", *kinds)]


def _unknown_filling(decision: str, init: str, change: tuple[str, str], **more: str) -> Pair:
    """Return the pair of a stack that is filled with what is not known, and of another."""
    return Pair(decision, _received(init, **more), change, _doubt("unknown filling"), _OK)


test_receivers = decided(
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
        _doubt("replaced", "unknown"),
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
        _doubt("unknown"),
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
        (_HANDED, _BY_KEYWORD),
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
            "def wrap(f):\n    def inner(*args, **kwargs):\n        len([1])\n"
            "        return f(*args, **kwargs)\n    return inner\n",
            block(base=PROTECTED, more="@wrap"),
            model(_KEYWORD),
        ),
        ("len([1])", "len(args)"),
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
    _unknown_filling(
        "a class that a parameter hands in",
        f"{STACK}\nself.more(ToyLayer)",
        ("self.layers.append(", "self.others.append("),
        more="def more(self, kind):\n    self.layers.append(kind(1))\n",
    ),
    _unknown_filling(
        "the stack is handed away", f"{STACK}\nfill(self.layers)", ("fill(self.layers)", "len(self.layers)")
    ),
    _unknown_filling(
        "a function of the file fills it",
        f"{STACK}\nfill(self.layers)",
        ("layers.append(make())", "layers.count(make())"),
        before="def fill(layers):\n    layers.append(make())\n",
    ),
    _unknown_filling(
        "an item is replaced",
        f"{STACK}\nself.layers[0] = make()",
        ("self.layers[0] = make()", "x = self.layers[0]"),
    ),
    _unknown_filling(
        "an item is replaced by the same",
        f"{STACK}\nself.layers[0] = make()",
        ("= make()", "= ToyLayer(config)"),
    ),
    _unknown_filling(
        "another name for the stack",
        f"{STACK}\nx = self.layers\nx.append(make())",
        ("x = self.layers", "x = self.others"),
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
    _unknown_filling(
        "what it is otherwise",
        f"self.layers = {_LIST} if config.x else make()",
        ("make()", "nn.ModuleList()"),
    ),
    _unknown_filling(
        "what is appended to a list of layers",
        "self.layers = nn.ModuleList([ToyLayer(config)] + make())",
        ("make()", "[ToyLayer(config)]"),
    ),
    _unknown_filling(
        "what is added and named at once",
        f"{STACK}\nself.layers.append(made := make())",
        ("made := make()", "made := ToyLayer(config)"),
    ),
    Pair(
        "another method fills names that are computed",
        toy(
            block(base=PROTECTED),
            model(
                _COMPUTED,
                init=f"for i in range(2):\n    {_SETTING}, ToyLayer(config))",
                more=f"def more(self, i, config):\n    {_SETTING}, make())\n",
            ),
        ),
        ("make()", "ToyLayer(config)"),
        _doubt("unknown filling"),
        _OK,
    ),
    Pair(
        "a function that leaves it as it is, and is called by a checkpoint function",
        _received(more=_CHECKPOINTING),
        ("_gradient_checkpointing_func", "_gradient_clipping_func"),
        _OK,
        _doubt("unknown filling"),
    ),
    Pair(
        "a loop over it",
        _received(f"{STACK}\nfor x in self.layers:\n    x.train()"),
        ("    x.train()", "    self.layers.append(make())"),
        _OK,
        _doubt("unknown filling"),
    ),
    _unknown_filling(
        "what it is may be chosen",
        "self.layers = make() if config.x else nn.ModuleList([ToyLayer(config)])",
        ("make() if config.x else ", ""),
    ),
    _unknown_filling(
        "what a choice asks is not what it gives",
        f"{STACK}\nx = self.layers if config.x else config\nx.append(make())",
        ("self.layers if config.x", "config.x if self.layers"),
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
        ("def inner(*args, **kwargs)", "def inner(*args, hidden_states=None, **kwargs)"),
        _OK,
        _doubt("decorator"),
    ),
)


_MAKE = "self.layers.append(make())"
_APPEND = ("layers.append(make())", "layers.count(make())")
_FILL = "def fill(layers):\n    layers.append(make())\n"
_CHAIN = ("one", "two", "three", "four", "five", "six", "len")


def _filled(statement: str, before: str = "") -> str:
    return _received(f"{STACK}\n{statement}", before=before)


def _filled_unknown(decision: str, code: str, change: tuple[str, str]) -> Pair:
    """Return the pair of a stack whose filling is not known, and of another."""
    return Pair(decision, _filled(code), change, _doubt("unknown filling"), _OK)


test_filling = decided(
    Pair(
        "another object may be the model",
        _received(more="def more(self, other):\n    other.layers.append(make())\n"),
        ("other.layers", "other.heads"),
        _doubt("unknown filling"),
        _OK,
    ),
    Pair(
        "a method of its base gives it",
        toy(
            "class ToyBase(PreTrainedModel):\n    def stack(self):\n        return self.layers\n",
            block(base=PROTECTED),
            model(_KEYWORD, base="ToyBase", init=f"{STACK}\nself.stack().append(make())"),
        ),
        ("return self.layers", "return self.others"),
        _doubt("unknown filling"),
        _OK,
    ),
    Pair(
        "its base in another file fills it",
        {
            FILE: toy(
                block(base=PROTECTED),
                model(_KEYWORD, base="OtherBase"),
                imports="from modeling_other import OtherBase\n",
            ),
            "modeling_other.py": "from transformers import PreTrainedModel\n\n\n"
            f"class OtherBase(PreTrainedModel):\n    def more(self):\n        {_MAKE}\n",
        },
        ("self.layers.append", "self.others.append"),
        _doubt("unknown filling"),
        _OK,
    ),
    _filled_unknown(
        "a method of torch's class fills it",
        "nn.ModuleList.append(self.layers, make())",
        ("ModuleList.append", "ModuleList.index"),
    ),
    Pair(
        "one of two functions fills it",
        _filled(
            "fill = first if config.x else second\nfill(self.layers)",
            f"def first(layers):\n    len(layers)\n\n{_FILL.replace('fill', 'second')}",
        ),
        _APPEND,
        _doubt("unknown filling"),
        _OK,
    ),
    Pair(
        "it is handed on further than it is followed",
        _filled(
            "one(self.layers)",
            "".join(f"def {a}(x):\n    {b}(x)\n" for a, b in pairwise(_CHAIN)),
        ),
        ("    three(x)", "    len(x)"),
        _doubt("unknown filling"),
        _OK,
    ),
    _filled_unknown(
        "its method under another name",
        "add = self.layers.append\nadd(make())",
        ("self.layers.append", "self.others.append"),
    ),
    Pair(
        "a function with the stack as its argument",
        _filled("partial(fill, self.layers)()", f"from functools import partial\n{_FILL}"),
        _APPEND,
        _doubt("unknown filling"),
        _OK,
    ),
    _filled_unknown("another object keeps it", "kept.stack = self.layers", ("kept.stack", "stack")),
    _filled_unknown(
        "a loop over stacks",
        "for x in [self.layers, self.heads]:\n    x.append(make())",
        ("x.append", "x.index"),
    ),
    _filled_unknown(
        "what a module keeps its parts in",
        "self.layers._modules['0'] = make()",
        ("self.layers._modules", "self.others._modules"),
    ),
    Pair(
        "a function that is given a list with it",
        _filled("fill(*[self.layers])", _FILL.replace(".append", ".count")),
        ("*[self.layers]", "self.layers"),
        _doubt("unknown filling"),
        _OK,
    ),
    Pair(
        "another stack of the same layers",
        _filled("self.others = nn.ModuleList([ToyLayer(config)])\nself.others.append(make())"),
        ("self.others.append", "self.layers.append"),
        _OK,
        _doubt("unknown filling"),
    ),
    Pair(
        "a block that becomes a layer",
        toy(block(), model(_KEYWORD, init=f"{STACK}\n{_MAKE}")),
        ("self.layers.append", "self.others.append"),
        [found(LAYER, "unsafe", "unknown filling")],
        [found(LAYER, "safe")],
    ),
)


_WRAP = """\
def wrap(f):
    def inner(*args, **kwargs):
        return f(*args, **kwargs)
    return inner
"""
_READING = _WRAP.replace("        return f", "        len([1])\n        return f")


def _decorated(before: str, lines: str = "@wrap", base: str = PROTECTED) -> str:
    return toy(before, block(base=base, more=lines), model(_KEYWORD))


test_decorators = decided(
    Pair(
        "a block that becomes a layer",
        _decorated(_READING, base="nn.Module"),
        ("len([1])", "len(args)"),
        [found(LAYER, "safe")],
        [found(LAYER, "unsafe", "reading decorator")],
    ),
    Pair(
        "that of the second of two layers",
        toy(
            _READING,
            block(base=PROTECTED),
            block(name="ToyOther", base=PROTECTED, more="@wrap"),
            model(_KEYWORD, init=f"{STACK}\nself.layers.append(ToyOther(config))"),
        ),
        ("len([1])", "len(args)"),
        _OK,
        _doubt("reading decorator"),
    ),
    Pair(
        "one of two functions drops something",
        _decorated(
            _WRAP.replace(
                "    return inner\n",
                "    def other(*args, **kwargs):\n        return f(*args, **kwargs)\n"
                "    return other if torch else inner\n",
            )
        ),
        (
            "def other(*args, **kwargs):\n        return f(*args",
            "def other(self, **kwargs):\n        return f(self",
        ),
        _OK,
        _doubt("decorator"),
    ),
    Pair(
        "a parameter in front of what is handed on",
        _decorated(_WRAP.replace("*args", "self, *args")),
        ("inner(self, *args", "inner(self, scale=1, *args"),
        _OK,
        _doubt("decorator"),
    ),
    Pair(
        "a function that collects nothing",
        _decorated("def wrap(f):\n    return f\n"),
        ("    return f\n", "    return lambda x, mask=None, hidden_states=1: f(x, hidden_states, mask)\n"),
        _OK,
        _doubt("decorator"),
    ),
    Pair(
        "the second of two",
        _decorated(f"{_WRAP}{_WRAP.replace('wrap', 'other').replace('inner', 'kept')}", "@wrap\n@other"),
        (
            "def kept(*args, **kwargs):\n        return f(*args, **kwargs)",
            "def kept(self, **kwargs):\n        return f(self, **kwargs)",
        ),
        _OK,
        _doubt("decorator"),
    ),
)


test_layers = decided(
    Pair(
        "a hook of the layer",
        toy(block(base=PROTECTED, init="self.register_forward_pre_hook(print)"), model(_KEYWORD)),
        ("forward_pre_hook", "state_pre_hook"),
        _doubt("hooks see"),
        _OK,
    ),
    Pair(
        "a hook by a script",
        {
            FILE: toy(block(base=PROTECTED), model(_KEYWORD)),
            "train.py": "from modeling_toy import ToyModel\n\n\n"
            "def prepare(model):\n    model.layers[0].register_forward_pre_hook(print)\n",
        },
        ("forward_pre_hook", "state_pre_hook"),
        _doubt("hooks see"),
        _OK,
    ),
    Pair(
        "a hook of its base",
        toy(
            block(name="ToyBase", base=PROTECTED, init="self.register_forward_pre_hook(print)"),
            "class ToyLayer(ToyBase):\n    pass\n",
            model(_KEYWORD),
        ),
        ("forward_pre_hook", "state_pre_hook"),
        _doubt("hooks see"),
        _OK,
    ),
    Pair(
        "a call of its own in the second of two layers",
        toy(
            block(base=PROTECTED),
            "class ToyOther(ToyLayer):\n    def call(self, *args):\n        pass\n",
            model(_KEYWORD, init=f"{STACK}\nself.layers.append(ToyOther(config))"),
        ),
        ("def call(", "def __call__("),
        _OK,
        _doubt("own call"),
    ),
    Pair(
        "`forward` of the class is replaced",
        _received() + "\n\nclass ToyOther:\n    pass\n\n\nToyOther.forward = print\n",
        ("ToyOther.forward", "ToyLayer.forward"),
        _OK,
        _doubt("replaced", "unknown"),
    ),
    Pair(
        "words about the class",
        _received() + '\n"""Text.\n\nToyLayer = 1\n"""\n',
        ('ToyLayer = 1\n"""\n', '"""\nToyLayer = 1\n'),
        _OK,
        _doubt("unknown"),
    ),
    Pair(
        "an argument that the layer changes in place",
        _received().replace(
            "        return hidden_states +",
            "        hidden_states = hidden_states.mul(2)\n        return hidden_states +",
        ),
        (".mul(2)", ".mul_(2)"),
        _OK,
        _doubt("changes its input"),
    ),
    Pair(
        "a hook behind that reads what was passed",
        _received(f"{STACK}\nself.register_forward_hook(lambda module, args, output: len(args))"),
        ("len(args)", "len(output)"),
        _doubt("hooks see"),
        _OK,
    ),
    Pair(
        "a function that is such a hook",
        _received(f"{STACK}\nself.register_forward_hook(seen)")
        + "\n\ndef seen(module, given, output):\n    return len(given)\n",
        ("len(given)", "len(output)"),
        _doubt("hooks see"),
        _OK,
    ),
    Pair(
        "a hook for all modules",
        _received() + "\ntorch.nn.modules.module.register_module_forward_pre_hook(print)\n",
        ("register_module_forward_pre_hook", "register_module_buffer_registration_hook"),
        _doubt("hooks see"),
        _OK,
    ),
    Pair(
        "a hook by a script that names no model",
        {
            FILE: toy(block(base=PROTECTED), model(_KEYWORD)),
            "train.py": "def prepare(model):\n    model.layers[0].register_forward_pre_hook(print)\n",
        },
        ("forward_pre_hook", "state_pre_hook"),
        _doubt("hooks see"),
        _OK,
    ),
    Pair(
        "a function puts something around layers",
        _received()
        + "\n\ndef wrap(model, name, kind):\n    model.set_submodule(name, kind(model.layers[0]))\n",
        ("model.set_submodule", "print"),
        _doubt("replaced forward"),
        _OK,
    ),
    Pair(
        "a script puts another layer into the stack",
        {
            FILE: toy(
                block(base=PROTECTED),
                block(name="ToyOther", base=PROTECTED, takes="mask=None, hidden_states=None"),
                model(_KEYWORD),
            ),
            "train.py": "from modeling_toy import ToyOther\n\n\n"
            "def prepare(model):\n    model.layers.append(ToyOther(model.config))\n",
        },
        ("model.layers", "model.heads"),
        _doubt("unknown filling"),
        _OK,
    ),
    Pair(
        "a script puts a layer into the stack that takes both forms",
        {
            FILE: toy(
                block(base=PROTECTED),
                block(name="ToyOther", base=PROTECTED, takes="hidden_states, other=None"),
                model(_KEYWORD),
            ),
            "train.py": "from modeling_toy import ToyOther\n\n\n"
            "def prepare(model):\n    model.layers[0] = ToyOther(model.config)\n",
        },
        ("hidden_states, other=None", "other=None, hidden_states=None"),
        _OK,
        _doubt("unknown filling"),
    ),
    Pair(
        "a function passes it by keyword",
        toy(block(), model()) + "\n\ndef run(model, states):\n    for layer in model.layers:\n"
        "        states = layer(states)\n    return states\n",
        ("layer(states)", "layer(hidden_states=states)"),
        [found(LAYER, "safe")],
        [found(LAYER, "unsafe", "keyword elsewhere")],
    ),
    Pair(
        "a script passes a cache by position",
        {
            FILE: toy(block(takes="hidden_states, past_key_values=None"), model()),
            "train.py": "from modeling_toy import ToyModel\n\n\ndef run(model, states, past):\n"
            "    for layer in model.layers:\n        states = layer(states, past_key_values=past)\n"
            "    return states\n",
        },
        ("past_key_values=past", "past"),
        [found(LAYER, "safe")],
        [found(LAYER, "unsafe", "cache elsewhere")],
    ),
    Pair(
        "an heir in another file puts other layers into the stack",
        {
            FILE: toy(block(), model(_KEYWORD)),
            "modeling_other.py": """\
from modeling_toy import ToyModel
from torch import nn
from transformers.modeling_layers import GradientCheckpointingLayer


class OtherLayer(GradientCheckpointingLayer):
    def forward(self, mask, hidden_states=None):
        return hidden_states


class OtherModel(ToyModel):
    def __init__(self, config):
        self.layers = nn.ModuleList([OtherLayer()])
""",
        },
        ("self, mask, hidden_states=None", "self, hidden_states=None"),
        [found(LAYER, "unsafe", "other orders")],
        [found(LAYER, "safe")],
    ),
)


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


test_reordering = decided(
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
        "another method through `super()`",
        _reordered("def go(self, x):\n        return super().prepare(*x)\n").replace(
            "def go(self, x)",
            "def forward(self, hidden_states, past_key_values=None, encoder_hidden_states=None)",
        ),
        ("super().prepare(*x)", "super().forward(*x)"),
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
