"""How long examining models takes, and how long the bare steps of it: run by ``tests.verify.benchmark``.

Runs in an environment with torch and transformers, and prints seconds: of making the tiny models, of
examining them, and of the same numbers of bare steps in the same modes.
"""

from __future__ import annotations

import gc
import importlib
import os
import sys
import time
from collections import Counter
from typing import Any

os.environ |= {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error"}

import torch
from transformers.utils import logging

from gclint.verify.worker.examination.examine import examine
from gclint.verify.worker.protocol import Mode, Source
from gclint.verify.worker.synthesis.attempts.search import tiny_models
from gclint.verify.worker.tiny_model import TinyModel
from gclint.verify.worker.watch import Watch


def main(names: list[str]) -> None:
    """Measure the classes of these dotted names."""
    torch.set_num_threads(1)
    logging.set_verbosity_error()
    # As the worker does before it forks.
    gc.collect()
    gc.freeze()
    synthesising = examining = bare = 0.0
    for name in names:
        module, _, kind = name.rpartition(".")
        model_class = getattr(importlib.import_module(module), kind)
        begin = time.perf_counter()
        made = list(tiny_models(model_class))
        synthesising += time.perf_counter() - begin
        steps: Counter[tuple[str, Mode]] = Counter()

        def count(scenario: str, mode: Mode, step: str, steps: Counter[tuple[str, Mode]] = steps) -> None:
            steps[scenario, mode] += step.startswith("the forward pass")

        begin = time.perf_counter()
        examine(Source(module, module), model_class, iter(made), "cpu", watch=Watch(count))
        examining += time.perf_counter() - begin
        begin = time.perf_counter()
        _take_bare_steps(made, steps)
        bare += time.perf_counter() - begin
    print(synthesising, examining, bare)


def _take_bare_steps(made: list[TinyModel], steps: Counter[tuple[str, Mode]]) -> None:
    """Take as many steps in each mode, each scenario with its tiny model, if it has one of its own."""
    by_scenario = {tiny_model.scenario: tiny_model for tiny_model in made}
    for tiny_model in made:
        model = tiny_model.build()
        for mode in ("plain", "non-reentrant", "reentrant"):
            if mode != "plain":
                model.gradient_checkpointing_enable({"use_reentrant": mode == "reentrant"})
            own = sum(
                count
                for (scenario, each), count in steps.items()
                if each == mode and by_scenario.get(scenario, made[0]) is tiny_model
            )
            for _ in range(own):
                _step(model, tiny_model.inputs())


def _step(model: Any, inputs: dict[str, Any]) -> None:
    model.zero_grad()
    outputs = model(**inputs)
    tensors = [each for each in outputs.to_tuple() if torch.is_tensor(each) and each.requires_grad]
    torch.stack([each.float().sum() for each in tensors]).sum().backward()


if __name__ == "__main__":
    main(sys.argv[1:])
