"""What is not known to be right if a block's ``forward`` is run once more in the backward pass."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from gclint.model.interpreter import Interpreter
from gclint.model.objects import Note, TooLong
from gclint.model.spaces import Spaces
from gclint.model.values import NONE, Call, Class, Constant, Function, Setting, Value, of, unknown
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
            reader.enter(
                function, _arguments(receiver, function.node), kinds[0].node, space.frame, forward[1]
            )
        if not functions:
            return (Note("is not a plain method", f"{name}.forward", 0),)
    except (TooLong, RecursionError):
        return (*reader.notes, _TOO_LONG)
    return tuple(reader.notes)


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
