"""What the command line says of a few lines of code, in as few words.

Nothing here knows how gclint comes to its answers. A finding is known by its rule's name, its symbol, the
kind of its fix and the kinds of the reasons; what is silent, by the kinds of the reasons for that. How a
kind is worded stands in ``kinds.py`` alone, so that a sentence can change without any test.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import ndiff
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from gclint.cli import gclint
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

RELEASES = ">=4.53,<5.17"
"""Every cache is disabled by its name in these releases."""
FILE = "modeling_toy.py"
Files = Mapping[str, str]

_LIBRARY = {
    "__init__.py": "from .modeling_utils import PreTrainedModel\n",
    "modeling_layers.py": "class GradientCheckpointingLayer: ...\n",
    "modeling_utils.py": "class PreTrainedModel: ...\n",
}
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
    options: Sequence[str] = ()
    wrong: str = ""
    """Why gclint answers wrongly on the other side, where it does."""

    def sides(self) -> Iterator[tuple[str, Side]]:
        """Yield both sides with their names."""
        files = {FILE: self.code} if isinstance(self.code, str) else self.code
        old, new = self.change
        count = sum(text.count(old) for text in files.values())
        assert count == 1, f"{old!r} stands {count} times in the code of {self.decision!r}"
        changed = {name: text.replace(old, new) for name, text in files.items()}
        for name, texts, said in (("before", files, self.before), ("after", changed, self.after)):
            yield f"{self.decision}: {name}", Side(texts, sorted(said), self)


@dataclass(frozen=True)
class Side:
    """Code, and what is to be said of it."""

    files: Files
    said: list[str]
    pair: Pair

    def answers(self, outside: Outside) -> list[str]:
        """Return all findings, and of what is asked beside them the answers."""
        outside.write(self.files)
        answers = outside.findings(self.pair, shows_code=any(" -> " in each for each in self.said))
        silences = [each.partition(_SILENT)[0] for each in self.said if _SILENT in each]
        names = [each.partition(_PASSED)[0] for each in self.said if _PASSED in each]
        if silences or names:
            explained = outside.explained(self.pair)
            answers += [silence(explained, rule) for rule in silences]
            answers += [argument(explained, name) for name in names]
        return sorted(answers)


def sides(*pairs: Pair) -> pytest.MarkDecorator:
    """Return what runs a test for both sides of each pair."""
    cases = []
    for pair in pairs:
        for name, side in pair.sides():
            is_wrong = pair.wrong and name.endswith("after")
            marks = [pytest.mark.xfail(reason=pair.wrong, strict=True)] if is_wrong else []
            cases.append(pytest.param(side, marks=marks, id=name))
    return pytest.mark.parametrize("side", cases)


@dataclass
class Outside:
    """The command line in a folder."""

    folder: Path
    texts: dict[str, str] = field(default_factory=dict)

    def write(self, files: Files) -> None:
        """Write files, which must be Python, and a library that they may import."""
        library = {f"library/transformers/{name}": text for name, text in _LIBRARY.items()}
        for name, text in {**library, **files}.items():
            if name.endswith(".py"):
                compile(text, name, "exec", dont_inherit=True)
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        self.texts = dict(files)

    def run(self, *arguments: str) -> str:
        """Run gclint, and return what it prints."""
        result = CliRunner().invoke(gclint, arguments, prog_name="gclint", catch_exceptions=False)
        assert result.exit_code in (0, 1), result.output
        return result.stdout

    def findings(self, pair: Pair, *, shows_code: bool = False) -> list[str]:
        """Return the findings in the folder, written down."""
        entries = json.loads(
            self.run("check", "--no-cache", "--output-format", "json", *_settings(pair), *pair.options, ".")
        )
        return [self._written(entry, shows_code=shows_code) for entry in entries]

    def explained(self, pair: Pair) -> list[dict[str, Any]]:
        """Return what is explained about a place."""
        name, row = next(
            (name, row)
            for name, text in self.texts.items()
            for row, line in reversed([*enumerate(text.splitlines(), start=1)])
            if pair.at in line
        )
        said = self.run("explain", f"{name}:{row}", "--output-format", "json", *_settings(pair))
        subjects: list[dict[str, Any]] = json.loads(said)["subjects"]
        return subjects

    def _written(self, entry: dict[str, Any], *, shows_code: bool) -> str:
        fix = entry["fix"] or {"applicability": "none", "reason": entry["reason"], "edits": []}
        reasons = kinds_in(fix["reason"] or "")
        code = self._code_after(fix["edits"]) if shows_code else None
        return found(entry["name"], fix["applicability"], *reasons, of=entry["symbol"], code=code)

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


def _settings(pair: Pair) -> list[str]:
    return ["--target-version", pair.releases, "--library", "library"]
