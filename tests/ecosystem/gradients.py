"""Trains tiny models with and without gradient checkpointing: ``python gradients.py gpt_bigcode ...``.

Takes the transformers that the interpreter finds, and needs nothing of gclint. For each model named (all, if
there is none) it says whether every block is recomputed in the backward pass and whether loss and gradients
are what they are without checkpointing, in both of torch's modes. Exits with 1 if one of them fails.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
import transformers
from torch import Tensor, nn

_BATCH, _LENGTH, _WIDTH, _VOCABULARY = 2, 6, 16, 32
_MODES = {"reentrant": True, "non-reentrant": False}


@dataclass(frozen=True)
class Model:
    """A tiny model, and what a step of training needs."""

    config: str
    """The configuration's class, below ``transformers``."""
    model: str
    fields: Mapping[str, object]
    """What is set in the configuration."""
    blocks: Mapping[str, str]
    """The classes that must be recomputed, each with a child whose runs are counted."""
    inputs: Callable[[], dict[str, Any]]
    """Makes new inputs; their floating-point tensors get a gradient too."""
    variants: Mapping[str, Callable[[], dict[str, Any]]] = field(default_factory=lambda: {"as it is": dict})
    """Makes further inputs, by what the variant is about."""
    prepare: Callable[[nn.Module], None] = lambda model: None
    """What has to be done to the model before it can be run at all."""
    without_gradient: tuple[str, ...] = ()
    """How the names of parameters end that never get a gradient."""


@dataclass
class Step:
    """What one step of training has shown."""

    loss: float
    gradients: dict[str, Tensor | None]
    runs: Counter[str]
    """How often each block was run, by the block's name in the model."""


def _tokens() -> dict[str, Any]:
    ids = torch.arange(_BATCH * _LENGTH).reshape(_BATCH, _LENGTH) * 5 % (_VOCABULARY - 3) + 3
    return {"input_ids": ids, "labels": ids}


def _tokens_and_encoder_states() -> dict[str, Any]:
    states = torch.linspace(-1, 1, _BATCH * 4 * _WIDTH).sin().reshape(_BATCH, 4, _WIDTH)
    return {**_tokens(), "encoder_hidden_states": states}


def _image() -> dict[str, Any]:
    pixels = torch.linspace(-3, 3, 2 * 3 * 64 * 64).cos().reshape(2, 3, 64, 64)
    return {"pixel_values": pixels, "labels": torch.tensor([0, 1])}


def _split_heads_of_cross_attention(model: nn.Module) -> None:
    """Let GPTBigCode's cross attention run: that of 4.57.6 does not split its keys and values into heads."""
    for name, module in model.named_modules():
        if name.endswith(".crossattention.c_attn"):
            module.register_forward_hook(
                lambda _module, _inputs, made: made.unflatten(-1, (2, -1)).transpose(1, 2)
            )


_CACHE_OR_NOT: Mapping[str, Callable[[], dict[str, Any]]] = {
    "without cache": lambda: {"use_cache": False},
    "with cache": lambda: {"use_cache": True},
}
_GIVEN_CACHE: Mapping[str, Callable[[], dict[str, Any]]] = {
    "given a cache": lambda: {"use_cache": True, "past_key_values": transformers.DynamicCache()},
}
_GPT_BIGCODE = {
    "vocab_size": _VOCABULARY,
    "n_positions": _LENGTH,
    "n_embd": _WIDTH,
    "n_layer": 3,
    "n_head": 2,
    "n_inner": _WIDTH,
}
_ZAMBA = {
    "vocab_size": _VOCABULARY,
    "hidden_size": _WIDTH,
    "intermediate_size": _WIDTH,
    "num_hidden_layers": 4,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "n_mamba_heads": 2,
    "mamba_d_state": 4,
    "pad_token_id": 0,
}

MODELS: Mapping[str, Model] = {
    "gpt_bigcode": Model(
        "GPTBigCodeConfig",
        "GPTBigCodeForCausalLM",
        _GPT_BIGCODE,
        {"GPTBigCodeBlock": "attn"},
        _tokens,
        {**_CACHE_OR_NOT, **_GIVEN_CACHE},
    ),
    "gpt_bigcode with cross attention": Model(
        "GPTBigCodeConfig",
        "GPTBigCodeForCausalLM",
        {**_GPT_BIGCODE, "add_cross_attention": True, "multi_query": False},
        {"GPTBigCodeBlock": "crossattention"},
        _tokens_and_encoder_states,
        _CACHE_OR_NOT,
        _split_heads_of_cross_attention,
    ),
    "swiftformer": Model(
        "SwiftFormerConfig",
        "SwiftFormerForImageClassification",
        {"depths": [2] * 4, "embed_dims": [8, 8, 16, 16], "layer_scale_init_value": 0.5, "num_labels": 3},
        {"SwiftFormerStage": "blocks.0"},
        _image,
        # It scales something that is normalised over one place only.
        without_gradient=("attn.w_g",),
    ),
    "xlstm": Model(
        "xLSTMConfig",
        "xLSTMForCausalLM",
        {
            "vocab_size": _VOCABULARY,
            # The smallest size for which its cache fits its layers.
            "hidden_size": 128,
            "num_hidden_layers": 3,
            "num_heads": 2,
            # Shorter sequences than a chunk, since the kernel for whole chunks does not run.
            "chunk_size": 2 * _LENGTH,
        },
        {"xLSTMBlock": "norm_mlstm"},
        _tokens,
        # It writes a cache in place, with which nothing can be trained.
    ),
    "zamba": Model(
        "ZambaConfig",
        "ZambaForCausalLM",
        {**_ZAMBA, "attn_layer_period": 2, "attn_layer_offset": 1, "use_mamba_kernels": False},
        {"ZambaMambaDecoderLayer": "mamba", "ZambaHybridLayer": "linear"},
        _tokens,
        _CACHE_OR_NOT,
    ),
    "zamba2": Model(
        "Zamba2Config",
        "Zamba2ForCausalLM",
        {**_ZAMBA, "layers_block_type": ["mamba", "hybrid", "mamba", "hybrid"], "chunk_size": 4},
        {"Zamba2MambaDecoderLayer": "mamba", "Zamba2HybridLayer": "linear"},
        _tokens,
        _CACHE_OR_NOT,
    ),
}


def failures(tiny: Model) -> Iterator[str]:
    """Yield what is wrong when the model is trained with checkpointing."""
    torch.manual_seed(0)
    config = getattr(transformers, tiny.config)(**tiny.fields)
    model: nn.Module = getattr(transformers, tiny.model)(config).train()
    tiny.prepare(model)
    _fill_zeros(model)
    for variant, more in tiny.variants.items():
        expected = _step(model, tiny, more)
        if not expected.runs:
            yield f"{variant}: there are no blocks {', '.join(tiny.blocks)}"
        for name, gradient in expected.gradients.items():
            if (gradient is None or not gradient.any()) and not name.endswith(tiny.without_gradient):
                yield f"{variant}: {name} has no gradient without checkpointing, so nothing can be compared"
        for mode, use_reentrant in _MODES.items():
            checkpointing: Any = model
            checkpointing.gradient_checkpointing_enable({"use_reentrant": use_reentrant})
            try:
                found = _step(model, tiny, more)
            except RuntimeError as error:
                yield f"{variant}, {mode}: {str(error).splitlines()[0]}"
            else:
                for difference in _differences(expected, found):
                    yield f"{variant}, {mode}: {difference}"
            checkpointing.gradient_checkpointing_disable()


def _fill_zeros(model: nn.Module) -> None:
    """Give parameters that start as zeros some values: they would keep gradients from what they scale."""
    for parameter in model.parameters():
        if not parameter.any():
            nn.init.normal_(parameter, std=0.1)


def _step(model: nn.Module, tiny: Model, more: Callable[[], dict[str, Any]]) -> Step:
    """Run a forward and a backward pass that always draw the same random numbers."""
    inputs = tiny.inputs() | more()
    states = {name: value.requires_grad_() for name, value in inputs.items() if _is_float(value)}
    # What another network has made: all layers that take it share its graph, which goes with the first use.
    inputs |= {name: value.sin() for name, value in states.items()}
    runs: Counter[str] = Counter()
    hooks = [
        child.register_forward_pre_hook(lambda *_, name=name: runs.update([name]))
        for name, child in _counted(model, tiny.blocks)
    ]
    model.zero_grad()
    torch.manual_seed(1)
    try:
        loss = model(**inputs).loss
        loss.backward()
    finally:
        for hook in hooks:
            hook.remove()
    tensors = dict(model.named_parameters()) | states
    gradients = {name: None if each.grad is None else each.grad.clone() for name, each in tensors.items()}
    return Step(loss.item(), gradients, runs)


def _is_float(value: object) -> bool:
    return isinstance(value, Tensor) and value.is_floating_point()


def _counted(model: nn.Module, blocks: Mapping[str, str]) -> Iterator[tuple[str, nn.Module]]:
    """Yield the blocks' names, and of each the child whose runs are counted.

    Not the block itself: what the base class does happens before its hooks, or behind them.
    """
    for name, module in model.named_modules():
        child = blocks.get(type(module).__name__)
        if child is not None:
            yield name, module.get_submodule(child)


def _differences(expected: Step, found: Step) -> Iterator[str]:
    """Yield what checkpointing leaves undone, and what it changes."""
    plain = [name for name, times in expected.runs.items() if found.runs[name] <= times]
    if plain:
        all_of_them = len(plain) == len(expected.runs)
        yield "nothing is recomputed" if all_of_them else f"{', '.join(plain)} not recomputed"
    for name, times in expected.runs.items():
        # A block inside of another one is recomputed once for each.
        inside = any(name.startswith(f"{other}.") for other in expected.runs)
        if not inside and found.runs[name] > 2 * times:
            yield f"{name} is run {found.runs[name]} times instead of {2 * times}"
    if abs(expected.loss - found.loss) > 1e-5 * abs(expected.loss):
        yield f"the loss is {found.loss} instead of {expected.loss}"
    yield from _gradient_differences(expected.gradients, found.gradients)


def _gradient_differences(
    expected: Mapping[str, Tensor | None], found: Mapping[str, Tensor | None]
) -> Iterator[str]:
    largest = max(float(each.abs().max()) for each in expected.values() if each is not None)
    different: dict[str, list[str]] = {"lost": [], "new": [], "different": []}
    for name, gradient in expected.items():
        other = found[name]
        if gradient is None or other is None:
            if gradient is not other:
                different["lost" if other is None else "new"].append(name)
        elif not torch.allclose(gradient, other, rtol=1e-4, atol=1e-6 * largest):
            different["different"].append(name)
    for how, names in different.items():
        if names:
            yield f"{len(names)} of {len(expected)} gradients are {how}, first that of {names[0]}"


def main(names: list[str]) -> int:
    """Check the models of these names, and print what is wrong; return the exit status."""
    torch.use_deterministic_algorithms(True)
    torch.set_num_threads(1)
    print(f"transformers {transformers.__version__} in {Path(transformers.__file__).parent}")
    failed = False
    for name in names or MODELS:
        found = list(failures(MODELS[name]))
        failed = failed or bool(found)
        for failure in found or ["passes"]:
            print(f"{name}: {failure}")
    return int(failed)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
