"""What ``gclint rule`` and ``gclint rules`` print for programs, and that it is true of the rules."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from gclint.cli.main import gclint
from gclint.report.rules import documentation
from gclint.rule import Rule, all_rules
from gclint.testing.rules import undeclared_fixes
from tests.documented import FOLDER
from tests.harness import load_fixtures

_EACH_RULE = pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.code)


def _printed(*arguments: str) -> str:
    run = CliRunner().invoke(gclint, arguments)
    assert run.exit_code == 0, run.output
    return run.stdout


@_EACH_RULE
def test_json_says_all_of_a_rule(rule: Rule) -> None:
    printed = json.loads(_printed("rule", rule.name, "--output-format", "json"))
    assert printed["code"] == rule.code
    assert printed["summary"] == rule.summary()
    assert (printed["level"], printed["precision"]) == (rule.level.value, rule.precision)
    assert printed["preview"] is rule.preview
    assert printed["documentation"] == documentation(rule)
    assert printed["causes"] == sorted(cause.value for cause in rule.causes)
    assert printed["fix"]["applicability"] == [each.value for each in rule.fixes]
    assert (printed["fix"]["availability"] == "never") == (rule.fixes == ())


def test_settings_come_with_type_and_default() -> None:
    printed = json.loads(_printed("rule", "GC003", "--output-format", "json"))
    assert [(each["name"], each["type"], each["default"]) for each in printed["settings"]] == [
        ("activation-names", "list of strings", [])
    ]


def test_list_has_the_same_objects() -> None:
    listed = json.loads(_printed("rules", "--output-format", "json"))
    assert listed == [
        json.loads(_printed("rule", each.code, "--output-format", "json")) for each in all_rules()
    ]


@_EACH_RULE
def test_markdown_is_the_published_document(rule: Rule) -> None:
    module = type(rule).__module__.rpartition(".")[2]
    published = (FOLDER / f"{module}.md").read_text(encoding="utf-8")
    printed = _printed("rule", rule.code, "--output-format", "markdown")
    assert printed == published, "run python3 -m tests.documented"


def test_rules_declare_the_fixes_that_they_make() -> None:
    assert [*undeclared_fixes(load_fixtures(), all_rules())] == []


def test_misspelled_name_is_answered_with_the_nearest() -> None:
    run = CliRunner().invoke(gclint, ["rule", "positional-cash"])
    assert run.exit_code == 2
    assert "did you mean positional-cache?" in run.stderr
