"""Options that send a model another way are found in its text, and chosen together."""

from __future__ import annotations

from typing import Any

import pytest

from gclint.verify.worker.scenarios import OPTION, scenario_named, scenarios_of

torch = pytest.mark.torch


def _options(model_class: Any) -> str:
    from gclint.verify.worker.synthesis.attempts.search import specimens

    found = [each.scenario for each in specimens(model_class)]
    return next((each for each in found if each.startswith(f"{OPTION} ")), "")


@torch
def test_what_published_checkpoints_switch_on_is_found() -> None:
    from transformers import (
        DebertaV2Model,
        LlamaModel,
        MixtralModel,
        RoFormerForCausalLM,
        RoFormerModel,
        Wav2Vec2Model,
    )

    relative = _options(DebertaV2Model)
    for option in ("relative_attention=True", "norm_rel_ebd='layer_norm'", "conv_kernel_size=3"):
        assert option in relative
    assert "do_stable_layer_norm=True, add_adapter=True" in _options(Wav2Vec2Model)
    # What the inner model reads is its own affair.
    assert "rotary_value=True" in _options(RoFormerModel)
    assert _options(RoFormerForCausalLM) == "option is_decoder=True"
    assert _options(LlamaModel) == ""
    assert "router_jitter_noise=0.5" in _options(MixtralModel)


@torch
def test_options_that_do_not_go_together_are_left_out() -> None:
    from transformers import LlamaConfig, LlamaModel

    from gclint.verify.worker.synthesis.attempts.options import Option, largest
    from gclint.verify.worker.synthesis.inputs.plan import Plan
    from gclint.verify.worker.synthesis.inputs.situation import Situation

    situation = Situation(LlamaModel, LlamaConfig(), Plan(), LlamaConfig())
    options = [Option(("LlamaConfig",), name, True) for name in "abcd"]

    def run(tried: Situation) -> bool:
        names = {name for _, name in tried.plan.values}
        return "c" not in names and not {"a", "d"} <= names

    assert [each.field for each in largest(situation, options, run)] == ["a", "b"]


_READING = """
class ReadingModel:
    def forward(self, states):
        if self.config.{field}:
            states = states + states
        return states
"""


@torch
@pytest.mark.parametrize(
    ("field", "is_tried"),
    [("is_hydrogenated", True), ("use_bias", True), ("drop_path", False), ("use_cache", False)],
)
def test_fields_that_have_a_feature_of_their_own_are_no_options(
    monkeypatch: pytest.MonkeyPatch, field: str, is_tried: bool
) -> None:
    import ast

    from torch import nn
    from transformers import PretrainedConfig

    from gclint.verify.worker.synthesis.attempts import options
    from gclint.verify.worker.synthesis.inputs.plan import Plan
    from gclint.verify.worker.synthesis.inputs.situation import Situation

    (read,) = ast.parse(_READING.format(field=field)).body
    monkeypatch.setattr(options, "_classes", lambda _module: {"ReadingModel": read})
    config = PretrainedConfig(**{field: False})
    kind = type("ReadingModel", (nn.Module,), {})
    found = options.find_options(Situation(kind, config, Plan(), config), kind())
    assert [str(each) for each in found] == [f"{field}=True"] * is_tried


def test_each_option_has_scenarios_of_its_own() -> None:
    plain, cached = scenarios_of("option is_decoder=True")
    assert (plain.name, cached.name) == ("option is_decoder=True", "option is_decoder=True, cache object")
    assert cached.reference == plain.name
    assert scenario_named(plain.name) == plain
    assert scenario_named(cached.name) == cached
