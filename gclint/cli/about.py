"""The commands about gclint itself: its rules and settings, completion in shells, and the language server."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import get_completion_class

from gclint.cli import CannotRun, paths_argument, print_once, rules_of, settings_of, use_extra_rules
from gclint.cli.options import (
    GroupedCommand,
    choice_option,
    config_option,
    option_group,
    pop_settings,
    setting_options,
)
from gclint.report.rules import DOCUMENTS, LISTS
from gclint.settings.definitions import DEFINITIONS, FORMAT
from gclint.wording import counted

if TYPE_CHECKING:
    from gclint.rule import Rule
    from gclint.settings import Settings


_extra_rules = setting_options(click.option, "extra-rules")


@click.command()
@click.argument("wanted", metavar="RULE")
@_extra_rules
@choice_option(
    click.option, "--output-format", DOCUMENTS, "Print formatted text, JSON for programs, or Markdown."
)
def rule(wanted: str, output_format: str, extra_rules: tuple[str, ...] | None) -> None:
    """Print the documentation of a rule.

    RULE is a code such as GC001, or a name such as positional-cache.
    """
    from gclint.rule import all_rules
    from gclint.wording import closest

    use_extra_rules(extra_rules or (), [Path()])
    for known in all_rules():
        if wanted.upper() == known.code or wanted.lower() == known.name:
            DOCUMENTS[output_format](sys.stdout, known)
            return
    meant = closest(wanted, (known.name for known in all_rules()))
    guess = f"did you mean {meant}? " if meant else ""
    raise click.UsageError(f"there is no rule {wanted!r}; {guess}'gclint rules' lists them")


@click.command()
@choice_option(click.option, "--output-format", LISTS, "Print a line per rule, or a JSON list.")
@_extra_rules
def rules(output_format: str, extra_rules: tuple[str, ...] | None) -> None:
    """List the rules."""
    from gclint.rule import all_rules

    use_extra_rules(extra_rules or (), [Path()])
    LISTS[output_format](sys.stdout, all_rules())


@click.command("test-rules")
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@_extra_rules
def test_rules(folder: Path, extra_rules: Sequence[str] | None) -> None:
    """Hold rules of your own to the fixtures in FOLDER.

    A fixture is a file such as FOLDER/ACM001/case.py. Its comments say what is reported
    ('# expect: ACM001 safe'), and case.fixed.py what --fix makes of it. Without rules of your own, those of
    gclint are tested. The exit status is 1 if something differs.
    """
    from gclint.report.printing import write_lines
    from gclint.rule import all_rules, own_rules
    from gclint.settings import SettingsError
    from gclint.testing.fixtures import MalformedFixture, load_fixtures
    from gclint.testing.rules import all_differences, undeclared_fixes

    use_extra_rules(extra_rules or (), [folder])
    rules = own_rules() or all_rules()
    try:
        fixtures = load_fixtures(folder)
    except (MalformedFixture, OSError) as error:
        raise CannotRun(str(error)) from None
    if not fixtures:
        raise CannotRun(f"{folder} has no fixtures: files such as {rules[0].code}/case.py")
    tested = {each.name.partition("/")[0] for each in fixtures}
    for code in sorted(tested ^ {rule.code for rule in rules}):
        print_once(f"note: {'there is no rule' if code in tested else 'there are no fixtures of'} {code}")
    failed = 0
    for fixture in fixtures:
        try:
            found = all_differences(fixture, rules) or [*undeclared_fixes([fixture], rules)]
        except SettingsError as error:
            raise CannotRun(f"{fixture.name}: {error}") from None
        failed += bool(found)
        write_lines((line for each in found for line in each.split("\n")), sys.stdout)
    passed = f"{counted(len(fixtures) - failed, 'fixture')} passed"
    write_lines((f"{passed}, {failed} failed." if failed else f"{passed}.",), sys.stdout)
    click.get_current_context().exit(int(failed > 0))


_settings = option_group("Settings to try out")


@click.command("config", cls=GroupedCommand)
@paths_argument
@choice_option(
    click.option,
    *("--output-format", ("full", "json"), "Print the settings as TOML with comments, or as JSON.", "shape"),
)
@click.option("--schema", is_flag=True, help="Print a JSON schema of all settings instead.")
@config_option(click.option)
@setting_options(_settings, *(each.name for each in DEFINITIONS if each.kind is not FORMAT))
def config_command(
    paths: tuple[Path, ...], shape: str, schema: bool, config: Path | None, **flags: Any
) -> None:
    """Show the settings in force for PATHS, by default the current folder, and where each comes from.

    The options of 'gclint check' that are settings can be given, too. The exit status is 2 if the settings
    are invalid.
    """
    if schema:
        sys.stdout.write((files("gclint.settings") / "schema.json").read_text(encoding="utf-8"))
        return
    from gclint.report import settings as report
    from gclint.rule import rule_words

    for path in paths:
        if not path.exists():
            raise CannotRun(f"{path}: no such file or folder")
    settings = settings_of(paths or (Path(),), None, config, pop_settings(flags))
    rules_of(settings)
    (report.write_json if shape == "json" else report.write)(settings, rule_words(), sys.stdout)


_PROGRAM = "gclint"


_HELP = """\
Print a script that lets SHELL complete commands, options and paths.

\b
bash:  gclint completion bash > ~/.local/share/bash-completion/completions/gclint
zsh:   gclint completion zsh > "${fpath[1]}/_gclint"
fish:  gclint completion fish > ~/.config/fish/completions/gclint.fish
"""


@click.command("completion", help=_HELP)
@click.argument("shell", metavar="SHELL", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print a script that lets SHELL complete commands, options and paths."""
    known = get_completion_class(shell)
    assert known is not None
    root = click.get_current_context().find_root().command
    click.echo(known(root, {}, _PROGRAM, f"_{_PROGRAM.upper()}_COMPLETE").source())


@click.command("server")
@_extra_rules
def server(extra_rules: tuple[str, ...] | None) -> None:
    """Run the language server on standard input and output; editors start it.

    It reports findings while you type, also in files that are not open, and offers repairs. Settings are
    read from each folder's gclint.toml or pyproject.toml. Needs gclint[lsp].
    """
    try:
        from gclint.server.server import serve
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("pygls", "lsprotocol", "cattrs", "attrs"):
            raise
        raise CannotRun(
            f"the server needs pygls, but the module {error.name!r} is missing; install it with: pip "
            'install "gclint[lsp]"'
        ) from None
    click.get_current_context().exit(serve(partial(_load, given={"extra_rules": extra_rules})))


def _load(root: Path, given: Mapping[str, Any] = MappingProxyType({})) -> tuple[Settings, Sequence[Rule]]:
    """Return the settings and rules for a folder or file."""
    from gclint.server.session import UnusableSettings

    def read(folder: Path) -> Settings | None:
        assert settings.read is not None
        try:
            return settings.read(folder)
        except CannotRun as error:
            raise UnusableSettings(error.message) from None

    try:
        settings = settings_of([root], overrides=given)
        return replace(settings, read=read), rules_of(settings)
    except CannotRun as error:
        raise UnusableSettings(error.message) from None
