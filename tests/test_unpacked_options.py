"""Fixes of legacy branches whose checkpointed call unpacks a mapping."""

from __future__ import annotations

from pathlib import Path

import pytest

from gclint.code.project import Project
from gclint.finding import Applicability
from gclint.rule import all_rules
from gclint.run.check import check
from gclint.settings import Settings

_MODEL = """\
from torch import nn
from torch.utils.checkpoint import checkpoint
from transformers import PreTrainedModel


class XLayer(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.attention = nn.MultiheadAttention(4, 4)

    def forward(self, x, mask=None):
        return self.attention(x, x, x, attn_mask=mask)[0]


class XModel(PreTrainedModel):
    supports_gradient_checkpointing = True

    def __init__(self, config):
        super().__init__(config)
        self.layers = nn.ModuleList([XLayer(config) for _ in range(4)])
        self.gradient_checkpointing = False

    def forward(self, x, contexts=None):
        options = {options}
        for layer in self.layers:
            if self.gradient_checkpointing and self.training:
                x = self._gradient_checkpointing_func(layer.__call__, x, **options)
            else:
                x = layer({plain})
        return x
"""


@pytest.mark.parametrize(
    ("options", "plain", "is_safe"),
    [
        ('{"use_reentrant": False}', "x", True),
        ("dict(use_reentrant=False, early_stop=True)", "x", True),
        ('{"use_reentrant": False, "context_fn": contexts}', "x", False),
        # In the loop, `x.mask` is not what it was before it.
        ('{"use_reentrant": False, "mask": x.mask}', "x, x.mask", False),
        ('{"mask": x.mask}', "x, x.mask", False),
        ("contexts", "x", False),
    ],
)
def test_a_branch_is_safe_to_remove_only_if_all_of_the_mapping_is_known(
    tmp_path: Path, options: str, plain: str, is_safe: bool
) -> None:
    path = tmp_path / "modeling_x.py"
    path.write_text(_MODEL.replace("{options}", options).replace("{plain}", plain), encoding="utf-8")
    (finding,) = check(Project(Settings(), [path]), all_rules()).findings
    assert finding.code == "GC302"
    assert (finding.fix is not None and finding.fix.applicability is Applicability.SAFE) is is_safe
