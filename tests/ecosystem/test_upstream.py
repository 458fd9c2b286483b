"""The pages in ``docs/upstream``: complete, of the current form, and their scripts show what they say."""

from __future__ import annotations

import re

import pytest

from gclint.report.upstream import INDEX, RELEASES, index
from gclint.verify.repro import demonstrate
from gclint.verify.settings import RunSettings
from tests.ecosystem.environments import release_environment
from tests.ecosystem.upstream import FOLDER, PAGES, RELEASE, pages, script_of
from tests.environment import EnvironmentUnavailable

_LONGEST = 110
"""Lines of a script; most of them have 60 to 90."""
_FOUND = dict(pages())


def test_the_pages_are_those_that_are_kept_with_a_table_of_them() -> None:
    assert sorted(_FOUND) == sorted(PAGES), "run python3 -m tests.ecosystem.upstream"
    assert len(PAGES) == 20
    assert (FOLDER / INDEX).read_text(encoding="utf-8") == index(_FOUND)


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_complete(name: str) -> None:
    page = _FOUND[name]
    headings = re.findall(r"^## (.*)$", page, re.MULTILINE)
    assert headings == ["What happens", "Cause", "Script", "Repair", "Releases"]
    script = script_of(page)
    compile(script, name, "exec")
    assert "gclint" not in script
    assert len(script.splitlines()) <= _LONGEST
    assert f"\n- transformers {RELEASE}: the script shows it: " in page.partition(RELEASES)[2]


@pytest.mark.releases
@pytest.mark.torch
@pytest.mark.drawn(full=2)
@pytest.mark.parametrize("name", PAGES)
def test_a_script_shows_what_its_page_says(name: str) -> None:
    try:
        python = release_environment(RELEASE)
    except EnvironmentUnavailable as error:
        pytest.skip(str(error))
    result = demonstrate(script_of(_FOUND[name]), RunSettings(python))
    assert (result.status, result.output.partition(",")[0]) == (1, f"transformers {RELEASE}"), result.output
