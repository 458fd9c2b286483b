"""Adding an import in its sorted place, and dropping one that a repair leaves unused."""

from __future__ import annotations

import re
from dataclasses import dataclass

import libcst as cst

from gclint.finding import Edit
from gclint.network.evaluation.classes import CHECKPOINTING_BASE
from gclint.network.evaluation.walk import dotted_name
from gclint.source.file import SourceFile
from gclint.source.fragment import parse_import
from gclint.source.outline import ImportStatement

_CODE = re.compile(r"\"\"\"[\s\S]*?\"\"\"|'''[\s\S]*?'''|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'|#[^\n]*")
_QUOTED_NAMES = re.compile(r"([\"'])([\w.\[\], |]+)\1")


@dataclass(frozen=True)
class _FromImport:
    """A module-level ``from … import …`` statement."""

    statement: ImportStatement
    module: str
    """With its leading dots."""
    node: cst.ImportFrom


def import_checkpointing_base(file: SourceFile, module: str) -> tuple[Edit, ...]:
    """Return the edits that make the base class's name known in a file; none where it is known.

    Args:
        file: the file that shall use the name.
        module: where the base class comes from, with leading dots if relative.
    """
    statements = _from_imports(file)
    for known in statements:
        if known.module == module:
            return _extend(file, known)
    return _insert(file, statements, module)


def _from_imports(file: SourceFile) -> list[_FromImport]:
    found: list[_FromImport] = []
    for statement in file.outline.imports:
        if statement.indent or not file.text.startswith("from", statement.start):
            continue
        try:
            fragment = parse_import(file, statement)
        except cst.ParserSyntaxError:
            continue
        line = fragment.body[0]
        node = line.body[0] if isinstance(line, cst.SimpleStatementLine) else None
        if isinstance(node, cst.ImportFrom):
            name = "" if node.module is None else dotted_name(node.module) or ""
            found.append(_FromImport(statement, "." * len(node.relative) + name, node))
    return found


def _extend(file: SourceFile, known: _FromImport) -> tuple[Edit, ...]:
    """Add the name to a statement that imports others from the same module."""
    if isinstance(known.node.names, cst.ImportStar):
        return ()
    names = [dotted_name(alias.name) or "" for alias in known.node.names]
    if CHECKPOINTING_BASE in names:
        return ()
    text = file.text[known.statement.start : known.statement.end]
    before = next((name for name in names if _name_key(name) > _name_key(CHECKPOINTING_BASE)), None)
    if before is not None:
        match = re.search(rf"\b{before}\b", text[text.index("import") + 6 :])
        assert match is not None
        offset = known.statement.start + text.index("import") + 6 + match.start()
        separator = f",{file.newline}    " if "\n" in text else ", "
        return (Edit(file.path, offset, offset, CHECKPOINTING_BASE + separator),)
    match = list(re.finditer(rf"\b{names[-1]}\b", text))[-1]
    offset = known.statement.start + match.end()
    separator = f",{file.newline}    " if "\n" in text else ", "
    return (Edit(file.path, offset, offset, separator + CHECKPOINTING_BASE),)


def _name_key(name: str) -> tuple[int, str]:
    """Order names as isort does: constants, classes, functions."""
    kind = 0 if name.isupper() and len(name) > 1 else 1 if name[:1].isupper() else 2
    return kind, name


def _insert(file: SourceFile, statements: list[_FromImport], module: str) -> tuple[Edit, ...]:
    """Insert a statement of its own where an import sorter would put it."""
    line = f"from {module} import {CHECKPOINTING_BASE}{file.newline}"
    neighbours = [known for known in statements if _package(known.module) == _package(module)]
    for known in neighbours:
        if _module_key(known.module) > _module_key(module):
            return (Edit(file.path, known.statement.start, known.statement.start, line),)
    if not neighbours:
        # The package's first import: behind the last absolute one, before any relative one.
        neighbours = [known for known in statements if not known.module.startswith(".")]
    plain = [statement for statement in file.outline.imports if not statement.indent]
    last = neighbours[-1].statement if neighbours else plain[-1] if plain else None
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
    row = file.position(offset).row
    return file.line_starts[row] if row < len(file.line_starts) else len(file.text)


def drop_unused_imports(
    file: SourceFile, names: set[str], removed: list[tuple[int, int]]
) -> tuple[Edit, ...]:
    """Return the edits that drop imports of ``names`` that nothing but removed code uses.

    Where something else still uses such an import, the statement is replaced by itself: of two
    repairs that both take a use away, the second then waits for the first, and sees that it has
    become the last.

    Args:
        file: the file.
        names: the names that the removed code used, dotted ones in full.
        removed: the ranges of the text that go.
    """
    code = _without(file.text, removed)
    edits: list[Edit] = []
    for statement in file.outline.imports:
        try:
            line = parse_import(file, statement).body[0]
        except (cst.ParserSyntaxError, IndexError):
            continue
        node = line.body[0] if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 else None
        bound = _bound_names(node)
        going = [name for name in bound if name in names]
        if not going:
            continue
        text = file.text[statement.start : statement.end]
        unused = [name for name in going if not _is_used(file.text, code, name, statement)]
        if not unused:
            edits.append(Edit(file.path, statement.start, statement.end, text))
        elif len(unused) == len(bound):
            end = _line_end(file, statement.end)
            edits.append(Edit(file.path, statement.start - len(statement.indent), end, ""))
        else:
            kept = _without_names(text, unused)
            edits.append(Edit(file.path, statement.start, statement.end, kept))
    return tuple(edits)


def _bound_names(node: cst.CSTNode | None) -> list[str]:
    """Return the names that an import makes usable; ``import a.b`` is told as ``a.b``."""
    if not isinstance(node, (cst.Import, cst.ImportFrom)) or isinstance(node.names, cst.ImportStar):
        return []
    names = node.names
    return [dotted_name(alias.name if alias.asname is None else alias.asname.name) or "" for alias in names]


def _without(text: str, removed: list[tuple[int, int]]) -> str:
    """Blank out removed ranges, strings and comments, so that offsets stay."""
    for start, end in removed:
        text = text[:start] + " " * (end - start) + text[end:]
    return _CODE.sub(lambda match: " " * len(match[0]), text)


def _is_used(text: str, code: str, name: str, statement: ImportStatement) -> bool:
    pattern = re.compile(rf"(?<![\w.]){re.escape(name)}\b")
    # An annotation may be quoted, and `__all__` holds names.
    if any(pattern.search(match[2]) for match in _QUOTED_NAMES.finditer(text)):
        return True
    return any(
        not statement.start <= match.start() < statement.end and not _in_import(code, match.start())
        for match in pattern.finditer(code)
    )


def _in_import(code: str, offset: int) -> bool:
    line = code[code.rfind("\n", 0, offset) + 1 : offset].lstrip()
    return line.startswith(("import ", "from "))


def _without_names(text: str, names: list[str]) -> str:
    """Return a ``from`` import's code without some of its names."""
    for name in names:
        text = (
            re.sub(
                rf"(?:\w+\s+as\s+)?\b{re.escape(name)}\b[ \t]*,[ \t]*(?:\r?\n[ \t]*(?=\w))?",
                "",
                text,
                count=1,
            )
            if re.search(rf"\b{re.escape(name)}\b[ \t]*,", text)
            else re.sub(rf"\s*,\s*(?:\w+\s+as\s+)?\b{re.escape(name)}\b", "", text, count=1)
        )
    return text
