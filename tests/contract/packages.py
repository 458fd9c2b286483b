"""A generated model as the files of a package, and how it can be switched to checkpointing and trained."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from tests.contract.arguments import names_of, plain_arguments
from tests.contract.blocks import attention, base_block, block
from tests.contract.grammar import Shape
from tests.contract.owners import encoder, model, own_base, owner_name, owner_path

CONFIGURATION = """\
from transformers import PretrainedConfig


class ToyConfig(PretrainedConfig):
    model_type = "toy"

    def __init__(self, hidden_size=8, num_layers=3, vocab_size=16, use_checkpoint=False, **kwargs):
        super().__init__(**kwargs)
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.vocab_size = vocab_size
        self.dropout = 0.3
        self.use_checkpoint = use_checkpoint
        self.initializer_range = 0.5
"""
_MEMORY = """
class ToyMemory(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.project = nn.Linear(config.hidden_size, config.hidden_size)

    def forward(self, states):
        return self.project(states).tanh()

"""
_WRAPPER = """
def run_checkpointed(module, *inputs):
    return torch.utils.checkpoint.checkpoint(module, *inputs, use_reentrant=False)

"""
_PATCHED_LAYER = """\
def patched_forward(self, *args, **kwargs):
    return type(self).forward(self, *args, **kwargs)


"""
_WRAPPED_BLOCK = """
class Checkpointed(nn.Module):
    def __init__(self, module):
        super().__init__()
        self.module = module

    def forward(self, *inputs, **options):
        return torch.utils.checkpoint.checkpoint(self.module, *inputs, use_reentrant=False, **options)


"""
_SCRIPTS = {
    "script sets": "    {owner}.gradient_checkpointing = True\n",
    "script sets all": (
        "    for module in model.modules():\n"
        '        if hasattr(module, "gradient_checkpointing"):\n'
        "            module.gradient_checkpointing = True\n"
    ),
    "no support": "    {owner}.gradient_checkpointing = True\n",
    "script replaces forward": "    {owner_class}.forward = patched_forward\n",
    "script replaces layer forward": (
        "    for layer in {owner}.{stack}:\n"
        "        layer.forward = types.MethodType(patched_forward, layer)\n"
    ),
    "script checkpoints": (
        "    for layer in {owner}.{stack}:\n"
        "        layer.forward = partial(\n"
        "            torch.utils.checkpoint.checkpoint, layer.forward, use_reentrant=False\n"
        "        )\n"
    ),
    "script wraps blocks": (
        "    for index, layer in enumerate({owner}.{stack}):\n"
        "        {owner}.{stack}[index] = Checkpointed(layer)\n"
    ),
}


@dataclass(frozen=True)
class Package:
    """Files by name, and the ways in which the model is built and switched to checkpointing."""

    files: dict[str, str]
    ways: tuple[dict[str, Any], ...]
    scenarios: tuple[str, ...]

    def only(self, place: str) -> Package:
        """Return it with one scenario and way only, as ``scenario, way``, and what that is compared with."""
        scenario, _, name = place.partition(", ")
        ways = tuple(way for way in self.ways if way.get("off") or way["name"] == name)
        # If a model runs at all is asked of the first scenario.
        wanted = {self.scenarios[0], scenario}
        return replace(self, ways=ways, scenarios=tuple(each for each in self.scenarios if each in wanted))

    def under(self, release: str) -> Package:
        """Return it without the way that the library's default is there, where only the library switches."""
        default = f"enable(use_reentrant={release.startswith('4.')})"
        return replace(self, ways=tuple(way for way in self.ways if way["name"] != default))


def package(shape: Shape) -> Package:
    """Write a model of this shape."""
    files = {"__init__.py": "", "configuration_toy.py": CONFIGURATION, "modeling_toy.py": _modeling(shape)}
    if "other file" in shape.block:
        files["layers.py"] = _layers(shape)
    if shape.model_base == "own base in other file":
        files["modeling_base.py"] = (
            "from transformers import PreTrainedModel\n\nfrom .configuration_toy import ToyConfig\n\n"
            + own_base(shape).rstrip()
            + "\n"
        )
    if shape.checkpoint == "wrapper elsewhere":
        files["utils.py"] = "import torch\nimport torch.utils.checkpoint\n\n" + _WRAPPER.rstrip() + "\n"
    script = _script(shape)
    if script:
        files["train.py"] = script
    return Package(files, tuple(_ways(shape)), _scenarios(shape))


def _modeling(shape: Shape) -> str:
    parts = []
    if shape.model_base.startswith("own base") and not shape.model_base.endswith("file"):
        parts.append(own_base(shape))
    if shape.block != "other file":
        parts += [attention(shape), *(block(shape, name) for name in _blocks(shape))]
    if shape.encoder.startswith("computed"):
        parts.append(_MEMORY.rstrip() + "\n")
    if shape.checkpoint == "wrapper":
        parts.append(_WRAPPER.rstrip() + "\n")
    if shape.stack == "dict of classes":
        parts.append('\nLAYERS = {"toy": ToyLayer}\n')
    parts += [encoder(shape), model(shape)]
    if shape.runner == "free function":
        parts.append(_free_function(shape))
    body = "\n".join(part for part in parts if part)
    return "\n".join(_imports(shape, body)) + "\n\n" + body


def _blocks(shape: Shape) -> list[str]:
    names = ["ToyLayer"]
    names += ["ToyBlock"] * (shape.stack.startswith("two stacks") or shape.stack == "conditional class")
    return names + ["ToyOtherLayer"] * (shape.stack == "subclass replaces")


def _imports(shape: Shape, body: str) -> list[str]:
    lines = ["import copy"] * ("copy." in body) + ["import random"] * ("random.random" in body)
    lines += ["from functools import partial"] * ("partial(" in body)
    lines += [""] * bool(lines)
    lines += ["import torch"]
    lines += ["import torch.utils.checkpoint"] * ("torch.utils.checkpoint" in body)
    lines += ["from torch import nn"]
    lines += ["from transformers import DynamicCache"] * ("DynamicCache" in body)
    lines += ["from transformers import PreTrainedModel"] * ("(PreTrainedModel)" in body)
    if shape.block == "guarded import":
        lines += ["", "try:", "    from transformers.modeling_layers import GradientCheckpointingLayer"]
        lines += ["except ImportError:", "    GradientCheckpointingLayer = nn.Module", ""]
    elif "(GradientCheckpointingLayer)" in body:
        lines += ["from transformers.modeling_layers import GradientCheckpointingLayer"]
    lines += ["from transformers.modeling_outputs import BaseModelOutput"] * ("BaseModelOutput(" in body)
    if "LlamaPreTrainedModel" in body:
        lines += ["from transformers.models.llama.modeling_llama import LlamaPreTrainedModel"]
    lines += ["", "from .configuration_toy import ToyConfig"]
    if shape.block == "other file":
        lines += [f"from .layers import {', '.join(sorted(_blocks(shape)))}"]
    elif "other file" in shape.block:
        lines += ["from .layers import ToyBaseLayer"]
    lines += ["from .modeling_base import ToyPreTrainedModel"] * (
        shape.model_base == "own base in other file"
    )
    return lines + ["from .utils import run_checkpointed"] * (shape.checkpoint == "wrapper elsewhere")


def _layers(shape: Shape) -> str:
    if shape.block == "other file":
        body = "\n".join([attention(shape), *(block(shape, name) for name in _blocks(shape))])
    else:
        body = base_block(shape)
    lines = ["import torch", "from torch import nn"]
    lines = ["import random", "", *lines] if "random.random" in body else lines
    if "(GradientCheckpointingLayer)" in body:
        lines += ["from transformers.modeling_layers import GradientCheckpointingLayer"]
    lines += ["from transformers.modeling_outputs import BaseModelOutput"] * ("BaseModelOutput(" in body)
    return "\n".join(lines) + "\n\n" + body.rstrip() + "\n"


def _free_function(shape: Shape) -> str:
    """Return a function that runs a model's blocks without its forward, in a simple way."""
    stream, item = names_of(shape).stream, names_of(shape).item
    target = owner_path(shape).replace("self", "model")
    simple = replace(
        shape, encoder="none", bias="none", cache="none", rotary="none", extra="none", sides="same"
    )
    # Positions are those of the block itself.
    call = shape.call if shape.order == "activations first" or shape.call == "keyword" else "mixed"
    simple = replace(simple, checkpoint="none", order="activations first", call=call)
    passed = plain_arguments(simple)
    result = f"{stream} = output if isinstance(output, torch.Tensor) else output[0]"
    return (
        "\n\ndef run_blocks(model, input_ids, attention_mask=None, **kwargs):\n"
        f"    {stream} = model.embeddings(input_ids)\n"
        f"    for {item} in {target}.{names_of(shape).stack}:\n"
        f"        output = {item}({passed})\n"
        f"        {result}\n"
        f"    logits = model.head({stream})\n"
        "    return logits.tanh().pow(2).mean(), logits, None\n"
    )


def _script(shape: Shape) -> str:
    """Return a script that changes a model from outside, or nothing."""
    parts = [_SCRIPTS[key] for key in (shape.switch, shape.runner) if key in _SCRIPTS]
    if not parts:
        return ""
    function = ""
    if shape.runner == "script replaces forward":
        function = _patched_owner(shape)
    elif shape.runner == "script replaces layer forward":
        function = _PATCHED_LAYER
    elif shape.runner == "script wraps blocks":
        function = _WRAPPED_BLOCK.lstrip("\n")
    owner, stack = owner_path(shape).replace("self", "model"), names_of(shape).stack
    body = "".join(parts).format(owner=owner, owner_class=owner_name(shape), stack=stack)
    imports = [
        "import types",
        "from functools import partial",
        "",
        "import torch",
        "import torch.utils.checkpoint",
    ]
    imports += ["from torch import nn", "", f"from .modeling_toy import {owner_name(shape)}"]
    imports += ["from .modeling_toy import ToyModel"] * (owner_name(shape) != "ToyModel")
    imports += ["from .configuration_toy import ToyConfig"]
    return (
        "\n".join(imports)
        + "\n\n\n"
        + function
        + f"def prepare(model):\n{body}\n\n"
        + 'if __name__ == "__main__":\n    prepare(ToyModel(ToyConfig()))\n'
    )


def _patched_owner(shape: Shape) -> str:
    """Return a forward, put in the place of the encoder's, with a legacy branch of its own."""
    text = encoder(
        replace(shape, checkpoint="func call", branch="if", switch="library", stack="comprehension")
    )
    start = text.index("    def forward(")
    lines = text[start:].rstrip().split("\n")
    return "\n".join(line[4:] for line in lines).replace("def forward(", "def patched_forward(") + "\n\n\n"


_ON_AS_BUILT = frozenset(
    ("enabled in init", "true at construction", "class attribute", "parent sets", "train override")
)


def _ways(shape: Shape) -> list[dict[str, Any]]:
    """Return how the model can be switched to checkpointing, the way without it first."""
    script = bool(_script(shape))
    is_patched = shape.runner.startswith("script")
    ways: list[dict[str, Any]] = [{"name": "plain", "off": True, "script": is_patched}]
    ways += [{"name": "as built"}] * (shape.switch in _ON_AS_BUILT)
    for name, arguments in (
        ("enable()", []),
        ("enable(use_reentrant=True)", [{"use_reentrant": True}]),
        ("enable(use_reentrant=False)", [{"use_reentrant": False}]),
    ):
        ways.append(
            {"name": name, "call": ["gradient_checkpointing_enable", arguments], "script": is_patched}
        )
    if script and not is_patched:
        ways.append({"name": "script", "script": True})
    if shape.switch in ("config flag", "config condition", "property"):
        ways.append({"name": "configuration", "config": {"use_checkpoint": True}})
    if shape.switch == "config gradient_checkpointing":
        ways.append({"name": "configuration", "config": {"gradient_checkpointing": True}})
    if shape.switch == "constructor argument":
        ways.append({"name": "constructor", "model": {"gradient_checkpointing": True}})
    if shape.switch == "own method":
        ways.append({"name": "own method", "call": ["set_grad_checkpointing", []]})
    if shape.switch == "forward argument":
        ways.append({"name": "forward argument", "inputs": {"use_checkpoint": True}})
    if shape.runner == "free function":
        ways += [{**way, "name": f"{way['name']}, free function", "run": "run_blocks"} for way in ways]
    return ways


def _scenarios(shape: Shape) -> tuple[str, ...]:
    found = ["train", "frozen base", "eval"]
    found += ["train with cache", "frozen base with cache", "inference with cache"] * (shape.cache != "none")
    found += ["train with fixed encoder states"] * shape.encoder.startswith("given")
    return tuple(found)
