"""Settings and options that cannot be used: a message with the place, exit status 2, and no traceback."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from gclint.cli import vocabulary
from gclint.settings import Settings, SettingsError, load_settings
from gclint.settings.definitions import DEFINITIONS, SWITCH, SettingDefinition
from tests.sample import REPAIRED
from tests.terminal import Outcome, runner

_OF_OTHER_TYPES = (
    "1",
    "-1.5",
    "nan",
    "1979-05-27",
    "true",
    '"x"',
    "[1]",
    "[[]]",
    '["a", 1]',
    "{}",
    "{ a = 1 }",
    '[""]',
)


@pytest.fixture
def gclint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Outcome]:
    monkeypatch.chdir(tmp_path)
    Path("modeling_sample.py").write_text(REPAIRED)
    return runner(monkeypatch, capsys)


def _is_refused(outcome: Outcome, *words: str) -> None:
    assert (outcome.status, outcome.out) == (2, ""), outcome
    assert "Traceback" not in outcome.err
    assert "Error: " in outcome.err
    for word in words:
        assert word in outcome.err


def _wrong_values(definition: SettingDefinition) -> list[str]:
    """Return values of another type, as TOML has them."""
    right = {
        "a list of strings": ('[""]',),
        "a table of lists of strings": ("{}",),
        "a table of strings": ("{}",),
        "a string": ('"x"',),
        "true or false": ("true",),
    }
    return [each for each in _OF_OTHER_TYPES if each not in right[definition.kind.description]]


@pytest.mark.parametrize("definition", DEFINITIONS, ids=lambda each: each.name)
def test_a_value_of_another_type_is_named_with_its_place(
    gclint: Callable[..., Outcome], definition: SettingDefinition
) -> None:
    for value in _wrong_values(definition):
        Path("pyproject.toml").write_text(
            f"[project]\nname = 'x'\n\n[tool.gclint]\n{definition.name} = {value}\n"
        )
        outcome = gclint()
        _is_refused(
            outcome, "pyproject.toml:5:1: ", f"{definition.name} must be {definition.kind.description}"
        )


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ('select = [""]', "select: the name of a rule is empty"),
        ('extend-select = [" "]', "extend-select: the name of a rule is empty"),
        ('ignore = ["GC999"]', "ignore: there is no rule 'GC999'"),
        ('select = ["positional-cash"]', "did you mean 'positional-cache'?"),
        ('per-file-ignores = { "" = ["GC001"] }', "per-file-ignores: the pattern '' is empty"),
        ('per-file-ignores = { "!" = ["GC001"] }', "per-file-ignores: the pattern '!' is empty"),
        ('per-file-ignores = { "*.py" = ["GC999"] }', "per-file-ignores: there is no rule 'GC999'"),
        ('exclude = [""]', "exclude: the pattern '' is empty"),
        ('exclude = ["./"]', "exclude: the pattern './' is empty"),
        ('extend-exclude = ["!src"]', "extend-exclude: '!src' starts with '!'"),
        ('include = ["a\\u0000b"]', "include: the pattern 'a\\x00b' contains a NUL character"),
        ('library = ""', "library: the path is empty"),
        ('library = "nowhere"', "library: transformers was not found in "),
        ('baseline = "a\\u0000b"', "baseline: the path contains a NUL character"),
        ('target-version = "new"', "target-version: 'new' is not a version or a range"),
        (
            'target-version = "4.99"',
            "'4.99' was never released: 4.57 is the last one",
        ),
        ('target-version = ""', "target-version: "),
        ('output-format = "xml"', "output-format: there is no format 'xml' here"),
        ('output-format = "text"', "output-format: the format 'text' is now called 'full'"),
        ("slect = []", "[tool.gclint] has no setting 'slect'; did you mean select?"),
        ("target_version = '4'", "did you mean target-version?"),
        (
            "activation-name = ['x']",
            "did you mean activation-names, in [tool.gclint.rules.keyword-activation]?",
        ),
        ("zzz = 1", "has no setting 'zzz'; the known names are baseline, "),
        ("'' = 1", "has no setting ''"),
        ("rules = 1", "[tool.gclint.rules] must be a table"),
        ("rules.GC003 = {}", "write [tool.gclint.rules.keyword-activation], with the name of the rule"),
        ("rules.Keyword-Activation = {}", "write [tool.gclint.rules.keyword-activation]"),
        ("rules.keyword-activations = {}", "did you mean keyword-activation?"),
        ("rules.keyword-activation = 1", "[tool.gclint.rules.keyword-activation] must be a table"),
        ("rules.keyword-activation.activation-name = []", "did you mean activation-names?"),
        ("rules.keyword-activation.activation-names = 'x'", "activation-names must be a list of strings"),
        ("rules.positional-cache.x = []", "has no setting 'x'; it has no settings"),
        ("verify = 1", "[tool.gclint.verify] must be a table"),
        ("verify.models.X = {}", "[tool.gclint.verify.models.X] is empty"),
        ("verify.model.X.fields = { a = 1 }", "did you mean 'models'?"),
    ],
)
def test_what_is_wrong_in_a_table_is_named_with_its_place(
    gclint: Callable[..., Outcome], line: str, complaint: str
) -> None:
    Path("pyproject.toml").write_text(f"# first\n[tool.gclint]\n{line}\n")
    _is_refused(gclint(), "pyproject.toml:3:1: ", complaint)
    # The same in a file of its own.
    Path("gclint.toml").write_text(f"\n\n{line}\n")
    _is_refused(gclint("--config", "gclint.toml"), "gclint.toml:3:1: ")


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (b"[tool.gclint\n", "pyproject.toml:1:13: cannot be read as TOML: "),
        (b"[tool.gclint]\nselect = [\n", "pyproject.toml:3:1: cannot be read as TOML: "),
        (b"[tool.gclint]\nselect = []\nselect = []\n", "pyproject.toml:3:12: cannot be read as TOML: "),
        (b"[tool.gclint]\n\n[tool.gclint]\n", "pyproject.toml:3:13: cannot be read as TOML: "),
        (b'[tool.gclint]\nlibrary = "caf\xe9"\n', "pyproject.toml:2:15: cannot be read as TOML: byte 0xe9"),
        (b"\x00", "pyproject.toml:1:1: cannot be read as TOML: "),
        (b"x = " + b"[" * 5000, "pyproject.toml: cannot be read as TOML: it is nested too deeply"),
        (b"[tool]\ngclint = true\n", "pyproject.toml:2:1: tool.gclint must be a table"),
        (b"[[tool.gclint]]\n", "pyproject.toml:1:1: tool.gclint must be a table"),
        (b"[tool.gclint]\nselect = 1", "pyproject.toml:2:1: select must be a list of strings"),
    ],
)
def test_a_file_that_is_not_toml_is_named_with_its_place(
    gclint: Callable[..., Outcome], text: bytes, place: str
) -> None:
    Path("pyproject.toml").write_bytes(text)
    _is_refused(gclint(), place)
    assert len(gclint().err) < 500


@pytest.mark.parametrize(
    "arguments",
    [
        ["--config", "missing.toml"],
        ["--config", "."],
        ["--config", ""],
        ["--select", ""],
        ["--select", "GC001,,GC002"],
        ["--extend-select", "GC999"],
        ["--ignore", " "],
        ["--per-file-ignores", "GC001"],
        ["--per-file-ignores", ":GC001"],
        ["--per-file-ignores", "*.py:"],
        ["--per-file-ignores", "*.py:GC999"],
        ["--exclude", ""],
        ["--exclude", "!x"],
        ["--extend-exclude", "."],
        ["--include", ""],
        ["--library", ""],
        ["--library", "nowhere"],
        ["--target-version", "new"],
        ["--target-version", ""],
        ["--baseline", "missing.json"],
        ["--baseline", "modeling_sample.py"],
        ["--output-format", ""],
        ["--cache-dir", ""],
        ["--quiet", "--verbose"],
        ["--select", "x" * 100_000],
    ],
    ids=lambda arguments: " ".join(arguments)[:40],
)
def test_options_that_cannot_be_used_are_refused(
    gclint: Callable[..., Outcome], arguments: list[str]
) -> None:
    _is_refused(gclint(*arguments, "modeling_sample.py"))


def test_a_settings_file_that_cannot_be_read_is_named(gclint: Callable[..., Outcome]) -> None:
    path = Path("pyproject.toml")
    path.write_text("[tool.gclint]\n")
    path.chmod(0)
    if os.access(path, os.R_OK):
        pytest.skip("whoever runs this may read everything")
    _is_refused(gclint(), "pyproject.toml: cannot be read: ")


def test_a_project_file_without_the_table_is_no_settings_file(gclint: Callable[..., Outcome]) -> None:
    Path("sub").mkdir()
    Path("sub/pyproject.toml").write_text("[project]\n")
    _is_refused(gclint("--config", "sub/pyproject.toml"), "has no [tool.gclint] table")


def test_places_are_right_in_a_file_of_many_shapes(gclint: Callable[..., Outcome]) -> None:
    before = (
        '[project]\nname = "x"\ndescription = """\n[tool.gclint]\nselect = 1\n"""\n'
        "dependencies = [\n  # ]\n  'a[b]',\n  '''c]''',\n]\n[[tool.other]]\nx = { y = [1,\n2] }\n"
    )
    Path("pyproject.toml").write_text(f"{before}[tool]\nother2 = 1\n  gclint.select = 5\n")
    row = before.count("\n") + 3
    _is_refused(gclint(), f"pyproject.toml:{row}:3: select must be a list of strings")
    Path("pyproject.toml").write_bytes(
        f"\ufeff{before}['tool' . \"gclint\"]\r\nselect = [\r\n1]\r\n".encode()
    )
    _is_refused(gclint(), f"pyproject.toml:{row - 1}:1: select must be a list of strings")


_VALUES = st.recursive(
    st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.text(max_size=8)
    | st.sampled_from(["GC001", "ALL", "4.57", "json"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@hypothesis_settings(max_examples=300, deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(
            [*(each.name for each in DEFINITIONS), "rules", "verify", "activation-names", "slect"]
        ),
        _VALUES,
        max_size=3,
    )
)
def test_whatever_a_table_says_it_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, table: dict[str, object]
) -> None:
    from gclint.report.settings import _toml as toml

    folder = tmp_path_factory.mktemp("table")
    lines = "".join(f"{name} = {toml(value)}\n" for name, value in table.items())
    (folder / "gclint.toml").write_text(lines, encoding="utf-8", newline="")
    try:
        found = load_settings(folder, vocabulary(), folder / "gclint.toml")
    except SettingsError as error:
        assert re.search(r"gclint\.toml(:\d+:\d+)?: ", str(error))
        return
    assert isinstance(found, Settings)


def test_every_switch_can_be_turned_off_on_the_command_line(gclint: Callable[..., Outcome]) -> None:
    for each in DEFINITIONS:
        if each.kind is SWITCH:
            Path("pyproject.toml").write_text(f"[tool.gclint]\n{each.name} = true\n")
            assert f"{each.name} = true  # pyproject.toml:2" in gclint("config").out
            assert f"{each.name} = false  # command line" in gclint("config", f"--no-{each.name}").out


def test_a_place_is_found_behind_much_else(gclint: Callable[..., Outcome]) -> None:
    rows = 20_000
    array = "".join('  { name = "x]", extras = ["[", \'}\'] },  # ]\n' for _ in range(rows))
    strings = 'y = """""a"" \\""""""\nz = \'\'\'\n[tool.gclint]\n\'\'\'\n'
    text = f"[tool.other]\nx = [\n{array}]\n{strings}[tool.gclint]\nselct = 1\n"
    Path("pyproject.toml").write_text(text)
    _is_refused(gclint(), f"pyproject.toml:{rows + 9}:1: [tool.gclint] has no setting 'selct'")
