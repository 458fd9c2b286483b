"""What is left of repairs when some of them are refused."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import FrozenInstanceError, fields
from pathlib import Path

import pytest

from gclint.code.project import Project
from gclint.finding import Edit, Finding, Fix, Refusal
from gclint.network.model import Network
from gclint.proof.provable import proven_only
from gclint.proof.proving import Proof
from gclint.rule import Rule
from gclint.run.baseline import Baseline, BaselineEntry, Selection
from gclint.run.check import LintResult, check
from gclint.run.fix import FixResult, fix
from gclint.settings import Settings
from tests.toys import NO_FIX, WordRule, replacing, without_fix

_GOOD, _BAD = Path("modeling_a.py"), Path("modeling_b.py")
_RULES = (
    WordRule("bad", replacing("good"), code="TOY1"),
    WordRule("lost", without_fix, code="TOY2"),
)


@pytest.fixture(autouse=True)
def _in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def _repaired() -> tuple[Project, FixResult]:
    project = Project(Settings(), [_GOOD, _BAD])
    _GOOD.write_text("bad\n")
    _BAD.write_text("y = lost\nbad\n")
    return project, fix(project, _RULES, unsafe=False)


def _proofs(repaired: FixResult, refused: Iterable[Path]) -> list[Proof]:
    return [
        Proof(
            (path,),
            tuple(each for each in repaired.applied if each.path == path),
            {},
            {},
            ("37 gradients are lost",) if path in refused else (),
        )
        for path in repaired.changed
    ]


def test_proven_repairs_stay() -> None:
    project, repaired = _repaired()
    assert proven_only(project, repaired, _proofs(repaired, ()), _RULES) is repaired


def test_both_files_of_a_refused_proof_keep_their_texts() -> None:
    project, repaired = _repaired()
    proof = Proof((_GOOD, _BAD), repaired.applied, {}, {}, ("37 gradients are lost",))
    left = proven_only(project, repaired, [proof], _RULES)
    assert (left.changed, left.applied) == ({}, ())
    assert [project.file(path).text for path in (_GOOD, _BAD)] == ["bad\n", "y = lost\nbad\n"]


def test_a_refused_file_keeps_its_text_and_its_findings() -> None:
    project, repaired = _repaired()
    left = proven_only(project, repaired, _proofs(repaired, {_BAD}), _RULES)
    assert left.changed == {_GOOD: ("bad\n", "good\n")}
    assert [finding.path for finding in left.applied] == [_GOOD]
    assert project.file(_BAD).text == "y = lost\nbad\n"
    assert project.file(_GOOD).text == "good\n"
    unknown, refused = left.findings
    assert (unknown.symbol, unknown.remedy) == ("lost", NO_FIX)
    reason = "its repair was run and is not proven: 37 gradients are lost"
    assert (refused.symbol, refused.remedy) == ("bad", Refusal(reason))
    position = project.file(_BAD).position(refused.start)
    assert (position.row, position.column) == (2, 1)


def _refuse(repaired: FixResult, project: Project, rules: Iterable[Rule], *paths: Path) -> FixResult:
    return proven_only(project, repaired, _proofs(repaired, paths), tuple(rules))


def test_what_is_known_of_all_files_is_still_known_after_a_refusal() -> None:
    project, repaired = _repaired()
    left = _refuse(repaired, project, _RULES, _BAD)
    assert left.ran == repaired.ran == {path: frozenset(("TOY1", "TOY2")) for path in (_GOOD, _BAD)}
    known = {field.name for field in fields(FixResult)} - {"findings", "applied", "changed", "verdicts"}
    assert {name: getattr(left, name) for name in known} == {name: getattr(repaired, name) for name in known}


def test_stale_entries_and_changed_files_are_counted_after_a_refusal() -> None:
    project, repaired = _repaired()
    stale = BaselineEntry("modeling_a.py", "TOY2", "gone", "0123456789abcdef")
    selection = Selection(
        project, [Path()], {_GOOD.absolute(), _BAD.absolute()}, Baseline(Path("base"), {stale: 1})
    )
    result, recognised = selection.narrowed(_refuse(repaired, project, _RULES, _BAD))
    assert result.files == 2
    assert recognised.stale == {stale: 1}


class _Copying(Rule):
    """Finds what is not as in the file that a comment names, and copies it."""

    code = "TOY3"
    name = "copying"

    def check(self, network: Network) -> Iterable[Finding]:
        path = network.file.path
        if network.file.text.startswith("# as in "):
            other = network.project.consult(network.file, Path(network.file.text.split()[3]))
            start, end = len(f"# as in {other.path}\n"), len(network.file.text)
            if network.file.text[start:] != other.text:
                edits = (Edit(path, start, end, other.text),)
                yield Finding(self.code, self.name, "it is other", path, start, end, "x", Fix("Copy", edits))


def test_a_file_that_hangs_on_a_refused_one_is_judged_again() -> None:
    _BAD.write_text("bad\n")
    _GOOD.write_text(f"# as in {_BAD}\nx\n")
    project = Project(Settings(), [_GOOD, _BAD])
    rules = (*_RULES, _Copying())
    repaired = fix(project, rules, unsafe=False)
    assert (repaired.findings, repaired.problems) == ((), ())
    assert project.file(_GOOD).text == f"# as in {_BAD}\ngood\n"
    left = _refuse(repaired, project, rules, _BAD)
    assert {(each.path, each.code): type(each.remedy) for each in left.findings} == {
        (_BAD, "TOY1"): Refusal,
        (_GOOD, "TOY3"): Fix,
    }


def test_a_fix_that_is_broken_and_its_problem_are_still_told_after_a_refusal() -> None:
    rules = (*_RULES, WordRule("whole", replacing("wh ole"), code="TOY4"))
    _GOOD.write_text("whole\n")
    _BAD.write_text("bad; whole\n")
    project = Project(Settings(), [_GOOD, _BAD])
    repaired = fix(project, rules, unsafe=False)
    left = _refuse(repaired, project, rules, _BAD)
    assert len(left.problems) == 2
    assert left.problems == repaired.problems
    broken = Refusal("its fix failed because of a bug in gclint")
    assert [each.remedy for each in left.findings if each.code == "TOY4"] == [broken, broken]


def test_results_cannot_be_changed() -> None:
    project, repaired = _repaired()
    for result in (repaired, check(project, _RULES), repaired.verdicts[_GOOD]):
        for field in fields(result):
            with pytest.raises(FrozenInstanceError):
                setattr(result, field.name, None)
            assert not isinstance(getattr(result, field.name), (list, set))


def test_a_fixed_result_has_all_that_its_last_check_had() -> None:
    project, repaired = _repaired()
    checked = check(project, _RULES)
    for name in {field.name for field in fields(LintResult)} - {"verdicts"}:
        assert getattr(repaired, name) == getattr(checked, name)
    assert list(repaired.verdicts) == list(checked.verdicts)
