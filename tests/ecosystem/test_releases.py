"""Releases are fetched once, and are complete or not there at all."""

from __future__ import annotations

import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from tests.ecosystem import releases, wheels
from tests.ecosystem.releases import copy_of_release, release_tree
from tests.ecosystem.wheels import WheelUnavailable

_FILES = {
    "transformers/__init__.py": '__version__ = "1.0"\n',
    "transformers/models/x/modeling_x.py": "import torch\n",
    "transformers/models/x/readme.md": "no code\n",
}


def _wheel(folder: Path) -> Path:
    wheel = folder / "transformers-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, text in _FILES.items():
            archive.writestr(name, text)
    return wheel


def _contents(tree: Path) -> dict[str, str]:
    return {path.relative_to(tree).as_posix(): path.read_text() for path in tree.rglob("*") if path.is_file()}


@pytest.fixture
def cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(releases, "CACHE", tmp_path)
    return tmp_path


def test_two_runs_at_once_get_the_same_complete_tree(
    cache_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    both_are_downloading = Barrier(2, timeout=20)

    def download(_version: str, folder: Path) -> Path:
        both_are_downloading.wait()
        return _wheel(folder)

    monkeypatch.setattr(wheels, "_download", download)
    with ThreadPoolExecutor(2) as pool:
        trees = list(pool.map(release_tree, ["1.0", "1.0"]))
    assert trees == [cache_folder / "releases" / "1.0"] * 2
    assert _contents(trees[0]) == _FILES
    assert [path.name for path in trees[0].parent.iterdir()] == ["1.0"]


def test_damaged_wheel_leaves_nothing_behind(cache_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def download(_version: str, folder: Path) -> Path:
        wheel = _wheel(folder)
        wheel.write_bytes(wheel.read_bytes()[:-30])
        return wheel

    monkeypatch.setattr(wheels, "_download", download)
    with pytest.raises(zipfile.BadZipFile):
        release_tree("1.0")
    assert list((cache_folder / "releases").iterdir()) == []


@pytest.mark.usefixtures("cache_folder")
def test_release_that_cannot_be_fetched_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    # As where there is no network, but without waiting for it.
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(WheelUnavailable, match=r"cannot fetch transformers==4\.52\.4: ERROR: .+"):
        release_tree("4.52.4")


@pytest.mark.usefixtures("cache_folder")
def test_copy_has_the_code_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wheels, "_download", lambda _version, folder: _wheel(folder))
    copy = copy_of_release("1.0", tmp_path / "copy")
    assert copy == tmp_path / "copy" / "transformers"
    code = {name: text for name, text in _FILES.items() if name.endswith(".py")}
    assert _contents(copy.parent) == code
