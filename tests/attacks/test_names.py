"""Names and texts that a repository can supply, in everything that gclint prints and writes."""

from __future__ import annotations

import ast
import io
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote_to_bytes
from xml.etree import ElementTree

import pytest
from markdown_it import MarkdownIt
from rich.console import Console

from gclint.code.paths import as_argument, printable
from gclint.report.diff import write_diff
from gclint.report.formats import FORMATS
from gclint.report.markdown import markdown
from gclint.report.page.excerpts import Sources
from gclint.report.report import Report
from gclint.report.run_progress import RunProgress
from gclint.verify import process
from gclint.verify.repro import script
from gclint.verify.run import ReceivedMessage
from gclint.verify.sources import digest, target_of
from gclint.verify.worker.protocol import ClassResult, Failure, Progress, Recipe, SourcePlace
from tests.environment import PROJECT
from tests.terminal import Outcome, Terminal, runner
from tests.toys import NO_FIX
from tests.verify import stand_in
from tests.verify.command_line import MODEL, failing

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="others do not allow such names")
Run = Callable[..., Outcome]

_MODEL = """\
import torch
from torch import nn
from transformers import PreTrainedModel


class ToyLayer(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.attention = nn.MultiheadAttention(config.width, 1)
        self.mlp = nn.Linear(config.width, config.width)

    def forward(self, hidden_states):
        return hidden_states + self.mlp(self.attention(hidden_states)[0])


class ToyModel(PreTrainedModel):
    supports_gradient_checkpointing = True

    def __init__(self, config):
        super().__init__(config)
        self.layers = nn.ModuleList([ToyLayer(config) for _ in range(4)])
        self.post_init()

    def forward(self, hidden_states):
        for layer in self.layers:
            hidden_states = layer(hidden_states)
        return hidden_states
"""
_STEMS = (
    "\n::error file=x::owned",
    "\r##[error]owned",
    "\r\n::stop-commands::x",
    "\x1b]8;;file:x\x07link\x1b]8;;\x07",
    "\x9b31m\x7f\x00".rstrip("\0"),
    "\u202eyp.x\u2066",
    "\u2028::error::a\u2029b\x85c\u200b",
    "%0A::error::owned",
    "##vso[task.setvariable variable=x]owned",
    "[bold]x[link=file:x]y[red]",
    "<img src=x onerror=alert(1)>",
    "]]><!--&amp;\"'",
    "`|*_[x](y)_*|`",
    '{"a": 1}, {{ 7 * 7 }}\\',
    "$(id);`id`&& id",
    "\ufffe\U0001f600",
    os.fsdecode(b"\xff\xc3"),
    "é" * 100,
)
_FOLDERS = ("::error title=x::owned", " ::warning::owned", "--fix", "##[group]owned")
_IMPORT = "from transformers import PreTrainedModel\n"
_TEXTS = {
    # These lines are in the context of what a fix changes, and the comment is in a changed line.
    "modeling_context.py": _MODEL.replace(_IMPORT, f'{_IMPORT}x = """\n    ::error::owned\n"""\n'),
    "modeling_return.py": _MODEL.replace(_IMPORT, f'{_IMPORT}x = """\r::error::owned\r"""\n'),
    "modeling_comment.py": _MODEL.replace("(nn.Module):", "(nn.Module):  # ##[error]owned \x1b[31m", 1),
    "modeling_bidi.py": _MODEL.replace("ToyLayer", "שכבה\u0660"),
    "modeling_broken.py": "x = (\x1b[31m\n",
    "modeling_ignored.py": f"{_MODEL}x = 1  # gclint: ignore[GC001, \x1b[31m, ##[error]x]\n",
}
_OWN = {"github": re.compile(r"::(?:error|warning|notice) [^:\s][^\n]*?::")}
"""The beginning of a line that is the format's own command."""


def _hostile(folder: Path) -> list[Path]:
    """Fill a folder, and return the files in it with a finding that has a safe fix."""
    paths = [folder / f"modeling_{stem}.py" for stem in _STEMS]
    for name in _FOLDERS:
        (folder / name).mkdir()
        paths.append(folder / name / "modeling_x.py")
    for path in paths:
        path.write_text(_MODEL, encoding="utf-8")
    for name, text in _TEXTS.items():
        (folder / name).write_bytes(text.encode())
        if name != "modeling_broken.py":
            paths.append(folder / name)
    return paths


def _require_inert(text: str, own: re.Pattern[str] | None = None) -> None:
    """Check that neither a terminal nor a CI system acts on a text."""
    text.encode("utf-8")
    assert [each for each in text if not (each.isprintable() or each in "\n\t")] == []
    for line in text.split("\n"):
        if own is not None and own.match(line):
            continue
        assert not line.lstrip().startswith("::"), line
        assert not re.search(r"##\w*\[", line), line


@pytest.fixture
def gclint(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    """Run gclint in an empty folder, with a stand-in in place of the worker that runs models."""
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setattr(process, "_PROGRAM", Path(stand_in.__file__))
    monkeypatch.setenv("PYTHONPATH", str(PROJECT))
    return runner(monkeypatch, capsys)


def test_every_format_holds_hostile_names(gclint: Run) -> None:
    names = {str(path) for path in _hostile(Path())}
    outputs = {name: gclint("--output-format", name, ".") for name in FORMATS}
    for name, outcome in outputs.items():
        assert outcome.status == 2
        _require_inert(outcome.out, _OWN.get(name))
        _require_inert(outcome.err)
    document = json.loads(outputs["json"].out)
    found = [each for each in document if each["code"] == "GC001"]
    assert {each["filename"] for each in found} == names
    assert [each["filename"] for each in document if each["code"] is None] == ["modeling_broken.py"]
    (run,) = json.loads(outputs["sarif"].out)["runs"]
    uris = [each["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for each in run["results"]]
    assert {os.fsdecode(unquote_to_bytes(uri)) for uri in uris} == names
    assert len(json.loads(outputs["gitlab"].out)) == len(document)
    suites = ElementTree.fromstring(outputs["junit"].out)
    assert suites.attrib["tests"] == str(len(suites.findall(".//testcase"))) == str(len(document))
    # GitHub shows ten annotations, of which a line is the notice.
    assert len(outputs["github"].out.splitlines()) == len(document) + 1
    assert len(outputs["concise"].out.splitlines()) == len(document) - 1 + 2


@pytest.mark.parametrize(
    "arguments",
    [
        ["-v", "--statistics", "."],
        ["--diff", "--unsafe-fixes", "--show-fixes", "."],
        ["--write-baseline", "::error::base\n##[error].json", "."],
        ["--output-file", "json:\n::error::out\x1b.json", "--exclude", "##[error]*", "-v", "."],
        ["no\n::error::such", "##[error]\x1b"],
        ["--select", "\n::error::\x1b", "."],
        ["--unknown\n::error::x\x1b", "."],
        ["--baseline", "\n::error::none", "."],
        ["explain", "modeling_\n::error file=x::owned.py:6:1"],
        ["explain", "modeling_comment.py:6"],
        ["explain", "--output-format", "json", "modeling_comment.py:6"],
        ["explain", "modeling_context.py:2", "."],
        ["config", "--exclude", "\x1b\u202e##[error]", "::error title=x::owned"],
        ["config", "--output-format", "json", "--exclude", "\x1b\u202e##[error]", "."],
        ["verify", "."],
        ["verify", "--output-format", "junit", "."],
    ],
    ids=lambda arguments: "-".join(re.findall(r"\w+", " ".join(arguments)))[:40],
)
def test_what_commands_print_is_inert(gclint: Run, arguments: list[str]) -> None:
    _hostile(Path())
    _, out, err = gclint(*arguments)
    _require_inert(out)
    _require_inert(err)


def test_a_terminal_gets_no_sequence_from_files(gclint: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    _hostile(Path())
    monkeypatch.setenv("NO_COLOR", "1")
    for arguments in ([], ["--diff", "--unsafe-fixes"], ["verify"]):
        streams = [Terminal(), Terminal()]
        monkeypatch.setattr(sys, "stdout", streams[0])
        monkeypatch.setattr(sys, "stderr", streams[1])
        gclint(*arguments)
        _require_inert(streams[0].getvalue())
        # The bar that shows progress moves the cursor.
        _require_inert(re.sub(r"\x1b\[\??[\d;]*[A-Za-z]|\r", "", streams[1].getvalue()))


def test_a_diff_in_a_log_can_be_applied_but_not_obeyed(gclint: Run, tmp_path: Path) -> None:
    paths = _hostile(Path())
    status, out, err = gclint("--diff", ".")
    assert status == 2
    withheld = {"modeling_context.py", "modeling_return.py", "modeling_comment.py"}
    assert {line.partition(":")[0] for line in err.splitlines() if "is not printed" in line} == withheld
    subprocess.run(["git", "init", "-q"], check=True)
    subprocess.run(["git", "apply", "-p0", "-"], input=os.fsencode(out), check=True)
    for path in paths:
        changed = "GradientCheckpointingLayer" in path.read_text(encoding="utf-8")
        assert changed == (path.name not in withheld), path
    # A file is not a log, so it gets the bytes of the code.
    with (tmp_path / "patch").open("w+", encoding="utf-8", newline="") as stream:
        text = {Path("modeling_x.py"): ("x = 1\n", "x = 1  # ##[error]\x1b\n")}
        assert write_diff(stream, text) == []
        stream.seek(0)
        assert "+x = 1  # ##[error]\x1b\n" in stream.read()
    assert write_diff(io.StringIO(), text) != []


def test_every_file_can_be_fixed_and_is_listed(gclint: Run) -> None:
    paths = _hostile(Path())
    _, out, err = gclint("--fix", "--show-fixes", "--summary", "summary.md", ".")
    _require_inert(out)
    _require_inert(err)
    assert all("GradientCheckpointingLayer" in path.read_text(encoding="utf-8") for path in paths)
    summary = Path("summary.md").read_text(encoding="utf-8")
    _require_inert(summary)
    tokens = MarkdownIt("commonmark", {"html": True}).enable("table").parse(summary)
    inline = [child for token in tokens for child in token.children or ()]
    assert {each.type for each in inline} <= {"text", "code_inline", "softbreak"}
    assert not {"html_block", "fence", "code_block"} & {token.type for token in tokens}


def test_messages_are_no_markdown(tmp_path: Path) -> None:
    from gclint.code.project import Project
    from gclint.finding import Finding, Problem
    from gclint.settings import Settings

    path = tmp_path / "modeling_x.py"
    path.write_text("x\n")
    message = "`a` *b* [c](d) <e> ![f](g) __h__\n\n# i\n- j | k"
    finding = Finding("GC001", "some-rule", message, path, 0, 1, "`[x](y)`", NO_FIX)
    report = Report(Project(Settings(), []), (finding,), (Problem(path, f"{message} `"),))
    tokens = MarkdownIt("commonmark").enable("table").parse(markdown(report))
    inline = {child.type for token in tokens for child in token.children or ()}
    assert inline <= {"text", "code_inline", "softbreak"}
    assert [token.tag for token in tokens if token.type == "heading_open"] == ["h2", "h3", "h3"]


def test_settings_are_toml_whatever_they_hold(gclint: Run) -> None:
    hostile = '\x1b[31m\u202e\x85\u2028\x7f"##[error]\n::error::x\U000e0001'
    quoted = "".join(f"\\U{ord(each):08x}" for each in hostile)
    Path("gclint.toml").write_text(f'exclude = ["{quoted}"]\n', encoding="utf-8")
    for name in ("full", "json"):
        status, out, _ = gclint("config", "--config", "gclint.toml", "--output-format", name)
        assert status == 0
        _require_inert(out)
        if name == "json":
            found = json.loads(out)["settings"]["exclude"]["value"]
        else:
            found = tomllib.loads(out)["exclude"]
        assert found[-1].endswith(hostile)


@pytest.mark.parametrize(
    "text",
    [
        "[tool.gclint]\n'\\u001b[31m\n::error::x' = 1\n",
        "[tool.gclint]\noutput-format = '##[error]x\x7f'\n",
        '[tool.gclint]\nselect = ["\\u001b[31m\\n::error::x"]\n',
        '[tool.gclint.rules."\\n::error::x"]\n',
        '[tool.gclint]\nexclude = ["\\n::error::x',  # Not TOML.
        '[tool.gclint]\nlibrary = "\\n::error::x\\u001b"\n',
    ],
)
def test_errors_in_settings_are_inert(gclint: Run, text: str) -> None:
    Path("pyproject.toml").write_text(text, encoding="utf-8")
    Path("modeling_x.py").write_text("")
    status, out, err = gclint(".")
    assert status == 2
    _require_inert(out)
    _require_inert(err)


def test_a_baseline_is_inert(gclint: Run) -> None:
    entry = {
        "file": "\n::error::x\x1b",
        "rule": "GC001",
        "symbol": "##[error]\u202e",
        "hash": "x",
        "count": 1,
    }
    Path("base.json").write_text(json.dumps({"version": 1, "findings": [{**entry, "count": 1}]}))
    Path("modeling_x.py").write_text("")
    _, out, err = gclint("--baseline", "base.json", ".")
    assert "no longer occurs" in err
    for text in (out, err):
        _require_inert(text)


# -- what runs say


def _result(source: Path, name: str, text: str = "") -> ClassResult:
    recipe = Recipe("collections.OrderedDict", {}, {"input_ids": "torch.tensor([[1]])"})
    failure = Failure("error", "reentrant", "default", text, (), ())
    return ClassResult(str(source), name, "failed", failures=(failure,), recipes=(recipe,))


@pytest.mark.parametrize("name", ["full", "concise", "json", "github", "junit"])
def test_what_a_model_raises_is_inert(gclint: Run, name: str) -> None:
    text = "\n::error::owned\r\n##[error]owned \x1b[31m\u202e ]]> [/bold] \ud800 <x>"
    broken = failing("B").replace('"the gradients of 8 parameters are lost"', ascii(text))
    assert text.isprintable() is False and "owned" in broken
    for stem in ("\n::error::x", "y"):
        head = "from dataclasses import replace\nfrom gclint.verify.worker.protocol import *\n"
        Path(f"modeling_{stem}.py").write_text(head + broken + MODEL)
    status, out, err = gclint("verify", "--output-format", name, "--write-repro", "repro")
    assert status == 1
    _require_inert(out, _OWN.get(name))
    _require_inert(err)
    if name == "json":
        assert [each["source"] for each in json.loads(out)["results"]]
    elif name == "junit":
        assert len(ElementTree.fromstring(out).findall(".//testcase")) >= 2
    scripts = sorted(Path("repro").iterdir())
    assert len(scripts) == 2
    for path in scripts:
        ast.parse(path.read_text(encoding="utf-8"))


def test_a_repro_script_has_names_of_files_as_strings(tmp_path: Path) -> None:
    source = tmp_path / "modeling_x;import os;os.abort()#.py"
    source.write_text("")
    result = _result(source, "Model", '"""\nimport os; os.abort()\n\\')
    tree = ast.parse(script(result, result.failures[0], result.recipes[0]))
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    assert "os" not in imported


def test_what_is_running_takes_no_name_for_markup() -> None:
    stream = io.StringIO()
    console = Console(file=stream, width=200, force_terminal=True, color_system=None)
    progress = RunProgress(console)
    begun = Progress("modeling_x.py", "[bold]\x1b[31m", "default", "reentrant", "[red][link=x]")
    progress.take(ReceivedMessage(begun, None))
    progress.note("[bold]\x1b[31m")
    console.print(progress)
    assert stream.getvalue().count("[bold]\\x1b[31m") == 2
    assert "[red][link=x]" in stream.getvalue()
    _require_inert(stream.getvalue())


def test_a_page_shows_lines_of_the_code_only(tmp_path: Path) -> None:
    model, secret = tmp_path / "model/modeling_x.py", tmp_path / "secret.py"
    for path in (model, secret, model.with_name("helper.py"), model.with_name("notes.txt")):
        path.parent.mkdir(exist_ok=True)
        path.write_text("password = 1\n")
    link = model.with_name("linked.py")
    link.symlink_to(secret)
    sources = Sources({str(model): digest(target_of(model).source, {})}, {})
    shown = {
        each: bool(sources.excerpt(SourcePlace(str(each), 1, 1)).lines) for each in model.parent.iterdir()
    }
    assert {each.name for each, is_shown in shown.items() if is_shown} == {"modeling_x.py", "helper.py"}
    assert not sources.excerpt(SourcePlace(str(secret), 1, 1)).lines


def test_a_path_in_a_command_is_one_argument() -> None:
    for stem in _STEMS:
        (only,) = shlex.split(as_argument(f"modeling_{stem}.py"))
        assert only == printable(f"modeling_{stem}.py")
    assert as_argument("--fix") == "./--fix"
    assert as_argument("src/modeling_x.py") == "src/modeling_x.py"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("::error::x", r"\x3a:error::x"),
        ("  ::error::x", r"  \x3a:error::x"),
        ("a ##[error]x", r"a \x23#[error]x"),
        ("###[error]x", r"#\x23#[error]x"),
        ("##vso[x]", r"\x23#vso[x]"),
        ("## [x](y)", "## [x](y)"),
        ("tests/test_x.py::test_y", "tests/test_x.py::test_y"),
        ("x[..., ::2]", "x[..., ::2]"),
    ],
)
def test_what_is_a_command_is_escaped(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_documents_of_any_other_kind_are_escaped_too(gclint: Run) -> None:
    Path("config.json").write_text(json.dumps({"model_type": "\n::error::x\x1b", "auto_map": [1]}))
    for arguments in (["memory", "config.json"], ["memory", "\n::error::x\x1b"]):
        status, out, err = gclint(*arguments)
        assert status == 2
        _require_inert(out)
        _require_inert(err)
