"""The executors, which start workers and receive their messages: locally, or on the nodes of a cluster."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Generator, Mapping
from pathlib import Path

from gclint.programs import interpreter, own_program
from gclint.verify import process
from gclint.verify.home import independent
from gclint.verify.process import converse
from gclint.verify.worker.protocol import Message, Request, Unusable, encode

CONNECTION = "the connection to the Ray cluster"
_PROGRAM = "gclint.verify.cluster.__main__"


def work_on_cluster(python: Path, request: Request) -> Generator[Message]:
    """Let ``python`` do a request on the nodes of a cluster, and yield its messages.

    Ray decides which cluster to use: that of ``RAY_ADDRESS``, or the one that this machine is part of, or
    else one of this machine alone.
    """
    try:
        line = json.dumps({"python": str(interpreter(python)), "request": encode(request)})
    except OSError as error:
        yield Unusable(f"{python} cannot be started: {error.strerror}")
        return
    yield from converse(own_program(_PROGRAM), line, independent(os.environ), CONNECTION)


Executor = Callable[[Path, Request], Generator[Message]]
"""Lets an interpreter do a request, as :func:`gclint.verify.process.work` does."""

EXECUTORS: Mapping[str, Executor] = {"local": process.work, "ray": work_on_cluster}
"""The executors by name."""
