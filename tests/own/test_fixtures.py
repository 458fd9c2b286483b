"""Rules of the user's own are held to fixtures."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.own.team import RULE, Run
from tests.sample import BROKEN


def _fixtures(folder: Path, *, line: str, fixed: str = "3") -> Path:
    (folder / "fixtures" / "ACM001").mkdir(parents=True)
    code = BROKEN.replace("**kwargs):", f"**kwargs):{line}", 1)
    (folder / "fixtures" / "ACM001" / "case.py").write_text(code)
    after = BROKEN.replace("num_hidden_layers=2", f"num_hidden_layers={fixed}")
    (folder / "fixtures" / "ACM001" / "case.fixed.py").write_text(after)
    return folder / "fixtures"


@pytest.mark.parametrize(
    ("line", "fixed", "message"),
    [
        ('  # expect: ACM001 safe SampleConfig "too few"', "3", ""),
        ("  # expect: ACM001 unsafe", "3", "ACM001/case.py:11: ACM001 unsafe is expected, and not reported"),
        ("", "3", "ACM001/case.py:11: ACM001 safe is reported, and not expected: two are too few"),
        (
            "  # expect: ACM001 safe Other",
            "3",
            "case.py:11: the symbol of ACM001 is SampleConfig, and Other is",
        ),
        ('  # expect: ACM001 safe "x"', "3", 'case.py:11: "x" is expected in what ACM001 says: two are'),
        ("  # expect: ACM001 safe", "4", "case.py:1: --fix makes something else (as it is):"),
        ('  # expect: ACM001 safe  # silent: ACM001 "y"', "3", 'case.py:11: "y" is expected as a reason of'),
    ],
)
def test_fixtures_pass_or_it_is_said_where_they_differ(
    gclint: Run, folder: Path, rules: Path, line: str, fixed: str, message: str
) -> None:
    _fixtures(folder, line=line, fixed=fixed)
    status, out, err = gclint("test-rules", "fixtures", "--extra-rules", str(rules))
    assert err == ""
    if message:
        assert (status, message in out) == (1, True), out
        assert out.endswith("\n0 fixtures passed, 1 failed.\n")
    else:
        assert (status, out) == (0, "1 fixture passed.\n")


def test_a_fix_that_a_rule_does_not_declare_is_said(gclint: Run, folder: Path, rules: Path) -> None:
    _fixtures(folder, line="  # expect: ACM001 safe")
    rules.write_text(RULE.replace("    fixes = (Applicability.SAFE,)\n", ""))
    status, out, _ = gclint("test-rules", "fixtures", "--extra-rules", str(rules))
    assert status == 1
    assert "case.py:11: ACM001 has a fix that is safe, which its `fixes` do not declare" in out


def test_fixtures_that_mean_nothing_are_errors(gclint: Run, folder: Path, rules: Path) -> None:
    own = ("--extra-rules", str(rules))
    (folder / "empty").mkdir()
    assert "empty has no fixtures: files such as ACM001/case.py" in gclint("test-rules", "empty", *own).err
    fixtures = _fixtures(folder, line="  # expect: ACM001 saef")
    assert "ACM001/case.py:11: this is not of the form" in gclint("test-rules", "fixtures", *own).err
    (fixtures / "ACM001" / "case.fxied.py").write_text("")
    status, out, err = gclint("test-rules", "fixtures", *own)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert "case.fxied.py is neither a fixture" in err


def test_a_folder_without_a_rule_and_a_rule_without_a_folder_are_noted(
    gclint: Run, folder: Path, rules: Path
) -> None:
    fixtures = _fixtures(folder, line="  # expect: ACM001 safe")
    rules.write_text(RULE.replace("ACM001", "ACM002"))
    (fixtures / "ACM001").rename(fixtures / "ACM003")
    err = gclint("test-rules", "fixtures", "--extra-rules", str(rules)).err
    assert err == "note: there are no fixtures of ACM002\nnote: there is no rule ACM003\n"
