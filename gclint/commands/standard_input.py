"""Standard input in place of files: what editors and other filters check, and have repaired."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from gclint.commands import CannotRun

if TYPE_CHECKING:
    from gclint.commands.check_options import CheckOptions
    from gclint.settings import Settings
    from gclint.source.discovery import Survey
    from gclint.source.project import Project

_STANDARD_INPUT = Path("-")
"""What stands for it among the paths; a file of that name is ``./-``."""


def standard_input_option(option: Callable[..., Callable[[Any], Any]]) -> Callable[[Any], Any]:
    """Return what adds the option that says where standard input belongs to a command.

    Args:
        option: makes one, like ``click.option``.
    """
    return option(
        "--stdin-filename",
        metavar="PATH",
        type=click.Path(path_type=Path),
        help="Treat standard input ('-') as the file at PATH, which need not exist.",
    )


@dataclass
class StandardInput:
    """The text that comes in, and what is made of it."""

    path: Path
    """The file that it stands for."""
    data: bytes
    """What came in; with ``--fix``, what goes out."""

    def survey(self, settings: Settings) -> Survey:
        """Return the file as the only one to check, unless it is excluded."""
        from gclint.finding import Problem
        from gclint.source.discovery import Survey, not_python

        other = not_python(self.path)
        if other is not None and not settings.excludes(self.path):
            return Survey([], [Problem(self.path, other)], [])
        return Survey([] if settings.excludes(self.path) else [self.path], [], [])

    def put_in(self, project: Project) -> None:
        """Let the text stand in for what lies on the disk."""
        project.hold(self.path, self.data)

    def take(self, project: Project, changed: Collection[Path]) -> None:
        """Take what a repair has made of the text, if that is among the ``changed`` files."""
        if self.path in changed:
            file = project.file(self.path)
            self.data = file.encode(file.text)


@contextmanager
def standard_input(paths: Sequence[Path], options: CheckOptions) -> Iterator[StandardInput | None]:
    """Read standard input if that is what is to be checked.

    With ``--fix``, standard output is for the text: everything else that is printed meanwhile goes to
    standard error, and at the end the text is written, whatever happened. A filter loses nothing.

    Raises:
        click.UsageError: the options do not go with it.
        CannotRun: there is nothing to read.
    """
    if _STANDARD_INPUT not in paths:
        if options.stdin_filename is not None:
            raise click.UsageError("--stdin-filename requires '-' as the path")
        yield None
        return
    _require_compatible(paths, options)
    text = StandardInput(options.stdin_filename or _STANDARD_INPUT, _read())
    if not options.writes:
        _require_file(text.path)
        yield text
        return
    output = sys.stdout
    try:
        with redirect_stdout(sys.stderr):
            _require_file(text.path)
            yield text
    finally:
        sys.stderr.flush()
        binary: BinaryIO = output.buffer
        binary.write(text.data)
        binary.flush()


def _require_file(path: Path) -> None:
    if path.is_dir():
        raise click.UsageError(f"--stdin-filename: {path} is a folder")


def _require_compatible(paths: Sequence[Path], options: CheckOptions) -> None:
    if len(paths) > 1:
        raise click.UsageError(
            "'-' is standard input and cannot be combined with other paths; for a file of that name, write "
            "'./-'"
        )
    impossible = {
        "--verify": options.verify,
        "--changed-only": options.changed_only,
        "--write-baseline": options.write_baseline,
    }
    for name, value in impossible.items():
        if value:
            raise click.UsageError(f"{name} needs files on disk, so it cannot be used with '-'")


def _read() -> bytes:
    # Python has none where it was closed before it started.
    if sys.stdin is None or sys.stdin.closed:
        raise CannotRun("standard input is closed; pass a file, or pipe one in")
    if sys.stdin.isatty():
        click.echo("Reading standard input; end it with Ctrl-D (on Windows Ctrl-Z and Enter).", err=True)
    try:
        return sys.stdin.buffer.read()
    except OSError as error:
        raise CannotRun(f"standard input cannot be read: {error.strerror or error}") from None
