"""The options for output formats and files, for all commands that print findings or results."""

from __future__ import annotations

import os
import shlex
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gclint.cli import CannotRun
from gclint.cli.options import FILE_TYPE, MakeOption, together
from gclint.report.formats import DEFAULT, FORMATS, FormatEntry, format_complaint, written_as

if TYPE_CHECKING:
    from gclint.finding import Problem
    from gclint.report.report import Report


@dataclass(frozen=True)
class OutputFile:
    """A file that a report is written to, and the format."""

    format: str
    path: Path


class FormatChoice(click.Choice[str]):
    """The name of a format."""

    def __init__(self, known: Mapping[str, FormatEntry]) -> None:
        super().__init__(list(known))
        self._known = known

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the name of a format, or fail with the names to choose from."""
        complaint = format_complaint(value, self._known)
        if complaint is not None:
            self.fail(complaint, param, ctx)
        return str(value)


class OutputFileType(click.ParamType):  # type: ignore[type-arg, unused-ignore]
    """``FORMAT:PATH``; the first colon ends the format, since a path may contain others."""

    name = "FORMAT:PATH"

    def __init__(self, known: Mapping[str, FormatEntry]) -> None:
        self._known = known

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> OutputFile:
        """Return the format and the path, or fail with the correct form."""
        if isinstance(value, OutputFile):
            return value
        name, colon, path = str(value).partition(":")
        if not colon or not path:
            self.fail(
                f"{value!r} is not of the form FORMAT:PATH, such as {next(iter(self._known))}:PATH",
                param,
                ctx,
            )
        complaint = format_complaint(name, self._known)
        if complaint is not None:
            self.fail(f"{value!r}: {complaint}", param, ctx)
        if path == "-":
            self.fail(f"{value!r}: --output-format {name} prints to standard output", param, ctx)
        return OutputFile(name, Path(path))


def output_options(
    option: MakeOption, known: Mapping[str, FormatEntry] = FORMATS, *, default: str | None = DEFAULT
) -> Callable[[Any], Any]:
    """Return a decorator that adds the options for the known formats to a command.

    The default is the format if none is given; None leaves it to the settings.
    """
    such_as = "sarif:gclint.sarif" if "sarif" in known else "junit:gclint.xml"
    return together(
        [
            option(
                "--output-format",
                type=FormatChoice(known),
                default=default,
                show_default=False,
                help=f"Format of the report.  [default: {DEFAULT}]",
            ),
            option(
                "--output-file",
                "output_files",
                metavar="FORMAT:PATH",
                multiple=True,
                type=OutputFileType(known),
                help=f"Also write a report to PATH, such as {such_as}; can be repeated.",
            ),
        ]
    )


def clash(files: Sequence[OutputFile], others: Iterable[Path | None] = ()) -> str | None:
    """Return an error message if a report is to go to a file that something else uses, otherwise None.

    The ``others`` are files that the same run reads or writes; None for an option that was not given.
    """
    counts = Counter(_place(each.path) for each in files)
    taken = {_place(path) for path in others if path is not None}
    for each in files:
        if counts[_place(each.path)] > 1 or _place(each.path) in taken:
            return f"--output-file {each.format}:{each.path}: another option uses the same file"
    return None


def _place(path: Path) -> str:
    try:
        return os.path.normcase(os.path.realpath(path))
    except OSError:  # The working directory is gone.
        return str(path)


def write_output_files(report: Report, files: Sequence[OutputFile]) -> list[Problem]:
    """Write a report to each file, and return the errors; an error does not stop the others."""
    if not files:
        return []
    from gclint.finding import Problem
    from gclint.write.disk import write_text

    problems = []
    checked = {_place(path) for path in report.project.given}
    for each in files:
        if _place(each.path) in checked:
            message = "this file is one of those being checked, so no report was written to it"
            problems.append(Problem(each.path, message))
            continue
        stream = StringIO()
        written_as(each.format)(report, stream)
        problems += write_text(each.path, stream.getvalue())
    return problems


def page_option(option: MakeOption) -> Callable[[Any], Any]:
    """Return a decorator that adds the option for an HTML report to a command."""
    return option(
        "--report",
        "page_path",
        metavar="FILE",
        type=FILE_TYPE,
        help="Write a self-contained HTML report to FILE.",
    )


def require_page(path: Path | None) -> None:
    """Check that a report can be made and written, before anything is run for it.

    Raises:
        CannotRun: Jinja is missing, or ``path`` cannot be written.
    """
    if path is None:
        return
    if find_spec("jinja2") is None:
        raise CannotRun("--report needs jinja2; install it with: pip install 'gclint[report]'")
    from gclint.code.paths import shown
    from gclint.write.disk import require_writable

    try:
        require_writable(path)
    except OSError as error:
        raise CannotRun(f"--report: {shown(path)} cannot be written: {error.strerror or error}") from None


def write_page(path: Path, report: Report, repeat: str = "gclint verify") -> None:
    """Write a report as a page, atomically.

    The command to ``repeat`` runs files in the same way, without the files.

    Raises:
        CannotRun: it cannot be written.
    """
    from gclint.code.paths import shown
    from gclint.report.page.building import page, rendered
    from gclint.write.disk import write_text

    command, now = shlex.join(["gclint", *sys.argv[1:]]), datetime.now().astimezone()
    for problem in write_text(path, rendered(page(report, command, now, repeat))):
        raise CannotRun(f"--report: {shown(path)}: {problem.message}")
    click.echo(f"Open {shown(path)} in a browser to see the report.", err=True)
