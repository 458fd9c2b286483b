"""What is known of a call site when several examinations of one class have run it."""

from __future__ import annotations

from typing import Any

import pytest

from gclint.verify.worker.modes import Mode
from gclint.verify.worker.protocol import Place

pytestmark = pytest.mark.torch


def _sites(line: int, recomputed: int, mode: Mode = "reentrant") -> Any:
    """Return what is known after a run that called a block on a line and recomputed it so often."""
    import torch

    from gclint.verify.worker.examination.blocks import Block
    from gclint.verify.worker.examination.case import Case
    from gclint.verify.worker.examination.run import Conditions, Run
    from gclint.verify.worker.examination.sites import Sites
    from gclint.verify.worker.examination.trace import Call
    from gclint.verify.worker.scenarios import scenario_named

    conditions = Conditions(scenario_named("default"), mode)
    run, reference = Run(conditions), Run(conditions)
    run.calls.append(Call("layers.0", Place("modeling_toy.py", line, line), {}, {}, (), {}, {}, True))
    run.forward["layers.0"] = reference.recorded["layers.0"] = 1
    run.backward["layers.0"] = recomputed
    blocks = (Block("layers.0", "layers.0", True, True, 1, frozenset(("layers.0.weight",))),)
    case = Case(reference, run, blocks, kinds={"layers.0": torch.nn.Linear})
    sites = Sites()
    sites.add(case)
    sites.judge(case)
    return sites


def test_call_sites_of_all_options_are_known_in_the_order_of_the_source() -> None:
    sites = _sites(20, recomputed=1)
    sites.take(_sites(10, recomputed=1))
    sites.take(_sites(20, recomputed=1))
    assert [(each.place.line, each.calls) for each in sites.facts()] == [(10, 1), (20, 2)]
    assert all(each.recomputed and each.is_trunk for each in sites.facts())


@pytest.mark.parametrize(
    ("first", "second", "expected"), [(1, 1, True), (1, 0, False), (0, 1, False), (0, 0, False)]
)
def test_a_block_counts_as_recomputed_only_where_every_option_recomputes_it(
    first: int, second: int, expected: bool
) -> None:
    sites = _sites(10, first)
    sites.take(_sites(20, second))
    assert sites.counts() == (1, int(expected))
    assert [each.recomputed for each in sites.facts()] == [expected, expected]
