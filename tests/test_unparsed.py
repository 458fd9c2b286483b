"""Files beside the given ones that the running Python cannot parse are named: nothing is known of them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.sample import BROKEN
from tests.terminal import Outcome, runner

Run = Callable[..., Outcome]

_NO_PYTHON = "class SampleLayer:\n    print 'no brackets'\n"
_OWN = ".".join(map(str, sys.version_info[:2]))


@pytest.fixture
def gclint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run gclint in this process and in ``tmp_path``."""
    monkeypatch.chdir(tmp_path)
    return runner(monkeypatch, capsys)


@pytest.mark.parametrize("jobs", [1, 2])
def test_consulted_files_that_are_no_python_are_named(gclint: Run, jobs: int) -> None:
    for name in ("a", "b"):
        Path(f"modeling_{name}.py").write_text(f"from .layers import SampleLayer\n{BROKEN}")
    Path("layers.py").write_text(_NO_PYTHON)
    Path("unrelated.py").write_text(_NO_PYTHON)
    status, out, err = gclint("--no-cache", "--jobs", str(jobs), ".")
    assert (status, err) == (1, "")
    assert out.splitlines()[-1] == (
        f"1 file beside the given ones is no code for Python {_OWN} (layers.py), and so unknown"
    )
    _, out, err = gclint("--no-cache", "--quiet", ".")
    assert "layers.py" not in out + err


def test_a_given_file_is_an_error_instead(gclint: Run) -> None:
    Path("modeling_a.py").write_text(f"from .modeling_b import SampleLayer\n{BROKEN}")
    Path("modeling_b.py").write_text(_NO_PYTHON)
    status, out, err = gclint("--no-cache", ".")
    assert status == 2
    assert err.startswith("modeling_b.py:2:5: error: syntax error: ")
    assert "unknown" not in out


def test_a_base_in_such_a_file_is_not_taken_for_nothing(gclint: Run) -> None:
    text = BROKEN.replace("class SampleLayer(nn.Module)", "class SampleLayer(Base)")
    assert text != BROKEN
    Path("modeling_a.py").write_text(f"from .layers import Base\n{text}")
    answers = []
    for base in (None, _NO_PYTHON.replace("SampleLayer", "Base")):
        if base is not None:
            Path("layers.py").write_text(base)
        answers.append(gclint("--no-cache", "--quiet", "."))
    assert answers[0] == answers[1]
