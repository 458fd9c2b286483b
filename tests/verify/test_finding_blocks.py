"""The blocks of a model and the modules that feed them are found, and nothing is left behind."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest

from tests.verify.planted import imported, specimen

pytestmark = pytest.mark.torch


def _stacked() -> Any:
    """Return a model with a stack of two attention blocks."""
    import torch

    class Block(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.dense = torch.nn.Linear(4, 4)

        def forward(self, states: Any) -> Any:
            mixed = self.dense(states)
            return states + (mixed @ mixed.transpose(-1, -2)) @ states

    model: Any = torch.nn.Module()
    model.embed = torch.nn.Linear(4, 4)
    model.layers = torch.nn.ModuleList([Block(), Block()])
    return model


def test_the_blocks_of_a_stack_are_found_and_their_activations_are_not_kept() -> None:
    import torch

    from gclint.verify.worker.examination.block_finder import BlockFinder

    model = _stacked()
    with BlockFinder(model) as finder:
        states = model.embed(torch.ones(1, 3, 4))
        seen = weakref.ref(states)
        for layer in model.layers:
            states = layer(states)
    del states
    gc.collect()
    assert seen() is None
    trained = [name for name, _ in model.named_parameters()]
    assert [each.name for each in finder.blocks(trained)] == ["layers.0", "layers.1"]
    assert all(each.is_trunk for each in finder.blocks(trained))


@pytest.mark.parametrize(
    ("weigh", "is_found"),
    [
        (lambda states, weight: states @ states.transpose(-1, -2) @ states, True),
        # What is computed from parameters alone is a weight as well.
        (lambda states, weight: states @ weight, False),
        (lambda states, weight: states @ (weight * 2.0), False),
        (lambda states, weight: states @ (weight + states.mean()), True),
    ],
)
def test_only_two_activations_that_are_contracted_mix_tokens(weigh: Any, is_found: bool) -> None:
    import torch

    from gclint.verify.worker.examination.block_finder import BlockFinder

    class Block(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.dense = torch.nn.Linear(4, 4)
            self.weight = torch.nn.Parameter(torch.ones(4, 4))

        def forward(self, states: Any) -> Any:
            return states + weigh(self.dense(states), self.weight)

    model: Any = torch.nn.Module()
    model.embed = torch.nn.Linear(4, 4)
    model.layers = torch.nn.ModuleList([Block(), Block()])
    with BlockFinder(model) as finder:
        states = model.embed(torch.ones(1, 3, 4))
        for layer in model.layers:
            states = layer(states)
    found = finder.blocks([name for name, _ in model.named_parameters()])
    assert [each.name for each in found if each.is_trunk] == ["layers.0", "layers.1"] * is_found


def test_embeddings_that_feed_the_first_block_already_are_not_found(monkeypatch: pytest.MonkeyPatch) -> None:
    from gclint.verify.worker.examination.embeddings import embeddings
    from gclint.verify.worker.examination.subject import Subject

    with imported("frozen_images") as planted:
        monkeypatch.setattr(planted.ToyModel, "get_input_embeddings", lambda self: self.patches)
        assert embeddings(Subject(specimen(planted), "cpu"), ["layers.0", "layers.1"]) == ()


@pytest.mark.parametrize(
    ("name", "module", "present", "fails"),
    [
        # Nothing is returned, and a layer of the framework makes the input.
        ("frozen_images", "patches", None, False),
        # What is returned makes a tuple, and a part of it the tensor.
        ("tuple_of_patches", "patches.projection", "patches", True),
    ],
)
def test_the_module_that_makes_the_input_of_the_first_block_is_found(
    name: str, module: str, present: str | None, fails: bool
) -> None:
    from gclint.verify.worker.examination.embeddings import embeddings
    from gclint.verify.worker.examination.subject import Subject

    with imported(name) as planted:
        (found,) = embeddings(Subject(specimen(planted), "cpu"), ["layers.0", "layers.1"])
    assert (found.model, found.module) == ("ToyModel", module)
    assert (found.present, found.fails) == (present, fails)


class _Parent:
    embed = "of the parent"
    other = "of the other"

    def get_input_embeddings(self) -> str:
        return self.embed


class _WithoutOwn(_Parent):
    pass


class _WithOwn(_Parent):
    def get_input_embeddings(self) -> str:
        return "its own"


@pytest.mark.parametrize(("kind", "expected"), [(_WithoutOwn, "of the parent"), (_WithOwn, "its own")])
def test_a_class_returns_its_own_embeddings_again_once_others_have_been_tried(
    kind: type[_Parent], expected: str
) -> None:
    from gclint.verify.worker.examination.embeddings import _returning

    own = vars(kind).get("get_input_embeddings")
    with _returning(kind, "other"):
        assert kind().get_input_embeddings() == "of the other"
    assert kind().get_input_embeddings() == expected
    assert vars(kind).get("get_input_embeddings") is own
