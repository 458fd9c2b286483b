"""The option ``--report``, for all commands that can write an HTML report."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from datetime import datetime
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gclint.commands import CannotRun
from gclint.wording import listed

if TYPE_CHECKING:
    from gclint.report.page.view import Origin, Page

_LIBRARIES = {"jinja2": "jinja2", "altair": "altair", "vl_convert": "vl-convert-python"}
"""The libraries that a report needs: the name of the module, and of the distribution to install."""


def page_option(option: Callable[..., Callable[[Any], Any]]) -> Callable[[Any], Any]:
    """Return a decorator that adds the option to a command.

    Args:
        option: makes an option, like ``click.option``.
    """
    return option(
        "--report",
        "page_path",
        metavar="FILE",
        type=click.Path(path_type=Path, dir_okay=False),
        help="Write a self-contained HTML report to FILE.",
    )


def require_page(path: Path | None) -> None:
    """Check that a report can be made and written, before anything is run for it.

    Raises:
        CannotRun: a library is missing, or ``path`` cannot be written.
    """
    if path is None:
        return
    missing = [name for module, name in _LIBRARIES.items() if find_spec(module) is None]
    if missing:
        raise CannotRun(
            f"--report needs {listed(missing)}; install {'it' if len(missing) == 1 else 'them'} with: pip "
            "install 'gclint[report]'"
        )
    from gclint.engine.disk import require_writable
    from gclint.source.paths import shown

    try:
        require_writable(path)
    except OSError as error:
        raise CannotRun(f"--report: {shown(path)} cannot be written: {error.strerror or error}") from None


def origin(repeat: str = "gclint verify") -> Origin:
    """Return how and when a report that is made now is made.

    Args:
        repeat: the command that runs files in the same way, without the files.
    """
    from gclint.report.page.view import Origin

    return Origin(shlex.join(["gclint", *sys.argv[1:]]), datetime.now().astimezone(), repeat)


def write_page(path: Path, page: Page) -> None:
    """Write a report atomically.

    Raises:
        CannotRun: it cannot be written.
    """
    from gclint.engine.write import write_text
    from gclint.report.page.render import rendered
    from gclint.source.paths import shown

    for problem in write_text(path, rendered(page)):
        raise CannotRun(f"--report: {shown(path)}: {problem.message}")
    click.echo(f"Open {shown(path)} in a browser to see the report.", err=True)
