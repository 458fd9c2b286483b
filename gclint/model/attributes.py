"""The modules of a project, with what has the attributes that running code reads and assigns."""

from __future__ import annotations

from gclint.model.interpreter import Interpreter
from gclint.model.objects import TooLong
from gclint.model.spaces import Space, Spaces, Targets
from gclint.model.values import Call, Class, Function, Setting, of, unknown
from gclint.source.project import Project

_ANYTHING = unknown("an argument")
_ROUNDS = 3


def spaces_of(project: Project) -> Spaces:
    """Return the modules of a project; they are discarded when one of its files changes."""
    found = project.derived.get(Spaces)
    if not isinstance(found, Spaces):
        found = project.derived[Spaces] = _spaces(project)
    return found


def _spaces(project: Project) -> Spaces:
    return Spaces(project, _follow, _targets)


def _follow(space: Space) -> None:
    Interpreter(space.spaces, is_quiet=True).module(space)


def _targets(space: Space) -> Targets:
    """Return what has the attributes that running code of a module reads and assigns, with any arguments."""
    # Modules of its own: what is assigned with any arguments must not become what objects have.
    space = _spaces(space.spaces.project).of(space.file)
    reader = Interpreter(space.spaces, is_quiet=True)
    try:
        for _ in range(_ROUNDS):
            version = space.spaces.version
            _run(reader, space)
            if version == space.spaces.version:
                return space.spaces.targets
    except (TooLong, RecursionError):
        pass
    return {}


def _run(reader: Interpreter, space: Space) -> None:
    """Follow all functions and methods of a module that may run, with any arguments."""
    settings = of(Setting(), roots=("its settings",))
    for value in [space.value(name) for name in list(space.names())]:
        for thing in () if value is None else value.things:
            if isinstance(thing, Class) and thing.space is space:
                made = reader.make(thing, Call(rest=settings, options=settings), thing.node, space.frame)
                for method in list(space.spaces.members[thing].values()):
                    for each in method.things:
                        if isinstance(each, Function):
                            call = Call((made,), (), _ANYTHING, _ANYTHING)
                            reader.enter(each, call, thing.node, space.frame, owner=thing)
            elif isinstance(thing, Function) and thing.space is space:
                reader.enter(thing, Call((), (), _ANYTHING, _ANYTHING), thing.node, space.frame)
