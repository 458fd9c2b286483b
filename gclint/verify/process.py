"""Runs a worker, here or on the nodes of a cluster, and ends it with everything that it has started."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import tempfile
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import IO

from gclint.programs import interpreter, own_program
from gclint.verify import worker
from gclint.verify.home import harmless, independent, temporary_home
from gclint.verify.worker import processes
from gclint.verify.worker.protocol import (
    ClassResult,
    Discovered,
    Finished,
    Message,
    Request,
    Unusable,
    decode,
    encode,
)

_PROGRAM = Path(worker.__file__).absolute().with_name("__main__.py")
_SKIPPED_LINES = 100
"""How many lines an interpreter may print before the worker answers."""
_LONGEST = 1 << 28
"""The most bytes of a line."""
CONNECTION = "the connection to the Ray cluster"
_CLUSTER_PROGRAM = "gclint.verify.cluster.__main__"


def work(python: Path, request: Request) -> Generator[Message]:
    """Let ``python`` do a request, and yield its messages.

    The last one is ``Finished``, or ``Unusable`` without a source. Everything that was started is killed
    when the generator is closed, and does not receive the terminal's signals to this process.
    """
    with temporary_home() as home:
        # Models may depend on the order of sets, which this fixes.
        environment = {**harmless(independent(os.environ)), "PYTHONHASHSEED": "0"}
        line = encode(replace(request, home=str(home)))
        try:
            command = [str(interpreter(python)), str(_PROGRAM)]
        except OSError as error:
            yield Unusable(f"{python} cannot be started: {error.strerror}")
            return
        with contextlib.closing(converse(command, line, environment, f"the worker in {python}")) as messages:
            yield from _checked(messages, request)


def _checked(messages: Iterable[Message], request: Request) -> Iterator[Message]:
    """Yield messages until one cannot be true: code under test may find the way into the worker's output.

    Each source that was asked for is announced once, and each announced class has one result. A forged
    one is followed by the real one, which ends all.
    """
    forged = Unusable(
        "the worker's answers cannot be believed: the code that it runs has written some of them"
    )
    is_run = request.question is None
    silent = {each.path for each in request.sources if is_run}
    left: dict[str, list[str]] = {}
    for message in messages:
        source = getattr(message, "source", "") if is_run else ""
        is_believed = not source or source in left or source in silent
        if isinstance(message, Discovered):
            is_believed = source in silent
            left[source] = [] if request.is_listing else list(message.classes)
        elif isinstance(message, Unusable) and source:
            left[source] = []
        elif isinstance(message, ClassResult):
            is_believed = message.name in left.get(message.source, ())
            if is_believed:
                left[source].remove(message.name)
        elif isinstance(message, Finished):
            is_believed = not silent and not any(left.values())
        if not is_believed:
            yield forged
            return
        silent -= left.keys()
        yield message


def converse(
    command: Sequence[str], line: str, environment: Mapping[str, str], name: str
) -> Generator[Message]:
    """Start a program in an empty folder, send it one line, and yield its messages, as :func:`work` does.

    The working directory may be a repository with modules of any name, which other programs, or those that
    they start, would import. Messages call the program by its ``name``.
    """
    with tempfile.TemporaryFile() as errors, tempfile.TemporaryDirectory() as empty:
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=environment,
                cwd=empty,
                start_new_session=True,
            )
        except OSError as error:
            yield Unusable(f"{command[0]} cannot be started: {error.strerror or error}")
            return
        try:
            assert process.stdin
            assert process.stdout
            message: Message | None = None
            for message in _converse(process.stdin, process.stdout, line):
                yield message
                if isinstance(message, Finished) or (isinstance(message, Unusable) and not message.source):
                    return
            words = _reason_of_end(process.wait(), errors, has_answered=message is not None)
            yield Unusable(f"{name} ended: {words}")
        finally:
            _kill(process)


def _converse(requests: IO[bytes], answers: IO[bytes], line: str) -> Iterator[Message]:
    """Send the request, and yield the answers.

    Output of the interpreter at its start is skipped; later, only the worker answers.
    """
    try:
        requests.write(line.encode() + b"\n")
        requests.flush()
    except BrokenPipeError:  # It has ended; the reason may still be in the pipe.
        return
    left_to_skip = _SKIPPED_LINES
    for answer in iter(partial(answers.readline, _LONGEST), b""):
        try:
            message = decode(answer.decode(errors="replace"))
            if isinstance(message, Request):
                raise ValueError(f"not an answer: {answer[:80]!r}")
        except ValueError as error:
            left_to_skip -= 1
            if left_to_skip < 0:
                yield Unusable(f"the worker's answer cannot be understood ({error})")
                return
            continue
        left_to_skip = 0
        yield message


def _reason_of_end(status: int, errors: IO[bytes], *, has_answered: bool) -> str:
    errors.seek(0)
    lines = errors.read().decode(errors="replace").split("\n")
    printed = [line for line in lines if line.strip()]
    if printed:
        # An old interpreter rejects the program itself.
        is_old = not has_answered and printed[-1].startswith("SyntaxError")
        return f"{printed[-1]}{' (it needs Python 3.10 or later)' if is_old else ''}"
    if status < 0:
        known = -status in list(signal.Signals)
        return f"it was killed ({signal.Signals(-status).name if known else f'signal {-status}'})"
    hint = "" if has_answered else ", and it has not answered: is it a Python interpreter?"
    return f"its exit status is {status}{hint}"


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill the worker and everything that it has started, which is in its session if it cannot be seen."""
    if processes.are_visible():
        processes.end_all([process.pid])
    if hasattr(os, "killpg"):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
    process.wait()
    for stream in (process.stdin, process.stdout):
        if stream:
            # Input that a worker has not read because it ended early is still in the buffer.
            with contextlib.suppress(BrokenPipeError):
                stream.close()


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
    yield from converse(own_program(_CLUSTER_PROGRAM), line, independent(os.environ), CONNECTION)


Executor = Callable[[Path, Request], Generator[Message]]
"""Lets an interpreter do a request, as :func:`gclint.verify.process.work` does."""

EXECUTORS: Mapping[str, Executor] = {"local": work, "ray": work_on_cluster}
"""The executors by name."""
