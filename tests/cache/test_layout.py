"""What of a text is layout, and what a run that knows the rest says where only that has changed."""

from __future__ import annotations

import ast
import random
from pathlib import Path

import pytest

from gclint.cache.traces import encoded
from gclint.facts import read_bytes
from gclint.network.outside import FLAG
from gclint.source.file import SourceFile
from gclint.source.layout import layout_free
from gclint.trace import phase, traced
from tests.cache.shell import CHECKPOINTED_BASE, LISTS_MODULES, MODEL, OWN, is_replayed, run, write_project

_CODE = 'x = [\n    1,\n    "# no comment",\n]\ny = """\n\n# text\n"""\n'
_SAME = (
    ("x = 1\n", "x = 1  # one\n"),
    ("x = 1\n", "# A note, of two words: and more!\nx = 1\n"),
    ("x = 1\n", "x = 1\n# at the end"),
    ("x = 1\n", "x = 1\n\n\n    # indented\n"),
    ("x = 1\ny = 2\n", "x = 1\n\n  \ny = 2\n"),
    ("x = 1\r\ny = 2\r\n", "x = 1\r\n\r\n# a note\r\ny = 2  # two\r\n"),
    ("x = (\n    1,\n)\n", "x = (\n    # first\n\n    1,  # one\n)\n"),
    (_CODE, f"# more\n\n{_CODE}\n# and more\n"),
)
_OTHER = (
    ("x = 1\n", "x = 2\n"),
    ("x = 1\n", " x = 1\n"),
    ("x = 1\n", "x =  1\n"),
    ("x = 1 \\\n+ 2\n", "x = 1 \\\n\n+ 2\n"),
    ("x = 1 \\\n+ 2\n", "x = 1 \\  # one\n+ 2\n"),
    ("x = 1 \\\n+ 2\n", "x = 1 \\\n# one\n+ 2\n"),
    ('x = """a\nb"""\n', 'x = """a\n\nb"""\n'),
    ('x = """a\nb"""\n', 'x = """a\n# b\nb"""\n'),
    ('x = f"{a}"\n', 'x = f"{a}# b"\n'),
    ("x = 1\n", "x = 1  # gclint: ignore\n"),
    ("x = 1\n", "# Copied from transformers.models.own.modeling_own.BaseBlock\nx = 1\n"),
    ("x = 1\n", "# This file was automatically generated from a/modular_b.py\nx = 1\n"),
    ("x = 1\n", "# -*- coding: latin-1 -*-\nx = 1\n"),
    ("x = 1\n", "\ufeffx = 1\n"),
    ("x = 1\n", "x = 1  # self.layers\n"),
    ("x = 1\n", "x = 1  # hidden_states\n"),
    ("x = 1\n", "x = 1  # MyBlock\n"),
    ("x = 1\n", "x = 1  # called f(x)\n"),
    ("x = 1\n", "x = 1  # the past\n"),
)


def _digest(text: str) -> str:
    return layout_free(SourceFile(Path("x.py"), text.encode()))


@pytest.mark.parametrize(("one", "other"), _SAME)
def test_layout_makes_no_difference(one: str, other: str) -> None:
    assert _digest(one) == _digest(other)


@pytest.mark.parametrize(("one", "other"), _OTHER)
def test_all_else_does(one: str, other: str) -> None:
    assert _digest(one) != _digest(other)


@pytest.mark.parametrize(
    "word", [FLAG, ".forward", "checkpoint", "checkpointing", "opied from transformers."]
)
def test_a_word_that_files_are_searched_for_is_no_layout(word: str) -> None:
    assert _digest("x = 1\n") != _digest(f"x = 1  # a {word} b\n")


@pytest.mark.drawn(first=20)
@pytest.mark.parametrize("seed", range(60))
def test_texts_with_the_same_layout_free_digest_are_the_same_code(seed: int) -> None:
    chosen = random.Random(seed)
    pieces = (
        "\n",
        "\r\n",
        "\\\n",
        "# a\n",
        "  # b",
        "'",
        '"',
        '"""',
        "f'",
        "{",
        "}",
        "x",
        " = 1",
        "(",
        ")",
        "    ",
    )
    seen: dict[str, str] = {}
    for _ in range(400):
        text = "x = 1\n" + "".join(chosen.choices(pieces, k=chosen.randint(1, 6))) + "y = 2\n"
        try:
            code = ast.dump(ast.parse(text))
        except (SyntaxError, ValueError):
            code = "none"
        assert seen.setdefault(_digest(text), code) == code, text


def test_a_file_that_is_read_for_something_else_too_counts_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "version.py"
    path.write_text("x = 1\n")
    rows = []
    for others in ((), ("",), ("files",)):
        with traced() as trace:
            with phase("files"):
                read_bytes(path)
            for name in others:
                with phase(name):
                    read_bytes(path)
        trace.layout_free[str(path)] = "known"
        ((*_, answers),) = encoded(trace)
        rows.append(answers[str(path)][1:])
    assert rows == [["known"], [], ["known"]]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return write_project(tmp_path)


def _said(project: Path, *options: str) -> tuple[int, str]:
    ran = run(project, "package", *options)
    return ran.status, ran.output


def test_a_comment_in_a_file_without_findings_costs_no_look_at_it(project: Path) -> None:
    other = project / "package/models/other/modeling_other.py"
    other.parent.mkdir()
    other.write_text(CHECKPOINTED_BASE)
    before = _said(project)
    other.write_text(f"# a note\n\n{CHECKPOINTED_BASE}\n# another\n")
    again = run(project, "package", code=LISTS_MODULES)
    assert is_replayed(again)
    assert (again.status, again.output) == before == _said(project, "--no-cache")


@pytest.mark.drawn(first=1)
@pytest.mark.parametrize(
    "options", [(), ("--output-format", "json"), ("--output-format", "full"), ("--diff",)]
)
def test_a_comment_above_a_finding_moves_it(project: Path, options: tuple[str, ...]) -> None:
    own = project / "package/models/own/modeling_own.py"
    before = _said(project, *options)
    own.write_text("# a note\n" + OWN)
    after = _said(project, *options)
    assert after != before
    assert after == _said(project, "--no-cache", *options)


def test_a_line_that_is_named_in_another_file_is_counted_anew(project: Path) -> None:
    switch = project / "package/models/mine/modeling_switch.py"
    raising = MODEL.replace(
        "    def forward", "    def gradient_checkpointing_enable(self):\n        raise\n\n    def forward"
    )
    switch.write_text(
        "from .modeling_mine import MyModel\n\n\ndef enable():\n    MyModel.gradient_checkpointing = True\n"
    )
    (project / "package/models/mine/modeling_mine.py").write_text(raising)
    _said(project)
    switch.write_text("# a note\n" + switch.read_text())
    assert _said(project) == _said(project, "--no-cache")
