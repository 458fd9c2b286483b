"""The command ``gclint clean``, and the cache of a run."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gclint.cli import CannotRun, GivenPath

if TYPE_CHECKING:
    from gclint.cache.place import CachePlace
    from gclint.cache.store import Store

_FORMER = (".gclint_cache", ".gclint")
"""Folders that earlier versions made in a project, and that nobody reads any more."""


@click.command("clean")
@click.option(
    "--cache-dir",
    metavar="DIR",
    type=GivenPath(path_type=Path),
    help="The folder to clean.  [default: in the user's cache folder, what belongs to this project]",
)
def clean(cache_dir: Path | None) -> None:
    """Delete the cache of the project.

    Only files that gclint has written are deleted.
    """
    from gclint.cache.place import place_of, project_root
    from gclint.code.paths import shown

    place = place_of(cache_dir)
    try:
        from gclint.cache.store import Store

        deleted = Store(place).clear()
    except (OSError, ImportError) as error:
        raise CannotRun(_in_words(place, error)) from None
    if place.folder is not None:
        what = "Deleted the cache in" if deleted else "There is no cache in"
        click.echo(f"{what} {shown(place.folder)}.")
    for former in (project_root() / name for name in _FORMER):
        if former.is_symlink() or former.exists():
            click.echo(f"{shown(former)} may be from an earlier version of gclint; it is not used any more.")


def store_of_run(named: Path | None, *, quiet: bool, verbose: bool) -> Store | None:
    """Return the cache of this run, in the folder that the user names if any; None if there is none.

    Who is ``verbose`` is told even if there is just no place for it, and who is ``quiet`` nothing.
    """
    from gclint.cache.place import place_of
    from gclint.trace import current

    if current() is None:
        return None
    place = place_of(named)

    def complain(error: Exception) -> None:
        from gclint.report.printing import write_lines

        is_wanted = verbose or place.is_named or isinstance(error, BlockingIOError)
        if is_wanted and not quiet:
            write_lines((f"note: {_in_words(place, error)}",), sys.stderr)

    try:
        from gclint.cache.store import Store
    except ImportError as error:  # This Python has no SQLite.
        complain(error)
        return None
    return Store(place, complain)


def _in_words(place: CachePlace, error: Exception) -> str:
    from gclint.code.paths import shown

    reason = (isinstance(error, OSError) and error.strerror) or str(error)
    where = error.filename if isinstance(error, OSError) else None
    if where is not None and place.folder is not None and Path(where) != place.folder:
        reason = f"{shown(where)}: {reason}"
    cache = "a cache" if place.folder is None else f"the cache in {shown(place.folder)}"
    return f"{cache} cannot be used: {reason}; name a folder with --cache-dir, or use --no-cache"
