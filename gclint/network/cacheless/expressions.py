"""Follows expressions."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from gclint.code.walk import walk
from gclint.network.cacheless.asking import is_length
from gclint.network.cacheless.calls import CallTerms
from gclint.network.cacheless.items import Arguments
from gclint.network.cacheless.terms import INDEX, ITEM, TESTS, Term, constant_of

_OPERATORS: Mapping[type[ast.AST], Callable[[Any, Any], object]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.In: lambda one, other: operator.contains(other, one),
}
_OF_LENGTHS: Mapping[type[ast.AST], bool] = {
    ast.Eq: False,
    ast.NotEq: True,
    ast.Lt: True,
    ast.LtE: True,
    ast.Gt: False,
    ast.GtE: False,
}
"""How no length compares with that of something else, which is not empty."""
_MIRRORED: Mapping[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.Gt,
    ast.LtE: ast.GtE,
    ast.Gt: ast.Lt,
    ast.GtE: ast.LtE,
}
_NEVER_NONE = frozenset(
    (
        "filled",
        "many",
        "tuple",
        "list",
        "dict",
        "cache",
        "operation",
        "computed",
        "function",
        "marks",
        "extent",
    )
)


class ExpressionTerms(CallTerms):
    """Follows what expressions compute."""

    def value(self, node: ast.expr) -> Term:
        """Return what an expression computes."""
        self.count()
        follow = getattr(self, f"_value_{type(node).__name__.lower()}", None)
        if follow is None:
            return self.opaque("expression", node)
        return self.settle(follow(node))

    def opaque(self, kind: str, node: ast.AST) -> Term:
        """Return what code computes of which only the names are known that it reads."""
        names = sorted({each.id for each in ast.walk(node) if isinstance(each, ast.Name)})
        return self.do(self.terms(kind, node, tuple(self.named(each) for each in names), self.log))

    def _value_constant(self, node: ast.Constant) -> Term:
        return self.terms.constant(node.value)

    def _value_name(self, node: ast.Name) -> Term:
        found = self.named(node.id)
        if found is self.terms.unbound:
            raise self.fail()
        return found

    def _value_attribute(self, node: ast.Attribute) -> Term:
        return self.attribute(self.value(node.value), node.attr)

    def _value_namedexpr(self, node: ast.NamedExpr) -> Term:
        value = self.value(node.value)
        self.frame.names[node.target.id] = value
        return value

    def _value_starred(self, node: ast.Starred) -> Term:
        return self.terms("unpacked", self.value(node.value))

    def _value_ifexp(self, node: ast.IfExp) -> Term:
        return self.choose(
            self.value(node.test), lambda: self.value(node.body), lambda: self.value(node.orelse)
        )

    def _value_boolop(self, node: ast.BoolOp) -> Term:
        return self._operands(node.values, is_and=isinstance(node.op, ast.And))

    def _operands(self, nodes: Sequence[ast.expr], *, is_and: bool) -> Term:
        first = self.value(nodes[0])
        if len(nodes) == 1:
            return first
        holds = self.decide(first)
        if holds is not None:
            return self._operands(nodes[1:], is_and=is_and) if holds is is_and else first
        before = self.log

        def others() -> Term:
            return self._operands(nodes[1:], is_and=is_and)

        def itself() -> Term:
            return self.terms.constant(not is_and) if first.op in TESTS else first

        found = self.choose(first, *((others, itself) if is_and else (itself, others)))
        if self.log is before and found.op == "either" and found.args[0] is first:
            rest: Term = found.args[1 if is_and else 2]  # type: ignore[assignment]
            return self._both(first, rest, is_and=is_and)
        return found

    def _both(self, first: Term, rest: Term, *, is_and: bool) -> Term:
        """Return what two operands are together, of which the first is not known."""
        if first is rest:
            return first
        holds = self.terms.truth(rest)
        if holds is is_and and rest.op == "constant":
            return self.terms("truth", first)  # It is used as a test, or is one.
        if holds is (not is_and):
            return rest if rest.op == "constant" else self.terms("and" if is_and else "or", first, rest)
        return self.terms("and" if is_and else "or", first, rest)

    def _value_unaryop(self, node: ast.UnaryOp) -> Term:
        operand = self.value(node.operand)
        value = constant_of(operand)
        if isinstance(node.op, ast.Not):
            holds = self.decide(operand)
            return self.terms.negated(operand) if holds is None else self.terms.constant(not holds)
        if isinstance(node.op, ast.USub) and isinstance(value, (int, float)):
            return self.terms.constant(-value)
        return self.terms("operation", type(node.op).__name__, operand)

    def _value_binop(self, node: ast.BinOp) -> Term:
        return self.combine(node.op, self.value(node.left), self.value(node.right))

    def combine(self, op: ast.operator, left: Term, right: Term) -> Term:
        """Return what an operator makes of two values."""
        left, right = self.settle(left), self.settle(right)
        if {"tuple", "list"} & {left.op, right.op}:
            for one in (left, right):
                if one.op == "either":
                    test: Term = one.args[0]  # type: ignore[assignment]
                    return self.choose(
                        test, lambda: self.combine(op, left, right), lambda: self.combine(op, left, right)
                    )
            if left.op == right.op == "tuple" and isinstance(op, ast.Add):
                return self.terms("tuple", (*left.args[0], *right.args[0]))  # type: ignore[misc]
        if isinstance(op, ast.Mult) and (
            piles := [each for each in (left, right) if each.op in ("tuple", "list")]
        ):
            items = self.items(piles[0])
            if items is not None and len(items) == 1:
                return self.terms("many", items[0])
        if self.terms.none in (left, right):
            raise self.fail()
        if isinstance(op, (ast.Add, ast.Sub)) and self._is_zero(right):
            return left
        if isinstance(op, ast.Add) and self._is_zero(left):
            return right
        if isinstance(op, ast.Mult) and right.op == "constant" and right.args == ("int", 1):
            return left
        return self._computed(type(op), left, right, "operation")

    def _is_zero(self, term: Term) -> bool:
        return term.op == "constant" and term.args == ("int", 0)

    def _computed(self, op: type[ast.AST], left: Term, right: Term, kind: str) -> Term:
        """Return what an operator gives, which may be known of literals."""
        if left.op == right.op == "constant" and op in _OPERATORS:
            try:
                return self.terms.constant(_OPERATORS[op](left.args[1], right.args[1]))
            except (TypeError, ValueError, ZeroDivisionError, OverflowError):
                raise self.fail() from None
        return self.terms(kind, op.__name__, left, right)

    def _value_compare(self, node: ast.Compare) -> Term:
        left = self.value(node.left)
        found: Term | None = None
        operands = [node.left, *node.comparators]
        for index, op in enumerate(node.ops):
            right = self.value(node.comparators[index])
            each = self.compared(type(op), left, right, operands[index : index + 2])
            found = each if found is None else self.terms("and", found, each)
            left = right
        assert found is not None  # a comparison has at least one operator
        return found

    def compared(self, op: type[ast.AST], left: Term, right: Term, nodes: Sequence[ast.expr]) -> Term:
        """Return what comes out of a comparison of two values."""
        left, right = self.settle(left), self.settle(right)
        if op in (ast.Is, ast.IsNot) and right.op == "constant":
            is_same = self._is_literal(left, right)
            if op is ast.IsNot and is_same.op == "constant":
                return self.terms.constant(not is_same.args[1])
            return self.terms.negated(is_same) if op is ast.IsNot else is_same
        for zero, other, node, by in (
            (left, right, nodes[0], op),
            (right, left, nodes[1], _MIRRORED.get(op, op)),
        ):
            is_no_length = self._is_zero(zero) and not isinstance(node, ast.Constant)
            if is_no_length and is_length(other) and by in _OF_LENGTHS:
                return self.terms.constant(_OF_LENGTHS[by])
        return self._computed(op, left, right, "compared")

    def _is_literal(self, term: Term, literal: Term) -> Term:
        """Return whether a value is a literal, such as None."""
        if term.op == "constant":
            return self.terms.constant(term is literal)
        if term.op in _NEVER_NONE:
            return self.terms.false
        if term.op == "either":
            test, one, other = term.args
            return self.terms.either(test, self._is_literal(one, literal), self._is_literal(other, literal))  # type: ignore[arg-type]
        return self.terms("is", term, literal)

    # -- containers

    def _value_tuple(self, node: ast.Tuple) -> Term:
        items = self._items(node.elts)
        return self.terms("tuple", items) if items is not None else self.opaque("tuple of", node)

    def _value_list(self, node: ast.List) -> Term:
        items = self._items(node.elts)
        return (
            self.terms("list", self.place(node), items) if items is not None else self.opaque("list of", node)
        )

    def _value_set(self, node: ast.Set) -> Term:
        return self.terms("set", tuple(map(self.value, node.elts)))

    def _items(self, nodes: Iterable[ast.expr]) -> tuple[Term, ...] | None:
        found: list[Term] = []
        for each in nodes:
            value = self.value(each)
            if value.op == "unpacked":
                items = self.items(value.args[0])  # type: ignore[arg-type]
                if items is None:
                    return None
                found += items
            else:
                found.append(value)
        return tuple(found)

    def _value_dict(self, node: ast.Dict) -> Term:
        pairs: dict[object, Term] = {}
        rest: list[Term] = []
        for key, value in zip(node.keys, node.values, strict=True):
            given = self.value(value)
            name = None if key is None else constant_of(self.value(key))
            if isinstance(name, str):
                pairs[name] = given
            else:
                rest.append(given if key is None else self.terms("pair", self.value(key), given))
        return self.terms("dict", self.place(node), tuple(rest), tuple(pairs.items()))

    def _value_subscript(self, node: ast.Subscript) -> Term:
        return self.item(self.value(node.value), self.value(node.slice))

    def _value_slice(self, node: ast.Slice) -> Term:
        parts = (
            self.terms.none if each is None else self.value(each)
            for each in (node.lower, node.upper, node.step)
        )
        return self.terms("slice", *parts)

    def _value_joinedstr(self, node: ast.JoinedStr) -> Term:
        parts = tuple(self.value(each.value) for each in node.values if isinstance(each, ast.FormattedValue))
        return self.terms("text", node, parts)

    def _value_lambda(self, node: ast.Lambda) -> Term:
        return self.function(node)

    def _value_listcomp(self, node: ast.ListComp | ast.GeneratorExp | ast.SetComp) -> Term:
        return self.comprehension(node, lambda: self.value(node.elt))

    _value_generatorexp = _value_setcomp = _value_listcomp

    def _value_dictcomp(self, node: ast.DictComp) -> Term:
        return self.comprehension(
            node, lambda: self.terms("pair", self.value(node.key), self.value(node.value))
        )

    def comprehension(
        self, node: ast.ListComp | ast.GeneratorExp | ast.SetComp | ast.DictComp, item: Callable[[], Term]
    ) -> Term:
        """Return what a comprehension makes, of which the item depends on what is iterated."""
        chosen = self._chosen(node)
        if chosen is not None:
            return chosen
        outer = dict(self.frame.names)
        iterated: list[Term] = []
        before, self.log = self.log, self.terms("start")
        for each in node.generators:
            iterated.append(self.bare(self.value(each.iter)))
            self.assign(each.target, self.item_of(iterated[-1], each))
        tests = tuple(self.value(one) for each in node.generators for one in each.ifs)
        with self.turning(*node.generators):
            made = item()
        found = self.terms("comprehension", type(node).__name__, tuple(iterated), tests, made, self.log)
        inner, self.log = self.log, before
        bound = (each.target.id for each in walk(node) if isinstance(each, ast.NamedExpr))
        self.frame.names = outer | {name: self.terms("last", found, name) for name in bound}
        self.fill()
        if inner is not self.terms("start"):
            self.do(self.terms("repeated", found))
        return found

    def _chosen(self, node: ast.expr) -> Term | None:
        """Return which of several values are something, if that is what a comprehension asks."""
        if (
            isinstance(node, ast.DictComp)
            or not isinstance(node, ast.GeneratorExp)
            or len(node.generators) != 1
        ):
            return None
        (only,) = node.generators
        names = {each.id for each in (node.elt, only.target) if isinstance(each, ast.Name)}
        tests = [ast.unparse(each) for each in only.ifs]
        if len(names) != 1 or tests not in ([f"{name} is not None"] for name in names):
            return None
        if not isinstance(only.iter, (ast.List, ast.Tuple)) or (items := self._items(only.iter.elts)) is None:
            return None
        return self.terms("chosen", items)

    def item_of(self, iterated: Term, node: ast.AST) -> Term:
        """Return any item of what is iterated."""
        if iterated is self.terms.cache or iterated.op == "many":
            return iterated if iterated.op == "cache" else iterated.args[0]  # type: ignore[return-value]
        if iterated.op == "either":
            test, one, other = iterated.args
            return self.choose(test, lambda: self.item_of(one, node), lambda: self.item_of(other, node))  # type: ignore[arg-type]
        if iterated is self.terms.none:
            raise self.fail()
        if iterated.op == "read" and iterated.args[0] in ("enumerate", "zip"):
            parts = [self.item_of(each, node) for each in iterated.args[1].positional]  # type: ignore[union-attr]
            if iterated.args[0] == "enumerate":
                parts = [self.terms("variable", node, INDEX), *parts[:1]]
            return self.terms("tuple", tuple(parts))
        found = self.terms("item", iterated, self.terms("variable", node, ITEM))
        self.learn_item(found, iterated)
        return found

    # -- arguments

    def _value_call(self, node: ast.Call) -> Term:
        if node in self.results:
            return self.results[node]()
        if isinstance(node.func, ast.Attribute):
            if _is_super(node.func.value):
                return self.call_super(node.func.attr, self.arguments(node))
            base = self.value(node.func.value)
            return self.call_method(base, node.func.attr, self.arguments(node), node)
        return self.call(self.value(node.func), self.arguments(node), node)

    def arguments(self, node: ast.Call) -> Arguments:
        """Return what a call passes."""
        positional: list[Term] = []
        named: dict[str, Term] = {}
        rest: list[Term] = []
        for each in node.args:
            value = self.value(each)
            items = self.items(value.args[0]) if value.op == "unpacked" else (value,)  # type: ignore[arg-type]
            positional += (value,) if items is None else items
        for keyword in node.keywords:
            value = self.value(keyword.value)
            if keyword.arg is not None:
                named[keyword.arg] = value
            elif value.op == "dict":
                named |= dict(value.args[2])  # type: ignore[call-overload]
                rest += value.args[1]  # type: ignore[arg-type]
            else:
                rest.append(value)
        return Arguments(tuple(positional), tuple(named.items()), tuple(rest))


def _is_super(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super"
