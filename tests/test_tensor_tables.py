"""The tables of what torch's operations change and share."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest

from gclint.model.known import IN_PLACE_AT
from gclint.model.tensors import CHANGING, FRESH, FUNCTIONAL, METHODS_ONLY_READ, MODULES, VIEWS
from tests.tensor_tables import TABLES, text

_ARGUMENTS = (
    (),
    (4,),
    (2,),
    (4, 4),
    (4, 2),
    (2, 2),
    (4, 4, 2),
    (4, 4, 4),
    (1, 0.5),
    (1, (2, 2)),
    (4, 6, [2, 4]),
)
"""What modules may be built with."""
_OPTIONS = {"inplace": False, "max_norm": None}
"""What the tables do not speak of: both change an argument or the weight."""


def test_an_operation_is_of_one_kind() -> None:
    assert not FRESH & VIEWS
    assert not (FRESH | VIEWS) & CHANGING
    assert not (CHANGING | VIEWS) & METHODS_ONLY_READ
    assert not CHANGING & FUNCTIONAL


def test_a_name_with_an_underscore_behind_it_changes() -> None:
    known = FRESH | VIEWS | METHODS_ONLY_READ | FUNCTIONAL
    assert [name for name in known if name.endswith("_")] == []


@pytest.mark.parametrize(
    ("names", "some"),
    [
        (FRESH, "matmul softmax cat layer_norm new_zeros masked_fill where norm fft finfo"),
        (VIEWS, "view reshape contiguous to float split einsum dropout mT detach expand conj_physical"),
        (
            CHANGING,
            "add_ set_ resize_ requires_grad_ batch_norm instance_norm fused_moving_avg_obs_fake_quant",
        ),
        (METHODS_ONLY_READ, "shape size dim dtype device item tolist is_contiguous"),
        (MODULES, "Linear LayerNorm Dropout MultiheadAttention"),
        (FUNCTIONAL, "relu pad scaled_dot_product_attention embedding cross_entropy"),
    ],
)
def test_well_known_names_are_where_they_belong(names: frozenset[str], some: str) -> None:
    assert set(some.split()) <= names


def test_what_depends_on_autograd_is_unknown() -> None:
    names = {
        "backward",
        "data",
        "grad",
        "grad_fn",
        "is_leaf",
        "register_hook",
        "requires_grad",
        "retains_grad",
    }
    assert not names & (FRESH | VIEWS | METHODS_ONLY_READ)


def test_modules_with_a_state_or_with_others_inside_are_unknown() -> None:
    names = {"BatchNorm1d", "InstanceNorm2d", "SyncBatchNorm", "LazyLinear", "Sequential", "ModuleList"}
    assert not names & MODULES


@pytest.mark.torch
def test_tables_are_those_of_torch() -> None:
    assert TABLES.read_text(encoding="utf-8") == text()


@pytest.mark.torch
def test_methods_that_only_read_are_those_of_torch() -> None:
    import torch

    assert [name for name in METHODS_ONLY_READ if not hasattr(torch.Tensor, name)] == []


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", sorted(MODULES))
def test_module_is_the_same_after_a_forward_in_training(name: str) -> None:
    import torch

    calls = 0
    for module, arguments in _attempts(getattr(torch.nn, name)):
        before = copy.deepcopy(module.__dict__)
        versions = [each._version for each in arguments]
        values = [each.clone() for each in module.state_dict().values()]
        try:
            module.train()(*arguments)
        except Exception:  # It takes other arguments.
            continue
        calls += 1
        assert [each._version for each in arguments] == versions
        assert all(map(torch.equal, values, module.state_dict().values()))
        assert str(before) == str(module.__dict__)
        if calls > 3:
            return
    assert calls


def _attempts(kind: Any) -> Iterator[tuple[Any, list[Any]]]:
    """Yield modules of a class, and what their `forward` may take."""
    import torch

    shapes = [(4, 4), (4,), (2, 4, 4), (1, 4, 4, 4), (1, 4, 4, 4, 4)]
    floats = [[torch.rand(shape)] * count for shape in shapes for count in (1, 2, 3)]
    indices = [[torch.zeros(shape, dtype=torch.int64)] for shape in shapes[:3]]
    classes = [torch.zeros(shape, dtype=torch.int64) for shape in [(4,), (4, 4), (1, 4, 4)]]
    mixed = [[torch.rand(shape), each] for shape in shapes for each in classes]
    rows = [torch.rand(4, 4), torch.rand(4, 4), torch.ones(4)]
    ctc = [torch.rand(4, 1, 4), torch.ones(1, 1).long(), torch.tensor([4]), torch.tensor([1])]
    pooled = [[torch.rand(1, 4, *[2] * n), torch.zeros(1, 4, *[2] * n).long()] for n in (1, 2, 3)]
    whole = [*floats, *indices, *mixed, *pooled, rows, ctc, [rows[0], rows[1], torch.ones(4, 4)]]
    whole.append([torch.rand(4, 4), torch.rand(4, 4), torch.zeros(4).long()])
    whole.append([torch.rand(4, 1)])
    for given in _ARGUMENTS:
        for arguments in whole:
            try:
                module = kind(*given)
            except Exception:  # It is built with other arguments.
                break
            for name in _OPTIONS.keys() & vars(module).keys():
                setattr(module, name, _OPTIONS[name])
            yield module, arguments


@pytest.mark.torch
def test_the_place_of_the_flag_is_that_of_torch() -> None:
    import inspect

    import torch

    functions, modules = vars(torch.nn.functional), vars(torch.nn)
    for name, place in IN_PLACE_AT.items():
        found = inspect.signature(functions.get(name) or modules[name])
        assert [*found.parameters].index("inplace") == place, name
    flagged = {
        name
        for one in (functions, modules)
        for name, each in one.items()
        if callable(each) and not name.startswith("_") and "inplace" in _parameters(each)
    }
    assert flagged <= {*IN_PLACE_AT}


def _parameters(each: Any) -> list[str]:
    import inspect

    try:
        return [*inspect.signature(each).parameters]
    except (TypeError, ValueError):
        return []
