"""What the shell starts: a run that is known is replayed before anything heavy is imported."""

from __future__ import annotations

import gc
import sys
from pathlib import Path


def main() -> None:
    """Run the command line and exit with its status."""
    try:
        _main()
    except KeyboardInterrupt:  # Before there is a command, or while it ends.
        sys.exit(130)


def _main() -> None:
    from gclint.cache.runs import recorded, replay

    arguments = sys.argv[1:]
    gc.disable()  # What is read for a replay is thousands of texts, and no garbage.
    try:
        status = replay(arguments, _layout_free)
    except OSError as error:
        from gclint.cli import exit_without_output

        exit_without_output(error)
    if status is not None:
        sys.exit(status)
    gc.enable()
    with recorded(arguments):
        from gclint.cli import main as run

        run()


def _layout_free(path: Path, data: bytes) -> str | None:
    from gclint.source.layout import layout_free_content

    return layout_free_content(path, data)
