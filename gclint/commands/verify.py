"""The command ``gclint verify``: runs models, and turns the results into output and an exit status."""

from __future__ import annotations

import re
import shlex
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from gclint.commands import (
    CannotRun,
    paths_argument,
    rules_of,
    settings_of,
    settle_interrupted_fixes,
)
from gclint.commands.default_group import DefaultGroup
from gclint.commands.option_groups import GroupedCommand, option_group
from gclint.commands.output import (
    OutputFile,
    output_options,
    print_report,
    require_own_files,
    write_output_files,
)
from gclint.commands.page import origin, page_option, require_page, write_page
from gclint.commands.run_display import run_display
from gclint.commands.run_options import FOLDER, make_folder, run_options, run_settings
from gclint.commands.setting_options import config_option, pop_settings, setting_options
from gclint.engine.check import check
from gclint.engine.evidence import weigh
from gclint.engine.observing import observations
from gclint.finding import Problem
from gclint.report.formats import FORMATS, formats_of_runs
from gclint.report.full import write_notices
from gclint.report.printing import write_lines
from gclint.report.report import Report
from gclint.settings import Settings
from gclint.source.paths import shortened, shown
from gclint.source.project import Project
from gclint.verify import journal
from gclint.verify.executors import EXECUTORS
from gclint.verify.files import Audience
from gclint.verify.repro import write_scripts
from gclint.verify.results import Results
from gclint.verify.run import EnvironmentChanged, Heard, verify
from gclint.verify.settings import RunSettings
from gclint.verify.sources import Target, UnknownModel, digest, installed_models, shard, target_of, targets_of
from gclint.verify.worker.practices import ALL, PRACTICES, UnknownPractice, groups, practices_named

_RESULTS = FOLDER / "verify.jsonl"
_EXAMPLES = (
    "  gclint verify modeling_mine.py               with configuration_mine.py next to it\n"
    "  gclint verify src/transformers/models/llama  from this checkout of transformers\n"
    "  gclint verify --model bert                   from the installed transformers\n"
    "  gclint verify merge 1.jsonl 2.jsonl          merge the results of shards"
)

_SHARD = re.compile(r"(\d{1,6})/(\d{1,6})")


def _part(_context: click.Context, _option: click.Parameter, value: str) -> tuple[int, int]:
    found = _SHARD.fullmatch(value)
    number, count = (int(found[1]), int(found[2])) if found else (0, 0)
    if not 1 <= number <= count:
        raise click.BadParameter(f"{value!r} is not of the form I/N, such as 2/8")
    return number, count


def _practices(_context: click.Context, _option: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    asked = [name.strip() for value in values for name in value.split(",")]
    try:
        return tuple(each.title for each in practices_named(asked))
    except UnknownPractice as error:
        raise click.BadParameter(str(error)) from None


_models = option_group("Models")
_runs = option_group("Runs")
_results = option_group("Results")
_output = output_options(_results, formats_of_runs())
_verbose = _results("--verbose", "-v", is_flag=True, help="Also list the classes that passed.")
_write_repro = _results(
    "--write-repro",
    metavar="DIR",
    type=click.Path(path_type=Path, file_okay=False),
    help="For each failed class, write a script that reproduces the failure without gclint.",
)
_page = page_option(_results)


@click.command("run", cls=GroupedCommand, short_help="Run models and compare (the default).")
@paths_argument
@_models(
    "--model",
    "models",
    metavar="NAME",
    multiple=True,
    help="Run a model of the installed transformers, such as bert or 'qwen*'.",
)
@setting_options(_models, "include", "exclude", "extend-exclude")
@config_option(_models)
@_models(
    "--scenario",
    "practices",
    metavar="NAME,…",
    multiple=True,
    callback=_practices,
    help=(
        f"Also train in these set-ups: {', '.join((ALL, *groups()))}, or one of a group, such as "
        f"{PRACTICES[0].title}."
    ),
)
@_models("--shard", "part", metavar="I/N", callback=_part, default="1/1", help="Run only part I of N.")
@run_options(_runs)
@_runs(
    "--executor",
    type=click.Choice(list(EXECUTORS)),
    default=RunSettings.executor,
    show_default=True,
    help="Run models on this machine, or on a Ray cluster (that of RAY_ADDRESS, or a running one).",
)
@_results(
    "--results",
    "results_path",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    default=_RESULTS,
    show_default=True,
    help="Write results to FILE as they arrive.",
)
@_results(
    "--resume", is_flag=True, help="Keep the results in that file, and run only what is new or changed."
)
@_output
@_verbose
@_write_repro
@_page
@click.pass_context
def run(
    context: click.Context,
    /,
    paths: tuple[Path, ...],
    models: tuple[str, ...],
    config: Path | None,
    practices: tuple[str, ...],
    part: tuple[int, int],
    executor: str,
    results_path: Path,
    resume: bool,
    output_format: str,
    output_files: tuple[OutputFile, ...],
    verbose: bool,
    write_repro: Path | None,
    page_path: Path | None,
    **about_runs: Any,
) -> None:
    """Train each model for a few steps, with and without gradient checkpointing, and compare.

    PATHS are modeling files and folders, by default the current folder. Each class is built with a tiny
    random configuration. Nothing is downloaded.

    The exit status is 0 if everything passed, 1 if something failed, and 2 if something could not be run.
    """
    require_page(page_path)
    require_own_files(output_files, (page_path, results_path))
    of_files = settings_of(paths or (Path(),), None, config, pop_settings(about_runs))
    settings = run_settings(of_files.known, **about_runs)
    settings = replace(settings, practices=practices, executor=executor)
    targets, problems = _targets(paths, models, of_files, settings.python)
    settle_interrupted_fixes([*paths, *(target.path for target in targets)])
    with _errors_in_one_line(context, results_path):
        header = journal.header(targets, settings, part)
        targets = shard(targets, *part)
        with (
            _journal(results_path, header, resume=resume) as written,
            run_display(is_shown=FORMATS[output_format].is_for_people) as audience,
        ):
            audience.expect(len(targets))
            results = _run(targets, settings, written, audience)
    files = [target.path for target in targets]
    joined = _joined(results, files, settings.python, config)
    report = replace(joined, problems=tuple(problems), verbose=verbose)
    report = report.also(write_output_files(report, output_files))
    _show(report, results, write_repro, output_format, page_path, _repeat(about_runs))
    context.exit(2 if report.problems else results.exit_status)


@contextmanager
def _errors_in_one_line(context: click.Context, results: Path) -> Iterator[None]:
    """Report any error that ends a run in one line; earlier results are in the file ``results``."""
    try:
        yield
    except (journal.UnusableResults, EnvironmentChanged, OSError) as error:
        raise CannotRun(_message(error)) from None
    except KeyboardInterrupt:
        text = f"Interrupted; the results so far are in {results}. Run it again with --resume to continue."
        write_lines((text,), sys.stderr)
        context.exit(130)
    except click.ClickException:
        raise
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        raise CannotRun(
            f"this is a bug in gclint: {type(error).__name__}: {error} ({last.filename}:{last.lineno}); "
            f"the results so far are in {results}"
        ) from None


@click.command("merge", cls=GroupedCommand, short_help="Merge the results of shards.")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path, dir_okay=False))
@_output
@_verbose
@_write_repro
@_page
@click.pass_context
def merge(
    context: click.Context,
    files: tuple[Path, ...],
    output_format: str,
    output_files: tuple[OutputFile, ...],
    verbose: bool,
    write_repro: Path | None,
    page_path: Path | None,
) -> None:
    """Merge the results of all shards of a run. FILES are the files that --results named."""
    require_page(page_path)
    require_own_files(output_files, (page_path, *files))
    try:
        results = journal.merge(files)
    except (journal.UnusableResults, OSError) as error:
        raise CannotRun(_message(error)) from None
    files_at_hand = _unchanged(results)
    settle_interrupted_fixes(files_at_hand)
    report = replace(_joined(results, files_at_hand, None, None), verbose=verbose)
    report = report.also(write_output_files(report, output_files))
    _show(report, results, write_repro, output_format, page_path, "gclint verify")
    context.exit(2 if report.problems else results.exit_status)


verify_group = DefaultGroup("verify", default=run, others=[merge], examples=_EXAMPLES)


def _targets(
    paths: tuple[Path, ...], models: tuple[str, ...], settings: Settings, python: Path
) -> tuple[list[Target], list[Problem]]:
    targets: list[Target] = []
    problems: list[Problem] = []
    try:
        if models:
            targets += [target_of(path) for path in installed_models(python, models)]
        if paths or not models:
            paths = paths or (Path(),)
            found, problems = targets_of(paths, settings)
            targets += found
    except UnknownModel as error:
        raise CannotRun(str(error)) from None
    except OSError as error:
        raise CannotRun(f"{python} cannot be started: {error.strerror or error}") from None
    by_path = {target.source.path: target for target in targets}
    return [by_path[path] for path in sorted(by_path)], problems


def _run(
    targets: Sequence[Target],
    settings: RunSettings,
    written: journal.Journal,
    audience: Audience,
) -> Results:
    def listen(heard: Heard) -> None:
        written.write(heard)
        audience.take(heard)

    results = verify(targets, settings, listen, written.earlier)
    if not results.problem:
        written.finish()
    return results


def _journal(path: Path, header: journal.Header, *, resume: bool) -> journal.Journal:
    """Open the file of results."""
    try:
        if path == _RESULTS:
            make_folder()
        path.parent.mkdir(parents=True, exist_ok=True)
        return journal.Journal(path, header, resume=resume)
    except OSError as error:
        raise journal.UnusableResults(
            f"results cannot be written to {shown(path)}: {error.strerror}; choose another file with "
            "--results"
        ) from None


def _message(error: Exception) -> str:
    """Return the message of an error, with the file that it is about."""
    if isinstance(error, OSError) and error.filename is not None:
        return f"{shown(error.filename)}: {error.strerror}"
    return str(error)


def _show(
    report: Report,
    results: Results,
    write_repro: Path | None,
    output_format: str,
    page_path: Path | None,
    repeat: str,
) -> None:
    """Print the report, and write the repro scripts and the HTML report."""
    print_report(report, output_format)
    if write_repro is not None:
        try:
            for path in write_scripts(write_repro, results):
                click.echo(f"{path} reproduces a failure.", err=True)
        except OSError as error:
            raise CannotRun(f"a script cannot be written: {error}") from None
    write_notices(report, sys.stderr)
    sys.stdout.flush()
    if page_path is not None:
        from gclint.report.page.building import page

        write_page(page_path, page(report, origin(repeat)))


def _repeat(about_runs: Mapping[str, Any]) -> str:
    """Return the command that runs files in the same way, without the files."""
    given = [(f"--{name.replace('_', '-')}", str(value)) for name, value in about_runs.items() if value]
    return shlex.join(["gclint", "verify", *(part for pair in given for part in pair)])


def _unchanged(results: Results) -> list[Path]:
    """Return the files that exist here and are the same as when they were run."""
    return [
        Path(shortened(source))
        for source, known in sorted(results.digests.items())
        if Path(source).is_file() and digest(target_of(Path(source)).source, {}) == known
    ]


def _joined(results: Results, files: Sequence[Path], python: Path | None, config: Path | None) -> Report:
    """Return a report with the results of runs, and the findings that they confirm or contradict."""
    settings = settings_of(files, python, config) if files else Settings()
    project = Project(settings, files)
    rules = rules_of(settings)
    project.observe(observations(project, results.sorted()))
    found = check(project, rules)
    weighed = weigh(project, found, results.sorted(), rules)
    findings = tuple(finding for finding in weighed.findings if finding.evidence)
    return Report(project, findings, files=found.files, unsafe=True, runs=results, weighed=weighed)
