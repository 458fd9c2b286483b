"""The blocks of a model and the modules that feed them are found, and nothing is left behind."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest

from tests.verify.planted import imported, tiny_model

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

    from gclint.verify.worker.examination.blocks import BlockFinder

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


def _found(model: Any, run: Callable[[Any], Any], without: str = "nothing") -> tuple[Any, ...]:
    """Return the blocks that are found in a forward pass.

    Args:
        model: the model.
        run: does the forward pass.
        without: the beginning of the names of parameters that receive no gradient.
    """
    from gclint.verify.worker.examination.blocks import BlockFinder

    with BlockFinder(model) as finder:
        run(model)
    trained = [name for name, _ in model.named_parameters() if not name.startswith(without)]
    blocks: tuple[Any, ...] = finder.blocks(trained)
    return blocks


def _through(model: Any, times: int = 1, layers: Any = None) -> Any:
    import torch

    states = model.embed(torch.ones(1, 3, 4))
    for _ in range(times):
        for layer in model.layers if layers is None else layers:
            states = layer(states)
    return states


def _in_advance(model: Any) -> Any:
    """Run the blocks twice without gradients, as a recurrent model does that is trained on its last pass."""
    import torch

    with torch.no_grad():
        _through(model, 2)
    return _through(model)


def _afterwards(model: Any) -> Any:
    import torch

    states = _through(model)
    with torch.no_grad():
        _through(model, 3)
    return states


def _parts_afterwards(model: Any) -> Any:
    states = _through(model)
    return model.layers[1].dense(model.layers[0].dense(states))


@pytest.mark.parametrize(
    ("run", "runs"),
    [
        # A part of a block that the model calls as well is not the block.
        (_parts_afterwards, 1),
        (_through, 1),
        (lambda model: _through(model, 2), 2),
        (_in_advance, 1),
        (_afterwards, 1),
        (lambda model: _in_advance(model) + _through(model), 2),
    ],
)
def test_only_runs_with_gradients_are_runs_to_recompute(run: Callable[[Any], Any], runs: int) -> None:
    found = [(each.name, each.inside, each.runs) for each in _found(_stacked(), run)]
    assert found == [(name, f"{name}.dense", runs) for name in ("layers.0", "layers.1")]


def _never(model: Any) -> Any:
    import torch

    with torch.no_grad():
        return _through(model)


def _beside_one_another(model: Any) -> None:
    for each in model.layers:
        _through(model, layers=[each])


def _one_twice_and_the_other_beside(model: Any) -> None:
    _through(model, 2, model.layers[:1])
    _through(model, layers=model.layers[1:])


def _fewer_tokens_between(model: Any) -> None:
    states = _through(model, layers=model.layers[:1])
    model.layers[1](states[:, :2])


@pytest.mark.parametrize(
    ("run", "without", "names", "is_lone"),
    [
        (_through, "nothing", ["layers.0", "layers.1"], False),
        (_through, "layers.1", ["layers.0"], False),
        (_through, "layers", [], False),
        (_never, "nothing", [], False),
        # Of blocks that do not feed one another, it is unclear whether they are blocks.
        (lambda model: _through(model, layers=model.layers[:1]), "nothing", ["layers.0"], True),
        (_beside_one_another, "nothing", ["layers.0", "layers.1"], True),
        (_one_twice_and_the_other_beside, "nothing", ["layers.0", "layers.1"], True),
        (_fewer_tokens_between, "nothing", ["layers.0", "layers.1"], True),
        # One parameter of a block is enough.
        (_through, "layers.0.dense.bias", ["layers.0", "layers.1"], False),
    ],
)
def test_a_block_runs_with_gradients_and_receives_some(
    run: Callable[[Any], Any], without: str, names: list[str], is_lone: bool
) -> None:
    found = _found(_stacked(), run, without)
    assert [each.name for each in found] == names
    assert all((each.is_lone, each.is_trunk) == (is_lone, not is_lone) for each in found)


def _of(mixes: list[Callable[..., Any] | None], size: int = 4) -> Any:
    """Return a model with a stack of blocks, each of which combines its states in one of these ways.

    Args:
        mixes: what each computes from its projected states and its weight; None for nothing.
        size: how many units there are within a block that combines nothing.
    """
    import torch

    class Block(torch.nn.Module):  # type: ignore[misc]
        def __init__(self, mix: Callable[..., Any] | None) -> None:
            super().__init__()
            self.mix = mix
            self.dense = torch.nn.Linear(4, 4 if mix else size)
            self.drop = torch.nn.Dropout(0.0)
            self.out = torch.nn.Linear(4 if mix else size, 4)

        def forward(self, states: Any) -> Any:
            mixed = self.drop(self.dense(states))
            return states + self.out(mixed if self.mix is None else self.mix(mixed, self.dense.weight))

    model: Any = torch.nn.Module()
    model.embed = torch.nn.Linear(4, 4)
    model.layers = torch.nn.ModuleList([Block(each) for each in mixes])
    return model


def _attention(mixed: Any, _weight: Any) -> Any:
    return (mixed @ mixed.transpose(-1, -2)) @ mixed


def _einsum(mixed: Any, _weight: Any) -> Any:
    import torch

    return torch.einsum("bij,bkj,bkl->bil", mixed, mixed, mixed)


def _added(mixed: Any, weight: Any) -> Any:
    import torch

    return torch.baddbmm(mixed, mixed, weight.unsqueeze(0))


def _constant(mixed: Any, _weight: Any) -> Any:
    import torch

    return mixed @ torch.ones(4, 4)


@pytest.mark.parametrize(
    ("mix", "is_block"),
    [
        (_attention, True),
        (_einsum, True),
        (lambda mixed, weight: mixed @ (weight + mixed.mean()), True),
        # A projection combines the states of one token with weights, however these are made.
        (lambda mixed, weight: mixed @ weight, False),
        (lambda mixed, weight: mixed @ (2 * weight), False),
        (lambda mixed, weight: mixed @ (2 * weight).tanh().transpose(0, 1), False),
        (_added, False),
        (_constant, False),
        (lambda mixed, _weight: mixed * mixed, False),
    ],
)
def test_blocks_contract_activations_with_each_other(mix: Callable[..., Any], is_block: bool) -> None:
    found = _found(_of([mix, mix]), _through)
    assert [(each.name, each.runs) for each in found] == (
        [("layers.0", 1), ("layers.1", 1)] if is_block else []
    )


@pytest.mark.parametrize(
    ("mixes", "size", "names"),
    [
        # A recurrent block takes turns with attention, and a small adapter is none.
        ([_attention, None, _attention], 4, ["layers.0", "layers.1", "layers.2"]),
        ([_attention, None, _attention], 3, ["layers.0", "layers.1", "layers.2"]),
        ([_attention, None, _attention], 1, ["layers.0", "layers.2"]),
        ([None, None], 4, []),
    ],
)
def test_a_module_between_blocks_is_one_if_it_is_as_large(mixes: Any, size: int, names: list[str]) -> None:
    assert [each.name for each in _found(_of(mixes, size), _through)] == names


def _stack_of(kinds: str) -> Any:
    """Return a model with a stack of blocks that mix nothing, each of the class with this letter."""
    import torch

    def make(self: Any) -> None:
        torch.nn.Module.__init__(self)
        self.up, self.act, self.down = torch.nn.Linear(4, 4), torch.nn.Tanh(), torch.nn.Linear(4, 4)

    def run(self: Any, states: Any) -> Any:
        return states + self.down(self.act(self.up(states)))

    def make_bare(self: Any) -> None:
        torch.nn.Module.__init__(self)
        self.act = torch.nn.Tanh()

    module = torch.nn.Module
    base = type("Base", (module,), {"__init__": make, "forward": run})
    bare = {"__init__": make_bare, "forward": lambda self, states: states + self.act(states)}
    made = {each: type(each, (base,), {}) for each in "AB"}
    made["C"] = type("C", (module,), {"__init__": make, "forward": run})
    made["D"] = type("D", (module,), bare)
    model: Any = torch.nn.Module()
    model.embed = torch.nn.Linear(4, 4)
    model.layers = torch.nn.ModuleList([made[each]() for each in kinds])
    return model


@pytest.mark.parametrize(
    ("kinds", "beside", "counted", "why"),
    [
        ("AA", 0, ["layers.0", "layers.1"], ()),
        # A base of the project is enough, one of the framework is not.
        ("AB", 0, ["layers.0", "layers.1"], ()),
        ("AC", 0, [], ("share no class",)),
        ("ACA", 0, ["layers.0", "layers.2"], ("share no class",)),
        # What has no parameters has nothing to train.
        ("DD", 0, [], ()),
        ("AA", 100_000, [], ("save 0% of the bytes",)),
        ("AAAA", 300, ["layers.0", "layers.1", "layers.2", "layers.3"], ()),
        ("AAAA", 3000, [], ("save ",)),
    ],
)
def test_a_stack_counts_by_its_classes_and_by_what_it_saves(
    kinds: str, beside: int, counted: list[str], why: tuple[str, ...]
) -> None:
    import torch

    from gclint.verify.worker.examination.blocks import BlockFinder
    from gclint.verify.worker.examination.observers import SavedBytes

    model = _stack_of(kinds)
    with BlockFinder(model) as finder, SavedBytes(model, finder.note_saved):
        large = torch.ones(max(beside, 1), requires_grad=True).tanh()
        _through(model)
    found = finder.blocks([name for name, _ in model.named_parameters()])
    assert [each.name for each in found if each.is_trunk] == counted
    assert len(finder.uncounted) == len(why)
    assert all(each in said for each, said in zip(why, finder.uncounted, strict=True))
    del large


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

    from gclint.verify.worker.examination.blocks import BlockFinder

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
    from gclint.verify.worker.examination.model_under_test import ModelUnderTest

    with imported("frozen_images") as planted:
        monkeypatch.setattr(planted.ToyModel, "get_input_embeddings", lambda self: self.patches)
        assert embeddings(ModelUnderTest(tiny_model(planted), "cpu"), ["layers.0", "layers.1"]) == ()


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
    from gclint.verify.worker.examination.model_under_test import ModelUnderTest

    with imported(name) as planted:
        (found,) = embeddings(ModelUnderTest(tiny_model(planted), "cpu"), ["layers.0", "layers.1"])
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
