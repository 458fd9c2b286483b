"""Follows functions and methods whose code is at hand."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from gclint.code.walk import FunctionNode, dotted_name, walk
from gclint.model import known
from gclint.network.cacheless.asking import is_known
from gclint.network.cacheless.empty import EmptyCaches
from gclint.network.cacheless.items import Arguments
from gclint.network.cacheless.state import Dead, Exit, TermFrame
from gclint.network.cacheless.terms import Part, Term, Terms
from gclint.network.evaluation.classes import ClassInfo
from gclint.network.evaluation.modules import ModuleInfo
from gclint.network.evaluation.signature import ParameterKind, listed_parameters
from gclint.network.evaluation.values import EvaluatedExternal, Instance
from gclint.verify.worker.vocabulary import USE_CACHE

_DEEPEST = 12
_DECORATORS = known.DECORATORS | {"staticmethod", "property", "cached_property"}


class Functions(EmptyCaches):
    """Follows the bodies of functions."""

    def __init__(self, terms: Terms) -> None:
        """Start before anything is defined."""
        super().__init__(terms)
        self.functions: dict[Term, tuple[FunctionNode | ast.Lambda, TermFrame]] = {}
        """What functions define, with where they do so."""

    def known_frames(self) -> Iterable[TermFrame]:
        """Return the functions that are being followed, and those in which others are defined."""
        found = dict.fromkeys(self.frames)
        for _, frame in self.functions.values():
            around: TermFrame | None = frame
            while around is not None:
                found[around] = None
                around = around.parent
        return found

    def call_super(self, name: str, given: Arguments) -> Term:
        """Follow a method of the next base."""
        frame = self.frame
        receiver = next(iter(frame.names.values()), self.terms.none)
        kinds = [each.info for each in self.kinds_of(receiver) if isinstance(each, Instance)]
        for info in kinds:
            line = info.mro
            behind = line[line.index(frame.owner) + 1 :] if frame.owner in line else ()
            for base in behind:
                method = base.definition.method(name)
                if method is not None:
                    inner = TermFrame(base.module, base)
                    whole = given._replace(positional=(receiver, *given.positional))
                    return self.enter_function(method.function, inner, whole, receiver)
        return self.unknown(self.terms("super", receiver, name), given)

    def run_method(self, info: ClassInfo, name: str, receiver: Term, given: Arguments) -> Term:
        """Follow a method of an object."""
        found = info.find_method(name)
        if found is None:
            return self.unknown(self.terms("method", receiver, name), given)
        owner, method = found
        self.kinds.setdefault(receiver, frozenset((Instance(info),)))
        is_static = any(dotted_name(each) == "staticmethod" for each in method.function.decorator_list)
        whole = given if is_static else given._replace(positional=(receiver, *given.positional))
        return self.enter_function(method.function, TermFrame(owner.module, owner), whole, receiver)

    def unknown(self, function: Term, given: Arguments) -> Term:
        """Return what something gives that is not known, and may do anything with what it gets."""
        self.count()
        if self.is_of_table(function):  # These take more options than they use.
            given = given._replace(named=tuple(each for each in given.named if each[0] != USE_CACHE))
        captured = tuple(self._captured(each) for each in (*given.positional, *dict(given.named).values()))
        return self.do(self.terms("call", function, given, captured, self.log))

    def _captured(self, term: Term) -> tuple[Part, ...]:
        """Return what a function of its own reads of what is around it."""
        if term not in self.functions:
            return ()
        node, frame = self.functions[term]
        read = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
        return tuple(sorted((name, frame.names[name]) for name in read & frame.names.keys()))

    def function(self, node: FunctionNode | ast.Lambda) -> Term:
        """Return a function that is defined here."""
        defaults = tuple(
            (parameter.arg, self.value(default))
            for parameter, _, default in listed_parameters(node.args)
            if default is not None
        )
        found = self.terms("function", self.place(node), defaults)
        self.functions[found] = node, self.frame
        return found

    def _defaults(self, function: Term, given: Arguments) -> Iterator[tuple[str, Term]]:
        """Yield what parameters are that a call of a function leaves out, as its definition computed them."""
        node, _ = self.functions[function]
        by_position = [each.arg for each in (*node.args.posonlyargs, *node.args.args)][
            : len(given.positional)
        ]
        for name, value in function.args[1]:  # type: ignore[union-attr]
            if name not in by_position:
                yield name, value

    def enter_local(self, function: Term, given: Arguments) -> Term:
        """Follow a function that was defined in another one."""
        node, around = self.functions[function]
        given = given._replace(
            named=tuple({**dict(self._defaults(function, given)), **dict(given.named)}.items())
        )
        return self.enter_function(node, TermFrame(around.module, around.owner, around), given, function)

    def enter_function(
        self, node: FunctionNode | ast.Lambda, frame: TermFrame, given: Arguments, function: Term
    ) -> Term:
        """Follow a function, and return what it gives."""
        if (
            len(self.frames) > _DEEPEST
            or not self._is_plain(node, frame.module)
            or not self._bound(node, frame, given)
        ):
            return self.unknown(self.terms("unfollowed", node, function), given)
        return self.followed(node, frame)

    def followed(self, node: FunctionNode | ast.Lambda, frame: TermFrame) -> Term:
        """Follow a function whose parameters are bound, and return what it gives."""
        self.frames.append(frame)
        path = self.path
        try:
            if isinstance(node, ast.Lambda):
                frame.exits.append(Exit(self.path, self.value(node.body), self.state()))
            else:
                self.body(node.body)
                frame.exits.append(Exit(self.path, self.terms.none, self.state()))
        except Dead:
            pass
        finally:
            self.frames.pop()
            self.path = path
        if not frame.exits:
            raise Dead
        whole = self.folded(frame.exits, path)
        self.enter(whole.state)
        return self.settle(whole.value)

    @staticmethod
    def _is_plain(node: FunctionNode | ast.Lambda, module: ModuleInfo) -> bool:
        """Tell whether a function is what it is written as, and runs when it is called."""
        if isinstance(node, ast.Lambda):
            return True
        for each in node.decorator_list:
            name = dotted_name(each.func if isinstance(each, ast.Call) else each) or ""
            found = module.resolve(name) or (EvaluatedExternal(name),)
            if not all(
                isinstance(one, EvaluatedExternal) and is_known(one.name, _DECORATORS) for one in found
            ):
                return False
        return not _runs_later(node, module)

    def _bound(self, node: FunctionNode | ast.Lambda, frame: TermFrame, given: Arguments) -> bool:
        """Bind arguments to parameters; tell whether that is possible."""
        if any(each.op == "unpacked" for each in given.positional):
            return False
        waiting, named = list(given.positional), dict(given.named)
        for parameter, kind, default in listed_parameters(node.args):
            name = parameter.arg
            if kind is ParameterKind.VAR_POSITIONAL:
                frame.names[name], waiting = self.terms("tuple", tuple(waiting)), []
            elif kind is ParameterKind.VAR_KEYWORD:
                frame.names[name] = self.terms("dict", self.place(node), given.rest, tuple(named.items()))
                named = {}
            elif waiting and kind is not ParameterKind.KEYWORD_ONLY:
                frame.names[name] = waiting.pop(0)
            elif name in named:
                frame.names[name] = named.pop(name)
            elif given.rest:
                frame.names[name] = self.terms("option", given.rest, name, node)
            elif isinstance(default, ast.Constant):
                frame.names[name] = self.terms.constant(default.value)
            elif default is not None:
                frame.names[name] = self.terms("default", node, name)
            else:
                return False
        return not waiting and not named


def _runs_later(node: FunctionNode, module: ModuleInfo) -> bool:
    """Tell whether a function is a generator or a coroutine."""
    tree = module.file.tree
    facts: dict[object, object] = {} if tree is None else tree.facts
    key = (_runs_later, node)
    if key not in facts:
        facts[key] = any(isinstance(each, (ast.Yield, ast.YieldFrom, ast.Await)) for each in walk(node))
    return bool(facts[key])
