"""The words in an expression."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gclint.code.walk import text_of, walk


def words_in(node: ast.AST) -> Iterator[str]:
    """Yield the names, attributes, keywords and texts in an expression."""
    for each in walk(node):
        if isinstance(each, ast.Name):
            yield each.id
        elif isinstance(each, ast.Attribute):
            yield each.attr
        elif isinstance(each, ast.keyword):
            yield each.arg or ""
        else:
            yield text_of(each) or ""
