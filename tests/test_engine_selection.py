"""Which findings are reported."""

from __future__ import annotations

from pathlib import Path

from gclint.code.project import Project
from gclint.finding import Finding, InheritedDefect
from gclint.run.baseline import Selection
from gclint.settings import Settings
from tests.toys import NO_FIX


def test_a_finding_is_reported_if_what_is_generated_from_its_place_has_changed(tmp_path: Path) -> None:
    source, generated, other = (tmp_path / f"modeling_{name}.py" for name in ("x", "y", "z"))
    finding = Finding(
        "GC001",
        "some-rule",
        "goes wrong",
        source,
        0,
        1,
        "Block",
        NO_FIX,
        inherited_by=(InheritedDefect(generated, "Y"),),
    )
    project = Project(Settings(), [source, generated, other])
    for changed, reported in ((source, [finding]), (generated, [finding]), (other, [])):
        assert Selection(project, [tmp_path], {changed}).reported([finding]) == reported
