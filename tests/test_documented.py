"""The rules' documentation in ``docs/rules``."""

from __future__ import annotations

from pathlib import Path

import pytest

from gclint.finding import Finding
from gclint.report.findings import documentation_url
from gclint.rule import Rule, all_rules
from tests.documented import FOLDER, documents
from tests.environment import PROJECT
from tests.toys import NO_FIX


def test_it_says_what_the_docstrings_say() -> None:
    found = {path: path.read_text(encoding="utf-8") for path in FOLDER.iterdir()}
    assert found == documents(), "run python3 -m tests.documented"


@pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.code)
def test_findings_lead_there(rule: Rule) -> None:
    finding = Finding(rule.code, rule.name, "", Path("modeling_x.py"), 0, 0, "", NO_FIX)
    path = documentation_url(finding).partition("/blob/main/")[2]
    assert (PROJECT / path).read_text(encoding="utf-8").startswith(f"# {rule.code} {rule.name}\n")
