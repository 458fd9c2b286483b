"""What of a model is compared: its outputs but no caches, its state, and what recomputation has changed."""

from __future__ import annotations

import random
from collections import Counter, namedtuple
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from tests.decisions.proofs import tensor

pytestmark = pytest.mark.torch

_Pair = namedtuple("_Pair", ("first", "second"))


@dataclass
class _Output:
    logits: Any
    past_key_values: Any = None


class _ToyCache:
    def __init__(self) -> None:
        self.keys = tensor([1.0])

    def update(self) -> None: ...


class _ListCache(list[Any]):
    """A cache whose items could be taken for outputs."""


class _Updating(dict[str, Any]):
    """A dictionary, which can be updated and is no cache."""


@pytest.mark.parametrize(
    ("value", "paths"),
    [
        (lambda one: one, ["0"]),
        (lambda one: (one, None, one), ["0", "2"]),
        (lambda one: [one, (one, one)], ["0", "1.0", "1.1"]),
        (lambda one: {"a": one, "b": [one]}, ["a", "b.0"]),
        (lambda one: _Pair(one, one), ["first", "second"]),
        (lambda one: _Output(one), ["logits"]),
        # What is in a cache is no output.
        (lambda one: _Output(one, (one,)), ["logits"]),
        (lambda one: {"past_key_values": (one,), "past": one, "passed": one}, ["passed"]),
        (lambda one: (one, _ToyCache()), ["0"]),
        (lambda one: (one, _ListCache([one])), ["0"]),
        (lambda one: (one, _Updating(a=one)), ["0", "1.a"]),
        (lambda one: None, []),
        (lambda one: _Output, []),
        (lambda one: "text", []),
    ],
)
def test_the_outputs_are_all_tensors_outside_of_caches(value: Callable[[Any], Any], paths: list[str]) -> None:
    from gclint.verify.worker.examination.tensors import outputs_of

    assert list(outputs_of(value(tensor([1.0])))) == paths


@pytest.mark.parametrize(("depth", "is_found"), [(7, True), (8, True), (9, False)])
def test_tensors_are_looked_for_to_a_depth(depth: int, is_found: bool) -> None:
    from gclint.verify.worker.examination.tensors import tensors_in

    value = tensor([1.0])
    for _ in range(depth):
        value = [value]
    assert bool(list(tensors_in(value))) is is_found


def test_a_sparse_output_is_compared_as_a_dense_one() -> None:
    from gclint.verify.worker.examination.tensors import outputs_of

    dense = tensor([[0.0, 1.0]])
    (found,) = outputs_of(dense.to_sparse()).values()
    assert found.layout == dense.layout
    assert found.equal(dense)


@pytest.mark.parametrize(
    ("inputs", "outputs", "names"),
    [
        ({"input_ids": [[1, 2]]}, {"past_key_values": (1,)}, {"input_ids", "past_key_values"}),
        ({"input_ids": [[1, 2]]}, {"past_key_values": None}, None),
        ({"input_ids": [[1, 2]]}, {"logits": 1}, None),
        ({"pixel_values": [[1.0]]}, {"past_key_values": (1,)}, None),
        ({"input_ids": [[1, 2]]}, (1,), None),
        # What has a value for each token would be too long, except for those of the encoder.
        (
            {"input_ids": [[1, 2]], "attention_mask": [[1, 1]], "position_ids": [[0, 1]], "labels": [[1, 2]]},
            {"past_key_values": (1,)},
            {"input_ids", "past_key_values"},
        ),
        (
            {
                "decoder_input_ids": [[1, 2]],
                "encoder_attention_mask": [[1, 1]],
                "decoder_position_ids": [[0, 1]],
            },
            {"past_key_values": (1,)},
            {"decoder_input_ids", "encoder_attention_mask", "past_key_values"},
        ),
        (
            {"decoder_input_ids": [[1, 2]], "input_ids": [[3, 4]]},
            {"past_key_values": (1,)},
            {"decoder_input_ids", "input_ids", "past_key_values"},
        ),
    ],
)
def test_a_model_is_called_again_only_with_a_cache_and_one_more_token(
    inputs: dict[str, Any], outputs: Any, names: set[str] | None
) -> None:
    from gclint.verify.worker.examination.tensors import continued

    found = continued({name: tensor(each) for name, each in inputs.items()}, outputs)
    assert (None if found is None else set(found)) == names
    if found is not None:
        grown = "decoder_input_ids" if "decoder_input_ids" in inputs else "input_ids"
        assert found[grown].tolist() == [[2]]
        assert all(found[name].tolist() == inputs[name] for name in inputs if name in found and name != grown)


def _module() -> Any:
    from torch import nn

    module: Any = nn.BatchNorm1d(2)
    module.kept = [1]
    return module


@pytest.mark.parametrize(
    ("change", "names"),
    [
        (lambda module: None, set()),
        (lambda module: module.running_mean.add_(1.0), {"running_mean"}),
        (lambda module: module.weight.data.add_(1.0), {"weight"}),
        (lambda module: module.weight.data.copy_(module.weight.data.clone()), set()),
        (lambda module: module.register_buffer("more", tensor([1.0])), {"more"}),
        # One bit is a change here: frozen weights are compared byte by byte.
        (lambda module: module.weight.data.mul_(1 + 2**-23), {"weight"}),
        (lambda module: module.running_var.data.copy_(-0.0 * module.running_var + module.running_var), set()),
    ],
)
def test_parameters_and_buffers_are_compared_bit_by_bit(
    change: Callable[[Any], Any], names: set[str]
) -> None:
    from gclint.verify.worker.examination.state import Values

    module = _module()
    before = Values(module)
    change(module)
    assert set(before.changes()) == names


@pytest.mark.parametrize(
    ("change", "names"),
    [
        (lambda module: None, set()),
        (lambda module: setattr(module, "kept", [1]), {"kept"}),
        (lambda module: module.kept.append(2), {"kept"}),
        (lambda module: setattr(module, "made", None), {"made"}),
        (lambda module: setattr(module, "eps", 1e-5), set()),
        (lambda module: setattr(module, "eps", 1e-3), {"eps"}),
        # The switch of checkpointing, the mode and hooks are no state of the model.
        (lambda module: setattr(module, "gradient_checkpointing", True), set()),
        (lambda module: module.eval(), set()),
        (lambda module: module.register_forward_hook(lambda *_: None), set()),
    ],
)
def test_attributes_that_a_model_sets_are_state(change: Callable[[Any], Any], names: set[str]) -> None:
    from gclint.verify.worker.examination.state import ModuleAttributes

    module = _module()
    before = ModuleAttributes(module)
    change(module)
    assert set(before.changes()) == names


def _drawn() -> None:
    import numpy

    numpy.random.rand()


@pytest.mark.parametrize(
    ("draw", "generators"),
    [(lambda: None, ()), (random.random, ("random",)), (_drawn, ("numpy.random",))],
)
def test_generators_that_recomputation_used_are_known(
    draw: Callable[[], Any], generators: tuple[str, ...]
) -> None:
    from gclint.verify.worker.examination.state import Snapshot

    module = _module()
    snapshot = Snapshot(module, {}, {})
    draw()
    assert snapshot.side_effects().generators == generators


@pytest.mark.parametrize(
    ("write", "is_written"),
    [
        (lambda cache: None, False),
        (lambda cache: cache.update(), False),
        (lambda cache: cache.keys.add_(1.0), True),
        (lambda cache: setattr(cache, "keys", tensor([1.0])), True),
        (lambda cache: setattr(cache, "layers", [tensor([1.0])]), True),
    ],
)
def test_a_cache_is_written_to_where_its_tensors_are_others(
    write: Callable[[Any], Any], is_written: bool
) -> None:
    from gclint.verify.worker.examination.state import Snapshot

    module, cache = _module(), _ToyCache()
    snapshot = Snapshot(module, {7: cache}, {})
    write(cache)
    assert snapshot.side_effects().caches == (frozenset({7}) if is_written else frozenset())


@pytest.mark.parametrize(
    ("write", "is_changed"),
    [
        (lambda given: None, False),
        (lambda given: given.update(a=given["a"]), False),
        (lambda given: given.update(b=None), True),
        (lambda given: given.update(a=tensor([1.0])), True),
        (lambda given: given["a"].mul_(2.0), True),
        (lambda given: given.pop("a"), True),
    ],
)
def test_a_dictionary_is_changed_where_it_holds_something_else(
    write: Callable[[Any], Any], is_changed: bool
) -> None:
    from gclint.verify.worker.examination.state import Snapshot

    module, given = _module(), {"a": tensor([1.0])}
    snapshot = Snapshot(module, {}, {7: given})
    write(given)
    assert snapshot.side_effects().dictionaries == (frozenset({7}) if is_changed else frozenset())


@pytest.mark.parametrize(
    ("outputs", "has_loss"),
    [({"a": True}, True), ({"a": False}, False), ({}, False), ({"a": False, "b": True}, True)],
)
def test_the_loss_is_made_of_outputs_that_require_grad(outputs: dict[str, bool], has_loss: bool) -> None:
    from gclint.verify.worker.examination.tensors import total_loss

    made = {name: tensor([1.0, 2.0]).requires_grad_(each) for name, each in outputs.items()}
    scales: dict[str, float] = {}
    assert (total_loss(made, scales) is not None) is has_loss
    assert set(scales) == {name for name, each in outputs.items() if each}


def test_infinite_outputs_have_no_part_in_the_loss() -> None:
    import math

    from gclint.verify.worker.examination.tensors import total_loss

    output = tensor([1.0, -math.inf]).requires_grad_()
    loss = total_loss({"scores": output}, {})
    assert loss is not None
    loss.backward()
    assert math.isfinite(float(loss.detach()))
    assert output.grad[0] != 0.0
    assert output.grad[1] == 0.0


_RIGHT = {"a": [1.0], "b": [2.0], "c": [3.0], "d": [4.0]}


def _row(practice: str = "peft:LoRA/N", **facts: Any) -> Any:
    """Return the row of a practice whose run differs in ``facts`` from one that is right."""
    from gclint.verify.worker.practices import practices_named
    from gclint.verify.worker.training.judgement import judge
    from gclint.verify.worker.training.practice_run import PracticeRun
    from gclint.verify.worker.training.training import GROUPS

    def run(gradients: Any, **more: Any) -> Any:
        steps = [{name: tensor(each) for name, each in step.items()} for step in gradients]
        blocks = Counter({"layers.0": 2, "layers.1": 2})
        return PracticeRun(**{"gradients": steps, "recorded": blocks, "recomputed": blocks, **more})

    (known,) = practices_named([practice])
    found = run(facts.pop("gradients", [_RIGHT, _RIGHT]), **facts)
    return judge(known, GROUPS[known.group], run([_RIGHT, _RIGHT]), found, {})


@pytest.mark.parametrize(
    ("steps", "outcome", "symptom"),
    [
        ([_RIGHT, _RIGHT], "works", ""),
        # A later step counts as much as the first.
        ([_RIGHT, {**_RIGHT, "d": [4.1]}], "fails", "wrong gradients"),
        ([_RIGHT, {**_RIGHT, "d": None}], "fails", "lost gradients"),
        ([{**_RIGHT, "e": [0.0]}, _RIGHT], "works", ""),
        ([{**_RIGHT, "e": [1.0]}, _RIGHT], "fails", "wrong gradients"),
    ],
)
def test_a_set_up_works_if_all_steps_are_right(steps: Any, outcome: str, symptom: str) -> None:
    row = _row(gradients=steps)
    assert (row.outcome, row.symptom) == (outcome, symptom)


@pytest.mark.parametrize(
    ("kind", "message", "outcome", "symptom"),
    [
        ("RuntimeError", "a variable was marked as ready twice", "fails", "marked as ready twice"),
        ("RuntimeError", "Expected to have finished reduction", "fails", "unused parameters"),
        (
            "RuntimeError",
            "Trying to backward through the graph a second time",
            "fails",
            "graph freed too early",
        ),
        ("CheckpointError", "different metadata", "fails", "recomputed otherwise"),
        ("ValueError", "something else", "fails", "ValueError"),
        ("time limit", "no end", "fails", "time limit"),
    ],
)
def test_an_error_fails_a_set_up_with_its_symptom(
    kind: str, message: str, outcome: str, symptom: str
) -> None:
    from gclint.verify.worker.examination.fault import Fault

    row = _row(error=Fault(kind, message), stage="the backward pass", gradients=[])
    assert (row.outcome, row.symptom) == (outcome, symptom)


def test_an_error_that_may_not_be_the_codes_fault_judges_nothing() -> None:
    from gclint.verify.worker.examination.fault import Fault

    row = _row(error=Fault("time limit", "no end", is_foreign=True), stage="the backward pass")
    assert row.outcome == "not run"


def test_a_set_up_that_does_not_apply_is_not_run() -> None:
    from gclint.verify.worker.training.group import DoesNotApply

    row = _row(refusal=DoesNotApply("no embeddings", "there are none"))
    assert (row.outcome, row.symptom, row.recomputed, row.blocks) == ("not run", "no embeddings", None, None)


def test_a_requirement_that_is_not_met_fails_even_with_right_gradients() -> None:
    row = _row(bad=("cache", "the cache was left on"))
    assert (row.outcome, row.symptom, row.message) == ("fails", "cache", "the cache was left on")


def test_a_remark_is_added_to_any_row() -> None:
    assert _row(remark="as asked").message == "as asked"
    assert _row(remark="as asked", gradients=[{**_RIGHT, "a": None}]).message.endswith("; as asked")
