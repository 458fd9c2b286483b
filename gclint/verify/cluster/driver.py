"""The driver of a cluster: it divides a request into tasks, one per class, and collects their results."""

from __future__ import annotations

import hashlib
import os
import socket
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

import gclint
from gclint.verify.process import CONNECTION, work
from gclint.verify.sources import digest
from gclint.verify.worker.protocol import (
    ClassResult,
    Discovered,
    Environment,
    Finished,
    Message,
    Progress,
    Request,
    Source,
    Unusable,
    decode,
    encode,
)

_ADDRESS = "RAY_ADDRESS"
_REFUSED_AFTER = 5.0
"""Seconds in which the address of a cluster must answer."""
_CONNECTED_AFTER = float(os.environ.get("GCLINT_RAY_TIMEOUT", "60"))
"""Seconds in which the cluster must be connected."""
_RETRIES = 3
"""How often a task is retried if its node was lost."""
_PENDING = 256
"""The most tasks that are submitted at once."""
_GPU_SHARE = 0.25
"""The share of a GPU for one class: tiny models need little of it."""
_CHECK_SECONDS = 10.0
"""Seconds between two checks whether there are nodes left."""


@dataclass(frozen=True)
class TaskResult:
    """The result of a task."""

    node: str
    """The name of its machine."""
    lines: tuple[str, ...]
    """The messages of the worker, except for those that only announce a step."""


def answer(python: str, line: str, digests: Mapping[str, str], version: str) -> TaskResult:
    """Do a request on this machine, if its files and its gclint are those of the sender."""
    node = socket.gethostname()
    request = decode(line)
    assert isinstance(request, Request)
    problem = _problem(request, digests, version)
    if problem:
        return TaskResult(node, (encode(Unusable(problem)),))
    messages = work(Path(python), request)
    return TaskResult(node, tuple(encode(each) for each in messages if not isinstance(each, Progress)))


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


class CannotReach(Exception):
    """There is no cluster to run on; the message says why, and what to do."""


@contextmanager
def connected(give_up: Callable[[str], NoReturn]) -> Iterator[Any]:
    """Connect to the cluster, and yield the library.

    If connecting does not finish, ``give_up`` is called in another thread, with the reason.

    Raises:
        CannotReach: there is no cluster to connect to.
    """
    try:
        import ray
    except ImportError as error:
        raise CannotReach(f"Ray is needed ({error}); install it with: pip install 'gclint[ray]'") from None
    address = os.environ.get(_ADDRESS)
    _check_address(address)
    where = f"at {address}" if address else "on this machine"
    refusal = f"there is no Ray cluster {where}"
    timer = threading.Timer(_CONNECTED_AFTER, give_up, [f"{refusal}: no answer in {_CONNECTED_AFTER:g} s"])
    timer.start()
    try:
        ray.init(include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    except Exception as error:  # Ray raises all kinds of exceptions.
        raise CannotReach(f"{refusal}: {_first_line(error)}") from None
    finally:
        timer.cancel()
    try:
        yield ray
    finally:
        ray.shutdown()


def _check_address(address: str | None) -> None:
    """Raise CannotReach if an address does not answer, since Ray itself would try for minutes."""
    host, _, port = (address or "").rpartition("://")[2].rpartition(":")
    if not (host and port.isdigit()):
        return
    try:
        socket.create_connection((host, int(port)), _REFUSED_AFTER).close()
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        raise CannotReach(
            f"no Ray cluster answers at {address}, the value of {_ADDRESS}: {reason}; start a cluster with "
            f"`ray start --head`, or unset {_ADDRESS}"
        ) from None


@dataclass(frozen=True)
class _ClusterTask:
    request: Request
    name: str
    """Its name in the cluster, which depends only on what is run."""


def messages(ray: Any, python: Path, request: Request) -> Iterator[Message]:
    """Yield the messages of all workers as if of one; the last is ``Finished``, or what went wrong."""
    try:
        yield from _ClusterRun(ray, python, request).messages()
    except CannotReach as error:
        yield Unusable(str(error))
    except ray.exceptions.RayError as error:
        yield Unusable(f"{CONNECTION} has ended: {_first_line(error)}")


class _ClusterRun:
    """A request that a cluster is working on."""

    def __init__(self, ray: Any, python: Path, request: Request) -> None:
        self._ray = ray
        self._python = python
        self._environment: Environment | None = None
        self._digests = {each.path: digest(each, request.overlay) for each in request.sources}
        resources = ray.cluster_resources()
        cores = int(resources.get("CPU", 0))
        if not cores:
            raise CannotReach("the Ray cluster has no CPU to run on")
        has_gpu = request.device != "cpu" and resources.get("GPU", 0) > 0
        if request.device not in ("auto", "cpu") and not has_gpu:
            raise CannotReach("the Ray cluster has no GPU")
        # Every node uses the same kind of device; Ray decides which of its GPUs to use.
        self._request = replace(request, device="cuda" if has_gpu else "cpu", jobs=1)
        self._most = request.jobs or _PENDING
        options = {"num_cpus": 1, "num_gpus": _GPU_SHARE if has_gpu else 0, "max_retries": _RETRIES}
        self._task = ray.remote(**options)(answer)
        self._waiting = deque(self._listings(cores))
        self._running: dict[Any, _ClusterTask] = {}

    def _listings(self, cores: int) -> Iterator[_ClusterTask]:
        """Yield the tasks that list classes, about one for each core of the cluster."""
        parts: dict[int, list[Source]] = {}
        for path, source in sorted((each.path, each) for each in self._request.sources):
            parts.setdefault(int(self._digests[path], 16) % cores, []).append(source)
        for number, sources in sorted(parts.items()) or [(0, [])]:
            yield _ClusterTask(
                replace(self._request, sources=tuple(sources), is_listing=True), f"listing {number}"
            )

    def messages(self) -> Iterator[Message]:
        """Yield everything that happens."""
        while self._waiting or self._running:
            while self._waiting and len(self._running) < self._most:
                self._start(self._waiting.popleft())
            for reference in self._ended():
                work = self._running.pop(reference)
                for message in self._messages_of(work, reference):
                    yield message
                    if isinstance(message, Unusable) and message.source is None:
                        return
        yield Finished()

    def _start(self, work: _ClusterTask) -> None:
        task = self._task.options(name=work.name)
        digests = {each.path: self._digests[each.path] for each in work.request.sources}
        reference = task.remote(str(self._python), encode(work.request), digests, gclint.__version__)
        self._running[reference] = work

    def _ended(self) -> Sequence[Any]:
        """Return tasks that have ended, once there are some; raise CannotReach if the cluster is gone."""
        while True:
            ended, _ = self._ray.wait(list(self._running), timeout=_CHECK_SECONDS)
            if ended:
                return list(ended)
            if not self._ray.cluster_resources().get("CPU", 0):
                raise CannotReach("the Ray cluster has no node left to run on")

    def _messages_of(self, work: _ClusterTask, reference: Any) -> Iterator[Message]:
        try:
            found: TaskResult = self._ray.get(reference)
        except self._ray.exceptions.LocalRayletDiedError:  # This machine is no longer part of the cluster.
            raise
        except self._ray.exceptions.RayError as error:
            yield from _lost(work, error)
            return
        for message in map(decode, found.lines):
            if isinstance(message, Environment):
                yield from self._environment_of(message, found.node)
            elif isinstance(message, Unusable) and message.source is None:
                yield Unusable(f"on the node {found.node}: {message.message}")
            elif isinstance(message, Discovered):
                if work.request.is_listing:
                    yield message
                    self._waiting.extend(self._works(work.request, message))
            elif isinstance(message, ClassResult | Unusable):
                yield message

    def _environment_of(self, found: Environment, node: str) -> Iterator[Message]:
        """Yield the environment of the first task; those of all others must be the same."""
        if self._environment is None:
            self._environment = found
            yield found
        elif found != self._environment:
            yield Unusable(
                f"the nodes have different environments: {node} has {_described(found)}, and the first that "
                f"answered has {_described(self._environment)}"
            )

    def _works(self, request: Request, found: Discovered) -> Iterator[_ClusterTask]:
        """Yield a task for each class of a source."""
        (source,) = (each for each in request.sources if each.path == found.source)
        for name in found.classes:
            key = hashlib.sha256(f"{name} {self._digests[source.path]}".encode()).hexdigest()[:12]
            sources = (replace(source, only=(name,)),)
            yield _ClusterTask(replace(self._request, sources=sources), f"{name} {key}")


def _lost(work: _ClusterTask, error: Exception) -> Iterator[Message]:
    """Yield what is known about a task that the cluster did not finish."""
    what = f"the cluster did not complete it in {_RETRIES} more attempts: {_first_line(error)}"
    if work.request.is_listing:
        yield Unusable(f"the classes could not be listed: {what}")
        return
    (source,) = work.request.sources
    yield ClassResult(source.path, source.only[0], "not run", what, "killed")


def _described(environment: Environment) -> str:
    return (
        f"Python {environment.python}, torch {environment.torch}, transformers {environment.transformers} on "
        f"{environment.device}"
    )


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
