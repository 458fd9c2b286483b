"""Each failure that only a set-up of training shows is found there, and nothing else alarms."""

from __future__ import annotations

import sys

import pytest

from gclint.verify.worker.practices import MISSING_LIBRARY, practices_named
from tests.verify.planted_setups import PlantedSetup, load_planted_setups, train_planted, unmet

_LIBRARIES = {"ddp": "accelerate", "peft": "peft", "wrapper": "accelerate"}
"""What a group needs."""


@pytest.mark.torch
@pytest.mark.parametrize("planted", load_planted_setups(), ids=lambda planted: planted.name)
def test_what_is_said_of_a_model_comes_true(planted: PlantedSetup) -> None:
    for group in planted.groups:
        if group in _LIBRARIES:
            pytest.importorskip(_LIBRARIES[group])
    assert unmet(planted, train_planted(planted).setups) == []


@pytest.mark.torch
def test_advice_names_what_fails_with_this_model_and_not_what_fails_with_all() -> None:
    pytest.importorskip("peft")
    planted = next(each for each in load_planted_setups() if each.name == "images_without_hook")
    (advice,) = train_planted(planted).advice
    assert advice.setting == "use_reentrant=False"
    assert advice.sentence == "With adapters, use use_reentrant=False; this fails: LoRA/R (no gradient)."


@pytest.mark.torch
def test_a_missing_library_is_a_row_that_says_which_extra_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    # None in the table of modules is what Python takes for a module that is not there.
    monkeypatch.setitem(sys.modules, "peft", None)
    planted = next(each for each in load_planted_setups() if each.name == "images_with_hook")
    result = train_planted(planted)
    assert {(each.outcome, each.symptom) for each in result.setups} == {("not run", MISSING_LIBRARY)}
    assert "pip install peft" in result.setups[0].message
    assert "gclint's extra 'peft'" in result.setups[0].message
    assert result.advice == ()


@pytest.mark.torch
@pytest.mark.parametrize(("group", "outcome"), [("compile", "not run"), ("wrapper", "fails")])
def test_a_compilation_that_comes_to_no_end_is_no_failure(group: str, outcome: str) -> None:
    from gclint.verify.worker.examination.fault import Fault
    from gclint.verify.worker.training.judgement import judge
    from gclint.verify.worker.training.practice_run import PracticeRun
    from gclint.verify.worker.training.training import GROUPS

    late = PracticeRun(error=Fault("time limit", "no end within 30 s"))
    row = judge(practices_named([group])[0], GROUPS[group], PracticeRun(), late, {})
    assert (row.outcome, row.symptom) == (outcome, "time limit")
