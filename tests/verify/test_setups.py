"""Set-ups of training beside the scenarios: which can be asked for, and what is said of them."""

from __future__ import annotations

import os

import pytest

from gclint.verify.worker.practices import PRACTICES, UnknownPractice, groups, practices_named
from tests.verify.command_line import Gclint, kept_results, write

_MODEL = """\
class {name}:
    @staticmethod
    def run(watch, known):
        return replace(known, setups=({rows}), advice=({advice}))

"""
_WORKS = "SetUp('ddp', 'N/plain', 'text', 'works', recomputed=2, blocks=2),"
_FAILS = "SetUp('ddp', 'R/plain', '', 'fails', 'marked as ready twice', 'the backward pass raises E'),"
_MISSING = "SetUp('peft', 'LoRA', '', 'not run', 'missing library', 'pip install gclint[peft]'),"
_ADVICE = "Advice('ddp', 'use_reentrant=False', 'Use use_reentrant=False.'),"
_NONE = "Advice('ddp', '', 'Nothing that was run works.'),"


def test_titles_are_unique() -> None:
    titles = [each.title for each in PRACTICES]
    assert sorted(titles) == sorted(set(titles))


def test_all_are_those_that_are_usual() -> None:
    assert practices_named(["all"]) == tuple(each for each in PRACTICES if each.is_usual)


@pytest.mark.parametrize("group", groups())
def test_a_group_is_asked_for_by_its_name(group: str) -> None:
    found = practices_named([group])
    assert found
    assert {each.group for each in found} == {group}
    unusual = [each for each in PRACTICES if each.group == group and not each.is_usual]
    assert found == tuple(unusual) or not set(unusual).intersection(found)


@pytest.mark.parametrize("practice", PRACTICES, ids=lambda each: str(each.title))
def test_one_is_asked_for_by_its_title_and_runs_once(practice: object) -> None:
    title = practice.title  # type: ignore[attr-defined]
    assert practices_named([title, title]) == (practice,)


@pytest.mark.parametrize(
    ("name", "said"), [("autocats", "did you mean 'autocast'"), ("", "choose from all,")]
)
def test_an_unknown_one_is_answered_with_those_that_there_are(name: str, said: str) -> None:
    with pytest.raises(UnknownPractice, match=said):
        practices_named(["autocast", name])


def test_the_command_refuses_an_unknown_one_before_anything_is_run(gclint: Gclint) -> None:
    write("toy", _MODEL.format(name="A", rows=_WORKS, advice=_ADVICE))
    outcome = gclint("--scenario", "autocast,ddq")
    assert outcome.status == 2
    assert "there is no set-up 'ddq'" in outcome.err
    assert "Traceback" not in outcome.err
    assert not kept_results().exists()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")
class TestReport:
    """What came of them, for people; the worker is a stand-in."""

    def test_classes_that_fare_the_same_are_told_together(self, gclint: Gclint) -> None:
        same = [_MODEL.format(name=name, rows=_WORKS + _FAILS, advice=_ADVICE) for name in "AB"]
        write("toy", "".join([*same, _MODEL.format(name="C", rows=_WORKS, advice=_ADVICE)]))
        outcome = gclint()
        assert outcome.status == 0, "a set-up that fails is no failure while another one works"
        assert (
            "ddp, A and 1 more: Use use_reentrant=False.\n"
            "    classes: A, B\n"
            "    works: N/plain, text\n"
            "    fails: R/plain (marked as ready twice): the backward pass raises E\n"
            "ddp, C: Use use_reentrant=False.\n"
            "    works: N/plain, text\n"
        ) in outcome.out

    def test_a_group_in_which_nothing_works_is_a_failure(self, gclint: Gclint) -> None:
        write("toy", _MODEL.format(name="A", rows=_FAILS, advice=_NONE))
        assert gclint().status == 1

    def test_a_missing_library_is_an_error_and_the_others_are_told(self, gclint: Gclint) -> None:
        write("toy", _MODEL.format(name="A", rows=_WORKS + _MISSING, advice=_ADVICE))
        outcome = gclint()
        assert outcome.status == 2
        assert "not run: LoRA (missing library): pip install gclint[peft]" in outcome.out
        assert "works: N/plain, text" in outcome.out

    def test_a_run_with_other_setups_is_not_gone_on_with(self, gclint: Gclint) -> None:
        write("toy", _MODEL.format(name="A", rows=_WORKS, advice=_ADVICE))
        assert gclint("--scenario", "autocast", "--results", "r.jsonl").status == 0
        assert gclint("--scenario", "autocast", "--results", "r.jsonl", "--resume").status == 0
        outcome = gclint("--results", "r.jsonl", "--resume")
        assert outcome.status == 2
        assert "has the results of a different run" in outcome.err

    def test_what_ends_a_set_up_takes_nothing_from_what_is_known(self, gclint: Gclint) -> None:
        write(
            "toy",
            """
import os
from dataclasses import replace

class A:
    @staticmethod
    def run(watch, known):
        watch.begin("default", "reentrant", "the backward pass")
        watch.known(replace(known, setups=(SetUp("autocast", "N", "", "works"),)))
        watch.begin("autocast:R", "plain", "the backward pass")
        os._exit(3)
""",
        )
        outcome = gclint("--output-format", "json")
        assert outcome.status == 0
        (result,) = outcome.json()["results"]
        assert (result["outcome"], result["reason"]) == ("passed", None)
        known, missing = result["setups"]
        assert (known["outcome"], missing["outcome"], missing["symptom"]) == ("works", "not run", "exit")
        assert "during the backward pass" in missing["message"]
