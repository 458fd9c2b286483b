"""Files that change while they are looked at: what is found is what a new run would find."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from gclint.code.discovery import discover
from gclint.code.project import Project
from gclint.finding import Finding
from gclint.rule import Rule, all_rules
from gclint.run.check import check
from gclint.run.edited_files import Live
from gclint.settings import Settings
from gclint.testing.fixtures import Fixture
from tests.harness import load_fixtures
from tests.server.models import BAD, BASE, BROKEN, GOOD, HEIR

_SEVERAL = [each for each in load_fixtures() if len(each.before) > 1 and each.unsafe]


def _project(folder: Path) -> Project:
    settings = Settings(root=folder)
    return Project(settings, discover([folder], settings)[0], within=[folder])


def _settled(live: Live) -> list[tuple[object, ...]]:
    while live.waiting:
        live.judge_next()
    return _told(live.result.findings)


def _told(findings: Sequence[Finding]) -> list[tuple[object, ...]]:
    return [(each, each.story) for each in findings]


def _afresh(folder: Path, live: Live, rules: Sequence[Rule]) -> list[tuple[object, ...]]:
    """Return what a run finds in files that hold what is being edited."""
    for path in live.project.read:
        path.write_bytes(live.project.read_bytes(path))
    return _told(check(_project(folder), rules).findings)


def _write(folder: Path, **texts: str) -> list[Path]:
    paths = []
    for name, text in texts.items():
        path = folder / name / f"modeling_{name}.py"
        path.parent.mkdir(parents=True)
        path.write_text(text, encoding="utf-8")
        paths.append(path)
    return paths


@pytest.mark.parametrize("fixture", _SEVERAL, ids=lambda each: each.name)
def test_edits_lead_to_what_a_new_run_finds(fixture: Fixture, tmp_path: Path) -> None:
    for name, text in fixture.before.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="")
    rules = all_rules()
    live = Live(_project(tmp_path), rules)
    assert _settled(live) == _afresh(tmp_path, live, rules)
    for name in [each for each in fixture.unsafe if each.endswith(".py")]:
        for text in (fixture.unsafe[name], f"# one more line\n{fixture.before.get(name, '')}"):
            live.put(tmp_path / name, text)
            assert _settled(live) == _afresh(tmp_path, live, rules), name


def test_a_file_that_nobody_asked_for_comes_into_play(tmp_path: Path) -> None:
    """A new heir of a class that another file defines, with a switch of its own."""
    base, heir = _write(tmp_path, seal=BAD.replace("Otter", "Seal"), otter="x = 1\n")
    rules = all_rules()
    live = Live(_project(tmp_path), rules)
    _settled(live)
    for addition in ("", "\n\ndef enable(model):\n    model.layers.gradient_checkpointing = True\n"):
        text = "from ..seal.modeling_seal import SealModel\n\n\nclass OtterModel(SealModel):\n    pass\n"
        live.put(heir, text + addition)
        assert _settled(live) == _afresh(tmp_path, live, rules)
    live.put(base, GOOD.replace("Otter", "Seal"))
    assert _settled(live) == _afresh(tmp_path, live, rules) == []


def test_of_a_file_that_was_never_good_the_last_text_is_known(tmp_path: Path) -> None:
    (path,) = _write(tmp_path, seal=BROKEN)
    live = Live(_project(tmp_path), all_rules())
    assert _settled(live) == []
    (before,) = live.result.problems
    live.put(path, f"\n{BROKEN}")
    assert _settled(live) == []
    (after,) = live.result.problems
    assert after == live.broken[path] != before


def test_others_see_the_last_good_text_of_a_broken_file(tmp_path: Path) -> None:
    base, heir = _write(tmp_path, seal=BASE, otter=HEIR)
    live = Live(_project(tmp_path), all_rules())
    before = _settled(live)
    assert [finding.path for finding, _ in before if isinstance(finding, Finding)] == [heir]
    live.put(base, BROKEN)
    assert not live.waiting
    assert _settled(live) == before
    assert live.broken[base].message.startswith("syntax error")
    live.put(base, BASE)
    assert live.broken == {}
    assert _settled(live) == before


@pytest.mark.parametrize(
    "text", ["\ud800", "x = '\0'", "# coding: latin-1\n\u4e00", "# coding: nonsense\n", "(" * 5000]
)
def test_text_that_no_file_can_hold_is_a_problem(text: str, tmp_path: Path) -> None:
    (path,) = _write(tmp_path, otter=BAD)
    live = Live(_project(tmp_path), all_rules())
    live.put(path, text)
    _settled(live)
    assert path in live.broken
    live.put(path, BAD)
    _settled(live)
    assert [each.code for each in live.result.findings] == ["GC001"]


def test_a_file_goes_back_to_what_lies_on_the_disk(tmp_path: Path) -> None:
    (path,) = _write(tmp_path, otter=BAD)
    live = Live(_project(tmp_path), all_rules())
    live.put(path, GOOD)
    assert _settled(live) == []
    live.put(path, BROKEN)
    live.drop(path)
    assert live.broken == {}
    _settled(live)
    assert [each.code for each in live.result.findings] == ["GC001"]


def test_nothing_is_put_together_again_for_a_file_that_has_to_do_with_no_finding(tmp_path: Path) -> None:
    _, other = _write(tmp_path, otter=BAD, seal=GOOD.replace("Otter", "Seal"))
    live = Live(_project(tmp_path), all_rules())
    _settled(live)
    before = live.result.findings
    live.put(other, GOOD.replace("Otter", "Seal") + "\n# one more line\n")
    assert list(live.waiting) == [other]
    _settled(live)
    assert live.result.findings is before
