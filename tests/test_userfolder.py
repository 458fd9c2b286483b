"""Folders of the user: what is reached through them is the user's own, and no link is followed."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import platformdirs
import pytest
from platformdirs import windows
from platformdirs.macos import MacOS
from platformdirs.windows import Windows

from gclint import userfolder
from gclint.userfolder import NotPrivate, UserFolder, cache_home, config_home, own_file, state_home
from tests.environment import PROJECT


def test_a_file_is_written_read_and_removed(tmp_path: Path) -> None:
    with UserFolder(tmp_path / "a" / "b", create=True) as folder:
        folder.write("x.json", b"one")
        folder.write("x.json", b"two")
        assert (folder.names(), folder.read("x.json", 3)) == (["x.json"], b"two")
        with pytest.raises(OSError, match="large"):
            folder.read("x.json", 2)
        folder.remove("x.json")
        assert folder.names() == []
    assert (tmp_path / "a" / "b").stat().st_mode & 0o077 == 0


def test_a_folder_that_is_a_link_is_not_opened(tmp_path: Path) -> None:
    (tmp_path / "victim").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "victim")
    for create in (False, True):
        with pytest.raises(NotPrivate):
            UserFolder(tmp_path / "link", create=create)


def test_a_folder_that_everybody_can_change_is_not_opened(tmp_path: Path) -> None:
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(0o777)
    with pytest.raises(NotPrivate):
        UserFolder(folder)


def test_links_and_other_things_in_place_of_files_are_left_alone(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    with UserFolder(tmp_path / "own", create=True) as folder:
        (folder.path / "link").symlink_to(victim)
        os.mkfifo(folder.path / "pipe")
        (folder.path / "folder").mkdir()
        for name in ("link", "pipe", "folder"):
            for access in (lambda name: folder.read(name, 100), folder.remove, folder.open, folder.status):
                with pytest.raises(OSError):
                    access(name)
        folder.write("link", b"new")
        assert not (folder.path / "link").is_symlink()
    assert victim.read_bytes() == b"precious"


def test_a_folder_that_is_replaced_by_a_link_is_not_left(tmp_path: Path) -> None:
    (tmp_path / "victim").mkdir()
    with UserFolder(tmp_path / "own", create=True) as folder:
        (tmp_path / "own").rename(tmp_path / "moved")
        (tmp_path / "own").symlink_to(tmp_path / "victim")
        folder.write("x", b"data")
    assert (os.listdir(tmp_path / "victim"), os.listdir(tmp_path / "moved")) == ([], ["x"])


def test_without_descriptors_of_folders_a_file_is_looked_at_before_it_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Windows has neither these nor a way to open a link itself.
    monkeypatch.setattr(userfolder, "_HAS_DESCRIPTORS", False)
    monkeypatch.setattr(userfolder, "_NO_LINK", 0)
    (tmp_path / "link").symlink_to(tmp_path / "file")
    for _ in range(2):
        os.close(own_file(tmp_path / "file", is_believed=False))
    with pytest.raises(NotPrivate):
        own_file(tmp_path / "link", is_believed=False)


@pytest.mark.parametrize(
    ("system", "page", "home", "below"),
    [
        (MacOS, "cache.md", cache_home, ""),
        (MacOS, "own-rules.md", config_home, ""),
        (MacOS, "verify.md", state_home, "/results"),
        (Windows, "cache.md", cache_home, ""),
        (Windows, "own-rules.md", config_home, ""),
    ],
)
def test_the_documentation_names_the_folders_of_other_systems(
    system: type, page: str, home: Callable[[], Path | None], below: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(windows, "get_win_folder", windows.get_win_folder_from_env_vars)
    monkeypatch.setenv("LOCALAPPDATA", "/local")
    for name in ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    for kind in ("user_cache_path", "user_state_path", "user_config_path"):
        monkeypatch.setattr(platformdirs, kind, partial(_folder, system, kind))
    folder = home()
    assert folder is not None
    named = f"{folder.as_posix()}{below}".replace(Path.home().as_posix(), "~")
    if system is Windows:
        named = named.replace("/local", "%LOCALAPPDATA%").replace("/", "\\")
    assert f"`{named}`" in (PROJECT / "docs" / page).read_text(encoding="utf-8")


def _folder(system: type, kind: str, name: str, **more: bool) -> Path:
    path: Path = getattr(system(name, **more), kind)
    return path
