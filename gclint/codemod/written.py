"""One statement of a file, or a definition's header, as LibCST reads it: with its layout.

What only has to be understood is asked of Python's own tree; what is written anew needs LibCST's nodes.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import cached_property, lru_cache

import libcst as cst
from libcst.metadata import ByteSpanPositionProvider, CodeSpan, MetadataWrapper

from gclint.finding import Refusal
from gclint.source.file import SourceFile
from gclint.source.tree import DEFINITIONS, blocks_of

_KEPT = 64
"""A repair asks several times about the same few statements."""
_KINDS: dict[type[ast.AST], tuple[type[cst.CSTNode], ...]] = {
    ast.AsyncFor: (cst.For,),
    ast.AsyncFunctionDef: (cst.FunctionDef,),
    ast.AsyncWith: (cst.With,),
    ast.BinOp: (cst.BinaryOperation,),
    ast.BoolOp: (cst.BooleanOperation,),
    ast.Compare: (cst.Comparison,),
    ast.Constant: (
        cst.SimpleString,
        cst.ConcatenatedString,
        cst.Integer,
        cst.Float,
        cst.Imaginary,
        cst.Ellipsis,
        cst.Name,
    ),
    ast.Delete: (cst.Del,),
    ast.JoinedStr: (cst.FormattedString, cst.ConcatenatedString),
    ast.Starred: (cst.Arg, cst.StarredElement),
    ast.UnaryOp: (cst.UnaryOperation,),
    ast.YieldFrom: (cst.Yield,),
    ast.keyword: (cst.Arg,),
}
"""LibCST's kinds of nodes for Python's, where they do not have the same name."""
_Place = tuple[int, int]
_Key = tuple[type[cst.CSTNode], int, int | None]


class Written:
    """A statement, or the header of a definition, with the places of its nodes in the file."""

    def __init__(self, file: SourceFile, start: int, end: int, completion: str) -> None:
        """Parse ``[start, end)`` of the file's text.

        Args:
            file: the file whose text it is.
            start: where the code begins, or the line that it is the first on.
            end: where it ends.
            completion: code to append to what is incomplete, such as a header.

        Raises:
            libcst.ParserSyntaxError: LibCST cannot read the code, although Python can.
            RecursionError: it is nested too deeply.
        """
        self.file = file
        self._start = start
        code = file.text[start:end]
        # An indented statement is parsed under a header that is added here.
        self._header = f"if 1:{file.newline}" if code[:1] in (" ", "\t", "\f") else ""
        self._text = self._header + code + completion
        self.module = cst.parse_module(self._text)
        wrapper = MetadataWrapper(self.module, unsafe_skip_copy=True)
        self._spans: Mapping[cst.CSTNode, CodeSpan] = wrapper.resolve(ByteSpanPositionProvider)

    def twin(self, node: ast.AST) -> cst.CSTNode:
        """Return LibCST's node for a statement, expression or argument in this code.

        Raises:
            KeyError: LibCST has none, as for the tuple in ``x[a, b]``.
        """
        start, end = self.file.places.span(node)
        last = None if isinstance(node, ast.stmt) else self._byte(end)
        kinds = _KINDS.get(type(node)) or (getattr(cst, type(node).__name__),)
        for kind in kinds:
            found = self._twins.get((kind, self._byte(start), last))
            if found is not None:
                return found
        raise KeyError(node)

    def span(self, node: cst.CSTNode) -> _Place:
        """Return where a node's code begins and ends in the file, without brackets around it."""
        span = self._spans[node]
        return self._offset(span.start), self._offset(span.start + span.length)

    def source(self, node: cst.CSTNode) -> str:
        """Return a node's code, with brackets around it."""
        return self.module.code_for_node(node)

    @cached_property
    def _twins(self) -> dict[_Key, cst.CSTNode]:
        """The nodes by their kinds and places, as Python counts these; of a statement, where it begins."""
        found: dict[_Key, cst.CSTNode] = {}
        for node in self._spans:
            if isinstance(node, (cst.BaseStatement, cst.BaseSmallStatement)):
                found[type(node), self._spans[node].start, None] = node
            elif isinstance(node, (cst.BaseExpression, cst.Arg, cst.StarredElement)):
                start, end = self._bracketed(node)
                found[type(node), start, end] = node
                if isinstance(node, cst.Call):
                    found.update(self._only_generator(node))
        return found

    def _bracketed(self, node: cst.CSTNode) -> _Place:
        """Return the place of a node, with the brackets that Python takes for a part of it."""
        first = last = self._spans[node]
        if isinstance(node, (cst.Tuple, cst.GeneratorExp)) and node.lpar:
            first, last = self._spans[node.lpar[-1]], self._spans[node.rpar[0]]
        return first.start, last.start + last.length

    def _only_generator(self, call: cst.Call) -> Iterator[tuple[_Key, cst.CSTNode]]:
        """Yield a generator that shares its brackets with the call that it is the only argument of."""
        value = call.args[0].value if len(call.args) == 1 else None
        if isinstance(value, cst.GeneratorExp) and not value.lpar:
            opening = self._spans[call.whitespace_before_args].start - 1
            yield (cst.GeneratorExp, opening, self._bracketed(call)[1]), value

    @cached_property
    def _encoded(self) -> bytes | None:
        """The text in UTF-8 if its bytes and characters differ."""
        return None if self._text.isascii() else self._text.encode()

    def _offset(self, byte: int) -> int:
        characters = byte if self._encoded is None else len(self._encoded[:byte].decode())
        return self._start + characters - len(self._header)

    def _byte(self, offset: int) -> int:
        characters = offset - self._start + len(self._header)
        return characters if self._encoded is None else len(self._text[:characters].encode())


def written(file: SourceFile, node: ast.AST) -> Written | Refusal:
    """Return the smallest statement of a file, or header of a definition, that holds a node of its tree."""
    statement = _statement(file, node)
    start, end = file.places.span(statement)
    completion = ""
    if isinstance(statement, DEFINITIONS):
        definition = next(each for each in file.outline.definitions if each.header == start)
        start, end, completion = definition.start, definition.header_end, " pass"
    line = file.line_starts[file.places.row(start) - 1]
    if not file.text[line:start].strip():
        start = line
    found = _written(file, start, end, completion)
    row = file.position(start).row
    return found or Refusal(f"LibCST cannot read the code on line {row}, which Python can")


@lru_cache(maxsize=_KEPT)
def _written(file: SourceFile, start: int, end: int, completion: str) -> Written | None:
    try:
        return Written(file, start, end, completion)
    except (cst.ParserSyntaxError, RecursionError, ValueError):
        return None


def _statement(file: SourceFile, node: ast.AST) -> ast.stmt:
    """Return the smallest statement that holds a node and can stand alone, as an ``elif`` cannot."""
    assert file.tree is not None  # the node is of it
    start, end = file.places.span(node)
    body = file.tree.module.body
    found: ast.stmt | None = None
    while body:
        holding = next(
            (each for each in body if _begin(file, each) <= start and end <= file.places.end(each)), None
        )
        if holding is None:
            break
        if not (isinstance(holding, ast.If) and file.text.startswith("elif", file.places.start(holding))):
            found = holding
        body = [each for block in blocks_of(holding) for each in block]
    assert found is not None
    return found


def _begin(file: SourceFile, statement: ast.stmt) -> int:
    """Return where a statement begins, a definition with its decorators."""
    decorators = getattr(statement, "decorator_list", ())
    return file.places.start(decorators[0] if decorators else statement)
