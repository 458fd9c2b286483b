"""Makes LibCST's nodes, without their layout, from the result of Python's own parser."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeAlias, TypeVar, cast

import libcst as cst

_Node = TypeVar("_Node", bound=cst.CSTNode)
Span: TypeAlias = "tuple[int, int]"
# A simple string literal, as nearly all are.
_ONE_STRING = re.compile(r"[a-zA-Z]{0,2}(?:\"\"\"[^\"\\]*\"\"\"|\"[^\"\\\n]*\"|'[^'\\\n]*')")
# Python counts columns in bytes, and has other line ends.
_ODD = ("\r", "\f")


class _NotRead(Exception):
    """The text has something rare that is left to LibCST."""


def read_bare(text: str) -> tuple[list[cst.BaseStatement], dict[cst.CSTNode, Span]] | None:
    """Return a text's statements, and the places of these and of calls; None if LibCST has to read it.

    Fields for layout are missing altogether: see ``gclint.source.tree``.
    """
    if not text.isascii() or any(each in text for each in _ODD):
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module = ast.parse(text)
        reader = _Reader(text)
        return list(reader.statements(module.body)), reader.places
    except (_NotRead, SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _maker(kind: type[_Node], *names: str) -> Callable[..., _Node]:
    """Return a function that makes a node of a kind from its fields, in this order."""
    new = cast("Callable[[type[_Node]], _Node]", object.__new__)
    setters = [cast("Any", kind).__dict__[name].__set__ for name in names]
    if len(setters) == 1:
        (only,) = setters

        def make_of_one(value: object) -> _Node:
            node = new(kind)
            only(node, value)
            return node

        return make_of_one
    if len(setters) == 2:
        first, second = setters

        def make_of_two(one: object, other: object) -> _Node:
            node = new(kind)
            first(node, one)
            second(node, other)
            return node

        return make_of_two

    def make(*values: object) -> _Node:
        node = new(kind)
        for setter, value in zip(setters, values, strict=True):
            setter(node, value)
        return node

    return make


_name = _maker(cst.Name, "value")
_attribute = _maker(cst.Attribute, "value", "attr")
_call = _maker(cst.Call, "func", "args")
_arg = _maker(cst.Arg, "value", "keyword", "star")
_subscript = _maker(cst.Subscript, "value", "slice")
_subscript_element = _maker(cst.SubscriptElement, "slice")
_index = _maker(cst.Index, "value", "star")
_slice = _maker(cst.Slice, "lower", "upper", "step", "first_colon", "second_colon")
_colon = _maker(cst.Colon)
_integer = _maker(cst.Integer, "value")
_float = _maker(cst.Float, "value")
_imaginary = _maker(cst.Imaginary, "value")
_string = _maker(cst.SimpleString, "value")
_ellipsis = _maker(cst.Ellipsis)
_unary = _maker(cst.UnaryOperation, "operator", "expression")
_binary = _maker(cst.BinaryOperation, "left", "operator", "right")
_boolean = _maker(cst.BooleanOperation, "left", "operator", "right")
_comparison = _maker(cst.Comparison, "left", "comparisons")
_comparison_target = _maker(cst.ComparisonTarget, "operator", "comparator")
_if_expression = _maker(cst.IfExp, "test", "body", "orelse")
_named = _maker(cst.NamedExpr, "target", "value")
_lambda = _maker(cst.Lambda, "params", "body")
_await = _maker(cst.Await, "expression")
_yield = _maker(cst.Yield, "value")
_from = _maker(cst.From, "item")
_tuple = _maker(cst.Tuple, "elements")
_list = _maker(cst.List, "elements")
_set = _maker(cst.Set, "elements")
_list_comprehension = _maker(cst.ListComp, "elt", "for_in")
_set_comprehension = _maker(cst.SetComp, "elt", "for_in")
_generator = _maker(cst.GeneratorExp, "elt", "for_in")
_element = _maker(cst.Element, "value")
_starred = _maker(cst.StarredElement, "value")
_dict = _maker(cst.Dict, "elements")
_dict_element = _maker(cst.DictElement, "key", "value")
_starred_dict_element = _maker(cst.StarredDictElement, "value")
_dict_comprehension = _maker(cst.DictComp, "key", "value", "for_in")
_comp_for = _maker(cst.CompFor, "target", "iter", "ifs", "inner_for_in", "asynchronous")
_comp_if = _maker(cst.CompIf, "test")
_parameters = _maker(
    cst.Parameters, "params", "star_arg", "kwonly_params", "star_kwarg", "posonly_params", "posonly_ind"
)
_param = _maker(cst.Param, "name", "annotation", "default", "star")
_param_star = _maker(cst.ParamStar)
_param_slash = _maker(cst.ParamSlash)
_annotation = _maker(cst.Annotation, "annotation")

_line = _maker(cst.SimpleStatementLine, "body")
_block = _maker(cst.IndentedBlock, "body", "indent")
_expression = _maker(cst.Expr, "value")
_assign = _maker(cst.Assign, "targets", "value")
_assign_target = _maker(cst.AssignTarget, "target")
_annotated_assign = _maker(cst.AnnAssign, "target", "annotation", "value")
_augmented_assign = _maker(cst.AugAssign, "target", "operator", "value")
_return = _maker(cst.Return, "value")
_raise = _maker(cst.Raise, "exc", "cause")
_assert = _maker(cst.Assert, "test", "msg")
_pass = _maker(cst.Pass)
_break = _maker(cst.Break)
_continue = _maker(cst.Continue)
_if = _maker(cst.If, "test", "body", "orelse")
_else = _maker(cst.Else, "body")
_for = _maker(cst.For, "target", "iter", "body", "orelse", "asynchronous")
_while = _maker(cst.While, "test", "body", "orelse")
_with = _maker(cst.With, "items", "body", "asynchronous")
_with_item = _maker(cst.WithItem, "item", "asname")
_as_name = _maker(cst.AsName, "name")
_try = _maker(cst.Try, "body", "handlers", "orelse", "finalbody")
_handler = _maker(cst.ExceptHandler, "body", "type", "name")
_finally = _maker(cst.Finally, "body")
_function = _maker(
    cst.FunctionDef, "name", "params", "body", "decorators", "returns", "asynchronous", "type_parameters"
)
_decorator = _maker(cst.Decorator, "decorator")

_OPERATORS = {
    "Add": "Add",
    "Sub": "Subtract",
    "Mult": "Multiply",
    "Div": "Divide",
    "FloorDiv": "FloorDivide",
    "Mod": "Modulo",
    "Pow": "Power",
    "MatMult": "MatrixMultiply",
    "LShift": "LeftShift",
    "RShift": "RightShift",
    "BitAnd": "BitAnd",
    "BitOr": "BitOr",
    "BitXor": "BitXor",
}
_OTHER_OPERATORS = {
    "And": "And",
    "Or": "Or",
    "Not": "Not",
    "USub": "Minus",
    "UAdd": "Plus",
    "Invert": "BitInvert",
    "Eq": "Equal",
    "Lt": "LessThan",
    "LtE": "LessThanEqual",
    "Gt": "GreaterThan",
    "GtE": "GreaterThanEqual",
    "Is": "Is",
    "IsNot": "IsNot",
    "In": "In",
    "NotIn": "NotIn",
}
_MAKING = {
    getattr(ast, name): _maker(getattr(cst, known)) for name, known in (_OPERATORS | _OTHER_OPERATORS).items()
}
_not_equal = _maker(cst.NotEqual, "value")
_MAKING[ast.NotEq] = lambda: _not_equal("!=")
_ASSIGNING = {
    getattr(ast, name): _maker(getattr(cst, f"{known}Assign")) for name, known in _OPERATORS.items()
}
_DEFAULT = cst.MaybeSentinel.DEFAULT


class _Reader:
    """Converts the nodes of a text."""

    def __init__(self, text: str) -> None:
        self.places: dict[cst.CSTNode, Span] = {}
        self._text = text
        self._starts = [0]
        for line in text.split("\n"):
            self._starts.append(self._starts[-1] + len(line) + 1)

    def _span(self, node: Any) -> Span:
        starts = self._starts
        return starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset

    def _code(self, node: ast.AST) -> str:
        start, end = self._span(node)
        return self._text[start:end]

    # -- statements

    def statements(self, body: Iterable[ast.stmt]) -> Iterator[cst.BaseStatement]:
        """Yield what LibCST makes of statements: it groups those on one line in a statement of its own."""
        line: list[cst.BaseSmallStatement] = []
        begin = end = last_row = 0
        for statement in body:
            start, stop = self._span(statement)
            compound = _COMPOUND.get(type(statement))
            if line and (compound is not None or statement.lineno != last_row):
                yield self._placed(_line(tuple(line)), begin, end)
                line = []
            if compound is not None:
                yield self._placed(compound(self, statement), start, stop)
                continue
            if not line:
                begin = start
            line.append(self._placed(_SIMPLE[type(statement)](self, statement), start, stop))
            end, last_row = stop, statement.end_lineno or 0
        if line:
            yield self._placed(_line(tuple(line)), begin, end)

    def _placed(self, node: _Node, start: int, end: int) -> _Node:
        self.places[node] = start, end
        return node

    def _suite(self, body: Sequence[ast.stmt]) -> cst.IndentedBlock:
        first = body[0]
        start = self._starts[first.lineno - 1]
        if self._text[start : start + first.col_offset].strip():
            raise _NotRead  # It is on the line of the colon.
        return _block(tuple(self.statements(body)), None)

    def _orelse(self, body: Sequence[ast.stmt]) -> cst.Else | None:
        return _else(self._suite(body)) if body else None

    def _if(self, node: ast.If) -> cst.If:
        test, body = self.of(node.test), self._suite(node.body)
        other: cst.If | cst.Else | None = None
        if len(node.orelse) == 1 and isinstance(node.orelse[0], ast.If):
            start, end = self._span(node.orelse[0])
            if self._text.startswith("elif", start):
                other = self._placed(self._if(node.orelse[0]), start, end)
        return _if(test, body, other or self._orelse(node.orelse))

    def _for(self, node: ast.For) -> cst.For:
        target, values = self.of(node.target), self.of(node.iter)
        return _for(target, values, self._suite(node.body), self._orelse(node.orelse), None)

    def _while(self, node: ast.While) -> cst.While:
        return _while(self.of(node.test), self._suite(node.body), self._orelse(node.orelse))

    def _with(self, node: ast.With) -> cst.With:
        items = tuple(
            _with_item(
                self.of(each.context_expr),
                None if each.optional_vars is None else _as_name(self.of(each.optional_vars)),
            )
            for each in node.items
        )
        return _with(items, self._suite(node.body), None)

    def _try(self, node: ast.Try) -> cst.Try:
        body = self._suite(node.body)
        handlers = tuple(map(self._handler, node.handlers))
        final = _finally(self._suite(node.finalbody)) if node.finalbody else None
        return _try(body, handlers, self._orelse(node.orelse), final)

    def _handler(self, node: ast.ExceptHandler) -> cst.ExceptHandler:
        if isinstance(node.type, ast.Tuple) and self._text[self._span(node.type)[0]] != "(":
            raise _NotRead
        kind = None if node.type is None else self.of(node.type)
        name = None if node.name is None else _as_name(_name(node.name))
        return _handler(self._suite(node.body), kind, name)

    def _function(self, node: ast.FunctionDef) -> cst.FunctionDef:
        if getattr(node, "type_params", None):
            raise _NotRead
        decorators = tuple(_decorator(self.of(each)) for each in node.decorator_list)
        params, returns = self._parameters(node.args), self._annotation(node.returns)
        return _function(_name(node.name), params, self._suite(node.body), decorators, returns, None, None)

    def _expression_statement(self, node: ast.Expr) -> cst.Expr:
        return _expression(self.of(node.value))

    def _assign(self, node: ast.Assign) -> cst.Assign:
        return _assign(tuple(_assign_target(self.of(each)) for each in node.targets), self.of(node.value))

    def _annotated(self, node: ast.AnnAssign) -> cst.AnnAssign:
        value = None if node.value is None else self.of(node.value)
        return _annotated_assign(self.of(node.target), self._annotation(node.annotation), value)

    def _augmented(self, node: ast.AugAssign) -> cst.AugAssign:
        return _augmented_assign(self.of(node.target), _ASSIGNING[type(node.op)](), self.of(node.value))

    def _return(self, node: ast.Return) -> cst.Return:
        return _return(self._maybe(node.value))

    def _raise(self, node: ast.Raise) -> cst.Raise:
        cause = None if node.cause is None else _from(self.of(node.cause))
        return _raise(self._maybe(node.exc), cause)

    def _assert(self, node: ast.Assert) -> cst.Assert:
        return _assert(self.of(node.test), self._maybe(node.msg))

    # -- expressions

    def of(self, node: ast.expr) -> cst.BaseExpression:
        """Return what LibCST makes of an expression."""
        return _EXPRESSIONS[type(node)](self, node)

    def _maybe(self, node: ast.expr | None) -> cst.BaseExpression | None:
        return None if node is None else self.of(node)

    def _name(self, node: ast.Name) -> cst.Name:
        return _name(node.id)

    def _attribute(self, node: ast.Attribute) -> cst.Attribute:
        return _attribute(self.of(node.value), _name(node.attr))

    def _call(self, node: ast.Call) -> cst.Call:
        listed: list[ast.expr | ast.keyword] = [*node.args, *node.keywords]
        if node.keywords and any(type(each) is ast.Starred for each in node.args):
            listed.sort(key=lambda each: (each.lineno, each.col_offset))
        func, args = self.of(node.func), tuple(map(self._arg, listed))
        return self._placed(_call(func, args), *self._span(node))

    def _arg(self, node: ast.expr | ast.keyword) -> cst.Arg:
        if isinstance(node, ast.keyword):
            keyword = None if node.arg is None else _name(node.arg)
            return _arg(self.of(node.value), keyword, "**" if keyword is None else "")
        if isinstance(node, ast.Starred):
            return _arg(self.of(node.value), None, "*")
        return _arg(self.of(node), None, "")

    def _subscript(self, node: ast.Subscript) -> cst.Subscript:
        parts = [node.slice]
        if isinstance(node.slice, ast.Tuple):
            if self._text[self._span(node.slice)[0]] == "(":
                raise _NotRead  # It may be a tuple, or begin with one.
            parts = node.slice.elts
        return _subscript(self.of(node.value), tuple(_subscript_element(self._index(each)) for each in parts))

    def _index(self, node: ast.expr) -> cst.Index | cst.Slice:
        if isinstance(node, ast.Starred):
            raise _NotRead
        if not isinstance(node, ast.Slice):
            return _index(self.of(node), None)
        lower, upper, step = self._maybe(node.lower), self._maybe(node.upper), self._maybe(node.step)
        if node.step is None:
            before = node.upper or node.lower
            start, end = self._span(node)
            rest = self._text[start if before is None else self._span(before)[1] : end]
            if rest.count(":") != (node.upper is None):
                raise _NotRead  # It has a second colon, or a comment.
        return _slice(lower, upper, step, _colon(), _DEFAULT if node.step is None else _colon())

    def _constant(self, node: ast.Constant) -> cst.BaseExpression:
        value = node.value
        if value is None or value is True or value is False:
            return _name(str(value))
        if value is ...:
            return _ellipsis()
        code = self._code(node)
        if isinstance(value, (str, bytes)):
            return _string(code) if _ONE_STRING.fullmatch(code) else _by_libcst(code)
        make = _integer if isinstance(value, int) else _float if isinstance(value, float) else _imaginary
        return make(code)

    def _strings(self, node: ast.JoinedStr) -> cst.BaseExpression:
        return _by_libcst(self._code(node))

    def _unary(self, node: ast.UnaryOp) -> cst.UnaryOperation:
        return _unary(_MAKING[type(node.op)](), self.of(node.operand))

    def _binary(self, node: ast.BinOp) -> cst.BinaryOperation:
        left = self.of(node.left)
        return _binary(left, _MAKING[type(node.op)](), self.of(node.right))

    def _boolean(self, node: ast.BoolOp) -> cst.BaseExpression:
        found, *others = map(self.of, node.values)
        for other in others:
            found = _boolean(found, _MAKING[type(node.op)](), other)
        return found

    def _comparison(self, node: ast.Compare) -> cst.Comparison:
        left = self.of(node.left)
        pairs = zip(node.ops, node.comparators, strict=True)
        return _comparison(
            left, tuple(_comparison_target(_MAKING[type(op)](), self.of(each)) for op, each in pairs)
        )

    def _if_expression(self, node: ast.IfExp) -> cst.IfExp:
        return _if_expression(self.of(node.test), self.of(node.body), self.of(node.orelse))

    def _named(self, node: ast.NamedExpr) -> cst.NamedExpr:
        return _named(self.of(node.target), self.of(node.value))

    def _lambda(self, node: ast.Lambda) -> cst.Lambda:
        return _lambda(self._parameters(node.args), self.of(node.body))

    def _await(self, node: ast.Await) -> cst.Await:
        return _await(self.of(node.value))

    def _yield(self, node: ast.Yield) -> cst.Yield:
        return _yield(self._maybe(node.value))

    def _yield_from(self, node: ast.YieldFrom) -> cst.Yield:
        return _yield(_from(self.of(node.value)))

    def _tuple(self, node: ast.Tuple) -> cst.Tuple:
        return _tuple(self._elements(node.elts))

    def _list(self, node: ast.List) -> cst.List:
        return _list(self._elements(node.elts))

    def _set(self, node: ast.Set) -> cst.Set:
        return _set(self._elements(node.elts))

    def _elements(self, nodes: Sequence[ast.expr]) -> tuple[cst.BaseElement, ...]:
        return tuple(
            _starred(self.of(each.value)) if isinstance(each, ast.Starred) else _element(self.of(each))
            for each in nodes
        )

    def _dict(self, node: ast.Dict) -> cst.Dict:
        pairs = zip(node.keys, node.values, strict=True)
        return _dict(
            tuple(
                _starred_dict_element(self.of(value))
                if key is None
                else _dict_element(self.of(key), self.of(value))
                for key, value in pairs
            )
        )

    def _list_comprehension(self, node: ast.ListComp) -> cst.ListComp:
        return _list_comprehension(self.of(node.elt), self._clauses(node.generators))

    def _set_comprehension(self, node: ast.SetComp) -> cst.SetComp:
        return _set_comprehension(self.of(node.elt), self._clauses(node.generators))

    def _generator(self, node: ast.GeneratorExp) -> cst.GeneratorExp:
        return _generator(self.of(node.elt), self._clauses(node.generators))

    def _dict_comprehension(self, node: ast.DictComp) -> cst.DictComp:
        return _dict_comprehension(self.of(node.key), self.of(node.value), self._clauses(node.generators))

    def _clauses(self, generators: Sequence[ast.comprehension]) -> cst.CompFor:
        first, *others = generators
        if first.is_async:
            raise _NotRead
        ifs = tuple(_comp_if(self.of(each)) for each in first.ifs)
        inner = self._clauses(others) if others else None
        return _comp_for(self.of(first.target), self.of(first.iter), ifs, inner, None)

    # -- parameters

    def _parameters(self, args: ast.arguments) -> cst.Parameters:
        named = [*args.posonlyargs, *args.args]
        defaults = [*[None] * (len(named) - len(args.defaults)), *args.defaults]
        params = [self._param(arg, default) for arg, default in zip(named, defaults, strict=True)]
        keyword_only = zip(args.kwonlyargs, args.kw_defaults, strict=True)
        star: object = _DEFAULT
        if args.vararg is not None:
            star = self._param(args.vararg, None, "*")
        elif args.kwonlyargs:
            star = _param_star()
        split = len(args.posonlyargs)
        return _parameters(
            tuple(params[split:]),
            star,
            tuple(self._param(arg, default) for arg, default in keyword_only),
            None if args.kwarg is None else self._param(args.kwarg, None, "**"),
            tuple(params[:split]),
            _param_slash() if split else _DEFAULT,
        )

    def _param(self, arg: ast.arg, default: ast.expr | None, star: str = "") -> cst.Param:
        return _param(_name(arg.arg), self._annotation(arg.annotation), self._maybe(default), star)

    def _annotation(self, node: ast.expr | None) -> cst.Annotation | None:
        if isinstance(node, ast.Starred):
            raise _NotRead
        return None if node is None else _annotation(self.of(node))


def _by_libcst(code: str) -> cst.BaseExpression:
    """Return a formatted or concatenated string, as LibCST reads it."""
    found = cst.parse_expression(f"({code})")
    for name in ("lpar", "rpar"):
        object.__delattr__(found, name)  # These brackets are not part of the text.
    return found


class _Table(dict[Any, Any]):
    """The methods that convert each kind of node."""

    def __missing__(self, kind: object) -> Any:
        raise _NotRead


_COMPOUND: dict[type[ast.stmt], Callable[[_Reader, Any], cst.BaseStatement]] = {
    ast.If: _Reader._if,
    ast.For: _Reader._for,
    ast.While: _Reader._while,
    ast.With: _Reader._with,
    ast.Try: _Reader._try,
    ast.FunctionDef: _Reader._function,
}
_SIMPLE: dict[type[ast.stmt], Callable[[_Reader, Any], cst.BaseSmallStatement]] = _Table(
    {
        ast.Expr: _Reader._expression_statement,
        ast.Assign: _Reader._assign,
        ast.AnnAssign: _Reader._annotated,
        ast.AugAssign: _Reader._augmented,
        ast.Return: _Reader._return,
        ast.Raise: _Reader._raise,
        ast.Assert: _Reader._assert,
        ast.Pass: lambda _reader, _node: _pass(),
        ast.Break: lambda _reader, _node: _break(),
        ast.Continue: lambda _reader, _node: _continue(),
    }
)
_EXPRESSIONS: dict[type[ast.expr], Callable[[_Reader, Any], cst.BaseExpression]] = _Table(
    {
        ast.Name: _Reader._name,
        ast.Attribute: _Reader._attribute,
        ast.Call: _Reader._call,
        ast.Subscript: _Reader._subscript,
        ast.Constant: _Reader._constant,
        ast.JoinedStr: _Reader._strings,
        ast.UnaryOp: _Reader._unary,
        ast.BinOp: _Reader._binary,
        ast.BoolOp: _Reader._boolean,
        ast.Compare: _Reader._comparison,
        ast.IfExp: _Reader._if_expression,
        ast.NamedExpr: _Reader._named,
        ast.Lambda: _Reader._lambda,
        ast.Await: _Reader._await,
        ast.Yield: _Reader._yield,
        ast.YieldFrom: _Reader._yield_from,
        ast.Tuple: _Reader._tuple,
        ast.List: _Reader._list,
        ast.Set: _Reader._set,
        ast.Dict: _Reader._dict,
        ast.ListComp: _Reader._list_comprehension,
        ast.SetComp: _Reader._set_comprehension,
        ast.GeneratorExp: _Reader._generator,
        ast.DictComp: _Reader._dict_comprehension,
    }
)
