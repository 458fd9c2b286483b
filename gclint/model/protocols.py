"""The methods that Python calls by itself: for operators, tests, loops, containers, attributes and texts."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from gclint.model.frames import Frame
from gclint.model.gradients import is_constant
from gclint.model.notes import Kind
from gclint.model.objects import Objects, is_argument, is_of_tensors
from gclint.model.values import (
    NEVER,
    OWN,
    PLAIN,
    Bound,
    Box,
    Call,
    Class,
    Constant,
    Fixed,
    Function,
    Object,
    Plain,
    Tensor,
    Thing,
    Unknown,
    Value,
    join,
    of,
    unknown,
)

TRUTH = ("__bool__", "__len__")
GETTING = ("__getitem__", "__missing__", "__class_getitem__")
CONTAINING = ("__contains__",)
UNPACKING = ("keys", "__getitem__", "__iter__", "__getattr__")
_COMPARING = ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__getattr__")
_TEXTS = ("__format__", "__str__", "__repr__", "extra_repr", "_get_name")
_OPERATORS = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.MatMult: "matmul",
    ast.Div: "truediv",
    ast.FloorDiv: "floordiv",
    ast.Mod: "mod",
    ast.Pow: "pow",
    ast.LShift: "lshift",
    ast.RShift: "rshift",
    ast.BitAnd: "and",
    ast.BitOr: "or",
    ast.BitXor: "xor",
    ast.USub: "neg",
    ast.UAdd: "pos",
    ast.Invert: "invert",
}
"""The middle of the names of the methods for an operator."""
_OTHERWISE = frozenset(
    (
        "__init__",
        "__new__",
        "__call__",
        "__post_init__",
        "__init_subclass__",
        "__class_getitem__",
        "__set_name__",
        "__getattribute__",
    )
)
"""Special methods that are followed where they are called, and that no function runs which gets an object."""
_ANYTHING = of(Unknown("what Python passes to a special method", is_argument=True))


class Protocols(Objects):
    """Follows special methods where Python calls them."""

    def special(
        self, value: Value, names: Sequence[str], node: ast.AST, frame: Frame, *given: Value
    ) -> Value:
        """Follow what a value may have under names of special methods, and return what that gives."""
        found: list[Value] = []
        for thing in value.things:
            if isinstance(thing, Object):
                found += self._special(thing, value, names, node, frame, given)
            elif isinstance(thing, Class):
                found += self._of_metaclass(thing, names, node, frame, given)
        return join(found)

    def _special(
        self,
        thing: Object,
        value: Value,
        names: Sequence[str],
        node: ast.AST,
        frame: Frame,
        given: Sequence[Value],
    ) -> Iterator[Value]:
        receiver = Value(frozenset((thing,)), value.roots)
        methods = [each for each in (self.find(thing.kind, name) for name in names) if each is not None]
        for method, owner in methods:
            if not _is_data(method):
                bound = self.bind_method(method, receiver, owner, node, frame)
                yield self.call(bound, Call(tuple(given)), node, frame)  # type: ignore[arg-type]
        if not methods and self.unknown_base(thing.kind):
            name = thing.kind.node.name
            self.note(f"does something with a `{name}`, whose bases are not all known", node, frame)
            yield unknown(f"what a `{name}` gives", value.roots)

    def _of_metaclass(
        self, kind: Class, names: Sequence[str], node: ast.AST, frame: Frame, given: Sequence[Value]
    ) -> Iterator[Value]:
        """Follow what a class has for itself, unless its own class has that."""
        if self.has_metaclass(kind):
            self.note(f"does something with `{kind.node.name}`, whose metaclass is not followed", node, frame)
            yield unknown(f"what `{kind.node.name}` gives")
        found = self.find(kind, "__class_getitem__") if "__class_getitem__" in names else None
        for each in () if found is None else found[0].things:
            if isinstance(each, Function) and found is not None:
                method = of(Bound(each, of(kind), found[1]))
                yield self.call(method, Call(tuple(given)), node, frame)  # type: ignore[arg-type]

    def has_metaclass(self, kind: Class) -> bool:
        """Tell whether the header of a class, or of a base, makes it something else than its code shows."""
        return any(
            not self.is_usual(keyword, each)
            for each in self.line(kind)
            if isinstance(each, Class)
            for keyword in each.node.keywords
        )

    def ask(self, value: Value, node: ast.AST, frame: Frame) -> None:
        """Follow all special methods that something may run which gets a value."""
        for each in self.inside(value):
            for thing in each.things:
                if isinstance(thing, Object):
                    names = {one for one in self._members(thing.kind) if _is_special(one)}
                    self._ask(thing, each, sorted(names), node, frame)
                elif isinstance(thing, Class) and self.find(thing, "__torch_function__"):
                    self.note(f"passes on `{thing.node.name}`, which replaces what torch does", node, frame)

    def _ask(self, thing: Object, value: Value, names: Sequence[str], node: ast.AST, frame: Frame) -> None:
        receiver = Value(frozenset((thing,)), value.roots)
        for name in names:
            method = self.find(thing.kind, name)
            if method is not None and not _is_data(method[0]):
                bound = self.bind_method(method[0], receiver, method[1], node, frame)
                self.call(bound, Call(rest=_ANYTHING), node, frame)  # type: ignore[arg-type]

    def inside(self, value: Value, *, is_deep: bool = False) -> Iterator[Value]:
        """Yield a value and what is in it: the items of containers, and attributes if ``is_deep``."""
        met: set[int] = set()
        waiting = [value]
        while waiting:
            each = waiting.pop()
            yield each
            for thing in each.things:
                if isinstance(thing, Fixed):
                    waiting += thing.items
                elif isinstance(thing, (Box, Object)) and id(thing) not in met:
                    met.add(id(thing))
                    if isinstance(thing, Box):
                        waiting.append(thing.item)
                    elif is_deep or thing.kind.node.decorator_list:
                        waiting += thing.attributes.values()

    # -- operators

    def operated(self, node: ast.AST, left: Value, right: Value, frame: Frame) -> Value:
        """Follow the methods for an operator, and return what they give."""
        name = _OPERATORS[type(node.op)] if isinstance(node, (ast.BinOp, ast.UnaryOp, ast.AugAssign)) else ""
        if isinstance(node, ast.UnaryOp):
            return self.special(left, (f"__{name}__",), node, frame)
        in_place = [f"__i{name}__"] if isinstance(node, ast.AugAssign) else []
        made = self.special(left, (*in_place, f"__{name}__"), node, frame, right)
        for one, other in ((left, right), (right, left)):
            if not all(isinstance(each, Object) for each in other.things):
                self.ask(one, node, frame)  # What is not of the project may take whatever it needs of it.
        return join((made, self.special(right, (f"__r{name}__",), node, frame, left)))

    def compared(self, left: Value, right: Value, node: ast.AST, frame: Frame) -> None:
        """Follow the methods for a comparison, also those of what is in containers."""
        for one, other in ((left, right), (right, left)):
            for each in self.inside(one):
                self.special(each, _COMPARING, node, frame, other)

    def hashed(self, key: Value, node: ast.AST, frame: Frame) -> None:
        """Follow the methods for what is a key, an index or an item of a set."""
        if not all(isinstance(each, (Constant, Plain)) for each in key.things):
            self.ask(key, node, frame)  # Also what something asks later that goes over keys.

    def identified(self, value: Value, node: ast.AST, frame: Frame) -> None:
        """Note what depends on which object a tensor is, of which recomputation may see a copy."""
        if self.is_running and any(_may_be_tensor(each) for one in self.inside(value) for each in one.things):
            self.note("depends on which object a tensor is, and recomputation may see a copy", node, frame)

    def typed(self, value: Value, node: ast.AST, frame: Frame) -> None:
        """Note what depends on the type of a tensor, which the copy that recomputation sees does not have."""
        if self.is_running and OWN not in value.roots and any(map(_may_be_tensor, value.things)):
            self.note("depends on the type of a tensor, and recomputation may see a plain one", node, frame)

    def written(self, value: Value, node: ast.AST, frame: Frame) -> None:
        """Follow the methods by which something becomes a text; that of a tensor tells of its gradient."""
        for each in self.inside(value):
            gradients = (isinstance(one, Tensor) and not is_constant(of(one)) for one in each.things)
            if not self.unrecorded and any(gradients):
                self.note("the text of a tensor", node, frame, Kind.GRADIENTS)
            elif any(map(is_argument, each.things)):
                self.typed(each, node, frame)
            self.special(each, _TEXTS, node, frame, PLAIN)

    # -- loops

    def consume(self, value: Value, node: ast.AST, frame: Frame) -> None:
        """Note that items of something are used up, or follow what gives them."""
        super().consume(value, node, frame)
        self.gone_over(value, node, frame)

    def gone_over(self, value: Value, node: ast.AST, frame: Frame) -> Value:
        """Follow the methods that give the items of an object, and return the items."""
        found: list[Value] = []
        for thing in value.things:
            if isinstance(thing, (Object, Class)):
                own = Value(frozenset((thing,)), value.roots)
                is_iterable = isinstance(thing, Object) and self.find(thing.kind, "__iter__") is not None
                if is_iterable or isinstance(thing, Class):
                    made = self.special(own, ("__iter__",), node, frame)
                    inner = Value(frozenset(each for each in made.things if each is not thing), made.roots)
                    found += [self.special(made, ("__next__",), node, frame), self.item(inner)]
                else:
                    found.append(self.special(own, ("__getitem__", "__len__"), node, frame, PLAIN))
        return join(found)

    # -- attributes

    def _of_object(
        self, thing: Object, value: Value, name: str, node: ast.AST, frame: Frame, is_optional: bool
    ) -> Value:
        if self.find(thing.kind, "__getattribute__") is not None:
            self.note(f"reads `{name}` by a `__getattribute__` of its own", node, frame)
        is_held = self.find(thing.kind, name) is not None or thing.attributes.get(name) is not None
        if not is_held and self.find(thing.kind, "__getattr__") and not self.is_module(thing.kind):
            return self.special(value, ("__getattr__",), node, frame, of(Constant(name)))
        return super()._of_object(thing, value, name, node, frame, is_optional)

    def put(self, value: Value, name: str, given: Value, node: ast.AST, frame: Frame) -> None:
        """Assign an attribute, by whatever methods are there for that."""
        self._by_method(value, name, ("__setattr__", "__set__", "setter"), (given,), node, frame)
        self.set_attribute(value, name, given, node, frame)

    def deleted(self, value: Value, name: str, node: ast.AST, frame: Frame) -> None:
        """Follow what deletes an attribute."""
        self._by_method(value, name, ("__delattr__", "__delete__", "deleter"), (), node, frame)

    def _by_method(
        self,
        value: Value,
        name: str,
        methods: tuple[str, str, str],
        given: Sequence[Value],
        node: ast.AST,
        frame: Frame,
    ) -> None:
        """Follow what changes an attribute: a method of the object, of a descriptor, or of a property."""
        of_object, of_descriptor, of_property = methods
        for thing in value.things:
            if not isinstance(thing, Object):
                continue
            own = Value(frozenset((thing,)), value.roots)
            if self.find(thing.kind, of_object) is not None:
                self.special(own, (of_object,), node, frame, of(Constant(name)), *given)
            found = self.find(thing.kind, name)
            held = NEVER if found is None else found[0]
            if any(isinstance(each, Unknown) for each in held.things):
                self.note(f"changes `{name}`, by what its class has under that name", node, frame)
            self.special(held, (of_descriptor,), node, frame, own, *given)
            for each, owner in self._of_property(thing.kind, name, of_property):
                self.call(of(Bound(each, own, owner)), Call(tuple(given)), node, frame)  # type: ignore[arg-type]

    def _of_property(self, kind: Class, name: str, of_property: str) -> Iterator[tuple[Function, Class]]:
        """Yield the functions that a property calls when it is assigned or deleted."""
        for owner in self.line(kind):
            for each in owner.node.body if isinstance(owner, Class) else ():
                if isinstance(each, ast.FunctionDef) and each.name == name and isinstance(owner, Class):
                    roles = (getattr(decorator, "attr", "") for decorator in each.decorator_list)
                    if of_property in roles:
                        yield Function(each, owner.space, owner.frame, owner), owner

    def has_attribute(self, value: Value, name: str, node: ast.AST, frame: Frame) -> None:
        """Follow what runs when an object is only asked whether it has an attribute."""
        for thing in value.things:
            if (isinstance(thing, Tensor) or is_argument(thing)) and not is_of_tensors(name):
                self.note(f"asks for `{name}` of a tensor, which copies do not have", node, frame)
            if isinstance(thing, Object):
                own = Value(frozenset((thing,)), value.roots)
                found = self.find(thing.kind, name)
                if found is not None:
                    self.bind_method(found[0], own, found[1], node, frame)
                elif thing.attributes.get(name) is None:
                    self.special(own, ("__getattr__",), node, frame, of(Constant(name)))

    # -- classes

    def make(self, kind: Class, call: Call, node: ast.AST, frame: Frame) -> Value:
        """Return an object of a class, and follow what else runs when it is made, or no longer there."""
        made = super().make(kind, call, node, frame)
        if not self.quiet:
            self._ask_members(kind, node, frame)
            if self.find(kind, "__new__") or self.has_metaclass(kind):
                self.note(f"makes a `{kind.node.name}` in a way that is not followed", node, frame)
        if self.is_first and self.find(kind, "__del__"):
            self.special(made, ("__del__",), node, frame)
        return made

    def described(
        self, descriptor: Value, receiver: Value, owner: Class, node: ast.AST, frame: Frame
    ) -> Value:
        """Follow a descriptor that is read, and return what it may give."""
        given = self.special(descriptor, ("__get__",), node, frame, receiver, of(owner))
        return join((unknown("a descriptor"), given))

    def _of_class(self, kind: Class, name: str, node: ast.AST, frame: Frame) -> Value:
        self._ask_members(kind, node, frame)
        found = super()._of_class(kind, name, node, frame)
        return join((found, self.special(found, ("__get__",), node, frame, NEVER, of(kind))))

    def _ask_members(self, kind: Class, node: ast.AST, frame: Frame) -> None:
        """Note that a class has its objects as attributes, which may do something of their own."""
        has_methods = any(
            isinstance(thing, Function)
            for each in self.line(kind)
            if isinstance(each, Class)
            for value in self.spaces.members.get(each, {}).values()
            for thing in value.things
        )
        if has_methods and "enum.Enum" in self.line(kind):
            self.note(f"uses a member of `{kind.node.name}`, which has methods of its own", node, frame)

    def made_class(self, kind: Class, frame: Frame) -> None:
        """Follow what runs once a class is defined."""
        for base in kind.node.bases:
            self.ask(self.quietly(base, frame), kind.node, frame)
        if self.has_metaclass(kind):
            self.note(f"defines `{kind.node.name}` in a way that is not followed", kind.node, frame)
        found = self.find(kind, "__init_subclass__", kind)
        for each in () if found is None else found[0].things:
            if isinstance(each, Function) and found is not None:
                method = of(Bound(each, of(kind), found[1]))
                named = {each.arg: self.quietly(each.value, frame) for each in kind.node.keywords if each.arg}
                call = Call((), tuple(sorted(named.items())))
                self.call(method, call, kind.node, frame)  # type: ignore[arg-type]
        for name, value in list(self.spaces.members[kind].items()):
            self.special(value, ("__set_name__",), kind.node, frame, of(kind), of(Constant(name)))

    def instances_asked(self, kinds: Value, node: ast.AST, frame: Frame) -> None:
        """Follow what runs when something is asked whether it is of a class."""
        self.ask(kinds, node, frame)
        for each in self.inside(kinds):
            for thing in each.things:
                if isinstance(thing, Class) and self.decides_itself(thing):
                    self.note(f"asks for a `{thing.node.name}` in a way of its own", node, frame)

    def decides_itself(self, kind: Class) -> bool:
        """Tell whether code of a class, or the attributes that it names, decide which objects are of it."""
        is_protocol = "typing.Protocol" in self.line(kind)
        return is_protocol or self.has_metaclass(kind) or self.find(kind, "__subclasshook__") is not None


def _may_be_tensor(thing: Thing) -> bool:
    return isinstance(thing, Tensor) or is_argument(thing)


def _is_special(name: str) -> bool:
    is_marked = name.startswith("__") and name.endswith("__") and name not in _OTHERWISE
    return is_marked or name == "keys"


def _is_data(value: Value) -> bool:
    """Tell whether a class has something that is not called, such as a literal."""
    return all(isinstance(each, (Constant, Plain, Fixed, Box, Class)) for each in value.things)
