"""What a block is, and what it returns, that a recomputation cannot do again."""

from __future__ import annotations

from tests.decisions.outside import LAYER, Pair, decided, found
from tests.decisions.toy import BODY, BRANCH, FLAG, STACK, block, model, toy

_SAFE = [found(LAYER, "safe")]


def _doing(statements: str, **more: str) -> str:
    """Write a file whose block does something in ``forward``."""
    return toy(block(f"{statements}\n{BODY}", **more), model())


def _returning(value: str, before: str = "pass") -> str:
    return toy(
        block(f"{before}\nreturn {value}"),
        model("for layer in self.layers:\n    hidden_states = layer(hidden_states)[0]"),
    )


_STATES = "hidden_states + self.attention(hidden_states)"
_TORCH = BRANCH.replace("self._gradient_checkpointing_func(", "checkpoint(")
_HELD = [found(LAYER, "unsafe", "returns a container")]


def _held(decision: str, returned: str, change: tuple[str, str]) -> Pair:
    """Return the pair of a result that holds gradients, and of one that does not."""
    return Pair(decision, _returning(returned), change, _HELD, _SAFE)


test_what_is_returned = decided(
    _held("a dict", f"{{0: {_STATES}}}", ("{0: " + _STATES + "}", f"({_STATES},)")),
    _held("a list", f"[{_STATES}]", (f"[{_STATES}]", f"({_STATES},)")),
    Pair(
        "a list that becomes a tuple",
        _returning("x", f"x = [{_STATES}]"),
        ("return x", "return tuple(x)"),
        _HELD,
        _SAFE,
    ),
    Pair(
        "a list that becomes a tuple before",
        _returning("x", f"x = [{_STATES}]\nx = tuple(x)"),
        ("x = tuple(x)", "y = tuple(x)"),
        _SAFE,
        _HELD,
    ),
    _held("a tuple first", f"(({_STATES},), 1)", (f"(({_STATES},), 1)", f"({_STATES}, 1)")),
    _held("a tuple behind", f"({_STATES}, (mask,))", ("(mask,))", f"{_STATES})")),
    Pair(
        "caches behind",
        _returning(f"({_STATES}, (mask,))").replace(
            "states, mask=None", "states, mask=None, layer_past=None", 1
        ),
        ("(mask,))", "(layer_past,))"),
        _HELD,
        _SAFE,
    ),
    _held("one side of a choice", f"{_STATES} if mask else [mask]", ("else [mask]", "else (hidden_states,)")),
    Pair(
        "an output class",
        _returning(f"ModelOutput({_STATES})").replace(
            "import nn\n", "import nn\nfrom transformers.utils import ModelOutput\n", 1
        ),
        ("return ModelOutput(", "return torch.exp("),
        _HELD,
        _SAFE,
    ),
    Pair(
        "what a method returns",
        _returning("self.pack(hidden_states)").replace(
            "    def forward(self, hidden_states, mask=None):\n        pass",
            "    def pack(self, x):\n        return [x]\n    def forward(self, hidden_states, mask=None):\n"
            "        pass",
        ),
        ("return [x]", "return (x,)"),
        _HELD,
        _SAFE,
    ),
    Pair(
        "a block that was recomputed before",
        toy(block(f"return [{_STATES}]"), model(BRANCH, init=f"{STACK}\n{FLAG}")),
        ("self._gradient_checkpointing_func(layer.__call__,", "unknown(layer.__call__,"),
        _SAFE,
        _HELD,
    ),
    Pair(
        "a block that was recomputed before, in another mode in one of two loops",
        toy(
            block(f"return [{_STATES}]"),
            model(f"{BRANCH}\n{_TORCH}", init=f"{STACK}\n{FLAG}"),
            imports="from torch.utils.checkpoint import checkpoint\n",
        ),
        ("= checkpoint(", "= self._gradient_checkpointing_func("),
        _HELD,
        _SAFE,
    ),
)


test_what_a_block_is = decided(
    Pair(
        "statistics",
        _doing("pass", init="self.norm = nn.BatchNorm1d(4)"),
        ("nn.BatchNorm1d", "nn.GroupNorm"),
        [found(LAYER, "unsafe", "statistics")],
        _SAFE,
    ),
    Pair(
        "statistics that are asked for",
        _doing("pass", init="self.norm = nn.InstanceNorm1d(4, track_running_stats=True)"),
        ("stats=True", "stats=False"),
        [found(LAYER, "unsafe", "statistics")],
        _SAFE,
    ),
    Pair(
        "statistics in a table",
        toy('NORMS = {"a": nn.BatchNorm1d}\nMORE = {}\n', block(init="self.norm = NORMS['a'](4)"), model()),
        ("self.norm = NORMS", "self.norm = MORE"),
        [found(LAYER, "unsafe", "statistics")],
        _SAFE,
    ),
    Pair(
        "a call of its own",
        _doing("pass", more="def __call__(self, *args):\n    return 1\n"),
        ("def __call__", "def call"),
        [found(LAYER, "unsafe", "own call")],
        _SAFE,
    ),
    Pair(
        "a flag of its own",
        _doing("pass", init="self.gradient_checkpointing = False"),
        ("self.gradient_checkpointing", "self.gradient_clipping"),
        [found(LAYER, "unsafe", "own flag")],
        _SAFE,
    ),
    Pair(
        "a flag of its base",
        toy(
            block(name="ToyBase", init="self.gradient_clipping = False"),
            "class ToyLayer(ToyBase):\n    pass\n",
            model(),
        ),
        ("self.gradient_clipping", "self.gradient_checkpointing"),
        _SAFE,
        [found(LAYER, "unsafe", "own flag")],
    ),
    Pair(
        "a checkpoint function of its own",
        _doing("pass", init="self._gradient_clipping_func = None"),
        ("_gradient_clipping_func", "_gradient_checkpointing_func"),
        _SAFE,
        [found(LAYER, "unsafe", "own flag")],
    ),
    Pair(
        "a coroutine",
        toy(),
        (
            "    def forward(self, hidden_states, mask=None):\n        return hidden_states +",
            "    async def forward(self, hidden_states, mask=None):\n        return hidden_states +",
        ),
        _SAFE,
        [found(LAYER, "unsafe", "generator")],
    ),
    Pair(
        "subclasses are registered",
        _doing("pass", more="def __init_subclass__(cls):\n    pass\n"),
        (
            "def __init_subclass__(cls):\n        pass",
            "def __init_subclass__(cls):\n        super().__init_subclass__()",
        ),
        [found(LAYER, "unsafe", "registers subclasses")],
        _SAFE,
    ),
    Pair(
        "a generator",
        _doing("yield mask"),
        ("yield mask", "mask"),
        [found(LAYER, "unsafe", "generator")],
        _SAFE,
    ),
    Pair(
        "a generator in a comment",
        _doing("x = 1  # yield"),
        ("x = 1  # yield", "yield 1  # yield"),
        _SAFE,
        [found(LAYER, "unsafe", "generator")],
    ),
    Pair(
        "no gradients in the block",
        toy().replace(
            "    def forward(self, hidden_states, mask=None):\n        return hidden",
            "    @torch.no_grad()\n    def forward(self, hidden_states, mask=None):\n        return hidden",
        ),
        ("@torch.no_grad()", "@torch.enable_grad()"),
        [found(LAYER, "unsafe", "records no gradients")],
        _SAFE,
    ),
)
