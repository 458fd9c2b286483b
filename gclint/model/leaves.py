"""What changes the output of input embeddings in place, which is a leaf if these are frozen."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from typing import NamedTuple

from gclint.code.names import names
from gclint.code.naming import MODEL_BASE
from gclint.code.tree import blocks_of
from gclint.code.walk import FunctionNode, last_name, structure, walk
from gclint.model import tensors
from gclint.model.frames import Frame
from gclint.model.gradients import is_constant
from gclint.model.interpreter import Interpreter
from gclint.model.notes import Kind, Root
from gclint.model.spaces import Space
from gclint.model.texts import texts
from gclint.model.values import (
    NEVER,
    TENSOR,
    Call,
    Class,
    Constant,
    Function,
    Made,
    Method,
    Object,
    Plain,
    Tensor,
    Thing,
    Unknown,
    Value,
    of,
    unknown,
)

_OF_LIBRARY = frozenset((MODEL_BASE, "EmbeddingAccessMixin"))
GETTER = "get_input_embeddings"
USUAL = "embed_tokens"
NAMED_BY = "_input_embed_layer"
_HOLDERS = ("", "embeddings", "model")
"""The attributes of a model in which the library looks for them if it has no method of its own."""
SAME = names(
    """
    T mT H mH real adjoint as_strided broadcast_to chunk contiguous diagonal dsplit expand expand_as flatten
    hsplit movedim moveaxis narrow permute ravel reshape reshape_as select split split_with_sizes squeeze
    swapaxes swapdims t tensor_split transpose unbind unflatten unfold unsqueeze view view_as view_as_complex
    view_as_real vsplit
    """
)
"""What gives the memory of a fresh tensor itself; the other views that are known may also copy it."""
_HARMLESS = frozenset(("requires_grad_", "retain_grad", "detach_"))
"""Methods that change a tensor, but that a leaf allows."""
_ASKING = frozenset(("is_leaf", "requires_grad", "training", "is_grad_enabled"))
"""Tests without which no leaf that requires grad is changed."""


class EmbeddingPart(NamedTuple):
    """An attribute of objects of a class; None stands for any class."""

    kind: Class | None
    name: str


class Change(NamedTuple):
    """A statement that changes the output of input embeddings in place."""

    statement: ast.stmt
    name: str
    """The variable."""
    module: EmbeddingPart
    """The module's attribute, or the method that returns it."""
    source: ast.Call | None
    """The call of the module, if that was followed."""
    others: frozenset[str]
    """The other variables that share the memory."""


RETURNED = EmbeddingPart(None, GETTER)
"""What the getter of something gives that need not be known."""


class _Fact(NamedTuple):
    """What a test has given, however it is laid out."""

    test: Hashable
    words: frozenset[str]
    holds: bool


class _Leaf(NamedTuple):
    """The output of embeddings, if it is there only where certain tests have given something."""

    part: EmbeddingPart
    facts: frozenset[_Fact] = frozenset()


class Leaves(Interpreter):
    """Follows methods of what holds input embeddings, each for itself, to see what changes their output.

    A root of what it reads from an object tells which attribute that is. Where the same test is asked twice,
    only what the same way has left is there behind the second one.
    """

    def __init__(self, space: Space) -> None:
        """Prepare to follow methods of a module."""
        super().__init__(space.spaces, is_quiet=True)
        self.space = space
        self._parts: dict[Root, EmbeddingPart] = {}
        self._hooked: dict[Class, frozenset[EmbeddingPart]] = {}
        self._begin(None)

    def _begin(self, method: FunctionNode | None, names_given: Collection[str] = ()) -> None:
        self._method = method
        """The method that is followed; None while objects are made and embeddings are searched."""
        self._names = names_given
        """Those of what may be input embeddings."""
        self._at: list[tuple[ast.stmt, Frame]] = []
        """The statements that are being followed, one in another, with the names of what they stand in."""
        self._found: dict[tuple[ast.stmt, EmbeddingPart], Change] = {}
        self._sources: dict[EmbeddingPart, ast.Call] = {}
        self._leaves: dict[Root, _Leaf] = {}
        self._changed: set[EmbeddingPart] = set()
        """Of what the statement has changed outputs that is being followed."""
        self._ends: dict[int, dict[str, Value] | None] = {}
        """The names at the end of blocks, unless that is not reached."""
        self._bound: list[str] = []
        """The names and attributes that were bound, in order."""

    # -- which attributes are input embeddings

    def embeddings(self, model: Class, *, by_default: bool) -> frozenset[EmbeddingPart]:
        """Return what a model's getter returns, or where the library looks if the model has none."""
        if model not in self._hooked:
            self._hooked[model] = frozenset()
            self._hooked[model] = frozenset(self._embeddings(model, by_default=by_default))
        return self._hooked[model]

    def _embeddings(self, model: Class, *, by_default: bool) -> Iterator[EmbeddingPart]:
        frame = model.space.frame
        made = self.make_anyhow(model, frame)
        found = self.find(model, GETTER)
        if found is not None and found[1].node.name not in _OF_LIBRARY:
            getter = self.attribute(made, GETTER, model.node, frame)
            returned = self.call(getter, Call(), ast.Name(GETTER), frame)
            yield from (self._parts[each] for each in returned.roots if each.kind is Kind.PART)
        elif by_default:
            named = self.find(model, NAMED_BY)
            name = next(iter(texts(named[0]) or ()), USUAL) if named else USUAL
            for path in _HOLDERS:
                holder = self.attribute(made, path, model.node, frame, is_optional=True) if path else made
                for each in holder.things:
                    if isinstance(each, Object):
                        yield EmbeddingPart(each.kind, name)

    def is_hooked(self, part: EmbeddingPart, owner: Class, hooked: Collection[EmbeddingPart]) -> bool:
        """Tell whether an attribute is one of the input embeddings of the models that run a class."""
        own = self._hooked.get(owner, ())
        for each in hooked:
            if each.name != part.name:
                continue
            if part.kind is None or each.kind is None:
                # What a model leads to through something that is not known is what the class has itself.
                is_same = each in own if part.kind is each.kind else part.kind is owner and each not in own
            else:
                is_same = part.kind in self.line(each.kind) or each.kind in self.line(part.kind)
            if is_same:
                return True
        return False

    # -- what a method changes

    def changes(self, owner: Class, method: FunctionNode, modules: Collection[str]) -> list[Change]:
        """Follow a method with any arguments, and return what it changes of the outputs of embeddings.

        Args:
            owner: the class that has the method.
            method: of the class.
            modules: the names of attributes that may be embeddings; whether they are is not asked here.
        """
        self._begin(None)
        receiver = self.make_anyhow(owner, self.space.frame)
        self._begin(method, modules)
        given = method.args
        parameters = [*given.posonlyargs, *given.args, *given.kwonlyargs][1:]
        named = tuple(sorted((each.arg, of(Unknown(each.arg, is_argument=True))) for each in parameters))
        rest = of(Unknown("further arguments", is_argument=True))
        function = Function(method, self.space, None, owner)
        self.enter(function, Call((receiver,), named, rest, rest), method, self.space.frame, owner)
        found = [*self._found.values()]
        self._begin(None)
        return found

    def entry(self, function: Function, call: Call, owner: Class | None) -> object:
        """Return what is the same for calls of which following one is enough, in one method."""
        return super().entry(function, call, owner), self._method

    def enter(
        self, function: Function, call: Call, node: ast.AST, frame: Frame, owner: Class | None = None
    ) -> Value:
        """Follow a function, unless it is another one of the project than the method itself."""
        if self._method is not None and self.stack and function.frame is None:
            return unknown("a call")
        return super().enter(function, call, node, frame, owner)

    def attribute(
        self, value: Value, name: str, node: ast.AST, frame: Frame, *, is_optional: bool = False
    ) -> Value:
        """Return an attribute, with a root that tells which one it is."""
        held = Value(value.things, frozenset(each for each in value.roots if each.kind is not Kind.PART))
        found = super().attribute(held, name, node, frame, is_optional=is_optional)
        if name in SAME or name == "data" or not any(map(_may_be_part, found.things)):
            return found
        parts = {
            EmbeddingPart(each.kind if isinstance(each, Object) else None, name)
            for each in value.things
            if isinstance(each, (Object, Unknown, Made))
        }
        return Value(found.things, found.roots.union(map(self._root, parts)))

    def _root(self, part: EmbeddingPart) -> Root:
        home = "" if part.kind is None else f"{part.kind.space.file.path}:{part.kind.node.lineno}"
        root = Root(Kind.PART, f"{home}:{part.name}")
        self._parts[root] = part
        return root

    def _root_of(self, leaf: _Leaf) -> Root:
        found = next((root for root, each in self._leaves.items() if each == leaf), None)
        root = found or Root(Kind.LEAF, f"{len(self._leaves):06}")
        self._leaves[root] = leaf
        return root

    def call(self, function: Value, call: Call, node: ast.expr, frame: Frame) -> Value:
        """Return what a call gives: the output of embeddings, the same memory, or something new."""
        if self._method is None or not isinstance(node, ast.Call):
            return super().call(function, call, node, frame)
        parts = {self._parts[each] for each in function.roots if each.kind is Kind.PART}
        # With more than the tokens, it may compute something else, such as logits.
        is_lookup = len(call.all()) == 1
        parts = {each for each in parts if each.name in self._names and is_lookup}
        if isinstance(node.func, ast.Call) and self._is_own_getter(node.func.func):
            parts = {RETURNED}
        if parts:
            self._sources.update(dict.fromkeys(parts, node))
            return Value(TENSOR.things, frozenset(self._root_of(_Leaf(each)) for each in parts))
        name = last_name(node.func)
        if name in _HARMLESS:
            receivers = [each.receiver.roots for each in function.things if isinstance(each, Method)]
            return of(Tensor(is_constant=name == "detach_"), roots=frozenset[Root]().union(*receivers))
        result = super().call(function, call, node, frame)
        is_same = name in SAME or name in tensors.CHANGING
        is_same = is_same or any(isinstance(each, Function) for each in function.things)
        return result if is_same else _without_leaves(result)

    def _is_own_getter(self, function: ast.expr) -> bool:
        """Tell whether a getter is that of the object whose method is followed, or of something in it."""
        given = None if self._method is None else self._method.args
        own = [] if given is None else [each.arg for each in (*given.posonlyargs, *given.args)][:1]
        is_getter = last_name(function) == GETTER
        while isinstance(function, ast.Attribute):
            function = function.value
        return is_getter and [last_name(function)] == own

    def change(self, value: Value, node: ast.AST, frame: Frame) -> None:
        """Take note that a value is changed in place, if it may be a leaf that requires grad."""
        parts = self._parts_in(value)
        if not parts or self.unrecorded or (value.things and is_constant(value)):
            return
        if isinstance(getattr(node, "target", node), ast.Attribute):
            return  # An attribute of a tensor is another tensor.
        if isinstance(node, ast.Call) and any(each.arg == "out" for each in node.keywords):
            return  # It fails for whatever requires grad, also for a clone.
        statement, around = self._at[-1]
        if any(blocks_of(statement)) or around is not frame:
            return  # A clone before the statement would be of something else than in it.
        bound = {each.target.id for each in walk(statement) if isinstance(each, ast.NamedExpr)}
        for part in parts:
            variables = {name for name, each in frame.names.items() if part in self._parts_in(each)} - bound
            written = [each.id for each in walk(node) if isinstance(each, ast.Name) and each.id in variables]
            if written:
                others = frozenset(each for each in variables - {written[0]} if not each.startswith("."))
                change = Change(statement, written[0], part, self._sources.get(part), others)
                self._found.setdefault((statement, part), change)
                self._changed.add(part)

    def may_change(self, value: Value, node: ast.AST, frame: Frame) -> None:
        """Take what may be changed for something that is."""
        self.change(value, node, frame)

    def _parts_in(self, value: Value) -> list[EmbeddingPart]:
        leaves = [self._leaves[each].part for each in sorted(value.roots) if each.kind is Kind.LEAF]
        return list(dict.fromkeys(leaves))

    def body(self, statements: Sequence[ast.stmt], frame: Frame) -> None:
        """Follow statements; behind a change, everything is as if its tensor was cloned before."""
        for each in statements:
            self._at.append((each, frame))
            super().body([each], frame)
            self._at.pop()
            for around in frame.around() if self._changed else ():
                self._replace(around, lambda leaf: None if leaf.part in self._changed else leaf)
            self._changed.clear()
        self._ends[id(statements)] = None if frame.is_dead else frame.names

    def _replace(self, frame: Frame, new: Callable[[_Leaf], _Leaf | None]) -> None:
        """Put others in the place of leaves that names may be, or none."""
        for name, value in frame.names.items():
            leaves = [each for each in value.roots if each.kind is Kind.LEAF]
            if leaves:
                kept = [
                    self._root_of(each) for each in map(new, map(self._leaves.__getitem__, leaves)) if each
                ]
                frame.names[name] = Value(value.things, value.roots.difference(leaves).union(kept))

    def _follow_augassign(self, node: ast.AugAssign, frame: Frame) -> None:
        if isinstance(node.target, ast.Subscript):  # The item may be a copy, but is written back.
            self.change(self.quietly(node.target.value, frame), node, frame)
        super()._follow_augassign(node, frame)

    def _value_subscript(self, node: ast.Subscript, frame: Frame) -> Value:
        result = super()._value_subscript(node, frame)
        indices = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        is_same = all(isinstance(each, ast.Slice) or self._is_number(each, frame) for each in indices)
        return result if is_same else _without_leaves(result)

    def _is_number(self, index: ast.expr, frame: Frame) -> bool:
        """Tell whether an index selects a view; one that is a tensor or a list makes a copy."""
        return all(
            isinstance(each, Plain) or (isinstance(each, Constant) and type(each.value) is not bool)
            for each in self.quietly(index, frame).things
        )

    # -- tests that are asked twice

    def bind(self, name: str, value: Value, frame: Frame, node: ast.AST | None = None) -> None:
        """Bind a name, of which tests may be about something else from here on."""
        super().bind(name, value, frame, node)
        self._outdate(name, frame)

    def set_attribute(self, value: Value, name: str, given: Value, node: ast.AST, frame: Frame) -> None:
        """Assign an attribute, of which tests may be about something else from here on."""
        super().set_attribute(value, name, given, node, frame)
        self._outdate(name, frame)

    def assign(self, target: ast.expr, value: Value, frame: Frame, *, is_same: bool = False) -> None:
        """Assign a value to a target, of whose items tests may be about others from here on."""
        super().assign(target, value, frame, is_same=is_same)
        if isinstance(target, ast.Subscript):
            self._outdate(last_name(target.value), frame)

    def _outdate(self, word: str, frame: Frame) -> None:
        self._bound.append(word)
        if any(word in fact.words for leaf in self._leaves.values() for fact in leaf.facts):
            self._replace(
                frame,
                lambda leaf: _Leaf(
                    leaf.part, frozenset(each for each in leaf.facts if word not in each.words)
                ),
            )

    def _follow_if(self, node: ast.If, frame: Frame) -> None:
        before = len(self._bound)
        super()._follow_if(node, frame)
        one, other = (self._ends.pop(id(block), None) for block in (node.body, node.orelse))
        bound = {*self._bound[before:]}
        for holds, way, against in ((True, one, other), (False, other, one)):
            facts = [each for each in _facts(node.test, holds=holds) if bound.isdisjoint(each.words)]
            if way is not None and self._leaves:
                self._tell(frame, way, against or {}, facts)

    def _tell(self, frame: Frame, way: dict[str, Value], other: dict[str, Value], facts: list[_Fact]) -> None:
        """Take note of what holds where a name is a leaf that it is on one of two ways alone."""
        for name, value in frame.names.items():
            only = (way.get(name, NEVER).roots - other.get(name, NEVER).roots) & self._leaves.keys()
            new = [_Leaf(each.part, each.facts.union(facts)) for each in map(self._leaves.__getitem__, only)]
            frame.names[name] = Value(value.things, (value.roots - only).union(map(self._root_of, new)))

    def narrow(self, test: ast.expr, frame: Frame, *, holds: bool) -> None:
        """Take from names what they cannot be where a test holds: what another way has left, and leaves."""
        super().narrow(test, frame, holds=holds)
        if self._leaves:
            excluded = {_Fact(each.test, each.words, not each.holds) for each in _facts(test, holds=holds)}
            is_asked = _excludes_leaf(test, holds)
            self._replace(
                frame, lambda leaf: None if is_asked or not excluded.isdisjoint(leaf.facts) else leaf
            )


def _may_be_part(thing: Thing) -> bool:
    return isinstance(thing, (Object, Made, Unknown))


def _without_leaves(value: Value) -> Value:
    return Value(value.things, frozenset(each for each in value.roots if each.kind is not Kind.LEAF))


def _facts(test: ast.expr, *, holds: bool) -> Iterator[_Fact]:
    """Yield what follows from a test."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        yield from _facts(test.operand, holds=not holds)
        return
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And if holds else ast.Or):
        for each in test.values:
            yield from _facts(each, holds=holds)
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.IsNot):
        yield from _facts(ast.Compare(test.left, [ast.Is()], test.comparators), holds=not holds)
    else:
        words = (last_name(each) for each in walk(test) if isinstance(each, (ast.Name, ast.Attribute)))
        yield _Fact(structure(test), frozenset(words), holds)


def _excludes_leaf(test: ast.expr, holds: bool) -> bool:
    """Tell whether no leaf is seen to require grad where a test is true, or false."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _excludes_leaf(test.operand, not holds)
    if isinstance(test, ast.BoolOp):
        sides = [_excludes_leaf(side, holds) for side in test.values]
        return any(sides) if isinstance(test.op, ast.And) is holds else all(sides)
    return not holds and last_name(test.func if isinstance(test, ast.Call) else test) in _ASKING
