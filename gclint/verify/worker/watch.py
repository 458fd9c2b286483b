"""Both ends of the messages about a class: what sends them, and what makes the result of them."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from gclint.verify.worker.cause import Cause
from gclint.verify.worker.child import used_seconds
from gclint.verify.worker.ending import FOREIGN, End
from gclint.verify.worker.practices import practice_titled
from gclint.verify.worker.protocol import (
    ClassResult,
    Failure,
    Mode,
    ObservedSite,
    Progress,
    SetUp,
    SourcePlace,
    decode,
    encode,
    message_or_none,
)


@dataclass(frozen=True)
class Watch:
    """Receives the progress of the examination of a class; by default, it ignores everything."""

    begin: Callable[[str, Mode, str], None] = lambda _scenario, _mode, _step: None
    """Called with a scenario, a mode and a step before everything that may hang or kill the process.

    A death in the mode ``plain`` makes a class not run, in others it is a failure. The step is words that
    follow "during", such as ``the backward pass``.
    """
    known: Callable[[ClassResult], None] = lambda _result: None
    """Called with the result so far, which is all that remains if the process dies."""


def reporting(source: str, name: str, send: Callable[[str], None]) -> Watch:
    """Return a watch that sends everything about a class to another process."""
    return Watch(
        lambda scenario, mode, step: send(
            encode(Progress(source, name, scenario, mode, step, used_seconds()))
        ),
        lambda result: send(encode(result)),
    )


class ClassRecord:
    """The messages of the process that examines a class, and their times."""

    def __init__(self, source: str, name: str) -> None:
        self.source = source
        self.name = name
        self.last: Progress | None = None
        self._known = ClassResult(source, name, "not run")
        self._started = time.monotonic()
        self._slowest: dict[str, float] = {}
        """The longest plain step so far, in seconds of CPU time, by scenario."""

    def accepts(self, line: str) -> bool:
        """Return whether a line is a message about this class, and not about another one or anything else."""
        message = message_or_none(line)
        if not isinstance(message, (ClassResult, Progress)):
            return False
        return (message.source, message.name) == (self.source, self.name)

    def take(self, line: str) -> Progress | None:
        """Record one line of the process; return it if it announces a step."""
        message = decode(line)
        if isinstance(message, ClassResult):
            self._known = message
            return None
        assert isinstance(message, Progress)
        if self.last and self.last.mode == "plain":
            scenario, seconds = self.last.scenario, message.seconds - self.last.seconds
            self._slowest[scenario] = max(self._slowest.get(scenario, 0.0), seconds)
        self.last = message
        return message

    def result(self, end: End) -> ClassResult:
        """Return what is known after the end of the process."""
        seconds = round(time.monotonic() - self._started, 3)
        if end.cause == "done":
            return replace(self._known, seconds=seconds)
        reason = f"there was {end.message}{self._where(end)}"
        if end.cause == "tampering":
            return ClassResult(self.source, self.name, "not run", reason, end.cause, seconds=seconds)
        practice = practice_titled(self.last.scenario) if self.last is not None else None
        if practice is not None:
            # The scenarios were run before; what is missing is this set-up, and those after it.
            missing = SetUp(practice.group, practice.name, practice.data, "not run", end.cause, reason)
            return replace(self._known, setups=(*self._known.setups, missing), seconds=seconds)
        failed = self._is_failure(end)
        failures = (*self._known.failures, self._failure(end, reason)) if failed else self._known.failures
        return replace(
            self._known,
            outcome="failed" if failures else "not run",
            reason=None if failures else reason,
            category=None if failures else category(end),
            failures=failures,
            is_cut_short=True,
            notes=self._known.notes if failed or not failures else (*self._known.notes, reason),
            seconds=seconds,
        )

    def _where(self, end: End) -> str:
        if self.last is None:
            return " before the first step"
        frame = end.place_in(self.source)
        line = f", on line {frame.line}" if frame else ""
        return f" during {self.last.step} ({_how(self.last)}){line}"

    def _is_failure(self, end: End) -> bool:
        """Return whether it is the model's checkpointing that ended it."""
        if self.last is None or self.last.mode == "plain" or end.cause in (*FOREIGN, "error"):
            return False
        if end.cause != "time limit":
            return True
        return end.is_hang(end.seconds - self.last.seconds, self._slowest.get(self.last.scenario))

    def _failure(self, end: End, reason: str) -> Failure:
        assert self.last is not None
        frame = end.place_in(self.source)
        places: tuple[SourcePlace, ...] = (replace(frame, path=self.source),) if frame else ()
        keywords = [site for site in self._known.sites if site.keyword_activations]
        cause, explanation = None, ""
        if (
            self.last.mode == "reentrant"
            and end.cause in ("time limit", "memory limit", "crash")
            and keywords
        ):
            # A layer's output that reaches a later one by keyword makes backward recurse without end.
            cause, places = Cause.KEYWORD_ACTIVATION, tuple(site.place for site in keywords)
            explanation = _explanation(keywords)
        return Failure(end.cause, self.last.mode, self.last.scenario, reason, (), places, cause, explanation)


def category(end: End) -> str:
    """Return the category of a class that was not run because of this end; an error is gclint's own."""
    return "verifier" if end.cause == "error" else end.cause


def _how(progress: Progress) -> str:
    how = "without checkpointing" if progress.mode == "plain" else f"{progress.mode} checkpointing"
    return f"{how}, {progress.scenario}"


def _explanation(sites: list[ObservedSite]) -> str:
    names = sorted({name for site in sites for name in site.keyword_activations})
    return f"Tensors that require grad are passed by keyword: {', '.join(names)}."
