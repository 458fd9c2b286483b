"""What is written to the items of an attribute is seen, and can be compared with another run."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from typing import Any

import pytest


class _Statistics:
    def __init__(self) -> None:
        self.runs: Any = 0


def _set_run(value: _Statistics) -> None:
    value.runs += 1


def _tensors() -> list[Any]:
    import torch

    return [torch.zeros(1)]


def _array() -> Any:
    import numpy

    return numpy.zeros(2)


def _first(value: Any) -> None:
    value[0] += 1


_WRITTEN: dict[str, tuple[Callable[[], Any], Callable[[Any], object]]] = {
    "number in a list": (lambda: [0], _first),
    "list in a tuple": (lambda: ([0],), lambda value: _first(value[0])),
    "tensor in a list": (_tensors, _first),
    "array": (_array, _first),
    "number in a dictionary": (lambda: {"runs": 0}, lambda value: value.update(runs=1)),
    "counter": (Counter, lambda value: value.update("x")),
    "deque that is full": (lambda: deque([0], maxlen=1), lambda value: value.append(1)),
    "set": (lambda: {0}, lambda value: value.add(1)),
    "object": (_Statistics, _set_run),
    "object in a dictionary": (lambda: {0: _Statistics()}, lambda value: _set_run(value[0])),
}


@pytest.mark.torch
@pytest.mark.parametrize("kind", _WRITTEN)
def test_what_is_written_to_an_item_is_a_change(kind: str) -> None:
    from gclint.verify.worker.examination.agreement import same
    from gclint.verify.worker.examination.state import comparable, snapshot

    make, write = _WRITTEN[kind]
    value = make()
    before, known = snapshot(value), comparable(value)
    assert snapshot(value) == before
    assert same(comparable(make()), known)
    write(value)
    assert snapshot(value) != before
    assert not same(comparable(value), known)


@pytest.mark.torch
def test_what_no_other_process_has_is_compared_by_its_type() -> None:
    from gclint.verify.worker.examination.agreement import same
    from gclint.verify.worker.examination.state import comparable

    one, other = ({object(): [object()], "seen": {object()}} for _ in range(2))
    assert same(comparable(one), comparable(other))


@pytest.mark.torch
def test_large_tables_and_circles_have_an_end() -> None:
    from gclint.verify.worker.examination.state import comparable, snapshot

    table: list[Any] = [list(range(1000)) for _ in range(1000)]
    table[0].append(table)
    assert snapshot(table) == snapshot(table)
    assert len(str(comparable(table))) < 100_000


@pytest.mark.torch
def test_gradient_without_finite_values_hides_what_is_wrong() -> None:
    import torch

    from gclint.verify.worker.examination.agreement import hides_all

    nan, infinite = float("nan"), float("inf")
    hiding = ([nan, nan], [nan, 0.0], [infinite, -infinite])
    assert all(hides_all(torch.tensor(each)) for each in hiding)
    assert not any(hides_all(torch.tensor(each)) for each in ([nan, 1.0], [0.0, 0.0], [1.0, 2.0]))


@pytest.mark.torch
def test_use_cache_of_a_configuration_is_no_change_since_the_steps_set_it() -> None:
    from transformers import PretrainedConfig

    from gclint.verify.worker.examination.state import snapshot

    class Configuration(PretrainedConfig):  # type: ignore[misc]
        pass

    for value, is_set_by_steps in ((Configuration(), True), (_Statistics(), False)):
        value.use_cache = True  # type: ignore[union-attr]
        before = snapshot(value)
        value.use_cache = False  # type: ignore[union-attr]
        assert (snapshot(value) == before) is is_set_by_steps
        value.runs = 1
        assert snapshot(value) != before


@pytest.mark.torch
def test_what_modules_share_changes_in_all_of_them_and_what_one_replaces_only_there() -> None:
    import torch

    from gclint.verify.worker.examination.state import ModuleAttributes

    shared = _Statistics()
    model: Any = torch.nn.Sequential(torch.nn.ReLU(), torch.nn.ReLU())
    for each in model:
        each.shared, each.number, each.list = shared, 0, [1]
    attributes = ModuleAttributes(model)
    assert not attributes.changes()
    model[0].number, model[1].list = False, [2]
    assert set(attributes.changes()) == {"0.number", "1.list"}
    shared.runs += 1
    assert set(attributes.changes()) == {"0.number", "1.list", "0.shared", "1.shared"}
    model[1].shared = _Statistics()
    assert {"0.shared", "1.shared"} <= set(attributes.changes())
