"""Trains a model that ``torch.compile`` has compiled."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from typing import Any

import torch
import torch.utils.checkpoint as torch_checkpoint

from gclint.verify.worker.examination.blocks import Block
from gclint.verify.worker.examination.model_under_test import ModelUnderTest
from gclint.verify.worker.practices import COMPILE, CompilePractice, Practice
from gclint.verify.worker.protocol import Advice, SetUp
from gclint.verify.worker.training.group import (
    PracticeGroup,
    Prepared,
    Rank,
    Seen,
    batches,
    listed,
    preferring,
    trained_parameters,
)

_CHECKPOINT = "checkpoint"
"""A part of the names of all graph nodes that are checkpoints."""
_CACHE = "use_cache"


def _prepare(
    practice: Practice, under_test: ModelUnderTest, blocks: Sequence[Block], _rank: Rank
) -> Prepared:
    assert isinstance(practice, CompilePractice)
    parameters = trained_parameters(under_test.model)
    made = batches(under_test, sets_cache=not practice.is_cached)
    under_test.enable_checkpointing(practice.mode)
    if not practice.is_compiled:
        return Prepared(under_test.model, parameters, made)
    _enable()
    compiler = _Compiler(len(blocks))
    # This backend needs no compiler, and shows every effect of graphs on gradients.
    model = torch.compile(under_test.model, backend=compiler)
    return Prepared(model, parameters, made, seen=compiler.seen, remark=compiler.remark)


def _enable() -> None:
    """Allow torch to compile in this process, which is otherwise disabled."""
    import torch._dynamo

    os.environ.pop("TORCHDYNAMO_DISABLE", None)
    torch._dynamo.config.disable = False
    torch._dynamo.reset()


class _Compiler:
    """Runs graphs as they are, and counts them and the checkpoints in them."""

    def __init__(self, blocks: int) -> None:
        self._blocks = blocks
        self._graphs = 0
        self._checkpoints = 0
        """The checkpoints in the graphs, and those outside that were recomputed."""
        self._count_calls(torch_checkpoint.CheckpointFunction, "backward", staticmethod)
        self._count_calls(torch_checkpoint._recomputation_hook, "__init__", lambda function: function)

    def __call__(self, graph: Any, examples: Any) -> Any:
        from torch._dynamo.backends.debugging import aot_eager

        self._graphs += 1
        self._checkpoints += sum(_CHECKPOINT in str(node.target) for node in graph.graph.nodes)
        return aot_eager(graph, examples)

    def seen(self) -> Seen:
        """Return the checkpoints as blocks, since hooks that count blocks would be compiled too."""
        found = min(self._checkpoints, self._blocks)
        names = [f"checkpoint {number}" for number in range(self._blocks)]
        return Seen(Counter(names), Counter(names[:found]))

    def remark(self) -> str:
        """Return why there are several graphs, if there are."""
        from torch._dynamo.utils import counters

        breaks = counters["graph_break"]
        if not breaks:
            return ""
        first = next(iter(breaks)).partition("\n")[0].rstrip(".")
        hint = "; use_cache=False avoids a break" if any(_CACHE in each for each in breaks) else ""
        return f"graph breaks split the model into {self._graphs} graphs: {first}{hint}"

    def _count_calls(self, kind: Any, name: str, wrap: Any) -> None:
        """Count the calls of a function that torch calls to recompute a checkpoint."""
        original = getattr(kind, name)

        def counting(*args: Any, **kwargs: Any) -> Any:
            self._checkpoints += 1
            return original(*args, **kwargs)

        setattr(kind, name, wrap(counting))


def _advise(rows: Sequence[SetUp]) -> Advice | None:
    working = [each for each in rows if each.outcome == "works"]
    failing = [each for each in rows if each.outcome == "fails"]
    if working:
        # The shortest remark is about the fewest breaks.
        best = min(working, key=lambda each: (bool(each.message), "/no-cache" in each.name))
        setting = f"use_reentrant={best.name.startswith('R')}"
        setting += " and use_cache=False" if best.name.endswith("no-cache") else ""
        return preferring(COMPILE, "With torch.compile", setting, failing)
    if failing:
        return Advice(COMPILE, "", f"With torch.compile, no set-up that was run works: {listed(failing)}.")
    return None


COMPILING = PracticeGroup(_prepare, _advise, is_slow=True, steps=1)
"""Training of compiled models."""
