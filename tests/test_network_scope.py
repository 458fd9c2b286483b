"""Stacks are found however they are filled and run."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from tests.toy_models import IMPORTS, LAYERS, STACK, model, reported

_BOTH = ["ToyLayer", "ToyOtherLayer"]

_FILLED = {
    "generator": ("self.layers = nn.ModuleList(ToyLayer(config, i) for i in range(2))", ["ToyLayer"]),
    "display": ("self.layers = nn.ModuleList([ToyLayer(config), ToyOtherLayer(config)])", _BOTH),
    "unpacked": ("self.layers = nn.ModuleList([*[ToyLayer(config) for _ in range(2)]])", ["ToyLayer"]),
    "repeated list": ("self.layers = nn.ModuleList([ToyLayer(config)] * 2)", ["ToyLayer"]),
    "sum of lists": ("self.layers = nn.ModuleList([ToyLayer(config)] + [ToyOtherLayer(config)])", _BOTH),
    "append of a local": (
        """
        self.layers = nn.ModuleList()
        for index in range(2):
            layer = ToyLayer(config, index)
            if index:
                layer = ToyOtherLayer(config, index)
            self.layers.append(layer)
        """,
        _BOTH,
    ),
    "extend and insert": (
        """
        self.layers = nn.ModuleList([])
        self.layers.extend([ToyLayer(config)])
        self.layers.insert(0, ToyOtherLayer(config))
        """,
        _BOTH,
    ),
    "added in place": (
        """
        self.layers = nn.ModuleList()
        self.layers += [ToyLayer(config) for _ in range(2)]
        """,
        ["ToyLayer"],
    ),
    "local list with a type": (
        """
        layers: list[nn.Module] = []
        layers += [ToyLayer(config)]
        self.layers: nn.ModuleList = nn.ModuleList(layers)
        """,
        ["ToyLayer"],
    ),
    "local comprehension": (
        """
        layers = [ToyLayer(config, i) for i in range(2)]
        self.layers = nn.ModuleList(layers)
        """,
        ["ToyLayer"],
    ),
    "conditional instance": (
        """
        self.layers = nn.ModuleList(
            [ToyLayer(config) if i % 2 else ToyOtherLayer(config) for i in range(2)]
        )
        """,
        _BOTH,
    ),
    "conditional class": (
        """
        block = ToyLayer if config.simple else ToyOtherLayer
        self.layers = nn.ModuleList([block(config) for _ in range(2)])
        """,
        _BOTH,
    ),
    "class chosen by an if": (
        """
        if config.simple:
            block = ToyLayer
        else:
            block = ToyOtherLayer
        self.layers = nn.ModuleList([block(config) for _ in range(2)])
        """,
        _BOTH,
    ),
    "stack chosen by an if": (
        """
        if config.simple:
            self.layers = nn.ModuleList([ToyLayer(config)])
        else:
            self.layers = nn.ModuleList([ToyOtherLayer(config)])
        """,
        _BOTH,
    ),
    "local dict of classes": (
        """
        kinds = {"a": ToyLayer, "b": ToyOtherLayer}
        self.layers = nn.ModuleList([kinds[config.kind](config) for _ in range(2)])
        """,
        _BOTH,
    ),
    "dict of classes at module level": (
        "self.layers = nn.ModuleList([KINDS[kind](config) for kind in config.kinds])",
        _BOTH,
    ),
    "lambda": (
        """
        build = lambda index: ToyLayer(config, index)
        self.layers = nn.ModuleList([build(i) for i in range(2)])
        """,
        ["ToyLayer"],
    ),
    "local function": (
        """
        def build_layer(index):
            if index:
                return ToyOtherLayer(config, index)
            return ToyLayer(config, index)

        self.layers = nn.ModuleList([build_layer(i) for i in range(2)])
        """,
        _BOTH,
    ),
    "local function for a class": (
        """
        def layer_class(index):
            return ToyLayer

        self.layers = nn.ModuleList([layer_class(i)(config) for i in range(2)])
        """,
        ["ToyLayer"],
    ),
    "module's function": ("self.layers = nn.ModuleList(build_layers(config, ToyLayer))", ["ToyLayer"]),
    "factory method": (
        "self.layers = nn.ModuleList([self._build_layer(config, i) for i in range(2)])",
        ["ToyLayer"],
    ),
    "factory method for the stack": ("self.layers = self._build_layers(config)", ["ToyLayer"]),
    "method that fills it": ("self._fill(config)", ["ToyLayer"]),
    "class attribute": (
        "self.layers = nn.ModuleList([self.layer_class(config) for _ in range(2)])",
        ["ToyLayer"],
    ),
    "partial": (
        """
        block = partial(ToyLayer, config)
        self.layers = nn.ModuleList([block(index=i) for i in range(2)])
        """,
        ["ToyLayer"],
    ),
    "copies": (
        """
        layer = ToyLayer(config)
        self.layers = nn.ModuleList([copy.deepcopy(layer) for _ in range(2)])
        """,
        ["ToyLayer"],
    ),
    "Sequential": ("self.layers = nn.Sequential(*[ToyLayer(config) for _ in range(2)])", ["ToyLayer"]),
}
_HELPERS = """
KINDS = {"a": ToyLayer, "b": ToyOtherLayer}


def build_layers(config, layer_class):
    return [layer_class(config) for _ in range(config.depth)]
"""
_METHODS = """
layer_class = ToyLayer

def _build_layer(self, config, index):
    layer = ToyLayer(config, index)
    return layer

def _build_layers(self, config):
    return nn.ModuleList([self._build_layer(config, i) for i in range(2)])

def _fill(self, config):
    self.layers = nn.ModuleList([ToyLayer(config) for _ in range(2)])
"""


@pytest.mark.parametrize("way", _FILLED)
def test_stack_is_found_however_it_is_filled(way: str, tmp_path: Path) -> None:
    init, expected = _FILLED[way]
    text = IMPORTS + LAYERS + _HELPERS + model(textwrap.dedent(init), more=_METHODS)
    assert reported(tmp_path, {"modeling_toy.py": text}) == expected


_RUN = {
    "zip": """
for layer, (each, index) in zip(self.layers, zip(mask, range(2))):
    hidden_states = layer(hidden_states, each)
""",
    "index": """
for index in range(len(self.layers)):
    hidden_states = self.layers[index](hidden_states)
""",
    "local name for the stack": """
layers = self.layers
for layer in layers:
    hidden_states = layer(hidden_states)
""",
    "local name for a layer": """
for index in range(2):
    layer = self.layers[index]
    hidden_states = layer(hidden_states)
""",
    "first of several results": """
for layer in self.layers:
    layer_outputs = layer(hidden_states)
    hidden_states = layer_outputs[0]
""",
    "conditional use": """
for index, layer in enumerate(self.layers):
    if self.training and index in self.skipped:
        continue
    else:
        outputs = layer(hidden_states) if mask is None else layer(hidden_states, mask)
    hidden_states = outputs[0]
""",
    "keyword": """
for layer in self.layers:
    hidden_states = layer(hidden_states=hidden_states)
""",
    "through another name": """
states = hidden_states
for layer in self.layers:
    output = layer(states)
    residual = output
    states = residual * 2
""",
    "reversed": """
for layer in reversed(self.layers):
    hidden_states = layer(hidden_states)
""",
    "legacy branch with a helper": """
for layer in self.layers:
    if self.gradient_checkpointing and self.training:

        def create_custom_forward(module):
            def custom_forward(*inputs):
                return module(*inputs, mask)

            return custom_forward

        hidden_states = torch.utils.checkpoint.checkpoint(create_custom_forward(layer), hidden_states)
    else:
        hidden_states = layer(hidden_states, mask)
""",
    "legacy branch with partial": """
for layer in self.layers:
    if self.gradient_checkpointing and self.training:
        hidden_states = self._gradient_checkpointing_func(partial(layer.__call__, mask=mask), hidden_states)
    else:
        hidden_states = layer(hidden_states, mask=mask)
""",
}


@pytest.mark.parametrize("way", _RUN)
def test_stack_is_found_however_it_is_run(way: str, tmp_path: Path) -> None:
    text = IMPORTS + LAYERS + model(loop=_RUN[way])
    assert reported(tmp_path, {"modeling_toy.py": text}) == ["ToyLayer"]


def test_dict_of_layers_is_a_stack(tmp_path: Path) -> None:
    stack = 'self.layers = nn.ModuleDict({"a": ToyLayer(config), "b": ToyOtherLayer(config)})'
    loop = "for name in self.names:\n    hidden_states = self.layers[name](hidden_states)"
    text = IMPORTS + LAYERS + model(stack, loop)
    assert reported(tmp_path, {"modeling_toy.py": text}) == _BOTH


def test_layers_with_computed_names_are_a_stack(tmp_path: Path) -> None:
    loop = (
        "for index in range(2):\n    layer = getattr(self, 'layer_' + str(index))\n"
        "    hidden_states = layer(hidden_states)"
    )
    for method in ("add_module", "register_module"):
        added = f'for index in range(2):\n    self.{method}(f"layer_{{index}}", ToyLayer(config, index))'
        text = IMPORTS + LAYERS + model(added, loop)
        assert reported(tmp_path, {"modeling_toy.py": text}) == ["ToyLayer"]


def test_class_in_an_else_is_a_block(tmp_path: Path) -> None:
    layers = textwrap.indent(LAYERS, "    ").replace("\n    \n", "\n\n")
    text = f"{IMPORTS}\nif fast_path:\n    from fast import ToyLayer\nelse:\n{layers}\n\n{model()}"
    assert reported(tmp_path, {"modeling_toy.py": text}) == ["ToyLayer"]


def test_class_in_a_class_is_a_block(tmp_path: Path) -> None:
    layers = textwrap.indent(LAYERS.replace("ToyAttention(config)", "Toy.ToyAttention(config)"), "    ")
    layers = layers.replace("ToyOtherLayer(ToyLayer)", "ToyOtherLayer(nn.Module)")
    text = f"{IMPORTS}\nclass Toy:\n{layers}\n\n{model(STACK.replace('ToyLayer', 'Toy.ToyLayer'))}"
    assert reported(tmp_path, {"modeling_toy.py": text}) == ["ToyLayer"]


def test_imported_class_is_a_block(tmp_path: Path) -> None:
    """It is reported where it is defined, if that file runs it, or else where it is run."""
    user = IMPORTS + "from .modeling_layers_of_toy import ToyLayer\n" + model()
    files = {
        "toy/__init__.py": "",
        "toy/modeling_layers_of_toy.py": IMPORTS + LAYERS,
        "toy/modeling_toy.py": user,
    }
    assert reported(tmp_path, files) == ["ToyLayer"]
