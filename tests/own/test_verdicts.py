"""No verdict outlives the rule that it is from."""

from __future__ import annotations

import os
from pathlib import Path

from tests.environment import PROJECT
from tests.own.team import RULE, distribution, run


def test_an_edited_rule_says_something_else_at_once(folder: Path, rules: Path) -> None:
    own = ("--extra-rules", rules, "--select", "ACM")
    for word in ("two", "few", "two", "old"):
        before = rules.stat()
        rules.write_text(RULE.replace("two are", f"{word} are"))
        # The same size and the same times, with which Python takes compiled code for that of the file.
        os.utime(rules, ns=(before.st_atime_ns, before.st_mtime_ns))
        assert f"ACM001 {word} are too few" in run(*own).out
        assert f"ACM001 {word} are too few" in run(*own).out
    assert not list(rules.parent.rglob("*.pyc"))


def test_so_does_an_edited_module_that_it_imports(folder: Path, rules: Path, tmp_path: Path) -> None:
    helper = tmp_path / "installed" / "acme_words.py"
    helper.parent.mkdir()
    rules.write_text(
        RULE.replace('"two are', 'acme_words.WORD + " are').replace("import os", "import acme_words, os")
    )
    path = f"{PROJECT}{os.pathsep}{helper.parent}"
    for word in ("two", "both", "neither"):
        helper.write_text(f"WORD = '{word}'\n")
        for _ in range(2):
            out = run("--extra-rules", rules, "--select", "ACM", PYTHONPATH=path).out
            assert f"ACM001 {word} are" in out


def test_a_verdict_of_a_rule_that_is_the_same_is_kept(folder: Path, rules: Path, tmp_path: Path) -> None:
    looked = tmp_path / "looked"
    rules.write_text(RULE.replace("at = ", 'open(os.environ["LOOKED"], "a").write("x")\n        at = ', 1))
    for _ in range(3):
        assert "ACM001" in run("--extra-rules", rules, LOOKED=str(looked)).out
    assert looked.read_text() == "x"


def test_an_entry_point_that_leads_elsewhere_says_something_else(folder: Path, tmp_path: Path) -> None:
    installed = tmp_path / "installed"
    installed.mkdir()
    path = f"{PROJECT}{os.pathsep}{installed}"
    for word in ("both", "neither"):
        (installed / f"acme_{word}.py").write_text(RULE.replace("two are", f"{word} are"))
    for word in ("both", "neither", "both"):
        distribution(installed, "acme", f"team = acme_{word}")
        assert f"ACM001 {word} are" in run("--extra-rules", "team", PYTHONPATH=path).out


def test_a_report_that_is_printed_again_describes_its_rules(folder: Path, rules: Path) -> None:
    own = ("--extra-rules", rules, "--output-format", "sarif")
    first = run(*own).out
    assert "Two layers are too few." in first
    assert run(*own).out == first


def test_a_report_from_before_the_user_named_a_rule_is_not_repeated(folder: Path, config: Path) -> None:
    assert "ACM001" not in run().out
    assert "ACM001" not in run().out
    config.with_name("our_rules.py").write_text(RULE)
    config.write_text('extra-rules = ["our_rules.py"]\n')
    assert "ACM001" in run().out
    config.unlink()
    assert "ACM001" not in run().out
