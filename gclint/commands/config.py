"""The command ``gclint config``: prints the settings in force, and where each comes from."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from gclint.commands import paths_argument, rules_of, settings_of, vocabulary
from gclint.commands.option_groups import GroupedCommand, option_group
from gclint.commands.setting_options import config_option, pop_settings, setting_options
from gclint.settings.definitions import DEFINITIONS, FORMAT

_settings = option_group("Settings to try out")


@click.command(
    "config", cls=GroupedCommand, short_help="Show the settings in force, and where each comes from."
)
@paths_argument
@click.option(
    "--output-format",
    "shape",
    type=click.Choice(["full", "json"]),
    default="full",
    show_default=True,
    help="Print the settings as TOML with comments, or as JSON.",
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
    words = vocabulary()
    if schema:
        from gclint.settings.schema import schema_text

        sys.stdout.write(schema_text(words))
        return
    from gclint.report import settings as report

    settings = settings_of(paths or (Path(),), None, config, pop_settings(flags))
    rules_of(settings)
    (report.write_json if shape == "json" else report.write)(settings, words.rules(), sys.stdout)
