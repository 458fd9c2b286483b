"""The script that shows a failure is Python, whatever the failure is about."""

from __future__ import annotations

import ast
import runpy
import sys
import warnings
from dataclasses import replace
from pathlib import Path

import pytest

from gclint.verify.repro import script, write_scripts
from gclint.verify.results import Results
from gclint.verify.sources import target_of
from gclint.verify.worker import scenarios
from gclint.verify.worker.protocol import ClassResult, Failure, Mode, Recipe, decode, encode
from gclint.verify.worker.scenarios import SCENARIOS, Scenario, UnknownScenario
from tests.verify.planted import FOLDER, examine_planted, imported, specimen

_RECIPE = Recipe(
    "toys.configuration_toy.ToyConfig",
    {"width": 8, "text": {"name": 'it\'s a "model"', "sizes": list(range(100))}},
    {"input_ids": "torch.tensor([[1]])", "pixel_values": "torch.randn((2, 3))"},
)


def _script(folder: Path, failure: Failure) -> str:
    result = ClassResult(str(folder / "modeling_toy.py"), "ToyModel", "failed", failures=(failure,))
    return script(result, failure, _RECIPE)


def _failure(mode: Mode = "reentrant", scenario: str = "default", message: str = "they differ") -> Failure:
    return Failure("gradients", mode, scenario, message)


_SHOWN_BY = {
    ("default", "non-reentrant"): ("dictionary_shared", "different layers.0"),
    ("default", "reentrant"): ("keyword_stream", "lost layers.0"),
    ("dropout", "non-reentrant"): ("random_with_dropout", "different layers.0"),
    ("dropout", "reentrant"): ("random_with_dropout", "different layers.0"),
    ("cache", "non-reentrant"): ("cache_by_position", "CheckpointError"),
    ("cache", "reentrant"): ("cache_by_position", "different layers.0"),
    ("frozen base", "non-reentrant"): ("random_when_frozen", "different layers.0"),
    ("frozen base", "reentrant"): ("frozen_images", "lost layers.0"),
    ("cross-attention", "non-reentrant"): ("cross_attention", "different layers.0"),
    ("cross-attention", "reentrant"): ("cross_attention", "backward through the graph a second time"),
    ("key-value sharing", "non-reentrant"): ("key_value_sharing", "different layers.0"),
    ("key-value sharing", "reentrant"): ("key_value_sharing", "different layers.0"),
}
"""For each scenario and mode a planted model that fails in it, and what the script for that prints."""


@pytest.mark.parametrize("message", ['a """quoted""" word', "a path\\", "two\nlines", "{braces} and %s", '"'])
def test_any_message_is_in_the_first_words(tmp_path: Path, message: str) -> None:
    tree = ast.parse(_script(tmp_path, _failure(message=message)))
    documentation = ast.get_docstring(tree)
    assert documentation
    assert message.replace('"', "'").split()[0] in documentation


def test_the_configuration_is_all_there(tmp_path: Path) -> None:
    tree = ast.parse(_script(tmp_path, _failure()))
    (config,) = [
        node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "CONFIG"
    ]
    assert ast.literal_eval(config) == _RECIPE.config


@pytest.mark.parametrize(
    ("failure", "line"),
    [
        (_failure("reentrant"), "step(use_reentrant=True)"),
        (_failure("non-reentrant"), "step(use_reentrant=False)"),
        (_failure(scenario="cache"), "config.use_cache = True"),
        (_failure(scenario="cache"), 'inputs["use_cache"] = True'),
        (_failure(), "config.use_cache = False"),
        (_failure(scenario="frozen base"), "model.enable_input_require_grads()"),
    ],
)
def test_it_does_what_failed(tmp_path: Path, failure: Failure, line: str) -> None:
    text = _script(tmp_path, failure)
    ast.parse(text)
    assert line in text


def test_files_in_packages_and_without_one_are_imported_under_their_names(tmp_path: Path) -> None:
    alone = _script(tmp_path, _failure())
    assert f"package.__path__ = [{str(tmp_path)!r}]" in alone
    package = tmp_path / "toys"
    package.mkdir()
    (package / "__init__.py").touch()
    inside = _script(package, _failure())
    assert f"sys.path.insert(0, {str(tmp_path)!r})" in inside
    assert "from toys.modeling_toy import ToyModel" in inside
    ast.parse(inside)


def test_a_class_that_fails_without_checkpointing_has_no_script(tmp_path: Path) -> None:
    results = Results()
    path = str(tmp_path / "modeling_toy.py")
    for name, failure in (("Plain", _failure("plain")), ("Checkpointed", _failure())):
        result = ClassResult(path, name, "failed", failures=(failure,), recipe=_RECIPE)
        results.add(result, tree=None)
    written = write_scripts(tmp_path / "scripts", results)
    assert [each.name for each in written] == ["modeling_toy_Checkpointed.py"]


def test_nothing_fails_in_a_scenario_that_no_script_knows() -> None:
    with pytest.raises(UnknownScenario, match="no scenario 'full moon'"):
        _failure(scenario="full moon")
    line = encode(ClassResult("modeling_toy.py", "ToyModel", "failed", failures=(_failure(),)))
    with pytest.raises(ValueError, match="no scenario 'full moon'"):
        decode(line.replace('"default"', '"full moon"'))


@pytest.mark.torch
@pytest.mark.parametrize("mode", ["non-reentrant", "reentrant"])
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_the_script_shows_a_failure_of_each_scenario(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], scenario: Scenario, mode: Mode
) -> None:
    planted, words = _SHOWN_BY[scenario.name, mode]
    assert words in _shown(tmp_path, capsys, planted, scenario.name, mode)


@pytest.mark.torch
def test_the_script_trains_adapters_without_what_the_model_cannot_take(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "lost layers.0" in _shown(tmp_path, capsys, "tuple_of_patches", "frozen base", "reentrant")


@pytest.mark.torch
@pytest.mark.parametrize(
    ("planted", "scenario"),
    [
        ("healthy", "default"),
        ("healthy", "dropout"),
        ("healthy", "frozen base"),
        ("frozen_images_with_hook", "frozen base"),
        ("cache_by_keyword", "cache"),
        # What fails, but only in a scenario that this is not.
        ("cache_by_position", "default"),
        ("frozen_images", "default"),
        ("random_when_frozen", "default"),
    ],
)
def test_the_script_shows_nothing_where_nothing_is_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], planted: str, scenario: str
) -> None:
    modes: tuple[Mode, ...] = ("non-reentrant", "reentrant")
    for mode in modes:
        shown = _run(tmp_path, capsys, planted, _failure(mode, scenario), _recipe(planted))
        assert [line.split()[0] for line in shown.splitlines()] == ["saved"]


@pytest.mark.torch
def test_an_entry_in_the_table_is_all_that_a_new_scenario_needs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    default, dropout, cache, *others = SCENARIOS
    new = replace(cache, name="two steps with a cache", steps=2)
    monkeypatch.setattr(scenarios, "SCENARIOS", (default, dropout, new, *others))
    result = examine_planted("cache_by_position")
    assert result.scenarios == ("default", new.name, "frozen base")
    assert {(each.mode, each.scenario) for each in result.failures} == {
        ("non-reentrant", new.name),
        ("reentrant", new.name),
    }
    assert "different layers.0" in _shown(tmp_path, capsys, "cache_by_position", new.name, "reentrant")


@pytest.mark.torch
def test_the_recipe_is_that_of_the_failure_that_is_shown() -> None:
    from gclint.verify.worker.examination.ledger import Ledger
    from gclint.verify.worker.protocol import Source

    with imported("cross_attention") as module:
        default, further = specimen(module), specimen(module, "cross-attention", add_cross_attention=True)
        ledger = Ledger(Source(module.__file__, module.__name__), module.ToyModel, ())
        ledger.fail(_failure("plain", "frozen base"), default)
        ledger.fail(_failure("reentrant", "cross-attention"), further)
        ledger.fail(_failure("reentrant", "default"), default)
    recipe = ledger.result().recipe
    assert recipe is not None
    assert "requires_grad_()" in recipe.inputs["encoder_hidden_states"]


def _shown(folder: Path, capsys: pytest.CaptureFixture[str], planted: str, scenario: str, mode: Mode) -> str:
    """Return what the script prints that is written for a failure of a planted model."""
    result = examine_planted(planted)
    failure = next(each for each in result.failures if (each.scenario, each.mode) == (scenario, mode))
    assert result.recipe is not None
    return _run(folder, capsys, planted, failure, result.recipe)


def _run(
    folder: Path, capsys: pytest.CaptureFixture[str], planted: str, failure: Failure, recipe: Recipe
) -> str:
    """Run a script and return what it prints, an error that ends it included."""
    source = target_of(FOLDER / planted / "modeling_toy.py").source
    package = source.module.rpartition(".")[0]
    # Scripts import the model as the worker does, and the tests' examination otherwise.
    recipe = replace(recipe, config_class=f"{package}.configuration_toy.ToyConfig")
    path = folder / "script.py"
    path.write_text(script(ClassResult(source.path, "ToyModel", "failed"), failure, recipe), encoding="utf-8")
    capsys.readouterr()
    error = ""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            runpy.run_path(str(path))
    except Exception as raised:
        error = f"{type(raised).__name__}: {raised}"
    finally:
        for name in [name for name in sys.modules if name.split(".")[0] == package]:
            del sys.modules[name]
    return capsys.readouterr().out + error


def _recipe(planted: str) -> Recipe:
    from gclint.verify.worker.examination.recipe import recipe

    with imported(planted) as module:
        return recipe(specimen(module))
