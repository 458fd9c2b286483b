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


def _one_a_cause() -> set[str]:
    """Return the names of a model for each cause of a failure, and of one in which nothing is wrong."""
    found: dict[str, str] = {}
    for each in _PLANTED:
        if not (each.needs_limits or each.doubt):
            causes = {said.cause for said in each.expectations} or {"passed"}
            found |= {cause: each.name for cause in causes if cause not in found}
    return set(found.values())


_FIRST = _one_a_cause()


@pytest.fixture(scope="module")
def results(request: pytest.FixtureRequest) -> dict[str, ClassResult]:
    """Return what came of each model that is asked for, by the name of its folder."""
    calls = [getattr(item, "callspec", None) for item in request.session.items if item.path == request.path]
    asked_for = [call.params["planted"] for call in calls if call is not None]
    # Far more than any of them needs, and little to wait for those that hang.
    settings = RunSettings(Path(sys.executable), "cpu", jobs=2, seconds=20, gigabytes=6)
    found = verify([target_of(each.file) for each in asked_for], settings)
    assert found.problem is None
    assert found.unusable == {}
    return {Path(result.source).parent.name: result for result in found.sorted()}


@pytest.mark.drawn(full=40)
@pytest.mark.parametrize(
    "planted",
    [
        pytest.param(each, marks=pytest.mark.first if each.name in _FIRST else (), id=each.name)
        for each in _PLANTED
    ],
)
def test_what_is_said_of_a_model_is_found(planted: Planted, results: dict[str, ClassResult]) -> None:
    result = results[planted.name]
    assert (result.outcome, result.category or "") == (planted.outcome, planted.doubt), result.reason
    # What a message says may hang on the number of layers, which is the synthesis's here.
    expectations = [replace(each, words="") for each in planted.expectations]
    assert unmet(expectations, result.failures) == []
