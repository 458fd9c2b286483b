"""Adding an import in its sorted place, and dropping one that a repair leaves unused."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache

from gclint.code.file import SourceFile
from gclint.code.outline import ImportItem, ImportStatement
from gclint.code.project import Project
from gclint.code.syntax import compile_problem
from gclint.code.tokens import TokenKind, tokens
from gclint.code.tree import DEFINITIONS, Unparsable, parsed
from gclint.code.walk import dotted_name
from gclint.edit.edits import edited
from gclint.finding import Edit
from gclint.network.evaluation.classes import CHECKPOINTING_BASE
from gclint.network.taking import is_taken

# `noqa` alone, or with the code of an unused import.
_UNUSED_ON_PURPOSE = re.compile(r"#\s*noqa(?:\s*:.*\bF401\b|(?!\s*:))", re.IGNORECASE)


def import_checkpointing_base(file: SourceFile, module: str, edits: Collection[Edit]) -> tuple[Edit, ...]:
    """Return the edits that make the base class's name known in a file; none where it is known.

    Args:
        file: the file that shall use the name.
        module: where the base class comes from, with leading dots if relative.
        edits: what uses the name; an import below the first of them would come too late.
    """
    end = min((edit.start for edit in edits), default=len(file.text))
    statements = [each for each in file.outline.imports if not each.indent and _begins_line(file, each)]
    statements = [each for each in statements if each.start < end]
    known = next((each for each in statements if each.module == module), None)
    return _insert(file, statements, module) if known is None else _extend(file, known)


def _begins_line(file: SourceFile, statement: ImportStatement) -> bool:
    start = file.row_start(file.places.row(statement.start))
    return file.text[start : statement.start] == statement.indent


def _extend(file: SourceFile, statement: ImportStatement) -> tuple[Edit, ...]:
    """Add the name to a statement that imports others from the same module."""
    items = statement.items
    if any(item.path == "*" or (item.alias or item.path) == CHECKPOINTING_BASE for item in items):
        return ()
    is_broken = file.places.row(statement.start) < file.places.row(statement.end)
    separator = f",{file.newline}    " if is_broken else ", "
    for item in items:
        if _name_key(item.path) > _name_key(CHECKPOINTING_BASE):
            return (Edit(file.path, item.start, item.start, CHECKPOINTING_BASE + separator),)
    return (Edit(file.path, items[-1].end, items[-1].end, separator + CHECKPOINTING_BASE),)


def _name_key(name: str) -> tuple[int, str]:
    """Order names as isort does: constants, classes, functions."""
    kind = 0 if name.isupper() and len(name) > 1 else 1 if name[:1].isupper() else 2
    return kind, name


def _insert(file: SourceFile, statements: list[ImportStatement], module: str) -> tuple[Edit, ...]:
    """Insert a statement of its own where an import sorter would put it."""
    line = f"from {module} import {CHECKPOINTING_BASE}{file.newline}"
    named = [(each.module, each) for each in statements if each.module is not None]
    neighbours = [(name, each) for name, each in named if _package(name) == _package(module)]
    for name, each in neighbours:
        if _module_key(name) > _module_key(module):
            return (Edit(file.path, each.start, each.start, line),)
    # The package's first import: behind the last absolute one, before any relative one.
    before = neighbours or [(name, each) for name, each in named if not name.startswith(".")]
    last = before[-1][1] if before else statements[-1] if statements else None
    offset = 0 if last is None else _line_end(file, last.end)
    return (Edit(file.path, offset, offset, line),)


def _package(module: str) -> str:
    """Return the package of an absolute import, and one dot for every relative one."""
    return "." if module.startswith(".") else module.partition(".")[0]


def _module_key(module: str) -> tuple[int, str]:
    """Order modules as isort does: more dots first, then by name."""
    name = module.lstrip(".")
    return -(len(module) - len(name)), name.lower()


def _line_end(file: SourceFile, offset: int) -> int:
    """Return the offset behind the line ending at or after ``offset``."""
    return file.row_start(file.position(offset).row + 1)


def drop_unused_imports(
    project: Project, file: SourceFile, names: set[str], edits: Collection[Edit]
) -> tuple[Edit, ...]:
    """Return the edits that drop imports of ``names`` that nothing uses after other edits, in any file.

    Where something else still uses such an import, the statement is replaced by itself: of two
    repairs that both take a use away, the second then waits for the first, and sees that it has
    become the last.

    Args:
        project: the files of the run, which may import the same from this one.
        file: the file.
        names: the names that the removed code used, dotted ones in full.
        edits: what takes them away.
    """
    text = edited(file.text, edits)
    added: list[Edit] = []
    dropped: list[ImportStatement] = []
    imports = [each for each in file.outline.imports if _begins_line(file, each)]
    for statement in imports:
        going = [item for item in statement.items if (item.alias or item.path) in names]
        if not going or any(edit.start <= statement.start < edit.end for edit in edits):
            continue
        others = [other for other in imports if other is not statement and other not in dropped]
        unused = [
            item
            for item in going
            if _may_go(text, statement, item, others)
            and not is_taken(project, file, (item.alias or item.path).partition(".")[0])
        ]
        edit = _drop(file, statement, unused)
        is_needed = len(unused) == len(statement.items) and _has_effects(project, file, statement, others)
        if (
            not unused
            or is_needed
            or _is_exported(file, statement)
            or not _may_be_made(file, statement, [*edits, edit])
        ):
            edit = Edit(file.path, statement.start, statement.end, file.text[statement.start : statement.end])
        elif len(unused) == len(statement.items):
            dropped.append(statement)
        added.append(edit)
    return tuple(added)


def _may_go(text: str, statement: ImportStatement, item: ImportItem, others: list[ImportStatement]) -> bool:
    """Return whether nothing in a text needs what an import binds."""
    # Under the same name once more, it is there for other files.
    if item.alias == item.path or is_used(text, item.alias or item.path):
        return False
    package, dot, _ = item.path.partition(".")
    if statement.module is not None or item.alias or not dot or not is_used(text, package):
        return True
    return any(name.bound == package for other in others if not other.indent for name in other.names)


def _has_effects(
    project: Project, file: SourceFile, statement: ImportStatement, others: Iterable[ImportStatement]
) -> bool:
    """Return whether an import may be there because its module does something, such as registering a class.

    That is one of the project; one of a library does nothing that matters. It may go where others import
    the same before.
    """
    before = {
        name
        for each in others
        if each.is_always_run and each.start < statement.start
        for name in _modules(each)
    }
    for module in _modules(statement):
        name = module.lstrip(".")
        level = len(module) - len(name)
        imported = project.module(file, name, level)
        is_own = level > 0 if imported is None else not project.is_context(imported.path)
        of_library = project.home(imported or file) is not None
        if is_own and not of_library and module not in before:
            return True
    return False


def _modules(statement: ImportStatement) -> list[str]:
    """Return the modules that a statement imports, as they are written."""
    return [item.path for item in statement.items] if statement.module is None else [statement.module]


def _is_exported(file: SourceFile, statement: ImportStatement) -> bool:
    """Return whether a comment says that an import is there for other files."""
    line_end = _line_end(file, statement.end)
    comments = (token.text for token in tokens(file.text, statement.start, line_end) if token.text[0] == "#")
    return any(_UNUSED_ON_PURPOSE.match(comment) for comment in comments)


def _may_be_made(file: SourceFile, statement: ImportStatement, edits: Collection[Edit]) -> bool:
    """Return whether a block keeps a statement where an import goes that stands in one."""
    return not statement.indent or compile_problem(file.path, edited(file.text, edits)) is None


def _drop(file: SourceFile, statement: ImportStatement, items: Sequence[ImportItem]) -> Edit:
    """Return the edit that takes items out of a statement, and the statement away with the last one."""
    if len(items) < len(statement.items):
        return Edit(file.path, statement.start, statement.end, _without(file, statement, items))
    end = _line_end(file, statement.end)
    behind = next(tokens(file.text, statement.end, end), None)
    if behind is not None and behind.text == ";":
        following = next(tokens(file.text, behind.end, end), None)
        if following is not None and following.kind not in (TokenKind.COMMENT, TokenKind.NEWLINE):
            return Edit(file.path, statement.start, following.start, "")
    return Edit(file.path, statement.start - len(statement.indent), end, "")


def _without(file: SourceFile, statement: ImportStatement, gone: Sequence[ImportItem]) -> str:
    """Return an import statement's code without some of its items."""
    text = file.text[statement.start : statement.end]
    left = [_moved(item, -statement.start) for item in statement.items]
    for count, item in enumerate(gone):
        index = statement.items.index(item) - count
        start, end = _place(text, left, index)
        text = text[:start] + text[end:]
        left = [*left[:index], *(_moved(each, start - end) for each in left[index + 1 :])]
    return text


def _moved(item: ImportItem, distance: int) -> ImportItem:
    return replace(item, start=item.start + distance, end=item.end + distance)


def _place(text: str, items: Sequence[ImportItem], index: int) -> tuple[int, int]:
    """Return what has to be taken out of an import statement's code to drop one of several items."""
    start, end = items[index].start, items[index].end
    before = items[index - 1].end if index else start
    has_comment = "#" in text[before:start]
    comma = next((token for token in tokens(text, end) if token.text == ","), None)
    line = _own_line(text, start, end if comma is None else comma.end)
    if line is not None:
        return line
    if index == 0 or (has_comment and items[index + 1 :]):
        return start, items[index + 1].start
    if not has_comment:
        return before, end
    return start, end if comma is None else comma.end


def _own_line(text: str, start: int, end: int) -> tuple[int, int] | None:
    """Return the lines that hold ``[start, end)`` and perhaps a comment; None where they hold more."""
    line_start = max(text.rfind("\n", 0, start), text.rfind("\r", 0, start)) + 1
    following = next((token for token in tokens(text, end) if token.kind is not TokenKind.COMMENT), None)
    if text[line_start:start].strip() or following is None or following.kind is not TokenKind.NEWLINE:
        return None
    return line_start, following.end


_GENERIC = frozenset(("dict", "frozenset", "list", "set", "tuple", "type"))
# What is handed over to these may be a type in quotes.
_TYPING_CALLS = frozenset(("ForwardRef", "NamedTuple", "NewType", "TypeVar", "TypedDict", "cast"))
_EXPORTS = "__all__"
_READING_ALL = frozenset(("eval", "exec", "globals", "sys.modules", "vars"))
"""By these, a module may read its variables under names that are no code."""


def is_used(text: str, name: str) -> bool:
    """Return whether a text uses a name, a dotted one in full; an import of it is no use.

    Of what cannot be parsed, nothing is known: there everything is used.
    """
    if not all(word in text for word in name.split(".")):
        return False
    used = _used_in_file(text)
    return used is None or name in used or not _READING_ALL.isdisjoint(used)


def _names_used(code: str) -> frozenset[str] | None:
    """Return the names that code uses, dotted ones in full and in part; None if it cannot be parsed."""
    try:
        return frozenset(_names_in(parsed(code), exports=_EXPORTS in code))
    except (Unparsable, RecursionError):
        return None


_used_in_file = lru_cache(maxsize=8)(_names_used)


def _may_hold_types(name: str | None) -> bool:
    """Return whether what stands in brackets behind a name may be types."""
    last = (name or "").rpartition(".")[2]
    return last in _GENERIC or last[:1].isupper()


def _quoted_names(strings: Iterable[object]) -> Iterator[str]:
    """Yield the names that strings use which may be types."""
    for string in strings:
        if isinstance(string, str):
            names = _names_used(f"_: ({string})")
            yield from re.findall(r"\w+", string) if names is None else names


def _names_in(tree: ast.AST, *, exports: bool) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield dotted_name(node) or ""
        elif isinstance(node, (ast.Global, ast.Nonlocal)):
            yield from node.names
        elif exports and isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr)):
            names = (part.id for part in ast.walk(node) if isinstance(part, ast.Name))
            if _EXPORTS in names:
                yield from (string for string in _strings(node) if isinstance(string, str))
        for part in _types_in(node):
            yield from _quoted_names(_strings(part))


def _types_in(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the parts of a node that are types, where a name may be quoted."""
    if isinstance(node, ast.Subscript):
        if _may_hold_types(dotted_name(node.value)):
            yield node.slice
    elif isinstance(node, ast.Call):
        if (dotted_name(node.func) or "").rpartition(".")[2] in _TYPING_CALLS:
            yield node
    elif isinstance(node, (ast.arg, ast.AnnAssign)):
        yield from () if node.annotation is None else (node.annotation,)
    elif isinstance(node, DEFINITIONS):
        yield from getattr(node, "type_params", ())  # Since Python 3.12.
        returns = getattr(node, "returns", None)
        yield from () if returns is None else (returns,)


def _strings(node: ast.AST) -> Iterator[object]:
    return (part.value for part in ast.walk(node) if isinstance(part, ast.Constant))
