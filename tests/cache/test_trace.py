"""Whatever a lint reads of the disk is in its trace."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from gclint import facts
from gclint.cache.consulted import encoded, still_holds
from gclint.cache.store import NAME
from gclint.trace import traced
from tests.cache.shell import consulted, documents, run, write_project

_WATCH = """
import atexit, json, os, sys
seen = set()
def watch(event, arguments):
    if event in ("open", "os.listdir", "os.scandir") and isinstance(arguments[0], (str, os.PathLike)):
        seen.add(os.path.abspath(arguments[0]))
sys.addaudithook(watch)
atexit.register(lambda: print(json.dumps(sorted(seen)), file=sys.__stderr__))
"""


@pytest.mark.parametrize("paths", [["package"], ["package/models/own/modeling_own.py"], ["."]])
def test_all_files_that_a_run_opens_are_traced(tmp_path: Path, paths: list[str]) -> None:
    write_project(tmp_path)
    (tmp_path / "requirements.txt").write_text("transformers>=4.50\n", encoding="utf-8")
    (tmp_path / "setup.cfg").write_text(
        "[options]\ninstall_requires = transformers>=4.50\n", encoding="utf-8"
    )
    ran = run(tmp_path, *paths, "--jobs", "1", code=_WATCH)
    opened = {path for path in json.loads(ran.errors.splitlines()[-1]) if path.startswith(str(tmp_path))}
    (document,) = documents("report").values()
    known = {str(tmp_path / path) for _, path, _ in consulted(document)}
    assert {str(tmp_path / "package/models/own/modeling_own.py"), str(tmp_path / "pyproject.toml")} <= opened
    # The database is opened through its folder, so only its name is seen.
    assert {path for path in opened - known if not path.endswith(NAME)} == set()


def test_what_other_processes_read_is_traced_as_well(tmp_path: Path) -> None:
    write_project(tmp_path)
    traces = []
    for jobs in ("1", "3"):
        folder = tmp_path / f"cache{jobs}"
        run(tmp_path, "package", "--jobs", jobs, "--cache-dir", str(folder))
        (document,) = documents("report", folder).values()
        traces.append(consulted(document).items())
    assert traces[1] >= traces[0]


@pytest.mark.skipif(os.name != "posix", reason="elsewhere there is no time of change")
@pytest.mark.parametrize("read", [facts.read_bytes, facts.search])
def test_a_file_as_old_as_it_was_is_not_read_again_and_one_that_pretends_to_be_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: Callable[[Path], bytes]
) -> None:
    monkeypatch.setattr(facts, "_SETTLED", 0)
    path = tmp_path / "modeling_mine.py"
    path.write_text("one = 1\n", encoding="utf-8")
    status = path.stat()
    while not facts.is_settled(status, time.time_ns()):  # Times are counted in steps of some milliseconds.
        pass
    with traced() as trace:
        read(path)
    kept = json.loads(json.dumps(encoded(trace)))
    with monkeypatch.context() as nothing_is_read:
        nothing_is_read.setattr(facts, "_read", pytest.fail)
        assert still_holds(kept)
    while path.stat().st_ctime_ns == status.st_ctime_ns:
        path.write_text("two = 2\n", encoding="utf-8")
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert path.stat().st_mtime_ns == status.st_mtime_ns
    assert not still_holds(kept)


@pytest.mark.parametrize("read", [facts.read_bytes, facts.search])
def test_times_of_a_file_that_was_just_written_say_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: Callable[[Path], bytes]
) -> None:
    monkeypatch.setattr(facts, "_SETTLED", 10**18)
    path = tmp_path / "modeling_mine.py"
    path.write_text("one = 1\n", encoding="utf-8")
    with traced() as trace:
        read(path)
    assert not any(trace.signatures.values())


def _until_later(folder: Path) -> None:
    """Wait until what is changed gets another time, of which file systems count steps of milliseconds."""
    clock = folder.parent / "clock"
    while not clock.exists() or clock.stat().st_ctime_ns <= folder.stat().st_ctime_ns:
        clock.touch()


def _replace_by_a_link(folder: Path) -> None:
    (folder / "there.py").rename(folder.parent / "moved.py")
    (folder / "there.py").symlink_to(folder.parent / "moved.py")


def _replace_by_a_folder(folder: Path) -> None:
    (folder / "there.py").unlink()
    (folder / "there.py").mkdir()


def _asked_for_content(folder: Path) -> None:
    with pytest.raises(FileNotFoundError):
        facts.read_bytes(folder / "not.py")


@pytest.mark.skipif(os.name != "posix", reason="elsewhere there is no time of change")
@pytest.mark.parametrize(
    ("ask", "change"),
    [
        (lambda folder: facts.is_file(folder / "there.py"), _replace_by_a_folder),
        (lambda folder: facts.mode(folder / "there.py"), _replace_by_a_folder),
        (lambda folder: facts.is_link(folder / "there.py"), _replace_by_a_link),
        (lambda folder: facts.is_there(folder / "not.py"), lambda folder: (folder / "not.py").touch()),
        (lambda folder: facts.exists(folder / "not.py"), lambda folder: (folder / "not.py").mkdir()),
        (_asked_for_content, lambda folder: (folder / "not.py").touch()),
        (lambda folder: facts.matching(folder, "n*"), lambda folder: (folder / "not.py").touch()),
        (lambda folder: facts.entries(folder, ".py"), lambda folder: (folder / "there.py").unlink()),
        (lambda folder: facts.real_path(folder / "there.py"), _replace_by_a_link),
        # What a link leads to changes without the folder.
        (lambda folder: facts.exists(folder / "link"), lambda folder: (folder.parent / "far").mkdir()),
        (lambda folder: facts.entries(folder, ".py"), lambda folder: (folder.parent / "far").mkdir()),
    ],
)
@pytest.mark.parametrize("settled", [0, 10**18])
def test_what_changes_in_a_folder_is_noticed(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    settled: int,
    ask: Callable[[Path], object],
    change: Callable[[Path], None],
) -> None:
    monkeypatch.setattr(facts, "_SETTLED", settled)
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "there.py").touch()
    (folder / "link").symlink_to(tmp_path / "far")
    _until_later(folder)
    with traced() as trace:
        ask(folder)
    kept = json.loads(json.dumps(encoded(trace)))
    assert still_holds(kept)
    change(folder)
    assert not still_holds(kept)


@pytest.mark.skipif(os.name != "posix", reason="elsewhere there is no time of change")
def test_what_has_changed_since_it_was_asked_is_not_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(facts, "_SETTLED", 0)
    folder = tmp_path / "folder"
    folder.mkdir()
    with traced() as trace:
        facts.exists(folder / "new.py")
        (folder / "new.py").touch()
        _until_later(folder)
        assert not still_holds(json.loads(json.dumps(encoded(trace))))


@pytest.mark.skipif(os.name != "posix", reason="elsewhere there is no time of change")
def test_a_folder_that_has_not_changed_is_not_listed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(facts, "_SETTLED", 0)
    folder = tmp_path / "folder"
    folder.mkdir()
    _until_later(folder)
    with traced() as trace:
        facts.entries(folder)
        facts.matching(folder, "x*")
    kept = json.loads(json.dumps(encoded(trace)))
    with monkeypatch.context() as nothing_is_asked:
        nothing_is_asked.setattr(facts, "_ANSWERS", dict.fromkeys(facts._ANSWERS, pytest.fail))
        assert still_holds(kept)
