"""The script that shows a failure is Python, whatever the failure is about."""

from __future__ import annotations

import ast
import os
import runpy
import shlex
import subprocess
import sys
import warnings
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import NoReturn

import pytest

from gclint.verify.repro import script, scripts
from gclint.verify.results import Results
from gclint.verify.sources import target_of
from gclint.verify.worker import scenarios
from gclint.verify.worker.protocol import ClassResult, Failure, Mode, Recipe, decode, encode
from gclint.verify.worker.scenarios import AGAIN, CHECKS, OPTION, SCENARIOS, UnknownScenario, scenario_named
from tests.verify.planted import FOLDER, Planted, examine_planted, imported, load_planted, tiny_model

_RECIPE = Recipe(
    "toys.configuration_toy.ToyConfig",
    {"width": 8, "text": {"name": 'it\'s a "model"', "sizes": list(range(100))}},
    {"input_ids": "torch.tensor([[1]])", "pixel_values": "torch.randn((2, 3))"},
)


def _script(folder: Path, failure: Failure) -> str:
    result = ClassResult(str(folder / "modeling_toy.py"), "ToyModel", "failed", failures=(failure,))
    return script(result, failure, _RECIPE)


def _failure(
    mode: Mode = "reentrant",
    scenario: str = "default",
    message: str = "they differ",
    check: str = "gradients",
) -> Failure:
    return Failure(check, mode, scenario, message)


_NOT_SHOWN = ("values_only", "first_result_kept", "first_with_gradients")
"""What a script does not show yet: other values that reach no output of a module, and what a function or a
module keeps of the run without checkpointing, which the script makes in the same process."""
_PLANTED = [
    each
    for each in load_planted()
    if each.expectations and not each.needs_limits and each.name not in _NOT_SHOWN
]
_SIGNS = (
    " parameters get ", " values are different: ", " is not recomputed ", " is recomputed ",
    " bytes are saved ", " is written to again ", "torch warns: ",
    "checkpointing is not ", "training raises ",
)  # fmt: skip
"""What the sentences have in which a failure shows."""


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
    assert isinstance(config, ast.Call)
    assert {each.arg: ast.literal_eval(each.value) for each in config.keywords} == _RECIPE.config


@pytest.mark.parametrize(
    ("failure", "line"),
    [
        (_failure("reentrant"), "train(use_reentrant=True)"),
        (_failure("non-reentrant"), "train(use_reentrant=False)"),
        (_failure(scenario="cache"), "part.use_cache = True"),
        (_failure(scenario="cache"), 'inputs["use_cache"] = True'),
        (_failure(), "part.use_cache = False"),
        (_failure(scenario="cache object"), 'inputs["past_key_values"] = cache'),
        (_failure(scenario="two forwards"), "for index in range(2)"),
        (_failure(scenario="frozen base"), "HOOK = True"),
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


def test_scripts_rather_show_what_fails_with_checkpointing(tmp_path: Path) -> None:
    results = Results()
    path = str(tmp_path / "modeling_toy.py")
    for name, modes in (("Plain", ["plain"]), ("Both", ["plain", "reentrant"])):
        failures = tuple(_failure(mode) for mode in modes)  # type: ignore[arg-type]
        result = ClassResult(path, name, "failed", failures=failures, recipes=(_RECIPE,))
        results.add(result, tree=None)
    written = dict(scripts(results))
    assert "use_reentrant" not in written["modeling_toy_Plain.py"]
    assert "train(use_reentrant=True)" in written["modeling_toy_Both.py"]


def test_nothing_fails_in_a_scenario_that_no_script_knows() -> None:
    with pytest.raises(UnknownScenario, match="no scenario 'full moon'"):
        _failure(scenario="full moon")
    line = encode(ClassResult("modeling_toy.py", "ToyModel", "failed", failures=(_failure(),)))
    with pytest.raises(ValueError, match="no scenario 'full moon'"):
        decode(line.replace('"default"', '"full moon"'))


def test_each_scenario_has_a_model_that_fails_in_it() -> None:
    shown = {each.scenario for planted in _PLANTED for each in planted.expectations}
    own = {each.name for each in SCENARIOS if each.feature in ("default", each.name)} - {OPTION}
    assert {each for each in own if not scenario_named(each).frozen_statistics} <= shown
    assert any(each.startswith(f"{OPTION} ") for each in shown)


@pytest.mark.torch
@pytest.mark.drawn(full=25)
@pytest.mark.parametrize("planted", _PLANTED, ids=lambda planted: planted.name)
def test_the_script_shows_each_failure(tmp_path: Path, planted: Planted) -> None:
    result = examine_planted(planted.name)
    for failure in result.failures:
        recipe = result.recipe_of(failure)
        assert recipe is not None
        status, shown = _run(tmp_path, planted.name, failure, recipe)
        assert (status, any(each in shown for each in _SIGNS)) == (1, True), (failure, shown)


@pytest.mark.torch
def test_the_script_trains_adapters_without_what_the_model_cannot_take(tmp_path: Path) -> None:
    failure = _failure("reentrant", "frozen base", check="frozen base")
    status, shown = _run(tmp_path, "tuple_of_patches", failure, _recipe("tuple_of_patches"))
    assert status == 1
    assert "training raises RuntimeError: element 0 of tensors does not require grad" in shown


@pytest.mark.torch
def test_the_script_shows_an_endless_recomputation_on_a_small_stack(tmp_path: Path) -> None:
    failure = _failure("reentrant", check="error", message=f"layers.0 {AGAIN}")
    path = _written(tmp_path, "returned_again", failure, _recipe("returned_again"))
    limited = f"ulimit -s 384; exec {shlex.join([sys.executable, str(path)])}"
    shown = subprocess.run(["sh", "-c", limited], capture_output=True, text=True, check=False)
    assert (shown.returncode, "is recomputed without end" in shown.stdout) == (1, True), shown.stderr


@pytest.mark.torch
@pytest.mark.parametrize(
    ("planted", "scenarios"),
    [
        ("healthy", ("default", "two forwards", "dropout", "frozen base")),
        ("as_trained", ("default", "two forwards", "dropout", "frozen base")),
        ("layerdrop", ("layerdrop",)),
        ("router_losses", ("default",)),
        ("router_losses_returned", ("router losses",)),
        ("frozen_images_with_hook", ("frozen base",)),
        ("cache_by_keyword", ("cache",)),
        # What fails, but only in a scenario that this is not.
        ("cache_by_position", ("default",)),
        ("given_cache_by_position", ("default",)),
        ("left_between_forwards", ("default",)),
        ("layerdrop_random", ("default", "dropout")),
        ("frozen_images", ("default",)),
        ("random_when_frozen", ("default",)),
    ],
)
def test_the_script_shows_nothing_where_nothing_is_wrong(
    tmp_path: Path, planted: str, scenarios: tuple[str, ...]
) -> None:
    modes: tuple[Mode, ...] = ("non-reentrant", "reentrant")
    recipe = _recipe(planted)
    for scenario, mode in product(scenarios, modes):
        for check in CHECKS if (planted, scenario) == ("healthy", "default") else ("error", "gradients"):
            failure = _failure(mode, scenario, check=check)
            status, shown = _run(tmp_path, planted, failure, recipe)
            assert (status, shown.splitlines()[1:]) == (0, ["the failure does not show"])


@pytest.mark.torch
def test_an_entry_in_the_table_is_all_that_a_new_scenario_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = scenario_named("cache")
    new = replace(cache, name="two steps with a cache", steps=2)
    monkeypatch.setattr(scenarios, "SCENARIOS", tuple(new if each is cache else each for each in SCENARIOS))
    result = examine_planted("cache_by_position")
    assert new.name in result.scenarios, result.reason
    assert {(each.mode, each.scenario) for each in result.failures} == {
        ("non-reentrant", new.name),
        ("reentrant", new.name),
    }
    failure = next(each for each in result.failures if each.mode == "reentrant")
    recipe = result.recipe_of(failure)
    assert recipe is not None
    status, shown = _run(tmp_path, "cache_by_position", failure, recipe)
    assert status == 1
    assert "parameters get another gradient" in shown


@pytest.mark.torch
def test_the_recipe_is_that_of_the_failure_that_is_shown() -> None:
    from gclint.verify.worker.examination.result_builder import ClassResultBuilder
    from gclint.verify.worker.protocol import Source

    with imported("cross_attention") as module:
        default, further = tiny_model(module), tiny_model(module, "cross-attention", add_cross_attention=True)
        builder = ClassResultBuilder(Source(module.__file__, module.__name__), module.ToyModel)
        builder.fail(_failure("plain", "frozen base"), default)
        builder.fail(_failure("reentrant", "cross-attention"), further)
        builder.fail(_failure("reentrant", "default"), default)
    result = builder.result()
    for failure in result.failures:
        recipe = result.recipe_of(failure)
        assert recipe is not None
        assert ("encoder_hidden_states" in recipe.inputs) == (failure.scenario == "cross-attention")
    assert "requires_grad_()" in result.recipes[-1].inputs["encoder_hidden_states"]


@pytest.mark.torch
def test_a_recipe_has_only_the_fields_and_inputs_that_are_needed() -> None:
    from gclint.verify.worker.examination.reporting import recipe

    with imported("as_trained") as module:
        usual, deeper = tiny_model(module), tiny_model(module, num_hidden_layers=6)
        assert recipe(usual).config == {}
        made = recipe(replace(deeper, inputs=lambda: {**usual.inputs(), "labels": None}))
    assert made.config == {"num_hidden_layers": 6}
    assert "input_ids" in made.inputs
    assert "labels" in made.other_inputs
    assert "labels" not in made.inputs


def _written(folder: Path, planted: str, failure: Failure, recipe: Recipe) -> Path:
    """Write the script of a failure."""
    source = target_of(FOLDER / planted / "modeling_toy.py").source
    package = source.module.rpartition(".")[0]
    # Scripts import the model as the worker does, and the tests' examination otherwise.
    recipe = replace(recipe, config_class=f"{package}.configuration_toy.ToyConfig")
    path = folder / "script.py"
    path.write_text(script(ClassResult(source.path, "ToyModel", "failed"), failure, recipe), encoding="utf-8")
    return path


def _run(folder: Path, planted: str, failure: Failure, recipe: Recipe) -> tuple[int, str]:
    """Run a script and return its exit status and what it prints."""
    path, output = _written(folder, planted, failure, recipe), folder / "output.txt"
    process = os.fork()
    if not process:
        # What a backward pass leaves in a process would make later forks of it hang.
        _live(path, output)
    status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    return status, output.read_text(encoding="utf-8")


def _live(path: Path, output: Path) -> NoReturn:
    import torch

    torch.set_num_threads(1)
    status = 0
    with output.open("w", encoding="utf-8") as sys.stdout:
        try:
            warnings.simplefilter("ignore")
            runpy.run_path(str(path))
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else 2
        except BaseException as error:
            status = 3
            print(f"{type(error).__name__}: {error}")
    os._exit(status)


def _recipe(planted: str) -> Recipe:
    from gclint.verify.worker.examination.reporting import recipe

    with imported(planted) as module:
        return recipe(tiny_model(module))
