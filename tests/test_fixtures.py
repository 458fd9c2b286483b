"""Every rule's fixtures, through one harness; and the harness itself, over fixtures that are wrong."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import product
from pathlib import Path

import pytest

from gclint.code import file
from gclint.finding import Edit
from gclint.rule import Rule, all_rules
from gclint.testing.fixtures import Fixture, MalformedFixture
from gclint.testing.rules import VARIANTS
from tests.harness import FIXTURES, load_fixtures, verify_findings, verify_fix, verify_suppression
from tests.toys import WordRule, replacing, without_fix

_each_fixture = pytest.mark.parametrize("fixture", load_fixtures(), ids=lambda fixture: fixture.name)
_OF_SEVERAL_FILES = [each for each in load_fixtures() if len(each.before) > 1]


@_each_fixture
def test_what_is_announced_is_reported(fixture: Fixture, tmp_path: Path) -> None:
    verify_findings(fixture, all_rules(), tmp_path)


@pytest.mark.parametrize("fixture", _OF_SEVERAL_FILES, ids=lambda each: each.name)
def test_that_does_not_hang_on_how_many_trees_are_kept(
    fixture: Fixture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A tree that is made again has other nodes, and which are made again depends on the order of files.
    monkeypatch.setattr(file, "_tree", lru_cache(maxsize=1)(file._tree.__wrapped__))
    verify_findings(fixture, all_rules(), tmp_path)


def _written_otherwise() -> Iterator[object]:
    """Yield each fixture in each variant; in the quick part as it is, and with all fixes in one other."""
    first, *others = VARIANTS
    numbered = enumerate(load_fixtures())
    for (number, fixture), unsafe in product(numbered, (False, True)):
        for variant in VARIANTS:
            is_quick = variant == first or (unsafe and variant == others[number % len(others)])
            name = f"{'unsafe' if unsafe else 'safe'}-{variant}-{fixture.name}"
            yield pytest.param(fixture, variant, unsafe, id=name, marks=() if is_quick else pytest.mark.slow)


@pytest.mark.drawn(full=500)
@pytest.mark.parametrize(("fixture", "variant", "unsafe"), list(_written_otherwise()))
def test_what_is_fixed_is_right_however_it_is_written(
    fixture: Fixture, variant: str, unsafe: bool, tmp_path: Path
) -> None:
    verify_fix(fixture, all_rules(), tmp_path, variant, unsafe=unsafe)


@_each_fixture
def test_what_is_reported_can_be_ignored(fixture: Fixture, tmp_path: Path) -> None:
    verify_suppression(fixture, all_rules(), tmp_path)


def test_every_rule_has_fixtures() -> None:
    for rule in all_rules():
        names = {path.name for path in (FIXTURES / rule.code).iterdir()}
        assert names, rule.code


_GOOD = "x = bad  # expect: GC901 safe bad\n"
_TOY = WordRule(r"\bbad\b", replacing("good"), code="GC901")


def _fixture(folder: Path, before: str, fixed: str | None = None, unsafe: str | None = None) -> Fixture:
    rule_folder = folder / "GC901"
    rule_folder.mkdir()
    for suffix, text in (("", before), (".fixed", fixed), (".unsafe", unsafe)):
        if text is not None:
            (rule_folder / f"case{suffix}.py").write_text(text, encoding="utf-8")
    (fixture,) = load_fixtures(folder)
    return fixture


def _verify(fixture: Fixture, folder: Path, rule: Rule = _TOY) -> None:
    verify_findings(fixture, [rule], folder / "findings")
    for variant in VARIANTS:
        for unsafe in (False, True):
            verify_fix(fixture, [rule], folder / f"{variant} {unsafe}", variant, unsafe=unsafe)


def test_good_fixture_passes(tmp_path: Path) -> None:
    _verify(_fixture(tmp_path, _GOOD, "x = good\n"), tmp_path)


@pytest.mark.parametrize(
    ("before", "fixed"),
    [
        ("x = bad\n", "x = good\n"),  # not announced
        ("x = good  # expect: GC901 safe\n", None),  # not reported
        ("x = bad  # expect: GC902 safe\n", "x = good\n"),  # another rule
        ("x = bad  # expect: GC901 unsafe\n", "x = good\n"),  # another kind of fix
        ("x = bad  # expect: GC901 safe worse\n", "x = good\n"),  # another symbol
        ('x = bad  # expect: GC901 safe "badly"\n', "x = good\n"),  # another message
        (_GOOD, None),  # nothing is said to change
        (_GOOD, "x = better\n"),  # something else is said to change
    ],
)
def test_wrong_fixture_fails(tmp_path: Path, before: str, fixed: str | None) -> None:
    fixture = _fixture(tmp_path, before, fixed)
    with pytest.raises(AssertionError):
        _verify(fixture, tmp_path)


@pytest.mark.parametrize(
    "name", ["case.repaired.py", "other.fixed.py", "other.unsafe"], ids=lambda name: name
)
def test_file_that_belongs_to_no_fixture_fails(tmp_path: Path, name: str) -> None:
    _fixture(tmp_path, _GOOD)
    (tmp_path / "GC901" / name).write_text("", encoding="utf-8")
    with pytest.raises(MalformedFixture, match=re.escape(name)):
        load_fixtures(tmp_path)


def test_misspelled_expectation_fails(tmp_path: Path) -> None:
    with pytest.raises(MalformedFixture, match=r"GC901/case\.py:1: this is not of the form # expect"):
        _fixture(tmp_path, "x = bad  # expect: GC901 savely\n")


def test_unsafe_result_builds_on_the_safe_one(tmp_path: Path) -> None:
    fixture = _fixture(tmp_path, "x = bad  # expect: GC901 unsafe\n", None, "x = good\n")
    _verify(fixture, tmp_path, WordRule("bad", replacing("good"), code="GC901", unsafe=True))


def test_finding_without_a_fix_is_expected_as_such(tmp_path: Path) -> None:
    fixture = _fixture(tmp_path, "x = bad  # expect: GC901 no fix\n")
    _verify(fixture, tmp_path, WordRule("bad", without_fix, code="GC901"))
    with pytest.raises(AssertionError):
        _verify(fixture, tmp_path / "fixed", WordRule("bad", replacing("good"), code="GC901"))


def test_fix_that_rewrites_line_endings_fails(tmp_path: Path) -> None:
    def whole_file(match: re.Match[str], path: Path) -> tuple[Edit, ...]:
        text = match.string.replace("bad", "good").replace("\r\n", "\n")
        return (Edit(path, 0, len(match.string), text),)

    rule = WordRule(r"\bbad\b", whole_file, code="GC901")
    fixture = _fixture(
        tmp_path, "a = 1\nb = 1\nc = 1\nd = 1\n" + _GOOD, "a = 1\nb = 1\nc = 1\nd = 1\nx = good\n"
    )
    verify_fix(fixture, [rule], tmp_path / "plain", "as it is", unsafe=False)
    for variant in ("CRLF", "mixed line endings"):
        with pytest.raises(AssertionError):
            verify_fix(fixture, [rule], tmp_path / variant, variant, unsafe=False)
