"""The work of a task on its node: it checks that the files are the same there, and starts a worker."""

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
    """The result of a task."""

    node: str
    """The name of its machine."""
    lines: tuple[str, ...]
    """The messages of the worker, except for those that only announce a step."""


def answer(python: str, line: str, digests: Mapping[str, str], version: str) -> Answer:
    """Do a request, on the machine on which this is called.

    Args:
        python: the interpreter.
        line: the request.
        digests: the digests of the sources, by path.
        version: the version of gclint that sent the request.
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
    """Return why the results would be those of other files, or of another gclint."""
    if gclint.__version__ != version:
        return f"gclint is {gclint.__version__} there, and {version} here"
    for source in request.sources:
        try:
            found = digest(source, request.overlay)
        except OSError as error:
            return f"{source.path}: {error.strerror}; the files must be at the same path on every node"
        if found != digests[source.path]:
            return f"{source.path} (or a configuration next to it) differs from the file here"
    return None
