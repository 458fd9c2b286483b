"""An estimate of memory, as the worker makes it."""

from __future__ import annotations

from gclint.verify.worker.estimates import (
    Addition,
    BlockBytes,
    Fit,
    Measurement,
    MemoryEstimate,
    ModeEstimate,
    Option,
    Saved,
)
from gclint.verify.worker.modes import Mode, SourcePlace

GIGA = 10**9


def _mode(mode: Mode, block: int, outside: int, flops: int) -> ModeEstimate:
    blocks = tuple(BlockBytes(f"model.layers.{number}", "Layer", block) for number in range(2))
    kept = Saved(
        "model.layers.*", SourcePlace("modeling_toy.py", 3, 3), "MulBackward0", (1, 8), "float32", 2, block
    )
    return ModeEstimate(mode, 2 * block + outside, blocks, 5 * GIGA, flops // 3, flops, (kept,))


ESTIMATE = MemoryEstimate(
    "modeling_toy.py",
    "ToyModel",
    batch=2,
    sequence=4096,
    parameters=1000,
    weight_bytes=2000,
    modes=(
        _mode("plain", 4 * GIGA, 2 * GIGA, 300),
        _mode("non-reentrant", GIGA // 10, 2 * GIGA, 400),
        _mode("reentrant", GIGA // 10, 2 * GIGA, 400),
    ),
    additions=(Addition("non-reentrant", "model.layers", "Layer", 2, 64, (1, 8, 2), 64),),
    fits=(Fit("batch", "plain", 0, 90 * GIGA), Fit("batch", "non-reentrant", 3, 70 * GIGA)),
    budget=80 * GIGA,
    options=(
        Option(1, False, GIGA, 0, 400, 5 * GIGA),
        Option(2, False, 3 * GIGA, 0, 350, 5 * GIGA),
        Option(1, True, GIGA // 2, GIGA // 2, 400, 5 * GIGA),
    ),
    measurements=(
        Measurement("plain", "H200", 10 * GIGA, 1.5),
        Measurement("reentrant", "H200", error="none"),
    ),
    notes=("Attention dropout is 0.",),
)
