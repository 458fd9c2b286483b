"""What transformers' own linter says in rule TRF034 of its release 5.23.0, explained class by class.

The rule, restated: a class of the file whose name ends in ``Layer`` or ``Block``, made inside of
``nn.ModuleList(...)``, whose known bases do not reach the checkpointing base class, which assigns
something named after a token mixer to an attribute, itself or in its parts, and keeps no running
statistics. The list is that of transformers-mlinter 0.1.5 over the modeling files, with no model
exempt by its date.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.ecosystem.reported import reported

pytestmark = pytest.mark.releases

_REPORTED = {
    "modeling_clvp.py::ClvpEncoderLayer",
    "modeling_clvp.py::ClvpDecoderLayer",
    "modeling_esmfold.py::EsmFoldTriangularSelfAttentionBlock",
    "modeling_florence2.py::Florence2VisionBlock",
    "modeling_gemma3n.py::Gemma3nAudioConformerBlock",
    "modeling_gemma4.py::Gemma4AudioLayer",
    "modeling_idefics2.py::Idefics2PerceiverLayer",
    "modeling_mllama.py::MllamaVisionEncoderLayer",
    "modeling_phi4_multimodal.py::Phi4MultimodalAudioConformerEncoderLayer",
    "modeling_sam3_lite_text.py::Sam3LiteTextGeometryEncoderLayer",
    "modeling_sam3_lite_text.py::Sam3LiteTextDetrEncoderLayer",
    "modeling_sam3_lite_text.py::Sam3LiteTextDetrDecoderLayer",
    "modeling_seamless_m4t.py::SeamlessM4TConformerAdapterLayer",
    "modeling_seamless_m4t_v2.py::SeamlessM4Tv2ConformerAdapterLayer",
    "modeling_wav2vec2_bert.py::Wav2Vec2BertAdapterLayer",
    "modeling_x_clip.py::PromptGeneratorLayer",
    "modeling_zoedepth.py::ZoeDepthTransformerEncoderLayer",
}
"""Both linters have these; here they are GC001."""

_LEFT_ALONE = {
    # It fills a cache in training, which the decoder reads: recomputing it would write that twice.
    "modeling_diffusion_gemma.py::DiffusionGemmaEncoderTextLayer": "it has to fill its cache",
    # The stages that hold them are checkpointing layers, so these are recomputed with them.
    "modeling_donut_swin.py::DonutSwinLayer": "its stage is recomputed",
    "modeling_focalnet.py::FocalNetLayer": "its stage is recomputed",
    "modeling_hiera.py::HieraLayer": "its stage is recomputed",
    "modeling_maskformer_swin.py::MaskFormerSwinLayer": "its stage is recomputed",
    "modeling_swin2sr.py::Swin2SRLayer": "its stage is recomputed",
}
"""What the other linter reports and this one does not, with the reason."""


def test_each_class_is_reported_or_explained(release: Callable[[str], Path]) -> None:
    found = {key for each in reported(release("5.23.0")) if each.code == "GC001" for key in each.keys}
    assert len(_REPORTED) + len(_LEFT_ALONE) == 23
    assert sorted(_REPORTED - found) == []
    assert sorted(_LEFT_ALONE.keys() & found) == []


def test_stages_that_explain_what_is_left_alone_are_checkpointing_layers(
    release: Callable[[str], Path],
) -> None:
    stages = {
        "donut/modeling_donut_swin.py": "DonutSwinStage",
        "focalnet/modeling_focalnet.py": "FocalNetStage",
        "hiera/modeling_hiera.py": "HieraStage",
        "maskformer/modeling_maskformer_swin.py": "MaskFormerSwinStage",
        "swin2sr/modeling_swin2sr.py": "Swin2SRStage",
    }
    models = next(release("5.23.0").rglob("models"))
    texts = {path: (models / path).read_text(encoding="utf-8") for path in stages}
    assert [
        s for path, s in stages.items() if f"class {s}(GradientCheckpointingLayer)" not in texts[path]
    ] == []
