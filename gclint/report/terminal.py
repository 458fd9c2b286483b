"""Output for terminals: colours, the line of code with a caret, and a progress bar."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, TextIO

from rich.cells import cell_len
from rich.console import Console
from rich.markdown import Markdown
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.text import Text

from gclint.code.paths import printable
from gclint.finding import Finding
from gclint.report.findings import LEVELS, headline, is_fixable, remarks
from gclint.report.printing import folded, is_coloured, width_of
from gclint.report.report import Files

_SECONDS_BETWEEN_DRAWINGS = 0.1


def console_on(stream: TextIO) -> Console:
    """Return a console that does not wrap long lines itself."""
    system: Literal["auto", "standard"] | None = None
    if is_coloured(stream):
        # If colours are forced, the console itself might still decide against them.
        system = "auto" if stream.isatty() and os.environ.get("TERM") != "dumb" else "standard"
    forced = {"NO_COLOR": "", "FORCE_COLOR": ""}  # They have been taken into account above.
    return Console(
        file=stream,
        soft_wrap=True,
        color_system=system,
        no_color=system is None,
        force_terminal=stream.isatty(),
        _environ={**os.environ, **forced},
    )


class TerminalFindings:
    """Prints findings in colour, and on a terminal with their lines of code."""

    def __init__(self, project: Files, stream: TextIO, *, unsafe: bool) -> None:
        self._project = project
        self._stream = stream
        self._unsafe = unsafe
        self._console = console_on(stream)

    def show(self, findings: Iterable[Finding]) -> None:
        """Print findings."""
        for finding in findings:
            self._headline(finding)
            margin = "    "
            if self._stream.isatty():
                margin = f"{self._excerpt(finding)}= "
            for each in remarks(finding):
                self._remark(each, margin)
            if self._stream.isatty():
                self._console.print()

    def _headline(self, finding: Finding) -> None:
        position = self._project.file(finding.path).position(finding.start)
        path, place = printable(str(finding.path)), f":{position.row}:{position.column}: "
        level = f"{finding.level.value}: "
        star = " [*]" if is_fixable(finding, unsafe=self._unsafe) else ""
        message = printable(headline(finding))
        text = Text("\n".join(folded(message + star, self._stream, prefix=path + place + level, hanging=4)))
        text.stylize("bold", 0, len(path))
        text.stylize("cyan", len(path), len(path) + len(place))
        code = text.plain.index(finding.code, len(path) + len(place) + len(level) - 1)
        text.stylize(LEVELS[finding.level].style, len(path) + len(place), code + len(finding.code))
        if star:
            text.stylize("cyan", len(text) - len(star.strip()))
        self._console.print(text)

    def _excerpt(self, finding: Finding) -> str:
        """Print the line of code with carets below the finding; return the margin of the next lines."""
        file = self._project.file(finding.path)
        position = file.position(finding.start)
        line = file.line(position.row)
        before = _printable(line[: position.column - 1])
        marked = _printable(line[position.column - 1 :][: max(1, finding.end - finding.start)])
        number = f"{position.row:>5} "
        margin = " " * len(number)
        room = width_of(self._stream) - len(number) - len("| ")
        code, caret = Text(printable(_printable(line))), "^" * max(1, cell_len(marked))
        if cell_len(before) < room:  # If the terminal wraps the line, a caret would be misplaced.
            code.truncate(room, overflow="ellipsis")
            caret = caret[: room - cell_len(before)]
        self._console.print(Text(f"{number}| ").append(code))
        style = LEVELS[finding.level].style
        self._console.print(Text(f"{margin}| {' ' * cell_len(before)}").append(caret, style))
        return margin

    def _remark(self, remark: str, margin: str) -> None:
        lines = folded(printable(remark), self._stream, prefix=margin, hanging=len(margin))
        text = Text("\n".join(lines))
        text.stylize("green" if remark.startswith("help: ") else "yellow", len(margin))
        self._console.print(text)


def show_diff(console: Console, lines: Iterator[str]) -> None:
    """Print the lines of a unified diff in colour."""
    styles = {"+++": "bold", "---": "bold", "@@": "cyan", "+": "green", "-": "red"}
    for line in lines:
        style = next((style for start, style in styles.items() if line.startswith(start)), "")
        console.print(Text(printable(_printable(line.rstrip("\n"))), style))


def show_documentation(console: Console, markdown: str) -> None:
    """Print formatted Markdown."""
    console.print(Markdown(markdown), soft_wrap=False)


@contextmanager
def progress_bar(stream: TextIO, total: int) -> Iterator[Callable[[Path], None]]:
    """Show a progress bar for ``total`` files; yields the function to call after each file."""
    # It is drawn in this thread: with a second one, processes could not be forked safely.
    bar = Progress(
        TextColumn("Checking"),
        BarColumn(),
        MofNCompleteColumn(),
        console=console_on(stream),
        transient=True,
        auto_refresh=False,
    )
    drawn = 0.0

    def advance(_path: Path) -> None:
        nonlocal drawn
        bar.advance(task)
        if time.monotonic() - drawn > _SECONDS_BETWEEN_DRAWINGS:
            drawn = time.monotonic()
            bar.refresh()

    with bar:
        task = bar.add_task("", total=total)
        yield advance


def _printable(text: str) -> str:
    # Each character must keep its width: a tab or an escape would misplace the caret.
    return "".join(character if character.isprintable() else " " for character in text)
