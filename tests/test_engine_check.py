"""Rules over files: order, suppressions, and what goes wrong in one file."""

from __future__ import annotations

import gc
from collections.abc import Iterable
from pathlib import Path

import pytest

from gclint import __version__
from gclint.code.project import Project
from gclint.finding import Finding, Position
from gclint.network.model import Network
from gclint.rule import Rule
from gclint.rules.gc000_unused_ignore import UnusedIgnore
from gclint.run.check import LintResult, check
from gclint.settings import Settings
from tests.toys import NO_FIX, CrashingRule, WordRule, replacing, without_fix


@pytest.fixture(autouse=True)
def _in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def _write(name: str, text: str | bytes) -> Path:
    path = Path(name)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def _check(rules: list[Rule], *paths: Path) -> LintResult:
    return check(Project(Settings(), paths), rules)


def _told(result: LintResult) -> list[tuple[str, str, int]]:
    return [(str(finding.path), finding.code, finding.start) for finding in result.findings]


def test_findings_come_in_the_order_of_the_text() -> None:
    paths = [_write("b.py", "word = 1\nword = 2\n"), _write("a.py", "x = word\n")]
    rules: list[Rule] = [WordRule("word", without_fix, code="TOY2"), WordRule("word", without_fix)]
    result = _check(rules, *paths)
    assert _told(result) == [
        ("a.py", "TOY1", 4),
        ("a.py", "TOY2", 4),
        ("b.py", "TOY1", 0),
        ("b.py", "TOY2", 0),
        ("b.py", "TOY1", 9),
        ("b.py", "TOY2", 9),
    ]
    assert result.files == 2
    assert result.problems == ()


def test_each_file_is_announced_when_it_is_done() -> None:
    paths = [_write("a.py", ""), _write("b.py", "(")]
    seen: list[Path] = []
    check(Project(Settings(), paths), [], seen.append)
    assert seen == paths


@pytest.mark.parametrize(
    ("data", "message", "position"),
    [
        (b"x = 1\nf(\n", "syntax error: '(' was never closed", Position(2, 2)),
        (b"x = 1\n\nx = '\xe9'\n", "byte 0xe9 is not UTF-8", Position(3, 6)),
        (b"# coding: klingon\n", "unknown encoding: klingon", Position(1, 1)),
        (b"x = 1\n\0", "a NUL character", Position(2, 1)),
    ],
)
def test_bad_file_is_told_with_its_place_and_the_others_are_checked(
    data: bytes, message: str, position: Position
) -> None:
    result = _check([WordRule("word", without_fix)], _write("bad.py", data), _write("good.py", "word = 1\n"))
    assert _told(result) == [("good.py", "TOY1", 0)]
    assert result.files == 1
    (problem,) = result.problems
    assert problem.path == Path("bad.py")
    assert message in problem.message
    assert problem.position == position


def test_file_that_vanishes_is_told() -> None:
    result = _check([], Path("gone.py"))
    (problem,) = result.problems
    assert problem.message == "this file cannot be read: this file was deleted during the run"


def test_crash_of_a_rule_is_gclints_fault_and_ends_nothing() -> None:
    rules: list[Rule] = [CrashingRule(), WordRule("word", without_fix)]
    result = _check(rules, _write("a.py", "boom = word\n"), _write("b.py", "x = word\n"))
    assert _told(result) == [("a.py", "TOY1", 7), ("b.py", "TOY9", 0), ("b.py", "TOY1", 4)]
    (problem,) = result.problems
    assert problem.path == Path("a.py")
    assert problem.message.startswith(
        "TOY9 crashed on this file: KeyError: 'boom\\nand more' (toys.py, line "
    )
    assert problem.message.endswith(
        f"this is a bug in gclint {__version__}; please report it together with the file"
    )


@pytest.mark.parametrize(("pattern", "is_told"), [("a.py", False), ("b.py", True)])
def test_crash_of_a_rule_is_not_told_where_the_settings_ignore_it(pattern: str, is_told: bool) -> None:
    settings = Settings(root=Path.cwd(), per_file_ignores=((pattern, ("TOY9",)),))
    result = check(Project(settings, [_write("a.py", "boom = 1\n")]), [CrashingRule()])
    assert bool(result.problems) is is_told
    assert all("TOY9" not in ran for ran in result.ran.values())


def test_comment_for_a_rule_that_crashed_is_not_called_unused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gclint.run.check.all_rules", lambda: (CrashingRule(),))
    path = _write("a.py", "boom = 1  # gclint: ignore[TOY9]\n")
    assert _told(_check([CrashingRule(), UnusedIgnore()], path)) == []


class _AboutAnotherFile(Rule):
    """Finds the same thing in ``b.py`` from every file that mentions it."""

    code = "TOY3"
    name = "about-another-file"

    def check(self, network: Network) -> Iterable[Finding]:
        if "b.py" in network.file.text:
            path = network.project.file(Path("b.py").resolve()).path
            yield Finding(self.code, self.name, "", path, 0, 1, "x", NO_FIX)


def test_finding_in_another_file_is_told_once_under_the_name_that_was_given() -> None:
    paths = [_write("a.py", "# b.py"), _write("b.py", "x = 1"), _write("c.py", "# b.py")]
    result = _check([_AboutAnotherFile()], *paths)
    assert _told(result) == [("b.py", "TOY3", 0)]


def test_finding_in_another_file_obeys_that_files_comments() -> None:
    paths = [_write("a.py", "# b.py"), _write("b.py", "x = 1  # gclint: ignore[TOY3]")]
    assert _told(_check([_AboutAnotherFile()], *paths)) == []
    assert _told(_check([_AboutAnotherFile()], paths[0])) == []


def test_problem_is_told_under_the_name_that_was_given() -> None:
    class Looking(WordRule):
        def check(self, network: Network) -> Iterable[Finding]:
            network.project.file(Path("b.py").resolve())
            return super().check(network)

    result = _check([Looking("word", without_fix)], _write("a.py", ""), _write("b.py", "("))
    assert [problem.path for problem in result.problems] == [Path("b.py")]


def test_collector_is_paused_and_comes_back() -> None:
    class Watching(WordRule):
        def check(self, network: Network) -> Iterable[Finding]:
            states.append(gc.isenabled())
            return super().check(network)

    states: list[bool] = []
    gc.enable()
    _check([Watching("word", replacing(""))], _write("a.py", ""))
    assert states == [False]
    assert gc.isenabled()
