"""Runs from the shell that are replayed, and those that must not be."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from gclint.cache.place import Place
from gclint.cache.runs import replay
from gclint.cache.store import Store
from gclint.facts import digest
from tests.cache.shell import (
    CHECKPOINTED_BASE,
    LISTS_MODULES,
    MODEL,
    Ran,
    documents,
    is_replayed,
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


def _cache() -> Path:
    (document,) = documents("[!v]*")
    return document


def test_a_known_run_needs_neither_libcst_nor_click(project: Path) -> None:
    first = _checked(project)
    assert first.status == 1
    assert not is_replayed(first)
    second = _checked(project)
    assert is_replayed(second)
    assert "GC001" in second.output
    assert sorted(each.name for each in project.iterdir()) == ["package", "pyproject.toml"]


def test_a_run_on_one_file_leaves_what_is_known_of_the_others(project: Path) -> None:
    _checked(project)
    one = "package/models/base/modeling_base.py"
    assert not is_replayed(run(project, one, code=LISTS_MODULES))
    assert is_replayed(run(project, one, code=LISTS_MODULES))
    assert is_replayed(_checked(project))


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
    assert is_replayed(_checked(project))
    edit(project)
    assert not is_replayed(_checked(project))


@pytest.mark.slow
def test_an_unrelated_file_makes_no_difference(project: Path) -> None:
    _checked(project)
    (project / "notes.txt").write_text("words", encoding="utf-8")
    (project / "package" / ".hidden").mkdir()
    (project / "package" / ".hidden" / "modeling_hidden.py").write_text(MODEL, encoding="utf-8")
    _checked(project)
    assert is_replayed(_checked(project))


def test_another_environment_is_looked_at(project: Path) -> None:
    _checked(project)
    other = project / "other"
    library = other / "lib" / "python3.11" / "site-packages" / "transformers"
    library.mkdir(parents=True)
    (library / "__init__.py").write_text('__version__ = "4.40.0"\n', encoding="utf-8")
    ran = run(project, *_OPTIONS, variables={"VIRTUAL_ENV": str(other)}, code=LISTS_MODULES)
    assert not is_replayed(ran)


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


def test_a_diff_is_replayed(project: Path) -> None:
    arguments = ("package", "--diff", "--unsafe-fixes", "--target-version", "5.23")
    first = run(project, *arguments)
    second = run(project, *arguments, code=LISTS_MODULES)
    assert is_replayed(second)
    assert (second.status, second.output) == (first.status, first.output)
    assert "GradientCheckpointingLayer" in second.output


@pytest.mark.slow
def test_a_damaged_document_is_none(project: Path) -> None:
    _checked(project)
    document = _cache()
    whole = document.read_bytes()
    for damaged in (
        whole[: len(whole) // 2],
        whole[:-1],
        whole.replace(b"GC001", b"GC999"),
        b"",
        whole + b" ",
    ):
        document.write_bytes(damaged)
        assert damaged == whole or not is_replayed(_checked(project))


@pytest.mark.parametrize("name", ["stdout", "stderr"])
def test_nothing_is_replayed_into_a_stream_that_is_closed(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(sys, name, None)
    assert replay(("package",), lambda _path, _data: None) is None


def test_a_store_believes_no_byte_that_is_not_its_own(tmp_path: Path) -> None:
    store = Store(Place(tmp_path / "cache", "0" * 16))
    store.write("x", {"findings": ["one", "two"]})
    (document,) = (tmp_path / "cache").iterdir()
    whole = document.read_bytes()
    assert store.read("x")
    for place in range(len(whole)):
        for data in (whole[:place], whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :]):
            document.write_bytes(data)
            assert store.read("x") is None


@pytest.mark.slow
def test_documents_of_others_are_none(project: Path) -> None:
    expected = _checked(project)
    for body in (b"null", b'{"version":"0.0 0"}', b"[" * 100_000, b"\x80\x04K\x01."):
        _cache().write_bytes(digest(body).encode() + b"\n" + body)
        ran = _checked(project)
        assert ran.output == expected.output
        assert "Traceback" not in ran.errors


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="needs POSIX")
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
    assert not [*documents(), *(project / "cache").glob("*.json*")]


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="needs POSIX")
def test_a_disk_that_only_some_of_it_fits_on_costs_a_notice(project: Path) -> None:
    for number in range(30):
        shutil.copytree(project / "package/models/own", project / f"package/models/own{number}")
    options = ("package", "--statistics", "-v")
    run(project, *options)
    sizes = {path.name: path.stat().st_size for path in documents()}
    largest = max(sizes, key=sizes.__getitem__)
    assert "-verdicts-" in largest
    code = f"import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, ({sizes[largest] - 1},) * 2)\n"
    code += "import signal\nsignal.signal(signal.SIGXFSZ, signal.SIG_IGN)"
    run(project, "clean")
    ran = run(project, *options, code=code)
    assert ran.errors.count("note: the cache in ") == 1
    assert [path.name for path in documents()] == [min(sizes, key=sizes.__getitem__)]


def test_what_is_no_folder_is_left_alone(project: Path) -> None:
    before = (project / "pyproject.toml").read_bytes()
    ran = run(project, *_OPTIONS, "--cache-dir", "pyproject.toml")
    assert ran.status == 1
    assert re.fullmatch(r"note: the cache in pyproject.toml cannot be used: .*--cache-dir.*\n", ran.errors)
    assert run(project, "clean", "--cache-dir", "pyproject.toml").status == 2
    assert (project / "pyproject.toml").read_bytes() == before


def test_clean_deletes_the_cache_and_nothing_else(project: Path) -> None:
    _checked(project)
    folder = documents()[0].parent
    others = [folder / name for name in ("precious", f"gclint-{'0' * 16}-x.json", "gclint-x.json")]
    for each in others:
        each.touch()
    assert run(project, "clean").output.startswith("Deleted the cache in ")
    assert sorted(folder.iterdir()) == sorted(others)
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
    assert is_replayed(_checked(project))
