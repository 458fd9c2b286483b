"""Taking a method out of a class, so that what is around it looks as if it had never been there."""

from __future__ import annotations

import re

from gclint.finding import Edit
from gclint.source.file import SourceFile
from gclint.source.outline import Definition

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|\Z)")


def remove_method(file: SourceFile, owner: Definition, method: Definition) -> Edit:
    """Return the edit that removes a method with its decorators and the comment right above it.

    Of the blank lines around it those below go, or those above if it is the last one of the class;
    a class that holds nothing else gets a ``pass``.
    """
    text = file.text
    start = _with_comment(file, method)
    end = _code_end(file, method)
    above = _without_blank_lines_above(text, start)
    if not _is_followed(text, owner, end):
        header = owner.header_end
        if header is not None and not text[header:above].strip():
            return Edit(file.path, start, end, f"{method.indent}pass{file.newline}")
        return Edit(file.path, above, end, "")
    return Edit(file.path, start, _without_blank_lines_below(text, end), "")


def _with_comment(file: SourceFile, method: Definition) -> int:
    """Return where the comment lines begin that stand right above a method, or else the method itself."""
    row = file.position(method.start).row
    while row > 1:
        line = file.line(row - 1)
        if not line.startswith(f"{method.indent}#"):
            break
        row -= 1
    return file.line_starts[row - 1]


def _code_end(file: SourceFile, method: Definition) -> int:
    """Return the offset behind a method's last line of code, or of a comment that is indented as code is."""
    end = method.header
    for match in _LINE.finditer(file.text, method.header, method.end):
        if not match[0]:
            break
        line = match[0].strip()
        indent = len(match[0]) - len(match[0].lstrip())
        if line and (not line.startswith("#") or indent > len(method.indent)):
            end = match.end()
    return end


def _is_followed(text: str, owner: Definition, end: int) -> bool:
    """Tell whether the class goes on behind an offset, if only with a comment."""
    for match in _LINE.finditer(text, end, owner.end):
        if not match[0]:
            break
        line = match[0].strip()
        if line:
            indent = len(match[0]) - len(match[0].lstrip())
            return indent > len(owner.indent)
    return False


def _without_blank_lines_above(text: str, offset: int) -> int:
    """Return where the blank lines above an offset begin, which is at a line's beginning."""
    kept = len(text[:offset].rstrip())
    ending = _LINE.match(text, kept)
    return offset if ending is None else min(ending.end(), offset)


def _without_blank_lines_below(text: str, offset: int) -> int:
    for match in _LINE.finditer(text, offset):
        if not match[0] or match[0].strip():
            return match.start()
    return len(text)
