"""The formats for CI: whatever files are called and hold, they are read as they are meant."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from gclint.cli.main import main
from gclint.code.project import Project
from gclint.finding import Finding, Position, Problem, Refusal
from gclint.report.formats import FORMATS, format_complaint, written_as
from gclint.report.report import Report
from gclint.settings import Settings
from tests.sample import BROKEN
from tests.toys import NO_FIX

# A BOM, CR LF, a form feed, a tab, and characters outside of the basic plane before the column.
_ODD = b"\xef\xbb\xbfx = 1\r\n\x0c\r\n" + "\t'\U0001f600\U0001f600', call(y)\r\n".encode()
_NAMES = ["modeling_%0A,x.py", "modeling_]]>.py", "modeling_\U0001f600 x.py", "modeling_&amp;'x.py"]
if os.name == "posix":
    _NAMES += ["modeling_a\nb::error::.py", 'modeling_"\x1b[1m:.py', "modeling_\t\\.py"]
_MESSAGE = 'it says "100%0A" <b>]]></b> & more,\r\n::warning::x: \x00\x1b[0m \ud800 \U0001f600 {0} [a](b)'


@pytest.fixture(params=_NAMES, ids=range(len(_NAMES)))
def path(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = Path(request.param)
    path.write_bytes(_ODD)
    return path


def _finding(path: Path, message: str = _MESSAGE) -> Finding:
    start = _ODD.decode("utf-8-sig").index("call")
    return Finding("GC003", "some-rule", message, path, start, start + 7, "call\n", NO_FIX)


def _written(name: str, *findings: Finding, problems: tuple[Problem, ...] = ()) -> str:
    stream = io.StringIO()
    report = Report(Project(Settings(), []), findings, problems, files=1)
    written_as(name)(report, stream)
    return stream.getvalue()


def _undone(text: str, *also: tuple[str, str]) -> str:
    """Undo what GitHub's runner undoes, in its order."""
    for escaped, meant in (("%0D", "\r"), ("%0A", "\n"), *also, ("%25", "%")):
        text = text.replace(escaped, meant)
    return text


def test_github_reads_one_annotation_a_line(path: Path) -> None:
    problem = Problem(path, "no\nPython", Position(3, 4))
    error, line = _written("github", _finding(path), problems=(problem,)).splitlines()
    assert error.startswith("::error ") and line.startswith("::error ")
    found = re.fullmatch(r"::error ([^:]*)::(.*)", line)
    assert found is not None
    properties = dict(each.split("=", 1) for each in found[1].split(","))
    inside = (("%3A", ":"), ("%2C", ","))
    assert {name: _undone(value, *inside) for name, value in properties.items()} == {
        "title": "gclint (GC003 some-rule)",
        # What would move a cursor in the log is written as an escape.
        "file": str(path) if str(path).isprintable() else _undone(properties["file"], *inside),
        "line": "3",
        "endLine": "3",
        "col": "8",
        "endColumn": "14",
    }
    told = _undone(found[2])
    assert 'it says "100%0A" <b>]]></b> & more,\r\n::warning::x: ' in told
    assert "\x1b" not in told and "\x00" not in told


def test_github_gets_a_column_where_a_finding_ends_with_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = Path("modeling_x.py")
    path.write_text("call(\n    y)\n")
    (line,) = _written("github", replace(_finding(path, "m"), start=0, end=6)).splitlines()
    assert "line=1,endLine=1,col=1," in line


def test_gitlab_has_a_fingerprint_for_each(path: Path) -> None:
    problem = Problem(path, "no Python")
    finding = _finding(path)
    entries = json.loads(_written("gitlab", finding, finding, problems=(problem,)))
    assert len({entry["fingerprint"] for entry in entries}) == 3
    assert [entry["severity"] for entry in entries] == ["major", "major", "blocker"]
    for entry in entries:
        assert entry["location"]["path"] == str(path)
        assert entry["description"] and entry["check_name"]
    assert entries[0]["location"]["lines"] == {"begin": 3, "end": 3}


def test_gitlab_of_nothing_is_an_empty_list() -> None:
    assert json.loads(_written("gitlab")) == []


def test_junit_is_well_formed_and_has_a_suite_for_each_file(path: Path) -> None:
    other = Path("modeling_other.py")
    other.write_bytes(_ODD)
    problem = Problem(other, _MESSAGE)
    text = _written("junit", _finding(path), _finding(other), problems=(problem,))
    assert text.isascii()
    root = ElementTree.fromstring(text)
    assert root.attrib["tests"] == "3" and root.attrib["failures"] == "2" and root.attrib["errors"] == "1"
    first, second = root
    assert {first.attrib["name"], second.attrib["name"]} >= {"modeling_other.py"}
    failure = root.find(".//failure")
    assert failure is not None and failure.text is not None
    assert 'it says "100%0A" <b>]]></b> & more,' in failure.text
    if str(path).isprintable():
        assert {suite.attrib["name"] for suite in root} == {str(path), "modeling_other.py"}


def test_concise_is_a_line_a_finding(path: Path) -> None:
    lines = _written(
        "concise", _finding(path), replace(_finding(path, "m"), remedy=Refusal("why"))
    ).splitlines()
    assert len(lines) == 3
    assert lines[1].endswith(":3:8: error: GC003 m")
    assert lines[2] == "Found 2 findings: 2 errors (none fixable)."


@pytest.mark.skipif(sys.platform != "linux", reason="others have no names that are not UTF-8")
@pytest.mark.parametrize("name", FORMATS)
def test_a_name_that_is_not_utf_8_can_be_written(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = Path(os.fsdecode(b"modeling_\xff.py"))
    path.write_bytes(_ODD)
    text = _written(name, _finding(path), problems=(Problem(path, "no Python"),))
    text.encode("utf-8")
    if name == "sarif":
        assert '"modeling_%FF.py"' in text


@pytest.mark.parametrize("name", ["github", "gitlab", "junit", "sarif"])
def test_paths_are_those_from_the_root_of_the_repository(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "repository" / "src" / "a b"
    folder.mkdir(parents=True)
    (tmp_path / "repository" / ".git").mkdir()
    monkeypatch.chdir(folder)
    outside = tmp_path / "modeling_y.py"
    for path in (Path("modeling_x.py"), outside):
        path.write_bytes(_ODD)
    near, far = (_written(name, _finding(path, "m")) for path in (Path("modeling_x.py"), outside))
    assert ("src/a%20b/modeling_x.py" if name == "sarif" else "src/a b/modeling_x.py") in near
    assert str(tmp_path) not in near or name == "sarif"
    assert outside.as_posix() in far.replace("%3A", ":")


@pytest.mark.slow
def test_a_hundred_thousand_findings_are_written_in_every_format(tmp_path: Path) -> None:
    path = tmp_path / "modeling_x.py"
    path.write_text("call(y)\n" * 100_000)
    findings = [
        Finding("GC003", "some-rule", "goes wrong", path, 8 * n, 8 * n + 4, f"f{n % 7}", NO_FIX)
        for n in range(100_000)
    ]
    for name in FORMATS:
        text = _written(name, *findings)
        if name == "gitlab":
            assert len({each["fingerprint"] for each in json.loads(text)}) == 100_000
        elif name == "github":
            assert text.count("\n") == 100_001


def test_a_name_that_a_format_had_leads_to_the_new_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert format_complaint("full") is None
    assert format_complaint("text") == "the format 'text' is now called 'full'"
    for command in (["--output-format", "text"], ["verify", "--output-format", "text"]):
        status, _, err = _run(capsys, *command)
        assert status == 2 and "'full'" in err


def test_a_run_that_is_known_is_not_printed_for_another_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "src"
    folder.mkdir()
    (folder / "modeling_sample.py").write_text(BROKEN)

    def annotated() -> list[str]:
        command = [sys.executable, "-m", "gclint", "--output-format", "github"]
        done = subprocess.run(command, cwd=folder, capture_output=True, encoding="utf-8", timeout=60)
        return re.findall("file=([^,]*)", done.stdout)

    assert [annotated() for _ in range(2)] == [["modeling_sample.py"]] * 2
    (tmp_path / ".git").mkdir()
    assert annotated() == ["src/modeling_sample.py"]


# -- files


@pytest.fixture
def sample(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "modeling_sample.py").write_text(BROKEN)
    return tmp_path


def _run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.MonkeyPatch.context() as patch, pytest.raises(SystemExit) as stopped:
        patch.setattr(sys, "argv", ["gclint", *arguments])
        main()
    assert isinstance(stopped.value.code, int)
    return stopped.value.code, *capsys.readouterr()


def _kind(path: Path) -> str:
    text = path.read_text(encoding="utf-8")
    if text.startswith("<?xml"):
        return "junit"
    if text.startswith("::"):
        return "github"
    if text.startswith(("{", "[")):
        document: Any = json.loads(text)
        if isinstance(document, dict):
            return "sarif"
        return "gitlab" if "fingerprint" in document[0] else "json"
    return "concise" if "no fix" not in text else "full"


def test_several_formats_are_written_at_once(sample: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = ("sarif", "json", "junit", "gitlab", "github")
    options = [f"--output-file={name}:out {name}" for name in names]
    status, out, err = _run(capsys, *options)
    assert (status, err) == (1, "")
    assert out.endswith("Found 1 finding: 1 warning (1 fixable with --fix).\n")
    assert [_kind(sample / f"out {name}") for name in names] == list(names)


def test_a_file_that_cannot_be_written_does_not_cost_the_others(
    sample: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (sample / "folder").mkdir()
    options = ["--output-file=sarif:none/x.sarif", "--output-file=json:folder", "--output-file=junit:x.xml"]
    status, out, err = _run(capsys, *options)
    assert status == 2
    assert "Found 1 finding" in out
    assert _kind(sample / "x.xml") == "junit"
    lines = err.splitlines()
    assert len(lines) == 2
    assert re.search(r"x\.sarif: error: .*cannot be written: No such file", lines[0])
    assert lines[1].startswith("folder: error: ")
    assert sorted(each.name for each in sample.iterdir()) == ["folder", "modeling_sample.py", "x.xml"]


def test_a_report_replaces_no_file_that_is_checked(sample: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, _, err = _run(capsys, "--output-file", "json:./modeling_sample.py")
    assert status == 2 and "one of those being checked" in err
    assert (sample / "modeling_sample.py").read_text() == BROKEN


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--output-file", "x.sarif"], "is not of the form FORMAT:PATH"),
        (["--output-file", r"C:\x.sarif"], "there is no format 'C'"),
        (["--output-file", "sarif:"], "is not of the form FORMAT:PATH"),
        (["--output-file", "text:x"], "is now called 'full'"),
        (["--output-file", "sarif:-"], "--output-format sarif prints to standard output"),
        (["--output-file", "sarif:x", "--output-file", "json:./x"], "another option uses the same file"),
        (["--output-file", "sarif:x", "--fix", "--summary", "x"], "another option uses the same file"),
        (["--output-file", "sarif:x", "--diff"], "--diff prints a diff"),
        (["--output-file", "sarif:x", "--write-baseline", "b"], "reports no findings"),
        (["--output-format", "sarif", "--statistics"], "--statistics supports only"),
    ],
)
def test_what_cannot_be_written_is_said_at_once(
    options: list[str], complaint: str, sample: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, out, err = _run(capsys, *options)
    assert (status, out) == (2, "")
    assert complaint in err.replace("\n", " ")
    assert [each.name for each in sample.iterdir()] == ["modeling_sample.py"]


def test_a_path_of_windows_keeps_its_colon() -> None:
    from gclint.cli.output import OutputFileType

    found = OutputFileType(FORMATS).convert(r"sarif:C:\reports\x.sarif", None, None)
    assert (found.format, str(found.path)) == ("sarif", r"C:\reports\x.sarif")


@pytest.mark.drawn(first=2)
@pytest.mark.parametrize("name", FORMATS)
def test_a_closed_pipe_is_no_traceback(name: str, sample: Path) -> None:
    if os.name != "posix":
        pytest.skip("needs a POSIX shell")
    command = f"'{sys.executable}' -m gclint --output-format {name} | true"
    done = subprocess.run(["sh", "-c", command], capture_output=True, encoding="utf-8", timeout=60)
    assert "Traceback" not in done.stderr
