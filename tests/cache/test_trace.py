"""Whatever a lint reads of the disk is in its trace."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from gclint import facts
from gclint.cache.traces import encoded, still_holds
from gclint.trace import traced
from tests.cache.shell import documents, run, write_project

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
    known = {
        str(tmp_path / path)
        for document in documents("[!v]*")
        for *_, answers in json.loads(document.read_bytes().partition(b"\n")[2])["facts"]
        for path in answers
    }
    assert {str(tmp_path / "package/models/own/modeling_own.py"), str(tmp_path / "pyproject.toml")} <= opened
    # What is new is written through the folder's descriptor, so its path is only seen as relative.
    assert {path for path in opened - known if not path.endswith(".tmp")} == set()


def test_what_other_processes_read_is_traced_as_well(tmp_path: Path) -> None:
    write_project(tmp_path)
    traces = []
    for jobs in ("1", "3"):
        folder = tmp_path / f"cache{jobs}"
        run(tmp_path, "package", "--jobs", jobs, "--cache-dir", str(folder))
        (document,) = documents("[!v]*", folder)
        rows = json.loads(document.read_bytes().partition(b"\n")[2])["facts"]
        traces.append({(row[0], row[1], path, row[3][path][0]) for row in rows for path in row[3]})
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
        assert still_holds(kept, lambda _path, _data: None)
    while path.stat().st_ctime_ns == status.st_ctime_ns:
        path.write_text("two = 2\n", encoding="utf-8")
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert path.stat().st_mtime_ns == status.st_mtime_ns
    assert not still_holds(kept, lambda _path, _data: None)


@pytest.mark.parametrize("read", [facts.read_bytes, facts.search])
def test_times_of_a_file_that_was_just_written_say_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: Callable[[Path], bytes]
) -> None:
    monkeypatch.setattr(facts, "_SETTLED", 10**18)
    path = tmp_path / "modeling_mine.py"
    path.write_text("one = 1\n", encoding="utf-8")
    with traced() as trace:
        read(path)
    assert trace.signatures == {}
