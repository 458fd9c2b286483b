"""The options for whole trees: what changed, what is known, and what a sweep did."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.harness import ASSUMED, FIXTURES
from tests.repository import Repository
from tests.sample import BROKEN
from tests.terminal import Outcome, runner
from tests.toy_models import IMPORTS, LAYERS, LOOP, STACK, model
from tests.toys import WordRule, replacing, without_fix

Run = Callable[..., Outcome]


@pytest.fixture
def real(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run gclint in this process and in ``tmp_path``."""
    monkeypatch.chdir(tmp_path)
    return runner(monkeypatch, capsys)


@pytest.fixture
def gclint(real: Run, monkeypatch: pytest.MonkeyPatch) -> Run:
    """The same with rules about words."""
    rules = (
        WordRule("bad", replacing("good")),
        WordRule("ugly", replacing("nice"), code="TOY2", unsafe=True),
        WordRule("lost", without_fix, code="TOY3"),
    )
    monkeypatch.setattr("gclint.rule.all_rules", lambda: rules)
    return real


def _write(name: str, *words: str) -> Path:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{word} = 1\n" for word in words), encoding="utf-8")
    return path


def _symbols(out: str) -> list[tuple[str, str]]:
    return [(Path(each["filename"]).name, each["symbol"]) for each in json.loads(out)]


# What changed.


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """A repository with three files on ``main``, of which a branch has changed one."""
    repository = Repository.at(tmp_path)
    for name in ("a", "b", "c"):
        _write(str(tmp_path / name / f"modeling_{name}.py"), "bad", "lost")
    repository.branch()
    _write(str(tmp_path / "b" / "modeling_b.py"), "x", "bad", "lost")
    return repository


def test_only_what_changed_is_reported(repository: Repository, gclint: Run) -> None:
    status, out, err = gclint("--changed-only")
    assert (status, err) == (1, "")
    assert out.splitlines() == [
        "b/modeling_b.py:2:1: error: TOY1 bad is bad [*]",
        "    help: Repair",
        "b/modeling_b.py:3:1: error: TOY3 lost is bad",
        "    no fix: nobody knows how",
        ASSUMED,
        "Found 2 findings: 2 errors (1 fixable with --fix).",
    ]
    counts = json.loads(gclint("--changed-only", "--statistics", "--output-format", "json")[1])
    assert [(each["code"], each["count"]) for each in counts] == [("TOY1", 1), ("TOY3", 1)]
    repository.commit()
    assert gclint("--changed-only", "--base-ref", "HEAD") == (0, "No findings in 0 files.\n", "")
    assert _symbols(gclint("--changed-only", "--base-ref", "main", "--output-format", "json", "b")[1]) == [
        ("modeling_b.py", "bad"),
        ("modeling_b.py", "lost"),
    ]


@pytest.mark.usefixtures("repository")
def test_only_what_changed_is_fixed(gclint: Run) -> None:
    before = Path("a/modeling_a.py").read_text()
    status, out, _ = gclint("--changed-only", "--fix")
    assert status == 1
    assert out.splitlines()[-1] == "Fixed 1 finding; 1 left: 1 error (none fixable)."
    assert Path("b/modeling_b.py").read_text() == "x = 1\ngood = 1\nlost = 1\n"
    assert Path("a/modeling_a.py").read_text() == before
    assert gclint("--changed-only", "--fix", "--select", "TOY1")[1] == "No findings in 1 file.\n"
    diff = gclint("--changed-only", "--diff")
    assert diff == (1, "", "Nothing would be fixed; 1 finding left.\n")


@pytest.mark.parametrize(
    "arguments",
    [["--changed-only"], ["--changed-only", "--base-ref", "nonsense"], ["--changed-only", "--fix"]],
)
def test_without_an_answer_of_git_nothing_is_done(gclint: Run, tmp_path: Path, arguments: list[str]) -> None:
    repository = Repository.at(tmp_path)
    path = _write("modeling_a.py", "bad")
    repository.commit()
    status, out, err = gclint(*arguments)
    assert (status, out) == (2, "")
    base = "nonsense" if "nonsense" in arguments else "origin/main"
    assert f"no commit or branch '{base}'" in err
    assert path.read_text() == "bad = 1\n"


_BASE = f"{IMPORTS}\n{LAYERS}"
_SHELTERED = _BASE.replace("class ToyLayer(nn.Module)", "class ToyLayer(GradientCheckpointingLayer)")
_USER = f"{IMPORTS}from ..base.modeling_base import ToyLayer\n\n{model()}"


def _write_package(base: str) -> None:
    for name, text in {"base/modeling_base.py": base, "user/modeling_user.py": _USER}.items():
        path = Path("models", name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        for folder in (path.parent, path.parent.parent):
            (folder / "__init__.py").touch()


def test_a_verdict_that_depends_on_what_changed_is_reported(real: Run, tmp_path: Path) -> None:
    repository = Repository.at(tmp_path)
    _write_package(_SHELTERED)
    Path("models/user/modeling_other.py").write_text(BROKEN)
    repository.branch()
    assert real("models")[0] == 1
    assert real("--changed-only", "models") == (0, "No findings in 0 files.\n", "")
    _write_package(_BASE)
    status, out, _ = real("--changed-only", "--output-format", "json", "models")
    assert status == 1
    # What the user's file runs is reported where it is written.
    assert _symbols(out) == [("modeling_base.py", "ToyLayer")]


def test_what_depends_on_a_deleted_file_is_reported(real: Run, tmp_path: Path) -> None:
    repository = Repository.at(tmp_path)
    _write_package(_SHELTERED)
    own = LAYERS.replace("Toy", "Own")
    stacks = f"{STACK}\n{STACK.replace('layers', 'more').replace('Toy', 'Own')}"
    loops = f"{LOOP}\n{LOOP.replace('layers', 'more')}"
    path = Path("models/user/modeling_user.py")
    path.write_text(f"{IMPORTS}from ..base.modeling_base import ToyLayer\n\n{own}\n{model(stacks, loops)}")
    Path("models/user/modeling_other.py").write_text(BROKEN)
    repository.branch()
    assert real("--changed-only", "models")[0] == 0
    Path("models/base/modeling_base.py").unlink()
    status, out, _ = real("--changed-only", "--output-format", "json", "models")
    assert status == 1
    assert _symbols(out) == [("modeling_user.py", "OwnLayer")]


# What is known.


def test_a_baseline_hides_what_is_known(gclint: Run) -> None:
    path = _write("modeling_a.py", "bad", "lost")
    assert gclint("--write-baseline", "base.json") == (0, "2 findings written to base.json.\n", "")
    assert gclint("--baseline", "base.json") == (
        0,
        "No findings in 1 file.\n",
        "base.json: 2 known findings not reported\n",
    )
    path.write_text(f"x = 1\n{path.read_text()}ugly = 1\n")
    status, out, err = gclint("--baseline", "base.json", "--output-format", "json")
    assert (status, _symbols(out)) == (1, [("modeling_a.py", "ugly")])
    assert err == "base.json: 2 known findings not reported\n"


def test_what_is_known_is_not_fixed(gclint: Run) -> None:
    path = _write("modeling_a.py", "bad")
    gclint("--write-baseline", "base.json")
    path.write_text("bad = 1\nugly = 1\n")
    status, out, _ = gclint("--baseline", "base.json", "--fix", "--unsafe-fixes")
    assert (status, out) == (0, f"{ASSUMED}\nFixed 1 finding; none left in 1 file.\n")
    assert path.read_text() == "bad = 1\nnice = 1\n"


def test_what_no_longer_occurs_is_told(gclint: Run) -> None:
    path = _write("modeling_a.py", "bad", "bad", "lost")
    gclint("--write-baseline", "base.json")
    path.write_text("lost = 1\n")
    status, out, err = gclint("--baseline", "base.json")
    assert (status, out) == (1, "No findings in 1 file.\n")
    assert err.splitlines() == [
        "base.json: 1 known finding not reported",
        "base.json: TOY1 for bad in modeling_a.py no longer occurs 2 times; "
        "remove it, or write the baseline again with --write-baseline",
    ]
    assert gclint("--baseline", "base.json", "--fix")[::2] == (1, err)
    assert gclint("--baseline", "base.json", "--exit-zero")[0] == 0
    assert gclint("--baseline", "base.json", "--select", "TOY3")[0] == 0


def test_what_a_fix_leaves_is_written_down(gclint: Run) -> None:
    _write("modeling_a.py", "bad", "lost")
    assert gclint("--fix", "--write-baseline", "base.json") == (
        0,
        "Fixed 1 finding; 1 left, and written to base.json.\n",
        "",
    )
    assert [each["rule"] for each in json.loads(Path("base.json").read_text())["findings"]] == ["TOY3"]
    assert gclint("--baseline", "base.json")[0] == 0


def test_a_baseline_that_is_written_anew_knows_nothing_of_the_old_one(gclint: Run) -> None:
    path = _write("modeling_a.py", "bad", "lost")
    gclint("--write-baseline", "base.json")
    path.write_text("lost = 1\n")
    assert gclint("--write-baseline", "base.json")[1] == "1 finding written to base.json.\n"
    assert gclint("--baseline", "base.json")[0] == 0


def test_of_what_did_not_change_nothing_is_stale(repository: Repository, gclint: Run) -> None:
    gclint("--write-baseline", "base.json")
    for name in ("a", "b"):
        _write(f"{name}/modeling_{name}.py", "lost")
    repository.git("commit", "-q", "-m", "a is stale since then", "a")
    status, _, err = gclint("--baseline", "base.json", "--changed-only", "--base-ref", "HEAD")
    assert status == 1
    assert err.splitlines() == [
        "base.json: 1 known finding not reported",
        "base.json: TOY1 for bad in b/modeling_b.py no longer occurs; "
        "remove it, or write the baseline again with --write-baseline",
    ]


def test_a_baseline_that_cannot_be_used_or_written(gclint: Run) -> None:
    path = _write("modeling_a.py", "bad")
    status, out, err = gclint("--fix", "--baseline", "none.json")
    assert (status, out) == (2, "")
    assert "none.json: this baseline does not exist" in err
    assert path.read_text() == "bad = 1\n"
    for target in ("missing/base.json", "."):
        status, _, err = gclint("--write-baseline", target)
        assert status == 2
        assert err.startswith(f"{target}: error: this file cannot be written: ")


# What a sweep did.


def test_a_sweep_of_several_files_is_summed_up(gclint: Run) -> None:
    _write("a/modeling_a.py", "bad", "lost", "lost")
    _write("b/modeling_b.py", "bad", "bad")
    assert gclint("--diff")[2].splitlines() == [
        "Would fix 3 findings in 2 files; 2 left.",
        "  in 2 files of 2 models",
        "  by rule: TOY3 0 of 2, TOY1 3 of 3",
        "  by model: a 1 of 3, b 2 of 2",
    ]
    assert gclint("--fix")[1].splitlines()[-4:] == [
        "Fixed 3 findings; 2 left: 2 errors (none fixable).",
        "  in 2 files of 2 models",
        "  by rule: TOY3 0 of 2, TOY1 3 of 3",
        "  by model: a 1 of 3, b 2 of 2",
    ]


@pytest.mark.parametrize("option", ["--fix", "--diff"])
def test_a_summary_is_written_for_a_pull_request(real: Run, option: str) -> None:
    for name, fixture in {
        "ant/modeling_ant.py": "GC302/two_stacks",
        "bee/modeling_bee.py": "GC002/override",
        "bee/modeling_swapped.py": "GC302/swapped_slots",
    }.items():
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text((FIXTURES / f"{fixture}.py").read_text(encoding="utf-8"), encoding="utf-8")
    assert real(option, "--unsafe-fixes", "--summary", "sweep.md")[0] == 1
    introduction, _, rest = Path("sweep.md").read_text(encoding="utf-8").partition("| rule")
    assert introduction == (
        "## Gradient checkpointing, repaired by gclint\n\n"
        "3 findings repaired in 2 files: 2 blocks, 4 call sites, 2 legacy branches. 2 left.\n\n"
    )
    rows = [line for line in rest.splitlines() if line.startswith("| ") and "---" not in line]
    assert rows == [
        "| GC002 positional-cache | 1 | 0 |",
        "| GC101 mismatched-checkpoint-branches | 0 | 1 |",
        "| GC302 legacy-checkpoint-branch | 2 | 1 |",
        "| model | files | blocks | call sites | legacy branches | findings repaired | left |",
        "| ant | 1 | 2 | 1 | 2 | 2 | 0 |",
        "| bee | 1 | 0 | 3 | 0 | 1 | 2 |",
    ]
    left = rest.partition("### Remaining findings\n\n")[2]
    assert left.startswith(
        "GC101 mismatched-checkpoint-branches:\n\n- bee/modeling_swapped.py: `OtterLayer`: no fix: "
    )
    assert left.endswith("\n")


def test_what_cannot_be_written_is_left(gclint: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    _write("a/modeling_a.py", "bad")
    _write("b/modeling_b.py", "bad")
    _write("c/modeling_c.py", "bad")
    replace = os.replace

    def fail(source: str, target: Path) -> None:
        if target.name == "modeling_b.py":
            raise OSError(errno.ENOSPC, "No space left on device")
        replace(source, target)

    monkeypatch.setattr("os.replace", fail)
    status, out, _ = gclint("--fix", "--summary", "sweep.md")
    assert status == 2
    assert out.splitlines() == [
        ASSUMED,
        "Fixed 2 findings; 1 left: 1 error (none fixable, 1 in files that cannot be written).",
        "  in 2 files of 2 models",
        "  by rule: TOY1 2 of 3",
        "  by model: b 0 of 1, a 1 of 1, c 1 of 1",
    ]
    assert "- b/modeling_b.py: `bad`: no fix: its file cannot be written" in Path("sweep.md").read_text()


def test_a_summary_that_cannot_be_written_is_told(gclint: Run) -> None:
    path = _write("modeling_a.py", "bad")
    status, _, err = gclint("--fix", "--summary", "missing/sweep.md")
    assert status == 2
    assert err.startswith("missing/sweep.md: error: this file cannot be written: ")
    assert path.read_text() == "good = 1\n"


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--base-ref", "main"], "--changed-only"),
        (["--summary", "x.md"], "--fix or --diff"),
        (["--diff", "--write-baseline", "x.json"], "--diff writes nothing"),
        (["--baseline", "x.json", "--write-baseline", "x.json"], "--baseline"),
        (["--changed-only", "--write-baseline", "x.json"], "--changed-only"),
        (["--statistics", "--write-baseline", "x.json"], "--statistics"),
        (["--output-format", "json", "--write-baseline", "x.json"], "--output-format"),
    ],
)
def test_what_does_not_go_together(gclint: Run, arguments: list[str], complaint: str) -> None:
    path = _write("modeling_a.py", "bad")
    status, out, err = gclint(*arguments)
    assert (status, out) == (2, "")
    assert complaint in err.partition("Error: ")[2]
    assert [each for each in Path().iterdir() if each.is_file()] == [path]
