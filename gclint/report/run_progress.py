"""The display of a run on a terminal: what is running, how far it is, and the time left."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

from gclint.code.paths import printable
from gclint.verify.run import ReceivedMessage
from gclint.verify.worker.protocol import ClassResult, Discovered, Unusable
from gclint.verify.worker.protocol import Progress as Begun


class RunProgress:
    """Shows the progress of a run while it receives its messages."""

    def __init__(self, console: Console) -> None:
        self._expected = self._finished = 0
        self._running: dict[str, Begun] = {}
        self._note = ""
        self._share: dict[str, float] = {}
        """The share of a source's work that one of its classes is."""
        self._bar = Progress(
            TextColumn("{task.fields[classes]} classes"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("files"),
            TimeRemainingColumn(),
            console=console,
        )
        self._task = self._bar.add_task("", total=0, classes=0)

    def expect(self, sources: int) -> None:
        """Increase the number of files that are to be run."""
        self._expected += sources
        self._bar.update(self._task, total=self._expected)

    def note(self, words: str) -> None:
        """Show what is done between runs."""
        self._note = words

    def take(self, received: ReceivedMessage) -> None:
        """Handle a message of the run."""
        message = received.message
        if isinstance(message, Discovered):
            self._share[message.source] = 1 / max(len(message.classes), 1)
            if not message.classes:
                self._bar.advance(self._task)
        elif isinstance(message, Begun):
            self._running[message.source] = message
        elif isinstance(message, ClassResult):
            self._running.pop(message.source, None)
            self._finished += 1
            self._bar.update(self._task, classes=self._finished)
            self._bar.advance(self._task, self._share[message.source])
        elif isinstance(message, Unusable) and message.source:
            self._bar.advance(self._task)

    def __rich__(self) -> RenderableType:
        running = (
            f"{each.name}: {each.step} ({each.mode}, {each.scenario})" for each in self._running.values()
        )
        lines = (*running, self._note) if self._note else running
        return Group(*(Text(printable(each), "dim", no_wrap=True) for each in lines), self._bar)


@contextmanager
def run_progress(stream: TextIO) -> Iterator[RunProgress]:
    """Show the progress of a run on ``stream``."""
    console = Console(file=stream)
    progress = RunProgress(console)
    with Live(progress, console=console, transient=True, refresh_per_second=4):
        yield progress
