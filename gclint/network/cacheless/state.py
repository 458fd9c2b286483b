"""Where a run of code is: what names and attributes are, what was done, and under which tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias, TypeVar

from gclint.model.objects import TooLong
from gclint.network.cacheless.terms import Term, Terms
from gclint.network.evaluation.classes import ClassInfo
from gclint.network.evaluation.modules import ModuleInfo

Path: TypeAlias = "tuple[tuple[Term, bool], ...]"
"""Tests with what came out of them."""
_Key = TypeVar("_Key")
_MOST_STEPS = 20_000


class Dead(Exception):
    """Nothing behind this is run: it returned, raised an error, or left a loop."""


class Exit(NamedTuple):
    """A place where a function or the body of a loop ends."""

    path: Path
    value: Term
    state: State


class State(NamedTuple):
    """What may become something else."""

    names: Sequence[Mapping[str, Term]]
    """Those of all functions that are being followed, the innermost last."""
    held: Mapping[tuple[Term, str], Term]
    """What attributes were set to."""
    log: Term
    """What was done, in order, to what outlives the run, or may have been."""


@dataclass(eq=False)
class TermFrame:
    """The names of a function."""

    module: ModuleInfo
    owner: ClassInfo | None = None
    """The class whose method it is."""
    parent: TermFrame | None = None
    names: dict[str, Term] = field(default_factory=dict)
    outer: dict[str, TermFrame | None] = field(default_factory=dict)
    """Those of them that are names of a function around it, with that, or of the module."""
    exits: list[Exit] = field(default_factory=list)
    loops: list[list[Exit]] = field(default_factory=list)
    """Where bodies of loops were left, the innermost last."""


class Ways:
    """Follows ways that a test parts, and joins what becomes of them."""

    def __init__(self, terms: Terms) -> None:
        """Start with nothing done."""
        self.terms = terms
        self.frames: list[TermFrame] = []
        self.held: dict[tuple[Term, str], Term] = {}
        self.log = terms("start")
        self.path: Path = ()
        self.raised: dict[Path, None] = {}
        """The ways on which an error is raised."""
        self._steps = 0

    @property
    def frame(self) -> TermFrame:
        """The function that is being followed."""
        return self.frames[-1]

    def count(self) -> None:
        """Count a step."""
        self._steps += 1
        if self._steps > _MOST_STEPS:
            raise TooLong

    def do(self, what: Term) -> Term:
        """Note that something is done."""
        self.log = self.terms("then", self.log, what)
        return what

    def fail(self) -> Dead:
        """Note that an error is raised here."""
        self.raised[self.path] = None
        return Dead()

    # -- tests

    def settle(self, term: Term) -> Term:
        """Return what a choice is by the tests that are known to hold here, or not to."""
        while term.op == "either":
            holds = self.decide(term.args[0])  # type: ignore[arg-type]
            if holds is None:
                break
            term = term.args[1 if holds else 2]  # type: ignore[assignment]
        return term

    def decide(self, test: Term) -> bool | None:
        """Return whether a test holds, if that is known."""
        for each, holds in self.path:
            if each is test:
                return holds
        if test.op == "not":
            inner = self.decide(test.args[0])  # type: ignore[arg-type]
            return None if inner is None else not inner
        if test.op == "either":
            settled = self.settle(test)
            if settled is not test:
                return self.decide(settled)
        return self.terms.truth(test)

    def choose(self, test: Term, one: Callable[[], Term], other: Callable[[], Term]) -> Term:
        """Follow the way that a test leads to, or both of them."""
        test = self.settle(test)
        while test.op == "not":
            test, one, other = test.args[0], other, one  # type: ignore[assignment]
        holds = self.decide(test)
        if holds is not None:
            return one() if holds else other()
        if test.op == "either" and any(self.terms.truth(each) is not None for each in test.args[1:]):  # type: ignore[arg-type]
            first, mine, yours = test.args
            return self.choose(
                first,  # type: ignore[arg-type]
                lambda: self.choose(mine, one, other),  # type: ignore[arg-type]
                lambda: self.choose(yours, one, other),  # type: ignore[arg-type]
            )
        before, path = self.state(), self.path
        ends: list[Exit | None] = []
        for holds, follow in ((True, one), (False, other)):
            self.enter(before)
            self.path = (*path, (test, holds))
            try:
                value = follow()
                ends.append(Exit(path, value, self.state()))
            except Dead:
                ends.append(None)
        self.path = path
        first, second = ends
        if first is None or second is None:
            left = first or second
            if left is None:
                raise Dead
            self.enter(left.state)
            self.path = (*path, (test, first is not None))
            return left.value
        self.enter(self.joined(test, first.state, second.state))
        return self.terms.either(test, first.value, second.value)

    # -- states

    def state(self) -> State:
        """Return what things are now."""
        return State([dict(each.names) for each in self.frames], dict(self.held), self.log)

    def enter(self, state: State) -> None:
        """Go on where things are so."""
        for frame, names in zip(self.frames, state.names, strict=False):
            frame.names = dict(names)
        self.held, self.log = dict(state.held), state.log

    def joined(self, test: Term, one: State, other: State) -> State:
        """Return what things are by a test: one or the other."""
        unbound = self.terms.unbound
        pairs = zip(one.names, other.names, strict=False)
        names = [self._merged(test, *each, lambda _: unbound) for each in pairs]
        # An attribute that is set on one way only is on the other one what it was before.
        held = self._merged(test, one.held, other.held, lambda key: self.terms("attribute", *key))
        return State(names, held, self.terms.either(test, one.log, other.log))

    def _merged(
        self,
        test: Term,
        one: Mapping[_Key, Term],
        other: Mapping[_Key, Term],
        missing: Callable[[_Key], Term],
    ) -> Mapping[_Key, Term]:
        if one == other:
            return one
        found = dict(one)
        for key, value in one.items():
            if (another := other.get(key) or missing(key)) is not value:
                found[key] = self.terms.either(test, value, another)
        for key in other.keys() - one.keys():
            found[key] = self.terms.either(test, missing(key), other[key])
        return found

    def folded(self, exits: Sequence[Exit], path: Path) -> Exit:
        """Return what comes out of all of these, of which one is taken; ``path`` led to the code around."""
        result = exits[-1]
        for each in reversed(exits[:-1]):
            result = self._otherwise(each.path[len(path) :], each, result)
        return result

    def _otherwise(self, path: Path, one: Exit, other: Exit) -> Exit:
        if not path:
            return one
        (test, holds), *rest = path
        inner = self._otherwise(tuple(rest), one, other)
        first, second = (inner, other) if holds else (other, inner)
        return Exit(
            other.path,
            self.terms.either(test, first.value, second.value),
            self.joined(test, first.state, second.state),
        )
