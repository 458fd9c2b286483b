"""Rules in preview: they run if they are selected and ``--preview`` is given, and not otherwise."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from gclint.finding import Finding
from gclint.network.model import Network
from gclint.rule import Rule, all_rules
from tests.terminal import Outcome, runner
from tests.toys import NO_FIX

Run = Callable[..., Outcome]


class _Sure(Rule):
    """It is sure."""

    code = "GC901"
    name = "sure-word"

    def check(self, network: Network) -> Iterable[Finding]:
        yield Finding(self.code, self.name, "found", network.file.path, 0, 1, "x", NO_FIX)


class _Unsure(_Sure):
    """It is not sure yet."""

    code = "GC902"
    name = "unsure-word"
    preview = True


@pytest.fixture
def gclint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.chdir(tmp_path)
    Path("modeling_x.py").write_text("from torch import nn\n\nlayers = nn.ModuleList()\n")
    rules = (_Sure(), _Unsure())
    for module in ("gclint.run.check", "gclint.proof.evidence", "gclint.rule"):
        monkeypatch.setattr(f"{module}.all_rules", lambda: rules)
    return runner(monkeypatch, capsys)


@pytest.mark.parametrize(
    ("arguments", "table", "codes", "notes"),
    [
        ([], "", {"GC901"}, 0),
        (["--select", "ALL"], "", {"GC901"}, 0),
        (["--select", "GC"], "", {"GC901"}, 0),
        (["--select", "GC902"], "", set(), 1),
        (["--extend-select", "Unsure-Word"], "", {"GC901"}, 1),
        (["--select", "GC902", "-q"], "", set(), 0),
        (["--preview"], "", {"GC901", "GC902"}, 0),
        (["--preview", "--select", "GC902"], "", {"GC902"}, 0),
        (["--preview", "--ignore", "GC902"], "", {"GC901"}, 0),
        ([], "preview = true", {"GC901", "GC902"}, 0),
        (["--no-preview"], "preview = true", {"GC901"}, 0),
        ([], "select = ['GC902']", set(), 1),
    ],
)
def test_a_rule_in_preview_runs_if_preview_is_asked_for(
    gclint: Run, arguments: list[str], table: str, codes: set[str], notes: int
) -> None:
    Path("pyproject.toml").write_text(f"[tool.gclint]\n{table}\n")
    outcome = gclint(*arguments)
    assert {code for code in ("GC901", "GC902") if code in outcome.out} == codes
    expected = "note: GC902 is in preview, so it runs only with --preview\n"
    assert outcome.err == expected * notes


def test_no_rule_is_in_preview_without_a_word_about_it() -> None:
    assert [rule.code for rule in all_rules() if rule.preview] == []
