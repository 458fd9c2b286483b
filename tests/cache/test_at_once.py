"""Two runs at once on a part of a release, one of which is killed: what is left says nothing wrong."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cache.shell import LISTS_MODULES, Ran, is_known, run

pytestmark = [pytest.mark.slow, pytest.mark.releases]

_MODELS = ("bert", "gpt2", "llama", "rembert")
_OPTIONS = ("src/transformers/models", "--output-format", "json")
_START = "{code}\nfrom gclint.launch import main\nmain()\n"
_KILLED_AT = """
import os, signal, sqlite3
left = {writes}
class Killed(sqlite3.Connection):
    def execute(self, statement, *arguments):
        global left
        left -= statement == "COMMIT"
        if left < 0 and not {is_after}:
            os.kill(os.getpid(), signal.SIGKILL)
        result = super().execute(statement, *arguments)
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return result
connect = sqlite3.connect
sqlite3.connect = lambda *arguments, **keywords: connect(*arguments, **keywords, factory=Killed)
"""
"""Kills the process before or after it has written a document."""
_KILLS = [(writes, is_after) for writes in (0, 1) for is_after in (False, True)]
_EDITS = (
    ("llama", "class LlamaDecoderLayer(GradientCheckpointingLayer)", "class LlamaDecoderLayer(nn.Module)"),
    ("bert", "(GradientCheckpointingLayer)", "(nn.Module)"),
    ("rembert", "class RemBertLayer(GradientCheckpointingLayer)", "class RemBertLayer(nn.Module)"),
    ("gpt2", "supports_gradient_checkpointing = True", "supports_gradient_checkpointing = False"),
)


@pytest.fixture(scope="module")
def part(tmp_path_factory: pytest.TempPathFactory, release: Callable[[str], Path]) -> Path:
    """Some models of a release, with what they import."""
    folder = tmp_path_factory.mktemp("part")
    source, target = release("5.23.0") / "transformers", folder / "src" / "transformers"
    for name in _MODELS:
        shutil.copytree(source / "models" / name, target / "models" / name)
    for path in (*source.glob("*.py"), source / "models" / "__init__.py"):
        shutil.copy(path, target / path.relative_to(source))
    return folder


@pytest.fixture
def project(part: Path, tmp_path: Path) -> Path:
    return shutil.copytree(part, tmp_path / "project")


def _edit(project: Path, number: int) -> None:
    name, before, after = _EDITS[number % len(_EDITS)]
    path = project / "src" / "transformers" / "models" / name / f"modeling_{name}.py"
    text = path.read_text(encoding="utf-8")
    assert before in text
    path.write_text(text.replace(before, after), encoding="utf-8")


def _started(project: Path, code: str = "") -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", _START.format(code=code), *_OPTIONS],
        cwd=project,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        encoding="utf-8",
    )


def _is_right(project: Path, *survivors: subprocess.Popen[str]) -> Ran:
    """Hold what runs find that were not killed, and the next one, to what one without a cache finds."""
    expected = run(project, *_OPTIONS, "--no-cache")
    assert expected.status == 1
    for each in survivors:
        assert (each.communicate()[0], each.returncode) == (expected.output, expected.status)
    again = run(project, *_OPTIONS, code=LISTS_MODULES)
    assert (again.output, again.status) == (expected.output, expected.status)
    return again


@pytest.mark.drawn(full=1)
@pytest.mark.parametrize(("writes", "is_after"), _KILLS)
def test_one_is_killed_where_it_writes(project: Path, writes: int, is_after: bool) -> None:
    for number in range(2):
        killed = _started(project, _KILLED_AT.format(writes=writes, is_after=is_after))
        survivor = _started(project)
        killed.communicate()
        assert killed.returncode == -signal.SIGKILL
        assert is_known(_is_right(project, survivor))
        _edit(project, number)


@pytest.mark.drawn(full=1)
@pytest.mark.parametrize("share", [0.2, 0.5, 0.9])
def test_one_is_killed_at_any_time_and_a_file_is_edited_meanwhile(project: Path, share: float) -> None:
    begin = time.monotonic()
    run(project, *_OPTIONS, "--no-cache")
    patience = (time.monotonic() - begin) * share
    for number in range(len(_EDITS)):
        killed, survivor = _started(project), _started(project)
        time.sleep(patience)
        _edit(project, number)  # The survivor may have read the file before, or afterwards.
        killed.kill()
        for each in (killed, survivor):
            each.communicate()
        _is_right(project)
