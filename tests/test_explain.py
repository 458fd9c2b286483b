"""``gclint explain``: what is said of places, and why each rule is silent, over fixtures that are right."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from gclint.cli import vocabulary
from gclint.cli.main import gclint
from gclint.code.project import Project
from gclint.report.explanation import write_text
from gclint.rule import Rule, all_rules
from gclint.run.check import check
from gclint.run.explain import Explainer
from gclint.settings import load_settings
from gclint.testing.fixtures import Fixture, Silence
from tests.harness import FIXTURES, load_fixtures

_RELEASES = '[tool.gclint]\ntarget-version = ">=4.53,<5.17"\n'
Explain = Callable[..., dict[str, Any]]


def _run(*arguments: str) -> Result:
    return CliRunner().invoke(gclint, ["explain", *arguments])


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text(_RELEASES, encoding="utf-8")
    return tmp_path


def _row(path: Path, marker: str) -> int:
    lines = path.read_text(encoding="utf-8").splitlines()
    (row,) = [row for row, line in enumerate(lines, start=1) if marker in line][:1]
    return row


def _explained(path: Path, marker: str, column: int = 0, *arguments: str) -> dict[str, Any]:
    place = f"{path}:{_row(path, marker)}" + (f":{column}" if column else "")
    run = _run(place, *arguments, "--output-format", "json")
    assert run.exit_code == 0, run.output
    document: dict[str, Any] = json.loads(run.stdout)
    return document


def _write(fixture: Fixture, folder: Path) -> None:
    for name, text in fixture.before.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def _written(name: str, folder: Path) -> Path:
    """Write a fixture, and return the first modeling file of it; if there is none, the script or settings."""
    (found,) = [each for each in load_fixtures() if each.name == name]
    _write(found, folder)
    modeling = [each for each in found.before if Path(each).match("mod*ing_*.py")]
    return folder / next(each for each in (*modeling, *found.before) if not each.endswith(".toml"))


def _reasons(document: dict[str, Any], code: str) -> str:
    return " | ".join(
        reason
        for subject in document["subjects"]
        for rule in subject["rules"]
        if rule["code"] == code
        for reason in [
            *rule["reasons"],
            *(f"{rule['outcome']}: {each['message']}" for each in rule["findings"]),
        ]
    )


_SILENT = [
    pytest.param(fixture, each, id=f"{fixture.name}-{each.row}-{each.code}")
    for fixture in load_fixtures()
    for each in fixture.silences
]


@pytest.mark.parametrize(("fixture", "silence"), _SILENT)
def test_silent_rule_names_the_true_reason(fixture: Fixture, silence: Silence, folder: Path) -> None:
    _write(fixture, folder)
    run = _run(f"{folder / silence.path}:{silence.row}", "--output-format", "json")
    assert run.exit_code == 0, run.output
    assert silence.words in _reasons(json.loads(run.stdout), silence.code)


_PLACES = """\
from abc import ABC

from torch import nn
from transformers import PreTrainedModel
from transformers.modeling_layers import GradientCheckpointingLayer


class OtterBlock(GradientCheckpointingLayer, ABC):
    def __init__(self, config):
        super().__init__()
        self.attention = nn.MultiheadAttention(config.hidden_size, config.num_heads)

    def forward(self, hidden_states, *args, **kwargs):
        return self.attention(hidden_states, hidden_states, hidden_states)[0]


class OtterSpare(GradientCheckpointingLayer):
    def forward(self, hidden_states):
        return hidden_states * 2


class OtterHead(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.dense = nn.Linear(config.hidden_size, 2)

    def forward(self, hidden_states):
        return self.dense(hidden_states)


class OtterModel(PreTrainedModel):
    supports_gradient_checkpointing = True

    def __init__(self, config):
        super().__init__(config)
        self.embed_tokens = nn.Embedding(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList([OtterBlock(config) for _ in range(config.num_hidden_layers)])
        self.spares = nn.ModuleList([OtterSpare(config) for _ in range(2)])
        self.heads = nn.ModuleList([OtterHead(config) for _ in range(2)])

    def forward(self, input_ids, *args, **kwargs):
        hidden_states = self.embed_tokens(input_ids)
        for layer in self.layers:
            hidden_states = layer(layer(hidden_states, *args), *args, **kwargs)
        return [head(hidden_states) for head in self.heads]


class OtterForPairs(PreTrainedModel):
    supports_gradient_checkpointing = True

    def __init__(self, config):
        super().__init__(config)
        self.models = nn.ModuleList([OtterModel(config) for _ in range(2)])

    def forward(self, hidden_states):
        for model in self.models:
            hidden_states = model(hidden_states)
        return hidden_states
"""
_SAID = [
    ("class OtterBlock", 1, "`ABC`: abc.ABC, which has nothing to do with checkpointing"),
    ("class OtterHead", 1, "`nn.Module`: torch's base class of modules, which recomputes nothing"),
    (
        "class OtterHead",
        1,
        "a list of `OtterHead`, whose calls are not examined: `OtterHead` has no",
    ),
    ("class OtterSpare", 1, "a list of `OtterSpare`, and no call of its items was found"),
    ("class OtterModel", 1, "The class `OtterModel`: a model, which other classes run."),
    ("class OtterForPairs", 1, "The class `OtterForPairs`: a model."),
    ("layer(layer(", 29, "A call site in `OtterModel`: `layer` is `OtterBlock`."),
    ("layer(layer(", 29, "`*args`: its length is unknown"),
    ("layer(layer(", 29, "`**kwargs`: its names are unknown, so its content is not judged"),
    (
        "self.embed_tokens(input_ids)",
        25,
        "`self.embed_tokens` in `OtterModel`, which is not a call site: it runs a",
    ),
    ("class OtterModel", 1, "no statement changes the output of `embed_tokens` of `OtterModel` in place"),
]


@pytest.mark.parametrize(("marker", "column", "words"), _SAID)
def test_a_place_is_told_as_what_it_is(marker: str, column: int, words: str, folder: Path) -> None:
    path = folder / "modeling_otter.py"
    path.write_text(_PLACES, encoding="utf-8")
    run = _run(f"{path}:{_row(path, marker)}:{column}")
    assert run.exit_code == 0, run.output
    assert words in re.sub(r"\s+", " ", run.stdout)


def test_a_class_is_told_its_own_findings_only(folder: Path) -> None:
    path = folder / "modeling_otter.py"
    text = _PLACES.partition("class OtterForPairs")[0].replace("GradientCheckpointingLayer, ABC", "nn.Module")
    block = text[text.index("class OtterBlock") : text.index("class OtterSpare")]
    second = block.replace("OtterBlock", "SealBlock")
    text = text.replace("class OtterModel", f"{second}class OtterModel")
    text = text.replace("[OtterBlock(config) for", "[(SealBlock if _ else OtterBlock)(config) for")
    path.write_text(text, encoding="utf-8")
    for own, other in (("OtterBlock", "SealBlock"), ("SealBlock", "OtterBlock")):
        reasons = _reasons(_explained(path, f"class {own}"), "GC001")
        assert f"found: `{own}`" in reasons
        assert f"`{other}`, stacked in" not in reasons


def test_of_calls_inside_of_each_other_the_inner_one_is_told(folder: Path) -> None:
    path = folder / "modeling_otter.py"
    path.write_text(_PLACES, encoding="utf-8")
    outer, inner = (str(_explained(path, "layer(layer(", column)["subjects"][-1]) for column in (29, 36))
    assert "**kwargs" in outer
    assert "**kwargs" not in inner


@pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.code)
def test_every_rule_is_silent_somewhere(rule: Rule) -> None:
    silent = {each.code for fixture in load_fixtures() for each in fixture.silences}
    assert rule.code in silent, (
        "say in a fixture of the rule why it is silent, behind a line that is right: "
        f'# silent: {rule.code} "a part of what gclint explain says"'
    )


@pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.code)
def test_rule_that_finds_nothing_in_its_own_fixture_says_why(rule: Rule, folder: Path) -> None:
    quiet = [
        each
        for each in load_fixtures()
        if each.name.startswith(rule.code) and not any(e.code == rule.code for e in each.expectations)
    ]
    for number, fixture in enumerate(quiet):
        inside = folder / str(number)
        inside.mkdir()
        path = _written(fixture.name, inside)
        lines = path.read_text(encoding="utf-8").splitlines()
        rows = [row for row, line in enumerate(lines, start=1) if re.match(r"class |\s+for ", line)]
        own = [each for each in fixture.silences if each.code == rule.code and inside / each.path == path]
        rows += [each.row for each in own]
        said = []
        for row in rows:
            run = _run(f"{path}:{row}", "--output-format", "json")
            assert run.exit_code == 0, run.output
            said.append(_reasons(json.loads(run.stdout), rule.code))
        assert any(said), fixture.name


_BLOCK = """
from torch import nn
from transformers.modeling_layers import GradientCheckpointingLayer
from transformers.modeling_utils import PreTrainedModel


class OtterLayer(GradientCheckpointingLayer):
    def __init__(self, config):
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2)

    def forward(self, hidden_states, attention_mask=None, memory=None, past_key_values=None):
        return self.attention(hidden_states, hidden_states, hidden_states)[0]


class OtterModel(PreTrainedModel):
    supports_gradient_checkpointing = True

    def __init__(self, config):
        super().__init__(config)
        self.embed_tokens = nn.Embedding(10, 8)
        self.project = nn.Linear(8, 8)
        self.layers = nn.ModuleList([OtterLayer(config) for _ in range(2)])
        self.head = OtterLayer(config)
        self.convs = nn.ModuleList([nn.Conv1d(8, 8, 3) for _ in range(2)])
        self.gradient_checkpointing = False

    def forward(self, input_ids, attention_mask, cache=None):
        hidden_states = self.embed_tokens(input_ids)
        memory = self.project(hidden_states)
        for layer in self.layers:
            hidden_states = layer(hidden_states, attention_mask, memory=memory, past_key_values=cache)
        return hidden_states


def helper(x):

    return x
"""


@pytest.fixture
def block(folder: Path) -> Path:
    path = folder / "modeling_otter.py"
    path.write_text(_BLOCK, encoding="utf-8")
    return path


def _roles(document: dict[str, Any]) -> dict[str, tuple[str, str]]:
    (subject,) = document["subjects"]
    (call,) = subject["calls"]
    return {
        each["parameter"]: (each["role"], each["why"]) for each in call["details"] if each.get("parameter")
    }


@pytest.mark.parametrize(
    "marker", ["class OtterLayer", "def forward(self, hidden", "for layer in", "layer(hidden"]
)
def test_every_argument_has_its_parameter_role_and_reason(block: Path, marker: str) -> None:
    document = _explained(block, marker)
    subject = document["subjects"][0]
    call = next(each for each in subject["calls"] if each["receiver"] == "layer")
    roles = {each["parameter"]: each["role"] for each in call["details"] if each.get("parameter")}
    assert roles == {
        "hidden_states": "activation",
        "attention_mask": "not an activation",
        "memory": "activation",
        "past_key_values": "cache",
    }
    whys = {each["parameter"]: each["why"] for each in call["details"] if each.get("parameter")}
    assert "the output of the previous block in the loop" in whys["hidden_states"]
    assert whys["attention_mask"] == "its name contains `mask`"
    assert whys["memory"] == "it is computed from parameters"
    assert whys["past_key_values"] == "it is named like a cache; the base class sets it to None"
    (memory,) = [each for each in call["details"] if each.get("parameter") == "memory"]
    assert "self.project(hidden_states)" in memory["details"][0]["text"]


def test_rule_is_silent_with_a_reason_beside_the_finding_of_another_one(block: Path) -> None:
    loop = _BLOCK[
        _BLOCK.index("        for layer in") : _BLOCK.index("        return hidden_states\n\n\ndef")
    ]
    block.write_text(_BLOCK.replace(loop, loop + loop), encoding="utf-8")
    document = _explained(block, "class OtterLayer")
    assert "`memory` is passed" in _reasons(document, "GC003")
    assert _reasons(document, "GC002") == "no cache is passed to `OtterLayer` by position"


def test_reason_changes_with_the_code(block: Path) -> None:
    block.write_text(_BLOCK.replace("self.project(hidden_states)", "None"), encoding="utf-8")
    assert _roles(_explained(block, "layer(hidden"))["memory"] == (
        "not an activation",
        "it is None on every path to this call",
    )


def test_bases_lead_to_the_checkpointing_layer_or_to_where_the_trail_is_lost(
    folder: Path, block: Path
) -> None:
    block.write_text(
        _BLOCK.replace("(GradientCheckpointingLayer)", "(Between)").replace(
            "\n\nclass OtterLayer",
            "\n\nclass Between(GradientCheckpointingLayer): ...\n\n\nclass OtterLayer",
            1,
        ),
        encoding="utf-8",
    )
    (line,) = _explained(block, "class OtterLayer")["subjects"][0]["bases"]
    (between,) = line["details"]
    assert between["text"] == "`Between`"
    assert between["location"]["row"] == _row(block, "class Between")
    assert "which recomputes them" in between["details"][0]["text"]
    block.write_text("from elsewhere import Mystery\n\n\nclass A(Mystery, Nothing): ...\n", encoding="utf-8")
    (line,) = _explained(block, "class A")["subjects"][0]["bases"]
    mystery, nothing = line["details"]
    assert "unknown: the file of elsewhere.Mystery was not found" in mystery["text"]
    assert "unknown: nothing in this file certainly defines or imports that name" in nothing["text"]
    (folder / "configuration_otter.py").write_text("class Mystery: ...\n", encoding="utf-8")
    block.write_text("from configuration_otter import Mystery\n\n\nclass A(Mystery): ...\n", encoding="utf-8")
    (line,) = _explained(block, "class A")["subjects"][0]["bases"]
    (mystery,) = line["details"]
    assert "unknown: its file is of a kind that defines no layers" in mystery["text"]
    assert mystery["location"]["filename"].endswith("configuration_otter.py")


@pytest.mark.parametrize(
    ("marker", "column", "kind", "name"),
    [
        ("class OtterLayer", 7, "class", "OtterLayer"),
        ("class OtterModel(", 0, "class", "OtterModel"),
        ("self.layers = ", 0, "stack", "layers"),
        ("self.layers = ", 38, "class", "OtterLayer"),
        ("self.head = ", 0, "attribute", "head"),
        ("self.convs = ", 0, "stack", "convs"),
        ("for layer in", 0, "loop", "the loop over `self.layers`"),
        ("layer(hidden_states", 30, "call site", "layer"),
        ("self.embed_tokens(input_ids)", 0, "call", "self.embed_tokens"),
        ("from transformers.modeling_layers", 0, "import", None),
        ("supports_gradient_checkpointing", 0, "class", "OtterModel"),
        ("return x", 0, "function", "helper"),
        ("def helper", 0, "function", "helper"),
    ],
)
def test_place_is_what_stands_there(
    block: Path, marker: str, column: int, kind: str, name: str | None
) -> None:
    (subject,) = _explained(block, marker, column)["subjects"]
    assert subject["kind"] == kind
    assert name in (None, subject["name"])


def test_blank_line_says_what_there_is_in_the_file(block: Path) -> None:
    run = _run(f"{block}:1")
    assert run.exit_code == 0
    assert "There is no class, call or stack here" in run.stdout
    assert "`self.layers` of `OtterModel` holds `OtterLayer`" in run.stdout


def test_comment_names_what_it_suppresses(folder: Path) -> None:
    path = folder / "modeling_otter.py"
    text = _BLOCK.replace("layer(hidden_states, attention_mask, memory", "layer(hidden_states, memory")
    text = text.replace("past_key_values=cache)\n", "past_key_values=cache)  # gclint: ignore[GC003]\n")
    path.write_text(text, encoding="utf-8")
    document = _explained(path, "gclint: ignore")
    assert document["ignores"][0]["suppresses"] == ["GC003"]
    assert "suppressed by a comment: `memory` is passed" in _reasons(document, "GC003")


def test_a_rule_without_findings_is_silent_for_its_reason_even_where_it_is_ignored(folder: Path) -> None:
    path = folder / "modeling_otter.py"
    path.write_text(_PLACES, encoding="utf-8")
    ignores = '[tool.gclint.per-file-ignores]\n"*" = ["GC108"]\n'
    (folder / "pyproject.toml").write_text(_RELEASES + ignores, encoding="utf-8")
    document = _explained(path, "class OtterModel")
    assert "no statement changes" in _reasons(document, "GC108")
    outcomes = {each["code"]: each["outcome"] for each in document["subjects"][0]["rules"]}
    assert outcomes["GC108"] == "silent"


def test_rule_that_the_settings_ignore_is_said_to_be(folder: Path, block: Path) -> None:
    (folder / "pyproject.toml").write_text(f'{_RELEASES}ignore = ["GC003"]\n', encoding="utf-8")
    assert "ignored by the settings: `memory` is passed" in _reasons(
        _explained(block, "layer(hidden"), "GC003"
    )


def test_finding_of_the_baseline_is_said_to_be_known(folder: Path, block: Path) -> None:
    baseline = folder / "known.json"
    CliRunner().invoke(gclint, ["check", "--write-baseline", str(baseline), str(block)])
    document = _explained(block, "layer(hidden", 0, "--baseline", str(baseline))
    assert "known from the baseline: `memory` is passed" in _reasons(document, "GC003")


def test_excluded_file_is_said_to_be(folder: Path, block: Path) -> None:
    (folder / "pyproject.toml").write_text(f'{_RELEASES}exclude = ["modeling_otter.py"]\n', encoding="utf-8")
    assert any(
        "excluded by the pattern 'modeling_otter.py'" in each
        for each in _explained(block, "class OtterL")["notes"]
    )


def test_releases_come_with_their_origin(folder: Path, block: Path) -> None:
    assert _explained(block, "class OtterL")["releases"] == {
        "releases": "transformers >=4.53,<5.17",
        "origin": "set by `target-version`",
    }
    (folder / "pyproject.toml").write_text(
        '[project]\nname = "x"\ndependencies = ["transformers>=4.55"]\n', encoding="utf-8"
    )
    assert (
        _explained(block, "class OtterL")["releases"]["origin"] == "required by the metadata of the project"
    )


def _places(block: Path) -> Iterable[tuple[str, str]]:
    yield f"{block}:999", "line 999 does not exist; the last line is "
    yield f"{block}:0", "line 0 does not exist"
    yield f"{block}:99999999999", "line 99999999999 does not exist"
    yield f"{block}:2:500", ":2: column 500 does not exist; the line has 20 characters"
    yield f"{block}:1:1", ":1: column 1 does not exist; the line is empty"
    yield f"{block}:2:0", "columns count from 1"
    yield f"{block}", "the line number is missing"
    yield f"{block.parent}:3", "is a folder; pass a file in it"
    yield f"{block.parent}", "the line number is missing"
    yield "nowhere.py:3", "nowhere.py: no such file"
    yield r"C:\x\modeling_a.py:12:3", r"C:\x\modeling_a.py: no such file"
    yield ":3", "the line number is missing"
    yield "x\x00y.py:3", "x\\x00y.py: no such file"


def test_bad_place_is_an_error_with_what_to_do(block: Path) -> None:
    for place, message in _places(block):
        run = _run(place)
        assert (run.exit_code, run.stdout) == (2, ""), place
        assert message in run.stderr, place
        assert "Traceback" not in run.output


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_nothing_is_a_line_after_the_last_end_of_one(folder: Path, end: str) -> None:
    (folder / "modeling_a.py").write_bytes(f"x = 1{end}y = 2{end}".encode())
    assert _run("modeling_a.py:2").exit_code == 0
    assert "line 3 does not exist; the last line is 2" in _run("modeling_a.py:3").stderr


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("modeling_a.py", b"def f(:\n    pass\n", "modeling_a.py:1:"),
        ("modeling_a.py", b"x = '\xff'\n", "modeling_a.py:1:1: invalid or missing encoding"),
        ("notebook.ipynb", b"{}\n", "is a notebook"),
        ("modeling_a.py", b"", " is empty"),
    ],
)
def test_unreadable_file_is_an_error(folder: Path, name: str, data: bytes, message: str) -> None:
    (folder / name).write_bytes(data)
    run = _run(f"{name}:1")
    assert (run.exit_code, run.stdout) == (2, "")
    assert message in run.stderr


@pytest.mark.parametrize("name", ["odd:3.py", "odd:3", "with space.py", "quote'.py"])
def test_odd_names_are_found(folder: Path, name: str) -> None:
    (folder / name).write_text(_BLOCK, encoding="utf-8")
    run = _run(f"{name}:{_BLOCK[: _BLOCK.index('class OtterLayer')].count(chr(10)) + 1}")
    assert run.exit_code == 0, run.output
    assert "The class `OtterLayer`" in run.stdout


def test_a_folder_with_the_file_alone_is_not_empty(folder: Path) -> None:
    (folder / "own" / "none").mkdir(parents=True)
    (folder / "own" / "layers.py").write_text(_BLOCK, encoding="utf-8")
    assert _run("own/layers.py:1", "own").exit_code == 0
    run = _run("own/layers.py:1", "own/none")
    assert (run.exit_code, run.stdout) == (2, "")
    assert "own/none" in run.stderr.replace("\\", "/")


def test_line_of_a_million_characters_is_not_printed_whole(folder: Path) -> None:
    (folder / "modeling_long.py").write_text(f"x = [{'1,' * 50_000}]\n", encoding="utf-8")
    run = _run("modeling_long.py:1")
    assert run.exit_code == 0
    assert max(map(len, run.stdout.splitlines())) < 500


def test_it_writes_nothing(folder: Path, block: Path) -> None:
    before = {path: path.read_bytes() for path in folder.iterdir()}
    _run(f"{block}:7")
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


def test_every_line_of_a_fixture_can_be_explained(folder: Path) -> None:
    path = _written("GC001/no_blocks", folder)
    for row in range(1, len(path.read_text(encoding="utf-8").splitlines()) + 1):
        run = _run(f"{path}:{row}")
        assert run.exit_code == 0, (row, run.output)
    assert FIXTURES.is_dir()


_MODULAR = (
    "#           This file was automatically generated from src/{0}.\n#   Do NOT edit this file manually\n"
)


def test_finding_of_a_generated_file_is_said_to_be_reported_at_its_source(folder: Path) -> None:
    modular = folder / "modular_otter.py"
    modular.write_text(_BLOCK, encoding="utf-8")
    path = folder / "modeling_otter.py"
    path.write_text(_MODULAR.format("modular_otter.py") + _BLOCK, encoding="utf-8")
    document = _explained(path, "layer(hidden")
    assert any("generated from modular_otter.py" in each for each in document["notes"])
    (rule,) = [each for each in document["subjects"][0]["rules"] if each["code"] == "GC003"]
    assert rule["outcome"] == "reported where it is written"
    assert rule["findings"][0]["location"]["filename"].endswith("modular_otter.py")


@pytest.mark.parametrize("ending", ["\r\n", "\r"])
def test_other_line_endings_are_counted_as_python_does(folder: Path, ending: str) -> None:
    path = folder / "modeling_otter.py"
    path.write_bytes(_BLOCK.replace("\n", ending).encode())
    run = _run(f"{path}:{_BLOCK[: _BLOCK.index('class OtterLayer')].count(chr(10)) + 1}")
    assert "The class `OtterLayer`" in run.stdout


def test_calls_in_files_that_import_the_class_are_shown(folder: Path) -> None:
    for name in ("a", "b"):
        (folder / name).mkdir()
        (folder / name / "__init__.py").touch()
    (folder / "__init__.py").touch()
    head, _, tail = _BLOCK.partition("class OtterModel")
    path = folder / "a" / "modeling_a.py"
    path.write_text(head, encoding="utf-8")
    imports = "from torch import nn\nfrom transformers.modeling_utils import PreTrainedModel\n"
    user = folder / "b" / "modeling_b.py"
    user.write_text(
        f"{imports}from ..a.modeling_a import OtterLayer\n\n\nclass OtterModel{tail}", encoding="utf-8"
    )
    (alone,) = _explained(path, "class OtterLayer")["subjects"]
    (given,) = _explained(path, "class OtterLayer", 0, str(folder))["subjects"]
    for subject in (alone, given):
        assert "`self.layers` of `OtterModel` holds" in subject["stacks"][0]["text"]
        assert subject["calls"][0]["location"]["filename"].endswith("modeling_b.py")


def test_hostile_names_in_the_output_move_no_cursor(folder: Path) -> None:
    path = folder / "modeling_\x1b[2J.py"
    path.write_text(_BLOCK + "x = '\x1b[2J'\n", encoding="utf-8")
    run = _run(f"{path}:{_BLOCK.count(chr(10)) + 1}")
    assert run.exit_code == 0
    assert "\x1b" not in run.stdout


def test_what_a_run_knows_is_explained_as_without_it(folder: Path) -> None:
    path = _written("GC110/made_too_early", folder)
    project = Project(load_settings(folder, vocabulary()), [path])
    known = check(project, all_rules())
    explainer = Explainer(project, path, all_rules(), all_rules(), known=known)
    for finding in known.findings:
        place = project.file(path).position(finding.start)
        texts = io.StringIO(), io.StringIO()
        write_text(explainer.explain(place), texts[0])
        write_text(Explainer(project, path, all_rules(), all_rules()).explain(place), texts[1])
        assert texts[0].getvalue() == texts[1].getvalue()
        assert "GC110 cache-without-guard: " in texts[0].getvalue()
