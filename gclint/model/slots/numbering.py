"""Whether the layers of a stack are numbered, so that none writes to another one's slot of a cache."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from gclint.code.file import SourceFile
from gclint.code.project import Project
from gclint.code.walk import walk
from gclint.model.attributes import new_spaces
from gclint.model.cache_values import CacheValues
from gclint.model.frames import Frame
from gclint.model.objects import TooLong
from gclint.model.slots.mentions import Layers, stay
from gclint.model.slots.stacking import fillings
from gclint.model.spaces import Space
from gclint.model.values import (
    NEVER,
    NONE,
    Box,
    Call,
    Class,
    Field,
    Fixed,
    Object,
    Partial,
    Thing,
    Turn,
    Value,
    join,
    of,
)

_MAKING = "__init__"


class _Reader(CacheValues):
    """Follows what makes models, and tells what is passed by its name from the rest of a call."""

    def __init__(self, space: Space) -> None:
        super().__init__(space.spaces, is_quiet=True)
        self.made_by: dict[ast.AST, tuple[Value, list[Call]]] = {}
        """What calls of classes have made, and what of."""

    def make(self, kind: Class, call: Call, node: ast.AST, frame: Frame) -> Value:
        """Return an object of a class that is made with these values."""
        made = super().make(kind, call, node, frame)
        before, calls = self.made_by.get(node, (NEVER, []))
        self.made_by[node] = join((before, made)), [*calls, call]
        return made

    def argument(self, node: ast.arg, default: ast.expr | None, frame: Frame) -> Value:
        """Return what anybody passes to a function: nobody calls one here."""
        return NEVER


def unnumbered(
    project: Project,
    files: Collection[SourceFile],
    file: SourceFile,
    owner: str,
    stacks: Collection[str],
    slots: Mapping[str, Collection[tuple[str, ...]]],
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield which attributes of a model's layers may not be the number that each has for itself.

    Args:
        project: the files of a run.
        files: those whose code may do something with the model.
        file: what defines the model.
        owner: the name of its class.
        stacks: the attributes that hold the layers which it runs.
        slots: by the names of the layers' classes, the names of attributes that lead from one to a number.
    """
    paths = [(block, path) for block, several in slots.items() for path in sorted(several)]
    try:
        made = _Made(new_spaces(project).of(file), owner)
    except (TooLong, RecursionError):
        yield from paths
        return
    layers = {block: made.layers(block) for block in slots}
    by_maker = [[*fillings(each, made.calls.keys(), made.carries)] for each in made.makers]
    filled = [each for several in by_maker for each in several]
    assigned = [Counter(store.attr for each in several for store in each.stores) for several in by_maker]
    numbered = {each for block, path in paths for each in layers[block] if _at(each, path).things}
    kept = Layers(
        owner,
        frozenset((file, *(each.space.file for each in made.line))),
        frozenset((owner, *(each.node.name for each in made.line))),
        frozenset(one for block, path in paths for each in layers[block] for one in made.kinds(each, path)),
        frozenset(one for each in filled for one in (*each.stores, *each.appends)),
        frozenset(name for name, held in made.stacks.items() if not numbered.isdisjoint(held)),
        frozenset(name for _, path in paths for name in path).union(*(each.settings for each in filled)),
    )
    loops = {each.iterated for each in filled}
    are_whole = kept.stacks.issuperset(stacks) and all(
        {each[stack] for each in assigned} | {0} == {0, 1} for stack in kept.stacks
    )
    are_kept = are_whole and stay(kept, dict.fromkeys((*files, file, *made.files())))
    first: Thing | None = None
    for block, path in paths:
        found = (thing for each in layers[block] for thing in _at(each, path).things)
        numbers = [*{each for each in found if each not in NONE.things}]  # No cache takes None for an index.
        number = numbers[0] if len(numbers) == 1 else None
        first = first or number
        if not (are_kept and isinstance(number, Turn) and number.loop in loops and number == first):
            yield block, path


class _Made:
    """What the methods that make a model put into it.

    Raises:
        TooLong: they are too long to follow.
    """

    def __init__(self, space: Space, owner: str) -> None:
        self._reader = reader = _Reader(space)
        kinds = [each for each in (space.value(owner) or NEVER).things if isinstance(each, Class)]
        model = join(reader.make_anyhow(each, space.frame) for each in kinds)
        self.line = [one for kind in kinds for one in reader.line(kind) if isinstance(one, Class)]
        """Its class, and the bases of that."""
        self.makers = [maker for each in self.line for maker in _makers(each)]
        self.stacks = dict(_stacks(reader, model, self.makers))
        """The modules in its attributes."""
        inside = {each for every in self.stacks.values() for each in every}
        self.calls = {
            node: calls
            for node, (value, calls) in reader.made_by.items()
            if not inside.isdisjoint(value.things)
        }
        """The calls that make them, with what each of them gets."""

    def layers(self, block: str) -> list[Object]:
        """Return the layers of a class; in a modular file, a base may make those of another one instead."""
        inside = [each for every in self.stacks.values() for each in every]
        return [each for each in inside if each.kind.node.name == block] or inside

    def kinds(self, layer: Object, path: Sequence[str]) -> Iterator[str]:
        """Yield the names of the classes on the path from a layer to its number, with their bases."""
        for length in range(len(path)):
            for each in _at(layer, path[:length]).things:
                line = self._reader.line(each.kind) if isinstance(each, Object) else ()
                yield from (one.node.name for one in line if isinstance(one, Class))

    def carries(self, node: ast.Call, argument: ast.expr) -> bool:
        """Tell whether an argument of a call that makes layers may be a number, or hold one."""
        values = (each for call in self.calls[node] for each in _passed(call, node, argument))
        return any(_holds_turn(each, set()) for each in values)

    def files(self) -> Iterator[SourceFile]:
        """Yield the files that define what is in it."""
        for every in self.stacks.values():
            yield from (each.kind.space.file for each in every)


def _makers(kind: Class) -> Iterator[ast.FunctionDef]:
    """Yield what makes the objects of a class."""
    for each in kind.node.body:
        if isinstance(each, ast.FunctionDef) and each.name == _MAKING:
            yield each


def _stacks(
    reader: _Reader, made: Value, makers: Sequence[ast.FunctionDef]
) -> Iterator[tuple[str, list[Object]]]:
    """Yield the attributes of a model that hold modules, with the modules."""
    names = {each.attr for maker in makers for each in walk(maker) if isinstance(each, ast.Attribute)}
    for name in names:
        values = (each.attributes.get(name) or NEVER for each in made.things if isinstance(each, Object))
        inside = reader.inside(join(values))
        held = [each for one in inside for each in one.things if isinstance(each, Object)]
        if held:
            yield name, held


def _at(layer: Object, path: Sequence[str]) -> Value:
    """Return what stands at the end of a path of attributes."""
    value = of(layer)
    for name in path:
        parts = (each for each in value.things if isinstance(each, Object))
        value = join(each.attributes.get(name) or NEVER for each in parts)
    return value


def _passed(call: Call, node: ast.Call, argument: ast.expr) -> Iterable[Value]:
    """Return what an argument is, or all that a call gets if it is not known which of it that is."""
    if argument in node.args and not any(isinstance(each, ast.Starred) for each in node.args):
        return call.positional[node.args.index(argument) :][:1]
    name = next((each.arg for each in node.keywords if each.value is argument), None)
    return [value for key, value in call.named if key == name] if name is not None else call.all()


def _holds_turn(value: Value, met: set[Thing]) -> bool:
    """Tell whether a value may be the number of a turn, or something that holds one."""
    for each in value.things - met:
        met.add(each)
        inner: Iterable[Value] = ()
        if isinstance(each, Object):
            inner = each.attributes.values()
        elif isinstance(each, Fixed):
            inner = each.items
        elif isinstance(each, Box):
            inner = (each.item, *each.first)
        elif isinstance(each, Field):
            inner = (each.value,)
        if isinstance(each, (Turn, Partial)) or any(_holds_turn(one, met) for one in inner):
            return True
    return False
