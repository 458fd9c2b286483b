"""Settings of trainers in YAML: what cannot be read is said, with its place, and nothing takes forever."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

from gclint.code.file import SourceFile
from gclint.code.lines import logical_lines
from gclint.code.project import Project
from gclint.code.syntax import syntax_problem
from gclint.code.trainer_settings import comments
from gclint.edit.ignoring import suppressed
from gclint.finding import Position
from gclint.network.model import Network
from gclint.rule import all_rules
from gclint.run.check import check
from gclint.settings import Settings

_RULE = next(each for each in all_rules() if each.code == "GC402")
_FAULT = """\
gradient_checkpointing: true
gradient_checkpointing_kwargs: {use_reentrant: true}
ddp_find_unused_parameters: true
"""


def _file(text: str, name: str = "train.yaml") -> SourceFile:
    return SourceFile(Path(name), text.encode())


def _findings(tmp_path: Path, text: str) -> int:
    path = tmp_path / "train.yaml"
    path.write_text(text, encoding="utf-8", newline="")
    project = Project(Settings(), [path])
    return len([*_RULE.check(Network(project, project.file(path)))])


@pytest.mark.parametrize(
    ("text", "words", "place"),
    [
        (f"{_FAULT}x: [1\ny: 2\n", "this is not valid YAML: ", Position(5, 2)),
        (f"{_FAULT}x: {{{{ name }}}}: 2\n", "mapping values are not allowed here", Position(4, 14)),
        (f"{_FAULT}---\n{_FAULT}", "but found another document", Position(4, 1)),
        (f"é: ü\u2028{_FAULT}\tx: 1\n", "found character '\\t'", Position(4, 1)),
        (f"{_FAULT}x: \a\n", "special characters are not allowed", Position(4, 4)),
        (f"{_FAULT}x: {'[' * 5000}", "nested too deeply", None),
        (f'{_FAULT}x: "\\UFFFFFFFF"\n', "this is not valid YAML: ", None),
        (f"{_FAULT}x: *other\n", "found undefined alias", Position(4, 4)),
    ],
)
def test_what_is_not_yaml_is_said_with_its_place(text: str, words: str, place: Position | None) -> None:
    problem = syntax_problem(_file(text))
    assert problem is not None
    assert words in problem.message
    assert problem.position == place


def test_without_pyyaml_it_is_said_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)
    problem = syntax_problem(_file(_FAULT))
    assert problem is not None
    assert "pip install 'gclint[yaml]'" in problem.message
    assert syntax_problem(_file("name: value\n")) is None
    assert [line.rows for line in logical_lines(_file("a: 1  # b\n"))] == [(1, 1)]


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "- ddp_find_unused_parameters: true\n",
        "ddp_find_unused_parameters\n",
        "# ddp_find_unused_parameters\n",
        "? [a, b]\n: ddp_find_unused_parameters\n",
        "a: &a [*a]\nddp_find_unused_parameters: *a\n",
        "!!python/object/apply:os.system ['exit']: ddp_find_unused_parameters\n",
        "ddp_find_unused_parameters: !!python/name:os.system\n",
        "? !!str [a]\n: 1\n? !!str {a: b}\n: ddp_find_unused_parameters\n",
        "!!null [a]: 1\n!a:bool ddp_find_unused_parameters: true\n",
        "a: !!int 09_\nddp_find_unused_parameters: 0x_\n",
        "stage: [1]\nfinetuning_type: {}\ndo_train: true\nddp_find_unused_parameters: true\n",
        "%YAML 1.2\n---\nddp_find_unused_parameters: 2026-01-01\n...\n",
    ],
)
def test_what_says_nothing_of_checkpointing_has_no_findings(text: str, tmp_path: Path) -> None:
    assert syntax_problem(_file(text)) is None
    assert _findings(tmp_path, text) == 0


def test_what_would_grow_without_end_is_left_alone() -> None:
    merged = "".join(f"a{n}: &a{n}\n  <<: [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 40))
    listed = "".join(f"b{n}: &b{n} [{', '.join([f'*b{n - 1}'] * 9)}]\n" for n in range(1, 40))
    wide = "".join(f"  k{n}: 1\n" for n in range(3000)) + "".join(f"c{n}: *c\n" for n in range(3000))
    file = _file(f"a0: &a0 {{k: 1}}\n{merged}b0: &b0 [1]\n{listed}c: &c\n{wide}{_FAULT}")
    assert file.tree is not None
    assert sum(1 for _ in ast.walk(file.tree.module)) < 20_000


def test_comments_of_data_are_not_looked_for() -> None:
    nested = f"# gclint: ignore-file\n{'[' * 100_000}\n# gclint: ignore-file\n"
    long = f"# gclint: ignore-file\nx: {'1 ' * 150_000}"
    assert [len([*comments(each)]) for each in (nested, long)] == [1, 0]


def test_a_file_of_data_is_not_parsed() -> None:
    file = _file(f"{_FAULT}x: [" + "1, " * 100_000)
    assert file.tree is not None
    assert not file.tree.module.body


@pytest.mark.parametrize(
    ("line", "count"),
    [
        ("plugins: []", 1),
        ("tensor_parallel_size: 1", 1),
        ("fsdp: ''", 1),
        ("deepspeed: null", 1),
        ("my-key: 1", 1),
        ("plugins: [a.b]", 0),
        ("tensor_parallel_size: 2", 0),
        ("activation_offloading: true", 0),
        ("deepspeed: zero2.json", 0),
        ("deepspeed: ${deepspeed}", 0),
        ("use_unsloth_gc: yes", 0),
        ("gradient_checkpointing_kwargs: {use_reentrant: *x}", 0),
        ("gradient_checkpointing: offload", 0),
        ("gradient_checkpointing_kwargs: {1: 2, use_reentrant: true}", 0),
        ("gradient_checkpointing_kwargs: '{\"use_reentrant\": true}'", 0),
    ],
)
def test_each_setting_counts(line: str, count: int, tmp_path: Path) -> None:
    assert _findings(tmp_path, f"x: &x maybe\n{_FAULT}{line}\n") == count


def test_places_are_right_behind_other_letters_and_line_ends(tmp_path: Path) -> None:
    path = tmp_path / "train.yaml"
    text = '# 🦦\r\nnote: "é\x85ü"\r' + _FAULT
    path.write_text(text, encoding="utf-8", newline="")
    project = Project(Settings(), [path])
    (finding,) = _RULE.check(Network(project, project.file(path)))
    assert text[finding.start : finding.end] == "ddp_find_unused_parameters: true"
    assert finding.fix is not None
    assert [text[each.start : each.end] for each in finding.fix.edits] == ["true"]


def test_comments_to_ignore_are_added_and_count(tmp_path: Path) -> None:
    path = tmp_path / "train.yaml"
    path.write_text(f"text: |\n  # gclint: ignore-file\n{_FAULT}", encoding="utf-8")
    project = Project(Settings(), [path])
    (finding,) = check(project, all_rules()).findings
    file, count = suppressed(project.file(path), [finding], {"gc402": "GC402"})
    assert count == 1
    assert file.text.endswith("ddp_find_unused_parameters: true  # gclint: ignore[GC402]\n")
    path.write_text(file.text, encoding="utf-8")
    assert check(Project(Settings(), [path]), all_rules()).findings == ()
