"""A rule is a module and its fixtures: whatever else says something about it learns it from there."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gclint import rule as rule_module
from gclint import rules as rules_package
from gclint.rule import all_rules
from tests.harness import load_fixtures, verify_findings, verify_fix, verify_suppression
from tests.verify.command_line import MODEL, Gclint

_MODULE = "gc901_unwanted_word"
_RULE = '''\
"""GC901: a word that is not wanted."""

import re

from gclint.finding import Applicability, Edit, Evidence, Finding, Fix
from gclint.rule import Rule, Setting
from gclint.verify.worker.cause import Cause

_WORDS = Setting("unwanted-words", "Words that are not wanted.", ("bad",))


class UnwantedWord(Rule):
    """A word is not wanted."""

    code = "GC901"
    name = "unwanted-word"
    settings = (_WORDS,)
    fixes = (Applicability.SAFE,)
    causes = frozenset((Cause.RANDOM_NUMBERS,))

    def check(self, network):
        for match in re.finditer("|".join(_WORDS.of(network)), network.file.text):
            span, path = match.span(), network.file.path
            fix = Fix("Say ok", (Edit(path, *span, "ok"),))
            yield Finding(self.code, self.name, f"{match[0]} is not wanted", path, *span, "Block", fix)

    def evidence(self, sites, text):
        return Evidence.CONFIRMED if any(map(self.flags, sites)) else None

    def flags(self, site):
        return bool(site.contained_activations)
'''

_MODEL = (
    """\
from dataclasses import replace
from gclint.verify.worker.protocol import *

class Block:
    word = "bad"

class Model:
    @staticmethod
    def run(watch, known):
        place = SourcePlace(known.source, 4, 5)
        is_wrong = Block.word != "ok"
        words = ("word",) if is_wrong else ()
        site = ObservedSite(place, "Block", place, True, True, 2, True, contained_activations=words)
        failure = Failure("loss", "reentrant", "default", "it differs", (), (place,), Cause.RANDOM_NUMBERS)
        failures = (failure,) if is_wrong else ()
        outcome = "failed" if failures else "passed"
        fingerprints = (Fingerprint("default", "same", 1.0, {}),)
        return replace(known, outcome=outcome, failures=failures, sites=(site,), fingerprints=fingerprints)
"""
    + MODEL
)


@pytest.fixture(autouse=True)
def _rule(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gclint: Gclint) -> Iterator[None]:
    folder = tmp_path / "rules"
    folder.mkdir()
    (folder / f"{_MODULE}.py").write_text(_RULE)
    monkeypatch.setattr(rules_package, "__path__", [*rules_package.__path__, str(folder)])
    importlib.invalidate_caches()
    rule_module._built_in.cache_clear()
    yield
    rule_module._built_in.cache_clear()
    sys.modules.pop(f"{rules_package.__name__}.{_MODULE}", None)


def test_it_is_listed_and_explained_with_its_settings(gclint: Gclint) -> None:
    assert "GC901  unwanted-word" in gclint(command=("rules",)).out
    assert gclint(command=("rule", "GC901")).out == (
        "# GC901 unwanted-word\n\n*Level: error. A fix is sometimes available: safe.*\n\n"
        "A word is not wanted.\n\n"
        "## Settings\n\n"
        '- `unwanted-words = ["bad"]` in `[tool.gclint.rules.unwanted-word]`: Words that are not wanted.\n'
    )


def test_its_settings_are_read_from_the_table(gclint: Gclint) -> None:
    Path("modeling_toy.py").write_text("bad, worse\n")
    found = "modeling_toy.py:1:1: error: GC901 bad is not wanted [*]\n"
    assert gclint("--select", "GC901", command=()).out.startswith(found)
    Path("pyproject.toml").write_text('[tool.gclint.rules.unwanted-word]\nunwanted-words = ["worse"]\n')
    worse = "modeling_toy.py:1:6: error: GC901 worse is not wanted [*]\n    help: Say ok\n"
    assert gclint(command=()).out.startswith(worse)
    Path("pyproject.toml").write_text('[tool.gclint]\nunwanted-word = ["worse"]\n')
    complaint = " ".join(gclint(command=()).err.split())
    assert "did you mean unwanted-words, in [tool.gclint.rules.unwanted-word]?" in complaint


def test_runs_confirm_it_and_are_told_what_repairs_them(gclint: Gclint) -> None:
    path = Path("modeling_toy.py")
    path.write_text(_MODEL)
    outcome = gclint("modeling_toy.py")
    assert outcome.out.startswith(
        "modeling_toy.py:5:13: error: GC901 bad is not wanted (confirmed by run) [*]\n"
    )
    assert "    GC901 repairs it: gclint --fix --select GC901 modeling_toy.py\n" in outcome.out
    assert gclint("--fix", "--verify", "modeling_toy.py", command=()).status == 0
    assert path.read_text() == _MODEL.replace('word = "bad"', 'word = "ok"')


def test_what_it_does_not_say_about_runs_is_not_proven(gclint: Gclint) -> None:
    module = Path("rules") / f"{_MODULE}.py"
    module.write_text(_RULE.replace("def flags", "def nothing").replace("self.flags", "bool"))
    Path("modeling_toy.py").write_text(_MODEL)
    outcome = gclint("--fix", "--verify", "modeling_toy.py", command=())
    assert outcome.status == 1
    assert "not proven: GC901: no run can show whether `Block` is repaired" in outcome.out
    assert Path("modeling_toy.py").read_text() == _MODEL


def test_its_fixtures_are_found_and_hold(tmp_path: Path) -> None:
    folder = tmp_path / "fixtures"
    (folder / "GC901").mkdir(parents=True)
    (folder / "GC901" / "word.py").write_text('x = "bad"  # expect: GC901 safe Block\n')
    (folder / "GC901" / "word.fixed.py").write_text('x = "ok"\n')
    (fixture,) = load_fixtures(folder)
    verify_findings(fixture, all_rules(), tmp_path / "findings")
    verify_fix(fixture, all_rules(), tmp_path / "fixed", "as it is", unsafe=False)
    verify_suppression(fixture, all_rules(), tmp_path / "suppressed")
