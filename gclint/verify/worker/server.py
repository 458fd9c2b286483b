"""The process of the worker that imports torch and transformers once, and forks for everything else.

A source is imported in a process of its own, which forks once for each of its classes.
"""

from __future__ import annotations

import gc
import json
import os
import platform
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import redirect_stdout
from functools import partial
from io import StringIO
from types import ModuleType
from typing import Any

from gclint.verify.worker import ending
from gclint.verify.worker.child import Send, Task, adopt_orphans, run
from gclint.verify.worker.ending import End
from gclint.verify.worker.estimates import EstimateRequest, MemoryEstimate
from gclint.verify.worker.importing import extend_search_path, import_source, lay_over
from gclint.verify.worker.isolation import use_home
from gclint.verify.worker.memory_limits import limit_gpu_memory
from gclint.verify.worker.models import CannotWork, Models
from gclint.verify.worker.practices import practices_named
from gclint.verify.worker.protocol import (
    ClassResult,
    Demonstration,
    Discovered,
    Environment,
    Finished,
    Message,
    Mode,
    Progress,
    Request,
    Source,
    Unusable,
    decode,
    encode,
    message_or_none,
)
from gclint.verify.worker.watch import ClassRecord, category, reporting

# Seconds for which a source's process may be silent beyond the time limit of a class, and for each processor
# on which what the class has started may run until it is noticed.
_MARGIN, _MARGIN_OF_CORE = 30.0, 4.0
_LONGEST = 20_000
"""The most characters of a script's output that are kept."""


def serve(
    request: Request, send: Callable[[Message], None], program: Models, isolation: tuple[str, ...] = ()
) -> None:
    """Do a request, and send everything that happens."""
    if not hasattr(os, "fork"):
        send(Unusable("models can only be run on a system with os.fork, such as Linux or macOS"))
        return
    if request.script is not None:
        lay_over(request.overlay)
        script = partial(_run_script, request.script)
        for message in _asked(script, request.seconds, request.gigabytes, Demonstration):
            send(message if isinstance(message, Demonstration) else Unusable(f"there was {message}"))
        send(Finished())
        return
    extend_search_path(request.search_path)
    # Compilers would follow the marks.
    is_marked = not (request.practices or request.question or request.is_listing)
    marked = (*(each.path for each in request.sources), *request.also_marked) if is_marked else ()
    lay_over(request.overlay, request.watched, marked)
    try:
        torch, transformers = program.load()
        devices = _find_devices(program, request)
    except CannotWork as error:
        send(Unusable(str(error)))
        return
    numerics = program.make_reproducible([device for device, _ in devices])
    send(Environment(platform.python_version(), torch, transformers, devices[0][1], isolation, numerics))
    _freeze()
    server = _Server(request, program, [device for device, _ in devices])
    for message in server.messages() if request.question is None else server.answer(request.question):
        send(message)
    send(Finished())


def _find_devices(program: Models, request: Request) -> list[tuple[str, str]]:
    """Find the devices in a process of its own, since a process that has used CUDA cannot be forked."""

    def ask(send: Send, _slot: int) -> None:
        try:
            send(json.dumps(program.devices(request.device)))
        except CannotWork as error:
            send(json.dumps(str(error)))

    answer: Any = "nothing"
    for _, event in run([Task(ask, request.seconds)], 1):
        if isinstance(event, str):
            answer = json.loads(event)
        elif event.cause != "done":
            raise CannotWork(f"looking for the device {request.device!r}, there was {event.message}")
    if isinstance(answer, str):
        raise CannotWork(answer)
    return [(device, name) for device, name in answer]


def _freeze() -> None:
    """Keep all existing objects shared with forked processes; garbage collection would copy them."""
    gc.collect()
    gc.freeze()


class _SourceRun:
    """The results of a source so far."""

    def __init__(self, source: Source, *, is_listing: bool) -> None:
        self.source = source
        self._is_listing = is_listing
        self.is_imported = False
        self._missing: list[str] = []

    def accepts(self, line: str) -> bool:
        """Return whether a line is a message about this source that is due."""
        message = message_or_none(line)
        if isinstance(message, Discovered):
            return message.source == self.source.path and not self.is_imported
        if isinstance(message, (ClassResult, Progress)):
            return message.source == self.source.path and message.name in self._missing
        return False

    def take(self, message: Any) -> None:
        """Record a message about the source."""
        if isinstance(message, Discovered):
            self.is_imported = True
            self._missing = [] if self._is_listing else list(message.classes)
        elif isinstance(message, ClassResult):
            self._missing.remove(message.name)

    def after(self, end: End) -> Iterator[Message]:
        """Yield the remaining messages when its process has ended."""
        if not self.is_imported:
            what = end.message if end.cause == "error" else f"there was {end.message}"
            frame = end.place_in(self.source.path)
            if frame is not None and frame != end.frames[0]:
                what = f"{what}, from line {frame.line}"
            yield Unusable(f"it cannot be imported: {what}", self.source.path)
        elif end.cause == "tampering":
            yield Unusable(f"its results cannot be believed: there was {end.message}", self.source.path)
        for name in self._missing:
            reason = f"there was {end.message} in the process that runs the classes of this file"
            yield ClassResult(self.source.path, name, "not run", reason, category(end))


class _Server:
    def __init__(self, request: Request, program: Models, devices: Sequence[str]) -> None:
        self._request = request
        self._program = program
        self._devices = devices
        is_gpu = devices[0] != "cpu"
        self._jobs = request.jobs or (len(devices) if is_gpu else _cores())
        # A GPU's driver reserves memory that the limit would count.
        self._gigabytes = None if is_gpu else request.gigabytes
        self._limit = request.seconds * (1 + len(practices_named(request.practices)))
        """The time limit of a class, in seconds: each requested practice adds as much as the scenarios."""
        if is_gpu and request.gpu_gigabytes is not None:
            limit_gpu_memory(request.gpu_gigabytes)

    def messages(self) -> Iterator[Message]:
        """Run all classes of all sources, and yield what happens."""
        limit = self._limit + _MARGIN + _MARGIN_OF_CORE * _cores()
        runs: dict[Task, _SourceRun] = {}
        for source in self._request.sources:
            known = _SourceRun(source, is_listing=self._request.is_listing)
            function = partial(self._run_source, source)
            task = Task(function, limit, self._gigabytes, ending.PROCESSES, _is_outcome, known.accepts)
            runs[task] = known
        for task, event in run(runs, self._jobs):
            if isinstance(event, End):
                yield from runs[task].after(event)
            else:
                message: Any = decode(event)
                runs[task].take(message)
                yield message

    def answer(self, question: EstimateRequest) -> Iterator[Message]:
        """Estimate the memory of a class of the only source, more of it each time."""
        source = self._request.sources[0]

        def estimated() -> Iterator[Message]:
            classes = self._program.classes(self._imported(source))
            yield from self._program.estimate(source, classes, question, self._devices[0])

        kinds = (MemoryEstimate, Unusable)
        for message in _asked(estimated, self._request.seconds, self._gigabytes, *kinds, path=source.path):
            is_end = isinstance(message, str)
            yield Unusable(f"there was {message}", source.path) if is_end else message

    def _imported(self, source: Source) -> ModuleType:
        """Import a source; called in a fork."""
        if self._request.home:
            # A folder of its own, since the code may leave anything there, or remove it.
            use_home(os.path.join(self._request.home, str(os.getpid())))  # noqa: PTH118
        return import_source(source)

    def _run_source(self, source: Source, send: Send, slot: int) -> None:
        """Import a source and run its classes one after the other; called in a fork."""
        adopt_orphans()
        device = self._devices[slot % len(self._devices)]
        module = self._imported(source)
        classes = [
            each for each in self._program.classes(module) if not source.only or each.__name__ in source.only
        ]
        send(encode(Discovered(source.path, tuple(each.__name__ for each in classes))))
        if self._request.is_listing:
            return
        _freeze()
        records: dict[Task, ClassRecord] = {}

        def tasks() -> Iterator[Task]:
            for model_class in classes:
                function = partial(self._run_class, source, model_class, device)
                record = ClassRecord(source.path, model_class.__name__)
                task = Task(function, self._limit, accepts=record.accepts)
                records[task] = record
                yield task

        shown: tuple[str, str, Mode] | None = None
        for task, event in run(tasks(), 1):
            if isinstance(event, End):
                send(encode(records[task].result(event)))
                continue
            begun = records[task].take(event)
            # Steps are for the records; the display of the whole run shows the mode.
            if begun and (begun.name, begun.scenario, begun.mode) != shown:
                shown = (begun.name, begun.scenario, begun.mode)
                send(encode(begun))

    def _run_class(self, source: Source, model_class: Any, device: str, send: Send, _slot: int) -> None:
        """Run one class; called in a fork of the fork."""
        watch = reporting(source.path, model_class.__name__, send)
        watch.known(self._program.examine(source, model_class, device, watch))


def _asked(
    make: Callable[[], Iterable[Message]],
    seconds: float,
    gigabytes: float | None,
    *kinds: type,
    path: str | None = None,
) -> Iterator[Any]:
    """Yield the messages of these kinds that a function makes in a fork, or how that ended, in words.

    A message about a source is about the one at ``path``.
    """

    def accepts(line: str) -> bool:
        message = message_or_none(line)
        return isinstance(message, kinds) and getattr(message, "source", None) == path

    def answer(send: Send, _slot: int) -> None:
        for message in make():
            send(encode(message))

    task = Task(answer, seconds, gigabytes, ending.PROCESSES, accepts=accepts)
    for _, event in run([task], 1):
        if isinstance(event, str):
            yield decode(event)
        elif event.cause != "done":
            yield event.message


def _run_script(script: str) -> Iterator[Demonstration]:
    """Yield the outcome of a script as the main program; an error has no status of its own, but -1."""
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
    yield Demonstration(status if isinstance(status, int) else -1, printed.getvalue()[:_LONGEST])


def _is_outcome(line: str) -> bool:
    """Return whether a line ends a step of bounded length: progress alone may go on forever."""
    return isinstance(message_or_none(line), (Discovered, ClassResult))


def _cores() -> int:
    """Return how many processor cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
