"""What readers of other people's code have found: states, settings and modes that a repair must not lose."""

from __future__ import annotations

from pathlib import Path

import pytest

from gclint.code.project import Project
from gclint.finding import Applicability, Finding
from gclint.releases import releases
from gclint.rule import all_rules
from gclint.run.check import check
from gclint.settings import Settings
from tests.decisions.toy import ATTENTION, LOOP, STACK, block, model, toy
from tests.toy_models import applicability, reported

_SAFE, _UNSAFE = Applicability.SAFE, Applicability.UNSAFE
_ATTENDED = "return hidden_states + self.attention(hidden_states)"
_IN_BLOCKS = {
    "items by a special method": (
        ("self.numbers = iter(range(99))", "hidden_states = hidden_states * self.numbers.__next__()"),
        ("self.numbers = [1, 2]", "hidden_states = hidden_states * self.numbers.__getitem__(0)"),
    ),
    "a special method that is held": (
        ("self.take = iter(range(99)).__next__", "hidden_states = hidden_states * self.take()"),
        ("self.take = (1, 2).__getitem__", "hidden_states = hidden_states * self.take(0)"),
    ),
    "an error that `finally` drops": (
        ("", "try:\n    mask = hidden_states + 1\nfinally:\n    return hidden_states"),
        ("", "try:\n    mask = hidden_states + 1\nfinally:\n    hidden_states = hidden_states * 2"),
    ),
    "an error that a loop drops": (
        (
            "",
            "for _ in [1]:\n    try:\n        mask = hidden_states + 1\n    finally:\n        break",
        ),
        ("", "for _ in [1]:\n    try:\n        mask = hidden_states + 1\n    finally:\n        pass"),
    ),
    "an error of torch": (
        (
            "",
            "from torch.utils.checkpoint import _StopRecomputationError as Stop\n"
            "try:\n    mask = hidden_states + 1\nexcept Stop:\n    mask = None",
        ),
        ("", "try:\n    mask = hidden_states + 1\nexcept ValueError:\n    mask = None"),
    ),
    "what is logged": (
        ("", "hidden_states = hidden_states * float(LOGGER.isEnabledFor(10))"),
        ("", "LOGGER.debug('shape %s', hidden_states.shape)"),
    ),
}
_AROUND = {
    "warnings": ("warnings.simplefilter('error')", "warnings.warn('slow')"),
    "errors of numpy": ("numpy.seterr(all='raise')", "numpy.sqrt(2.0)"),
    "how much the library says": ("transformers.utils.logging.set_verbosity_error()", "LOGGER.info('run')"),
}
_WITHIN = {"a device": ("torch.device('meta')", "torch.autocast('cpu')")}
_BEFORE = (
    "import logging\nimport warnings\n\nimport numpy\nimport transformers.utils.logging\n\n"
    "LOGGER = logging.getLogger('toy')\n\n\n"
)


@pytest.mark.parametrize("name", _IN_BLOCKS)
def test_what_a_block_does(name: str, tmp_path: Path) -> None:
    found = [
        applicability(
            tmp_path, toy(_BEFORE, block(f"{body}\n{_ATTENDED}", init=init), model(LOOP, init=STACK))
        )
        for init, body in _IN_BLOCKS[name]
    ]
    assert found == [_UNSAFE, _SAFE]


@pytest.mark.parametrize("name", _AROUND)
def test_settings_that_are_made_after_the_blocks_have_run(name: str, tmp_path: Path) -> None:
    found = [
        applicability(tmp_path, toy(_BEFORE, block(_ATTENDED), model(f"{LOOP}{done}\n", init=STACK)))
        for done in _AROUND[name]
    ]
    assert found == [_UNSAFE, _SAFE]


@pytest.mark.parametrize("name", _WITHIN)
def test_contexts_that_reentrant_recomputation_is_not_in(name: str, tmp_path: Path) -> None:
    loop = "\nwith {}:\n    for layer in self.layers:\n        hidden_states = layer(hidden_states)\n"
    found = [
        applicability(tmp_path, toy(block(_ATTENDED), model(loop.format(context), init=STACK)))
        for context in _WITHIN[name]
    ]
    assert found == [_UNSAFE, _SAFE]


@pytest.mark.parametrize(
    ("given", "expected"), [("inputs=WEIGHTS", _UNSAFE), ("retain_graph=True", _SAFE), ("", _SAFE)]
)
def test_a_backward_pass_for_some_tensors_is_no_reentrant_one(
    given: str, expected: Applicability, tmp_path: Path
) -> None:
    function = f"\n\nWEIGHTS = []\n\n\ndef backward(loss):\n    loss.backward({given})\n"
    text = toy(block(_ATTENDED), model(LOOP, init=STACK)) + function
    assert applicability(tmp_path, text) is expected


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("self.block(hidden_states=self.project(x))", _UNSAFE),
        ("self.block.forward(hidden_states=self.project(x))", _UNSAFE),
        ("self.block(self.project(x))", _SAFE),
    ],
)
def test_what_a_file_that_is_not_given_passes_by_keyword(
    call: str, expected: Applicability, tmp_path: Path
) -> None:
    other = (
        "from torch import nn\nfrom .modeling_toy import ToyLayer\n\n\nclass Two(nn.Module):\n"
        "    def __init__(self, config):\n        super().__init__()\n        self.block = ToyLayer(config)\n"
        f"        self.project = nn.Linear(8, 8)\n\n    def forward(self, x):\n        return {call}\n"
    )
    text = toy(block(_ATTENDED), model(LOOP, init=STACK))
    assert applicability(tmp_path, text, {"two.py": other, "__init__.py": ""}) is expected


_CHOOSING = """
for layer in self.layers:
    if self.gradient_checkpointing and self.training:
        hidden_states = {}
    else:
        hidden_states = layer(hidden_states)
"""


@pytest.mark.parametrize(
    ("call", "is_chosen"),
    [
        ("checkpoint(layer, hidden_states, use_reentrant=False)", True),
        ("checkpoint(layer, hidden_states, use_reentrant=self.config.reentrant)", True),
        ("own_checkpoint(layer, hidden_states)", True),
        ("self._gradient_checkpointing_func(layer.__call__, hidden_states, use_reentrant=False)", True),
        ("checkpoint(layer, hidden_states, use_reentrant=True)", False),
        ("checkpoint(layer, hidden_states)", False),
        ("self._gradient_checkpointing_func(layer.__call__, hidden_states)", False),
    ],
)
def test_a_branch_that_chooses_not_to_be_reentrant(call: str, is_chosen: bool, tmp_path: Path) -> None:
    before = (
        "from functools import partial\nfrom torch.utils.checkpoint import checkpoint\n\n"
        "own_checkpoint = partial(checkpoint, use_reentrant=False)\n\n\n"
    )
    text = toy(before, block(_ATTENDED), model(_CHOOSING.format(call), init=STACK))
    old, new = (applicability(tmp_path, text, code="GC302", target=target) for target in (">=4.53,<5", ">=5"))
    assert (old, new) == (_UNSAFE if is_chosen else _SAFE, _SAFE)


# -- what is reported


_TOWER = toy(
    ATTENTION,
    block(_ATTENDED),
    "class Tower(nn.Module):\n    def __init__(self, config):\n        super().__init__()\n"
    f"        {STACK}\n\n    def forward(self, hidden_states):\n"
    "        for layer in self.layers:\n            hidden_states = layer(hidden_states)\n"
    "        return hidden_states\n",
)
_OTHER = """
import torch
from transformers import PreTrainedModel

from .modeling_tower import Tower


class ToyModel(PreTrainedModel):
    supports_gradient_checkpointing = True

    def __init__(self, config):
        super().__init__(config)
        self.tower = Tower(config)

    def forward(self, states):
        with {}:
            return self.tower(states)
"""


@pytest.mark.parametrize(
    ("context", "found"), [("torch.no_grad()", []), ("torch.autocast('cpu')", ["ToyLayer"])]
)
def test_what_another_file_runs_without_gradients(context: str, found: list[str], tmp_path: Path) -> None:
    files = {"__init__.py": "", "modeling_tower.py": _TOWER, "modeling_toy.py": _OTHER.format(context)}
    assert reported(tmp_path, files) == found


@pytest.mark.parametrize(
    ("module", "name", "found"),
    [
        ("timm.layers", "Attention", ["ToyLayer"]),
        ("mamba_ssm", "Mamba2", ["ToyLayer"]),
        ("timm.layers", "AttentionConfig", []),
        ("timm.layers", "Mlp", []),
    ],
)
def test_mixers_of_other_packages(module: str, name: str, found: list[str], tmp_path: Path) -> None:
    layer = (
        f"class ToyLayer(nn.Module):\n    def __init__(self, config):\n        super().__init__()\n"
        f"        self.mixer = {name}(config.size)\n        self.project = nn.Linear(8, 8)\n\n"
        "    def forward(self, hidden_states):\n"
        "        return self.project(hidden_states + self.mixer(hidden_states))\n\n\n"
    )
    text = f"from {module} import {name}\n" + toy(layer, model(LOOP, init=STACK))
    assert reported(tmp_path, {"modeling_toy.py": text}) == found


def _found(folder: Path, code: str, text: str, settings: Settings) -> list[Finding]:
    path = folder / "modeling_toy.py"
    path.write_text(text, encoding="utf-8")
    rules = [rule for rule in all_rules() if code in rule.codes]
    return list(check(Project(settings, [path]), rules).findings)


_TIED = """
from torch import nn
from transformers import PreTrainedModel


class Shared(nn.Embedding):
    def forward(self, tokens, back=False):
        return nn.functional.linear(tokens, self.weight) if back else super().forward(tokens)


class ToyModel(PreTrainedModel):
    supports_gradient_checkpointing = True

    def __init__(self, config):
        super().__init__(config)
        self.embed_tokens = Shared(8, 4)
        self.project = nn.Linear(4, 4)

    def get_input_embeddings(self):
        return self.embed_tokens

    def forward(self, tokens):
        logits = self.embed_tokens({})
        logits *= 2
        return logits
"""


@pytest.mark.parametrize(("given", "count"), [("tokens", 1), ("self.project(tokens), True", 0)])
def test_logits_of_tied_embeddings_are_no_leaves(given: str, count: int, tmp_path: Path) -> None:
    assert len(_found(tmp_path, "GC108", _TIED.format(given), Settings())) == count


_LIBRARY = {
    "__init__.py": "__version__ = '5.23.0'\n",
    "modeling_utils.py": "class PreTrainedModel: ...\n",
    "modeling_layers.py": "class GradientCheckpointingLayer: ...\n",
    "models/__init__.py": "",
    "models/seal/__init__.py": "",
    "models/seal/modeling_seal.py": (
        "from torch import nn\nfrom ...modeling_layers import GradientCheckpointingLayer\n\n\n"
        "class SealLayer(GradientCheckpointingLayer):\n"
        "    def __init__(self, config):\n        super().__init__()\n"
        "        self.attention = nn.MultiheadAttention(8, 2)\n\n"
        "    def forward(self, hidden_states, mask=None, positions=None):\n        return hidden_states\n"
    ),
}
_DERIVED = """
from torch import nn
from transformers import PreTrainedModel
from transformers.models.seal.modeling_seal import SealLayer


class ToyLayer(SealLayer):
    pass


class ToyModel(PreTrainedModel):
    supports_gradient_checkpointing = True

    def __init__(self, config):
        super().__init__(config)
        self.layers = nn.ModuleList([ToyLayer(config) for _ in range(config.depth)])
        self.gradient_checkpointing = False

    def _set_gradient_checkpointing(self, module, value=False):
        if isinstance(module, ToyModel):
            module.gradient_checkpointing = value

    def forward(self, hidden_states, mask, positions):
        for layer in self.layers:
            if self.gradient_checkpointing and self.training:
                hidden_states = self._gradient_checkpointing_func(
                    layer.__call__, hidden_states, positions, mask
                )
            else:
                hidden_states = layer(hidden_states, mask=mask, positions=positions)
        return hidden_states
"""


@pytest.mark.parametrize(
    ("target", "more", "differ", "left"),
    [
        ("5.23", "", 1, "warning"),
        ("4.40", "", 0, "note"),
        ("5.23", "from transformers.models.seal.modeling_seal import SealAttention", 0, "note"),
        ("5.23", "from transformers.models.seal.modeling_seal import nn as torch_nn", 1, "warning"),
        ("5.23", "from transformers.models.seal import SealAttention", 1, "warning"),
        ("5.23", "from transformers.models.otter.modeling_otter import OtterAttention", 1, "warning"),
    ],
)
def test_classes_of_a_release_that_is_not_used_are_not_known(
    target: str, more: str, differ: int, left: str, tmp_path: Path
) -> None:
    derived = more + _DERIVED
    for name, text in _LIBRARY.items():
        path = tmp_path / "site/transformers" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    settings = Settings(library=tmp_path / "site/transformers", target_version=releases(target))
    assert len(_found(tmp_path, "GC101", derived, settings)) == differ
    (finding,) = _found(tmp_path, "GC301", derived, settings)
    assert finding.level is not None
    assert finding.level.value == left
