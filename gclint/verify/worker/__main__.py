"""The worker: reads a request from standard input, and writes messages to standard output.

It is run by its path, in an interpreter in which gclint need not be installed.
"""

from __future__ import annotations

import os
import sys
from types import ModuleType


def main() -> None:
    """Serve one request."""
    if sys.version_info < (3, 10):  # noqa: UP036 (not gclint's own interpreter)
        sys.exit("models can only be run with Python 3.10 or later")
    _become_package(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120 (before more is imported)
    from gclint.verify.worker.child import adopt_orphans, die_with_parent, keep_private
    from gclint.verify.worker.ending import THREADS
    from gclint.verify.worker.isolation import go_offline, isolate, use_home
    from gclint.verify.worker.memory_limits import limit_threads
    from gclint.verify.worker.models import Models
    from gclint.verify.worker.protocol import Message, Request, decode, write_message
    from gclint.verify.worker.server import serve

    die_with_parent()
    request = decode(sys.stdin.readline())
    assert isinstance(request, Request)
    limit_threads(THREADS)
    isolation = isolate(request.gigabytes)
    adopt_orphans()
    if request.home:
        use_home(request.home)
        isolation = ("an environment without secrets, and a temporary home", *isolation)
    answers = _take_output()
    keep_private(answers)

    def send(message: Message) -> None:
        write_message(answers, message)

    go_offline()
    serve(request, send, Models(request.known, request.practices), isolation)


def _become_package(folder: str) -> None:
    """Import ``folder`` as the worker's package, instead of as a folder of top-level modules."""
    if sys.path and sys.path[0] == folder:
        del sys.path[0]
    # The packages above are empty here, but are needed to import a module by its full name.
    for name, path in (("gclint", []), ("gclint.verify", []), ("gclint.verify.worker", [folder])):
        package = ModuleType(name)
        package.__path__ = path
        sys.modules[name] = package


def _take_output() -> int:
    """Return a copy of standard output, and redirect the standard streams to nowhere: models may use them."""
    answers = os.dup(1)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1):
        os.dup2(nowhere, stream)
    os.close(nowhere)
    return answers


if __name__ == "__main__":
    main()
