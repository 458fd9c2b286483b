"""Models in which a block adds more than its boundary, and what the estimate says of them."""

from __future__ import annotations

import sys
from textwrap import dedent, indent
from types import ModuleType

import pytest

from gclint.verify.worker.estimates import Addition, EstimateRequest, MemoryEstimate

pytestmark = pytest.mark.torch

_MODEL = """
import torch
from torch import nn
from transformers import PretrainedConfig, PreTrainedModel
from transformers.modeling_layers import GradientCheckpointingLayer


class ToyConfig(PretrainedConfig):
    model_type = "toy"

    def __init__(self, hidden_size=32, num_hidden_layers=5, vocab_size=64, **kwargs):
        self.hidden_size = hidden_size
        self.num_hidden_layers = num_hidden_layers
        self.vocab_size = vocab_size
        super().__init__(**kwargs)


class ToyLayer({base}):
    def __init__(self, config):
        super().__init__()
        self.query = nn.Linear(config.hidden_size, config.hidden_size)
        self.value = nn.Linear(config.hidden_size, config.hidden_size)

    def forward(self, hidden_states, cosines=None):
        scores = self.query(hidden_states) @ hidden_states.transpose(1, 2)
        mixed = scores.softmax(-1) @ self.value(hidden_states)
        if cosines is not None:
            mixed = mixed * cosines
        return hidden_states + mixed


class ToyModel(PreTrainedModel):
    config_class = ToyConfig
    supports_gradient_checkpointing = True

    def __init__(self, config):
        super().__init__(config)
        self.embedding = nn.Embedding(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList(ToyLayer(config) for _ in range(config.num_hidden_layers))
        self.gradient_checkpointing = False
        self.post_init()

    def get_input_embeddings(self):
        return self.embedding

    def forward(self, input_ids):
        hidden_states = self.embedding(input_ids)
        places = torch.arange(input_ids.shape[1], device=input_ids.device)
        shared = hidden_states.new_ones(input_ids.shape[1], 1).cos()
        for layer in self.layers:
{run}
        return hidden_states
"""
_BOUNDARY = 2 * 12 * 32 * 4


def _estimate(run: str, base: str = "GradientCheckpointingLayer") -> MemoryEstimate:
    from gclint.verify.worker.footprint.estimate import estimates

    module = ModuleType("modeling_toy")
    sys.modules[module.__name__] = module
    text = _MODEL.format(base=base, run=indent(dedent(run).strip(), " " * 12))
    exec(compile(text, "modeling_toy.py", "exec"), vars(module))
    question = EstimateRequest(batch=2, sequence=12, dtype="float32")
    *_, found = estimates("modeling_toy.py", [vars(module)["ToyModel"]], question, "cpu")
    return found


def _addition(found: MemoryEstimate) -> Addition:
    assert [each.error for each in found.modes] == ["", "", ""]
    (one, other) = found.additions
    assert (one.mode, other.mode) == ("non-reentrant", "reentrant")
    assert (one.added_bytes, one.extras) == (other.added_bytes, other.extras)
    return one


@pytest.mark.parametrize(
    "run", ["hidden_states = layer(hidden_states)", "hidden_states = layer(hidden_states, cosines=shared)"]
)
def test_a_block_adds_its_boundary_and_nothing_else(run: str) -> None:
    found = _addition(_estimate(run))
    assert found.is_exact
    assert (found.stack, found.kind, found.blocks) == ("layers", "ToyLayer", 5)
    assert (found.boundary_bytes, found.boundary_shape) == (_BOUNDARY, (2, 12, 32))


def test_cosines_that_each_block_is_given_anew_are_named() -> None:
    found = _addition(_estimate("hidden_states = layer(hidden_states, cosines=shared.cos())"))
    assert not found.is_exact
    assert found.added_bytes == _BOUNDARY + 12 * 4
    (extra,) = found.extras
    assert (extra.operation, extra.shape, extra.size, extra.module) == (
        "checkpoint",
        (12, 1),
        12 * 4,
        "layers.*",
    )


def test_what_is_computed_beside_the_block_is_named_with_its_line() -> None:
    found = _addition(_estimate("hidden_states = layer(hidden_states).square()"))
    assert found.added_bytes == 2 * _BOUNDARY
    (extra,) = found.extras
    assert (extra.operation, extra.size) == ("autograd", _BOUNDARY)
    assert extra.place is not None
    line = 1 + _MODEL[: _MODEL.index("{run}")].count("\n")
    assert (extra.place.path, extra.place.line) == ("modeling_toy.py", line)


def test_what_blocks_share_from_some_block_on_is_no_addition() -> None:
    found = _addition(
        _estimate(
            """
            shared = shared.cos() if layer is self.layers[2] else shared
            hidden_states = layer(hidden_states, cosines=shared)
            """
        )
    )
    assert found.is_exact


def test_a_cache_of_the_models_own_is_named() -> None:
    found = _addition(
        _estimate(
            """
            hidden_states = layer(hidden_states)
            self.cache = [*getattr(self, "cache", []), hidden_states.detach() * 2]
            """
        )
    )
    assert found.added_bytes == 2 * _BOUNDARY
    (extra,) = found.extras
    assert (extra.operation, extra.size, extra.shape) == ("something else", _BOUNDARY, (2, 12, 32))


def test_a_stack_that_escapes_is_named() -> None:
    found = _addition(_estimate("hidden_states = layer(hidden_states)", base="nn.Module"))
    assert not found.recomputed
    assert not found.is_exact
    assert found.added_bytes > _BOUNDARY
