"""The changes of fixes as a unified diff, which ``git apply -p0`` and ``patch -p0`` accept."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TextIO

from gclint.code.paths import is_active
from gclint.facts import is_regular_file
from gclint.finding import Problem

_WITHHELD = (
    "its diff is not printed, since it contains control characters, or a line that a CI system would take "
    "for a command; redirect the output to a file to get it"
)
_QUOTED = frozenset('"\\#')
"""Printable characters for which a name is quoted; some CI systems find ``##[error]`` anywhere in a line."""
# In a diff only LF ends a line: a form feed or a CR inside is part of it.
_LINE = re.compile(r"[^\n]*\n|[^\n]+")


def write_diff(stream: TextIO, changed: Mapping[Path, tuple[str, str]]) -> list[Problem]:
    """Write the differences between the text before and after, file by file.

    A diff has to have the very bytes of the code. So if some of these would act on who reads a log, only a
    file gets them.

    Returns:
        The files whose differences were not written.
    """
    if stream.isatty():
        from gclint.report.terminal import console_on, show_diff

        show_diff(console_on(stream), unified_diff(changed))
        return []
    withheld = []
    for path in sorted(changed, key=str):
        lines = [*unified_diff({path: changed[path]})]
        if any(map(is_active, lines)) and not is_regular_file(stream):
            withheld.append(Problem(path, _WITHHELD))
        else:
            stream.writelines(lines)
    return withheld


def unified_diff(changed: Mapping[Path, tuple[str, str]]) -> Iterator[str]:
    """Yield the diff's lines, each with its line ending."""
    for path in sorted(changed, key=str):
        before, after = changed[path]
        for line in difflib.unified_diff(
            _LINE.findall(before), _LINE.findall(after), _label(path), _label(path)
        ):
            if line.endswith("\n"):
                yield line
            else:
                yield f"{line}\n"
                yield "\\ No newline at end of file\n"


def _label(path: Path) -> str:
    if not str(path).isprintable() or not _QUOTED.isdisjoint(str(path)):
        return f'"{"".join(map(_quoted, str(path)))}"'
    # Without the tab, patch would read what follows a space in a name as a date.
    return f"{path}\t" if " " in str(path) else str(path)


def _quoted(character: str) -> str:
    """Return a character as git writes it in a quoted file name."""
    if character in '"\\':
        return f"\\{character}"
    if character.isprintable() and character != "#":
        return character
    return "".join(f"\\{byte:03o}" for byte in os.fsencode(character))
