"""The folder of the cache: whole documents, or none."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from gclint.cache import store as store_module
from gclint.cache.store import Store, clean, is_cache

_KILLED = """
import os, sys
from pathlib import Path
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
Store(Path(sys.argv[2])).write("x", {"text": "new" * 1000})
"""


@pytest.mark.parametrize("step", ["open", "fdopen", "write", "replace", "scandir"])
def test_a_killed_write_leaves_the_old_document_or_the_new_one(tmp_path: Path, step: str) -> None:
    folder = tmp_path / "cache"
    Store(folder).write("x", {"text": "old"})
    done = subprocess.run([sys.executable, "-c", _KILLED, step, str(folder)], check=False)
    assert done.returncode == 9
    document = Store(folder).read("x")
    assert document is not None
    assert document["text"] == ("new" * 1000 if step == "scandir" else "old")
    Store(folder).write("x", {"text": "later"})
    assert (Store(folder).read("x") or {})["text"] == "later"


def test_a_document_of_another_version_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Store(tmp_path / "cache").write("x", {})
    assert Store(tmp_path / "cache").read("x") is not None
    monkeypatch.setattr(store_module, "_VERSION", "another")
    assert Store(tmp_path / "cache").read("x") is None


def test_a_document_under_another_name_is_none(tmp_path: Path) -> None:
    Store(tmp_path / "cache").write("x", {})
    (document,) = (tmp_path / "cache" / "gclint").iterdir()
    document.rename(document.with_name("y.json"))
    assert Store(tmp_path / "cache").read("y") is None


def test_a_link_to_a_cache_is_followed_and_stays(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    link = tmp_path / "cache"
    try:
        link.symlink_to(tmp_path / "elsewhere")
    except OSError:
        pytest.skip("this system has no links for this user")
    Store(link).write("x", {})
    assert Store(link).read("x") is not None
    assert is_cache(tmp_path / "elsewhere")
    assert clean(link)
    assert link.is_symlink()
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_only_the_latest_documents_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "_MOST", 3)
    store = Store(tmp_path / "cache")
    for number in range(6):
        store.write(str(number), {})
    assert store.read("5") is not None
    assert len(list((tmp_path / "cache" / "gclint").iterdir())) == 3


def test_where_nothing_can_be_written_the_reason_is_known(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    store = Store(tmp_path / "file" / "cache")
    store.write("x", {})
    assert store.complaint is not None
    assert store.read("x") is None
