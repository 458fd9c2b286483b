"""Standard input, which ``-`` stands for."""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from gclint.cli.main import main
from tests.harness import ASSUMED
from tests.server.models import BAD, GOOD

BASE = "from torch import nn\n\n\nclass Base(nn.Module):\n    pass\n"


@dataclass(frozen=True)
class _Outcome:
    status: int
    out: bytes
    err: str


_Run = Callable[..., _Outcome]


@pytest.fixture
def gclint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> _Run:
    """Run gclint in this process and in ``tmp_path``, with some text on standard input."""
    monkeypatch.chdir(tmp_path)

    def run(text: str | bytes, *arguments: str) -> _Outcome:
        data = text if isinstance(text, bytes) else text.encode()
        monkeypatch.setattr(sys, "argv", ["gclint", *arguments])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        with pytest.raises(SystemExit) as stopped:
            main()
        printed = capsysbinary.readouterr()
        assert isinstance(stopped.value.code, int)
        return _Outcome(stopped.value.code, printed.out, printed.err.decode())

    return run


def test_findings_are_reported_under_the_given_name(gclint: _Run, tmp_path: Path) -> None:
    run = gclint(BAD, "-", "--stdin-filename", "models/modeling_otter.py")
    assert (run.status, run.err) == (1, "")
    assert run.out.startswith(b"models/modeling_otter.py:5:1: warning: GC001 `OtterLayer`")
    assert gclint(BAD, "-").out.startswith(b"-:5:1: warning: GC001")


def test_the_repaired_text_goes_to_standard_output(gclint: _Run, tmp_path: Path) -> None:
    run = gclint(BAD, "--fix", "-")
    assert (run.status, run.out.decode()) == (0, GOOD)
    assert run.err == f"{ASSUMED}\nFixed 1 finding; none left in 1 file.\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("text", [GOOD, "", "x = 1"])
def test_what_needs_no_repair_is_given_back(gclint: _Run, text: str, tmp_path: Path) -> None:
    run = gclint(text, "--fix", "-")
    assert (run.status, run.out.decode()) == (0, text)


def test_every_byte_outside_of_the_repair_is_kept(gclint: _Run, tmp_path: Path) -> None:
    def written(text: str) -> bytes:
        cookie = b"\xef\xbb\xbf# caf\xc3\xa9 \xf0\x9f\x8e\x89\r\n"
        return cookie + text.replace("\n", "\r\n").encode()

    run = gclint(written(BAD), "--fix", "-")
    assert (run.status, run.out) == (0, written(GOOD))
    latin = b"# -*- coding: latin-1 -*-\n# caf\xe9\n"
    run = gclint(latin + BAD.encode(), "--fix", "-")
    assert (run.status, run.out) == (0, latin + GOOD.encode())


def test_what_is_left_goes_to_standard_error(gclint: _Run, tmp_path: Path) -> None:
    text = BAD.replace(
        "        super().__init__()\n", "        super().__init__()\n        self.norm = nn.BatchNorm1d(8)\n"
    )
    run = gclint(text, "--fix", "-", "--output-format", "json")
    assert (run.status, run.out.decode()) == (1, text)
    assert '"code": "GC001"' in run.err


def test_diff_prints_a_diff(gclint: _Run, tmp_path: Path) -> None:
    run = gclint(BAD, "--diff", "--fix", "-", "--stdin-filename", "modeling_x.py")
    assert run.status == 1
    assert run.out.startswith(b"--- modeling_x.py\n+++ modeling_x.py\n@@ ")


@pytest.mark.parametrize(
    "data",
    [
        b"def (",
        b'x = "\xff"',
        b"x = 1\0",
        b"# coding: nonsense\nx = 1",
        b"\xef\xbb\xbf# coding: latin-1\n",
        b"(" * 10_000,
        "x = 1".encode("utf-16"),
    ],
)
def test_broken_text_is_reported_and_never_lost(gclint: _Run, data: bytes, tmp_path: Path) -> None:
    run = gclint(data, "--fix", "-")
    assert (run.status, run.out) == (2, data)
    assert "\n-:" in run.err
    assert "Traceback" not in run.err
    run = gclint(data, "-")
    assert run.status == 2
    assert data not in run.out


def test_nothing_is_lost_where_gclint_cannot_run(gclint: _Run, tmp_path: Path) -> None:
    run = gclint(BAD, "--fix", "-", "--select", "GC999")
    assert (run.status, run.out.decode()) == (2, BAD)
    run = gclint(BAD, "--fix", "-", "--stdin-filename", str(tmp_path))
    assert (run.status, run.out.decode()) == (2, BAD)
    (tmp_path / "pyproject.toml").write_text("[tool.gclint", encoding="utf-8")
    run = gclint(BAD, "--fix", "-")
    assert (run.status, run.out.decode()) == (2, BAD)
    assert "Traceback" not in run.err


def test_the_surroundings_of_the_named_file_count(gclint: _Run, tmp_path: Path) -> None:
    """Its settings, what it imports, and not what lies under its name on the disk."""
    package = tmp_path / "deep" / "models"
    package.mkdir(parents=True)
    (package / "modeling_otter.py").write_text("def (", encoding="utf-8")
    (package / "base.py").write_text(
        BASE.replace("nn.Module", "GradientCheckpointingLayer").replace(
            "from torch import nn", "from transformers.modeling_layers import GradientCheckpointingLayer"
        ),
        encoding="utf-8",
    )
    text = BAD.replace("class OtterLayer(nn.Module)", "class OtterLayer(Base)")
    text = text.replace("from torch", "from .base import Base\nfrom torch")
    name = "deep/models/modeling_otter.py"
    assert gclint(text, "-", "--stdin-filename", name).status == 0
    (package / "base.py").write_text(BASE, encoding="utf-8")
    assert gclint(text, "-", "--stdin-filename", name).status == 1
    (tmp_path / "deep" / "pyproject.toml").write_text('[tool.gclint]\nignore = ["GC001"]\n', encoding="utf-8")
    assert gclint(text, "-", "--stdin-filename", name).status == 0
    assert gclint(text, "-").status == 0
    assert (package / "modeling_otter.py").read_text(encoding="utf-8") == "def ("


def test_what_is_excluded_is_given_back(gclint: _Run, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.gclint]\nexclude = ["old"]\n', encoding="utf-8")
    run = gclint(BAD, "--fix", "-", "--stdin-filename", "old/modeling_x.py")
    assert (run.status, run.out.decode()) == (0, BAD)


def test_a_repair_that_takes_other_files_is_refused(gclint: _Run, tmp_path: Path) -> None:
    """The layer is a class of another file, which is not what is repaired."""
    (tmp_path / "layers.py").write_text(BAD[: BAD.index("class OtterModel")], encoding="utf-8")
    text = BAD[BAD.index("class OtterModel") :]
    imports = BAD[: BAD.index("class OtterLayer")].rstrip()
    text = f"{imports}\n\nfrom .layers import OtterLayer\n\n\n{text}"
    run = gclint(text, "--fix", "-", "--stdin-filename", "modeling_otter.py")
    assert (run.status, run.out.decode()) == (1, text)
    assert "no fix: the fix also changes layers.py; pass it to gclint as well" in run.err


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["-", "modeling_x.py"], "'-' is standard input"),
        (["-", "-"], "'-' is standard input"),
        (["--stdin-filename", "x.py"], "--stdin-filename requires '-'"),
        (["--fix", "--verify", "-"], "--verify needs files on disk"),
        (["--changed-only", "-"], "--changed-only needs files on disk"),
        (["--write-baseline", "x", "-"], "--write-baseline needs files on disk"),
    ],
)
def test_what_does_not_go_together(
    gclint: _Run, arguments: list[str], complaint: str, tmp_path: Path
) -> None:
    run = gclint(BAD, *arguments)
    assert (run.status, run.out) == (2, b"")
    assert complaint in run.err


def test_a_closed_standard_input_is_reported(tmp_path: Path) -> None:
    program = "import os, sys; os.close(0); os.execv(sys.executable, [sys.executable, '-m', 'gclint', '-'])"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, cwd=tmp_path, check=False)
    assert run.returncode == 2
    assert run.stderr.startswith(b"Error: standard input is closed")
