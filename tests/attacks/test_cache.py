"""Caches, results of runs and temporary folders that a repository brings along, or leads astray."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from gclint.cache.place import CachePlace, named_in, place_of
from gclint.cache.store import NAME, Store
from gclint.proof import proving
from gclint.userfolder import NotPrivate, cache_home, key_of, own_file, own_folder, state_home
from gclint.verify import process
from gclint.verify.results import UnusableResults
from gclint.verify.results_file import ResultsFile, header
from gclint.verify.settings import RunSettings
from tests.cache.shell import documents, run
from tests.environment import PROJECT
from tests.harness import ASSUMED
from tests.repository import Repository
from tests.sample import BROKEN
from tests.terminal import Outcome, runner
from tests.verify import stand_in
from tests.verify.command_line import failing, kept_results, passing, write

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs links, owners and FIFOs")

_MODEL = "modeling_x.py"
_FORMER = (".gclint_cache", ".gclint")
_TAG = (
    "Signature: 8a477f597d28d172789f06886806bc55\n"
    "# This folder is a cache of gclint; 'gclint clean' deletes it.\n"
)
"""What made a folder a cache for earlier versions."""


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    """A repository with a finding, in which the commands run; its user has nothing in the cache."""
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home" / "cache"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home" / "state"))
    repository = Repository.at(tmp_path / "clone")
    repository.write(_MODEL, text=BROKEN)
    monkeypatch.chdir(repository.folder)
    return repository


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    """A folder of the user, with files that an earlier version took for its own."""
    folder = tmp_path / "victim"
    folder.mkdir()
    for number in range(70):
        (folder / f"{number}.json").write_text("{}", encoding="utf-8")
    for name in ("old.tmp", "results.jsonl", f"gclint-{'0' * 16}-notes.json"):
        (folder / name).write_text('{"gclint": "0.1"}\n', encoding="utf-8")
        os.utime(folder / name, (0, 0))
    return folder


@pytest.fixture
def gclint(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    """Runs the command line in this process, with the stand-in in place of the worker."""
    monkeypatch.setattr(process, "_PROGRAM", Path(stand_in.__file__))
    monkeypatch.setenv("PYTHONPATH", str(PROJECT))
    return runner(monkeypatch, capsys)


def _content(folder: Path) -> dict[str, bytes | str]:
    """Return all that lies in a folder, with the targets of links."""
    return {
        str(path.relative_to(folder)): str(path.readlink()) if path.is_symlink() else path.read_bytes()
        for path in folder.rglob("*")
        if path.is_symlink() or path.is_file()
    }


@contextmanager
def _unchanged(folder: Path) -> Iterator[None]:
    before = _content(folder)
    yield
    assert _content(folder) == before


_FIX = (_MODEL, "--fix", "--unsafe-fixes", "--target-version", "5.23")


def _plant(clone: Repository, name: str, *options: str, variables: Mapping[str, str] | None = None) -> Path:
    """Put a forged cache for exactly the runs of these tests into a folder of a repository."""
    folder = clone.folder / name
    folder.mkdir(parents=True)
    for command in ((_MODEL,), _FIX):
        run(clone.folder, *command, *options, variables=variables)
        clone.write(_MODEL, text=BROKEN)
    store = Store(place_of(folder))
    forged = documents(folder=folder)
    assert len(forged) == 3
    for key, body in forged.items():
        if "report" in body:
            body["report"] |= {"findings": [], "exit_status": 0}
        text = json.dumps(body).replace("GradientCheckpointingLayer", "ForgedLayer")
        store.write(key, json.loads(text))
    return folder


_NAMED = ("--cache-dir", ".planted")


# -- what lies in the repository


@pytest.mark.parametrize("formers", [(".gclint_cache/gclint", ".gclint/repairs"), _FORMER])
def test_a_link_in_place_of_a_former_folder_leads_nowhere(
    clone: Repository, victim: Path, formers: tuple[str, ...], gclint: Callable[..., Outcome]
) -> None:
    for former in formers:
        (clone.folder / former).parent.mkdir(exist_ok=True)
        (clone.folder / former).symlink_to(victim)
    (clone.folder / ".gclint_cache" / "CACHEDIR.TAG").write_text(_TAG, encoding="utf-8")
    with _unchanged(clone.folder), _unchanged(victim):
        assert run(clone.folder).status == 1
        said = gclint("clean")
        gclint("--fix", "--verify", "--python", "no-such-python", _MODEL)
    assert all(f"{name} may be from an earlier version of gclint" in said.out for name in _FORMER)


def test_no_command_opens_what_lies_in_a_former_folder(clone: Repository) -> None:
    for name in _FORMER:
        clone.write(f"{name}/gclint/x.json", f"{name}/repairs/x.jsonl", f"{name}/verify.jsonl", text=_TAG)
    runs = ("--python", "no-such-python", _MODEL)
    commands = [[], ["clean"], ["verify", "--resume", *runs], ["--fix", "--verify", *runs], ["--fix"]]
    watch = (
        "import re, sys\n"
        "def watch(event, arguments):\n"
        "    is_former = re.search('[.]gclint(_cache)?[^-]', str(arguments[:1]))\n"
        "    if event.startswith(('open', 'os.')) and is_former:\n"
        "        print('OPENED', event, arguments, file=sys.__stderr__)\n"
        "sys.addaudithook(watch)\n"
        "from gclint.cli.main import main\n"
        f"for command in {commands}:\n"
        "    sys.argv[1:] = command\n"
        "    try: main()\n"
        "    except SystemExit as end: print('ENDED', end.code, file=sys.__stderr__)\n"
        "sys.argv[1:] = []\n"
    )
    with _unchanged(clone.folder / ".gclint"), _unchanged(clone.folder / ".gclint_cache"):
        said = run(clone.folder, code=watch).errors
    assert said.count("ENDED") == len(commands)
    assert "OPENED" not in said


# -- what is believed


def test_what_is_forged_is_believed_only_if_git_does_not_track_it(clone: Repository) -> None:
    folder = _plant(clone, ".planted", *_NAMED)
    ran = run(clone.folder, _MODEL, *_NAMED)
    assert (ran.status, ran.output) == (0, f"{ASSUMED}\nNo findings in 1 file.\n")
    run(clone.folder, *_FIX, *_NAMED)
    assert "ForgedLayer" in (clone.folder / _MODEL).read_text(encoding="utf-8")
    clone.write(_MODEL, text=BROKEN)
    clone.git("add", "-Af")
    with _unchanged(folder):
        ran = run(clone.folder, _MODEL, *_NAMED)
        run(clone.folder, *_FIX, *_NAMED)
    assert ran.status == 1
    assert "GC001" in ran.output
    assert ran.errors == (
        "note: the cache in .planted cannot be used: git tracks this; name a folder with --cache-dir, or use "
        "--no-cache\n"
    )
    fixed = (clone.folder / _MODEL).read_text(encoding="utf-8")
    assert "GradientCheckpointingLayer" in fixed
    assert "ForgedLayer" not in fixed


@pytest.mark.parametrize("variable", ["XDG_CACHE_HOME", "HOME"])
def test_a_home_in_a_repository_is_used_unless_git_tracks_it(
    clone: Repository, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv(variable, str(clone.folder))
    home = cache_home()
    if home is None or clone.folder not in home.parents:
        pytest.skip("this system takes no notice of the variable")
    store = Store(place_of(None))
    store.write("x", {})
    assert store.read("x") is not None
    clone.git("add", "-Af")
    assert store.read("x") is None


def test_a_folder_that_git_cannot_judge_is_not_used(
    clone: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    (clone.folder / "cache").mkdir()
    for is_named in (False, True):
        own_folder(clone.folder / "cache", is_named=is_named).close()
    with monkeypatch.context() as patch:
        patch.setenv("PATH", str(clone.folder))
        with pytest.raises(NotPrivate, match="git does not say"):
            own_folder(Path("cache"), is_named=True)
    (clone.folder / ".git" / "HEAD").unlink()
    with pytest.raises(NotPrivate, match="git does not say"):
        own_folder(Path("cache"), is_named=True)


def test_a_submodule_says_itself_what_it_tracks(clone: Repository) -> None:
    inner = Repository.at(clone.folder / "inner")
    inner.write("cache/x")
    own_folder(Path("inner/cache"), is_named=True).close()
    inner.commit()
    clone.commit()
    with pytest.raises(NotPrivate, match="git tracks this"):
        own_folder(Path("inner/cache"), is_named=True)


def test_a_file_name_is_no_option() -> None:
    assert named_in(["--cache-dir", "a", "--cache-dir=b"]) == Path("b")
    assert named_in(["--", "--cache-dir", "planted"]) is None


# -- where the repository would have gclint write


def test_settings_lead_nowhere(clone: Repository, victim: Path) -> None:
    clone.write("pyproject.toml", text="[tool.gclint]\ncache-dir = '../victim'\n")
    with _unchanged(clone.folder), _unchanged(victim):
        ran = run(clone.folder, _MODEL)
    assert ran.errors.count("cache-dir has no effect any more") == 1
    assert documents()


@pytest.mark.parametrize("path", ["link", "link/sub", "sub/../link", "{here}/link/sub", "{logical}/link/sub"])
def test_no_link_of_a_repository_leads_to_another_folder(
    clone: Repository, victim: Path, path: str, gclint: Callable[..., Outcome]
) -> None:
    (clone.folder / "link").symlink_to(victim)
    (clone.folder / "sub").mkdir()
    (victim.parent / "logical").symlink_to(clone.folder)
    path = path.format(here=clone.folder, logical=victim.parent / "logical")
    with _unchanged(victim):
        cleaned = gclint("clean", "--cache-dir", path)
        for create in (False, True):
            with pytest.raises(NotPrivate, match="this is a link"):
                own_folder(Path(path), is_named=True, create=create)
        with pytest.raises(NotPrivate, match="this is a link"):
            own_file(Path(path, "results.jsonl"), is_believed=False)
    assert cleaned.status == 2
    assert "this is a link, which is not followed" in " ".join(cleaned.err.split())


def test_links_of_the_user_are_followed(tmp_path: Path, clone: Repository) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "home" / "link").symlink_to(tmp_path / "disk")
    own_folder(tmp_path / "home" / "link" / "cache", is_named=True, create=True).close()
    assert (tmp_path / "disk" / "cache").is_dir()


def test_a_link_beside_the_working_directory_is_not_followed(
    clone: Repository, victim: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (clone.folder / "link").symlink_to(victim.parent)
    (clone.folder / "sub").mkdir()
    monkeypatch.chdir(clone.folder / "sub")
    with pytest.raises(NotPrivate):
        own_folder(Path("../link/victim"), is_named=True)


def test_a_relative_folder_of_the_environment_is_none(
    clone: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("XDG_CACHE_HOME", "XDG_STATE_HOME", "HOME"):
        monkeypatch.setenv(name, "relative")
    for home in (cache_home(), state_home()):
        assert home is None or clone.folder not in home.parents


# -- other users, and other kinds of files


def test_a_folder_of_another_user_is_neither_read_nor_written(
    clone: Repository, monkeypatch: pytest.MonkeyPatch, gclint: Callable[..., Outcome]
) -> None:
    told: list[Exception] = []
    store = Store(CachePlace(Path("cache"), "0" * 16, is_named=True), told.append)
    store.write("x", {})
    me = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: me + 1)
    with _unchanged(clone.folder):
        assert store.read("x") is None
        store.write("x", {"more": 1})
        cleaned = gclint("clean", "--cache-dir", "cache")
    assert [str(each) for each in told] == ["[Errno 1] this belongs to another user: 'cache'"]
    assert cleaned.status == 2
    assert "this belongs to another user" in cleaned.err


def test_a_folder_that_everybody_can_change_is_not_used(clone: Repository) -> None:
    entry = _entry(clone.folder / "cache")
    entry.parent.chmod(0o777)
    with _unchanged(clone.folder):
        assert _store(entry.parent).read("x") is None
        _store(entry.parent).write("x", {"more": 1})


def _store(folder: Path) -> Store:
    return Store(CachePlace(folder, "0" * 16))


def _entry(folder: Path) -> Path:
    _store(folder).write("x", {})
    return folder / NAME


def _linked(entry: Path) -> None:
    entry.rename(entry.with_name("target"))
    entry.symlink_to("target")


def _named_twice(entry: Path) -> None:
    os.link(entry, entry.with_name("other"))


def _pipe(entry: Path) -> None:
    entry.unlink()
    os.mkfifo(entry)


def _of_everybody(entry: Path) -> None:
    entry.chmod(0o666)


def test_only_the_database_is_deleted_and_no_link_is_followed(tmp_path: Path, victim: Path) -> None:
    folder = tmp_path / "cache"
    _store(folder).write("x", {})
    for name in ("1.json", f"gclint-{'0' * 16}-x.json", "verdicts.sqlite.tmp"):
        (folder / name).touch()
    before = _content(folder)
    (folder / f"{NAME}-wal").symlink_to(victim / "0.json")
    with _unchanged(victim):
        Store(CachePlace(folder, "0" * 16, is_named=True)).clear()
        (folder / f"{NAME}-wal").unlink()
        (folder / NAME).symlink_to(victim / "0.json")
        Store(CachePlace(folder, "0" * 16, is_named=True)).clear()
        (folder / NAME).unlink()
    del before[NAME]
    assert _content(folder) == before


def test_a_folder_that_is_replaced_during_a_run_leads_nowhere(tmp_path: Path, victim: Path) -> None:
    told: list[Exception] = []
    store = Store(CachePlace(tmp_path / "cache", "0" * 16), told.append)
    store.write("x", {})
    (tmp_path / "cache").rename(tmp_path / "moved")
    (tmp_path / "cache").symlink_to(victim)
    with _unchanged(victim):
        assert store.read("x") is None
        store.write("x", {})
        with pytest.raises(NotPrivate):
            store.clear()
    assert [type(each) for each in told] == [NotPrivate]


_HOMELESS = "from gclint import userfolder\nuserfolder._home = lambda kind: None\n"


def test_a_lint_without_a_place_for_a_cache_says_so_only_if_it_is_asked(clone: Repository) -> None:
    (clone.folder.parent / "file").touch()
    variables = {"XDG_CACHE_HOME": str(clone.folder.parent / "file" / "cache")}
    assert run(clone.folder, _MODEL, variables=variables).errors == ""
    for code, reason in (("", "the cache in ../file/cache/gclint"), (_HOMELESS, "a cache")):
        loud = run(clone.folder, _MODEL, "-v", variables=variables, code=code)
        assert loud.status == 1
        assert loud.errors.count("note: ") == loud.errors.count(f"note: {reason} cannot be used: ") == 1


# -- results of runs


def _kept_results(gclint: Callable[..., Outcome], text: str) -> Path:
    """Run a model, and return the file with its results."""
    write("toy", text)
    gclint("verify", "modeling_toy.py")
    return kept_results()


def test_results_that_a_repository_brings_are_not_resumed(
    clone: Repository, gclint: Callable[..., Outcome]
) -> None:
    text = failing("A")
    kept = _kept_results(gclint, text)
    forged = kept.read_text(encoding="utf-8").replace('"failed"', '"passed"')
    kept.unlink()
    clone.write(".gclint/verify.jsonl", "results.jsonl", text=forged)
    assert gclint("verify", "modeling_toy.py", "--resume").status == 1
    named = ("verify", "modeling_toy.py", "--results", "results.jsonl", "--resume")
    assert gclint(*named).status == 0  # The user names it, and git does not track it.
    clone.git("add", "-Af")
    with _unchanged(clone.folder):
        refused = gclint(*named)
    assert refused.status == 2
    assert "results.jsonl: git tracks this; choose another file with --results" in refused.err


def test_runs_for_proofs_that_a_repository_brings_are_not_resumed(
    clone: Repository, gclint: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = clone.folder.parent / "ran"
    counts = f"        open({str(ran)!r}, 'a').write('x')\n"
    write("toy", f"class A:\n    @staticmethod\n    def run(watch, known):\n{counts}")

    def interrupted(*_arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(proving, "prove", interrupted)
    options = ("--diff", "--verify", "modeling_toy.py")
    for more, runs in (((), "x"), (("--resume",), "x"), (("--resume",), "xx")):
        assert gclint(*options, *more).status == 130
        assert ran.read_text(encoding="utf-8") == runs
        state = state_home()
        assert state is not None
        shutil.copytree(state / "results", clone.folder / ".gclint" / "repairs", dirs_exist_ok=True)
        if more:  # What is left is what the repository brings.
            shutil.rmtree(state)


@pytest.mark.parametrize("make", [_linked, _named_twice, _pipe, _of_everybody])
def test_results_are_written_to_a_file_of_its_own(
    clone: Repository, gclint: Callable[..., Outcome], make: Callable[[Path], None]
) -> None:
    path = clone.folder / "results.jsonl"
    write("toy", passing("A"))
    assert gclint("verify", "modeling_toy.py", "--results", path.name).status == 0
    make(path)
    before = _content(clone.folder)
    for more in ((), ("--resume",)):
        outcome = gclint("verify", "modeling_toy.py", "--results", path.name, *more)
        assert outcome.status == 2
        assert "results cannot be written to results.jsonl: " in outcome.err
    assert _content(clone.folder) == before


@pytest.mark.parametrize("resume", [False, True])
@pytest.mark.parametrize(
    "content", [b"[" * 1_000_000, b'"gclint"\n', b'{"gclint":' * 200_000 + b"\n", b'["gclint"]\n'], ids=len
)
def test_what_has_another_form_is_neither_believed_nor_overwritten(
    tmp_path: Path, content: bytes, resume: bool
) -> None:
    path = tmp_path / "results.jsonl"
    path.write_bytes(content)
    with pytest.raises(UnusableResults):
        ResultsFile(
            own_file(path, is_believed=resume),
            path,
            header((), RunSettings(Path(sys.executable))),
            resume=resume,
        )
    assert path.read_bytes() == content


def test_a_run_that_nothing_can_be_kept_of_says_so(
    clone: Repository, gclint: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    write("toy", passing("A"))
    (clone.folder.parent / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(clone.folder.parent / "file" / "state"))
    with _unchanged(clone.folder):
        for more in ((), ("--resume",)):
            outcome = gclint("verify", "modeling_toy.py", *more)
            assert outcome.status == 0
            assert "note: the results of this run are not kept, so it cannot be resumed: " in outcome.err
        repaired = gclint("--diff", "--verify", "modeling_toy.py")
    assert "note: the results of this run are not kept, so it cannot be resumed: " in repaired.err
    assert repaired.status == 0


def test_two_users_share_nothing(
    clone: Repository, gclint: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = _kept_results(gclint, failing("A"))
    assert kept.stat().st_mode & 0o077 == kept.parent.stat().st_mode & 0o077 == 0
    me = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: me + 1)
    with _unchanged(kept.parent):
        stranger = gclint("verify", "modeling_toy.py", "--resume")
    assert "it cannot be resumed: this belongs to another user" in " ".join(stranger.err.split())


def test_projects_of_one_name_are_told_apart(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name / "project").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "a")
    assert key_of(tmp_path / "a" / "project") != key_of(tmp_path / "b" / "project")
    assert key_of(tmp_path / "a" / "project") == key_of(tmp_path / "link" / "project")
