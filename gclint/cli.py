"""The command line: turns options into calls, and what they return into output and an exit status.

LibCST, rich and the rules are imported where they are needed, so that ``gclint --help`` is quick.
"""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from gclint import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gclint.engine.check import CheckResult
    from gclint.rule import Rule
    from gclint.settings import Settings
    from gclint.source.project import Project

# A run over fewer files is over before anybody wonders whether it is still alive.
_FILES_WORTH_A_PROGRESS_BAR = 50


class _UnusableSettings(click.ClickException):
    exit_code = 2


def _selectors(_context: click.Context, _option: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(part.strip() for value in values for part in value.split(",") if part.strip())


@click.command(
    epilog="'gclint rules' lists the rules, and 'gclint rule GC001' prints the documentation of one. "
    "'gclint verify' runs the models."
)
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
@click.option("--fix", is_flag=True, help="Repair what can be repaired safely.")
@click.option("--unsafe-fixes", is_flag=True, help="Count what someone must look at as repairable too.")
@click.option("--diff", is_flag=True, help="Print what --fix would change, and write nothing.")
@click.option(
    "--select",
    metavar="RULES",
    multiple=True,
    callback=_selectors,
    help="Run only these: codes, prefixes, names.",
)
@click.option(
    "--ignore",
    metavar="RULES",
    multiple=True,
    callback=_selectors,
    help="Do not run these, even if selected.",
)
@click.option("--output-format", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option("--statistics", is_flag=True, help="Print how many findings a rule has, in place of them.")
@click.option("--exit-zero", is_flag=True, help="Exit with 0 even if findings are left.")
@click.version_option(__version__, prog_name="gclint", message="%(prog)s %(version)s")
@click.pass_context
def lint(
    context: click.Context,
    paths: tuple[Path, ...],
    fix: bool,
    unsafe_fixes: bool,
    diff: bool,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    output_format: str,
    statistics: bool,
    exit_zero: bool,
) -> None:
    """Find what breaks gradient checkpointing in modeling files, and repair it.

    PATHS are files and folders, or the current folder; in folders, modeling_*.py and modular_*.py
    are checked. Exits with 0 if nothing is left to do, 1 if there are findings, and 2 if something
    went wrong.
    """
    if diff and (statistics or output_format != "text"):
        raise click.UsageError("--diff prints a diff, so it takes neither --statistics nor --output-format")
    from gclint.engine.check import check
    from gclint.engine.fix import FixResult
    from gclint.engine.fix import fix as repair
    from gclint.engine.write import write_all
    from gclint.report import text
    from gclint.source.discovery import discover
    from gclint.source.project import Project

    paths = paths or (Path(),)
    settings, rules = _settings_and_rules(paths, select, ignore)
    project = Project(settings)
    files, problems = discover(paths, settings)
    result: CheckResult
    with _progress(len(files)) as advance:
        if fix or diff:
            result = repair(project, files, rules, unsafe=unsafe_fixes, advance=advance)
        else:
            result = check(project, files, rules, advance)
    problems += result.problems
    applied, changed = (result.applied, result.changed) if isinstance(result, FixResult) else ([], {})
    if diff:
        _show_diff(changed, len(applied), result)
    else:
        not_written = write_all(project, changed)
        problems += not_written
        if statistics:
            _show_statistics(result, output_format, unsafe=unsafe_fixes)
        else:
            _show_findings(project, result, output_format, unsafe=unsafe_fixes)
        if output_format == "text":
            unwritten = {problem.path for problem in not_written}
            lost = sum(finding.path in unwritten for finding in applied)
            print(text.summary(result, fixed=len(applied) - lost, lost=lost, unsafe=unsafe_fixes))
    text.write_problems(sys.stderr, problems)
    # Now, while a closed pipe can still be told from a failure; at exit it would be a traceback.
    sys.stdout.flush()
    left = bool(result.findings or (diff and changed))
    context.exit(2 if problems else int(left and not exit_zero))


@click.command()
@click.argument("wanted", metavar="RULE")
def rule(wanted: str) -> None:
    """Print the documentation of RULE, which is a code such as GC001 or a name."""
    from gclint.report.rules import write_documentation
    from gclint.rule import all_rules

    for known in all_rules():
        if wanted.upper() == known.code or wanted.lower() == known.name:
            write_documentation(sys.stdout, known)
            return
    raise click.UsageError(f"there is no rule {wanted!r}; 'gclint rules' lists them")


@click.command()
def rules() -> None:
    """List the rules."""
    from gclint.report.rules import write_list
    from gclint.rule import all_rules

    write_list(sys.stdout, all_rules())


def main() -> NoReturn:
    """Run the command line and exit with its status."""
    for stream in (sys.stdout, sys.stderr):
        # A file name or a source line may hold what the terminal's encoding has not.
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    arguments = sys.argv[1:]
    if arguments[:1] == ["verify"]:
        from gclint.verify.command import main as verify

        verify(arguments[1:])
    for command in (rule, rules):
        if arguments[:1] == [command.name]:
            command.main(arguments[1:], prog_name=f"gclint {command.name}")
    lint.main(arguments, prog_name="gclint")


def _settings_and_rules(
    paths: Sequence[Path], select: tuple[str, ...], ignore: tuple[str, ...]
) -> tuple[Settings, list[Rule]]:
    from gclint.rule import all_rules
    from gclint.settings import SettingsError, common_folder, load_settings, unknown_selectors

    try:
        settings = load_settings(common_folder(paths)).overridden(select, ignore)
    except SettingsError as error:
        raise _UnusableSettings(str(error)) from None
    unknown = unknown_selectors((*settings.select, *settings.ignore), all_rules())
    if unknown:
        raise click.UsageError(f"there is no rule {unknown[0]!r}; 'gclint rules' lists them")
    return settings, [rule for rule in all_rules() if settings.wants(rule)]


def _progress(files: int) -> AbstractContextManager[Callable[[Path], None]]:
    if files < _FILES_WORTH_A_PROGRESS_BAR or not sys.stderr.isatty():
        return nullcontext(lambda _path: None)
    from gclint.report.terminal import progress_bar

    return progress_bar(sys.stderr, files)


def _show_findings(project: Project, result: CheckResult, output_format: str, *, unsafe: bool) -> None:
    if output_format == "json":
        from gclint.report import json

        json.write_findings(sys.stdout, project, result.findings)
    else:
        from gclint.report import text

        text.write_findings(sys.stdout, project, result.findings, unsafe=unsafe)


def _show_statistics(result: CheckResult, output_format: str, *, unsafe: bool) -> None:
    from gclint.report import statistics

    counts = statistics.count_by_rule(result.findings, unsafe=unsafe)
    write = statistics.write_json if output_format == "json" else statistics.write_text
    write(sys.stdout, counts)


def _show_diff(changed: dict[Path, tuple[str, str]], fixed: int, result: CheckResult) -> None:
    from gclint.report.diff import write_diff
    from gclint.report.text import diff_summary

    write_diff(sys.stdout, changed)
    print(diff_summary(result, fixed=fixed, changed=len(changed)), file=sys.stderr)
