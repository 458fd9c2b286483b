"""Tiny models of a real release are trained before and after the repair, and their gradients compared."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.ecosystem.environments import release_environment
from tests.ecosystem.releases import copy_of_release
from tests.ecosystem.reported import MODELS
from tests.environment import EnvironmentUnavailable

pytestmark = [pytest.mark.releases, pytest.mark.torch]

_RELEASE = "4.57.6"
_SCRIPT = Path(__file__).with_name("gradients.py")
_FOLDERS = ("gpt_bigcode", "swiftformer", "xlstm", "zamba", "zamba2")
_BIGCODE = ("gpt_bigcode", "gpt_bigcode with cross attention")
_IN_BOTH_MODES = ("reentrant", "non-reentrant")


@dataclass(frozen=True)
class _Trained:
    """What the script has said."""

    status: int
    lines: dict[str, list[str]]
    """By the model's name."""


@pytest.fixture(scope="module")
def trained(
    release: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory
) -> tuple[_Trained, _Trained]:
    """Return how training goes before the repair and after it."""
    try:
        python = release_environment(_RELEASE)
    except EnvironmentUnavailable as error:
        pytest.skip(str(error))
    release(_RELEASE)
    copy = copy_of_release(_RELEASE, tmp_path_factory.mktemp(_RELEASE))
    before = _train(python, copy)
    folders = [f"{MODELS}/{name}" for name in _FOLDERS]
    command = [sys.executable, "-m", "gclint", "--fix", "--unsafe-fixes", *folders]
    run = subprocess.run(command, cwd=copy.parent, capture_output=True, text=True)
    assert run.returncode in (0, 1), run.stderr
    return before, _train(python, copy)


def _train(python: Path, package: Path) -> _Trained:
    environment = {**os.environ, "PYTHONPATH": str(package.parent), "HF_HUB_OFFLINE": "1"}
    run = subprocess.run([python, _SCRIPT], env=environment, capture_output=True, text=True, timeout=600)
    first, *said = run.stdout.splitlines()
    assert first == f"transformers {_RELEASE} in {package}", run.stderr
    assert "Traceback" not in run.stderr, run.stderr
    lines = defaultdict(list)
    for line in said:
        name, _, rest = line.partition(": ")
        lines[name].append(rest)
    return _Trained(run.returncode, lines)


@pytest.mark.parametrize(
    ("name", "variants"),
    [
        ("gpt_bigcode", ("without cache", "with cache", "given a cache")),
        ("gpt_bigcode with cross attention", ("without cache", "with cache")),
        ("swiftformer", ("as it is",)),
    ],
)
def test_nothing_is_recomputed_before(
    trained: tuple[_Trained, _Trained], name: str, variants: tuple[str, ...]
) -> None:
    before, _ = trained
    assert before.status == 1
    assert before.lines[name] == [
        f"{variant}, {mode}: nothing is recomputed" for variant in variants for mode in _IN_BOTH_MODES
    ]


@pytest.mark.parametrize("name", ["xlstm", "zamba", "zamba2"])
def test_legacy_branches_recompute_before(trained: tuple[_Trained, _Trained], name: str) -> None:
    before, _ = trained
    assert before.lines[name] == ["passes"]


@pytest.mark.parametrize("name", [*_BIGCODE, "swiftformer", "xlstm", "zamba", "zamba2"])
def test_everything_is_recomputed_and_gradients_are_the_same_after(
    trained: tuple[_Trained, _Trained], name: str
) -> None:
    _, after = trained
    assert after.lines[name] == ["passes"]
