"""The mutants of gclint: what is changed, that they are the same each time, and that tests kill them."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.environment import PROJECT
from tests.mutants.drawing import Mutant, draw
from tests.mutants.reach import Reach, Suite
from tests.mutants.survivors import FILE, entry, reasons
from tests.mutants.trying import tried

_MODULE = '''\
"""A module."""

NAMES = ("one", "two")


def is_known(name: str, *, aloud: bool = False) -> bool:
    """Tell whether a name is known."""
    if aloud and name:
        print(f"looking for {name}", "in the names", flush=True)
    return name in NAMES
'''
_TESTS = """\
from gclint.network.toy import is_known


def test_known():
    assert is_known("one") is True
    assert is_known("three") is False


def test_nothing_of_it():
    assert True
"""


def _drawn(folder: Path, text: str = _MODULE, number: int = 1000) -> list[Mutant]:
    module = folder / "gclint" / "network" / "toy.py"
    module.parent.mkdir(parents=True, exist_ok=True)
    module.write_text(text, encoding="utf-8")
    return draw(folder, number, 0)


def _changes(mutants: list[Mutant]) -> set[tuple[str, str]]:
    return {(each.key.before, each.key.after) for each in mutants}


def test_conditions_values_statements_and_members_are_changed_and_no_words_or_types(tmp_path: Path) -> None:
    said = 'print(f"looking for {name}", "in the names", flush=True)'
    assert _changes(_drawn(tmp_path)) == {
        ('("one", "two")', "(('two',))"),
        ('("one", "two")', "(('one',))"),
        ('"one"', "'one?'"),
        ('"two"', "'two?'"),
        ("False", "True"),
        ("True", "False"),
        ("aloud and name", "(not (aloud and name))"),
        ("aloud and name", "(aloud or name)"),
        ("aloud and name", "(aloud)"),
        ("aloud and name", "(name)"),
        (said, "pass"),
        (said, "(print(f'looking for {name}', 'in the names'))"),
        ("return name in NAMES", "return None"),
        ("name in NAMES", "(name not in NAMES)"),
    }


def test_what_is_drawn_stays_where_code_around_it_changes(tmp_path: Path) -> None:
    before = _drawn(tmp_path, number=6)
    assert len(before) == 6
    after = _drawn(tmp_path, _MODULE.replace("NAMES = ", "# The names.\nNAMES = "), number=6)
    assert [each.key for each in after] == [each.key for each in before]
    assert [each.lines for each in after] != [each.lines for each in before]


def test_reasons_are_read_as_they_are_written(tmp_path: Path) -> None:
    written = {each.key: f'"{number}" \\ é' for number, each in enumerate(_drawn(tmp_path))}
    assert reasons("\n".join(entry(key, reason) for key, reason in written.items())) == written


def test_every_survivor_has_a_reason() -> None:
    assert all(reasons(FILE.read_text(encoding="utf-8")).values())


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="each mutant is tried in a fork")
def test_a_mutant_is_killed_by_the_tests_that_execute_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    place = tmp_path / "0"
    mutants = _drawn(place)
    shutil.copytree(PROJECT / "tests" / "mutants", place / "tests" / "mutants")
    (place / "tests" / "test_toy.py").write_text(_TESTS, encoding="utf-8")
    suite = Suite("quick", is_of_worker=False, arguments=("tests/test_toy.py",))
    suite.record(place, tmp_path).wait()
    suite.combine(tmp_path)
    reach = Reach([suite], place, tmp_path)
    outcomes = tried(mutants, reach, [place], seconds=10)
    assert {each.by for each in outcomes.values()} <= {
        "",
        "tests/test_toy.py::test_known",
        "no test executes it",
    }
    alive = _changes([each for each, outcome in outcomes.items() if not outcome.is_killed])
    assert ("name in NAMES", "(name not in NAMES)") not in alive
    assert ('"two"', "'two?'") in alive
    assert (place / "gclint" / "network" / "toy.py").read_text(encoding="utf-8") == _MODULE
