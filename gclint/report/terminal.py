"""What only a terminal shows: colours, the source line with a caret, and a progress bar."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from rich.cells import cell_len
from rich.console import Console
from rich.markdown import Markdown
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.text import Text

from gclint.report.findings import headline, is_fixable, obstacle
from gclint.source.paths import printable

if TYPE_CHECKING:
    from gclint.finding import Finding
    from gclint.source.file import SourceFile

_SECONDS_BETWEEN_DRAWINGS = 0.1


def console_on(stream: TextIO) -> Console:
    """Return a console that leaves the wrapping of long lines to the terminal."""
    return Console(file=stream, soft_wrap=True)


def show_finding(console: Console, file: SourceFile, finding: Finding, *, unsafe: bool) -> None:
    """Print a finding with its source line."""
    position = file.position(finding.start)
    first_line = Text.assemble(
        (printable(str(finding.path)), "bold"),
        (f":{position.row}:{position.column}: ", "cyan"),
        (finding.code, "bold red"),
        printable(headline(finding).removeprefix(finding.code)),
        (" [*]", "cyan") if is_fixable(finding, unsafe=unsafe) else "",
    )
    line = file.line(position.row)
    before = _printable(line[: position.column - 1])
    marked = _printable(line[position.column - 1 :][: max(1, finding.end - finding.start)])
    margin = f"{position.row:>5} | "
    console.print(first_line)
    console.print(Text(f"{margin}{_printable(line)}"))
    console.print(
        Text(" " * (len(margin) - 2) + "| " + " " * cell_len(before)).append(
            "^" * max(1, cell_len(marked)), "bold red"
        )
    )
    why = obstacle(finding)
    if why:
        console.print(Text(" " * (len(margin) - 2) + "= ").append(printable(why), "yellow"))
    console.print()


def show_diff(console: Console, lines: Iterator[str]) -> None:
    """Print the lines of a unified diff in colour."""
    styles = {"+++": "bold", "---": "bold", "@@": "cyan", "+": "green", "-": "red"}
    for line in lines:
        style = next((style for start, style in styles.items() if line.startswith(start)), "")
        console.print(Text(_printable(line.rstrip("\n")), style))


def show_documentation(console: Console, markdown: str) -> None:
    """Print Markdown as a terminal can show it."""
    console.print(Markdown(markdown), soft_wrap=False)


@contextmanager
def progress_bar(stream: TextIO, total: int) -> Iterator[Callable[[Path], None]]:
    """Show on ``stream`` how many of ``total`` files are done; yields what to call after each."""
    # Drawn here and not by a thread of its own, beside which no process could be forked.
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
    # One column stays one column: a tab or an escape would move what stands under the caret.
    return "".join(character if character.isprintable() else " " for character in text)
