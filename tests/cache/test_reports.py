"""Commands whose reports are known, and those that must be looked at again."""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.cache.shell import (
    CHECKPOINTED_BASE,
    LISTS_MODULES,
    MODEL,
    Ran,
    database,
    documents,
    is_known,
    run,
    write_project,
)

_OPTIONS = ("package", "--output-format", "json")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return write_project(tmp_path)


def _checked(project: Path, *arguments: str) -> Ran:
    """Run with the cache and without, and make sure that they agree."""
    cached = run(project, *_OPTIONS, *arguments, code=LISTS_MODULES)
    fresh = run(project, *_OPTIONS, *arguments, "--no-cache")
    assert (cached.status, cached.output) == (fresh.status, fresh.output)
    return cached


def test_a_known_run_needs_neither_libcst_nor_click(project: Path) -> None:
    first = _checked(project)
    assert first.status == 1
    assert not is_known(first)
    second = _checked(project)
    assert is_known(second)
    assert "GC001" in second.output
    assert sorted(each.name for each in project.iterdir()) == ["package", "pyproject.toml"]


def test_a_run_on_one_file_leaves_what_is_known_of_the_others(project: Path) -> None:
    _checked(project)
    one = "package/models/base/modeling_base.py"
    assert not is_known(run(project, one, code=LISTS_MODULES))
    assert is_known(run(project, one, code=LISTS_MODULES))
    assert is_known(_checked(project))


def _edit_base(project: Path) -> None:
    (project / "package/models/base/modeling_base.py").write_text(CHECKPOINTED_BASE, encoding="utf-8")


def _edit_as_if_nothing_was(project: Path) -> None:
    path = project / "package/models/mine/modeling_mine.py"
    status = path.stat()
    path.write_text(MODEL.replace("MyBlock", "MyBlick"), encoding="utf-8")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def _delete_base(project: Path) -> None:
    (project / "package/models/base/modeling_base.py").unlink()


def _add_model(project: Path) -> None:
    shutil.copytree(project / "package/models/mine", project / "package/models/other")


def _add_caller(project: Path) -> None:
    (project / "package" / "switch.py").write_text(
        "def enable(model):\n    model.gradient_checkpointing = True\n", encoding="utf-8"
    )


def _shadow_library(project: Path) -> None:
    (project / "transformers").mkdir()
    (project / "transformers" / "__init__.py").touch()


def _ignore_rule(project: Path) -> None:
    (project / "pyproject.toml").write_text('[tool.gclint]\nignore = ["GC001"]\n', encoding="utf-8")


def _require_releases(project: Path) -> None:
    (project / "requirements.txt").write_text("transformers>=4.40\n", encoding="utf-8")


def _leave_unfinished_fix(project: Path) -> None:
    (project / ".gclint-fix").write_text("broken\n", encoding="utf-8")


_EDITS = (
    _edit_base,
    _edit_as_if_nothing_was,
    _leave_unfinished_fix,
    _delete_base,
    _add_model,
    _add_caller,
    _shadow_library,
    _ignore_rule,
    _require_releases,
)


@pytest.mark.drawn(first=2)
@pytest.mark.parametrize("edit", _EDITS)
def test_what_was_consulted_has_changed(project: Path, edit: Callable[[Path], None]) -> None:
    _checked(project)
    assert is_known(_checked(project))
    edit(project)
    assert not is_known(_checked(project))


@pytest.mark.slow
def test_an_unrelated_file_makes_no_difference(project: Path) -> None:
    _checked(project)
    (project / "notes.txt").write_text("words", encoding="utf-8")
    (project / "package" / ".hidden").mkdir()
    (project / "package" / ".hidden" / "modeling_hidden.py").write_text(MODEL, encoding="utf-8")
    _checked(project)
    assert is_known(_checked(project))


def test_another_environment_is_looked_at(project: Path) -> None:
    _checked(project)
    other = project / "other"
    library = other / "lib" / "python3.11" / "site-packages" / "transformers"
    library.mkdir(parents=True)
    (library / "__init__.py").write_text('__version__ = "4.40.0"\n', encoding="utf-8")
    ran = run(project, *_OPTIONS, variables={"VIRTUAL_ENV": str(other)}, code=LISTS_MODULES)
    assert not is_known(ran)


def test_a_fix_is_made_each_time(project: Path) -> None:
    path = project / "package/models/mine/modeling_mine.py"
    arguments = ("package", "--fix", "--unsafe-fixes", "--target-version", "5.23")
    run(project, *arguments)
    fixed = [each.read_text(encoding="utf-8") for each in sorted(project.rglob("modeling_*.py"))]
    assert any("GradientCheckpointingLayer" in text for text in fixed)
    shutil.rmtree(project / "package")
    (project / "pyproject.toml").unlink()
    write_project(project)
    run(project, *arguments)
    assert path.exists()
    assert [each.read_text(encoding="utf-8") for each in sorted(project.rglob("modeling_*.py"))] == fixed


def test_a_report_is_written_anew_for_each_stream(project: Path) -> None:
    plain = run(project, "package")
    coloured = run(project, "package", variables={"FORCE_COLOR": "1"})
    again = run(project, "package", variables={"FORCE_COLOR": "1"}, code=LISTS_MODULES)
    assert is_known(again)
    assert "\x1b[" in again.output
    assert again.output == coloured.output != plain.output


def test_notes_are_repeated(project: Path) -> None:
    (project / "pyproject.toml").write_text('[tool.gclint]\ncache-dir = "x"\n', encoding="utf-8")
    first = _checked(project)
    second = _checked(project)
    assert is_known(second)
    assert "cache-dir has no effect any more" in second.errors
    assert second.errors.splitlines()[:-1] == first.errors.splitlines()[:-1]


def test_another_python_is_another_command(project: Path) -> None:
    _checked(project)
    assert is_known(_checked(project))
    assert not is_known(run(project, *_OPTIONS, variables={"PYTHONPATH": "/nowhere"}, code=LISTS_MODULES))


@pytest.mark.parametrize("ahead", [-10_000, 10_000])
def test_a_clock_that_is_wrong_makes_no_difference(project: Path, ahead: int) -> None:
    """Files are stamped by the clock of their file system, which may be another one."""
    clock = f"import time\nnow = time.time_ns\ntime.time_ns = lambda: now() + {ahead} * 10**9\n"
    run(project, *_OPTIONS, code=clock)
    # If it is behind, all code seems to have been edited just now.
    assert is_known(run(project, *_OPTIONS, code=clock + LISTS_MODULES)) == (ahead > 0)
    for edit in (_edit_as_if_nothing_was, _add_caller, _delete_base):
        edit(project)
        ran = run(project, *_OPTIONS, code=clock + LISTS_MODULES)
        assert not is_known(ran)
        assert ran.output == run(project, *_OPTIONS, "--no-cache").output


def test_what_an_earlier_version_has_left_is_neither_read_nor_changed(project: Path) -> None:
    old = database().parent / f"gclint-{'0' * 16}-verdicts-x.json"
    old.parent.mkdir(parents=True)
    old.write_text("{", encoding="utf-8")
    _checked(project)
    assert is_known(_checked(project))
    run(project, "clean")
    assert old.read_text(encoding="utf-8") == "{"


def test_while_the_cache_is_locked_a_run_goes_on_and_says_so_once(project: Path) -> None:
    expected = _checked(project)
    with closing(sqlite3.connect(database(), isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        ran = run(project, *_OPTIONS)
        quiet = run(project, *_OPTIONS, "-q")
        cleaned = run(project, "clean")
    assert (ran.status, ran.output) == (expected.status, expected.output)
    assert ran.errors.count("note: ") == ran.errors.count("another run is using it") == 1
    assert quiet.errors == ""
    assert cleaned.status == 2
    assert is_known(_checked(project))


@pytest.mark.slow
def test_a_damaged_database_is_none_and_is_replaced(project: Path) -> None:
    _checked(project)
    whole = database().read_bytes()
    for damaged in (
        whole[: len(whole) // 2],
        whole[:-4096],
        whole.replace(b"GC001", b"GC999"),
        whole.replace(b"verdicts_5", b"verdicts_4"),
        b"",
        b"words" * 1000,
    ):
        database().write_bytes(damaged)
        ran = _checked(project)
        assert not is_known(ran)
        assert "Traceback" not in ran.errors
        assert is_known(_checked(project))


@pytest.mark.slow
def test_a_full_disk_costs_a_notice_at_most(project: Path) -> None:
    code = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (200, 200))\n"
    code += "import signal\nsignal.signal(signal.SIGXFSZ, signal.SIG_IGN)"
    expected = run(project, *_OPTIONS, "--no-cache")
    named = ("--cache-dir", "cache")
    for _ in range(2):
        ran = run(project, *_OPTIONS, *named, code=code)
        assert (ran.status, ran.output) == (expected.status, expected.output)
        assert ran.errors.count("\n") == 1
        assert ran.errors.startswith("note: the cache in cache cannot be used: ")
        assert "--no-cache" in ran.errors
    for options in ((*named, "-q"), ()):
        assert run(project, *_OPTIONS, *options, code=code).errors == ""
    assert "note: the cache in " in run(project, *_OPTIONS, "-v", code=code).errors
    assert is_known(_checked(project)) == is_known(_checked(project, *named)) is False
    assert is_known(_checked(project)) == is_known(_checked(project, *named)) is True


def test_what_is_no_folder_is_left_alone(project: Path) -> None:
    before = (project / "pyproject.toml").read_bytes()
    ran = run(project, *_OPTIONS, "--cache-dir", "pyproject.toml")
    assert ran.status == 1
    assert re.fullmatch(r"note: the cache in pyproject.toml cannot be used: .*--cache-dir.*\n", ran.errors)
    assert run(project, "clean", "--cache-dir", "pyproject.toml").status == 2
    assert (project / "pyproject.toml").read_bytes() == before


def test_clean_deletes_the_cache_and_nothing_else(project: Path) -> None:
    _checked(project)
    precious = database().parent / "precious"
    precious.touch()
    assert documents()
    assert run(project, "clean").output.startswith("Deleted the cache in ")
    assert not documents()
    assert precious.exists()
    assert run(project, "clean").output.startswith("There is no cache in ")


def test_clean_deletes_what_is_in_a_folder_that_the_user_names(project: Path) -> None:
    run(project, *_OPTIONS, "--cache-dir", "cache")
    (project / "cache" / "precious").touch()
    assert run(project, "clean", "--cache-dir", "cache").output == "Deleted the cache in cache.\n"
    assert sorted(each.name for each in (project / "cache").iterdir()) == [".gitignore", "precious"]


@pytest.mark.slow
def test_two_runs_at_once_agree(project: Path) -> None:
    expected = run(project, *_OPTIONS, "--no-cache").output
    start = "from gclint.launch import main\nmain()\n"
    runs = [
        subprocess.Popen(
            [sys.executable, "-c", start, *_OPTIONS],
            cwd=project,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(3)
    ]
    assert [each.communicate()[0] for each in runs] == [expected] * 3
    assert is_known(_checked(project))
