"""What gclint makes of a model of a kind, held against what training shows."""

from __future__ import annotations

import ast
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.contract.kinds.frames import FRAMES
from tests.contract.kinds.models import Model
from tests.contract.releases import RELEASES, worker
from tests.contract.repair import repair

RELEASE = RELEASES[-1]
KEPT, WRONG, NEEDLESS = "kept", "wrong safe fix", "needless doubt"


@dataclass(frozen=True)
class Verdict:
    """What came of a model."""

    model: Model
    outcome: str
    how: str
    """What breaks, or why there is no safe fix."""
    invalid: str | None = None
    """Why the model is not what it says it is, if so: then the generator is wrong."""


def judge(model: Model) -> Verdict:
    """Let gclint repair a model, and train it before and after that; and before and after a bold repair."""
    written, bold = model.files(), model.files(is_repaired=True)
    with tempfile.TemporaryDirectory(prefix="kinds-") as name:
        repaired = repair(written, Path(name, "repaired"), RELEASE)
    harm = _broken(model, bold)
    invalid = _invalid(model, harm)
    breaks: list[str] = []
    if repaired.files != written:
        is_bold = _meaning(repaired.files) == _meaning(bold)
        breaks = (harm if is_bold else _broken(model, repaired.files)).get("broken", [])
    rules = FRAMES[model.frame].rules
    is_safe = any(each.endswith(" safe fix") and each.split()[0] in rules for each in repaired.findings)
    if breaks:
        return Verdict(model, WRONG, _first(breaks), invalid)
    if model.is_twin and not is_safe:
        return Verdict(model, NEEDLESS, "; ".join(repaired.findings) or "nothing is reported", invalid)
    return Verdict(model, KEPT, "", invalid)


def _broken(model: Model, files: Mapping[str, str]) -> dict[str, Any]:
    """Return what the worker says of a model that is changed to these files."""
    with tempfile.TemporaryDirectory(prefix="kinds-") as name:
        for package, texts in (("before", model.files()), ("after", files)):
            Path(name, package).mkdir()
            for file, text in texts.items():
                Path(name, package, file).write_text(text, encoding="utf-8")
        return worker(RELEASE).train(Path(name), model.package)


def _invalid(model: Model, answer: Mapping[str, Any]) -> str | None:
    if "invalid" in answer:
        return str(answer["invalid"])
    if model.is_twin and answer["broken"]:
        return f"the twin is not harmless: {_first(answer['broken'])}"
    if not model.is_twin and not answer["broken"]:
        return "the model is harmless"
    return None


def _first(broken: list[Any]) -> str:
    promise, place, how = broken[0]
    return f"promise {promise}: {place}: {how}"


def _meaning(files: Mapping[str, str]) -> dict[str, str]:
    """Return what runs the same, whatever the order of imports and the white space."""
    return {name: "\n".join(sorted(map(ast.dump, ast.parse(text).body))) for name, text in files.items()}
