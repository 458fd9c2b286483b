"""A worker whose models need no torch: a class's method ``run`` is its examination.

Run as a program, it takes the place of the real worker.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from types import ModuleType
from typing import Any

from gclint.verify.worker import ending
from gclint.verify.worker.child import adopt_orphans, keep_private
from gclint.verify.worker.estimates import EstimateRequest, MemoryEstimate
from gclint.verify.worker.isolation import isolate
from gclint.verify.worker.models import CannotWork, Models
from gclint.verify.worker.protocol import ClassResult, Message, Request, Source, Unusable, decode, encode
from gclint.verify.worker.server import serve
from gclint.verify.worker.watch import Watch

ENVIRONMENT_VARIABLE = "GCLINT_TEST_TRANSFORMERS"
"""Its value is the version of transformers that the program says it has."""
ISOLATED = "GCLINT_TEST_ISOLATED"
"""Whether the program isolates itself, as the real worker does."""
PROCESSES = "GCLINT_TEST_PROCESSES"
"""The most processes of a class, if it is not the real limit."""


class StandIn(Models):
    """A program whose models are classes with a method ``run``."""

    def __init__(self, devices: Sequence[str] = ("cpu",), problem: str | None = None) -> None:
        self._devices = devices
        self._problem = problem

    def load(self) -> tuple[str, str]:
        if self._problem:
            raise CannotWork(self._problem)
        return "2.13.0", os.environ.get(ENVIRONMENT_VARIABLE, "5.23.0")

    def devices(self, wanted: str) -> list[tuple[str, str]]:
        if wanted == "nothing":
            raise CannotWork("there is no device 'nothing'")
        return [(device, "cpu" if device == "cpu" else f"a GPU called {device}") for device in self._devices]

    def make_reproducible(self, devices: Sequence[str]) -> tuple[str, ...]:
        return ()

    def classes(self, module: ModuleType) -> Sequence[Any]:
        return [value for value in vars(module).values() if hasattr(value, "run")]

    def examine(self, source: Source, model_class: Any, device: str, watch: Watch) -> ClassResult:
        known = ClassResult(source.path, model_class.__name__, "passed", notes=(device,))
        result: ClassResult = model_class.run(watch, known) or known
        return result

    def estimate(
        self, source: Source, classes: Sequence[Any], question: EstimateRequest, device: str
    ) -> Iterator[MemoryEstimate | Unusable]:
        by_name = {each.__name__: each for each in classes}
        if question.model_class not in by_name:
            yield Unusable(f"there is no model class {question.model_class!r}", source.path)
            return
        known = MemoryEstimate(source.path, question.model_class, batch=question.batch)
        yield replace(known, missing=("plain", "options"))
        by_name[question.model_class].run(None, None)
        yield known


def main() -> None:
    """Serve one request."""
    request = decode(sys.stdin.readline())
    assert isinstance(request, Request)
    isolation = isolate(request.gigabytes) if ISOLATED in os.environ else ()
    adopt_orphans()
    answers = os.dup(1)
    keep_private(answers)

    def send(message: Message) -> None:
        os.write(answers, f"{encode(message)}\n".encode())

    ending.PROCESSES = int(os.environ.get(PROCESSES, ending.PROCESSES))
    serve(request, send, StandIn(), isolation)


if __name__ == "__main__":
    main()
