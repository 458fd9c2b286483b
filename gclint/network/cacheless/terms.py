"""What code computes, as terms: two that are the same are one object, and stand for the same value.

A choice that nothing decides is a term, too, so that two runs can be compared on all of their ways at once.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from typing import TypeAlias

from gclint.code.names import names

Part: TypeAlias = "Term | Hashable"


TESTS = frozenset(("is given", "is", "compared", "not", "is a"))
"""Operations that give True or False."""


_HOLDING = frozenset(("tuple", "list", "listed", "dict", "pair", "chosen", "many"))
"""Operations of terms that are made of others, which stay what they are."""
_FRESH = TESTS | {"computed", "constant", "held", "slice", "text"}
"""Operations that give something new, in which nothing is kept of what they got."""
_GIVING_ITEMS = names(
    """
    copy dict enumerate filter items iter keys list map next pop popitem reversed set setdefault sorted tuple
    values zip
    """
)
"""Functions and methods that give what they got, or make something of it, as they are called in terms."""
ITEM, INDEX = "<item>", "<index>"
"""What a turn of a loop goes over, and its number, as variables; no name of the code is like these."""


class Term:
    """An operation with what it is applied to."""

    __slots__ = ("args", "op")

    def __init__(self, op: str, args: tuple[Part, ...]) -> None:
        """Make a term that is not yet known under its operation; ``Terms`` makes them."""
        self.op = op
        self.args = args

    def __repr__(self) -> str:
        """Write the term like a call, for whoever looks for the reason of a difference."""
        return f"{self.op}({', '.join(map(repr, self.args))})"

    def terms(self) -> Iterator[Term]:
        """Yield the terms that it is made of."""
        yield from _terms(self.args)


def _terms(parts: tuple[object, ...]) -> Iterator[Term]:
    for each in parts:
        if isinstance(each, Term):
            yield each
        elif isinstance(each, tuple):
            yield from _terms(each)


class Terms:
    """All terms of a comparison."""

    def __init__(self) -> None:
        """Know none but those that everybody needs."""
        self._known: dict[Hashable, Term] = {}
        self._within: dict[Term, frozenset[Term]] = {}
        self._keeping: dict[Term, bool] = {}
        self.none = self.constant(None)
        self.true = self.constant(True)
        self.false = self.constant(False)
        self.cache = self("cache")
        """An empty cache, a part of one, or what is in it."""
        self.filled = self("filled")
        """A cache that blocks may have filled."""
        self.filled_by_others = self("filled", "by other layers")
        """One in which only layers of the same loop may have put something, each for itself."""
        self.marks = self("marks")
        """What an empty cache says of whether it was filled: no, for any layer."""
        self.unbound = self("unbound")

    def __call__(self, op: str, *args: Part) -> Term:
        """Return the term of an operation."""
        key = (op, *args)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = Term(op, args)
        return found

    def constant(self, value: object) -> Term:
        """Return the term of a literal; equal literals of two types are two."""
        return self("constant", type(value).__name__, value)

    def either(self, test: Term, one: Term, other: Term) -> Term:
        """Return what is one thing if a test holds, and else another."""
        if one is other:
            return one
        if test.op == "not":
            return self.either(test.args[0], other, one)  # type: ignore[arg-type]
        if test.op in TESTS and {one, other} == {self.true, self.false}:
            return test if one is self.true else self.negated(test)
        one, other = self.assuming(one, test, True), self.assuming(other, test, False)
        return one if one is other else self("either", test, one, other)

    def negated(self, test: Term) -> Term:
        """Return whether a test does not hold."""
        return test.args[0] if test.op == "not" else self("not", test)  # type: ignore[return-value]

    def assuming(self, term: Term, test: Term, holds: bool) -> Term:
        """Return what a term is where a test is known to hold, or not to."""
        while term.op == "either" and term.args[0] is test:
            term = term.args[1 if holds else 2]  # type: ignore[assignment]
        return term

    def filled_one(self, term: Term, *, by_others: bool = False) -> Term:
        """Return a value in which caches, also in containers, are those that blocks may have filled.

        Args:
            term: the value.
            by_others: whether only layers of the same loop have filled them.
        """
        filled = self.filled_by_others if by_others else self.filled
        caches = {self.cache: filled, self.filled_by_others: filled}
        return self.replaced(term, caches)

    def replaced(self, term: Term, others: Mapping[Term, Term]) -> Term:
        """Return a value with others in the place of some, also in containers, and where a test decides."""
        if term.op == "either":
            test, one, other = term.args
            return self.either(test, self.replaced(one, others), self.replaced(other, others))  # type: ignore[arg-type]
        if term.op in _HOLDING:
            return self(term.op, *(self._replaced_in(each, others) for each in term.args))
        return others.get(term, term)

    def _replaced_in(self, part: Part, others: Mapping[Term, Term]) -> Part:
        if isinstance(part, Term):
            return self.replaced(part, others)
        return tuple(self._replaced_in(each, others) for each in part) if type(part) is tuple else part

    def keeps_cache(self, term: Term) -> bool:
        """Tell whether an empty cache is in a value, or in the log, in a way that is not followed."""
        while term.op == "then":  # These are the longest.
            if self._keeps(term.args[1]):
                return True
            term = term.args[0]  # type: ignore[assignment]
        return self._keeps(term)

    def _keeps(self, part: object) -> bool:
        if isinstance(part, tuple):
            return any(map(self._keeps, part))
        if not isinstance(part, Term) or part.op in _FRESH:
            return False
        found = self._keeping.get(part)
        if found is None:
            parts = part.args
            if part.op == "either":
                parts = part.args[1:]
            elif part.op == "item":
                parts = part.args[:1]
            elif part.op == "read" and part.args[0] not in _GIVING_ITEMS:
                parts = ()
            elif part.op == "loop":
                _, iterated, result, needed, _ = part.args
                parts = (iterated, result, *(each[2] for each in needed))  # type: ignore[union-attr]
            found = self._keeping[part] = part is self.cache or any(
                self.keeps_cache(each) if isinstance(each, Term) else self._keeps(each) for each in parts
            )
        return found

    def leaves(self, term: Term) -> frozenset[Term]:
        """Return the things that a choice is between."""
        if term.op != "either":
            return frozenset((term,))
        return self.leaves(term.args[1]) | self.leaves(term.args[2])  # type: ignore[arg-type]

    def within(self, term: Term) -> frozenset[Term]:
        """Return all variables of loops that a term depends on."""
        found = self._within.get(term)
        if found is None:
            found = frozenset((term,)) if term.op == "variable" else frozenset()
            for each in term.terms():
                found |= self.within(each)
            self._within[term] = found
        return found

    def truth(self, term: Term) -> bool | None:
        """Return whether a term is true, if that is known."""
        if term.op == "constant":
            return bool(term.args[1])
        if term.op in ("tuple", "list", "dict"):
            return bool(term.args[-1]) if term.op != "dict" or term.args[-1] else None
        if term.op == "not":
            inner = self.truth(term.args[0])  # type: ignore[arg-type]
            return None if inner is None else not inner
        if term.op in ("and", "or"):
            found = {self.truth(each) for each in term.terms()}
            final = term.op == "or"
            return final if final in found else None if None in found else not final
        if term.op == "either":
            one, other = (self.truth(each) for each in term.args[1:])  # type: ignore[arg-type]
            return one if one == other else None
        return None


def constant_of(term: Term) -> object:
    """Return the value of a literal; the term itself if it is none."""
    return term.args[1] if term.op == "constant" else term
