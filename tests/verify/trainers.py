"""Small trainers as people build them, right and wrong."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
import transformers
from torch import nn
from torch.utils.checkpoint import checkpoint
from transformers import Trainer, TrainingArguments

_SIZES = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
WORD = "activation" if hasattr(TrainingArguments, "activation_checkpointing") else "gradient"


def arguments(use_reentrant: bool | None = None, **more: Any) -> TrainingArguments:
    """Return arguments; checkpointing is off where nothing is said about it."""
    if use_reentrant is not None:
        more |= {f"{WORD}_checkpointing": True}
        kwargs = {"use_reentrant": use_reentrant, **more.pop("kwargs", {})}
        more[f"{WORD}_checkpointing_kwargs"] = kwargs
    made = {"output_dir": "unused", "use_cpu": True, "report_to": [], "per_device_train_batch_size": 2}
    return TrainingArguments(**made, **more)


def texts(count: int = 8) -> list[dict[str, Any]]:
    """Return rows of tokens, the same each time."""
    tokens = torch.randint(3, 60, (count, 6), generator=torch.Generator().manual_seed(0)).tolist()
    return [{"input_ids": each, "labels": each} for each in tokens]


def llama(layers: int = 2) -> Any:
    """Return a model that reads text."""
    sizes = {**_SIZES, "num_hidden_layers": layers}
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(vocab_size=64, **sizes))


def of_text(*args: Any, model: Any = None, data: Any = None, kind: Any = Trainer, **more: Any) -> Any:
    """Return a trainer of a model that reads text."""
    return kind(model or llama(), arguments(*args, **more), train_dataset=texts() if data is None else data)


def classifying(*args: Any, **more: Any) -> Any:
    """Return a trainer of an encoder with dropout."""
    model = transformers.BertForSequenceClassification(transformers.BertConfig(vocab_size=64, **_SIZES))
    rows = [{"input_ids": [1, 2, 3, 4 + number], "labels": number % 2} for number in range(8)]
    return Trainer(model, arguments(*args, **more), train_dataset=rows)


def translating(*args: Any, **more: Any) -> Any:
    """Return a trainer of an encoder and a decoder."""
    config = transformers.T5Config(
        vocab_size=64, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, decoder_start_token_id=0
    )
    model = transformers.T5ForConditionalGeneration(config)
    rows = [{"input_ids": [3, 4, 5, 6], "labels": [7, 8, number]} for number in range(8)]
    return Trainer(model, arguments(*args, **more), train_dataset=rows)


def of_experts(*args: Any, **more: Any) -> Any:
    """Return a trainer of a mixture of experts with the loss that balances them."""
    config = transformers.MixtralConfig(
        vocab_size=64, **_SIZES, num_key_value_heads=2, num_local_experts=4, output_router_logits=True
    )
    return of_text(*args, model=transformers.MixtralForCausalLM(config), **more)


def seeing(*args: Any, **more: Any) -> Any:
    """Return a trainer of a model of images and text, with dropout."""
    vision = transformers.CLIPVisionConfig(
        **{**_SIZES, "num_hidden_layers": 3}, image_size=16, patch_size=8, projection_dim=16
    )
    text = transformers.LlamaConfig(vocab_size=64, **_SIZES, attention_dropout=0.5)
    config = transformers.LlavaConfig(vision_config=vision, text_config=text, image_token_index=60)
    tokens, image = [1, 60, 60, 60, 60, 5, 6, 7], torch.ones(3, 16, 16)
    rows = [{"input_ids": tokens, "labels": tokens, "pixel_values": image * number} for number in range(8)]
    return Trainer(
        transformers.LlavaForConditionalGeneration(config), arguments(*args, **more), train_dataset=rows
    )


def adapted_images(*args: Any, kind: Any = transformers.ViTForImageClassification, **more: Any) -> Any:
    """Return a trainer of LoRA on a frozen model of images, whose inputs the Trainer does not prepare."""
    import peft

    model = kind(transformers.ViTConfig(**_SIZES, image_size=16, patch_size=8, num_labels=3))
    model = peft.get_peft_model(model, peft.LoraConfig(r=2, target_modules="all-linear"))
    images = torch.randn(8, 3, 16, 16, generator=torch.Generator().manual_seed(0))
    rows = [{"pixel_values": each, "labels": number % 3} for number, each in enumerate(images)]
    return Trainer(model, arguments(*args, **more), train_dataset=rows)


def adapted_text(*args: Any, **more: Any) -> Any:
    """Return a trainer of LoRA on a frozen model that reads text."""
    import peft

    adapters = peft.LoraConfig(r=2, target_modules="all-linear", lora_dropout=0.5)
    model = peft.get_peft_model(llama(), adapters)
    return of_text(*args, model=model, **more)


def hearing(*args: Any, **more: Any) -> Any:
    """Return a trainer of a model of speech with all frozen that comes before its blocks."""
    config = transformers.Wav2Vec2Config(
        **_SIZES,
        conv_dim=(8, 8),
        conv_stride=(4, 4),
        conv_kernel=(4, 4),
        num_feat_extract_layers=2,
        num_conv_pos_embeddings=4,
        num_conv_pos_embedding_groups=2,
        num_labels=3,
        classifier_proj_size=8,
        layerdrop=0.0,
        apply_spec_augment=False,
    )
    model = transformers.Wav2Vec2ForSequenceClassification(config)
    model.freeze_feature_encoder()
    for each in (
        model.wav2vec2.feature_projection,
        model.wav2vec2.encoder.pos_conv_embed,
        model.wav2vec2.encoder.layer_norm,
    ):
        each.requires_grad_(False)
    waves = torch.randn(8, 400, generator=torch.Generator().manual_seed(0))
    rows = [{"input_values": each, "labels": number % 3} for number, each in enumerate(waves)]
    return Trainer(model, arguments(*args, **more), train_dataset=rows)


class Own(nn.Module):  # type: ignore[misc]
    """A model that is not from transformers, and checkpoints its layers by itself."""

    def __init__(self, *, has_flag: bool = True, is_on: bool = False) -> None:
        super().__init__()
        self.embedding = nn.Embedding(64, 16)
        self.layers = nn.ModuleList(
            nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16)) for _ in "ab"
        )
        self.name = "use_checkpoint" if has_flag else "saves_memory"
        setattr(self, self.name, is_on)

    def forward(self, input_ids: Any, labels: Any) -> dict[str, Any]:
        """Return the loss."""
        hidden = self.embedding(input_ids)
        for layer in self.layers:
            hidden = hidden + self.run(layer, hidden)
        logits = hidden @ self.embedding.weight.T
        return {"loss": nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten())}

    def run(self, layer: nn.Module, hidden: Any) -> Any:
        """Run a layer."""
        is_on = getattr(self, self.name)
        return checkpoint(layer, hidden, use_reentrant=False) if is_on else layer(hidden)


class Flagged(Own):
    """The first layer is told to checkpoint itself, and the second not to."""

    def __init__(self) -> None:
        super().__init__(has_flag=False)
        for number, layer in enumerate(self.layers):
            layer.use_checkpoint = number == 0

    def run(self, layer: nn.Module, hidden: Any) -> Any:
        """Run a layer as its flag says."""
        self.saves_memory = layer.use_checkpoint
        return super().run(layer, hidden)


class Told(Own):
    """It has a method that switches checkpointing, as models of timm do."""

    def __init__(self) -> None:
        super().__init__(has_flag=False)

    def set_grad_checkpointing(self, enable: bool = True) -> None:
        """Switch checkpointing on or off."""
        self.saves_memory = enable


class Unasked(Own):
    """It checkpoints its layers whatever is set."""

    def __init__(self, *, has_flag: bool = False) -> None:
        super().__init__(has_flag=has_flag)

    def run(self, layer: nn.Module, hidden: Any) -> Any:
        """Run a layer."""
        return checkpoint(layer, hidden, use_reentrant=False)


class Capturing(Unasked):
    """What its checkpoints compute with is not among their arguments."""

    def run(self, layer: nn.Module, hidden: Any) -> Any:
        """Run a layer on what its function has captured."""
        return checkpoint(lambda _: layer(hidden), torch.ones(1), use_reentrant=True)


def wrapped() -> Any:
    """Return a model of transformers whose layers are in wrappers that checkpoint them."""
    from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper

    model = llama()
    for number, layer in enumerate(model.model.layers):
        model.model.layers[number] = checkpoint_wrapper(layer)
    return model


class Around(nn.Module):  # type: ignore[misc]
    """A module of one's own around a model of transformers."""

    def __init__(self) -> None:
        super().__init__()
        self.backbone = llama()

    def forward(self, input_ids: Any, labels: Any) -> Any:
        """Return what that returns."""
        return self.backbone(input_ids=input_ids, labels=labels)


def together(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Collate rows."""
    return {name: torch.tensor([row[name] for row in rows]) for name in rows[0]}


def of_own(kind: Any = Own, **options: Any) -> Any:
    """Return a trainer of such a model."""
    return Trainer(kind(**options), arguments(), train_dataset=texts(), data_collator=together)


class Stream(torch.utils.data.IterableDataset):  # type: ignore[misc]
    """Data that can be read only once."""

    def __init__(self) -> None:
        self.left = iter(texts())

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return self.left


class Yielding(Stream):
    """The same, read by a generator: each call of ``iter`` returns another one."""

    def __iter__(self) -> Iterator[dict[str, Any]]:
        yield from self.left
