"""What becomes of a class besides its examination: which classes are run with practices, and which not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from gclint.verify.worker.models import Models
from gclint.verify.worker.protocol import ClassResult, Source, SourcePlace
from gclint.verify.worker.tiny_model import BrokenModel, NotSynthesisable
from gclint.verify.worker.watch import Watch

_SOURCE = Source("modeling_toy.py", "toy")


class _Toy:
    pass


class _Program(Models):
    """A program whose examination and set-ups are made by hand."""

    def __init__(
        self,
        result: ClassResult | Exception,
        practices: Sequence[str] = ("peft:LoRA/N",),
        *,
        unsupported: str | None = None,
        tiny_models: Sequence[Any] = ("default", "cross-attention"),
        error: Exception | None = None,
    ) -> None:
        super().__init__((), practices)
        self.examined: list[Any] = []
        self.trained: list[Any] = []

        def examine(source: Any, model_class: Any, found: Any, device: str, *, watch: Any) -> ClassResult:
            self.examined += found
            if isinstance(result, Exception):
                raise result
            return result

        def train(result: ClassResult, tiny_model: Any, device: str, chosen: Any, watch: Any) -> ClassResult:
            self.trained.append((tiny_model, device, [each.name for each in chosen]))
            return result

        def made(model_class: Any) -> Any:
            if error is not None:
                raise error
            yield from tiny_models

        self._unsupported = lambda _class: unsupported
        self._examine, self._tiny_models, self._trained = examine, made, train

    def result(self) -> ClassResult:
        return self.examine(_SOURCE, _Toy, "cpu", Watch())


def _result(outcome: Any) -> ClassResult:
    return ClassResult(_SOURCE.path, "_Toy", outcome)


@pytest.mark.parametrize(
    ("outcome", "practices", "is_trained"),
    [
        ("passed", ["peft:LoRA/N"], True),
        # Some other setting may work.
        ("failed", ["peft:LoRA/N"], True),
        ("not run", ["peft:LoRA/N"], False),
        ("passed", [], False),
        ("failed", [], False),
    ],
)
def test_practices_are_run_with_all_classes_that_were_judged(
    outcome: Any, practices: list[str], is_trained: bool
) -> None:
    program = _Program(_result(outcome), practices)
    assert program.result() == _result(outcome)
    assert program.examined == ["default", "cross-attention"]
    assert program.trained == ([("default", "cpu", ["LoRA/N"])] if is_trained else [])


def test_a_class_that_is_not_supported_is_not_built() -> None:
    program = _Program(_result("passed"), unsupported="has no layers")
    result = program.result()
    assert (result.outcome, result.reason) == ("not run", "has no layers")
    assert (program.examined, program.trained) == ([], [])


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (NotSynthesisable("too large", "too many parameters"), "not run"),
        (BrokenModel("NameError: no", "nothing defines it", SourcePlace("modeling_toy.py", 3, 3)), "failed"),
    ],
)
@pytest.mark.parametrize("is_late", [False, True])
def test_a_class_that_cannot_be_run_is_judged_by_why(error: Any, outcome: str, is_late: bool) -> None:
    program = _Program(error) if is_late else _Program(_result("passed"), error=error)
    result = program.result()
    assert result.outcome == outcome
    assert program.trained == []
    if outcome == "failed":
        (failure,) = result.failures
        assert (failure.mode, failure.scenario, failure.places) == ("plain", "default", (error.place,))
    else:
        assert (result.category, result.reason) == ("too large", "too many parameters")
