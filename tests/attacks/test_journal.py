"""Repositories with journals and temporary files that somebody planted: nothing outside is touched."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import platform
import shutil
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path

import pytest

from gclint.cli import CannotRun
from gclint.cli.output import require_page
from gclint.code.project import Project
from gclint.rule import selected_rules
from gclint.server.session import Session
from gclint.settings import Settings
from gclint.userfolder import state_home
from gclint.write import recovery
from gclint.write.disk import output_place
from gclint.write.journal import Unfinished, digest_of
from gclint.write.transaction import write_all
from gclint.write.unfinished import leftovers
from tests.kills import killed_at
from tests.sample import BROKEN
from tests.terminal import Outcome, runner

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs links, pipes and signals")

_OLD, _NEW = b"x = 'old'\n", b"x = 'new'\n"
_TEMPORARY = ".gclint-fix-0123456789abcdef.tmp"
_INSIDE = ("modeling_a.py", "modeling_b.py")
Run = Callable[..., Outcome]


@pytest.fixture(autouse=True)
def victim(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a file of the user outside of the repository, which is the working directory."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
    repository = tmp_path / "repository"
    repository.mkdir()
    monkeypatch.chdir(repository)
    for name in _INSIDE:
        Path(name).write_bytes(_NEW)
    outside = tmp_path / "home"
    outside.mkdir()
    for name in ("valuable.py", _TEMPORARY, "notes.txt"):
        (outside / name).write_bytes(_OLD)
    return outside / "valuable.py"


@pytest.fixture
def gclint(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    return runner(monkeypatch, capsys)


def _contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def _journal(targets: Sequence[str], temporaries: Sequence[str], **others: object) -> bytes:
    """Return a valid journal of a write that was killed between the files, in the form of any release."""
    files = [
        {
            "target": target,
            "temporary": temporary,
            "digests": [digest_of(_OLD), digest_of(_NEW)],
            "sizes": [len(_OLD), len(_NEW)],
        }
        for target, temporary in zip(targets, temporaries, strict=True)
    ]
    document = {"machine": platform.node(), "process": 1 << 22, "homes": ["."], "units": [files], **others}
    version = 1 if "homes" in others else 2
    text = f"gclint fix journal {version}\n{json.dumps(document)}\n".encode() + (_OLD + _NEW) * len(files)
    return text + hashlib.sha256(text).digest()


def _planted(target: str, temporary: str) -> bytes:
    """Return what gclint 0.2.0 believed."""
    return _journal(["modeling_a.py", target], [_TEMPORARY, temporary], homes=["."])


def _in_state(name: str, data: bytes) -> Path:
    """Write a file among the user's own journals, as nobody else can."""
    home = state_home()
    assert home is not None
    folder = home / "writes"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    (folder / name).write_bytes(data)
    (folder / name).chmod(0o600)
    return folder / name


# -- in a repository


def _absolute(victim: Path) -> tuple[str, str]:
    return str(victim), str(victim.with_name(_TEMPORARY))


def _with_dots(_victim: Path) -> tuple[str, str]:
    return "../home/valuable.py", f"../home/{_TEMPORARY}"


def _through_a_link(victim: Path) -> tuple[str, str]:
    Path("linked").symlink_to(victim.parent)
    return "linked/valuable.py", f"linked/{_TEMPORARY}"


def _to_something_else(victim: Path) -> tuple[str, str]:
    return "modeling_b.py", str(victim.parent / "notes.txt")


def _as_a_hard_link(victim: Path) -> tuple[str, str]:
    Path("hard.py").hardlink_to(victim)
    return "hard.py", _TEMPORARY


@pytest.mark.parametrize("fix", [(), ("--fix",)])
@pytest.mark.parametrize("way", [_absolute, _with_dots, _through_a_link, _to_something_else, _as_a_hard_link])
def test_a_planted_journal_is_named_and_left_alone(
    gclint: Run, victim: Path, way: Callable[[Path], tuple[str, str]], fix: tuple[str, ...]
) -> None:
    planted = _planted(*way(victim))
    Path(".gclint-fix").write_bytes(planted)
    before = _contents(victim.parent)
    status, out, err = gclint(*fix)
    assert (status, out) == (0, "No findings in 2 files.\n")
    assert err.startswith("note: .gclint-fix was ignored: ")
    assert err.count("note: ") == 1
    assert _contents(victim.parent) == before
    assert Path(".gclint-fix").read_bytes() == planted
    assert [Path(name).read_bytes() for name in _INSIDE] == [_NEW, _NEW]


def _make_folder(path: Path, _victim: Path) -> None:
    path.mkdir()


def _make_pipe(path: Path, _victim: Path) -> None:
    os.mkfifo(path)


def _make_link_to_pipe(path: Path, _victim: Path) -> None:
    os.mkfifo("pipe")
    path.symlink_to("pipe")


def _make_broken_link(path: Path, _victim: Path) -> None:
    path.symlink_to(path.name)


def _make_link_outside(path: Path, victim: Path) -> None:
    path.symlink_to(victim)


def _make_huge_file(path: Path, _victim: Path) -> None:
    with path.open("wb") as stream:
        stream.truncate(1 << 40)


@pytest.mark.parametrize(
    "make",
    [_make_folder, _make_pipe, _make_link_to_pipe, _make_broken_link, _make_link_outside, _make_huge_file],
)
def test_whatever_has_the_name_of_a_journal_is_not_opened(
    gclint: Run, victim: Path, make: Callable[[Path, Path], None]
) -> None:
    make(Path(".gclint-fix"), victim)
    before = _contents(victim.parent)
    for arguments in ((), ("--fix", "modeling_a.py"), ("verify", "--help")):
        outcome = gclint(*arguments)
        assert outcome.status == 0
        assert (".gclint-fix was ignored" in outcome.err) == ("verify" not in arguments)
    assert _contents(victim.parent) == before
    assert os.path.lexists(".gclint-fix")


def test_many_are_named_in_one_line_without_control_characters(
    gclint: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(9):
        folder = Path(f"m\n::error::{number}\x1b[2J")
        folder.mkdir()
        (folder / ".gclint-fix").touch()
        (folder / _TEMPORARY).touch()
        (folder / "modeling_x.py").touch()
    status, _, err = gclint("--fix")
    assert status == 0
    assert err.count("\n") == 2
    assert "\x1b" not in err
    assert err.count("and 4 more") == 2
    assert len(leftovers(Path().rglob("*.py"))) == 9


def test_a_planted_temporary_file_is_named_and_left_alone(gclint: Run, victim: Path) -> None:
    Path(_TEMPORARY).symlink_to(victim)
    Path(".gclint-fix-fedcba9876543210.tmp").write_bytes(_OLD)
    Path(".gclint-fix-short.tmp").write_bytes(_OLD)
    Path("modeling_a.py").write_text(BROKEN)
    for arguments in ((), ("--fix",)):
        _, _, err = gclint(*arguments)
        assert f"note: {_TEMPORARY}, .gclint-fix-fedcba9876543210.tmp: unless another run" in err
        assert "short" not in err
    assert Path("modeling_a.py").read_text() != BROKEN
    assert Path(_TEMPORARY).is_symlink()
    assert victim.read_bytes() == _OLD


def test_a_home_in_the_repository_is_not_the_users(
    gclint: Run, victim: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(Path(".state").absolute()))
    targets = [str(Path("modeling_a.py").absolute()), str(victim)]
    planted = _journal(targets, [str(Path(each).with_name(_TEMPORARY)) for each in targets])
    before = _contents(victim.parent)
    _in_state("0.journal", planted)
    # Given as a whole, or known as a repository.
    for given in (".", "modeling_a.py"):
        status, _, err = gclint("--fix", "-v", given)
        assert status == 0
        assert "No journal is kept (" in err
        assert _contents(victim.parent) == before
        Path(".git").mkdir(exist_ok=True)
    assert len(list(Path(".state/gclint/writes").iterdir())) == 1


# -- in the state folder


def test_a_linked_state_folder_is_not_the_users(gclint: Run, victim: Path) -> None:
    targets = [str(Path("modeling_a.py").absolute()), str(victim)]
    planted = _journal(targets, [str(Path(each).with_name(_TEMPORARY)) for each in targets])
    folder = _in_state("0.journal", planted).parent
    folder.rename("writes")
    folder.symlink_to(Path("writes").absolute())
    Path("modeling_b.py").write_text(BROKEN)
    before = _contents(victim.parent)
    status, _, err = gclint("--fix", "-v")
    assert status == 0
    assert "No journal is kept (" in err
    assert Path("modeling_b.py").read_text() != BROKEN
    assert _contents(victim.parent) == before
    assert list(_contents(Path("writes"))) == ["0.journal"]


@pytest.mark.parametrize(
    "change",
    [
        {"target": "modeling_b.py"},
        {"target": "{here}/x/../modeling_b.py"},
        {"target": "{here}/notes.md"},
        {"temporary": "{here}/../home/notes.txt"},
        {"temporary": "{here}/notes.txt"},
        {"temporary": "{here}/../home/" + _TEMPORARY},
        {"sizes": [len(_OLD), -len(_NEW)]},
        {"digests": [digest_of(_OLD), digest_of(b"")]},
        {"digests": ["x", digest_of(_NEW)]},
        {"sizes": 3},
    ],
)
def test_only_what_gclint_could_have_written_is_done(victim: Path, change: dict[str, object]) -> None:
    Path("modeling_b.py").write_bytes(_OLD)
    Path("notes.txt").write_bytes(_OLD)
    here = Path.cwd()
    whole = _journal(*([str(here / each) for each in own] for own in (_INSIDE, [_TEMPORARY] * 2)))
    magic, head, _ = whole.split(b"\n", 2)
    document = json.loads(head)
    document["units"][0][1].update(
        {name: each.format(here=here) if isinstance(each, str) else each for name, each in change.items()}
    )
    text = magic + b"\n" + json.dumps(document).encode() + b"\n" + (_OLD + _NEW) * 2
    path = _in_state("0.journal", text + hashlib.sha256(text).digest())
    before = _contents(here), _contents(victim.parent)
    (told,) = recovery.recover([Path()])
    assert "this journal of a fix cannot be used" in told
    assert (_contents(here), _contents(victim.parent)) == before
    path.write_bytes(whole)
    assert len(recovery.recover([Path()])) == 1


def test_links_that_came_later_are_not_followed(victim: Path) -> None:
    here = Path.cwd()
    names = ("modeling_a.py", "sub/valuable.py")
    temporaries = [str((here / each).with_name(_TEMPORARY)) for each in names]
    path = _in_state("0.journal", _journal([str(here / each) for each in names], temporaries))
    Path("sub").symlink_to(victim.parent)
    before = _contents(victim.parent)
    for _ in range(2):
        with pytest.raises(Unfinished, match=r"sub/valuable\.py changed since then"):
            recovery.recover([Path()])
    assert _contents(victim.parent) == before
    assert path.exists()


def test_a_temporary_file_that_something_else_replaced_is_left_alone(victim: Path) -> None:
    Path(_TEMPORARY).symlink_to(victim)
    here = Path.cwd()
    Path("modeling_b.py").write_bytes(_NEW)
    other = ".gclint-fix-fedcba9876543210.tmp"
    Path(other).mkdir()
    temporaries = [str(here / _TEMPORARY), str(here / other)]
    _in_state("0.journal", _journal([str(here / each) for each in _INSIDE], temporaries))
    assert recovery.recover([Path()]) == []
    assert victim.read_bytes() == _OLD
    assert Path(_TEMPORARY).is_symlink()
    assert Path(other).is_dir()


def test_an_old_journal_in_a_tree_is_not_made_again(gclint: Run) -> None:
    here = Path.cwd()
    journal = _journal(*([str(here / each) for each in own] for own in (_INSIDE, [_TEMPORARY] * 2)))
    Path("modeling_b.py").write_bytes(_OLD)
    for folder in (Path(), Path("writes"), Path(".local/state/gclint/writes")):
        folder.mkdir(parents=True, exist_ok=True)
        for name in (".gclint-fix", "0.journal"):
            (folder / name).write_bytes(journal)
    status, _, _ = gclint("--fix")
    assert status == 0
    assert Path("modeling_b.py").read_bytes() == _OLD


def test_a_journal_of_100000_other_files_is_nobodys_business(gclint: Run) -> None:
    names = [f"/nowhere/{number % 500}/modeling_{number}.py" for number in range(100_000)]
    temporary = f"/nowhere/{{}}/{_TEMPORARY}"
    temporaries = [temporary.format(number % 500) for number in range(100_000)]
    path = _in_state("0.journal", _journal(names, temporaries))
    assert gclint("--fix") == (0, "No findings in 2 files.\n", "")
    assert path.exists()


# -- without a place for a journal


def _write() -> None:
    project = Project(Settings(), map(Path, _INSIDE))
    changed = {path: (_OLD.decode(), _NEW.decode()) for path in project.paths}
    write_all(project, changed, [project.paths])


def _no_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gclint.write.unfinished.state_home", lambda: None)


def _read_only(monkeypatch: pytest.MonkeyPatch) -> None:
    # Not by its mode: a test that runs as root may write whatever it likes.
    opened = os.open

    def refuse(path: object, flags: int, *arguments: int, **keywords: int) -> int:
        if str(path).endswith(".journal") and flags & os.O_CREAT:
            raise OSError(errno.EROFS, "Read-only file system")
        return opened(path, flags, *arguments, **keywords)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "open", refuse)
    monkeypatch.setattr(os, "access", lambda path, mode: not str(path).endswith("writes"))


@pytest.mark.parametrize("place", [_no_home, _read_only])
def test_without_a_journal_the_next_run_names_what_a_kill_left(
    gclint: Run, monkeypatch: pytest.MonkeyPatch, place: Callable[[pytest.MonkeyPatch], None]
) -> None:
    place(monkeypatch)
    monkeypatch.setattr(os, "fsync", lambda _handle: None)
    mixed = 0
    for step in count():
        for name in (*_INSIDE, *map(str, leftovers(map(Path, _INSIDE)))):
            Path(name).unlink()
        for name in _INSIDE:
            Path(name).write_bytes(_OLD)
        if not killed_at(step, _write):
            break
        if len({Path(name).read_bytes() for name in _INSIDE}) > 1:
            mixed += 1
            (left,) = leftovers(map(Path, _INSIDE))
            status, _, err = gclint(*(["--fix"] if mixed % 2 else []))
            assert status == 0
            assert f"note: {left.name}: unless another run" in err
            assert left.exists()
    assert mixed >= 2
    assert [Path(name).read_bytes() for name in _INSIDE] == [_NEW, _NEW]
    Path("modeling_a.py").write_text(BROKEN)
    status, _, err = gclint("--fix", "-v")
    assert (status, "No journal is kept (" in err) == (0, True)
    assert Path("modeling_a.py").read_text() != BROKEN


# -- what else is written


@pytest.mark.parametrize(
    "options",
    [
        ("--write-baseline", "{}"),
        ("--output-file", "sarif:{}"),
        ("--output-file", "junit:{}"),
        ("--diff", "--summary", "{}"),
    ],
)
@pytest.mark.parametrize("way", ["file", "folder", "new", "chain"])
def test_an_output_file_does_not_lead_out_of_the_repository(
    gclint: Run, victim: Path, options: tuple[str, ...], way: str
) -> None:
    name = "report.json"
    if way == "file":
        Path(name).symlink_to(victim)
    elif way == "folder":
        Path("out").symlink_to(victim.parent)
        name = f"out/{victim.name}"
    elif way == "new":
        Path(name).symlink_to(victim.with_name("new.json"))
    else:
        Path("one").symlink_to("two")
        Path("two").symlink_to(victim)
        name = "one"
    before = _contents(victim.parent)
    status, out, err = gclint(*(each.format(name) for each in options))
    assert status == 2
    assert f"is a link that leads out of {Path.cwd()}, to " in err
    assert "written to" not in out
    assert _contents(victim.parent) == before


def test_neither_does_a_page_or_a_script(victim: Path) -> None:
    Path("report.html").symlink_to(victim)
    Path("scripts").symlink_to(victim.parent)
    before = _contents(victim.parent)
    with pytest.raises(CannotRun, match="leads out of"):
        require_page(Path("report.html"))
    for path in (Path("scripts/new.py"), Path("scripts/new/new.py")):
        with pytest.raises(OSError, match="leads out of"):
            output_place(path)
    assert output_place(Path("report.html/../new.py")) == Path.cwd() / "new.py"
    assert _contents(victim.parent) == before


def test_an_output_file_may_be_linked_within_the_repository(gclint: Run) -> None:
    Path("reports").mkdir()
    Path("out").symlink_to("reports")
    Path("reports/today.json").symlink_to("../known.json")
    assert gclint("--write-baseline", "out/today.json").status == 0
    assert Path("known.json").is_file()
    assert Path("reports/today.json").is_symlink()


def test_a_repository_is_not_left_from_elsewhere(
    gclint: Run, victim: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path(".git").mkdir()
    Path("docs").symlink_to(victim.parent)
    repository = Path.cwd()
    monkeypatch.chdir(victim.parent)
    before = _contents(victim.parent)
    status, _, err = gclint("--write-baseline", str(repository / "docs/valuable.py"), str(repository))
    assert (status, "leads out of" in err) == (2, True)
    assert _contents(victim.parent) == before


def test_a_pipe_for_a_baseline_does_not_block(gclint: Run) -> None:
    os.mkfifo("known.json")
    Path("pyproject.toml").write_text('[tool.gclint]\nbaseline = "known.json"\n')
    status, _, err = gclint()
    assert (status, "this baseline cannot be read" in err) == (2, True)


def test_only_given_files_are_written(victim: Path) -> None:
    Path("modeling_l.py").symlink_to(victim)
    project = Project(Settings(), [*map(Path, _INSIDE), Path("modeling_l.py")], within=[Path()])
    (problem,) = write_all(project, {Path("modeling_l.py"): (_OLD.decode(), _NEW.decode())})
    assert "outside of the given paths" in problem.message
    assert victim.read_bytes() == _OLD
    project = Project(Settings(), [Path("modeling_l.py")], within=[Path("modeling_l.py")])
    assert write_all(project, {Path("modeling_l.py"): (_OLD.decode(), _NEW.decode())}) == []
    assert victim.read_bytes() == _NEW


# -- the language server


def test_the_server_changes_nothing_while_a_write_is_unfinished() -> None:
    here = Path.cwd()
    journal = _journal(
        [str(here / each) for each in _INSIDE], [str(here / each) for each in (_TEMPORARY, _TEMPORARY)]
    )
    path = _in_state("0.journal", journal)
    Path("modeling_c.py").write_text(BROKEN)
    session = Session(lambda root: (Settings(root=root), selected_rules(Settings())), "utf-16", [here])
    while session.is_busy:
        session.work()
    area = session.home(here / "modeling_c.py")
    assert area is not None
    # Whole files are no obstacle, and neither is another place.
    assert session.may_change(area)
    Path("modeling_b.py").write_bytes(_OLD)
    for _ in range(2):
        assert not session.may_change(area)
    (notice,) = session.notices
    assert "modeling_a.py, modeling_b.py; run 'gclint --fix modeling_a.py' to finish it" in notice
    assert any(each.diagnostics for each in session.news())
    recovery.recover([here])
    assert not path.exists()
    assert session.may_change(area)
    shutil.rmtree(path.parent)
    assert session.may_change(area)
