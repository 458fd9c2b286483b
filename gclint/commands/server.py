"""The command ``gclint server``: runs the language server."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gclint.commands import CannotRun, rules_of, settings_of

if TYPE_CHECKING:
    from gclint.rule import Rule
    from gclint.settings import Settings


@click.command("server", short_help="Run the language server for editors.")
def server() -> None:
    """Run the language server on standard input and output; editors start it.

    It reports findings while you type, also in files that are not open, and offers repairs. Settings are
    read from each folder's pyproject.toml. Needs gclint[lsp].
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
    click.get_current_context().exit(serve(_load))


def _load(root: Path) -> tuple[Settings, Sequence[Rule]]:
    """Return the settings and rules for a folder or file."""
    from gclint.server.session import UnusableSettings

    try:
        settings = settings_of([root])
        return settings, rules_of(settings)
    except CannotRun as error:
        raise UnusableSettings(error.message) from None
