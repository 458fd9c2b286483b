"""What is an activation: an argument through which a gradient flows, by its name, its value or the loop."""

from __future__ import annotations

from tests.decisions.outside import (
    KEYWORD,
    NESTED,
    Pair,
    decided,
    found,
    passed,
    silent,
)
from tests.decisions.toy import PROTECTED, STACK, block, call, model, toy

_X = "hidden_states, x=None"
_FOUND = [found(KEYWORD, "safe"), passed("x", "activation", "computed")]
_ROLE = "activation"
_NO = "not an activation"
_PERHAPS = "perhaps an activation"
_IN = "container of activations"
_MADE = "self.up = nn.Linear(4, 4)"


def _given(statement: str, init: str = _MADE, takes: str = _X, **more: str) -> str:
    """Write a file that passes ``x`` by keyword, which statements of a private method compute."""
    return call(
        "hidden_states, x=x",
        takes=takes,
        given=statement,
        init=f"self.layers = nn.ModuleList([ToyLayer(config)])\n{init}",
        **more,
    )


def _named(name: str, value: str = "y") -> str:
    """Write a file that passes something unknown by a keyword."""
    return call(f"hidden_states, {name}={value}", takes=f"hidden_states, {name}=None", given="y = unknown()")


def _computed(decision: str, code: str, change: tuple[str, str], *why: str, role: str = _NO) -> Pair:
    """Return the pair of an argument that is computed from parameters, and of one that is not."""
    return Pair(decision, code, change, _FOUND, [passed("x", role, *(why or ("not computed",)))])


test_names = decided(
    Pair(
        "the hidden states by position",
        call("hidden_states, mask"),
        ("layer(hidden_states, mask)", "layer(hidden_states=hidden_states, mask=mask)"),
        [passed("hidden_states", _ROLE, "fed back")],
        [
            found(KEYWORD, "safe", code="hidden_states = layer(hidden_states, mask=mask)"),
            passed("hidden_states", _ROLE, "named"),
        ],
    ),
    Pair(
        "what the loop feeds back",
        call("x=x", takes="x", given="x = unknown()").replace("hidden_states = layer", "x = layer"),
        ("            x = layer(", "            y = layer("),
        [found(KEYWORD, "safe"), passed("x", _ROLE, "computed")],
        [passed("x", _PERHAPS, "unknown origin")],
    ),
    Pair(
        "named like hidden states",
        _named("encoder_hidden_states"),
        ("encoder_hidden_states=y", "encoder_hidden_states=None"),
        [found(KEYWORD, "safe"), passed("encoder_hidden_states", _ROLE, "named")],
        [passed("encoder_hidden_states", _NO, "literal")],
    ),
    Pair(
        "states of cross attention",
        call(
            "hidden_states, attention_states=y",
            takes="hidden_states, attention_states=None",
            given="y = unknown()",
        ),
        ("y = unknown()", "y = None"),
        [found(KEYWORD, "safe"), passed("attention_states", _ROLE, "named")],
        [passed("attention_states", _NO, "always None")],
    ),
    Pair(
        "a container that is named like hidden states, or something unknown",
        call(
            "hidden_states, encoder_hidden_states=x",
            takes="hidden_states, encoder_hidden_states=None",
            given="x = self.wrap(self.up(mask))\nif mask:\n    x = unknown()",
            init=f"self.layers = nn.ModuleList([ToyLayer(config)])\n{_MADE}",
            more="def wrap(self, y):\n    return [y]\n",
        ),
        ("x = unknown()", "x = None"),
        [found(KEYWORD, "unsafe", "holds gradients"), passed("encoder_hidden_states", _ROLE, "named")],
        [
            found(NESTED, "none", "one by one"),
            passed("encoder_hidden_states", _IN, "container of computed values"),
        ],
    ),
    Pair(
        "it can be passed by position",
        _given("x = self.up(mask)"),
        ("forward(self, hidden_states, x=None)", "forward(self, hidden_states, *, x=None)"),
        _FOUND,
        [found(KEYWORD, "none", "keyword only"), passed("x", _ROLE, "computed")],
    ),
    Pair(
        "what begins as a list, and is a tensor from the first block on",
        call(
            "x=x",
            takes="x",
            given="x = [self.up(mask)]",
            init=f"{STACK}\n{_MADE}",
        ).replace("hidden_states = layer", "x = layer"),
        ("            x = layer(", "            y = layer("),
        [found(KEYWORD, "unsafe", "holds gradients"), passed("x", _ROLE, "computed")],
        [found(NESTED, "none", "one by one"), passed("x", _IN, "container of computed values")],
    ),
    Pair(
        "one of two that are made together",
        call(
            "x",
            takes="x",
            given="x, y = (self.up(mask), mask)",
            init=f"{STACK}\n{_MADE}",
        ).replace("hidden_states = layer", "x = layer"),
        ("x, y = (", "x = ("),
        [passed("x", _ROLE, "fed back")],
        [passed("x", _ROLE, "computed")],
    ),
)


test_names_of_what_never_is = decided(
    *(
        Pair(
            f"`{name}` is one by its value, and even `{never}` is to be moved for its value",
            call(
                f"hidden_states, {name}=x",
                takes=f"hidden_states, {name}=None, {never}=None",
                given="x = self.up(mask)",
                init=f"self.layers = nn.ModuleList([ToyLayer(config)])\n{_MADE}",
            ),
            (f"(hidden_states, {name}=x)", f"(hidden_states, {never}=x)"),
            [found(KEYWORD, "safe"), passed(name, _ROLE, "computed")],
            [passed(never, _PERHAPS, "computed")],
        )
        for name, never in (
            ("features", "output_features"),
            ("token_features", "token_ids"),
            ("text", "text_size"),
            ("text", "text_lengths"),
            ("table", "index"),
            ("points", "points_dim"),
            ("boxes", "boxes_shape"),
        )
    ),
)


test_unknown_values = decided(
    *(
        Pair(
            f"`{other}` is not one if its value is unknown, `{name}` may be",
            call(
                f"hidden_states, {name}=y",
                takes=f"hidden_states, {name}=None, {other}=None",
                given="y = unknown()",
            ),
            (f"(hidden_states, {name}=y)", f"(hidden_states, {other}=y)"),
            [passed(name, _PERHAPS, "unknown origin")],
            [passed(other, _NO, why)],
        )
        for name, other, why in (
            ("table", "cos", "name"),
            ("table", "points", "name"),
            ("table", "positions", "name"),
            ("table", "mask", "mask"),
            ("table", "past_table", "cache"),
            ("table", "cache_table", "cache"),
        )
    ),
    Pair(
        "a setting names it",
        {
            "modeling_toy.py": call(
                "hidden_states, bank=y", takes="hidden_states, bank=None", given="y = unknown()"
            ),
            "pyproject.toml": '[tool.gclint]\nactivation-names = ["bank"]\n',
        },
        ('["bank"]', '["other"]'),
        [found(KEYWORD, "safe"), passed("bank", _ROLE, "named by settings")],
        [passed("bank", _PERHAPS, "unknown origin")],
    ),
    Pair(
        "an annotation that is not of a tensor",
        _given("x = self.up(mask)", takes="hidden_states, x: torch.Tensor = None"),
        ("x: torch.Tensor", "x: int"),
        _FOUND,
        [passed("x", _PERHAPS, "computed")],
    ),
    Pair(
        "an annotation does not outdo the name",
        call(
            "hidden_states, other_hidden_states=y",
            takes="hidden_states, other_hidden_states: int = None, other: int = None",
            given="y = unknown()",
        ),
        ("layer(hidden_states, other_hidden_states=y)", "layer(hidden_states, other=y)"),
        [found(KEYWORD, "safe"), passed("other_hidden_states", _ROLE, "named")],
        [passed("other", _NO, "annotation")],
    ),
    Pair(
        "a tuple of tensors",
        _given("x = self.up(mask)", takes="hidden_states, x: torch.Tensor = None"),
        ("x: torch.Tensor", "x: tuple[torch.Tensor]"),
        _FOUND,
        [found(NESTED, "none", "one by one"), passed("x", _IN, "annotated container, computed")],
    ),
    Pair(
        "a tuple of nothing learned",
        _given("x = self.up(mask)", takes="hidden_states, x: tuple[torch.Tensor] = None"),
        ("x = self.up(mask)", "x = unknown()"),
        [found(NESTED, "none", "one by one"), passed("x", _IN, "annotated container, computed")],
        [passed("x", _NO, "annotated container, not computed")],
    ),
    Pair(
        "a mask beside activations",
        _given("x = self.up(mask)").replace("hidden_states, x=None", "hidden_states, x=None, bias_mask=None"),
        ("layer(hidden_states, x=x)", "layer(hidden_states, x=x, bias_mask=x)"),
        [found(KEYWORD, "safe", code="hidden_states = layer(hidden_states, x)")],
        [
            found(KEYWORD, "safe", code="hidden_states = layer(hidden_states, x, x)"),
            passed("bias_mask", _PERHAPS, "computed"),
        ],
    ),
    Pair(
        "rotary embeddings",
        _given("position_embeddings = self.up(mask)")
        .replace("hidden_states, x=None", "hidden_states, position_embeddings=None")
        .replace("x=x", "position_embeddings=position_embeddings"),
        ("= self.up(mask)", "= self.rotary_emb(mask)"),
        [found(KEYWORD, "safe"), passed("position_embeddings", _ROLE, "computed")],
        [passed("position_embeddings", _NO, "rotary")],
    ),
    Pair(
        "an angle that is learned",
        _given("x = self.up(mask)", takes="hidden_states, angle=None, cos=None").replace("x=x", "angle=x"),
        ("(hidden_states, angle=x)", "(hidden_states, cos=x)"),
        [found(KEYWORD, "safe"), passed("angle", _ROLE, "computed")],
        [found(KEYWORD, "safe"), passed("cos", _ROLE, "computed")],
    ),
    Pair(
        "a setting names a mask",
        {
            "modeling_toy.py": _named("bias_mask"),
            "pyproject.toml": '[tool.gclint]\nactivation-names = ["bias_mask"]\n',
        },
        ('["bias_mask"]', '["other"]'),
        [found(KEYWORD, "safe"), passed("bias_mask", _ROLE, "named by settings")],
        [passed("bias_mask", _NO, "mask")],
    ),
)


test_values = decided(
    _computed(
        "the output of a module", _given("x = self.up(mask)"), ("x = self.up(mask)", "x = torch.zeros(4)")
    ),
    _computed(
        "the output of a module without parameters",
        _given("x = self.up(mask)"),
        ("self.up = nn.Linear", "self.up = nn.Dropout"),
        "unknown origin",
        role=_PERHAPS,
    ),
    _computed(
        "the output of a part with parameters",
        _given("x = self.up(mask)", "self.up = ToyAttention(config)"),
        ("self.query = nn.Linear", "self.query = nn.Dropout"),
        "unknown origin",
        role=_PERHAPS,
    ),
    _computed(
        "a parameter",
        _given("x = self.table", "self.table = nn.Parameter(torch.zeros(4))"),
        ("nn.Parameter(torch.zeros(4))", "torch.zeros(4)"),
        "unknown origin",
        role=_PERHAPS,
    ),
    _computed(
        "a frozen parameter",
        _given("x = self.table", "self.table = nn.Parameter(torch.zeros(4))"),
        ("torch.zeros(4))", "torch.zeros(4), requires_grad=False)"),
    ),
    _computed("detached", _given("x = self.up(mask).mean(0)"), (".mean(0)", ".detach()")),
    _computed("its shape", _given("x = self.up(mask).T"), (".T", ".shape")),
    _computed("compared", _given("x = self.up(mask) + mask"), ("(mask) + mask", "(mask) > mask")),
    _computed("negated", _given("x = -self.up(mask)"), ("x = -self", "x = not self")),
    _computed(
        "one side of a choice",
        _given("x = self.up(mask) if self.y else torch.zeros(4)"),
        ("self.up(mask) if self.y else", "torch.ones(4) if self.up(mask) else"),
    ),
    _computed(
        "a side that is never reached",
        _given("y = 1\nx = self.up(mask) if y is not None else None"),
        ("y = 1", "y = None"),
        "always None",
    ),
    _computed(
        "one side of `or`",
        _given("x = torch.zeros(4) or self.up(mask)"),
        ("or self.up(mask)", "or torch.ones(4)"),
    ),
    _computed(
        "a function of torch hands on",
        _given("x = torch.cat([self.up(mask)])"),
        ("torch.cat(", "torch.zeros_like("),
    ),
    _computed(
        "a function of torch that counts",
        _given("x = torch.relu(self.up(mask))"),
        ("torch.relu(", "torch.argmax("),
    ),
    Pair(
        "a built-in function",
        _given("x = sorted(self.up(mask))"),
        ("sorted(", "len("),
        [found(KEYWORD, "unsafe", "holds gradients"), passed("x", _ROLE, "computed")],
        [passed("x", _NO, "not computed")],
        wrong="a length is not known to need no gradient",
    ),
    _computed("a method that keeps", _given("x = self.up(mask).view(-1)"), (".view(-1)", ".tolist()")),
    _computed(
        "a method that mixes",
        _given("x = torch.zeros(4).matmul(self.up(mask))"),
        (".matmul(", ".expand("),
    ),
    _computed(
        "without gradients",
        _given("with torch.enable_grad():\n    x = self.up(mask)"),
        ("torch.enable_grad()", "torch.no_grad()"),
    ),
    _computed(
        "gradients that are set",
        _given("with torch.set_grad_enabled(True):\n    x = self.up(mask)"),
        ("enabled(True)", "enabled(False)"),
    ),
    _computed(
        "assigned anew",
        _given("x = self.up(mask)\ny = torch.zeros(4)"),
        ("\n        y = torch", "\n        x = torch"),
    ),
    _computed(
        "an item is assigned",
        _given("x = self.up(mask)\nx[0] = torch.zeros(4)"),
        ("x[0] = torch", "x = torch"),
    ),
    _computed(
        "the first of what a module returns",
        _given("x, y = self.up(mask)", "self.up = ToyUp()").replace(
            "class ToyLayer",
            "class ToyUp(nn.Module):\n    def __init__(self):\n        self.query = nn.Linear(4, 4)\n"
            "    def forward(self, y):\n        return self.query(y), y.shape\n\nclass ToyLayer",
        ),
        ("x, y = self.up", "y, x = self.up"),
    ),
    _computed(
        "assigned before",
        _given("x = torch.zeros(4)\nx = self.up(mask)"),
        ("x = self.up(mask)", "y = self.up(mask)"),
    ),
    _computed(
        "assigned under a condition",
        _given("x = torch.zeros(4)\nif mask is not None:\n    x = self.up(mask)"),
        ("    x = self.up", "    y = self.up"),
    ),
    _computed(
        "assigned where it cannot be",
        _given("y = unknown()\nx = torch.zeros(4)\nif y is not None:\n    x = self.up(mask)"),
        ("y = unknown()", "y = None"),
    ),
    _computed("an item of a pair", _given("y, x = torch.zeros(4), self.up(mask)"), ("y, x", "x, y")),
    _computed(
        "an item by its number", _given("y = (torch.zeros(4), self.up(mask))\nx = y[1]"), ("y[1]", "y[0]")
    ),
    _computed(
        "a method of the object",
        _given("x = self.make(mask)", more="def make(self, y):\n    return self.up(y)\n"),
        ("return self.up(y)", "return torch.ones(y)"),
    ),
    _computed(
        "a method that records nothing",
        _given(
            "x = self.make(mask)", more="@torch.enable_grad()\ndef make(self, y):\n    return self.up(y)\n"
        ),
        ("@torch.enable_grad()", "@torch.no_grad()"),
    ),
    _computed(
        "a property",
        _given("x = self.made", more="@property\ndef made(self):\n    return self.up(1)\n"),
        ("return self.up(1)", "return torch.ones(1)"),
    ),
    _computed(
        "a lambda",
        _given("f = lambda y: self.up(y)\nx = f(mask)"),
        ("lambda y: self.up(y)", "lambda y: torch.ones(y)"),
    ),
    _computed(
        "states of an output",
        _given("x = self.up(mask).last_hidden_state"),
        ("last_hidden_state", "router_logits"),
        "unknown origin",
        role=_PERHAPS,
    ),
    _computed("the configuration", _given("x = self.up.weight"), ("self.up.weight", "self.config.weight")),
    _computed(
        "a walrus",
        _given("y = (x := self.up(mask))"),
        ("(x := self", "(z := self"),
        "unknown origin",
        role=_PERHAPS,
    ),
    _computed(
        "a walrus in a comprehension",
        _given("x = torch.zeros(4)\ny = [(x := self.up(z)) for z in mask]"),
        ("(x := self", "(w := self"),
    ),
    _computed(
        "what is added to a value later",
        _given("x = torch.zeros(4)\ny = x\nx += self.up(mask)"),
        ("hidden_states, x=x)", "hidden_states, x=y)"),
    ),
    _computed(
        "what a whole sequence gives",
        _given("x = self.up(mask)", "self.up = nn.Sequential(nn.Linear(4, 4))"),
        ("Sequential(nn.Linear(4, 4))", "Sequential(nn.ReLU())"),
        "unknown origin",
        role=_PERHAPS,
    ),
    _computed(
        "what a loop goes over",
        _given("for y in self.up(mask):\n    x = y"),
        ("in self.up(mask)", "in torch.zeros(4)"),
    ),
    _computed(
        "the number of a step",
        _given("for i, y in enumerate(self.up(mask)):\n    x = y"),
        ("i, y in", "y, i in"),
    ),
    Pair(
        "what a context gives",
        _given("x = torch.zeros(4)\nwith self.up(mask) as x:\n    pass"),
        ("with self.up(mask) as x", "with self.up(mask) as z"),
        _FOUND,
        [passed("x", _NO, "not computed")],
    ),
    Pair(
        "an item of the first items",
        _given("x = (self.up(mask), 1)[:1][0]"),
        ("(self.up(mask), 1)", "(1, self.up(mask))"),
        _FOUND,
        [passed("x", _NO, "not computed")],
    ),
    Pair(
        "an item of the last items",
        _given("x = (1, self.up(mask))[:2][1]"),
        ("[:2][1]", "[1:][0]"),
        _FOUND,
        _FOUND,
        wrong="an item of a slice counts as that of the whole tuple, wherever the slice begins",
    ),
    _computed(
        "an item of an item",
        _given("x = ((1, self.up(mask)), (1, 2))[0][1]"),
        ("[0][1]", "[1][0]"),
    ),
    _computed(
        "an item of a tuple that is made of another",
        _given("x = tuple((1, self.up(mask)))[1]"),
        ("[1]", "[0]"),
    ),
    Pair(
        "assigned without gradients, where it never is",
        _given("x = None\ny = 1\nif y is not None:\n    with torch.no_grad():\n        x = mask.float()"),
        ("y = 1", "y = None"),
        [passed("x", _NO, "not computed")],
        [passed("x", _NO, "always None")],
    ),
    _computed(
        "assigned under a condition that stands under another",
        _given("x = None\ny = 1\nif y is not None:\n    if mask:\n        x = self.up(mask)"),
        ("y = 1", "y = None"),
        "always None",
    ),
    Pair(
        "an attribute that takes the place of a method",
        _given(
            "x = self.note(self.up(mask))",
            f"{_MADE}\nself.note = torch.relu",
            more="def note(self, x):\n    return torch.zeros(4)\n",
        ),
        ("self.note = torch.relu", "self.other = torch.relu"),
        _FOUND,
        [passed("x", _NO, "not computed")],
    ),
)


_POS = "self.pos = nn.Parameter(torch.zeros(4))"
_FROZEN = _POS.replace("zeros(4)", "zeros(4), requires_grad=False")


def _inherited(of_base: str, own: str = "") -> str:
    """Write a file whose model passes a parameter that it or its base creates."""
    return toy(
        block(base=PROTECTED, takes="hidden_states, bias=None"),
        "class ToyBase(PreTrainedModel):\n    def __init__(self, config):\n"
        f"        super().__init__(config)\n        {of_base}\n",
        model(
            "for layer in self.layers:\n    hidden_states = layer(hidden_states, bias=self.pos)",
            base="ToyBase",
            init=f"{STACK}\n{own}",
        ),
    )


_PASSED = [found(KEYWORD, "safe")]
_NOT_PASSED = [silent(KEYWORD, "no activation by keyword")]


test_inherited_parameters = decided(
    Pair(
        "a parameter of the base that is frozen",
        _inherited(_FROZEN),
        (", requires_grad=False", ""),
        _NOT_PASSED,
        _PASSED,
    ),
    Pair(
        "a parameter that says whether it requires grad",
        _inherited(_FROZEN),
        ("requires_grad=False", "requires_grad=True"),
        _NOT_PASSED,
        _PASSED,
    ),
    Pair(
        "a buffer of the base",
        _inherited("self.register_buffer('pos', torch.zeros(4))"),
        ("register_buffer(", "register_tensor("),
        [passed("bias", _NO, "not computed")],
        [passed("bias", _PERHAPS, "unknown origin")],
    ),
    Pair(
        "a buffer of the base that changes",
        _inherited("self.register_buffer('pos', torch.zeros(4))", "self.pos.add(1)"),
        ("pos.add(1)", "pos.add_(1)"),
        [passed("bias", _NO, "not computed")],
        [passed("bias", _PERHAPS, "unknown origin")],
    ),
    Pair(
        "a parameter that takes the place of another",
        _inherited(_POS, _FROZEN),
        (", requires_grad=False", ""),
        _NOT_PASSED,
        _PASSED,
    ),
    Pair(
        "a parameter that takes the place of one that is frozen",
        _inherited(_FROZEN, _FROZEN.replace("zeros", "ones")),
        ("ones(4), requires_grad=False", "ones(4)"),
        _NOT_PASSED,
        _PASSED,
        wrong="a parameter counts as frozen if a base has created another one, which is, under its name",
    ),
)
