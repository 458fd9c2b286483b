"""What is wrong with a rule is one line, and ends nothing else."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gclint.code.paths import shown
from gclint.own import load_rules
from gclint.rule import all_rules, own_rules
from tests.own.team import RULE, Run
from tests.sample import BROKEN


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = (\n", r"our_rules\.py:1:5: SyntaxError: '\(' was never closed"),
        ("import os\nx = undefined\n", r"our_rules\.py:2(:5)?: NameError: name 'undefined' is not defined"),
        ("import sys\nsys.exit(0)\n", r"our_rules\.py:2(:1)?: SystemExit: 0"),
        ("def f():\n    f()\nf()\n", r"our_rules\.py:2(:5)?: RecursionError: .*"),
        ("import neighbour\n", r"our_rules\.py:1(:1)?: ModuleNotFoundError: .*; a file that is named by its "
         r"path cannot import its neighbours, so install them"),
        ("x = '\0'\n", r"our_rules\.py.*: (SyntaxError|ValueError): source code .*"),
        ("raise ValueError('a\\nb')\n", r"our_rules\.py:1(:1)?: ValueError: a"),
        ("", r"our_rules\.py has no rule: a subclass of gclint\.rule\.Rule"),
        (RULE.replace("def check", "def chekc"), r"our_rules\.py has no rule: .*; TwoLayers has no .*"),
        (RULE.replace('code = "ACM001"', ""), r"our_rules\.py:13:1: TwoLayers: it has no code; write .*"),
        (RULE.replace("ACM001", "GC901"), r".*: its code is 'GC901'; write .*, but not GC or ALL"),
        (RULE.replace("ACM001", "acm1"), r".*: its code is 'acm1'; write .*"),
        (RULE.replace('"ACM001"', "7"), r".*: its code is 7; write .*"),
        (RULE.replace("two-layers", "Two Layers"), r".*: its name is 'Two Layers'; write .*"),
        (RULE.replace("two-layers", "positional-cache"), r".*positional-cache is already that of GC002 .*"),
        (f"{RULE}\n\nclass Other(TwoLayers):\n    \"\"\"x\"\"\"\n", r".*: ACM001 is already .*"),
        (RULE.replace("Level.WARNING", '"warning"'), r".*: level has to be one of .*"),
        (RULE.replace("(Applicability.SAFE,)", "Applicability.SAFE"), r".*: fixes has to be a tuple of .*"),
        (RULE.replace('"""Two layers are too few."""', ""), r".*: it has no docstring, .*"),
        (RULE.replace("level =", 'settings = (Setting("activation-names", "x"),)\n    level ='),
         r".*: its setting activation-names is already one of GC\d+"),
        (f"{RULE}\n    def __init__(self):\n        raise OSError(1)\n", r"our_rules\.py:.*: OSError: 1"),
    ],
)  # fmt: skip
def test_what_cannot_be_loaded_is_one_line(
    gclint: Run, folder: Path, rules: Path, text: str, message: str
) -> None:
    rules.write_text(text)
    rules.with_name("neighbour.py").write_text("")
    for command in ((), ("--fix",), ("rules",), ("explain", "modeling_sample.py:31")):
        status, out, err = gclint(*command, "--extra-rules", str(rules))
        assert (status, out) == (2, "")
        assert re.fullmatch(rf"Error: --extra-rules: (\S*/)?{message}\n", err), err
    assert (folder / "modeling_sample.py").read_text() == BROKEN
    assert own_rules() == ()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("missing.py", "there is no file missing.py"),
        ("modeling_sample.py/x.py", "modeling_sample.py/x.py cannot be read: Not a directory"),
        (".py", "there is no file .py"),
        ("no_such_module", "there is no module or entry point no_such_module in "),
        ("os.no_such", "os.no_such: ModuleNotFoundError: "),
        ("json.decoder.x", "json.decoder.x: "),
        ("../rules", "'../rules' is not the name of a module, and a path ends in .py"),
        ("__main__.x", ""),
        ("json", "json has no rule: a subclass of gclint.rule.Rule"),
    ],
)
def test_what_is_not_there_is_one_line(gclint: Run, name: str, message: str) -> None:
    status, out, err = gclint("--extra-rules", name)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(f"Error: --extra-rules: {message}")


def test_the_place_in_the_users_settings_is_named(gclint: Run, config: Path) -> None:
    config.write_text('\nextra-rules = ["gone.py"]\n')
    assert re.fullmatch(
        r"Error: \S+gclint\.toml:2:1: extra-rules: there is no file \S+gone\.py\n", gclint().err
    )
    config.write_text("extra-rules = 7\n")
    assert "gclint.toml:1:1: extra-rules must be a list of strings" in gclint().err


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("raise KeyError('x')", r"crashed on this file: KeyError: 'x' \(our_rules.py, line 22\)"),
        ("network.file.text[10**9]", r"crashed on this file: IndexError: .* \(our_rules.py, line 22\)"),
        ("Edit(1)", r"crashed on this file: TypeError: .* \(our_rules.py, line 22\)"),
        ("raise SystemExit(0)", r"crashed on this file: SystemExit: 0 \(our_rules.py, line 22\)"),
        ("return None", r"cannot be used on this file: `check` returns None where it has to yield findings"),
        ("return ['x']", r"cannot be used on this file: `check` yields str, which is not a Finding"),
        ("return [self.finding('m', 'x', (0, 1), 's', Refusal('r'))]", r".*: a field of a finding .*"),
        ("return [self.finding('m', network.file.path, (0, 1), 's', None)]", r".*: a field of a finding .*"),
        ("return [self.finding('m', network.file.path, (0, 10**9), 's', Refusal('r'))]",
         r".*: \[0, 1000000000\) is not a part of modeling_b.py, which has \d+ characters"),
        ("return [self.finding('', network.file.path, (0, 1), 's', Refusal('r'))]",
         r".*: .* needs a message .*"),
        ("return [self.finding('m', network.file.path, (1, 1), 's', Refusal('r'))]", r".*: a finding is .*"),
        ("return [Finding('GC001', 'x', 'm', network.file.path, 0, 1, 's', Refusal('r'))]",
         r".*: a finding has the code GC001 and the name x; use `self.finding`"),
    ],
)  # fmt: skip
def test_a_rule_that_fails_is_named_and_ends_nothing(
    gclint: Run, folder: Path, rules: Path, body: str, message: str
) -> None:
    text = RULE.partition("        at = ")[0]
    rules.write_text(f"{text}        {body}\n")
    (folder / "modeling_b.py").write_text(BROKEN)
    status, out, err = gclint("--extra-rules", str(rules), "--output-format", "concise")
    assert status == 2
    assert out.count("GC001") == 2
    assert re.search(
        rf"modeling_b\.py.*: ACM001 {message}; this is a bug in the rule, which is in \S+", out + err
    )
    assert "Traceback" not in out + err
    assert "bug in gclint" not in out + err


@pytest.mark.parametrize(
    ("edit", "why"),
    [
        ('at, at + 1, "((("', "the result would not be Python (syntax error: invalid syntax)"),
        ('at + 18, at + 19, "2"', "it changes nothing"),
        ('at, at, "a=1, "', "the result would not be Python"),
    ],
)
def test_a_fix_that_fails_is_a_bug_of_the_rule(
    gclint: Run, folder: Path, rules: Path, edit: str, why: str
) -> None:
    rules.write_text(RULE.replace('at + 18, at + 19, "3"', edit))
    status, out, err = gclint("--extra-rules", str(rules), "--select", "ACM", "--fix")
    assert status == 2
    assert f"the fix of ACM001 for SampleConfig was not made: {why}" in err
    assert f"this is a bug in the rule, which is in {shown(rules)}" in err
    assert "no fix: its fix failed because of a bug in the rule" in out
    compile((folder / "modeling_sample.py").read_text(), "modeling_sample.py", "exec")


def test_so_is_a_rule_whose_method_is_elsewhere(gclint: Run, rules: Path) -> None:
    text = RULE.replace("def check(", "def checked(").replace("code =", "check = chr\n    code =")
    rules.write_text(text)
    _, out, err = gclint("--extra-rules", str(rules))
    assert "ACM001 crashed on this file: TypeError: " in out + err


def test_a_module_that_changes_between_two_processes_is_loaded_as_it_is(rules: Path) -> None:
    load_rules([str(rules)], [])
    first = [each for each in all_rules() if each.code == "ACM001"]
    load_rules([str(rules)], [])
    assert [type(each) for each in own_rules()] == [type(each) for each in first]
    load_rules([], [])
    assert own_rules() == ()
