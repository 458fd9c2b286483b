"""How a method fills a stack with layers: by a loop, of which each turn makes one and gives it its number.

These are the ways that are known to give each layer another number; whatever is written otherwise is none.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from gclint.code.walk import alternatives, children, dotted_name, last_name, walk

_KINDS = frozenset(("ModuleList", "Sequential"))
_APPENDING = "append"
_IN_BETWEEN = (ast.Expr, ast.If, ast.With)
"""Statements around another one that run it once at most."""


@dataclass(frozen=True)
class Filling:
    """A loop that fills a stack."""

    iterated: ast.expr
    """What it goes over."""
    stores: tuple[ast.Attribute, ...]
    """Where the stack is assigned."""
    appends: tuple[ast.Attribute, ...] = ()
    """Where the loop appends to it."""
    settings: frozenset[str] = frozenset()
    """The settings by which numbers are shifted."""


@dataclass
class _Turn:
    """What is known in a turn of a loop."""

    carries: Callable[[ast.Call, ast.expr], bool]
    numbers: set[str]
    """The names of its number."""
    layers: set[str] = field(default_factory=set)
    """The names of what it has made."""
    settings: set[str] = field(default_factory=set)
    is_certain: bool = True
    """Whether each turn comes by."""


def fillings(
    maker: ast.FunctionDef, calls: Collection[ast.AST], carries: Callable[[ast.Call, ast.expr], bool]
) -> Iterator[Filling]:
    """Yield the loops of a method that fill stacks with layers, each turn with another one.

    Args:
        maker: the method.
        calls: those that make layers.
        carries: whether an argument of one of these is a number, or holds one.
    """
    parents = {child: node for node in walk(maker) for child in children(node)}
    for node in parents:
        if isinstance(node, (ast.ListComp, ast.GeneratorExp)) and len(node.generators) == 1:
            (generator,) = node.generators
            turn = _Turn(carries, _names(generator.target))
            stores = _stores(node, parents)
            if stores and _is_layer(node.elt, turn, calls):
                yield Filling(generator.iter, stores, (), frozenset(turn.settings))
        elif isinstance(node, ast.For) and not node.orelse and _is_run_once(node, maker, parents):
            yield from _appended(node, parents, _Turn(carries, _names(node.target)), calls)


def _appended(
    loop: ast.For, parents: Mapping[ast.AST, ast.AST], turn: _Turn, calls: Collection[ast.AST]
) -> Iterator[Filling]:
    """Yield the stack to which each turn of a loop appends the layer that it makes."""
    appends = [each for each in parents if isinstance(each, ast.Attribute) and each.attr == _APPENDING]
    inside = [each for each in walk(loop) if each in appends and isinstance(each, ast.Attribute)]
    stacks = {ast.unparse(each.value) for each in inside}
    if len(stacks) != 1 or any(ast.unparse(each.value) in stacks for each in appends if each not in inside):
        return
    (stack,) = stacks
    bound = [name for each in loop.body for name in _bound(each)]
    turn.numbers.difference_update(bound)
    called = [parents[each] for each in inside]
    is_right = (
        _most(loop.body, called) == 1
        and all(_is_run_once(each, loop, parents) for each in called)
        and _makes_layers(loop.body, turn, calls, bound, called)
    )
    stores = _empty(stack, parents, inside) if is_right else ()
    if stores:
        yield Filling(loop.iter, stores, tuple(inside), frozenset(turn.settings))


def _makes_layers(
    body: Sequence[ast.stmt],
    turn: _Turn,
    calls: Collection[ast.AST],
    bound: Sequence[str],
    appending: Collection[ast.AST],
) -> bool:
    """Tell whether what statements append is always a layer that this turn has made."""
    is_certain = turn.is_certain
    for each in body:
        if isinstance(each, ast.Assign) and len(each.targets) == 1 and isinstance(each.targets[0], ast.Name):
            name = each.targets[0].id
            if _is_layer(each.value, turn, calls):
                turn.layers.add(name)
            elif is_certain and bound.count(name) == 1 and _is_number(each.value, turn):
                turn.numbers.add(name)
            else:
                turn.layers.discard(name)
        elif isinstance(each, ast.If):
            before, turn.is_certain = set(turn.layers), False
            if not _makes_layers(each.body, turn, calls, bound, appending):
                return False
            first, turn.layers = turn.layers, before
            if not _makes_layers(each.orelse, turn, calls, bound, appending):
                return False
            turn.layers &= first
            turn.is_certain = is_certain
        elif isinstance(each, ast.With):
            if not _makes_layers(each.body, turn, calls, bound, appending):
                return False
        elif isinstance(each, ast.Expr) and each.value in appending:
            given = each.value.args if isinstance(each.value, ast.Call) else []
            if len(given) != 1 or not _is_layer(given[0], turn, calls):
                return False
        else:
            turn.layers.difference_update(_bound(each))
    return True


def _is_layer(node: ast.expr, turn: _Turn, calls: Collection[ast.AST]) -> bool:
    """Tell whether an expression is a layer that is made here, with this turn's number if with any."""
    ways = alternatives(node)
    if ways:
        return all(_is_layer(each, turn, calls) for each in ways)
    if isinstance(node, ast.Name):
        return node.id in turn.layers
    if not isinstance(node, ast.Call) or node not in calls:
        return False
    given = (*node.args, *(each.value for each in node.keywords))
    return all(_is_number(each, turn) or not turn.carries(node, each) for each in given)


def _is_number(node: ast.expr, turn: _Turn) -> bool:
    """Tell whether an expression is the number of a turn, or that and what is the same in each."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        for one, other in ((node.left, node.right), (node.right, node.left)):
            if not _is_number(one, turn):
                continue
            if isinstance(other, ast.Attribute) and dotted_name(other):
                turn.settings.add(other.attr)
                return True
            return isinstance(other, ast.Constant)
    return isinstance(node, ast.Name) and node.id in turn.numbers


def _stores(made: ast.AST, parents: Mapping[ast.AST, ast.AST]) -> tuple[ast.Attribute, ...]:
    """Return the attributes to which a stack of what is made is assigned, and nothing else."""
    call = parents[made]
    while isinstance(call, ast.Starred):
        call = parents[call]
    if not isinstance(call, ast.Call) or last_name(call.func) not in _KINDS or len(call.args) != 1:
        return ()
    targets = _targets(call, parents)
    found = tuple(each for each in targets if isinstance(each, ast.Attribute))
    return found if len(found) == len(targets) else ()


def _targets(value: ast.expr, parents: Mapping[ast.AST, ast.AST]) -> list[ast.expr]:
    """Return what a value is assigned to, also as one of several."""
    statement = parents[value]
    if isinstance(statement, ast.AnnAssign):
        return [statement.target]
    if isinstance(statement, ast.Assign):
        return statement.targets
    if not isinstance(statement, ast.Tuple) or isinstance(parents[statement], ast.Tuple):
        return []
    several, place = _targets(statement, parents), statement.elts.index(value)
    is_alike = all(isinstance(each, ast.Tuple) and len(each.elts) == len(statement.elts) for each in several)
    return [each.elts[place] for each in several if isinstance(each, ast.Tuple)] if is_alike else []


def _empty(
    stack: str, parents: Mapping[ast.AST, ast.AST], appends: Collection[ast.Attribute]
) -> tuple[ast.Attribute, ...]:
    """Return where a stack is assigned that is empty at first, or what a list becomes that is."""
    places = [each for each in parents if isinstance(each, (ast.Name, ast.Attribute))]
    mentions = [each for each in places if ast.unparse(each) == stack and parents[each] not in appends]
    stores = [each for each in mentions if not isinstance(each.ctx, ast.Load)]
    if len(stores) != 1 or not _is_empty(parents[stores[0]]):
        return ()
    if isinstance(stores[0], ast.Attribute):
        return (stores[0],)
    loads = [each for each in mentions if each not in stores]
    return _stores(loads[0], parents) if len(loads) == 1 else ()


def _is_empty(statement: ast.AST) -> bool:
    """Tell whether what a statement assigns has no items."""
    if not isinstance(statement, (ast.Assign, ast.AnnAssign)):
        return False
    value = statement.value
    if isinstance(value, ast.Call) and last_name(value.func) in {*_KINDS, "list"} and not value.keywords:
        return all(isinstance(each, ast.List) and not each.elts for each in value.args)
    return isinstance(value, ast.List) and not value.elts


def _is_run_once(node: ast.AST, around: ast.AST, parents: Mapping[ast.AST, ast.AST]) -> bool:
    """Tell whether nothing between two nodes runs the inner one again."""
    node = parents[node]
    while node is not around:
        if not isinstance(node, _IN_BETWEEN):
            return False
        node = parents[node]
    return True


def _most(code: Iterable[ast.AST], calls: Collection[ast.AST]) -> int:
    """Return how many of some calls are run, at most."""
    count = 0
    for node in code:
        if isinstance(node, ast.If):
            count += max(_most(node.body, calls), _most(node.orelse, calls))
            continue
        count += (node in calls) + _most(children(node), calls)
    return count


def _names(target: ast.AST) -> set[str]:
    return {each.id for each in walk(target) if isinstance(each, ast.Name)}


def _bound(node: ast.AST) -> Iterator[str]:
    """Yield the names that a statement binds, as often as it does."""
    for each in walk(node):
        if isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Load):
            yield each.id
