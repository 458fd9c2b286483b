"""A name stands for what reaches its place: two loops with one variable are two variables."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from tests.toy_models import IMPORTS, LAYERS, model, reported

_STACKS = """
self.layers = nn.ModuleList([ToyLayer(config) for _ in range(2)])
self.others = nn.ModuleList([ToyOtherLayer(config) for _ in range(2)])
self.heads = nn.ModuleList([ToyLayer(config) for _ in range(2)])
self.parts = nn.ModuleList([ToyOtherLayer(config) for _ in range(2)])
"""
_LOOPS = {
    "a loop that heads nothing": (
        """
        for layer in self.others:
            hidden_states = layer(hidden_states)
        for layer in self.heads:
            outputs = layer(hidden_states)
        """,
        ["ToyOtherLayer"],
    ),
    "a comprehension before": (
        """
        outputs = [layer(mask) for layer in self.heads]
        for layer in self.others:
            hidden_states = layer(hidden_states)
        """,
        ["ToyOtherLayer"],
    ),
    "a comprehension with the name of the loop around it": (
        """
        for layer in self.others:
            outputs = [layer(mask) for layer in self.heads]
            hidden_states = layer(hidden_states)
        """,
        ["ToyOtherLayer"],
    ),
    "one loop in another": (
        """
        for layer in self.heads:
            for layer in self.others:
                hidden_states = layer(hidden_states)
        """,
        ["ToyOtherLayer"],
    ),
    "two loops in one": (
        """
        for _ in range(2):
            for layer in self.heads:
                outputs = layer(mask)
            for layer in self.others:
                hidden_states = layer(hidden_states)
        """,
        ["ToyOtherLayer"],
    ),
    "unpacked": (
        """
        for index, layer in enumerate(self.heads):
            outputs = layer(mask)
        for layer, index in zip(self.others, range(2)):
            hidden_states = layer(hidden_states)
        """,
        ["ToyOtherLayer"],
    ),
    "bound anew in the body": (
        """
        for index, layer in enumerate(self.heads):
            layer = self.others[index]
            hidden_states = layer(hidden_states)
        """,
        ["ToyOtherLayer"],
    ),
    "bound anew behind the call": (
        """
        for layer in self.others:
            hidden_states = layer(hidden_states)
            layer = self.heads[0]
        """,
        ["ToyOtherLayer"],
    ),
    "bound anew where the step ends": (
        """
        for index, layer in enumerate(self.others):
            if index:
                layer = self.heads[index]
                outputs = layer(mask)
                continue
            hidden_states = layer(hidden_states)
        """,
        ["ToyOtherLayer"],
    ),
    "wrapped by something unknown": (
        """
        for layer in self.others:
            layer = unknown(layer)
            hidden_states = layer(hidden_states)
        """,
        ["ToyOtherLayer"],
    ),
    "while": (
        """
        layer = self.heads[0]
        index = 0
        while index < 2:
            layer = self.others[index]
            hidden_states = layer(hidden_states)
            index += 1
        """,
        ["ToyOtherLayer"],
    ),
    "with": (
        """
        for layer in self.heads:
            outputs = layer(mask)
        with unknown() as layer:
            for _ in range(2):
                hidden_states = layer(hidden_states)
        """,
        [],
    ),
    "after the loop": (
        """
        layer = self.layers[0]
        for layer in self.others:
            pass
        for _ in range(2):
            hidden_states = layer(hidden_states)
        """,
        ["ToyLayer", "ToyOtherLayer"],
    ),
    "an exception": (
        """
        layer = self.heads[0]
        try:
            layer = self.layers[0]
        except IndexError:
            layer = self.others[0]
        for _ in range(2):
            hidden_states = layer(hidden_states)
        """,
        ["ToyLayer", "ToyOtherLayer"],
    ),
    "a stack with two names": (
        """
        layers = self.heads
        for layer in layers:
            outputs = layer(mask)
        layers = self.others
        for layer in layers:
            hidden_states = layer(hidden_states)
        """,
        ["ToyOtherLayer"],
    ),
    "functions of one name": (
        """
        for layer in self.heads:
            def run(states):
                return layer(states)
            outputs = run(mask)
        for layer in self.others:
            def run(states):
                return layer(states)
            hidden_states = run(hidden_states)
        """,
        ["ToyOtherLayer"],
    ),
    "a match": (
        """
        layer = self.heads[0]
        match mask:
            case None:
                layer = self.others[0]
            case _:
                layer = self.parts[0]
        for _ in range(2):
            hidden_states = layer(hidden_states)
        """,
        ["ToyLayer", "ToyOtherLayer"],
    ),
}


@pytest.mark.parametrize("case", _LOOPS)
def test_loops_with_one_variable(case: str, tmp_path: Path) -> None:
    loop, expected = _LOOPS[case]
    text = IMPORTS + LAYERS + "\n\n" + model(_STACKS, textwrap.dedent(loop))
    assert reported(tmp_path, {"modeling_toy.py": text}) == expected


_SEQUENCE = "self.layers = nn.Sequential(*[ToyLayer(config) for _ in range(2)])"
_OF_SEQUENCES = "self.layers = nn.ModuleList([nn.Sequential(*[ToyLayer(config) for _ in range(2)])])"


@pytest.mark.parametrize(
    ("init", "loop", "expected"),
    [
        (_SEQUENCE, "blocks = self.layers\nhidden_states = blocks(hidden_states)", ["ToyLayer"]),
        (_OF_SEQUENCES, "for stage in self.layers:\n    hidden_states = stage(hidden_states)", ["ToyLayer"]),
        (_SEQUENCE, "hidden_states = self.layers(hidden_states, mask)", []),
        (_SEQUENCE, "hidden_states = self.layers(input=hidden_states)", []),
    ],
)
def test_sequence_that_is_called_as_a_whole(
    init: str, loop: str, expected: list[str], tmp_path: Path
) -> None:
    text = IMPORTS + LAYERS + "\n\n" + model(init, loop)
    assert reported(tmp_path, {"modeling_toy.py": text}) == expected
