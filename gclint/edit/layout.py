"""The arguments of a call, or the parameters of a function, written anew with the comments beside them.

LibCST reads the one call or header with its layout; only what is written anew loads it.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import libcst as cst

from gclint.code.file import SourceFile
from gclint.code.outline import Definition
from gclint.edit.edits import LINE_LENGTH
from gclint.finding import Edit, Refusal

_Node: TypeAlias = "cst.Arg | cst.Param | cst.ParamStar"


@dataclass(frozen=True)
class Item:
    """An argument's or a parameter's code and the comments that stand before and behind it."""

    code: str
    leading: tuple[str, ...] = ()
    trailing: str | None = None


class Listing:
    """Items between brackets, as they stand in a file."""

    def __init__(
        self, file: SourceFile, end: int, code: cst.Module, before: cst.CSTNode, nodes: Sequence[_Node]
    ) -> None:
        """Describe a list.

        Args:
            file: the file.
            end: where the closing bracket stands.
            code: the code around the list, as it is written.
            before: the white space behind the opening bracket.
            nodes: the items.
        """
        inside = "".join(map(code.code_for_node, (before, *nodes)))
        self._file, self._start, self._end = file, end - len(inside), end
        line = file.line(file.position(self._start).row)
        outer = line[: len(line) - len(line.lstrip())]
        comment, leading = _comments(before)
        self._opening = code.code_for_node(before).partition(comment)[0] + comment if comment else ""
        found: list[Item] = []
        indents = [] if not nodes else _indents(before)
        for node in nodes:
            gap = _behind(node)
            trailing, following = _comments(gap)
            if trailing is None and isinstance(node.comma, cst.Comma):
                trailing, _ = _comments(node.comma.whitespace_before)
            found.append(Item(_code(code, node), leading, trailing))
            indents += _indents(gap) if node is not nodes[-1] or following else []
            leading = following
        self.items = tuple(found)
        """Its items, arguments without the names that they are passed by."""
        self._last = leading if nodes else ()
        last = _behind(nodes[-1]) if nodes else before
        self._is_broken = bool(indents)
        self._indent = indents[0] if indents else f"{outer}    "
        self._closing = last.last_line.value if isinstance(last, cst.ParenthesizedWhitespace) else outer
        self._has_comma = bool(nodes) and isinstance(nodes[-1].comma, cst.Comma)

    def written(self, items: Sequence[Item]) -> Edit:
        """Return the edit that puts items in the place of those between the brackets."""
        newline = self._file.newline
        line = ", ".join(item.code for item in items)
        is_plain = not (self._is_broken or self._opening or self._last or "\n" in line)
        is_plain = is_plain and not any(item.leading or item.trailing for item in items)
        if is_plain and self._file.position(self._start).column - 1 + len(line) < LINE_LENGTH:
            return Edit(self._file.path, self._start, self._end, line)
        rows: list[str] = []
        for item in items:
            is_last = item is items[-1]
            comma = "," if not is_last or self._has_comma or not self._is_broken else ""
            rows += [*item.leading, f"{item.code}{comma}{f'  {item.trailing}' if item.trailing else ''}"]
        rows = [self._indent + row for row in (*rows, *self._last)]
        content = newline.join((self._opening, *rows, self._closing))
        return Edit(self._file.path, self._start, self._end, content)


def argument_list(file: SourceFile, call: ast.Call) -> Listing | Refusal:
    """Return the arguments of a call."""
    try:
        # In brackets, its lines may begin anywhere.
        code = cst.parse_module(f"({file.source(call)})")
        statement = cst.ensure_type(code.body[0], cst.SimpleStatementLine).body[0]
        node = cst.ensure_type(cst.ensure_type(statement, cst.Expr).value, cst.Call)
        return Listing(file, file.places.end(call) - 1, code, node.whitespace_before_args, node.args)
    except (cst.ParserSyntaxError, RecursionError, ValueError):
        return _unreadable(call)


def parameter_list(file: SourceFile, function: Definition) -> Listing | Refusal:
    """Return the parameters of a function that has no positional-only ones."""
    header = file.text[function.header : function.header_end]
    try:
        code = cst.parse_module(f"{header} pass")
        node = cst.ensure_type(code.body[0], cst.FunctionDef)
        params = node.params
        star = (params.star_arg,) if isinstance(params.star_arg, (cst.Param, cst.ParamStar)) else ()
        last = () if params.star_kwarg is None else (params.star_kwarg,)
        nodes = (*params.params, *star, *params.kwonly_params, *last)
        inside = "".join(map(code.code_for_node, (node.whitespace_before_params, *nodes)))
        end = function.header + header.index(f"({inside})") + 1 + len(inside)
        return Listing(file, end, code, node.whitespace_before_params, nodes)
    except (cst.ParserSyntaxError, RecursionError, ValueError):
        return _unreadable(function.node)


def _unreadable(node: ast.stmt | ast.expr) -> Refusal:
    return Refusal(f"LibCST cannot read the code on line {node.lineno}, which Python can")


def _behind(node: _Node) -> cst.CSTNode:
    """Return the white space between an item and what follows it."""
    if isinstance(node.comma, cst.Comma):
        return node.comma.whitespace_after
    if isinstance(node, cst.ParamStar):
        return cst.SimpleWhitespace("")
    return node.whitespace_after_arg if isinstance(node, cst.Arg) else node.whitespace_after_param


def _code(printer: cst.Module, node: _Node) -> str:
    """Return the code of an item alone, without its keyword and comma."""
    none, default = cst.SimpleWhitespace(""), cst.MaybeSentinel.DEFAULT
    if isinstance(node, cst.ParamStar):
        return "*"
    if isinstance(node, cst.Param):
        return printer.code_for_node(node.with_changes(comma=default, whitespace_after_param=none))
    bare = node.with_changes(comma=default, whitespace_after_arg=none, keyword=None, equal=default)
    return printer.code_for_node(bare)


def _comments(gap: cst.CSTNode) -> tuple[str | None, tuple[str, ...]]:
    """Return the comment at the end of a line and those on lines of their own in white space."""
    if not isinstance(gap, cst.ParenthesizedWhitespace):
        return None, ()
    first = gap.first_line.comment
    own = tuple(line.comment.value for line in gap.empty_lines if line.comment is not None)
    return (None if first is None else first.value), own


def _indents(gap: cst.CSTNode) -> list[str]:
    """Return the indentation of the lines that begin in white space, blank ones left out."""
    if not isinstance(gap, cst.ParenthesizedWhitespace):
        return []
    own = [line.whitespace.value for line in gap.empty_lines if line.comment is not None]
    return [*own, gap.last_line.value]
