"""What is known of a call site when several examinations of one class have run it."""

from __future__ import annotations

from typing import Any

import pytest

from gclint.verify.worker.protocol import SourcePlace

pytestmark = pytest.mark.torch


def _sites(
    line: int,
    recomputed: int,
    block: str = "layers.0",
    *,
    ran: int = 1,
    lost: tuple[str, ...] = (),
    is_enabled: bool = True,
) -> Any:
    """Return what is known after a run that called a block on a line, and recomputed it so often."""
    import torch

    from gclint.verify.worker.examination.block_calls import BlockCall
    from gclint.verify.worker.examination.blocks import Block
    from gclint.verify.worker.examination.comparison import Comparison
    from gclint.verify.worker.examination.fault import Fault
    from gclint.verify.worker.examination.result_builder import Sites
    from gclint.verify.worker.examination.run import ENABLING, Conditions, Run, TrainingStep
    from gclint.verify.worker.scenarios import scenario_named

    conditions = Conditions(scenario_named("default"), "reentrant")
    run, reference = Run(conditions), Run(conditions)
    run.calls.append(BlockCall(block, SourcePlace("modeling_toy.py", line, line), {}, {}, (), {}, {}, True))
    run.forward[block] = reference.recorded[block] = ran
    run.backward[block] = recomputed
    parameters = [f"{block}.weight", f"{block}.bias"]
    for each, missing in ((reference, ()), (run, lost)):
        gradients = {name: None if name in missing else torch.ones(2) for name in parameters}
        each.steps.append(TrainingStep(1.0, None, {}, gradients, 0, 0.0, None))
    if not is_enabled:
        run.stage, run.error = ENABLING, Fault("ValueError", "nothing to enable")
    blocks = (Block(block, block, True, True, 1, frozenset(parameters)),)
    comparison = Comparison(reference, run, blocks, kinds={block: torch.nn.Linear})
    sites = Sites()
    sites.add(comparison)
    sites.judge(comparison)
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


def test_a_block_that_only_one_option_runs_is_known_as_well() -> None:
    sites = _sites(10, recomputed=1)
    sites.take(_sites(20, recomputed=1, block="others.0"))
    assert sites.counts() == (2, 2)
    assert [(each.recomputed, each.is_trunk) for each in sites.facts()] == [(True, True), (True, True)]


def test_where_checkpointing_cannot_be_enabled_nothing_is_recomputed() -> None:
    sites = _sites(10, recomputed=0, is_enabled=False)
    assert sites.counts() == (1, 0)
    assert [each.recomputed for each in sites.facts()] == [False]


@pytest.mark.parametrize(
    ("ran", "lost", "expected"),
    [
        (1, (), (1, 0)),
        (1, ("layers.0.weight",), (1, 0)),
        # What has no gradient at all is never recomputed, and that is another failure.
        (1, ("layers.0.weight", "layers.0.bias"), (0, 0)),
        (0, (), (0, 0)),
    ],
)
def test_only_blocks_that_ran_and_have_gradients_count(
    ran: int, lost: tuple[str, ...], expected: tuple[int, int]
) -> None:
    assert _sites(10, recomputed=0, ran=ran, lost=lost).counts() == expected


@pytest.mark.parametrize(
    ("again", "expected"),
    [
        ([1, 1], True),
        ([1, 0], False),
        ([0, 1], False),
        ([0, 0], False),
        # A third run, in another scenario, makes up for nothing.
        ([0, 1, 1], False),
        ([1, 1, 0], False),
    ],
)
def test_a_block_counts_as_recomputed_only_where_every_mode_recomputes_it(
    again: list[int], expected: bool
) -> None:
    from gclint.verify.worker.examination.result_builder import Sites
    from tests.decisions import proofs

    sites, modes = Sites(), ("non-reentrant", "reentrant", "reentrant")
    for mode, times in zip(modes, again, strict=False):
        sites.judge(proofs.comparison({}, {"again": {"layers.0": times, "layers.1": 1}}, mode=mode))
    assert sites.counts() == (2, 1 + expected)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ({}, (2, 2)),
        # A run that failed shows nothing, unless checkpointing cannot even be enabled.
        ({"again": {}, "error": ("ValueError", "no"), "stage": "the backward pass"}, (2, 2)),
        ({"error": ("ValueError", "no"), "stage": "enabling checkpointing"}, (2, 0)),
        ({"again": {"layers.1": 1}}, (2, 1)),
        # What did not run in it, or lost all its gradients, is as it was before.
        ({"ran": {"layers.1": 1}}, (2, 2)),
        ({"again": {"layers.1": 1}, "lost": "layers.0.weight"}, (2, 2)),
        ({"again": {"layers.1": 1}, "lost": "embed"}, (2, 1)),
    ],
)
@pytest.mark.parametrize("is_first", [True, False])
def test_one_run_decides_only_about_blocks_of_which_it_shows_something(
    found: dict[str, Any], expected: tuple[int, int], is_first: bool
) -> None:
    from gclint.verify.worker.examination.result_builder import Sites
    from tests.decisions import proofs

    facts = dict(found)
    if "lost" in facts:
        facts |= proofs.one_step(gradients={**proofs.RIGHT, facts.pop("lost"): None})
    sites = Sites()
    compared = [proofs.comparison({}, facts), proofs.comparison(mode="non-reentrant")]
    for each in compared if is_first else reversed(compared):
        sites.judge(each)
    assert sites.counts() == expected


@pytest.mark.parametrize(("recomputed", "is_known"), [(1, True), (0, False)])
def test_lone_blocks_are_not_counted_and_known_at_their_call_sites(recomputed: int, is_known: bool) -> None:
    from dataclasses import replace

    from gclint.verify.worker.examination.block_calls import BlockCall
    from gclint.verify.worker.examination.result_builder import Sites
    from tests.decisions import proofs

    lone = replace(proofs.block("layers.1"), is_lone=True, is_trunk=False)
    found = {"again": {"layers.0": 1, "layers.1": recomputed}}
    comparison = proofs.comparison({}, found, blocks=(proofs.block("layers.0"),), lone=(lone,))
    comparison.run.calls.append(
        BlockCall("layers.1", SourcePlace("modeling_toy.py", 7, 7), {}, {}, (), {}, {}, True)
    )
    sites = Sites()
    sites.add(comparison)
    assert [each.recomputed for each in sites.facts()] == [None]
    sites.judge(comparison)
    assert sites.counts() == (1, 1)
    assert [(each.recomputed, each.is_trunk) for each in sites.facts()] == [(is_known, False)]


@pytest.mark.parametrize(
    ("again", "expected"),
    [
        ({"layers.0": 1, "layers.1": 1}, True),
        ({"layers.0": 1}, False),
        ({"layers.1": 1}, False),
        ({}, False),
    ],
)
def test_a_call_site_is_recomputed_if_all_blocks_that_it_calls_are(
    again: dict[str, int], expected: bool
) -> None:
    from gclint.verify.worker.examination.block_calls import BlockCall
    from gclint.verify.worker.examination.result_builder import Sites
    from tests.decisions import proofs

    kind = type("ToyLayer", (), {})
    comparison = proofs.comparison({}, {"again": again}, kinds=dict.fromkeys(proofs.LAYERS, kind))
    place = SourcePlace("modeling_toy.py", 7, 7)
    comparison.run.calls += [BlockCall(name, place, {}, {}, (), {}, {}, True) for name in proofs.LAYERS]
    sites = Sites()
    sites.add(comparison)
    sites.judge(comparison)
    assert [(each.calls, each.recomputed) for each in sites.facts()] == [(2, expected)]
