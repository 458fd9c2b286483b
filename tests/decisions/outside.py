"""What the command line says of a few lines of code, in as few words.

Nothing here knows how gclint comes to its answers. A finding is known by its rule's name, its symbol, the
kind of its fix and the kinds of the reasons; what is silent, by the kinds of the reasons for that. How a
kind is worded stands in ``kinds.py`` alone, so that a sentence can change without any test.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import ndiff
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from gclint.cli.main import gclint
from tests.decisions.kinds import kinds_in

LAYER = "missing-checkpointing-layer"
CACHE = "positional-cache"
KEYWORD = "keyword-activation"
NESTED = "nested-activation"
BRANCHES = "mismatched-checkpoint-branches"
INPLACE = "inplace-embedding-output"
GUARD = "cache-without-guard"
OVERRIDE = "legacy-set-gradient-checkpointing"
NAME = "unfiltered-cache-name"
_ALIKE = {"legacy-checkpoint-branch": LAYER}
"""Two rules decide alike about a block; which of them reports it is held by ``test_legacy_branches.py``."""

RELEASES = ">=4.53,<5.17"
"""Every cache is disabled by its name in these releases."""
FILE = "modeling_toy.py"
Files = Mapping[str, str]

_SILENT = " is silent"
_PASSED = " gets "


def found(rule: str, fix: str, *reasons: str, of: str = "ToyLayer", code: str | None = None) -> str:
    """Write down a finding.

    Args:
        rule: the name of the rule.
        fix: ``safe``, ``unsafe`` or ``none``.
        reasons: the kinds of the reasons for that.
        of: the symbol.
        code: what the fix writes, where that matters.
    """
    because = f" because {', '.join(sorted(reasons))}" if reasons else ""
    return f"{rule} of {of}: {fix}{because}" + ("" if code is None else f" -> {code}")


def silent(rule: str, *reasons: str) -> str:
    """Write down that a rule finds nothing, and why."""
    return f"{rule}{_SILENT} because {', '.join(sorted(reasons))}"


def passed(parameter: str, role: str, *reasons: str) -> str:
    """Write down what a parameter gets, as gclint understands the call."""
    return f"{parameter}{_PASSED}{role}" + (f" because {', '.join(sorted(reasons))}" if reasons else "")


@dataclass(frozen=True)
class Pair:
    """One decision: code on one side of it, a small change of the code, and what is said of each."""

    decision: str
    code: str | Files
    change: tuple[str, str]
    """What stands once in the code, and what stands there on the other side."""
    before: Sequence[str]
    after: Sequence[str]
    at: str = "layer("
    """What begins the line at which gclint is asked why it is silent: the last one with these words."""
    releases: str = RELEASES
    wrong: str = ""
    """Why gclint answers wrongly on the other side, where it does."""

    def sides(self) -> tuple[Side, Side]:
        """Return the code before the change and behind it, with what is to be said of each."""
        files = {FILE: self.code} if isinstance(self.code, str) else self.code
        old, new = self.change
        count = sum(text.count(old) for text in files.values())
        assert count == 1, f"{old!r} stands {count} times in the code of {self.decision!r}"
        changed = {name: text.replace(old, new) for name, text in files.items()}
        return Side(files, sorted(self.before), self), Side(changed, sorted(self.after), self)


@dataclass(frozen=True)
class Side:
    """Code, and what is to be said of it."""

    files: Files
    said: list[str]
    pair: Pair

    def answers(self, outside: Outside) -> list[str]:
        """Return all findings, and of what is asked beside them the answers."""
        outside.write(self.files)
        shows_code = any(" -> " in each for each in self.said)
        answers = outside.findings(self.pair.releases, shows_code=shows_code)
        silences = [each.partition(_SILENT)[0] for each in self.said if _SILENT in each]
        names = [each.partition(_PASSED)[0] for each in self.said if _PASSED in each]
        if silences or names:
            explained = outside.explained(self.pair.at, self.pair.releases)
            answers += [silence(explained, rule) for rule in silences]
            answers += [argument(explained, name) for name in names]
        return sorted(answers)


@dataclass(frozen=True)
class Decision:
    """What is to be said of one side of a pair, or of both."""

    sides: Sequence[Side]

    @property
    def said(self) -> list[list[str]]:
        """What is to be said of each side."""
        return [side.said for side in self.sides]

    def answers(self, outside: Outside) -> list[list[str]]:
        """Return what is said of each side."""
        return [side.answers(outside) for side in self.sides]


def decided(*pairs: Pair) -> Callable[..., None]:
    """Return a test of each pair; of both of its sides, unless gclint is wrong about one."""
    cases = []
    for pair in pairs:
        before, after = pair.sides()
        if not pair.wrong:
            cases.append(pytest.param(Decision((before, after)), id=pair.decision))
            continue
        wrong = pytest.mark.xfail(reason=pair.wrong, strict=True)
        cases.append(pytest.param(Decision((before,)), id=pair.decision))
        cases.append(pytest.param(Decision((after,)), marks=wrong, id=f"{pair.decision}, otherwise"))

    @pytest.mark.parametrize("decision", cases)
    def test(decision: Decision, outside: Outside) -> None:
        assert decision.answers(outside) == decision.said

    return test


@dataclass
class Outside:
    """The command line in a folder, with a library beside it."""

    folder: Path
    library: Path
    texts: dict[str, str] = field(default_factory=dict)

    def write(self, files: Files) -> None:
        """Write files, which must be Python."""
        for name, text in files.items():
            if name.endswith(".py"):
                compile(text, name, "exec", dont_inherit=True)
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        self.texts = dict(files)

    def run(self, command: str, *arguments: str, releases: str = RELEASES) -> str:
        """Run a command of gclint, and return what it prints."""
        settings = ("--target-version", releases, "--library", str(self.library))
        given = (command, *arguments, *settings)
        result = CliRunner().invoke(gclint, given, prog_name="gclint", catch_exceptions=False)
        assert result.exit_code in (0, 1), result.output
        return result.stdout

    def findings(self, releases: str = RELEASES, *, shows_code: bool = False) -> list[str]:
        """Return the findings in the folder, written down."""
        said = self.run("check", "--no-cache", "--output-format", "json", ".", releases=releases)
        return [self._written(entry, shows_code=shows_code) for entry in json.loads(said)]

    def explained(self, at: str, releases: str = RELEASES) -> list[dict[str, Any]]:
        """Return what is explained about the last line with some words."""
        name, row = next(
            (name, row)
            for name, text in self.texts.items()
            for row, line in reversed([*enumerate(text.splitlines(), start=1)])
            if at in line
        )
        said = self.run("explain", f"{name}:{row}", "--output-format", "json", releases=releases)
        subjects: list[dict[str, Any]] = json.loads(said)["subjects"]
        return subjects

    def _written(self, entry: dict[str, Any], *, shows_code: bool) -> str:
        fix = entry["fix"] or {"applicability": "none", "reason": entry["reason"], "edits": []}
        reasons = kinds_in(fix["reason"] or "")
        code = self._code_after(fix["edits"]) if shows_code else None
        rule = _ALIKE.get(entry["name"], entry["name"])
        return found(rule, fix["applicability"], *reasons, of=entry["symbol"], code=code)

    def _code_after(self, edits: Sequence[dict[str, Any]]) -> str:
        """Return the lines that edits add, without those that import something."""
        added: list[str] = []
        for name, before in self.texts.items():
            starts = [0]
            for line in before.splitlines(keepends=True):
                starts.append(starts[-1] + len(line))
            own = [each for each in edits if each["filename"] == name]
            spans = [
                (_offset(starts, each["location"]), _offset(starts, each["end_location"]), each["content"])
                for each in own
            ]
            after = before
            for start, end, content in sorted(spans, reverse=True):
                after = after[:start] + content + after[end:]
            lines = ndiff(before.splitlines(), after.splitlines())
            added += [line[2:].strip() for line in lines if line.startswith("+ ")]
        return " | ".join(line for line in added if not line.startswith(("from ", "import ")))


def silence(subjects: Sequence[dict[str, Any]], rule: str) -> str:
    """Return why a rule is silent, written down."""
    rules = (each for subject in subjects for each in subject["rules"] if each["name"] == rule)
    reasons = (reason for each in rules for reason in each["reasons"])
    return silent(rule, *{kind for reason in reasons for kind in kinds_in(reason)})


def argument(subjects: Sequence[dict[str, Any]], name: str) -> str:
    """Return what a parameter gets, written down; of several calls, the last."""
    calls = (call for subject in subjects for call in subject["calls"])
    details = [each for call in calls for each in call["details"] if each.get("parameter") == name]
    return passed(name, details[-1]["role"], *kinds_in(details[-1]["why"] or "")) if details else name


def _offset(starts: Sequence[int], place: Mapping[str, int]) -> int:
    return starts[place["row"] - 1] + place["column"] - 1
