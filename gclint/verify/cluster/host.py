"""The part of the executor in gclint's own process, which never imports Ray."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Generator
from pathlib import Path

from gclint.verify.process import converse
from gclint.verify.worker.protocol import Message, Request, encode

CONNECTION = "the connection to the Ray cluster"
_PROGRAM = "gclint.verify.cluster"


def work(python: Path, request: Request) -> Generator[Message]:
    """Let ``python`` do a request on the nodes of a cluster, and yield its messages.

    Ray decides which cluster to use: that of ``RAY_ADDRESS``, or the one that this machine is part of, or
    else one of this machine alone.
    """
    # Not resolved, since a virtual environment's interpreter is a link to another.
    line = json.dumps({"python": os.path.abspath(python), "request": encode(request)})  # noqa: PTH100
    yield from converse([sys.executable, "-m", _PROGRAM], line, os.environ, CONNECTION)
