"""Which changed files are written together."""

from __future__ import annotations

from pathlib import Path

import pytest

from gclint.code.project import Project
from gclint.run.fix import FixResult, fixed_together, written_together
from gclint.settings import Settings
from tests.trees import MODEL, PLAIN_IMPORTS, Tree, copied, model

_PATHS = [Path(f"{name}.py") for name in ("a", "b", "c", "modeling_x", "modular_x", "d")]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.chdir(tmp_path)
    for path in _PATHS:
        path.write_text("x = 1\n")
    return Project(Settings(), _PATHS)


def _repaired(*together: str) -> FixResult:
    changed = {path: ("x = 1\n", "x = 2\n") for path in _PATHS if path.name != "d.py"}
    tied = tuple(frozenset(Path(f"{name}.py") for name in names) for names in together)
    return FixResult((), (), 0, (), changed, groups=(), together=tied)


def _names(units: list[list[Path]]) -> list[str]:
    return sorted("".join(sorted(path.stem[-1] for path in unit)) for unit in units)


def test_a_source_belongs_to_its_product(project: Project) -> None:
    assert _names(fixed_together(project, _repaired())) == ["a", "b", "c", "xx"]


def test_what_one_fix_changes_is_together(project: Project) -> None:
    assert _names(fixed_together(project, _repaired("ab"))) == ["ab", "c", "xx"]


def test_what_hangs_on_a_changed_file_is_written_with_it(project: Project) -> None:
    # Through a file that does not change, too.
    project.consult(project.file(_PATHS[0]), _PATHS[5])
    project.consult(project.file(_PATHS[5]), _PATHS[2])
    assert _names(fixed_together(project, _repaired())) == ["a", "b", "c", "xx"]
    assert _names(written_together(project, _repaired())) == ["ac", "b", "xx"]


def test_copies_are_written_together(tmp_path: Path) -> None:
    copy = PLAIN_IMPORTS + copied("Alpha", "Alpha->Beta").replace("{0}", "Beta").replace("{1}", "nn.Module")
    tree = Tree(tmp_path)
    tree.write(
        {
            "alpha/modeling_alpha.py": model("Alpha"),
            "beta/modeling_beta.py": copy + MODEL.format("Beta", True),
            "gamma/modeling_gamma.py": model("Gamma"),
        }
    )
    _, result = tree.fix(unsafe=True)
    assert len(result.changed) == 3
    assert [sorted(path.stem for path in paths) for paths in result.together] == [
        ["modeling_alpha", "modeling_beta"]
    ]
