"""What expressions may be."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache, lru_cache
from operator import add, eq, ge, gt, le, lt, mod, ne

from gclint.model import known
from gclint.model.calls import Calls
from gclint.model.externals import front, is_none
from gclint.model.frames import Frame
from gclint.model.objects import ITERATOR
from gclint.model.protocols import CONTAINING, GETTING, TRUTH, UNPACKING
from gclint.model.reading import read
from gclint.model.texts import computed, texts
from gclint.model.values import (
    CONSTANT,
    NONE,
    PLAIN,
    Box,
    Call,
    Class,
    Constant,
    External,
    Fixed,
    Function,
    Imported,
    Made,
    ModelSetting,
    Object,
    Plain,
    Super,
    Tensor,
    Turn,
    Unknown,
    Value,
    join,
    of,
    unknown,
    with_roots,
)

_ORDERS = {
    ast.Lt: lt,
    ast.LtE: le,
    ast.Gt: gt,
    ast.GtE: ge,
    ast.Eq: eq,
    ast.NotEq: ne,
}
"""What comparisons of numbers compute."""
_KINDS = {ast.GeneratorExp: ITERATOR, ast.DictComp: "dict"}
"""The kinds of containers that comprehensions make, unless it is like a list."""
_DEEPEST = 3
_LONGEST = 12
_KEPT = 512
_BUILTINS = frozenset(dir(builtins))

_FILLED_BY_READING = "collections.defaultdict"
"""The kind of containers that get an item for each key that is read."""


class Expressions(Calls):
    """Follows expressions."""

    def value(self, node: ast.expr, frame: Frame) -> Value:
        """Follow an expression, and return what it may be."""
        self.count()
        follow = getattr(self, _method_of(type(node).__name__), None)
        if follow is None:
            self.note(f"has an expression that is not known, `{type(node).__name__}`", node, frame)
            return unknown("an expression")
        result: Value = follow(node, frame)
        return result

    # -- names and literals

    def _value_constant(self, node: ast.Constant, frame: Frame) -> Value:
        return _literal(node.value)

    def _value_name(self, node: ast.Name, frame: Frame) -> Value:
        home = frame.declared.get(node.id)
        for each in frame.around() if home is None else (home,):
            if each.is_of_class and each is not frame:
                continue
            if each.reading is not None or each is not frame:
                read(each, node.id)
            if node.id in each.names and not (each is frame.space.frame and frame.space.stars):
                found = self.resolved(each.names[node.id])
                if each is not frame and each.outlives:
                    self.read_kept(node.id, found, node, frame)
                return found
        return self.global_value(node, frame)

    def global_value(self, node: ast.Name, frame: Frame) -> Value:
        """Return what a name of the module may be."""
        space = frame.space
        found = space.value(node.id)
        if not space.is_complete:
            read(space.frame, node.id)
        if found is None:
            if node.id not in _BUILTINS:
                return unknown(f"`{node.id}`")
            builtin = of(External(node.id))
            may_rebind = space.usage.may_rebind(node.id)
            return join((builtin, unknown(f"`{node.id}`"))) if may_rebind else builtin
        if node.id in _BUILTINS and not space.given(node.id).is_certain:
            found = join((found, of(External(node.id))))
        found = self.resolved(found)
        if frame is space.frame:
            return found
        return self.read_global(node, found, frame)

    def resolved(self, value: Value) -> Value:
        """Return a value with what is imported in place of the imports."""
        imports = [each for each in value.things if isinstance(each, Imported)]
        if not imports:
            return value
        kept = Value(value.things.difference(imports), value.roots)
        return join([kept, *[each.space.resolve(each) for each in imports]])

    def _value_joinedstr(self, node: ast.JoinedStr, frame: Frame) -> Value:
        parts: list[Value | None] = []
        for each in node.values:
            if not isinstance(each, ast.FormattedValue):
                parts.append(self.value(each, frame))
                continue
            value = self.value(each.value, frame)
            self.written(value, node, frame)
            if each.format_spec is not None:
                self.value(each.format_spec, frame)
            is_plain = each.conversion == -1 and each.format_spec is None and texts(value) is not None
            parts.append(value if is_plain else None)
        known_parts = [each for each in parts if each is not None]
        found = computed(known_parts, lambda *each: "".join(each)) if len(known_parts) == len(parts) else None
        return PLAIN if found is None else found

    _value_templatestr = _value_joinedstr

    def _value_namedexpr(self, node: ast.NamedExpr, frame: Frame) -> Value:
        value = self.value(node.value, frame)
        home = frame
        while home.is_of_comprehension and home.parent is not None:
            home = home.parent
        # A comprehension binds a name of what is around it, and may go over nothing.
        ways = [value] if home is frame else [value, home.names.get(node.target.id, NONE)]
        self.assign(node.target, join(ways), home)
        return value

    def assign(self, target: ast.expr, value: Value, frame: Frame, *, is_same: bool = False) -> None:
        """Assign a value to a target."""
        raise NotImplementedError

    # -- displays

    def _value_tuple(self, node: ast.Tuple, frame: Frame) -> Value:
        values = [self._element(each, frame) for each in node.elts]
        if any(isinstance(each, ast.Starred) for each in node.elts):
            return self.filled(node, "tuple", values)
        return self.fixed(node, values)

    def _value_list(self, node: ast.List | ast.Set, frame: Frame) -> Value:
        return self.filled(node, "list", [self._element(each, frame) for each in node.elts])

    def _value_set(self, node: ast.Set, frame: Frame) -> Value:
        made = self._value_list(node, frame)
        self.hashed(made, node, frame)
        self.identified(made, node, frame)
        return made

    def _key(self, node: ast.expr, frame: Frame) -> Value:
        """Follow what becomes a key of a dict."""
        key = self.value(node, frame)
        self.hashed(key, node, frame)
        return key

    def _value_dict(self, node: ast.Dict, frame: Frame) -> Value:
        values: list[Value] = []
        for key, each in zip(node.keys, node.values, strict=True):
            value = self.value(each, frame)
            if key is None:
                self.special(value, UNPACKING, node, frame)
                values.append(self.unpacked(value))
            else:
                under = self._key(key, frame)
                self.identified(under, key, frame)
                values.append(self.under_any(under, value))
        return self.filled(node, "dict", values)

    def under_any(self, key: Value, value: Value) -> Value:
        """Return what a dict holds that has a value under a key, of which all texts may be known."""
        names = texts(key)
        return join(self.under(each, value) for each in sorted(names)) if names else value

    def _element(self, node: ast.expr, frame: Frame) -> Value:
        if not isinstance(node, ast.Starred):
            return self.value(node, frame)
        value = self.value(node.value, frame)
        self.consume(value, node, frame)
        return self.item(value)

    def fixed(self, node: ast.AST, values: Sequence[Value]) -> Value:
        """Return a tuple; one that holds many others is like a list."""
        if _depth(values) >= _DEEPEST or len(values) > _LONGEST:
            return self.led(node, "tuple", values, values)
        return of(Fixed(tuple(values)))

    def _value_listcomp(
        self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp, frame: Frame
    ) -> Value:
        inner = self.frame_of((node, frame), frame.space, frame, frame.owner)
        inner.receiver, inner.is_of_comprehension = frame.receiver, True
        for _ in range(2):
            for each in node.generators:
                if each.is_async:
                    self.note("waits for something", node, frame)
                iterated = self.value(each.iter, inner)
                self.assign(each.target, self.iterate(iterated, each.iter, inner), inner)
                for test in each.ifs:
                    self.test(test, inner)
            if isinstance(node, ast.DictComp):
                self._key(node.key, inner)
                value = self.value(node.value, inner)
            else:
                value = self.value(node.elt, inner)
            if isinstance(node, ast.SetComp):
                self.hashed(value, node, inner)
            kind = _KINDS.get(type(node), "list")
            first = self._first_of(node, inner) if isinstance(node, ast.GeneratorExp) else ()
            filled = self.led(node, kind, [value], first)
        return filled

    def _first_of(self, node: ast.GeneratorExp, frame: Frame) -> Sequence[Value]:
        """Return what comes first where one goes over items that are written there."""
        (only,) = node.generators if len(node.generators) == 1 else (None,)
        if only is None or not isinstance(only.iter, (ast.List, ast.Tuple)):
            return ()
        first: list[Value] = []
        for each in only.iter.elts:
            if isinstance(each, ast.Starred):
                break
            self.assign(only.target, self.quietly(each, frame), frame)
            decided = [self.decide(test, frame) for test in only.ifs]
            if False in decided:
                continue
            if None in decided:
                break
            first.append(self.quietly(node.elt, frame))
        return first

    _value_setcomp = _value_generatorexp = _value_dictcomp = _value_listcomp

    def _value_lambda(self, node: ast.Lambda, frame: Frame) -> Value:
        function = Function(node, frame.space, None if frame is frame.space.frame else frame)
        self.define(function, frame)
        return of(function)

    def _value_starred(self, node: ast.Starred, frame: Frame) -> Value:
        return self.item(self.value(node.value, frame))

    # -- operators

    def _value_boolop(self, node: ast.BoolOp, frame: Frame) -> Value:
        values: list[Value] = []
        stops = isinstance(node.op, ast.Or)
        for each in node.values:
            is_last = each is node.values[-1]
            value = self.value(each, frame) if is_last else self.test(each, frame)
            known = self.decide(each, frame)
            values.append(value)
            if known is stops:
                break
            if known is (not stops) and not is_last:
                values.pop()
        return join(values)

    def _value_unaryop(self, node: ast.UnaryOp, frame: Frame) -> Value:
        if isinstance(node.op, ast.Not):
            self.test(node.operand, frame)
            return PLAIN
        value = self.value(node.operand, frame)
        if isinstance(node.op, ast.USub) and len(value.things) == 1:
            (only,) = value.things
            if isinstance(only, Constant) and isinstance(only.value, (int, float)):
                return of(Constant(-only.value))
        result = self.combine(node, value, PLAIN, frame)
        return join((value, result)) if isinstance(node.op, ast.UAdd) else result

    def _value_binop(self, node: ast.BinOp, frame: Frame) -> Value:
        return self.combine(node, self.value(node.left, frame), self.value(node.right, frame), frame)

    def combine(self, node: ast.AST, left: Value, right: Value, frame: Frame) -> Value:
        """Return what an operator makes of two values."""
        both = left.things | right.things
        if isinstance(node, (ast.BinOp, ast.AugAssign)) and isinstance(node.op, (ast.Add, ast.Mod)):
            is_sum = isinstance(node.op, ast.Add)
            if not is_sum and any(isinstance(each, (Constant, Plain)) for each in left.things):
                self.written(right, node, frame)  # The left one may be a text.
                self.ask(right, node, frame)
            text = computed((left, right), add if is_sum else mod) if texts(left) else None
            if text is not None:
                return text
        if all(isinstance(each, (Plain, Constant, ModelSetting)) for each in both):
            return _shifted(node, left, right)
        for each in both:
            if isinstance(each, External) and each.name not in known.LITERALS:
                self.note(f"reads `{each.name}`, which may change meanwhile", node, frame)
        if any(isinstance(each, Function) for each in both):
            self.note("uses an operator of a function", node, frame)
        if any(isinstance(each, Object) for each in both):
            return self._combined(node, left, right, frame)
        piles = [each for each in both if isinstance(each, (Fixed, Box))]
        if not piles:
            return self.tensor((left, right))
        if len(left.things) == len(right.things) == 1 and all(isinstance(each, Fixed) for each in both):
            return self.fixed(node, [*_items(left), *_items(right)])
        if isinstance(getattr(node, "op", None), ast.Add) and not (
            _may_be_pile(left) and _may_be_pile(right)
        ):
            return self.tensor((left, right))
        is_tuple = all(isinstance(each, Fixed) or each.kind == "tuple" for each in piles)
        first, is_all = front(left) if is_tuple else ((), False)
        first += front(right)[0] if is_all else ()
        kinds = {each.kind if isinstance(each, Box) else "tuple" for each in piles}
        is_stack = len(kinds) == 1 and kinds <= known.STACKS
        kind = "tuple" if is_tuple else kinds.pop() if is_stack else "list"
        pile = self.led(node, kind, [self.item(left), self.item(right)], first[:_LONGEST])
        are_all = all(each in piles or each == Constant(None) for each in both)  # None raises an error.
        return pile if are_all else join((self.tensor((left, right)), pile))

    def _combined(self, node: ast.AST, left: Value, right: Value, frame: Frame) -> Value:
        """Return what the methods for an operator give, and what it makes of what is no object."""
        given = self.operated(node, left, right, frame)
        rest = [
            Value(frozenset(each for each in one.things if not isinstance(each, Object)), one.roots)
            for one in (left, right)
        ]
        others = [self.combine(node, rest[0], rest[1], frame)] if all(one.things for one in rest) else []
        return join((given, *others))

    def test(self, node: ast.expr, frame: Frame) -> Value:
        """Follow an expression that is asked whether it is true."""
        value = self.value(node, frame)
        self.special(value, TRUTH, node, frame)
        return value

    def _value_compare(self, node: ast.Compare, frame: Frame) -> Value:
        compared = (node.left, *node.comparators)
        values = [self._value_or_type(each, compared, frame) for each in compared]
        things = frozenset(thing for value in values for thing in value.things)
        for operator, left, right in zip(node.ops, values, values[1:], strict=False):
            if isinstance(operator, (ast.Is, ast.IsNot)):
                self._compare_identity(values[0], right, node, frame)
                continue
            if isinstance(operator, (ast.In, ast.NotIn)):
                self.special(right, CONTAINING, node, frame, left)
                self.consume(right, node, frame)
                self.hashed(left, node, frame)
                self._compare_identity(left, self.item(right), node, frame)
            self.compared(left, right, node, frame)
        is_plain = all(isinstance(each, (Plain, Constant, ModelSetting, External)) for each in things)
        is_name = all(isinstance(each, (ast.Is, ast.IsNot, ast.In, ast.NotIn)) for each in node.ops)
        return PLAIN if is_plain or is_name else join((CONSTANT, PLAIN))

    def _value_or_type(self, node: ast.expr, compared: Sequence[ast.expr], frame: Frame) -> Value:
        """Follow what is compared; that something is of a type of Python's hangs on no kind of tensor."""
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "type" and len(node.args) == 1:
            others = (self.quietly(each, frame) for each in compared if each is not node)
            things = {each for one in (self.quietly(node.func, frame), *others) for each in one.things}
            if all(isinstance(each, External) and each.name in _BUILTINS for each in things):
                self.value(node.args[0], frame)
                return PLAIN
        return self.value(node, frame)

    def _compare_identity(self, left: Value, right: Value, node: ast.Compare, frame: Frame) -> None:
        """Note a comparison of tensors that recomputation may make with copies of them."""
        if all(any(isinstance(each, (Tensor, Unknown)) for each in one.things) for one in (left, right)):
            self.note("asks whether two values are the same object", node, frame)

    def _value_ifexp(self, node: ast.IfExp, frame: Frame) -> Value:
        self.test(node.test, frame)
        known = self.decide(node.test, frame)
        found = []
        before = dict(frame.names)
        for holds, each in ((True, node.body), (False, node.orelse)):
            if known in (None, holds):
                self.narrow(node.test, frame, holds=holds)
                found.append(self.value(each, frame))
                frame.names = {**frame.names, **before}
        return join(found)

    def _value_subscript(self, node: ast.Subscript, frame: Frame) -> Value:
        value = self.value(node.value, frame)
        index = self.value(node.slice, frame)
        self.hashed(index, node, frame)
        given = self.special(value, GETTING, node, frame, index)
        for each in value.things:
            if isinstance(each, External) and (
                each.name not in known.TABLES
                or (isinstance(node.value, ast.Name) and node.value.id in frame.space.usage.touched)
            ):
                self.note(f"reads an item of `{each.name}`, which may change meanwhile", node, frame)
                if each.name == known.MODULES_BY_NAME:
                    return of(External("a module"))
                return unknown(f"an item of `{each.name}`")
        if any(isinstance(each, Box) and each.kind == _FILLED_BY_READING for each in value.things):
            self.change(value, node, frame)
        if value.roots and any(isinstance(each, Unknown) and not each.is_argument for each in value.things):
            self.note("reads an item of something of which nothing is known", node, frame)
        if isinstance(node.slice, ast.Slice):
            return self._sliced(node, node.slice, value, frame)
        return join((given, self.at(value, index)))

    def at(self, value: Value, index: Value) -> Value:
        """Return the item of a value that stands at an index, or under a key."""
        return self.item(value, _number(index))

    def _sliced(self, node: ast.Subscript, part: ast.Slice, value: Value, frame: Frame) -> Value:
        """Return some of the items of a value."""
        written = (part.lower, part.upper, part.step)
        bounds = [_number(self.quietly(each, frame)) if each else None for each in written]
        is_known = all((one is None) == (each is None) for one, each in zip(bounds, written, strict=True))
        found: list[Value] = []
        for each in value.things:
            if isinstance(each, Fixed) and is_known and bounds[2] != 0:
                found.append(self.fixed(node, each.items[slice(*bounds)]))
            elif isinstance(each, Fixed) or (isinstance(each, Box) and each.first):
                is_front = is_known and part.step is None and all((one or 0) >= 0 for one in bounds)
                first = front(of(each))[0][slice(*bounds)] if is_front else ()
                found.append(self.led(node, "tuple", [self.item(of(each))], first))
            else:
                found.append(of(each))
        return with_roots(join(found), value.roots)

    def _value_slice(self, node: ast.Slice, frame: Frame) -> Value:
        for each in (node.lower, node.upper, node.step):
            if each is not None:
                self.hashed(self.value(each, frame), node, frame)
        return PLAIN

    def _value_attribute(self, node: ast.Attribute, frame: Frame) -> Value:
        return self.attribute(self.value(node.value, frame), node.attr, node, frame)

    def _value_await(self, node: ast.Await, frame: Frame) -> Value:
        self.note("waits for something", node, frame)
        self.value(node.value, frame)
        return unknown("what is awaited")

    def _value_yield(self, node: ast.Yield, frame: Frame) -> Value:
        box = self.box(node, ITERATOR)
        frame.returned.append(of(box))
        self.fill(box, NONE if node.value is None else self.value(node.value, frame))
        return NONE

    def _value_yieldfrom(self, node: ast.YieldFrom, frame: Frame) -> Value:
        box = self.box(node, ITERATOR)
        frame.returned.append(of(box))
        self.fill(box, self.iterate(self.value(node.value, frame), node, frame))
        return NONE

    def _value_call(self, node: ast.Call, frame: Frame) -> Value:
        held = self._super(node, frame)
        if held is not None:
            return held
        function = self.value(node.func, frame)
        call = self.given(node, frame)
        if isinstance(node.func, ast.Attribute) and node.func.attr == "__setattr__":
            of_object = [] if len(call.positional) > 2 else [self.quietly(node.func.value, frame)]
            return self.set_by_name(Call((*of_object, *call.positional)), node, frame, is_raw=True)
        if isinstance(node.func, ast.Attribute) and any(
            isinstance(each, ModelSetting) for each in function.things
        ):
            holder = self.quietly(node.func.value, frame)
            if any(isinstance(each, ModelSetting) for each in holder.things):
                # A method of settings, not a function that they hold; it may be that of something else.
                others = frozenset(each for each in function.things if not isinstance(each, ModelSetting))
                denied = self.deny(call, node, frame)
                return join((denied, self.call(Value(others, function.roots), call, node, frame)))
        return self.call(function, call, node, frame)

    def given(self, node: ast.Call, frame: Frame) -> Call:
        """Follow the arguments of a call, and return them."""
        positional: list[Value] = []
        rest: list[Value] = []
        for arg in _written(node.args):
            if isinstance(arg, ast.Starred):
                unpacked = self.value(arg.value, frame)
                self.consume(unpacked, arg, frame)
                (only,) = unpacked.things if len(unpacked.things) == 1 else (None,)
                first = only.items if isinstance(only, Fixed) else only.first if isinstance(only, Box) else ()
                if not rest:
                    positional += [self.item(unpacked, index) for index in range(len(first))]
                if isinstance(only, Box) and not rest:
                    rest.append(with_roots(only.rest, unpacked.roots))
                elif rest or not isinstance(only, Fixed):
                    rest.append(self.item(unpacked))
            elif rest:
                rest.append(self.value(arg, frame))
            else:
                positional.append(self.value(arg, frame))
        named: dict[str, Value] = {}
        options: list[Value] = []
        for each in node.keywords:
            value = self.value(each.value, frame)
            if each.arg is None:
                self.special(value, UNPACKING, each.value, frame)
                options.append(self.unpacked(value))
            else:
                named[each.arg] = value
        return Call(
            tuple(positional),
            tuple(sorted(named.items())),
            join(rest) if rest else None,
            join(options) if options else None,
        )

    @staticmethod
    def _super(node: ast.Call, frame: Frame) -> Value | None:
        """Return what ``super()`` gives, if that is what is called."""
        if not isinstance(node.func, ast.Name) or node.func.id != "super":
            return None
        inside = next((each for each in frame.around() if each.receiver is not None), None)
        if inside is None or inside.receiver is None or inside.owner is None:
            return None
        kinds = [each.kind for each in inside.receiver.things if isinstance(each, Object)]
        kinds += [each for each in inside.receiver.things if isinstance(each, Class)]
        return of(*(Super(inside.receiver, inside.owner, each) for each in kinds))

    # -- tests

    def decide(self, test: ast.expr, frame: Frame) -> bool | None:
        """Return whether a test holds; None if it depends."""
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            known = self.decide(test.operand, frame)
            return None if known is None else not known
        if isinstance(test, ast.BoolOp):
            stops = isinstance(test.op, ast.Or)
            known_parts = [self.decide(each, frame) for each in test.values]
            if stops in known_parts:
                return stops
            return None if None in known_parts else not stops
        if _asks_for_text(test):
            things = self.quietly(test.args[0], frame).things  # type: ignore[attr-defined]
            known_texts = {
                isinstance(each.value, str) if isinstance(each, Constant) else None for each in things
            }
            return known_texts.pop() if len(known_texts) == 1 else None
        if isinstance(test, (ast.Name, ast.Attribute, ast.Constant)):
            return _truth(self.quietly(test, frame))
        if isinstance(test, ast.Compare) and len(test.ops) == 1:
            (right,) = test.comparators
            if isinstance(right, ast.Constant) and right.value is None:
                none = is_none(self.quietly(test.left, frame))
                if isinstance(test.ops[0], (ast.Is, ast.Eq)):
                    return none
                if isinstance(test.ops[0], (ast.IsNot, ast.NotEq)) and none is not None:
                    return not none
            compare = _ORDERS.get(type(test.ops[0]))
            if compare is not None:
                one, other = (_numbers(self.quietly(each, frame)) for each in (test.left, right))
                answers = {compare(left, against) for left in one for against in other}
                return answers.pop() if len(answers) == 1 else None
        return None

    def quietly(self, node: ast.expr, frame: Frame) -> Value:
        """Follow an expression once more, which was followed before."""
        self.quiet += 1
        try:
            return self.value(node, frame)
        finally:
            self.quiet -= 1

    def narrow(self, test: ast.expr, frame: Frame, *, holds: bool) -> None:
        """Take from a name what it cannot be where a test holds, or does not."""
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            self.narrow(test.operand, frame, holds=not holds)
        elif isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) is holds:
            for each in test.values:
                self.narrow(each, frame, holds=holds)
        elif _asks_for_text(test) and isinstance(test.args[0], ast.Name) and not holds:  # type: ignore[attr-defined]
            name = test.args[0].id  # type: ignore[attr-defined]
            texts = [each.value for each in frame.names.get(name, NONE).things if isinstance(each, Constant)]
            self._without(name, frame, tuple(each for each in texts if isinstance(each, str)))
        elif isinstance(test, ast.Name) and test.id in frame.names and holds:
            self._without(test.id, frame, (None, False))
        elif isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.left, ast.Name):
            (right,) = test.comparators
            if isinstance(right, ast.Constant) and right.value is None and test.left.id in frame.names:
                is_not = isinstance(test.ops[0], ast.IsNot)
                if is_not is holds and isinstance(test.ops[0], (ast.Is, ast.IsNot)):
                    self._without(test.left.id, frame, (None,))
                elif isinstance(test.ops[0], (ast.Is, ast.IsNot)):
                    frame.names[test.left.id] = NONE

    @staticmethod
    def _without(name: str, frame: Frame, literals: tuple[object, ...]) -> None:
        if name not in frame.names:
            return
        value = frame.names[name]
        kept = [
            each
            for each in value.things
            if not (isinstance(each, Constant) and any(each.value is one for one in literals))
        ]
        frame.names[name] = Value(frozenset(kept), value.roots)


@lru_cache(maxsize=_KEPT, typed=True)
def _literal(value: object) -> Value:
    """Return what a literal is, of which the same few are followed again and again."""
    is_known = isinstance(value, (str, int, float, bool, bytes, type(None)))
    return of(Constant(value)) if is_known else PLAIN  # type: ignore[arg-type]


def _written(args: Iterable[ast.expr]) -> Iterator[ast.expr]:
    """Yield arguments, with those in place of a list that is written only to be unpacked."""
    for each in args:
        if isinstance(each, ast.Starred) and isinstance(each.value, (ast.List, ast.Tuple)):
            yield from _written(each.value.elts)
        else:
            yield each


def _asks_for_text(test: ast.expr) -> bool:
    """Tell whether a test asks whether something is a text."""
    return (
        isinstance(test, ast.Call)
        and isinstance(test.func, ast.Name)
        and test.func.id == "isinstance"
        and len(test.args) == 2
        and isinstance(test.args[1], ast.Name)
        and test.args[1].id == "str"
    )


def _depth(values: Sequence[Value]) -> int:
    inner = [each.items for value in values for each in value.things if isinstance(each, Fixed)]
    return 1 + max((_depth(each) for each in inner), default=0)


def _shifted(node: ast.AST, left: Value, right: Value) -> Value:
    """Return what an operator makes of numbers: that of a turn, shifted once, if that is the same in each."""
    for turns, others in ((left, right), (right, left)):
        if isinstance(getattr(node, "op", None), ast.Add) and len(turns.things) == len(others.things) == 1:
            (turn,), (added,) = turns.things, others.things
            if isinstance(turn, Turn) and added == Constant(0):
                return turns
            if isinstance(added, ModelSetting) and added.is_any:
                continue
            if isinstance(turn, Turn) and turn.added is None and isinstance(added, (Constant, ModelSetting)):
                return of(replace(turn, added=added))
    return PLAIN


def _may_be_pile(value: Value) -> bool:
    return any(isinstance(each, (Fixed, Box, Unknown, Plain, Made)) for each in value.things)


def _items(value: Value) -> tuple[Value, ...]:
    (only,) = value.things
    return tuple(with_roots(each, value.roots) for each in only.items) if isinstance(only, Fixed) else ()


def _number(value: Value) -> int | None:
    (only,) = value.things if len(value.things) == 1 else (None,)
    return only.value if isinstance(only, Constant) and isinstance(only.value, int) else None


def _numbers(value: Value) -> list[float]:
    """Return the numbers that a value may be; none if it may be anything else."""
    found = [each.value for each in value.things if isinstance(each, Constant)]
    numbers = [each for each in found if isinstance(each, (int, float))]
    return numbers if len(numbers) == len(value.things) else []


def _truth(value: Value) -> bool | None:
    found = {bool(each.value) if isinstance(each, Constant) else None for each in value.things}
    return found.pop() if len(found) == 1 else None


@cache
def _method_of(kind: str) -> str:
    """Return the name of the method that follows a kind of expression."""
    return f"_value_{kind.lower()}"
