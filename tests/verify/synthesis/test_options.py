"""Options that send a model another way are found in its text, and chosen together."""

from __future__ import annotations

from typing import Any

import pytest

from gclint.verify.worker.scenarios import OPTION, scenario_named, scenarios_of

torch = pytest.mark.torch


def _options(model_class: Any) -> str:
    from gclint.verify.worker.synthesis.attempts.search import tiny_models

    found = [each.scenario for each in tiny_models(model_class)]
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

    from gclint.verify.worker.synthesis.attempts.options import ConfigurationOption, largest
    from gclint.verify.worker.synthesis.inputs.situation import Plan, Situation

    situation = Situation(LlamaModel, LlamaConfig(), Plan(), LlamaConfig())
    options = [ConfigurationOption(("LlamaConfig",), name, True) for name in "abcd"]

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
    from gclint.verify.worker.synthesis.inputs.situation import Plan, Situation

    (read,) = ast.parse(_READING.format(field=field)).body
    monkeypatch.setattr(options, "_classes", lambda _module: {"ReadingModel": read})
    config = PretrainedConfig(**{field: False})
    kind = type("ReadingModel", (nn.Module,), {})
    found = options.find_options(Situation(kind, config, Plan(), config), kind())
    assert [str(each) for each in found] == [f"{field}=True"] * is_tried


@torch
@pytest.mark.parametrize(
    ("apart", "kept", "most"),
    [
        # Each of the letters of a word excludes the others of it.
        ([], "abcd", 1),
        (["ab"], "acd", 6),
        (["ab", "cd"], "ac", 7),
        (["ad"], "abc", 6),
        (["a"], "bcd", 5),
        (["a", "b"], "cd", 5),
        (["d"], "abc", 5),
        (["a", "b", "c", "d"], "", 7),
    ],
)
def test_options_of_both_halves_are_kept(apart: list[str], kept: str, most: int) -> None:
    from transformers import LlamaConfig, LlamaModel

    from gclint.verify.worker.synthesis.attempts.options import ConfigurationOption, largest
    from gclint.verify.worker.synthesis.inputs.situation import Plan, Situation

    situation = Situation(LlamaModel, LlamaConfig(), Plan(), LlamaConfig())
    options = [ConfigurationOption(("LlamaConfig",), name, True) for name in "abcd"]
    tried: list[set[str]] = []

    def run(made: Situation) -> bool:
        tried.append({name for _, name in made.plan.values})
        return not any(tried[-1].issuperset(each) for each in apart)

    chosen = largest(situation, options, run)
    assert "".join(each.field for each in chosen) == kept
    assert len(tried) <= most
    # The last set of options that ran is the one that was chosen.
    ran = [each for each in tried if not any(each.issuperset(letters) for letters in apart)]
    assert (ran[-1] if ran else set()) == set(kept)


@torch
def test_not_all_is_tried_of_many_options() -> None:
    from transformers import LlamaConfig, LlamaModel

    from gclint.verify.worker.synthesis.attempts.options import ConfigurationOption, largest
    from gclint.verify.worker.synthesis.inputs.situation import Plan, Situation

    situation = Situation(LlamaModel, LlamaConfig(), Plan(), LlamaConfig())
    options = [ConfigurationOption(("LlamaConfig",), name, True) for name in "abcdefgh"]
    tried: list[int] = []

    def run(made: Situation) -> bool:
        tried.append(len(made.plan.values))
        return False

    assert largest(situation, options, run) == ()
    assert tried == [8, 4, 2, 1, 1, 2, 1, 1]


@torch
def test_an_option_is_set_in_each_class_that_has_its_field_and_what_was_set_stays() -> None:
    from transformers import LlamaConfig, LlamaModel

    from gclint.verify.worker.synthesis.attempts.options import ConfigurationOption, with_options
    from gclint.verify.worker.synthesis.inputs.situation import Plan, Situation

    plan = Plan(values={("", "known"): 1})
    situation = Situation(LlamaModel, LlamaConfig(), plan, LlamaConfig())
    made = with_options(situation, [ConfigurationOption(("Text", "Vision"), "gated", True)])
    assert made.plan.values == {("", "known"): 1, ("Text", "gated"): True, ("Vision", "gated"): True}


def test_each_option_has_scenarios_of_its_own() -> None:
    plain, cached, *others = scenarios_of("option is_decoder=True")
    assert (plain.name, cached.name) == ("option is_decoder=True", "option is_decoder=True, cache object")
    assert cached.reference == plain.name
    assert scenario_named(plain.name) == plain
    assert scenario_named(cached.name) == cached
    assert "option is_decoder=True, no mask" in {
        each.name for each in others if scenario_named(each.name) == each
    }
