"""Links and settings of a repository that lead out of it: nothing there is printed, changed or waited for."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gclint.code.discovery import survey
from gclint.code.neighbouring_files import files_around
from gclint.code.project import Project
from gclint.report.formats import FORMATS
from gclint.settings import Settings
from gclint.verify.sources import targets_of
from tests.sample import BROKEN
from tests.terminal import Outcome, runner

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs links and pipes")
Run = Callable[..., Outcome]

_SECRET = f"{BROKEN}\nx = 'hunter2'  # hunter2\n"


@pytest.fixture
def gclint(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    """Run gclint in a repository, beside which there are files of the user's own."""
    for name in ("repository/src", "home/models"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("home/secret.py", "home/models/modeling_own.py"):
        (tmp_path / name).write_text(_SECRET)
    (tmp_path / "repository/src/modeling_x.py").write_text(BROKEN)
    monkeypatch.chdir(tmp_path / "repository")
    return runner(monkeypatch, capsys)


def _link(name: str, target: str) -> Path:
    path = Path(name)
    path.symlink_to(target)
    return path


def test_links_to_files_and_folders_outside_are_not_followed(gclint: Run) -> None:
    _link("src/modeling_y.py", "../../home/secret.py")
    _link("src/models", "../../home/models")
    _link("src/notes.py", "../../home/secret.py")
    _link("src/.hidden", "../../home/models")
    for name in FORMATS:
        status, out, err = gclint("--output-format", name)
        assert status == 1
        assert "modeling_y" not in out and "modeling_own" not in out and "hunter2" not in out + err
        assert err == (
            "2 links lead out of the given paths and were not followed (such as src/modeling_y.py); to check "
            "what they lead to, pass the real paths.\n"
        )
    assert gclint("-q")[2] == ""
    verbose = gclint("-v")[2]
    for each in ("modeling_y.py", "models", "notes.py", ".hidden"):
        assert f"Skipped src/{each}: this link leads to " in verbose
    assert "2 links" not in gclint("--exclude", "models", "--exclude", "modeling_y.py")[2]


def test_a_fix_changes_nothing_behind_a_link(gclint: Run, tmp_path: Path) -> None:
    _link("src/modeling_y.py", "../../home/secret.py")
    _link("src/models", "../../home/models")
    for paths in (["."], ["src/modeling_y.py", "src/models"], ["src"]):
        gclint("--fix", "--unsafe-fixes", "--add-ignores", *paths)
    assert (tmp_path / "home/secret.py").read_text() == _SECRET
    assert (tmp_path / "home/models/modeling_own.py").read_text() == _SECRET
    assert "GradientCheckpointingLayer" in Path("src/modeling_x.py").read_text()


@pytest.mark.parametrize(
    "given",
    [
        ("src/modeling_y.py",),
        ("src/models",),
        ("src/modeling_y.py", "src/models"),
        ("src/models/modeling_own.py",),
        ("ROOT/repository/src/models",),
    ],
)
def test_a_link_that_a_hook_hands_over_is_refused(
    gclint: Run, tmp_path: Path, given: tuple[str, ...]
) -> None:
    _link("src/modeling_y.py", "../../home/models/modeling_own.py")
    _link("src/models", "../../home/models")
    given = tuple(each.replace("ROOT", str(tmp_path)) for each in given)
    status, out, err = gclint("src/modeling_x.py", *given)
    assert status == 2
    assert "modeling_y" not in out and "modeling_own" not in out and "hunter2" not in out + err
    assert [line.partition(":")[0] for line in err.splitlines()] == [*given]
    assert f"to check {tmp_path}/home/models" in err


def test_what_the_user_means_is_followed(
    gclint: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _link("src/modeling_y.py", "../../home/models/modeling_own.py")
    _link("src/again", "../src")
    (tmp_path / "link").symlink_to("repository")

    def found(*paths: str) -> set[str]:
        outcome = gclint("--output-format", "json", *paths)
        return {each["filename"] for each in json.loads(outcome.out) if each["code"] == "GC001"}

    # The target is given as well, however it is spelled.
    assert found("src", "../home/models") >= {"src/modeling_y.py"}
    assert found("src/modeling_y.py", str(tmp_path / "home")) >= {"src/modeling_y.py"}
    # A link that does not lie in the working directory is the user's own.
    assert found("../link") == {"../link/src/modeling_x.py"}
    monkeypatch.chdir(tmp_path / "home")
    assert found("../repository/src/modeling_y.py") == {"../repository/src/modeling_y.py"}
    # What is above the given folder, or the working directory, may be a link.
    monkeypatch.chdir(tmp_path / "link")
    assert found("src") == {"src/modeling_x.py"}
    assert found(str(tmp_path / "link/src")) == {f"{tmp_path}/link/src/modeling_x.py"}


def test_files_of_a_folder_are_followed_into_all_that_is_given(gclint: Run) -> None:
    Path("common").mkdir()
    Path("common/modeling_z.py").write_text(BROKEN)
    _link("src/modeling_z.py", "../common/modeling_z.py")
    assert [path.name for path in survey([Path()], Settings()).files] == ["modeling_z.py", "modeling_x.py"]
    inner = survey([Path("src")], Settings())
    assert ([path.name for path in inner.files], inner.outside) == (
        ["modeling_x.py"],
        [Path("src/modeling_z.py")],
    )


def test_a_link_to_a_device_or_a_loop_is_not_opened(gclint: Run) -> None:
    _link("src/modeling_zero.py", "/dev/zero")
    _link("src/zero.py", "/dev/zero")
    _link("src/modeling_mem.py", "/proc/self/mem")
    _link("src/root", "/")
    status, _, err = gclint()
    assert (status, len(err.splitlines())) == (1, 1)


def test_running_models_follows_no_link_outside_either(gclint: Run) -> None:
    _link("src/modeling_y.py", "../../home/secret.py")
    targets, found = targets_of([Path("src")], Settings())
    assert [target.path.name for target in targets] == ["modeling_x.py"]
    assert found.outside == [Path("src/modeling_y.py")]


def test_links_beside_are_no_part_of_the_project(gclint: Run) -> None:
    _link("src/user.py", "../../home/secret.py")
    _link("src/folder", "../../home")
    Path("src/helper.py").write_text("gradient_checkpointing = True\n")
    project = Project(Settings(), [Path("src/modeling_x.py")], within=[Path("src")])
    assert {path.name for path in files_around(project)} == {"modeling_x.py", "helper.py"}


def test_explaining_reads_no_link_beside(gclint: Run) -> None:
    _link("src/modeling_y.py", "../../home/secret.py")
    status, out, _ = gclint("explain", "src/modeling_x.py:1")
    assert status == 0
    assert "hunter2" not in out
    status, out, err = gclint("explain", "src/modeling_y.py:58")
    assert (status, out) == (2, "")
    assert "out of the working directory" in err


def test_an_import_leads_to_nothing_outside(gclint: Run) -> None:
    _link("src/link.py", "../../home/secret.py")
    _link("src/folder", "../../home")
    _link("src/inside.py", "../helper.py")
    Path("helper.py").write_text(BROKEN)
    Path(".git").mkdir()
    own = BROKEN[BROKEN.index("class SampleModel") :]
    for module, status in (
        (".link", 0),
        (".folder.secret", 0),
        ("folder.secret", 0),
        ("...home.secret", 0),
        ("..helper", 1),
        (".inside", 1),
    ):
        Path("src/modeling_x.py").write_text(f"from {module} import *\n{own}")
        found, out, _ = gclint("--no-cache", "src")
        assert (found, "secret" in out) == (status, False), module


# -- settings that lead outside


def test_a_baseline_anywhere_prints_nothing_of_what_it_holds(gclint: Run) -> None:
    foreign = Path("../home/foreign.json")
    for text in ('{"version": "hunter2"}', '{"version": ["hunter2"]}', '"hunter2"', "hunter2", "[" * 100_000):
        foreign.write_text(text)
        status, out, err = gclint("--baseline", str(foreign), ".")
        assert status == 2
        assert "hunter2" not in out + err
        assert str(foreign) in err
        assert err.count("\n") == 1


@pytest.fixture
def _limited() -> Iterator[None]:
    def stop(*_: object) -> None:
        raise AssertionError("it waits for what never comes, or reads what never ends")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(60)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.usefixtures("_limited")
@pytest.mark.parametrize(
    "text",
    [
        'baseline = "TARGET"\n',
        'library = "TARGET"\n',
        '[tool.gclint.verify.models.X]\nconfig = "TARGET"\n',
        '[tool.gclint.verify.models.X]\ninputs = "TARGET/x.py:f"\n',
    ],
)
def test_settings_that_lead_anywhere_are_read_at_once_and_quote_nothing(gclint: Run, text: str) -> None:
    os.mkfifo("pipe")
    Path("nested.json").write_text("[" * 100_000)
    Path("secret.txt").write_text("hunter2")
    for target in ("pipe", "/dev/zero", "/proc/self/mem", "nested.json", "secret.txt", "/"):
        Path("pyproject.toml").write_text(f"[tool.gclint]\n{text.replace('TARGET', target)}")
        for arguments in (["."], ["explain", "src/modeling_x.py:1"], ["config", "."], ["verify", "pipe"]):
            _, out, err = gclint(*arguments)
            assert "hunter2" not in out + err
            assert len(err.splitlines()) <= 2


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pyproject.toml", f"[tool.gclint]\nx = {'[' * 50_000}"),
        ("pyproject.toml", f"[tool.gclint]\nx = {'9' * 5_000}"),
        ("uv.lock", f"# transformers\nx = {'[' * 50_000}"),
        ("uv.lock", f"# transformers\nx = {'9' * 5_000}"),
        ("Pipfile.lock", f'"transformers"{"[" * 50_000}'),
        ("Pipfile.lock", f'{{"transformers": {"[" * 50_000}'),
    ],
)
def test_metadata_that_no_parser_takes_is_one_line(gclint: Run, name: str, text: str) -> None:
    Path(name).write_text(text)
    status, _, err = gclint("src")
    assert status in (1, 2)
    assert len(err.splitlines()) <= 1


def test_a_configuration_names_code_beside_it_only(gclint: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from gclint.verify.memory import NoEstimate, named_target

    Path("modeling_x").mkdir()
    Path("../home/models/modeling_z.py").write_text(_SECRET)
    escape = "modeling_x/../../home/models/modeling_z"
    named: tuple[object, ...] = (
        {"AutoModel": f"{escape}.Model"},
        {"AutoModel": [f"{escape}.Model"]},
        [],
        {"AutoModel": []},
        1,
    )
    for auto_map in named:
        Path("config.json").write_text(json.dumps({"auto_map": auto_map}))
        with pytest.raises(NoEstimate, match="no field model_type"):
            named_target("config.json", None, Path(sys.executable))
    for kind in ("*", "../x", "", 1, "[" * 100_000):
        Path("config.json").write_text(json.dumps({"model_type": kind}))
        with pytest.raises(NoEstimate, match="no field model_type"):
            named_target("config.json", None, Path(sys.executable))
    Path("config.json").write_text("[" * 100_000)
    with pytest.raises(NoEstimate, match="nested too deeply"):
        named_target("config.json", None, Path(sys.executable))


def test_a_submodule_is_checked_with_the_settings_of_the_whole(gclint: Run) -> None:
    module = Path("vendored")
    module.mkdir()
    (module / ".git").write_text("gitdir: /\n")
    (module / "modeling_z.py").write_text(BROKEN)
    (module / "pyproject.toml").write_text("[tool.gclint]\nignore = ['GC001']\n")
    _link("vendored/modeling_out.py", "../../home/secret.py")
    status, out, err = gclint(".")
    assert status == 1
    assert "vendored/modeling_z.py" in out
    assert "modeling_out.py" not in out and "1 link leads out" in err
