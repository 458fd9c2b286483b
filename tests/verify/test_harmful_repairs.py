"""Repairs that do harm are refused, for the right reason: the folders of ``fixtures/proof``.

The first lines of each ``modeling_toy.py`` say which rule is said to repair which block, and what the prover
says of the text in ``modeling_toy.after.py``; ``proven`` is said of a repair that does none.
"""

from __future__ import annotations

import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from gclint.code.project import Project
from gclint.finding import Edit, Finding, Fix
from gclint.proof.proving import Proof, prove
from gclint.rule import all_rules
from gclint.run.fix import FixResult
from gclint.settings import Settings
from gclint.verify.files import FileRunner
from gclint.verify.settings import RunSettings
from tests.harness import FIXTURES

pytestmark = pytest.mark.torch

_FOLDER = FIXTURES / "proof"
_REPAIR, _SAYS, _PROVEN = "# proof: ", "# says: ", "proven"


@dataclass(frozen=True)
class _Harm:
    """A repair that does harm, unless the prover is to say that it does none."""

    name: str
    code: str
    symbol: str
    words: tuple[str, ...]


def _load(folder: Path) -> _Harm:
    lines = (folder / "modeling_toy.py").read_text().splitlines()
    (repair,) = [line.removeprefix(_REPAIR) for line in lines if line.startswith(_REPAIR)]
    code, symbol = repair.split()
    words = tuple(line.removeprefix(_SAYS) for line in lines if line.startswith(_SAYS))
    return _Harm(folder.name, code, symbol, words)


_HARMS = [_load(folder) for folder in sorted(_FOLDER.iterdir())]


@pytest.fixture(scope="module")
def proofs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Proof]:
    """Return what the prover says, by the names of the folders."""
    root = tmp_path_factory.mktemp("harm")
    ignored = shutil.ignore_patterns("*.after.py", "__pycache__")
    for harm in _HARMS:
        shutil.copytree(_FOLDER / harm.name, root / harm.name, ignore=ignored)
    project = Project(Settings(), sorted(root.glob("*/modeling_*.py")))
    applied, changed = [], {}
    for harm in _HARMS:
        path = root / harm.name / "modeling_toy.py"
        after = (_FOLDER / harm.name / "modeling_toy.after.py").read_text()
        fix = Fix("Repair", (Edit(path, 0, 0, ""),))
        applied.append(Finding(harm.code, "some-rule", "goes wrong", path, 0, 1, harm.symbol, fix))
        changed[path] = path.read_text(), after
        project.replace(path, after)
    repaired = FixResult((), (), len(changed), groups=(), applied=tuple(applied), changed=changed)
    settings = RunSettings(Path(sys.executable), "cpu", jobs=2, seconds=60)
    run = FileRunner(settings, given=project.paths)
    return {proof.paths[0].parent.name: proof for proof in prove(project, repaired, all_rules(), run)}


@pytest.mark.parametrize("harm", _HARMS, ids=lambda harm: harm.name)
def test_a_repair_that_does_harm_is_refused_for_the_right_reason(
    harm: _Harm, proofs: dict[str, Proof]
) -> None:
    obstacles = proofs[harm.name].obstacles
    if harm.words == (_PROVEN,):
        assert obstacles == ()
        return
    missing = [words for words in harm.words if not any(words in each for each in obstacles)]
    assert missing == [], obstacles
