"""Rules about single words, with which the engine is tested apart from the real ones."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path

from gclint.finding import Applicability, Edit, Finding, Fix, Refusal
from gclint.network.model import Network
from gclint.rule import Rule

NO_FIX = Refusal("nobody knows how")


class WordRule(Rule):
    """Finds every match of a pattern, and makes of it what a function says."""

    name = "some-word"

    def __init__(
        self,
        pattern: str,
        repair: Callable[[re.Match[str], Path], tuple[Edit, ...] | None],
        *,
        code: str = "TOY1",
        unsafe: bool = False,
    ) -> None:
        self.code = code  # type: ignore[misc]
        self._pattern = re.compile(pattern)
        self._repair = repair
        self._applicability = Applicability.UNSAFE if unsafe else Applicability.SAFE

    def check(self, network: Network) -> Iterable[Finding]:
        for match in self._pattern.finditer(network.file.text):
            yield self._finding(match, network.file.path)

    def _finding(self, match: re.Match[str], path: Path) -> Finding:
        edits = self._repair(match, path)
        unsafe = self._applicability is Applicability.UNSAFE
        fix = Fix("Repair", edits, self._applicability, "look" if unsafe else None) if edits else None
        return Finding(
            self.code, self.name, f"{match[0]} is bad", path, *match.span(), match[0], fix or NO_FIX
        )


def replacing(replacement: str) -> Callable[[re.Match[str], Path], tuple[Edit, ...]]:
    """Return a repair that puts ``replacement`` (a template) where the match is."""
    return lambda match, path: (Edit(path, *match.span(), match.expand(replacement)),)


def without_fix(_match: re.Match[str], _path: Path) -> None:
    """Repair nothing."""


class CrashingRule(Rule):
    """Fails on every file that holds the word ``boom``, after it has found something."""

    code = "TOY9"
    name = "crashing"

    def check(self, network: Network) -> Iterable[Finding]:
        yield Finding(self.code, self.name, "found before the crash", network.file.path, 0, 1, "", NO_FIX)
        if "boom" in network.file.text:
            raise KeyError("boom\nand more")
