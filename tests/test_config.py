"""``gclint config``: which settings are in force, and where each comes from; and their schema."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest

from gclint.cli.main import gclint as command_line
from gclint.settings import Settings
from gclint.settings.definitions import DEFINITIONS
from tests.sample import BROKEN
from tests.settings_schema import schema
from tests.terminal import Outcome, runner

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Run = Callable[..., Outcome]
_ALL = """\
[tool.gclint]
select = ["GC", "ALL"]
extend-select = ["positional-cache"]
ignore = ["unused-ignore"]
per-file-ignores = { 'src\\legacy\\*' = ["GC001"], "!a b.py" = ["GC003"] }
preview = true
include = ["enc*.py"]
exclude = ["./gen/"]
extend-exclude = ["*_old.py"]
unsafe-fixes = true
target-version = ">=4.53,<5"
baseline = "known.json"
output-format = "concise"

[tool.gclint.rules.keyword-activation]
activation-names = ["memory"]

[tool.gclint.verify.models."A B"]
fields = { "a b" = 1, c = [true, "\\u0007"] }
"""


_CONCISE = ("-q", "--output-format", "concise")


@pytest.fixture
def gclint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.chdir(tmp_path)
    return runner(monkeypatch, capsys)


def test_each_setting_is_shown_with_its_line(gclint: Run) -> None:
    Path("pyproject.toml").write_text(_ALL)
    status, out, err = gclint("config")
    assert (status, err) == (0, "")
    shown = tomllib.loads(out)
    assert set(shown) == {*(each.name for each in DEFINITIONS), "rules", "verify"} - {"library"}
    assert shown["per-file-ignores"] == {"src/legacy/*": ["GC001"], "!a b.py": ["GC003"]}
    assert shown["target-version"] == ">=4.53,<5"
    assert shown["verify"] == tomllib.loads(_ALL)["tool"]["gclint"]["verify"]
    for number, line in enumerate(_ALL.splitlines(), start=1):
        name, equals, _ = line.partition(" = ")
        if equals:
            (found,) = (each for each in out.splitlines() if each.startswith(f"{name} = "))
            assert found.endswith(f"  # pyproject.toml:{number}")


def test_what_is_shown_gives_the_same_settings(gclint: Run) -> None:
    Path("pyproject.toml").write_text(_ALL)
    Path("gclint.toml").write_text(gclint("config").out)
    one = json.loads(gclint("config", "--output-format", "json").out)["settings"]
    other = json.loads(gclint("config", "--output-format", "json", "--config", "gclint.toml").out)["settings"]
    assert {name: each["value"] for name, each in one.items()} == {
        name: each["value"] for name, each in other.items()
    }


def test_defaults_and_the_command_line_are_told_apart(gclint: Run) -> None:
    Path("pyproject.toml").write_text("[tool.gclint]\nignore = ['GC003']\ninclude = ['a.py']\n")
    out = gclint("config", "--ignore", "GC001,gc002", "--include", "b.py", "--exclude", "x/y").out
    assert 'select = ["ALL"]  # default\n' in out
    assert 'ignore = ["GC001", "gc002"]  # command line\n' in out
    assert 'include = ["a.py", "b.py"]  # command line\n' in out
    assert f'exclude = ["{Path.cwd().as_posix()}/x/y"]  # command line\n' in out
    found = json.loads(gclint("config", "--ignore", "GC001", "--output-format", "json").out)
    assert found["file"] == str(Path.cwd() / "pyproject.toml")
    assert found["settings"]["ignore"] == {"value": ["GC001"], "origin": {"kind": "command line"}}
    assert found["settings"]["include"]["origin"] == {
        "kind": "file",
        "file": str(Path.cwd() / "pyproject.toml"),
        "line": 3,
        "column": 1,
    }
    assert found["settings"]["preview"]["origin"] == {"kind": "default"}


def test_the_defaults_of_the_definitions_are_those_of_the_settings() -> None:
    for each in DEFINITIONS:
        value = None if each.default is None else each.kind.convert(each.default, Path())
        assert getattr(Settings(), each.field) == value, each.name


def test_a_file_of_its_own_counts_from_its_folder(gclint: Run) -> None:
    Path("conf").mkdir()
    Path("models").mkdir()
    Path("models/modeling_a.py").write_text(BROKEN)
    Path("models/modeling_b.py").write_text(BROKEN)
    Path("pyproject.toml").write_text("[tool.gclint]\nselect = ['GC002']\n")
    Path("conf/gclint.toml").write_text("exclude = ['modeling_a.py']\nbaseline = 'known.json'\n")
    assert "conf/known.json" in gclint("--config", "conf/gclint.toml", "models").err
    Path("conf/gclint.toml").write_text("exclude = ['modeling_a.py']\n")
    out = gclint("--config", "conf/gclint.toml", "models").out
    assert out.startswith("models/modeling_b.py:")
    Path("conf/other.toml").write_text("[tool.gclint]\nexclude = ['modeling_b.py']\n")
    assert gclint("--config", "conf/other.toml", "models").out.startswith("models/modeling_a.py:")
    Path("conf/gclint.toml").write_text("exclude = ['../models/modeling_a.py']\n")
    assert gclint("--config", "conf/gclint.toml", "models").out.startswith("models/modeling_b.py:")


def test_settings_for_nothing_are_an_error(gclint: Run) -> None:
    result = gclint("config", "missing")
    assert (result.status, result.out) == (2, "")
    assert result.err == "Error: missing: no such file or folder\n"


def test_the_old_key_works_with_a_note(gclint: Run) -> None:
    Path("modeling_x.py").write_text("")
    Path("pyproject.toml").write_text("[tool.gclint]\nactivation-names = ['memory']\n")
    status, out, err = gclint("config")
    assert status == 0
    assert '[rules.keyword-activation]\nactivation-names = ["memory"]  # pyproject.toml:2\n' in out
    assert err.endswith(
        "pyproject.toml:2:1: note: activation-names has moved to [tool.gclint.rules.keyword-activation]; "
        "it still works here\n"
    )
    assert "note: " in gclint().err
    assert gclint("-q").err == ""


def test_a_setting_without_effect_is_named_once_and_refuses_no_file(gclint: Run) -> None:
    Path("modeling_x.py").write_text("")
    for value in ("'..'", "1"):
        Path("pyproject.toml").write_text(f"[tool.gclint]\ncache-dir = {value}\n")
        status, out, err = gclint()
        assert (status, out) == (0, "No findings in 1 file.\n")
        assert err == (
            "pyproject.toml:2:1: note: cache-dir has no effect any more; use the option --cache-dir\n"
        ).replace("pyproject.toml", str(Path("pyproject.toml").absolute()))
        assert "cache-dir" not in gclint("config").out
    assert gclint("-q").err == ""


def test_the_schema_is_valid_and_takes_what_is_right(gclint: Run) -> None:
    own = json.loads(gclint("config", "--schema").out)
    assert own == schema()
    jsonschema.Draft202012Validator.check_schema(own)
    validator = jsonschema.Draft202012Validator(own)
    validator.validate(tomllib.loads(_ALL)["tool"]["gclint"])
    for each in DEFINITIONS:
        validator.validate(tomllib.loads(f"{each.name} = {each.example}"))
        assert each.default is None or validator.is_valid({each.name: each.default})


@pytest.mark.parametrize(
    "text",
    [
        "slect = []",
        "select = 'GC001'",
        "select = ['']",
        "exclude = [1]",
        "preview = 1",
        "output-format = 'xml'",
        "baseline = ''",
        "library = ''",
        "target-version = ''",
        "per-file-ignores = { a = 'GC001' }",
        "rules.GC003.activation-names = []",
        "rules.keyword-activation.x = []",
        "verify.models.A = {}",
        "verify.models.A.x = 1",
    ],
)
def test_the_schema_refuses_what_the_reader_refuses(gclint: Run, text: str) -> None:
    assert not jsonschema.Draft202012Validator(schema()).is_valid(tomllib.loads(text))
    Path("gclint.toml").write_text(f"{text}\n")
    assert gclint("config", "--config", "gclint.toml").status == 2


def test_every_setting_has_an_option_that_check_has_too() -> None:
    check = command_line.commands["check"]
    names = {name for option in check.params for name in (*option.opts, *option.secondary_opts)}
    for each in DEFINITIONS:
        assert set(each.option.split("/")) <= names


def test_verbose_says_what_is_read_and_quiet_prints_findings_only(gclint: Run) -> None:
    for name in ("gen", ".hidden", "env", "src"):
        Path(name).mkdir()
        Path(name, "modeling_x.py").write_text(BROKEN)
    Path("env/pyvenv.cfg").touch()
    Path("pyproject.toml").write_text("[tool.gclint]\nexclude = ['gen']\n")
    loud = gclint("-v")
    assert loud.err.splitlines() == [
        "Settings: pyproject.toml",
        "Skipped .hidden: it is a hidden folder",
        "Skipped env: it is a virtual environment",
        "Skipped gen: the settings exclude 'gen'",
        "Checking 1 file.",
    ]
    quiet, usual = gclint("-q"), gclint()
    assert (quiet.status, quiet.err) == (1, "")
    assert loud.out == usual.out
    assert usual.out.startswith(quiet.out)
    assert len(usual.out.splitlines()) == len(quiet.out.splitlines()) + 2
    assert "error: " in gclint("-q", "missing.py").err
    assert gclint("-q", "--diff").err == ""
    assert gclint("-q", "--write-baseline", "known.json") == (0, "", "")
    assert gclint("-q", "--baseline", "known.json") == (0, "", "")


def test_what_is_excluded_is_left_out_even_if_it_is_given(gclint: Run) -> None:
    Path("src/gen").mkdir(parents=True)
    for name in ("src/modeling_a.py", "src/gen/modeling_b.py"):
        Path(name).write_text(BROKEN)

    def checked(
        *arguments: str, paths: tuple[str, ...] = ("src/modeling_a.py", "src/gen/modeling_b.py")
    ) -> int:
        return len(
            {line.partition(":")[0] for line in gclint(*arguments, *_CONCISE, *paths).out.splitlines()}
        )

    assert checked() == 2
    assert checked("--exclude", "src/gen") == 1
    assert checked("--exclude", "src\\gen\\*") == 1
    assert checked("--exclude", "**/gen/") == 1
    assert checked("--exclude", f"{Path.cwd()}/src/gen") == 1
    assert checked("--extend-exclude", "modeling_?.py") == 0
    Path("pyproject.toml").write_text("[tool.gclint]\nexclude = ['gen']\n")
    assert checked() == 1
    assert checked("--exclude", "modeling_a.py") == 1
    assert checked("--extend-exclude", "modeling_a.py") == 0
    assert checked("--exclude", "modeling_a.py", paths=("src",)) == 1


def test_patterns_of_the_command_line_count_from_the_working_directory(
    gclint: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("[a]/gen").mkdir(parents=True)
    Path("[a]/gen/modeling_x.py").write_text(BROKEN)
    Path("pyproject.toml").write_text("[tool.gclint]\n")
    monkeypatch.chdir("[a]")
    assert gclint("--exclude", "gen/*", ".").out == "No findings in 0 files.\n"
    assert gclint("--exclude", "[[]a]/gen", ".").status == 1
    assert gclint("--exclude", "../*/gen", ".").out == "No findings in 0 files.\n"


def test_rules_are_ignored_by_file(gclint: Run) -> None:
    Path("legacy").mkdir()
    for name in ("modeling_a.py", "legacy/modeling_b.py"):
        Path(name).write_text(BROKEN)

    def found(*arguments: str) -> set[str]:
        return {line.partition(":")[0] for line in gclint(*_CONCISE, *arguments).out.splitlines()}

    both = {"modeling_a.py", "legacy/modeling_b.py"}
    assert found() == both
    assert found("--per-file-ignores", "legacy/*:ALL") == {"modeling_a.py"}
    assert found("--per-file-ignores", "legacy:GC001") == {"modeling_a.py"}
    assert found("--per-file-ignores", "!legacy:missing-checkpointing-layer") == {"legacy/modeling_b.py"}
    assert found("--per-file-ignores", "*.py:GC002,*_b.py:GC0") == {"modeling_a.py"}
    Path("pyproject.toml").write_text('[tool.gclint.per-file-ignores]\n"*_a.py" = ["GC001"]\n')
    assert found() == {"legacy/modeling_b.py"}
    assert found("--fix") == set()
    assert Path("modeling_a.py").read_text() == BROKEN
    assert Path("legacy/modeling_b.py").read_text() != BROKEN


def test_a_comment_for_a_rule_that_is_ignored_there_is_not_judged(gclint: Run) -> None:
    Path("modeling_a.py").write_text(
        "from torch import nn\n\nlayers = nn.ModuleList()  # gclint: ignore[GC001]\n"
    )
    assert "GC000" in gclint().out
    assert gclint("--per-file-ignores", "*.py:GC001").status == 0


def test_settings_of_a_file_that_the_command_line_can_add_to(gclint: Run) -> None:
    Path("modeling_a.py").write_text(BROKEN)
    Path("pyproject.toml").write_text("[tool.gclint]\nselect = []\noutput-format = 'json'\n")
    assert gclint().out == "[]\n"
    assert json.loads(gclint("--extend-select", "GC001").out)[0]["code"] == "GC001"
    assert gclint("--extend-select", "GC001", "--output-format", "concise").out.startswith("modeling_a.py:")


@pytest.mark.parametrize(
    "name", ["nb.ipynb", "config.json", "a.TOML", "x.tsv", "picture.png", "weights.safetensors"]
)
def test_what_is_not_python_is_refused_by_its_name(gclint: Run, name: str) -> None:
    Path(name).write_text("{}")
    status, out, err = gclint(name)
    assert (status, out) == (2, "Nothing was checked.\n")
    assert err.startswith(f"{name}: error: ")
    Path("modeling_x.py").write_text("")
    assert gclint("--include", f"*{Path(name).suffix}").status == 2
    assert gclint("--exclude", name, name).status == 0


@pytest.mark.wheel
def test_the_schema_lies_in_the_package() -> None:
    code = (
        "from importlib.resources import files; "
        "print(files('gclint.settings').joinpath('schema.json').read_text())"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert json.loads(found) == schema()
