"""The parameters of a function, read from its header alone."""

from __future__ import annotations

import ast
import re
import warnings
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from itertools import accumulate
from weakref import WeakKeyDictionary

import libcst as cst

from gclint.network.evaluation.walk import code, walk
from gclint.source.file import SourceFile
from gclint.source.fragment import Fragment
from gclint.source.outline import Definition


class Kind(Enum):
    """How arguments can be passed to a parameter."""

    POSITIONAL_ONLY = "positional-only"
    NORMAL = "normal"
    VAR_POSITIONAL = "*args"
    KEYWORD_ONLY = "keyword-only"
    VAR_KEYWORD = "**kwargs"


@dataclass(frozen=True)
class Parameter:
    """One parameter; ``default`` is its code, ``annotation`` the words in it."""

    name: str
    kind: Kind = Kind.NORMAL
    default: str | None = None
    annotation: str | None = None

    @property
    def positional(self) -> bool:
        """Whether an argument can be passed by position."""
        return self.kind in (Kind.POSITIONAL_ONLY, Kind.NORMAL)


@dataclass(frozen=True)
class Signature:
    """The parameters of a method, without ``self``."""

    parameters: tuple[Parameter, ...]

    @property
    def positional(self) -> tuple[Parameter, ...]:
        """The parameters that can be passed by position, in order."""
        return tuple(parameter for parameter in self.parameters if parameter.positional)

    def get(self, name: str) -> Parameter | None:
        """Return the parameter of that name."""
        return next((parameter for parameter in self.parameters if parameter.name == name), None)

    def index(self, name: str) -> int | None:
        """Return the index of a parameter among the positional ones; None if it is not one of them."""
        names = [parameter.name for parameter in self.positional]
        return names.index(name) if name in names else None


_PLAIN = (
    ast.Name,
    ast.Attribute,
    ast.Subscript,
    ast.Tuple,
    ast.BinOp,
    ast.BitOr,
    ast.Constant,
    ast.UnaryOp,
    ast.USub,
    ast.expr_context,
)
_VARIABLE = (Kind.VAR_POSITIONAL, Kind.VAR_KEYWORD)
_ODD = ("\\", "#", "\r", "\f")
"""Rare syntax in headers, for which offsets would be hard to compute."""
_UNPLAIN = ("(", "\n", "'", '"')
_WORDS = re.compile(r"\b[A-Za-z_]\w*")
_SIGNATURES: WeakKeyDictionary[Definition, Signature | None] = WeakKeyDictionary()
"""The signatures that have been read, as long as their definitions exist."""


def method_signature(file: SourceFile, method: Definition) -> Signature | None:
    """Return the signature of a method; None if it has no ``self`` or cannot be read."""
    if method not in _SIGNATURES:
        _SIGNATURES[method] = _read_signature(file, method)
    return _SIGNATURES[method]


def _read_signature(file: SourceFile, method: Definition) -> Signature | None:
    plain = _plain_parameters(file, method)
    if plain is not None:
        return Signature(plain[1:]) if plain and plain[0].positional else None
    header = header_fragment(file, method)
    if header is None:
        return None
    params = cst.ensure_type(header.body[0], cst.FunctionDef).params
    parameters = [_parameter(param, Kind.POSITIONAL_ONLY) for param in params.posonly_params]
    parameters += [_parameter(param, Kind.NORMAL) for param in params.params]
    if not parameters:
        return None
    parameters = parameters[1:]
    if isinstance(params.star_arg, cst.Param):
        parameters.append(_parameter(params.star_arg, Kind.VAR_POSITIONAL))
    parameters += [_parameter(param, Kind.KEYWORD_ONLY) for param in params.kwonly_params]
    if params.star_kwarg is not None:
        parameters.append(_parameter(params.star_kwarg, Kind.VAR_KEYWORD))
    return Signature(tuple(parameters))


def function_signature(function: cst.FunctionDef) -> Signature | None:
    """Return the signature of a function that has only ordinary parameters; None for any other."""
    params = function.params
    if (
        params.posonly_params
        or params.kwonly_params
        or params.star_kwarg
        or isinstance(params.star_arg, cst.Param)
    ):
        return None
    return Signature(
        tuple(
            Parameter(param.name.value, Kind.NORMAL, None if param.default is None else code(param.default))
            for param in params.params
        )
    )


def header_fragment(file: SourceFile, method: Definition) -> Fragment | None:
    """Parse a function's header, with its decorators and without its body."""
    if method.header_end is None:
        return None
    try:
        return Fragment(file, method.start, method.header_end, method.indent, completion=" pass")
    except cst.ParserSyntaxError:
        return None


def _plain_parameters(file: SourceFile, method: Definition) -> tuple[Parameter, ...] | None:
    """Return a function's parameters, read with Python's own parser, which takes a tenth of the time.

    None if it may not know the syntax, or if the header has rare syntax.
    """
    text = "" if method.header_end is None else file.text[method.header : method.header_end]
    if not text or any(each in text for each in _ODD) or not text.isascii():
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            (function,) = ast.parse(f"{text} pass").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return None
    starts = [0, *accumulate(len(line) + 1 for line in text.split("\n"))]
    args = function.args
    ordered = [(arg, Kind.POSITIONAL_ONLY) for arg in args.posonlyargs]
    ordered += [(arg, Kind.NORMAL) for arg in args.args]
    defaults = [*[None] * (len(ordered) - len(args.defaults)), *args.defaults, None]
    ordered += [(args.vararg, Kind.VAR_POSITIONAL)] if args.vararg else []
    defaults = defaults if args.vararg else defaults[:-1]
    ordered += [(arg, Kind.KEYWORD_ONLY) for arg in args.kwonlyargs]
    defaults += [*args.kw_defaults, None]
    ordered += [(args.kwarg, Kind.VAR_KEYWORD)] if args.kwarg else []
    found = []
    for (arg, kind), default in zip(ordered, defaults, strict=False):
        written = [
            None if each is None else _plain_code(each, text, starts) for each in (default, arg.annotation)
        ]
        if "" in written:
            return None
        words = None if written[1] is None else " ".join(_WORDS.findall(written[1]))
        found.append(Parameter(arg.arg, kind, written[0], words))
    return tuple(found)


def _plain_code(node: ast.expr, text: str, starts: list[int]) -> str:
    """Return the code of a node that consists of names, subscripts, unions and numbers; else nothing."""
    for each in ast.walk(node):
        if not isinstance(each, _PLAIN) or (isinstance(each, ast.Constant) and not _is_plain(each.value)):
            return ""
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    start = starts[node.lineno - 1] + node.col_offset
    code = text[start : starts[node.end_lineno - 1] + node.end_col_offset]
    is_bare = text[:start].rstrip()[-1:] in (":", "=") and not any(each in code for each in _UNPLAIN)
    return code if is_bare else ""


def _is_plain(value: object) -> bool:
    return value is None or isinstance(value, (bool, int, float))


def _parameter(param: cst.Param, kind: Kind) -> Parameter:
    return Parameter(
        param.name.value,
        kind,
        None if param.default is None else code(param.default),
        None if param.annotation is None else _words(param.annotation.annotation),
    )


def _words(annotation: cst.BaseExpression) -> str:
    return " ".join(
        node.value if isinstance(node, (cst.Name, cst.SimpleString)) else ""
        for node in walk(annotation)
        if type(node) in (cst.Name, cst.SimpleString)
    )


class Parameters:
    """The parameters of a function; the header is parsed only if a name may be one of them."""

    def __init__(
        self,
        node: cst.FunctionDef | cst.Lambda | None = None,
        file: SourceFile | None = None,
        definition: Definition | None = None,
    ) -> None:
        """Describe the parameters of a parsed function, or of a definition in a file."""
        self._node = node
        self._file = file
        self._definition = definition

    def has(self, name: str) -> bool:
        """Return whether there is a parameter with this name."""
        if self._node is None and self._file is not None and self._definition is not None:
            end = self._definition.header_end
            if end is None or self._file.text.find(name, self._definition.header, end) == -1:
                return False
        return name in self._defaults

    def default(self, name: str) -> cst.BaseExpression | None:
        """Return a parameter's default."""
        default = self._defaults[name]
        if isinstance(default, str):
            default = self._defaults[name] = cst.parse_expression(default)
        return default

    @property
    def names(self) -> list[str]:
        """The parameters that can be passed by position or keyword, in order."""
        return list(self._defaults)

    @cached_property
    def variable(self) -> frozenset[str]:
        """The names of ``*args`` and ``**kwargs``."""
        node = self._node
        if node is None and self._file is not None and self._definition is not None:
            plain = _plain_parameters(self._file, self._definition)
            if plain is not None:
                return frozenset(each.name for each in plain if each.kind in _VARIABLE)
            header = header_fragment(self._file, self._definition)
            node = None if header is None else cst.ensure_type(header.body[0], cst.FunctionDef)
        params = None if node is None else node.params
        stars = () if params is None else (params.star_arg, params.star_kwarg)
        return frozenset(each.name.value for each in stars if isinstance(each, cst.Param))

    @cached_property
    def _defaults(self) -> dict[str, cst.BaseExpression | str | None]:
        """The defaults by name; those that have not been needed yet are code."""
        node = self._node
        if node is None and self._file is not None and self._definition is not None:
            plain = _plain_parameters(self._file, self._definition)
            if plain is not None:
                return {each.name: each.default for each in plain if each.kind not in _VARIABLE}
            header = header_fragment(self._file, self._definition)
            node = None if header is None else cst.ensure_type(header.body[0], cst.FunctionDef)
        if node is None:
            return {}
        params = node.params
        listed = [*params.posonly_params, *params.params, *params.kwonly_params]
        return {param.name.value: param.default for param in listed}
