"""The command ``gclint completion``: prints what lets a shell complete the command line."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

_PROGRAM = "gclint"


_HELP = """\
Print a script that lets SHELL complete commands, options, rules and paths.

\b
bash:  gclint completion bash > ~/.local/share/bash-completion/completions/gclint
zsh:   gclint completion zsh > "${fpath[1]}/_gclint"
fish:  gclint completion fish > ~/.config/fish/completions/gclint.fish
"""


@click.command("completion", short_help="Print a shell completion script.", help=_HELP)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print a script that lets SHELL complete commands, options, rules and paths."""
    known = get_completion_class(shell)
    assert known is not None
    root = click.get_current_context().find_root().command
    script = known(root, {}, _PROGRAM, f"_{_PROGRAM.upper()}_COMPLETE").source()
    # Several rules have commas between them, and what click has fish read is cut at each.
    click.echo(script.replace('string split ","', 'string split --max 1 ","'))
