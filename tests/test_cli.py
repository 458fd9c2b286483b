"""The command line: what it prints where, what it writes, and how it exits.

Rules made for these tests stand in for the real ones, so that every kind of finding is at hand.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import click
import pytest

from gclint import __version__
from gclint.cli.main import gclint as command_line
from gclint.cli.options import LazyCommand
from gclint.finding import Applicability, Edit, Finding, Fix, Refusal
from gclint.network.model import Network
from gclint.rule import Rule
from tests.harness import ASSUMED
from tests.sample import BROKEN, DEFECT, REPAIRED
from tests.terminal import Outcome, runner
from tests.toys import NO_FIX


class _WordRule(Rule):
    """Finds a word."""

    word: str
    applicability: Applicability | None

    def check(self, network: Network) -> Iterable[Finding]:
        file = network.file
        for match in re.finditer(rf"\b{self.word}\b", file.text):
            start, end = match.span()
            remedy: Fix | Refusal = NO_FIX
            if self.applicability:
                reason = "look at it" if self.applicability is Applicability.UNSAFE else None
                remedy = Fix("Say ok", (Edit(file.path, start, end, "ok"),), self.applicability, reason)
            yield Finding(
                self.code,
                self.name,
                f"{self.word} is wrong",
                file.path,
                start,
                end,
                self.word,
                remedy,
            )


class _Bad(_WordRule):
    """Bad is wrong.

    More about it.
    """

    code = "GC901"
    name = "bad-word"
    word = "bad"
    applicability = Applicability.SAFE


class _Ugly(_WordRule):
    """Ugly is wrong."""

    code = "GC902"
    name = "ugly-word"
    word = "ugly"
    applicability = Applicability.UNSAFE


class _Lost(_WordRule):
    """Lost is lost."""

    code = "GC903"
    name = "lost-word"
    word = "lost"
    applicability = None


Run = Callable[..., Outcome]


@pytest.fixture
def real_gclint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run gclint in this process and in ``tmp_path``."""
    monkeypatch.chdir(tmp_path)
    return runner(monkeypatch, capsys)


@pytest.fixture
def gclint(real_gclint: Run, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run it with the rules of this module."""
    rules = (_Bad(), _Ugly(), _Lost())
    # The rule's own module last: what is imported meanwhile takes the real ones from it, for good.
    for module in ("gclint.run.check", "gclint.proof.evidence", "gclint.rule"):
        monkeypatch.setattr(f"{module}.all_rules", lambda: rules)
    return real_gclint


def _write(name: str, *words: str) -> Path:
    path = Path(name)
    path.write_text(
        "from torch import nn\n\nlayers = nn.ModuleList()\n" + "".join(f"{word} = 1\n" for word in words)
    )
    return path


def test_nothing_found(gclint: Run) -> None:
    _write("modeling_x.py", "fine")
    assert gclint() == (0, "No findings in 1 file.\n", "")


def test_findings_are_printed_and_counted(gclint: Run) -> None:
    _write("modeling_x.py", "bad", "ugly", "lost")
    status, out, err = gclint("modeling_x.py")
    assert (status, err) == (1, "")
    assert out.splitlines() == [
        "modeling_x.py:4:1: error: GC901 bad is wrong [*]",
        "    help: Say ok",
        "modeling_x.py:5:1: error: GC902 ugly is wrong",
        "    unsafe fix: look at it",
        "    help: Say ok",
        "modeling_x.py:6:1: error: GC903 lost is wrong",
        "    no fix: nobody knows how",
        ASSUMED,
        "Found 3 findings: 3 errors (1 fixable with --fix, 1 more with --unsafe-fixes).",
    ]


def test_without_paths_the_current_folder_is_checked(gclint: Run) -> None:
    Path("models").mkdir()
    _write("models/modeling_x.py", "bad")
    _write("models/modular_x.py", "bad")
    _write("models/other.py", "bad")
    _, out, _ = gclint("--output-format", "concise")
    assert [line.partition(":")[0] for line in out.splitlines()[:-2]] == [
        "models/modeling_x.py",
        "models/modular_x.py",
    ]


def test_files_that_look_like_models_are_counted_and_checked_on_request(gclint: Run) -> None:
    _write("modeling_x.py", "fine")
    _write("encoder.py", "bad", "supports_gradient_checkpointing").rename("vision.py")
    status, out, err = gclint()
    assert (status, out) == (0, "No findings in 1 file.\n")
    assert (
        err
        == "1 file looks like a model but was not checked (vision.py); to check it, pass --include '*.py'.\n"
    )
    status, out, err = gclint("--include", "vis*.py")
    assert (status, err) == (1, "")
    assert out.startswith("vision.py:4:1: error: GC901")
    _write("pyproject.toml").write_text('[tool.gclint]\ninclude = ["*.py"]\n')
    status, out, err = gclint("--include", "*.txt")
    assert (status, err) == (1, "")
    assert out.startswith("vision.py:4:1: error: GC901")


def test_findings_are_in_the_order_of_their_places(gclint: Run) -> None:
    _write("modeling_b.py", "lost", "bad", "ugly")
    _write("modeling_a.py", "ugly", "bad")
    _, out, _ = gclint("modeling_b.py", "modeling_a.py", "--output-format", "json")
    places = [(each["filename"], each["location"]["row"], each["code"]) for each in json.loads(out)]
    assert places == [
        ("modeling_a.py", 4, "GC902"),
        ("modeling_a.py", 5, "GC901"),
        ("modeling_b.py", 4, "GC903"),
        ("modeling_b.py", 5, "GC901"),
        ("modeling_b.py", 6, "GC902"),
    ]


def test_fix_makes_the_safe_fixes(gclint: Run) -> None:
    path = _write("modeling_x.py", "bad", "ugly", "lost")
    status, out, _ = gclint("--fix")
    assert status == 1
    assert path.read_text().endswith("ok = 1\nugly = 1\nlost = 1\n")
    assert "GC901" not in out
    assert out.splitlines()[-1] == "Fixed 1 finding; 2 left: 2 errors (1 fixable with --fix --unsafe-fixes)."


def test_unsafe_fixes_are_made_on_request(gclint: Run) -> None:
    path = _write("modeling_x.py", "bad", "ugly")
    status, out, _ = gclint("--fix", "--unsafe-fixes")
    assert (status, out) == (0, f"{ASSUMED}\nFixed 2 findings; none left in 1 file.\n")
    assert path.read_text().endswith("ok = 1\nok = 1\n")


def test_what_is_repaired_is_listed_on_request(gclint: Run) -> None:
    _write("modeling_x.py", "bad", "ugly")
    status, out, err = gclint("--diff", "--unsafe-fixes", "--show-fixes")
    listed = (
        "modeling_x.py: fixed GC901 for bad: Say ok\n"
        "modeling_x.py: fixed GC902 for ugly: Say ok\n    unsafe: look at it\n"
    )
    assert (status, err) == (1, f"{listed}Would fix 2 findings in 1 file; 0 left.\n")
    assert "fixed GC901" not in out
    status, out, err = gclint("--fix", "--unsafe-fixes", "--show-fixes")
    assert (status, out, err) == (0, f"{listed}{ASSUMED}\nFixed 2 findings; none left in 1 file.\n", "")


def test_json_has_what_is_repaired_on_request(gclint: Run) -> None:
    _write("modeling_x.py", "bad", "ugly", "lost")
    status, out, _ = gclint("--fix", "--unsafe-fixes", "--show-fixes", "--output-format", "json")
    document = json.loads(out)
    assert status == 1
    assert [each["code"] for each in document["findings"]] == ["GC903"]
    assert document["duties"] == []
    assert [
        (each["code"], each["filename"], each["applicability"], each["reason"], each["changed"])
        for each in document["fixed"]
    ] == [
        ("GC901", "modeling_x.py", "safe", None, ["modeling_x.py"]),
        ("GC902", "modeling_x.py", "unsafe", "look at it", ["modeling_x.py"]),
    ]


def test_unsafe_fixes_alone_are_only_announced(gclint: Run) -> None:
    path = _write("modeling_x.py", "ugly")
    before = path.read_text()
    status, out, _ = gclint("--unsafe-fixes")
    assert status == 1
    assert "ugly is wrong [*]" in out
    assert path.read_text() == before


@pytest.mark.parametrize("also", [[], ["--fix"]])
def test_a_diff_is_printed_alone_and_nothing_is_written(gclint: Run, also: list[str]) -> None:
    path = _write("modeling_x.py", "bad", "ugly")
    before = path.read_text()
    status, out, err = gclint("--diff", *also)
    assert status == 1
    assert path.read_text() == before
    assert out.splitlines()[:2] == ["--- modeling_x.py", "+++ modeling_x.py"]
    assert [line for line in out.splitlines()[2:] if line[0] in "+-"] == ["-bad = 1", "+ok = 1"]
    assert err == "Would fix 1 finding in 1 file; 1 left.\n"


def test_a_diff_without_changes_is_empty(gclint: Run) -> None:
    _write("modeling_x.py", "fine")
    assert gclint("--diff") == (0, "", "Nothing would be fixed; 0 findings left.\n")
    _write("modeling_x.py", "lost")
    assert gclint("--diff") == (1, "", "Nothing would be fixed; 1 finding left.\n")


@pytest.mark.parametrize(
    ("options", "codes"),
    [
        (["--select", "GC901,ugly-word"], ["GC901", "GC902"]),
        (["--select", "GC901", "--select", "GC903"], ["GC901", "GC903"]),
        (["--ignore", "GC901, GC903"], ["GC902"]),
        (["--select", "GC9", "--ignore", "bad-word"], ["GC902", "GC903"]),
    ],
)
def test_rules_are_chosen(gclint: Run, options: list[str], codes: list[str]) -> None:
    _write("modeling_x.py", "bad", "ugly", "lost")
    _, out, _ = gclint("--output-format", "json", *options)
    assert [finding["code"] for finding in json.loads(out)] == codes


def test_json_is_not_mixed_with_anything(gclint: Run) -> None:
    _write("modeling_x.py", "bad")
    Path("modeling_y.py").write_text("class nn.ModuleList(:\n")
    status, out, err = gclint("--output-format", "json")
    assert status == 2
    found = [(each["code"], each["filename"]) for each in json.loads(out)]
    assert found == [("GC901", "modeling_x.py"), (None, "modeling_y.py")]
    assert err.startswith("modeling_y.py:1:")


def test_json_of_nothing_is_a_list(gclint: Run) -> None:
    _write("modeling_x.py", "fine")
    assert gclint("--output-format", "json") == (0, "[]\n", "")


def test_statistics_stand_in_place_of_the_findings(gclint: Run) -> None:
    _write("modeling_x.py", "bad", "ugly", "ugly")
    status, out, _ = gclint("--statistics")
    assert status == 1
    assert out.splitlines() == [
        "     2  GC902  ugly-word (0 fixable)",
        "     1  GC901  bad-word (1 fixable)",
        ASSUMED,
        "Found 3 findings: 3 errors (1 fixable with --fix, 2 more with --unsafe-fixes).",
    ]
    counts = json.loads(gclint("--statistics", "--output-format", "json")[1])
    assert [(count["code"], count["count"]) for count in counts] == [("GC902", 2), ("GC901", 1)]


@pytest.mark.parametrize("options", [[], ["--exit-zero"], ["--fix"], ["--diff"]])
def test_a_problem_is_told_and_the_rest_goes_on(gclint: Run, options: list[str]) -> None:
    Path("modeling_a.py").write_text("class nn.ModuleList(:\n")
    Path("modeling_b.py").write_bytes(b"# nn.ModuleList caf\xe9\n")
    _write("modeling_c.py", "lost", "bad")
    status, out, err = gclint(*options, "modeling_a.py", "modeling_b.py", "modeling_c.py", "modeling_d.py")
    assert status == 2
    assert "modeling_c.py" in out
    lines = err.splitlines()
    for name in ("modeling_a.py:1:", "modeling_b.py:1:", "modeling_d.py"):
        assert len([line for line in lines if line.startswith(name) and "error: " in line]) == 1, err
    assert "Traceback" not in err


def test_exit_zero_forgives_findings(gclint: Run) -> None:
    _write("modeling_x.py", "bad")
    status, out, _ = gclint("--exit-zero")
    assert status == 0
    assert "GC901" in out


def test_what_cannot_be_written_is_not_called_fixed(gclint: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_paths: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    path = _write("modeling_x.py", "bad")
    before = path.read_text()
    monkeypatch.setattr("os.replace", fail)
    status, out, err = gclint("--fix")
    assert status == 2
    assert out == "Found 1 finding: 1 error (none fixable, 1 in files that cannot be written).\n"
    assert err.startswith("modeling_x.py: error: ")
    assert path.read_text() == before


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--show-fixes"], "--fix or --diff"),
        (["--staged"], "--changed-only"),
        (["--changed-only", "--staged", "--base-ref", "main"], "replaces --base-ref"),
        (["--select", "GC999"], "there is no rule 'GC999'"),
        (["--ignore", "GC901,nonsense"], "there is no rule 'nonsense'"),
        (["--diff", "--statistics"], "--diff"),
        (["--diff", "--output-format", "json"], "--diff"),
        (["--output-format", "xml"], "xml"),
        (["--nonsense"], "--nonsense"),
        (["rule", "GC999"], "there is no rule 'GC999'"),
        (["rule"], "RULE"),
        (["--select"], "--select"),
        (["chekc", "."], "'chekc' is not a command, file or folder; did you mean 'check'?"),
        (["Rules"], "did you mean 'rules'?"),
        (["verfy"], "did you mean 'verify'?"),
        (["verify", "mergee", "1.jsonl"], "did you mean 'merge'?"),
        (["help"], "did you mean '--help'?"),
        ([""], "a path is empty"),
        (["check", "--fix", ""], "a path is empty"),
        (["verify", ""], "a path is empty"),
    ],
)
def test_a_wrong_command_line(gclint: Run, arguments: list[str], complaint: str) -> None:
    _write("modeling_x.py", "bad")
    status, out, err = gclint(*arguments)
    assert (status, out) == (2, "")
    assert complaint in err


@pytest.mark.parametrize(
    ("arguments", "path"),
    [
        (["--fix", "rules"], "rules"),
        (["check", "chekc"], "chekc"),
        (["check", "check"], "check"),
        (["verify", "verify"], "verify"),
        (["models"], "models"),
        (["chekc.py"], "chekc.py"),
        (["./chekc"], "chekc"),
    ],
)
def test_a_path_that_is_not_there(gclint: Run, arguments: list[str], path: str) -> None:
    status, _, err = gclint(*arguments)
    assert status == 2
    assert err.startswith(f"{path}: error: no such file or folder\n")


def test_the_rules_are_listed(gclint: Run) -> None:
    assert gclint("rules") == (
        0,
        "GC901  bad-word   Bad is wrong.\n"
        "GC902  ugly-word  Ugly is wrong.\n"
        "GC903  lost-word  Lost is lost.\n",
        "",
    )


@pytest.mark.parametrize("name", ["GC901", "gc901", "bad-word"])
def test_a_rule_is_explained(gclint: Run, name: str) -> None:
    assert gclint("rule", name) == (
        0,
        "# GC901 bad-word\n\n*Level: error. No fix.*\n\nBad is wrong.\n\nMore about it.\n",
        "",
    )


@pytest.mark.parametrize(
    "arguments", [["./rules"], ["check", "rules"], ["--", "rules"], ["--unsafe-fixes", "rules"]]
)
def test_a_folder_may_be_called_like_a_command(gclint: Run, arguments: list[str]) -> None:
    Path("rules").mkdir()
    _write("rules/modeling_x.py", "bad")
    assert gclint(*arguments)[1].startswith("rules/modeling_x.py:4:1: error: GC901")


@pytest.mark.parametrize("word", ["chekc", "help", "verfy"])
def test_a_path_that_is_there_is_not_a_misspelled_command(gclint: Run, word: str) -> None:
    Path(word).mkdir()
    _write(f"{word}/modeling_x.py", "bad")
    assert gclint(word)[1].startswith(f"{word}/modeling_x.py:4:1: error: GC901")


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["."],
        ["--", "modeling_x.py"],
        ["modeling_x.py", "--unsafe-fixes"],
        ["--unsafe-fixes", "modeling_x.py"],
        ["--select", "GC901", "."],
        ["--diff"],
        ["missing_folder"],
        ["--nonsense"],
        ["--fix", "."],
    ],
)
def test_check_is_the_command_that_runs_where_none_is_named(gclint: Run, arguments: list[str]) -> None:
    outcomes = []
    for command in ([], ["check"]):
        _write("modeling_x.py", "bad", "ugly")
        outcomes.append(gclint(*command, *arguments))
    assert outcomes[0] == outcomes[1]
    assert "".join(outcomes[0][1:])


@pytest.mark.parametrize("arguments", [["--version"], ["check", "--version"], [".", "--version"]])
def test_the_version(gclint: Run, arguments: list[str]) -> None:
    assert gclint(*arguments) == (0, f"gclint {__version__}\n", "")


def test_the_help_shows_examples_commands_and_options_in_groups(gclint: Run) -> None:
    status, out, _ = gclint("--help")
    assert status == 0
    assert out.startswith("Usage: gclint [OPTIONS] [PATHS]...\n   or: gclint COMMAND [ARGS]...\n")
    assert re.findall(r"^    gclint .* (?=   )", out, re.MULTILINE)
    headings = re.findall(r"^(\S.*):$", out, re.MULTILINE)
    assert headings == [
        "Commands",
        "Repair",
        "Rules",
        "Files",
        "Versions of transformers",
        "Output",
        "Cache",
        "Changed files only",
        "Baselines",
        "Verify repairs",
        "Other options",
    ]
    listed = re.findall(r"^  (\w+)  +[A-Z]", out[: out.index("Repair:")], re.MULTILINE)
    assert listed == [
        *("check", "explain", "verify", "memory", "server", "rules", "rule", "config", "clean", "completion")
    ]
    assert max(map(len, out.splitlines())) <= 80


@pytest.mark.parametrize(
    ("command", "usage", "words"),
    [
        (["check"], "gclint check [OPTIONS] [PATHS]...", ["--fix", "--version"]),
        (["--fix"], "gclint check [OPTIONS] [PATHS]...", ["--fix"]),
        (["verify"], "gclint verify [OPTIONS] [PATHS]...", ["--shard I/N", "\n  merge  ", "Results:\n"]),
        (["verify", "run"], "gclint verify run [OPTIONS] [PATHS]...", ["--shard I/N"]),
        (["verify", "merge"], "gclint verify merge [OPTIONS] FILES...", ["--write-repro DIR"]),
        (["rule"], "gclint rule [OPTIONS] RULE", ["GC001"]),
        (["rules"], "gclint rules [OPTIONS]", ["List"]),
    ],
)
def test_each_command_has_a_help_text(gclint: Run, command: list[str], usage: str, words: list[str]) -> None:
    status, out, err = gclint(*command, "--help")
    assert (status, err) == (0, "")
    assert out.startswith(f"Usage: {usage}\n")
    assert all(word in out for word in words)


def _commands(command: click.Command) -> Iterator[click.Command]:
    command = command.loaded() if isinstance(command, LazyCommand) else command
    yield command
    for each in command.commands.values() if isinstance(command, click.Group) else ():
        yield from _commands(each)


def test_the_help_says_what_each_option_does() -> None:
    options = [each for command in _commands(command_line) for each in command.params]
    assert "--report" in {name for each in options for name in each.opts}
    assert [each.opts for each in options if isinstance(each, click.Option) and not each.help] == []


# From here on with the real rules.


@pytest.mark.parametrize("word", ["GC001", "Missing-Checkpointing-Layer"])
@pytest.mark.parametrize("options", [["--fix"], ["--fix", "--unsafe-fixes"], ["--select", "GC001", "--fix"]])
def test_what_a_comment_protects_is_not_repaired(real_gclint: Run, word: str, options: list[str]) -> None:
    path = Path("modeling_sample.py")
    protected = BROKEN.replace(
        "class SampleLayer(nn.Module):", f"class SampleLayer(nn.Module):  # gclint: ignore[{word}] as it is"
    )
    path.write_text(protected)
    assert real_gclint(*options) == (0, "No findings in 1 file.\n", "")
    assert path.read_text() == protected


@pytest.mark.parametrize(
    ("options", "table", "is_reported"),
    [
        ([], "", True),
        (["--select", "GC001"], "", True),
        (["--select", "GC0"], "", True),
        (["--select", "GC002"], "", False),
        (["--ignore", "GC000"], "", False),
        (["--ignore", "unused-ignore"], "", False),
        (["--select", "GC001", "--ignore", "gc000"], "", False),
        ([], 'ignore = ["GC000"]', False),
        ([], 'select = ["GC001", "unused-ignore"]', True),
        (["--ignore", "GC0"], "", False),
    ],
)
def test_unused_comments_are_reported_unless_they_are_ignored(
    real_gclint: Run, options: list[str], table: str, is_reported: bool
) -> None:
    Path("modeling_x.py").write_text("# nn.ModuleList\nx = 1  # gclint: ignore[GC001]\n")
    Path("pyproject.toml").write_text(f"[tool.gclint]\n{table}\n")
    status, out, err = real_gclint(*options, "--fail-level", "note")
    assert (status, "GC000" in out, err) == (int(is_reported), is_reported, "")
    assert real_gclint(*options)[0] == 0


def _process(*command: str | Path, folder: Path, **environment: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        command, cwd=folder, env={**os.environ, **environment}, capture_output=True, check=False
    )


def test_a_defect_is_found_shown_and_repaired(tmp_path: Path) -> None:
    path = tmp_path / "modeling_sample.py"
    path.write_text(BROKEN)
    command = (sys.executable, "-m", "gclint")
    assert _process(*command, folder=tmp_path).stdout.startswith(DEFECT.encode())
    shown = _process(*command, "--diff", folder=tmp_path).stdout.decode()
    assert "+class SampleLayer(GradientCheckpointingLayer):\n" in shown
    assert _process(*command, "--fix", folder=tmp_path).returncode == 0
    assert path.read_text() == REPAIRED


_RECORD_IMPORTS = """
import importlib.abc, sys
wanted = []
class Recorder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        wanted.append(name)
sys.meta_path.insert(0, Recorder())
sys.argv[0] = "gclint"
try:
    from gclint.cli.main import main
    main()
except SystemExit:
    print("imported:", *sorted(set(wanted)), file=sys.stderr)
"""


_OWN = {f"gclint.{name}" for name in ("code", "finding", "network", "report.report", "rule", "rules", "run")}


@pytest.mark.drawn(first=3)
@pytest.mark.parametrize(
    ("arguments", "never"),
    [
        (["--help"], {"torch", "transformers", "libcst", "rich", "difflib", *_OWN}),
        (["check", "--help"], {"torch", "transformers", "libcst", "rich", "difflib", *_OWN}),
        (["--version"], {"torch", "transformers", "libcst", "rich", "difflib", *_OWN}),
        (["chekc"], {"torch", "transformers", "libcst", "rich", *_OWN}),
        (["--fix", "modeling_sample.py"], {"torch", "transformers", "rich", "gclint.cli.verify"}),
        (
            ["check", "modeling_sample.py"],
            {"torch", "transformers", "rich", "multiprocessing", "gclint.cli.verify"},
        ),
        (["rule", "GC001"], {"torch", "transformers", "rich"}),
        (["verify", "--help"], {"torch", "transformers", "rich"}),
        (["memory", "--help"], {"torch", "transformers", "rich"}),
    ],
)
def test_what_is_never_imported(tmp_path: Path, arguments: list[str], never: set[str]) -> None:
    (tmp_path / "modeling_sample.py").write_text(BROKEN)
    run = _process(sys.executable, "-c", _RECORD_IMPORTS, *arguments, folder=tmp_path)
    names = run.stderr.decode().partition("imported:")[2].split()
    # Of what lies in a package that is never imported, nothing is either.
    imported = {name.rsplit(".", depth)[0] for name in names for depth in range(name.count(".") + 1)}
    assert "click" in imported
    assert not imported & (never | {"jinja2"})


def test_a_pipe_that_closes_early_is_no_failure(tmp_path: Path) -> None:
    for number in range(200):
        (tmp_path / f"modeling_{number:03}.py").write_text(BROKEN)
    command = f"'{sys.executable}' -m gclint | head -n 1"
    run = _process("sh", "-c", command, folder=tmp_path)
    assert run.stdout.startswith(DEFECT.replace("sample", "000").encode())
    assert run.stderr == b""


@pytest.mark.parametrize("files", [1, 200])
def test_a_pipe_that_is_closed_already_is_no_failure(tmp_path: Path, files: int) -> None:
    for number in range(files):
        (tmp_path / f"modeling_{number:03}.py").write_text(BROKEN)
    nobody, pipe = os.pipe()
    os.close(nobody)
    run = subprocess.run(
        [sys.executable, "-m", "gclint"], cwd=tmp_path, stdout=pipe, stderr=subprocess.PIPE, check=False
    )
    os.close(pipe)
    assert run.stderr == b""


@pytest.mark.skipif(sys.platform != "linux", reason="other systems forbid such names")
def test_names_that_the_terminal_cannot_show(tmp_path: Path) -> None:
    names = [os.fsencode("modeling_\u00e9.py"), b"modeling_\xff.py"]
    for name in names:
        (tmp_path / os.fsdecode(name)).write_text(BROKEN)
    for format_ in ("full", "json"):
        run = _process(
            sys.executable,
            "-m",
            "gclint",
            "--output-format",
            format_,
            folder=tmp_path,
            PYTHONIOENCODING="ascii",
        )
        assert run.stderr == b""
        assert run.returncode == 1
        assert run.stdout.count(b"GC001") == 2
    shown = _process(sys.executable, "-m", "gclint", "--diff", folder=tmp_path, PYTHONIOENCODING="ascii")
    assert shown.returncode == 1
    assert b"Traceback" not in shown.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_a_long_run_shows_its_progress_on_a_terminal_only(tmp_path: Path) -> None:
    import pty

    for number in range(60):
        (tmp_path / f"modeling_{number:02}.py").write_text("# nn.ModuleList\n")
    ours, theirs = pty.openpty()
    run = subprocess.Popen(
        [sys.executable, "-m", "gclint"],
        cwd=tmp_path,
        env={**os.environ, "TERM": "xterm"},
        stdout=subprocess.PIPE,
        stderr=theirs,
    )
    os.close(theirs)
    # Linux ends a terminal that nobody writes to with an error, other systems with nothing.
    shown = b""
    with contextlib.suppress(OSError):
        while data := os.read(ours, 1024):
            shown += data
    os.close(ours)
    out, _ = run.communicate()
    assert out == b"No findings in 60 files.\n"
    assert b"60/60" in shown
    piped = _process(sys.executable, "-m", "gclint", folder=tmp_path)
    assert piped.stderr == b""
