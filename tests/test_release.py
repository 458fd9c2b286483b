"""What keeps a release from being made, and what its page says."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml

from gclint import __version__
from tests.changelog import CHANGELOG
from tests.environment import PROJECT
from tests.release import NotReady, main, notes, with_absolute_links
from tests.verify.matrix import PAIRS

_CHANGELOG = "# Changelog\n\n## [1.2.0] - 2026-01-02\n\n### Added\n\n- More.\n"
_WORKFLOWS = PROJECT / ".github" / "workflows"


def test_the_notes_are_those_of_the_version() -> None:
    assert notes("v1.2.0", "1.2.0", _CHANGELOG) == "### Added\n\n- More."


@pytest.mark.parametrize(
    ("tag", "version", "words"),
    [
        ("v1.3.0", "1.2.0", "the tag has to be v1.2.0"),
        ("1.2.0", "1.2.0", "the tag has to be v1.2.0"),
        ("v1.3.0", "1.3.0", "newest version in CHANGELOG.md is 1.2.0"),
    ],
)
def test_tag_version_and_changelog_have_to_agree(tag: str, version: str, words: str) -> None:
    with pytest.raises(NotReady, match=re.escape(words)):
        notes(tag, version, _CHANGELOG)


def test_a_changelog_of_another_form_stops_it() -> None:
    with pytest.raises(NotReady, match=re.escape("CHANGELOG.md: '## 1.2.0'")):
        notes("v1.2.0", "1.2.0", "## 1.2.0\n\nMore.\n")


def test_this_version_can_be_released(capsys: pytest.CaptureFixture[str]) -> None:
    tag = f"v{__version__}"
    assert main([tag]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("### ")
    assert printed.strip() in with_absolute_links(CHANGELOG.read_text(encoding="utf-8"), tag)
    # The page of a release has no neighbours.
    assert not re.search(r"\]\((?!https:)", printed)


def test_what_is_wrong_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["v0.0.0"]) == 1
    assert capsys.readouterr().err.startswith("error: the tag is v0.0.0")
    assert main([]) == 2


def test_links_lead_to_the_repository_at_the_tag() -> None:
    page = "[a](docs/a.md#b) ![c](docs/c.svg) [d](https://example.com) [e](#f)"
    assert with_absolute_links(page, "v1.2.0") == (
        "[a](https://github.com/gclint/gclint/blob/v1.2.0/docs/a.md#b) "
        "![c](https://raw.githubusercontent.com/gclint/gclint/v1.2.0/docs/c.svg) "
        "[d](https://example.com) [e](#f)"
    )


@pytest.mark.parametrize("name", ["release.yml", "docs.yml"])
def test_workflows_ask_for_no_more_than_they_need(name: str) -> None:
    workflow = yaml.safe_load((_WORKFLOWS / name).read_text(encoding="utf-8"))
    assert workflow["permissions"] == {"contents": "read"}
    for job, settings in workflow["jobs"].items():
        given = settings.get("permissions", {})
        assert given.get("id-token") != "write" or "environment" in settings, job


@pytest.mark.parametrize("path", sorted(_WORKFLOWS.glob("*.yml")), ids=lambda path: path.name)
def test_actions_are_pinned(path: Path) -> None:
    used = re.findall(r"uses: (\S+)", path.read_text(encoding="utf-8"))
    others = [each for each in used if not re.search(r"@(v\d+|release/v\d+|[0-9a-f]{40})$|^\./", each)]
    assert used
    assert others == []


def test_what_is_published_is_what_was_built_and_tested() -> None:
    jobs = yaml.safe_load((_WORKFLOWS / "release.yml").read_text(encoding="utf-8"))["jobs"]
    assert jobs["test"]["needs"] == "build"
    assert {*jobs["publish"]["needs"]} == {"build", "test"}
    assert not any("checkout" in step.get("uses", "") for step in jobs["publish"]["steps"])


def _ci() -> Any:
    return yaml.safe_load((_WORKFLOWS / "ci.yml").read_text(encoding="utf-8"))["jobs"]


def _supported() -> set[str]:
    """Return the versions of Python that the metadata names."""
    text = (PROJECT / "pyproject.toml").read_text(encoding="utf-8")
    found = {*re.findall(r"Programming Language :: Python :: (3\.\d+)", text)}
    assert f'requires-python = ">={min(found, key=_version)}"' in text
    return found


def _version(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(".")))


@pytest.mark.parametrize("job", ["quick", "models"])
def test_each_supported_python_is_tested(job: str) -> None:
    assert {*_ci()[job]["strategy"]["matrix"]["python-version"]} == _supported()


def test_the_wheel_is_tested_on_the_oldest_and_the_newest_python_and_released_for_all() -> None:
    oldest, *_, newest = sorted(_supported(), key=_version)
    assert _ci()["wheel"]["strategy"]["matrix"]["python-version"] == [oldest, newest]
    jobs = yaml.safe_load((_WORKFLOWS / "release.yml").read_text(encoding="utf-8"))["jobs"]
    assert {*jobs["test"]["strategy"]["matrix"]["python-version"]} == _supported()


def test_models_are_run_with_a_transformers_that_each_python_has() -> None:
    assert {each.python for each in PAIRS} == _supported()
    majors = {each.python: int(each.transformers.partition(".")[0]) for each in PAIRS}
    # Transformers 5 needs Python 3.11.
    assert {python for python, major in majors.items() if major < 5} == {"3.10"}


@pytest.mark.parametrize("path", sorted(_WORKFLOWS.glob("*.yml")), ids=lambda path: path.name)
def test_workflows_name_what_there_is(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    modules = {*re.findall(r"python -m (tests[\w.]*)", text)}
    files = {*re.findall(r"\btests/[\w/]+\.py", text)}
    extras = {each for found in re.findall(r'-e "?\.\[([\w,]+)\]', text) for each in found.split(",")}
    known = {*re.findall(r"^(\w+) = \[", (PROJECT / "pyproject.toml").read_text("utf-8"), re.MULTILINE)}
    assert [each for each in modules if find_spec(each) is None] == []
    assert [each for each in files if not (PROJECT / each).is_file()] == []
    assert extras - known == set()
