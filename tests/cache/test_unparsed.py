"""Runs that know their verdicts name the files that Python cannot parse, as the first one did."""

from __future__ import annotations

from pathlib import Path

from tests.cache.shell import run
from tests.sample import BROKEN

_NAMED = "(layers.py), and so unknown"


def test_later_runs_name_files_that_python_cannot_parse(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"modeling_{name}.py").write_text(f"from .layers import SampleLayer\n{BROKEN}")
    layers = tmp_path / "layers.py"
    layers.write_text("class SampleLayer:\n    print 'no brackets'\n")
    first, known = run(tmp_path, "."), run(tmp_path, ".")
    assert first == known
    assert _NAMED in first.output
    with_verdicts = run(tmp_path, "--statistics", ".")
    assert _NAMED in with_verdicts.output + with_verdicts.errors
    (tmp_path / "modeling_b.py").write_text(f"# changed\nfrom .layers import SampleLayer\n{BROKEN}")
    assert _NAMED in run(tmp_path, ".").output
    layers.write_text("class SampleLayer: pass\n")
    assert "layers.py" not in run(tmp_path, ".").output
