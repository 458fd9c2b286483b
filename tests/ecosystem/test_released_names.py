"""The table of names that only some releases have, against those releases."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from gclint.code.project import Project
from gclint.code.requirements import importable_releases
from gclint.releases import releases
from gclint.settings import Settings
from tests.ecosystem.releases import release_tree


def _with_absolute_imports(text: str) -> str:
    """Return the imports of a modeling file from the library, as a file elsewhere has them."""
    found = []
    for node in ast.parse(text).body:
        if isinstance(node, ast.ImportFrom) and node.level == 3 and node.module:
            found.append(ast.unparse(ast.ImportFrom(f"transformers.{node.module}", node.names, 0)))
    return "\n".join(found) + "\n"


@pytest.mark.releases
@pytest.mark.parametrize("version", ["4.52.4", "4.57.6", "5.23.0"])
def test_a_release_has_what_its_own_files_import(version: str, tmp_path: Path) -> None:
    own, bounded = releases(version), 0
    models = release_tree(version) / "transformers" / "models"
    for number, path in enumerate(sorted(models.glob("*/modeling_*.py"))):
        if path.name.startswith(("modeling_tf_", "modeling_flax_")):
            continue
        copy = tmp_path / f"modeling_{number}.py"
        copy.write_text(_with_absolute_imports(path.read_text(encoding="utf-8")), encoding="utf-8")
        project = Project(Settings(), [copy])
        found = importable_releases(project.file(copy))
        assert found.within(own) == own, path
        bounded += found.says_something
    assert bounded > 100
