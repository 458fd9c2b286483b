"""The table of releases says of the base class what the released code does."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gclint.releases import EVER_NEUTRALISED, releases

pytestmark = pytest.mark.releases


def _switched_off(tree: ast.AST) -> Iterator[str]:
    """Yield the keyword arguments that some code sets to None or False."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and not node.value.value:
            for target in node.targets:
                if isinstance(target, ast.Subscript) and ast.unparse(target.value) == "kwargs":
                    yield ast.literal_eval(target.slice)


@pytest.mark.parametrize("version", ["4.45.2", "4.49.0", "4.52.4", "4.53.3", "4.57.6", "5.0.0", "5.23.0"])
def test_the_table_is_what_the_base_class_does(release: Callable[[str], Path], version: str) -> None:
    file = release(version) / "transformers" / "modeling_layers.py"
    known = releases(version)
    assert file.exists() is known.have_base_class
    if known.have_base_class:
        tree = ast.parse(file.read_text(encoding="utf-8"))
        (definition,) = [
            node
            for node in tree.body
            if isinstance(node, ast.ClassDef) and node.name == "GradientCheckpointingLayer"
        ]
        neutralised = {each for each in EVER_NEUTRALISED if known.neutralise_somewhere(each)}
        assert set(_switched_off(definition)) == neutralised
