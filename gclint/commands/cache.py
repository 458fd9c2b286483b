"""The command ``gclint clean``, and what lets a run be stored in the cache."""

from __future__ import annotations

import sys
from pathlib import Path

import click


@click.command("clean")
@click.option(
    "--cache-dir",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="The folder to delete.  [default: the project's .gclint_cache]",
)
def clean(cache_dir: Path | None) -> None:
    """Delete the cache.

    Only files that gclint has written are deleted, and a folder that is not a gclint cache is left alone.
    """
    from gclint.cache.place import guessed_folder
    from gclint.cache.store import clean as clean_folder
    from gclint.commands import CannotRun
    from gclint.source.paths import shown

    folder = guessed_folder(() if cache_dir is None else ("--cache-dir", str(cache_dir)))
    try:
        if not folder.exists():
            click.echo(f"There is no cache in {shown(folder)}.")
        elif clean_folder(folder):
            click.echo(f"Deleted the cache in {shown(folder)}.")
        else:
            raise CannotRun(f"{shown(folder)} is not a gclint cache, so it was left alone")
    except OSError as error:
        raise CannotRun(f"the cache in {shown(folder)} cannot be deleted: {error.strerror}") from None


def keep_run(folder: Path, *, quiet: bool) -> None:
    """Let the run of this process be stored in the cache when it ends.

    Args:
        folder: the folder of the cache.
        quiet: whether to print no note if the cache cannot be written.
    """
    from gclint.cache.runs import recorder

    own = recorder()
    if own is not None:
        own.folder = folder
        own.complain = None if quiet else _complain


def _complain(reason: str) -> None:
    from gclint.report.printing import write_lines

    advice = "choose another folder with --cache-dir, or run without a cache with --no-cache"
    write_lines((f"note: {reason}; {advice}",), sys.stderr)
