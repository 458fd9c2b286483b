"""A release is run before its repair and after it, as a maintainer would do it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.ecosystem.environments import release_environment
from tests.ecosystem.releases import copy_of_release
from tests.ecosystem.reported import MODELS
from tests.environment import EnvironmentUnavailable

pytestmark = [pytest.mark.releases, pytest.mark.torch, pytest.mark.nightly]

_RELEASE = "4.57.6"
_DEAD = "gpt_bigcode"
_DEAD_WITH_STATISTICS = "swiftformer"
_LEGACY = ("xlstm", "zamba", "zamba2")
_EXEMPT = "clvp"
_AS_IT_IS = "bert"
_IN_BOTH_MODES = {"non-reentrant", "reentrant"}


@dataclass(frozen=True)
class _Release:
    """What came of the classes before and after, and what was said of the repair."""

    before: dict[str, dict[str, Any]]
    after: dict[str, dict[str, Any]]
    said: str

    def of(self, model: str) -> list[tuple[dict[str, Any], dict[str, Any]]]:
        """Return what came of a model's classes before and after."""
        found = [
            (before, self.after[name])
            for name, before in self.before.items()
            if Path(before["source"]).parent.name == model
        ]
        assert found
        return found


def _fingerprints(result: dict[str, Any], scenarios: Collection[str]) -> list[dict[str, Any]]:
    return [each for each in result["fingerprints"] if each["scenario"] in scenarios]


@pytest.fixture(scope="module")
def run(release: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> _Release:
    """Run, repair with ``--verify``, and run again."""
    try:
        python = release_environment(_RELEASE)
    except EnvironmentUnavailable as error:
        pytest.skip(str(error))
    release(_RELEASE)
    folder = copy_of_release(_RELEASE, tmp_path_factory.mktemp("verified")).parent
    about_runs = ("--python", str(python), "--device", "cpu")

    def gclint(*arguments: str) -> str:
        command = [sys.executable, "-m", "gclint", *arguments, *about_runs]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        assert done.returncode in (0, 1), done.stderr
        return done.stdout

    def verified(*models: str) -> dict[str, dict[str, Any]]:
        paths = [f"{MODELS}/{name}" for name in models]
        results = json.loads(gclint("verify", "--output-format", "json", *paths))["results"]
        return {result["name"]: result for result in results}

    repaired = (_DEAD, _DEAD_WITH_STATISTICS, *_LEGACY)
    before = verified(*repaired, _EXEMPT, _AS_IT_IS)
    said = gclint("--fix", "--unsafe-fixes", "--verify", *(f"{MODELS}/{name}" for name in repaired))
    # Of this one, only what is safe.
    said += gclint("--fix", "--verify", f"{MODELS}/{_EXEMPT}")
    return _Release(before, verified(*repaired, _EXEMPT, _AS_IT_IS), said)


def test_nothing_is_recomputed_before_and_everything_after(run: _Release) -> None:
    found = run.of(_DEAD)
    assert len(found) == 4
    for before, after in found:
        nothing = [each for each in before["failures"] if each["cause"] == "not a checkpointing layer"]
        assert {each["mode"] for each in nothing} == _IN_BOTH_MODES
        assert {hint["code"] for each in nothing for hint in each["repaired_by"]} == {"GC001"}
        assert before["recomputed"] == 0
        assert after["recomputed"] == after["blocks"] > 0
        assert after["outcome"] == "passed"


def test_a_repair_that_updates_statistics_twice_is_not_proven(run: _Release) -> None:
    for before, after in run.of(_DEAD_WITH_STATISTICS):
        causes = {each["cause"] for each in before["failures"]}
        assert "not a checkpointing layer" in causes
        assert "statistics" not in causes
        assert (after["recomputed"], after["failures"]) == (0, before["failures"])
    refused = run.said.partition(f"{_DEAD_WITH_STATISTICS}.py: not repaired\n")[2].partition("\n")[0]
    assert "buffers differ from those without checkpointing" in refused


@pytest.mark.parametrize("model", _LEGACY)
def test_legacy_branches_pass_before_and_the_base_class_after(run: _Release, model: str) -> None:
    for before, after in run.of(model):
        assert (before["outcome"], after["outcome"]) == ("passed", "passed")
        assert not any(site["is_layer"] and site["is_trunk"] for site in before["sites"])
        assert any(site["is_layer"] and site["recomputed"] for site in after["sites"])


@pytest.mark.parametrize("model", [_DEAD, *_LEGACY])
def test_the_same_bits_are_computed_without_checkpointing(run: _Release, model: str) -> None:
    assert f"{MODELS}/{model}/modeling_{model}.py" in run.said
    for before, after in run.of(model):
        # Adapters go into the blocks, and what only a branch checkpoints is not always known as one.
        scenarios = {each["scenario"] for each in before["fingerprints"]} - {"frozen base"}
        assert "default" in scenarios
        assert _fingerprints(before, scenarios) == _fingerprints(after, scenarios)


def test_what_cannot_be_converted_safely_is_left_alone_with_the_reason(run: _Release) -> None:
    for before, after in run.of(_EXEMPT):
        assert before["recomputed"] == after["recomputed"]
        assert [site["is_layer"] for site in before["sites"]] == [site["is_layer"] for site in after["sites"]]
    assert "`use_cache` gets `cache_position` in the checkpointed call" in run.said


def test_a_model_with_dropout_on_several_choices_is_run_as_it_is(run: _Release) -> None:
    before = run.before["BertForMultipleChoice"]
    assert before["outcome"] == "passed"
    assert "dropout" in before["scenarios"]
