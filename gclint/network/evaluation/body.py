"""The statements of a function, each parsed when a name in it is needed, and the names that they bind."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import pairwise

import libcst as cst
from libcst.helpers import ensure_type

from gclint.network.evaluation.walk import walk, walk_scope
from gclint.source.file import SourceFile
from gclint.source.fragment import Fragment
from gclint.source.outline import Definition
from gclint.source.tokens import COMMENT
from gclint.source.words import any_between, has_word, word_ends

COMPUTED = "*"
"""The key of attributes with computed names."""
_NAMING = ("add_module", "register_module")
COMPUTING = ("setattr", *_NAMING)
"""Functions that set an attribute whose name may be computed."""
ADDING_METHODS = frozenset(("append", "add", "extend", "insert", "update", *_NAMING))
"""Methods that add their last argument to a list or a module."""
_MANY_PIECES = 50
"""The number of pieces from which an index of their words pays off."""
_WORD = re.compile(r"\w+")
_QUOTES = ('"""', 'r"""', "'''")
_DEFINITIONS = (cst.FunctionDef, cst.ClassDef)
# Looked up by exact type, since most nodes are of other types.
BINDING_KINDS = frozenset(
    (
        cst.Assign,
        cst.AnnAssign,
        cst.AugAssign,
        cst.NamedExpr,
        cst.For,
        cst.CompFor,
        cst.WithItem,
        cst.Call,
    )
)


@dataclass(frozen=True)
class Binding:
    """One way in which a name gets a value."""

    value: cst.BaseExpression
    path: tuple[int, ...] = ()
    """Positions of the name in nested tuple targets."""
    iterated: bool = False
    """Whether the name is bound to the items of the value, as a loop's target is."""
    added: bool = False
    """Whether the value is added to the container that the name refers to."""

    @property
    def literal(self) -> cst.BaseExpression:
        """The item of the value at the name's position, as far as both are written as tuples."""
        value, path = self.value, self.path
        while path and isinstance(value, (cst.Tuple, cst.List)) and path[0] < len(value.elements):
            value, path = value.elements[path[0]].value, path[1:]
        return value


class Piece:
    """A part of a body: statements that are parsed already, or a range of text that is not."""

    def __init__(self, fragment: Fragment | None, nodes: Sequence[cst.CSTNode]) -> None:
        """Hold ``nodes`` of ``fragment``."""
        self.fragment = fragment
        self.nodes: Sequence[cst.CSTNode] | None = nodes
        self._bindings: dict[str, list[Binding]] | None = None
        self._functions: dict[str, cst.FunctionDef] = {}

    def parse(self) -> bool:
        """Parse the piece, and tell whether it can be parsed."""
        return True

    @property
    def text(self) -> str:
        """The piece's code, where it is not parsed yet."""
        return ""

    def mentions(self, name: str) -> bool:
        """Return whether the piece's code can bind a name."""
        return True

    def names(self, words: Collection[str]) -> bool:
        """Return whether one of ``words`` stands in the piece's code."""
        return True

    def holds(self, offsets: list[int]) -> bool:
        """Return whether one of sorted ``offsets`` of the file's text lies in the piece."""
        return True

    @property
    def bindings(self) -> Mapping[str, Sequence[Binding]]:
        """The bindings of the piece by name; the key of an attribute is ``self.name``."""
        self._collect()
        assert self._bindings is not None
        return self._bindings

    @property
    def functions(self) -> Mapping[str, cst.FunctionDef]:
        """The functions that the piece defines."""
        self._collect()
        return self._functions

    def _collect(self) -> None:
        if self._bindings is not None:
            return
        collected: defaultdict[str, list[Binding]] = defaultdict(list)
        for root in self.nodes or ():
            for node in (root, *walk_scope(root)):
                kind = type(node)
                if kind in BINDING_KINDS:
                    collect_bindings(collected, node)
                elif kind is cst.FunctionDef:
                    function = cst.ensure_type(node, cst.FunctionDef)
                    self._functions[function.name.value] = function
        self._bindings = dict(collected)


def nodes_in(pieces: Iterable[Piece]) -> Iterator[cst.CSTNode]:
    """Yield all nodes of parsed pieces, each before those below it."""
    return (node for piece in pieces for root in piece.nodes or () for node in walk(root))


class TextPiece(Piece):
    """A range of a file's text that consists of whole statements of one block."""

    def __init__(self, file: SourceFile, start: int, end: int, indent: str) -> None:
        """Hold ``[start, end)`` of the file's text, whose statements are indented by ``indent``."""
        super().__init__(None, ())
        self.nodes = None
        self._file, self._start, self._end, self._indent = file, start, end, indent

    @property
    def text(self) -> str:
        """The piece's code."""
        return self._file.outline.code[self._start : self._end]

    def parse(self) -> bool:
        """Parse the piece, and tell whether it can be parsed."""
        if self.nodes is None:
            try:
                self.fragment = Fragment(self._file, self._start, self._end, self._indent)
            except cst.ParserSyntaxError:
                return False
            self.nodes = self.fragment.body
        return True

    def mentions(self, name: str) -> bool:
        """Return whether the piece's code can bind a name; a computed attribute's name is ``*``."""
        holder, dot, last = name.rpartition(".")
        if last == COMPUTED:
            return any(word in self.text for word in COMPUTING)
        code = self._file.outline.code
        for offset in word_ends(code, dot + last, self._start, self._end):
            if _BINDING_TAIL.match(code, offset, self._end) or _is_defined(code, offset - len(last)):
                return True
        return bool(holder) and code.find("setattr", self._start, self._end) != -1

    def names(self, words: Collection[str]) -> bool:
        """Return whether one of ``words`` stands in the piece's code."""
        text = self._file.outline.code
        if text.startswith(_QUOTES, self._start + len(self._indent)):
            return False
        return any(has_word(text, word, self._start, self._end) for word in words)

    def holds(self, offsets: list[int]) -> bool:
        """Return whether one of sorted ``offsets`` of the file's text lies in the piece."""
        return any_between(offsets, self._start, self._end)


class Body:
    """The statements of a function, or the clauses of a comprehension."""

    def __init__(
        self, pieces: Sequence[Piece], file: SourceFile, definition: Definition | None = None
    ) -> None:
        """Hold the pieces of one body.

        Args:
            pieces: the code.
            file: the file that contains it.
            definition: the function, if the pieces were found by splitting its lines.
        """
        self._pieces = pieces
        self._file = file
        self._definition = definition
        self._by_name: dict[str, Sequence[Piece]] = {}
        """The pieces that may contain a name, for names that were needed."""

    @property
    def definition(self) -> Definition | None:
        """The function, if this is the body of one that is defined in a file."""
        return self._definition

    @classmethod
    def of_nodes(cls, fragment: Fragment, nodes: Sequence[cst.CSTNode]) -> Body:
        """Return the body that consists of nodes that are parsed already."""
        return cls([Piece(fragment, nodes)], fragment.file)

    @classmethod
    def of_definition(cls, file: SourceFile, definition: Definition) -> Body:
        """Return the body of a function, without parsing it."""
        return cls(list(_split(file, definition)), file, definition)

    @classmethod
    def of_class(cls, file: SourceFile, definition: Definition) -> Body:
        """Return the code of a class outside of its functions and classes, without parsing it."""
        return cls(list(_between_members(file, definition)), file, definition)

    def pieces(self, name: str | None = None) -> Sequence[Piece]:
        """Return the parsed pieces that may contain ``name``, or all of them."""
        if name is None:
            return self._parsed(self._pieces)
        known = self._by_name.get(name)
        if known is None:
            likely = self._pieces if len(self._pieces) < _MANY_PIECES else self._likely(name)
            known = self._parsed([piece for piece in likely if piece.mentions(name)])
            self._by_name[name] = known
        return known

    def _likely(self, name: str) -> Sequence[Piece]:
        """Return the pieces that contain a name as a word, or that set attributes with computed names."""
        last = name.rpartition(".")[2]
        words = (last, COMPUTED) if "." in name else (last,)
        rows = {row for word in words for row in self._index.get(word, ())}
        return [self._pieces[row] for row in sorted(rows)]

    @cached_property
    def _index(self) -> Mapping[str, Sequence[int]]:
        """The numbers of the pieces by the words in them; pieces that compute names are also under ``*``."""
        found: defaultdict[str, list[int]] = defaultdict(list)
        for row, piece in enumerate(self._pieces):
            text = piece.text
            for word in set(_WORD.findall(text)):
                found[word].append(row)
            if any(word in text for word in COMPUTING):
                found[COMPUTED].append(row)
        return found

    def pieces_following(self, name: str) -> Sequence[Piece]:
        """Return the pieces that may bind a name, and those that mention it and are parsed already."""
        self.pieces(name)
        return [piece for piece in self._pieces if piece.nodes is not None and piece.names((name,))]

    def pieces_at(self, offsets: list[int]) -> Sequence[Piece]:
        """Return the parsed pieces that contain one of the sorted ``offsets`` in the file's text."""
        return self._parsed([piece for piece in self._pieces if piece.holds(offsets)])

    def pieces_naming(self, words: Collection[str]) -> Sequence[Piece]:
        """Return the parsed pieces whose code contains one of ``words``, without docstrings."""
        if self._definition is not None:
            # Most words are not in the function at all, and need not be searched in each statement.
            code, start, end = self._file.outline.code, self._definition.start, self._definition.end
            words = [word for word in words if code.find(word, start, end) != -1]
        return self._parsed([piece for piece in self._pieces if piece.names(words)])

    def _parsed(self, pieces: Sequence[Piece]) -> Sequence[Piece]:
        if all(piece.parse() for piece in pieces):
            return pieces
        # The lines were split in the middle of a statement, so the definition is parsed as a whole.
        self._pieces = self._whole()
        self._by_name.clear()
        return self._pieces

    def _whole(self) -> Sequence[Piece]:
        if self._definition is None:
            return []
        whole = TextPiece(self._file, self._definition.start, self._definition.end, self._definition.indent)
        if not whole.parse() or not whole.nodes:
            return []
        node = whole.nodes[0]
        return [Piece(whole.fragment, node.body.body)] if isinstance(node, _DEFINITIONS) else []


def _split(file: SourceFile, definition: Definition) -> Iterator[Piece]:
    """Split a function's body at the lines where statements seem to begin."""
    if definition.header_end is None:
        return
    first = _FIRST_LINE.match(file.outline.code, definition.header_end)
    if first is None or len(first["indent"]) <= len(definition.indent):
        # The body is on the line of the header.
        yield TextPiece(file, definition.start, definition.end, definition.indent)
        return
    yield from _statements(file, first["indent"], first.start("indent"), definition.end)


def _between_members(file: SourceFile, definition: Definition) -> Iterator[Piece]:
    """Split the code of a class outside of its functions and classes."""
    if definition.header_end is None:
        return
    first = _FIRST_LINE.match(file.outline.code, definition.header_end)
    if first is None or len(first["indent"]) <= len(definition.indent):
        yield TextPiece(file, definition.start, definition.end, definition.indent)
        return
    start = first.start("indent")
    for child in definition.children:
        if child.indent == first["indent"]:
            yield from _statements(file, child.indent, start, child.start)
            start = child.end
    yield from _statements(file, first["indent"], start, definition.end)


def _statements(file: SourceFile, indent: str, start: int, end: int) -> Iterator[Piece]:
    """Split the lines of a block at those where statements seem to begin."""
    starts = [
        match.start() + 1
        for match in _statement(indent).finditer(file.outline.code, max(start - 1, 0), end)
        if not file.outline.in_long_string(match.start() + 1)
    ]
    for first, last in pairwise([*starts, end]):
        yield TextPiece(file, first, last, indent)


# What may follow a name where it is bound, or where something is added to its value.
_BINDING_TAIL = re.compile(
    r"(?<![ \t])[ \t]*(?:$|[\r\n,):\]]|=(?!=)|(?:[-+*/|&@%^]|//|\*\*|>>|<<)=|in\b|\["
    rf"|\.(?:{'|'.join(sorted(ADDING_METHODS))})\b)"
)
_FIRST_LINE = re.compile(
    rf"(?<=:)[ \t]*(?:{COMMENT})?(?:[\r\n][ \t\f]*(?:{COMMENT})?)*[\r\n](?P<indent>[ \t\f]+)(?=\S)"
)


def _is_defined(code: str, offset: int) -> bool:
    """Return whether a name follows ``def``."""
    return code[max(offset - 80, 0) : offset].rstrip().endswith("def")


@cache
def _statement(indent: str) -> re.Pattern[str]:
    """Match a line end, and the indentation of the next line, which may begin a statement of a block."""
    return re.compile(rf"\n{re.escape(indent)}(?=[^\s#)\]}}])(?!(?:else|elif|except|finally)\b)")


def collect_bindings(collected: defaultdict[str, list[Binding]], node: cst.CSTNode) -> None:
    """Record the bindings that a node itself makes."""
    # The most frequent type comes first, since checks that fail are slow.
    if isinstance(node, cst.Call):
        _bind_addition(collected, node)
    elif isinstance(node, cst.Assign):
        for target in node.targets:
            _bind(collected, target.target, Binding(node.value))
    elif isinstance(node, (cst.AnnAssign, cst.AugAssign, cst.NamedExpr)):
        if node.value is not None:
            _bind(collected, node.target, Binding(node.value))
    elif isinstance(node, (cst.For, cst.CompFor)):
        _bind(collected, node.target, Binding(node.iter, iterated=True))
    elif (
        isinstance(node, cst.WithItem) and node.asname is not None and isinstance(node.asname.name, cst.Name)
    ):
        _bind(collected, node.asname.name, Binding(node.item))


def _bind(collected: defaultdict[str, list[Binding]], target: cst.CSTNode, binding: Binding) -> None:
    """Record the bindings of the names in an assignment target."""
    if isinstance(target, cst.Name):
        collected[target.value].append(binding)
    elif isinstance(target, (cst.Tuple, cst.List)):
        for index, element in enumerate(target.elements):
            _bind(
                collected,
                element.value,
                Binding(binding.value, (*binding.path, index), binding.iterated),
            )
    elif isinstance(target, cst.Subscript):
        key = _container_key(target.value)
        if key is not None:
            collected[key].append(Binding(binding.value, binding.path, binding.iterated, added=True))
    elif isinstance(target, cst.Attribute):
        key = _container_key(target)
        if key is not None:
            collected[key].append(binding)


def _bind_addition(collected: defaultdict[str, list[Binding]], call: cst.Call) -> None:
    """Record ``name.append(value)`` and similar calls, and ``setattr(self, …, value)``."""
    if isinstance(call.func, cst.Name) and call.func.value == "setattr" and len(call.args) == 3:
        holder = _container_key(call.args[0].value)
        attribute = call.args[1].value
        if holder is not None:
            literal = isinstance(attribute, cst.SimpleString)
            name = str(ensure_type(attribute, cst.SimpleString).evaluated_value) if literal else COMPUTED
            collected[f"{holder}.{name}"].append(Binding(call.args[2].value))
        return
    if (
        not isinstance(call.func, cst.Attribute)
        or call.func.attr.value not in ADDING_METHODS
        or not call.args
    ):
        return
    key = _container_key(call.func.value)
    if key is None:
        return
    method, value = call.func.attr.value, call.args[-1].value
    if method in _NAMING and "." not in key:
        collected[f"{key}.{COMPUTED}"].append(Binding(value))
    elif method in ("extend", "update"):
        collected[key].append(Binding(value))
    else:
        collected[key].append(Binding(value, added=True))


def _container_key(node: cst.CSTNode) -> str | None:
    """Return the key of a name (``layers``) or an attribute (``self.layers``) in bindings."""
    if isinstance(node, cst.Name):
        return node.value
    if isinstance(node, cst.Attribute) and isinstance(node.value, cst.Name):
        return f"{node.value.value}.{node.attr.value}"
    if isinstance(node, cst.Subscript):
        return _container_key(node.value)
    return None


def statement_fragment(file: SourceFile, name: str, indent: str, start: int, end: int) -> Fragment | None:
    """Parse the statement that assigns ``name`` at an indentation between two offsets."""
    code = file.outline.code
    if code.find(f"\n{indent}{name}", max(start - 1, 0), end) == -1:
        return None
    pattern = re.compile(rf"^{indent}{re.escape(name)}[ \t]*(?::[^=\n]+)?=(?!=)", re.MULTILINE)
    for match in pattern.finditer(code, start, end):
        if file.outline.in_long_string(match.start()):
            continue
        stop = file.outline.block_end(match.start() + len(indent), len(indent))
        try:
            return Fragment(file, match.start(), min(stop, end), indent)
        except cst.ParserSyntaxError:
            return None
    return None
