"""The recipe for a new rule, followed as it is written, in a copy of the repository."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from gclint.rule import all_rules
from tests.changelog import MalformedChangelog, sections, with_entry
from tests.documented import DOCS
from tests.environment import PROJECT
from tests.new_rule import MODULE, SERIES, Refused, complaint, files_of, main, new_rule
from tests.terminal import Outcome

_PAGE = (DOCS / "adding-a-rule.md").read_text(encoding="utf-8")
_FIXTURE, _MODULE = re.findall(r"^```python\n(.*?)^```$", _PAGE, re.MULTILINE | re.DOTALL)
_RULE = ("GC999", "literal-use-cache")
_MODULE_PATH, _FIXTURE_PATH = files_of(*_RULE)
_COPIED = ("docs", "fixtures", "gclint", "rules", "tests", "*.md", "pyproject.toml")


@pytest.mark.parametrize(
    ("code", "name", "words"),
    [
        ("GC1", "literal-use-cache", "GC and three digits"),
        ("gc199", "literal-use-cache", "GC and three digits"),
        ("GC1999", "literal-use-cache", "GC and three digits"),
        ("GC٣٣٣", "literal-use-cache", "GC and three digits"),
        ("../x", "literal-use-cache", "GC and three digits"),
        ("GC899", "literal-use-cache", "no series GC8xx"),
        ("GC101", "literal-use-cache", "that of mismatched-checkpoint-branches, and no code is used twice"),
        ("GC102", "literal-use-cache", "in the changelog, and no code is used twice; GC104 is free"),
        ("GC199", "positional-cache", "that of GC002"),
        ("GC199", "Literal-Use-Cache", "not the name of a rule"),
        ("GC199", "literal_use_cache", "not the name of a rule"),
        ("GC199", "literal", "two or more words"),
        ("GC199", "", "not the name of a rule"),
        ("GC199", "literal--use", "not the name of a rule"),
        ("GC199", "../../etc", "not the name of a rule"),
        ("GC199", "literal-use\n", "not the name of a rule"),
        ("GC199", "a-" + "b" * 50, "50 characters at most"),
        ("GC199", "no-literal-use", "does not read well after 'allow'"),
        ("GC199", "run-site", "a class RunSite is what every rule imports"),
    ],
)
def test_a_code_or_name_that_cannot_be_is_refused(code: str, name: str, words: str) -> None:
    said = complaint(code, name, all_rules(), "- Rule GC102 was here once: GC101, GC102, GC103.")
    assert said is not None and words in said


def test_a_code_and_name_that_are_free_are_not() -> None:
    assert complaint("GC199", "literal-use-cache", all_rules(), "") is None
    assert {rule.code[:3] for rule in all_rules()} <= {*SERIES}


def test_a_refusal_is_one_line_and_no_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["GC001", "literal-use-cache"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert re.fullmatch(r"Error: the code GC001 is that of missing-checkpointing-layer, .*\n", err)


def test_no_rule_is_left_unfinished() -> None:
    assert "TODO" in MODULE
    found = [*PROJECT.glob("rules/*.py"), *PROJECT.glob("fixtures/GC*/**/*.py"), PROJECT / "CHANGELOG.md"]
    assert [str(path) for path in found if "TODO" in path.read_text(encoding="utf-8")] == []


_CHANGES = "# Changelog\n\n## [0.2.0] - 2026-02-02\n\n{}\n## [0.1.0] - 2026-02-01\n\n### Added\n\n- Old.\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("### Added\n\n- One,\n  and more.\n", "### Added\n\n- One,\n  and more.\n- New.\n"),
        (
            "### Added\n\n- One.\n\n### Fixed\n\n- Two.\n",
            "### Added\n\n- One.\n- New.\n\n### Fixed\n\n- Two.\n",
        ),
        ("### Fixed\n\n- Two.\n", "### Added\n\n- New.\n\n### Fixed\n\n- Two.\n"),
    ],
)
def test_the_entry_stands_below_the_others_of_the_newest_version(before: str, after: str) -> None:
    made = with_entry(_CHANGES.format(before), "Added", "New.")
    assert made == _CHANGES.format(after)
    assert len(sections(made)) == 2


def test_a_changelog_without_links_below_its_only_version_stays_whole() -> None:
    text = "## [0.1.0] - 2026-02-01\n\n### Added\n\n- Old.\n\n[0.1.0]: https://example.com\n"
    assert with_entry(text, "Added", "New.") == text.replace("- Old.\n", "- Old.\n- New.\n")
    with pytest.raises(MalformedChangelog):
        with_entry("# Changelog\n", "Added", "New.")


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the repository with the rule of the recipe as the command leaves it."""
    folder = tmp_path_factory.mktemp("repository")
    for path in (each for pattern in _COPIED for each in PROJECT.glob(pattern)):
        if path.is_dir():
            shutil.copytree(path, folder / path.name, ignore=shutil.ignore_patterns("__pycache__", ".*"))
        else:
            shutil.copyfile(path, folder / path.name)
    written = _run(folder, "-m", "tests.new_rule", *_RULE)
    assert written.status == 0, written.err
    named = re.findall(r"^wrote (.*)$", written.out, re.MULTILINE)
    assert {_MODULE_PATH, _FIXTURE_PATH, "CHANGELOG.md", "docs/rules.md"} <= {*named}
    assert [name for name in named if not (folder / name).is_file()] == []
    return folder


def _run(folder: Path, *arguments: str) -> Outcome:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, encoding="utf-8"
    )
    return Outcome(done.returncode, done.stdout, done.stderr)


_ABOUT_RULES = ("fixtures", "explain", "rule_formats", "documented", "changelog", "preview", "recipe")


def _failed(folder: Path) -> Sequence[str]:
    """Return which tests of a copy fail, of those that are about rules."""
    paths = [f"tests/test_{name}.py" for name in _ABOUT_RULES]
    chosen = "GC999 or docstrings or entry or settings_are or unfinished or preview_without"
    done = _run(folder, "-m", "pytest", "-q", "-p", "no:cacheprovider", *paths, "-k", chosen)
    assert "passed" in done.out, done.out + done.err
    return re.findall(r"^FAILED \S+::(\w+)", done.out, re.MULTILINE)


@pytest.mark.slow
def test_a_rule_without_any_fix_holds_as_it_is_written(copy: Path) -> None:
    assert _failed(copy) == ["test_no_rule_is_left_unfinished"]
    listed = _run(copy, "-m", "gclint", "rules")
    assert re.search(r"^GC999  literal-use-cache ", listed.out, re.MULTILINE)
    for command in (
        ("ruff", "check", "rules", "tests"),
        ("ruff", "format", "--check", "rules"),
        ("mypy", _MODULE_PATH),
    ):
        done = _run(copy, "-m", *command)
        assert done.status == 0, done.out + done.err


@pytest.mark.slow
def test_a_rule_that_is_begun_is_not_overwritten(copy: Path) -> None:
    before = {path: path.read_bytes() for path in copy.rglob("*.md")}
    done = _run(copy, "-m", "tests.new_rule", *_RULE)
    assert (done.status, done.out) == (2, "")
    assert "no code is used twice" in done.err
    assert {path: path.read_bytes() for path in copy.rglob("*.md")} == before


@pytest.mark.slow
def test_the_recipe_leads_to_a_rule_that_holds(copy: Path, tmp_path: Path) -> None:
    folder = tmp_path / "repository"
    shutil.copytree(copy, folder)
    (folder / _MODULE_PATH).write_text(_MODULE, encoding="utf-8")
    fixture = folder / _FIXTURE_PATH
    fixture.write_text(_FIXTURE, encoding="utf-8")
    after = re.sub(r"  # (expect|silent): .*", "", _FIXTURE).replace("use_cache=True", "use_cache=False")
    fixture.with_suffix(".unsafe.py").write_text(after, encoding="utf-8")
    changelog = folder / "CHANGELOG.md"
    text = changelog.read_text(encoding="utf-8")
    changelog.write_text(text.replace("TODO, what it finds", "a literal"), encoding="utf-8")
    assert _run(folder, "-m", "tests.documented").status == 0
    assert _failed(folder) == []
    for command in (
        ("ruff", "check", "rules"),
        ("ruff", "format", "--check", "rules"),
        ("mypy", _MODULE_PATH),
    ):
        done = _run(folder, "-m", *command)
        assert done.status == 0, done.out + done.err


def test_what_lies_in_the_way_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "CHANGELOG.md").write_text(_CHANGES.format("### Fixed\n\n- Two.\n"), encoding="utf-8")
    (tmp_path / "fixtures" / "GC999").mkdir(parents=True)
    with pytest.raises(Refused, match="is there already"):
        new_rule(*_RULE, tmp_path)
