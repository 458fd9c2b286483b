"""[tool.gclint.verify]: what users say about their own classes."""

from __future__ import annotations

from pathlib import Path

import pytest

from gclint.settings import SettingsError, Vocabulary, load_settings
from gclint.verify.worker.class_settings import ClassSettings


def _load(folder: Path, text: str) -> tuple[ClassSettings, ...]:
    (folder / "pyproject.toml").write_text(text, encoding="utf-8")
    return load_settings(folder, Vocabulary()).known


def test_what_is_said_about_classes_is_read_with_its_files(tmp_path: Path) -> None:
    (tmp_path / "tiny.json").write_text('{"hidden_size": 8}', encoding="utf-8")
    (tmp_path / "inputs.py").touch()
    known = _load(
        tmp_path,
        """
        [tool.gclint.verify.configurations.OtterConfig]
        fields = { num_pups = 2 }
        [tool.gclint.verify.models.OtterModel]
        config = "tiny.json"
        inputs = "inputs.py:make"
        [tool.gclint.verify.models.PupModel]
        inputs = "zoo.inputs:make"
        """,
    )
    place, folder = "[tool.gclint.verify.{}]", str(tmp_path)
    assert known == (
        ClassSettings(
            "OtterConfig", {"num_pups": 2}, None, None, place.format("configurations.OtterConfig"), folder
        ),
        ClassSettings(
            "OtterModel",
            {},
            {"hidden_size": 8},
            f"{tmp_path / 'inputs.py'}:make",
            place.format("models.OtterModel"),
            folder,
        ),
        ClassSettings("PupModel", {}, None, "zoo.inputs:make", place.format("models.PupModel"), folder),
    )


def test_nothing_need_be_said(tmp_path: Path) -> None:
    assert _load(tmp_path, "[tool.gclint]") == ()


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("verify = 1", r"\[tool.gclint.verify\] must be a table"),
        (
            "verify.model.X.fields = {}",
            r"\[tool.gclint.verify\] has no setting 'model'; did you mean 'models'\?",
        ),
        ("verify.models = 1", r"\[tool.gclint.verify.models\] must be a table"),
        ("verify.models.X = 1", r"\[tool.gclint.verify.models.X\] must be a table"),
        (
            "verify.models.X = {}",
            r"\[tool.gclint.verify.models.X\] is empty; it may set fields, config, inputs",
        ),
        ("verify.models.X.input = 'a:b'", r"models.X\] has no setting 'input'; did you mean 'inputs'\?"),
        (
            "verify.configurations.X.inputs = 'a:b'",
            r"configurations.X\] has no setting 'inputs'; the settings are fields, config",
        ),
        ("verify.models.X.fields = 1", r"fields in \[tool.gclint.verify.models.X\] must be a table"),
        ("verify.models.X.config = 1", r"config in .*models.X\] must be the path of a config.json"),
        ("verify.models.X.config = 'none.json'", r"config in .*none.json: No such file or directory"),
        ("verify.models.X.config = 'broken.json'", r"config in .*broken.json is not JSON: Expecting"),
        ("verify.models.X.config = 'list.json'", r"config in .*list.json does not hold a JSON object"),
        ("verify.models.X.inputs = 1", r"inputs in .*models.X\] must be a string like file.py:function"),
        (
            "verify.models.X.inputs = 'make'",
            r"inputs in .*models.X\] is 'make'; write it like file.py:function",
        ),
        ("verify.models.X.inputs = 'none.py:make'", r"inputs in .*models.X\]: there is no file .*none.py"),
    ],
)
def test_what_cannot_be_used_is_named(tmp_path: Path, table: str, message: str) -> None:
    (tmp_path / "broken.json").write_text("{", encoding="utf-8")
    (tmp_path / "list.json").write_text("[]", encoding="utf-8")
    with pytest.raises(SettingsError, match=message) as caught:
        _load(tmp_path, f"[tool.gclint]\n{table}")
    assert str(tmp_path / "pyproject.toml") in str(caught.value)
