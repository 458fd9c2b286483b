"""What is left of repairs when some of them are refused."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from gclint.engine.fix import FixResult, fix
from gclint.engine.proof import Proof
from gclint.engine.transaction import proven_only
from gclint.finding import Refusal
from gclint.settings import Settings
from gclint.source.project import Project
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
