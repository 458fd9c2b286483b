"""What a sweep has put right, counted from the fixes that were made."""

from __future__ import annotations

import io
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from gclint.code.project import Project
from gclint.finding import Applicability, Duty, Finding, Fix, Problem, Refusal, Repair, RepairKind
from gclint.report.full import write_diff_notices
from gclint.report.markdown import markdown
from gclint.report.report import Repairs, Report
from gclint.rule import all_rules
from gclint.run.fix import fix
from gclint.settings import Settings
from gclint.testing.fixtures import is_too_new
from tests.harness import FIXTURES
from tests.toy_models import IMPORTS, LAYERS, STACK, model

_FIXTURES = [
    path
    for path in sorted(FIXTURES.glob("GC00[123]/*.py"))
    if path.name.count(".") == 1
    and list(path.parent.glob(f"{path.stem}.*.py"))
    and not is_too_new(path.read_text(encoding="utf-8"))
]


def _repairs(fixture: Path, folder: Path) -> Repairs:
    # Without its neighbours, all of which would be looked at.
    path = folder / f"modeling_{fixture.name}"
    shutil.copyfile(fixture, path)
    result = fix(Project(Settings(), [path]), all_rules(), unsafe=True)
    return Repairs.of(result.applied, result.changed)


def _report(repaired: Iterable[Finding] = (), left: Iterable[Finding] = ()) -> Report:
    """Return a report in which the files of ``repaired`` are changed."""
    repaired = tuple(repaired)
    changed = {finding.path: ("before", "after") for finding in repaired}
    return Report(Project(Settings(), []), tuple(left), repairs=Repairs.of(repaired, changed))


@pytest.mark.parametrize("path", _FIXTURES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_every_fix_says_what_it_puts_right(path: Path, tmp_path: Path) -> None:
    repairs = _repairs(path, tmp_path)
    assert repairs.made
    for finding in repairs.made:
        assert finding.fix
        kinds = {repair.part for repair in finding.fix.repairs}
        # GC301 is repaired together with the blocks that the override kept from being enabled.
        assert (
            RepairKind.BLOCK in kinds
            if finding.code in ("GC001", "GC301", "GC302")
            else kinds == {RepairKind.CALL}
        )


@pytest.mark.parametrize(
    ("name", "blocks", "calls", "branches"),
    [
        ("GC001/plain_loop", 1, 0, 0),
        ("GC302/two_stacks", 2, 1, 2),
        ("GC001/shared_base", 1, 0, 0),
        ("GC302/partial", 1, 0, 1),
        ("GC002/override", 0, 3, 0),
        ("GC003/keyword_stream", 0, 1, 0),
    ],
)
def test_what_is_put_right_is_counted(
    name: str, blocks: int, calls: int, branches: int, tmp_path: Path
) -> None:
    parts = _repairs(FIXTURES / f"{name}.py", tmp_path).parts
    assert (parts[RepairKind.BLOCK], parts[RepairKind.CALL], parts[RepairKind.BRANCH]) == (
        blocks,
        calls,
        branches,
    )


def test_a_block_counts_with_its_base_in_another_file(tmp_path: Path) -> None:
    base, user = tmp_path / "modeling_base.py", tmp_path / "modeling_user.py"
    base.write_text(f"{IMPORTS}\n{LAYERS}\n{model()}")
    own = STACK.replace("Toy", "Own")
    user.write_text(
        f"{IMPORTS}from .modeling_base import ToyLayer\n\nclass OwnLayer(ToyLayer):\n    pass\n\n{model(own)}"
    )
    project = Project(Settings(), [base, user])

    def of_user(findings: Sequence[Finding]) -> Sequence[Finding]:
        return [finding for finding in findings if finding.path == user]

    result = fix(project, all_rules(), unsafe=True, wanted=of_user)
    # The base is repaired together with what inherits from it.
    assert [finding.symbol for finding in result.applied] == ["ToyLayer", "OwnLayer"]
    assert list(result.changed) == [base]
    repairs = Repairs.of(result.applied, result.changed)
    assert {(repair.part, repair.path) for repair in repairs.pieces} == {
        (RepairKind.BLOCK, base),
        (RepairKind.BLOCK, user),
    }


def _finding(
    symbol: str, path: Path, *repairs: Repair, reason: str = "nobody knows how", code: str = "GC001"
) -> Finding:
    remedy = Fix("Repair", (), repairs=repairs) if repairs else Refusal(reason)
    return Finding(code, "some-rule", f"{symbol} is bad", path, 0, 1, symbol, remedy)


def test_what_two_fixes_put_right_together_counts_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = Path("x/modeling_x.py")
    branch = Repair(RepairKind.BRANCH, path, 10, 20)
    blocks = [Repair(RepairKind.BLOCK, path, start, start + 1) for start in (1, 2)]
    findings = [_finding("A", path, blocks[0], branch), _finding("B", path, blocks[1], branch, blocks[0])]
    report = _report(findings)
    assert report.repairs.parts == {RepairKind.BLOCK: 2, RepairKind.BRANCH: 1}
    introduction = "2 findings repaired in 1 file: 2 blocks, 0 call sites, 1 legacy branch. 0 left."
    assert introduction in markdown(report)


def test_what_is_repaired_is_listed_with_what_has_to_be_reviewed_and_done(tmp_path: Path) -> None:
    one, two = tmp_path / "one" / "modeling_one.py", tmp_path / "two" / "modeling_two.py"
    duty = Duty(tmp_path / "three" / "modeling_three.py", "modeling_three.py has to be regenerated")
    safe = _finding("A", one, Repair(RepairKind.BLOCK, one, 0, 1))
    more = replace(safe, symbol="B", remedy=Fix("Repair", (), duties=(duty,)))
    unsafe = replace(
        safe, path=two, remedy=Fix("Repair", (), Applicability.UNSAFE, "it keeps state", (), (duty,))
    )
    text = markdown(_report([safe, more, unsafe]))
    assert (
        "### Safe repairs\n\n- GC001 some-rule, one/modeling_one.py: `A`, `B`\n\n"
        "### Unsafe repairs (please review)\n\n- GC001 some-rule, two/modeling_two.py: `A`: it "
        "keeps state\n\n### Left to do\n\n"
        "- three/modeling_three.py: modeling_three.py has to be regenerated\n"
    ) in text
    assert _closing_lines([more], []) == [f"  left to do: {duty.text} ({duty.path})"]


def test_what_is_left_is_grouped_by_rule_model_and_reason(tmp_path: Path) -> None:
    one, two = tmp_path / "one" / "modeling_one.py", tmp_path / "two" / "modeling_two.py"
    left = [
        _finding("D", two, reason="later", code="GC002"),
        _finding("B", two, reason="no call"),
        _finding("C", one, reason="no call"),
        _finding("A", two, reason="no call"),
        _finding("A", two, reason="no call"),
        _finding("E", two, Repair(RepairKind.BLOCK, two, 0, 1)),
    ]
    text = markdown(_report(left=left))
    assert text.partition("### Remaining findings\n\n")[2] == (
        "GC001 some-rule:\n\n"
        "- one/modeling_one.py: `C`: no fix: no call\n"
        "- two/modeling_two.py: `E`: E is bad\n"
        "- two/modeling_two.py: `B`, `A`: no fix: no call\n\n"
        "GC002 some-rule:\n\n"
        "- two/modeling_two.py: `D`: no fix: later\n"
    )
    assert "| one | 0 | 0 | 0 | 0 | 0 | 1 |\n| two | 0 | 0 | 0 | 0 | 0 | 5 |" in text


def test_the_closing_lines_name_some_models_only(tmp_path: Path) -> None:
    paths = [tmp_path / f"m{number:02}" / "modeling_x.py" for number in range(11)]
    repaired = [_finding("A", path, Repair(RepairKind.CALL, path, 0, 1)) for path in paths]
    left = [_finding("B", paths[4]), _finding("B", paths[9])]
    assert _closing_lines(repaired, left) == [
        "  in 11 files of 11 models: 11 call sites",
        "  by rule: GC001 11 of 13",
        "  by model: m04 1 of 2, m09 1 of 2, m00 1 of 1, m01 1 of 1, m02 1 of 1, m03 1 of 1, m05 1 of 1, "
        "m06 1 of 1, and 3 more",
    ]
    assert _closing_lines(repaired[:1], left) == []


def _closing_lines(repaired: list[Finding], left: list[Finding]) -> list[str]:
    """Return the lines below the first one."""
    stream = io.StringIO()
    write_diff_notices(_report(repaired, left), stream)
    return stream.getvalue().splitlines()[1:]


def test_what_went_wrong_is_in_the_summary(tmp_path: Path) -> None:
    problem = Problem(tmp_path / "toy" / "modeling_toy.py", "syntax error: invalid syntax")
    text = markdown(_report().also([problem]))
    assert text.endswith("### Errors\n\n- toy/modeling_toy.py: syntax error: invalid syntax\n")
