"""What a checkpoint is given and saves, compared with what it finds when it runs again."""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = pytest.mark.torch


def _region(**keywords: Any) -> Any:
    from gclint.verify.worker.examination.inspection.checkpoints import CheckpointCall

    return CheckpointCall(len, (), keywords, False, True, None)


@pytest.mark.parametrize("container", [dict, list])
def test_an_equal_tensor_in_place_of_another_is_a_change_even_in_its_memory(container: type) -> None:
    import torch

    from gclint.verify.worker.examination.inspection.inspector import _Contents

    for _ in range(100):
        given: Any = container({0: torch.ones(2)}) if container is dict else [torch.ones(2)]
        contents = _Contents(_region(memory=given))
        assert contents.changed() == ()
        given[0] = None
        given[0] = torch.ones(2)
        assert contents.changed() == ("memory",)


def _compared(before: Any, now: Any, model: Any) -> tuple[int, int]:
    """Return how many tensors were compared and how many differ, if one is saved in each run."""
    from gclint.verify.worker.examination.inspection.checkpoints import Replays

    replays, region = Replays(model), _region()
    for tensor in (before, now):
        region.runs += 1
        replays.begin(region, ())
        replays.saved(region, tensor)
    return replays.replay.compared, replays.replay.different


def test_saved_tensors_are_compared_with_recomputed_ones() -> None:
    import torch

    model = torch.nn.Identity()
    assert _compared(torch.ones(2), torch.ones(2), model) == (1, 0)
    assert _compared(torch.ones(2), torch.zeros(2), model) == (1, 1)
    assert _compared(torch.tensor(1.0), torch.tensor(2.0), model) == (1, 1)
    assert _compared(torch.tensor([1, 2]), torch.tensor([1, 3]), model) == (1, 1)


def test_neither_seeds_nor_data_of_kernels_nor_parameters_are_compared() -> None:
    import torch

    model = torch.nn.Linear(2, 2)
    assert _compared(torch.tensor(1), torch.tensor(2), model) == (0, 0)
    assert _compared(torch.ones(4, dtype=torch.uint8), torch.zeros(4, dtype=torch.uint8), model) == (0, 0)
    assert _compared(model.weight, torch.zeros(2, 2), model) == (0, 0)
