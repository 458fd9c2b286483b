"""The classes that hold stacks of blocks, and the model around them, as text."""

from __future__ import annotations

import textwrap

from tests.contract.arguments import arguments, names_of
from tests.contract.grammar import LIBRARY_SWITCHES, Shape
from tests.contract.loops import LIBRARY_FUNCTION, before_sequential, loop, methods

_KEPT_FUNCTION = "torch.utils.checkpoint.checkpoint"
_FLAG = {
    "true at construction": "True",
    "config flag": "config.use_checkpoint",
    "config gradient_checkpointing": 'getattr(config, "gradient_checkpointing", False)',
    "constructor argument": "gradient_checkpointing",
}
_WITHOUT_FLAG = ("class attribute", "config condition", "forward argument", "train override", "property")
_MODEL_METHODS = {
    "own method": """
def set_grad_checkpointing(self, enable=True):
    {target}.gradient_checkpointing = enable
""",
    "own enable": """
def gradient_checkpointing_enable(self, gradient_checkpointing_kwargs=None, **kwargs):
    {target}.gradient_checkpointing = True

def gradient_checkpointing_disable(self):
    {target}.gradient_checkpointing = False
""",
    "own enable and super": """
def gradient_checkpointing_enable(self, gradient_checkpointing_kwargs=None, **kwargs):
    super().gradient_checkpointing_enable(gradient_checkpointing_kwargs)
    {target}.gradient_checkpointing = True
""",
    "old override": """
def _set_gradient_checkpointing(self, module, value=False):
    if isinstance(module, {owner}):
        module.gradient_checkpointing = value
""",
    "old override by attribute": """
def _set_gradient_checkpointing(self, module, value=False):
    if hasattr(module, "gradient_checkpointing"):
        module.gradient_checkpointing = value
""",
    "new override": """
def _set_gradient_checkpointing(
    self, enable=True, gradient_checkpointing_func=torch.utils.checkpoint.checkpoint, **kwargs
):
    {target}._gradient_checkpointing_func = gradient_checkpointing_func
    {target}.gradient_checkpointing = enable
""",
}
_OWNER_METHODS = {
    "train override": """
def train(self, mode=True):
    self.gradient_checkpointing = mode
    return super().train(mode)
""",
    "property": """
@property
def gradient_checkpointing(self):
    return self.config.use_checkpoint
""",
}


def holds_itself(shape: Shape) -> bool:
    """Tell whether the model holds the stack itself."""
    return shape.owner == "model" and shape.stack not in ("subclass replaces", "stages")


def owner_name(shape: Shape) -> str:
    """Return the class whose object has the loop."""
    if holds_itself(shape):
        return "ToyModel"
    return "ToyOtherEncoder" if shape.stack == "subclass replaces" else "ToyEncoder"


def owner_path(shape: Shape) -> str:
    """Return where a model has the object with the loop."""
    if holds_itself(shape):
        return "self"
    return "self.stages[0]" if shape.stack == "stages" else "self.encoder"


def model_base(shape: Shape) -> str:
    """Return the name of the base of pretrained classes."""
    own = {"llama": "LlamaPreTrainedModel", "library": "PreTrainedModel"}
    return own.get(shape.model_base, "ToyPreTrainedModel")


def support(shape: Shape) -> list[str]:
    """Return the class attributes that say what the library may do."""
    flag = [] if shape.switch == "no support" else ["    supports_gradient_checkpointing = True"]
    return ["    config_class = ToyConfig", '    base_model_prefix = "model"', *flag]


def own_base(shape: Shape) -> str:
    """Return the family's own base of pretrained classes."""
    return "\n".join(["", "class ToyPreTrainedModel(PreTrainedModel):", *support(shape), "", ""])


def encoder(shape: Shape) -> str:
    """Return the class with the loop, where that is not the model itself; and what derives from it."""
    if holds_itself(shape):
        return ""
    is_pretrained = shape.owner == "pretrained encoder"
    argument = ", gradient_checkpointing=False" * (shape.switch == "constructor argument")
    lines = [f"class ToyEncoder({model_base(shape) if is_pretrained else 'nn.Module'}):"]
    if is_pretrained and model_base(shape) != "ToyPreTrainedModel":
        lines += [*support(shape), ""]
    lines += ["    gradient_checkpointing = True", ""] * (shape.switch == "class attribute")
    lines += [f"    def __init__(self, config{argument}):"]
    inner = ["super().__init__(config)"] if is_pretrained else ["super().__init__()", "self.config = config"]
    inner += [*_stack(shape), *_flag(shape), *["self.post_init()"] * is_pretrained]
    lines += _indented(inner, 2)
    lines += [*_indented(_owner_methods(shape)), ""]
    lines += [f"    def forward({_owner_signature(shape)}):", *_indented(_run(shape), 2)]
    lines += [f"        return {names_of(shape).stream}"]
    text = "\n" + "\n".join(lines) + "\n"
    if shape.stack == "subclass replaces":
        text += _replacing_encoder(shape, argument)
    return text


def _replacing_encoder(shape: Shape, argument: str) -> str:
    passed = ", gradient_checkpointing" * bool(argument)
    stack = names_of(shape).stack
    return (
        f"\n\nclass ToyOtherEncoder(ToyEncoder):\n"
        f"    def __init__(self, config{argument}):\n"
        f"        super().__init__(config{passed})\n"
        f"        self.{stack} = nn.ModuleList(\n"
        "            [ToyOtherLayer(config, i) for i in range(config.num_layers)]\n"
        "        )\n"
    )


def _owner_signature(shape: Shape) -> str:
    stream = names_of(shape).stream
    taken = [f"{stream}, attention_mask=None"]
    taken += ["encoder_hidden_states=None"] * (shape.encoder != "none")
    taken += ["past_key_values=None, use_cache=False"] * (shape.cache != "none")
    taken += ["use_checkpoint=False"] * (shape.switch == "forward argument")
    taken += ["output_attentions=False"] * (shape.extra == "flag")
    return ", ".join(["self", *taken, *["**kwargs"] * (shape.extra == "kwargs")])


def _passed(shape: Shape) -> str:
    """Return what the model passes to the object with the loop."""
    names = ["attention_mask", *["encoder_hidden_states"] * (shape.encoder != "none")]
    names += ["past_key_values", "use_cache"] * (shape.cache != "none")
    names += ["use_checkpoint"] * (shape.switch == "forward argument")
    names += ["output_attentions"] * (shape.extra == "flag")
    return ", ".join([*(f"{name}={name}" for name in names), *["**kwargs"] * (shape.extra == "kwargs")])


def _stack(shape: Shape) -> list[str]:
    """Return the statements that fill the stack."""
    name = names_of(shape).stack
    listed = "[ToyLayer(config, i) for i in range(config.num_layers)]"
    statements = {
        "append": [
            f"self.{name} = nn.ModuleList()",
            "for i in range(config.num_layers):",
            f"    self.{name}.append(ToyLayer(config, i))",
        ],
        "extend": [f"self.{name} = nn.ModuleList()", f"self.{name}.extend({listed})"],
        "local list": [
            "built = []",
            "for i in range(config.num_layers):",
            "    built.append(ToyLayer(config, i))",
            f"self.{name} = nn.ModuleList(built)",
        ],
        "factory": [
            f"self.{name} = nn.ModuleList([self._build(config, i) for i in range(config.num_layers)])"
        ],
        "dict of classes": [
            f'self.{name} = nn.ModuleList([LAYERS["toy"](config, i) for i in range(config.num_layers)])'
        ],
        "conditional class": [
            "layer_class = ToyBlock if config.num_layers > 9 else ToyLayer",
            f"self.{name} = nn.ModuleList([layer_class(config, i) for i in range(config.num_layers)])",
        ],
        "sequential": [f"self.{name} = nn.Sequential(*{listed})"],
        "module dict": [
            f"self.{name} = nn.ModuleDict({{str(i): ToyLayer(config, i) for i in range(config.num_layers)}})"
        ],
        "two stacks": [f"self.{name} = nn.ModuleList({listed})", _second(listed)],
        "two stacks and one branch": [f"self.{name} = nn.ModuleList({listed})", _second(listed)],
        "shared": [f"self.{name} = ToyLayer(config)"],
        "clones": [
            "first = ToyLayer(config)",
            f"self.{name} = nn.ModuleList([copy.deepcopy(first) for _ in range(config.num_layers)])",
            f"for index, each in enumerate(self.{name}):",
            "    each.attention.layer_idx = index",
        ],
    }.get(shape.stack, [f"self.{name} = nn.ModuleList({listed})"])
    statements += ["self.bias = nn.Embedding(4, 4)"] * _has_bias(shape)
    return statements + ["self.rotary = nn.Embedding(4, config.hidden_size)"] * (
        shape.rotary == "learned tuple"
    )


def _second(listed: str) -> str:
    return f"self.more = nn.ModuleList({listed.replace('ToyLayer(config, i)', 'ToyBlock(config, 9 + i)')})"


def _has_bias(shape: Shape) -> bool:
    return shape.bias not in ("none", "is None", "residual by keyword")


def _flag(shape: Shape) -> list[str]:
    lines = []
    if shape.switch not in _WITHOUT_FLAG:
        lines += [f"self.gradient_checkpointing = {_FLAG.get(shape.switch, 'False')}"]
    own_function = shape.checkpoint.startswith(("func", "helper", "custom forward"))
    if own_function and shape.switch not in LIBRARY_SWITCHES | {"new override", "own enable and super"}:
        lines += [f"{LIBRARY_FUNCTION} = {_KEPT_FUNCTION}"]
    if shape.checkpoint == "own func":
        lines += [f"self.checkpoint_func = partial({_KEPT_FUNCTION}, use_reentrant=False)"]
    return lines


def _owner_methods(shape: Shape) -> list[str]:
    lines = _OWNER_METHODS.get(shape.switch, "").rstrip().split("\n")
    lines += methods(shape, shape.checkpoint)
    if shape.stack == "factory":
        lines += ["", "def _build(self, config, index):", "    return ToyLayer(config, index)"]
    if shape.bias == "getter by keyword":
        lines += ["", "def get_bias(self, positions):", "    return self.bias(positions)"]
    return [line for line in lines if line] and lines


def _run(shape: Shape) -> list[str]:
    """Return the statements that run the stack, with what is made before it."""
    stream = names_of(shape).stream
    lines = [f"positions = torch.arange({stream}.shape[1])"]
    if shape.branch == "cache guard":
        lines += ["if self.gradient_checkpointing and self.training and use_cache:", "    use_cache = False"]
    if shape.cache != "none":
        lines += ["if use_cache and past_key_values is None:", "    past_key_values = DynamicCache()"]
        if shape.cache_call == "per layer":
            lines += ["caches = [DynamicCache() for _ in range(20)] if use_cache else None"]
    lines += ["memory = encoder_hidden_states"] * (shape.encoder == "alias")
    lines += ["attentions = ()"] * (shape.returns == "tuple with weights")
    lines += ["memo = {}"] * (shape.extra == "shared dict")
    lines += ["index = 0"] * (shape.extra == "index" or shape.cache_call == "per layer")
    lines += _made_before(shape, stream)
    if shape.stack == "sequential":
        lines += before_sequential(shape, shape.checkpoint)
    lines += loop(shape, names_of(shape).stack, shape.checkpoint)
    if shape.stack.startswith("two stacks"):
        lines += loop(shape, "more", "none" if shape.stack.endswith("branch") else shape.checkpoint)
    return lines


def _made_before(shape: Shape, stream: str) -> list[str]:
    bias = {
        "is None": "None",
        "getter by keyword": "self.get_bias(positions)",
    }.get(shape.bias, "self.bias(positions)")
    takes_bias = any(each.parameter == "position_bias" for each in arguments(shape))
    lines = [f"position_bias = {bias}"] * takes_bias
    lines += [f"first = {stream}"] * (shape.bias == "residual by keyword")
    if shape.rotary == "learned tuple":
        lines += ["cos, sin = self.rotary.weight, self.rotary.weight.flip(0)"]
    elif shape.rotary != "none":
        lines += [f"angles = torch.outer(positions, 1.0 / torch.arange(1, 1 + {stream}.shape[-1]))"]
        lines += ["cos, sin = angles.cos(), angles.sin()"]
    return lines


def model(shape: Shape) -> str:
    """Return the model: embeddings, the stack or what holds it, and a head."""
    argument = ", gradient_checkpointing=False" * (shape.switch == "constructor argument")
    lines = [f"class ToyModel({model_base(shape)}):"]
    lines += [] if model_base(shape) == "ToyPreTrainedModel" else support(shape)
    itself = holds_itself(shape)
    lines += ["    gradient_checkpointing = True"] * (itself and shape.switch == "class attribute")
    inner = ["super().__init__(config)"]
    inner += ["self.embeddings = nn.Embedding(config.vocab_size, config.hidden_size)"]
    inner += ["self.memory = ToyMemory(config)"] * shape.encoder.startswith("computed")
    passed = ", gradient_checkpointing" * bool(argument)
    if itself:
        inner += [*_stack(shape), *_flag(shape)]
    elif shape.stack == "stages":
        inner += [f"self.stages = nn.ModuleList([ToyEncoder(config{passed}) for _ in range(2)])"]
    else:
        inner += [f"self.encoder = {owner_name(shape)}(config{passed})"]
    inner += ["self.head = nn.Linear(config.hidden_size, config.vocab_size)"]
    inner += [f"{owner_path(shape)}.gradient_checkpointing = True"] * (shape.switch == "parent sets")
    inner += ["self.post_init()"]
    inner += ["self.gradient_checkpointing_enable()"] * (shape.switch == "enabled in init")
    lines += ["", f"    def __init__(self, config{argument}):", *_indented(inner, 2)]
    lines += ["", "    def get_input_embeddings(self):", "        return self.embeddings"]
    lines += _indented(_model_methods(shape))
    lines += ["", f"    def forward({_model_signature(shape)}):", *_indented(_model_run(shape), 2)]
    return "\n" + "\n".join(lines) + "\n"


def _model_methods(shape: Shape) -> list[str]:
    text = _MODEL_METHODS.get(shape.switch, "").format(target=owner_path(shape), owner=owner_name(shape))
    return [*text.rstrip().split("\n"), *(_owner_methods(shape) if holds_itself(shape) else [])]


def _model_signature(shape: Shape) -> str:
    use = ", use_checkpoint=False" * (shape.switch == "forward argument")
    return (
        "self, input_ids, attention_mask=None, encoder_hidden_states=None, past_key_values=None, "
        f"use_cache=False, output_attentions=False{use}, **kwargs"
    )


def _model_run(shape: Shape) -> list[str]:
    stream = names_of(shape).stream
    lines = [f"{stream} = self.embeddings(input_ids)"]
    if shape.encoder.startswith("computed"):
        lines += [f"encoder_hidden_states = self.memory({stream}.flip(1))"]
    if shape.cache != "none":
        lines += ["if use_cache and past_key_values is None:", "    past_key_values = DynamicCache()"]
    if holds_itself(shape):
        lines += _run(shape)
    elif shape.stack == "stages":
        lines += ["for stage in self.stages:", f"    {stream} = stage({stream}, {_passed(shape)})"]
    else:
        lines += [f"{stream} = self.encoder({stream}, {_passed(shape)})"]
    return [
        *lines,
        f"logits = self.head({stream})",
        "loss = logits.tanh().pow(2).mean()",
        "return loss, logits, past_key_values",
    ]


def _indented(lines: list[str], levels: int = 1) -> list[str]:
    return textwrap.indent("\n".join(lines), "    " * levels).split("\n")
