"""Runs made by hand: what a plain run and one with checkpointing gave, and what the verifier says of the two.

Nothing is trained, so a case takes microseconds. Torch is imported where it is needed, since the quick tests
collect the modules that use this one as well.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from tests.decisions import toy_layer

Facts = Mapping[str, Any]
"""What is different in a run from one that is right; the keywords of :func:`run`."""

LAYERS = ("layers.0", "layers.1")
RIGHT: dict[str, Any] = {"layers.0.weight": [1.0, 2.0], "layers.1.weight": [3.0, 4.0], "embed": [5.0, 6.0]}
"""The gradients of a run that is right."""


def tensor(values: Any, dtype: str = "") -> Any:
    """Return a tensor, of the usual type of its values if none is named; None and tensors as they are."""
    import torch

    if values is None or isinstance(values, torch.Tensor):
        return values
    return torch.tensor(values, dtype=getattr(torch, dtype) if dtype else None)


def agreement(expected: Any, found: Any, noise: float = 0.0) -> str:
    """Return what comparing two tensors gives, as the name of the verdict."""
    from gclint.verify.worker.examination.agreement import compare

    return compare(tensor(expected), tensor(found), noise).name


def step(
    gradients: Mapping[str, Any] | None = None,
    outputs: Mapping[str, Any] | None = None,
    loss: float | None = None,
    saved: int = 100,
    requiring: Iterable[str] = (),
    held: int = 0,
) -> Any:
    """Return one step; ``loss`` is the model's own, which is an output as well."""
    from gclint.verify.worker.examination.run import TrainingStep

    own = {} if loss is None else {"loss": loss}
    return TrainingStep(
        1.0,
        loss,
        {name: tensor(each) for name, each in {**(outputs or {}), **own}.items()},
        {name: tensor(each) for name, each in (RIGHT if gradients is None else gradients).items()},
        saved,
        0.0,
        None,
        held_bytes=held,
        requiring_grad=frozenset(requiring),
    )


def run(
    mode: str,
    steps: Iterable[Facts] = ({},),
    *,
    scenario: str = "default",
    error: tuple[str, str] | None = None,
    values: Mapping[str, Any] | None = None,
    ran: Mapping[str, int] | None = None,
    again: Mapping[str, int] | None = None,
    **facts: Any,
) -> Any:
    """Return a run; ``ran`` says how often blocks ran in it, and ``again`` how often they were recomputed."""
    from gclint.verify.worker.examination.fault import Fault
    from gclint.verify.worker.examination.run import Conditions, Run
    from gclint.verify.worker.modes import Mode
    from gclint.verify.worker.scenarios import scenario_named

    known: Mode = mode  # type: ignore[assignment]
    often = Counter(dict.fromkeys(LAYERS, 1) if ran is None else ran)
    saved = 100 if mode == "plain" else 40
    return Run(
        Conditions(scenario_named(scenario), known),
        [step(**{"saved": saved, **each}) for each in steps],
        error=None if error is None else Fault(*error),
        values={name: tensor(each) for name, each in (values or {}).items()},
        forward=often,
        recorded=often,
        backward=Counter(() if mode == "plain" else often if again is None else again),
        **facts,
    )


def block(name: str, *, is_layer: bool = True, parameters: frozenset[str] | None = None) -> Any:
    """Return a block whose parameters are those under its name, if no others are given."""
    from gclint.verify.worker.examination.blocks import Block

    own = frozenset(each for each in RIGHT if each.startswith(f"{name}."))
    return Block(name, f"{name}.dense", is_layer, True, 1, own if parameters is None else parameters)


def comparison(
    expected: Facts | None = None,
    found: Facts | None = None,
    *,
    mode: str = "reentrant",
    scenario: str = "default",
    layers: bool = True,
    **facts: Any,
) -> Any:
    """Return the comparison of a plain run with one in ``mode``.

    Args:
        expected: what is different in the plain run.
        found: what is different in the other one.
        mode: the mode of the other one.
        scenario: how both were trained.
        layers: whether the blocks are checkpointing layers.
        **facts: further fields of the comparison, such as the known noise.
    """
    from gclint.verify.worker.examination.comparison import Comparison

    made: dict[str, Any] = {
        "blocks": tuple(block(name, is_layer=layers) for name in LAYERS),
        "kinds": {name: type("ToyLayer", (), {}) for name in LAYERS},
        **facts,
    }
    return Comparison(
        run("plain", **{"scenario": scenario, **(expected or {})}),
        run(mode, **{"scenario": scenario, **(found or {})}),
        **made,
    )


def one_step(**facts: Any) -> Facts:
    """Return what is different in a run of one step."""
    return {"steps": [facts]}


def origin(what: Any = "output", kind: str = "operation", **facts: Any) -> Any:
    """Return where a recomputation begins to differ: at an operation that reads all that may change."""
    from gclint.verify.worker.examination.inspection.difference import FirstDifference
    from gclint.verify.worker.protocol import SourcePlace

    stack = (SourcePlace(toy_layer.PATH, toy_layer.LINE, toy_layer.LINE),)
    seen: dict[str, Any] = {
        "name": "sin",
        "other": "sin",
        "stack": stack,
        "other_stack": (),
        "module": "layers.0",
    }
    return FirstDifference(what, kind, **{**seen, **facts})


def change(holder: str, name: str, owner: str = "", **facts: Any) -> Any:
    """Return the change of something that a model can read."""
    from gclint.verify.worker.examination.inspection.readable import StateChange

    known: Any = holder
    return StateChange(known, name, "1", "2", owner, **facts)


def checkpointed(line: int = 7, **facts: Any) -> Any:
    """Return what was seen of a checkpoint on a line: nothing that is wrong, but for the facts."""
    from gclint.verify.worker.examination.inspection.inspector import Checkpointed
    from gclint.verify.worker.examination.inspection.tape import Event
    from gclint.verify.worker.protocol import SourcePlace

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
    return Checkpointed(SourcePlace("modeling_toy.py", line, line), **{**seen, **facts})


def inspected(*checkpoints: Any, **facts: Any) -> Any:
    """Return the inspection of a run with these checkpoints."""
    from gclint.verify.worker.examination.inspection.inspector import Inspection
    from gclint.verify.worker.examination.inspection.tape import Event

    seen: dict[str, Any] = {"forward": Event("checkpoint", "", ()), "settings": {}, **facts}
    return Inspection(checkpoints=checkpoints, **seen)


def failed_checks(compared: Any, without: Collection[str] = ()) -> dict[str, Any]:
    """Return what the checks of the run's scenario find, by the names of the checks."""
    from gclint.verify.worker.examination.checks import CHECKS

    found = [
        failed_check
        for name in compared.run.conditions.scenario.checks
        if name not in without
        for failed_check in CHECKS[name](compared)
    ]
    return {each.check: each for each in found}


def failing(compared: Any) -> dict[str, tuple[str, ...]]:
    """Return the names of the checks that fail, each with what it is about."""
    return {
        name: tuple(each.about or each.parameters or each.blocks)
        for name, each in failed_checks(compared).items()
    }


def result(*comparisons: Any) -> Any:
    """Return the result of a class whose runs are these, as the examination makes it."""
    from torch.nn import Linear
    from transformers import PretrainedConfig

    from gclint.verify.worker.examination.result_builder import ClassResultBuilder
    from gclint.verify.worker.protocol import Source
    from gclint.verify.worker.tiny_model import TinyModel

    builder = ClassResultBuilder(Source("modeling_toy.py", "toy"), type("Toy", (), {}))
    tiny_model = TinyModel("default", PretrainedConfig(), lambda: Linear(1, 1), dict)
    for each in comparisons:
        found = list(failed_checks(each).values())
        builder.judge(each, found, tiny_model)
        builder.compared(each)
    return builder.result()
