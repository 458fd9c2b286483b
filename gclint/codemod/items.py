"""The arguments of a call and the parameters of a function as they are written, with their comments."""

from __future__ import annotations

import ast

import libcst as cst

from gclint.codemod.listing import Item, value_code
from gclint.codemod.written import Written, written
from gclint.finding import Refusal
from gclint.source.file import SourceFile
from gclint.source.walk import FunctionNode


def argument_items(file: SourceFile, call: ast.Call) -> list[Item] | Refusal:
    """Return the arguments of a call, in the order of the text, without the names that they are passed by."""
    found = written(file, call)
    if isinstance(found, Refusal):
        return found
    twin = cst.ensure_type(found.twin(call), cst.Call)
    items: list[Item] = []
    _, leading = _comments(twin.whitespace_before_args)
    for arg in twin.args:
        start, end = found.span(arg)
        behind = arg.comma.whitespace_after if isinstance(arg.comma, cst.Comma) else arg.whitespace_after_arg
        trailing, following = _comments(behind)
        code = value_code(file.text[start:end], None if arg.keyword is None else arg.keyword.value)
        items.append(Item(code, leading, trailing))
        leading = following
    return items


def parameter_items(file: SourceFile, function: FunctionNode) -> list[Item] | Refusal:
    """Return the parameters of a function without positional-only ones, in the order of the text."""
    found = written(file, function)
    if isinstance(found, Refusal):
        return found
    twin = cst.ensure_type(found.twin(function), cst.FunctionDef)
    params = twin.params
    nodes: list[cst.Param | cst.ParamStar] = [*params.params]
    if isinstance(params.star_arg, (cst.Param, cst.ParamStar)):
        nodes.append(params.star_arg)
    nodes += params.kwonly_params
    if params.star_kwarg is not None:
        nodes.append(params.star_kwarg)
    items: list[Item] = []
    _, leading = _comments(twin.whitespace_before_params)
    for node in nodes:
        behind = node.comma.whitespace_after if isinstance(node.comma, cst.Comma) else None
        if behind is None and isinstance(node, cst.Param):
            behind = node.whitespace_after_param
        trailing, following = _comments(behind)
        items.append(Item(_param_code(found, node), leading, trailing))
        leading = following
    return items


def _param_code(found: Written, node: cst.Param | cst.ParamStar) -> str:
    if isinstance(node, cst.ParamStar):
        return "*"
    bare = node.with_changes(comma=cst.MaybeSentinel.DEFAULT, whitespace_after_param=cst.SimpleWhitespace(""))
    return found.source(bare).strip()


def _comments(whitespace: object) -> tuple[str | None, tuple[str, ...]]:
    """Return the comment at the end of a line and those on lines of their own in a whitespace."""
    if not isinstance(whitespace, cst.ParenthesizedWhitespace):
        return None, ()
    first = whitespace.first_line.comment
    own = tuple(line.comment.value for line in whitespace.empty_lines if line.comment is not None)
    return (None if first is None else first.value), own
