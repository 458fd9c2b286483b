"""The command ``gclint check``: finds, and repairs.

LibCST, rich and the rules are imported where they are needed, so that ``gclint --help`` is quick.
"""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gclint import __version__
from gclint.commands import CannotRun, paths_argument
from gclint.commands.option_groups import GroupedCommand, option_group
from gclint.commands.run_options import run_options, run_settings

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gclint.engine.check import CheckResult
    from gclint.engine.fix import FixResult
    from gclint.engine.selection import Recognised, Selection
    from gclint.finding import Problem
    from gclint.report.summary import Sweep
    from gclint.rule import Rule
    from gclint.settings import Settings
    from gclint.source.project import Project

# A run over fewer files is over before anybody wonders whether it is still alive.
_FILES_WORTH_A_PROGRESS_BAR = 50

_DEFAULT_BASE = "origin/main"
_FILE = click.Path(path_type=Path)


@dataclass(frozen=True)
class _Options:
    """What the user asks of a run, beside the files and the rules."""

    fix: bool
    unsafe_fixes: bool
    diff: bool
    output_format: str
    statistics: bool
    changed_only: bool
    base_ref: str | None
    baseline: Path | None
    write_baseline: Path | None
    summary: Path | None
    exit_zero: bool
    verify: bool
    python: Path | None
    device: str | None
    jobs: int | None
    time_limit: float | None
    memory_limit: float | None

    @property
    def about_runs(self) -> tuple[Path | None, str | None, int | None, float | None, float | None]:
        """How models are run."""
        return self.python, self.device, self.jobs, self.time_limit, self.memory_limit

    def complaint(self) -> str | None:
        """Return why the options do not go together, or None if they do."""
        no_list = self.statistics or self.output_format != "text"
        if self.diff and no_list:
            return "--diff prints a diff, so it takes neither --statistics nor --output-format"
        if self.base_ref is not None and not self.changed_only:
            return "--base-ref says what --changed-only compares with, so it needs that"
        if self.summary and not (self.fix or self.diff):
            return "--summary tells what was repaired, so it needs --fix or --diff"
        if self.verify and not (self.fix or self.diff):
            return "--verify runs what --fix or --diff would write; 'gclint verify' runs models as they are"
        if any(self.about_runs) and not self.verify:
            return "--python, --device, --jobs and the limits say how --verify runs models, so they need that"
        if self.write_baseline:
            if self.diff:
                return "--diff writes nothing, so it does not go with --write-baseline"
            if self.baseline or self.changed_only:
                return (
                    "--write-baseline writes all findings, so it takes neither --baseline nor --changed-only"
                )
            if no_list:
                return (
                    "--write-baseline takes neither --statistics nor --output-format: it prints no findings"
                )
        return None


def _selectors(_context: click.Context, _option: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(part.strip() for value in values for part in value.split(",") if part.strip())


_repair = option_group("Repair")
_selection_of_rules = option_group("Rules")
_output = option_group("Output")
_changes = option_group("Changed files only")
_baselines = option_group("Baselines")
_verify = option_group("Verify repairs")


@click.command(
    "check",
    cls=GroupedCommand,
    short_help="Find and repair what breaks checkpointing (the default).",
)
@paths_argument
@_repair("--fix", is_flag=True, help="Make all safe fixes.")
@_repair("--unsafe-fixes", is_flag=True, help="Include fixes that someone must review.")
@_repair("--diff", is_flag=True, help="Print what --fix would change, and write nothing.")
@_repair("--summary", metavar="FILE", type=_FILE, help="Write what was repaired to FILE, as Markdown.")
@_selection_of_rules(
    "--select",
    metavar="RULES",
    multiple=True,
    callback=_selectors,
    help="Run only these rules: codes, prefixes or names, separated by commas.",
)
@_selection_of_rules(
    "--ignore",
    metavar="RULES",
    multiple=True,
    callback=_selectors,
    help="Do not run these rules, even if they are selected.",
)
@_output(
    "--output-format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Print findings as text or as JSON.",
)
@_output("--statistics", is_flag=True, help="Print how many findings each rule has, instead of the findings.")
@_output("--exit-zero", is_flag=True, help="Exit with 0 even if findings are left.")
@_changes(
    "--changed-only", is_flag=True, help="Report findings only in files that changed or depend on a change."
)
@_changes(
    "--base-ref",
    metavar="REF",
    help=f"Compare with the merge base of HEAD and REF.  [default: {_DEFAULT_BASE}]",
)
@_baselines("--baseline", metavar="FILE", type=_FILE, help="Do not report the findings in FILE.")
@_baselines("--write-baseline", metavar="FILE", type=_FILE, help="Write all findings to FILE.")
@_verify("--verify", is_flag=True, help="Run the repaired models, and write only repairs that are proven.")
@run_options(_verify)
@click.version_option(__version__, prog_name="gclint", message="%(prog)s %(version)s")
@click.pass_context
def check_command(
    context: click.Context,
    /,
    paths: tuple[Path, ...],
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    **flags: Any,
) -> None:
    """Find what breaks gradient checkpointing in modeling files, and repair it.

    PATHS are files and folders, by default the current folder. In folders, files named modeling_*.py
    and modular_*.py are checked.

    The exit status is 0 if no findings are left, 1 if there are some, and 2 if something went wrong.
    """
    options = _Options(**flags)
    complaint = options.complaint()
    if complaint:
        raise click.UsageError(complaint)
    from gclint.report import text
    from gclint.source.discovery import discover
    from gclint.source.project import Project

    paths = paths or (Path(),)
    settings, rules = _settings_and_rules(paths, select, ignore)
    project = Project(settings)
    files, problems = discover(paths, settings)
    selection = _selection(project, paths, files, options)
    result, recognised = selection.narrowed(_run(files, rules, selection, options))
    problems += result.problems
    problems += _finish(project, result, recognised, options)
    text.write_problems(sys.stderr, problems)
    # Now, while a closed pipe can still be told from a failure; at exit it would be a traceback.
    sys.stdout.flush()
    is_left = _is_something_left(result, recognised, options)
    context.exit(2 if problems else int(is_left and not options.exit_zero))


def _settings_and_rules(
    paths: Sequence[Path], select: tuple[str, ...], ignore: tuple[str, ...]
) -> tuple[Settings, list[Rule]]:
    from gclint.rule import all_rules
    from gclint.settings import SettingsError, common_folder, load_settings, unknown_selectors

    try:
        settings = load_settings(common_folder(paths)).overridden(select, ignore)
    except SettingsError as error:
        raise CannotRun(str(error)) from None
    unknown = unknown_selectors((*settings.select, *settings.ignore), all_rules())
    if unknown:
        raise click.UsageError(f"there is no rule {unknown[0]!r}; 'gclint rules' lists them")
    return settings, [rule for rule in all_rules() if settings.wants(rule)]


def _progress(files: int) -> AbstractContextManager[Callable[[Path], None]]:
    if files < _FILES_WORTH_A_PROGRESS_BAR or not sys.stderr.isatty():
        return nullcontext(lambda _path: None)
    from gclint.report.terminal import progress_bar

    return progress_bar(sys.stderr, files)


def _selection(
    project: Project, paths: Sequence[Path], files: Sequence[Path], options: _Options
) -> Selection:
    from gclint.engine.baseline import Baseline, BaselineError
    from gclint.engine.selection import Selection
    from gclint.source.changes import ChangesUnknown, changed_files

    try:
        baseline = Baseline.read(options.baseline) if options.baseline else None
        changed = changed_files(files, options.base_ref or _DEFAULT_BASE) if options.changed_only else None
    except (BaselineError, ChangesUnknown) as error:
        raise CannotRun(str(error)) from None
    return Selection(project, paths, changed, baseline)


def _run(
    files: Sequence[Path], rules: Sequence[Rule], selection: Selection, options: _Options
) -> CheckResult:
    from gclint.engine.check import check
    from gclint.engine.fix import fix

    with _progress(len(files)) as advance:
        if not (options.fix or options.diff):
            return check(selection.project, files, rules, advance)
        repaired = fix(
            selection.project,
            files,
            rules,
            unsafe=options.unsafe_fixes,
            advance=advance,
            wanted=selection.reported,
        )
    return _proven(selection.project, repaired, rules, options) if options.verify else repaired


def _proven(project: Project, repaired: FixResult, rules: Sequence[Rule], options: _Options) -> FixResult:
    """Run the repaired files, say what came out, and return what is proven."""
    from gclint.engine.proof import prove
    from gclint.engine.transaction import proven_only
    from gclint.report.proofs import write_proofs
    from gclint.verify.files import NothingRuns, runner

    try:
        proofs = prove(project, repaired, runner(run_settings(*options.about_runs)))
    except (NothingRuns, OSError) as error:
        raise CannotRun(f"nothing was repaired, since nothing could be run: {error}") from None
    # What goes on with a list of findings, or a diff, reads standard output.
    write_proofs(sys.stderr if options.diff or options.output_format != "text" else sys.stdout, proofs)
    return proven_only(project, repaired, proofs, rules)


def _finish(
    project: Project, result: CheckResult, recognised: Recognised, options: _Options
) -> list[Problem]:
    """Write the files, print what came out, and return what could not be written."""
    from gclint.engine.baseline import Baseline
    from gclint.engine.fix import FixResult
    from gclint.engine.write import write_all, write_text
    from gclint.report import text
    from gclint.report.summary import Sweep, markdown

    applied, changed = (result.applied, result.changed) if isinstance(result, FixResult) else ([], {})
    problems = [] if options.diff else write_all(project, changed)
    sweep = Sweep.of(project, changed, applied, result.findings, {problem.path for problem in problems})
    if options.summary:
        problems += write_text(options.summary, markdown(sweep))
    if options.diff:
        _show_diff(changed, sweep)
    elif options.write_baseline:
        baseline = Baseline.of(options.write_baseline, project, result.findings)
        problems += write_text(options.write_baseline, baseline.text)
        print(text.baseline_summary(baseline, fixed=len(sweep.repaired)))
    else:
        _show_result(project, result, sweep, options)
    if options.baseline:
        text.write_recognised(sys.stderr, options.baseline, recognised)
    return problems


def _show_result(project: Project, result: CheckResult, sweep: Sweep, options: _Options) -> None:
    from gclint.report.summary import closing_lines
    from gclint.report.text import summary

    if options.statistics:
        _show_statistics(result, options)
    else:
        _show_findings(project, result, options)
    if options.output_format == "text":
        fixed, lost = len(sweep.repaired), len(sweep.left) - len(result.findings)
        closing = summary(result, fixed=fixed, lost=lost, unsafe=options.unsafe_fixes)
        print(closing, *closing_lines(sweep), sep="\n")


def _show_findings(project: Project, result: CheckResult, options: _Options) -> None:
    if options.output_format == "json":
        from gclint.report import json

        json.write_findings(sys.stdout, project, result.findings)
    else:
        from gclint.report import text

        text.write_findings(sys.stdout, project, result.findings, unsafe=options.unsafe_fixes)


def _show_statistics(result: CheckResult, options: _Options) -> None:
    from gclint.report import statistics

    counts = statistics.count_by_rule(result.findings, unsafe=options.unsafe_fixes)
    write = statistics.write_json if options.output_format == "json" else statistics.write_text
    write(sys.stdout, counts)


def _show_diff(changed: dict[Path, tuple[str, str]], sweep: Sweep) -> None:
    from gclint.report.diff import write_diff
    from gclint.report.summary import closing_lines
    from gclint.report.text import diff_summary

    write_diff(sys.stdout, changed)
    closing = diff_summary(fixed=len(sweep.repaired), changed=len(changed), left=len(sweep.left))
    print(closing, *closing_lines(sweep), sep="\n", file=sys.stderr)


def _is_something_left(result: CheckResult, recognised: Recognised, options: _Options) -> bool:
    from gclint.engine.fix import FixResult

    if options.write_baseline:
        return False
    would_change = options.diff and isinstance(result, FixResult) and result.changed
    return bool(result.findings or recognised.stale or would_change)
