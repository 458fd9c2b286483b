"""[tool.gclint]: where it is looked for, what it may say, and what it means."""

from __future__ import annotations

from pathlib import Path

import pytest

from gclint.rule import all_rules, selected_rules, unknown_selectors
from gclint.settings import Settings, SettingsError, Vocabulary, common_folder, load_settings
from gclint.settings.definitions import BY_NAME, RuleSetting, RuleWords

_OF_RULES = Vocabulary(
    lambda: (
        RuleWords("GC901", "a-rule", (RuleSetting("some-names", "Names."), RuleSetting("words", "Words."))),
    )
)


def _pyproject(folder: Path, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "pyproject.toml"
    path.write_text(text, encoding="utf-8")
    return path


_CODES = [rule.code for rule in all_rules()]


def _selected(settings: Settings) -> list[str]:
    return [rule.code for rule in selected_rules(settings)]


@pytest.mark.parametrize("selector", ["GC999", "GC0011", "missing", "C001", ""])
def test_a_rule_is_not_selected_by_anything_else(selector: str) -> None:
    assert _selected(Settings(select=(selector,))) == ["GC000"]
    assert _selected(Settings(ignore=(selector,))) == _CODES
    assert unknown_selectors(Settings(select=("GC001",), ignore=(selector,))) == [("ignore", selector)]


def test_every_setting_is_read(tmp_path: Path) -> None:
    _pyproject(
        tmp_path,
        '[tool.gclint]\nselect = ["GC"]\nignore = ["GC003"]\n'
        'exclude = ["tests/", "*_old.py"]\nwords = ["memory"]\n',
    )
    assert load_settings(tmp_path, _OF_RULES) == Settings(
        select=("GC",),
        ignore=("GC003",),
        exclude=("tests", "*_old.py"),
        of_rules=(("words", ("memory",)),),
        root=tmp_path,
        start=tmp_path,
    )


def test_what_is_not_set_is_told_from_what_is_set_to_nothing(tmp_path: Path) -> None:
    _pyproject(tmp_path, "[tool.gclint]\nwords = []\n")
    settings = load_settings(tmp_path, _OF_RULES)
    assert (settings.given("words"), settings.given("some-names")) == ((), None)


def test_the_settings_of_rules_have_names_of_their_own() -> None:
    declared = [setting for rule in all_rules() for setting in rule.settings]
    assert len({setting.name for setting in declared}) == len(declared)
    assert {*BY_NAME}.isdisjoint(setting.name for setting in declared)


def test_a_setting_of_a_rule_that_is_wrong_is_named_with_its_place(tmp_path: Path) -> None:
    path = _pyproject(tmp_path, "[tool.gclint]\nwords = [1]\n")
    with pytest.raises(SettingsError) as raised:
        load_settings(tmp_path, _OF_RULES)
    assert str(raised.value) == f"{path}:2:1: words must be a list of strings"


def test_nothing_outside_the_settings_folder_is_excluded(tmp_path: Path) -> None:
    settings = Settings(exclude=("*",), root=tmp_path / "project")
    assert settings.excludes(tmp_path / "project" / "modeling_x.py")
    assert not settings.excludes(tmp_path / "elsewhere" / "modeling_x.py")


def test_the_common_folder_of_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "modeling_x.py").touch()
    assert common_folder([Path("a/b"), Path("a/modeling_x.py")]) == tmp_path / "a"
    assert common_folder([Path("a/modeling_x.py")]) == tmp_path / "a"
    assert common_folder([Path("a/vanished/modeling_x.py")]) == tmp_path / "a" / "vanished"
    assert common_folder([Path()]) == tmp_path
