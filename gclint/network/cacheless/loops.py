"""Follows loops: the body once, for any turn, with what depends on the turns before."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from gclint.code.walk import walk
from gclint.model import known
from gclint.network.cacheless.expressions import ExpressionTerms
from gclint.network.cacheless.state import Dead, Exit
from gclint.network.cacheless.terms import INDEX, ITEM, Term, Terms, constant_of


@dataclass(frozen=True)
class _Loop:
    """A loop whose body was followed."""

    node: ast.AST
    iterated: Term
    changing: Mapping[str, Term]
    """What stands for the names that change, at the beginning of a turn."""
    starts: Mapping[str, Term]
    results: Mapping[str, Term]
    breaks: tuple[Term, ...]
    """The tests on the ways out of the body, if one leaves the loop."""

    def after(self, terms: Terms, result: Term) -> Term:
        """Return what something is after the loop, by all that it depends on from turn to turn."""
        found: dict[str, tuple[str, Term, Term]] = {}
        waiting = [result, *self.breaks]
        while waiting:
            within = terms.within(waiting.pop())
            for name, variable in self.changing.items():
                if variable in within and name not in found:
                    found[name] = name, self.starts[name], self.results[name]
                    waiting.append(self.results[name])
        needed = tuple(found[name] for name in sorted(found))
        return terms("loop", self.node, self.iterated, result, needed, self.breaks)


class Loops(ExpressionTerms):
    """Follows what loops do."""

    def __init__(self, terms: Terms) -> None:
        """Start before any loop."""
        super().__init__(terms)
        self.entries: dict[Term, Term] = {}
        """What names are before the loops that change them."""

    def _follow_for(self, node: ast.For) -> None:
        iterated = self.value(node.iter)
        self._loop(node, iterated, lambda: self.assign(node.target, self.item_of(iterated, node)))

    def _follow_while(self, node: ast.While) -> None:
        def begin() -> None:
            self.choose(self.value(node.test), lambda: self.terms.none, self._left)

        self._loop(node, self.terms("while", node), begin)

    def _left(self) -> Term:
        path = (*self.path, (self.terms("break"), True))
        self.frame.loops[-1].append(Exit(path, self.terms.none, self.state()))
        raise Dead

    def _follow_break(self, node: ast.Break) -> None:
        self._left()

    def _follow_continue(self, node: ast.Continue) -> None:
        self.frame.loops[-1].append(Exit(self.path, self.terms.none, self.state()))
        raise Dead

    def _loop(self, node: ast.For | ast.While, iterated: Term, begin: Callable[[], None]) -> None:
        entry, path, unbound = self.state(), self.path, self.terms.unbound
        changing = {each: self.terms("variable", node, each) for each in _assigned(node)}
        starts = {name: entry.names[-1].get(name, unbound) for name in changing}
        self.entries.update({each: starts[name] for name, each in changing.items()})
        self.frame.names.update(changing)
        self.log = self.terms("start")
        ends = self._turns(node, begin, changing)
        self.path = path
        self.enter(entry)
        if not ends:
            return  # Each turn ends the function: it may have no turn.
        whole = self.folded(ends, path).state
        results = {name: whole.names[-1].get(name, unbound) for name in changing}
        tests = tuple(test for end in ends for test, _ in end.path[len(path) :])
        breaks = tests if any(each.op == "break" for each in tests) else ()
        loop = _Loop(node, iterated, changing, starts, results, breaks)
        for name, result in results.items():
            self.frame.names[name] = (
                starts[name] if result is changing[name] else loop.after(self.terms, result)
            )
        self.held = {
            key: each if entry.held.get(key) is each else loop.after(self.terms, each)
            for key, each in whole.held.items()
        }
        self.fill()
        if whole.log is not self.terms("start"):
            self.do(loop.after(self.terms, whole.log))
        self.body(node.orelse)

    def _turns(
        self, node: ast.For | ast.While, begin: Callable[[], None], changing: Mapping[str, Term]
    ) -> Sequence[Exit]:
        """Follow any turn: if blocks fill caches, one that finds what layers before have put there."""
        entry, path, used = self.state(), self.path, self.results_used
        ends = self._turn(node, begin)
        marks = {key: mark for each in ends for key, mark in self.marks_of(each.state, entry)}
        if not marks:
            return ends
        self.path, self.results_used = path, used
        self.enter(entry)
        self.held |= marks
        self.fill(by_others=True)
        self.frame.names.update(changing)
        return self._turn(node, begin)

    def _turn(self, node: ast.For | ast.While, begin: Callable[[], None]) -> Sequence[Exit]:
        """Follow a turn, and return how it may end."""
        self.frame.loops.append([])
        with self.turning(node), suppress(Dead):
            begin()
            self.body(node.body)
            self.frame.loops[-1].append(Exit(self.path, self.terms.none, self.state()))
        return self.frame.loops.pop()

    def is_repeated(self, block: Term) -> bool:
        """Tell whether a loop around runs a block in several turns, as far as is known."""
        each = [_loop_over(leaf) for leaf in self.terms.leaves(block)]
        return any(node not in loops for node in self.around for loops in each)


def _loop_over(block: Term) -> tuple[ast.AST, ...]:
    """Return the loop of which each turn has another item of a stack, if a block is one."""
    if block.op != "item":
        return ()
    stack, index = block.terms()
    if index.op == "item":  # Of a range.
        numbers, index = index.terms()
        if numbers.op not in ("read", "computed") or numbers.args[0] != "range" or not _counts_up(numbers):
            return ()
    is_turn = index.op == "variable" and index.args[1] in (ITEM, INDEX)
    return (index.args[0],) if is_turn and _is_stack(stack) else ()  # type: ignore[return-value]


def stack_of(block: Term) -> str:
    """Return the attribute that holds the stack which a block is an item of; nothing if that is not known."""
    stack: Term | None = block
    while stack is not None and stack.op in ("item", "read"):
        stack = next(stack.terms(), None)
    return stack.args[1] if stack is not None and stack.op == "attribute" else ""  # type: ignore[return-value]


def _counts_up(numbers: Term) -> bool:
    """Tell whether a range has no negative numbers, which would be the indices of the last items."""
    ends = numbers.args[1].positional  # type: ignore[union-attr]
    start = constant_of(ends[0]) if len(ends) == 2 else None
    is_spread = any(each.op == "unpacked" for each in ends)
    return not is_spread and (len(ends) == 1 or (isinstance(start, int) and start >= 0))


def _is_stack(term: Term) -> bool:
    """Tell whether something has no item twice: an attribute, a part of one, or one in another order."""
    if term.op == "item":
        stack, index = term.terms()
        return index.op == "slice" and _is_stack(stack)
    if term.op == "read" and term.args[0] in ("list", "reversed", "tuple"):
        return all(map(_is_stack, term.args[1].positional))  # type: ignore[union-attr]
    return term.op == "attribute"


def _assigned(node: ast.AST) -> list[str]:
    """Return the names that a loop gives something, or whose containers it may fill."""
    found: dict[str, None] = {}
    for each in walk(node):
        if isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Load):
            found[each.id] = None
        elif (
            isinstance(each, ast.Call)
            and isinstance(each.func, ast.Attribute)
            and isinstance(each.func.value, ast.Name)
        ):
            if each.func.attr in known.FILLING_METHODS | known.TAKING_METHODS:
                found[each.func.value.id] = None
        elif (
            isinstance(each, ast.Subscript)
            and isinstance(each.value, ast.Name)
            and isinstance(each.ctx, ast.Store)
        ):
            found[each.value.id] = None
    return list(found)
