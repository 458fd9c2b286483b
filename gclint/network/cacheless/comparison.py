"""Holds what code does whose blocks run without their cache against what it does when they have one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from itertools import product

from gclint.code.outline import Definition
from gclint.code.walk import Arg, is_constant
from gclint.model.cache_values import ARGUMENT, DROPPED
from gclint.model.objects import TooLong
from gclint.network.cacheless.items import Arguments
from gclint.network.cacheless.loops import stack_of
from gclint.network.cacheless.state import Dead, Path, TermFrame
from gclint.network.cacheless.statements import Statements
from gclint.network.cacheless.terms import Term, Terms
from gclint.network.cacheless.tuples import takes_tuples
from gclint.network.evaluation.classes import ClassInfo
from gclint.network.evaluation.signature import ParameterKind, listed_parameters
from gclint.network.evaluation.values import Instance
from gclint.network.outside import FLAG
from gclint.network.runsite import RunSite
from gclint.verify.worker.vocabulary import USE_CACHE

_TAKEN_AWAY = DROPPED | {USE_CACHE}


class CacheDifference(Enum):
    """What is otherwise without a cache than with an empty one."""

    ERROR = "raises an error"
    EFFECT = "does something else, or in another order"
    RESULT = "computes something else"
    UNKNOWN = "is too long to follow"


@dataclass(frozen=True)
class Outcome:
    """What a run comes to."""

    value: Term | None
    """What it returns; None if it always raises an error."""
    log: Term
    raised: frozenset[Path]


class _Run(Statements):
    """Follows a method that runs blocks, or a block itself."""

    def follow(
        self, info: ClassInfo, method: Definition, owner: ClassInfo, given: Mapping[str, Term]
    ) -> Outcome:
        """Follow a method with some arguments, and anything for the others."""
        frame = TermFrame(owner.module, owner)
        left = dict(given)
        for index, (parameter, kind, _) in enumerate(listed_parameters(method.function.args)):
            name = parameter.arg
            value = left.pop(name, self.terms("argument", name))
            if kind is ParameterKind.VAR_KEYWORD:
                value = self.terms("dict", self.terms("place", name), (value,), tuple(sorted(left.items())))
            elif index == 0:
                self.block = value
                self.kinds[value] = frozenset((Instance(info),))
                self.held[value, FLAG] = self.terms.true
            frame.names[name] = value
        result: Term | None = None
        with suppress(Dead):
            result = self.followed(method.function, frame)
        return Outcome(result, self.log, frozenset(self.raised))


# -- a method and its blocks


def difference(info: ClassInfo, sites: Iterable[RunSite]) -> CacheDifference | None:
    """Return what becomes otherwise if the base class takes the cache away from a block.

    Args:
        info: the block.
        sites: the calls that run it.
    """
    grouped: dict[tuple[ClassInfo, tuple[ClassInfo, Definition] | None], list[RunSite]] = {}
    for site in sites:
        grouped.setdefault((site.owner, _method_of(site)), []).append(site)
    try:
        for (owner, method), within in grouped.items():
            caller = None if method is None else _outermost(info, _Caller(owner, *method, within))
            found = _alone_at(info, within) if caller is None else _around(info, caller)
            if found is not None:
                return found
    except (TooLong, RecursionError):
        return CacheDifference.UNKNOWN
    return None


@dataclass(frozen=True)
class _Caller:
    """A method that runs a block."""

    owner: ClassInfo
    """The class that it is called on."""
    definer: ClassInfo
    method: Definition
    sites: Sequence[RunSite]
    """Its calls of the block."""


def _alone_at(info: ClassInfo, sites: Iterable[RunSite]) -> CacheDifference | None:
    for given in dict.fromkeys(_taken_away(info, site) for site in sites):
        found = alone(info, given)
        if found is not None:
            return found
    return None


def _outermost(info: ClassInfo, caller: _Caller) -> _Caller:
    """Return the method that transformers runs if it leads to the calls: it may do so more than once."""
    found = caller.owner.find_method("forward")
    if found is None or found[1] is caller.method:
        return caller
    outer = replace(caller, definer=found[0], method=found[1])
    try:
        return outer if _passed(Terms(), info, outer).keys() == set(caller.sites) else caller
    except (TooLong, RecursionError):
        return caller


def _around(info: ClassInfo, caller: _Caller) -> CacheDifference | None:
    terms = Terms()
    cache = terms.cache if _may_be_empty(info, caller) else terms.none
    passed = _passed(terms, info, caller, cache)
    missed = _alone_at(info, (each for each in caller.sites if each not in passed))
    if missed is not None:
        return missed
    given = [each for every in passed.values() for each in every]
    if all(_without_cache(terms, info, each) == each for each in given):
        return None  # There is nothing to take away.
    return compared(*_both(terms, info, caller, cache))


def _passed(
    terms: Terms, info: ClassInfo, caller: _Caller, cache: Term | None = None
) -> dict[RunSite, list[Arguments]]:
    """Return what a method passes to a block at the calls that are reached, as often as they are."""
    passed: dict[RunSite, list[Arguments]] = {}

    def asked(run: _Run, site: RunSite) -> Term:
        given = _arguments(run, site.args)
        passed.setdefault(site, []).append(given)
        return terms("what a block gives", *given)

    _followed(terms, info, caller, asked, cache)
    return passed


def _both(terms: Terms, info: ClassInfo, caller: _Caller, cache: Term) -> tuple[Outcome, Outcome]:
    """Return what a method comes to whose blocks have caches, and whose have none."""
    results: list[Term] = []

    def bare(run: _Run, site: RunSite) -> Term:
        results.append(_of_block(run, info, site, _without_cache))
        return results[-1]

    without = _followed(terms, info, caller, bare, cache)

    def whole(run: _Run, site: RunSite) -> Term:
        if not run.are_written:
            trial = _Run(terms)
            trial.kinds, trial.is_inside = run.kinds, True
            trial.frames, trial.held = [*run.frames], dict(run.held)
            names = [dict(each.names) for each in run.frames]
            with suppress(Dead):
                _of_block(trial, info, site, _with_known_caches)
            for frame, before in zip(run.frames, names, strict=True):
                frame.names = before
            run.are_written = trial.has_written
        is_repeated = run.are_written and run.is_repeated(run.value(site.receiver))
        value = _of_block(run, info, site, _with_filled_caches if is_repeated else _with_known_caches)
        run.results_used += 1
        return _marked(
            terms, value, results[run.results_used - 1] if run.results_used <= len(results) else value
        )

    return _followed(terms, info, caller, whole, cache), without


def _followed(
    terms: Terms,
    info: ClassInfo,
    caller: _Caller,
    result: Callable[[_Run, RunSite], Term],
    cache: Term | None = None,
) -> Outcome:
    """Follow a method, in which the calls of a block give what ``result`` says.

    Args:
        terms: those of the comparison.
        info: the block.
        caller: the method.
        result: returns what a call gives.
        cache: what it is given as a cache where it may be given one; by default an empty one.
    """
    run = _Run(terms)
    for site in caller.sites:
        run.results[site.call] = partial(result, run, site)
    cache = terms.cache if cache is None else cache
    return run.follow(caller.owner, caller.method, caller.definer, _given(terms, caller.method, cache))


def _may_be_empty(info: ClassInfo, caller: _Caller) -> bool:
    """Tell whether a block may get an empty cache of whoever calls a method.

    It does not if it gets an item of what is given, and takes that for a tuple, which is never empty.
    """
    if not takes_tuples(info):
        return True
    terms = Terms()
    passed = _passed(terms, info, caller, terms.filled)
    values = (value for every in passed.values() for each in every for value in _caches_in(info, each))
    return any(terms.filled in terms.leaves(each) for each in values)


def _caches_in(info: ClassInfo, given: Arguments) -> list[Term]:
    """Return those arguments that are caches, whatever they are."""
    found: list[Term] = []

    def noted(_: str, value: Term) -> Term:
        found.append(value)
        return value

    _changed(info, given, noted)
    return [*found, *given.rest]


def _method_of(site: RunSite) -> tuple[ClassInfo, Definition] | None:
    around = site.scope.module.file.outline.around(site.span(site.call)[0])
    methods = ((info, method) for info in site.owner.mro for method in info.methods())
    return next(((info, method) for info, method in methods if method in around), None)


def sites_beside(info: ClassInfo, site: RunSite, sites: Iterable[RunSite]) -> list[RunSite]:
    """Return the calls of a block in the same method as one of them, which is among them."""
    place = site.owner, _method_of(site)
    calls = [each for each in sites if info in each.blocks and each.function is None]
    return [each for each in calls if (each.owner, _method_of(each)) == place] or [site]


def _given(terms: Terms, method: Definition, cache: Term) -> dict[str, Term]:
    """Return what a method may get as caches: none, or a certain one."""
    defaults = {parameter.arg: default for parameter, _, default in listed_parameters(method.function.args)}
    caches = {
        name: terms.either(terms("is given", name), cache, terms.none)
        if default is None or is_constant(default, None)
        else terms.filled  # It is the same for each call.
        for name, default in defaults.items()
        if ARGUMENT.fullmatch(name)
    }
    return caches | ({USE_CACHE: terms.true} if USE_CACHE in defaults else {})


def _of_block(
    run: _Run, info: ClassInfo, site: RunSite, change: Callable[[Terms, ClassInfo, Arguments], Arguments]
) -> Term:
    """Return what a call of a block gives with changed arguments."""
    given = change(run.terms, info, _arguments(run, site.args))
    run.is_inside, run.block = True, run.terms("block", info)
    value = run.run_method(info, "forward", run.block, given)
    run.is_inside = False
    run.note_run(given, by_layers=True)
    return value


def _arguments(run: _Run, args: Iterable[Arg]) -> Arguments:
    positional: list[Term] = []
    named: dict[str, Term] = {}
    rest: list[Term] = []
    for each in args:
        value = run.value(each.value)
        if each.star == "**":
            if value.op == "dict":
                named |= dict(value.args[2])  # type: ignore[call-overload]
                rest += value.args[1]  # type: ignore[arg-type]
            else:
                rest.append(value)
        elif each.star:
            items = run.items(value)
            positional += (run.terms("unpacked", value),) if items is None else items
        elif each.keyword is not None:
            named[each.keyword] = value
        else:
            positional.append(value)
    return Arguments(tuple(positional), tuple(named.items()), tuple(rest))


def _without_cache(terms: Terms, info: ClassInfo, given: Arguments) -> Arguments:
    """Return what is left of arguments when the base class has taken the caches away."""
    return _changed(info, given, lambda name, _: terms.false if name == USE_CACHE else terms.none)


def _with_known_caches(terms: Terms, info: ClassInfo, given: Arguments) -> Arguments:
    """Return arguments with an empty cache, or none, for what is not followed: it is known to be one."""

    def known_one(name: str, value: Term) -> Term:
        if name == USE_CACHE:
            return value
        if _is_cache(value):
            return terms.replaced(value, {terms.filled_by_others: terms.cache})  # Each has its own slot.
        if not _is_given_one(value):
            return terms.filled  # Nobody knows whether it is empty.
        return terms.either(terms("is given", value), terms.cache, terms.none)

    return _changed(info, given, known_one)


def _is_given_one(term: Term) -> bool:
    """Tell whether a value is what a caller gives, or an item of that: caches that are empty, or none."""
    parts: Iterable[object]
    if term.op == "either":
        parts = term.args[1:]
    elif term.op == "item":
        parts = term.args[:1]
    elif term.op == "read" and term.args[0] in ("tuple", "list", "zip", "enumerate"):
        parts = term.args[1].positional  # type: ignore[union-attr]
    elif term.op == "comprehension":
        _, iterated, _, made, _ = term.args
        parts = (None,) if isinstance(made, Term) and made.op == "call" else iterated  # type: ignore[assignment]
    else:
        return term.op in ("argument", "entry") or _is_cache(term)
    return all(isinstance(each, Term) and _is_given_one(each) for each in parts)


def _with_filled_caches(terms: Terms, info: ClassInfo, given: Arguments) -> Arguments:
    """Return arguments with what blocks have written before, in place of caches."""
    known_ones = _with_known_caches(terms, info, given)
    return _changed(
        info, known_ones, lambda name, value: value if name == USE_CACHE else terms.filled_one(value)
    )


def _changed(info: ClassInfo, given: Arguments, change: Callable[[str, Term], Term]) -> Arguments:
    """Return arguments of which those that the base class takes away are changed."""
    names = [] if info.signature is None else [each.name for each in info.signature.positional]
    padded = [*names, *[""] * len(given.positional)]
    positional = tuple(
        change(name, value) if name in _TAKEN_AWAY else value
        for name, value in zip(padded, given.positional, strict=False)
    )
    named = tuple(
        (name, change(name, value) if name in _TAKEN_AWAY else value) for name, value in given.named
    )
    return Arguments(positional, named, given.rest)


def _marked(terms: Terms, value: Term, other: Term) -> Term:
    """Return what a block gives with the items as caches in whose place it gives nothing without one."""
    if value.op == other.op == "either" and value.args[0] is other.args[0]:
        one, two = (_marked(terms, *each) for each in zip(value.args[1:], other.args[1:], strict=True))  # type: ignore[arg-type]
        return terms.either(value.args[0], one, two)  # type: ignore[arg-type]
    if value.op != "tuple":
        return value
    mine: tuple[Term, ...] = value.args[0]  # type: ignore[assignment]
    yours: tuple[Term, ...] = other.args[0] if other.op == "tuple" else (other,)  # type: ignore[assignment]
    items = [
        terms.cache if each not in yours and _is_left_out(terms, index, mine, yours) else each
        for index, each in enumerate(mine)
    ]
    return terms("tuple", tuple(items))


def _is_left_out(terms: Terms, index: int, mine: Sequence[Term], yours: Sequence[Term]) -> bool:
    is_none = index < len(yours) and yours[index] is terms.none
    return index > 0 and (is_none or len(yours) < len(mine))


# -- a block by itself


def _taken_away(info: ClassInfo, site: RunSite) -> frozenset[str]:
    """Return the names of what a call passes, or may pass, that the base class takes away."""
    names = set() if info.signature is None else {each.name for each in info.signature.parameters}
    return frozenset((names | {arg.keyword or "" for arg in site.args}) & _TAKEN_AWAY)


def alone(info: ClassInfo, given: Collection[str]) -> CacheDifference | None:
    """Return what a block does otherwise without its cache, whatever runs it."""
    found = info.find_method("forward")
    caches, has_flag = sorted(DROPPED.intersection(given)), USE_CACHE in given
    if found is None or not given:
        return None
    terms = Terms()

    def run(cache: Term, flag: Term) -> Outcome:
        arguments = dict.fromkeys(caches, cache) | ({USE_CACHE: flag} if has_flag else {})
        return _inside(terms).follow(info, found[1], found[0], arguments)

    without = run(terms.none, terms.false)
    for cache, flag in product((terms.cache, terms.none), (terms.true, terms.false)):
        what = compared(run(cache, flag), without)
        if what is not None:
            return what
    return None


def stacks_run(info: ClassInfo, sites: Sequence[RunSite]) -> set[str]:
    """Return the attributes that hold what some calls of a block go over.

    Raises:
        TooLong: they are too long to follow.
    """
    found: set[str] = set()

    def asked(run: _Run, site: RunSite) -> Term:
        found.update(map(stack_of, run.terms.leaves(run.value(site.receiver))))
        return run.terms("what a block gives", *_arguments(run, site.args))

    for site in sites:
        method = _method_of(site)
        if method is not None:
            _followed(Terms(), info, _Caller(site.owner, *method, [site]), asked)
    return found - {""}


def slots_used(info: ClassInfo) -> set[tuple[str, ...]]:
    """Return the paths of attributes under which a block has the indices of its slots in its cache.

    Raises:
        TooLong: the block is too long to follow.
    """
    found = info.find_method("forward")
    names = set() if info.signature is None else {each.name for each in info.signature.parameters}
    if found is None or not names & DROPPED:
        return set()
    terms = Terms()
    run = _inside(terms)
    run.follow(info, found[1], found[0], dict.fromkeys(sorted(names & DROPPED), terms.cache))
    return run.slots


def _inside(terms: Terms) -> _Run:
    """Return what follows a block by itself."""
    run = _Run(terms)
    run.is_inside = True
    return run


# -- comparing


def compared(with_cache: Outcome, without: Outcome) -> CacheDifference | None:
    """Return what differs between two runs, apart from caches that are returned."""
    if with_cache.value is None:
        return None  # It does not run with one either.
    if without.value is None or without.raised - with_cache.raised:
        return CacheDifference.ERROR
    if with_cache.log is not without.log:
        return CacheDifference.EFFECT
    return None if _is_same(with_cache.value, without.value) else CacheDifference.RESULT


def _is_same(one: Term, other: Term) -> bool:
    """Tell whether two runs give the same, apart from caches."""
    if one is other or (_is_cache(one) and _is_cache(other)):
        return True
    if one.op != other.op:
        return False
    if one.op == "either":
        return one.args[0] is other.args[0] and all(map(_is_same, one.args[1:], other.args[1:]))  # type: ignore[arg-type]
    if one.op in ("tuple", "chosen"):
        mine, yours = one.args[0], other.args[0]
        assert isinstance(mine, tuple)
        assert isinstance(yours, tuple)
        if len(mine) != len(yours):
            return [each for each in mine if not _is_cache(each)] == [
                each for each in yours if not _is_cache(each)
            ]
        return all(map(_is_same, mine, yours))
    if one.op == "output":
        mine, yours = dict(one.args[1]), dict(other.args[1])  # type: ignore[call-overload]
        return (
            one.args[0] == other.args[0]
            and mine.keys() == yours.keys()
            and all(_is_same(mine[each], yours[each]) for each in mine)
        )
    return False


def _is_cache(term: Term) -> bool:
    """Tell whether a value is a cache, or made of caches and of nothing else."""
    if term.op in ("cache", "filled", "variable", "unbound"):
        return True
    if term.op == "constant":
        return term.args[1] is None
    if term.op in ("tuple", "list"):
        return all(map(_is_cache, term.args[-1]))  # type: ignore[call-overload]
    if term.op == "either":
        return all(map(_is_cache, term.args[1:]))  # type: ignore[arg-type]
    if term.op == "operation":
        return term.args[0] == "Add" and all(map(_is_cache, term.args[1:]))  # type: ignore[arg-type]
    if term.op == "loop":
        return _is_cache(term.args[2]) and all(_is_cache(each[1]) for each in term.args[3])  # type: ignore[arg-type, union-attr]
    return False
