"""Writing: the old file or the new one, whatever happens."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from gclint.code.project import Project
from gclint.settings import Settings
from gclint.write.disk import write_atomically, write_text
from gclint.write.transaction import write_all

_OLD, _NEW = b"x = 'old'\n", b"x = 'new'\n"
_posix = pytest.mark.skipif(os.name != "posix", reason="needs POSIX signals and permissions")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "modeling_x.py"
    path.write_bytes(_OLD)
    return path


def _only(path: Path) -> bytes:
    """Return what ``path`` holds, and make sure that nothing else is left in its folder."""
    assert list(path.parent.iterdir()) == [path]
    return path.read_bytes()


def test_file_is_replaced_and_nothing_is_left_beside_it(path: Path) -> None:
    write_atomically(path, _NEW)
    assert _only(path) == _NEW


@_posix
@pytest.mark.parametrize("mode", [0o644, 0o600, 0o755, 0o664])
def test_mode_is_kept(path: Path, mode: int) -> None:
    path.chmod(mode)
    write_atomically(path, _NEW)
    assert stat.S_IMODE(path.stat().st_mode) == mode


@_posix
def test_owner_is_kept_where_that_is_allowed(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[tuple[int, int]] = []

    def chown(_handle: int, user: int, group: int) -> None:
        given.append((user, group))
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "fchown", chown)
    write_atomically(path, _NEW)
    assert given == [(path.stat().st_uid, path.stat().st_gid)]
    assert _only(path) == _NEW


@_posix
def test_link_stays_a_link(path: Path, tmp_path: Path) -> None:
    target = tmp_path / "elsewhere" / "target.py"
    target.parent.mkdir()
    path.rename(target)
    path.symlink_to("elsewhere/target.py")
    write_atomically(path, _NEW)
    assert path.is_symlink()
    assert _only(target) == _NEW


@pytest.mark.parametrize("failing", ["fsync", "replace"])
def test_failure_leaves_the_old_file_and_nothing_else(
    path: Path, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    def fail(*_arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, failing, fail)
    with pytest.raises(OSError, match="No space left"):
        write_atomically(path, _NEW)
    assert _only(path) == _OLD


def test_interruption_leaves_nothing_beside_the_old_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(_handle: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_atomically(path, _NEW)
    assert _only(path) == _OLD


def test_data_is_on_the_disk_before_the_file_is_replaced(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[bytes] = []
    fsync, replace = os.fsync, os.replace

    def watched_fsync(handle: int) -> None:
        fsync(handle)
        (temporary,) = (other for other in path.parent.iterdir() if other != path)
        synced.append(temporary.read_bytes())

    def watched_replace(source: Path, target: Path) -> None:
        assert synced == [_NEW]
        replace(source, target)

    monkeypatch.setattr(os, "fsync", watched_fsync)
    monkeypatch.setattr(os, "replace", watched_replace)
    write_atomically(path, _NEW)
    assert synced == [_NEW]


def _project_with(path: Path, *, new: str) -> tuple[Project, dict[Path, tuple[str, str]]]:
    project = Project(Settings(), [path])
    before = project.file(path).text
    project.replace(path, new)
    return project, {path: (before, new)}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"\xef\xbb\xbfx = 1\r\ny = 1", b"\xef\xbb\xbfx = 2\r\ny = 1"),
        (b"# coding: latin-1\nx = '\xe9'\n", b"# coding: latin-1\nx = '\xe9\xe8'\n"),
        (b"\x0cx = 1\n\ty\rz\r\n", b"\x0cx = 2\n\ty\rz\r\n"),
    ],
)
def test_bytes_beside_the_change_are_the_same(path: Path, old: bytes, new: bytes) -> None:
    path.write_bytes(old)
    text = Project(Settings(), []).file(path).text
    changed = text.replace("= 1", "= 2", 1).replace("'é'", "'éè'")
    project, changes = _project_with(path, new=changed)
    assert write_all(project, changes) == []
    assert path.read_bytes() == new


def test_file_that_changed_meanwhile_is_left_alone(path: Path) -> None:
    project, changes = _project_with(path, new="x = 'new'\n")
    path.write_bytes(b"x = 'mine'\n")
    (problem,) = write_all(project, changes)
    assert problem.path == path
    assert "changed after it was read" in problem.message
    assert path.read_bytes() == b"x = 'mine'\n"


def test_file_that_vanished_is_told_and_the_others_are_written(path: Path, tmp_path: Path) -> None:
    gone = tmp_path / "modeling_a.py"
    gone.write_bytes(_OLD)
    project = Project(Settings(), [gone, path])
    changed = {}
    for each in (gone, path):
        changed[each] = (project.file(each).text, _NEW.decode())
        project.replace(each, _NEW.decode())
    gone.unlink()
    (problem,) = write_all(project, changed)
    assert (problem.path, problem.message) == (
        gone,
        "the fixed file cannot be written: No such file or directory",
    )
    assert path.read_bytes() == _NEW


def test_read_only_file_is_not_replaced(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Not by its mode: a test that runs as root may write whatever it likes.
    monkeypatch.setattr(os, "access", lambda _path, mode: mode != os.W_OK)
    project, changes = _project_with(path, new=_NEW.decode())
    (problem,) = write_all(project, changes)
    assert problem.message == "the fixed file cannot be written: the file is read-only"
    assert _only(path) == _OLD


_KILLED_AT_EVERY_LINE = """
    import os, signal, sys
    from itertools import count
    from pathlib import Path
    from gclint.write import disk

    path = Path(sys.argv[1])
    old, new = path.read_bytes(), path.read_bytes().replace(b"old", b"new")

    def killing(step):
        def trace(frame, event, _argument):
            nonlocal step
            if frame.f_code.co_filename != disk.__file__:
                return None
            if event == "line":
                step -= 1
                if step < 0:
                    os.kill(os.getpid(), signal.SIGKILL)
            return trace
        return trace

    for step in count():
        path.write_bytes(old)
        child = os.fork()
        if child == 0:
            sys.settrace(killing(step))
            disk.write_atomically(path, new)
            sys.settrace(None)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        print({old: "old", new: "new"}.get(path.read_bytes(), "broken"))
        if os.WIFEXITED(status):
            break
"""


@_posix
def test_process_killed_at_any_line_leaves_the_old_or_the_new_file(path: Path) -> None:
    path.write_bytes(_OLD * 10_000)
    outcomes = _run(_KILLED_AT_EVERY_LINE, path).split()
    assert set(outcomes) == {"old", "new"}
    # What is new stays new, and there were enough lines to be killed at.
    assert outcomes == sorted(outcomes, reverse=True)
    assert len(outcomes) > 10


_WRITING_OVER_AND_OVER = """
    import os, sys
    from itertools import cycle
    from pathlib import Path
    from gclint.write.disk import write_atomically

    path = Path(sys.argv[1])
    old = path.read_bytes()
    for data in cycle([old.replace(b"old", b"new"), old]):
        os.write(1, b".")
        write_atomically(path, data)
"""


@_posix
@pytest.mark.parametrize("writes", range(1, 13))
def test_process_killed_while_it_writes_leaves_the_old_or_the_new_file(path: Path, writes: int) -> None:
    old = _OLD * 100_000
    path.write_bytes(old)
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(_WRITING_OVER_AND_OVER), path], stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.read(writes) == b"." * writes
        process.kill()
    assert process.returncode == -signal.SIGKILL
    assert path.read_bytes() in (old, old.replace(b"old", b"new"))


def _run(script: str, path: Path) -> str:
    command = [sys.executable, "-c", textwrap.dedent(script), str(path)]
    return subprocess.run(command, check=True, capture_output=True, encoding="utf-8").stdout


@_posix
def test_a_new_file_is_like_any_other(tmp_path: Path) -> None:
    path = tmp_path / "new.json"
    mask = os.umask(0o027)
    try:
        assert write_text(path, "caf\u00e9\n") == []
    finally:
        os.umask(mask)
    assert _only(path) == "caf\u00e9\n".encode()
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_what_is_no_file_is_not_replaced_by_one(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (problem,) = write_text(folder, "text")
    assert problem.path == folder
    assert problem.message == "this file cannot be written: this is not a file"
    (missing,) = write_text(tmp_path / "none" / "x.json", "text")
    assert missing.message.startswith("this file cannot be written: ")
    assert list(tmp_path.iterdir()) == [folder]


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs Linux")
def test_an_open_pipe_is_not_a_file() -> None:
    handles = os.pipe()
    try:
        (problem,) = write_text(Path(f"/proc/self/fd/{handles[1]}"), "text")  # as /dev/stdout often is
    finally:
        for handle in handles:
            os.close(handle)
    assert problem.message == "this file cannot be written: this is not a file"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs a named pipe")
def test_a_pipe_stays_one(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    assert len(write_text(path, "text")) == 1
    assert path.is_fifo()
