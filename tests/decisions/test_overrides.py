"""Which overrides of the library's old switch can go."""

from __future__ import annotations

from tests.decisions.outside import (
    KEYWORD,
    LAYER,
    OVERRIDE,
    Pair,
    decided,
    found,
    silent,
)
from tests.decisions.toy import FLAG, LOOP, PROTECTED, STACK, block, model, toy

_SAFE = [found(LAYER, "safe")]
_METHOD = """\
def _set_gradient_checkpointing(self, module, value=False):
    if isinstance(module, ToyModel):
        module.gradient_checkpointing = value
"""


def _override(
    method: str = _METHOD, more: str = "", init: str = FLAG, base: str = "GradientCheckpointingLayer"
) -> str:
    return toy(block(base=base, init=more), model(init=f"{STACK}\n{init}", more=method))


_HEADER = "class ToyLayer(GradientCheckpointingLayer):"


def _with_another(norm: str) -> str:
    """Write a file whose model has an override, and runs two blocks, the first with this norm."""
    stacks = f"{STACK}\n{STACK.replace('layers', 'others').replace('ToyLayer', 'ToyOther')}"
    loops = LOOP.replace("layers", "others") + LOOP
    other = block(name="ToyOther", init=f"self.norm = nn.{norm}(4)")
    return toy(other, block(), model(loops, init=f"{stacks}\n{FLAG}", more=_METHOD))


_MIXIN = """
class ToyMixin:
    def start(self, module):
        self._set_gradient_checkpointing(module, value=True)

"""
_GOES = [found(OVERRIDE, "safe", of="ToyModel")]


test_overrides = decided(
    Pair(
        "an override of the old interface",
        _override(_METHOD.replace("= value", "= True")),
        ("value=False", "enable=False"),
        [found(OVERRIDE, "none", "override does more", of="ToyModel")],
        [silent(OVERRIDE, "new interface")],
        at="class ToyModel",
    ),
    Pair(
        "an override goes with what makes the layer one",
        _override(base="nn.Module"),
        ("class ToyLayer(nn.Module)", "class ToyLayer(GradientCheckpointingLayer)"),
        [found(LAYER, "safe", code=_HEADER), found(OVERRIDE, "safe", of="ToyModel", code=_HEADER)],
        [found(OVERRIDE, "safe", of="ToyModel", code="")],
    ),
    Pair(
        "an override goes with the safe one of two repairs",
        _with_another("BatchNorm1d"),
        ("nn.BatchNorm1d", "nn.LayerNorm"),
        [found(LAYER, "unsafe", "statistics", of="ToyOther"), *_SAFE, *_GOES],
        [found(LAYER, "safe", of="ToyOther"), *_SAFE, *_GOES],
    ),
    Pair(
        "an override that does more",
        _override(),
        ("isinstance(module, ToyModel):", "hasattr(module, 'x'):"),
        _GOES,
        [found(OVERRIDE, "none", "override does more", of="ToyModel")],
    ),
    Pair(
        "an override with another side",
        _override(),
        (
            ".gradient_checkpointing = value\n",
            ".gradient_checkpointing = value\n        else:\n            pass\n",
        ),
        _GOES,
        [found(OVERRIDE, "none", "override does more", of="ToyModel")],
    ),
    Pair(
        "an override that says what it does",
        _override(_METHOD.replace("value=False):\n", "value=False):\n    'print(module)'\n")),
        ("'print(module)'", "print(module)"),
        _GOES,
        [found(OVERRIDE, "none", "override does more", of="ToyModel")],
    ),
    Pair(
        "of several classes",
        _override(),
        ("isinstance(module, ToyModel)", "isinstance(module, (ToyModel, ToyAttention))"),
        _GOES,
        [found(OVERRIDE, "unsafe", "no flag elsewhere", of="ToyModel")],
    ),
    Pair(
        "another class would be enabled",
        _override(init=f"{FLAG}\nself.head = ToyHead(config)").replace(
            "class ToyModel",
            "class ToyHead(nn.Module):\n    def __init__(self, config):\n"
            "        self.gradient_clipping = False\n\nclass ToyModel",
        ),
        ("gradient_clipping = False", "gradient_checkpointing = False"),
        _GOES,
        [found(OVERRIDE, "unsafe", "enabled as well", of="ToyModel")],
    ),
    Pair(
        "a layer keeps statistics",
        _override(more="self.norm = nn.LayerNorm(4)"),
        ("nn.LayerNorm", "nn.BatchNorm1d"),
        _GOES,
        [found(OVERRIDE, "unsafe", "statistics", of="ToyModel")],
    ),
    Pair(
        "a layer stores something",
        _override().replace(
            "        return hidden_states +", "        last = mask\n        return hidden_states +"
        ),
        ("        last = mask", "        self.last = mask"),
        _GOES,
        [found(OVERRIDE, "unsafe", "stores on self", of="ToyModel")],
    ),
    Pair(
        "a layer in a part of the model keeps statistics",
        _override(init=f"{FLAG}\nself.encoder = ToyEncoder(config)")
        + block(name="ToyOther", base=PROTECTED, init="self.norm = nn.LayerNorm(4)")
        + "class ToyEncoder(nn.Module):\n    def __init__(self, config):\n"
        "        self.other = ToyOther(config)\n",
        ("nn.LayerNorm", "nn.BatchNorm1d"),
        _GOES,
        [found(OVERRIDE, "unsafe", "statistics", of="ToyModel")],
    ),
    Pair(
        "a layer of an heir in another file keeps statistics",
        {
            "modeling_toy.py": _override(),
            "modeling_other.py": "from modeling_toy import ToyAttention, ToyModel\nfrom torch import nn\n"
            "from transformers.modeling_layers import GradientCheckpointingLayer\n\n"
            + block(name="OtherLayer", base=PROTECTED, init="self.norm = nn.LayerNorm(4)")
            + "class OtherModel(ToyModel):\n    def __init__(self, config):\n"
            "        super().__init__(config)\n        self.other = OtherLayer(config)\n",
        },
        ("nn.LayerNorm", "nn.BatchNorm1d"),
        _GOES,
        [found(OVERRIDE, "unsafe", "statistics", of="ToyModel")],
    ),
    Pair(
        "a layer of an heir keeps statistics",
        _override()
        + block(name="ToyOther", base=PROTECTED, init="self.norm = nn.LayerNorm(4)")
        + "class ToyHeir(ToyModel):\n    def __init__(self, config):\n"
        "        super().__init__(config)\n        self.other = ToyOther(config)\n",
        ("nn.LayerNorm", "nn.BatchNorm1d"),
        _GOES,
        [found(OVERRIDE, "unsafe", "statistics", of="ToyModel")],
    ),
    Pair(
        "the named class has no flag",
        _override(),
        (FLAG, "self.gradient_clipping = False"),
        _GOES,
        [found(OVERRIDE, "unsafe", "no flag elsewhere", of="ToyModel")],
    ),
    Pair(
        "it is used",
        _override(init=f"{FLAG}\nself.train(True)"),
        ("self.train(True)", "self._set_gradient_checkpointing(self, True)"),
        _GOES,
        [found(OVERRIDE, "unsafe", "override is used", of="ToyModel")],
    ),
    Pair(
        "another base of the model uses it",
        _override().replace(
            "class ToyModel(PreTrainedModel)", f"{_MIXIN}class ToyModel(PreTrainedModel, ToyMixin)"
        ),
        ("(PreTrainedModel, ToyMixin)", "(PreTrainedModel)"),
        [found(OVERRIDE, "unsafe", "override is used", of="ToyModel")],
        _GOES,
    ),
    Pair(
        "a script uses that of some model",
        {
            "modeling_toy.py": _override(),
            "train.py": "def start(model):\n    model._set_gradient_checkpointing(model, True)\n",
        },
        ("model._set_gradient_checkpointing", "model._set_gradient_clipping"),
        [found(OVERRIDE, "unsafe", "override is used", of="ToyModel")],
        _GOES,
    ),
    Pair(
        "that of the library is used by its name",
        _override(init=f"{FLAG}\nself.start = PreTrainedModel._set_gradient_checkpointing"),
        ("PreTrainedModel._set_gradient", "ToyModel._set_gradient"),
        _GOES,
        [found(OVERRIDE, "unsafe", "override is used", of="ToyModel")],
    ),
    Pair(
        "its name is used, or part of a message",
        _override() + "\n\ndef start(model):\n    return getattr(model, '_set_gradient_checkpointing')\n",
        ("'_set_gradient_checkpointing'", "'the _set_gradient_checkpointing of old'"),
        [found(OVERRIDE, "unsafe", "override is used", of="ToyModel")],
        _GOES,
    ),
    Pair(
        "another class uses its own, or that of some model",
        _override()
        + "\n\nclass ToyOther:\n    def start(self, model):\n"
        + "        self._set_gradient_checkpointing(model, True)\n",
        ("self._set_gradient_checkpointing", "model._set_gradient_checkpointing"),
        _GOES,
        [found(OVERRIDE, "unsafe", "override is used", of="ToyModel")],
    ),
    Pair(
        "an heir of the model uses that of its base",
        _override()
        + _MIXIN.replace("class ToyMixin", "class ToyHeir(ToyModel)").replace("self._", "super()._"),
        ("class ToyHeir(ToyModel)", "class ToyHeir(nn.Module)"),
        [found(OVERRIDE, "unsafe", "override is used", of="ToyModel")],
        _GOES,
    ),
    Pair(
        "an heir of the model uses it",
        _override() + _MIXIN.replace("class ToyMixin", "class ToyHeir(ToyModel)"),
        ("class ToyHeir(ToyModel)", "class ToyHeir(nn.Module)"),
        [found(OVERRIDE, "unsafe", "override is used", of="ToyModel")],
        _GOES,
    ),
    Pair(
        "another base of an heir uses it",
        _override() + _MIXIN + "class ToyHeir(ToyModel, ToyMixin):\n    pass\n",
        ("class ToyHeir(ToyModel, ToyMixin)", "class ToyHeir(ToyMixin)"),
        [found(OVERRIDE, "unsafe", "override is used", of="ToyModel")],
        _GOES,
    ),
    Pair(
        "the library raises before",
        _override(),
        ("supports_gradient_checkpointing = True", "supports_gradient_checkpointing = False"),
        _GOES,
        [silent(OVERRIDE, "no support")],
        at="class ToyModel",
    ),
    Pair(
        "a block becomes a layer with it",
        _override(base="nn.Module"),
        ("checkpointing = value", "checkpointing = not value"),
        [*_GOES, *_SAFE],
        [
            found(OVERRIDE, "none", "override does more", of="ToyModel"),
            found(LAYER, "none", "override does more"),
        ],
    ),
    Pair(
        "the library's base class in an old release",
        _override(),
        ("class ToyLayer(GradientCheckpointingLayer)", "class ToyLayer(nn.Module)"),
        _GOES,
        [*_GOES, *_SAFE],
    ),
    Pair(
        "releases that do not set the flags, and a file that needs later ones",
        _override(base="nn.Module", init=f"{FLAG}\nself._gradient_checkpointing_func = None")
        .replace("from transformers.modeling_layers import GradientCheckpointingLayer\n", "")
        .replace("for layer in self.layers:", "if mask is None:\n            layer = self.layers[0]"),
        ("self._gradient_checkpointing_func = None", "self.other = None"),
        [found(OVERRIDE, "safe", of="ToyModel")],
        [found(OVERRIDE, "unsafe", "release", of="ToyModel")],
        releases=">=4.30",
    ),
    Pair(
        "an inner function uses that of what it gets, which is not the instance of the class around it",
        _override()
        + "\n\nclass ToyOther:\n    def start(self, model):\n        def switch(module):\n"
        + "            module._set_gradient_checkpointing(module, True)\n        switch(model)\n",
        (
            "module._set_gradient_checkpointing(module, True)",
            "self._set_gradient_checkpointing(module, True)",
        ),
        [found(OVERRIDE, "unsafe", "override is used", of="ToyModel")],
        _GOES,
    ),
    Pair(
        "a test of the model itself, not of the module",
        _override(),
        ("isinstance(module, ToyModel)", "isinstance(self, ToyModel)"),
        _GOES,
        [found(OVERRIDE, "none", "override does more", of="ToyModel")],
    ),
    Pair(
        "one of several classes is not known",
        _override(),
        ("isinstance(module, ToyModel)", "isinstance(module, (ToyModel, kinds()))"),
        _GOES,
        [found(OVERRIDE, "none", "override does more", of="ToyModel")],
    ),
    Pair(
        "an override that says what it does in two strings",
        _override(_METHOD.replace("value=False):\n", "value=False):\n    'a' 'module'\n")),
        ("'a' 'module'", "print('a' 'module')"),
        _GOES,
        [found(OVERRIDE, "none", "override does more", of="ToyModel")],
    ),
    Pair(
        "an override that does more with the same module",
        _override(),
        (
            ".gradient_checkpointing = value\n",
            ".gradient_checkpointing = value\n            module.start()\n",
        ),
        _GOES,
        [found(OVERRIDE, "none", "override does more", of="ToyModel")],
    ),
    Pair(
        "a call of a layer would lose its gradients",
        _override().replace("layer(hidden_states)", "layer(hidden_states, mask)"),
        ("layer(hidden_states, mask)", "layer(hidden_states=hidden_states)"),
        _GOES,
        [found(KEYWORD, "safe"), found(OVERRIDE, "unsafe", "wrong call", of="ToyModel")],
    ),
    Pair(
        "the code around layers changes what they were given",
        _override().replace(
            "hidden_states = layer(hidden_states)",
            "given, hidden_states = hidden_states, layer(hidden_states)\n            given.mul(2)",
        ),
        (".mul(2)", ".mul_(2)"),
        _GOES,
        [found(OVERRIDE, "unsafe", "changed around", of="ToyModel")],
    ),
    Pair(
        "a layer calls something that is not known",
        _override(more="self.helper = print"),
        ("self.helper = print", "self.attention = make(config)"),
        _GOES,
        [found(OVERRIDE, "unsafe", "unknown", of="ToyModel")],
    ),
    Pair(
        "a layer needs its cache",
        _override().replace(
            "hidden_states, mask=None):\n        return",
            "hidden_states, past_key_values=None):\n        past = past_key_values\n        return",
        ),
        ("past = past_key_values", "past, _ = past_key_values"),
        _GOES,
        [found(OVERRIDE, "unsafe", "needs its cache", of="ToyModel")],
    ),
)
