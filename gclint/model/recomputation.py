"""What is not known to be right if a block's ``forward`` is run once more in the backward pass."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator

from gclint.code.file import SourceFile
from gclint.model import known
from gclint.model.calls import defaults_of
from gclint.model.frames import Frame
from gclint.model.gradients import is_constant, without_gradient
from gclint.model.interpreter import Interpreter
from gclint.model.notes import Kind, Note, Root, quoted
from gclint.model.objects import TooLong
from gclint.model.received import argument
from gclint.model.reflection import PARAMETERS
from gclint.model.spaces import Spaces
from gclint.model.steepness import Steepness, steep
from gclint.model.values import (
    NEVER,
    NONE,
    OWN,
    Box,
    Call,
    Class,
    Constant,
    Fixed,
    Function,
    Made,
    Object,
    Partial,
    Tensor,
    Thing,
    Unknown,
    Value,
    join,
    of,
)
from gclint.releases import EVER_NEUTRALISED
from gclint.verify.worker.vocabulary import USE_CACHE

_ROUNDS = 4


def unknowns(spaces: Spaces, file: SourceFile, name: str) -> tuple[Note, ...]:
    """Return what a class's ``forward`` does to what outlives it, and what of it is not known.

    Each cause is noted once: where something is known of a line, what is not known there is no more.

    Args:
        spaces: the modules of the project.
        file: what defines the class.
        name: of the class, at the module's level.
    """
    space = spaces.of(file)
    if space.tree is None:
        return ()  # Its grammar is newer than that of the running Python.

    def note(what: str, where: str, kind: Kind = Kind.UNKNOWN) -> Note:
        return Note(kind, what, where, file, 0)

    reader = Interpreter(spaces, is_quiet=True)
    forward = f"{name}.forward"
    try:
        kinds = [each for each in (space.value(name) or NONE).things if isinstance(each, Class)]
        if len(kinds) != 1:
            return (note("is not the only class that this may be", name),)
        results = list(_results(reader, kinds[0], _given))
        is_complete = reader.is_complete
    except (TooLong, RecursionError):
        is_complete = False
    if not is_complete:
        return (*_causes(reader.notes), note("is too long to follow", forward))
    if not results:
        return (note("is no plain method", forward),)
    containers = [each for result, function in results for each in _containers(result, function)]
    returned = [note(each, forward, Kind.CONTAINER) for each in dict.fromkeys(containers)]
    if any(_is_detached(each) for result, _ in results for thing in result.things for each in _behind(thing)):
        returned.append(note("a tensor that requires no grad", forward, Kind.DETACHED))
    if any(_is_held(result) for result, _ in results):
        what = "returns a parameter or a part of one, which reentrant checkpointing makes a result"
        returned.append(note(what, forward))
    found = (*_causes(reader.notes), *returned)
    if not found:
        found = tuple(note(each, forward) for each in _stopping(spaces, kinds[0]))
    if not found and any(any(_behind(thing)) for result, _ in results for thing in result.things):
        found = tuple(_causes(_unused(spaces, kinds[0])))
    return found


class _Frozen(Interpreter):
    """Follows a block of whose parameters none requires grad, as with an adapter somewhere else."""

    def _call_made(self, name: str, call: Call, node: ast.expr, frame: Frame) -> Value:
        found = super()._call_made(name, call, node, frame)
        return without_gradient(found) if is_constant(*call.all()) else found

    def _of_made(self, thing: Made, value: Value, name: str) -> Value:
        return without_gradient(super()._of_made(thing, value, name))

    def _call_external(self, name: str, call: Call, node: ast.expr, frame: Frame) -> Value:
        found = super()._call_external(name, call, node, frame)
        return without_gradient(found) if name in PARAMETERS else found


def _stopping(spaces: Spaces, kind: Class) -> Iterator[str]:
    """Yield what a class's ``forward`` gives first, if no gradient may flow through that to what it gets."""
    results = _results(_Frozen(spaces, is_quiet=True), kind, argument)
    try:
        first = {each for result, _ in results for thing in result.things for each in _in_front(thing)}
    except (TooLong, RecursionError):
        return  # It was followed before.
    if any(isinstance(each, (Tensor, Unknown)) and each.is_constant for each in first):
        yield (
            "may return something through which no gradient flows to what it is given, and reentrant "
            "checkpointing raises where no parameter requires grad"
        )


def _unused(spaces: Spaces, kind: Class) -> Iterator[Note]:
    """Yield operations through which a class's ``forward`` gives only what a caller may leave unused."""
    results = _results(Steepness(spaces, is_quiet=True), kind, _given)
    try:
        things = [thing for result, _ in results for thing in result.things]
    except (TooLong, RecursionError):
        return  # It was followed before.
    used = steep(of(each) for thing in things for each in _in_front(thing))
    for node, space in steep(of(each) for thing in things for each in _behind(thing)) - used:
        what = (
            f"returns what `{quoted(node)}` gives behind the hidden states, and where its derivative is "
            "infinite, the zeros that reentrant checkpointing hands back through unused outputs become NaN"
        )
        row = space.file.position(space.offset(node)).row
        yield Note(Kind.UNKNOWN, what, f"{kind.node.name}.forward", space.file, row)


def _causes(notes: Iterable[Note]) -> list[Note]:
    """Return notes in order, and of each line what is known, or else the first thing that is not."""
    of_lines: dict[tuple[str, int], list[Note]] = {}
    for each in notes:
        of_lines.setdefault((str(each.file.path), each.row), []).append(each)
    found: list[Note] = []
    for (_, row), several in sorted(of_lines.items()):
        known_ones = [each for each in several if each.kind is not Kind.UNKNOWN]
        found += sorted(known_ones, key=_order) or (several[:1] if row else several)
    return found


def _order(note: Note) -> tuple[str, str, str]:
    return note.where, note.kind, note.what


def _results(
    reader: Interpreter, kind: Class, given: Callable[[str], Value]
) -> Iterator[tuple[Value, Function]]:
    """Follow the ``forward`` of a class, and yield what it returns, which is nothing if it runs later.

    Args:
        reader: what follows it.
        kind: the class.
        given: returns what the parameter of a name gets.
    """
    frame = kind.space.frame
    made = reader.make_anyhow(kind, frame)
    found = reader.find(kind, "forward")
    reader.quiet, reader.is_running, reader.subject = 0, True, made.things
    if any(isinstance(each, Class) and each.node in reader.spaces.hooked for each in reader.line(kind)):
        reader.notes[Note(Kind.UNKNOWN, "is made with hooks", kind.node.name, kind.space.file, 0)] = None
    for function in () if found is None else found[0].things:
        if isinstance(function, Function):
            receiver = Value(made.things, frozenset((OWN,)))
            call = _arguments(receiver, function.node, given)
            owner = found[1] if found else None
            for _ in range(_ROUNDS):
                version = reader.spaces.version
                result = reader.enter(function, call, kind.node, frame, owner)
                if version == reader.spaces.version:
                    break
            runs_later = any(isinstance(each, (ast.Yield, ast.YieldFrom)) for each in ast.walk(function.node))
            yield NEVER if runs_later else result, function


def _returns_cache(function: Function) -> bool:
    """Tell whether a function takes a cache, or returns one behind the first item, as its name says."""
    arguments = function.node.args
    return any(each.arg in EVER_NEUTRALISED for each in (*arguments.args, *arguments.kwonlyargs)) or any(
        place > 0 and _names_cache(one) for place, one in _written(function)
    )


def _written(function: Function) -> Iterator[tuple[int, ast.expr]]:
    """Yield the items of tuples that a function returns and that are written there, with their places."""
    for each in ast.walk(function.node):
        if isinstance(each, ast.Return) and isinstance(each.value, ast.Tuple):
            yield from enumerate(each.value.elts)


def _names_cache(node: ast.expr) -> bool:
    names = (each.id for each in ast.walk(node) if isinstance(each, ast.Name))
    return any(map(known.CACHED.search, names))


def _containers(value: Value, function: Function) -> Iterator[str]:
    """Yield in what tensors come out, from which reentrant checkpointing takes none.

    A tuple behind the first item may be a cache, which needs no gradient, unless it is written as one of
    something else.
    """
    returns_cache = _returns_cache(function)
    others = {
        place for place, one in _written(function) if isinstance(one, ast.Tuple) and not _names_cache(one)
    }
    for thing in value.things:
        for place, item in _items(thing):
            may_be_cache = returns_cache and place > 0 and place not in others
            for each in item.things:
                if _may_hold_tensors(each) and not (may_be_cache and _is_tuple(each)):
                    yield f"{_kind(each)} inside a tuple"
        if not _is_tuple(thing) and _may_hold_tensors(thing):
            yield _kind(thing)


def _items(thing: Thing) -> Iterator[tuple[int, Value]]:
    """Yield the items of a tuple with their places; any item of one that is not known stands behind."""
    if isinstance(thing, Fixed):
        yield from enumerate(thing.items)
    elif isinstance(thing, Box) and thing.kind == "tuple":
        yield 1, thing.item


def _in_front(thing: Thing) -> Iterable[Thing]:
    """Return what the first item of a tuple may be, or what is no tuple."""
    if isinstance(thing, Fixed):
        return thing.items[0].things if thing.items else ()
    if isinstance(thing, Box):
        return thing.first[0].things if thing.first else ()
    return (thing,)


def _behind(thing: Thing) -> Iterator[Thing]:
    """Yield the items of a tuple behind the first one."""
    yield from (each for place, item in _items(thing) if place for each in item.things)


def _is_detached(thing: Thing) -> bool:
    """Tell whether something is a tensor that requires no grad, or a mask that was given."""
    return isinstance(thing, (Tensor, Unknown)) and thing.is_constant


def _is_held(value: Value) -> bool:
    """Tell whether a value is, or a tuple has, a tensor that requires grad and that the block holds."""
    items = (each for thing in value.things for _, each in _items(thing))
    is_tensor = any(isinstance(each, Tensor) and not each.is_constant for each in value.things)
    return (is_tensor and OWN in value.roots) or any(map(_is_held, items))


def _is_tuple(thing: Thing) -> bool:
    return isinstance(thing, Fixed) or (isinstance(thing, Box) and thing.kind == "tuple")


def _may_hold_tensors(thing: Thing) -> bool:
    """Tell whether something is a container with tensors, or may be anything that has some."""
    if isinstance(thing, Fixed):
        return any(_may_be_tensor(each) for item in thing.items for each in item.things)
    if isinstance(thing, Box):
        return any(map(_may_be_tensor, thing.item.things))
    return isinstance(thing, (Object, Function, Partial))


def _may_be_tensor(thing: Thing) -> bool:
    return isinstance(thing, (Tensor, Unknown)) or _may_hold_tensors(thing)


def _kind(thing: Thing) -> str:
    if isinstance(thing, Object):
        return f"a `{thing.kind.node.name}`"
    if not isinstance(thing, Box):
        return "a tuple" if isinstance(thing, Fixed) else "a function"
    module, _, last = thing.kind.rpartition(".")
    return f"a `{last}`" if module else f"a {last}"


def _arguments(
    receiver: Value,
    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda,
    given: Callable[[str], Value],
) -> Call:
    """Return a call with anything for each parameter, but without caches, which the base class disables."""
    parameters = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs][1:]
    defaults = defaults_of(node.args)
    named = [
        (each.arg, _or_default(each.arg, given(each.arg), defaults.get(each.arg))) for each in parameters
    ]
    rest = None if node.args.vararg is None else given(node.args.vararg.arg)
    options = None if node.args.kwarg is None else given(node.args.kwarg.arg)
    return Call((receiver,), tuple(sorted(named)), rest, options)


def _or_default(name: str, given: Value, default: ast.expr | None) -> Value:
    """Return what a parameter gets: of a cache, or of what asks for one, also what is not passed."""
    value = default.value if isinstance(default, ast.Constant) else default
    if (name != USE_CACHE and name not in EVER_NEUTRALISED) or value is None or value is False:
        return given
    unpassed = Constant(True) if value is True else Unknown(f"the default of `{name}`")
    return join((given, of(unpassed)))


def _given(name: str) -> Value:
    if name == USE_CACHE:
        return of(Constant(False))
    if name in EVER_NEUTRALISED:
        return NONE
    given = Unknown(f"the argument `{name}`", is_argument=True, is_constant="mask" in name)
    return of(given, roots=(Root(Kind.INPUT, name),))
