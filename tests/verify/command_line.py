"""What tests of the command ``gclint verify`` write into files, and read from what it prints."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gclint.userfolder import key_of

_HEAD = "from dataclasses import replace\nfrom gclint.verify.worker.protocol import *\n"
MODEL = "\nclass PreTrainedModel: ...\nclass Unused(PreTrainedModel): ...\n"
"""What makes a file one that is imported: a model by its text, which the stand-in does not run."""


@dataclass
class Outcome:
    """What a command did."""

    status: int
    out: str
    err: str

    def json(self) -> Any:
        """Return the JSON that it printed."""
        return json.loads(self.out)


Gclint = Callable[..., Outcome]
"""Runs ``gclint verify`` with what it is given."""


def passing(*names: str) -> str:
    """Return classes that pass."""
    return "".join(f"class {name}:\n    run = staticmethod(lambda watch, known: None)\n" for name in names)


def failing(name: str, *, lost: int = 8, line: int = 7) -> str:
    """Return a class that fails a check: some gradients are lost, by the call in a line."""
    return f"""
class {name}:
    @staticmethod
    def run(watch, known):
        place = SourcePlace(known.source, {line}, {line + 1})
        failure = Failure(
            "gradients", "reentrant", "default", "the gradients of {lost} parameters are lost",
            tuple("abcdefghijkl"[:{lost}]), (place,), Cause.KEYWORD_ACTIVATION,
            "The call passes `x` by keyword.",
        )
        recipe = Recipe("collections.OrderedDict", {{"width": 8}}, {{"input_ids": "torch.tensor([[1]])"}})
        watch.known(replace(known, outcome="failed", failures=(failure,), recipes=(recipe,)))
        raise ValueError("a bug in gclint")
"""


def write(name: str, text: str) -> Path:
    """Write a modeling file into the current folder."""
    path = Path(f"modeling_{name}.py")
    path.write_text(_HEAD + text + MODEL)
    return path


def names(outcome: Outcome) -> list[str]:
    """Return the names of the classes in what was printed as JSON."""
    return [result["name"] for result in outcome.json()["results"]]


def kept_results() -> Path:
    """Return the file of results that belongs to the current folder."""
    return Path(os.environ["XDG_STATE_HOME"], "gclint", "results", f"{key_of(Path())}-verify.jsonl")
