"""Fixes made until nothing is left to fix."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from gclint.code.project import Project
from gclint.finding import Applicability, Edit, Finding, Fix, Refusal
from gclint.network.model import Network
from gclint.rule import Rule
from gclint.rules.gc000_unused_ignore import UnusedIgnore
from gclint.run.fix import FixResult, fix
from gclint.settings import Settings
from tests.toys import CrashingRule, WordRule, replacing, without_fix


@pytest.fixture(autouse=True)
def _in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def _fix(*rules: Rule, unsafe: bool = False, **texts: str) -> FixResult:
    """Fix files of these names and texts, and make sure that nothing is written."""
    data = {Path(f"{name}.py"): text.encode() for name, text in texts.items()}
    for path, content in data.items():
        path.write_bytes(content)
    result = fix(Project(Settings(), list(data)), rules, unsafe=unsafe)
    assert {path: path.read_bytes() for path in data} == data
    return result


def _texts(result: FixResult) -> dict[str, str]:
    return {path.stem: after for path, (_, after) in result.changed.items()}


def _left(result: FixResult) -> list[str]:
    return [finding.symbol for finding in result.findings]


def test_all_fixes_are_made_and_everything_else_stays() -> None:
    text = "\x0cx = bad\r\n\ty = 1\n".replace("\t", "") + "z = 'é', bad\r\nbad"
    result = _fix(WordRule("bad", replacing("good")), a=text, b="y = 1\n")
    assert result.changed == {Path("a.py"): (text, text.replace("bad", "good"))}
    assert result.findings == ()
    assert len(result.applied) == 3


def test_suppressed_finding_is_not_fixed() -> None:
    result = _fix(WordRule("bad", replacing("good")), a="bad = 1  # gclint: ignore[TOY1]\nbad = 2\n")
    assert _texts(result) == {"a": "bad = 1  # gclint: ignore[TOY1]\ngood = 2\n"}
    assert result.findings == ()


def test_comment_that_a_fix_makes_needless_is_removed_too() -> None:
    result = _fix(
        WordRule("(bad) = 1", lambda match, path: (Edit(path, 0, 3, "good"),)),
        WordRule("bad", without_fix, code="TOY2"),
        UnusedIgnore(),
        a="bad = 1  # gclint: ignore[TOY2]\n",
    )
    assert _texts(result) == {"a": "good = 1\n"}


def test_overlapping_fixes_are_made_one_after_the_other() -> None:
    result = _fix(
        WordRule("a, b", replacing("b, a")), WordRule("b, c", replacing("c"), code="TOY2"), x="f(a, b, c)\n"
    )
    # Once the first is made, there is no `b, c` any more.
    assert _texts(result) == {"x": "f(b, a, c)\n"}
    assert [finding.code for finding in result.applied] == ["TOY1"]
    assert [(each.code, each.fix) for each in result.gone] == [("TOY2", None)]


def test_only_what_was_there_and_wanted_goes_with_a_fix() -> None:
    first = WordRule("bad", replacing("good"))
    second = WordRule("bad|good|late", without_fix, code="TOY2")
    result = _fix(first, second, x="x = bad, late\n")
    # One name went, another one came, and the third one was and is there.
    assert [(each.code, each.symbol) for each in result.gone] == [("TOY2", "bad")]
    assert sorted(_left(result)) == ["good", "late"]
    again = _fix(first, second, x="x = bad  # gclint: ignore[TOY2]\n")
    assert (len(again.applied), again.gone) == (1, ())


def test_fix_of_a_fix_is_made() -> None:
    result = _fix(
        WordRule("one", replacing("two")), WordRule("two", replacing("three"), code="TOY2"), x="one\n"
    )
    assert _texts(result) == {"x": "three\n"}


def _with_import(match: re.Match[str], path: Path) -> tuple[Edit, ...]:
    return (Edit(path, 0, 0, "import good\n"), Edit(path, *match.span(), "good.x"))


def test_import_that_two_fixes_need_is_inserted_once() -> None:
    result = _fix(WordRule("bad", _with_import), x="y = bad, bad\n")
    assert _texts(result) == {"x": "import good\ny = good.x, good.x\n"}
    assert len(result.applied) == 2


def test_edits_may_come_in_any_order() -> None:
    rule = WordRule("bad", lambda match, path: _with_import(match, path)[::-1])
    assert _texts(_fix(rule, x="y = bad\n")) == {"x": "import good\ny = good.x\n"}


def test_two_insertions_at_one_place_are_made_one_after_the_other() -> None:
    def repair(name: str) -> WordRule:
        def edits(match: re.Match[str], path: Path) -> tuple[Edit, ...]:
            return (Edit(path, 0, 0, f"import {name}\n"), Edit(path, *match.span(), name.upper()))

        return WordRule(rf"(?<!import )\b{name}\b", edits, code=f"TOY{name}")

    result = _fix(repair("a"), repair("b"), x="a, b\n")
    assert _texts(result) == {"x": "import b\nimport a\nA, B\n"}


@pytest.mark.parametrize("code", ["TOY0", "TOY2"])
@pytest.mark.parametrize(("place", "text"), [(4, "not "), (7, " + 1")])
def test_nothing_is_inserted_at_an_edge_of_what_another_fix_replaces(
    place: int, text: str, code: str
) -> None:
    # Whichever fix is made first, there is no reason for the other one any more.
    inserting = WordRule(r"\Ax = bad\n", lambda _, path: (Edit(path, place, place, text),))
    replacement = WordRule(r"\Ax = bad\n", lambda _, path: (Edit(path, 4, 7, "good"),), code=code)
    result = _fix(inserting, replacement, x="x = bad\n")
    assert [each.code for each in result.applied] == [min(code, "TOY1")]


def test_fixes_that_replace_neighbours_are_made_at_once() -> None:
    sign = WordRule("-(?=1)", replacing("+"))
    number = WordRule("(?<=-)1", replacing("2"), code="TOY2")
    assert _texts(_fix(sign, number, x="x = -1\n")) == {"x": "x = +2\n"}


def test_text_that_a_fix_relies_on_is_not_changed_beside_it() -> None:
    # The first fix keeps `(b)` as it is; what another one makes of it must be decided afterwards.
    def relying(match: re.Match[str], path: Path) -> tuple[Edit, ...]:
        return (Edit(path, *match.span(1), "A"), Edit(path, *match.span(2), match[2]))

    def by_what_stands_before(match: re.Match[str], path: Path) -> tuple[Edit, ...]:
        return (Edit(path, *match.span(), "[upper]" if match.string.startswith("A") else "[lower]"),)

    result = _fix(
        WordRule(r"(a)(\(b\))", relying), WordRule(r"\(b\)", by_what_stands_before, code="TOY2"), x="a(b)\n"
    )
    assert _texts(result) == {"x": "A[upper]\n"}


def test_fixes_that_rely_on_the_same_text_are_made_one_after_the_other() -> None:
    # Each takes one use of `import bad` away; only who takes the last one can see that it is the last.
    def without_use(match: re.Match[str], path: Path) -> tuple[Edit, ...]:
        statement = "import bad\n"
        content = "" if match.string.count("bad") == 2 else statement
        return (Edit(path, 0, len(statement), content), Edit(path, *match.span(), "good"))

    result = _fix(WordRule(r"(?<!import )bad", without_use), x="import bad\nbad, bad, bad\n")
    assert _texts(result) == {"x": "good, good, good\n"}
    assert len(result.applied) == 3


def test_edits_of_one_fix_are_all_made_or_none() -> None:
    class EdgesAndMiddle(Rule):
        """One fix of two edits, the second of which is in the way of the other rule's."""

        code, name = "TOY2", "edges"

        def check(self, network: Network) -> Iterable[Finding]:
            if network.file.text == "one two three\n".replace(" ", "+"):
                path = network.file.path
                edits = (Edit(path, 0, 3, "ONE"), Edit(path, 4, 7, "TWO"))
                yield Finding("TOY2", "edges", "", path, 5, 6, "edges", Fix("Repair", edits))

    result = _fix(EdgesAndMiddle(), WordRule("two", replacing("2")), x="one+two+three\n")
    assert _texts(result) == {"x": "one+2+three\n"}


class _Consulting(Rule):
    """Wants ``value`` to be what ``b.py`` says."""

    code, name = "TOY2", "consulting"
    looked: list[str]

    def __init__(self) -> None:
        self.looked = []

    def check(self, network: Network) -> Iterable[Finding]:
        path = network.file.path
        self.looked.append(path.stem)
        match = re.search(r"value = (\w+)", network.file.text)
        if match is not None:
            wanted = network.project.consult(network.file, Path("b.py")).text.strip()
            if match[1] != wanted:
                edits = (Edit(path, *match.span(1), wanted),)
                yield Finding(self.code, self.name, "", path, *match.span(), "value", Fix("Repair", edits))


def test_file_whose_verdict_hangs_on_a_changed_one_is_checked_again_and_no_other() -> None:
    rule = _Consulting()
    result = _fix(rule, WordRule(r"\Abad", replacing("good")), a="value = bad\n", b="bad\n", c="x = 1\n")
    assert _texts(result) == {"a": "value = good\n", "b": "good\n"}
    assert rule.looked == ["a", "b", "c", "a", "b", "a"]
    assert result.findings == ()


class _TellingB(Rule):
    """Repairs ``bad`` in its file together with ``y`` in ``b.py``, which it does not consult formally."""

    code, name = "TOY2", "telling-b"

    def check(self, network: Network) -> Iterable[Finding]:
        path, other = network.file.path, Path("b.py")
        start = network.project.file(other).text.find("y")
        if "bad" in network.file.text:
            edits = (Edit(path, 0, 3, "good"), Edit(other, start, start + 1, "z"))
            yield Finding(self.code, self.name, "", path, 0, 3, "bad", Fix("Repair", edits))


def test_edits_in_a_file_that_has_changed_are_looked_for_again() -> None:
    # The first rule's edit is in the way of the other one's, and moves its place.
    result = _fix(WordRule(r"\Ax = y", replacing("longer = y")), _TellingB(), b="x = y\n", c="bad\n")
    assert _texts(result) == {"b": "longer = z\n", "c": "good\n"}


def test_fix_may_change_several_files() -> None:
    def both(match: re.Match[str], path: Path) -> tuple[Edit, ...]:
        return (Edit(path, *match.span(), "good"), Edit(Path("b.py"), 0, 0, "# told by a\n"))

    result = _fix(WordRule("bad", both), a="x = bad\n", b="y = 1\n")
    assert _texts(result) == {"a": "x = good\n", "b": "# told by a\ny = 1\n"}


@pytest.mark.parametrize("order", [1, -1])
def test_fix_may_rely_on_a_file_that_it_does_not_change(order: int) -> None:
    def relying(match: re.Match[str], path: Path) -> tuple[Edit, ...]:
        return (Edit(path, *match.span(), "good"), Edit(Path("b.py"), 0, 1, "y"))[::order]

    result = _fix(WordRule("bad", relying), a="x = bad\n", b="y = 1\n")
    assert _texts(result) == {"a": "x = good\n"}
    assert result.problems == ()


def test_fix_that_breaks_the_code_is_refused_alone_and_once() -> None:
    result = _fix(
        WordRule("bad", replacing("good")),
        WordRule("odd", replacing("o dd"), code="TOY2"),
        WordRule("late", replacing("f(a=1, a=2)"), code="TOY3"),
        x="bad, odd, bad, late\n",
        y="bad\n",
    )
    assert _texts(result) == {"x": "good, odd, good, late\n", "y": "good\n"}
    refusal = Refusal("its fix failed because of a bug in gclint")
    left = [(finding.symbol, finding.remedy) for finding in result.findings]
    assert left == [("odd", refusal), ("late", refusal)]
    messages = {problem.message.partition(" was not made")[0]: problem for problem in result.problems}
    assert set(messages) == {"the fix of TOY2 for odd", "the fix of TOY3 for late"}
    assert len(result.problems) == 2
    assert all("this is a bug in gclint" in problem.message for problem in result.problems)
    assert messages["the fix of TOY2 for odd"].position is not None


@pytest.mark.parametrize(
    "other",
    [
        {"path": Path("y.py")},
        {"code": "TOY2"},
        {"symbol": "another"},
        {"message": "another"},
        {"fix": "4"},
        {},
    ],
    ids=str,
)
def test_refused_fix_refuses_no_other_one(other: dict[str, Any]) -> None:
    class Two(Rule):
        """Finds the same twice, but for one difference; the second fix is unsafe, and so is not made."""

        code, name = "TOY1", "two"

        def check(self, network: Network) -> Iterable[Finding]:
            if network.file.path == Path("x.py"):
                yield self._finding(0)
                yield self._finding(1, "look", **other)

        def _finding(
            self,
            start: int,
            doubt: str | None = None,
            *,
            code: str = "TOY1",
            message: str = "",
            path: Path = Path("x.py"),
            symbol: str = "",
            fix: str = "(",
        ) -> Finding:
            applicability = Applicability.SAFE if doubt is None else Applicability.UNSAFE
            remedy = Fix("Repair", (Edit(path, start, start + 1, fix),), applicability, doubt)
            return Finding(code, self.name, message, path, start, start + 1, symbol, remedy)

    result = _fix(Two(), x="123\n", y="123\n")
    assert [each.fix is None for each in result.findings] == [True, not other]


def test_files_of_a_refused_fix_are_not_written_together() -> None:
    def both(match: re.Match[str], path: Path) -> tuple[Edit, ...]:
        return (Edit(path, *match.span(), "("), Edit(Path("b.py"), 0, 0, "# told by a\n"))

    result = _fix(WordRule("bad", both), WordRule("worse", replacing("good")), a="bad, worse\n", b="y = 1\n")
    assert _texts(result) == {"a": "bad, good\n"}
    assert result.together == ()


def test_fix_made_first_is_in_the_way_of_the_last_too() -> None:
    first = WordRule(r"\Aa(?=, bad)", lambda _, path: (Edit(path, 3, 6, "good"),))
    second = WordRule(r"a(?=, bad)", replacing("A"), code="TOY2")
    result = _fix(first, second, WordRule("bad", replacing("worse"), code="TOY3"), x="a, bad\n")
    assert _texts(result) == {"x": "A, good\n"}


def test_fix_that_waited_for_a_refused_one_is_made() -> None:
    result = _fix(
        WordRule("bad", replacing("b ad")), WordRule("bad", replacing("good"), code="TOY2"), x="bad\n"
    )
    assert _texts(result) == {"x": "good\n"}
    assert len(result.problems) == 1


@pytest.mark.parametrize("unsafe", [True, False])
@pytest.mark.parametrize("proves", [True, False])
def test_fix_that_a_run_has_to_prove_is_made_where_it_is_run(unsafe: bool, proves: bool) -> None:
    class Provable(Rule):
        code, name = "TOY1", "provable"

        def check(self, network: Network) -> Iterable[Finding]:
            path = network.file.path
            if network.file.text == "bad\n":
                remedy = Fix("Repair", (Edit(path, 0, 3, "good"),), Applicability.PROVABLE, "run it")
                yield Finding(self.code, self.name, "", path, 0, 3, "bad", remedy)

    Path("x.py").write_text("bad\n", encoding="utf-8")
    result = fix(Project(Settings(), [Path("x.py")]), [Provable()], unsafe=unsafe, proves=proves)
    assert bool(result.changed) is proves


def test_fix_that_is_bad_only_beside_another_waits() -> None:
    def unless_taken(match: re.Match[str], path: Path) -> tuple[Edit, ...]:
        return (Edit(path, *match.span(), "other=" if "taken=" in match.string else "taken="),)

    result = _fix(WordRule("a=", unless_taken), WordRule("b=", unless_taken, code="TOY2"), x="f(a=1, b=2)\n")
    assert result.problems == ()
    assert _texts(result) == {"x": "f(taken=1, other=2)\n"}


@pytest.mark.parametrize(
    ("edits", "why"),
    [
        ([(0, 2, "x"), (1, 3, "y")], "its edits overlap"),
        ([(0, 99, "x")], "its edits overlap"),
        ([(2, 1, "x")], "its edits overlap"),
        ([(0, 3, "bad")], "it changes nothing"),
    ],
)
def test_fix_that_is_no_fix_is_refused(edits: list[tuple[int, int, str]], why: str) -> None:
    rule = WordRule(r"\Abad", lambda _, path: tuple(Edit(path, *edit) for edit in edits))
    result = _fix(rule, x="bad = 1\n")
    assert result.changed == {}
    (problem,) = result.problems
    assert why in problem.message
    assert [finding.fix for finding in result.findings] == [None]


def test_fix_that_the_files_encoding_cannot_hold_is_refused() -> None:
    result = _fix(WordRule("bad", replacing("gööd")), x="# coding: ascii\nbad = 1\n", y="bad = 1\n")
    assert _texts(result) == {"y": "gööd = 1\n"}
    (problem,) = result.problems
    assert "the result contains a character that ascii cannot encode" in problem.message


def test_fixes_that_never_end_are_told() -> None:
    result = _fix(
        WordRule("tick", replacing("tock")),
        WordRule("tock", replacing("tick"), code="TOY2"),
        WordRule("bad", replacing("good"), code="TOY3", unsafe=True),
        x="tick, bad\n",
        y="bad\n",
    )
    (problem,) = result.problems
    assert problem.path == Path("x.py")
    assert "the fixes of TOY1 did not converge in 20 passes" in problem.message
    assert result.changed == {}


def test_problems_of_the_check_are_told_once() -> None:
    result = _fix(CrashingRule(), WordRule("bad", replacing("good")), x="boom = bad\n", y="(")
    assert sorted(problem.path.stem for problem in result.problems) == ["x", "y"]
    assert _texts(result) == {"x": "boom = good\n"}


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="this Python knows the syntax")
def test_file_for_a_newer_python_is_an_error_and_stays() -> None:
    result = _fix(WordRule("bad", replacing("good")), x="bad\ntry: pass\nexcept A, B: pass\n", y="bad\n")
    assert _texts(result) == {"y": "good\n"}
    (problem,) = result.problems
    assert problem.path == Path("x.py")
    assert "it may be written for a newer Python" in problem.message


@pytest.mark.skipif(sys.version_info < (3, 14), reason="this Python does not know the syntax")
def test_file_for_a_newer_python_is_fixed() -> None:
    text = "type X = bad\ntry: pass\nexcept A, B: pass\n"
    assert _texts(_fix(WordRule("bad", replacing("good")), x=text)) == {"x": text.replace("bad", "good")}
    refused = _fix(WordRule("bad", replacing("b ad")), x=text)
    assert refused.changed == {}
    assert len(refused.problems) == 1
