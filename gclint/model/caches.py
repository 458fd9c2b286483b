"""What may be passed where only a cache is expected, as far as it can be followed.

Only what is known to be a cache is one: what users of a model pass under the name of one, None, what a class
of caches makes, and parts of these; as long as nothing else is put into it, anywhere in the code that leads
to the call. Anything else, such as a learned prompt or the memory of earlier segments, is part of what the
model computes.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from gclint.code.file import SourceFile
from gclint.code.project import Project
from gclint.code.walk import alternatives, walk
from gclint.model.attributes import new_spaces
from gclint.model.cache_objects import RESULT, CacheObjects, handed_on
from gclint.model.cache_values import ARGUMENT, CACHE, has_caches, is_cache, is_harmless
from gclint.model.frames import Frame
from gclint.model.leading import Leading
from gclint.model.objects import TooLong
from gclint.model.spaces import Space
from gclint.model.values import (
    NEVER,
    TENSOR,
    Box,
    Call,
    Class,
    Field,
    Function,
    Given,
    Object,
    Partial,
    Thing,
    Value,
    join,
    of,
)
from gclint.verify.worker.vocabulary import USE_CACHE

_ROUNDS = 4

_Assigned: TypeAlias = "Mapping[str, Sequence[ast.expr]]"


@dataclass(frozen=True)
class Doubt:
    """Why an expression may be something else than a cache."""

    file: SourceFile
    node: ast.expr
    """The first expression that is not known to be one."""


def doubts(
    project: Project,
    file: SourceFile,
    others: Iterable[SourceFile],
    arguments: Collection[ast.expr],
    runs: Mapping[ast.Call, Collection[str]],
    owners: Collection[str],
) -> Mapping[ast.expr, Doubt | None]:
    """Return for arguments of calls why they may be something else than a cache; None for caches.

    Args:
        project: the files of a run.
        file: the module with the calls.
        others: further modules that may run its code.
        arguments: the expressions, of which those behind ``**`` may hold a cache under its name.
        runs: calls of blocks, which use caches as such, with the names of the blocks.
        owners: the names of the classes whose methods contain the calls.
    """
    spaces = new_spaces(project)
    leading = Leading(owners, runs)
    reader = _CacheReader(spaces.of(file), arguments, runs, leading)
    try:
        reader.begin(map(spaces.of, (file, *others)))
        for _ in range(_ROUNDS):
            version = spaces.version
            reader.run_all()
            if version == spaces.version and not spaces.hooked:
                return dict(reader.judged())
    except (TooLong, RecursionError):
        pass
    finally:
        spaces.forget()
    return {each: Doubt(file, each) for each in arguments}


class _CacheReader(CacheObjects):
    """Follows what leads to some calls, and records what is passed there."""

    def __init__(
        self,
        space: Space,
        arguments: Collection[ast.expr],
        runs: Mapping[ast.Call, Collection[str]],
        leading: Leading,
    ) -> None:
        super().__init__(space.spaces, leading)
        self.space = space
        self._arguments = arguments
        self._passed: dict[ast.expr, Value] = {}
        """What the arguments may be, and what these come from in their functions."""
        self._assigned: dict[ast.expr, _Assigned] = {}
        """What names are given in the functions of expressions."""
        self._filling: dict[Thing, Doubt] = {}
        """Where something else is put into caches."""
        self._calls: list[Doubt] = []
        """The calls that are being followed."""
        self._runs = runs
        self._running = frozenset[str]()
        """The names of the blocks that are called by what is being followed."""
        self._entries: dict[tuple[Class | Function, str], set[ast.AST]] = {}
        """The functions that are followed with any arguments, and the methods by their classes and names."""
        self._is_over = False
        """Whether nobody uses what the function gives that is being followed."""
        self._last = set[ast.AST]()
        """The calls behind which functions do not lead to the calls any more."""

    # -- where to begin

    def begin(self, spaces: Iterable[Space]) -> None:
        """Find the functions and methods that others may run and that lead to the calls."""
        homes = [each for each in spaces if each.tree is not None]
        for space in homes:
            self._leading.read(space)
        for function in self._leading.own:
            nodes = set(walk(function))
            assigned = _assigned(nodes)
            for argument in self._arguments:
                if argument in nodes:
                    self._watch(argument, assigned)
        for space in homes:
            for name in sorted(self._leading.names.intersection(space.names())):
                for thing in (space.value(name) or NEVER).things:
                    if isinstance(thing, Function) and thing.space is space:
                        self._entries[thing, ""] = {thing.node}
                    elif isinstance(thing, Class) and thing.space is space:
                        self._begin_in(thing)
            # Whatever decorators make of a class.
            for node in space.tree.body if space.tree is not None else ():
                if isinstance(node, ast.ClassDef) and node.name in self._leading.names:
                    self._begin_in(self.class_of(node, space, None))

    def _begin_in(self, kind: Class) -> None:
        line = [each for each in self.line(kind) if isinstance(each, Class)]
        for name in dict.fromkeys(name for each in line for name in self.spaces.members[each]):
            found = self.find(kind, name)
            nodes: set[ast.AST] = {
                each.node for each in (found[0].things if found else ()) if isinstance(each, Function)
            }
            if any(map(self._leading.calls, nodes)):
                self._entries[kind, name] = nodes

    def run_all(self) -> None:
        """Follow the functions and methods that lead to the calls, with any arguments."""
        for thing, name in self._entries:
            if isinstance(thing, Function):
                self.run_function(thing, thing.space)
            else:
                self.run_methods(thing, self.make_anyhow(thing, thing.space.frame), thing.space, [name])

    def argument(self, node: ast.arg, default: ast.expr | None, frame: Frame) -> Value:
        """Return what users of a model pass: a cache under the name of one."""
        ways = [] if default is None else [self.value(default, frame)]
        return join((self._argument(node.arg, node), *ways))

    def further(self, node: ast.arg, frame: Frame) -> Value:
        """Return what users of a model pass to further parameters of what is called with it."""
        return of(Given(node))

    def enter(
        self, function: Function, call: Call, node: ast.AST, frame: Frame, owner: Class | None = None
    ) -> Value:
        """Follow a function: only as far as it leads to the calls where nobody uses what it gives."""
        if owner is not None and any(map(self._is_running, call.positional[:1])):
            return RESULT
        outer = self._is_over
        self._is_over = not self.stack or (outer and node in self._last)
        if self.stack and self._is_over and self._is_followed_anyhow(function, call, node, frame):
            self._is_over = outer
            return RESULT
        try:
            return super().enter(function, call, node, frame, owner)
        finally:
            self._is_over = outer

    def _is_followed_anyhow(self, function: Function, call: Call, node: ast.AST, frame: Frame) -> bool:
        """Tell whether a call shows no more than any call does, once its caches are taken for any caches."""
        arguments = function.node.args
        parameters = [*arguments.posonlyargs, *arguments.args]
        by_name = {each.arg: each for each in (*parameters, *arguments.kwonlyargs)}
        loose = [each for each in (call.rest, call.options) if each is not None]
        given = dict(zip(by_name, call.positional, strict=False)) | dict(call.named)
        if len(call.positional) > len(parameters) or not self._is_entry(function, call):
            return False
        for thing in (each for value in loose for each in value.things):
            if isinstance(thing, Field):
                given[thing.name] = join((given.get(thing.name, NEVER), thing.value))
            elif not isinstance(thing, Given):
                return False
        caches = {name for name in given if ARGUMENT.fullmatch(name) and name != USE_CACHE}
        own = {parameters[0].arg} if function.owner is not None and parameters else set[str]()
        others = (value for name, value in given.items() if name not in caches | own)
        if not given.keys() <= by_name.keys() or any(map(self._may_hold, others)):
            return False
        written = {each.arg: each.value for each in getattr(node, "keywords", ())}
        for name in caches:
            self._calls += [Doubt(frame.space.file, written[name])] if name in written else []
            self._link(by_name[name], given[name])
            del self._calls[len(self._calls) - (name in written) :]
        return True

    def _is_entry(self, function: Function, call: Call) -> bool:
        """Tell whether a function is followed with any arguments."""
        if function.owner is None:
            return function.node in self._entries.get((function, ""), ())
        name = getattr(function.node, "name", "")
        return all(
            isinstance(each, Object)
            and function.node in self._entries.get((each.kind, name), ())
            and each in self._usual
            for value in call.positional[:1]
            for each in value.things
        )

    def _link(self, parameter: ast.arg, value: Value) -> None:
        """Take a cache that is passed and the one that any caller passes for the same."""
        cache = self.box(parameter, CACHE)
        self.fill(cache, value if is_cache(value) else join((value, TENSOR)))
        for thing in self._reached([value]):
            if isinstance(thing, Box):
                self.fill(thing, of(cache))

    def entry(self, function: Function, call: Call, owner: Class | None) -> object:
        """Return what is the same for calls of which following one is enough."""
        return super().entry(function, call, owner), self._is_over, self._running

    def run(self, body: Sequence[ast.stmt], frame: Frame) -> Value:
        """Follow the body of a function, and return what it returns."""
        last = self._leading.last(self.stack[-1]) if self._is_over else None
        if last is None:
            return super().run(body, frame)
        self._last.update(self._leading.last_calls(last))
        self.body(body[: body.index(last) + 1], frame)
        return RESULT

    # -- what is recorded

    def value(self, node: ast.expr, frame: Frame) -> Value:
        """Follow an expression, and record it if it is passed."""
        result = super().value(node, frame)
        if node in self._passed:
            self._passed[node] = join((self._passed[node], result))
        return result

    def judged(self) -> Iterator[tuple[ast.expr, Doubt | None]]:
        """Yield what was passed, and why it may be something else than a cache."""
        for node in self._arguments:
            value = self._passed.get(node, NEVER)
            is_known = bool(value.things) and (is_cache(value) or has_caches(value))
            yield node, None if is_known else self._doubt(node, {node})

    def _doubt(self, node: ast.expr, met: set[ast.expr]) -> Doubt:
        """Return from where an expression may get something else than a cache, as far as that is known."""
        for each in self._sources(node):
            if each not in met and not is_cache(self._passed.get(each, NEVER)):
                met.add(each)
                return self._doubt(each, met)
        value = self._passed.get(node, NEVER)
        causes = [self._filling[each] for each in self._reached([value]) if each in self._filling]
        # Things are in no order, and a run has to say what the one before it said.
        return min(causes, key=_place, default=Doubt(self.space.file, node))

    def _sources(self, node: ast.expr) -> Sequence[ast.expr]:
        """Return the expressions that another one is, or holds, as its function is written."""
        if isinstance(node, ast.Name):
            return self._assigned.get(node, {}).get(node.id, ())
        if isinstance(node, ast.Subscript):
            return (node.value,)
        return node.elts if isinstance(node, (ast.Tuple, ast.List)) else alternatives(node)

    def _watch(self, node: ast.expr, assigned: _Assigned) -> None:
        """Record what an expression is, and what it comes from."""
        if node not in self._passed:
            self._passed[node], self._assigned[node] = NEVER, assigned
            for each in self._sources(node):
                self._watch(each, assigned)

    def fill(self, box: Box, value: Value) -> None:
        """Add what an item may be, and keep where the first thing is put into a cache that makes it none."""
        if box.kind == CACHE and self._calls and box not in self._filling and not is_harmless(value):
            self._filling[box] = self._calls[-1]
        super().fill(box, value)

    def _value_call(self, node: ast.Call, frame: Frame) -> Value:
        if node not in self._runs or not self._leading.names.isdisjoint(self._runs[node]):
            self._calls.append(Doubt(frame.space.file, node))
            result = super()._value_call(node, frame)
            self._calls.pop()
            return result
        # What a block does with its cache is what a cache is for.
        self.value(node.func, frame)
        self._run_wrapped(self.given(node, frame), node, frame)
        return RESULT

    def _run_wrapped(self, call: Call, node: ast.Call, frame: Frame) -> None:
        """Follow a function that calls a block with more than it gets, and is checkpointed in its place."""
        outer, self._running = self._running, frozenset(self._runs[node])
        for index, each in enumerate(call.positional, start=1):
            functions = Value(frozenset(one for one in each.things if isinstance(one, (Function, Partial))))
            self.call(functions, handed_on(call, index), node, frame)
        self._running = outer

    def _is_running(self, value: Value) -> bool:
        """Tell whether a value can only be the block whose function is being followed."""
        return bool(value.things) and all(
            isinstance(each, Object) and each.kind.node.name in self._running for each in value.things
        )


def _assigned(nodes: Iterable[ast.AST]) -> _Assigned:
    """Return the expressions that are assigned to names."""
    found: dict[str, list[ast.expr]] = {}
    for node in nodes:
        if isinstance(node, (ast.Assign, ast.AnnAssign, ast.NamedExpr)) and node.value is not None:
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                if isinstance(target, ast.Name):
                    found.setdefault(target.id, []).append(node.value)
    return {name: sorted(values, key=lambda each: each.lineno) for name, values in found.items()}


def _place(doubt: Doubt) -> tuple[str, int, int]:
    return str(doubt.file.path), doubt.node.lineno, doubt.node.col_offset
