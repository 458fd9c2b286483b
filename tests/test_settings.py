"""[tool.gclint]: where it is looked for, what it may say, and what it means."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from gclint.finding import Finding
from gclint.network.model import Network
from gclint.rule import Rule
from gclint.settings import Settings, SettingsError, common_folder, load_settings, unknown_selectors


class _Rule(Rule):
    code = "GC001"
    name = "missing-checkpointing-layer"

    def check(self, network: Network) -> Iterable[Finding]:
        return ()


def _pyproject(folder: Path, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "pyproject.toml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("selector", ["GC001", "gc001", "GC0", "GC", "missing-checkpointing-layer"])
def test_a_rule_is_selected_by_code_prefix_and_name(selector: str) -> None:
    assert Settings(select=(selector,)).wants(_Rule())
    assert not Settings(ignore=(selector,)).wants(_Rule())
    assert not unknown_selectors([selector], [_Rule()])


@pytest.mark.parametrize("selector", ["GC002", "GC0011", "missing", "C001", ""])
def test_a_rule_is_not_selected_by_anything_else(selector: str) -> None:
    assert not Settings(select=(selector,)).wants(_Rule())
    assert Settings(ignore=(selector,)).wants(_Rule())
    assert unknown_selectors([selector], [_Rule()]) == [selector]


def test_without_settings_every_rule_runs() -> None:
    assert Settings().wants(_Rule())


def test_ignore_is_stronger_than_select() -> None:
    assert not Settings(select=("GC001",), ignore=("GC",)).wants(_Rule())


def test_the_command_line_replaces_what_it_names_and_nothing_else() -> None:
    table = Settings(select=("GC001",), ignore=("GC002",), activation_names=("memory",))
    assert table.overridden(("GC003",), ()) == Settings(
        select=("GC003",), ignore=("GC002",), activation_names=("memory",)
    )
    assert table.overridden((), ("GC003",)).ignore == ("GC003",)


def test_the_nearest_table_counts_and_other_files_do_not(tmp_path: Path) -> None:
    _pyproject(tmp_path, '[tool.gclint]\nselect = ["GC002"]\n')
    _pyproject(tmp_path / "src", "[tool.ruff]\nline-length = 100\n")
    _pyproject(tmp_path / "src" / "package", '[tool.gclint]\nselect = ["GC001"]\n')
    below = tmp_path / "src" / "package" / "models"
    below.mkdir()
    assert load_settings(below).select == ("GC001",)
    assert load_settings(tmp_path / "src").select == ("GC002",)


def test_every_setting_is_read(tmp_path: Path) -> None:
    _pyproject(
        tmp_path,
        '[tool.gclint]\nselect = ["GC"]\nignore = ["GC003"]\n'
        'exclude = ["tests/", "*_old.py"]\nactivation-names = ["memory"]\n',
    )
    assert load_settings(tmp_path) == Settings(
        select=("GC",),
        ignore=("GC003",),
        exclude=("tests", "*_old.py"),
        activation_names=("memory",),
        root=tmp_path,
    )


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[tool.gclint\n", "line 1"),
        ('[tool.gclint]\nslect = ["GC001"]\n', "'slect'"),
        ('[tool.gclint]\nselect = "GC001"\n', "select in [tool.gclint] must be a list of strings"),
        ("[tool.gclint]\nignore = [1]\n", "ignore in [tool.gclint] must be a list of strings"),
        ("[tool]\ngclint = true\n", "must be a table"),
    ],
)
def test_a_wrong_table_is_named_with_its_file(tmp_path: Path, text: str, complaint: str) -> None:
    path = _pyproject(tmp_path, text)
    with pytest.raises(SettingsError) as raised:
        load_settings(tmp_path)
    assert str(path) in str(raised.value)
    assert complaint in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_file_that_is_not_utf_8_is_named(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_bytes(b"# caf\xe9\n[tool.gclint]\n")
    with pytest.raises(SettingsError, match=r"pyproject\.toml"):
        load_settings(tmp_path)


@pytest.mark.parametrize(
    ("pattern", "path", "excluded"),
    [
        ("build", "build/modeling_x.py", True),
        ("build", "src/build/modeling_x.py", True),
        ("build", "src/builder/modeling_x.py", False),
        ("*_old.py", "src/modeling_x_old.py", True),
        ("src/gen*", "src/generated/deep/modeling_x.py", True),
        ("src/gen*", "lib/src/generated/modeling_x.py", False),
        ("*/legacy", "src/models/legacy/modeling_x.py", True),
        ("src/modeling_x.py", "src/modeling_x.py", True),
    ],
)
def test_exclusion(tmp_path: Path, pattern: str, path: str, excluded: bool) -> None:
    assert Settings(exclude=(pattern,), root=tmp_path).excludes(tmp_path / path) is excluded


def test_nothing_outside_the_settings_folder_is_excluded(tmp_path: Path) -> None:
    settings = Settings(exclude=("*",), root=tmp_path / "project")
    assert settings.excludes(tmp_path / "project" / "modeling_x.py")
    assert not settings.excludes(tmp_path / "elsewhere" / "modeling_x.py")


def test_patterns_hold_for_relative_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "src").mkdir()
    monkeypatch.chdir(tmp_path / "src")
    settings = Settings(exclude=("src/generated",), root=tmp_path)
    assert settings.excludes(Path("generated/modeling_x.py"))
    assert not settings.excludes(Path("modeling_x.py"))


def test_the_common_folder_of_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "modeling_x.py").touch()
    assert common_folder([Path("a/b"), Path("a/modeling_x.py")]) == tmp_path / "a"
    assert common_folder([Path("a/modeling_x.py")]) == tmp_path / "a"
    assert common_folder([Path("a/vanished/modeling_x.py")]) == tmp_path / "a" / "vanished"
    assert common_folder([Path()]) == tmp_path
