"""Replaces backbones of the timm library by native ones."""

from __future__ import annotations

import re
from typing import Any

from transformers import ResNetConfig, ViTConfig

from gclint.verify.worker.specimen import EXTRA_LIBRARY, NotSynthesisable
from gclint.verify.worker.synthesis.configurations.shrinking import Sizes
from gclint.verify.worker.synthesis.configurations.tree import descendants, fields_of, own_fields


def use_native_backbones(config: Any) -> None:
    """Replace each backbone below ``config`` that the timm library would build by a native one."""
    for part in list(descendants(config)):
        fields = fields_of(part)
        if fields.get("use_timm_backbone") and fields.get("backbone_config", 0) is None:
            levels = int(fields.get("num_feature_levels", 1))
            fields["backbone_config"] = _residual_network(out_indices=[2, 3, 4] if levels > 1 else [4])
            fields["use_timm_backbone"] = fields["use_pretrained_backbone"] = False
            fields["backbone"] = fields["backbone_kwargs"] = None
        for name, value in list(fields.items()):
            kind = value.get("model_type") if isinstance(value, dict) else getattr(value, "model_type", None)
            if name == "backbone_config" and kind == "timm_backbone":
                indices = value.get("out_indices") if isinstance(value, dict) else value.out_indices
                wanted = [index for index in indices or (4,) if 1 <= index <= 4]
                fields[name] = _residual_network(out_indices=wanted or [4])
                fields["use_timm_backbone"] = False
                fields["backbone"] = None
            elif all(hasattr(value, field) for field in ("architecture", "model_args", "do_pooling")):
                fields[name] = _native_tower(value, has_class_token="vision_use_cls_token" in fields)


def unsuitable_backbone(config: Any, error: BaseException) -> NotSynthesisable | None:
    """Return the error to report if ``error`` shows that a native tower cannot replace one of timm."""
    found = re.match(r"(ResNet|ViT)Model\.forward\(\) got an unexpected keyword", str(error))
    if found is None or not any("architecture" in fields_of(part) for part in descendants(config)):
        return None
    message = f"the tower is a timm model, and a native {found[1]} cannot replace it"
    raised = NotSynthesisable(EXTRA_LIBRARY, f"{message} ({error}); it needs timm: pip install timm")
    raised.__cause__ = error
    return raised


def _residual_network(**given: Any) -> ResNetConfig:
    # A model may scale the output of its backbone in place, which autograd forbids for the output of a ReLU.
    return ResNetConfig(hidden_act="gelu", **given)


def _native_tower(timm: Any, has_class_token: bool) -> Any:
    """Return a vision transformer or a residual network that has the other fields of ``timm`` as well."""
    if has_class_token or timm.architecture.startswith("vit"):
        native = ViTConfig()
    else:
        native = _residual_network()
        native.hidden_size = native.hidden_sizes[-1]
    for name, value in own_fields(timm):
        if not hasattr(native, name):
            fields_of(native)[name] = value
    # The only way to ask timm for a width.
    native.model_args = {"embed_dim": Sizes().width}
    return native
