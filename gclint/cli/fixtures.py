"""The command ``gclint test-rules``: holds rules to their fixtures."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import click

from gclint.cli import CannotRun, print_once, use_extra_rules
from gclint.cli.options import setting_options
from gclint.wording import counted


@click.command("test-rules")
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@setting_options(click.option, "extra-rules")
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
