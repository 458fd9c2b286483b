"""Cases of hints about parts that the configuration enables."""

from __future__ import annotations

from typing import Any

from tests.verify.synthesis.recorded.case import Case, Part, ToyConfig


class Gated(Part):
    def __init__(self, config: Any) -> None:
        if config.use_bias:
            self.bias = 1
        if config.use_gate:
            self.gate = 2

            self.gate_norm = 3


CASES = {
    "enabled": tuple(
        Case(
            f"'Gated' object has no attribute '{name}'",
            {"values": {("ToyConfig", "use_gate"): True}},
            error=AttributeError,
            obj=Gated(ToyConfig(use_bias=False, use_gate=False)),
            config=ToyConfig(use_bias=False, use_gate=False),
        )
        for name in ("gate", "gate_norm")
    ),
}
