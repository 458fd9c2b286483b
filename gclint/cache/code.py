"""Facts about gclint's own code: once it is edited, cached results are no longer valid."""

from __future__ import annotations

import os
import sys
import time
from typing import Any

from gclint.cache.consulted import encoded
from gclint.facts import answer, is_settled, signature
from gclint.trace import Fact, Trace

_BEGAN = time.time_ns()


def consulted(trace: Trace) -> tuple[list[Any] | None, list[Any] | None]:
    """Return what the code that has been imported so far is, and what it has read, as the cache keeps both.

    Each is None if some of it has changed meanwhile.
    """
    code = _code()
    return None if code is None else encoded(code), encoded(trace)


def _code() -> Trace | None:
    trace = Trace()
    library = os.path.dirname(os.__file__)
    for module in list(sys.modules.values()):
        path = getattr(module, "__file__", None)
        if not isinstance(path, str) or (path.startswith(library) and "-packages" not in path):
            continue
        try:
            status = os.stat(path)
        except OSError:
            return None
        if max(status.st_mtime_ns, status.st_ctime_ns) >= _BEGAN:
            return None
        fact = Fact("search", path)
        trace.answers[fact] = answer(fact)
        if is_settled(status, _BEGAN):
            trace.signatures[path] = signature(status)
    for folder in getattr(sys.modules.get("gclint.rules"), "__path__", ()):
        fact = Fact("matching", str(folder), "*.py")
        trace.answers[fact] = answer(fact)
    return trace
