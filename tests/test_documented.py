"""What the documentation takes from the code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gclint.finding import Finding
from gclint.report.findings import documentation_url
from gclint.report.formats import FORMATS
from gclint.rule import Rule, all_rules
from gclint.verify.worker.scenarios import SCENARIOS
from tests.documented import (
    DOCS,
    FOLDER,
    SCHEMA,
    SETTINGS,
    TABLE,
    documents,
    pages,
    with_outputs,
    with_settings,
)
from tests.environment import PROJECT
from tests.settings_schema import schema_text
from tests.toys import NO_FIX


def test_it_says_what_the_docstrings_say() -> None:
    found = {path: path.read_text(encoding="utf-8") for path in (*FOLDER.iterdir(), TABLE)}
    assert found == documents(), "run python3 -m tests.documented"


def test_the_settings_are_those_of_the_definitions() -> None:
    page = SETTINGS.read_text(encoding="utf-8")
    assert with_settings(page) == page, "run python3 -m tests.documented"
    assert SCHEMA.read_text(encoding="utf-8") == schema_text(), "run python3 -m tests.documented"


@pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.code)
def test_findings_lead_there(rule: Rule) -> None:
    finding = Finding(rule.code, rule.name, "", Path("modeling_x.py"), 0, 0, "", NO_FIX)
    url = documentation_url(finding)
    assert url is not None
    path = url.partition("/blob/main/")[2]
    assert (PROJECT / path).read_text(encoding="utf-8").startswith(f"# {rule.code} {rule.name}\n")


@pytest.mark.parametrize(
    ("page", "names"),
    [
        ("formats.md", {*FORMATS}),
        ("testing.md", {each.name for each in SCENARIOS if each.feature == "default"}),
    ],
)
def test_a_table_has_a_row_for_each(page: str, names: set[str]) -> None:
    text = (DOCS / page).read_text(encoding="utf-8")
    first = "".join(re.findall(r"^\|([^|]+)\|", text, re.MULTILINE))
    rows = {*re.findall(r"`([^`]+)`", first)}
    assert names - rows == set(), f"add a row to the table in docs/{page}"


def test_the_table_of_formats_says_which_show_runs() -> None:
    table = (DOCS / "formats.md").read_text(encoding="utf-8")
    said = dict(re.findall(r"^\| `([^`]+)` \|.*\| (yes|no) \|$", table, re.MULTILINE))
    assert said == {name: "yes" if entry.shows_runs else "no" for name, entry in FORMATS.items()}


_WITH_RUNS = [path for path in pages() if "```console\n$ gclint " in path.read_text(encoding="utf-8")]


@pytest.mark.parametrize("page", _WITH_RUNS, ids=lambda path: path.name)
def test_commands_print_what_a_page_shows(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert with_outputs(text) == text, "run python3 -m tests.documented"


def test_the_readme_shows_a_run() -> None:
    assert PROJECT / "README.md" in _WITH_RUNS


def test_a_page_that_shows_something_else_is_renewed() -> None:
    page = "before\n```console\n$ gclint --version\nsomething else\n```\n```console\n$ ls\nleft alone\n```\n"
    renewed = with_outputs(page)
    assert "something else" not in renewed
    assert renewed.startswith("before\n```console\n$ gclint --version\ngclint ")
    assert renewed.endswith("```console\n$ ls\nleft alone\n```\n")
