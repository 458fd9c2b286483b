"""Finding out in a fork how a class can be run.

An attempt counts, caches and draws as a run does, and goes backward: nothing of that may be left in the
process that all runs start from.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from gclint.verify.worker import child
from gclint.verify.worker.examination.forked import Fork, in_fork
from gclint.verify.worker.specimen import NotSynthesisable, Specimen

_SECONDS = 120.0
"""The time limit where the class has none."""


def rehearsed(specimens: Callable[[Any], Iterable[Specimen]], model_class: Any) -> Iterator[Specimen]:
    """Yield what ``specimens`` makes of a class, all of which is made in a fork.

    Raises:
        NotSynthesisable: what it raised; or the attempts killed the process.
    """

    def live(fork: Fork) -> None:
        known, found, error = frozenset(sys.modules), [], None
        waiting = iter(specimens(model_class))
        while error is None:
            try:
                found.append(next(waiting))
            except StopIteration:
                break
            except NotSynthesisable as reason:
                error = reason
            # The most that there is, should the next one kill this process.
            fork.keep((found, error, [name for name in sys.modules if name not in known]))

    kept, end = in_fork(live, lambda line: None, child.seconds() or _SECONDS)
    if end.cause == "error":
        raise RuntimeError(end.message)
    found, error, imported = kept or ([], None, [])
    for name in imported:
        # Else every run would import it.
        with contextlib.suppress(Exception):
            importlib.import_module(name)
    yield from found
    if end.cause != "done":
        raise NotSynthesisable(end.cause, f"there was {end.message} in an attempt to run it")
    if error is not None:
        raise error
