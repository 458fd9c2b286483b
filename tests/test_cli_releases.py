"""The options about releases of transformers and about its source; unknown bases in the summary."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.sample import BROKEN
from tests.terminal import Outcome, runner
from tests.test_library import LIBRARY, USER
from tests.test_releases_of_projects import library, write

Run = Callable[..., Outcome]


@pytest.fixture
def gclint(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    """Run gclint where nothing is installed."""
    monkeypatch.setattr("gclint.code.packages.active_environments", tuple)
    monkeypatch.chdir(tmp_path)
    return runner(monkeypatch, capsys)


def _reason(out: str) -> str:
    (finding,) = json.loads(out)
    return str(finding["fix"]["reason"] if finding["fix"] else finding["reason"])


def test_the_releases_are_those_of_the_option_or_of_the_table(gclint: Run) -> None:
    Path("modeling_sample.py").write_text(BROKEN)
    arguments = ("--output-format", "json", ".")
    assert _reason(gclint(*arguments)[1]) == "None"
    assert "this code targets transformers 4.49" in _reason(gclint("--target-version", "4.49", *arguments)[1])
    Path("pyproject.toml").write_text('[tool.gclint]\ntarget-version = ">=4.40"\n')
    assert "this code may run with transformers >=4.40,<4.52" in _reason(gclint(*arguments)[1])
    assert _reason(gclint("--target-version", ">=4.53", *arguments)[1]) == "None"


@pytest.mark.parametrize("wrong", ["new", ">=5,<4"])
def test_what_is_no_release_is_refused(gclint: Run, wrong: str) -> None:
    status, out, err = gclint("--target-version", wrong)
    assert (status, out) == (2, "")
    assert "--target-version" in err and repr(wrong) in err and ">=4.53,<5" in err
    Path("pyproject.toml").write_text(f'[tool.gclint]\ntarget-version = "{wrong}"\n')
    Path("modeling_x.py").touch()
    status, out, err = gclint()
    assert (status, out) == (2, "")
    assert "pyproject.toml:2:1: target-version: " in err and repr(wrong) in err


def test_a_library_that_is_none_is_refused(gclint: Run) -> None:
    Path("modeling_x.py").touch()
    status, _, err = gclint("--library", "elsewhere")
    assert status == 2
    assert "--library: transformers was not found in elsewhere" in err
    Path("pyproject.toml").write_text('[tool.gclint]\nlibrary = "elsewhere"\n')
    status, _, err = gclint()
    assert status == 2
    assert "pyproject.toml:2:1: library: transformers was not found in" in err


@pytest.mark.parametrize("way", ["option", "setting"])
def test_the_summary_says_which_bases_are_unknown_until_the_library_is_named(
    gclint: Run, way: str, tmp_path: Path
) -> None:
    write(tmp_path / "hf", LIBRARY)
    imports = "from transformers import OtterDecoderLayer, OtterPreTrainedModel"
    text = USER.format(imports=imports, model="OtterPreTrainedModel", layer="MyLayer")
    layer = "class MyLayer(OtterDecoderLayer):\n    def forward(self, x, past_key_values=None): ...\n\n\n"
    write(tmp_path / "mine", {"modeling_mine.py": text.replace("class MyModel", layer + "class MyModel")})
    status, out, err = gclint("mine")
    assert (status, err) == (0, "")
    assert out.splitlines() == [
        "No findings in 1 file.",
        "2 base classes are unknown: OtterDecoderLayer, OtterPreTrainedModel (their subclasses were not "
        "checked; install transformers, or pass its folder with --library)",
    ]
    assert json.loads(gclint("mine", "--output-format", "json")[1]) == []
    Path("mine/pyproject.toml").write_text('[tool.gclint]\nlibrary = "../hf"\n' if way == "setting" else "")
    status, out, _ = gclint("mine", *(["--library", "hf"] if way == "option" else []))
    assert status == 1
    assert "GC002" in out
    assert "unknown" not in out


def test_the_summary_says_which_releases_are_a_guess_and_why(gclint: Run, tmp_path: Path) -> None:
    def assumed(*options: str) -> list[str]:
        lines = gclint("mine", *options).out.splitlines()
        return [each for each in lines if each.startswith("Assumed ")]

    wrong = "set target-version if that is wrong."
    newest = "transformers 5.17 and later (the newest one that gclint knows)"
    write(tmp_path / "hf", library("5.3.0", "transformers"))
    write(tmp_path / "mine", {"a/modeling_a.py": BROKEN, "b/modeling_b.py": BROKEN})
    assert assumed() == [f"Assumed {newest}; {wrong}"]
    assert assumed("-q") == assumed("--target-version", ">=4.53") == assumed("--library", "hf") == []
    write(tmp_path / "mine", {"a/config.json": '{"transformers_version": "4.55.1"}'})
    assert assumed() == [f"Assumed transformers 4.55.1 and later (from config.json) and {newest}; {wrong}"]
    Path("mine/b/modeling_b.py").write_text(f"from transformers.cache_utils import HybridCache\n{BROKEN}")
    own = "transformers before 5.0 (by what files import)"
    assert assumed() == [f"Assumed transformers 4.55.1 and later (from config.json) and {own}; {wrong}"]
    write(tmp_path / "mine", {"requirements.txt": "transformers>=5\n"})
    assert assumed() == []
