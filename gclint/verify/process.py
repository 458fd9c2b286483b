"""A worker: started in the target's interpreter, listened to, and ended with everything that it started."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import IO

from gclint.verify import worker
from gclint.verify.worker.protocol import Done, Message, Request, Unusable, decode, encode

_PROGRAM = Path(worker.__file__).with_name("__main__.py")


def work(python: Path, request: Request) -> Generator[Message]:
    """Let ``python`` do what is requested, and yield its messages.

    The last one is ``Done``, or ``Unusable`` without a source. Everything that was started is killed
    when the generator is closed, and not interrupted by what the terminal sends to this process.
    """
    with tempfile.TemporaryFile() as errors:
        try:
            process = subprocess.Popen(
                [python, _PROGRAM],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                # The order of sets is the same in each run, and with it what models compute.
                env={**os.environ, "PYTHONHASHSEED": "0"},
                start_new_session=True,
            )
        except OSError as error:
            yield Unusable(f"{python} cannot be started: {error.strerror or error}")
            return
        try:
            assert process.stdin
            assert process.stdout
            for message in _converse(process.stdin, process.stdout, request):
                yield message
                if isinstance(message, Done) or (isinstance(message, Unusable) and not message.source):
                    return
            yield Unusable(f"the worker in {python} has ended: {_last_words(process.wait(), errors)}")
        finally:
            _kill(process)


def _converse(requests: IO[bytes], answers: IO[bytes], request: Request) -> Iterator[Message]:
    """Send the request, and yield what is answered."""
    try:
        requests.write(encode(request).encode() + b"\n")
        requests.flush()
    except BrokenPipeError:  # It has ended, and has left its last words.
        return
    for line in answers:
        message = decode(line.decode())
        assert not isinstance(message, Request)
        yield message


def _last_words(status: int, errors: IO[bytes]) -> str:
    errors.seek(0)
    lines = errors.read().decode(errors="replace").split("\n")
    said = [line for line in lines if line.strip()]
    return said[-1] if said else f"its exit status is {status}"


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill the worker and all that it has started, which is in its session."""
    if hasattr(os, "killpg"):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
    process.wait()
    for stream in (process.stdin, process.stdout):
        if stream:
            # What a worker that ended early has not read is still in the buffer.
            with contextlib.suppress(BrokenPipeError):
                stream.close()
