"""What gclint says about a release, in words that are the same on every machine."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

MODELS = "transformers/models"
"""Where a release has its models."""

_PLACE = re.compile(r" (?:in|on) line \d+| \(lines? \d+(?:, \d+)*(?: and \d+)?(?: of [^)]*)?\)")
_UNREAD = re.compile(r"\d+ files? looks? like ")
"""What is said of files that have stacks and another name."""


@dataclass(frozen=True, order=True)
class Reported:
    """A finding, without its place: that changes with the release, and here the release is known."""

    code: str
    file: str
    """Below the release's models."""
    symbol: str
    parameters: tuple[str, ...]
    """What is passed in the wrong way; none for GC001 and GC301."""
    outcome: str
    """``safe fix``, or ``fix with --verify``, ``unsafe fix`` or ``no fix`` with the reason."""
    message: str
    heirs: tuple[str, ...] = ()
    """The keys of what inherits it, in generated files."""

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of all classes that it stands for."""
        return (self.key, *self.heirs)

    @property
    def key(self) -> str:
        """The file and the class, as transformers' files, whose names are unique, allow."""
        return _key(self.file, self.symbol)

    @property
    def line(self) -> str:
        """One line that says everything but the message, which follows from the rest."""
        parameters = f"({', '.join(self.parameters)})" if self.parameters else ""
        heirs = f" and {', '.join(self.heirs)}" if self.heirs else ""
        return f"{self.code} {self.file} {self.symbol}{parameters}{heirs}: {self.outcome}"


@cache
def reported(tree: Path) -> tuple[Reported, ...]:
    """Return what gclint reports on the models of the release in ``tree``, sorted."""
    return run_gclint(tree)


def run_gclint(tree: Path, *options: str, folder: str = MODELS) -> tuple[Reported, ...]:
    """Run gclint over a folder in ``tree``, as a user does, and return its findings, sorted.

    Raises:
        AssertionError: it could not check every file, or said something else that nobody expects.
    """
    command = [sys.executable, "-m", "gclint", *options, "--output-format", "json", folder]
    run = subprocess.run(command, cwd=tree, capture_output=True, encoding="utf-8")
    assert run.returncode in (0, 1), run.stderr
    assert [line for line in run.stderr.splitlines() if not _UNREAD.match(line)] == []
    return tuple(sorted(_reported(finding) for finding in json.loads(run.stdout)))


def _reported(finding: Mapping[str, Any]) -> Reported:
    return Reported(
        finding["code"],
        _below_models(finding["filename"]),
        finding["symbol"],
        _parameters(finding),
        _below_models(_PLACE.sub("", _outcome(finding))),
        finding["message"],
        tuple(sorted(_key(heir["filename"], heir["symbol"]) for heir in finding["inherited_by"])),
    )


def _parameters(finding: Mapping[str, Any]) -> tuple[str, ...]:
    code, message = finding["code"], finding["message"]
    if code == "GC101":  # The message has the first one only.
        steps = (re.match(r"`(\w+)` gets ", step["message"]) for step in finding["story"])
        return tuple(found[1] for found in steps if found)
    if code == "GC103":
        message = message.partition(" inside ")[2].partition(",")[0]
    subject = re.split(r" (?:is|are) passed to\b", message)[0]
    return tuple(re.findall(r"`(\w+)`", subject)) if code in ("GC002", "GC003", "GC103", "GC305") else ()


def _key(file: str, symbol: str) -> str:
    return f"{Path(file).name}::{symbol}"


def _outcome(finding: Mapping[str, Any]) -> str:
    fix = finding["fix"]
    if fix is None:
        return f"no fix: {finding['reason']}"
    kinds = {"safe": "safe fix", "when proven": "fix with --verify", "unsafe": "unsafe fix"}
    kind = kinds[fix["applicability"]]
    return kind if fix["reason"] is None else f"{kind}: {fix['reason']}"


def _below_models(text: str) -> str:
    return text.replace(f"{MODELS}/", "")
