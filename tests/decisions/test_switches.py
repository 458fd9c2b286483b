"""What enables checkpointing, beside the library."""

from __future__ import annotations

from tests.decisions.outside import LAYER, Files, Pair, decided, found
from tests.decisions.toy import BRANCH, FLAG, STACK, block, model, toy

_SAFE = [found(LAYER, "safe")]


def _branch(loop: str = BRANCH, init: str = "", takes: str = "hidden_states, mask=None", **more: str) -> str:
    return toy(block(takes=takes), model(loop, takes=takes, init=f"{STACK}\n{FLAG}\n{init}", **more))


def _none(*kinds: str) -> list[str]:
    return [found(LAYER, "none", *kinds)]


test_switches = decided(
    Pair(
        "the flag is off at first",
        _branch(),
        (FLAG, "self.gradient_checkpointing = True"),
        _SAFE,
        _none("flag is set"),
    ),
    Pair(
        "the flag comes from the configuration",
        _branch(),
        (FLAG, "self.gradient_checkpointing = config.x"),
        _SAFE,
        _none("flag is set"),
    ),
    Pair(
        "the flag is set in another method",
        _branch(more="def start(self):\n    self.gradient_clipping = False\n"),
        ("self.gradient_clipping", "self.gradient_checkpointing"),
        _SAFE,
        _none("flag is set"),
    ),
    Pair(
        "the flag is a property",
        _branch(more="@property\ndef gradient_clipping(self):\n    return False\n"),
        ("def gradient_clipping", "def gradient_checkpointing"),
        _SAFE,
        _none("flag is a property"),
    ),
    Pair(
        "the flag in the body of the class",
        _branch(more="gradient_checkpointing = False\n"),
        ("    gradient_checkpointing = False\n", "    gradient_checkpointing = True\n"),
        _SAFE,
        _none("flag is set"),
    ),
    Pair(
        "the flag in the words about the class",
        _branch(more='"""Set it:\n\ngradient_checkpointing = True\n"""\n'),
        (
            '"""Set it:\n\n    gradient_checkpointing = True\n    """',
            '"""Set it."""\n    gradient_checkpointing = True',
        ),
        _SAFE,
        _none("flag is set"),
    ),
    Pair(
        "a plain call does not need the flag",
        toy(block(), model(BRANCH, init=f"{STACK}\nself.gradient_checkpointing = True")),
        ("self._gradient_checkpointing_func(layer.__call__, ", "layer("),
        _none("flag is set"),
        _SAFE,
    ),
    Pair(
        "the model overrides the switch",
        _branch(more="def gradient_checkpointing_enable(self):\n    pass\n"),
        ("_enable(self)", "_report(self)"),
        _none("overrides the switch"),
        _SAFE,
    ),
    Pair(
        "the override hands on",
        _branch(more="def gradient_checkpointing_enable(self):\n    self.config = 1\n"),
        ("self.config = 1", "super().gradient_checkpointing_enable()"),
        _none("overrides the switch"),
        _SAFE,
    ),
    Pair(
        "support is not declared, with torch's function",
        toy(
            block(),
            model(
                BRANCH.replace("self._gradient_checkpointing_func", "torch.utils.checkpoint.checkpoint"),
                init=f"{STACK}\n{FLAG}",
            ),
            imports="import torch.utils.checkpoint\n",
        ),
        ("supports_gradient_checkpointing = True", "supports_gradient_checkpointing = False"),
        _SAFE,
        _none("no support declared"),
    ),
    Pair(
        "a checkpoint function of its own",
        _branch(init="self._gradient_checkpointing_tool = print").replace("= True\n", "= False\n", 1),
        ("checkpointing_tool = print", "checkpointing_func = print"),
        _SAFE,
        _none("no support declared"),
    ),
    Pair(
        "a script sets the flag of one module",
        {
            "modeling_toy.py": _branch(),
            "train.py": "from modeling_toy import ToyModel\ndef enable(model):\n"
            "    model.layers.gradient_checkpointing = True\n",
        },
        ("model.layers.gradient_checkpointing", "model.layers.gradient_clipping"),
        _none("set from outside"),
        _SAFE,
    ),
    Pair(
        "a script sets an option",
        {
            "modeling_toy.py": _branch(),
            "train.py": "from modeling_toy import ToyModel\ndef enable(model):\n"
            "    model.layers.gradient_checkpointing = True\n",
        },
        ("model.layers.gradient_checkpointing", "model.config.gradient_checkpointing"),
        _none("set from outside"),
        _SAFE,
    ),
    Pair(
        "a script sets the flag by its name",
        {
            "modeling_toy.py": _branch(),
            "train.py": "from modeling_toy import ToyModel\ndef enable(model):\n"
            "    setattr(model.layers, 'gradient_checkpointing', True)\n",
        },
        ("'gradient_checkpointing', True", "'gradient_clipping', True"),
        _none("set from outside"),
        _SAFE,
    ),
    Pair(
        "a base that is not known may declare support",
        toy(
            block(),
            model(
                BRANCH, name="ToyEncoder", base="nn.Module", supports="None", init=f"{STACK}\n{FLAG}"
            ).replace("super().__init__(config)", "super().__init__()"),
            model(base="OtherPreTrainedModel", init="self.encoder = ToyEncoder(config)", loop="pass").replace(
                "    supports_gradient_checkpointing = True\n", ""
            ),
            imports="from other import OtherPreTrainedModel\n",
        ),
        ("class ToyModel(OtherPreTrainedModel)", "class ToyModel(PreTrainedModel)"),
        [found(LAYER, "unsafe", "unknown support")],
        _SAFE,
    ),
)


_HEIRS = {
    "modeling_toy.py": _branch(),
    "modeling_heir.py": "from modeling_toy import ToyModel\n\n\nclass HeirModel(ToyModel):\n    pass\n",
    "modeling_last.py": "from modeling_heir import HeirModel\n\n\nclass LastModel(HeirModel):\n"
    "    def gradient_checkpointing_enable(self):\n        pass\n",
}
_MIXED = {
    "modeling_toy.py": "from mixin import ToyMixin\n" + _branch(base="ToyMixin, PreTrainedModel"),
    "mixin.py": "class ToyMixin:\n    def gradient_checkpointing_enable(self):\n        self.config = 1\n",
}
_STARTED = "from modeling_heir import HeirModel\n\n\nclass LastModel(HeirModel):\n"
_STARTED += "    def start(self):\n        self.gradient_checkpointing = True\n"
_OVERRIDES = _none("overrides the switch")
_ASKED = "getattr(self, 'gradient_checkpointing', False) and self.training"
_TORCHS = BRANCH.replace("self._gradient_checkpointing_func(", "torch.utils.checkpoint.checkpoint(")
_IMPORTED = "import torch\nimport torch.utils.checkpoint\n"


def _encoder(*models: str) -> str:
    """Write a file whose models contain what runs the blocks."""
    init = f"{STACK}\n{FLAG}"
    encoder = model(_TORCHS, name="ToyEncoder", base="nn.Module", supports="None", init=init)
    imports = "import torch.utils.checkpoint\nfrom other import OtherPreTrainedModel\n"
    return toy(block(), encoder.replace("__init__(config)", "__init__()"), *models, imports=imports)


def _outer(name: str, supports: str, base: str = "PreTrainedModel") -> str:
    """Write a model that declares support, or does not, or says nothing about it."""
    text = model("pass", name=name, base=base, init="self.encoder = ToyEncoder(config)", supports=supports)
    return text if supports else text.replace("    supports_gradient_checkpointing = \n", "")


test_what_else_enables = decided(
    Pair(
        "an heir of an heir, which does not import the model, overrides the switch",
        _HEIRS,
        ("gradient_checkpointing_enable(self)", "gradient_checkpointing_report(self)"),
        _OVERRIDES,
        _SAFE,
    ),
    Pair(
        "an heir of an heir sets the flag",
        {**_HEIRS, "modeling_last.py": _STARTED},
        ("self.gradient_checkpointing = True", "self.gradient_clipping = True"),
        _none("flag is set"),
        _SAFE,
    ),
    Pair(
        "a base in another file overrides the switch",
        _MIXED,
        ("self.config = 1", "super().gradient_checkpointing_enable()"),
        _OVERRIDES,
        _SAFE,
    ),
    Pair(
        "what sets the flags hands on to what enables",
        _branch(
            more="def _set_gradient_checkpointing(self, enable=True, gradient_checkpointing_func=None):\n"
            "    self.gradient_checkpointing_enable()\n"
        ),
        ("self.gradient_checkpointing_enable()", "super()._set_gradient_checkpointing(enable)"),
        _OVERRIDES,
        _SAFE,
    ),
    Pair(
        "the flag by its name, with a default",
        _branch(BRANCH.replace("self.gradient_checkpointing and self.training", _ASKED)),
        ("'gradient_checkpointing', False)", "'gradient_checkpointing', True)"),
        _SAFE,
        _none("another condition"),
    ),
    Pair(
        "the flag of something else by its name, with a default",
        _branch(BRANCH.replace("self.gradient_checkpointing and self.training", _ASKED)),
        ("getattr(self, 'gra", "getattr(layer, 'gra"),
        _SAFE,
        _none("another condition"),
    ),
    Pair(
        "one of two models declares support",
        _encoder(_outer("ToyModel", "False"), _outer("ToyHead", "True")),
        ("checkpointing = True", "checkpointing = False"),
        _SAFE,
        _none("no support declared"),
    ),
    Pair(
        "one of two models may declare support",
        _encoder(_outer("ToyModel", "False"), _outer("ToyHead", "", "OtherPreTrainedModel")),
        ("class ToyHead(OtherPreTrainedModel)", "class ToyHead(PreTrainedModel)"),
        [found(LAYER, "unsafe", "unknown support")],
        _none("no support declared"),
    ),
    Pair(
        "torch's function in the second of two branches, without support",
        _branch(f"{BRANCH}{_TORCHS.lstrip()}", supports="False").replace("import torch\n", _IMPORTED),
        ("torch.utils.checkpoint.checkpoint(layer", "self._gradient_checkpointing_func(layer"),
        _none("no support declared"),
        _SAFE,
    ),
    Pair(
        "a checkpoint function of a base in another file",
        {
            "modeling_toy.py": "from mixin import ToyMixin\n"
            + _branch(base="ToyMixin, PreTrainedModel", supports="False"),
            "mixin.py": "class ToyMixin:\n    def prepare(self):\n"
            "        self._gradient_checkpointing_func = print\n",
        },
        ("checkpointing_func = print", "checkpointing_tool = print"),
        _none("no support declared"),
        _SAFE,
    ),
)


def _script(*lines: str) -> Files:
    """Write a model, and a function of a script."""
    body = "".join(f"    {line}\n" for line in lines)
    return {
        "modeling_toy.py": _branch(),
        "train.py": f"from modeling_toy import ToyModel\n\n\ndef start(model, run):\n{body}",
    }


_OFF = "layer.gradient_checkpointing = False"
_ON = "layer.gradient_checkpointing = True"
_SET = _none("set from outside")


test_scripts = decided(
    Pair(
        "some layers are off, or all",
        _script("for layer in model.layers[:2]:", f"    {_OFF}"),
        ("model.layers[:2]", "model.modules()"),
        _SET,
        _SAFE,
    ),
    Pair(
        "all layers are on, with the function",
        _script(
            "for layer in model.modules():", f"    {_ON}", "    layer._gradient_checkpointing_func = run"
        ),
        ("    layer._gradient_checkpointing_func = run\n", "    layer._gradient_tool = run\n"),
        _SAFE,
        _SET,
    ),
    Pair(
        "some layers are on, with the function",
        _script("for layer in model.layers:", f"    {_ON}", "    layer._gradient_checkpointing_func = run"),
        ("model.layers", "model.modules()"),
        _SET,
        _SAFE,
    ),
    Pair(
        "the function by its name",
        _script(
            "for layer in model.modules():",
            f"    {_ON}",
            "    setattr(layer, '_gradient_checkpointing_func', run)",
        ),
        ("setattr(layer", "setattr(run"),
        _SAFE,
        _SET,
    ),
    Pair(
        "what has a flag is off",
        _script("for layer in run:", "    if hasattr(layer, 'gradient_checkpointing'):", f"        {_OFF}"),
        ("hasattr(layer,", "hasattr(model,"),
        _SAFE,
        _SET,
    ),
    Pair(
        "a function within another",
        _script("for each in model.modules():", "    run(each)", "def off(layer):", f"    {_OFF}"),
        ("    def off(layer):\n", "    def off(layer):\n        layer.modules()\n"),
        _SET,
        _SAFE,
    ),
    Pair(
        "a part of each layer is off",
        _script("for layer in model.modules():", f"    {_OFF.replace('layer.', 'layer.part.')}"),
        ("layer.part.", "layer."),
        _SET,
        _SAFE,
    ),
    Pair(
        "outside of a function",
        {
            "modeling_toy.py": _branch(),
            "train.py": f"from modeling_toy import model\nfor layer in model.modules():\n    {_OFF}\n",
        },
        ("layer.gradient_checkpointing", "layer.gradient_clipping"),
        _SET,
        _SAFE,
    ),
)
