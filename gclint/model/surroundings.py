"""What the code around blocks does that is not the same once they are recomputed.

A block that is recomputed reads what it was given once more, in the backward pass, and its own state. So
nothing may change that in place in between, wherever it stands and by whatever name; nor may a block stand
where its recomputation does not, or get what reentrant checkpointing cannot look into.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple, TypeAlias

from gclint.code.file import SourceFile
from gclint.code.names import names
from gclint.code.walk import alternatives, assigned, last_name, text_of, walk
from gclint.model import known, tensors
from gclint.model.asking import LAYER, OF_LAYERS
from gclint.model.frames import Frame
from gclint.model.freezing import Freezing, closed_over, objects_among
from gclint.model.gradients import is_constant
from gclint.model.notes import Kind, Root, quoted
from gclint.model.objects import ITERATOR
from gclint.model.reading import ANY
from gclint.model.reflection import shared
from gclint.model.roots import (
    AS_VIEW,
    REST,
    VIEW,
    aged,
    is_view,
    of_any_age,
    own,
    told_apart,
    with_other_roots,
    without_roots,
)
from gclint.model.spaces import Spaces
from gclint.model.texts import texts
from gclint.model.values import (
    NEVER,
    OF_SETTINGS,
    OWN,
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
    Made,
    Method,
    ModelSetting,
    Object,
    Partial,
    Plain,
    Super,
    Tensor,
    Thing,
    Unknown,
    Value,
    join,
    of,
    with_roots,
)

_HELD = "what is held by"
"""How names of variables begin, which no code can have, whose roots are those of what blocks were given."""
_HOLDER = Root(Kind.STATE, "what may hold the block")
"""Stands for what something unknown has made of the block, or of what that holds, such as an optimizer."""
_HELD_FOR_A_STEP = 10
"""How many values that are held take as long as a step."""
_MAKING = (
    ast.Call,
    ast.BinOp,
    ast.UnaryOp,
    ast.Compare,
    ast.List,
    ast.Set,
    ast.Dict,
    ast.ListComp,
    ast.SetComp,
    ast.DictComp,
    ast.GeneratorExp,
)
"""Expressions that may make something new."""
_NAMING = (ast.Name, ast.Attribute, ast.Subscript)
"""Expressions for something that was made before."""
_RUNNING = names(
    """
    functools.partial functools.reduce map filter sorted min max operator.methodcaller
    torch.utils.checkpoint.checkpoint
    transformers.modeling_utils.checkpoint transformers.pytorch_utils.apply_chunking_to_forward
    transformers.modeling_utils.apply_chunking_to_forward
    """
)
"""Functions that only call what they are given."""
_REACHING_ALL = names(
    "exec eval locals sys._getframe sys.exc_info gc.get_objects gc.get_referrers gc.get_referents"
)
"""Functions by which code may change whatever has a name, or is held by something."""
_DIFFERENTIATING = names("torch.autograd.grad torch.autograd.backward")
_PART = Made(known.PART)
_TRANSFORMS = names(
    """
    torch.func.grad torch.func.grad_and_value torch.func.vjp torch.func.jvp torch.func.jacrev
    torch.func.jacfwd torch.func.hessian
    """
)
"""Functions that make functions of functions, and set nothing."""
_MAPPING = names("torch.vmap torch.func.vmap")
"""Functions that are followed as what they are given, which they run inside of a transform."""
_ENTERING_ALL = names("transformers.utils.ContextManagers transformers.utils.generic.ContextManagers")
"""Contexts that enter all contexts of a list."""
OF_TYPES = frozenset(("__base__", "__bases__", "__mro__", "mro", "__subclasses__"))
"""The attributes of a class that tell its bases, or are told by them."""
_OF_FUNCTIONS = names("__code__ __defaults__ __kwdefaults__ __closure__ __globals__ __wrapped__ __func__")
"""What tells a function from what wraps it, as releases from 5.23 do with ``forward``, or changes it."""
_ASKING_ALIKE = names(
    """
    inspect.signature inspect.isclass inspect.iscoroutinefunction inspect.isfunction inspect.isgenerator
    inspect.ismethod inspect.ismodule inspect.Parameter inspect.unwrap
    """
)
"""What blocks may ask, since a checkpointing layer answers it as any other module does."""
_TELLING = names("grad_fn output_nr")
"""The attributes of a tensor that tell what has computed it, which is a checkpoint then."""
_TELLING_OF_SEVERAL = names("requires_grad is_leaf")
"""The attributes that tell whether it requires grad: all that a reentrant checkpoint returns does."""
_ASKING = names("dir getattr hasattr isinstance issubclass type")


class Matter(str, Enum):
    """What is the matter with the code around a block."""

    CHANGED = "changes in place what blocks were given, or are"
    HANDED = "gives something unknown what blocks were given"
    REMADE = "gives something unknown a part of a block where the model is made"
    WITHIN = "runs a block where its recomputation is not"
    CONSTANT = "may give a block nothing that requires grad"
    USED_UP = "gives a block an iterator"
    CAPTURED = "gives a block a function around what requires grad"
    DIFFERENTIATED = "runs a backward pass of its own"
    ASKED = "asks for what becomes different in a checkpointing layer"
    EMPTIED = "reads a cache after blocks were to fill it"
    ONE_GRAPH = "compiles a block, or what runs it, as one graph"
    FREED = "gets a tensor that requires no grad from a block"
    AMBIENT = "may change the settings that blocks are run with"


Block: TypeAlias = "tuple[SourceFile, str]"
"""The file and the name of a class."""


class Around(NamedTuple):
    """Something that the code around blocks does."""

    matter: Matter
    what: str
    """The code, or the name of what a block is in or gets."""
    file: SourceFile
    row: int
    blocks: frozenset[Block] = frozenset()
    """The classes that it is about; none if it may be about any."""


@dataclass
class _Summary:
    """What following a function has shown, whatever was held before."""

    changed: dict[tuple[Root, frozenset[Object]], Around] = field(default_factory=dict)
    """What is changed in place, and where: a root, and the objects if it can be no other part of that."""
    held: defaultdict[frozenset[Block], set[Root]] = field(default_factory=lambda: defaultdict(set))
    """What blocks hold when it returns."""
    made: set[Root] = field(default_factory=set)
    """The places at which it has made something."""
    runs: set[Block] = field(default_factory=set)
    """The blocks that it runs."""
    ambient: dict[Around, None] = field(default_factory=dict)
    """What may change the settings that blocks are run with, if it runs any."""


class Surroundings(Freezing):
    """Follows the code around blocks, and takes note of what is not the same once they are recomputed."""

    def __init__(self, spaces: Spaces, *, is_quiet: bool = False, most_steps: int) -> None:
        """Start without having seen anything."""
        super().__init__(spaces, is_quiet=is_quiet, most_steps=most_steps)
        self.around: dict[Around, None] = {}
        self._summary = _Summary()
        self._summaries: dict[object, _Summary] = {}
        self._inside = 0
        """In how many blocks it is, or objects that are being made before anything runs."""
        self._within: list[str] = []
        """What the place stands in, in the function that is followed, and recomputation does not."""
        self._tried: dict[int, str] = {}
        """What statements stand in, by the identity of their list."""
        self._external = ""
        """The function of another package that is being called."""
        self._outside: tuple[ast.AST | None, str] = None, ""
        """The call of such a function that is followed, with its name."""
        self._is_reading = False
        """Whether what is called is a method that only reads, by its name and by what has it."""
        self._method: tuple[ast.AST | None, Value] = None, NEVER
        """The call of a method of another package that is followed, with its receiver."""
        self._contexts = set[ast.AST]()
        """The expressions of ``with`` statements that were followed: contexts end."""
        self._of_settings = set[ast.AST]()
        """Where attributes of settings were read."""
        self._places: dict[ast.AST, Root] = {}
        self._holders: dict[frozenset[Block], str] = {}
        """The names of the variables for what blocks hold."""
        self._read_in: dict[ast.stmt, frozenset[str]] = {}
        """The attributes that statements may read."""
        self._objects: defaultdict[frozenset[Block], set[Object]] = defaultdict(set)
        """The objects that were run of these classes."""
        self._returns_several = False
        """Whether a block returns more than its hidden states."""

    def is_block(self, receivers: Iterable[Value]) -> bool:
        """Tell whether values may be objects of a block."""
        raise NotImplementedError

    def see(
        self, matter: Matter, what: str, node: ast.AST, frame: Frame, blocks: frozenset[Block] = frozenset()
    ) -> None:
        """Take note of something; ``blocks`` are the classes that it is about, if it is not about all."""
        self.around[_around(matter, what, node, frame)._replace(blocks=blocks)] = None

    @contextmanager
    def _in(self, what: str | None) -> Iterator[None]:
        """Follow what stands in something that recomputation does not stand in; None for nothing."""
        self._within += [] if what is None else [what]
        try:
            yield
        finally:
            if what is not None:
                self._within.pop()

    # -- functions

    def entry(self, function: Function, call: Call, owner: Class | None) -> object:
        """Return what is the same for calls of which following one is enough."""
        return super().entry(function, call, owner), self._inside > 0

    def enter(
        self, function: Function, call: Call, node: ast.AST, frame: Frame, owner: Class | None = None
    ) -> Value:
        """Follow a function, and take what it has done to what blocks hold as done here."""
        is_forward = owner is not None and getattr(function.node, "name", "") == "forward"
        if is_forward and not self._inside and self.is_block(call.positional[:1]):
            return self._run_block(function, call, node, frame, owner)
        result, mine = self._summarised(function, call, node, frame, owner)
        if self._inside:
            self._summary.changed |= mine.changed
        elif self.stack:
            self._take(mine, node, frame)
        elif mine.runs:
            self.around |= mine.ambient
        return result

    def _summarised(
        self, function: Function, call: Call, node: ast.AST, frame: Frame, owner: Class | None
    ) -> tuple[Value, _Summary]:
        """Follow a function, and return also what all following of it with these values has shown."""
        mine = self._summaries.setdefault(self.entry(function, call, owner), _Summary())
        outer, self._summary = self._summary, mine
        within, self._within = self._within, []
        try:
            return super().enter(function, call, node, frame, owner), mine
        finally:
            self._summary, self._within = outer, within

    def _enter(self, function: Function, call: Call, inner: Frame) -> Value:
        result = super()._enter(function, call, inner)
        if not self._inside and not inner.is_dead:
            self._leave(inner)
        return result

    def _leave(self, frame: Frame) -> None:
        """Take note of what blocks hold where a function ends."""
        for blocks, held in self._held(frame):
            self._summary.held[blocks] |= held

    def _follow_return(self, node: ast.Return, frame: Frame) -> None:
        super()._follow_return(node, frame)
        if not self._inside:
            self._leave(frame)

    def _take(self, mine: _Summary, node: ast.AST, frame: Frame) -> None:
        """Take what following a function has shown as done where it is called."""
        self._age(mine.made, frame)
        for (root, objects), around in mine.changed.items():
            if root not in mine.made:
                self._touch(root, objects, around, frame)
        for blocks, held in mine.held.items():
            self._hold(held, blocks, frame)
        self._summary.made |= mine.made
        self._summary.runs |= mine.runs
        self._summary.ambient |= mine.ambient
        for each in self._within if mine.runs else ():
            self.see(Matter.WITHIN, each, node, frame, frozenset(mine.runs))

    def make_anyhow(self, kind: Class, frame: Frame) -> Value:
        """Return an object that is made with any values, before anything is run."""
        self._inside += 1
        try:
            return super().make_anyhow(kind, frame)
        finally:
            self._inside -= 1

    # -- blocks

    def _run_block(
        self, function: Function, call: Call, node: ast.AST, frame: Frame, owner: Class | None
    ) -> Value:
        """Follow a block, whose arguments are held from then on.

        It is followed once for all of what it gets: only what of that its result is a part of is put back.
        """
        blocks = self._classes(call.positional[0])
        self._summary.runs |= blocks
        self._objects[blocks] |= {each for each in call.positional[0].things if isinstance(each, Object)}
        for what in self._within:
            self.see(Matter.WITHIN, what, node, frame, blocks)
        for matter in self._matters(call):
            self.see(matter, quoted(node), node, frame, blocks)
        roots = {
            OWN: call.positional[0].roots,
            **{own(index): each.roots for index, each in enumerate(call.positional) if index},
            **{own(name): each.roots for name, each in call.named},
        }
        loose = [each.roots for each in (call.rest, call.options) if each is not None]
        if loose:
            roots[REST] = frozenset().union(*loose)
        self._inside += 1
        try:
            result, mine = self._summarised(function, without_roots(call), node, frame, owner)
        finally:
            self._inside -= 1
        self._returns_several |= any(isinstance(each, (Fixed, Box)) for each in result.things)
        given = (*function.node.args.posonlyargs, *function.node.args.args)
        places = [(index, each.arg) for index, each in enumerate(given) if known.CACHED.search(each.arg)]
        caches = frozenset(own(each) for place in places for each in place)
        if not self.unrecorded and any(_is_freed(each, caches) for each in result.things):
            self.see(Matter.FREED, quoted(node), node, frame, blocks)
        # What it changes in place of what it is given, other blocks may have been given, too.
        for (root, objects), around in mine.changed.items():
            for each in roots.get(root, ()) if root != OWN and around.matter is Matter.CHANGED else ():
                self._touch(each, objects, around, frame)
        if self.unrecorded:
            return with_other_roots(result, roots)  # Nothing is recomputed of it.
        # What is in a list that it returns still has the names of its arguments.
        self._hold({*shared(call.all()), *call.positional[0].roots, *roots}, blocks, frame)
        made = self._place(node, frame)
        view = Root(Kind.MADE, f"{made.what}{AS_VIEW}")
        self._summary.made |= {made, view}
        self._age((made, view), frame)
        # A view cannot be changed in place once it comes out of a reentrant checkpoint.
        self._hold((view,), blocks, frame)
        return told_apart(with_other_roots(result, roots), made, view)

    @staticmethod
    def _classes(value: Value) -> frozenset[Block]:
        """Return the classes of objects, or classes."""
        kinds = {each.kind if isinstance(each, Object) else each for each in value.things}
        return frozenset((each.space.file, each.node.name) for each in kinds if isinstance(each, Class))

    def _matters(self, call: Call) -> Iterator[Matter]:
        """Yield what is the matter with what a block gets."""
        given = [*call.positional[1:], *(each for _, each in call.named)]
        loose = [each for each in (call.rest, call.options) if each is not None]
        inside = (thing for one in given for each in self.inside(one) for thing in each.things)
        if any(isinstance(thing, Box) and thing.kind == ITERATOR for thing in inside):
            yield Matter.USED_UP
        if any(_captures(thing) for each in given for thing in each.things):
            yield Matter.CAPTURED
        is_recorded = (
            not self.unrecorded and not self.perhaps_unrecorded
        )  # Or nothing is recomputed, perhaps.
        if is_recorded and not any(map(_requires_grad, (*given, *loose))):
            yield Matter.CONSTANT

    # -- what is held

    @staticmethod
    def _home(frame: Frame) -> Frame:
        """Return the frame of a function for that of a comprehension, or of a class's body, in it."""
        while (frame.is_of_comprehension or frame.is_of_class) and frame.parent is not None:
            frame = frame.parent
        return frame

    def _held(self, frame: Frame) -> Iterator[tuple[frozenset[Block], frozenset[Root]]]:
        """Yield what is held, by the classes that hold it."""
        variables = self._home(frame).names
        for blocks, name in self._holders.items():
            if name in variables:
                yield blocks, variables[name].roots

    def _hold(self, roots: Collection[Root], blocks: frozenset[Block], frame: Frame) -> None:
        if roots and self.stack:
            variables = self._home(frame).names
            name = self._holders.setdefault(blocks, f"{_HELD} {len(self._holders)}")
            held = variables[name] = Value(PLAIN.things, variables.get(name, NEVER).roots.union(roots))
            self.count(len(held.roots) // _HELD_FOR_A_STEP)

    def _age(self, made: Collection[Root], frame: Frame) -> None:
        """Tell what was made at some places before from what is made there now."""
        if all(held.isdisjoint(made) for _, held in self._held(frame)):
            return
        older = {each: frozenset((aged(each),)) for each in made}
        for each in {self._home(frame), frame}:
            each.names = {name: with_other_roots(value, older) for name, value in each.names.items()}

    def is_never_empty(self, entry: Mapping[str, Value], frame: Frame) -> bool:
        """Tell whether a loop runs blocks: if it runs none, they hold nothing."""
        return any(frame.names.get(name) != entry.get(name) for name in self._holders.values())

    def value(self, node: ast.expr, frame: Frame) -> Value:
        """Follow an expression; what it makes anew is told from all other things by its place."""
        found = super().value(node, frame)
        if self._inside or not self.stack or found.roots or not isinstance(node, _MAKING):
            return found
        root = self._place(node, frame)
        made = with_roots(found, (root,))
        if made is not found:
            self._summary.made.add(root)
            self._age((root,), frame)
        return made

    def _place(self, node: ast.AST, frame: Frame) -> Root:
        """Return what stands for all that is made at a place."""
        root = self._places.get(node)
        if root is None:
            parts = (
                getattr(node, name, 0) for name in ("lineno", "col_offset", "end_lineno", "end_col_offset")
            )
            root = self._places[node] = Root(
                Kind.MADE, f"{frame.space.file.path}:{':'.join(map(str, parts))}"
            )
        return root

    def _value_name(self, node: ast.Name, frame: Frame) -> Value:
        found = super()._value_name(node, frame)
        return found if self._inside or node.id in frame.names else of_any_age(found)

    def _item(self, thing: Thing, index: int | None) -> Value:
        found = super()._item(thing, index)
        return of_any_age(found) if isinstance(thing, Box) and not self._inside else found

    # -- changes

    def call(self, function: Value, call: Call, node: ast.expr, frame: Frame) -> Value:
        """Return what a call gives; of several functions, only one is run."""
        if self._inside or not self.stack or len(function.things) < 2:
            return super().call(function, call, node, frame)
        found: list[Value] = []
        before = [(roots, blocks) for blocks, roots in self._held(frame)]
        after = list(before)
        for each in function.things:
            self._release(before, frame)
            found.append(super().call(Value(frozenset((each,)), function.roots), call, node, frame))
            after += [(roots, blocks) for blocks, roots in self._held(frame)]
        self._release(after, frame)
        return join(found)

    def _release(self, held: Iterable[tuple[frozenset[Root], frozenset[Block]]], frame: Frame) -> None:
        """Let blocks hold these again, and nothing else."""
        for name in self._holders.values():
            self._home(frame).names.pop(name, None)
        for roots, blocks in held:
            self._hold(roots, blocks, frame)

    def set_attribute(self, value: Value, name: str, given: Value, node: ast.AST, frame: Frame) -> None:
        """Assign an attribute of whatever a value may be; what something unknown gives is nothing it got."""
        things = frozenset(each for each in value.things if not isinstance(each, Unknown) or each.is_argument)
        if things and all(isinstance(each, ModelSetting) for each in things):
            value = Value(things, frozenset((_setting(name),)))
        elif things != value.things and name not in _OF_TENSORS:
            value = Value(
                things, frozenset(each for each in value.roots if each.kind is Kind.MADE and things)
            )
        if any(isinstance(each, External) for each in value.things):
            self._set(node, frame)
            self._hand(given, node, frame)
        super().set_attribute(value, name, given, node, frame)

    def _attribute(
        self, thing: Thing, value: Value, name: str, node: ast.AST, frame: Frame, is_optional: bool
    ) -> Value:
        found = super()._attribute(thing, value, name, node, frame, is_optional)
        if not isinstance(thing, ModelSetting):
            return found
        self._of_settings.add(node)
        return with_roots(found, (_setting(name),))

    def assign(self, target: ast.expr, value: Value, frame: Frame, *, is_same: bool = False) -> None:
        """Assign a value to a target; what is put into something of another package, that gets."""
        super().assign(target, value, frame, is_same=is_same)
        if isinstance(target, ast.Subscript) and not self._inside:
            held = self.quietly(target.value, frame).things
            if any(isinstance(each, External) for each in held):
                self._hand(value, target, frame)

    def combine(self, node: ast.AST, left: Value, right: Value, frame: Frame) -> Value:
        """Return what an operator makes of two values, which is that of something unknown if one is."""
        if any(isinstance(each, External) and each.name not in known.LITERALS for each in left.things):
            self._hand(right, node, frame)
        return super().combine(node, left, right, frame)

    def change(self, value: Value, node: ast.AST, frame: Frame) -> None:
        """Take note that a value is changed in place, if a block holds it."""
        super().change(value, node, frame)
        objects = _objects_of(value)
        roots = value.roots
        if any(isinstance(each, ModelSetting) for each in value.things):
            roots = roots if any(map(_is_setting, roots)) else roots | {_setting(ANY)}
        elif value.things:
            roots = frozenset(each for each in roots if not _is_setting(each))  # Made of what is set.
        for root in roots:
            self._touch(root, objects, _around(Matter.CHANGED, quoted(node), node, frame), frame)

    def may_change(self, value: Value, node: ast.AST, frame: Frame) -> None:
        """Take what may be changed for something that is."""
        self.change(value, node, frame)

    def _touch(self, root: Root, objects: frozenset[Object], around: Around, frame: Frame) -> None:
        """Take note that what a root stands for may be changed in place here.

        Args:
            root: the root.
            objects: what it is that is changed; none of them if it may be anything.
            around: where that is done, and how.
            frame: the names of the function that is followed.
        """
        if not self.stack:
            return
        self._summary.changed.setdefault((root, objects), around)
        if self._inside:
            return
        for blocks, held in self._held(frame):
            is_held = root in held and (not objects or not objects.isdisjoint(self._parts(blocks)))
            if _is_setting(root):
                name = root.what.removeprefix(_SETTING)
                is_held = is_held or name == ANY or self._may_read(blocks, name)
            if is_held:
                self.around[around._replace(blocks=blocks)] = None

    def _may_read(self, blocks: frozenset[Block], name: str) -> bool:
        """Tell whether classes, what they hold, or functions beside them may read an attribute."""
        kinds = {
            one for each in self._parts(blocks) for one in self.line(each.kind) if isinstance(one, Class)
        }
        beside = (
            each
            for space in {kind.space for kind in kinds}
            for each in (() if space.tree is None else space.tree.body)
            if not isinstance(each, ast.ClassDef)
        )
        nodes = (*(kind.node for kind in kinds), *beside)
        self._read_in |= {each: _attributes(each) for each in nodes if each not in self._read_in}
        return any(name in self._read_in[each] for each in nodes)

    def _parts(self, blocks: frozenset[Block]) -> set[Object]:
        """Return the objects of classes with all that they hold."""
        return self.within(of(*self._objects[blocks]))

    def consume(self, value: Value, node: ast.AST, frame: Frame) -> None:
        """Follow that items of something are used up: what blocks get is no iterator, or is noted."""
        self.gone_over(value, node, frame)

    def _call(self, thing: Thing, function: Value, call: Call, node: ast.expr, frame: Frame) -> Value:
        name = last_name(node.func) if isinstance(node, ast.Call) else ""
        # Nothing is known of a function by its name, but of a method of what was made or given.
        is_method = isinstance(thing, Method) or (isinstance(thing, Unknown) and bool(function.roots))
        is_getting = isinstance(thing, External) and thing.name == "getattr"
        before, self._is_reading = self._is_reading, is_getting or (is_method and name in _READING)
        if isinstance(thing, ModelSetting) and not _CHANGING.isdisjoint(each.what for each in function.roots):
            self.change(Value(frozenset((thing,)), function.roots), node, frame)
        if isinstance(thing, Unknown) and not self._is_reading:  # Such as a method of what a block holds.
            self._hand(Value(frozenset((thing,)), function.roots), node, frame)
            receiver = self._receiver(node, frame)
            self._hand(receiver, node, frame, with_parts=self._may_change_parts(receiver, name))
        if thing == _PART and isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            holder = self.quietly(node.func.value, frame)
            if any(isinstance(each, Made) and self.is_plain_module(each.name) for each in holder.things):
                self._hand(holder, node, frame)  # It is no part of a module of torch, but a method.
        try:
            return super()._call(thing, function, call, node, frame)
        finally:
            self._is_reading = before

    def _may_change_parts(self, receiver: Value, name: str) -> bool:
        """Tell whether a name is that of a method of another package that may change what an object holds."""
        return name in known.MODULE_CHANGES or any(
            isinstance(each, Object)
            and self.find(each.kind, name) is None
            and name not in each.attributes
            and name not in known.MODEL_METHODS
            for each in receiver.things
        )

    def _value_call(self, node: ast.Call, frame: Frame) -> Value:
        found = super()._value_call(node, frame)
        if (
            isinstance(node.func, ast.Attribute)
            and node.func in self._of_settings
            and node.func.attr not in known.READING_METHODS
        ):
            holder = self.quietly(node.func.value, frame)
            if any(isinstance(each, ModelSetting) for each in holder.things):
                is_part = any(map(_is_setting, holder.roots))
                keys = [] if is_part or node.func.attr != "update" else list(_written_keys(node))
                changed = frozenset(map(_setting, keys))
                self.change(Value(roots=changed) if changed else holder, node, frame)
        return found

    def _receiver(self, node: ast.expr, frame: Frame) -> Value:
        """Return of which tensor, object of the project or stack a method is called, if it is of one."""
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            return NEVER
        found = self.quietly(node.func.value, frame)
        is_one = any(
            isinstance(each, (Tensor, Object)) or (isinstance(each, Box) and each.kind in known.STACKS)
            for each in found.things
        )
        return found if is_one else NEVER

    def deny(
        self, call: Call, node: ast.expr, frame: Frame, kind: Kind = Kind.UNKNOWN, external: str = ""
    ) -> Value:
        """Note that nothing is known of what a call does; it may change what it gets."""
        if not self._is_reading:
            # A function gets a new dict of what `**` unpacks.
            given = [*call.positional, *(each for _, each in call.named)]
            given += [] if call.rest is None else [call.rest]
            given += [self._method[1]] if self._method[0] is node else []
            for each in given:
                self._hand(each, node, frame)
                if (external or kind is Kind.RANDOM) and any(map(_is_setting, each.roots)):
                    self.change(each, node, frame)
        if not self._inside:
            self._see_running(call, external, node, frame)
        elif external and isinstance(node, ast.Call):
            self._see_changing(node, frame)
        if self._outside[0] is node and kind is Kind.UNKNOWN and _may_set(self._outside[1]):
            self._set(node, frame)
        made = super().deny(call, node, frame, kind, external)
        parts = (*call.all(), self._receiver(node, frame)) if self._inside else ()
        return with_roots(made, (_HOLDER,)) if self._hold_parts(parts) else made

    def _see_running(self, call: Call, external: str, node: ast.expr, frame: Frame) -> None:
        """Take note of blocks in what something unknown gets, which it may run in whatever it sets up.

        A method that gets blocks themselves is said to get them, since that may also change them.
        """
        held = self.within(*call.all())
        held -= set() if external else {each for value in call.all() for each in objects_among(value)}
        blocks = self._classes(of(*(each for each in held if self.is_block([of(each)]))))
        if blocks and external not in known.RUNNING_NOTHING | _RUNNING and not self._is_reading:
            self.see(
                Matter.WITHIN, f"`{external or quoted(getattr(node, 'func', node))}`", node, frame, blocks
            )

    def _see_changing(self, node: ast.Call, frame: Frame) -> None:
        """Take note of an unknown function that gets a block, or a part of one, where the model is made."""
        if not any(getattr(each, "name", "") == "__init__" for each in self.stack):
            return
        given = [of(each) for arg in node.args for each, _ in self.parts_of(arg, frame)]
        of_names = (each for arg in self._meant(node.args) for each in walk(arg) if isinstance(each, _NAMING))
        given += [self.quietly(each, frame) for each in of_names]
        blocks = frozenset().union(*(self._classes(each) for each in given if self.is_block([each])))
        if blocks and not self.is_block(self.calls[-1].positional[:1]):
            self.see(Matter.REMADE, quoted(node), node, frame, blocks)

    def _meant(self, nodes: Iterable[ast.expr]) -> Iterator[ast.expr]:
        """Yield expressions, and what the function around them gives to the names in them."""
        found: dict[str, list[ast.expr]] = {}
        for node in walk(self.stack[-1]) if self.stack else ():
            looped = [(node.target, node.iter)] if isinstance(node, (ast.For, ast.AsyncFor)) else []
            for target, value in (*assigned(node), *looped):
                for each in walk(target):
                    if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store):
                        found.setdefault(each.id, []).append(value)
        waiting = [*nodes]
        while waiting:
            yield (node := waiting.pop())
            for each in walk(node):
                waiting += found.pop(each.id, ()) if isinstance(each, ast.Name) else ()

    def _hold_parts(self, values: Iterable[Value]) -> bool:
        """Tell whether values are parameters, or objects that may have some, or hold these."""
        inside = (thing for value in values for each in self.inside(value) for thing in each.things)
        return any(isinstance(each, (Tensor, Object)) for each in inside)

    def _set(self, node: ast.AST, frame: Frame) -> None:
        """Take note that settings may be changed here that blocks are run with, such as those of torch."""
        if not self._inside and node not in self._contexts:
            self._summary.ambient[_around(Matter.AMBIENT, quoted(node), node, frame)] = None

    def _hand(self, value: Value, node: ast.AST, frame: Frame, *, with_parts: bool = False) -> None:
        """Take note that something unknown gets a value, or is a method ``with_parts`` of what it is of."""
        is_unknown = all(isinstance(each, Unknown) for each in value.things)
        for root in shared(self.reached((value,), with_modules=False)):
            if root == _HOLDER:
                self._touch(OWN, frozenset(), _around(Matter.HANDED, quoted(node), node, frame), frame)
            # What is unknown of the model is no block; others change no settings, nor views, which raises.
            elif not (
                (is_unknown and root == OWN) or root == OF_SETTINGS or _is_setting(root) or is_view(root)
            ):
                objects = _objects_of(value) if root in value.roots else frozenset()
                objects = frozenset(self.within(of(*objects))) if with_parts else objects
                self._touch(root, objects, _around(Matter.HANDED, quoted(node), node, frame), frame)

    def _call_method(
        self, receiver: Value, thing: Thing, name: str, call: Call, node: ast.expr, frame: Frame
    ) -> Value:
        is_module = isinstance(thing, (Object, Made)) or (
            isinstance(thing, Box) and thing.kind in known.STACKS
        )
        if is_module and name in known.MODULE_CHANGES:
            self.change(receiver, node, frame)
            parts = frozenset(self.within(of(*_objects_of(receiver))))
            for root in receiver.roots:
                self._touch(root, parts, _around(Matter.CHANGED, quoted(node), node, frame), frame)
            if name in _MODES:
                self._set(node, frame)
        before, self._method = self._method, (node, receiver)
        try:
            found = super()._call_method(receiver, thing, name, call, node, frame)
        finally:
            self._method = before
        return self._as_view(found) if name in tensors.VIEWS or name in known.MADE_AS_VIEWS else found

    def _call_of_tensor(
        self, receiver: Value, name: str, call: Call, roots: frozenset[Root], node: ast.expr, frame: Frame
    ) -> Value:
        if name == "numpy" and not self._inside:  # Methods of an array change what those of tensors copy.
            self._hand(receiver, node, frame)
        return super()._call_of_tensor(receiver, name, call, roots, node, frame)

    def _compute(self, last: str, call: Call, node: ast.expr, frame: Frame) -> Value:
        found = super()._compute(last, call, node, frame)
        return self._as_view(found) if last in tensors.VIEWS or last in known.MADE_AS_VIEWS else found

    def _call_made(self, name: str, call: Call, node: ast.expr, frame: Frame) -> Value:
        if name in _WITH_STATISTICS and not self._inside:
            return self.tensor((TENSOR,))
        found = super()._call_made(name, call, node, frame)
        last = name.rpartition(".")[2].partition(" ")[0]
        return self._as_view(found) if last in _HANDING_ON | known.MADE_AS_VIEWS else found

    def _value_subscript(self, node: ast.Subscript, frame: Frame) -> Value:
        found = super()._value_subscript(node, frame)
        is_tensor = self._inside and any(isinstance(each, (Tensor, Unknown)) for each in found.things)
        return self._as_view(found) if is_tensor else found

    def _as_view(self, value: Value) -> Value:
        """Return a value that may be a view, which matters for what comes out of blocks."""
        return with_roots(value, (VIEW,)) if self._inside else value

    # -- places

    def body(self, statements: Sequence[ast.stmt], frame: Frame) -> None:
        """Follow statements, in whatever they stand."""
        with self._in(None if self._inside else self._tried.get(id(statements))):
            super().body(statements, frame)

    def _follow_try(self, node: ast.Try, frame: Frame) -> None:
        if node.handlers:
            self._tried[id(node.body)] = "a `try` that handles errors"
        super()._follow_try(node, frame)

    _follow_trystar = _follow_try

    def _follow_with(self, node: ast.With, frame: Frame) -> None:
        self._contexts |= {each.context_expr for each in node.items}
        unknown = (
            []
            if self._inside
            else [each for each in node.items if not self._is_restored(each.context_expr, frame)]
        )
        if unknown:
            self._tried[id(node.body)] = f"`{quoted(unknown[0].context_expr)}`"
        super()._follow_with(node, frame)

    def _is_restored(self, context: ast.expr, frame: Frame) -> bool:
        """Tell whether recomputation is in a context as well, or it does not matter."""
        made = self.quietly(context.func if isinstance(context, ast.Call) else context, frame).things
        is_all = any(isinstance(each, External) and each.name in _ENTERING_ALL for each in made)
        if is_all and isinstance(context, ast.Call):
            given = (*context.args, *(each.value for each in context.keywords))
            return all(self._is_restored(each, frame) for one in given for each in _listed(one))
        restored = known.RESTORED
        if isinstance(context, ast.Call) and context.args and _is_true(self.quietly(context.args[0], frame)):
            restored = known.RESTORED | {"torch.set_grad_enabled"}
        return bool(made) and all(isinstance(each, External) and each.name in restored for each in made)

    def _call_back(self, call: Call, node: ast.expr, frame: Frame, receiver: Value = NEVER) -> Value:
        with self._in(None if self._external in _RUNNING else f"`{self._external}`"):
            return super()._call_back(call, node, frame, receiver)

    # -- what is asked for

    def _call_external(self, name: str, call: Call, node: ast.expr, frame: Frame) -> Value:
        self._external, self._outside = name, (node, name)
        if name in _REACHING_ALL and not self._inside:
            self.see(Matter.HANDED, quoted(node), node, frame)
        if name in _MAPPING and not self._inside:
            self._see_running(call, name, node, frame)
        if name in _DIFFERENTIATING and not self._inside:
            self.see(Matter.DIFFERENTIATED, name, node, frame)
        if name.partition(".")[0] == "inspect" and not (self._inside and name in _ASKING_ALIKE):
            self.see(Matter.ASKED, quoted(node), node, frame)
        if name in _ASKING and self._asks(name, call):
            self.see(Matter.ASKED, quoted(node), node, frame, self._classes(call.positional[0]))
        if name in _WITH_STATISTICS:
            return of(Made(name))
        return super()._call_external(name, call, node, frame)

    def _asks(self, function: str, call: Call) -> bool:
        """Tell whether a function of Python asks for what becomes different."""
        if len(call.positional) > 1 and function in ("getattr", "hasattr"):
            asked = texts(call.positional[1]) or OF_LAYERS
            return any(self._tells(call.positional[0], name) for name in asked)
        if not call.positional or not self._may_be_block(call.positional[0]):
            return False
        if len(call.positional) == 1:
            return function == "dir"
        waiting, met = [call.positional[1]], set[int]()
        while waiting:
            for each in waiting.pop().things:
                if isinstance(each, External) and each.name.endswith(LAYER):
                    return True
                if isinstance(each, (Unknown, Plain)) and self._is_block_or_class(call.positional[0]):
                    return True
                if isinstance(each, Class) and self.decides_itself(each):
                    return True
                if isinstance(each, (Fixed, Box)) and id(each) not in met:
                    met.add(id(each))
                    waiting.append(self.item(of(each)))
        return False

    def _matched(self, kind: Value, subject: Value, pattern: ast.MatchClass, frame: Frame) -> Iterator[Value]:
        if self._asks("isinstance", Call((subject, kind))):
            self.see(Matter.ASKED, quoted(pattern), pattern, frame, self._classes(subject))
        yield from super()._matched(kind, subject, pattern, frame)

    def _tells(self, value: Value, name: str) -> bool:
        """Tell whether an attribute of a value tells a checkpointing layer from another one."""
        return (
            (name in OF_LAYERS and self._is_block_or_class(value))
            or (name in OF_TYPES and self._may_be_block(value))
            or (name in _OF_FUNCTIONS and any(isinstance(each, (Function, Bound)) for each in value.things))
        )

    def identified(self, value: Value, node: ast.AST, frame: Frame) -> None:
        """Take note of what depends on which object a tensor is: out of a checkpoint comes another one."""
        super().identified(value, node, frame)
        inside = (thing for each in self.inside(value) for thing in each.things)
        if not self._inside and self.stack and any(isinstance(each, Tensor) for each in inside):
            self.see(Matter.ASKED, quoted(node), node, frame)

    def _compare_identity(self, left: Value, right: Value, node: ast.Compare, frame: Frame) -> None:
        super()._compare_identity(left, right, node, frame)
        if all(any(isinstance(each, (Tensor, Unknown)) for each in one.things) for one in (left, right)):
            self.identified(join((left, right)), node, frame)

    def _may_be_block(self, value: Value) -> bool:
        # The type of what is not known is plain.
        is_unknown = any(isinstance(each, (Unknown, Plain)) for each in value.things)
        return is_unknown or self._is_block_or_class(value)

    def _is_block_or_class(self, value: Value) -> bool:
        kinds = (of(Object(each)) for each in value.things if isinstance(each, Class))
        return self.is_block((value, *kinds))

    def attribute(
        self, value: Value, name: str, node: ast.AST, frame: Frame, *, is_optional: bool = False
    ) -> Value:
        """Return an attribute, and take note if it is one that a checkpointing layer has."""
        if self._tells(value, name):
            self.see(Matter.ASKED, quoted(node), node, frame)
        if (
            name == "backward"
            and not self._inside
            and any(isinstance(each, (Tensor, Unknown)) for each in value.things)
        ):
            self.see(Matter.DIFFERENTIATED, quoted(node), node, frame)
        is_telling = name in _TELLING or (name in _TELLING_OF_SEVERAL and self._returns_several)
        if is_telling and not self._inside and any(isinstance(each, Tensor) for each in value.things):
            self.see(Matter.ASKED, quoted(node), node, frame)
        if name in _ENTERING and not all(isinstance(each, (Object, Super)) for each in value.things):
            self._set(node, frame)
        found = super().attribute(value, name, node, frame, is_optional=is_optional)
        return found if self._inside or frame.own(name) is not None else of_any_age(found)


def _around(matter: Matter, what: str, node: ast.AST, frame: Frame) -> Around:
    """Return what is the matter at a place."""
    file = frame.space.file
    return Around(matter, what, file, file.position(frame.space.offset(node)).row)


_WITH_STATISTICS = names(
    """
    torch.nn.BatchNorm1d torch.nn.BatchNorm2d torch.nn.BatchNorm3d torch.nn.SyncBatchNorm
    torch.nn.InstanceNorm1d torch.nn.InstanceNorm2d torch.nn.InstanceNorm3d
    """
)
"""Modules that change nothing but what they keep, which matters inside of blocks alone."""
_READING = tensors.FRESH | tensors.VIEWS | tensors.METHODS_ONLY_READ | known.READING_METHODS
"""Methods that change nothing, whatever has them."""
_MODES = frozenset(("train", "eval", "apply"))
_ENTERING = frozenset(("__enter__", "__exit__"))
_SETTING_UP = frozenset(("torch", "contextlib", "warnings"))
"""Packages of which functions that are not known may change settings, or enter contexts."""
_SETTING = "the setting "
_CHANGING = frozenset(f"{_SETTING}{name}" for name in known.FILLING_METHODS | known.TAKING_METHODS)
"""What stands for methods of containers among settings that change these."""
_OF_TENSORS = frozenset(("data", "grad", "requires_grad"))
"""Attributes of tensors whose assignment changes the tensor."""
_HANDING_ON = frozenset(("Identity", "Flatten", "Unflatten"))
"""Modules of torch that give what they get, or a view of it."""


def _may_set(name: str) -> bool:
    """Tell whether a function of another package, of which nothing is known, may change settings."""
    package, dot, _ = name.partition(".")
    last = name.rpartition(".")[2]
    # A class of torch only makes an object.
    is_known = name in _TRANSFORMS or (last[:1].isupper() and package == "torch")
    return bool(dot) and (package in _SETTING_UP or last.startswith("set")) and not is_known


def _objects_of(value: Value) -> frozenset[Object]:
    """Return the objects that a value is one of; none of them if it may be anything else."""
    objects = frozenset(each for each in value.things if isinstance(each, Object))
    return objects if len(objects) == len(value.things) else frozenset()


def _is_true(value: Value) -> bool:
    return all(isinstance(each, Constant) and each.value is True for each in value.things)


def _setting(name: str) -> Root:
    """Return what stands for the setting of a name."""
    return Root(Kind.SHARED, f"{_SETTING}{name}")


def _is_setting(root: Root) -> bool:
    """Tell whether a root is the setting of a name."""
    return root.what.startswith(_SETTING)


def _written_keys(node: ast.Call) -> Iterator[str]:
    """Yield the keys that are written in a call, and what stands for all where others may be meant."""
    for each in (*node.args, *node.keywords):
        if isinstance(each, ast.keyword) and each.arg is not None:
            yield each.arg
        elif isinstance(each, ast.Dict):
            yield from (text_of(key) or ANY for key in each.keys if key is not None)
        else:
            yield ANY


def _requires_grad(value: Value) -> bool:
    """Tell whether a value is something, and no tensor that requires no grad on any way."""
    things = [each for each in value.things if not isinstance(each, Constant)]
    return bool(things) and not any(
        each.is_constant for each in things if isinstance(each, (Tensor, Unknown))
    )


def _is_freed(thing: Thing, caches: Set[Root]) -> bool:
    """Tell whether a tuple has a tensor that requires no grad, and is no cache, behind the first item."""
    behind = thing.items[1:] if isinstance(thing, Fixed) else ()
    return any(
        isinstance(each, Tensor) and each.is_constant
        for item in behind
        if item.roots.isdisjoint(caches)
        for each in item.things
    )


def _listed(node: ast.expr) -> Iterator[ast.expr]:
    """Yield what may be in a list that is written out; the expression itself if it is no such list."""
    ways = alternatives(node)
    if ways:
        yield from (part for each in ways for part in _listed(each))
    elif isinstance(node, (ast.List, ast.Tuple)):
        yield from node.elts
    else:
        yield node


def _captures(thing: Thing) -> bool:
    """Tell whether a function, or an object that is no module, holds something that requires grad."""
    if isinstance(thing, Partial):
        return not is_constant(*thing.positional, *(each for _, each in thing.named))
    if isinstance(thing, Bound):
        return False
    if not isinstance(thing, Function):
        return False
    return any(
        isinstance(each, (Tensor, Fixed, Box)) and not is_constant(of(each))
        for value in closed_over(thing)
        for each in value.things
    )


def _attributes(node: ast.stmt) -> frozenset[str]:
    """Return the names of all attributes in a statement, and texts, under which attributes may be read."""
    names = (each.attr for each in walk(node) if isinstance(each, ast.Attribute))
    texts = (
        each.value for each in walk(node) if isinstance(each, ast.Constant) and isinstance(each.value, str)
    )
    return frozenset((*names, *texts))
