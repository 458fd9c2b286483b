"""Runs a script that shows a failure, in a fork that has imported nothing of the models yet."""

from __future__ import annotations

import sys
import traceback
import warnings
from collections.abc import Iterator
from contextlib import redirect_stdout
from io import StringIO

from gclint.verify.worker import ending
from gclint.verify.worker.child import Send, Task, run
from gclint.verify.worker.importing import lay_over
from gclint.verify.worker.protocol import Demonstration, Message, Request, Unusable, encode, message_or_none

_LONGEST = 20_000
"""The most characters of the output that are kept."""


def demonstrate(request: Request) -> Iterator[Message]:
    """Run the script of a request, with its overlay and its limits, and yield what came of it."""
    lay_over(request.overlay)
    script = request.script or ""

    def work(send: Send, _slot: int) -> None:
        send(encode(_run(script)))

    def accepts(line: str) -> bool:
        return isinstance(message_or_none(line), Demonstration)

    task = Task(work, request.seconds, request.gigabytes, ending.PROCESSES, accepts=accepts)
    for _, event in run([task], 1):
        if isinstance(event, str):
            found = message_or_none(event)
            assert isinstance(found, Demonstration)
            yield found
        elif event.cause != "done":
            yield Unusable(f"there was {event.message}")


def _run(script: str) -> Demonstration:
    """Run a script as the main program; an error in it has no status of its own, but the status -1."""
    printed = StringIO()
    status: object = 0
    with redirect_stdout(printed), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            exec(compile(script, "script.py", "exec"), {"__name__": "__main__"})
        except SystemExit as end:
            status = end.code
        except Exception as error:
            status = -1
            printed.write("".join(traceback.format_exception_only(error)))
    sys.stdout.flush()
    return Demonstration(status if isinstance(status, int) else -1, printed.getvalue()[:_LONGEST])
