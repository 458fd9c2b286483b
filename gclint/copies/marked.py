"""Finds code that is marked as a copy: ``# Copied from transformers.models.bert… with Bert->X``.

A check in the transformers repository keeps such code equal to its origin. A comment applies to the
class, method or function below it; ``# Ignore copy`` exempts a method.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gclint.code.file import SourceFile
from gclint.code.lines import begins_in_string
from gclint.code.outline import Definition
from gclint.code.project import Project
from gclint.code.remembered import remembered
from gclint.copies.pairs import CopyPair, Renaming, definition_region

MARKER = "opied from transformers."
_MARKERS = re.compile(re.escape(MARKER))
_COMMENT = re.compile(
    r"[ \t]*(?:@\w+[ \t]+)?#(?P<before>.*)\b[Cc]opied from transformers\.(?P<path>\w[\w.]*\w)(?P<rest>.*)"
)
_REPLACEMENTS = 100
"""A comment with more of them is not a renaming."""
_REPLACEMENT = re.compile(r"\s*(?:with\s+)?(\S+)->(\S+)(.*)")
_IGNORE = re.compile(r"^[ \t]*#\s*Ignore copy\b[^\n]*$", re.MULTILINE)
_GONE = "NO LONGER"
_MODULE = re.compile(r"(?:\w+\.)*?mod(?:eling|ular)_\w+(?=\.)")
_PACKAGE = "transformers"
_Above = dict[Definition, int]
"""Where the comments above definitions begin, as far as this is known."""


@dataclass(frozen=True)
class CopyComment:
    """A comment that marks a definition as a copy."""

    definition: Definition
    path: str
    """The origin, as a dotted name below ``transformers``."""
    renaming: Renaming


@remembered
def copy_comments(file: SourceFile) -> tuple[CopyComment, ...]:
    """Return the comments of a file that mark a definition as a copy; most files have none."""
    return tuple(_copy_comments(file)) if MARKER in file.text else ()


def _copy_comments(file: SourceFile) -> Iterator[CopyComment]:
    above: _Above = {}
    for row, match in _marked_rows(file):
        if begins_in_string(file, row):
            continue
        definition = _below(file, file.line_starts[row - 1] + match.end(), above)
        if definition is not None:
            yield CopyComment(definition, match["path"], parse_renaming(match["rest"]))


def _marked_rows(file: SourceFile) -> Iterator[tuple[int, re.Match[str]]]:
    """Yield the rows with such a comment, or with one in a string."""
    # A line is one comment, even if it repeats the words.
    rows = dict.fromkeys(file.position(match.start()).row for match in _MARKERS.finditer(file.text))
    for row in rows:
        match = _COMMENT.fullmatch(file.line(row))
        if match is not None and _GONE not in match["before"]:
            yield row, match


def named_origins(file: SourceFile) -> frozenset[str]:
    """Return the modules that the comments of a file name as origins, be it in strings; parse nothing."""
    modules = (origin_module(match["path"]) for _, match in _marked_rows(file))
    return frozenset(filter(None, modules))


def parse_renaming(text: str) -> Renaming:
    """Read ``with Bert->X,BERT->X`` or ``with Bert->X all-casing``; anything else is ignored."""
    found: list[tuple[str, str]] = []
    for part in text.split(",", _REPLACEMENTS)[:_REPLACEMENTS]:
        match = _REPLACEMENT.match(part)
        if match is None:
            continue
        old, new = match[1], match[2]
        found.append((old, new))
        if match[3].strip() == "all-casing":
            found += [(old.lower(), new.lower()), (old.upper(), new.upper())]
    return Renaming(tuple(found))


def pair_of(project: Project, file: SourceFile, comment: CopyComment) -> CopyPair | None:
    """Return a copy together with its origin; None if that is not available."""
    origin = _origin(project, file, comment.path)
    if origin is None:
        return None
    source, definition = origin
    exempt = _ignored(file, comment.definition)
    names = {each.name for each in exempt}
    return CopyPair(
        definition_region(source, definition, [each for each in definition.children if each.name in names]),
        definition_region(file, comment.definition, exempt),
        comment.renaming,
        is_copy=True,
    )


def module_of(project: Project, file: SourceFile) -> str | None:
    """Return a file's module as copies name it, below ``transformers``; None outside of such a folder."""
    package = _package(project, file)
    if package is None:
        return None
    return ".".join(project.location(file.path).relative_to(package).with_suffix("").parts)


def origin_module(path: str) -> str | None:
    """Return the module in a path such as ``models.bert.modeling_bert.BertLayer``."""
    match = _MODULE.match(path)
    return None if match is None else match[0]


def _below(file: SourceFile, offset: int, above: _Above) -> Definition | None:
    """Return the definition below the comment that ends at ``offset``, or whose decorators surround it."""
    definitions = file.outline.definitions
    index = bisect_left(definitions, offset, key=lambda each: each.header)
    if index == len(definitions):
        return None
    found = definitions[index]
    if found.start < offset:
        return found if offset < found.header else None
    if found not in above:
        above[found] = _comments_start(file, found.start)
    # The comment may be the line above these, without its line end.
    return found if above[found] - offset <= len("\r\n") else None


def _comments_start(file: SourceFile, offset: int) -> int:
    """Return where the comments and blank lines begin that end at ``offset``, the beginning of a line."""
    row = file.position(offset).row
    while row > 1 and file.line(row - 1).strip()[:1] in ("", "#"):
        row -= 1
    return file.line_starts[row - 1]


def _ignored(file: SourceFile, definition: Definition) -> list[Definition]:
    text = file.text[definition.start : definition.end]
    if "Ignore copy" not in text:
        return []
    above: _Above = {}
    ends = (definition.start + match.end() for match in _IGNORE.finditer(text))
    comments = (end for end in ends if not begins_in_string(file, file.position(end).row))
    marked = (_below(file, end, above) for end in comments)
    return [each for each in marked if each is not None and each.parent is definition]


def _origin(project: Project, user: SourceFile, path: str) -> tuple[SourceFile, Definition] | None:
    module = origin_module(path)
    folder = _package(project, user)
    if module is None or folder is None:
        return None
    file = next(project.readable([folder.joinpath(*module.split(".")).with_suffix(".py")]), None)
    if file is None:
        return None
    definition: Definition | None = None
    known = [each for each in file.outline.definitions if each.parent is None]
    for name in path.removeprefix(f"{module}.").split("."):
        definition = next((each for each in reversed(known) if each.name == name), None)
        if definition is None:
            return None
        known = definition.children
    return None if definition is None else (file, definition)


def _package(project: Project, file: SourceFile) -> Path | None:
    """Return the folder of the package in which copies have their origins."""
    return next((each for each in project.location(file.path).parents if each.name == _PACKAGE), None)
