"""The planted models go through the whole verifier: synthesis, worker processes and their limits."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from gclint.verify.run import verify
from gclint.verify.settings import RunSettings
from gclint.verify.sources import target_of
from gclint.verify.worker.protocol import ClassResult
from tests.verify.planted import Planted, load_planted, unmet

pytestmark = pytest.mark.torch
# The synthesis knows by a class's name which labels it takes, and says nothing of these.
_PLANTED = [each for each in load_planted() if each.name != "ignored_labels"]


@pytest.fixture(scope="module")
def results() -> dict[str, ClassResult]:
    """Return what came of each model, by the name of its folder."""
    # Far more than any of them needs, and little to wait for those that hang.
    settings = RunSettings(Path(sys.executable), "cpu", jobs=2, seconds=20, gigabytes=6)
    found = verify([target_of(each.file) for each in _PLANTED], settings)
    assert found.problem is None
    assert found.unusable == {}
    return {Path(result.source).parent.name: result for result in found.sorted()}


@pytest.mark.parametrize("planted", _PLANTED, ids=lambda planted: planted.name)
def test_what_is_said_of_a_model_is_found(planted: Planted, results: dict[str, ClassResult]) -> None:
    result = results[planted.name]
    assert (result.outcome, result.category or "") == (planted.outcome, planted.doubt), result.reason
    # What a message says may hang on the number of layers, which is the synthesis's here.
    expectations = [replace(each, words="") for each in planted.expectations]
    assert unmet(expectations, result.failures) == []
