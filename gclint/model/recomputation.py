"""What is not known to be right if a block's ``forward`` is run once more in the backward pass."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from gclint.model.interpreter import Interpreter
from gclint.model.objects import Note, TooLong
from gclint.model.spaces import Spaces
from gclint.model.values import (
    NONE,
    Box,
    Call,
    Class,
    Constant,
    Fixed,
    Function,
    Object,
    Setting,
    Tensor,
    Thing,
    Unknown,
    Value,
    of,
    unknown,
)
from gclint.releases import EVER_NEUTRALISED
from gclint.source.file import SourceFile
from gclint.verify.worker.vocabulary import USE_CACHE

_TOO_LONG = Note("is too long to follow", "forward", 0)


def unknowns(spaces: Spaces, file: SourceFile, name: str) -> tuple[Note, ...]:
    """Return what a class's ``forward`` does to what outlives it, and what of it is not known.

    Args:
        spaces: the modules of the project.
        file: what defines the class.
        name: of the class, at the module's level.
    """
    space = spaces.of(file)
    if space.tree is None:
        return ()  # Its grammar is newer than that of the running Python.
    kinds = [each for each in (space.value(name) or NONE).things if isinstance(each, Class)]
    if len(kinds) != 1:
        return (Note(f"belongs to `{name}`, of which there is not exactly one", name, 0),)
    reader = Interpreter(spaces, is_quiet=True)
    try:
        settings = of(Setting(), roots=("its settings",))
        made = reader.make(kinds[0], Call(rest=settings, options=settings), kinds[0].node, space.frame)
        forward = reader.find(kinds[0], "forward")
        reader.quiet = 0
        if forward is None:
            return (Note("is not known", f"{name}.forward", 0),)
        receiver = Value(made.things, frozenset(("`self`",)))
        functions = [each for each in forward[0].things if isinstance(each, Function)]
        for function in functions:
            call = _arguments(receiver, function.node)
            result = reader.enter(function, call, kinds[0].node, space.frame, forward[1])
            reader.notes |= dict.fromkeys(_returned(result, name, takes_cache=_takes_cache(function)))
        if not functions:
            return (Note("is not a plain method", f"{name}.forward", 0),)
    except (TooLong, RecursionError):
        return (*reader.notes, _TOO_LONG)
    return tuple(reader.notes)


def _takes_cache(function: Function) -> bool:
    arguments = function.node.args
    return any(each.arg in EVER_NEUTRALISED for each in (*arguments.args, *arguments.kwonlyargs))


def _returned(value: Value, name: str, *, takes_cache: bool) -> Iterator[Note]:
    """Yield that tensors come out in a container, from which reentrant checkpointing takes none.

    A tuple behind the first item is a cache, which needs no gradient, if the block takes one.
    """
    clause = "returns {}, whose tensors receive no gradient under reentrant checkpointing"
    for thing in value.things:
        if isinstance(thing, Fixed):
            inner = [one for each in thing.items[:1] for one in each.things]
            inner += [
                one for each in thing.items[1:] for one in each.things if not (takes_cache and _is_tuple(one))
            ]
        elif isinstance(thing, Box) and thing.kind == "tuple":
            inner = [each for each in thing.item.things if not (takes_cache and _is_tuple(each))]
        else:
            inner = []
            if _may_hold_tensors(thing):
                yield Note(clause.format(_kind(thing)), f"{name}.forward", 0)
        for each in inner:
            if _may_hold_tensors(each):
                yield Note(clause.format(f"a tuple with {_kind(each)} in it"), f"{name}.forward", 0)


def _is_tuple(thing: Thing) -> bool:
    return isinstance(thing, Fixed) or (isinstance(thing, Box) and thing.kind == "tuple")


def _may_hold_tensors(thing: Thing) -> bool:
    """Tell whether something is a container with tensors, or may be anything that has some."""
    if isinstance(thing, Fixed):
        return any(_may_be_tensor(each) for item in thing.items for each in item.things)
    if isinstance(thing, Box):
        return any(map(_may_be_tensor, thing.item.things))
    return isinstance(thing, Object)


def _may_be_tensor(thing: Thing) -> bool:
    return isinstance(thing, (Tensor, Unknown)) or _may_hold_tensors(thing)


def _kind(thing: Thing) -> str:
    if isinstance(thing, Object):
        return f"a `{thing.kind.node.name}`"
    return f"a {thing.kind}" if isinstance(thing, Box) else "a tuple"


def _arguments(receiver: Value, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> Call:
    """Return a call with anything for each parameter, but without caches, which the base class disables."""
    parameters: Iterable[ast.arg] = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    given = [(each.arg, _given(each.arg)) for each in list(parameters)[1:]]
    rest = None if node.args.vararg is None else _given(node.args.vararg.arg)
    options = None if node.args.kwarg is None else _given(node.args.kwarg.arg)
    return Call((receiver,), tuple(sorted(given)), rest, options)


def _given(name: str) -> Value:
    if name == USE_CACHE:
        return of(Constant(False))
    if name in EVER_NEUTRALISED:
        return NONE
    return unknown(f"the argument `{name}`", (f"`{name}`",))
