"""What a task does on its node: it sees whether the files are the same there, and starts a worker."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import gclint
from gclint.verify.process import work
from gclint.verify.sources import digest
from gclint.verify.worker.protocol import Progress, Request, Unusable, decode, encode


@dataclass(frozen=True)
class Answer:
    """What came of a task."""

    node: str
    """The name of its machine."""
    lines: tuple[str, ...]
    """The messages of the worker, but for those that only say what begins."""


def answer(python: str, line: str, digests: Mapping[str, str], version: str) -> Answer:
    """Do what is requested, on the machine that this is called on.

    Args:
        python: the interpreter.
        line: the request.
        digests: what the sources are, by their paths.
        version: that of gclint, where this was asked for.
    """
    node = socket.gethostname()
    request = decode(line)
    assert isinstance(request, Request)
    problem = _problem(request, digests, version)
    if problem:
        return Answer(node, (encode(Unusable(problem)),))
    messages = work(Path(python), request)
    return Answer(node, tuple(encode(each) for each in messages if not isinstance(each, Progress)))


def _problem(request: Request, digests: Mapping[str, str], version: str) -> str | None:
    """Return why the results would not be those of the files and the gclint that they are asked of."""
    if gclint.__version__ != version:
        return f"gclint is {gclint.__version__} there, and {version} here"
    for source in request.sources:
        try:
            found = digest(source, request.overlay)
        except OSError as error:
            return f"{source.path}: {error.strerror}; the files have to be at the same path on every node"
        if found != digests[source.path]:
            return f"{source.path} (or a configuration next to it) differs from the file here"
    return None
