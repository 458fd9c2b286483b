"""The options about how models are run, for all commands that run some."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from gclint.verify.settings import RunSettings

_Command = TypeVar("_Command", bound=Callable[..., Any])

_DEVICE = re.compile(r"auto|cpu|cuda(:\d+)?")


def _device(_context: click.Context, _option: click.Parameter, value: str | None) -> str | None:
    if value is not None and not _DEVICE.fullmatch(value):
        raise click.BadParameter(f"{value!r} is none of auto, cpu, cuda and cuda:N")
    return value


_OPTIONS = (
    click.option(
        "--python",
        metavar="PATH",
        type=click.Path(path_type=Path),
        help="The interpreter to run models in, with torch and transformers; by default gclint's own.",
    ),
    click.option(
        "--device",
        metavar="auto|cpu|cuda[:N]",
        callback=_device,
        help="What to run models on.  [default: auto]",
    ),
    click.option(
        "--jobs",
        metavar="N",
        type=click.IntRange(min=1),
        help="How many processes run models at once on a CPU; by default one for each core.",
    ),
    click.option(
        "--time-limit",
        metavar="SECONDS",
        type=click.FloatRange(min=0, min_open=True),
        help=f"For a class.  [default: {RunSettings.seconds:g}]",
    ),
    click.option(
        "--memory-limit",
        metavar="GIGABYTES",
        type=click.FloatRange(min=0, min_open=True),
        help=f"For a process on a CPU.  [default: {RunSettings.gigabytes:g}]",
    ),
)


def run_options(command: _Command) -> _Command:
    """Add the options to a click command; :func:`run_settings` understands what it is called with."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def run_settings(
    python: Path | None,
    device: str | None,
    jobs: int | None,
    time_limit: float | None,
    memory_limit: float | None,
) -> RunSettings:
    """Return the settings that the options stand for; None for one that was not given."""
    return RunSettings(
        python or Path(sys.executable),
        device or "auto",
        jobs or os.cpu_count() or 1,
        time_limit or RunSettings.seconds,
        memory_limit or RunSettings.gigabytes,
    )
