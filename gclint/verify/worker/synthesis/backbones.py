"""Backbones of another library in favour of native ones."""

from __future__ import annotations

import re
from typing import Any

from transformers import AutoConfig, ResNetConfig, ViTConfig

from gclint.verify.worker.specimen import NotSynthesisable
from gclint.verify.worker.synthesis.configuration import Sizes
from gclint.verify.worker.synthesis.tree import descendants, fields_of, own_fields


def make_default(config_class: Any) -> Any:
    """Return a ``config_class`` with its defaults, and with what its validation asks for.

    Raises:
        NotSynthesisable: The class refuses its own defaults for another reason.
    """
    given: dict[str, dict[str, int]] = {}
    while True:
        try:
            return config_class(**given)
        except Exception as error:
            refused = error
        wanted = re.search(r"(\w+) must be (\d+), got \d+", str(refused))
        part = next(iter(getattr(config_class, "sub_configs", {})), None)
        if wanted is None or part is None or wanted[1] in given.get(part, {}):
            raise NotSynthesisable("configuration", f"{type(refused).__name__}: {refused}"[:400]) from refused
        given.setdefault(part, {})[wanted[1]] = int(wanted[2])


def complete(config: Any) -> None:
    """Give ``config`` each sub-configuration that it can have, so that a model has all of its towers."""
    for part in list(descendants(config)):
        for name, child in getattr(part, "sub_configs", {}).items():
            if fields_of(part).get(name, 0) is None and not child.__name__.startswith("Auto"):
                fields_of(part)[name] = child()
        for name, spec in getattr(type(part), "sub_configs_defaults", {}).items():
            # Without a backbone, a model that can do without one cuts patches by itself.
            if (
                name != "backbone_config"
                and fields_of(part).get(name, 0) is None
                and isinstance(getattr(spec, "model_type", None), str)
            ):
                fields_of(part)[name] = AutoConfig.for_model(spec.model_type)


def use_native_backbones(config: Any) -> None:
    """Put a residual network in place of each backbone below ``config`` that the timm library would build."""
    for part in list(descendants(config)):
        fields = fields_of(part)
        if fields.get("use_timm_backbone") and fields.get("backbone_config", 0) is None:
            levels = int(fields.get("num_feature_levels", 1))
            fields["backbone_config"] = ResNetConfig(out_indices=[2, 3, 4] if levels > 1 else [4])
            fields["use_timm_backbone"] = fields["use_pretrained_backbone"] = False
            fields["backbone"] = fields["backbone_kwargs"] = None
        for name, value in list(fields.items()):
            kind = value.get("model_type") if isinstance(value, dict) else getattr(value, "model_type", None)
            if name == "backbone_config" and kind == "timm_backbone":
                indices = value.get("out_indices") if isinstance(value, dict) else value.out_indices
                wanted = [index for index in indices or (4,) if 1 <= index <= 4]
                fields[name] = ResNetConfig(out_indices=wanted or [4])
                fields["use_timm_backbone"] = False
                fields["backbone"] = None
            elif all(hasattr(value, field) for field in ("architecture", "model_args", "do_pooling")):
                fields[name] = _native_tower(value, has_class_token="vision_use_cls_token" in fields)


def _native_tower(timm: Any, has_class_token: bool) -> Any:
    """Return a vision transformer or a residual network with what else the fields of ``timm`` say."""
    if has_class_token or timm.architecture.startswith("vit"):
        native = ViTConfig()
    else:
        native = ResNetConfig()
        native.hidden_size = native.hidden_sizes[-1]
    for name, value in own_fields(timm):
        if not hasattr(native, name):
            fields_of(native)[name] = value
    # The only way to ask timm for a width.
    native.model_args = {"embed_dim": Sizes().width}
    return native
