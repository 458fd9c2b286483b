"""The changelog keeps to the version, and to its form."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone
from itertools import pairwise

import pytest

from gclint import __version__
from gclint.rule import all_rules
from tests.changelog import CHANGELOG, UNRELEASED, MalformedChangelog, links, sections
from tests.documented import pages

_TEXT = CHANGELOG.read_text(encoding="utf-8")


def test_this_version_is_the_newest_one() -> None:
    assert sections(_TEXT)[0].name == __version__


def test_no_version_is_of_tomorrow() -> None:
    # Somewhere it is tomorrow already.
    latest = (datetime.now(timezone.utc) + timedelta(hours=14)).date()
    assert [each.name for each in sections(_TEXT) if each.day > latest] == []


def test_the_documentation_asks_for_this_version() -> None:
    """Of the hooks and of the action, whose examples people copy."""
    for page in pages():
        named = re.findall(r"(?:rev: |gclint/gclint@)v(\d+\.\d+\.\d+)", page.read_text(encoding="utf-8"))
        assert {*named} <= {__version__}, page.name


def test_every_rule_has_its_entry() -> None:
    missing = [rule.code for rule in all_rules() if not re.search(rf"\b{rule.code} {rule.name}\b", _TEXT)]
    assert missing == [], "name a new rule in the changelog by its code and its name"


def test_headings_lead_to_what_changed() -> None:
    repository = "https://github.com/gclint/gclint"
    versions = [each.name for each in sections(_TEXT)]
    expected = {}
    if f"## [{UNRELEASED}]" in _TEXT:
        expected[UNRELEASED] = f"{repository}/compare/v{versions[0]}...main"
    for newer, older in pairwise(versions):
        expected[newer] = f"{repository}/compare/v{older}...v{newer}"
    expected[versions[-1]] = f"{repository}/releases/tag/v{versions[-1]}"
    assert links(_TEXT) == expected


_GOOD = """\
# Changelog

## [Unreleased]

### Fixed

- Something.

## [1.10.0] - 2026-02-28

### Added

- More.

## [1.9.0] - 2026-02-01

### Added

- Much.

[1.9.0]: https://example.com
"""


def test_versions_are_read() -> None:
    newest, oldest = sections(_GOOD)
    assert (newest.name, newest.text) == ("1.10.0", "### Added\n\n- More.")
    assert (oldest.name, oldest.text) == ("1.9.0", "### Added\n\n- Much.")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("2026-02-28", "2026-02-30", "valid date"),
        ("2026-02-28", "28.2.2026", "valid date"),
        ("2026-02-28", "2026-01-31", "1.10.0 of 2026-01-31 stands above 1.9.0"),
        ("[1.10.0]", "[1.8.0]", "1.8.0 of 2026-02-28 stands above 1.9.0"),
        ("[1.10.0]", "[1.9.0]", "stands above"),
        ("[1.10.0] - 2026-02-28", "1.10.0", "not of the form"),
        ("### Added\n\n- More.", "### New\n\n- More.", "'### New'"),
        ("### Fixed", "### Bugs", "'### Bugs' under '## [Unreleased]'"),
        ("- More.", "- More.\n\n### Added\n\n- Again.", "twice"),
        ("### Added\n\n- More.\n", "", "says nothing"),
    ],
)
def test_a_malformed_changelog_is_refused(old: str, new: str, words: str) -> None:
    assert old in _GOOD
    with pytest.raises(MalformedChangelog, match=re.escape(words)):
        sections(_GOOD.replace(old, new, 1))
