"""What a check is asked for: its options, some of which contradict each other, and standard input."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from gclint.cli import CannotRun
from gclint.cli.options import taken
from gclint.cli.output import OutputFile, clash
from gclint.cli.runs import RunOptions
from gclint.report.formats import DEFAULT, FORMATS
from gclint.wording import listed

if TYPE_CHECKING:
    from gclint.code.discovery import Survey
    from gclint.code.project import Project
    from gclint.settings import Settings

_OF_REPORTS = (
    "cache_dir",
    "error_on_empty",
    "exit_zero",
    "output_format",
    "quiet",
    "run",
    "statistics",
)
"""The options with which a run does nothing but print a report of what it has found."""


@dataclass(frozen=True)
class CheckOptions:
    """The options of a run, except those that select files and rules."""

    fix: bool
    add_ignores: bool
    show_fixes: bool
    diff: bool
    output_files: tuple[OutputFile, ...]
    statistics: bool
    changed_only: bool
    base_ref: str | None
    staged: bool
    write_baseline: Path | None
    summary: Path | None
    error_on_empty: bool
    exit_zero: bool
    quiet: bool
    verbose: bool
    verify: bool
    resume: bool
    page_path: Path | None
    run: RunOptions
    stdin_filename: Path | None
    cache_dir: Path | None
    no_cache: bool
    output_format: str
    baseline: Path | None

    @property
    def repairs(self) -> bool:
        """Whether repairs are made or shown."""
        return self.fix or (self.diff and not self.add_ignores)

    @property
    def changes(self) -> bool:
        """Whether files are changed, if only in memory."""
        return self.fix or self.diff or self.add_ignores

    @property
    def writes(self) -> bool:
        """Whether changed files are written."""
        return (self.fix or self.add_ignores) and not self.diff

    @property
    def only_reports(self) -> bool:
        """Whether the run only reads files and prints a report, which the cache can keep."""
        return not any(value for name, value in vars(self).items() if name not in _OF_REPORTS)

    @property
    def is_for_people(self) -> bool:
        """Whether the output is meant for people."""
        return FORMATS[self.output_format].is_for_people

    @classmethod
    def of(cls, flags: dict[str, Any], given: Mapping[str, Any]) -> CheckOptions:
        """Return the options of a command line: flags, and settings, where None was not given."""
        run = taken(RunOptions, flags)
        return cls(
            **flags,
            run=run,
            output_format=given["output_format"] or DEFAULT,
            baseline=given["baseline"],
        )

    def settled(self, settings: Settings) -> CheckOptions:
        """Return the options, with values from the settings for those that were not given."""
        counts = FORMATS[settings.output_format].counts or not self.statistics
        return replace(
            self,
            output_format=settings.output_format if counts else DEFAULT,
            baseline=None if self.write_baseline else settings.baseline,
        )

    def complaint(self) -> str | None:
        """Return an error message if the options contradict each other, otherwise None."""
        no_list = self.statistics or self.output_format != DEFAULT or bool(self.output_files)
        if self.diff and no_list:
            return (
                "--diff prints a diff, so it cannot be used with --statistics, --output-format or "
                "--output-file"
            )
        if self.statistics and not FORMATS[self.output_format].counts:
            names = listed(name for name, entry in FORMATS.items() if entry.counts)
            return f"--statistics supports only --output-format {names}"
        if self.quiet and self.verbose:
            return "--quiet and --verbose contradict each other"
        if self.base_ref is not None and not self.changed_only:
            return "--base-ref requires --changed-only"
        if self.staged and (self.base_ref is not None or not self.changed_only):
            return "--staged requires --changed-only, and replaces --base-ref"
        if self.show_fixes and not (self.fix or self.diff):
            return "--show-fixes requires --fix or --diff"
        if self.summary and not (self.fix or self.diff):
            return "--summary requires --fix or --diff"
        if self.verify and not (self.fix or self.diff):
            return "--verify requires --fix or --diff; to run models as they are, use 'gclint verify'"
        if self.add_ignores and (self.verify or self.write_baseline):
            return "--add-ignores cannot be used with --verify or --write-baseline"
        if self.resume and not self.verify:
            return "--resume requires --verify"
        if self.page_path and not self.verify:
            return "--report requires --verify; without repairs, use 'gclint verify --report'"
        if replace(self.run, jobs=None) != RunOptions() and not self.verify:
            return "--python, --device, --time-limit and --memory-limit require --verify"
        if self.write_baseline:
            if self.diff:
                return "--diff writes nothing, so it cannot be used with --write-baseline"
            if self.baseline or self.changed_only:
                return (
                    "--write-baseline writes all findings, so it cannot be used with --baseline or "
                    "--changed-only"
                )
            if no_list:
                return (
                    "--write-baseline reports no findings, so it cannot be used with --statistics, "
                    "--output-format or --output-file"
                )
        return clash(self.output_files, (self.summary, self.page_path, self.baseline))


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
        from gclint.code.discovery import Survey, not_python
        from gclint.finding import Problem

        other = not_python(self.path)
        if other is not None and not settings.excludes(self.path):
            return Survey([], [Problem(self.path, other)], [], settings=settings)
        return Survey([] if settings.excludes(self.path) else [self.path], [], [], settings=settings)

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
