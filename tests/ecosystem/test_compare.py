"""Two versions of gclint are compared: what differs is shown, and nothing that fails is lost."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from tests.ecosystem import compare
from tests.ecosystem.compare import Sample, compared, main
from tests.ecosystem.difference import changes, said_by
from tests.ecosystem.markdown import LIMIT, Compared, markdown
from tests.ecosystem.versions import Failure, Output, Version
from tests.ecosystem.wheels import WheelUnavailable
from tests.environment import PROJECT

_SOURCE = "import torch\n\n\nclass Block(nn.Module):\n    pass\n"


def _finding(row: int = 4, **changed: Any) -> dict[str, Any]:
    location = {"row": row, "column": 1}
    fix = {
        "applicability": "safe",
        "message": "Change the base",
        "reason": None,
        "edits": [
            {
                "content": "Layer",
                "filename": "a.py",
                "location": {"row": row, "column": 13},
                "end_location": {"row": row, "column": 22},
            }
        ],
    }
    return {
        "code": "GC001",
        "filename": "a.py",
        "symbol": "Block",
        "message": "`Block` is stacked",
        "reason": None,
        "location": location,
        "end_location": {"row": row, "column": 12},
        "fix": fix,
        **changed,
    }


def _said(*findings: dict[str, Any], text: str = _SOURCE) -> list[Any]:
    return said_by(Output(tuple(findings)), lambda _: text)


def _kinds(before: Sequence[dict[str, Any]], after: Sequence[dict[str, Any]]) -> list[str]:
    return [each.kind for each in changes(_said(*before), _said(*after))]


def test_moved_line_is_no_difference() -> None:
    moved = _said(_finding(row=6), text=f"\n\n{_SOURCE}")
    assert list(changes(_said(_finding()), moved)) == []


def test_each_kind_of_difference_is_named() -> None:
    refused = _finding(fix=None, reason="it keeps state")
    unsafe = {**_finding()["fix"], "applicability": "unsafe", "reason": "look"}
    assert _kinds([], [_finding()]) == ["added"]
    assert _kinds([_finding()], []) == ["removed"]
    assert _kinds([_finding()], [refused]) == ["safe → no fix"]
    assert _kinds([_finding()], [_finding(fix=unsafe)]) == ["safe → unsafe"]
    assert _kinds([_finding()], [_finding(message="`Block` is not a layer")]) == ["other words"]
    other = {**_finding()["fix"], "edits": [{**_finding()["fix"]["edits"][0], "content": "Other"}]}
    assert _kinds([_finding()], [_finding(fix=other)]) == ["other fix"]


def test_of_two_findings_about_one_class_the_one_that_is_gone_is_named() -> None:
    first, second = _finding(message="one"), _finding(message="two")
    (change,) = changes(_said(first, second), _said(second))
    assert change.before is not None
    assert (change.before.message, change.after) == ("one", None)


def test_diff_has_the_change_and_no_line_numbers() -> None:
    (said,) = _said(_finding())
    assert said.diff.split("\n")[:2] == ["--- a.py", "@@"]
    assert "-class Block(nn.Module):" in said.diff
    assert "+class Block(Layer):" in said.diff


def test_comment_is_cut_to_what_github_takes_and_stays_markdown() -> None:
    many = [
        _finding(symbol=f"Block{number}", message="`<details>` ``` " + "long " * 300, code=f"GC{number:03}")
        for number in range(400)
    ]
    said = tuple(_said(*many))
    found = Compared("transformers==5.0.0", (), said, tuple(changes([], list(said))))
    text = markdown("old", "new", [found], "1/1")
    assert len(text) < LIMIT
    assert text.count("\n  <details>") == text.count("\n  </details>")
    assert "does not fit" in text


def test_text_has_counts_links_and_reasons() -> None:
    refused = _finding(fix=None, reason="it keeps state")
    before, after = tuple(_said(_finding())), tuple(_said(refused))
    found = Compared("transformers==5.0.0", before, after, tuple(changes(list(before), list(after))))
    text = markdown("old", "new", [found], "1/1")
    assert "| GC001 | 1 | 1 | 1 → 0 | 0 | 0 | 0 → 1 |" in text
    assert "https://github.com/huggingface/transformers/blob/v5.0.0/src/a.py#L4" in text
    assert "reason: none → it keeps state" in text


def _version(folder: Path, code: str) -> Version:
    """Make a version of gclint that is this program."""
    (folder / "gclint").mkdir(parents=True)
    (folder / "gclint" / "__init__.py").touch()
    header = (
        "import json, sys, time\npaths = sys.argv[sys.argv.index('--') + 1:] if '--' in sys.argv else []\n"
    )
    (folder / "gclint" / "__main__.py").write_text(header + dedent(code), encoding="utf-8")
    return Version(folder.name, folder, limits=(20.0, 20.0))


def _tree(folder: Path) -> Path:
    for name in ("good", "bad", "fine"):
        path = folder / name / f"modeling_{name}.py"
        path.parent.mkdir(parents=True)
        path.write_text(_SOURCE, encoding="utf-8")
    return folder


def test_crash_is_put_down_to_its_file_and_the_others_are_judged(tmp_path: Path) -> None:
    crashing = """
        import pathlib
        found = [[pathlib.Path(p)] if p.endswith('.py') else pathlib.Path(p).rglob('*.py') for p in paths]
        files = [str(file) for files in found for file in files]
        if any('bad' in f for f in files):
            sys.exit('RuntimeError: boom')
        print(json.dumps([{'code': 'GC001', 'filename': f} for f in files]))
    """
    version = _version(tmp_path / "crashing", crashing)
    output = version.check(_tree(tmp_path / "tree"), ["."])
    assert output.failures == (Failure(("bad/modeling_bad.py",), "exit status 1: RuntimeError: boom"),)
    assert sorted(each["filename"] for each in output.findings) == [
        "fine/modeling_fine.py",
        "good/modeling_good.py",
    ]
    found = Compared("x==1", outputs=(Output(), output))
    assert found.differs
    assert "only after: `bad/modeling_bad.py`: exit status 1" in markdown("old", "new", [found], "1/1")


def test_run_without_an_end_is_a_failure_and_no_hang(tmp_path: Path) -> None:
    version = _version(tmp_path / "hanging", "'--help' in sys.argv or time.sleep(60)")
    version = Version(version.name, version.folder, limits=(0.5, 0.5))
    (failure,) = version.check(_tree(tmp_path / "tree"), ["good/modeling_good.py"]).failures
    assert failure == Failure(("good/modeling_good.py",), "no end after 0 s")


@pytest.mark.parametrize(("help_text", "passed"), [("--no-cache  Read no cache.", True), ("", False)])
def test_older_version_gets_no_option_that_it_has_not(tmp_path: Path, help_text: str, passed: bool) -> None:
    version = _version(
        tmp_path / "old",
        f"""
        if '--help' in sys.argv:
            print({help_text!r})
        elif ('--no-cache' in sys.argv) == {passed}:
            print('[]')
        """,
    )
    assert version.check(_tree(tmp_path / "tree"), ["."]) == Output()


def test_unknown_commit_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["no-such-commit", "--sample", "transformers==5.0.0"]) == 2
    assert "'no-such-commit' is not a commit" in capsys.readouterr().err


@pytest.mark.parametrize("part", ["0/2", "3/2", "1", "a/b", "1/0"])
def test_part_that_is_none_is_an_error(part: str) -> None:
    with pytest.raises(SystemExit) as error:
        main(["HEAD", "--part", part])
    assert error.value.code == 2


def test_parts_make_up_the_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(7):
        path = tmp_path / "transformers" / "models" / f"m{number}" / f"modeling_m{number}.py"
        path.parent.mkdir(parents=True)
        path.touch()
    sample = Sample("transformers==5.0.0")
    parts = [sample.paths(tmp_path, part, 3) for part in (1, 2, 3)]
    assert sorted(path for part in parts for path in part) == [f"transformers/models/m{n}" for n in range(7)]


@pytest.mark.releases
def test_broken_copy_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One version has a rule that finds nothing, and one that finds no fix safe."""
    broken = tmp_path / "broken"
    for name in ("gclint", "rules"):
        shutil.copytree(PROJECT / name, broken / name, ignore=shutil.ignore_patterns("__pycache__"))
    rule = broken / "rules" / "gc003_keyword_activation.py"
    text = rule.read_text(encoding="utf-8")
    assert "if not defects.keyword_activations:" in text
    rule.write_text(text.replace("if not defects.keyword_activations:", "if True:"), encoding="utf-8")
    monkeypatch.setattr(Sample, "paths", lambda *_: ["transformers/models/mllama"])
    try:
        Sample("transformers==5.23.0").tree()
    except WheelUnavailable as error:
        pytest.skip(str(error))
    arguments = [str(PROJECT), str(broken), "--sample", "transformers==5.23.0"]
    output = tmp_path / "comment.md"
    assert main([*arguments, "--output", str(output), "--exit-code"]) == 1
    comment = output.read_text(encoding="utf-8")
    assert "### GC003: 1 removed" in comment
    assert "MllamaCrossAttentionDecoderLayer" in comment
    assert main([str(PROJECT), str(PROJECT), *arguments[2:], "--output", str(output), "--exit-code"]) == 0
    assert output.read_text(encoding="utf-8").startswith(f"## Ecosystem check: `{PROJECT}`")


def test_samples_are_the_releases_and_the_packages() -> None:
    names = [each.name for each in compare.samples()]
    assert sum(name.startswith("transformers==") for name in names) == 5
    assert "peft==0.21.2" in names
    assert callable(compared)


def test_workflow_looks_at_parts_that_there_are() -> None:
    text = (PROJECT / ".github" / "workflows" / "ecosystem.yml").read_text(encoding="utf-8")
    parts = re.findall(r'"(\d+)/(\d+)"', text)
    assert parts
    assert all(1 <= int(part) <= int(parts) for part, parts in parts)
    assert "python -m tests.ecosystem.compare" in text
