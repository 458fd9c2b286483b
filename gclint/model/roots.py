"""Roots of what code around blocks makes and hands on, told apart by places and ages."""

from __future__ import annotations

from collections.abc import Mapping

from gclint.model.notes import Kind, Root
from gclint.model.reflection import shared
from gclint.model.values import OWN, Call, Fixed, Value, with_roots

AS_VIEW = " as a view"
OLDER = "'"
VIEW = Root(Kind.MADE, "what a view is of")
REST = Root(Kind.INPUT, "the block's further arguments")


def own(argument: str | int) -> Root:
    """Return what stands for an argument inside of the block that gets it."""
    return Root(Kind.INPUT, f"the block's {argument}")


def aged(root: Root) -> Root:
    """Return what stands for all that was made at a place before the last one."""
    return root if root.what.endswith(OLDER) else Root(root.kind, f"{root.what}{OLDER}")


def of_any_age(value: Value) -> Value:
    """Return a value that may have been made at its place before the last one."""
    older = {aged(each) for each in value.roots if each.kind is Kind.MADE}
    return Value(value.things, value.roots | older) if older else value


def with_other_roots(value: Value, others: Mapping[Root, frozenset[Root]]) -> Value:
    """Return a value with other roots in place of some, also in tuples."""
    things = frozenset(
        Fixed(tuple(with_other_roots(each, others) for each in thing.items))
        if isinstance(thing, Fixed)
        else thing
        for thing in value.things
    )
    replaced = others.keys() & value.roots
    return Value(things, (value.roots - replaced).union(*(others[each] for each in replaced)))


def told_apart(value: Value, made: Root, view: Root) -> Value:
    """Return what a block gives with a root for all that it made, and another for what is a view."""
    things = frozenset(
        Fixed(tuple(told_apart(each, made, view) for each in thing.items))
        if isinstance(thing, Fixed)
        else thing
        for thing in value.things
    )
    is_tuple = all(isinstance(each, Fixed) for each in things)
    has_view = VIEW in (value.roots if is_tuple else shared((value,)))
    return with_roots(Value(things, value.roots - {VIEW}), (made, view) if has_view else (made,))


def without_roots(call: Call) -> Call:
    """Return the arguments of a block with names of their own for what their changes would change."""
    receiver, *positional = call.positional
    given = (Value(each.things, frozenset((own(index),))) for index, each in enumerate(positional, 1))
    return Call(
        (Value(receiver.things, frozenset((OWN,))), *given),
        tuple((name, Value(each.things, frozenset((own(name),)))) for name, each in call.named),
        None if call.rest is None else Value(call.rest.things, frozenset((REST,))),
        None if call.options is None else Value(call.options.things, frozenset((REST,))),
    )


def is_view(root: Root) -> bool:
    """Tell whether a root stands for a view that a block has returned."""
    return root.what.removesuffix(OLDER).endswith(AS_VIEW)
