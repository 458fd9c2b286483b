"""The script that shows a failure is Python, whatever the failure is about."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from gclint.verify.repro import script, write_scripts
from gclint.verify.results import Results
from gclint.verify.worker.protocol import ClassResult, Failure, Mode, Recipe

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
