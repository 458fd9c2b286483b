"""The modules of a project, with what has the attributes that running code reads and assigns."""

from __future__ import annotations

import ast

from gclint.code.file import SourceFile
from gclint.code.project import Project
from gclint.model import known
from gclint.model.interpreter import Interpreter
from gclint.model.objects import TooLong
from gclint.model.spaces import Space, Spaces
from gclint.model.values import NEVER, Box, Call, Class, Fixed, Function, Object, Thing, of, unknown

_ANYTHING = unknown("an argument")
_ROUNDS = 6
_MOST_STEPS = 150_000
_MOST_MODULES = 24
"""How many modules are remembered from one file to the next: their trees are large."""


def spaces_of(project: Project) -> Spaces:
    """Return the modules of a project; they are discarded when one of its files changes."""
    found = project.derived.get(Spaces)
    if not isinstance(found, Spaces):
        found = project.derived[Spaces] = new_spaces(project)
    return found


def let_go(project: Project) -> None:
    """Forget the modules of a project if they are many; what was learned from them stays."""
    found = project.derived.get(Spaces)
    if isinstance(found, Spaces) and found.size > _MOST_MODULES:
        del project.derived[Spaces]
        found.forget()


def new_spaces(project: Project) -> Spaces:
    """Return the modules of a project as if none of them had been followed."""
    return Spaces(project, _follow, _reading)


def unregistered(project: Project, file: SourceFile, name: str) -> frozenset[str]:
    """Return the names of the classes whose objects a module of a class has where torch finds no modules.

    Args:
        project: the files of a run.
        file: what defines the class.
        name: of the class, at the module's level.
    """
    space = new_spaces(project).of(file)
    reader = Interpreter(space.spaces, is_quiet=True)
    known_ones, others = set[Thing](), set[Thing]()
    try:
        for kind in (space.value(name) or NEVER).things:
            made = reader.make_anyhow(kind, space.frame).things if isinstance(kind, Class) else ()
            values = [
                value for each in made if isinstance(each, Object) for value in each.attributes.values()
            ]
            for thing in {each for value in values for each in value.things}:
                is_pile = isinstance(thing, Fixed) or (
                    isinstance(thing, Box) and thing.kind not in known.STACKS
                )
                inside = {each for one in reader.inside(of(thing)) for each in one.things}
                (others if is_pile else known_ones).update(inside)
    except (TooLong, RecursionError):
        return frozenset()  # That is noticed where it matters.
    return frozenset(each.kind.node.name for each in others - known_ones if isinstance(each, Object))


def _follow(space: Space) -> None:
    try:
        reader = Interpreter(space.spaces, is_quiet=True)
        reader.module(space)
        is_complete = reader.is_complete
    except (TooLong, RecursionError):
        is_complete = False
    if not is_complete:
        space.frame.names.clear()  # Nothing is known of the module.


def _reading(space: Space, functions: frozenset[ast.AST] | None) -> Spaces:
    """Return modules in which functions of one were followed, with any arguments; all of them if it is None.

    They are others than those of the project: what such functions assign must not become what objects have.
    """
    spaces = new_spaces(space.spaces.project)
    space = spaces.of(space.file)
    reader = Interpreter(spaces, is_quiet=True, most_steps=_MOST_STEPS)
    try:
        for _ in range(_ROUNDS):
            version = spaces.version
            _run(reader, space, functions)
            if version == spaces.version and reader.is_complete:
                return spaces
    except (TooLong, RecursionError):
        pass
    return new_spaces(space.spaces.project)  # Nothing is known.


def _run(reader: Interpreter, space: Space, functions: frozenset[ast.AST] | None) -> None:
    """Follow functions and methods of a module that may run, with any arguments."""
    for value in [space.value(name) for name in list(space.names())]:
        for thing in () if value is None else value.things:
            if isinstance(thing, Class) and thing.space is space:
                made = reader.make_anyhow(thing, space.frame)
                members = list(space.spaces.members[thing].items())
                for method in (value for name, value in members if name != "__init__"):
                    for each in method.things:
                        if isinstance(each, Function) and (functions is None or each.node in functions):
                            call = Call((made,), (), _ANYTHING, _ANYTHING)
                            reader.enter(each, call, thing.node, space.frame, owner=thing)
            elif (
                isinstance(thing, Function)
                and thing.space is space
                and (functions is None or thing.node in functions)
            ):
                reader.enter(thing, Call((), (), _ANYTHING, _ANYTHING), thing.node, space.frame)
