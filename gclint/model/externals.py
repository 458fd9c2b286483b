"""What functions of other packages do, and what they give."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

from gclint.code.names import names
from gclint.model import known, tensors
from gclint.model.frames import Frame
from gclint.model.gradients import UNRECORDED, gives_integers, is_constant, is_false
from gclint.model.notes import Kind, Root
from gclint.model.objects import ITERATOR
from gclint.model.protocols import CONTAINING, TRUTH
from gclint.model.reading import ANY
from gclint.model.reflection import PARAMETERS, PLAIN_TENSOR, Reflection, shared
from gclint.model.values import (
    CONSTANT,
    NEVER,
    NONE,
    PLAIN,
    TENSOR,
    Bound,
    Box,
    Call,
    Class,
    Constant,
    External,
    Fixed,
    Function,
    Imported,
    Made,
    Method,
    ModelSetting,
    Object,
    Partial,
    Plain,
    Tensor,
    Thing,
    Turn,
    Unknown,
    Value,
    join,
    of,
    unknown,
)

_FIRST_OUTPUT = "last_hidden_state"
"""The field that comes first in every output of the library that has it; the base of them has any order."""
_DEEPEST_PASSED = 2
"""How deeply a function is looked for in what is passed on: ``starmap`` takes items out of items."""
_IN_PLACE = " in place"
_DETACHING = ("torch.autograd.Variable", "torch.autograd.variable.Variable")
"""What gives a tensor that shares the memory of another one, and gets no gradient for it."""
_UNBOUND = (f"{PLAIN_TENSOR}.", "operator.i")
"""How names of functions begin that may change what they get, and are handed to others to be called."""
CHECKPOINTS = (known.CHECKPOINT, "transformers.modeling_utils.checkpoint")
"""The functions that run another one, and once more in the backward pass."""
_PARAMETERS = frozenset(("input", "weight", "bias"))
"""The arguments of what normalises that it never changes."""
_ADDING = names("sum max min abs pow round divmod")
"""Functions of Python that compute with what they get."""
_GIVING_ITERATORS = ("itertools", "itertools.chain")
"""Where functions are that give an iterator over items of what they get."""
_OF_ITERATORS = frozenset(("itertools.tee",))
"""Functions that give iterators inside of something."""
_WRITING = frozenset(("str", "repr", "ascii", "format"))
"""Functions that make texts."""
_SUMS = frozenset(("sum", "operator.add", "operator.mul"))
"""Functions that make something new of tensors, and a list or tuple with the same items of those."""
_SPECIAL = names("partial getattr setattr delattr hasattr vars next deepcopy copy")
"""Functions of which it is known in particular what they give."""
_LOOKING = names("iter isinstance type id callable super hasattr getattr setattr")
"""Functions that call no method of what they get, or only later."""
_NEVER_CALLING = names("isinstance issubclass cast super type id callable hasattr getattr setattr")
"""Functions that neither call what they get nor make an object of it."""
_ASKING = {"len": ("__len__",), "bool": TRUTH, "operator.contains": CONTAINING}
"""Functions that call certain special methods of what they get, and no others."""
_CONSUMING = names("list tuple set dict frozenset sum max min any all sorted reversed")
"""Functions that go over the one thing that they get."""
_HOLDING = frozenset(("list", "tuple"))
"""Those of them that only hold the items."""
_CHOOSING = frozenset(("max", "min"))
"""Functions that give one of what they get, or of its items."""


class Externals(Reflection):
    """Follows calls of functions and modules of other packages."""

    def call_method(self, method: Method, call: Call, node: ast.expr, frame: Frame) -> Value:
        """Return what a method gives whose object is not of the project."""
        raise NotImplementedError

    def _call_external(self, name: str, call: Call, node: ast.expr, frame: Frame) -> Value:
        parent, _, last = name.rpartition(".")
        if parent in ("", "functools", "builtins", "copy") and last in _SPECIAL:
            result: Value = getattr(self, f"_call_{last}")(call, node, frame)
            return result
        if last in ("__init__", "_init_weights") and parent in known.MODULE_BASES:
            return NONE
        if name in known.GENERATORS:
            return of(Made(name))
        if name in known.NEEDING_GRADIENTS:
            return self.deny(call, node, frame, Kind.GRADIENTS)
        if parent in known.DRAWING or name in known.DRAWING:
            return self.deny(call, node, frame, Kind.RANDOM)
        self._look_at(name, call, node, frame)
        if name == "print" and not {each for each, _ in call.named}.isdisjoint(("file", "flush")):
            return self.deny(call, node, frame)  # It calls a method of what it is given.
        if name == "functools.reduce" and len(call.positional) > 1:
            return self._reduced(call, node, frame)
        given = NEVER
        is_calling = name not in CHECKPOINTS and last not in _NEVER_CALLING
        if is_calling and name not in known.MAKERS and parent not in known.TABLES:
            given = self._call_back(call, node, frame)
        if name in self._vouched:
            return of(Made(name)) if last[:1].isupper() else self.tensor(call.all(), shared(call.all()))
        if name in ("torch.vmap", "torch.func.vmap") and call.positional:
            return of(Partial(call.positional[0], (), ()))
        if name in CHECKPOINTS and call.positional:
            return self.call(call.positional[0], Call(call.positional[1:]), node, frame)
        if last == "apply_chunking_to_forward" and len(call.positional) > 3:
            return self.call(call.positional[0], Call(call.positional[3:]), node, frame)
        found = self._made(name, call, node, frame, given)
        if found is None:
            found = self._given(name, call, node)
        if found is None:
            found = self._computed(name, call, node, frame)
        if found is not None:
            return found
        if parent in known.TORCH:
            return self._compute(last, call, node, frame)
        denied = self.deny(call, node, frame, external=name if parent else "")
        return Value(CONSTANT.things, denied.roots) if name.startswith("numpy.") else denied

    def begin_inherited(self, thing: Object, call: Call) -> None:
        """Take note of the settings with which a module of torch is made that a class inherits from."""
        for each in self.line(thing.kind):
            last = each.rpartition(".")[2] if isinstance(each, str) else ""
            if _is_in_place(last, call):
                self._put_attribute(thing, "inplace", PLAIN)
            if _renormalises(last, call):
                self._put_attribute(thing, "max_norm", PLAIN)

    def _look_at(self, name: str, call: Call, node: ast.expr, frame: Frame) -> None:
        """Follow what a function asks of what it gets, and note what it changes by a keyword."""
        out = dict(call.named).get("out")
        if out is not None:
            self._refuse(join(call.all()), node, frame)
            self.change(Value(roots=shared((out,))), node, frame)
            self.mix(out, (TENSOR,))
        for each in call.all():
            if name in _CONSUMING and len(call.positional) == 1:
                self.consume(each, node, frame)
                own = frozenset(one for one in each.things if isinstance(one, Object))
                self.ask(each if name not in _HOLDING else Value(own, each.roots), node, frame)
            elif name in _ASKING:
                self.special(each, _ASKING[name], node, frame)
            elif name not in _LOOKING:
                self.ask(each, node, frame)
        for each in call.positional if name in _WRITING else ():
            self.written(each, node, frame)
        if name in ("isinstance", "issubclass"):
            self.instances_asked(join(call.positional[1:2]), node, frame)
            self.asked_for_tensor(join(call.positional[:1]), join(call.positional[1:2]), node, frame)
        if name == "type" and len(call.positional) == 1:
            self.typed(call.positional[0], node, frame)

    def _made(self, name: str, call: Call, node: ast.expr, frame: Frame, given: Value) -> Value | None:
        """Return the object that a function makes, which may hold what its callbacks have ``given``."""
        parent, _, last = name.rpartition(".")
        if name in known.STACKS or name in known.CONTAINERS:
            found = self._container(name, call, node)
            return self._also_holding(found, given)  # A factory of items, for example.
        if name == "dict.fromkeys":
            for each in call.positional[:1]:
                self.consume(each, node, frame)
            return self.filled(node, "dict", call.positional[1:])
        if name in known.NAMED_TUPLES:
            return of(Made(name))
        if name in known.CACHES and all(map(_may_be_in_cache, call.all())):
            return of(Made(name.removesuffix(".from_legacy_cache")))
        if name in known.OUTPUTS or parent in known.OUTPUTS:
            # Items are the fields that are not None, in the order of the class.
            first = dict(call.named).get(_FIRST_OUTPUT, NONE) if last != "ModelOutput" else NONE
            made = self.led(node, name, self.fields(call), [first] if is_none(first) is False else [])
            loose = (*call.positional, *(each for each in (call.rest, call.options) if each is not None))
            for field, value in (*call.named, *((ANY, each) for each in loose)):
                self.spaces.version += self.box(node, name).name(field, value)
            return made
        if name in _OF_ITERATORS:
            return self.deny(call, node, frame)
        if name in known.ITERATORS or parent in _GIVING_ITERATORS:
            found = self._iterator(name, call, node, frame)
            return found if name in ("map", "filter", "sorted") else self._also_holding(found, given)
        if self.is_plain_module(name):
            runs = any(self._is_callback(thing) for each in call.all() for thing in each.things)
            if runs or _renormalises(last, call):
                return self.deny(call, node, frame)  # It runs what it gets, or changes its weight meanwhile.
            return of(Made(name + _IN_PLACE if _is_in_place(last, call) else name))
        if name in known.LOGGERS:
            return of(Made("logging.Logger"))
        if name in known.MAKERS or parent in known.TABLES:
            return join((of(Made(known.COMPUTING_OBJECT)), *call.positional[1:]))
        return None

    def _given(self, name: str, call: Call, node: ast.expr) -> Value | None:
        """Return what a function gives of what it gets."""
        if name in known.SAME:
            return Value(frozenset(each for one in call.positional[:1] for each in one.things))
        if name in known.GIVING:
            return self._given_back(name, call)
        if name in _ADDING and not is_constant(*call.all()):
            return self.tensor(call.all())
        if name == "type":
            if len(call.all()) == 1:
                return join(map(_class_of, call.all()[0].things))
            return unknown("a class that is put together", shared(call.all()))
        if name in _CHOOSING:
            chosen = call.positional if len(call.positional) > 1 else map(self.item, call.positional)
            return join((PLAIN, *chosen, *(value for word, value in call.named if word == "default")))
        return None

    def _computed(self, name: str, call: Call, node: ast.expr, frame: Frame) -> Value | None:
        """Return what a function computes, be it in place."""
        parent, _, last = name.rpartition(".")
        roots = shared(call.all())
        if name in PARAMETERS:
            is_frozen = is_false(call.argument(1, "requires_grad"))
            return Value((CONSTANT if is_frozen else TENSOR).things, roots)
        if name in _DETACHING:
            return Value(TENSOR.things if _asks_for_grad(call) else CONSTANT.things, roots)
        if name in UNRECORDED:
            return self._unrecorded(name, call, node, frame)
        if name.startswith("numpy."):
            self._refuse(join(call.all()), node, frame)
            # By position, anything behind the first may be where the result goes.
            self.change(Value(roots=shared(call.positional[1:])), node, frame)
        if name in known.ARRAYS:
            return CONSTANT  # Unlike a number, it can be changed in place.
        if name in known.ERRORS:
            error = Value(PLAIN.things, roots)
            self.fill(self.spaces.thrown, error)
            return error
        if name in known.FUNCTIONS:
            return _turn(node) if name == "range" else PLAIN
        if name in known.MASKING:
            mask = call.argument(*known.MASKING[name])  # Of all else, only sizes and types matter.
            return self.tensor(call.all() if mask is None else (mask,), roots)
        if name in known.COMPUTING:
            return self.tensor(call.all(), roots)
        if parent == "torch.nn.init" and draws_with_its_own(call, is_anywhere=True):
            return self.deny(call, node, frame, Kind.GENERATOR)
        if parent == "torch.nn.init":
            for each in _first(call):
                self.change(each, node, frame)
            return join(_first(call))
        if parent == "torch.Tensor" and call.positional:
            receiver = call.positional[0]
            known_as = (
                Tensor(each.is_constant) if isinstance(each, Unknown) else each for each in receiver.things
            )
            method = Method(Value(frozenset(known_as), receiver.roots), last)
            return self.call_method(method, call.without_first(), node, frame)
        return None

    def _unrecorded(self, name: str, call: Call, node: ast.expr, frame: Frame) -> Value:
        """Return what makes a context without gradients, what a function becomes in one, or what it gives."""
        if len(call.positional) > 1:
            self.unrecorded += 1
            try:
                return self.call(call.positional[0], call.without_first(), node, frame)
            finally:
                self.unrecorded -= 1
        return of(Partial(of(External(name)), call.positional, ()) if call.positional else External(name))

    def _compute(self, last: str, call: Call, node: ast.expr, frame: Frame) -> Value:
        """Return what a function of torch gives."""
        roots = shared(call.all())
        if draws_with_its_own(call, is_anywhere=last in known.DRAWING_BY_POSITION):
            return self.deny(call, node, frame, Kind.GENERATOR)
        if last in known.UNREPEATABLE:
            return self.deny(call, node, frame)
        if gives_integers(last, call):
            return CONSTANT
        if gives_several(last, call):
            own = roots if last in tensors.VIEWS else frozenset()
            return self._several(last, self.tensor(call.all(), own), node)
        if last in known.NORMALISING:
            unchanged = (*call.positional[:1], *(each for name, each in call.named if name in _PARAMETERS))
            self.change(
                Value(roots=shared(each for each in call.all() if each not in unchanged)), node, frame
            )
            return self.tensor(call.all())
        if last in tensors.CHANGING and not last.endswith("_"):
            self.change(Value(roots=roots), node, frame)
            self.mix(join(call.all()), call.all())
            return self.tensor(call.all(), roots)
        if _renormalises(last, call):
            self.change(Value(roots=roots), node, frame)
        if last.endswith("_") or _is_in_place(last, call):
            self.change(Value(roots=shared(_first(call))), node, frame)
            self.mix(join(_first(call)), call.all())
            changed = _first(call) if last not in known.SHARING else call.all()
            return self.tensor(call.all(), shared(changed))
        if last in tensors.VIEWS:
            return self.tensor(call.all(), roots)
        if last in tensors.UNDIFFERENTIABLE:
            return TENSOR if _asks_for_grad(call) else CONSTANT
        if last in tensors.FRESH or last in tensors.FUNCTIONAL:
            return TENSOR if _asks_for_grad(call) else self.tensor(call.all())
        return self.deny(call, node, frame)

    def _call_back(self, call: Call, node: ast.expr, frame: Frame, receiver: Value = NEVER) -> Value:
        """Follow functions that are handed to one of another package, and return what they give.

        They may get all else that it gets, the ``receiver`` if it is a method, and what these hold.
        """
        given = call.all()
        called = [
            Value(functions, each.roots)
            for each in given
            if (functions := frozenset(filter(self._is_called_back, each.things)))
        ]
        if not called:
            return NEVER
        passed = [each for each in (*given, receiver) if not any(map(self._is_called_back, each.things))]
        for _ in range(_DEEPEST_PASSED):
            passed += [self.item(each) for each in passed]
        anything = join((of(Unknown("what a function of another package gives", is_argument=True)), *passed))
        tensors_only = Value(
            frozenset(each for each in anything.things if not isinstance(each, (Box, Fixed))), anything.roots
        )
        found = []
        for each in called:
            is_external = all(isinstance(thing, External) for thing in each.things)
            gets = tensors_only if is_external else anything
            found.append(self.call(each, Call((gets,), rest=gets), node, frame))
        return join(found)

    def _is_called_back(self, thing: Thing) -> bool:
        return self._is_callback(thing)

    def _is_callback(self, thing: Thing) -> bool:
        return (
            isinstance(thing, (Function, Bound, Partial, Method, Class))
            or (isinstance(thing, Object) and self.find(thing.kind, "__call__") is not None)
            or (isinstance(thing, External) and thing.name.startswith(_UNBOUND))
        )

    def _given_back(self, name: str, call: Call) -> Value:
        """Return what a function may give that gives arguments or items of them, or adds some."""
        given = [
            Value(frozenset(one for one in each.things if not _is_number(one)), each.roots)
            for each in call.all()
            if not all(map(_is_number, each.things))
        ]
        items = [self.item(each) for each in given if any(map(_has_items, each.things))]
        added = () if is_constant(*given, *items) else (self.tensor((*given, *items)),)
        several = [*given, *items]
        if name in _SUMS:  # Tensors are added to a new one; the items of lists go into a new one.
            several = [*items, *call.positional[1:]] if name == "sum" else given
            piles = (
                frozenset(one for one in each.things if isinstance(one, (Box, Fixed))) for each in several
            )
            several = [Value(pile, each.roots) for pile, each in zip(piles, several, strict=True) if pile]
        return join((PLAIN, *several, *added))

    def _also_holding(self, container: Value, items: Value) -> Value:
        """Put more into containers, and return them."""
        for thing in container.things if items.things else ():
            if isinstance(thing, Box):
                self.fill(thing, items)
        return container

    def _container(self, name: str, call: Call, node: ast.expr) -> Value:
        takes_each = name in ("torch.nn.Sequential",)
        if takes_each and call.positional and not any(map(_is_table, call.positional)) and call.rest is None:
            return self.led(node, name, (), call.positional)
        is_new = (node, name) not in self.spaces.boxes
        box = self.box(node, name)
        roots: set[Root] = set()
        for value in (*call.positional, *(each for _, each in call.named)):
            is_pile = any(isinstance(each, (Box, Fixed, Unknown, ModelSetting)) for each in value.things)
            inside = self.item(value) if is_pile and not (takes_each and _is_module(value)) else value
            if name.endswith(("Sequential", "Dict")) or name == "dict":
                inside = _second(inside)
            self.fill(box, inside)
            roots |= inside.roots
        for each in (call.rest, call.options):
            if each is not None:
                self.fill(box, each)
        if name == "tuple":
            self.lead(box, _first_taken(call, node), is_new=is_new)
        return of(box)

    def fields(self, call: Call) -> Sequence[Value]:
        """Return what an object holds that is made with some arguments."""
        return call.all()

    def filled(self, node: ast.AST, kind: str, values: Iterable[Value]) -> Value:
        """Return the container that is made at a place, with these among its items."""
        box = self.box(node, kind)
        for each in values:
            self.fill(box, each)
        return of(box)

    def _reduced(self, call: Call, node: ast.expr, frame: Frame) -> Value:
        item = self.iterate(call.positional[1], node, frame)
        value = join(call.positional[2:3] or (item,))
        for _ in range(3):
            value = join((value, self.call(call.positional[0], Call((value, item)), node, frame)))
        return value

    def _iterator(self, name: str, call: Call, node: ast.expr, frame: Frame) -> Value:
        items = [self.iterate(each, node, frame) for each in call.positional]
        if call.rest is not None:
            items.append(self.item(call.rest))
        if name in ("map", "filter") and len(items) > 1:
            result = self.call(call.positional[0], Call(tuple(items[1:])), node, frame)
            if name == "filter":
                self.special(join((result, items[1])), TRUTH, node, frame)
            items = [result if name == "map" else items[1]]
        elif name == "enumerate":
            items = [of(Fixed((_turn(node), *items[:1])))]
        elif name == "zip":
            items = [of(Fixed(tuple(items)))]
        elif name.endswith(".from_iterable"):
            items = [self.iterate(each, node, frame) for each in items]
        box = self.box(node, "list" if name == "sorted" else ITERATOR)
        for each in items:
            self.fill(box, each)
        return of(box)

    def _call_made(self, name: str, call: Call, node: ast.expr, frame: Frame) -> Value:
        """Return what an object of another package gives when it is called."""
        # What attention gets of a module are its settings.
        is_module = name == known.COMPUTING_OBJECT
        roots = shared(each for each in call.all() if not (is_module and _are_objects(each)))
        if name in self._vouched:
            return self.tensor((TENSOR,), roots)
        if name in known.NAMED_TUPLES:
            self.spaces.version += self.box(node, "tuple").name(ANY, join(call.all()))
            return self.filled(node, "tuple", call.all())
        if name.endswith(_IN_PLACE):
            for each in _first(call):
                self.change(each, node, frame)
        elif name not in known.MODULES and name != known.COMPUTING_OBJECT:
            return self.deny(call, node, frame, external=name)
        if name == known.COMPUTING_OBJECT and not call.all():
            return of(Made(name))  # It may also have been the class.
        is_same = name == known.COMPUTING_OBJECT or name.endswith(_IN_PLACE) or _is_handing_on(name)
        result = self.tensor(call.all() if is_same else (TENSOR,), roots if is_same else ())
        if name.endswith(("LSTM", "GRU", "RNN")):
            return of(Fixed((result, of(Fixed((result, result))))))
        if name == known.COMPUTING_OBJECT or name.endswith("MultiheadAttention"):
            return join((result, of(Fixed((result, result)))))
        return result

    def _several(self, name: str, value: Value, node: ast.expr) -> Value:
        """Return what an operation gives that gives more than one tensor."""
        if name in tensors.WITH_INDICES or name in tensors.FUNCTIONAL:
            return of(Fixed((value, CONSTANT)))
        return of(self._pieces(node, value), roots=value.roots)

    def _pieces(self, node: ast.expr, value: Value) -> Box:
        box = self.box(node, "tuple")
        self.fill(box, value)
        return box


def _class_of(thing: Thing) -> Value:
    """Return what ``type`` gives."""
    if isinstance(thing, Object):
        return of(thing.kind)
    if isinstance(thing, Unknown) and thing.is_argument:
        return of(External(PLAIN_TENSOR), Plain())
    return of(External(PLAIN_TENSOR)) if isinstance(thing, Tensor) else PLAIN


def _turn(node: ast.expr) -> Value:
    """Return the number of a turn of what goes over the result of a call."""
    return of(Turn(node)) if isinstance(node, ast.Call) else PLAIN


def _first(call: Call) -> tuple[Value, ...]:
    """Return the first argument of a call; all of them if none is passed by position."""
    return call.positional[:1] or call.all()


def gives_several(name: str, call: Call, first: int = 1) -> bool:
    """Tell whether an operation gives more than one tensor.

    Args:
        name: the last part of its name.
        call: what it gets.
        first: the position of its first argument behind the tensor.
    """
    named = dict(call.named)
    along = call.positional[first] if len(call.positional) > first else named.get("dim")
    if name.startswith("atleast_") and along is None:
        return False  # Of one tensor it gives one.
    if name in known.PAIRS_ALONG:  # Of two tensors it gives the larger or smaller values.
        return along is not None and not all(isinstance(each, Tensor) for each in along.things)
    return name in known.PAIRS or not is_false(named.get("return_indices", of(Constant(False))))


def _is_in_place(name: str, call: Call) -> bool:
    """Tell whether a function or module may be told to change what it gets."""
    given = dict(call.named).get("inplace")
    if given is None and name in known.IN_PLACE_AT:
        given = call.argument(known.IN_PLACE_AT[name]) or call.rest or call.options
    return given is not None and any(
        not (isinstance(each, Constant) and each.value is False) for each in given.things
    )


def _are_objects(value: Value) -> bool:
    """Tell whether a value is an object of the project, and nothing else."""
    return bool(value.things) and all(isinstance(each, Object) for each in value.things)


def _renormalises(name: str, call: Call) -> bool:
    """Tell whether a function or module may be told to change its weight where it looks something up."""
    if name not in known.RENORMALISING_AT:
        return False
    given = dict(call.named).get("max_norm") or call.argument(known.RENORMALISING_AT[name])
    given = given or call.rest or call.options
    return given is not None and given.things != NONE.things


def _is_handing_on(name: str) -> bool:
    """Tell whether a module of torch may give what it gets."""
    last = name.rpartition(".")[2]
    return "Dropout" in last or last in ("Identity", "Flatten", "Unflatten")


def _may_be_in_cache(value: Value) -> bool:
    """Tell whether a cache that is made of something is still one: nothing that is computed here is in it."""
    return is_constant(value) or all(
        isinstance(each, (Constant, Made)) or (isinstance(each, Unknown) and each.is_argument)
        for each in value.things
    )


def draws_with_its_own(call: Call, *, is_anywhere: bool = False) -> bool:
    """Tell whether an operation may get a generator of random numbers, whose state nobody restores.

    It takes one by its name alone, or also by its place if it ``is_anywhere``.
    """
    given = dict(call.named).get("generator", call.options) or NEVER
    others = join(call.all() if is_anywhere else ()).things
    return any(isinstance(each, Unknown) and not each.is_argument for each in others) or not all(
        isinstance(each, (Plain, Constant, ModelSetting)) for each in given.things
    )


def _asks_for_grad(call: Call) -> bool:
    """Tell whether a new tensor may be one that requires grad."""
    given = dict(call.named).get("requires_grad", call.options)
    return given is not None and any(
        not (isinstance(each, Constant) and each.value is False) for each in given.things
    )


def _is_module(value: Value) -> bool:
    return any(
        isinstance(each, (Object, Made)) or (isinstance(each, Box) and "nn." in each.kind)
        for each in value.things
    )


def _is_number(thing: Thing) -> bool:
    """Tell whether something is a number, a text or the like, or may be one of the numbers of a type."""
    if isinstance(thing, Method):
        return all(map(_is_number, thing.receiver.things))
    return isinstance(thing, (Plain, Constant, ModelSetting, External))


def _has_items(thing: Thing) -> bool:
    """Tell whether something may be a container, or a tensor, of which the first items may be taken."""
    return isinstance(thing, (Fixed, Box, Unknown, Tensor))


def _is_table(value: Value) -> bool:
    """Tell whether a value may hold modules, and not be one."""
    return any(
        isinstance(each, (Fixed, ModelSetting)) or (isinstance(each, Box) and "nn." not in each.kind)
        for each in value.things
    )


def _first_taken(call: Call, node: ast.expr) -> tuple[Value, ...]:
    """Return what comes first in a tuple of what is given; nothing if that may have lost some items."""
    given = call.positional[0] if call.positional else NEVER
    is_new = isinstance(node, ast.Call) and any(isinstance(each, ast.GeneratorExp) for each in node.args[:1])
    may_be_used = any(isinstance(each, Box) and each.kind == ITERATOR for each in given.things)
    return () if may_be_used and not is_new else front(given)[0]


def is_none(value: Value) -> bool | None:
    """Tell whether a value is None; None if it may be."""
    if not value.things:
        return None
    if all(isinstance(each, Constant) and each.value is None for each in value.things):
        return True
    may_be = any(
        isinstance(each, (Unknown, ModelSetting, Plain, Imported))
        or (isinstance(each, Constant) and each.value is None)
        for each in value.things
    )
    return None if may_be else False


def front(value: Value) -> tuple[tuple[Value, ...], bool]:
    """Return the items that are known to be in front, and whether they are all."""
    ways: list[tuple[tuple[Value, ...], bool]] = []
    for each in value.things:
        if isinstance(each, Fixed):
            ways.append((each.items, True))
        elif isinstance(each, Box) and each.kind in ("tuple", ITERATOR):
            ways.append((each.first, False))
        elif not isinstance(each, (Tensor, Constant)):  # These are in no container's place.
            return (), False
    items = map(join, zip(*(one for one, _ in ways), strict=False))
    first = tuple(Value(each.things, each.roots | value.roots) for each in items)
    return first, all(is_all and len(one) == len(first) for one, is_all in ways)


def _second(value: Value) -> Value:
    """Return the values of what may be pairs of names and values."""
    parts = [
        each.items[1]
        if isinstance(each, Fixed) and len(each.items) == 2
        else Value(frozenset((each,)), value.roots)
        for each in value.things
    ]
    return join(parts)
