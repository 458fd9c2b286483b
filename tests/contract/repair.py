"""What gclint makes of a generated model."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from click.testing import CliRunner

from gclint.cli.check import check_command

_TARGET = "--target-version"


@dataclass(frozen=True)
class Repaired:
    """A model's files with the safe fixes made, and what was reported before."""

    files: Mapping[str, str]
    findings: tuple[str, ...]
    """The rule and what becomes of each finding, with the reason if that is no safe fix."""


def repair(files: Mapping[str, str], folder: Path, release: str) -> Repaired:
    """Write a model into ``folder``, and let gclint make its safe fixes there for a release.

    Raises:
        RuntimeError: it could not check the files.
    """
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    options = [_TARGET, release] if takes_target() else []
    found = json.loads(_run(*options, "--output-format", "json", str(folder)))
    if any((finding["fix"] or {}).get("applicability") == "safe" for finding in found):
        _run(*options, "--fix", str(folder))
    return Repaired(
        {name: (folder / name).read_text(encoding="utf-8") for name in files},
        tuple(f"{each['code']} {_outcome(each)}" for each in found),
    )


def takes_target() -> bool:
    """Tell whether gclint can be told the release that a file runs with."""
    return any(_TARGET in option.opts for option in check_command.params)


def _run(*arguments: str) -> str:
    result = CliRunner().invoke(check_command, list(arguments))
    if result.exit_code not in (0, 1) or (result.exception and not isinstance(result.exception, SystemExit)):
        raise RuntimeError(f"gclint {' '.join(arguments)}: {result.output}{result.exception!r}")
    return result.stdout


def _outcome(finding: Mapping[str, object]) -> str:
    fix = finding["fix"]
    if not isinstance(fix, dict):
        return f"no fix: {finding['reason']}"
    return "safe fix" if fix["applicability"] == "safe" else f"unsafe fix: {fix['reason']}"
