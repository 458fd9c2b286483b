"""One write for all files of a fix: whatever interrupts it, they are all as before, or all fixed."""

from __future__ import annotations

import errno
import fcntl
import os
import platform
import random
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from functools import cache
from itertools import count
from pathlib import Path

import pytest

from gclint import userfolder
from gclint.code.paths import shown
from gclint.code.project import Project
from gclint.finding import Problem
from gclint.settings import Settings
from gclint.userfolder import state_home
from gclint.write.journal import Busy, FileChange, Journal, Unfinished, new_temporary
from gclint.write.recovery import recover, refuse_unfinished
from gclint.write.transaction import write_all
from tests.kills import killed_at
from tests.sample import BROKEN
from tests.terminal import Outcome, runner

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs POSIX signals and permissions")

_NAMES = ("a/modeling_a.py", "b/modeling_b.py", "b/modeling_c.py", "d/modeling_d.py")
_TOGETHER = [[Path(name) for name in _NAMES[:3]]]
_OLD, _NEW = "x = 'old'\n", "x = 'new'\n"
Run = Callable[..., Outcome]


@pytest.fixture(autouse=True)
def _tree(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
    folder = tmp_path / "models"
    folder.mkdir()
    monkeypatch.chdir(folder)
    # What is written survives its process, if not a power failure.
    monkeypatch.setattr(os, "fsync", lambda _handle: None)
    _reset()


def _journals() -> list[Path]:
    """Return the journals of this user."""
    home = state_home()
    assert home is not None
    return sorted((home / "writes").glob("*.journal"))


def _reset() -> None:
    for path in (*map(Path, _others()), *_journals()):
        path.unlink()
    for name in _NAMES:
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text(_OLD)


def _write() -> list[Problem]:
    """Fix three files together, and one by itself."""
    project = Project(Settings(), map(Path, _NAMES))
    changed = {path: (project.file(path).text, _NEW) for path in project.paths}
    for path in project.paths:
        project.replace(path, _NEW)
    return write_all(project, changed, _TOGETHER)


def _texts() -> list[str]:
    return ["new" if Path(name).read_text() == _NEW else "old" for name in _NAMES]


def _is_mixed() -> bool:
    return len(set(_texts()[:3])) > 1


def _others() -> list[str]:
    """Return what there is beside the files, in their tree."""
    files = (path for path in Path().rglob("*") if not path.is_dir())
    return sorted(str(path) for path in files if str(path) not in _NAMES)


def _interrupted() -> Iterator[int]:
    """Kill a write at each of its steps in turn; yields the number of the step."""
    for step in count():
        _reset()
        if not killed_at(step, _write):
            return
        yield step


def _interrupt_halfway() -> None:
    step = _halfway()
    _reset()
    assert killed_at(step, _write)
    assert _is_mixed()


@cache
def _halfway() -> int:
    """Return the first step at which a killed write leaves some files new and some old."""
    return next(step for step in _interrupted() if _is_mixed())


def test_a_write_leaves_nothing_beside_the_files() -> None:
    assert _write() == []
    assert _texts() == ["new"] * 4
    assert (_others(), _journals()) == ([], [])
    assert recover([Path(_NAMES[0])]) == []


def test_killed_at_any_step_it_is_finished_by_the_next_run() -> None:
    seen = set()
    for step in _interrupted():
        state = tuple(_texts())
        seen.add(state)
        left = _others(), _journals()
        # What is as before, or fixed, is no reason to stop.
        with pytest.raises(Unfinished, match=r"a fix was .*modeling_a.py") if _is_mixed() else nullcontext():
            assert refuse_unfinished([Path(_NAMES[step % 3])]) == []
        assert (tuple(_texts()), (_others(), _journals())) == (state, left)
        # Any file of the fix leads to the journal.
        done = recover([Path(_NAMES[step % 3])])
        assert not _is_mixed(), step
        assert bool(done) == (len(set(state[:3])) > 1)
        assert (_others(), _journals()) == ([], []), step
    assert _texts() == ["new"] * 4
    # There were enough steps to be killed at, and each state between old and new was seen.
    assert {state[:3] for state in seen} == {tuple(["new"] * n + ["old"] * (3 - n)) for n in range(4)}


@pytest.mark.parametrize(("times", "least"), [(12, 1), pytest.param(60, 6, marks=pytest.mark.slow)])
def test_a_large_write_is_killed_at_random_steps(times: int, least: int) -> None:
    # More files than are prepared one by one.
    paths = [Path(f"{number}/modeling_{number}.py") for number in range(16)]
    units = [paths[start : start + 4] for start in range(0, 16, 4)]

    def write() -> None:
        project = Project(Settings(), paths)
        write_all(project, dict.fromkeys(paths, (_OLD, _NEW)), units)

    def states() -> list[set[str]]:
        return [{path.read_text() for path in unit} for unit in units]

    for path in paths:
        path.parent.mkdir()
    chance = random.Random(9)
    partial = 0
    for _ in range(times):
        for path in paths:
            path.write_text(_OLD)
        killed_at(chance.randrange(200), write)
        partial += any(len(each) > 1 for each in states())
        for _ in range(chance.randrange(3)):
            killed_at(chance.randrange(20), lambda: recover([Path()]))
        recover([chance.choice(paths)])
        assert all(len(each) == 1 for each in states())
        assert (list(Path().rglob(".gclint*")), _journals()) == ([], [])
    assert partial >= least


@pytest.mark.parametrize("every", [40, pytest.param(3, marks=pytest.mark.slow)])
def test_a_recovery_that_is_killed_at_any_step_is_made_again(every: int) -> None:
    halfway = []
    for step in _interrupted():
        if _is_mixed():
            halfway.append(step)
    attempts = 0
    for step in halfway[::every]:
        for inner in count():
            _reset()
            killed_at(step, _write)
            if not killed_at(inner, lambda: recover([Path()])):
                break
            attempts += 1
            recover([Path(_NAMES[1])])
            assert not _is_mixed()
            assert (_others(), _journals()) == ([], [])
    assert attempts > 150 // every


def test_a_write_that_fails_is_undone_also_when_that_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    replace = os.replace

    def fail(source: Path, target: Path) -> None:
        if target.name == "modeling_c.py":
            raise PermissionError(errno.EACCES, "Permission denied")
        replace(source, target)

    monkeypatch.setattr(os, "replace", fail)
    problems = {str(each.path): each.message for each in _write()}
    together = "this file was not fixed, because it has to change together with b/modeling_c.py"
    assert problems == {
        _NAMES[0]: together,
        _NAMES[1]: together,
        _NAMES[2]: "the fixed file cannot be written: Permission denied",
    }
    assert (_texts(), _others()) == (["old", "old", "old", "new"], [])
    for _ in _interrupted():
        if _is_mixed():
            # It cannot be finished, for the same reason, so it is undone.
            assert recover([Path()]) == [
                "Undid the interrupted fix of a/modeling_a.py, b/modeling_b.py, b/modeling_c.py."
            ]
        recover([Path()])
        assert (_texts()[:3], _others(), _journals()) == (["old"] * 3, [], [])


def test_what_can_be_neither_written_nor_put_back_is_left_to_the_next_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    replace = os.replace
    done: list[Path] = []

    def fail(source: Path, target: Path) -> None:
        if done:
            raise OSError(errno.EIO, "Input/output error", str(target))
        done.append(target)
        replace(source, target)

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", fail)
        first, *_ = _write()
        assert "can be neither fixed nor restored" in first.message
        assert "run 'gclint --fix a/modeling_a.py' again" in first.message
        assert _is_mixed()
        with pytest.raises(Unfinished, match=r"neither finished nor undone \(.*: Input/output error\)"):
            recover([Path()])
    assert len(recover([Path()])) == 1
    assert not _is_mixed()
    assert (_others(), _journals()) == ([], [])


@pytest.mark.parametrize("edited", [*((each,) for each in _NAMES[:3]), _NAMES[1:3], _NAMES[:3]])
def test_what_somebody_has_edited_since_is_left_alone(edited: tuple[str, ...]) -> None:
    _interrupt_halfway()
    for name in edited:
        Path(name).write_text("x = 'mine'\n")
    before = {name: Path(name).read_text() for name in _NAMES}
    for _ in range(2):
        with pytest.raises(Unfinished) as stopped:
            recover([Path(_NAMES[0])])
        assert f"{', '.join(edited)} changed since then" in str(stopped.value)
        (journal,) = _journals()
        assert f"then delete {shown(journal)} and run gclint again" in str(stopped.value)
        assert {name: Path(name).read_text() for name in _NAMES} == before
    # The new texts that waited are not needed for anything.
    assert _others() == []
    for name in edited:
        Path(name).write_text(_OLD)
    recover([Path(_NAMES[0])])
    assert not _is_mixed()
    assert (_others(), _journals()) == ([], [])


def test_a_file_that_changes_by_itself_may_be_edited_at_any_time() -> None:
    _interrupt_halfway()
    Path(_NAMES[3]).write_text("x = 'mine'\n")
    assert refuse_unfinished([Path(_NAMES[3])]) == []
    assert recover([Path(_NAMES[3])]) == [
        "Finished the interrupted fix of a/modeling_a.py, b/modeling_b.py, b/modeling_c.py."
    ]
    assert (Path(_NAMES[3]).read_text(), _others(), _journals()) == ("x = 'mine'\n", [], [])


def test_what_somebody_has_deleted_or_linked_since_counts_as_edited(tmp_path: Path) -> None:
    _interrupt_halfway()
    Path(_NAMES[2]).unlink()
    with pytest.raises(Unfinished, match=r"b/modeling_c\.py changed"):
        recover([Path()])
    outside = tmp_path / "outside.py"
    outside.write_text(_OLD)
    Path(_NAMES[2]).symlink_to(outside)
    with pytest.raises(Unfinished, match=r"b/modeling_c\.py changed"):
        recover([Path()])
    assert outside.read_text() == _OLD


def test_the_journal_is_found_for_its_files_and_the_folders_above(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _interrupt_halfway()
    Path("elsewhere").mkdir()
    Path("elsewhere/link.py").symlink_to(f"../{_NAMES[1]}")
    for path in (tmp_path / "models" / _NAMES[0], Path("elsewhere/link.py"), Path("b"), Path(), tmp_path):
        with pytest.raises(Unfinished):
            refuse_unfinished([path])
    # Elsewhere, nobody has to wait for it.
    assert refuse_unfinished([Path(_NAMES[3])]) == []
    for path in (Path("elsewhere"), tmp_path / "mod", tmp_path / "models/a/other.py"):
        assert refuse_unfinished([path]) == []
        assert recover([path]) == []
    assert _is_mixed()
    monkeypatch.chdir(tmp_path / "models/b")
    with pytest.raises(Unfinished):
        refuse_unfinished([Path("modeling_c.py")])


def test_of_a_tree_that_was_moved_nothing_is_touched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gclint: Run
) -> None:
    _interrupt_halfway()
    (tmp_path / "models").rename(tmp_path / "moved")
    (tmp_path / "models").symlink_to("moved")
    monkeypatch.chdir(tmp_path / "models")
    state = _texts(), _others(), _journals()
    assert recover([Path(), *map(Path, _NAMES)]) == []
    assert (_texts(), _others(), _journals()) == state
    # But what it has left there is named.
    status, _, err = gclint()
    assert status == 0
    assert all(name in err for name in _others())


def test_a_run_that_is_at_work_is_not_recovered() -> None:
    _interrupt_halfway()
    left = _others()
    (path,) = _journals()
    with path.open("rb") as journal:
        fcntl.flock(journal, fcntl.LOCK_EX)
        for attempt in (recover, refuse_unfinished):
            with pytest.raises(Unfinished, match=r"another run of gclint is writing a/modeling_a\.py"):
                attempt([Path()])
        assert _others() == left
        assert all("another run of gclint" in each.message for each in _write())
    assert _is_mixed()
    assert _journals() == [path]


def _change(name: str) -> FileChange:
    target = Path(name).resolve()
    return FileChange(target, _OLD.encode(), _NEW.encode(), new_temporary(target))


def test_two_writes_do_not_meet() -> None:
    one = Journal([[_change(_NAMES[3])]], [])
    one.begin()
    assert [each.message for each in _write()] == [
        "the fixed file cannot be written: another run of gclint is writing d/modeling_d.py; wait for it to "
        "finish"
    ] * 4
    assert (_texts(), _others()) == (["old"] * 4, [])
    one.end()
    # Of other files, both are written.
    other = Journal([[_change("other.py")]], [])
    other.begin()
    assert _write() == []
    assert len(_journals()) == 1
    other.end()
    assert _journals() == []


def test_of_two_writes_that_begin_at_once_at_most_one_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    second = Journal([[_change(_NAMES[0])]], [])
    locked = userfolder.lock

    def begin_between(handle: int, *, shared: bool) -> bool | None:
        monkeypatch.setattr("gclint.write.journal.lock", locked)
        answer = locked(handle, shared=shared)
        second.begin()  # It sees the first one's journal, which is still empty.
        return answer

    monkeypatch.setattr("gclint.write.journal.lock", begin_between)
    with pytest.raises(Busy):
        Journal([[_change(_NAMES[0])]], []).begin()
    second.end()
    assert _journals() == []


def test_what_another_machine_has_left_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    _interrupt_halfway()
    state = _texts(), _others(), _journals()
    here = platform.node()
    monkeypatch.setattr("platform.node", lambda: "elsewhere")
    for attempt in (recover, refuse_unfinished):
        (note,) = attempt([Path()])
        assert note.startswith(f"note: {shown(_journals()[0])}: a fix of a/modeling_a.py, ")
        assert f"was interrupted on {here}; run 'gclint --fix' there" in note
        assert attempt([Path("d")]) == []
    assert (_texts(), _others(), _journals()) == state


def test_without_locks_the_process_that_wrote_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    _interrupt_halfway()

    def no_locks(*_arguments: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("fcntl.flock", no_locks)
    with monkeypatch.context() as patched:
        patched.setattr("os.kill", lambda _process, _signal: None)
        with pytest.raises(Unfinished, match="another run"):
            recover([Path()])
    assert len(recover([Path()])) == 1


def test_a_journal_that_is_cut_off_before_its_files_is_swept() -> None:
    _interrupt_halfway()
    (path,) = _journals()
    content = path.read_bytes()
    path.unlink()
    for size in (0, 5, 21, 30, content.index(b"\n", 30)):
        path.write_bytes(content[:size])
        path.chmod(0o600)
        assert refuse_unfinished([Path()]) == []
        assert _journals() == [path]
        assert recover([Path(_NAMES[3])]) == []
        assert _journals() == []


def test_a_journal_of_files_that_were_deleted_is_swept_after_a_month(monkeypatch: pytest.MonkeyPatch) -> None:
    _interrupt_halfway()
    (path,) = _journals()
    month = 31 * 24 * 3600
    os.utime(path, (0, path.stat().st_mtime - month))
    Path("other").mkdir()
    # Also as long as one of them is left.
    for name in _NAMES:
        assert recover([Path("other")]) == []
        assert _journals() == [path]
        Path(name).unlink()
    with monkeypatch.context() as patched:
        patched.setattr("platform.node", lambda: "elsewhere")
        assert recover([Path("other")]) == []
    assert refuse_unfinished([Path("other")]) == []
    assert _journals() == [path]
    assert recover([Path("other")]) == []
    assert _journals() == []


@pytest.mark.parametrize(
    "content",
    [b"not a journal\n", b"gclint fix journal 2\n{}\n", b"\0" * 50, b"gclint fix journal 3\n{}\n"],
    ids=["text", "head", "zeros", "newer"],
)
def test_what_is_not_a_journal_is_named(content: bytes) -> None:
    assert _write() == []
    home = state_home()
    assert home is not None
    path = home / "writes/x.journal"
    path.write_bytes(content)
    for attempt in (recover, refuse_unfinished):
        (note,) = attempt([Path()])
        assert f"{shown(path)}: this journal of a fix cannot be used" in note
    assert path.read_bytes() == content
    for name in _NAMES:
        Path(name).write_text(_OLD)
    assert _write() == []


def test_a_full_disk_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    for allowed in count():
        _reset()
        left = allowed
        with monkeypatch.context() as patched:

            def full(_handle: int) -> None:
                nonlocal left
                left -= 1
                if left < 0:
                    raise OSError(errno.ENOSPC, "No space left on device")

            patched.setattr(os, "fsync", full)
            problems = _write()
        assert not _is_mixed()
        assert (_others(), _journals()) == ([], [])
        if not problems:
            break
        failed = {str(each.path) for each in problems}
        assert [name in failed for name in _NAMES] == [text == "old" for text in _texts()]
        assert any("No space left on device" in each.message for each in problems)


def test_without_room_for_a_journal_the_files_are_written(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_handle: int, _data: bytes) -> None:
        raise OSError(errno.EDQUOT, "Disk quota exceeded")

    monkeypatch.setattr("gclint.write.journal._append", full)
    assert _write() == []
    assert (_texts(), _others(), _journals()) == (["new"] * 4, [], [])


def test_one_of_several_that_is_read_only_keeps_the_others_as_they_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    target = Path.cwd() / _NAMES[1]
    monkeypatch.setattr(os, "access", lambda path, _mode: path != target)
    assert [each.message for each in _write()] == [
        "this file was not fixed, because it has to change together with b/modeling_b.py",
        "the fixed file cannot be written: the file is read-only",
        "this file was not fixed, because it has to change together with b/modeling_b.py",
    ]
    assert (_texts(), _others()) == (["old", "old", "old", "new"], [])


def test_a_file_that_changes_while_others_are_prepared_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    fsync = os.fsync

    def edit(handle: int) -> None:
        fsync(handle)
        Path(_NAMES[2]).write_text("x = 'mine!'\n")

    monkeypatch.setattr(os, "fsync", edit)
    assert "changed after it was read" in _write()[2].message
    assert Path(_NAMES[2]).read_text() == "x = 'mine!'\n"
    assert _texts()[:2] == ["old", "old"]
    assert _others() == []


def test_an_interruption_by_hand_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    replace = os.replace

    def interrupt(source: Path, target: Path) -> None:
        monkeypatch.setattr(os, "replace", replace)
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        _write()
    assert (_texts(), _others()) == (["old"] * 4, [])


def test_mode_and_attributes_of_all_files_stay() -> None:
    for mode, name in zip((0o600, 0o755, 0o664, 0o444), _NAMES, strict=True):
        Path(name).chmod(mode)
    try:
        os.setxattr(_NAMES[0], "user.note", b"mine")
    except OSError:
        pytest.skip("no extended attributes here")
    _write()
    assert [Path(name).stat().st_mode & 0o777 for name in _NAMES[:3]] == [0o600, 0o755, 0o664]
    assert os.getxattr(_NAMES[0], "user.note") == b"mine"


# The command line.


@pytest.fixture
def gclint(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Return what runs gclint in this process, and returns its exit status and its outputs."""
    return runner(monkeypatch, capsys)


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--output-format", "json"],
        ["--diff", "a"],
        ["--add-ignores", "--diff"],
        ["--fix", "--diff"],
        ["b/modeling_c.py"],
        ["--write-baseline", "base.json"],
        ["verify", "b"],
    ],
)
def test_a_run_that_may_not_write_stops(gclint: Run, arguments: list[str]) -> None:
    _interrupt_halfway()
    before = _texts(), _others()
    assert gclint(*arguments) == (
        2,
        "",
        "Error: a fix was interrupted while it was being written, so these files may be inconsistent: "
        "a/modeling_a.py, b/modeling_b.py, b/modeling_c.py; run 'gclint --fix a/modeling_a.py' to finish "
        "it\n",
    )
    assert (_texts(), _others()) == before


@pytest.mark.parametrize("given", [".", "a", "b/modeling_c.py"])
def test_the_next_fix_finishes_it_first(gclint: Run, given: str) -> None:
    _interrupt_halfway()
    files = {".": "4 files"}.get(given, "1 file")
    assert gclint("--fix", given) == (
        0,
        f"No findings in {files}.\n",
        "Finished the interrupted fix of a/modeling_a.py, b/modeling_b.py, b/modeling_c.py.\n",
    )
    assert _texts()[:3] == ["new"] * 3
    assert _others() == []
    assert gclint("--fix", given) == (0, f"No findings in {files}.\n", "")


def test_the_next_fix_stops_where_somebody_has_edited_a_file(gclint: Run) -> None:
    _interrupt_halfway()
    Path(_NAMES[1]).write_text("bad = 1\n")
    before = {name: Path(name).read_text() for name in _NAMES}
    status, out, err = gclint("--fix")
    assert (status, out) == (2, "")
    assert "b/modeling_b.py changed since then" in err
    assert {name: Path(name).read_text() for name in _NAMES} == before


def test_a_fix_that_was_interrupted_in_what_is_only_read_stops_a_run(
    gclint: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _interrupt_halfway()
    for folder in (tmp_path, tmp_path / "models", tmp_path / "models/a", tmp_path / "user"):
        folder.mkdir(exist_ok=True)
        (folder / "__init__.py").touch()
    user = tmp_path / "user/modeling_user.py"
    user.write_text(BROKEN + "from ..models.a.modeling_a import x\n\n\nclass Y(x):\n    pass\n")
    monkeypatch.chdir(tmp_path / "user")
    status, out, err = gclint("--fix", "--unsafe-fixes")
    assert (status, out) == (2, "")
    assert "a fix was interrupted" in err
    assert user.read_text().startswith(BROKEN)
