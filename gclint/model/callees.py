"""Whether what a call runs gets the same, once some of its arguments move between position and keyword.

Python binds both forms of the call to the parameters of what is called. Where that is the same, nothing
behind it can tell them apart. Where a function collects arguments, it may only hand them on, and then what it
hands them to is asked the same.
"""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from gclint.code.file import SourceFile
from gclint.code.names import names
from gclint.code.walk import walk
from gclint.model.calls import defaults_of
from gclint.model.frames import Frame
from gclint.model.interpreter import Interpreter
from gclint.model.objects import TooLong
from gclint.model.spaces import Spaces
from gclint.model.values import (
    NONE,
    Bound,
    Class,
    Function,
    Object,
    Partial,
    Thing,
    Value,
    of,
)

_DEEPEST = 6
LOOKING_AROUND = names("locals vars eval exec _getframe currentframe signature stack")
"""Functions by which code may get at its arguments without their names."""
_OWN = "self"
CHANGING = ("__init_subclass__", "__getattribute__", "__new__")
"""Methods of a class that may replace other methods of it, or of its objects."""


@dataclass(frozen=True)
class Form:
    """The arguments of a call: whatever stands for each of them, the same for the same one."""

    positional: tuple[Hashable, ...] = ()
    named: Mapping[str, Hashable] = field(default_factory=dict)
    options: tuple[Hashable, ...] = ()
    """The mappings that it unpacks."""

    def behind(self, *first: Hashable) -> Form:
        """Return the form with some arguments in front."""
        return Form((*first, *self.positional), self.named, self.options)


Forms: TypeAlias = tuple[Form, Form]
"""The arguments of a call as they are, and as they will be."""


@dataclass(frozen=True)
class _Binding:
    """What a function gets."""

    taken: Mapping[str, Hashable]
    """What each parameter gets; its default if it gets nothing."""
    rest: tuple[Hashable, ...]
    further: Mapping[str, Hashable]
    options: tuple[Hashable, ...]


@dataclass(frozen=True)
class _Default:
    """What a parameter is if nothing is passed to it."""

    code: str | None


def default(code: str | None) -> Hashable:
    """Return what stands for the default value of a parameter."""
    # In brackets, its lines may begin anywhere.
    return _Default(None if code is None else ast.unparse(ast.parse(f"({code}\n)", mode="eval").body))


def moved(spaces: Spaces, file: SourceFile, name: str, forms: Forms) -> str | None:
    """Return what may get other arguments if a call of objects of a class changes its form; None if nothing.

    Args:
        spaces: the modules of the project.
        file: what defines the class.
        name: of the class, at the module's level.
        forms: that of the call as it is, and as it will be, without the object.
    """
    space = spaces.of(file)
    if space.tree is None:
        return None  # Its grammar is newer than that of the running Python.
    reader = _CallReader(Interpreter(spaces, is_quiet=True), space.frame)
    try:
        kinds = (space.value(name) or NONE).things
        found = (one for each in kinds for one in reader.of_class(each, name, forms))
        return next(found, None)
    except (TooLong, RecursionError):
        return f"`{name}`, which is too long to follow"


def takes_alike(parameters: ast.arguments, forms: Forms) -> bool:
    """Return whether a function gets the same by both forms of a call, or raises an error today."""
    one, other = (_bind(parameters, each) for each in forms)
    return one is None or one == other


class _CallReader:
    """Follows two forms of a call."""

    def __init__(self, reader: Interpreter, frame: Frame) -> None:
        self._reader, self._frame = reader, frame

    def of_class(self, kind: Thing, name: str, forms: Forms, depth: int = 0) -> Iterator[str]:
        """Yield what gets other arguments in the other form, if an object of a class is called."""
        reader = self._reader
        if not isinstance(kind, Class):
            yield f"`{name}`, which is not known"
            return
        made = reader.make_anyhow(kind, self._frame)
        unseen = next((each for each in CHANGING if reader.find(kind, each) is not None), None)
        if unseen is not None:
            yield f"`{kind.node.name}.{unseen}`, which may change its methods"
        if any(each.arg is not None for each in kind.node.keywords) and reader.unknown_base(kind):
            yield f"`{kind.node.name}`, whose class is made by something that is not known"
        name = "forward" if reader.is_module(kind) or reader.find(kind, "__call__") is None else "__call__"
        found = reader.find(kind, name)
        own = [each.attributes.get(name) for each in made.things if isinstance(each, Object)]
        ways = [each for each in own if each is not None]
        if found is not None or not ways:
            held, owner = found or (of(), kind)
            ways.append(reader.bind_method(held, made, owner, kind.node, self._frame))
        for value in ways:
            yield from self._of_value(value, f"{kind.node.name}.{name}", forms, depth)

    def _of_value(self, value: Value, name: str, forms: Forms, depth: int) -> Iterator[str]:
        if not value.things or depth > _DEEPEST:
            yield f"`{name}`, which is not known"
        for thing in value.things:
            yield from self._of(thing, name, forms, depth)

    def _of(self, thing: Thing, name: str, forms: Forms, depth: int) -> Iterator[str]:
        if isinstance(thing, Bound):
            before, after = forms
            own = before.behind(_OWN), after.behind(_OWN)
            yield from self._of_function(thing.function, thing, own, depth)
        elif isinstance(thing, Function):
            yield from self._of_function(thing, None, forms, depth)
        elif isinstance(thing, Object):
            yield from self.of_class(thing.kind, name, forms, depth + 1)
        elif isinstance(thing, Partial):
            before, after = (_behind_partial(thing, each) for each in forms)
            yield from self._of_value(thing.function, name, (before, after), depth + 1)
        else:
            yield f"`{name}`, which is not known"

    def _of_function(
        self, function: Function, bound: Bound | None, forms: Forms, depth: int
    ) -> Iterator[str]:
        code = function.node
        name = f"`{getattr(code, 'name', 'a lambda')}`"
        before, after = forms
        one, other = _bind(code.args, before), _bind(code.args, after)
        if any(isinstance(each, ast.Starred) for each in before.positional):
            yield f"{name}, which gets a list"
            return
        if one is None or one == other:
            return  # Python raises an error, or nothing behind it can tell.
        if other is None or one.taken != other.taken:
            yield f"{name}, which takes its arguments otherwise"
            return
        collecting = {each.arg for each in (code.args.vararg, code.args.kwarg) if each is not None}
        calls = _handing_on(code, collecting)
        if calls is None:
            yield f"{name}, which does more with its arguments than to hand them on"
            return
        frame = Frame(function.space, function.frame, function.owner)
        first = [*code.args.posonlyargs, *code.args.args][:1]
        if bound is not None and first:
            frame.names[first[0].arg] = frame.receiver = bound.receiver
            frame = Frame(frame.space, frame.parent, bound.owner, frame.receiver, names=frame.names)
        for call in calls:
            inner = _given(call, code.args, one), _given(call, code.args, other)
            value = self._value(call.func, code, frame)
            yield from self._of_value(value, ast.unparse(call.func), inner, depth + 1)

    def _value(self, node: ast.expr, code: ast.AST, frame: Frame) -> Value:
        """Return what a function calls, unless it names that itself."""
        own = {each.arg for each in walk(code) if isinstance(each, ast.arg)} - frame.names.keys()
        own |= {
            each.id
            for each in walk(code)
            if isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Load)
        }
        if any(isinstance(each, ast.Name) and each.id in own for each in walk(node)):
            return of()
        return self._reader.quietly(node, frame)


def _behind_partial(function: Partial, form: Form) -> Form:
    given = [(function, index) for index, _ in enumerate(function.positional)]
    return Form((*given, *form.positional), {**dict(function.named), **form.named}, form.options)


def _bind(parameters: ast.arguments, form: Form) -> _Binding | None:
    """Return what a function gets; None where Python raises an error."""
    only, plain = [each.arg for each in parameters.posonlyargs], [each.arg for each in parameters.args]
    positional, named = [*only, *plain], dict(form.named)
    taken: dict[str, Hashable] = dict(zip(positional, form.positional, strict=False))
    rest = form.positional[len(positional) :]
    for each in (*plain, *(one.arg for one in parameters.kwonlyargs)):
        if each in named:
            if each in taken:
                return None
            taken[each] = named.pop(each)
    if (rest and parameters.vararg is None) or (named and parameters.kwarg is None):
        return None
    defaults = defaults_of(parameters)
    for each in (*positional, *(one.arg for one in parameters.kwonlyargs)):
        if each not in taken:
            if each not in defaults and not form.options:
                return None
            taken[each] = _Default(ast.unparse(defaults[each]) if each in defaults else None)
    return _Binding(taken, rest, named, form.options)


def _handing_on(code: ast.AST, collecting: set[str]) -> list[ast.Call] | None:
    """Return the calls to which a function hands on what it collects; None if it does more with that."""
    nodes = [each for part in _body(code) for each in walk(part)]
    unpacked: dict[ast.AST, ast.Call] = {}
    for call in (each for each in nodes if isinstance(each, ast.Call)):
        stars = [each.value for each in call.args if isinstance(each, ast.Starred)]
        unpacked |= dict.fromkeys((*stars, *(each.value for each in call.keywords if each.arg is None)), call)
    found: dict[ast.Call, None] = {}
    for each in nodes:
        if isinstance(each, ast.Name):
            if each.id in LOOKING_AROUND:
                return None
            if each.id in collecting:
                if each not in unpacked:
                    return None
                found[unpacked[each]] = None
        elif isinstance(each, ast.Attribute) and each.attr in LOOKING_AROUND:
            return None
    return list(found)


def _body(code: ast.AST) -> list[ast.AST]:
    body = getattr(code, "body", [])
    return body if isinstance(body, list) else [body]


def _given(call: ast.Call, parameters: ast.arguments, got: _Binding) -> Form:
    """Return the form of a call inside of a function that hands on what it got."""
    positional: list[Hashable] = []
    for each in call.args:
        if not isinstance(each, ast.Starred):
            positional.append(_token(each, got))
        elif _is(each.value, parameters.vararg):
            positional += got.rest
        else:
            positional.append(each)
    named: dict[str, Hashable] = {}
    options: list[Hashable] = []
    for keyword in call.keywords:
        if keyword.arg is not None:
            named[keyword.arg] = _token(keyword.value, got)
        elif _is(keyword.value, parameters.kwarg):
            named |= got.further
            options += got.options
        else:
            options.append(keyword)
    return Form(tuple(positional), named, tuple(options))


def _is(node: ast.expr, parameter: ast.arg | None) -> bool:
    return parameter is not None and isinstance(node, ast.Name) and node.id == parameter.arg


def _token(node: ast.expr, got: _Binding) -> Hashable:
    """Return what stands for an expression: what a parameter has got, or otherwise the place."""
    return got.taken.get(node.id, node) if isinstance(node, ast.Name) else node
