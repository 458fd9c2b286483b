"""Hints: each is asked, in the order of one table, and what was tried is not tried again."""

from __future__ import annotations

import inspect
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from gclint.verify.worker.synthesis import hints  # noqa: E402
from gclint.verify.worker.synthesis.attempts.trial import step  # noqa: E402
from gclint.verify.worker.synthesis.hints.table import HINTS, next_plan  # noqa: E402
from gclint.verify.worker.synthesis.inputs.plan import Plan  # noqa: E402
from gclint.verify.worker.synthesis.inputs.situation import Situation  # noqa: E402
from tests.verify.synthesis.one_layer import OneLayerConfig, OneLayerModel, first  # noqa: E402


def test_every_hint_stands_in_the_table_once() -> None:
    names = {path.stem for path in Path(str(hints.__file__)).parent.glob("*.py")} - {
        "__init__",
        "failure",
        "table",
    }
    modules = [import_module(f"{hints.__name__}.{name}") for name in sorted(names)]
    written = {
        value
        for module in modules
        for name, value in inspect.getmembers(module, inspect.isfunction)
        if value.__module__ == module.__name__ and not name.startswith("_")
    }
    assert set(HINTS) == written
    assert len(HINTS) == len(written)


def test_a_plan_that_was_tried_is_not_proposed_again() -> None:
    situation = Situation(OneLayerModel, OneLayerConfig(), Plan(), OneLayerConfig())
    error = ValueError("`use_cache` can only be set to `True` in a decoder")
    proposed = next_plan(situation, error, [])
    assert proposed == Plan().with_values({("=", "use_cache"): False})
    assert next_plan(situation, error, [proposed]) is None


def test_an_error_that_says_nothing_leads_to_no_plan() -> None:
    situation = Situation(OneLayerModel, OneLayerConfig(), Plan(), OneLayerConfig())
    assert next_plan(situation, RuntimeError("frobnicated"), []) is None


def test_a_class_that_fails_at_first_is_tried_otherwise() -> None:
    class Raised(OneLayerModel):
        def forward(self, hidden_states: Any) -> Any:
            _batch, _count, _length, _width = hidden_states.shape
            return super().forward(hidden_states)

    specimen = first(Raised)
    assert specimen.inputs()["hidden_states"].dim() == 4
    step(specimen.build(), specimen.inputs())
