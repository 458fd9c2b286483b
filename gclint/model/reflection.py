"""What is done by Python's own functions that read, set and copy what they are given."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from gclint.model.frames import Frame
from gclint.model.gradients import is_constant
from gclint.model.notes import Kind, Root, quoted
from gclint.model.protocols import Protocols
from gclint.model.reading import ANY
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
    Made,
    Method,
    ModelSetting,
    Object,
    Partial,
    Plain,
    Tensor,
    Thing,
    Unknown,
    Value,
    join,
    of,
)

_MOST_PARTIALS = 3
"""How many partials in each other are followed: each may call what it gets twice."""
PARAMETERS = ("torch.nn.Parameter", "torch.nn.Buffer", "torch.nn.parameter.Parameter")
"""What registers a tensor with a module that it is assigned to."""
PLAIN_TENSOR = "torch.Tensor"
_COPYING = (
    *("__copy__", "__deepcopy__", "__reduce__", "__reduce_ex__", "__getstate__", "__setstate__"),
    *("__getnewargs__", "__getnewargs_ex__", "__getattr__"),
)
WITHOUT_PARTS = (Plain, Constant, ModelSetting, Function, Class, External)


class Reflection(Protocols):
    """Follows calls of functions that look into objects, and denies what is not known."""

    @property
    def _vouched(self) -> tuple[str, ...]:
        """The functions and modules of other packages that change nothing, by the word of the user."""
        return self.spaces.project.settings.pure_functions

    def deny(
        self, call: Call, node: ast.expr, frame: Frame, kind: Kind = Kind.UNKNOWN, external: str = ""
    ) -> Value:
        """Note that nothing but a kind is known of what a call does, and return what it may give.

        Args:
            call: the arguments.
            node: the call.
            frame: where it is made.
            kind: what is known.
            external: the dotted name of what is called, if that is of another package.
        """
        name = called_name(node)
        what = f"calls `{name}`, of which nothing is known" if kind is Kind.UNKNOWN else name
        if external and kind is Kind.UNKNOWN:
            what += f", unless `--pure-functions {external}` says that it changes nothing"
        self.note(what, node, frame, kind)
        if not self.is_running and any(map(self._is_made, call.all())):
            self.hook(frame)
        for value in call.all():
            for thing in value.things:
                if isinstance(thing, Object):
                    self.spoil(thing, f"`{name}`")
                    frame.age({(thing, ANY)})
        maker = external if external.rpartition(".")[2][:1].isupper() else ""
        return of(Unknown(f"what `{name}` gives", maker=maker), roots=shared(call.all()))

    def _is_made(self, value: Value) -> bool:
        """Tell whether a value may be a module of torch."""
        return any(isinstance(each, Made) and self.is_plain_module(each.name) for each in value.things)

    def _call_partial(self, call: Call, node: ast.expr, frame: Frame) -> Value:
        if not call.positional or call.rest is not None or call.options is not None:
            return self.deny(call, node, frame)
        if _partials(call) >= _MOST_PARTIALS:  # What is wrapped again and again has no end.
            return self.deny(call, node, frame)
        return of(Partial(call.positional[0], call.positional[1:], call.named))

    def _call_getattr(self, call: Call, node: ast.expr, frame: Frame) -> Value:
        if len(call.positional) < 2:
            return self.deny(call, node, frame)
        names = texts(call.positional[1])
        default = call.positional[2:3]
        self.name_used(names, call.positional[0], node)
        if names is not None:
            found = [
                self.attribute(call.positional[0], name, node, frame, is_optional=bool(default))
                for name in sorted(names)
            ]
            return join((*found, *default))
        if all(isinstance(each, ModelSetting) for each in call.positional[0].things):
            return join((call.positional[0], *default))
        denied = self.deny(call, node, frame)
        tensors_only = frozenset(each for each in call.positional[0].things if isinstance(each, Tensor))
        if not tensors_only:
            return denied
        detach = of(Method(Value(tensors_only, call.positional[0].roots), "detach"))
        return join((denied, detach))  # It may be the method that lets go of the gradient.

    def set_by_name(self, call: Call, node: ast.expr, frame: Frame, *, is_raw: bool = False) -> Value:
        """Assign an attribute whose name is given as a text; the arguments are those of ``setattr``.

        It is ``is_raw`` if a ``__setattr__`` of the object's class has already been called.
        """
        if len(call.positional) == 3:
            names = texts(call.positional[1])
            if names is not None:
                self.spaces.targets.setdefault(node, set())
                for name in sorted(names):
                    if is_raw:
                        self.set_attribute(call.positional[0], name, call.positional[2], node, frame)
                    else:
                        self.put(call.positional[0], name, call.positional[2], node, frame)
                return NONE
            self.record(call.positional[0], node)
        return self.deny(call, node, frame)

    _call_setattr = set_by_name

    def _call_delattr(self, call: Call, node: ast.expr, frame: Frame) -> Value:
        for value in call.positional[:1]:
            for name in (texts(join(call.positional[1:2])) or ()) if len(call.positional) == 2 else ():
                self.deleted(value, name, node, frame)
        return self.deny(call, node, frame)

    def _call_hasattr(self, call: Call, node: ast.expr, frame: Frame) -> Value:
        for name in texts(join(call.positional[1:2])) or ():
            self.has_attribute(call.positional[0], name, node, frame)
        return PLAIN

    def _call_vars(self, call: Call, node: ast.expr, frame: Frame) -> Value:
        for each in call.positional:
            self.record(each, node)
        return self.deny(call, node, frame)

    def _call_next(self, call: Call, node: ast.expr, frame: Frame) -> Value:
        if not call.positional:
            return self.deny(call, node, frame)
        self.change(call.positional[0], node, frame)
        given = self.special(call.positional[0], ("__next__",), node, frame)
        return join((self.item(call.positional[0]), given, *call.positional[1:]))

    def asked_for_tensor(self, asked: Value, kinds: Value, node: ast.AST, frame: Frame) -> None:
        """Note what asks for a kind of tensors of its own, of which recomputation may see a plain copy."""
        asked_for = (each for one in self.inside(kinds) for each in one.things)
        if any(map(self.is_special_tensor, asked_for)):
            self.typed(asked, node, frame)

    def is_special_tensor(self, kind: Thing) -> bool:
        """Tell whether a class may be one of tensors, and not that of all tensors."""
        if isinstance(kind, Class):
            return any(not isinstance(each, Class) and self._is_tensor(each) for each in self.line(kind))
        if isinstance(kind, External):
            return kind.name in PARAMETERS or (kind.name != PLAIN_TENSOR and self._is_tensor(kind.name))
        return isinstance(kind, Unknown)

    @staticmethod
    def _is_tensor(base: str | None) -> bool:
        return base is None or base.endswith("Tensor") or base in PARAMETERS

    def _refuse(self, value: Value, node: ast.expr, frame: Frame) -> None:
        """Note what raises an error for a tensor that requires grad, where that is handled."""
        if self.caught and not is_constant(value):
            self.note(called_name(node), node, frame, Kind.GRADIENTS)

    def _call_deepcopy(self, call: Call, node: ast.expr, frame: Frame) -> Value:
        self._refuse(join(call.positional[:1]), node, frame)
        for each in call.all():
            for inside in self.inside(each, is_deep=True):
                self.special(inside, _COPYING, node, frame, PLAIN)
        return Value(call.positional[0].things) if call.positional else NEVER

    def _call_copy(self, call: Call, node: ast.expr, frame: Frame) -> Value:
        given = call.positional[0] if call.positional else NEVER
        for inside in self.inside(given):
            self.special(inside, _COPYING, node, frame, PLAIN)
        is_flat = all(isinstance(each, ModelSetting) for each in given.things)
        return Value(given.things) if is_flat else given  # What it holds is that of the original.


def _partials(call: Call) -> int:
    """Return how many partials are in each other in what a call passes."""
    return max(
        (
            1 + _partials(Call((each.function, *each.positional), each.named))
            for value in call.all()
            for each in value.things
            if isinstance(each, Partial)
        ),
        default=0,
    )


def shared(values: Iterable[Value]) -> frozenset[Root]:
    """Return what a change of something would change that shares memory with all of these values."""
    found: set[Root] = set()
    seen: set[int] = set()  # It would take longer to make it by its generic type.
    waiting = list(values)
    while waiting:
        value = waiting.pop()
        if not all(isinstance(each, WITHOUT_PARTS) for each in value.things):
            found |= value.roots
        for thing in value.things:
            if isinstance(thing, Fixed):
                waiting += thing.items
            elif isinstance(thing, Box) and id(thing) not in seen:
                seen.add(id(thing))
                waiting.append(thing.item)
    return frozenset(found)


def called_name(node: ast.AST) -> str:
    """Return what is called, as it is written."""
    return quoted(node.func if isinstance(node, ast.Call) else node)
