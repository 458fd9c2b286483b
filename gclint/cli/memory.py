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
from gclint.cli.runs import RunOptions, device_name
from gclint.report.formats import DEFAULT, FORMATS
from gclint.report.printing import write_object
from gclint.verify.memory import NoEstimate, ask, named_target, with_architecture
from gclint.verify.worker.estimates import ADAFACTOR, OPTIMIZERS, EstimateRequest, Lora, Sharding

_SECONDS = 600.0
_DTYPES = ("bfloat16", "float16", "float32")
_SIZE = re.compile(r"(\d+(?:\.\d+)?) *([KMGT]?)(i?)B?", re.IGNORECASE)
_LORA = re.compile(r"r=([1-9]\d{0,4})(?:,targets=([\w.]+(?:\+[\w.]+)*))?")
_SHARDED = re.compile(r"(?:zero([123])|fsdp):([1-9]\d{0,4})")
_STAGE_OF_FSDP = 3
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


def _lora(_context: click.Context, _option: click.Parameter, value: str | None) -> Lora | None:
    if value is None:
        return None
    found = _LORA.fullmatch(value)
    if found is None:
        raise click.BadParameter(f"{value!r} is not of the form r=16 or r=16,targets=q_proj+v_proj")
    return Lora(int(found[1]), tuple((found[2] or "").split("+")) if found[2] else ())


def _sharding(_context: click.Context, _option: click.Parameter, value: str | None) -> Sharding | None:
    if value is None:
        return None
    found = _SHARDED.fullmatch(value)
    if found is None:
        raise click.BadParameter(f"{value!r} is not of the form zero2:8 or fsdp:8, with the number of ranks")
    return Sharding(int(found[1] or _STAGE_OF_FSDP), int(found[2]))


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
@_steps(
    "--dtype",
    type=click.Choice(_DTYPES),
    help="Type of the weights and activations.  [default: bfloat16; float32 with --autocast]",
)
@_steps(
    "--autocast",
    is_flag=True,
    help="Compute in bfloat16 with weights in float32, as TrainingArguments(bf16=True) does.",
)
@_steps(
    "--lora",
    metavar="r=N",
    callback=_lora,
    help="Train adapters of peft only, such as r=16, or r=16,targets=q_proj+v_proj.",
)
@_steps("--bits", type=click.Choice(["4", "8"]), help="Quantise the frozen weights, beside --lora.")
@_steps(
    "--accumulate",
    "accumulates",
    is_flag=True,
    help="Keep the gradients of earlier batches, as with gradient accumulation.",
)
@_steps(
    "--shard",
    "sharding",
    metavar="HOW:N",
    callback=_sharding,
    help="Share states, gradients or weights among N ranks: zero1, zero2, zero3 or fsdp.",
)
@choice_option(
    _steps,
    "--optimizer",
    (*OPTIMIZERS, ADAFACTOR),
    "Optimizer whose state is included.",
    default=EstimateRequest.optimizer,
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
@_runs(
    "--device",
    metavar="auto|cpu|cuda[:N]",
    callback=device_name,
    help="Where to measure.  [default: cpu]",
)
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
    dtype: str | None,
    bits: str | None,
    **question: Any,
) -> None:
    """Estimate the memory of a training step of a model, with and without gradient checkpointing.

    MODEL_OR_FILE is a model of the installed transformers, a modeling file, or a config.json. The model is
    built of tensors that have a shape but no data, so any size can be estimated on any machine.

    The exit status is 0 if the estimate is complete, and 2 if there is none, or if it has reached a limit;
    what is known by then is printed.
    """
    if question["autocast"] and dtype not in (None, "float32"):
        raise click.UsageError(f"--autocast is for weights in float32, not in {dtype}")
    question["dtype"] = dtype or ("float32" if question["autocast"] else "bfloat16")
    question["bits"] = None if bits is None else int(bits)
    settings = RunOptions(python, device or "cpu", 1, time_limit, memory_limit).settings()
    try:
        target, content = named_target(model, config, settings.python)
        known = settings_of([target.path]).known
        asked = with_architecture(EstimateRequest(config=content, **question), content)
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
    if found.estimate.ended:
        raise CannotRun("the estimate is not complete; --time-limit and --memory-limit extend the limits")
