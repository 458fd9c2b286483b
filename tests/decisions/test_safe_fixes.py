"""What makes a fix safe, unsafe or impossible: the code around a call, the bases, the neighbours."""

from __future__ import annotations

from tests.decisions.outside import FILE, LAYER, Pair, decided, found
from tests.decisions.toy import BRANCH, FLAG, LOOP, PROTECTED, STACK, block, model, toy

_SAFE = [found(LAYER, "safe")]


def _branch(loop: str = BRANCH, init: str = "", takes: str = "hidden_states, mask=None", **more: str) -> str:
    return toy(block(takes=takes), model(loop, takes=takes, init=f"{STACK}\n{FLAG}\n{init}", **more))


def _none(*kinds: str) -> list[str]:
    return [found(LAYER, "none", *kinds)]


def _unsafe(*kinds: str) -> list[str]:
    return [found(LAYER, "unsafe", *kinds)]


_ELSEWHERE = "\n\ndef run(model, x):\n    return checkpoint(model.{}, x)\n"
_STAGE = """\
class ToyStage(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.blocks = nn.ModuleList([ToyLayer(config)])

    def forward(self, hidden_states):
        for block in self.blocks:
            hidden_states = block(hidden_states)
        return hidden_states

"""
_VISION = """\
class ToyVision(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.heads = nn.ModuleList([ToyHead(config)])

    def forward(self, x):
        for head in self.heads:
            x = head(x)
        return checkpoint(self.project, x)

"""
_HEIR = f"""\
class ToyModel(BaseModel):
    def __init__(self, config):
        super().__init__(config)
        {STACK}
"""
_RUNNING = """\
class ToyBase(PreTrainedModel):
    def run(self, x):
        return checkpoint(self.one, x)

"""
_STAGE_STAYS = found(LAYER, "none", "no branch of its own", of="ToyStage")


def _beside(part: str) -> str:
    """Write a file whose model checkpoints a part in front of its loop."""
    run = "hidden_states = self._gradient_checkpointing_func(self.stage.__call__, hidden_states)\n"
    parts = (block(), block(name="ToyHead"), _STAGE)
    return toy(*parts, model(run + LOOP, init=f"{STACK}\n{FLAG}\n{part}"))


test_what_recomputes = decided(
    *(
        Pair(
            f"`{name}` recomputes, `{other}` does not",
            _branch(f"{BRANCH}{name}(self.layers)\n"),
            (f"{name}(self.layers)", f"{other}(self.layers)"),
            _none("leftover"),
            _SAFE,
        )
        for name, other in (
            ("checkpoint", "load_checkpoint"),
            ("checkpoint_sequential", "checkpoint_path"),
            ("remat", "set_remat"),
            ("block_ckpt", "save_ckpt"),
            ("self.run_checkpoint", "self.gradient_checkpointing_enable"),
            ("self.checkpointed", "self.checkpoints"),
        )
    ),
    Pair(
        "a function that recomputes, under another name",
        _branch(BRANCH + "run(self.layers)\n") + "\n\ndef run(x):\n    return checkpoint(x)\n",
        ("return checkpoint(x)", "return print(x)"),
        _none("leftover"),
        _SAFE,
    ),
    Pair(
        "an imported function, under another name",
        _branch(BRANCH + "run(self.layers)\n").replace(
            "import nn\n", "import nn\nfrom torch.utils.checkpoint import checkpoint as run\n", 1
        ),
        (
            "from torch.utils.checkpoint import checkpoint as run",
            "from torch.utils.data import Dataset as run",
        ),
        _none("leftover"),
        _SAFE,
    ),
    Pair(
        "a name in a string",
        _branch(BRANCH + 'x = "checkpoint(self.layers)"\n'),
        ('"checkpoint(self.layers)"', "checkpoint(self.layers)"),
        _SAFE,
        _none("leftover"),
    ),
    Pair(
        "in a class that has nothing to do with it",
        _branch().replace(
            "class ToyModel", "class ToyHead:\n    def run(self, x):\n        checkpoint(x)\n\nclass ToyModel"
        ),
        ("class ToyHead:", "class ToyHead(ToyLayer):"),
        _SAFE,
        _none("leftover"),
    ),
    Pair(
        "an attribute that is named like an imported function",
        _branch(BRANCH + "run(mask.load_checkpoint, self.layers)\n").replace(
            "import nn\n", "import nn\nfrom torch.utils.checkpoint import checkpoint as load_checkpoint\n", 1
        ),
        ("run(mask.load_checkpoint", "run(load_checkpoint"),
        _SAFE,
        _none("leftover"),
    ),
    Pair(
        "a function of torch's module that is handed on",
        _branch(f"{BRANCH}run(torch.utils.checkpoint.checkpoint_all, self.layers)\n"),
        ("torch.utils.checkpoint.checkpoint_all", "torch.utils.data.checkpoint_all"),
        _none("leftover"),
        _SAFE,
    ),
    Pair(
        "a part that holds such layers is checkpointed",
        _beside("self.stage = ToyStage(config)"),
        ("self.blocks = nn.ModuleList([ToyLayer(config)])", "self.blocks = nn.ModuleList([ToyHead(config)])"),
        [*_none("leftover"), _STAGE_STAYS],
        [*_SAFE, _STAGE_STAYS],
    ),
    Pair(
        "a part that may hold such layers is checkpointed",
        _beside("self.stage = make(config)"),
        ("self.stage = make(config)", "self.stage = ToyStage(config.part)"),
        _none("leftover"),
        [*_none("leftover"), _STAGE_STAYS],
    ),
    Pair(
        "a function of the file that gets a layer from a method",
        _branch(more="def layer_at(self, index):\n    return self.layers[index]\n")
        + _ELSEWHERE.format("layer_at(0)"),
        ("model.layer_at", "model.head_at"),
        _none("leftover"),
        _SAFE,
    ),
    Pair(
        "a function of the file that runs other parts of the model",
        _branch(init="self.heads = nn.ModuleList([ToyAttention(config)])") + _ELSEWHERE.format("heads[0]"),
        ("model.heads", "model.layers"),
        _SAFE,
        _none("leftover"),
    ),
    Pair(
        "a function beside a model whose loop is inherited from another file",
        {
            FILE: toy(block(), _HEIR, imports="from modeling_base import BaseModel\n")
            + _ELSEWHERE.format("layers[0]"),
            "modeling_base.py": toy(
                block(name="BaseLayer", base=PROTECTED),
                model(name="BaseModel", init=STACK.replace("ToyLayer", "BaseLayer")),
            ),
        },
        ("model.layers", "model.heads"),
        _none("leftover"),
        _SAFE,
    ),
    Pair(
        "a function beside the layer, where its model is in another file",
        {
            FILE: toy(block()) + _ELSEWHERE.format("heads[0]"),
            "modeling_other.py": toy(model(), imports="from modeling_toy import ToyLayer\n"),
        },
        ("model.heads", "model.layers"),
        _SAFE,
        _none("leftover"),
        wrong="in the block's own file, the attributes that hold it in other files are not known",
    ),
    Pair(
        "a part of the model that runs blocks of its own",
        toy(
            block(),
            block(name="ToyHead", base=PROTECTED),
            _VISION,
            model(BRANCH, init=f"{STACK}\n{FLAG}\nself.vision = ToyVision(config)"),
        ),
        ("x = head(x)", "x = len(x)"),
        _SAFE,
        _none("leftover"),
    ),
    Pair(
        "a base of the model",
        toy(_RUNNING, block(), model(BRANCH, base="ToyBase", init=f"{STACK}\n{FLAG}")),
        ("class ToyModel(ToyBase)", "class ToyModel(PreTrainedModel)"),
        _none("leftover"),
        _SAFE,
    ),
)


_PAST = "hidden_states, past_key_values=None, use_cache=False"


_MIDDLE = """\
class ToyMiddle(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.inner = ToyLayer(config)

    def forward(self, x):
        return self.inner(x)

"""


def _two_branches(others: str) -> str:
    """Write a file with two legacy branches, the second of which checkpoints these blocks."""
    stacks = (
        "self.layers = nn.ModuleList([ToyLayer(config), ToyOther(config)])",
        f"self.others = nn.ModuleList([{others}])",
    )
    last = block(name="ToyLast", init="self.norm = nn.BatchNorm1d(4)")
    loops = BRANCH + BRANCH.replace("self.layers", "self.others")
    return toy(block(), block(name="ToyOther"), last, model(loops, init="\n".join((FLAG, *stacks))))


def _loop(statements: str, before: str = "", behind: str = "") -> str:
    return toy(block(), model(f"{before}\nfor layer in self.layers:\n    {statements}\n{behind}"))


def _based(statement: str) -> str:
    """Write a file whose model has a base of its own."""
    return toy(f"class ToyBase(PreTrainedModel):\n    {statement}\n", block(), model(base="ToyBase"))


def _cached(loop: str) -> str:
    """Write a file whose layers return more with a cache."""
    takes = "hidden_states, mask=None, use_cache=False"
    more = "if use_cache:\n    return hidden_states, self.attention(mask)\nreturn (hidden_states,)"
    return toy(block(more, takes=takes), model(f"for layer in self.layers:\n{loop}", takes=takes))


_CALL = "hidden_states = layer(hidden_states, mask)"


test_surroundings = decided(
    Pair(
        "the loop changes an argument",
        _loop(f"{_CALL}\n    mask[0] = 1"),
        ("mask[0] = 1", "mask = 1"),
        _unsafe("changed around"),
        _SAFE,
    ),
    Pair(
        "an argument changes behind the loop",
        _loop(_CALL, behind="mask += 1"),
        ("mask += 1", "mask = mask + 1"),
        _unsafe("changed around"),
        _SAFE,
    ),
    Pair(
        "an argument changes before the loop",
        _loop(_CALL, before="mask += 1"),
        (
            "        mask += 1\n        for layer in self.layers:\n"
            "            hidden_states = layer(hidden_states, mask)\n",
            "        for layer in self.layers:\n            hidden_states = layer(hidden_states, mask)\n"
            "        mask += 1\n",
        ),
        _SAFE,
        _unsafe("changed around"),
    ),
    Pair(
        "what the loop feeds back may change",
        _loop(f"{_CALL}\n    hidden_states += 1"),
        ("hidden_states += 1", "mask += 1"),
        _SAFE,
        _unsafe("changed around"),
    ),
    Pair(
        "the layer itself changes",
        _loop(f"{_CALL}\n    layer.count += 1"),
        ("layer.count += 1", "x = layer.count + 1"),
        _unsafe("changed around"),
        _SAFE,
    ),
    Pair(
        "the configuration changes",
        _loop(f"{_CALL}\n    self.config.step = 1") + "\n\ndef step_of(config):\n    return config.step\n",
        ("self.config.step", "self.config.other"),
        _unsafe("changed around"),
        _SAFE,
    ),
    Pair(
        "a context of its own",
        _loop("with torch.autocast('cpu'):\n        hidden_states = layer(hidden_states)"),
        ("torch.autocast('cpu')", "self.mode('cpu')"),
        _SAFE,
        _unsafe("context"),
    ),
    Pair(
        "an iterator is passed",
        _loop(_CALL, before="mask = list(mask)"),
        ("mask = list(mask)", "mask = iter(mask)"),
        _SAFE,
        _unsafe("iterator"),
    ),
    Pair(
        "a generator is passed",
        _loop(_CALL, before="mask = [x for x in mask]"),
        ("[x for x in mask]", "(x for x in mask)"),
        _SAFE,
        _unsafe("iterator"),
    ),
    Pair(
        "a function around a gradient",
        _loop(_CALL, before="up = self.layers[0](hidden_states)\nmask = lambda: up"),
        ("lambda: up", "lambda: down"),
        _unsafe("holds values"),
        _SAFE,
    ),
    Pair(
        "`forward` is called directly",
        _loop(_CALL),
        ("= layer(", "= layer.forward("),
        _SAFE,
        _unsafe("direct forward"),
    ),
    Pair(
        "hooks of the model",
        _loop(_CALL, before="self.register_forward_hook(print)"),
        ("forward_hook", "state_hook"),
        _unsafe("hooks"),
        _SAFE,
    ),
    Pair(
        "router outputs are recorded",
        toy(block(), model(more='_can_record_outputs = {"router_logits": 1}\n')),
        ('"router_logits"', '"attentions"'),
        _unsafe("records routers"),
        _SAFE,
    ),
    Pair(
        "modules are compiled",
        toy(block(), model(init=f"{STACK}\nself.fast = torch.jit.script(self.head)")),
        ("torch.jit.script(", "torch.jit.ignore("),
        _unsafe("compiled"),
        _SAFE,
    ),
    Pair(
        "parts are put into evaluation mode",
        _branch(init="self.layers.train()"),
        ("self.layers.train()", "self.layers.eval()"),
        _SAFE,
        _unsafe("evaluates"),
    ),
    Pair(
        "a block puts its parts into evaluation mode",
        toy(block(init="self.attention.train()"), model(BRANCH, init=f"{STACK}\n{FLAG}")),
        ("self.attention.train()", "self.attention.eval()"),
        _SAFE,
        _unsafe("evaluates"),
    ),
    Pair(
        "hooks of the model's base",
        _based("def more(self):\n        self.register_forward_hook(print)"),
        ("forward_hook", "state_hook"),
        _unsafe("hooks"),
        _SAFE,
    ),
    Pair(
        "the model's base records router outputs",
        _based('_can_record_outputs = {"router_logits": 1}'),
        ('"router_logits"', '"attentions"'),
        _unsafe("records routers"),
        _SAFE,
    ),
    Pair(
        "the model's base compiles modules",
        _based("def more(self):\n        self.fast = torch.jit.script(self.head)"),
        ("torch.jit.script(", "torch.jit.ignore("),
        _unsafe("compiled"),
        _SAFE,
    ),
    Pair(
        "a loop around the loop changes an argument",
        toy(
            block(),
            model(
                "for _ in range(2):\n    mask[0] = 1\n    for layer in self.layers:\n"
                "        hidden_states = layer(hidden_states, mask)"
            ),
        ),
        ("mask[0] = 1", "mask = 1"),
        _unsafe("changed around"),
        _SAFE,
    ),
    Pair(
        "a second context of its own",
        _loop(
            "with torch.autocast('cpu'), torch.enable_grad():\n        hidden_states = layer(hidden_states)"
        ),
        ("torch.enable_grad()", "self.mode('cpu')"),
        _SAFE,
        _unsafe("context"),
    ),
    Pair(
        "a comment of evaluation mode",
        _branch(init="x = 1  # self.eval()"),
        ("x = 1  # self.eval()", "self.eval()"),
        _SAFE,
        _unsafe("evaluates"),
    ),
    Pair(
        "an item of an iterator is passed, and then an iterator of its own",
        toy(
            block(),
            model(
                "for layer, mask in zip(self.layers, biases):\n"
                "    hidden_states = layer(hidden_states, mask)",
                takes="hidden_states, biases=None",
            ),
        ),
        ("    hidden_states = layer(", "    mask = iter(mask)\n            hidden_states = layer("),
        _SAFE,
        _unsafe("holds gradients", "iterator"),
    ),
    Pair(
        "what an outer loop feeds back is no hidden state of the inner one",
        toy(
            block(),
            model(
                "for _ in range(2):\n    x = hidden_states\n    for layer in self.layers:\n"
                "        x = layer(x, hidden_states)\n    hidden_states += x"
            ),
        ),
        ("hidden_states += x", "hidden_states = hidden_states + x"),
        _unsafe("changed around"),
        _SAFE,
    ),
    Pair(
        "an argument is where a function writes one of several results",
        _loop(f"{_CALL}\n    torch.max(hidden_states, 0, out=(x, mask))"),
        ("(x, mask)", "(x, z)"),
        _unsafe("changed around"),
        _SAFE,
    ),
    Pair(
        "an argument is given to a function that nobody knows, though by its name it would only read",
        toy(
            block(),
            model(f"for layer in self.layers:\n    {_CALL}\n    relu(mask)"),
            imports="from acme import relu\n",
        ),
        ("relu(mask)", "relu(z)"),
        _unsafe("unknown around"),
        _SAFE,
    ),
    Pair(
        "an argument is given to a function that nobody knows, which is called like one of Python's",
        toy(
            block(),
            model(f"for layer in self.layers:\n    {_CALL}\n    getattr(mask, 'shape')"),
            imports="from acme import getattr\n",
        ),
        ("from acme import getattr", "from acme import setter"),
        _unsafe("unknown around"),
        _SAFE,
    ),
)


test_bases_and_neighbours = decided(
    Pair(
        "the base has to be its own",
        toy(block(name="ToyBase"), block(base="ToyBase"), block(name="ToyHead", base="ToyBase"), model()),
        ("class ToyHead(ToyBase)", "class ToyHead(nn.Module)"),
        _unsafe("shared base"),
        _SAFE,
    ),
    Pair(
        "the name is taken",
        toy("ToyName = 1\n", block(), model()).replace(
            "from transformers.modeling_layers import GradientCheckpointingLayer\n", ""
        ),
        ("ToyName = 1", "GradientCheckpointingLayer = 1"),
        _SAFE,
        _none("name taken"),
    ),
    Pair(
        "the name is imported as another",
        toy(imports="from toy import Other as Name\n").replace(
            "from transformers.modeling_layers import GradientCheckpointingLayer\n", ""
        ),
        ("as Name", "as GradientCheckpointingLayer"),
        _SAFE,
        _none("name taken"),
    ),
    Pair(
        "an heir names the base class first",
        toy(block(), model(), "class ToyHeir(ToyLayer, GradientCheckpointingLayer):\n    pass\n"),
        ("(ToyLayer, GradientCheckpointingLayer)", "(GradientCheckpointingLayer, ToyLayer)"),
        _unsafe("shared base"),
        _none("order of bases"),
    ),
    Pair(
        "a checkpoint function would stay",
        _branch(BRANCH + "self._gradient_clipping_tool(self.layers)\n"),
        ("clipping_tool(", "checkpointing_func("),
        _SAFE,
        _none("leftover"),
    ),
    Pair(
        "two blocks in one branch",
        toy(
            block(),
            block(name="ToyOther"),
            model(BRANCH, init=f"{STACK}\n{FLAG}\nself.layers.append(ToyOther(config))"),
        ),
        ("class ToyOther(nn.Module)", "class ToyOther(GradientCheckpointingLayer)"),
        [found(LAYER, "safe"), found(LAYER, "safe", of="ToyOther")],
        _SAFE,
    ),
    Pair(
        "one of two blocks in one branch",
        toy(
            block(),
            block(name="ToyOther", init="self.norm = nn.LayerNorm(4)"),
            model(BRANCH, init=f"{STACK}\n{FLAG}\nself.layers.append(ToyOther(config))"),
        ),
        ("nn.LayerNorm", "nn.BatchNorm1d"),
        [found(LAYER, "safe"), found(LAYER, "safe", of="ToyOther")],
        [found(LAYER, "unsafe", "statistics"), found(LAYER, "unsafe", "statistics", of="ToyOther")],
    ),
    Pair(
        "a cache of one release only",
        toy(
            block(takes=_PAST),
            model(
                "for layer in self.layers:\n"
                "    hidden_states = layer(hidden_states, past_key_values=past_key_values)",
                takes=_PAST,
            ),
        ),
        ("past_key_values=past_key_values)", "use_cache=None)"),
        _unsafe("release", "release"),
        _unsafe("release"),
        releases=">=4.49",
    ),
    Pair(
        "what the model reads of a cache",
        toy(
            block(
                "if use_cache:\n    return hidden_states, self.attention(mask)\nreturn (hidden_states,)",
                takes="hidden_states, mask=None, use_cache=False",
            ),
            model(
                "for layer in self.layers:\n    out = layer(hidden_states, use_cache=use_cache)\n"
                "    hidden_states = out[0]\n    if use_cache:\n        mask = out[1]",
                takes="hidden_states, mask=None, use_cache=False",
            ),
        ),
        ("mask = out[1]", "mask = out[0]"),
        _unsafe("without its cache"),
        _SAFE,
    ),
    Pair(
        "an output with a cache is unpacked",
        _cached("    hidden_states, mask = layer(hidden_states, use_cache=True)"),
        ("use_cache=True", "use_cache=False"),
        _unsafe("without its cache"),
        _SAFE,
    ),
    Pair(
        "what the model reads where it always asks for a cache",
        _cached(
            "    out = layer(hidden_states, use_cache=True)\n    hidden_states = out[0]\n    mask = out[1]"
        ),
        ("mask = out[1]", "mask = out[0]"),
        _unsafe("without its cache"),
        _SAFE,
    ),
    Pair(
        "what the model reads of a cache, in one expression",
        _cached(
            "    out = layer(hidden_states, use_cache=use_cache)\n    hidden_states = out[0]\n"
            "    mask = out[1] if use_cache else None"
        ),
        ("mask = out[1]", "mask = out[0]"),
        _unsafe("without its cache"),
        _SAFE,
    ),
    Pair(
        "a script replaces `forward`",
        {
            "modeling_toy.py": toy(),
            "patch.py": "from modeling_toy import ToyLayer\nToyLayer.forward = print\n",
        },
        ("ToyLayer.forward = print", "ToyLayer.backward = print"),
        _unsafe("replaced"),
        _SAFE,
        releases=">=5.23",
    ),
    Pair(
        "a script replaces another `forward`",
        {
            "modeling_toy.py": toy(),
            "patch.py": "from modeling_toy import ToyLayer\nToyLayer.forward = print\n",
        },
        ("ToyLayer.forward = print", "torch.nn.Linear.forward = print"),
        _unsafe("replaced"),
        _SAFE,
        releases=">=5.23",
    ),
    Pair(
        "a part of a block that is recomputed as a whole",
        toy(
            block(),
            block(name="ToyOther", init="self.part = ToyLayer(config)"),
            model(init=f"{STACK}\nself.layers.append(ToyOther(config))"),
        ),
        ("self.part = ToyLayer(config)", "self.part = ToyAttention(config)"),
        [found(LAYER, "unsafe", "shared part"), found(LAYER, "safe", of="ToyOther")],
        [found(LAYER, "safe"), found(LAYER, "safe", of="ToyOther")],
    ),
    Pair(
        "a part of a part of a block that is recomputed as a whole",
        toy(
            block(),
            _MIDDLE,
            block(
                "return self.middle(hidden_states)", name="ToyOther", init="self.middle = ToyMiddle(config)"
            ),
            model(init=f"{STACK}\nself.layers.append(ToyOther(config))"),
        ),
        ("self.inner = ToyLayer(config)", "self.inner = ToyAttention(config)"),
        [found(LAYER, "unsafe", "shared part"), found(LAYER, "safe", of="ToyOther")],
        [found(LAYER, "safe"), found(LAYER, "safe", of="ToyOther")],
    ),
    Pair(
        "a block that two branches lead to",
        _two_branches("ToyOther(config), ToyLast(config)"),
        ("nn.BatchNorm1d(4)", "nn.LayerNorm(4)"),
        [found(LAYER, "unsafe", "statistics", of=name) for name in ("ToyLayer", "ToyOther", "ToyLast")],
        [found(LAYER, "safe", of=name) for name in ("ToyLayer", "ToyOther", "ToyLast")],
    ),
    Pair(
        "a call in evaluation that passes what is no cache",
        toy(
            block(takes=_PAST),
            model(
                "if not self.training:\n    for layer in self.layers:\n"
                "        hidden_states = layer(hidden_states, past_key_values=self.prompt)\n"
                "for layer in self.layers:\n    hidden_states = layer(hidden_states)\n",
                takes=_PAST,
            ),
        ),
        ("not self.training", "not self.scales"),
        _SAFE,
        _none("no cache"),
    ),
)
