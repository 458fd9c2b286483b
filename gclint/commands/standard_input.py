"""Standard input instead of files, for editors and other tools that use gclint as a filter."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import click

from gclint.commands import CannotRun

if TYPE_CHECKING:
    from gclint.commands.check_options import CheckOptions
    from gclint.settings import Settings
    from gclint.source.discovery import Survey
    from gclint.source.project import Project

_STANDARD_INPUT = Path("-")
"""The path that stands for standard input; a file of that name is ``./-``."""


@dataclass
class StandardInput:
    """The text on standard input, and the result of repairing it."""

    path: Path
    """The file that it is treated as."""
    data: bytes
    """The bytes that were read; after a repair, those to write."""

    def survey(self, settings: Settings) -> Survey:
        """Return the file as the only one to check, unless it is excluded."""
        from gclint.finding import Problem
        from gclint.source.discovery import Survey, not_python

        other = not_python(self.path)
        if other is not None and not settings.excludes(self.path):
            return Survey([], [Problem(self.path, other)], [])
        return Survey([] if settings.excludes(self.path) else [self.path], [], [])

    def put_in(self, project: Project) -> None:
        """Make the project read this text instead of the file on disk."""
        project.hold(self.path, self.data)

    def take(self, project: Project, changed: Collection[Path]) -> None:
        """Take over the repaired text, if it is among the ``changed`` files."""
        if self.path in changed:
            file = project.file(self.path)
            self.data = file.encode(file.text)


@contextmanager
def standard_input(paths: Sequence[Path], options: CheckOptions) -> Iterator[StandardInput | None]:
    """Read standard input if ``-`` is the path, and yield it; otherwise, yield None.

    With ``--fix``, standard output is reserved for the text: everything else is printed to standard error,
    and at the end the text is written even after an error, since a filter must not lose its input.

    Raises:
        click.UsageError: an option cannot be used with standard input.
        CannotRun: standard input cannot be read.
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
    # It is None if it was closed before Python started.
    if sys.stdin is None or sys.stdin.closed:
        raise CannotRun("standard input is closed; pass a file, or pipe one in")
    if sys.stdin.isatty():
        click.echo("Reading standard input; end it with Ctrl-D (on Windows Ctrl-Z and Enter).", err=True)
    try:
        return sys.stdin.buffer.read()
    except OSError as error:
        raise CannotRun(f"standard input cannot be read: {error.strerror or error}") from None
