"""Defects that releases are known to have, and releases in which there is nothing to find."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.ecosystem.reported import Reported, reported

pytestmark = pytest.mark.releases

_BLOCKS_OF_4_57_6 = {
    "modeling_gpt_bigcode.py::GPTBigCodeBlock",
    "modeling_swiftformer.py::SwiftFormerStage",
    "modeling_xlstm.py::xLSTMBlock",
    "modeling_zamba.py::ZambaMambaDecoderLayer",
    "modeling_zamba.py::ZambaHybridLayer",
    "modeling_zamba2.py::Zamba2MambaDecoderLayer",
    "modeling_zamba2.py::Zamba2HybridLayer",
    "modeling_clvp.py::ClvpEncoderLayer",
    "modeling_clvp.py::ClvpDecoderLayer",
}
_POSITIONAL_CACHES_OF_5_23_0 = {
    "modeling_gpt2.py::GPT2Block": ("past_key_values",),
    "modeling_imagegpt.py::ImageGPTBlock": ("layer_past",),
    "modeling_git.py::GitLayer": ("past_key_values",),
    "modeling_megatron_bert.py::MegatronBertLayer": ("past_key_values",),
    "modeling_rembert.py::RemBertLayer": ("past_key_values",),
    "modeling_roformer.py::RoFormerLayer": ("past_key_values",),
    "modeling_xmod.py::XmodLayer": ("past_key_values",),
    "modeling_recurrent_gemma.py::RecurrentGemmaDecoderLayer": ("use_cache", "past_key_values"),
    "modeling_t5gemma.py::T5GemmaDecoderLayer": ("past_key_values", "use_cache"),
    "modeling_t5gemma2.py::T5Gemma2DecoderLayer": ("past_key_values", "use_cache"),
}
_KEYWORD_ACTIVATIONS_OF_5_23_0 = {
    ("modeling_llama4.py::Llama4VisionEncoderLayer", "hidden_state"),
    ("modeling_mllama.py::MllamaCrossAttentionDecoderLayer", "cross_attention_states"),
    ("modeling_autoformer.py::AutoformerDecoderLayer", "encoder_hidden_states"),
    ("modeling_big_bird.py::BigBirdLayer", "encoder_hidden_states"),
    ("modeling_bros.py::BrosLayer", "encoder_hidden_states"),
    ("modeling_deberta_v2.py::DebertaV2Layer", "rel_embeddings"),
    ("modeling_sew_d.py::SEWDLayer", "rel_embeddings"),
    ("modeling_speecht5.py::SpeechT5EncoderLayer", "position_bias"),
    ("modeling_wavlm.py::WavLMEncoderLayer", "position_bias"),
    ("modeling_sam.py::SamTwoWayAttentionBlock", "query_point_embedding"),
    ("modeling_esm.py::EsmLayer", "encoder_hidden_states"),
    ("modeling_lw_detr.py::LwDetrDecoderLayer", "encoder_hidden_states"),
    ("modeling_rf_detr.py::RfDetrDecoderLayer", "encoder_hidden_states"),
}


def _by_key(found: tuple[Reported, ...], *codes: str) -> dict[str, Reported]:
    return {key: each for each in found if each.code in codes for key in each.keys}


@pytest.mark.parametrize("version", ["4.45.2", "4.49.0"])
def test_release_without_the_base_class_has_no_layers_to_speak_of(
    release: Callable[[str], Path], version: str
) -> None:
    assert {each.code for each in reported(release(version))} == {"GC101", "GC108"}


@pytest.mark.parametrize("version", ["4.53.3", "5.0.0"])
def test_every_file_is_checked_and_every_refusal_has_a_reason(
    release: Callable[[str], Path], version: str
) -> None:
    found = reported(release(version))
    assert {each.code for each in found} == {
        "GC001",
        "GC002",
        "GC003",
        "GC101",
        "GC103",
        "GC108",
        "GC110",
        "GC302",
    }
    assert [each for each in found if each.outcome.endswith("fix: None")] == []


def test_blocks_of_4_57_6(release: Callable[[str], Path]) -> None:
    found = _by_key(reported(release("4.57.6")), "GC001", "GC302")
    assert found.keys() >= _BLOCKS_OF_4_57_6


def test_clvp_cannot_be_converted_unattended(release: Callable[[str], Path]) -> None:
    found = _by_key(reported(release("4.57.6")), "GC001", "GC302")
    encoder = found["modeling_clvp.py::ClvpEncoderLayer"].outcome
    assert encoder.startswith("unsafe fix: ")
    assert "`output_attentions` gets its default `False` in the checkpointed call" in encoder
    decoder = found["modeling_clvp.py::ClvpDecoderLayer"].outcome
    assert decoder.startswith("no fix: ")
    assert "`use_cache` gets `cache_position` in the checkpointed call" in decoder


def test_blocks_of_5_23_0(release: Callable[[str], Path]) -> None:
    found = _by_key(reported(release("5.23.0")), "GC001")
    assert found.keys() >= {
        "modeling_mllama.py::MllamaVisionEncoderLayer",
        # Their branches are gone; what they are built of is still checkpointed elsewhere.
        "modeling_clvp.py::ClvpEncoderLayer",
        "modeling_clvp.py::ClvpDecoderLayer",
    }


def test_block_that_has_to_fill_its_cache_is_left_alone(release: Callable[[str], Path]) -> None:
    # The decoder reads, in training too, what these layers have written; their docstring says so.
    found = reported(release("5.23.0"))
    assert [each.line for each in found if each.symbol == "DiffusionGemmaEncoderTextLayer"] == []


def test_positional_caches_of_5_23_0(release: Callable[[str], Path]) -> None:
    found = _by_key(reported(release("5.23.0")), "GC002")
    assert {
        key: found[key].parameters for key in _POSITIONAL_CACHES_OF_5_23_0 if key in found
    } == _POSITIONAL_CACHES_OF_5_23_0


def test_guard_of_gpt2_is_told_from_no_guard(release: Callable[[str], Path]) -> None:
    found = _by_key(reported(release("5.23.0")), "GC002")
    assert "only the guard at the call" in found["modeling_gpt2.py::GPT2Block"].message
    assert "only the guard at the call" not in found["modeling_imagegpt.py::ImageGPTBlock"].message


def test_keyword_activations_of_5_23_0(release: Callable[[str], Path]) -> None:
    found = reported(release("5.23.0"))
    calls = [each for each in found if each.code == "GC003"]
    passed = {(key, name) for each in calls for key in each.keys for name in each.parameters}
    assert passed >= _KEYWORD_ACTIVATIONS_OF_5_23_0
    # Nothing but None ever reaches these.
    assert not passed & {
        ("modeling_convbert.py::ConvBertLayer", "encoder_hidden_states"),
        ("modeling_sew_d.py::SEWDLayer", "query_states"),
        ("modeling_evolla.py::EvollaSaProtLayer", "encoder_hidden_states"),
    }


def test_nested_activations_of_5_23_0(release: Callable[[str], Path]) -> None:
    found = _by_key(reported(release("5.23.0")), "GC103")
    assert found.keys() == {"modular_mlcd.py::MLCDEncoderLayer", "modeling_mlcd.py::MLCDEncoderLayer"}


def test_blocks_that_differ_in_their_defaults_alone_are_repaired_together(
    release: Callable[[str], Path],
) -> None:
    found = _by_key(reported(release("5.23.0")), "GC003")
    assert found["modeling_mllama.py::MllamaCrossAttentionDecoderLayer"].outcome == "safe fix"
