"""The display of a run on a terminal: a table of classes, what is running, and the time left."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TextIO

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from gclint.code.paths import printable, shown
from gclint.verify.run import ReceivedMessage
from gclint.verify.worker.modes import CHECKPOINTED
from gclint.verify.worker.protocol import ClassResult, Discovered, Mode, Unusable
from gclint.verify.worker.protocol import Progress as Begun

_STYLES = {"passed": "green", "failed": "bold red", "not run": "yellow"}
# Lines of the screen that are not rows of finished classes: header, running classes, bar and spacing.
_OTHER_LINES = 10
_MANY = 60
_NARROW = 120


class LiveTable:
    """Shows the progress of a run while it receives its messages."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._expected = 0
        self._finished: list[ClassResult] = []
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
            self._finished.append(message)
            self._bar.update(self._task, classes=len(self._finished))
            self._bar.advance(self._task, self._share[message.source])
        elif isinstance(message, Unusable) and message.source:
            self._bar.advance(self._task)

    def __rich__(self) -> RenderableType:
        height = max(self._console.height - _OTHER_LINES, 3)
        running = [
            Text(printable(f"{each.name}: {each.step} ({each.mode}, {each.scenario})"), "dim", no_wrap=True)
            for each in self._running.values()
        ]
        note = [Text(self._note, "dim", no_wrap=True)] if self._note else []
        return Group(results_table(self._finished[-height:], self._console.width), *running, *note, self._bar)


@contextmanager
def live_table(stream: TextIO) -> Iterator[LiveTable]:
    """Show the progress of a run on ``stream``."""
    console = Console(file=stream)
    table = LiveTable(console)
    with Live(table, console=console, transient=True, refresh_per_second=4):
        yield table


def show_results(stream: TextIO, results: Iterable[ClassResult]) -> None:
    """Print results as a table; if there are many, only those that did not pass."""
    rows = list(results)
    if len(rows) > _MANY:
        rows = [result for result in rows if result.outcome != "passed"]
    console = Console(file=stream)
    console.print(results_table(rows, console.width))


def results_table(results: Iterable[ClassResult], width: int) -> Table:
    """Return a table with a row for each class; a narrow terminal gets fewer columns."""
    is_narrow = width < _NARROW
    table = Table(box=None, header_style="bold", pad_edge=False)
    if not is_narrow:
        table.add_column("file", overflow="ellipsis", no_wrap=True, max_width=36)
    table.add_column("class", overflow="ellipsis", no_wrap=True, min_width=20)
    for name in ("outcome", *CHECKPOINTED):
        if name != "outcome" or not is_narrow:
            table.add_column(name, no_wrap=True)
    for name in ("blocks", "saved for backward", "time"):
        table.add_column(name, no_wrap=True, justify="right")
    for result in results:
        outcome = Text(result.outcome, _STYLES[result.outcome])
        ends = [_end(result, mode) for mode in CHECKPOINTED]
        # Text, since a table takes brackets in a plain string for markup.
        more = [] if is_narrow else [Text(shown(result.source).rpartition("/")[2])]
        of_class = Text(printable(result.name))
        table.add_row(*more, of_class, *([] if is_narrow else [outcome]), *ends, *_measures(result))
    return table


def _end(result: ClassResult, mode: Mode) -> Text:
    if result.outcome == "not run":
        return Text("not run", _STYLES["not run"])
    failures = sum(failure.mode == mode for failure in result.failures)
    return Text(f"{failures} failed", "red") if failures else Text("ok", "green")


def _measures(result: ClassResult) -> Iterator[str]:
    yield f"{result.recomputed}/{result.blocks}" if result.blocks else "-"
    after = max((result.saved[mode] for mode in CHECKPOINTED if mode in result.saved), default=None)
    before = result.saved.get("plain")
    yield "-" if before is None or after is None else f"{size(before)} > {size(after)}"
    yield f"{result.seconds:.1f} s"


def size(number: float) -> str:
    """Return a number of bytes with its unit."""
    for unit in ("B", "KiB", "MiB"):
        if number < 1024:
            return f"{number:.3g} {unit}"
        number /= 1024
    return f"{number:.3g} GiB"
