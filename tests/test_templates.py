"""The forms for issues ask for what is needed to answer them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from gclint.cli.main import gclint
from tests.environment import PROJECT

_FORMS = sorted(
    each for each in (PROJECT / ".github" / "ISSUE_TEMPLATE").glob("*.yml") if each.stem != "config"
)
_each_form = pytest.mark.parametrize("path", _FORMS, ids=lambda path: path.stem)


def _form(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def test_there_is_one_for_either_mistake_of_a_linter() -> None:
    assert [path.stem for path in _FORMS] == ["false-alarm", "missed-defect"]


@_each_form
def test_it_asks_for_the_file_and_for_what_gclint_understands(path: Path) -> None:
    fields = {field["id"]: field for field in _form(path)["body"]}
    assert "`gclint explain FILE:LINE`" in fields["explain"]["attributes"]["description"]
    assert [
        name for name in ("file", "explain", "versions") if not fields[name]["validations"]["required"]
    ] == []


@_each_form
def test_it_names_commands_that_there_are(path: Path) -> None:
    named = {*re.findall(r"`gclint ([a-z]+)", path.read_text(encoding="utf-8"))}
    assert named
    assert named <= {*gclint.commands}


@_each_form
def test_it_is_of_the_form_that_github_reads(path: Path) -> None:
    form = _form(path)
    assert {"name", "description", "body"} <= {*form}
    for field in form["body"]:
        assert field["type"] in {"input", "textarea"}
        assert field["attributes"]["label"]
    identifiers = [field["id"] for field in form["body"]]
    assert len({*identifiers}) == len(identifiers)
