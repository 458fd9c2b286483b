"""What gclint says is written down by place and kind: what changes is named, and words are no change."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import TextIO

import pytest

from gclint.finding import Applicability, Finding
from gclint.network.model import Network
from gclint.report import places
from gclint.report.explanation import write_text
from gclint.rules.gc110_cache_without_guard import CacheWithoutGuard
from gclint.run.explain import PlaceExplanation
from tests.harness import load_fixtures
from tests.verdicts import facts
from tests.verdicts.__main__ import compared, main, templates_of
from tests.verdicts.facts import Taken, taken
from tests.verdicts.frozen import frozen, read_sample, read_templates, write
from tests.verdicts.odd import ODD
from tests.verdicts.samples import trees

_FIXTURE = "GC110/made_too_early"
_SAMPLE = "fixtures"


def _taken() -> list[Taken]:
    return [taken(replace(tree, silent=1)) for tree in trees(_SAMPLE) if tree.name == _FIXTURE]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, found = tmp_path_factory.mktemp("data"), _taken()
    write({_SAMPLE: frozen(found)}, templates_of({_SAMPLE: found}), folder)
    return folder


def _compared(data: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """Return the exit status and the output of a comparison with what gclint says now."""
    status = compared({_SAMPLE: read_sample(_SAMPLE, data)}, {_SAMPLE: _taken()}, read_templates(data), 1)
    return status, capsys.readouterr().out


def _alter(monkeypatch: pytest.MonkeyPatch, change: Callable[[Finding], Finding | None]) -> None:
    """Let a rule say something else of what it finds."""
    before = CacheWithoutGuard.check

    def check(self: CacheWithoutGuard, network: Network) -> Iterable[Finding]:
        return filter(None, map(change, before(self, network)))

    monkeypatch.setattr(CacheWithoutGuard, "check", check)


def _fixed(finding: Finding, **changed: object) -> Finding:
    assert finding.fix is not None
    return replace(finding, remedy=replace(finding.fix, **changed))  # type: ignore[arg-type]


def test_writing_twice_is_equal(data: Path, tmp_path: Path) -> None:
    found = _taken()
    write({_SAMPLE: frozen(found[::-1])}, templates_of({_SAMPLE: found}), tmp_path)
    for path in data.iterdir():
        assert (tmp_path / path.name).read_bytes() == path.read_bytes()
    assert read_sample(_SAMPLE, data) == frozen(found)


@pytest.mark.parametrize(
    ("change", "kinds", "shown"),
    [
        (lambda each: None, "finding", r"- GC110 the cache passed to … as … is created"),
        (lambda each: replace(each, start=each.start + 1), "span", r"- 35:57-35:68\n  \+ 35:58-35:68"),
        (lambda each: replace(each, story=each.story[1:]), "story", "now: modeling_made_too_early.py:35"),
        (lambda each: replace(each, symbol="Other"), "baseline", "symbol='Other'"),
        (lambda each: _fixed(each, applicability=Applicability.UNSAFE), "fix", r"- when-proven\n  \+ unsafe"),
        (lambda each: _fixed(each, edits=(*each.edits, each.edits[0])), "edits", ""),
        (
            lambda each: _fixed(each, reason="nobody knows") if "before" in each.message else each,
            "reason",
            r"- … makes it .*\n  \+ nobody knows",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) and value.isalpha() else "",
)
def test_what_has_changed_is_named(
    change: Callable[[Finding], Finding | None],
    kinds: str,
    shown: str,
    data: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    _alter(monkeypatch, change)
    status, output = _compared(data, capsys)
    assert status == 1
    assert re.search(rf"^sample .*\b{kinds}\b", output, re.MULTILINE)
    assert re.search(shown, output)


def test_other_words_are_no_change(
    data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def reworded(finding: Finding) -> Finding:
        words = finding.message.replace("recomputation writes to it again", "it is written twice")
        assert finding.fix is not None
        fix = replace(
            finding.fix, message=f"{finding.fix.message} there", reason=f"{finding.fix.reason} or not"
        )
        return replace(finding, message=words, remedy=fix)

    _alter(monkeypatch, reworded)
    status, output = _compared(data, capsys)
    assert (status, output.splitlines()[-1]) == (0, "All is as it is written down.")
    assert re.search("reworded: .* writes to it again\n     now: .* it is written twice", output)


def test_fingerprint_and_explanation_are_compared(
    data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def shorter(explanation: PlaceExplanation, stream: TextIO) -> None:
        write_text(replace(explanation, explained=explanation.explained[1:]), stream)

    monkeypatch.setattr(places, "code_hash", str)
    monkeypatch.setattr(facts, "write_text", shorter)
    status, output = _compared(data, capsys)
    assert status == 1
    assert re.search("^sample .*explain .*fingerprint .*silence", output, re.MULTILINE)


def test_what_is_not_written_down_cannot_be_compared(tmp_path: Path) -> None:
    assert main(["compare", "--sample", _SAMPLE, "--data", str(tmp_path)]) == 2


def test_crash_is_no_difference(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(facts, "write_text", None)
    assert main(["compare", "--sample", _SAMPLE, "--data", str(data), "--jobs", "0"]) == 2


def test_code_that_has_changed_is_not_compared(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = read_sample(_SAMPLE, data)
    before.trees, before.facts = {_FIXTURE: "another", "GC001/gone": "code"}, {}
    assert compared({_SAMPLE: before}, {_SAMPLE: _taken()}, read_templates(data), 1) == 1
    assert re.search(r"sample +code\nfixtures  1 gone, 1 changed\n", capsys.readouterr().out)


@pytest.mark.parametrize("form", ODD)
def test_odd_forms_are_the_same_code(form: str) -> None:
    fixture = next(each for each in load_fixtures() if each.name == _FIXTURE)
    text = fixture.before["modeling_made_too_early.py"]
    made = ODD[form](text)
    assert made != text.encode()
    if form == "text before calls":
        made = made.replace('"é𝒳"; '.encode(), b"")
    assert ast.dump(ast.parse(made)) == ast.dump(ast.parse(text))
