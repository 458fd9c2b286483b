"""The command ``gclint check``: finds and repairs defects.

LibCST, rich and the rules are imported where they are needed, so that ``gclint --help`` is quick.
"""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gclint import __version__
from gclint.cli import (
    QUIET,
    CannotRun,
    GivenPath,
    baseline_at,
    name_leftovers,
    paths_argument,
    printed_notes,
    rules_of,
    settings_of,
    settle_interrupted_fixes,
)
from gclint.cli.cache import store_of_run
from gclint.cli.check_options import CheckOptions, StandardInput, standard_input
from gclint.cli.options import (
    PATH_TYPE,
    GroupedCommand,
    config_option,
    option_group,
    pop_settings,
    setting_options,
)
from gclint.cli.output import (
    output_options,
    page_option,
    require_page,
    write_output_files,
    write_page,
)
from gclint.cli.runs import proven, run_options
from gclint.interruption import exit_status
from gclint.report.formats import written_as
from gclint.trace import phase
from gclint.wording import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence, Set

    from gclint.cache.store import Store
    from gclint.code.discovery import Survey
    from gclint.finding import Finding
    from gclint.proof.proving import Proof
    from gclint.report.report import Report
    from gclint.run.check import LintResult
    from gclint.run.memory import Memory

# With fewer files, a run ends before a progress bar would be of use.
_FILES_WORTH_A_PROGRESS_BAR = 50

_DEFAULT_BASE = "origin/main"


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
    "check", cls=GroupedCommand, short_help="Find and repair what breaks checkpointing (the default)."
)
@paths_argument
@_repair("--fix", is_flag=True, help="Make all safe fixes.")
@setting_options(_repair, "unsafe-fixes")
@_repair("--show-fixes", is_flag=True, help="List the repairs, and why a fix is unsafe.")
@_repair(
    "--add-ignores", is_flag=True, help="Add '# gclint: ignore[CODE]' comments for the findings that remain."
)
@_repair("--diff", is_flag=True, help="Print what --fix would change, without writing anything.")
@_repair("--summary", metavar="FILE", type=PATH_TYPE, help="Write a Markdown summary of the repairs to FILE.")
@setting_options(_rules, "select", "extend-select", "ignore", "per-file-ignores", "levels", "preview")
@setting_options(_rules, "extra-rules", "pure-functions")
@setting_options(_files, "include", "exclude", "extend-exclude")
@_files("--error-on-empty", is_flag=True, help="Exit with 2 if there is nothing to check in a given folder.")
@_files(
    "--stdin-filename",
    metavar="PATH",
    type=PATH_TYPE,
    help="Treat standard input ('-') as the file at PATH, which need not exist.",
)
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
@setting_options(_output, "fail-level")
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
@_baselines("--write-baseline", metavar="FILE", type=PATH_TYPE, help="Write all findings to FILE.")
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
    context: click.Context, /, paths: tuple[Path, ...], config: Path | None, **flags: Any
) -> None:
    """Find what breaks gradient checkpointing in modeling files, and repair it.

    PATHS are files and folders, by default the current folder. In folders, files named modeling_*.py
    and modular_*.py are checked, and those that --include adds. A single '-' is standard input.

    The exit status is 1 if errors or warnings are left, 0 if there are none, or only notes, and 2 if
    something went wrong.
    """
    given = pop_settings(flags)
    context.meta[QUIET] = flags["quiet"]
    options = CheckOptions.of(flags, given)
    complaint = options.complaint()
    if complaint:
        raise click.UsageError(complaint)
    require_page(options.page_path)
    with standard_input(paths, options) as incoming:
        status = _CheckRun(paths or (Path(),), config, given, options, incoming).status()
    context.exit(status)


class _CheckRun:
    """One run: what was asked for, and the files that it is about."""

    def __init__(
        self,
        paths: Sequence[Path],
        config: Path | None,
        given: Mapping[str, Any],
        options: CheckOptions,
        incoming: StandardInput | None,
    ) -> None:
        from gclint.code.project import Project
        from gclint.run.baseline import Selection

        self.incoming = incoming
        self.paths = paths if incoming is None else (incoming.path,)
        with phase("settings"):
            self.settings = settings_of(self.paths, options.run.python, config, given)
        self.rules, self.options = rules_of(self.settings), options.settled(self.settings)
        self.found = self._surveyed()
        self.settings = self.found.settings
        self.rules = rules_of(self.settings)
        self.project = Project(self.settings, self.found.files, within=self.paths)
        if incoming is not None:
            self.project.hold(incoming.path, incoming.data)
        changed, baseline = self._changed(), baseline_at(self.options.baseline)
        self.selection = Selection(self.project, self.paths, changed, baseline)
        self.store = store_of_run(options.cache_dir, quiet=options.quiet, verbose=options.verbose)

    def status(self) -> int:
        """Check, repair and report; return the exit status."""
        from gclint.run.check import CheckInterrupted

        project, options = self.project, self.options
        try:
            result, proofs = self._result()
        except CheckInterrupted as error:
            self._print_interrupted(error.result)
            return exit_status(error)
        ignored: Mapping[Path, int] = {}
        if options.add_ignores:
            from gclint.run.fix import with_ignores

            findings = self.selection.reported(result.findings)
            result, ignored = with_ignores(project, result, findings, self.rules)
        with phase("survey"):
            settle_interrupted_fixes([path for path in project.read if path not in project.given])
        result, recognised = self.selection.narrowed(result)
        report, empty = self._written(result, ignored), tuple(self.found.empty)
        report = replace(
            report,
            problems=(*self.found.problems, *(empty if options.error_on_empty else ()), *report.problems),
            # A commit may delete the last model.
            empty=() if options.error_on_empty or options.staged else empty,
            proofs=proofs,
            recognised=recognised,
            unknown_bases=self._unknown_bases(),
            assumed=self._assumed(report),
            unparsed=project.unparsed,
            overlooked=tuple(self.found.overlooked),
            outside=tuple(self.found.outside),
            shows_fixes=options.show_fixes,
            quiet=options.quiet,
            baseline=options.baseline,
            fail_level=self.settings.fail_level,
        )
        report = self._printed(report)
        if self.store is not None and options.only_reports and not self.settings.extra_rules:
            self._keep(self.store, report)
        return report.exit_status

    # -- before the check

    def _surveyed(self) -> Survey:
        """Return the files to check, after finishing or undoing interrupted writes of fixes among them."""
        from gclint.code.discovery import survey

        options, incoming = self.options, self.incoming
        writes = options.writes and incoming is None
        with phase("survey"):
            if incoming is not None:
                found = incoming.survey(self.settings)
            else:
                found = survey(self.paths, self.settings)
            settle_interrupted_fixes([*self.paths, *found.files], recover=writes)
            name_leftovers(self.paths, found.files)
        if options.verbose:
            _print_survey(found)
            if writes:
                _print_obstacle(self.paths)
        return found

    def _changed(self) -> Set[Path] | None:
        if not self.options.changed_only:
            return None
        from gclint.code.changes import ChangesUnknown, changed_files, staged_files

        try:
            if self.options.staged:
                return staged_files(self.project.paths)
            return changed_files(self.project.paths, self.options.base_ref or _DEFAULT_BASE)
        except ChangesUnknown as error:
            raise CannotRun(str(error)) from None

    # -- the check

    def _result(self) -> tuple[LintResult, tuple[Proof, ...] | None]:
        from gclint.run.check import check
        from gclint.run.jobs import fitting_jobs

        project, options, rules = self.project, self.options, self.rules
        if options.verify:
            how = {"resume": options.resume, "is_shown": options.is_for_people}
            return proven(self.settings, rules, self.selection, options.run, **how)
        jobs = options.run.jobs or fitting_jobs(project.paths)
        with _progress(len(project.paths)) as advance:
            found = check(project, rules, advance, jobs, self._memory())
            if not options.changes:
                return found, None
            from gclint.run.fix import fix

            wanted = self.selection.reported if options.repairs else self._about_comments
            return fix(project, rules, unsafe=self.settings.unsafe_fixes, wanted=wanted, known=found), None

    def _memory(self) -> Memory | None:
        if self.store is None:
            return None
        from gclint.own import rule_files
        from gclint.run.memory import Memory
        from gclint.settings.settings import working_directory

        codes = [each.code for each in self.rules]
        run = (self.settings, codes, rule_files(), self.paths, working_directory())
        return Memory(self.store, run)

    def _about_comments(self, findings: Sequence[Finding]) -> Sequence[Finding]:
        """Return the findings about ignore comments: unused ones are removed before others are added."""
        codes = {rule.code for rule in self.rules if not rule.changes_code}
        return [finding for finding in self.selection.reported(findings) if finding.code in codes]

    # -- after the check

    def _written(self, result: LintResult, ignored: Mapping[Path, int]) -> Report:
        """Write the repaired files, and return the report."""
        from gclint.report.report import Repairs, Report

        project, options = self.project, self.options
        unsafe = self.settings.unsafe_fixes
        report = Report(project, result.findings, result.problems, result.files, unsafe)
        if not options.changes:
            return report
        from gclint.run.fix import FixResult, written_together
        from gclint.write.transaction import write_all

        assert isinstance(result, FixResult)
        unwritten = []
        if self.incoming is not None:
            self.incoming.take(project, result.changed)
        elif options.writes:
            unwritten = write_all(project, result.changed, written_together(project, result))
        failed = {problem.path for problem in unwritten}
        lost = sum(number for path, number in ignored.items() if path in failed)
        report = replace(report, ignored=sum(ignored.values()) - lost, unignored=lost)
        repaired = (*result.applied, *result.gone)
        return replace(report, repairs=Repairs.of(repaired, result.changed, failed)).also(unwritten)

    def _unknown_bases(self) -> tuple[str, ...]:
        if not self.options.is_for_people or self.options.diff or self.options.write_baseline:
            return ()
        from gclint.network.unknown import unknown_bases

        return unknown_bases(self.project)

    def _assumed(self, report: Report) -> tuple[str, ...]:
        """Return the releases that files with findings are taken to run with if nobody says it, and why."""
        if not self.options.is_for_people:
            return ()
        paths = {finding.path for finding in (*report.findings, *report.repairs.made)}
        known = (self.project.assumed(self.project.file(path)) for path in sorted(paths))
        guessed = (f"{each.releases} ({each.guessed_from})" for each in known if each.guessed_from)
        return tuple(dict.fromkeys(guessed))

    def _printed(self, report: Report) -> Report:
        """Print the report and write all files that were asked for; return it with errors in writing."""
        from gclint.report import full

        report = self._show(replace(report, exit_status=self._exit_status(report)))
        report = replace(report, exit_status=self._exit_status(report))
        full.write_notices(report, sys.stderr)
        # A closed pipe is handled here; at exit it would cause a traceback.
        sys.stdout.flush()
        if self.options.page_path is not None:
            write_page(self.options.page_path, report)
        return report

    def _show(self, report: Report) -> Report:
        """Print or write what the options ask for; return the report with errors in writing."""
        from gclint.report import full

        options = self.options
        if options.summary:
            from gclint.report.markdown import markdown
            from gclint.write.disk import write_text

            report = report.also(write_text(options.summary, markdown(report)))
        if options.diff:
            from gclint.report.diff import write_diff

            report = report.also(write_diff(sys.stdout, report.repairs.changed))
            full.write_diff_notices(report, sys.stderr)
        elif options.write_baseline:
            from gclint.run.baseline import Baseline
            from gclint.write.disk import write_text

            baseline = Baseline.of(options.write_baseline, self.project, report.findings)
            problems = write_text(options.write_baseline, baseline.text)
            report = report.also(problems)
            if not problems:
                full.write_baseline_summary(report, baseline, sys.stdout)
        else:
            report = report.also(write_output_files(report, options.output_files))
            written_as(options.output_format, statistics=options.statistics)(report, sys.stdout)
        return report

    def _exit_status(self, report: Report) -> int:
        if report.problems:
            return 2
        if self.options.write_baseline or self.options.exit_zero:
            return 0
        is_stale = report.recognised is not None and bool(report.recognised.stale)
        return int(
            any(map(report.fails, report.findings))
            or is_stale
            or bool(self.options.diff and report.repairs.changed)
        )

    def _keep(self, store: Store, report: Report) -> None:
        """Store the report for the next time that the same command runs."""
        from gclint.report.cached_report import ReportOptions, keep
        from gclint.trace import current

        trace, options = current(), self.options
        if trace is not None:
            notes = tuple(printed_notes())
            shown = ReportOptions(self.project.paths, options.output_format, options.statistics, notes)
            keep(store, sys.argv[1:], trace, report, shown)

    def _print_interrupted(self, result: LintResult) -> None:
        """Print what was found before an interruption, in a format for people.

        Other programs would take the files that were not checked for files without findings.
        """
        from gclint.report.printing import write_lines
        from gclint.report.report import Report

        options, project = self.options, self.project
        is_reading = not (options.writes or options.diff or options.write_baseline)
        if options.is_for_people and is_reading:
            found, _ = self.selection.narrowed(result)
            report = Report(project, found.findings, found.problems, found.files, quiet=options.quiet)
            written_as(options.output_format, statistics=options.statistics)(report, sys.stdout)
            sys.stdout.flush()
        files = len(project.paths)
        what = f"{files - len(result.verdicts)} of {counted(files, 'file')} not checked"
        write_lines((f"Interrupted: {what}{'' if is_reading else ', and nothing written'}.",), sys.stderr)


def _print_survey(found: Survey) -> None:
    """Print which settings are used, how many files are checked, and what is skipped and why."""
    from gclint.code.paths import shown
    from gclint.report.printing import write_lines

    settings = found.settings
    where = shown(settings.file) if settings.file else "no settings file; using the defaults"
    others = (f"Settings: {shown(each.file)}" for each in settings.inner.values() if each.file)
    skipped = (f"Skipped {shown(path)}: {reason}" for path, reason in found.skipped)
    last = f"Checking {counted(len(found.files), 'file')}."
    write_lines((f"Settings: {where}", *others, *skipped, last), sys.stderr)


def _print_obstacle(paths: Sequence[Path]) -> None:
    """Print why there is no place for a journal, if there is none."""
    from gclint.write.journal import obstacle

    why = obstacle(paths)
    if why is not None:
        click.echo(f"No journal is kept ({why}), so nobody can finish a write that is killed.", err=True)


def _progress(files: int) -> AbstractContextManager[Callable[[Path], None]]:
    if files < _FILES_WORTH_A_PROGRESS_BAR or not sys.stderr.isatty():
        return nullcontext(lambda _path: None)
    from gclint.report.terminal import progress_bar

    return progress_bar(sys.stderr, files)
