"""The output formats, over findings made by hand in real files."""

from __future__ import annotations

import io
import json
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gclint.code.project import Project
from gclint.finding import Applicability, Edit, Evidence, Finding, Fix, Position, Problem, Refusal
from gclint.report import diff, full
from gclint.report.findings import remarks
from gclint.report.formats import written_as
from gclint.report.report import Repairs, Report
from gclint.settings import Settings
from tests.terminal import Terminal
from tests.toys import NO_FIX

_SOURCE = "import torch\n\n\nclass Bl\u00f6ck(nn.Module):\n\tpass\n"


@pytest.fixture
def project() -> Project:
    return Project(Settings(), [])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "modeling_x.py"
    path.write_text(_SOURCE, encoding="utf-8")
    return path


def _finding(
    path: Path, at: str = "Bl\u00f6ck", code: str = "GC001", remedy: Fix | Refusal = NO_FIX
) -> Finding:
    start = _SOURCE.index(at)
    return Finding(code, "some-rule", "goes wrong", path, start, start + len(at), "Bl\u00f6ck", remedy)


def _fix(path: Path, applicability: Applicability = Applicability.SAFE, reason: str | None = None) -> Fix:
    start = _SOURCE.index("nn.Module")
    return Fix("change the base", (Edit(path, start, start + 9, "Base"),), applicability, reason)


def _text(project: Project, *findings: Finding, unsafe: bool = False) -> str:
    """Return what is written of findings, without the summary."""
    return _written("full", Report(project, findings, unsafe=unsafe)).rpartition("Found")[0]


def _json(project: Project, *findings: Finding, problems: tuple[Problem, ...] = ()) -> Any:
    return json.loads(_written("json", Report(project, findings, problems)))


def _written(name: str, report: Report) -> str:
    stream = io.StringIO()
    written_as(name)(report, stream)
    return stream.getvalue()


def _statistics(name: str, report: Report) -> str:
    stream = io.StringIO()
    written_as(name, statistics=True)(report, stream)
    return stream.getvalue()


def test_what_a_run_says_stands_behind_the_message(project: Project, path: Path) -> None:
    finding = replace(_finding(path, remedy=_fix(path)), evidence=Evidence.CONFIRMED)
    assert (
        _text(project, finding)
        == f"{path}:4:7: error: GC001 goes wrong (confirmed by run) [*]\n    help: change the base\n"
    )
    found = _json(project, finding, _finding(path))
    assert [each["evidence"] for each in found] == ["confirmed by run", None]


def test_a_terminal_gets_the_source_line_and_a_caret(
    project: Project, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "300")
    stream = Terminal()
    finding = _finding(path, remedy=_fix(path, Applicability.UNSAFE, "callers break [sic]"))
    full.write(Report(project, (finding,), unsafe=True), stream)
    assert _without_styles(stream.getvalue()).splitlines()[:5] == [
        f"{path}:4:7: error: GC001 goes wrong [*]",
        "    4 | class Bl\u00f6ck(nn.Module):",
        "      |       ^^^^^",
        "      = unsafe fix: callers break [sic]",
        "      = help: change the base",
    ]


def test_the_caret_stands_under_the_code_whatever_stands_before_it(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "300")
    path = tmp_path / "modeling_x.py"
    path.write_bytes("\t\x0c\x1b '\u5c42', call(\n    y)\n".encode())
    start = path.read_text(encoding="utf-8").index("call")
    finding = Finding("GC003", "some-rule", "goes wrong", path, start, start + 12, "X", NO_FIX)
    stream = Terminal()
    full.write(Report(project, (finding,), unsafe=False), stream)
    source, caret = _without_styles(stream.getvalue()).splitlines()[1:3]
    assert source == "    1 |     '\u5c42', call("
    # The ideograph is two columns wide; the span ends with its first line.
    assert caret == "      |" + " " * 11 + "^^^^^"


def test_a_terminal_gets_colours(project: Project, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    stream = Terminal()
    full.write(Report(project, (_finding(path),)), stream)
    assert "\x1b[1;31merror: GC001" in stream.getvalue()


_LONG = "`hidden_states` is passed to `OtterLayer` by keyword, so it receives no gradient"


def _shown(stream: io.StringIO, project: Project, *findings: Finding) -> str:
    full.write(Report(project, findings), stream)
    return stream.getvalue()


def test_a_terminal_wraps_long_text_at_words_and_a_pipe_does_not(
    project: Project, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.chdir(path.parent)
    finding = replace(_finding(Path(path.name), remedy=Refusal(_LONG)), message=_LONG)
    shown = _shown(Terminal(), project, finding)
    assert shown.splitlines() == [
        "modeling_x.py:4:7: error: GC001 `hidden_states` is passed to",
        "    `OtterLayer` by keyword, so it receives no gradient",
        "    4 | class Bl\u00f6ck(nn.Module):",
        "      |       ^^^^^",
        "      = no fix: `hidden_states` is passed to `OtterLayer` by",
        "        keyword, so it receives no gradient",
        "",
        "Found 1 finding: 1 error (none fixable).",
    ]
    piped = _shown(io.StringIO(), project, finding).splitlines()
    assert piped[:2] == [f"modeling_x.py:4:7: error: GC001 {_LONG}", f"    no fix: {_LONG}"]


def test_a_long_source_line_is_cut_where_the_terminal_would_wrap_it(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "40")
    path = tmp_path / "modeling_x.py"
    path.write_text(f"layer({'a' * 100})\n", encoding="utf-8")
    finding = Finding("GC003", "some-rule", "goes wrong", path, 6, 106, "X", NO_FIX)
    lines = _shown(Terminal(), project, finding).splitlines()
    source = next(number for number, line in enumerate(lines) if "layer(" in line)
    assert lines[source] == "    1 | layer(" + "a" * 25 + "\u2026"
    assert lines[source + 1] == "      |       " + "^" * 26


@pytest.mark.parametrize(
    ("variables", "on_terminal", "in_pipe"),
    [
        ({"TERM": "xterm"}, True, False),
        ({"TERM": "dumb"}, False, False),
        ({"TERM": "xterm", "NO_COLOR": "1"}, False, False),
        ({"TERM": "xterm", "FORCE_COLOR": "1"}, True, True),
        ({"TERM": "dumb", "FORCE_COLOR": "1"}, True, True),
        ({"TERM": "xterm", "NO_COLOR": "1", "FORCE_COLOR": "1"}, False, False),
        ({"TERM": "xterm", "NO_COLOR": "", "FORCE_COLOR": ""}, True, False),
    ],
)
def test_colours_are_there_where_they_are_wanted(
    project: Project,
    path: Path,
    monkeypatch: pytest.MonkeyPatch,
    variables: dict[str, str],
    *,
    on_terminal: bool,
    in_pipe: bool,
) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert ("\x1b" in _shown(Terminal(), project, _finding(path))) == on_terminal
    pipe, file = io.StringIO(), io.StringIO()
    monkeypatch.setattr(sys, "stdout", pipe)
    coloured = _shown(pipe, project, _finding(path))
    assert ("\x1b" in coloured) == in_pipe
    plain = _shown(file, project, _finding(path))
    assert "\x1b" not in plain, "a report in a file has no colours"
    assert _without_styles(coloured) == plain


def test_problems_have_their_place() -> None:
    stream = io.StringIO()
    path = Path("modeling_x.py")
    problems = (Problem(path, "vanished"), Problem(path, "bad syntax", Position(3, 5)))
    full.write_notices(Report(Project(Settings(), []), problems=problems), stream)
    assert stream.getvalue() == ("modeling_x.py: error: vanished\nmodeling_x.py:3:5: error: bad syntax\n")


def test_people_are_told_the_first_of_many_reasons(project: Project, path: Path) -> None:
    def told(reasons: list[str]) -> str:
        unsafe = _fix(path, Applicability.UNSAFE, "; ".join(reasons))
        return next(remarks(_finding(path, remedy=unsafe)))

    few, many = [f"reason {number}" for number in range(9)], [f"{number} " + "x" * 98 for number in range(9)]
    assert told(few) == f"unsafe fix: {'; '.join(few)}"
    assert told(many) == f"unsafe fix: {'; '.join(many[:5])}; and 4 more, which `--output-format json` has"
    assert told(["x" * 900]) == f"unsafe fix: {'x' * 900}"
    # JSON has them all.
    (whole,) = _json(project, _finding(path, remedy=_fix(path, Applicability.UNSAFE, "; ".join(many))))
    assert whole["fix"]["reason"] == "; ".join(many)


def test_the_summary_counts_what_can_be_fixed(project: Project, path: Path) -> None:
    safe = _finding(path, remedy=_fix(path))
    none = _finding(path, remedy=Refusal("both calls differ"))

    def summary(*left: Finding, fixed: int = 0, lost: int = 0, unsafe: bool = False) -> str:
        repairs = Repairs((none,) * fixed, (none,) * lost)
        report = Report(project, left, files=2, unsafe=unsafe, repairs=repairs)
        return _statistics("full", report).splitlines()[-1]

    assert summary(safe, none) == "Found 2 findings: 2 errors (1 fixable with --fix)."
    proven = _finding(path, remedy=_fix(path, Applicability.PROVABLE, "only a run can show it"))
    assert summary(proven) == "Found 1 finding: 1 error (1 fixable with --fix --verify)."
    assert summary(safe, proven) == "Found 2 findings: 2 errors (1 fixable with --fix, 1 more with --verify)."
    assert summary(proven, unsafe=True) == "Found 1 finding: 1 error (1 fixable with --fix --verify)."
    assert summary(lost=1) == "Found 1 finding: 1 error (none fixable, 1 in files that cannot be written)."
    assert summary(none, fixed=4) == "Fixed 4 findings; 1 left: 1 error (none fixable)."


def test_json_has_ruffs_fields_and_the_symbol(project: Project, path: Path) -> None:
    fix = _fix(path, Applicability.UNSAFE, "callers break")
    first, second = _json(project, _finding(path, remedy=fix), _finding(path, "pass", remedy=Refusal("why")))
    assert first == {
        "code": "GC001",
        "name": "some-rule",
        "level": "error",
        "message": "goes wrong",
        "reason": None,
        "symbol": "Bl\u00f6ck",
        "evidence": None,
        "filename": str(path),
        "location": {"row": 4, "column": 7},
        "end_location": {"row": 4, "column": 12},
        "fix": {
            "applicability": "unsafe",
            "message": "change the base",
            "reason": "callers break",
            "edits": [
                {
                    "content": "Base",
                    "filename": str(path),
                    "location": {"row": 4, "column": 13},
                    "end_location": {"row": 4, "column": 22},
                }
            ],
        },
        "inherited_by": [],
        "story": [],
        "url": "https://github.com/gclint/gclint/blob/main/docs/rules/gc001_some_rule.md",
    }
    assert second["fix"] is None
    assert second["reason"] == "why"
    assert second["location"] == {"row": 5, "column": 2}


def test_every_format_holds_what_could_not_be_read(project: Project, path: Path) -> None:
    problems = (Problem(path, "bad syntax", Position(3, 5)), Problem(path, "vanished"))
    first, second = _json(project, problems=problems)
    assert first.keys() == _json(project, _finding(path))[0].keys()
    assert (first["code"], first["message"], first["filename"]) == (None, "bad syntax", str(path))
    assert first["location"] == first["end_location"] == {"row": 3, "column": 5}
    assert (second["message"], second["location"]) == ("vanished", None)
    counts = _statistics("json", Report(project, problems=problems))
    assert [each["message"] for each in json.loads(counts)] == ["bad syntax", "vanished"]


def test_an_edit_elsewhere_has_its_own_file_and_place(project: Project, path: Path) -> None:
    other = path.with_name("modeling_y.py")
    other.write_text("\n\n  x\n", encoding="utf-8")
    finding = _finding(path, remedy=Fix("both", (*_fix(path).edits, Edit(other, 4, 5, "y"))))
    edits = _json(project, finding)[0]["fix"]["edits"]
    assert [edit["filename"] for edit in edits] == [str(path), str(other)]
    assert edits[1]["location"] == {"row": 3, "column": 3}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a\nb\nc\n", "a\nB\nc\n"),
        ("a\r\nb\r\n", "a\r\nB\r\n"),
        ("a\nb", "a\nB"),
        ("a\nb", "a\nB\n"),
        ("a\nb\n", "A\nb"),
        ("x\x0cy\n\rz\n\u2028w\n", "x\x0cY\n\rz\n\u2028w\n"),
        ("", "a\n"),
        ("-- a\n++ b\n", "++ b\n"),
    ],
)
@pytest.mark.parametrize("name", ["modeling_x.py", "a folder/modeling_\u00e9.py"])
@pytest.mark.parametrize("tool", [("git", "apply", "-p0", "-"), ("patch", "-p0", "--quiet")])
def test_the_diff_can_be_applied(
    tmp_path: Path, before: str, after: str, name: str, tool: tuple[str, ...]
) -> None:
    if not shutil.which(tool[0]):
        pytest.skip(f"{tool[0]} is not installed")
    file = tmp_path / name
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(before.encode())
    stream = io.StringIO()
    diff.write_diff(stream, {Path(name): (before, after)})
    subprocess.run(tool, input=stream.getvalue().encode(), cwd=tmp_path, check=True)
    assert file.read_bytes() == after.encode()


def test_a_diff_shows_files_in_order_and_nothing_unchanged() -> None:
    same = {Path("c.py"): ("a\n", "a\n")}
    changed = {Path("b.py"): ("a\n", "b\n"), Path("a.py"): ("a\n", "b\n")}
    lines = list(diff.unified_diff({**changed, **same}))
    assert [line for line in lines if line.startswith("+++")] == ["+++ a.py\n", "+++ b.py\n"]


def test_a_diff_on_a_terminal_has_the_same_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "20")
    changed = {Path("a.py"): ("x = [bold]\n", "x = [bold] + [0, 1, 2, 3, 4, 5, 6, 7]")}
    stream = Terminal()
    diff.write_diff(stream, changed)
    assert "\x1b[32m" in stream.getvalue()
    assert _without_styles(stream.getvalue()) == "".join(diff.unified_diff(changed))


def _without_styles(shown: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", shown)


_FURTHER_FORMAT = """
def write(report, stream):
    stream.writelines(f"{each.code} {each.symbol}\\n" for each in report.findings)
    stream.writelines(f"! {each.message}\\n" for each in report.problems)


def write_statistics(report, stream):
    stream.write(f"{len(report.findings)}\\n")
"""
_WITH_FURTHER_FORMAT = """
import sys
import gclint.report.formats as formats
entry = formats.FormatEntry("further_format", shows_runs=True, counts=True)
formats.FORMATS = {**formats.FORMATS, "further": entry}
sys.argv[0] = "gclint"
from gclint.cli.main import main
main()
"""


def test_a_module_and_an_entry_in_the_table_are_an_output_format(tmp_path: Path) -> None:
    (tmp_path / "further_format.py").write_text(_FURTHER_FORMAT)
    (tmp_path / "modeling_x.py").write_text("x = 1  # gclint: ignore[GC001]\n")
    (tmp_path / "modeling_y.py").write_bytes(b"\n\n\n\xff")

    def run(*arguments: str) -> str:
        command = [sys.executable, "-c", _WITH_FURTHER_FORMAT, *arguments]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True).stdout

    written = run("--output-format", "further").splitlines()
    assert written[0] == "GC000 gclint: ignore[GC001]"
    assert written[1].startswith("! byte 0xff is not UTF-8")
    assert run("--output-format", "further", "--statistics") == "1\n"
    assert "[full|concise|json|github|junit|further]" in run("verify", "--help")
