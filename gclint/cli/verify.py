"""The command ``gclint verify``: runs models, and turns the results into output and an exit status."""

from __future__ import annotations

import os
import re
import shlex
import sys
import traceback
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from gclint.cli import (
    CannotRun,
    GivenPath,
    name_leftovers,
    paths_argument,
    print_once,
    rules_of,
    settings_of,
    settle_interrupted_fixes,
)
from gclint.cli.options import (
    FILE_TYPE,
    DefaultGroup,
    GroupedCommand,
    choice_option,
    config_option,
    option_group,
    pop_settings,
    setting_options,
    taken,
    together,
)
from gclint.cli.output import (
    OutputFile,
    clash,
    output_options,
    page_option,
    require_page,
    write_output_files,
    write_page,
)
from gclint.cli.runs import RunOptions, results_of_user, run_display, run_options
from gclint.cli.upstream import require_new_folder, with_sources, write_scripts, write_upstream
from gclint.code.discovery import Survey
from gclint.code.paths import shortened, shown
from gclint.code.project import Project
from gclint.interruption import exit_status
from gclint.proof.evidence import observations, weigh
from gclint.report.formats import FORMATS, formats_of_runs, written_as
from gclint.report.full import write_notices
from gclint.report.printing import write_lines
from gclint.report.report import Report
from gclint.run.check import check
from gclint.settings import Settings
from gclint.userfolder import UserFolder, key_of, own_file
from gclint.verify import results_file
from gclint.verify.files import Audience
from gclint.verify.process import EXECUTORS
from gclint.verify.results import Results, UnusableResults
from gclint.verify.run import ReceivedMessage, verify
from gclint.verify.settings import RunSettings
from gclint.verify.sources import (
    Target,
    UnknownModel,
    defining,
    digest,
    installed_models,
    shard,
    target_of,
    targets_of,
)
from gclint.verify.worker.class_settings import ClassSettings
from gclint.verify.worker.practices import ALL, PRACTICES, UnknownPractice, groups, practices_named

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
_shown = together(
    [
        output_options(_results, formats_of_runs()),
        _results("--verbose", "-v", is_flag=True, help="Also list the classes that passed."),
        _results(
            "--write-repro",
            metavar="DIR",
            type=click.Path(path_type=Path, file_okay=False),
            help="For each failed class, write a script that reproduces the failure without gclint.",
        ),
        page_option(_results),
    ]
)


@dataclass(frozen=True)
class _Output:
    """The options about what is printed and written of results."""

    output_format: str
    output_files: tuple[OutputFile, ...]
    verbose: bool
    write_repro: Path | None
    page_path: Path | None

    @classmethod
    def taken_from(cls, flags: dict[str, Any], *others: Path | None) -> _Output:
        """Remove these options from ``flags``, and make sure that they name none of the ``others``."""
        output = taken(cls, flags)
        require_page(output.page_path)
        if complaint := clash(output.output_files, (output.page_path, *others)):
            raise click.UsageError(complaint)
        return output

    def write(self, report: Report, results: Results, repeat: str) -> int:
        """Print the report, write all that was asked for, and return the exit status."""
        report = replace(report, verbose=self.verbose)
        report = report.also(write_output_files(report, self.output_files))
        written_as(self.output_format)(report, sys.stdout)
        if self.write_repro is not None:
            write_scripts(self.write_repro, results)
        write_notices(report, sys.stderr)
        sys.stdout.flush()
        if self.page_path is not None:
            write_page(self.page_path, report, repeat)
        return 2 if report.problems else results.exit_status


@click.command("run", cls=GroupedCommand, short_help="Run models and compare (the default).")
@paths_argument
@_models(
    "--model",
    "models",
    metavar="NAME",
    multiple=True,
    help="Run a model of the installed transformers, such as bert or 'qwen*'.",
)
@_models(
    "--class",
    "classes",
    metavar="NAME",
    multiple=True,
    help="Run only this class, such as BertModel; can be repeated.",
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
@choice_option(
    *(_runs, "--executor", EXECUTORS),
    "Run models on this machine, or on a Ray cluster (that of RAY_ADDRESS, or a running one).",
    default=RunSettings.executor,
)
@_results(
    "--results",
    "results_path",
    metavar="FILE",
    type=GivenPath(path_type=Path, dir_okay=False),
    help="Write results to FILE as they arrive.  [default: a file of the user's, for the current folder]",
)
@_results(
    "--resume", is_flag=True, help="Keep the results in that file, and run only what is new or changed."
)
@_results(
    "--upstream",
    metavar="DIR",
    type=click.Path(path_type=Path, file_okay=False),
    help="For each defect, write what the library's maintainers need into DIR: cause, script, diff.",
)
@_shown
@click.pass_context
def run(
    context: click.Context,
    /,
    paths: tuple[Path, ...],
    models: tuple[str, ...],
    classes: tuple[str, ...],
    config: Path | None,
    practices: tuple[str, ...],
    part: tuple[int, int],
    executor: str,
    results_path: Path | None,
    resume: bool,
    upstream: Path | None,
    **about_runs: Any,
) -> None:
    """Train each model for a few steps, with and without gradient checkpointing, and compare.

    PATHS are modeling files and folders, by default the current folder. Each class is built with a tiny
    random configuration. Nothing is downloaded.

    The exit status is 0 if everything passed, 1 if something failed, and 2 if something could not be run.
    """
    output = _Output.taken_from(about_runs, results_path)
    require_new_folder(upstream)
    of_files = settings_of(paths or (Path(),), None, config, pop_settings(about_runs))
    known = of_files.known if paths or not models or config else _without_code(of_files.known)
    options = taken(RunOptions, about_runs)
    settings = replace(options.settings(known), classes=classes, practices=practices, executor=executor)
    targets, found = _targets(paths, models, of_files, settings)
    settle_interrupted_fixes([*paths, *(target.path for target in targets)])
    name_leftovers(paths, [target.path for target in targets])
    with nullcontext() if results_path else results_of_user() as folder:
        place = folder.path / f"{key_of(Path())}-verify.jsonl" if folder else results_path
        with _errors_in_one_line(context, place):
            header = results_file.header(targets, settings, part)
            targets = shard(targets, *part)
            with (
                _results_file(place, folder, header, resume=resume) as written,
                run_display(is_shown=FORMATS[output.output_format].is_for_people) as audience,
            ):
                audience.expect(len(targets))
                results, interruption = _run(targets, settings, written, audience)
                if interruption is not None:
                    results.problem = f"the run was {_interrupted(place)}"
    files = [target.path for target in targets]
    if upstream is not None:
        files = with_sources(files)
    joined = _joined(results, files, settings.python, config)
    report = replace(joined, problems=tuple(found.problems), outside=tuple(found.outside))
    status = output.write(report, results, _repeat(options))
    if upstream is not None and interruption is None:
        write_upstream(upstream, report, settings)
    context.exit(status if interruption is None else exit_status(interruption))


@contextmanager
def _errors_in_one_line(context: click.Context, results: Path | None) -> Iterator[None]:
    """Report any error that ends a run in one line; earlier results are in the file ``results``."""
    place = "" if results is None else f"the results so far are in {shown(results)}"
    try:
        yield
    except (UnusableResults, OSError) as error:
        raise CannotRun(_message(error)) from None
    except KeyboardInterrupt as error:
        write_lines((f"The run was {_interrupted(results)}.",), sys.stderr)
        context.exit(exit_status(error))
    except click.ClickException:
        raise
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        raise CannotRun(
            f"this is a bug in gclint: {type(error).__name__}: {error} ({last.filename}:{last.lineno})"
            f"{place and f'; {place}'}"
        ) from None


@click.command("merge", cls=GroupedCommand, short_help="Merge the results of shards.")
@click.argument("files", nargs=-1, required=True, type=FILE_TYPE)
@_shown
@click.pass_context
def merge(context: click.Context, /, files: tuple[Path, ...], **flags: Any) -> None:
    """Merge the results of all shards of a run. FILES are the files that --results named."""
    output = _Output.taken_from(flags, *files)
    try:
        results = results_file.merge(files)
    except (UnusableResults, OSError) as error:
        raise CannotRun(_message(error)) from None
    files_at_hand = _unchanged(results)
    settle_interrupted_fixes(files_at_hand)
    context.exit(output.write(_joined(results, files_at_hand, None, None), results, "gclint verify"))


verify_group = DefaultGroup("verify", default=run, others=[merge], examples=_EXAMPLES)


def _targets(
    paths: tuple[Path, ...], models: tuple[str, ...], of_files: Settings, settings: RunSettings
) -> tuple[list[Target], Survey]:
    targets: list[Target] = []
    found = Survey([], [], [])
    try:
        if models:
            targets += [target_of(path) for path in installed_models(settings.python, models)]
        if paths or not models:
            paths = paths or (Path(),)
            own, found = targets_of(paths, of_files)
            targets += own
        if settings.classes:
            targets = defining(targets, settings.classes)
    except UnknownModel as error:
        raise CannotRun(str(error)) from None
    except OSError as error:
        raise CannotRun(f"{settings.python} cannot be started: {error.strerror or error}") from None
    by_path = {target.source.path: target for target in targets}
    return [by_path[path] for path in sorted(by_path)], found


def _without_code(known: Iterable[ClassSettings]) -> tuple[ClassSettings, ...]:
    """Return the settings of classes that name no function of the project in the current folder.

    Whoever runs models by name alone has not asked to run anything of what lies there.
    """
    for each in known:
        if each.inputs is not None:
            print_once(
                f"note: inputs in {each.origin} is not used, since --model alone runs no code of the current "
                "folder; to use it, pass the settings file with --config"
            )
    return tuple(replace(each, inputs=None) for each in known)


def _run(
    targets: Sequence[Target],
    settings: RunSettings,
    written: results_file.ResultsFile | None,
    audience: Audience,
) -> tuple[Results, KeyboardInterrupt | None]:
    """Run the targets, and return the results, as far as they go, with what interrupted the run."""

    def listen(received: ReceivedMessage) -> None:
        if written is not None:
            written.write(received)
        audience.take(received)

    earlier = None if written is None else written.earlier
    results = Results()
    try:
        verify(targets, settings, listen, earlier, results=results)
    except KeyboardInterrupt as error:
        return results, error
    if written is not None and not results.problem:
        written.finish()
    return results, None


def _interrupted(results: Path | None) -> str:
    """Return what happened to a run, and how to continue it if its results are in a file."""
    if results is None:
        return "interrupted"
    return f"interrupted; the results so far are in {shown(results)}, and --resume continues with them"


def _results_file(
    path: Path | None, folder: UserFolder | None, header: results_file.Header, *, resume: bool
) -> AbstractContextManager[results_file.ResultsFile | None]:
    """Open the file of results, which are about what the header says; none if there is no path.

    The folder is the user's own that the file is in; None if the user has named the file. With ``resume``,
    the results in the file are kept.
    """
    if path is None:
        return nullcontext()
    try:
        if folder is None:
            handle = own_file(path, is_believed=resume)
        else:
            handle = folder.open(path.name, os.O_RDWR | os.O_CREAT)
        return results_file.ResultsFile(handle, path, header, resume=resume)
    except OSError as error:
        raise UnusableResults(
            f"results cannot be written to {shown(path)}: {error.strerror}; choose another file with "
            "--results"
        ) from None


def _message(error: Exception) -> str:
    """Return the message of an error, with the file that it is about."""
    if isinstance(error, OSError) and error.filename is not None:
        return f"{shown(error.filename)}: {error.strerror}"
    return str(error)


def _repeat(options: RunOptions) -> str:
    """Return the command that runs files in the same way, without the files."""
    given = [(f"--{name.replace('_', '-')}", str(value)) for name, value in vars(options).items() if value]
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
