"""The folder of the cache: whole documents, or none."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from gclint.cache import store as store_module
from gclint.cache.place import Place
from gclint.cache.store import Store

_KILLED = """
import os, sys
from pathlib import Path
from gclint.cache.place import Place
from gclint.cache.store import Store
def kill(*arguments, **keywords):
    os._exit(9)
def half(handle, data):
    write(handle, data[: len(data) // 2])
    os._exit(9)
write = os.write
class Half:
    def __init__(self, handle, mode): self.handle = handle
    def __enter__(self): return self
    def __exit__(self, *error): os._exit(9)
    def write(self, data): write(self.handle, data[: len(data) // 2])
step = sys.argv[1]
if step == "write":
    os.fdopen = Half
else:
    setattr(os, step, kill)
Store(Place(Path(sys.argv[2]), "0" * 16)).write("x", {"text": "new" * 1000})
"""


def _store(folder: Path, *, is_named: bool = False) -> Store:
    return Store(Place(folder, "0" * 16, is_named))


@pytest.mark.parametrize("step", ["open", "fdopen", "write", "replace", "listdir"])
def test_a_killed_write_leaves_the_old_document_or_the_new_one(tmp_path: Path, step: str) -> None:
    folder = tmp_path / "cache"
    _store(folder).write("x", {"text": "old"})
    done = subprocess.run([sys.executable, "-c", _KILLED, step, str(folder)], check=False)
    assert done.returncode == 9
    document = _store(folder).read("x")
    assert document is not None
    assert document["text"] == ("new" * 1000 if step == "listdir" else "old")
    _store(folder).write("x", {"text": "later"})
    assert (_store(folder).read("x") or {})["text"] == "later"


def test_a_document_of_another_version_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _store(tmp_path / "cache").write("x", {})
    assert _store(tmp_path / "cache").read("x") is not None
    monkeypatch.setattr(store_module, "_VERSION", "another")
    assert _store(tmp_path / "cache").read("x") is None


def test_a_document_under_another_name_is_none(tmp_path: Path) -> None:
    _store(tmp_path / "cache").write("x", {})
    (document,) = (tmp_path / "cache").iterdir()
    document.rename(document.with_name(document.name.replace("x", "y")))
    assert _store(tmp_path / "cache").read("y") is None


def test_only_the_latest_documents_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "_MOST", 3)
    store = _store(tmp_path / "cache")
    for number in range(6):
        store.write(str(number), {})
    assert store.read("5") is not None
    assert len(list((tmp_path / "cache").iterdir())) == 3


def test_the_latest_documents_of_all_projects_share_a_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "_MOST_BYTES", 1000)
    for project in "123":
        Store(Place(tmp_path / "cache", project * 16)).write("x", {"text": "y" * 600})
    (document,) = (tmp_path / "cache").iterdir()
    assert document.name == f"gclint-{'3' * 16}-x.json"


def test_where_nothing_can_be_written_the_reason_is_told_once(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    told: list[Exception] = []
    store = Store(Place(tmp_path / "file" / "cache", "0" * 16), told.append)
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
