"""``--add-ignores``: comments where they work, for all that is left, and nothing to do for a second run."""

from __future__ import annotations

import codecs
import itertools
import re
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from gclint.code.file import SourceFile
from gclint.code.syntax import syntax_problem
from gclint.finding import Finding, Problem
from gclint.network.model import Network
from gclint.rule import Rule
from tests.sample import BROKEN
from tests.terminal import Outcome, runner
from tests.toys import NO_FIX

Run = Callable[..., Outcome]


class _Marked(Rule):
    """Finds all names that begin with ``bad``, and how they go on: a rule a word."""

    word: str

    def check(self, network: Network) -> Iterable[Finding]:
        for match in re.finditer(rf"{self.word}\w*", network.file.text):
            yield Finding(
                self.code, self.name, "wrong", network.file.path, match.start(), match.end(), "x", NO_FIX
            )


class _Bad(_Marked):
    """Bad is wrong."""

    code = "GC901"
    name = "bad-word"
    word = "bad"


class _Ugly(_Marked):
    """Ugly is wrong."""

    code = "GC902"
    name = "ugly-word"
    word = "ugly"


@pytest.fixture
def real_gclint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.chdir(tmp_path)
    return runner(monkeypatch, capsys)


@pytest.fixture
def gclint(real_gclint: Run, monkeypatch: pytest.MonkeyPatch) -> Run:
    from gclint.rules.gc000_unused_ignore import UnusedIgnore

    rules = (UnusedIgnore(), _Bad(), _Ugly())
    for module in ("gclint.run.check", "gclint.proof.evidence", "gclint.run.fix", "gclint.rule"):
        monkeypatch.setattr(f"{module}.all_rules", lambda: rules)
    return real_gclint


_CASES = {
    "plain": ("bad = 1\n", "bad = 1  # gclint: ignore[GC901]\n"),
    "without a line end": ("bad = 1", "bad = 1  # gclint: ignore[GC901]"),
    "two rules": ("ugly = bad\n", "ugly = bad  # gclint: ignore[GC901, GC902]\n"),
    "two of one rule": ("bad = bad2\n", "bad = bad2  # gclint: ignore[GC901]\n"),
    "another comment": ("bad = 1  # noqa: X\n", "bad = 1  # noqa: X  # gclint: ignore[GC901]\n"),
    "an ignore comment": (
        "bad = ugly  # gclint: ignore[GC902]\n",
        "bad = ugly  # gclint: ignore[GC902, GC901]\n",
    ),
    "one above": ("# gclint: ignore[GC902]\nbad = ugly\n", "# gclint: ignore[GC902, GC901]\nbad = ugly\n"),
    "one for the file": (
        "# gclint: ignore-file[GC902]\nbad = ugly\n",
        "# gclint: ignore-file[GC902]\nbad = ugly  # gclint: ignore[GC901]\n",
    ),
    "one that is not needed": ("bad = 1  # gclint: ignore[GC902]\n", "bad = 1  # gclint: ignore[GC901]\n"),
    "several lines": (
        "f(\n    bad,\n    ugly,\n)\n",
        "f(\n    bad,  # gclint: ignore[GC901]\n    ugly,  # gclint: ignore[GC902]\n)\n",
    ),
    "a header": (
        "def f(\n    bad,\n):\n    ugly = 1\n",
        "def f(\n    bad,  # gclint: ignore[GC901]\n):\n    ugly = 1  # gclint: ignore[GC902]\n",
    ),
    "a joined line": ("x = bad + \\\n    1\n", "x = bad + \\\n    1  # gclint: ignore[GC901]\n"),
    "a joined line in the middle": ("x = 1 + \\\n    bad + \\\n    2\n", None),
    "a long string": ('x = """\nbad\n"""\n', 'x = """\nbad\n"""  # gclint: ignore[GC901]\n'),
    "a formatted string": ('x = f"""\n{bad}\n""" + """\n"""\n', None),
    "a string in a call": ('f("""\nbad\n""", """\n""",\n  1)\n', None),
    "a decorator": ("@bad\nclass X: pass\n", "@bad  # gclint: ignore[GC901]\nclass X: pass\n"),
    "a semicolon": ("x = 1; bad = 2; y = 3\n", "x = 1; bad = 2; y = 3  # gclint: ignore[GC901]\n"),
    "a docstring": ('class X:\n    """\n    bad\n\n    ugly\n    """\n', None),
    "a form feed": ("x = 1\n\fbad = 2\n", None),
    "a malformed comment": ("x = bad  # gclint: ignroe[GC901]\n", None),
}


@pytest.mark.parametrize("name", _CASES)
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"], ids=["LF", "CRLF", "CR"])
def test_comments_stand_where_they_work(gclint: Run, name: str, newline: str) -> None:
    before, after = _CASES[name]
    head = "from torch import nn\n\nlayers = nn.ModuleList()\n"
    path = Path("modeling_x.py")
    path.write_bytes(codecs.BOM_UTF8 + (head + before).replace("\n", newline).encode())
    assert gclint().status == 1
    outcome = gclint("--add-ignores")
    assert (outcome.status, outcome.err) == (0, ""), outcome
    data = path.read_bytes()
    assert data.startswith(codecs.BOM_UTF8)
    text = data.decode("utf-8-sig")
    if after is not None:
        assert text == (head + after).replace("\n", newline)
    without = re.sub(r"[ \t]*# gclint:[^\r\n]*", "", text)
    expected = re.sub(r"[ \t]*# gclint:[^\r\n]*", "", (head + before).replace("\n", newline))
    assert without.split() == expected.split()
    compile(text, "x", "exec")
    assert gclint() == (0, "No findings in 1 file.\n", "")
    assert gclint("--add-ignores") == (0, "No findings in 1 file.\n", "")
    assert path.read_bytes() == data


def test_many_in_one_file(gclint: Run) -> None:
    head = "from torch import nn\n\nlayers = nn.ModuleList()\n"
    lines = [
        f"{left} = [\n    {right},\n]\n" for left, right in itertools.product(("bad", "ugly", "x"), repeat=2)
    ]
    Path("modeling_x.py").write_text(head + "".join(lines))
    assert gclint("--add-ignores").out.startswith("Added ignore comments for 12 findings.\n")
    assert gclint().status == 0


def test_a_file_is_parsed_a_few_times_and_not_once_a_finding(
    gclint: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed = []

    def counting(file: SourceFile) -> Problem | None:
        parsed.append(file)
        return syntax_problem(file)

    monkeypatch.setattr("gclint.edit.ignoring.syntax_problem", counting)
    head = "from torch import nn\n\nlayers = nn.ModuleList()\n"
    # Two rules a line, and one line where there is no room behind it.
    lines = [f"bad{number} = ugly\n" for number in range(400)]
    lines[200] = 'x = """\nbad\n"""\n'
    Path("modeling_x.py").write_text(head + "".join(lines))
    assert gclint("--add-ignores").out.startswith("Added ignore comments for 799 findings.\n")
    assert gclint().status == 0
    assert len(parsed) < 40


def test_it_is_shown_as_a_diff_and_goes_with_repairs(real_gclint: Run) -> None:
    path = Path("modeling_sample.py")
    path.write_text(BROKEN)
    shown = real_gclint("--diff", "--add-ignores")
    assert "+class SampleLayer(nn.Module):  # gclint: ignore[GC001]\n" in shown.out
    assert shown.err == "Would add ignore comments for 1 finding.\n"
    assert path.read_text() == BROKEN
    assert real_gclint("--fix", "--add-ignores").status == 0
    assert "gclint:" not in path.read_text()
    path.write_text(BROKEN)
    assert real_gclint("--fix", "--ignore", "GC001", "--add-ignores").status == 0
    assert path.read_text() == BROKEN
    assert real_gclint("-q", "--add-ignores") == (0, "", "")
    assert "class SampleLayer(nn.Module):  # gclint: ignore[GC001]\n" in path.read_text()


def test_the_summary_of_several_files_counts_no_repairs(real_gclint: Run) -> None:
    for name in ("modeling_one.py", "modeling_two.py"):
        Path(name).write_text(BROKEN)
    lines = ["  in 2 files of 1 model"]
    assert real_gclint("--diff", "--add-ignores").err.splitlines()[1:] == lines
    assert real_gclint("--add-ignores").out.splitlines()[2:] == lines


@pytest.mark.releases
def test_a_release_with_generated_models_has_no_findings_afterwards(
    real_gclint: Run, release: Callable[[str], Path]
) -> None:
    source, target = release("5.23.0") / "transformers", Path("transformers")
    for name in ("clip", "layoutlmv3", "mlcd", "pp_doclayout_v2", "sam3", "sam3_lite_text"):
        shutil.copytree(source / "models" / name, target / "models" / name)
    for path in (*source.glob("*.py"), source / "models" / "__init__.py"):
        shutil.copy(path, target / path.relative_to(source))
    first, second = real_gclint("--add-ignores"), real_gclint()
    assert first.out.startswith("Added ignore comments for 6 findings.\nNo findings in ")
    assert (second.status, second.out) == (0, first.out.splitlines(keepends=True)[1])


def test_a_file_that_cannot_be_written_stays_with_its_findings(
    real_gclint: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_paths: object) -> None:
        raise OSError(28, "No space left on device")

    path = Path("modeling_sample.py")
    path.write_text(BROKEN)
    with monkeypatch.context() as patch:
        patch.setattr("os.replace", fail)
        outcome = real_gclint("--add-ignores")
    assert outcome.status == 2
    assert outcome.out == "Found 1 finding (none fixable, 1 in files that cannot be written).\n"
    assert "modeling_sample.py: error: the fixed file cannot be written" in outcome.err
    assert path.read_text() == BROKEN


@pytest.mark.parametrize("others", [["--verify"], ["--write-baseline", "x"]])
def test_it_goes_not_with_everything(real_gclint: Run, others: list[str]) -> None:
    outcome = real_gclint("--fix", "--add-ignores", *others)
    assert (outcome.status, outcome.out) == (2, "")
    assert "--add-ignores" in outcome.err
