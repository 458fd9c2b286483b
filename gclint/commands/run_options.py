"""The options about how models are run, for all commands that run models."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from gclint.commands import print_once
from gclint.verify.settings import GIGABYTES, RunSettings
from gclint.verify.worker.known import Known

if TYPE_CHECKING:
    from gclint.userfolder import UserFolder

_Command = TypeVar("_Command", bound=Callable[..., Any])

_DEVICE = re.compile(r"auto|cpu|cuda(:\d+)?")


def _device(_context: click.Context, _option: click.Parameter, value: str | None) -> str | None:
    if value is not None and not _DEVICE.fullmatch(value):
        raise click.BadParameter(f"{value!r} is not auto, cpu, cuda or cuda:N")
    return value


_ABOUT_JOBS = "Run models in N processes at once.  [default: one per core, or one per GPU]"


def run_options(
    option: Callable[..., Callable[[Any], Any]], about_jobs: str = _ABOUT_JOBS
) -> Callable[[_Command], _Command]:
    """Return a decorator that adds the options to a command; :func:`run_settings` takes their values.

    Args:
        option: makes an option, like ``click.option``.
        about_jobs: the help text of ``--jobs``.
    """
    options = (
        option(
            "--python",
            metavar="PATH",
            type=click.Path(path_type=Path),
            help=(
                "Python interpreter to run models with; it needs torch and transformers.  [default: "
                "gclint's own]"
            ),
        ),
        option(
            "--device",
            metavar="auto|cpu|cuda[:N]",
            callback=_device,
            help="Where to run models.  [default: auto]",
        ),
        option(
            "--jobs",
            metavar="N",
            type=click.IntRange(min=1),
            help=about_jobs,
        ),
        option(
            "--time-limit",
            metavar="SECONDS",
            type=click.FloatRange(min=0, min_open=True),
            help=f"Limit of CPU time per model class.  [default: {RunSettings.seconds:g}]",
        ),
        option(
            "--memory-limit",
            metavar="GIGABYTES",
            type=click.FloatRange(min=0, min_open=True),
            help=(f"Memory limit per model class, or of GPU memory.  [default: {GIGABYTES:g}; no GPU limit]"),
        ),
    )

    def add(command: _Command) -> _Command:
        for each in reversed(options):
            command = each(command)
        return command

    return add


def run_settings(
    known: tuple[Known, ...],
    python: Path | None,
    device: str | None,
    jobs: int | None,
    time_limit: float | None,
    memory_limit: float | None,
) -> RunSettings:
    """Return the settings of runs; None stands for an option that was not given.

    Args:
        known: the settings of classes.
        python: the interpreter to run models with.
        device: ``auto``, ``cpu``, ``cuda`` or ``cuda:N``.
        jobs: the number of processes.
        time_limit: the limit per model class, in seconds of CPU time.
        memory_limit: the limit per model class, in gigabytes.
    """
    return RunSettings(
        python or Path(sys.executable),
        device or "auto",
        jobs,
        time_limit or RunSettings.seconds,
        memory_limit,
        known,
    )


@contextmanager
def results_of_user() -> Iterator[UserFolder | None]:
    """Yield the user's folder of results; None, after a note, if results cannot be kept there."""
    from gclint.verify.journal import results_folder

    try:
        folder = results_folder()
    except OSError as error:
        print_once(f"note: the results of this run are not kept, so it cannot be resumed: {error.strerror}")
        yield None
        return
    with folder:
        yield folder
