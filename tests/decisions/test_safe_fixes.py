"""What makes a fix safe, unsafe or impossible: the branch that goes, the switch, the bases, the code around."""

from __future__ import annotations

from tests.decisions.outside import LAYER, OVERRIDE, Outside, Pair, Side, found, sides, silent
from tests.decisions.toy import BODY, BRANCH, FLAG, PLAIN, STACK, block, model, toy

_SAFE = [found(LAYER, "safe")]
_ON = "self._gradient_checkpointing_func(layer.__call__, hidden_states, mask)"
_OFF = "layer(hidden_states, mask)"


def _branch(loop: str = BRANCH, init: str = "", takes: str = "hidden_states, mask=None", **more: str) -> str:
    return toy(block(takes=takes), model(loop, takes=takes, init=f"{STACK}\n{FLAG}\n{init}", **more))


def _none(*kinds: str) -> list[str]:
    return [found(LAYER, "none", *kinds)]


def _unsafe(*kinds: str) -> list[str]:
    return [found(LAYER, "unsafe", *kinds)]


@sides(
    Pair("a branch", _branch(), ("    if self.gradient_checkpointing and self.training:", "    if self.gradient_clipping and self.training:"), _SAFE,
         _none("no branch of its own")),
    Pair("the flag of something else", _branch(), ("if self.gradient_checkpointing and", "if self.config.gradient_checkpointing and"), _SAFE, _none("another condition")),
    Pair("the flag and more", _branch(), ("and self.training:", "and self.training and mask:"), _SAFE, _none("another condition")),
    Pair("the flag or the mode", _branch(), ("gradient_checkpointing and self.training:", "gradient_checkpointing or self.training:"), _SAFE, _none("another condition")),
    Pair("the flag alone", _branch(), (" and self.training:", ":"), _SAFE, _unsafe("checkpoints in evaluation", "checkpoints in evaluation")),
    Pair("the flag by its name", _branch(BRANCH.replace("self.gradient_checkpointing", "getattr(self, 'gradient_checkpointing', False)")),
         ("checkpointing', False)", "checkpointing', True)"), _SAFE, _none("another condition")),
    Pair("the mode by gradients", _branch(BRANCH.replace("self.training", "torch.is_grad_enabled()")), ("torch.is_grad_enabled()", "torch.is_grad_enabled(1)"),
         _unsafe("checkpoints in evaluation", "checkpoints in evaluation"), _none("another condition")),
    Pair("there is another side", _branch(), ("    else:\n                hidden_states = layer(hidden_states, mask)\n", ""), _SAFE, _none("no else")),
    Pair("`elif`", _branch(BRANCH.replace("    if self", "    if mask:\n        pass\n    elif self")), ("    pass\n            elif self", "    pass\n            if self"), _none("elif"), _SAFE),
    Pair("the sides are the other way around", _branch(), ("if self.gradient_checkpointing and self.training:\n                hidden_states = " + _ON + "\n            else:\n                hidden_states = " + _OFF,
         "if not (self.gradient_checkpointing and self.training):\n                hidden_states = " + _OFF + "\n            else:\n                hidden_states = " + _ON), _SAFE, _SAFE),
    Pair("the same arguments", _branch(), ("layer.__call__, hidden_states, mask)", "layer.__call__, hidden_states, self.mask)"), _SAFE,
         [found("mismatched-checkpoint-branches", "none", "author"), *_none("branches differ")]),
    Pair("one side says nothing", _branch(), ("layer.__call__, hidden_states, mask)", "layer.__call__, hidden_states)"), _SAFE,
         [found("mismatched-checkpoint-branches", "none", "author"), *_unsafe("call changes")]),
    Pair("other statements", _branch(), ("    else:\n                hidden_states = layer", "    else:\n                mask = 1\n                hidden_states = layer"), _SAFE, _none("branches differ")),
    Pair("another use of the result", _branch(), ("            hidden_states = " + _OFF, "            hidden_states = " + _OFF + "[0]"), _SAFE, _none("branches differ")),
    Pair("another layer", _branch(), ("hidden_states = layer(", "hidden_states = self.layers[0]("), _SAFE, _none("branches differ")),
    Pair("`forward` on the plain side", _branch(), ("hidden_states = layer(", "hidden_states = layer.forward("), _SAFE, _none("branches differ")),
    Pair("`forward` on the checkpointed side", _branch(), ("layer.__call__,", "layer.forward,"), _SAFE, _SAFE),
    Pair("an option of the checkpoint function", _branch(), ("hidden_states, mask)\n            else", "hidden_states, mask, use_reentrant=False)\n            else"), _SAFE, _SAFE),
    Pair("a context of the checkpoint function", _branch(BRANCH.replace("__call__, hidden_states, mask", "__call__, hidden_states, mask, debug=mask")), ("debug=mask", "context_fn=mask"), _SAFE, _unsafe("context_fn")),
)
def test_branches(side: Side, outside: Outside) -> None:
    assert side.answers(outside) == side.said


_PAST = "hidden_states, past_key_values=None, use_cache=False"


def _cached(legacy: str = "None", plain: str = "past_key_values", guard: str = "") -> str:
    loop = (
        "for layer in self.layers:\n    if self.gradient_checkpointing and self.training:\n"
        f"{guard}        hidden_states = self._gradient_checkpointing_func(layer.__call__, hidden_states, {legacy})\n"
        f"    else:\n        hidden_states = layer(hidden_states, past_key_values={plain})"
    )
    return _branch(loop, takes=_PAST)


@sides(
    Pair("a cache that is off", _cached(), ("hidden_states, None)", "hidden_states, mask)"), _SAFE,
         [found("mismatched-checkpoint-branches", "none", "author"), *_none("branches differ")]),
    Pair("a cache that is off in no release", _cached().replace("past_key_values", "memory"), ("hidden_states, None)", "hidden_states, memory)"),
         [found("mismatched-checkpoint-branches", "none", "author"), *_unsafe("call changes")], _SAFE),
    Pair("a cache that is left out", _cached(), ("hidden_states, None)", "hidden_states)"), _SAFE, _SAFE),
    Pair("a guard in front", _cached(guard="        past_key_values = None\n", legacy="past_key_values"), ("    past_key_values = None\n", "    mask = None\n"), _SAFE, _none("branches differ")),
    Pair("the other call passes a literal", _cached(), ("past_key_values=past_key_values", "past_key_values=None"), _SAFE, _SAFE),
    Pair("something else than a cache", _cached(), ("past_key_values=past_key_values", "past_key_values=self.prompt"), _SAFE, _none("no cache")),
)
def test_caches_of_branches(side: Side, outside: Outside) -> None:
    assert side.answers(outside) == side.said


_SCRIPT = "def enable(model):\n    model.layers.gradient_checkpointing = True\n"


@sides(
    Pair("the flag is off at first", _branch(), (FLAG, "self.gradient_checkpointing = True"), _SAFE, _none("flag is set")),
    Pair("the flag comes from the configuration", _branch(), (FLAG, "self.gradient_checkpointing = config.x"), _SAFE, _none("flag is set")),
    Pair("the flag is set in another method", _branch(more="def start(self):\n    self.gradient_clipping = False\n"),
         ("self.gradient_clipping", "self.gradient_checkpointing"), _SAFE, _none("flag is set")),
    Pair("the flag is a property", _branch(more="@property\ndef gradient_clipping(self):\n    return False\n"),
         ("def gradient_clipping", "def gradient_checkpointing"), _SAFE, _none("flag is a property")),
    Pair("the flag in the body of the class", _branch(more="gradient_checkpointing = False\n"), ("    gradient_checkpointing = False\n", "    gradient_checkpointing = True\n"), _SAFE, _none("flag is set")),
    Pair("a plain call does not need the flag", toy(block(), model(init=f"{STACK}\n{FLAG}")), (FLAG, "self.gradient_checkpointing = True"), _SAFE, _SAFE),
    Pair("the model overrides the switch", _branch(more="def gradient_checkpointing_enable(self):\n    pass\n"), ("_enable(self)", "_report(self)"), _none("overrides the switch"), _SAFE),
    Pair("the override hands on", _branch(more="def gradient_checkpointing_enable(self):\n    self.config = 1\n"),
         ("self.config = 1", "super().gradient_checkpointing_enable()"), _none("overrides the switch"), _SAFE),
    Pair("support is not declared", _branch(), ("supports_gradient_checkpointing = True", "supports_gradient_checkpointing = False"), _SAFE, _SAFE),
    Pair(
        "support is not declared, with torch's function",
        toy(block(), model(BRANCH.replace("self._gradient_checkpointing_func", "torch.utils.checkpoint.checkpoint"), init=f"{STACK}\n{FLAG}"),
            imports="import torch.utils.checkpoint\n"),
        ("supports_gradient_checkpointing = True", "supports_gradient_checkpointing = False"),
        _SAFE,
        _none("no support declared"),
    ),
    Pair("a checkpoint function of its own", _branch(init="self._gradient_checkpointing_tool = print").replace("= True\n", "= False\n", 1),
         ("checkpointing_tool = print", "checkpointing_func = print"), _SAFE, _none("no support declared")),
    Pair(
        "a script sets the flag of one module",
        {"modeling_toy.py": _branch(), "train.py": "from modeling_toy import ToyModel\ndef enable(model):\n    model.layers.gradient_checkpointing = True\n"},
        ("model.layers.gradient_checkpointing", "model.layers.gradient_clipping"),
        _none("set from outside"),
        _SAFE,
    ),
    Pair(
        "a script sets an option",
        {"modeling_toy.py": _branch(), "train.py": "from modeling_toy import ToyModel\ndef enable(model):\n    model.layers.gradient_checkpointing = True\n"},
        ("model.layers.gradient_checkpointing", "model.config.gradient_checkpointing"),
        _none("set from outside"),
        _SAFE,
    ),
    Pair(
        "a script sets the flag by its name",
        {"modeling_toy.py": _branch(), "train.py": "from modeling_toy import ToyModel\ndef enable(model):\n    setattr(model.layers, 'gradient_checkpointing', True)\n"},
        ("'gradient_checkpointing', True", "'gradient_clipping', True"),
        _none("set from outside"),
        _SAFE,
    ),
)
def test_switches(side: Side, outside: Outside) -> None:
    assert side.answers(outside) == side.said


def _loop(statements: str, before: str = "", behind: str = "") -> str:
    return toy(block(), model(f"{before}\nfor layer in self.layers:\n    {statements}\n{behind}"))


_CALL = "hidden_states = layer(hidden_states, mask)"


@sides(
    Pair("the loop changes an argument", _loop(f"{_CALL}\n    mask[0] = 1"), ("mask[0] = 1", "mask = 1"), _unsafe("changed around"), _SAFE),
    Pair("an argument changes behind the loop", _loop(_CALL, behind="mask += 1"), ("mask += 1", "mask = mask + 1"), _unsafe("changed around"), _SAFE),
    Pair("an argument changes before the loop", _loop(_CALL, before="mask += 1"),
         ("        mask += 1\n        for layer in self.layers:\n            hidden_states = layer(hidden_states, mask)\n",
          "        for layer in self.layers:\n            hidden_states = layer(hidden_states, mask)\n        mask += 1\n"), _SAFE, _unsafe("changed around")),
    Pair("what the loop feeds back may change", _loop(f"{_CALL}\n    hidden_states += 1"), ("hidden_states += 1", "mask += 1"), _SAFE, _unsafe("changed around")),
    Pair("the layer itself changes", _loop(f"{_CALL}\n    layer.count += 1"), ("layer.count += 1", "x = layer.count + 1"), _unsafe("changed around"), _SAFE),
    Pair("the configuration changes", _loop(f"{_CALL}\n    self.config.step = 1"), ("self.config.step", "self.state.step"), _unsafe("changed around"), _SAFE),
    Pair("a context of its own", _loop("with torch.autocast('cpu'):\n        hidden_states = layer(hidden_states)"), ("torch.autocast('cpu')", "self.mode('cpu')"), _SAFE, _unsafe("context")),
    Pair("an iterator is passed", _loop(_CALL, before="mask = list(mask)"), ("mask = list(mask)", "mask = iter(mask)"), _SAFE, _unsafe("iterator")),
    Pair("a generator is passed", _loop(_CALL, before="mask = [x for x in mask]"), ("[x for x in mask]", "(x for x in mask)"), _SAFE, _unsafe("iterator")),
    Pair("a function around a gradient", _loop(_CALL, before="up = self.layers[0](mask)\nmask = lambda: up"), ("lambda: up", "lambda: down"), _unsafe("holds values"), _SAFE),
    Pair("`forward` is called directly", _loop(_CALL), ("= layer(", "= layer.forward("), _SAFE, _unsafe("direct forward")),
    Pair("hooks of the model", _loop(_CALL, before="self.register_forward_hook(print)"), ("forward_hook", "state_hook"), _unsafe("hooks"), _SAFE),
    Pair("router outputs are recorded", toy(block(), model(more='_can_record_outputs = {"router_logits": 1}\n')), ('"router_logits"', '"attentions"'), _unsafe("records routers"), _SAFE),
    Pair("modules are compiled", toy(block(), model(init=f"{STACK}\nself.fast = torch.jit.script(self.head)")), ("torch.jit.script(", "torch.jit.ignore("), _unsafe("compiled"), _SAFE),
    Pair("parts are put into evaluation mode", _branch(init="self.layers.train()"), ("self.layers.train()", "self.layers.eval()"), _SAFE, _unsafe("evaluates")),
    Pair("a comment of evaluation mode", _branch(init="x = 1  # self.eval()"), ("x = 1  # self.eval()", "self.eval()"), _SAFE, _unsafe("evaluates")),
)
def test_surroundings(side: Side, outside: Outside) -> None:
    assert side.answers(outside) == side.said


@sides(
    Pair("the base has to be its own", toy(block(name="ToyBase"), block(base="ToyBase"), block(name="ToyHead", base="ToyBase"), model()),
         ("class ToyHead(ToyBase)", "class ToyHead(nn.Module)"), _unsafe("shared base"), _SAFE),
    Pair("the name is taken", toy("ToyName = 1\n", block(), model()).replace("from transformers.modeling_layers import GradientCheckpointingLayer\n", ""), ("ToyName = 1", "GradientCheckpointingLayer = 1"), _SAFE, _none("name taken")),
    Pair("the name is imported as another", toy(imports="from toy import Other as Name\n").replace("from transformers.modeling_layers import GradientCheckpointingLayer\n", ""),
         ("as Name", "as GradientCheckpointingLayer"), _SAFE, _none("name taken")),
    Pair("an heir names the base class first", toy(block(), model(), "class ToyHeir(ToyLayer, GradientCheckpointingLayer):\n    pass\n"),
         ("(ToyLayer, GradientCheckpointingLayer)", "(GradientCheckpointingLayer, ToyLayer)"), _unsafe("shared base"), _none("order of bases")),
    Pair("a checkpoint function would stay", _branch(BRANCH + "self._gradient_clipping_tool(self.layers)\n"), ("clipping_tool(", "checkpointing_func("), _SAFE, _none("leftover")),
    Pair("a checkpoint of weights stays", _branch(BRANCH + "checkpoint(self.layers)\n", name="ToyModel"), ("        checkpoint(", "        load_checkpoint("), _none("leftover"), _SAFE),
    Pair(
        "two blocks in one branch",
        toy(block(), block(name="ToyOther"), model(BRANCH, init=f"{STACK}\n{FLAG}\nself.layers.append(ToyOther(config))")),
        ("class ToyOther(nn.Module)", "class ToyOther(GradientCheckpointingLayer)"),
        [found(LAYER, "safe"), found(LAYER, "safe", of="ToyOther")],
        _SAFE,
    ),
    Pair(
        "one of two blocks in one branch",
        toy(block(), block(name="ToyOther", init="self.norm = nn.LayerNorm(4)"), model(BRANCH, init=f"{STACK}\n{FLAG}\nself.layers.append(ToyOther(config))")),
        ("nn.LayerNorm", "nn.BatchNorm1d"),
        [found(LAYER, "safe"), found(LAYER, "safe", of="ToyOther")],
        [found(LAYER, "unsafe", "statistics"), found(LAYER, "unsafe", "statistics", of="ToyOther")],
    ),
    Pair("a cache of one release only", toy(block(takes=_PAST), model("for layer in self.layers:\n    hidden_states = layer(hidden_states, past_key_values=past_key_values)", takes=_PAST)),
         ("past_key_values=past_key_values)", "use_cache=None)"), _unsafe("release", "release"), _unsafe("release"), releases=">=4.49"),
    Pair("an unguarded import", toy().replace("from transformers.modeling_layers", "try:\n    from transformers.modeling_layers").replace("CheckpointingLayer\n\n", "CheckpointingLayer\nexcept ImportError:\n    GradientCheckpointingLayer = nn.Module\n\n"),
         ("try:\n    from", "if torch:\n    from transformers import x\ntry:\n    from"), _SAFE, _SAFE, releases=">=4.49"),
    Pair("what the model reads of a cache", toy(block("if use_cache:\n    return hidden_states, self.attention(mask)\nreturn (hidden_states,)", takes="hidden_states, mask=None, use_cache=False"),
         model("for layer in self.layers:\n    out = layer(hidden_states, use_cache=use_cache)\n    hidden_states = out[0]\n    if use_cache:\n        mask = out[1]", takes="hidden_states, mask=None, use_cache=False")),
         ("mask = out[1]", "mask = out[0]"), _unsafe("output with cache"), _SAFE),
)
def test_bases_and_neighbours(side: Side, outside: Outside) -> None:
    assert side.answers(outside) == side.said


_METHOD = """\
def _set_gradient_checkpointing(self, module, value=False):
    if isinstance(module, ToyModel):
        module.gradient_checkpointing = value
"""


def _override(method: str = _METHOD, more: str = "", init: str = FLAG, base: str = "GradientCheckpointingLayer") -> str:
    return toy(block(base=base, init=more), model(init=f"{STACK}\n{init}", more=method))


_GOES = [found(OVERRIDE, "safe", of="ToyModel")]


@sides(
    Pair("an override of the old interface", _override(_METHOD.replace("= value", "= True")), ("value=False", "enable=False"), [found(OVERRIDE, "none", "override does more", of="ToyModel")], [silent(OVERRIDE, "new interface")], at="class ToyModel"),
    Pair("an override that does more", _override(), ("isinstance(module, ToyModel):", "hasattr(module, 'x'):"), _GOES, [found(OVERRIDE, "none", "override does more", of="ToyModel")]),
    Pair("an override with another side", _override(), (".gradient_checkpointing = value\n", ".gradient_checkpointing = value\n        else:\n            pass\n"), _GOES, [found(OVERRIDE, "none", "override does more", of="ToyModel")]),
    Pair("of several classes", _override(), ("isinstance(module, ToyModel)", "isinstance(module, (ToyModel, ToyAttention))"), _GOES, [found(OVERRIDE, "unsafe", "no flag elsewhere", of="ToyModel")]),
    Pair("another class would be enabled", _override(init=f"{FLAG}\nself.head = ToyHead(config)").replace("class ToyModel", "class ToyHead(nn.Module):\n    def __init__(self, config):\n        self.gradient_clipping = False\n\nclass ToyModel"),
         ("gradient_clipping = False", "gradient_checkpointing = False"), _GOES, [found(OVERRIDE, "unsafe", "enabled as well", of="ToyModel")]),
    Pair("a layer keeps statistics", _override(more="self.norm = nn.LayerNorm(4)"), ("nn.LayerNorm", "nn.BatchNorm1d"), _GOES, [found(OVERRIDE, "unsafe", "statistics", of="ToyModel")]),
    Pair("the named class has no flag", _override(), (FLAG, "self.gradient_clipping = False"), _GOES, [found(OVERRIDE, "unsafe", "no flag elsewhere", of="ToyModel")]),
    Pair("it is used", _override(init=f"{FLAG}\nself.train(True)"), ("self.train(True)", "self._set_gradient_checkpointing(self, True)"), _GOES, [found(OVERRIDE, "unsafe", "override is used", of="ToyModel")]),
    Pair("the library raises before", _override(), ("supports_gradient_checkpointing = True", "supports_gradient_checkpointing = False"), _GOES, [silent(OVERRIDE, "no support")], at="class ToyModel"),
    Pair("a block becomes a layer with it", _override(base="nn.Module"), ("module, value=False", "module, value=None"), [*_GOES, *_SAFE], [*_GOES, *_SAFE]),
    Pair("the library's base class in an old release", _override(), ("class ToyLayer(GradientCheckpointingLayer)", "class ToyLayer(nn.Module)"), _GOES, [*_GOES, *_SAFE]),
)
def test_overrides(side: Side, outside: Outside) -> None:
    assert side.answers(outside) == side.said
