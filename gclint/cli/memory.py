"""The command ``gclint memory``: turns options into a request for an estimate, and prints the estimate."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import click

from gclint.cli import CannotRun, settings_of
from gclint.cli.options import FILE_TYPE, PATH_TYPE, POSITIVE, GroupedCommand, choice_option, option_group
from gclint.cli.output import FormatChoice
from gclint.cli.runs import run_settings
from gclint.report.formats import DEFAULT, FORMATS
from gclint.report.printing import write_object
from gclint.verify.memory import NoEstimate, ask, subject_of, with_architecture
from gclint.verify.worker.estimates import OPTIMIZERS, Question

_SECONDS = 600.0
_DTYPES = ("bfloat16", "float16", "float32")
_SIZE = re.compile(r"(\d+(?:\.\d+)?) *([KMGT]?)(i?)B?", re.IGNORECASE)
_POWERS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}

_models = option_group("Models")
_steps = option_group("Steps")
_runs = option_group("Runs")
_results = option_group("Results")


def _bytes(_context: click.Context, _option: click.Parameter, value: str | None) -> int | None:
    if value is None:
        return None
    found = _SIZE.fullmatch(value.strip())
    if not found or float(found[1]) == 0:
        raise click.BadParameter(f"{value!r} is not a size such as 24GiB or 80GB")
    return int(float(found[1]) * (1024 if found[3] else 1000) ** _POWERS[found[2].upper()])


def _fields(_context: click.Context, _option: click.Parameter, values: Sequence[str]) -> dict[str, Any]:
    fields = {}
    for each in values:
        name, equals, value = each.partition("=")
        if not equals or not name:
            raise click.BadParameter(f"{each!r} is not of the form FIELD=VALUE, such as hidden_size=4096")
        try:
            fields[name] = json.loads(value)
        except ValueError:
            fields[name] = value
    return fields


@click.command("memory", cls=GroupedCommand)
@click.argument("model", metavar="MODEL_OR_FILE")
@_models(
    "--class",
    "model_class",
    metavar="NAME",
    default="",
    help="Estimate this class instead of the most likely one.",
)
@_models("--config", metavar="FILE", type=FILE_TYPE, help="Take the sizes from a config.json.")
@_models("--layers", metavar="N", type=click.IntRange(min=1), help="Give each stack of blocks N blocks.")
@_models(
    "--set",
    "fields",
    metavar="FIELD=VALUE",
    multiple=True,
    callback=_fields,
    help="Set a field of the configuration, such as hidden_size=4096 or vision_config.depth=8.",
)
@_steps(
    "--batch", metavar="N", type=click.IntRange(min=1), default=1, show_default=True, help="Items per batch."
)
@_steps("--seq", "sequence", metavar="N", type=click.IntRange(min=1), help="Tokens per item.  [default: 12]")
@_steps("--padding", is_flag=True, help="Give the texts different lengths, so that there is a mask.")
@choice_option(_steps, "--dtype", _DTYPES, "Type of the weights and activations.", default=Question.dtype)
@choice_option(
    _steps, "--optimizer", OPTIMIZERS, "Optimizer whose state is included.", default=Question.optimizer
)
@_steps(
    "--budget",
    metavar="SIZE",
    callback=_bytes,
    help="Find the largest batch and sequence that fit into SIZE, such as 24GiB.",
)
@_runs("--measure", is_flag=True, help="Also run the step for real, and compare.")
@_runs(
    "--python",
    metavar="PATH",
    type=PATH_TYPE,
    help="Python interpreter to estimate with; it needs torch and transformers.  [default: gclint's own]",
)
@_runs("--device", metavar="auto|cpu|cuda[:N]", help="Where to measure.  [default: auto]")
@_runs(
    "--time-limit",
    metavar="SECONDS",
    type=POSITIVE,
    default=_SECONDS,
    show_default=True,
    help="Time limit of the estimate.",
)
@_runs(
    "--memory-limit",
    metavar="GIGABYTES",
    type=POSITIVE,
    help="Memory limit of the estimate.  [default: 8]",
)
@_results(
    "--output-format",
    type=FormatChoice({name: FORMATS[name] for name in ("full", "json")}),
    default=DEFAULT,
    show_default=True,
    help="Print the estimate as text or as JSON.",
)
def memory(
    model: str,
    config: Path | None,
    python: Path | None,
    device: str | None,
    time_limit: float,
    memory_limit: float | None,
    output_format: str,
    **question: Any,
) -> None:
    """Estimate the memory of a training step of a model, with and without gradient checkpointing.

    MODEL_OR_FILE is a model of the installed transformers, a modeling file, or a config.json. The model is
    built of tensors that have a shape but no data, so any size can be estimated on any machine.

    The exit status is 0 if there is an estimate, and 2 if there is none.
    """
    settings = run_settings((), python, device or "cpu", 1, time_limit, memory_limit)
    try:
        target, content = subject_of(model, config, settings.python)
        known = settings_of([target.path]).known
        asked = with_architecture(Question(config=content, **question), content)
        found = ask(target, asked, replace(settings, known=known))
    except NoEstimate as error:
        raise CannotRun(str(error)) from None
    except OSError as error:
        raise CannotRun(f"{settings.python} cannot be started: {error.strerror or error}") from None
    if output_format == "json":
        write_object(asdict(found), sys.stdout)
    else:
        from gclint.report.memory import write

        write(found, sys.stdout)
