"""Finds out in a fork how a class can be run.

An attempt changes counters, caches and random states as a run does, and runs a backward pass: none of that
may remain in the process from which all runs start.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from gclint.verify.worker import child
from gclint.verify.worker.examination.forked import Fork, in_fork
from gclint.verify.worker.tiny_model import NotSynthesisable, TinyModel

_SECONDS = 120.0
"""The time limit of a class that has none."""


def rehearsed(tiny_models: Callable[[Any], Iterable[TinyModel]], model_class: Any) -> Iterator[TinyModel]:
    """Yield the tiny models of a class, which are made in a fork.

    Raises:
        NotSynthesisable: no tiny model was found, or the attempts killed the process.
    """

    def work(fork: Fork) -> None:
        known, found, error = frozenset(sys.modules), [], None
        waiting = iter(tiny_models(model_class))
        while error is None:
            try:
                found.append(next(waiting))
            except StopIteration:
                break
            except NotSynthesisable as reason:
                error = reason
            # This is all that remains if the next one kills this process.
            fork.keep((found, error, [name for name in sys.modules if name not in known]))

    kept, end = in_fork(work, lambda line: None, child.seconds() or _SECONDS)
    if end.cause == "error":
        raise RuntimeError(end.message)
    found, error, imported = kept or ([], None, [])
    for name in imported:
        # Otherwise every run would import it.
        with contextlib.suppress(Exception):
            importlib.import_module(name)
    yield from found
    if end.cause != "done":
        raise NotSynthesisable(end.cause, f"there was {end.message} in an attempt to run it")
    if error is not None:
        raise error
