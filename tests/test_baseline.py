"""Which findings a baseline knows again, and which of its entries are stale."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

import hypothesis
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gclint.code.project import Project
from gclint.finding import Finding
from gclint.network.model import Network
from gclint.rule import Rule
from gclint.run.baseline import Baseline, BaselineError
from gclint.run.check import LintResult, check
from gclint.settings import Settings
from tests.toys import NO_FIX, CrashingRule, WordRule, without_fix


class _CallRule(Rule):
    """Flags calls, down to the semicolon behind them; which function is called is the symbol."""

    code = "TOY2"
    name = "some-call"

    def check(self, network: Network) -> Iterable[Finding]:
        for match in re.finditer(r"(\w+)\([^;]*\)(?=;)", network.file.text):
            yield Finding(self.code, self.name, "is bad", network.file.path, *match.span(), match[1], NO_FIX)


_RULES = (WordRule("bad", without_fix), _CallRule())


@pytest.fixture(autouse=True)
def _in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def _checked(text: str, *rules: Rule, name: str = "a.py") -> tuple[Project, LintResult]:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    project = Project(Settings(), [path])
    return project, check(project, rules or _RULES)


def _baseline(text: str, *, name: str = "a.py", path: str = "base.json") -> Baseline:
    """Return the baseline of a text, as it is read back from a file."""
    project, result = _checked(text, name=name)
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(Baseline.of(Path(path), project, result.findings).text, encoding="utf-8")
    return Baseline.read(Path(path))


def _unknown(baseline: Baseline, text: str, *, name: str = "a.py") -> list[tuple[str, int]]:
    """Return the symbols and rows of the findings that are not known."""
    project, result = _checked(text, name=name)
    unknown = baseline.without_known(project, result.findings)
    return [(each.symbol, project.file(each.path).position(each.start).row) for each in unknown]


def _stale(
    baseline: Baseline, text: str, *rules: Rule, name: str = "a.py", folders: Sequence[str] = ()
) -> list[tuple[str, str, int]]:
    project, result = _checked(text, *rules, name=name)
    stale = baseline.stale(project, result.findings, result.ran, [Path(folder) for folder in folders])
    return [(entry.rule, entry.symbol, count) for entry, count in sorted(stale.items())]


_CALL = "x = call(a, b=1, c='d  e');\n"


@pytest.mark.parametrize(
    "text",
    [
        f"\n\n# more above\nother = 1\n{_CALL}",
        f"if other:\n    while True:\n        {_CALL}",
        f"{_CALL}z = 1  # what comes behind\n",
        f"class Renamed:\n    y, {_CALL}",
        "x = call(\n    a,\n    b = 1,  # why\n    # more\n    c='d  e',\n);\n",
        "x = call( a,b=1,\tc='d  e' );\r\n",
    ],
)
def test_a_finding_is_known_wherever_it_stands_and_however_it_is_laid_out(text: str) -> None:
    baseline = _baseline(_CALL)
    assert _unknown(baseline, text) == []
    assert _stale(baseline, text) == []


@pytest.mark.parametrize(
    "text",
    [
        "x = other(a, b=1, c='d  e');\n",
        "x = call(a, b=2, c='d  e');\n",
        "x = call(b=1, a=a, c='d  e');\n",
        "x = call(a, b=1, c='d e');\n",
        "x = call(a, b=1, c='d  #e');\n",
        "x = call(a, b=1, c='d  e' 'f');\n",
    ],
)
def test_other_code_is_another_finding(text: str) -> None:
    baseline = _baseline(_CALL)
    assert len(_unknown(baseline, text)) == 1
    assert _stale(baseline, text) == [("TOY2", "call", 1)]


def test_a_finding_of_another_rule_is_another_one() -> None:
    baseline = _baseline("bad = 1\n")
    project, result = _checked("bad = 1\n", WordRule("bad", without_fix, code="TOY7"))
    assert baseline.without_known(project, result.findings) == list(result.findings)


def test_equal_findings_are_counted() -> None:
    baseline = _baseline("bad = 1\nbad = 2\n")
    assert _unknown(baseline, "bad = 1\nx = 1\nbad = 2\n") == []
    assert _unknown(baseline, "bad = 1\nbad = 2\nbad = 3\nbad = 4\n") == [("bad", 3), ("bad", 4)]
    assert _stale(baseline, "bad = 1\nbad = 2\nbad = 3\n") == []
    assert _stale(baseline, "bad = 1\n") == [("TOY1", "bad", 1)]
    assert _stale(baseline, "good = 1\n") == [("TOY1", "bad", 2)]


def test_the_file_is_easy_to_read_and_to_compare() -> None:
    for name in ("b.py", "a.py", "folder/c.py"):
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text("bad = caf\u00e9(1);\nbad = bad\n", encoding="utf-8")
    project = Project(Settings(), [Path(name) for name in ("folder/c.py", "b.py", "a.py")])
    result = check(project, _RULES)
    text = Baseline.of(Path("folder/base.json"), project, result.findings).text
    document = json.loads(text)
    assert document["version"] == 1
    assert [(each["file"], each["rule"], each["symbol"], each["count"]) for each in document["findings"]] == [
        (file, *rest)
        for file in ("../a.py", "../b.py", "c.py")
        for rest in (("TOY1", "bad", 3), ("TOY2", "caf\u00e9", 1))
    ]
    assert sum(line.strip().startswith('{"file"') for line in text.splitlines()) == 6
    assert not {"line", "row", "start"} & set(document["findings"][0])
    again = Baseline.of(Path("folder/base.json"), project, reversed(result.findings))
    assert again.text == text


def test_the_empty_baseline_is_one() -> None:
    assert _baseline("x = 1\n").known == {}


def test_a_baseline_can_be_used_from_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _baseline("bad = 1\n", name="tree/models/a.py", path="tree/ci/base.json")
    monkeypatch.chdir(tmp_path / "tree" / "models")
    assert _unknown(Baseline.read(Path("../ci/base.json")), "\nbad = 1\n") == []
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tree").rename("moved")
    (tmp_path / "link").symlink_to("moved")
    baseline = Baseline.read(tmp_path / "link" / "ci" / "base.json")
    assert _unknown(baseline, "bad = 1\n", name="moved/models/a.py") == []


def test_of_a_rule_that_crashes_nothing_is_stale() -> None:
    class Crashing(CrashingRule):
        code = "TOY1"

    baseline = _baseline("bad = 1\nx = call();\n")
    assert _stale(baseline, "boom = 1\n", Crashing(), _CallRule()) == [("TOY2", "call", 1)]


def test_a_file_that_is_gone_has_no_findings() -> None:
    baseline = _baseline("bad = 1\n", name="models/a.py")
    Path("models/a.py").unlink()
    assert _stale(baseline, "x = 1\n", name="models/b.py", folders=["models"]) == [("TOY1", "bad", 1)]
    assert _stale(baseline, "x = 1\n", name="models/b.py", folders=["."]) == [("TOY1", "bad", 1)]
    # Nobody looked there.
    assert _stale(baseline, "x = 1\n", name="other/b.py", folders=["other", "models/b.py"]) == []


def test_a_suppression_makes_an_entry_stale() -> None:
    baseline = _baseline("bad = 1\n")
    assert _stale(baseline, "bad = 1  # gclint: ignore[TOY1]\n") == [("TOY1", "bad", 1)]


_ENTRY = '{"file": "a.py", "rule": "TOY1", "symbol": "bad", "hash": "0", "count": 1}'


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "not JSON"),
        ("{\n<<<<<<< HEAD\n", "line 2"),
        ("[" * 100_000, "not JSON"),
        ("[]", "no version"),
        ('{"version": 1, "findings": {}}', "no list of findings"),
        ('{"version": 1, "findings": [' + _ENTRY + ", 3]}", "entry 2"),
    ],
)
def test_a_bad_baseline_is_told(text: str, complaint: str) -> None:
    Path("base.json").write_text(text)
    with pytest.raises(BaselineError) as raised:
        Baseline.read(Path("base.json"))
    assert str(raised.value).startswith("base.json: ")
    assert complaint in str(raised.value)
    assert "--write-baseline base.json" in str(raised.value)


def test_a_baseline_that_is_no_text_or_no_file_is_told() -> None:
    Path("base.json").write_bytes(b"\xff\xfe{}")
    with pytest.raises(BaselineError, match="not JSON"):
        Baseline.read(Path("base.json"))
    with pytest.raises(BaselineError, match="cannot be read"):
        Baseline.read(Path())


_FIRST_TOKENS = re.compile(
    r"""
    (\"\"\"(?:[^\\]|\\[\s\S])*?\"\"\"|'''(?:[^\\]|\\[\s\S])*?'''
     |"(?:[^"\\\n]|\\[\s\S])*"|'(?:[^'\\\n]|\\[\s\S])*'|\w+|[^\s\w#])
    |\#[^\r\n]*
    """,
    re.VERBOSE,
)


def _first_hash(code: str) -> str:
    """Return what gclint 0.1 wrote; baselines that it has written are in use."""
    pieces = " ".join(match[1] for match in _FIRST_TOKENS.finditer(code) if match[1])
    return hashlib.sha256(re.sub(r", ([)\]}])", r"\1", pieces).encode()).hexdigest()[:16]


_CODE = (
    *("a", "é2", "1.5e-3", "0x1F", "==", "**=", "->", "...", "!=", "(", ")", "[", "]", ",", ", )", "# c\n"),
    *("'a, )'", '"# b"', "r'\\''", 'rb"\\""', "'''a\n'b'''", "f'{x}'", "f\"{d['k']!r:>{w}}\"", "'a' 'b'"),
    *('f"{d["k"]}"', 'f"{f"{x}"}"', "t'{x}'", "\\\n", "\\\r\n", "\n", " ", "lambda", "@", "$"),
)


@given(st.lists(st.sampled_from(_CODE), max_size=12).map(" ".join))
@hypothesis.settings(deadline=None, derandomize=True)
def test_hashes_are_those_of_the_first_release(code: str) -> None:
    path = Path("code.py")
    path.write_bytes(code.encode())
    finding = Finding("TOY1", "toy", "is bad", path, 0, len(code), "a", NO_FIX)
    assert Baseline(Path("base.json"), {}).entry(Project(Settings(), []), finding).hash == _first_hash(code)


def test_a_baseline_that_was_written_on_windows_is_known_here_and_the_other_way_round(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    project, result = _checked("bad = 1\n", name="src/models/a.py")
    written = Baseline.of(Path("base.json"), project, result.findings).text
    assert '"src/models/a.py"' in written
    assert "\\" not in written
    Path("base.json").write_text(
        written.replace("src/models/a.py", "src\\\\models\\\\a.py"), encoding="utf-8"
    )
    read = Baseline.read(Path("base.json"))
    assert read.without_known(project, result.findings) == []
    assert read.text == written
    assert not read.stale(project, result.findings, result.ran, [Path("src")])
    # Windows gives a path with backslashes, or none at all from one drive to another.
    monkeypatch.setattr("os.path.relpath", lambda *_: "src\\models\\a.py")
    assert Baseline.of(Path("base.json"), project, result.findings).text == written


def test_an_entry_of_both_systems_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    project, result = _checked("bad = 1\n", name="src/a.py")
    document = json.loads(Baseline.of(Path("base.json"), project, result.findings).text)
    document["findings"].append({**document["findings"][0], "file": "src\\a.py"})
    Path("base.json").write_text(json.dumps(document), encoding="utf-8")
    assert Baseline.read(Path("base.json")).known.total() == 2
    assert len(Baseline.read(Path("base.json")).known) == 1
