"""The program that drives a cluster: it reads a request, and writes messages, as a worker does."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from gclint.verify.cluster.driver import CannotReach, connected, messages
from gclint.verify.worker.protocol import Message, Request, Unusable, decode, encode


def main() -> None:
    """Serve one request."""
    content = json.loads(sys.stdin.readline())
    request = decode(content["request"])
    assert isinstance(request, Request)
    # Ray writes to standard output.
    answers = os.dup(1)
    os.dup2(2, 1)
    for message in _messages(Path(content["python"]), request):
        data = f"{encode(message)}\n".encode()
        while data:
            data = data[os.write(answers, data) :]


def _messages(python: Path, request: Request) -> Iterator[Message]:
    try:
        with connected() as ray:
            yield from messages(ray, python, request)
    except CannotReach as error:
        yield Unusable(str(error))


if __name__ == "__main__":
    main()
