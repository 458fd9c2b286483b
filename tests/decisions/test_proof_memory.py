"""What a forward pass leaves in memory, who keeps it, and what each further block adds."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import pytest

pytestmark = pytest.mark.torch

_WIDTH = 8
_STATES = 4 * _WIDTH * 4
"""The bytes of the hidden states of four tokens."""


@cache
def _parts() -> tuple[Any, Any]:
    """Return the classes of a block and of a model, since torch is imported only where it is needed."""
    import torch
    from torch.utils.checkpoint import checkpoint

    class Block(torch.nn.Module):  # type: ignore[misc]
        """Checkpoints its inner part itself; ``keyword`` is what it passes to it besides hidden states."""

        def __init__(self, keyword: Any) -> None:
            super().__init__()
            self.dense = torch.nn.Linear(_WIDTH, _WIDTH)
            self.keyword = keyword

        def inner(self, states: Any, **keywords: Any) -> Any:
            for each in keywords.values():
                states = states * each
            return torch.sigmoid(self.dense(states))

        def forward(self, states: Any) -> Any:
            keywords = {} if self.keyword is None else {"scale": self.keyword(states)}
            return checkpoint(self.inner, states, use_reentrant=False, **keywords)

    class Model(torch.nn.Module):  # type: ignore[misc]
        def __init__(self, count: int, keyword: Any, keep: Any) -> None:
            super().__init__()
            self.layers = torch.nn.ModuleList(Block(keyword) for _ in range(count))
            self.kept: list[Any] = []
            self.keep = keep

        def forward(self, states: Any) -> Any:
            returned: dict[str, Any] = {}
            for layer in self.layers:
                states = layer(states)
                self.keep(self, returned, states)
            return {"last": states, **returned}

    return Block, Model


def _nothing(model: Any, returned: Any, states: Any) -> None:
    pass


def _forward(
    count: int,
    evaluate: Callable[[Any], Any],
    *,
    keyword: Any = None,
    keep: Callable[[Any, Any, Any], None] = _nothing,
) -> Any:
    import torch

    from gclint.verify.worker.footprint.fake import Meter
    from gclint.verify.worker.footprint.step import forward

    _, model_class = _parts()
    model = model_class(count, keyword, keep)
    names = [f"layers.{number}" for number in range(count)]
    meter = Meter(model)
    states = torch.ones(4, _WIDTH).requires_grad_()
    with meter:
        found, loss = forward(model, {"states": states}, names, evaluate, is_plain=False, meter=meter)
    loss.backward()
    return found


def _returned(model: Any, returned: Any, states: Any) -> None:
    returned[f"hidden_{len(returned)}"] = (states.detach() * 2,)


def _in_list(model: Any, returned: Any, states: Any) -> None:
    model.kept.append(states.detach() * 2)


def _boundaries(model: Any, returned: Any, states: Any) -> None:
    model.kept.append(states)


def _views(model: Any, returned: Any, states: Any) -> None:
    returned[f"hidden_{len(returned)}"] = (made := states.detach() * 2)
    model.kept.append(made[:1])


@pytest.mark.parametrize(
    ("keep", "others"),
    [
        # What is returned is the caller's.
        (_returned, 0),
        (_views, 0),
        # What the model keeps for itself is not.
        (_in_list, 3),
        # A boundary is kept anyway; what follows the last block is returned.
        (_boundaries, 0),
        (_nothing, 0),
    ],
)
def test_something_else_keeps_what_is_neither_returned_nor_kept_anyway(keep: Any, others: int) -> None:
    from gclint.verify.worker.footprint.kept import Kept

    def evaluate(kept: Kept) -> list[tuple[str, int]]:
        return [(each.block, each.size) for each in kept.others]

    assert _forward(3, evaluate, keep=keep) == [(f"layers.{number}", _STATES) for number in range(others)]


def _added(count: int, **facts: Any) -> list[tuple[int, list[tuple[str, int, int]], bool]]:
    """Return what each further block adds: all bytes, and its extras with keeper, number and bytes."""
    from gclint.verify.worker.footprint.kept import additions

    found = _forward(count, lambda kept: additions("non-reentrant", kept.records(), kept), **facts)
    assert all(each.boundary_bytes == _STATES and each.blocks == count for each in found)
    return [
        (
            each.added_bytes - each.boundary_bytes,
            [(extra.operation, extra.count, extra.size) for extra in each.extras],
            each.recomputed,
        )
        for each in found
    ]


def _own(states: Any) -> Any:
    return states.detach() * 2


def _shared() -> Callable[[Any], Any]:
    """Return a function that makes something in the second block, for it and all later ones."""
    made: list[Any] = []

    def keyword(states: Any) -> Any:
        made.append(states.detach() * 2 if len(made) < 2 else made[1])
        return made[-1]

    return keyword


@pytest.mark.parametrize(
    ("count", "keyword", "added"),
    [
        (4, None, 0),
        (2, None, 0),
        # Each block makes a tensor, which its checkpoint holds.
        (4, _own, _STATES),
        (3, _own, _STATES),
        # Nothing else shows that further blocks would as well.
        (2, _own, _STATES),
    ],
)
def test_a_block_adds_its_boundary_and_what_its_checkpoint_holds(
    count: int, keyword: Any, added: int
) -> None:
    extras = [("checkpoint", 1, added)] if added else []
    assert _added(count, keyword=keyword) == [(added, extras, True)]


def test_what_one_of_several_blocks_makes_for_the_later_ones_is_not_added_by_each() -> None:
    assert _added(4, keyword=_shared()) == [(0, [], True)]


def test_what_blocks_leave_in_a_list_is_added_by_each() -> None:
    assert _added(4, keep=_in_list) == [(_STATES, [("something else", 1, _STATES)], True)]
    assert _added(4, keep=_returned) == [(0, [], True)]


def test_one_block_alone_adds_nothing_that_is_known() -> None:
    assert _added(1, keyword=_own) == []


_EARLY = pytest.mark.xfail(
    reason="what a checkpoint around a block holds is counted with the block before it"
)


@pytest.mark.parametrize("count", [pytest.param(2, marks=_EARLY), pytest.param(3, marks=_EARLY), 4, 5])
def test_what_a_checkpoint_around_a_block_holds_belongs_to_that_block(count: int) -> None:
    import torch
    from torch.utils.checkpoint import checkpoint

    from gclint.verify.worker.footprint.kept import additions
    from gclint.verify.worker.footprint.step import forward

    class Block(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.dense = torch.nn.Linear(_WIDTH, _WIDTH)

        def forward(self, states: Any, scale: Any) -> Any:
            return torch.sigmoid(self.dense(states * scale))

    class Model(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.layers = torch.nn.ModuleList(Block() for _ in range(count))

        def forward(self, states: Any) -> Any:
            for layer in self.layers:
                states = checkpoint(layer, states, scale=states.detach() * 2, use_reentrant=False)
            return {"last": states}

    states = torch.ones(4, _WIDTH).requires_grad_()
    (added,), _ = forward(
        Model(),
        {"states": states},
        [f"layers.{number}" for number in range(count)],
        lambda kept: additions("non-reentrant", kept.records(), kept),
        is_plain=False,
    )
    assert added.added_bytes - added.boundary_bytes == _STATES


@pytest.mark.parametrize(
    ("way", "is_held"),
    [("keyword", True), ("partial", True), ("partial keyword", True), ("closure", True), ("weight", False)],
)
def test_a_checkpoint_holds_all_that_its_function_is_given(way: str, is_held: bool) -> None:
    import torch
    from torch.utils.checkpoint import checkpoint

    from gclint.verify.worker.footprint.step import forward

    class Model(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(_WIDTH))

        def forward(self, states: Any) -> Any:
            made = self.weight if way == "weight" else states.detach() * 2

            def inner(scale: Any, states: Any) -> Any:
                return torch.sigmoid(states * scale)

            def turned(states: Any, scale: Any) -> Any:
                return inner(scale, states)

            def captures(states: Any) -> Any:
                return inner(made, states)

            calls: dict[str, Callable[[], Any]] = {
                "keyword": lambda: checkpoint(turned, states, scale=made, use_reentrant=False),
                "weight": lambda: checkpoint(turned, states, scale=made, use_reentrant=False),
                "partial": lambda: checkpoint(partial(inner, made), states, use_reentrant=False),
                "partial keyword": lambda: checkpoint(
                    partial(turned, scale=made), states, use_reentrant=False
                ),
                "closure": lambda: checkpoint(captures, states, use_reentrant=False),
            }
            return {"last": calls[way]()}

    def evaluate(kept: Any) -> list[int]:
        return [each.size for each in kept.records() if each.keeper == "checkpoint"]

    states = torch.ones(4, _WIDTH).requires_grad_()
    held, _ = forward(Model(), {"states": states}, [], evaluate, is_plain=False)
    assert held == ([_STATES] if is_held else [])
