"""The program that drives a cluster: like a worker, it reads a request and writes messages."""

from __future__ import annotations

import json
import os
import sys
import threading
from pathlib import Path
from typing import NoReturn

from gclint.verify.cluster.driver import CannotReach, connected, messages
from gclint.verify.worker.protocol import Message, Request, Unusable, decode, write_message


def main() -> None:
    """Serve one request."""
    content = json.loads(sys.stdin.readline())
    threading.Thread(target=_end_with_parent, daemon=True).start()
    request = decode(content["request"])
    assert isinstance(request, Request)
    # Ray writes to standard output.
    answers = os.dup(1)
    os.dup2(2, 1)

    def send(message: Message) -> None:
        write_message(answers, message)

    def give_up(reason: str) -> NoReturn:
        send(Unusable(reason))
        os._exit(1)

    try:
        with connected(give_up) as ray:
            for message in messages(ray, Path(content["python"]), request):
                send(message)
    except CannotReach as error:
        send(Unusable(str(error)))


def _end_with_parent() -> None:
    """End this process when its parent ends, for whatever reason."""
    sys.stdin.read()
    os._exit(1)


if __name__ == "__main__":
    main()
