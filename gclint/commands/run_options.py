"""The options about how models are run, for all commands that run models."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from gclint.verify.settings import GIGABYTES, RunSettings
from gclint.verify.worker.known import Known

_Command = TypeVar("_Command", bound=Callable[..., Any])

FOLDER = Path(".gclint")
"""The folder of the results."""

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
            help=f"Time limit per model class.  [default: {RunSettings.seconds:g}]",
        ),
        option(
            "--memory-limit",
            metavar="GIGABYTES",
            type=click.FloatRange(min=0, min_open=True),
            help=(
                f"Memory limit per process, or of the GPU's memory on a GPU.  [default: {GIGABYTES:g}; no "
                "GPU limit]"
            ),
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
        time_limit: the limit per model class, in seconds.
        memory_limit: the limit per process, in gigabytes.
    """
    return RunSettings(
        python or Path(sys.executable),
        device or "auto",
        jobs,
        time_limit or RunSettings.seconds,
        memory_limit,
        known,
    )


def make_folder() -> None:
    """Create the folder of the results, which git ignores."""
    FOLDER.mkdir(exist_ok=True)
    ignore = FOLDER / ".gitignore"
    if not ignore.exists():
        ignore.write_text("*\n", encoding="utf-8")
