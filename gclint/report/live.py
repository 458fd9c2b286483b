"""What a terminal shows of a run while it goes on: a table of classes, what is running, and the time left."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TextIO

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from gclint.report.verification import shown
from gclint.verify.run import Heard
from gclint.verify.worker.protocol import (
    ClassResult,
    Discovered,
    Mode,
    Unusable,
)
from gclint.verify.worker.protocol import Progress as Begun

_STYLES = {"passed": "green", "failed": "bold red", "not run": "yellow"}
_MODES: tuple[Mode, ...] = ("non-reentrant", "reentrant")
# Lines of the screen that are not rows of finished classes: header, what is running, the bar, and some air.
_OTHER_LINES = 10


class LiveTable:
    """Takes in what happens in a run, and shows it."""

    def __init__(self, console: Console, sources: int) -> None:
        self._console = console
        self._finished: list[ClassResult] = []
        self._running: dict[str, Begun] = {}
        self._left: dict[str, int] = {}
        self._bar = Progress(
            TextColumn("{task.fields[classes]} classes"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("files"),
            TimeRemainingColumn(),
            console=console,
        )
        self._task = self._bar.add_task("", total=sources, classes=0)

    def take(self, heard: Heard) -> None:
        """Take in a message."""
        message = heard.message
        if isinstance(message, Discovered):
            self._left[message.source] = len(message.classes)
            self._advance(message.source)
        elif isinstance(message, Begun):
            self._running[message.source] = message
        elif isinstance(message, ClassResult):
            self._running.pop(message.source, None)
            self._finished.append(message)
            self._bar.update(self._task, classes=len(self._finished))
            self._left[message.source] -= 1
            self._advance(message.source)
        elif isinstance(message, Unusable) and message.source:
            self._left[message.source] = 0
            self._advance(message.source)

    def _advance(self, source: str) -> None:
        if not self._left[source]:
            self._bar.advance(self._task)

    def __rich__(self) -> RenderableType:
        height = max(self._console.height - _OTHER_LINES, 3)
        running = [
            Text(f"{each.name}: {each.step} ({each.mode}, {each.scenario})", "dim", no_wrap=True)
            for each in self._running.values()
        ]
        return Group(results_table(self._finished[-height:]), *running, self._bar)


@contextmanager
def live_table(stream: TextIO, sources: int) -> Iterator[LiveTable]:
    """Show a run over so many sources on ``stream`` while it goes on."""
    console = Console(file=stream)
    table = LiveTable(console, sources)
    with Live(table, console=console, transient=True, refresh_per_second=4):
        yield table


def show_results(stream: TextIO, results: Iterable[ClassResult]) -> None:
    """Print results as a table."""
    Console(file=stream).print(results_table(results))


def results_table(results: Iterable[ClassResult]) -> Table:
    """Return a table with a row for each class."""
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("file", overflow="ellipsis", no_wrap=True, max_width=36)
    table.add_column("class", overflow="ellipsis", no_wrap=True)
    for name in ("outcome", *_MODES):
        table.add_column(name, no_wrap=True)
    for name in ("recomputed", "saved", "checkpointed", "time"):
        table.add_column(name, no_wrap=True, justify="right")
    for result in results:
        table.add_row(*_cells(result))
    return table


def _cells(result: ClassResult) -> Iterator[str | Text]:
    yield shown(result.source).rpartition("/")[2]
    yield result.name
    yield Text(result.outcome, _STYLES[result.outcome])
    for mode in _MODES:
        failures = sum(failure.mode == mode for failure in result.failures)
        if result.outcome == "not run":
            yield Text("-", "dim")
        else:
            yield Text(f"{failures} failed", "red") if failures else Text("ok", "green")
    yield f"{result.recomputed}/{result.blocks}" if result.blocks else "-"
    costs = {cost.mode: cost.saved_bytes for cost in result.costs}
    yield _size(costs.get("plain"))
    yield _size(max((costs[mode] for mode in _MODES if mode in costs), default=None))
    yield f"{result.seconds:.1f} s"


def _size(number: int | None) -> str:
    if number is None:
        return "-"
    value, units = float(number), ["B", "KiB", "MiB", "GiB"]
    while value >= 1024 and len(units) > 1:
        value, units = value / 1024, units[1:]
    return f"{value:.0f} {units[0]}" if units[0] == "B" else f"{value:.1f} {units[0]}"
