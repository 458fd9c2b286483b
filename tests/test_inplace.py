"""GC108 reports the changes in place that really raise with frozen embeddings, and no others."""

from __future__ import annotations

from pathlib import Path
from textwrap import indent
from typing import Any

import pytest

from gclint.code.project import Project
from gclint.finding import Finding
from gclint.model import tensors
from gclint.model.leaves import SAME
from gclint.network import inplace
from gclint.rule import all_rules
from gclint.run.check import check
from gclint.settings import Settings

_MODEL = """\
import torch
from torch import nn
from torch.nn import functional as F
from transformers import PreTrainedModel


class XModel(PreTrainedModel):
    supports_gradient_checkpointing = True

    def __init__(self, config):
        super().__init__(config)
        self.embed_tokens = nn.Embedding(8, 4)
        self.others = nn.Embedding(8, 4)
        self.norm = nn.LayerNorm(4)
        self.dropout = nn.Dropout(0.5)
        self.scale = 2.0

    def get_input_embeddings(self):
        return self.embed_tokens

    def forward(self, ids, mask, more=None, embeds=None):
        x = self.embed_tokens(ids)
"""
# `ids` is (2, 3), `mask` too, `more` is (2, 3, 4); `embeds` is None.
_RAISE = [
    "x += more",
    "x[mask] = 0",
    "x[:, 0] = 0",
    "x[0].add_(1)",
    "x[-1, None].add_(1)",
    "x.masked_fill_(mask[..., None], 0)",
    "x = x.mul_(2)",
    "return x.mul_(2)",
    "y = x\ny *= 2",
    "y = x.view(-1, 4)\ny[0] = 1",
    "x.view(-1, 4)[mask.view(-1)] = 1",
    "y = x[..., 1:]\ny += 1",
    "x.mT[0] = 1",
    "x = x.unsqueeze(0).transpose(1, 2)\nx -= 1",
    "x = x if more is None else x\nx += 1",
    "x = embeds if embeds is not None else self.embed_tokens(ids)\nx += 1",
    "if embeds is None:\n    embeds = self.embed_tokens(ids)\nembeds += 1",
    "x = self.embed_tokens(ids)\nif embeds is not None:\n    x = x.clone()\nx += 1",
    "if more is None:\n    x = x.clone()\nif more is not None:\n    x += more",
    "if more is not None:\n    x = x.clone()\n    more = None\nx = self.embed_tokens(ids)\n"
    "if more is None:\n    x += 1",
    "for _ in range(2):\n    y = x\n    y += 1",
    "for _ in range(2):\n    y = more\n    if mask is None:\n        break\nx += 1",
    "try:\n    y = x\nfinally:\n    pass\ny += 1",
    "with torch.no_grad():\n    y = self.embed_tokens(ids)\ny += 1",
    "if more is not None: x += more",
    "y = 1; x += y",
    "x = self.get_input_embeddings()(ids)\nx += 1",
    "y = x.clone()\nx += 1",
    "y = x.clone()\ny = x\ny += 1",
    "del more\nx += 1",
    "if embeds is not None:\n    if more is not None:\n        x = x.clone()\nelse:\n    x = x.mT.mT\n"
    "if more is not None:\n    x += 1",
    "F.relu_(x)",
    "nn.ReLU(inplace=True)(x)",
    "x = F.relu(x, inplace=True)",
    "x = F.relu(x, True)",
    "embed = self.embed_tokens\ny = embed(ids)\ny += 1",
]
_HARMLESS = [
    "x = x.clone()\nx += more",
    "x = x + more\nx += 1",
    "x = x * self.scale\nx += 1",
    "x = self.norm(x)\nx += 1",
    "x = self.dropout(x)\nx += 1",
    "x = F.layer_norm(x, (4,))\nx += 1",
    "x = self.embed_tokens(ids).clone()\nx += 1",
    "x = self.embed_tokens(ids) * self.scale\nx += 1",
    "x = torch.cat([x, more], 1)\nx += 1",
    "x = torch.where(mask[..., None], x, more)\nx += 1",
    "x = x.masked_fill(mask[..., None], 0)\nx += 1",
    "x = x.detach()\nx += 1",
    "x.data[mask] = 0",
    "x.data += 1",
    "y = x[mask]\ny += 1",
    "y = x[[0]]\ny += 1",
    "y = x.clone().view(-1, 4)\ny[0] = 1",
    "y = x.clone()[:, 0]\ny += 1",
    "y = more\ny += x",
    "y = torch.zeros_like(x)\ny += x",
    "y = self.others(ids)\ny += x",
    "with torch.no_grad():\n    x += 1",
    "with torch.set_grad_enabled(False):\n    x[mask] = 0",
    "if more is not None:\n    x = x.clone()\nif more is not None:\n    x += more",
    "if more is not None:\n    x = x.clone()\nif self.scale and more is not None:\n    x += more",
    "if not (more is None):\n    x = x.clone()\nif more is None:\n    pass\nelse:\n    x[mask] = 0",
    "if more is None:\n    return x\nx = x.clone()\nx += 1",
    "if more is not None:\n    x = x.clone()\n    x += 1\n    return x\nx = x * 2\nx += 1",
    "if more is None:\n    y = x\n    raise ValueError\nelse:\n    y = more\ny += 1",
    "if x.is_leaf:\n    x = x.clone()\nx += 1",
    "if x.requires_grad and x.is_leaf:\n    x = x.clone()\nx += 1",
    "if torch.is_grad_enabled():\n    x = x.clone()\nx += 1",
    "if more is not None: x = x.clone()\nif more is not None: x += more",
    "x = x.clone() if x.requires_grad else x\nx += 1",
    "x, y = x.clone(), x\nx += 1",
    "for _ in range(1):\n    x = x.clone()\n    x += 1",
    "for x in (more, more):\n    x += 1",
    "y = [x]\ny += [1]",
    "x.requires_grad_(True)",
    "x.retain_grad()",
    "x.data = more",
    "x.detach_()",
    "x = F.relu(x)\nx.add_(1)",
    "x = x.sum(-1)\nx += 1",
    "if more is None:\n    x = x.clone()\nif more is None:\n    x += 1\nif more is not None:\n"
    "    x = x * 2\nx -= 1",
    "x = x.repeat(1, 2, 1)\nx += 1",
]
_SILENT = [
    "x = x.to(torch.float32)\nx += 1",
    "x = x.float()\nx += 1",
    "x = nn.Dropout(0.0)(x)\nx += 1",
]
"""What raises as well, but not for all types, devices or rates, or is not followed."""


def _text(body: str) -> str:
    return f"{_MODEL}{indent(body, ' ' * 8)}\n        return x\n"


def _reported(folder: Path, text: str) -> list[Finding]:
    path = folder / "modeling_x.py"
    path.write_text(text, encoding="utf-8")
    return [each for each in check(Project(Settings(), [path]), all_rules()).findings if each.code == "GC108"]


@pytest.mark.parametrize("body", _RAISE)
def test_a_change_of_a_leaf_is_reported(tmp_path: Path, body: str) -> None:
    found = _reported(tmp_path, _text(body))
    assert len(found) == 1
    assert "with frozen embedding weights" in found[0].message


@pytest.mark.parametrize("body", _HARMLESS + _SILENT)
def test_a_change_of_anything_else_is_not(tmp_path: Path, body: str) -> None:
    assert _reported(tmp_path, _text(body)) == []


def test_what_shares_memory_is_known_to_do_so() -> None:
    assert SAME <= tensors.VIEWS


_ASKED = [
    "x['a'] = 1",
    "F.relu(x, 1)",
    "F.relu(x, self.flag)",
    "F.relu(x, *[True])",
    "F.relu(x, **{'inpl' 'ace': True})",
    "F.dropout(x, 0.5, self.training, not False)",
    "getattr(x, 'add_')(1)",
    "x @= x",
    "for x[0] in [1]:\n    pass",
]


@pytest.mark.parametrize("body", _RAISE + _HARMLESS + _SILENT + _ASKED)
def test_the_filter_changes_nothing(body: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = _reported(tmp_path, _text(body))
    monkeypatch.setattr(inplace, "may_change", lambda _text, _function: True)
    assert _reported(tmp_path, _text(body)) == found


def test_what_fails_in_another_way_is_not(tmp_path: Path) -> None:
    assert _reported(tmp_path, _text("torch.add(more, 1, out=x)")) == []


@pytest.mark.torch
@pytest.mark.parametrize("trained", [False, True])
def test_torch_agrees(trained: bool) -> None:
    raising = [each for each in _RAISE + _HARMLESS + _SILENT if _raises(each, trained=trained)]
    # What is computed without gradients is a leaf even if the embeddings are trained.
    unrecorded = [each for each in _RAISE if "no_grad" in each]
    assert raising == (unrecorded if trained else _RAISE + _SILENT)


def _raises(body: str, *, trained: bool) -> bool:
    """Return whether a model raises that enables what `enable_input_require_grads` does."""
    import torch

    text = _text(body).replace("from transformers import PreTrainedModel", "PreTrainedModel = nn.Module")
    space: dict[str, Any] = {}
    exec(text.replace("super().__init__(config)", "super().__init__()"), space)
    model = space["XModel"](None)
    model.embed_tokens.requires_grad_(trained)
    model.embed_tokens.register_forward_hook(lambda module, args, output: output.requires_grad_(True))
    ids = torch.arange(6).view(2, 3)
    try:
        model(ids, ids > 2, more=torch.ones(2, 3, 4))
    except RuntimeError as error:
        assert "in-place" in str(error) or "inplace" in str(error)
        return True
    return False


_MODELS = """\
from torch import nn
from transformers import PreTrainedModel


class Embeddings(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.words = nn.Embedding(8, 4)

    def forward(self, ids):
        x = self.words(ids)
        x += 1
        return x


class Decoder(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.{decoder} = nn.Embedding(8, 4)

    def forward(self, ids):
        x = self.{decoder}(ids)
        x += 1
        return x


class XPreTrainedModel(PreTrainedModel):
    supports_gradient_checkpointing = True


class XText(XPreTrainedModel):
    def __init__(self, config):
        super().__init__(config)
        self.embeddings = Embeddings(config)
        self.decoder = Decoder(config)
{getter}

class XModel(XPreTrainedModel):
    def __init__(self, config):
        super().__init__(config)
        self.text = XText(config)

    def get_input_embeddings(self):
        return self.text.get_input_embeddings()
"""
_GETTER = """
    def get_input_embeddings(self):
        return self.{}
"""


@pytest.mark.parametrize(
    ("decoder", "getter", "releases", "classes"),
    [
        ("words", _GETTER.format("embeddings.words"), "5.0", ["Embeddings"]),
        ("words", _GETTER.format("decoder.words"), "5.0", ["Decoder"]),
        ("embed_tokens", _GETTER.format("embeddings.words"), "5.0", ["Embeddings"]),
        # Without a method the library looks in the model itself, its `embeddings` and its `model`.
        ("embed_tokens", "", "5.0", []),
        ("words", "    _input_embed_layer = 'words'\n", "5.0", ["Embeddings"]),
        ("words", "    _input_embed_layer = 'words'\n", "4.53", []),
    ],
)
def test_only_the_table_with_the_hook_counts(
    tmp_path: Path, decoder: str, getter: str, releases: str, classes: list[str]
) -> None:
    (tmp_path / "pyproject.toml").write_text(
        f'[project]\nname = "x"\nversion = "1"\ndependencies = ["transformers=={releases}.*"]\n'
    )
    found = _reported(tmp_path, _MODELS.format(decoder=decoder, getter=getter))
    assert [each.symbol for each in found] == classes


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("if more is not None: x += more", "line of its own"),
        ("y = 1; x += y", "line of its own"),
    ],
)
def test_a_clone_that_would_lose_the_change_is_no_fix(tmp_path: Path, body: str, reason: str) -> None:
    (finding,) = _reported(tmp_path, _text(body))
    assert finding.fix is None
    assert reason in str(finding.remedy)
