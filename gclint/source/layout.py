"""Reduces a text to what is not layout, so that changes of the layout alone can be recognised.

Layout is what only people read: blank lines, and comments in plain words. Searches that do not parse see
comments as well, so a comment counts as code if it has anything that may be searched for: markers of copies
and of generated files, gclint's own comments, names, and code.
"""

from __future__ import annotations

import re
from pathlib import Path

from gclint.facts import digest
from gclint.source.file import SourceFile, UnreadableFile, of_text
from gclint.source.tokens import COMMENT, STRINGS, scan

_LAYOUT = re.compile(rf"{STRINGS} | (?P<comment>{COMMENT}) | (?P<blank>\n[ \t\f]*(?=\n))", re.VERBOSE)
_BLANK_LINES = re.compile(r"(?:[ \t\f]*\n)+")
_PROSE = re.compile(
    r"#+[ \t]*(?:(?:[A-Z]?[a-z]+|[A-Z]+|[0-9]+)(?:[,;:!?'-][ \t]*|\.?[ \t]+|\.?\Z))*",
)
"""Matches plain words: without underscores or capitals inside, or a dot or bracket after them."""
_TELLING = re.compile(
    r"attention|attn|auto|block|buffer|cach|cast|check|class|cod(?:e|ing)|cop(?:y|ied)|def|detach|embed|"
    r"enable|eval|fmt|forward|from|func|gclint|generat|grad|head|hidden|hook|ignore|import|key|lambda|layer|"
    r"lint|longer|model|modul|noqa|nn|output|param|past|patch|random|record|reentrant|register|return|"
    r"router|ruff|self|state|super|switch|torch|train|transformers|type|use|with",
    re.IGNORECASE,
)
"""Matches words that are searched for, and their beginnings."""
_BLANKS = " \t\f"


@of_text
def layout_free(file: SourceFile) -> str:
    """Return a digest of a file's text, without its layout, and of its encoding."""
    ends, text = _with_line_feeds(file.text)
    mark = f"{file.encoding}\n{len(file.encode(''))}\n{ends}\n"
    code = text if "\r" in text else _without_layout(text)
    return digest((mark + code).encode("utf-8", "surrogatepass"))


def layout_free_content(path: Path, data: bytes) -> str | None:
    """Return the same for the file at ``path``; None if it is not Python text."""
    try:
        return layout_free(SourceFile(path, data))
    except UnreadableFile:
        return None


def _with_line_feeds(text: str) -> tuple[str, str]:
    """Return the line ending of a text, and the text with line feeds instead."""
    number = text.count("\r\n")
    if number and text.count("\n") == text.count("\r") == number:
        return "\r\n", text.replace("\r\n", "\n")
    return "\n", text


def _without_layout(text: str) -> str:
    pieces: list[str] = []
    end = 0
    for match, stop in scan(_LAYOUT, text):
        kind, start = match.lastgroup, match.start()
        if kind == "comment":
            if not _is_prose(match[0]):
                continue
            while start > end and text[start - 1] in _BLANKS:
                start -= 1
            if start == 0:
                stop += text.startswith("\n", stop)
            elif text[start - 1] == "\n" and stop < len(text):
                start -= 1
        elif kind != "blank":
            continue
        # After a backslash, comments and blank lines have another meaning.
        if not text.endswith("\\", 0, start):
            pieces.append(text[end:start])
            end = stop
    code = "".join([*pieces, text[end:]])
    first = _BLANK_LINES.match(code)
    return code if first is None else code[first.end() :]


def _is_prose(comment: str) -> bool:
    return _PROSE.fullmatch(comment) is not None and _TELLING.search(comment) is None
