"""Holds gclint's own rules to their fixtures, as ``gclint test-rules`` holds those of users to theirs."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from gclint.releases import releases
from gclint.rule import Rule
from gclint.testing import fixtures
from gclint.testing.fixtures import Fixture
from gclint.testing.rules import finding_differences, fix_differences, suppression_differences

FIXTURES = Path(__file__).resolve().parent.parent / "fixtures"

_INSTALLED = releases(version("transformers"))
ASSUMED = f"Assumed {_INSTALLED} (the installed one); set target-version if that is wrong."
"""What a summary says first of findings in files of which nobody says which releases they run with."""


def load_fixtures(folder: Path = FIXTURES) -> list[Fixture]:
    """Return the fixtures of all rules, without those in syntax that the running Python does not know."""
    return fixtures.load_fixtures(folder)


def verify_findings(fixture: Fixture, rules: Sequence[Rule], folder: Path) -> None:
    """Assert that exactly what the fixture announces is reported, and said as it should be."""
    assert [*finding_differences(fixture, rules, folder)] == []


def verify_fix(fixture: Fixture, rules: Sequence[Rule], folder: Path, variant: str, *, unsafe: bool) -> None:
    """Assert that fixing gives what the fixture says, if its files are written in some other way."""
    assert [*fix_differences(fixture, rules, folder, variant, unsafe=unsafe)] == []


def verify_suppression(fixture: Fixture, rules: Sequence[Rule], folder: Path) -> None:
    """Assert that an ignore comment on its line suppresses each finding."""
    assert [*suppression_differences(fixture, rules, folder)] == []
