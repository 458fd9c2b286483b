"""What other files decide: users, heirs, bases, and what is generated."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from gclint.code.project import Project
from gclint.finding import Edit, Refusal
from gclint.run.check import check
from gclint.settings import Settings
from tests.decisions.outside import (
    BRANCHES,
    FILE,
    KEYWORD,
    LAYER,
    Files,
    Outside,
    Pair,
    decided,
    found,
    silent,
)
from tests.decisions.toy import (
    ABSOLUTE,
    BODY,
    BRANCH,
    FLAG,
    LIBRARY,
    MODELS,
    PROTECTED,
    RELATIVE,
    STACK,
    block,
    model,
    toy,
)
from tests.test_releases_of_projects import library as installation
from tests.test_releases_of_projects import write
from tests.toys import WordRule, replacing


def _named(text: str, name: str) -> str:
    return text.replace(ABSOLUTE, RELATIVE).replace("Toy", name)


def _tree(beta: str, alpha: str = "", more: Files | None = None) -> Files:
    """Write the files of two models into a package, the second of which may copy from the first."""
    return {
        **LIBRARY,
        f"{MODELS}/alpha/modeling_alpha.py": _named(alpha or toy(), "Alpha"),
        f"{MODELS}/beta/modeling_beta.py": _named(beta, "Beta"),
        **(more or {}),
    }


_HEAD = "import torch\nfrom torch import nn\nfrom transformers import PreTrainedModel\n"


def _two(first: str, second: str) -> Files:
    return {FILE: first, "modeling_other.py": _HEAD + second}


def _user(body: str, imported: str = "ToyLayer") -> str:
    return f"from modeling_toy import {imported}\n\n{body}"


_PASSED = "past_key_values"
_PAST = f"hidden_states, {_PASSED}=None"


def _inheriting(called: str) -> Files:
    """Write a model that calls its layers so, and an heir with layers of its own in another file."""
    loop = f"for layer in self.layers:\n    hidden_states = {called}"
    return _two(
        toy(block(), model(loop, takes=_PAST, supports="None")),
        _user(
            "class OtherAttention(nn.Module):\n    pass\n\n"
            "class OtherLayer(nn.Module):\n    def __init__(self):\n"
            "        self.attention = OtherAttention()\n"
            f"    def forward(self, {_PAST}):\n        return hidden_states\n\n"
            "class OtherModel(ToyModel):\n    supports_gradient_checkpointing = True\n"
            "    def __init__(self, config):\n        self.layers = nn.ModuleList([OtherLayer()])\n",
            "ToyModel",
        ),
    )


_OTHER_MODEL = model(name="OtherModel")
_SAFE = [found(LAYER, "safe")]
_BASE = "class ToyLayer(GradientCheckpointingLayer):"
_ORDER = [found(LAYER, "none", "order of bases")]


test_other_files = decided(
    Pair(
        "another file runs the block otherwise",
        _two(toy(), _user(_OTHER_MODEL)),
        (
            "from modeling_toy import ToyLayer\n",
            "from modeling_toy import ToyLayer\nfrom torch.utils.checkpoint import checkpoint\n"
            "def run(model, x):\n    return checkpoint(model.layers[0], x)\n",
        ),
        _SAFE,
        [found(LAYER, "none", "leftover")],
    ),
    Pair(
        "another file checkpoints the block in a branch that stays",
        _two(toy(), _user(model(BRANCH, name="OtherModel", init=f"{STACK}\n{FLAG}"))),
        ("self.gradient_checkpointing and self.training", "self.gradient_checkpointing and mask"),
        _SAFE,
        [found(LAYER, "none", "leftover")],
    ),
    Pair(
        "another file checkpoints the block in a branch whose sides differ",
        _two(toy(), _user(model(BRANCH, name="OtherModel", init=f"{STACK}\n{FLAG}"))),
        ("layer.__call__, hidden_states, mask)", "layer.__call__, hidden_states, 1)"),
        _SAFE,
        [found(BRANCHES, "none", "author"), found(LAYER, "none", "leftover")],
    ),
    Pair(
        "another file runs the block with its cache by position",
        _two(
            toy(block(takes=_PAST), model()),
            _user(
                model(
                    "for layer in self.layers:\n    hidden_states = layer(hidden_states, past_key_values)",
                    name="OtherModel",
                    takes=_PAST,
                    supports="False",
                )
            ),
        ),
        ("layer(hidden_states, past_key_values)", "layer(hidden_states)"),
        [found(LAYER, "safe", code=f"{_BASE} | hidden_states = layer(hidden_states, {_PASSED}={_PASSED})")],
        [found(LAYER, "safe", code=_BASE)],
    ),
    Pair(
        "an heir in another file has a branch that stays",
        _two(
            toy(),
            _user(
                "class OtherLayer(ToyLayer):\n    pass\n\n"
                + model(BRANCH, name="OtherModel", init=f"{STACK.replace('ToyLayer', 'OtherLayer')}\n{FLAG}")
            ),
        ),
        ("self.gradient_checkpointing and self.training", "self.gradient_checkpointing and mask"),
        [found(LAYER, "safe"), found(LAYER, "safe", of="OtherLayer")],
        [
            found(LAYER, "none", "heir cannot change"),
            found(LAYER, "none", "another condition", of="OtherLayer"),
        ],
    ),
    Pair(
        "an heir in another file has a branch whose sides differ",
        _two(
            toy(),
            _user(
                "class OtherLayer(ToyLayer):\n    pass\n\n"
                + model(BRANCH, name="OtherModel", init=f"{STACK.replace('ToyLayer', 'OtherLayer')}\n{FLAG}")
            ),
        ),
        ("layer.__call__, hidden_states, mask)", "layer.__call__, hidden_states, 1)"),
        [found(LAYER, "safe"), found(LAYER, "safe", of="OtherLayer")],
        [
            found(BRANCHES, "none", "author", of="OtherLayer"),
            found(LAYER, "none", "heir cannot change"),
            found(LAYER, "none", "branches differ", of="OtherLayer"),
        ],
    ),
    Pair(
        "an heir in another file keeps statistics",
        _two(
            toy(),
            _user(
                "class OtherLayer(ToyLayer):\n    def __init__(self, config):\n"
                "        super().__init__(config)\n        self.norm = nn.LayerNorm(4)\n\n"
                + model(BRANCH, name="OtherModel", init=f"{STACK.replace('ToyLayer', 'OtherLayer')}\n{FLAG}")
            ),
        ),
        ("nn.LayerNorm", "nn.BatchNorm1d"),
        [found(LAYER, "safe"), found(LAYER, "safe", of="OtherLayer")],
        [
            found(LAYER, "unsafe", "statistics"),
            found(LAYER, "unsafe", "statistics", "statistics", of="OtherLayer"),
        ],
    ),
    Pair(
        "an heir in another file names the base class first",
        _two(
            toy(),
            _user(
                "from transformers.modeling_layers import GradientCheckpointingLayer\n"
                "class OtherLayer(ToyLayer, GradientCheckpointingLayer):\n    pass\n"
            ),
        ),
        ("(ToyLayer, GradientCheckpointingLayer)", "(GradientCheckpointingLayer, ToyLayer)"),
        _SAFE,
        [found(LAYER, "none", "order of bases")],
    ),
    Pair(
        "a model in another file declares support",
        _two(
            toy(block(), model(supports="None")),
            _user("class OtherModel(ToyModel):\n    supports_gradient_checkpointing = True\n", "ToyModel"),
        ),
        ("checkpointing = True", "checkpointing = False"),
        _SAFE,
        [],
    ),
    Pair(
        "an heir of the model sets the flag",
        _two(
            toy(block(), model(BRANCH, init=f"{STACK}\n{FLAG}")),
            _user(
                "class OtherModel(ToyModel):\n    def start(self):\n"
                "        self.gradient_checkpointing = False\n",
                "ToyModel",
            ),
        ),
        ("def start(self)", "def __init__(self)"),
        [found(LAYER, "none", "flag is set")],
        _SAFE,
    ),
    Pair(
        "an heir of the model overrides the switch",
        _two(
            toy(block(), model(BRANCH, init=f"{STACK}\n{FLAG}")),
            _user(
                "class OtherModel(ToyModel):\n    def gradient_checkpointing_enable(self):\n        pass\n",
                "ToyModel",
            ),
        ),
        ("gradient_checkpointing_enable", "gradient_clipping_enable"),
        [found(LAYER, "none", "overrides the switch")],
        _SAFE,
    ),
    Pair(
        "an heir puts other layers into the stack",
        _two(
            toy(block(), model(BRANCH, init=f"{STACK}\n{FLAG}")),
            _user(
                "class OtherLayer(nn.Module):\n    def forward(self, x):\n        return x\n\n"
                "class OtherModel(ToyModel):\n    def __init__(self, config):\n"
                "        self.layers = nn.ModuleList([OtherLayer()])\n",
                "ToyModel",
            ),
        ),
        ("self.layers = nn.ModuleList([OtherLayer", "self.heads = nn.ModuleList([OtherLayer"),
        [found(LAYER, "none", "replaced stack"), found(LAYER, "none", "inherited loop", of="OtherLayer")],
        _SAFE,
    ),
    Pair(
        "the base is in another file",
        {
            FILE: toy(block(base="OtherBase"), model(), imports="from modeling_other import OtherBase\n"),
            "modeling_other.py": _HEAD + "class OtherBase(nn.Module):\n    pass\n",
        },
        ("class OtherBase(nn.Module)", "class OtherBase(Unknown)"),
        [found(LAYER, "none", "base elsewhere")],
        [silent(LAYER, "unknown base")],
        at="class ToyLayer",
    ),
    Pair(
        "the base in another file is a layer",
        {
            FILE: toy(block(base="OtherBase"), model(), imports="from modeling_other import OtherBase\n"),
            "modeling_other.py": _HEAD
            + "from transformers.modeling_layers import GradientCheckpointingLayer\n"
            "class OtherBase(nn.Module):\n    pass\n",
        },
        ("class OtherBase(nn.Module)", "class OtherBase(GradientCheckpointingLayer)"),
        [found(LAYER, "none", "base elsewhere")],
        [silent(LAYER, "layer")],
    ),
    Pair(
        "the block is in another file",
        {
            FILE: toy(model(), imports="from modeling_other import ToyLayer\n"),
            "modeling_other.py": toy(block()),
        },
        ("from modeling_other import ToyLayer", "from modeling_others import ToyLayer"),
        _SAFE,
        [],
    ),
    Pair(
        "the block is in another file that has a mixer",
        {
            FILE: toy(model(), imports="from modeling_other import ToyLayer\n"),
            "modeling_other.py": toy(block()),
        },
        ("import ToyLayer", "import ToyAttention as ToyLayer"),
        _SAFE,
        [],
    ),
    Pair(
        "an heir inherits a call that would have to change",
        _two(
            toy(
                block(),
                model(
                    "for layer in self.layers:\n    hidden_states = layer(hidden_states=hidden_states)",
                    supports="None",
                ),
            ),
            _user(
                "class OtherAttention(nn.Module):\n    pass\n\n"
                "class OtherLayer(nn.Module):\n    def __init__(self):\n"
                "        self.attention = OtherAttention()\n"
                "    def forward(self, hidden_states):\n        return hidden_states\n\n"
                "class OtherModel(ToyModel):\n    supports_gradient_checkpointing = True\n"
                "    def __init__(self, config):\n        self.layers = nn.ModuleList([OtherLayer()])\n",
                "ToyModel",
            ),
        ),
        ("layer(hidden_states=hidden_states)", "layer(hidden_states)"),
        [found(LAYER, "safe"), found(LAYER, "none", "inherited call", of="OtherLayer")],
        [found(LAYER, "safe"), found(LAYER, "safe", of="OtherLayer")],
    ),
    Pair(
        "an heir inherits a call with its cache by position",
        _inheriting("layer(hidden_states, past_key_values)"),
        ("layer(hidden_states, past_key_values)", "layer(hidden_states)"),
        [found(LAYER, "safe"), found(LAYER, "none", "inherited call", of="OtherLayer")],
        [found(LAYER, "safe"), found(LAYER, "safe", of="OtherLayer")],
    ),
    Pair(
        "an heir inherits a call that does not fit its layers",
        _inheriting("layer(hidden_states)"),
        ("layer(hidden_states)", "layer(hidden_states, 1, 2)"),
        [found(LAYER, "safe"), found(LAYER, "safe", of="OtherLayer")],
        [
            found(LAYER, "unsafe", "not matched"),
            found(LAYER, "none", "inherited call", of="OtherLayer"),
        ],
    ),
    Pair(
        "an heir in another file checkpoints something",
        _two(
            toy(),
            _user(
                "from torch.utils.checkpoint import checkpoint\n\n"
                "class OtherModel(ToyModel):\n    def forward(self, x):\n"
                "        return checkpoint(self.run, x)\n",
                "ToyModel",
            ),
        ),
        ("return checkpoint(", "return print("),
        [found(LAYER, "none", "leftover")],
        _SAFE,
    ),
    Pair(
        "an heir in the file puts others into the stack",
        toy(
            block(),
            block(name="ToyOther"),
            model(),
            "class ToyHeir(ToyModel):\n    def __init__(self, config):\n"
            "        self.layers = nn.ModuleList([ToyOther(config)])\n",
        ),
        ("self.layers = nn.ModuleList([ToyOther", "self.heads = nn.ModuleList([ToyOther"),
        [found(LAYER, "safe"), found(LAYER, "safe", of="ToyOther")],
        _SAFE,
    ),
    Pair(
        "an heir of a base with another name names the base class first",
        _two(
            toy(),
            _user(
                "from transformers.modeling_layers import GradientCheckpointingLayer\n"
                "class OtherLayer(GradientCheckpointingLayer, Base):\n    pass\n",
                "ToyLayer as Base",
            ),
        ),
        ("GradientCheckpointingLayer, Base", "GradientCheckpointingLayer, nn.Module"),
        _ORDER,
        _SAFE,
    ),
    Pair(
        "a model takes what runs the layers from the package",
        {
            "toy/modeling_toy.py": toy(block(), model(name="ToyEncoder", base="nn.Module", supports="None")),
            "toy/__init__.py": "from .modeling_toy import ToyEncoder\n",
            "other/modeling_other.py": "from toy import ToyEncoder\n\n"
            + _HEAD
            + model(
                "hidden_states = self.encoder(hidden_states)",
                name="OtherModel",
                init="self.encoder = ToyEncoder(config)",
            ),
        },
        ("checkpointing = True", "checkpointing = False"),
        _SAFE,
        [],
    ),
    Pair(
        "another class is called like the library's",
        {
            FILE: toy().replace("from transformers import Pre", "from modeling_other import Pre"),
            "modeling_other.py": "from torch import nn\nfrom transformers import PreTrainedModel as Base\n\n"
            "class PreTrainedModel(Base):\n    pass\n",
        },
        ("PreTrainedModel(Base)", "PreTrainedModel(nn.Module)"),
        _SAFE,
        [],
    ),
    Pair(
        "an heir of a base in a module names the base class first",
        _two(
            toy(),
            "import modeling_toy\nfrom transformers.modeling_layers import GradientCheckpointingLayer\n\n\n"
            "class OtherLayer(GradientCheckpointingLayer, modeling_toy.ToyLayer):\n    pass\n",
        ),
        ("modeling_toy.ToyLayer", "nn.Module"),
        _ORDER,
        _SAFE,
    ),
    Pair(
        "an heir of an heir names the base class first",
        {
            **_two(toy(), _user("class OtherLayer(ToyLayer):\n    pass\n")),
            "modeling_third.py": "from modeling_other import OtherLayer\n"
            "from transformers.modeling_layers import GradientCheckpointingLayer\n\n\n"
            "class ThirdLayer(GradientCheckpointingLayer, OtherLayer):\n    pass\n",
        },
        ("Layer, OtherLayer)", "Layer)"),
        _ORDER,
        _SAFE,
    ),
    Pair(
        "the base of what has a branch that stays is only called the same",
        _two(
            toy(),
            "from modeling_toy import ToyLayer\n\n\n"
            "class OtherLayer(ToyLayer):\n    pass\n\n"
            + model(
                BRANCH, name="OtherModel", init=f"{STACK.replace('ToyLayer', 'OtherLayer')}\n{FLAG}"
            ).replace(
                "self.gradient_checkpointing and self.training", "self.gradient_checkpointing and mask"
            ),
        ),
        ("from modeling_toy import ToyLayer\n", "class ToyLayer(nn.Module):\n    pass\n"),
        [
            found(LAYER, "none", "heir cannot change"),
            found(LAYER, "none", "another condition", of="OtherLayer"),
        ],
        [found(LAYER, "safe"), found(LAYER, "none", "another condition", of="OtherLayer")],
    ),
    Pair(
        "a model takes what runs the layers under another name",
        {
            "toy/modeling_toy.py": toy(block(), model(name="ToyEncoder", base="nn.Module", supports="None")),
            "other/modeling_other.py": "from toy.modeling_toy import ToyEncoder as Encoder\n\n"
            + _HEAD
            + model(
                "hidden_states = self.encoder(hidden_states)",
                name="OtherModel",
                init="self.encoder = Encoder(config)",
            ),
        },
        ("checkpointing = True", "checkpointing = False"),
        _SAFE,
        [],
    ),
    Pair(
        "another class is called like the library's, in a module with its name",
        {
            FILE: toy().replace("from transformers import Pre", "from my_transformers import Pre"),
            "my_transformers.py": "from torch import nn\nfrom transformers import PreTrainedModel as Base\n\n"
            "class PreTrainedModel(Base):\n    pass\n",
        },
        ("PreTrainedModel(Base)", "PreTrainedModel(nn.Module)"),
        _SAFE,
        [],
    ),
    Pair(
        "a list of another file is filled",
        {
            FILE: toy(block(f"SEEN.append(1)\n{BODY}"), model(), imports="from modeling_other import SEEN\n"),
            "modeling_other.py": "SEEN = []\n",
        },
        ("SEEN.append(1)", "[].append(1)"),
        [found(LAYER, "unsafe", "global")],
        _SAFE,
    ),
    Pair(
        "a model runs what runs the layers of a module",
        _two(
            toy(block(), model(name="ToyEncoder", base="nn.Module", supports="None")),
            "import modeling_toy\n\n"
            + model(
                "hidden_states = self.encoder(hidden_states)",
                name="OtherModel",
                init="self.encoder = modeling_toy.ToyEncoder(config)",
                supports="False",
            ),
        ),
        ("checkpointing = False", "checkpointing = True"),
        [],
        _SAFE,
        wrong="a class that is taken from a module by its full name is not seen to be a part",
    ),
    Pair(
        "a model runs what runs the layers by way of a third file",
        {
            FILE: toy(block(), model(name="ToyEncoder", base="nn.Module", supports="None")),
            "modeling_third.py": "from modeling_toy import ToyEncoder\n\n"
            + _HEAD
            + model(
                "hidden_states = self.encoder(hidden_states)",
                name="ThirdEncoder",
                base="nn.Module",
                init="self.encoder = ToyEncoder(config)",
                supports="None",
            ),
            "modeling_other.py": "from modeling_third import ThirdEncoder\n\n"
            + _HEAD
            + model(
                "hidden_states = self.third(hidden_states)",
                name="OtherModel",
                init="self.third = ThirdEncoder(config)",
            ),
        },
        ("checkpointing = True", "checkpointing = False"),
        _SAFE,
        [],
    ),
    Pair(
        "of two star imports the one that has the name",
        {
            FILE: toy("", model()).replace(
                "import torch\n", "from modeling_one import *\nfrom modeling_two import *\nimport torch\n", 1
            ),
            "modeling_one.py": toy(block()),
            "modeling_two.py": "class Other: ...\n\n\nNAME = 'ToyLayer'\n",
        },
        ("class Other", "class ToyLayer"),
        _SAFE,
        [],
    ),
)


_GENERATED = "#   This file was automatically generated from src/transformers/models/beta/modular_beta.py.\n"
_MODULAR = (
    RELATIVE.replace("from ...modeling_layers import GradientCheckpointingLayer\n", "")
    + """
from ..alpha.modeling_alpha import AlphaLayer, AlphaModel


class BetaLayer(AlphaLayer):
    pass


class BetaModel(AlphaModel):
    pass
"""
)


def _generated(statistics: str = "") -> Files:
    """Write a model, one that is generated from it, and the modular file between them."""
    beta = _named(toy(block(init=statistics), model()), "Beta")
    return {
        **_tree(toy()),
        f"{MODELS}/beta/modeling_beta.py": _GENERATED + beta,
        f"{MODELS}/beta/modular_beta.py": _MODULAR,
    }


def _generated_with(bases: str) -> Files:
    """Write the same where both classes, and the modular file, name a further base."""
    mixin = "class PushMixin:\n    pass\n\n\n"
    files = _generated()
    alpha, beta, modular = (each for each in files if "/alpha/" in each or "/beta/" in each)
    return {
        **files,
        alpha: _named(toy(mixin, block(base="PushMixin, nn.Module"), model()), "Alpha"),
        beta: _GENERATED + _named(toy(mixin, block(base=bases), model()), "Beta"),
        modular: _MODULAR.replace(
            "class BetaLayer(AlphaLayer)", f"{mixin}class BetaLayer(AlphaLayer, PushMixin)"
        ),
    }


_HEADER = "class BetaLayer(AlphaLayer):\n    def forward(self, hidden_states, mask"


def _recursive() -> Files:
    """Write the same where a layer runs others of its class, and the second one's `forward` is its own."""
    init = "self.inner = nn.ModuleList([ToyLayer(config)] if index else [])"
    call = "layer(hidden_states, encoder_hidden_states=mask)"
    loop = f"for layer in self.inner:\n    hidden_states = {call}\n{BODY}"
    takes = "hidden_states, mask=None, encoder_hidden_states=None"
    beta = _named(toy(block(takes=takes, init=init), model()), "Beta")
    files = _tree(toy(), toy(block(loop, takes=takes, init=init), model()))
    own = f"AlphaLayer):\n    def forward(self, {takes}):\n        {BODY}\n"
    return {
        **files,
        f"{MODELS}/beta/modeling_beta.py": _GENERATED + beta,
        f"{MODELS}/beta/modular_beta.py": _MODULAR.replace("AlphaLayer):\n    pass\n", own),
    }


_ALONE = "class AlphaLayer(GradientCheckpointingLayer):"
_IMPORT = "from ..alpha.modeling_alpha import"
_PUSHED = "class AlphaLayer(PushMixin, GradientCheckpointingLayer):"
_BOTH = f"{_ALONE} | class BetaLayer(GradientCheckpointingLayer):"
_BY_ITSELF = "class BetaLayer(GradientCheckpointingLayer): | class BetaLayer(GradientCheckpointingLayer):"


test_generated_files = decided(
    Pair(
        "a class that is generated from another",
        _generated(),
        ("class BetaLayer(AlphaLayer)", "class BetaLayer(nn.Module)"),
        [found(LAYER, "safe", of="AlphaLayer", code=_BOTH)],
        [
            found(LAYER, "safe", of="AlphaLayer", code=_ALONE),
            found(LAYER, "safe", of="BetaLayer", code=_BY_ITSELF),
        ],
    ),
    Pair(
        "a generated class that is unsafe",
        _generated("self.norm = nn.GroupNorm(4, 4)"),
        ("nn.GroupNorm", "nn.BatchNorm1d"),
        [found(LAYER, "safe", of="AlphaLayer")],
        [found(LAYER, "unsafe", "statistics", of="AlphaLayer")],
    ),
    Pair(
        "a generated class that has no fix",
        _generated(),
        (
            "class BetaModel(PreTrainedModel)",
            "GradientCheckpointingLayer = 1\nclass BetaModel(PreTrainedModel)",
        ),
        [found(LAYER, "safe", of="AlphaLayer")],
        [found(LAYER, "none", "name taken", of="AlphaLayer")],
    ),
    Pair(
        "a class whose parent has its other base as well",
        _generated_with("PushMixin"),
        ("class BetaLayer(PushMixin)", "class BetaLayer(PushMixin, nn.Module)"),
        [found(LAYER, "safe", of="AlphaLayer", code=_PUSHED)],
        [found(LAYER, "safe", of="AlphaLayer", code=f"{_PUSHED} | {_PUSHED.replace('Alpha', 'Beta')}")],
    ),
    Pair(
        "a base without effect, and a second parent",
        {
            path: text.replace(
                "class BetaLayer(AlphaLayer)", "class BetaLayer(AlphaLayer, nn.Module)"
            ).replace(_IMPORT, f"from torch import nn\n{_IMPORT}")
            for path, text in _generated().items()
        },
        ("(AlphaLayer, nn.Module)", "(AlphaLayer, AlphaModel)"),
        [found(LAYER, "safe", of="AlphaLayer", code=_BOTH)],
        [
            found(LAYER, "safe", of="AlphaLayer", code=_ALONE),
            found(LAYER, "none", "copy cannot change", of="BetaLayer", code=""),
        ],
    ),
    Pair(
        "a generated class that has only its header from another, of which the fix changes more",
        _recursive(),
        (_HEADER, "class BetaLayer(nn.Module):\n    def forward(self, hidden_states, mask"),
        [found(LAYER, "safe", of="AlphaLayer")],
        [found(LAYER, "safe", of="AlphaLayer"), found(LAYER, "safe", of="BetaLayer")],
    ),
)


_KEYWORD = model("for layer in self.layers:\n    hidden_states = layer(hidden_states=hidden_states)")


def _generated_loop() -> Files:
    """Write a model whose loop is that of another one, but which has layers of its own."""
    supports = "    supports_gradient_checkpointing = {}\n"
    own = toy(block(), _KEYWORD.replace(supports.format(True), supports.format(False)))
    beta = _named(own, "Beta")
    head, _, _ = beta.partition("class BetaModel")
    inheriting = f"class BetaModel(AlphaModel):\n{supports.format(False)}"
    return {
        **_tree(toy(), toy(block(base=PROTECTED), _KEYWORD)),
        f"{MODELS}/beta/modeling_beta.py": _GENERATED + beta,
        f"{MODELS}/beta/modular_beta.py": f"{_IMPORT} AlphaModel\n{head}{inheriting}",
    }


_ALPHA_TAKES = "self.attention = AlphaAttention(config)\n\n\n    def forward(self, hidden_states"
_POSITIONAL = "hidden_states = layer(hidden_states)"


test_generated_calls = decided(
    Pair(
        "a loop that is generated for another layer",
        _generated_loop(),
        (f"{_ALPHA_TAKES}, mask", f"{_ALPHA_TAKES}, task"),
        [found(KEYWORD, "safe", of="AlphaLayer", code=f"{_POSITIONAL} | {_POSITIONAL}")],
        [found(KEYWORD, "none", "copy cannot change", of="AlphaLayer", code="")],
    ),
)


_BY_MIXIN = {
    f"{MODELS}/alpha/mixin_alpha.py": toy(block(name="AlphaMixin", base="object")),
    f"{MODELS}/beta/modular_beta.py": "from ..alpha.mixin_alpha import AlphaMixin\n"
    + toy("class ToyLayer(AlphaMixin, nn.Module):\n    pass\n\n\n", model()),
}


test_modular_files = decided(
    Pair(
        "a modular file whose class comes from a file that is not given",
        _BY_MIXIN,
        ("class AlphaMixin(object)", "class AlphaMixin(nn.Module)"),
        [found(LAYER, "safe")],
        [found(LAYER, "none", "base elsewhere")],
    ),
)


_TWICE = """
for layer in self.layers:
    hidden_states = layer(hidden_states=(hidden_states
    + mask))
    hidden_states = layer(hidden_states=(hidden_states
        + mask))
"""


@pytest.mark.parametrize(
    ("generated", "places"),
    [
        pytest.param("\n            + mask", [(7, 35), (9, 35)], id="just as in the source"),
        # The same code as that of the first stands in the source too, but as that of the second.
        pytest.param("\n                + mask", [(7, 13), (9, 35)], id="broken in another way"),
    ],
)
def test_code_is_found_on_the_line_of_the_source_that_it_is_from(
    generated: str, places: list[tuple[int, int]], outside: Outside
) -> None:
    beta = _named(toy(block(base=PROTECTED), model(_TWICE)), "Beta")
    forward = beta[beta.rindex("    def forward") :]
    alpha = "from ..alpha.modeling_alpha import AlphaModel\n\n\nclass BetaModel(AlphaModel):\n"
    outside.write(
        {
            **LIBRARY,
            f"{MODELS}/beta/modeling_beta.py": _GENERATED + beta.replace("\n            + mask", generated),
            f"{MODELS}/beta/modular_beta.py": alpha + forward,
        }
    )
    said = json.loads(outside.run("check", "--no-cache", "--output-format", "json", "."))
    assert {each["filename"].rpartition("/")[2] for each in said} == {"modular_beta.py"}
    assert [(each["location"]["row"], each["location"]["column"]) for each in said] == places


@pytest.mark.parametrize(("installed", "needed"), [(True, "installed transformers"), (False, "pass it")])
def test_of_files_that_a_fix_needs_an_installed_one_stands_in_its_way(
    tmp_path: Path, installed: bool, needed: str
) -> None:
    given, beside = tmp_path / "modeling_a.py", tmp_path / "modeling_b.py"
    package = tmp_path / "env/lib/python3.11/site-packages/transformers"
    library = package / "modeling_layers.py"
    write(package.parent, installation("5.3.0", package.name))
    for each in (given, beside, library):
        each.write_text("bad\n", encoding="utf-8")

    def repaired(match: re.Match[str], path: Path) -> tuple[Edit, ...]:
        others = (beside, library) if installed else (beside,)
        return tuple(Edit(each, *match.span(), "good") for each in (path, *others))

    project = Project(replace(Settings(), environments=(tmp_path / "env",)), [given])
    # As real rules do, and so find the library.
    project.releases(project.file(project.paths[0]))
    (finding,) = check(project, [WordRule("bad", repaired)]).findings
    assert isinstance(finding.remedy, Refusal)
    assert needed in finding.remedy.reason


@pytest.mark.parametrize("is_inside", [True, False])
def test_a_link_that_leads_out_is_not_repaired(tmp_path: Path, is_inside: bool) -> None:
    folder, outside = tmp_path / "given", tmp_path / "modeling_real.py"
    folder.mkdir()
    link, real = folder / "modeling_a.py", folder / "real.py" if is_inside else outside
    real.write_text("bad\n", encoding="utf-8")
    link.symlink_to(real)
    project = Project(Settings(), [link], within=[folder])
    (finding,) = check(project, [WordRule("bad", replacing("good"))]).findings
    reason = finding.remedy.reason if isinstance(finding.remedy, Refusal) else ""
    assert ("outside the given folders" in (reason or "")) is not is_inside
