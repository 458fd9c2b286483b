"""No input makes gclint fail: the whole standard library, all fixtures, and fixtures that are damaged."""

from __future__ import annotations

import sysconfig
import warnings
from collections.abc import Sequence
from pathlib import Path

import pytest

from gclint.code.project import Project
from gclint.finding import Problem
from gclint.rule import all_rules
from gclint.run.check import check
from gclint.run.fix import fix
from gclint.settings import Settings
from tests.harness import FIXTURES

_STANDARD_LIBRARY = Path(sysconfig.get_path("stdlib"))
_FOREIGN = {"site-packages", "dist-packages"}
_LINES_TAKEN = {"some": 3, "many": 80}
"""Of a longer fixture, every second line is left out in turn, or every third."""


def _standard_library() -> list[Path]:
    paths = sorted(path for path in _STANDARD_LIBRARY.rglob("*.py") if not _FOREIGN & set(path.parts))
    assert len(paths) > 500
    return paths


def _unjustified(problems: Sequence[Problem]) -> list[Problem]:
    """Return the problems that Python does not have with the same file."""
    return [problem for problem in problems if _is_compiled(problem.path)]


def _is_compiled(path: Path) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            compile(path.read_bytes(), path, "exec", dont_inherit=True)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return False
    return True


@pytest.mark.parametrize("every", [10, pytest.param(1, marks=pytest.mark.slow)])
def test_standard_library_is_checked_without_a_crash(every: int) -> None:
    paths = _standard_library()[::every]
    result = check(Project(Settings(), paths), all_rules())
    assert _unjustified(result.problems) == []
    assert result.files + len(result.problems) == len(paths)
    # It holds no model; what would be found here is wrong.
    assert result.findings == ()


def test_standard_library_is_fixed_without_a_crash() -> None:
    paths = _standard_library()[::20]
    result = fix(Project(Settings(), paths), all_rules(), unsafe=True)
    assert _unjustified(result.problems) == []
    assert result.changed == {}


_FIXTURE_FILES = sorted(path for path in FIXTURES.rglob("*.py") if path.stat().st_size and _is_compiled(path))
_each_file = pytest.mark.parametrize(
    "path", _FIXTURE_FILES, ids=lambda path: path.relative_to(FIXTURES).as_posix()
)


@pytest.mark.drawn(first=120, full=300)
@_each_file
def test_fixture_without_a_few_of_its_lines_is_fixed_without_a_crash(path: Path, tmp_path: Path) -> None:
    _fix_damaged(path, "some", tmp_path)


@pytest.mark.slow
@pytest.mark.drawn(full=25)
@_each_file
def test_fixture_without_any_of_its_lines_is_fixed_without_a_crash(path: Path, tmp_path: Path) -> None:
    _fix_damaged(path, "many", tmp_path)


def _fix_damaged(path: Path, how_many: str, tmp_path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    paths = []
    for index in range(0, len(lines), len(lines) // _LINES_TAKEN[how_many] + 1):
        damaged = tmp_path / f"{index}" / "modeling_damaged.py"
        damaged.parent.mkdir()
        damaged.write_text("".join([*lines[:index], *lines[index + 1 :]]), encoding="utf-8")
        paths.append(damaged)
    result = fix(Project(Settings(), paths), all_rules(), unsafe=True)
    assert _unjustified(result.problems) == []
    # Of few lines, most may be those that nothing goes without.
    assert result.files >= (len(paths) / 2 if how_many == "many" else 1)
