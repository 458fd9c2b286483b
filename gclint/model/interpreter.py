"""Follows code through all of its ways, and notes what it does to what outlives it.

A value is what an expression may be (see ``gclint.model.values``). Branches are joined, loops are followed
until nothing changes, and calls are entered with the values of the caller. What is not known is noted, too:
of a function that is not known nobody can say what it changes.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache

from gclint.code.walk import walk, walk_scope
from gclint.model import known
from gclint.model.expressions import Expressions
from gclint.model.frames import Frame
from gclint.model.gradients import Recording, records, switches_gradients
from gclint.model.notes import Kind
from gclint.model.objects import is_argument
from gclint.model.reading import bindings, note_binding, read
from gclint.model.reflection import shared
from gclint.model.spaces import Space
from gclint.model.texts import texts
from gclint.model.values import (
    NEVER,
    NONE,
    PLAIN,
    Box,
    Call,
    Class,
    Constant,
    External,
    Fixed,
    Function,
    Imported,
    ModelSetting,
    Object,
    Plain,
    Value,
    join,
    of,
    unknown,
)

_ROUNDS = 8
_OF_SETTINGS = (
    ast.Attribute,
    ast.Compare,
    ast.BoolOp,
    ast.UnaryOp,
    ast.Constant,
    ast.Call,
)
_ANY_ERROR = frozenset(("Exception", "BaseException"))
_LEAVING = (ast.Return, ast.Break, ast.Continue)
"""The statements with which ``finally`` lets go of an error."""
_DELETING = ("__delitem__",)
_PUTTING = ("__setitem__",)
_ERROR = unknown("an error")
_Ways = list[dict[str, Value]]


class Interpreter(Expressions):
    """Follows statements."""

    def module(self, space: Space) -> None:
        """Follow the statements of a module."""
        if space.tree is not None:
            self.body(space.tree.body, space.frame)

    def run(self, body: Sequence[ast.stmt], frame: Frame) -> Value:
        """Follow the body of a function, and return what it returns."""
        self.body(body, frame)
        if not frame.is_dead:
            frame.returned.append(NONE)
        return join(frame.returned)

    def body(self, statements: Sequence[ast.stmt], frame: Frame) -> None:
        """Follow statements until none is reached any more."""
        for statement in statements:
            if frame.is_dead:
                return
            self.count()
            follow = getattr(self, _method_of(type(statement).__name__), None)
            if follow is None:
                self.note("uses a statement that is not known", statement, frame)
            else:
                follow(statement, frame)

    # -- simple statements

    def _follow_expr(self, node: ast.Expr, frame: Frame) -> None:
        self.value(node.value, frame)
        if isinstance(node.value, ast.Call) and not self.quiet:
            called = self.quietly(node.value.func, frame).things
            # Others are unknown, or what they do is followed.
            if any(isinstance(each, ModelSetting) or is_argument(each) for each in called):
                self.note(ast.unparse(node.value.func), node, frame, Kind.CALLBACK)

    def _follow_return(self, node: ast.Return, frame: Frame) -> None:
        frame.returned.append(NONE if node.value is None else self.value(node.value, frame))
        frame.is_dead = True

    def _follow_raise(self, node: ast.Raise, frame: Frame) -> None:
        self._fail((node.exc, node.cause), frame)
        frame.is_dead = True

    def _fail(self, parts: Sequence[ast.expr | None], frame: Frame) -> None:
        """Follow what is computed for an error, which only matters where something may catch it."""
        for each in parts if self.caught else ():
            if each is not None:
                error = self.value(each, frame)
                self._throw(error, each, frame)
                classes = Value(frozenset(one for one in error.things if isinstance(one, Class)))
                self.call(classes, Call(), each, frame)

    def _throw(self, error: Value, node: ast.expr, frame: Frame) -> None:
        """Take note of what an error holds, of which something that handles it may change any part."""
        held = [error]
        for thing in error.things:
            held += thing.attributes.values() if isinstance(thing, Object) else ()
        if isinstance(node, ast.Call):
            self.quiet += 1
            held += self.given(node, frame).all()
            self.quiet -= 1
        self.fill(self.spaces.thrown, Value(PLAIN.things, shared(held)))

    def _follow_pass(self, node: ast.Pass, frame: Frame) -> None:
        pass

    def _follow_assert(self, node: ast.Assert, frame: Frame) -> None:
        self.test(node.test, frame)
        self._fail((node.msg,), frame)
        self.narrow(node.test, frame, holds=True)

    def _follow_assign(self, node: ast.Assign, frame: Frame) -> None:
        value = self.value(node.value, frame)
        for target in node.targets:
            self.assign(target, value, frame)

    def _follow_annassign(self, node: ast.AnnAssign, frame: Frame) -> None:
        if node.value is not None:
            self.assign(node.target, self.value(node.value, frame), frame)
        else:
            self._locate(node.target, frame)
        if frame.is_of_class:
            self._annotated((node.annotation,), frame)

    def _locate(self, target: ast.expr, frame: Frame) -> tuple[Value, Value]:
        """Follow what holds a target, and under what; of a name nothing is run."""
        held = NEVER if isinstance(target, ast.Name) else self.value(target.value, frame)  # type: ignore[attr-defined]
        return held, self.value(target.slice, frame) if isinstance(target, ast.Subscript) else NEVER

    def _follow_augassign(self, node: ast.AugAssign, frame: Frame) -> None:
        added = self.value(node.value, frame)
        load = _as_load(node.target)
        old = self.value(load, frame)
        of_settings = any(isinstance(each, ModelSetting) for each in old.things)
        is_list = of_settings and (isinstance(node.op, ast.Mult) or not _is_number(added))
        if self.may_change_in_place(old) or is_list:
            self.change(old, node, frame)
            self.mix(old, (added,))
        elif isinstance(node.target, ast.Subscript) or (
            isinstance(node.target, ast.Attribute) and frame.own(node.target.attr) is None
        ):
            self.change(self.quietly(node.target.value, frame), node, frame)
        new = self.combine(node, old, added, frame)
        for thing in old.things:
            if isinstance(thing, Box):
                self.fill(thing, self.item(added))
        self.assign(node.target, Value(new.things, new.roots | old.roots), frame, is_same=True)

    def _follow_delete(self, node: ast.Delete, frame: Frame) -> None:
        for target in node.targets:
            self._delete(target, frame)

    def _delete(self, target: ast.expr, frame: Frame) -> None:
        if isinstance(target, (ast.Tuple, ast.List)):
            for each in target.elts:
                self._delete(each, frame)
        elif isinstance(target, ast.Name):
            self._unbind(target, frame)
        else:
            held, key = self._locate(target, frame)
            if isinstance(target, ast.Attribute):
                self.deleted(held, target.attr, target, frame)
            else:
                self.special(held, _DELETING, target, frame, key)
                self.hashed(key, target, frame)
            self.change(held, target, frame)

    def _unbind(self, name: ast.Name, frame: Frame) -> None:
        home = frame.declared.get(name.id, frame)
        if home is frame:
            frame.names.pop(name.id, None)
        elif home is None or home.outlives:
            self.note(name.id, name, frame, Kind.GLOBAL)

    def _follow_global(self, node: ast.Global, frame: Frame) -> None:
        frame.declared |= dict.fromkeys(node.names, frame.space.frame)

    def _follow_nonlocal(self, node: ast.Nonlocal, frame: Frame) -> None:
        around = list(frame.around())[1:]
        for name in node.names:
            for each in around:
                read(each, name)
                if name in each.names:
                    frame.declared[name] = each
                    break
            else:
                frame.declared[name] = around[-1] if around else None

    def _follow_import(self, node: ast.Import, frame: Frame) -> None:
        for each in node.names:
            module = each.name if each.asname else each.name.partition(".")[0]
            self.bind(each.asname or module, of(Imported(module, 0, None, frame.space)), frame)

    def _follow_importfrom(self, node: ast.ImportFrom, frame: Frame) -> None:
        for each in node.names:
            # What star imports give is only looked up where it is read.
            if each.name != "*":
                imported = Imported(node.module or "", node.level, each.name, frame.space)
                self.bind(each.asname or each.name, of(imported), frame)

    def _follow_functiondef(self, node: ast.FunctionDef | ast.AsyncFunctionDef, frame: Frame) -> None:
        inside = frame if frame is not frame.space.frame else None
        if frame.is_of_class:
            inside = frame.parent if frame.parent is not frame.space.frame else None
        function = Function(node, frame.space, inside, frame.owner if frame.is_of_class else None)
        self.define(function, frame)
        if frame is not frame.space.frame and self.is_first:
            arguments = node.args
            further = [each for each in (arguments.vararg, arguments.kwarg) if each is not None]
            every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, *further]
            self._annotated((*(each.annotation for each in every), node.returns), frame)
        self.bind(node.name, self.decorated(of(function), node.decorator_list, frame), frame)

    def _annotated(self, annotations: Iterable[ast.expr | None], frame: Frame) -> None:
        """Follow annotations, of which those that only name types of other packages do nothing."""
        waiting = [each for each in annotations if each is not None]
        while waiting:
            each = waiting.pop()
            if isinstance(each, (ast.Tuple, ast.List)):
                waiting += each.elts
            elif isinstance(each, ast.BinOp) and isinstance(each.op, ast.BitOr):
                waiting += [each.left, each.right]
            elif isinstance(each, ast.Subscript) and _are_external(self.value(each.value, frame)):
                waiting.append(each.slice)
            else:
                self.value(each, frame)

    _follow_asyncfunctiondef = _follow_functiondef

    def _follow_classdef(self, node: ast.ClassDef, frame: Frame) -> None:
        inside = frame if frame is not frame.space.frame else None
        made = self.class_of(node, frame.space, inside)
        if self.is_first:
            self._define_class(made, frame)
        self.bind(node.name, self.decorated(of(made), node.decorator_list, frame), frame)

    def _define_class(self, kind: Class, frame: Frame) -> None:
        """Follow what is run each time that a class is defined."""
        for each in (*kind.node.bases, *(one.value for one in kind.node.keywords)):
            self._annotated((each,), frame)
        inner = self.frame_of((kind, "defined"), frame.space, frame, kind)
        inner.is_of_class = True
        self.body(kind.node.body, inner)
        self.made_class(kind, frame)

    # -- ways

    def _follow_if(self, node: ast.If, frame: Frame) -> None:
        self.test(node.test, frame)
        decided = self.decide(node.test, frame)
        ways: _Ways = []
        before = dict(frame.names)
        for holds, body in ((True, node.body), (False, node.orelse)):
            if decided in (None, holds):
                frame.names, frame.is_dead = dict(before), False
                self.narrow(node.test, frame, holds=holds)
                self.body(body, frame)
                if not frame.is_dead:
                    ways.append(frame.names)
        frame.merge(ways, is_settled=self._asks_only_for_settings(node.test, frame))

    def _asks_only_for_settings(self, test: ast.expr, frame: Frame) -> bool:
        """Tell whether a test is about settings and literals alone, which are the same in each run."""
        if test not in self.tests:
            self.tests[test] = _called_with_settings(test)
        called = self.tests[test]
        things = (thing for each in called or () for thing in self.quietly(each, frame).things)
        return called is not None and all(
            isinstance(each, External) and each.name in known.FUNCTIONS for each in things
        )

    def _follow_match(self, node: ast.Match, frame: Frame) -> None:
        subject = self.value(node.subject, frame)
        before = dict(frame.names)
        ways: _Ways = [before]
        for case in node.cases:
            frame.names, frame.is_dead = dict(before), False
            self._match(case.pattern, subject, frame)
            if case.guard is not None:
                self.test(case.guard, frame)
                self.narrow(case.guard, frame, holds=True)
            self.body(case.body, frame)
            if not frame.is_dead:
                ways.append(frame.names)
        frame.merge(ways)

    def _match(self, pattern: ast.pattern, subject: Value, frame: Frame) -> None:
        """Follow what Python asks of a subject, and bind the names of a pattern."""
        anything = join((subject, self.item(subject)))
        if isinstance(pattern, ast.MatchValue):
            self.compared(subject, self.value(pattern.value, frame), pattern, frame)
        elif isinstance(pattern, ast.MatchMapping):
            for each in pattern.keys:
                self.value(each, frame)
        elif isinstance(pattern, ast.MatchClass):
            kind = self.value(pattern.cls, frame)
            if pattern.patterns and any(isinstance(each, Class) for each in kind.things):
                self.note("matches by the position of what a class names", pattern, frame)
            anything = join((anything, *self._matched(kind, subject, pattern, frame)))
        if isinstance(pattern, (ast.MatchMapping, ast.MatchSequence, ast.MatchClass)):
            self.ask(subject, pattern, frame)
        name = getattr(pattern, "name", None) or getattr(pattern, "rest", None)
        if isinstance(name, str):
            self.bind(name, anything, frame)
        for inner in ast.iter_child_nodes(pattern):
            if isinstance(inner, ast.pattern):
                is_same = isinstance(pattern, (ast.MatchAs, ast.MatchOr))
                self._match(inner, subject if is_same else anything, frame)

    def _matched(self, kind: Value, subject: Value, pattern: ast.MatchClass, frame: Frame) -> Iterator[Value]:
        """Yield the attributes that a pattern of a class reads."""
        self.instances_asked(kind, pattern, frame)
        self.asked_for_tensor(subject, kind, pattern, frame)
        # Attributes are read of what is of the class, and no tensor is of one that has no base of tensors.
        is_own = all(isinstance(each, Class) and not self.is_special_tensor(each) for each in kind.things)
        objects = frozenset(each for each in subject.things if isinstance(each, (Class, Object)))
        read = Value(objects, subject.roots) if is_own else subject
        for each in pattern.kwd_attrs:
            yield self.attribute(read, each, pattern, frame, is_optional=True)

    def _follow_for(self, node: ast.For, frame: Frame) -> None:
        iterated = self.value(node.iter, frame)

        def begin() -> None:
            self.assign(node.target, self.iterate(iterated, node, frame), frame)

        self._loop(node, frame, begin)

    def _follow_while(self, node: ast.While, frame: Frame) -> None:
        def begin() -> None:
            self.test(node.test, frame)

        self._loop(node, frame, begin)

    def _loop(self, node: ast.For | ast.While, frame: Frame, begin) -> None:  # type: ignore[no-untyped-def]
        entry, left = dict(frame.names), list[dict[str, Value]]()
        for number in range(_ROUNDS):
            before, version, bound = dict(frame.names), self.spaces.version, bindings()
            again: _Ways = []
            frame.loops.append((left, again))
            begin()
            self.body(node.body, frame)
            frame.loops.pop()
            # What was before the loop is no longer so once it begins again.
            ways = [*([before] if number else []), *again, *([] if frame.is_dead else [frame.names])]
            frame.merge(ways)
            if not ways or (frame.names, self.spaces.version, bindings()) == (before, version, bound):
                break
        else:
            self.give_up("has a loop that is too long to follow", node, frame)
        is_never_empty = bool(ways) and self.is_never_empty(entry, frame)
        frame.merge([*([] if is_never_empty else [entry]), *([frame.names] if ways else [])])
        self.body(node.orelse, frame)
        frame.merge([*left, *([] if frame.is_dead else [frame.names])])

    def is_never_empty(self, entry: Mapping[str, Value], frame: Frame) -> bool:
        """Tell whether a loop goes on at least once, that has begun with some names; it may not."""
        return False

    def _follow_break(self, node: ast.Break, frame: Frame) -> None:
        frame.loops[-1][0].append(dict(frame.names))
        frame.is_dead = True

    def _follow_continue(self, node: ast.Continue, frame: Frame) -> None:
        frame.loops[-1][1].append(dict(frame.names))
        frame.is_dead = True

    def _follow_with(self, node: ast.With, frame: Frame) -> None:
        outer = self.unrecorded, self.perhaps_unrecorded
        contexts: list[Value] = []
        for each in node.items:
            context = each.context_expr
            made = self.quietly(context.func if isinstance(context, ast.Call) else context, frame)
            is_switch = switches_gradients(made, context)
            value = made if is_switch else self.value(context, frame)
            made = made if isinstance(context, ast.Call) else value
            recording = records(made, context)
            if recording is Recording.ON:
                self.unrecorded = self.perhaps_unrecorded = 0
            self.unrecorded += recording is Recording.OFF
            self.perhaps_unrecorded += recording is Recording.UNKNOWN
            if not is_switch and not self._is_plain_context(each.context_expr, value, frame):
                self.note("enters a context of which nothing is known", node, frame)
            entered = self.special(value, ("__enter__",), node, frame)
            if each.optional_vars is not None:
                self.assign(each.optional_vars, join((value, entered)), frame)
            contexts.append(value)
        self.body(node.body, frame)
        for value in contexts:
            self.special(value, ("__exit__",), node, frame, _ERROR, _ERROR, _ERROR)
        self.unrecorded, self.perhaps_unrecorded = outer

    def _is_plain_context(self, node: ast.expr, value: Value, frame: Frame) -> bool:
        """Tell whether a context leaves no trace."""
        made = self.quietly(node.func, frame).things if isinstance(node, ast.Call) else value.things
        return bool(made) and all(isinstance(each, External) and each.name in known.CONTEXTS for each in made)

    def _follow_try(self, node: ast.Try, frame: Frame) -> None:
        before = dict(frame.names)
        frame.trails.append([])
        self.caught += bool(node.handlers)
        self.body(node.body, frame)
        self.caught -= bool(node.handlers)
        after = [] if frame.is_dead else [dict(frame.names)]
        # Anything of the body may have been done when it fails.
        failed = join_names([before, frame.names, *frame.trails.pop()])
        for name in [each for each in failed if each.startswith(".") and each not in before]:
            del failed[name]  # An attribute counts only where every way assigns it.
        if after:
            self.body(node.orelse, frame)
        ways: _Ways = [] if frame.is_dead else [dict(frame.names)]
        for handler in node.handlers:
            frame.names, frame.is_dead = dict(failed), False
            types = NEVER if handler.type is None else self.value(handler.type, frame)
            if self.is_running and _may_end_early(node.body) and self._handles_any(types, handler):
                self.note("handles the error by which recomputation ends early", handler, frame)
            if handler.name is not None:
                thrown = self.item(of(self.spaces.thrown))
                self.bind(handler.name, unknown("an error", thrown.roots), frame)
            self.body(handler.body, frame)
            if not frame.is_dead:
                ways.append(frame.names)
        frame.merge(ways)
        was_dead = frame.is_dead
        if node.finalbody:
            if was_dead:
                frame.names, frame.is_dead = dict(failed), False
            self.body(node.finalbody, frame)
            frame.is_dead = frame.is_dead or was_dead
            if self.is_running and _may_end_early(node.body) and _may_leave(node.finalbody):
                self.note("handles the error by which recomputation ends early", node.finalbody[0], frame)

    _follow_trystar = _follow_try

    def _handles_any(self, types: Value, handler: ast.ExceptHandler) -> bool:
        """Tell whether a handler may handle an error that has no other base than ``Exception``."""
        things = {thing for each in self.inside(types) for thing in each.things}
        kinds = things - {each for each in things if isinstance(each, (Fixed, Box))}
        return handler.type is None or any(
            each.name in _ANY_ERROR or each.name not in known.ERRORS
            if isinstance(each, External)
            else not isinstance(each, Class)
            for each in kinds
        )

    # -- targets

    def assign(self, target: ast.expr, value: Value, frame: Frame, *, is_same: bool = False) -> None:
        """Assign a value to a target; ``is_same`` if it is what the target was, changed in place."""
        if isinstance(target, ast.Name):
            self.bind(target.id, value, frame, target)
        elif isinstance(target, ast.Starred):
            box = self.box(target, "list")
            self.fill(box, self.item(value))
            self.assign(target.value, of(box, roots=value.roots), frame)
        elif isinstance(target, (ast.Tuple, ast.List)):
            self.consume(value, target, frame)
            for index, each in enumerate(target.elts):
                starred = any(isinstance(one, ast.Starred) for one in target.elts[: index + 1])
                part = (
                    value if isinstance(each, ast.Starred) else self.item(value, None if starred else index)
                )
                self.assign(each, part, frame)
        elif isinstance(target, ast.Attribute):
            self.put(self.value(target.value, frame), target.attr, value, target, frame)
        elif isinstance(target, ast.Subscript):
            held = self.value(target.value, frame)
            key = self.value(target.slice, frame)
            if isinstance(target.value, ast.Attribute) and target.value.attr in known.TABLES_OF_PARTS:
                for name in sorted(texts(key) or ()):
                    self.set_attribute(self.quietly(target.value.value, frame), name, value, target, frame)
            self.mix(held, (value,))
            self.special(held, _PUTTING, target, frame, key, value)
            self.hashed(key, target, frame)
            taking = (each for each in held.things if not isinstance(each, (Box, Object)))
            if not all(isinstance(each, Constant) for each in (*key.things, *taking)):
                self.ask(value, target, frame)  # It may be put in place of several, item by item.
            if not is_same:
                self.change(held, target, frame)
            for thing in held.things:
                if isinstance(thing, Box):
                    is_part = isinstance(target.slice, ast.Slice)
                    self.fill(thing, self.item(value) if is_part else self.under_any(key, value))

    def bind(self, name: str, value: Value, frame: Frame, node: ast.AST | None = None) -> None:
        """Bind a name, here or where a statement says that it belongs; ``node`` is where."""
        home = frame.declared.get(name, frame)
        if home is None or home is frame:
            frame.give(name, value)
            return
        if home.outlives:
            self.note(name, node, frame, Kind.GLOBAL)
        before, given = home.names.get(name, NEVER), home.given.get(name, NEVER)
        home.give(name, join((before, value)))  # It stays bound where this function fails, too.
        home.given[name] = join((given, home.names[name]))
        note_binding(home, name)
        if home.reading is None and home.names[name] != before:
            self.spaces.begin_epoch()
        elif not home.is_followed and home.given[name] != given:
            self.spaces.version += 1  # While it is followed, all that reads the name compares it.


def join_names(ways: Sequence[dict[str, Value]]) -> dict[str, Value]:
    """Return what names may be on any of the ways."""
    names = {name for way in ways for name in way}
    return {name: join(way[name] for way in ways if name in way) for name in names}


def _is_number(value: Value) -> bool:
    return all(isinstance(each, (Plain, Constant)) for each in value.things)


def _are_external(value: Value) -> bool:
    return all(isinstance(each, External) for each in value.things)


def _may_leave(body: Iterable[ast.stmt]) -> bool:
    """Tell whether statements may leave what is around them other than by an error."""
    return any(isinstance(each, _LEAVING) for one in body for each in (one, *walk_scope(one)))


def _may_end_early(body: Iterable[ast.stmt]) -> bool:
    """Tell whether statements compute something, at which recomputation may end."""
    return any(isinstance(each, (ast.Call, ast.BinOp)) for one in body for each in walk(one))


def _as_load(target: ast.expr) -> ast.expr:
    """Return the expression that reads a target."""
    if isinstance(target, ast.Name):
        return ast.copy_location(ast.Name(target.id, ast.Load()), target)
    if isinstance(target, ast.Attribute):
        return ast.copy_location(ast.Attribute(target.value, target.attr, ast.Load()), target)
    if isinstance(target, ast.Subscript):
        return ast.copy_location(ast.Subscript(target.value, target.slice, ast.Load()), target)
    return target


@cache
def _method_of(kind: str) -> str:
    """Return the name of the method that follows a kind of statement."""
    return f"_follow_{kind.lower()}"


def _called_with_settings(test: ast.expr) -> list[ast.expr] | None:
    """Return what a test calls; None if it may be about more than literals and attributes of ``self``."""
    nodes = list(walk(test))
    called = [each.func for each in nodes if isinstance(each, ast.Call)]
    names = {id(each) for func in called for each in walk(func)}
    bases = {id(each.value) for each in nodes if isinstance(each, ast.Attribute)}
    is_plain = all(
        isinstance(each, _OF_SETTINGS)
        or id(each) in names
        or (isinstance(each, ast.Name) and each.id == "self" and id(each) in bases)
        for each in nodes
    )
    return called if is_plain else None
