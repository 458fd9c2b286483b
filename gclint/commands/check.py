"""The command ``gclint check``: finds and repairs defects.

LibCST, rich and the rules are imported where they are needed, so that ``gclint --help`` is quick.
"""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gclint import __version__
from gclint.commands import (
    QUIET,
    CannotRun,
    GivenPath,
    name_leftovers,
    paths_argument,
    printed_notes,
    rules_of,
    settings_of,
    settle_interrupted_fixes,
)
from gclint.commands.cache import store_of_run
from gclint.commands.check_options import CheckOptions
from gclint.commands.options import GroupedCommand, config_option, option_group, pop_settings, setting_options
from gclint.commands.output import (
    origin,
    output_options,
    page_option,
    require_page,
    write_output_files,
    write_page,
)
from gclint.commands.runs import proven, run_options
from gclint.commands.standard_input import StandardInput, standard_input, standard_input_option
from gclint.interruption import exit_status
from gclint.report.formats import print_report
from gclint.trace import phase

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence, Set

    from gclint.cache.store import Store
    from gclint.engine.baseline import Baseline, Selection
    from gclint.engine.check import CheckResult
    from gclint.engine.memory import Memory
    from gclint.engine.proof import Proof
    from gclint.finding import Finding
    from gclint.report.report import Report
    from gclint.rule import Rule
    from gclint.settings import Settings
    from gclint.source.discovery import Survey
    from gclint.source.project import Project

# With fewer files, a run ends before a progress bar would be of use.
_FILES_WORTH_A_PROGRESS_BAR = 50

_DEFAULT_BASE = "origin/main"
_FILE = click.Path(path_type=Path)


_repair = option_group("Repair")
_rules = option_group("Rules")
_surroundings = option_group("Versions of transformers")
_files = option_group("Files")
_output = option_group("Output")
_changes = option_group("Changed files only")
_cache = option_group("Cache")
_baselines = option_group("Baselines")
_verify = option_group("Verify repairs")


@click.command(
    "check",
    cls=GroupedCommand,
    short_help="Find and repair what breaks checkpointing (the default).",
)
@paths_argument
@_repair("--fix", is_flag=True, help="Make all safe fixes.")
@setting_options(_repair, "unsafe-fixes")
@_repair("--show-fixes", is_flag=True, help="List the repairs, and why a fix is unsafe.")
@_repair(
    "--add-ignores",
    is_flag=True,
    help="Add '# gclint: ignore[CODE]' comments for the findings that remain.",
)
@_repair("--diff", is_flag=True, help="Print what --fix would change, without writing anything.")
@_repair("--summary", metavar="FILE", type=_FILE, help="Write a Markdown summary of the repairs to FILE.")
@setting_options(_rules, "select", "extend-select", "ignore", "per-file-ignores", "preview")
@setting_options(_files, "include", "exclude", "extend-exclude")
@standard_input_option(_files)
@setting_options(_surroundings, "target-version", "library")
@output_options(_output, default=None)
@_cache(
    "--cache-dir",
    metavar="DIR",
    type=GivenPath(path_type=Path),
    help="Keep the cache in this folder.  [default: in the user's cache folder]",
)
@_cache("--no-cache", is_flag=True, help="Neither read nor write the cache.")
@_output("--statistics", is_flag=True, help="Print the number of findings per rule instead of the findings.")
@_output("--exit-zero", is_flag=True, help="Exit with 0 even if findings remain.")
@_changes(
    "--changed-only", is_flag=True, help="Report only findings in files that changed or depend on a change."
)
@_changes(
    "--base-ref",
    metavar="REF",
    help=f"Compare with the merge base of HEAD and REF.  [default: {_DEFAULT_BASE}]",
)
@_changes("--staged", is_flag=True, help="Compare what is staged for the next commit with HEAD.")
@setting_options(_baselines, "baseline")
@_baselines("--write-baseline", metavar="FILE", type=_FILE, help="Write all findings to FILE.")
@_verify(
    "--verify", is_flag=True, help=("Run the repaired models, and write only the repairs that are proven.")
)
@_verify("--resume", is_flag=True, help="Continue an interrupted run of --verify.")
@page_option(_verify)
@run_options(_verify, "Check files and run models in N processes at once.  [default: as many as pay off]")
@config_option(click.option)
@click.option("--quiet", "-q", is_flag=True, help="Print only findings and errors.")
@click.option(
    "--verbose", "-v", is_flag=True, help="Also print which settings and files are read or skipped."
)
@click.version_option(__version__, prog_name="gclint", message="%(prog)s %(version)s")
@click.pass_context
def check_command(
    context: click.Context,
    /,
    paths: tuple[Path, ...],
    config: Path | None,
    **flags: Any,
) -> None:
    """Find what breaks gradient checkpointing in modeling files, and repair it.

    PATHS are files and folders, by default the current folder. In folders, files named modeling_*.py
    and modular_*.py are checked, and those that --include adds. A single '-' is standard input.

    The exit status is 0 if no findings are left, 1 if there are some, and 2 if something went wrong.
    """
    given = pop_settings(flags)
    context.meta[QUIET] = flags["quiet"]
    options = CheckOptions.of(flags, given)
    complaint = options.complaint()
    if complaint:
        raise click.UsageError(complaint)
    require_page(options.page_path)
    with standard_input(paths, options) as incoming:
        status = _checked(paths or (Path(),), config, given, options, incoming)
    context.exit(status)


def _checked(
    paths: tuple[Path, ...],
    config: Path | None,
    given: Mapping[str, Any],
    options: CheckOptions,
    incoming: StandardInput | None,
) -> int:
    """Check, repair and report; return the exit status."""
    from gclint.source.project import Project

    if incoming is not None:
        paths = (incoming.path,)
    with phase("settings"):
        settings = settings_of(paths, options.python, config, given)
    rules, options = rules_of(settings), options.settled(settings)
    found = _surveyed(paths, settings, options, incoming)
    project = Project(settings, found.files, within=paths)
    if incoming is not None:
        incoming.put_in(project)
    selection = _selection(project, paths, options)
    store = store_of_run(options.cache_dir, quiet=options.quiet, verbose=options.verbose)
    from gclint.engine.check import CheckInterrupted

    try:
        result, proofs = _run(settings, rules, selection, options, store)
    except CheckInterrupted as error:
        _print_interrupted(selection, error.result, options)
        return exit_status(error)
    ignored: Mapping[Path, int] = {}
    if options.add_ignores:
        from gclint.engine.fix import with_ignores

        result, ignored = with_ignores(project, result, selection.reported(result.findings), rules)
    with phase("survey"):
        settle_interrupted_fixes([path for path in project.read if path not in project.given])
    narrowed, recognised = selection.narrowed(result)
    report = replace(
        _written(project, narrowed, options, incoming, ignored),
        proofs=proofs,
        recognised=recognised,
        unknown_bases=_unknown_bases(project, options),
        unparsed=project.unparsed,
    )
    report = _printed(project, report, found, options)
    if store is not None and options.only_reports:
        _keep(store, report, options)
    return report.exit_status


def _keep(store: Store, report: Report, options: CheckOptions) -> None:
    """Store the report for the next time that the same command runs."""
    from gclint.report.known import Shown, keep
    from gclint.trace import current

    trace = current()
    if trace is not None:
        notes = tuple(printed_notes())
        keep(store, sys.argv[1:], trace, report, Shown(options.output_format, options.statistics, notes))


def _surveyed(
    paths: Sequence[Path], settings: Settings, options: CheckOptions, incoming: StandardInput | None
) -> Survey:
    """Return the files to check, after finishing or undoing interrupted writes of fixes among them."""
    from gclint.source.discovery import survey

    with phase("survey"):
        may_be_empty = options.staged  # A commit may delete the last model.
        found = incoming.survey(settings) if incoming else survey(paths, settings, may_be_empty=may_be_empty)
        settle_interrupted_fixes([*paths, *found.files], recover=options.writes and incoming is None)
        name_leftovers(paths, found.files)
    if options.verbose:
        _print_survey(settings, found)
        if options.writes and incoming is None:
            _print_obstacle(paths)
    return found


def _printed(project: Project, report: Report, found: Survey, options: CheckOptions) -> Report:
    """Print the report and write all files that were asked for; return the report with errors in writing."""
    from gclint.report import full

    report = replace(
        report,
        problems=(*found.problems, *report.problems),
        overlooked=tuple(found.overlooked),
        outside=tuple(found.outside),
        shows_fixes=options.show_fixes,
        quiet=options.quiet,
        baseline=options.baseline,
    )
    report = _show(project, replace(report, exit_status=_exit_status(report, options)), options)
    report = replace(report, exit_status=_exit_status(report, options))
    full.write_notices(report, sys.stderr)
    # A closed pipe is handled here; at exit it would cause a traceback.
    sys.stdout.flush()
    if options.page_path is not None:
        from gclint.report.page.building import page

        write_page(options.page_path, page(report, origin()))
    return report


def _print_interrupted(selection: Selection, result: CheckResult, options: CheckOptions) -> None:
    """Print what was found before an interruption, in a format for people.

    Other programs would take the files that were not checked for files without findings.
    """
    from gclint.report.findings import counted
    from gclint.report.printing import write_lines
    from gclint.report.report import Report

    is_reading = not (options.writes or options.diff or options.write_baseline)
    if options.is_for_people and is_reading:
        found, _ = selection.narrowed(result)
        report = Report(selection.project, found.findings, found.problems, found.files, quiet=options.quiet)
        print_report(report, options.output_format, statistics=options.statistics)
        sys.stdout.flush()
    files = len(selection.project.paths)
    what = f"{files - len(result.verdicts)} of {counted(files, 'file')} not checked"
    write_lines((f"Interrupted: {what}{'' if is_reading else ', and nothing written'}.",), sys.stderr)


def _print_survey(settings: Settings, found: Survey) -> None:
    """Print which settings are used, how many files are checked, and what is skipped and why."""
    from gclint.report.findings import counted
    from gclint.report.printing import write_lines
    from gclint.source.paths import shown

    where = shown(settings.file) if settings.file else "no settings file; using the defaults"
    skipped = (f"Skipped {shown(path)}: {reason}" for path, reason in found.skipped)
    last = f"Checking {counted(len(found.files), 'file')}."
    write_lines((f"Settings: {where}", *skipped, last), sys.stderr)


def _print_obstacle(paths: Sequence[Path]) -> None:
    """Print why there is no place for a journal, if there is none."""
    from gclint.engine.journal import obstacle

    why = obstacle(paths)
    if why is not None:
        click.echo(f"No journal is kept ({why}), so nobody can finish a write that is killed.", err=True)


def _progress(files: int) -> AbstractContextManager[Callable[[Path], None]]:
    if files < _FILES_WORTH_A_PROGRESS_BAR or not sys.stderr.isatty():
        return nullcontext(lambda _path: None)
    from gclint.report.terminal import progress_bar

    return progress_bar(sys.stderr, files)


def _selection(project: Project, paths: Sequence[Path], options: CheckOptions) -> Selection:
    from gclint.engine.baseline import Selection

    return Selection(project, paths, _changed(project, options), _baseline(options))


def _changed(project: Project, options: CheckOptions) -> Set[Path] | None:
    if not options.changed_only:
        return None
    from gclint.source.changes import ChangesUnknown, changed_files, staged_files

    try:
        if options.staged:
            return staged_files(project.paths)
        return changed_files(project.paths, options.base_ref or _DEFAULT_BASE)
    except ChangesUnknown as error:
        raise CannotRun(str(error)) from None


def _baseline(options: CheckOptions) -> Baseline | None:
    if options.baseline is None:
        return None
    from gclint.engine.baseline import Baseline, BaselineError

    try:
        return Baseline.read(options.baseline)
    except BaselineError as error:
        raise CannotRun(str(error)) from None


def _run(
    settings: Settings,
    rules: Sequence[Rule],
    selection: Selection,
    options: CheckOptions,
    store: Store | None,
) -> tuple[CheckResult, tuple[Proof, ...] | None]:
    from gclint.engine.check import check
    from gclint.engine.fix import fix
    from gclint.engine.jobs import fitting_jobs

    if options.verify:
        return proven(settings, rules, selection, options)
    project = selection.project
    jobs = options.jobs or fitting_jobs(project.paths)
    with _progress(len(project.paths)) as advance:
        found = check(project, rules, advance, jobs, _memory(settings, rules, selection.paths, store))
        if not (options.fix or options.diff or options.add_ignores):
            return found, None
        wanted = selection.reported if options.repairs else partial(_about_comments, selection, rules)
        return fix(project, rules, unsafe=options.unsafe_fixes, wanted=wanted, known=found), None


def _memory(
    settings: Settings, rules: Sequence[Rule], paths: Sequence[Path], store: Store | None
) -> Memory | None:
    """Return the verdicts of earlier runs in the cache; None if no cache is used."""
    if store is None:
        return None
    from gclint.engine.memory import Memory
    from gclint.settings.settings import working_directory

    codes = [each.code for each in rules]
    return Memory(store, (settings, codes, paths, working_directory()))


def _about_comments(
    selection: Selection, rules: Sequence[Rule], findings: Sequence[Finding]
) -> Sequence[Finding]:
    """Return the findings about ignore comments, so that unused ones are removed before others are added."""
    codes = {rule.code for rule in rules if not rule.changes_code}
    return [finding for finding in selection.reported(findings) if finding.code in codes]


def _unknown_bases(project: Project, options: CheckOptions) -> tuple[str, ...]:
    if not options.is_for_people or options.diff or options.write_baseline:
        return ()
    from gclint.network.unknown import unknown_bases

    return unknown_bases(project)


def _written(
    project: Project,
    result: CheckResult,
    options: CheckOptions,
    incoming: StandardInput | None,
    ignored: Mapping[Path, int],
) -> Report:
    """Write the repaired files, and return the report."""
    from gclint.engine.fix import FixResult
    from gclint.report.report import Repairs, Report

    report = Report(project, result.findings, result.problems, result.files, options.unsafe_fixes)
    if not isinstance(result, FixResult):
        return report
    from gclint.engine.units import written_together
    from gclint.engine.write import write_all

    unwritten = []
    if incoming is not None:
        incoming.take(project, result.changed)
    elif options.writes:
        unwritten = write_all(project, result.changed, written_together(project, result))
    failed = {problem.path for problem in unwritten}
    lost = sum(number for path, number in ignored.items() if path in failed)
    report = replace(report, ignored=sum(ignored.values()) - lost, unignored=lost)
    return replace(report, repairs=Repairs.of(result.applied, result.changed, failed)).also(unwritten)


def _show(project: Project, report: Report, options: CheckOptions) -> Report:
    """Print or write what the options ask for; return the report with errors in writing."""
    from gclint.report import full

    if options.summary:
        from gclint.engine.write import write_text
        from gclint.report.markdown import markdown

        report = report.also(write_text(options.summary, markdown(report)))
    if options.diff:
        from gclint.report.diff import write_diff

        report = report.also(write_diff(sys.stdout, report.repairs.changed))
        full.write_diff_notices(report, sys.stderr)
    elif options.write_baseline:
        from gclint.engine.baseline import Baseline
        from gclint.engine.write import write_text

        baseline = Baseline.of(options.write_baseline, project, report.findings)
        problems = write_text(options.write_baseline, baseline.text)
        report = report.also(problems)
        if not problems:
            full.write_baseline_summary(report, baseline, sys.stdout)
    else:
        report = report.also(write_output_files(report, options.output_files))
        print_report(report, options.output_format, statistics=options.statistics)
    return report


def _exit_status(report: Report, options: CheckOptions) -> int:
    if report.problems:
        return 2
    return int(_is_something_left(report, options) and not options.exit_zero)


def _is_something_left(report: Report, options: CheckOptions) -> bool:
    if options.write_baseline:
        return False
    is_stale = report.recognised is not None and bool(report.recognised.stale)
    return bool(report.findings or is_stale or (options.diff and report.repairs.changed))
