"""The database of the cache: whole documents, or none."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from gclint.cache import store as store_module
from gclint.cache.place import CachePlace
from gclint.cache.store import NAME, Store

_KILLED = """
import os, sqlite3, sys
from pathlib import Path
from gclint.cache.place import CachePlace
from gclint.cache import store
class Killed(sqlite3.Connection):
    def execute(self, statement, *arguments):
        result = super().execute(statement, *arguments)
        if statement.startswith(sys.argv[1]):
            os._exit(9)
        return result
connect = sqlite3.connect
sqlite3.connect = lambda *arguments, **keywords: connect(*arguments, **keywords, factory=Killed)
store.Store(CachePlace(Path(sys.argv[2]), "0" * 16)).write("x", {"text": "new" * 100_000})
"""


def _store(folder: Path, *, is_named: bool = False, told: list[Exception] | None = None) -> Store:
    return Store(CachePlace(folder, "0" * 16, is_named), None if told is None else told.append)


@pytest.mark.parametrize("step", ["PRAGMA", "SELECT", "BEGIN", "INSERT", "\nDELETE", "COMMIT"])
def test_a_killed_write_leaves_the_old_document_or_the_new_one(tmp_path: Path, step: str) -> None:
    folder = tmp_path / "cache"
    _store(folder).write("x", {"text": "old"})
    done = subprocess.run([sys.executable, "-c", _KILLED, step, str(folder)], check=False)
    assert done.returncode == 9
    document = _store(folder).read("x")
    assert document == {"text": "new" * 100_000 if step == "COMMIT" else "old"}
    _store(folder).write("x", {"text": "later"})
    assert _store(folder).read("x") == {"text": "later"}


@pytest.mark.parametrize("step", ["PRAGMA", "BEGIN", "CREATE", "COMMIT"])
def test_a_kill_while_the_database_is_made_leaves_nothing_in_the_way(tmp_path: Path, step: str) -> None:
    folder = tmp_path / "cache"
    assert subprocess.run([sys.executable, "-c", _KILLED, step, str(folder)], check=False).returncode == 9
    assert _store(folder).read("x") is None
    _store(folder).write("x", {"text": "later"})
    assert _store(folder).read("x") == {"text": "later"}


def test_a_document_of_another_version_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _store(tmp_path / "cache").write("x", {})
    assert _store(tmp_path / "cache").read("x") == {}
    monkeypatch.setattr(store_module, "__version__", "another")
    assert _store(tmp_path / "cache").read("x") is None


@pytest.mark.parametrize("change", ["key = 'y'", "project = '1'", "body = x'5b5d'", "digest = NULL"])
def test_a_row_that_was_changed_is_none(tmp_path: Path, change: str) -> None:
    _store(tmp_path / "cache").write("x", {"findings": ["one", "two"]})
    with closing(sqlite3.connect(tmp_path / "cache" / NAME)) as database, database:
        database.execute(f"UPDATE verdicts_5 SET {change}")
    for project in "01":
        for key in "xy":
            assert Store(CachePlace(tmp_path / "cache", project * 16)).read(key) is None


def test_only_the_latest_documents_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "_MOST", 3)
    store = _store(tmp_path / "cache")
    for number in (*range(6), 3):
        store.write(str(number), {})
    kept = [number for number in range(6) if store.read(str(number)) is not None]
    assert kept == [3, 4, 5]
    store.write("6", {})
    assert store.read("3") is not None  # It was written again.
    assert store.read("4") is None


def test_the_latest_documents_of_all_projects_share_a_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "_MOST_BYTES", 100_000)
    stores = [Store(CachePlace(tmp_path / "cache", project * 16)) for project in "1234"]
    for store in stores * 3:
        store.write("x", {"text": "y" * 60_000})
    assert [store.read("x") is not None for store in stores] == [False, False, False, True]
    assert (tmp_path / "cache" / NAME).stat().st_size < 2 * 100_000


# -- what is in the way


def _foreign_words(path: Path) -> None:
    path.write_bytes(b"words " * 1000)


def _another_table(path: Path) -> None:
    path.unlink()
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE verdicts_4 (key TEXT)")


def _one_more_table(path: Path) -> None:
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE VIEW more AS SELECT * FROM verdicts_5")


def _cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size - 4096)


def _linked(path: Path) -> None:
    path.rename(path.with_name("target"))
    path.symlink_to("target")


def _named_twice(path: Path) -> None:
    os.link(path, path.with_name("other"))


def _of_everybody(path: Path) -> None:
    path.chmod(0o666)


def _pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _too_large(path: Path) -> None:
    os.truncate(path, store_module._MOST_BYTES * 3)


def _journal_is_a_link(path: Path) -> None:
    path.with_name("target").write_bytes(b"precious")
    path.with_name(f"{NAME}-journal").symlink_to("target")


@pytest.mark.skipif(os.name != "posix", reason="needs links, owners and FIFOs")
@pytest.mark.parametrize(
    "change",
    [
        _foreign_words,
        _another_table,
        _one_more_table,
        _cut,
        _linked,
        _named_twice,
        _of_everybody,
        _pipe,
        _too_large,
        _journal_is_a_link,
    ],
)
def test_what_is_not_the_users_own_database_is_replaced(
    tmp_path: Path, change: Callable[[Path], None]
) -> None:
    folder = tmp_path / "cache"
    told: list[Exception] = []
    _store(folder).write("x", {})
    change(folder / NAME)
    others = {each: each.read_bytes() for each in (folder / "target", folder / "other") if each.exists()}
    assert _store(folder, told=told).read("x") is None
    _store(folder, told=told).write("x", {"text": "new"})
    assert _store(folder, told=told).read("x") == {"text": "new"}
    assert all(each.read_bytes() == content for each, content in others.items())
    assert told == []


def test_a_folder_in_its_place_is_left_alone(tmp_path: Path) -> None:
    told: list[Exception] = []
    (tmp_path / "cache" / NAME).mkdir(parents=True)
    store = _store(tmp_path / "cache", told=told)
    assert store.read("x") is None
    store.write("x", {})
    assert store.read("x") is None
    assert isinstance(told[0], OSError)


# -- where it cannot be used


def test_while_it_is_locked_the_reason_is_told_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "_PATIENCE", 0.01)
    told: list[Exception] = []
    store = _store(tmp_path / "cache", told=told)
    store.write("x", {})
    with closing(sqlite3.connect(tmp_path / "cache" / NAME, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        assert store.read("x") is None
        store.write("x", {"text": "new"})
        with pytest.raises(BlockingIOError):
            store.clear()
    assert [type(each) for each in told] == [BlockingIOError]
    assert store.read("x") == {}


def test_a_file_system_without_locks_counts_as_busy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Unlockable(sqlite3.Connection):
        def execute(self, statement: str, *arguments: object) -> sqlite3.Cursor:
            if statement.startswith("SELECT"):
                raise sqlite3.OperationalError("locking protocol")
            return super().execute(statement, *arguments)  # type: ignore[arg-type]

    told: list[Exception] = []
    _store(tmp_path / "cache").write("x", {})
    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *each, **more: connect(*each, **more, factory=Unlockable))
    assert _store(tmp_path / "cache", told=told).read("x") is None
    assert [type(each) for each in told] == [BlockingIOError]


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write anywhere")
def test_a_home_that_can_only_be_read_is_read(tmp_path: Path) -> None:
    told: list[Exception] = []
    store = _store(tmp_path / "cache", told=told)
    store.write("x", {"text": "old"})
    (tmp_path / "cache" / NAME).chmod(0o400)
    (tmp_path / "cache").chmod(0o500)
    assert store.read("x") == {"text": "old"}
    store.write("x", {"text": "new"})
    assert store.read("x") == {"text": "old"}
    assert len(told) == 1


def test_where_nothing_can_be_written_the_reason_is_told_once(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    told: list[Exception] = []
    store = _store(tmp_path / "file" / "cache", told=told)
    assert store.read("x") is None
    store.write("x", {})
    store.write("y", {})
    (reason,) = told
    assert isinstance(reason, NotADirectoryError)


def test_nobody_else_can_read_what_is_kept_for_the_user(tmp_path: Path) -> None:
    _store(tmp_path / "home" / "cache").write("x", {})
    for each in (tmp_path / "home", tmp_path / "home" / "cache", *(tmp_path / "home" / "cache").iterdir()):
        assert each.stat().st_mode & 0o077 == 0


def test_only_a_new_folder_that_the_user_names_is_hidden_from_git(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "notes").touch()
    for name, is_named in (("new", True), ("old", True), ("own", False)):
        _store(tmp_path / name, is_named=is_named).write("x", {})
        assert (tmp_path / name / ".gitignore").exists() == (name == "new")
