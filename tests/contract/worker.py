"""Trains models before and after a repair: ``python -m tests.contract.worker``, in a release's environment.

Reads a request a line (JSON): the folder with the packages ``before`` and ``after``, the ways and
scenarios. Writes a line for each: what is broken, or why the model is not fit for it. Every model has
a process of its own, forked from this one, so that one which hangs or dies takes nothing with it.
"""

from __future__ import annotations

import importlib
import json
import os
import select
import signal
import sys
import warnings
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
import transformers

# Imported before the first fork, so that no child does it again.
from transformers import DynamicCache, PretrainedConfig, PreTrainedModel  # noqa: F401
from transformers.models.llama import modeling_llama  # noqa: F401

from tests.contract.promises import IMPORTS, WORKS, broken_plainly, broken_with_checkpointing
from tests.contract.steps import Outcome, step

_SECONDS = 12
"""Of wall-clock time for a step that takes some hundredths of one. A step that hangs in autograd's own
threads uses no CPU time, and lets no signal in."""
_HANGS = 5
"""After so many steps of a model that hang before the repair, it is given up."""
PACKAGES = ("before", "after")


def main() -> int:
    """Answer requests until there are no more."""
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    transformers.logging.set_verbosity_error()
    warnings.simplefilter("ignore")
    print(json.dumps({"transformers": transformers.__version__}), flush=True)
    for line in sys.stdin:
        print(_answer(line), flush=True)
    return 0


def _answer(line: str) -> str:
    """Return the answer to a request, without the steps that hang before the repair."""
    request: dict[str, Any] = json.loads(line)
    request["skip"] = []
    while True:
        answer = _child(request)
        if "broken" in answer or "invalid" in answer:
            return json.dumps(answer)
        # It names each step before it takes it.
        package, _, place = str(answer.get("step", "import")).partition(": ")
        if package == PACKAGES[1]:
            return json.dumps({"broken": [[WORKS, place, "hangs or dies"]]})
        request["skip"].append(place)
        if not place or len(request["skip"]) > _HANGS:
            return json.dumps({"invalid": f"hangs or dies in {place or package}"})


def _child(request: dict[str, Any]) -> dict[str, Any]:
    """Return the last thing that a child says about a request."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _answer_in_child(request, writing)
    os.close(writing)
    data = b""
    while select.select([reading], [], [], _SECONDS)[0]:
        piece = os.read(reading, 65536)
        if not piece:
            break
        data += piece
    else:
        os.kill(child, signal.SIGKILL)
    os.close(reading)
    os.waitpid(child, 0)
    lines = data.decode().splitlines()
    answer: dict[str, Any] = json.loads(lines[-1]) if lines else {}
    return answer


def _answer_in_child(request: dict[str, Any], writing: int) -> None:
    status = 1
    try:
        with os.fdopen(writing, "w", encoding="utf-8") as pipe:

            def say(**said: Any) -> None:
                print(json.dumps(said), file=pipe, flush=True)

            say(**_examine(request, say))
        status = 0
    finally:
        os._exit(status)


def _examine(request: dict[str, Any], say: Any) -> dict[str, Any]:
    sys.path.insert(0, request["folder"])
    try:
        before = _imported(Path(request["folder"], PACKAGES[0]))
    except Exception as error:
        return {"invalid": f"import: {error!r}"}
    try:
        after = _imported(Path(request["folder"], PACKAGES[1]))
    except Exception as error:
        return {"broken": [[IMPORTS, "import", repr(error)]]}
    broken: dict[tuple[int, str, str], None] = {}
    reference: dict[tuple[str, str], Outcome] = {}
    for way in request["ways"]:
        for scenario in request["scenarios"]:
            outcomes: list[Outcome] = []
            for name, modules in zip(PACKAGES, (before, after), strict=True):
                place = f"{scenario}, {way['name']}"
                # What did not work before has no promise to keep.
                if place in request["skip"] or any(each.error for each in outcomes):
                    outcomes.append(Outcome(error="is not run"))
                    continue
                say(step=f"{name}: {place}")
                outcomes.append(step(modules["modeling_toy"], modules.get("train"), way, scenario))
            if way.get("off"):
                reference[scenario, way.get("run", "")] = outcomes[0]
                if outcomes[0].error is not None and scenario == "train":
                    return {"invalid": f"{way['name']}: {outcomes[0].error}"}
                found = list(broken_plainly(*outcomes))
            else:
                found = list(broken_with_checkpointing(reference[scenario, way.get("run", "")], *outcomes))
            broken.update(dict.fromkeys((promise, place, how) for promise, how in found))
    return {"broken": [list(each) for each in broken]}


def _imported(folder: Path) -> dict[str, ModuleType]:
    """Import all modules of a package."""
    names = sorted(path.stem for path in folder.glob("*.py") if path.stem != "__init__")
    return {name: importlib.import_module(f"{folder.name}.{name}") for name in names}


if __name__ == "__main__":
    raise SystemExit(main())
