"""What the shell starts: a report that is known is printed before anything heavy is imported."""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence
from pathlib import Path

from gclint.streams import exit_without_output, prepare_streams
from gclint.trace import traced

_UNCACHED = frozenset(("-", "--no-cache", "--help", "-h", "--version"))


def main() -> None:
    """Run the command line and exit with its status."""
    try:
        _main(sys.argv[1:])
    except KeyboardInterrupt:  # Before there is a command, or while it ends.
        sys.exit(130)


def _main(arguments: Sequence[str]) -> None:
    prepare_streams()
    if not _may_be_cached(arguments):
        from gclint.cli.main import main as run

        run()
    status = _known(arguments)
    if status is not None:
        sys.exit(status)
    with traced():
        from gclint.cli.main import main as run

        run()


def _may_be_cached(arguments: Sequence[str]) -> bool:
    try:
        Path.cwd()
    except OSError:  # The working directory has been deleted.
        return False
    return _UNCACHED.isdisjoint(arguments)


def _known(arguments: Sequence[str]) -> int | None:
    """Print the report of this command if it is known, and return its exit status."""
    try:
        from gclint.cache.store import Store
    except ImportError:  # This Python has no SQLite.
        return None
    from gclint.cache.place import named_in, place_of
    from gclint.report.cached_report import show

    gc.disable()  # What is read is thousands of texts, and no garbage.
    try:
        return show(Store(place_of(named_in(arguments))), arguments)
    except OSError as error:
        exit_without_output(error)
    finally:
        gc.enable()
