"""Whatever a repository contains, no command writes, deletes or runs anything that it was not asked to."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.attacks.hostile import Trap, outside_of, trap

_READING = (
    (".",),
    (".", "--jobs", "2"),
    ("--diff", "--unsafe-fixes", "."),
    ("--changed-only", "--base-ref", "HEAD", "."),
    ("--changed-only", "--staged", "."),
    ("explain", "modeling_own.py:30"),
    ("config", "."),
    ("clean",),
)
_WRITING: tuple[tuple[str, ...], ...] = (
    ("--fix", "--unsafe-fixes", "."),
    ("--add-ignores", "."),
)
_OUTPUTS = (
    ("--write-baseline", "baseline.json", "."),
    ("--summary", "summary.md", "--diff", "."),
    ("--output-file", "sarif:report.sarif", "."),
)


@pytest.fixture
def hostile(tmp_path: Path) -> Trap:
    return trap(tmp_path)


@pytest.mark.drawn(first=3)
@pytest.mark.parametrize("arguments", _READING, ids=" ".join)
def test_a_command_that_reads_touches_nothing_but_the_users_own_folders(
    hostile: Trap, arguments: tuple[str, ...]
) -> None:
    before, entries = hostile.state(), _entries(hostile.repository)
    ran = hostile.run(*arguments)
    assert ran.status in (0, 1, 2), ran.errors
    assert "Traceback" not in ran.errors
    assert outside_of(ran.touched, hostile.user) == []
    assert (hostile.state(), _entries(hostile.repository)) == (before, entries)
    _require_nothing_foreign(hostile, ran.output + ran.errors, ran.started)


@pytest.mark.drawn(first=1)
@pytest.mark.parametrize("arguments", _WRITING, ids=" ".join)
def test_a_command_that_repairs_touches_only_given_files_beside_them(
    hostile: Trap, arguments: tuple[str, ...]
) -> None:
    before, entries = hostile.state(), _entries(hostile.repository)
    ran = hostile.run(*arguments)
    assert "Traceback" not in ran.errors
    written = [Path(path).resolve() for _, path in outside_of(ran.touched, hostile.user)]
    assert {path.parent for path in written} <= {hostile.repository.resolve()}
    after = _entries(hostile.repository)
    changed = {path for path in {**entries, **after} if entries.get(path) != after.get(path)}
    assert changed == {"modeling_own.py"}
    assert hostile.state() == before
    _require_nothing_foreign(hostile, ran.output + ran.errors, ran.started)


@pytest.mark.drawn(first=1)
@pytest.mark.parametrize("arguments", _OUTPUTS, ids=" ".join)
def test_a_link_in_place_of_an_output_file_leads_nowhere(hostile: Trap, arguments: tuple[str, ...]) -> None:
    before = hostile.state()
    ran = hostile.run(*arguments)
    assert "Traceback" not in ran.errors
    assert hostile.state() == before
    assert ran.status == 2
    assert arguments[1].rpartition(":")[2] in ran.errors


def _entries(repository: Path) -> dict[str, object]:
    """Return all that is in the repository, but git's own files."""

    def content(path: Path) -> object:
        return str(path.readlink()) if path.is_symlink() else path.read_bytes() if path.is_file() else None

    found = (each for each in repository.rglob("*") if ".git" not in each.relative_to(repository).parts)
    return {str(each.relative_to(repository)): content(each) for each in found}


def _require_nothing_foreign(hostile: Trap, printed: str, started: tuple[str, ...]) -> None:
    assert list(hostile.marks.iterdir()) == []
    assert "hunter2" not in printed
    assert {Path(each).name for each in started} <= {"git"}
