"""What is found in runs with and without checkpointing, how it is explained, and which lines are shown."""

from __future__ import annotations

from typing import Any

import pytest

from gclint.verify.worker.protocol import Failure, Mode, SourcePlace

pytestmark = pytest.mark.torch

_CALL, _OTHER_CALL = SourcePlace("modeling_toy.py", 7, 7), SourcePlace("modeling_toy.py", 9, 9)
_SINE = (SourcePlace("modeling_toy.py", 3, 3),)


def _run(mode: Mode, *weights: float) -> Any:
    """Return a run whose steps have these gradients of the weight."""
    import torch

    from gclint.verify.worker.examination.run import Conditions, Run, TrainingStep
    from gclint.verify.worker.scenarios import scenario_named

    steps = [
        TrainingStep(1.0, None, {"states": torch.ones(2)}, {"weight": torch.full((2,), each)}, 0, 0.0, None)
        for each in weights
    ]
    return Run(Conditions(scenario_named("default"), mode), steps)


def _checkpointed(place: SourcePlace, **more: Any) -> Any:
    from gclint.verify.worker.examination.inspection.inspector import Checkpointed
    from gclint.verify.worker.examination.inspection.tape import Event

    seen: dict[str, Any] = {
        "modules": (),
        "is_reentrant": False,
        "preserves_random_state": True,
        "outer": None,
        "returned_in": "",
        "captured": (),
        "has_gradient": True,
        "drawn": frozenset(),
        "first": Event("checkpoint", "", ()),
        "origin": None,
        "changes": (),
        "modified": (),
    }
    return Checkpointed(place, **{**seen, **more})


def _diagnosed(mode: Mode, check: str, *checkpoints: Any) -> Failure:
    from gclint.verify.worker.examination.comparison import Comparison, FailedCheck
    from gclint.verify.worker.examination.inspection.inspector import Inspection
    from gclint.verify.worker.examination.inspection.tape import Event
    from gclint.verify.worker.examination.reporting import diagnose

    inspection = Inspection(Event("checkpoint", "", ()), checkpoints, {})
    comparison = Comparison(_run("plain"), _run(mode), (), inspection=inspection)
    (failure,) = diagnose(comparison, [FailedCheck(check, "something is wrong")])
    return failure


def test_a_step_that_only_one_of_two_runs_has_completed_is_not_compared() -> None:
    from gclint.verify.worker.examination.comparison import Comparison

    for runs in ((_run("plain", 1.0), _run("reentrant")), (_run("plain"), _run("reentrant", 1.0))):
        comparison = Comparison(*runs, ())
        assert not comparison.has(0)
        assert not comparison.differs(0)
    assert Comparison(_run("plain", 1.0), _run("reentrant", 1.0), ()).has(0)


def test_only_checkpoints_that_are_reentrant_against_a_request_are_said_to_be() -> None:
    checkpoints = (_checkpointed(_CALL, is_reentrant=True), _checkpointed(_OTHER_CALL))
    asked = _diagnosed("non-reentrant", "values", *checkpoints).explanation
    assert "The checkpoint at modeling_toy.py:7 is reentrant although `use_reentrant=False`" in asked
    assert "although" not in _diagnosed("reentrant", "values", *checkpoints).explanation


def test_the_outer_one_of_nested_checkpoints_is_shown() -> None:
    failure = _diagnosed("reentrant", "double recomputation", _checkpointed(_CALL, outer=_OTHER_CALL))
    assert failure.places == (_OTHER_CALL,)
    assert "that of the call at modeling_toy.py:9. Remove" in failure.explanation


def test_where_nothing_else_is_known_the_call_of_the_checkpoint_is_shown() -> None:
    from gclint.verify.worker.examination.inspection.difference import FirstDifference
    from gclint.verify.worker.examination.inspection.readable import StateChange

    checkpoint = _checkpointed(
        _CALL,
        origin=FirstDifference("output", "operation", "sin", "sin", _SINE, _SINE),
        changes=(StateChange("torch", "autocast", "''", "'cpu: torch.bfloat16'"),),
    )
    failure = _diagnosed("reentrant", "gradients", checkpoint)
    assert failure.places == (_CALL,)
    assert "`sin` at modeling_toy.py:3" in failure.explanation


@pytest.mark.parametrize(
    ("changed", "preserves", "drawn", "is_cause"),
    [
        (("torch", "the state of torch's random numbers"), False, (), True),
        (("torch", "the state of torch's random numbers"), True, (), False),
        (("attribute", "count"), False, (), False),
        (("generator", "random"), True, ("random",), True),
        # Something else has drawn from it.
        (("generator", "random"), True, (), False),
        (("generator", "random"), True, ("numpy.random",), False),
    ],
)
def test_random_numbers_are_the_cause_if_a_block_draws_them_and_their_state_is_not_restored(
    changed: tuple[Any, str], preserves: bool, drawn: tuple[str, ...], is_cause: bool
) -> None:
    from gclint.verify.worker.cause import Cause
    from gclint.verify.worker.examination.inspection.difference import FirstDifference
    from gclint.verify.worker.examination.inspection.readable import StateChange

    checkpoint = _checkpointed(
        _CALL,
        preserves_random_state=preserves,
        drawn=frozenset(drawn),
        origin=FirstDifference("output", "operation", "dropout", "dropout", _SINE, _SINE),
        changes=(StateChange(*changed, "", ""),),
    )
    failure = _diagnosed("reentrant", "gradients", checkpoint)
    assert (failure.cause is Cause.RANDOM_NUMBERS) is is_cause
    assert ("`preserve_rng_state=False`" in failure.explanation) is (is_cause and not preserves)


@pytest.mark.parametrize(
    ("held", "read", "named"),
    [
        # By its value, by its name, and neither: then none of the two is called the cause.
        ("", ("1", "2"), "reads `layers.count`, whose"),
        ("layers.mean", ("5", "6"), "reads `layers.mean`, whose"),
        ("", ("5", "6"), "but for `layers.mean`, `layers.count`, which is not seen to be read there"),
    ],
)
def test_of_all_that_has_changed_what_the_first_difference_reads_is_named(
    held: str, read: tuple[str, str], named: str
) -> None:
    from gclint.verify.worker.examination.inspection.difference import FirstDifference
    from gclint.verify.worker.examination.inspection.parts import Digest
    from gclint.verify.worker.examination.inspection.readable import StateChange
    from gclint.verify.worker.examination.inspection.tape import Input

    one, other = (Input("0", "kept", Digest(each), held) for each in read)
    checkpoint = _checkpointed(
        _CALL,
        origin=FirstDifference("input", "operation", "mul", "mul", _SINE, _SINE, ((one, other),)),
        changes=(
            StateChange("attribute", "mean", "", "", "layers", "3", "4"),
            StateChange("attribute", "count", "1", "2", "layers", "1", "2"),
        ),
    )
    assert named in _diagnosed("reentrant", "gradients", checkpoint).explanation


@pytest.mark.parametrize(
    ("operations", "sentence"),
    [
        (("sin", ""), "`sin` at modeling_toy.py:3, which only the forward pass runs"),
        (("", "cos"), "`cos` at modeling_toy.py:3, which only the recomputation runs"),
        (
            ("sin", "cos"),
            "that the forward pass runs `sin` at modeling_toy.py:3 and the recomputation `cos` at "
            "modeling_toy.py:3",
        ),
    ],
)
def test_operations_that_one_pass_or_both_run_instead_are_named(
    operations: tuple[str, str], sentence: str
) -> None:
    from gclint.verify.worker.examination.explaining.explanation import first_operation
    from gclint.verify.worker.examination.inspection.difference import FirstDifference

    mine, yours = (_SINE if name else () for name in operations)
    origin = FirstDifference("path", "operation", *operations, mine, yours)
    assert first_operation(origin) == f"the first difference is {sentence}"
