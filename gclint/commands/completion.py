"""The command ``gclint completion``: prints a script for completion in a shell."""

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
    # Click separates a value from its help by a comma, and several rules have commas between them, too.
    click.echo(script.replace('string split ","', 'string split --max 1 ","'))
