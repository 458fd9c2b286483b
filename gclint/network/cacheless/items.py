"""Follows names, attributes and items."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from gclint.code.names import names
from gclint.code.walk import FunctionNode, dotted_name
from gclint.model import known
from gclint.network.cacheless.asking import (
    is_known,
    is_mixed,
    leaves_out_new,
    members_of,
    slice_of,
    takes_first,
    undoes,
)
from gclint.network.cacheless.state import TermFrame, Ways
from gclint.network.cacheless.terms import TESTS, Term, Terms, constant_of
from gclint.network.evaluation.classes import ClassInfo
from gclint.network.evaluation.values import (
    NOTHING,
    EvaluatedExternal,
    EvaluatedMethod,
    Instance,
    Values,
    items_of,
)

_FIGURES = names("shape dtype device ndim is_cuda layout training")
_KEPT = names("keys values key_cache value_cache")
"""Attributes of caches that hold tensors, or None."""
_COUNTED = frozenset(("tuple", "list", "listed"))
_MARKS = names("is_updated has_previous_state")
"""Attributes of caches that tell whether they were filled."""


class Arguments(NamedTuple):
    """What a call passes."""

    positional: tuple[Term, ...] = ()
    named: tuple[tuple[str, Term], ...] = ()
    rest: tuple[Term, ...] = ()
    """What it unpacks of which the names are not known."""


class Items(Ways):
    """Follows what things consist of."""

    def __init__(self, terms: Terms) -> None:
        """Start with nothing known but the terms."""
        super().__init__(terms)
        self.kinds: dict[Term, Values] = {}
        """What terms may be of what a project defines, or imports."""
        self.results: dict[ast.Call, Callable[[], Term]] = {}
        """What gives the values of certain calls, and evaluates their arguments."""
        self.block: Term | None = None
        """The block that was entered last."""
        self.is_inside = False
        """Whether it is inside of a block."""
        self.around: list[ast.AST] = []
        """The loops whose turns are being followed, the innermost last."""
        self.is_repeating = False
        """Whether it is in a loop of a block."""
        self.are_written = False
        """Whether blocks write to caches, so that the one of another layer may hold something."""
        self.has_written = False
        self.results_used = 0
        """How many results of blocks without caches were looked at, in their order."""
        self.slots: set[tuple[str, ...]] = set()
        """The paths of attributes under which blocks have the indices of what they write to, or ask for."""
        self.has_parts = False
        """Whether the cache consists of several."""
        self.filled: set[Term] = set()
        """What caches gave back that was put into them: some give more, of which code takes the first."""

    @contextmanager
    def turning(self, *loops: ast.AST) -> Iterator[None]:
        """Follow a turn of loops, each in the one before."""
        outer, self.is_repeating = self.is_repeating, self.is_repeating or self.is_inside
        self.around += loops
        try:
            yield
        finally:
            del self.around[len(self.around) - len(loops) :]
            self.is_repeating = outer

    def known_frames(self) -> Iterable[TermFrame]:
        """Return the functions whose names code may still read."""
        return self.frames

    def value(self, node: ast.expr) -> Term:
        """Return what an expression computes."""
        raise NotImplementedError

    def assign(self, target: ast.expr, value: Term) -> None:
        """Assign a value to a target."""
        raise NotImplementedError

    def body(self, statements: Sequence[ast.stmt]) -> None:
        """Follow statements."""
        raise NotImplementedError

    def mark(self, index: Term | None) -> Term:
        """Return whether a cache says that it was filled."""
        raise NotImplementedError

    def extent(self) -> Term:
        """Return the shape of what is in a cache."""
        raise NotImplementedError

    def run_method(self, info: ClassInfo, name: str, receiver: Term, given: Arguments) -> Term:
        """Follow a method of an object."""
        raise NotImplementedError

    def unknown(self, function: Term, given: Arguments) -> Term:
        """Return what something gives that is not known."""
        raise NotImplementedError

    def place(self, node: ast.AST) -> Term:
        """Return what tells containers apart that different places make."""
        return self.terms("place", node, len(self.frames))

    # -- names and attributes

    def named(self, name: str) -> Term:
        """Return what a name stands for."""
        frame: TermFrame | None = self.frame
        while frame is not None:
            if name in frame.names:
                return self.settle(frame.names[name])
            frame = frame.parent
        module = self.frame.module
        found = self.terms("global", module.file.path, name)
        if found not in self.kinds:
            self.kinds[found] = module.lookup(name) or frozenset((EvaluatedExternal(name),))
        return found

    def attribute(self, base: Term, name: str) -> Term:
        """Return an attribute of a value."""
        base = self.settle(base)
        if is_mixed(base):
            return self.each_of(base, lambda each: self.attribute(each, name))
        if name == "training":
            return self.terms.true
        if base is self.terms.cache:
            self.has_parts |= name in known.CACHE_PARTS
            if self.is_inside and name in _KEPT:
                return self.terms("held", name, self.log)  # It may be None, or empty, or not there.
            return self.terms.marks if name in _MARKS else self.extent() if name == "shape" else base
        if base is self.terms.none:
            raise self.fail()
        if (base, name) in self.held:
            return self.settle(self.held[base, name])
        kinds = self.kinds_of(base)
        if name in _FIGURES or any(not isinstance(each, Instance) for each in kinds):
            found = self.terms("attribute", base, name)
            self.kinds.setdefault(found, members_of(kinds, name))
            return found
        for each in kinds:
            if isinstance(each, Instance) and (method := each.info.find_method(name)) is not None:
                return self._method(base, each, name, method[1].function)
        values = frozenset(
            one for each in kinds if isinstance(each, Instance) for one in each.info.attribute(name)
        )
        found = self.terms("attribute", base, name, *([] if values else [self.log]))
        self.kinds.setdefault(found, values)
        return found

    def _method(self, base: Term, kind: Instance, name: str, function: FunctionNode) -> Term:
        if any(dotted_name(each) == "property" for each in function.decorator_list):
            return self.run_method(kind.info, name, base, Arguments())
        found = self.terms("method", base, name)
        self.kinds[found] = frozenset((EvaluatedMethod(kind, name),))
        return found

    def kinds_of(self, term: Term) -> Values:
        """Return what a term may be of what a project defines, or imports."""
        return self.kinds.get(term, NOTHING)

    def is_of_table(self, function: Term) -> bool:
        """Tell whether a function is one of a table of transformers, such as one of attention."""
        if function.op == "either":
            return any(self.is_of_table(each) for each in function.args[1:])  # type: ignore[arg-type]
        base = function.args[0] if function.op in ("item", "attribute") else None
        kinds = self.kinds_of(base) if isinstance(base, Term) else NOTHING
        return any(
            isinstance(each, EvaluatedExternal) and is_known(each.name, known.TABLES) for each in kinds
        )

    def each_of(self, term: Term, follow: Callable[[Term], Term]) -> Term:
        """Follow what is done with each of the things that a choice is between."""
        test, one, other = term.args
        return self.choose(test, lambda: follow(one), lambda: follow(other))  # type: ignore[arg-type]

    # -- items

    def items(self, term: Term) -> tuple[Term, ...] | None:
        """Return all items of a tuple or list; None if they are not known."""
        return term.args[-1] if term.op in _COUNTED else None  # type: ignore[return-value]

    def item(self, base: Term, index: Term) -> Term:
        """Return an item of a value."""
        base, index = self.settle(base), self.settle(index)
        if is_mixed(base):
            return self.each_of(base, lambda each: self.item(each, index))
        if base is self.terms.none:
            raise self.fail()
        if base in (self.terms.cache, self.terms.marks):
            return base if base is self.terms.cache else self.mark(index)
        if base.op == "many":
            return base.args[0]  # type: ignore[return-value]
        if base.op == "extent":
            # Without a length, a batch still has a size.
            return self.terms("batch") if constant_of(index) == 0 else self.terms.constant(0)
        known_items = self.items(base)
        if known_items is not None and index.op == "either":
            return self.each_of(index, lambda each: self.item(base, each))
        if known_items is not None and index.op in TESTS:
            return self.choose(
                index, lambda: self.item(base, self.terms.true), lambda: self.item(base, self.terms.false)
            )
        if known_items is not None and isinstance(number := constant_of(index), int):
            if not -len(known_items) <= number < len(known_items):
                raise self.fail()
            return known_items[number]
        if base.op == "tuple" and known_items is not None and (part := slice_of(index)) is not None:
            return self.terms("tuple", known_items[part])
        if base.op == "dict" and isinstance(key := constant_of(index), str):
            return self._entry(base, key, None)
        if base.op == "item" and undoes(index, base.args[1]):  # type: ignore[arg-type]
            return base.args[0]  # type: ignore[return-value]
        if base in self.filled and index.op == "tuple":
            if takes_first(index):
                return base
            if any(map(leaves_out_new, index.terms())):
                return self.terms.cache
        found = self.terms("item", base, index)
        self.learn_item(found, base)
        return found

    def learn_item(self, item: Term, base: Term) -> None:
        """Take note of what an item may be of what a project defines."""
        self.kinds.setdefault(item, items_of(self.kinds_of(base)))

    def _entry(self, base: Term, key: str, default: Term | None) -> Term:
        _, rest, pairs = base.args
        found = dict(pairs).get(key)  # type: ignore[call-overload]
        if found is not None:
            return found  # type: ignore[no-any-return]
        if rest or default is None:
            return self.terms("entry", base, key, *([] if default is None else [default]))
        return default

    def in_container(self, base: Term, name: str, given: Arguments) -> Term | None:
        """Return what a method of a list or dict gives; None if that is not known."""
        items = self.items(base)
        if base.op == "list" and items is not None and name in ("append", "extend") and given.positional:
            more = given.positional[:1] if name == "append" else self.items(given.positional[0])
            if more is not None:
                self.replace(base, self.terms("list", base.args[0], items + more))
                return self.terms.none
        if (
            base.op == "dict"
            and given.positional
            and isinstance(key := constant_of(given.positional[0]), str)
        ):
            _, rest, pairs = base.args
            if name in ("get", "pop", "setdefault"):
                default = given.positional[1] if len(given.positional) > 1 else None
                found = self._entry(
                    base, key, self.terms.none if default is None and name == "get" else default
                )
                if name == "pop":
                    left = tuple(each for each in pairs if each[0] != key)  # type: ignore[union-attr]
                    self.replace(base, self.terms("dict", base.args[0], rest, left))
                if name != "setdefault":
                    return found
        if base.op == "dict" and name in ("get", "pop", "update"):
            return None if name == "get" else self.unknown(self.terms("attribute", base, name), given)
        return None

    def replace(self, old: Term, new: Term) -> None:
        """Take note that a container has become another one, under all of its names."""
        for frame in self.frames:
            frame.names.update({name: new for name, each in frame.names.items() if each is old})
        self.held.update({key: new for key, each in self.held.items() if each is old})

    def bare(self, term: Term) -> Term:
        """Return a list as what it holds, wherever it was made."""
        if term.op == "either":
            test, one, other = term.args
            return self.terms.either(test, self.bare(one), self.bare(other))  # type: ignore[arg-type]
        return self.terms("listed", term.args[-1]) if term.op == "list" else term
