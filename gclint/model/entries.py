"""Where code begins that others run: functions and methods, with any arguments."""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Iterable

from gclint.model.frames import Frame
from gclint.model.interpreter import Interpreter
from gclint.model.spaces import Space
from gclint.model.values import Call, Class, Function, Value


class Entries(Interpreter):
    """Follows code of which the callers are not known."""

    @abstractmethod
    def argument(self, node: ast.arg, default: ast.expr | None, frame: Frame) -> Value:
        """Return what any caller may pass to a parameter, also nothing; ``frame`` is around the function."""

    def further(self, node: ast.arg, frame: Frame) -> Value:
        """Return what any caller may pass beyond the other parameters."""
        return self.argument(node, None, frame)

    def run_function(self, function: Function, space: Space) -> None:
        """Follow a function of a module."""
        self.enter(function, self._any_arguments(function), function.node, space.frame)

    def run_methods(self, kind: Class, made: Value, space: Space, names: Iterable[str]) -> None:
        """Follow methods of a class on an object, but not what makes one."""
        for name in names:
            found = self.find(kind, name)
            if found is None or name == "__init__":
                continue
            for each in found[0].things:
                if isinstance(each, Function) and each.owner is not None:
                    call = self._any_arguments(each, made)
                    self.enter(each, call, kind.node, space.frame, owner=found[1])

    def _any_arguments(self, function: Function, receiver: Value | None = None) -> Call:
        arguments = function.node.args
        home = function.frame or function.space.frame
        positional = [*arguments.posonlyargs, *arguments.args]
        without: list[ast.expr | None] = [None] * (len(positional) - len(arguments.defaults))
        defaults = [*without, *arguments.defaults, *arguments.kw_defaults]
        given = list(zip([*positional, *arguments.kwonlyargs], defaults, strict=True))
        own = () if receiver is None else (receiver,)
        named = tuple(
            sorted((each.arg, self.argument(each, default, home)) for each, default in given[len(own) :])
        )
        rest = None if arguments.vararg is None else self.further(arguments.vararg, home)
        options = None if arguments.kwarg is None else self.further(arguments.kwarg, home)
        return Call(own, named, rest, options)
