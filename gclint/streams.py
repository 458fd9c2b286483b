"""The standard streams of the command line: they may be closed, full, or of any encoding."""

from __future__ import annotations

import os
import sys
from io import TextIOWrapper
from typing import NoReturn


def prepare_streams() -> None:
    """Make sure that text can be written to the standard streams, whatever characters it has."""
    _replace_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        # A file name or line of code may contain characters that the terminal's encoding does not have.
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _replace_closed_streams() -> None:
    """Make sure that no file that is opened later gets the descriptor of a closed standard stream."""
    for number, flags in ((0, os.O_RDONLY), (1, os.O_RDONLY), (2, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, flags)
    # Writing to the first one fails and is reported; what is written to the second one is lost.
    sys.stdout = sys.stdout or open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = sys.stderr or open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115


def exit_without_output(error: OSError) -> NoReturn:
    """Report, if possible, that the output cannot be written, and exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)  # Buffered output is not written again at exit.
    try:
        sys.stderr.write(f"Error: the output cannot be written: {error.strerror or error}\n")
        sys.stderr.flush()
    except OSError:
        os.dup2(nowhere, 2)
    sys.exit(2)
