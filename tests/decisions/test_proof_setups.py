"""How set-ups of training are prepared, and which differences rounding explains; nothing is trained."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from tests.decisions.proofs import block, tensor
from tests.verify.planted import imported, tiny_model

pytestmark = pytest.mark.torch


@pytest.fixture
def under_test() -> Iterator[Any]:
    """Yield a model with which nothing is wrong."""
    from gclint.verify.worker.examination.model_under_test import ModelUnderTest

    with imported("healthy") as module:
        yield ModelUnderTest(tiny_model(module), "cpu")


def _practice(title: str) -> Any:
    from gclint.verify.worker.practices import practices_named

    (found,) = practices_named([title])
    return found


@pytest.mark.parametrize(
    ("perturbed", "outcome"),
    [
        ({"a": [1.02, 1.0]}, "works"),
        ({"a": [1.0, 1.0]}, "fails"),
        # What only one of two runs has is no effect of rounding on it.
        ({"a": [1.02, 1.0], "b": [1.0]}, "works"),
        ({"a": [1.0, 1.0], "b": [1.0]}, "fails"),
        ({}, "fails"),
    ],
)
def test_a_difference_that_perturbed_parameters_make_as_well_is_one_of_rounding(
    monkeypatch: pytest.MonkeyPatch, under_test: Any, perturbed: Mapping[str, Any], outcome: str
) -> None:
    from gclint.verify.worker.training import training
    from gclint.verify.worker.training.practice_run import PracticeRun
    from gclint.verify.worker.watch import Watch

    right = {"a": [1.0, 1.0], "b": None, **{name: [1.0] for name in "cdefghijklm"}}
    ran = {"layers.0": 1}

    def run(_self: Any, practice: Any, _scales: Any, number: int = 0) -> Any:
        # The largest effect counts, in whichever run it shows.
        plain = {**right, **perturbed} if number == 1 else right
        gradients = plain if practice.mode == "plain" else {**right, "a": [1.01, 1.0]}
        return PracticeRun([{name: tensor(each) for name, each in gradients.items()}], ran, ran)  # type: ignore[arg-type]

    monkeypatch.setattr(training._Training, "_run", run)
    row = training._Training(under_test, Watch(), 1.0).row(_practice("peft:LoRA/N"))
    assert row is not None
    assert row.outcome == outcome


@pytest.mark.parametrize("is_wrapped", [False, True])
@pytest.mark.parametrize(("has_loss", "expected"), [(True, ["loss"]), (False, ["loss", "logits"])])
def test_the_loss_of_the_model_alone_is_trained_beside_ddp_as_in_it(
    monkeypatch: pytest.MonkeyPatch, under_test: Any, is_wrapped: bool, has_loss: bool, expected: list[str]
) -> None:
    from gclint.verify.worker.training import parallel
    from gclint.verify.worker.training.group import ALONE

    monkeypatch.setattr(parallel, "join", lambda _rank: None)
    monkeypatch.setattr(parallel, "DistributedDataParallel", lambda model, **_: model)
    practice = _practice("ddp:N/plain")
    prepared = parallel.prepare(practice if is_wrapped else practice.reference(), under_test, (), ALONE)
    outputs = {"loss": tensor(1.0).requires_grad_(has_loss), "logits": tensor([1.0]).requires_grad_()}
    assert list(prepared.in_loss(outputs)) == expected
    assert any(under_test.flags().values()) is is_wrapped


def test_all_blocks_are_sharded_over_one_mesh_of_the_models_device(
    monkeypatch: pytest.MonkeyPatch, under_test: Any
) -> None:
    from gclint.verify.worker.training import wrapping
    from gclint.verify.worker.training.group import Rank

    sharded: list[tuple[Any, Any]] = []
    monkeypatch.setattr(wrapping, "join", lambda _rank: None)
    monkeypatch.setattr(wrapping, "init_device_mesh", lambda *given: given)
    monkeypatch.setattr(wrapping, "fully_shard", lambda module, mesh=None: sharded.append((module, mesh)))
    practice = _practice("wrapper:fully_shard")
    blocks = [block("layers.0"), block("layers.1")]
    wrapping.WRAPPING.prepare(practice, under_test, blocks, Rank(0, 2))
    modules = [under_test.model.layers[0], under_test.model.layers[1], under_test.model]
    assert sharded == [(each, ("cpu", (2,))) for each in modules]
    assert any(under_test.flags().values())


@pytest.mark.parametrize(("title", "version"), [("wrapper:fsdp/no-cache", 1), ("wrapper:fsdp2/no-cache", 2)])
def test_accelerate_is_asked_for_the_generation_of_fsdp(
    monkeypatch: pytest.MonkeyPatch, under_test: Any, title: str, version: int
) -> None:
    from gclint.verify.worker.training import wrapping
    from gclint.verify.worker.training.group import ALONE

    asked: list[dict[str, Any]] = []

    def plugin(**settings: Any) -> Any:
        asked.append(settings)
        return SimpleNamespace(set_auto_wrap_policy=lambda _model: None)

    accelerate = SimpleNamespace(FullyShardedDataParallelPlugin=plugin)
    monkeypatch.setattr(wrapping, "library", lambda _name, _extra: accelerate)
    monkeypatch.setattr(wrapping, "_FSDP", dict.fromkeys(wrapping._FSDP, lambda _model, _plugin: None))
    wrapping.WRAPPING.prepare(_practice(title), under_test, [block("layers.0")], ALONE)
    (settings,) = asked
    assert settings["fsdp_version"] == version
    assert settings["activation_checkpointing"] is True
    assert settings["transformer_cls_names_to_wrap"] is None
