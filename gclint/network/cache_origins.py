"""Finds what is passed under the name of a cache and may be something else, which the base class would drop.

Only what is known to be a cache is one: what comes from the model's own arguments, is None, or is made as a
cache. Anything else, such as a learned prompt or the memory of earlier segments, is part of what the model
computes.
"""

from __future__ import annotations

import builtins
import re
from collections.abc import Iterable, Iterator

import libcst as cst

from gclint.network.activation import is_constant
from gclint.network.binding import BoundArgument, bind
from gclint.network.differentiable import KEEPING_BUILTINS
from gclint.network.evaluation.body import nodes_in
from gclint.network.evaluation.classes import ClassInfo
from gclint.network.evaluation.reaching import Entry, Reaching
from gclint.network.evaluation.scope import Scope
from gclint.network.evaluation.signature import method_signature
from gclint.network.evaluation.values import Bound, ClassValue, External, Function, Value
from gclint.network.evaluation.walk import dotted_name
from gclint.network.gradient import Carries, Gradients, Origin, Place, inside, united
from gclint.network.learned import is_learned_value
from gclint.network.runsite import RunSite
from gclint.network.traits import is_learned
from gclint.network.written_arguments import written_arguments
from gclint.releases import EVER_NEUTRALISED
from gclint.source.outline import Definition
from gclint.verify.worker.vocabulary import PLAIN_CACHES, USE_CACHE

DROPPED = EVER_NEUTRALISED - {USE_CACHE}
"""The keywords whose values the base class replaces by None."""
_ARGUMENT = re.compile(
    rf"(?:\w+_)?(?:{'|'.join(sorted(DROPPED))}|caches?|past)|{'|'.join(sorted(PLAIN_CACHES))}"
)
"""Matches the names under which a model receives a cache as an argument."""
_MAKING = re.compile(r"(?:\w+\.)*(?:[A-Z]\w*)?Cache(?:\.from_legacy_cache)?")
"""Matches what makes a cache: a class of caches, or its conversion from tuples."""
_CHECKPOINTING = re.compile(r"checkpoint(?:ing_func)?$")
"""Matches the names of functions that run a block."""
_TAKING = frozenset(("get", "pop"))
_CONVERTING = frozenset(("to", "to_legacy_cache"))
"""Methods of caches and their tensors that return the same in another form or place."""
_WRITING = frozenset(("dict", "update", "setdefault"))
_LOOKING = frozenset(("get", "pop", "keys", "values", "items", "copy"))
"""Methods of a dict that put nothing into it."""
_READING = frozenset(
    ("get_seq_length", "get_max_cache_shape", "get_max_length", "get_usable_length", "get_mask_sizes")
) | {"size", "dim", "numel", "to", "to_legacy_cache"}
"""Methods of caches and their tensors that put nothing into them."""
_FILLING = frozenset(
    (
        "append",
        "extend",
        "insert",
        "update",
        "setattr",
        "__setitem__",
        "__setattr__",
        "__dict__",
    )
)
"""What else puts something into a container, called on it or with it."""
_ITERATING = KEEPING_BUILTINS | {"enumerate", "filter", "map", "next", "zip"}
"""Functions whose result has what their arguments hold."""
_FIGURES = frozenset(("shape", "dtype", "device", "ndim"))
_DISPLAYS = (cst.Tuple, cst.List)
_HARMLESS = Carries.CONSTANT | Carries.CACHE
_LONGEST = 60
_MAX_PATH = 4
_MAX_DEPTH = 50


def no_cache(site: RunSite, args: Iterable[cst.Arg], gradients: Gradients) -> str | None:
    """Return what a call passes as a cache although it may be something else; None if there is nothing.

    Args:
        site: the call site.
        args: the arguments that the base class would drop, or that may hold one.
        gradients: traces values in the file of the call.
    """
    for arg in args:
        if not is_constant(arg.value):
            tracer = _Caches(gradients)
            if not tracer.is_cache_at(site, arg):
                return _described(site, arg, tracer.other)
    return None


def is_named_cache(name: str) -> bool:
    """Tell whether an argument of a model is called like a cache."""
    return _ARGUMENT.fullmatch(name) is not None


def dropped(bindings: Iterable[BoundArgument]) -> Iterator[cst.Arg]:
    """Yield the arguments that a checkpointing layer drops once they are passed by their names."""
    for bound in bindings:
        if bound.arg.star == "**" or _name(bound) in DROPPED:
            yield bound.arg


def arguments(site: RunSite) -> Iterator[BoundArgument]:
    """Yield the arguments of a call as each of the blocks that it may run gets them."""
    for info in site.blocks:
        if info.signature is not None:
            yield from bind(site.written_args, info.signature).arguments


def _name(bound: BoundArgument) -> str | None:
    if bound.parameter is not None:
        return bound.parameter.name
    return None if bound.arg.keyword is None else bound.arg.keyword.value


def _described(site: RunSite, arg: cst.Arg, origin: Origin | None) -> str:
    passed = (
        f"`{arg.star}{_code(site.source(arg.value))}`" if site.fragment.holds(arg.value) else "an argument"
    )
    what = f"{passed} may be something else than a cache, which checkpointing would drop"
    fragment = None if origin is None else origin.fragment
    if origin is None or fragment is None or origin.node is arg.value:
        return what
    file = fragment.file
    row = file.position(fragment.span(origin.node)[0]).row
    where = f"line {row}" if file is site.fragment.file else f"line {row} of {file.path.name}"
    return f"{what}: `{_code(fragment.source(origin.node))}` on {where} is not known to be one"


def _code(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}…"


def _is_cache(found: Carries) -> bool:
    return not found & ~Carries.CACHE


class _Caches(Gradients):
    """Traces a value back to where it comes from; ``CACHE`` or ``NOTHING`` is what can only be a cache."""

    def __init__(self, gradients: Gradients) -> None:
        """Prepare to trace one value; ``gradients`` traces what a cache is made with."""
        super().__init__(gradients.callers, gradients.named)
        self._gradients = gradients
        self._arguments_of: dict[tuple[Definition, str | None, tuple[int, ...]], Carries] = {}
        """What methods get from their callers."""
        self._reachings: dict[tuple[Scope, str], Reaching] = {}
        self._names: dict[tuple[cst.Name, tuple[int, ...]], Carries] = {}
        self._depth = 0
        self._commands: set[cst.BaseExpression] = set()
        """The calls that are made for nothing but their effect."""
        self._inner_parameters: set[tuple[Scope, str]] = set()
        """The parameters of functions within functions."""
        self._filled: dict[tuple[Scope, str], bool] = {}
        self._open_dicts: set[tuple[Scope, str, str | None]] = set()
        self.other: Origin | None = None
        """The first expression that may be something else."""

    def is_cache_at(self, site: RunSite, arg: cst.Arg) -> bool:
        """Return whether an argument of a call can only be a cache, or an unpacked dict hold no other."""
        if arg.star != "**":
            return _is_cache(self.at(site, arg.value))
        place = Place(site.scope, site.scope.range_of(site.fragment, site.call)[0])
        return all(_is_cache(self._unpacked(place, arg.value, name)) for name in sorted(DROPPED))

    def of(self, place: Place, value: cst.BaseExpression, path: tuple[int, ...] = ()) -> Carries:
        """Return what an expression is."""
        entries = self._reaching(place.scope, value)
        self._depth += 1
        if len(path) > _MAX_PATH or self._depth > _MAX_DEPTH:
            # A loop, or a method that calls itself, may take an item of an item without end.
            found = Carries.UNKNOWN
        elif entries and isinstance(value, cst.Name):
            found = self._reached(place, value, entries, path)
        else:
            found = super().of(place, value, path)
        self._depth -= 1
        if self.other is None and not _is_cache(found):
            self.other = Origin(place.scope, place.at, value)
        return found

    def _is_cache(self, place: Place, value: cst.BaseExpression) -> bool:
        other = self.other
        found = _is_cache(self.of(place, value))
        self.other = other
        return found

    def _whole(self, place: Place, value: cst.BaseExpression) -> Carries:
        if isinstance(value, _DISPLAYS):
            return Carries.CACHE | united(self.of(place, each.value) for each in value.elements)
        if isinstance(value, (cst.ListComp, cst.GeneratorExp)):
            return Carries.CACHE | self.of(inside(place, value), value.elt)
        if isinstance(value, cst.BooleanOperation):
            # What is false on the left of `and` holds nothing.
            left = Carries.NOTHING if isinstance(value.operator, cst.And) else self.of(place, value.left)
            return left | self.of(place, value.right)
        if isinstance(value, cst.BinaryOperation) and isinstance(value.operator, cst.Multiply):
            return self.of(place, value.left) if isinstance(value.left, _DISPLAYS) else Carries.UNKNOWN
        if isinstance(value, cst.NamedExpr):
            return self.of(place, value.value)
        if isinstance(value, cst.Attribute) and self._is_cache(place, value.value):
            return Carries.CACHE
        return Carries.UNKNOWN

    def _call(self, place: Place, call: cst.Call, path: tuple[int, ...]) -> Carries:
        name = dotted_name(call.func) or ""
        if _MAKING.fullmatch(name) and name.partition(".")[0] != place.scope.self_name:
            return Carries.CACHE if self._makes_cache(place, call) else Carries.UNKNOWN
        if name in KEEPING_BUILTINS and len(call.args) == 1:
            return Carries.CACHE | self.of(place, call.args[0].value, path)
        if isinstance(call.func, cst.Attribute):
            method = call.func.attr.value
            if method in _CONVERTING and self._is_cache(place, call.func.value):
                return Carries.CACHE
            if method in _TAKING and call.args:
                given = self._item(place, call.func.value, call.args[0].value)
                return given | united(self.of(place, arg.value) for arg in call.args[1:])
        return Carries.UNKNOWN

    def _makes_cache(self, place: Place, call: cst.Call) -> bool:
        """Return whether a class of caches is called with nothing that requires grad."""
        made = place.scope.evaluate(call.func)
        if any(isinstance(each, ClassValue) and not _is_plain_cache(each.info) for each in made):
            return False
        return all(self._is_harmless(place, arg.value) for arg in call.args)

    def _is_harmless(self, place: Place, value: cst.BaseExpression) -> bool:
        if any(map(is_learned_value, place.scope.evaluate(value))):
            return False
        is_constant = not self._gradients.of(place, value) & ~Carries.CONSTANT
        parts = (dotted_name(value) or "").split(".")
        is_configuration = any(each == "config" or each[1:].endswith("_config") for each in parts)
        return is_constant or is_configuration or self._is_cache(place, value)

    # -- names

    def _reaching(self, scope: Scope, node: cst.BaseExpression) -> frozenset[Entry]:
        """Return the bindings of a name that reach a place; none where that is not known."""
        if not isinstance(node, cst.Name) or is_constant(node):
            return frozenset()
        key = scope, node.value
        if key not in self._reachings:
            pieces = () if scope.body is None else scope.body.pieces_following(node.value)
            self._reachings[key] = Reaching(node.value, pieces)
        return self._reachings[key].at(node)

    def _reached(
        self, place: Place, node: cst.Name, entries: frozenset[Entry], path: tuple[int, ...]
    ) -> Carries:
        """Return what a name is whose value is one of ``entries``."""
        key = node, path
        if key in self._names:
            return self._names[key]
        self._names[key] = Carries.NOTHING
        found, name = Carries.NOTHING, node.value
        argument = place.scope.argument(name)
        if None in entries and argument is not None:
            found |= self.of(Place(argument[0]), argument[1], path)
        elif None in entries and place.scope.parameters.has(name):
            found |= self._parameter(place, name, path)
        elif None in entries:
            found |= super().of(place, node, path)
        place = Place(place.scope)
        for binding in (each for each in place.scope.bindings(name) if each in entries):
            if binding.iterated:
                found |= self._iterated(place, binding.value, (*binding.path, *path))
            else:
                found |= self.of(place, binding.value, path if binding.added else (*binding.path, *path))
        if any(isinstance(entry, cst.FunctionDef) for entry in entries) or self._is_filled(place, name):
            found |= Carries.UNKNOWN
        self._names[key] = found
        return found

    def _is_dead(self, place: Place, test: cst.BaseExpression, holds: bool) -> bool:
        other = self.other
        found = super()._is_dead(place, test, holds)
        self.other = other
        return found

    def _bound(self, place: Place, name: str, path: tuple[int, ...]) -> Carries:
        found = super()._bound(place, name, path)
        return found | Carries.UNKNOWN if _is_cache(found) and self._is_filled(place, name) else found

    def _is_filled(self, place: Place, name: str) -> bool:
        key = place.scope, name
        if key not in self._filled:
            self._filled[key] = False
            self._filled[key] = self._may_be_filled(place, name, set())
        return self._filled[key]

    def _may_be_filled(self, place: Place, name: str, seen: set[str]) -> bool:
        """Return whether the function may put something else into a cache, or into its variable.

        It may wherever the name stands in another way than those that are known not to.
        """
        body = place.scope.body
        if body is None or name in seen:
            return body is None
        nodes = list(nodes_in(body.pieces_naming((name,))))
        seen.add(name)
        self._commands.update(node.value for node in nodes if isinstance(node, cst.Expr))
        self._inner_parameters.update(
            (place.scope, node.name.value) for node in nodes if isinstance(node, cst.Param)
        )
        uses = {node for node in nodes if _is_whole(node, name)}
        return not uses <= {each for node in nodes for each in self._harmless_uses(place, node, name, seen)}

    def _harmless_uses(
        self, place: Place, node: cst.CSTNode, name: str, seen: set[str]
    ) -> Iterator[cst.CSTNode]:
        """Yield the names in a node that stand where nothing is put into what they hold."""
        if isinstance(node, cst.Attribute):
            yield node.attr
            if node.attr.value in _FIGURES:
                yield from _flows(node.value)
        elif isinstance(node, cst.Param):
            yield node.name
        elif isinstance(node, cst.Arg):
            yield from () if node.keyword is None else (node.keyword,)
        elif isinstance(node, (cst.Assign, cst.AnnAssign)):
            yield from self._assigned_uses(place, node, name, seen)
        elif isinstance(node, (cst.For, cst.CompFor)):
            yield from _targets(node.target)
            held = [each for each in _flows(node.iter) if _is_whole(each, name)]
            if held and self._stay(place, _receiving(node.target, node.iter, name), name, seen):
                yield from held
        elif isinstance(node, cst.AugAssign):
            if isinstance(node.target, cst.Name) or self._is_harmless(place, node.value):
                yield from _flows(node.target)
        elif isinstance(node, cst.Call):
            if dotted_name(node.func) not in _ITERATING and not self._call_fills(place, node, name):
                yield from (*_flows(node.func), *(each for arg in node.args for each in _flows(arg.value)))
        else:
            for each in _only_read(node):
                yield from _flows(each)

    def _assigned_uses(
        self, place: Place, node: cst.Assign | cst.AnnAssign, name: str, seen: set[str]
    ) -> Iterator[cst.CSTNode]:
        targets = [each.target for each in node.targets] if isinstance(node, cst.Assign) else [node.target]
        if node.value is None:
            yield from _flows(targets[0])
            return
        names = [each for target in targets for each in _targets(target)]
        if any(_is_part(each, name) for each in targets) and self._is_harmless(place, node.value):
            yield from (each for target in targets for each in _flows(target))
        held = [each for each in _flows(node.value) if _is_whole(each, name)]
        is_alias = len(targets) > 1 and any(_is_whole(each, name) for each in names)
        if not (held or is_alias) or (all(map(_targets, targets)) and self._stay(place, names, name, seen)):
            yield from (*held, *names)
        elif len(targets) == 1:
            yield from names

    def _stay(self, place: Place, others: Iterable[cst.Name], name: str, seen: set[str]) -> bool:
        """Return whether nothing is put into what further names hold."""
        return not any(self._may_be_filled(place, each.value, seen) for each in others if each.value != name)

    def _call_fills(self, place: Place, call: cst.Call, name: str) -> bool:
        """Return whether a call may put something else into what a name holds."""
        given = [arg.value for arg in call.args]
        if _is_part(call.func, name):
            is_reading = isinstance(call.func, cst.Attribute) and call.func.attr.value in _READING
            return not is_reading and not all(self._is_harmless(place, each) for each in given)
        if not any(_is_whole(each, name) for value in given for each in _flows(value)):
            return False
        values = place.scope.evaluate(call.func)
        called = dotted_name(call.func) or ""
        is_given = place.scope.parameters.has(called) or (place.scope, called) in self._inner_parameters
        own = f"{place.scope.self_name}."
        bindings = tuple(place.scope.bindings(called)) if called.isidentifier() else ()
        # One that goes over something else as well may be a function from there.
        is_own_item = bool(bindings) and all(
            each.iterated and (dotted_name(each.value) or "").startswith(own) for each in bindings
        )
        is_held = is_given or is_own_item or called.startswith(own)
        is_own = is_held and call not in self._commands
        is_inherited = isinstance(call.func, cst.Attribute) and isinstance(call.func.value, cst.Call)
        is_run = is_own or is_inherited or _CHECKPOINTING.search(called) is not None
        is_known = values or is_run or hasattr(builtins, called)
        if not is_known or called in ("getattr", "vars"):
            return True
        if any(isinstance(value, External) for value in values) or not values:
            first, _, last = called.rpartition(".")
            changes = last in _FILLING or last.endswith("_") or _has_output(call) or first == "operator"
            return changes and not all(self._is_harmless(place, each) for each in given)
        return any(self._is_filled_in(place, call, value, name) for value in values)

    def _is_filled_in(self, place: Place, call: cst.Call, called: Value, name: str) -> bool:
        """Return whether a function or a method of the same object puts something else into its argument."""
        if isinstance(called, Bound) and called.instance.info is not place.scope.owner:
            return False
        if not isinstance(called, (Bound, Function)):
            return False
        if isinstance(called, Function) and isinstance(called.node, cst.Lambda):
            return True
        inner = self._enter(place, call, called)
        return inner is None or any(
            self._is_filled(Place(inner), each)
            for each in inner.parameters.names
            if (given := inner.argument(each)) is not None and _is_whole(given[1], name)
        )

    # -- arguments of the method

    def _parameter(self, place: Place, name: str, path: tuple[int, ...]) -> Carries:
        if _ARGUMENT.fullmatch(name) is None:
            return Carries.UNKNOWN
        default = place.scope.parameters.default(name)
        given = Carries.NOTHING if default is None else self.of(place, default)
        return given | self._passed(place, name, path)

    def _item(self, place: Place, mapping: cst.BaseExpression, key: cst.BaseExpression) -> Carries:
        name = str(key.evaluated_value) if isinstance(key, cst.SimpleString) else ""
        is_argument = _ARGUMENT.fullmatch(name) is not None
        return self._unpacked(place, mapping, name) if is_argument else Carries.UNKNOWN

    def _subscript(self, place: Place, node: cst.Subscript, path: tuple[int, ...]) -> Carries:
        first = node.slice[0].slice
        if isinstance(first, cst.Index) and isinstance(first.value, cst.SimpleString):
            return self._item(place, node.value, first.value)
        return super()._subscript(place, node, path)

    def _unpacked(self, place: Place, mapping: cst.BaseExpression, name: str | None) -> Carries:
        """Return what an unpacked dict has under a name that the function does not write; None is any."""
        if not isinstance(mapping, cst.Name):
            return Carries.UNKNOWN
        parent, parameters = place.scope.parent, place.scope.parameters
        is_own = mapping.value in parameters.variable
        is_local = is_own or parameters.has(mapping.value) or place.scope.binds(mapping.value)
        if parent is not None and not is_local:
            return self._unpacked(Place(parent), mapping, name)
        body = place.scope.body
        if body is None:
            return Carries.UNKNOWN
        nodes = list(nodes_in(body.pieces()))
        named = {
            arg.value for node in nodes if isinstance(node, cst.Call) for arg in node.args if arg.keyword
        }
        bindings = (each for each in place.scope.bindings(mapping.value) if not each.added)
        made = [each.value for each in bindings if each.value not in named]
        if not (is_own or made) or any(_writes(node, name) for node in nodes):
            return Carries.UNKNOWN
        found = self._passed(place, name, ()) if is_own else Carries.CACHE
        if not self._is_only_read(place, mapping.value):
            return Carries.UNKNOWN
        for value in made:
            others = _unpacked_in(value)
            if others is None:
                return Carries.UNKNOWN
            found |= united(
                self._unpacked_once(place, other, name if keeps_names else None)
                for other, keeps_names in others
            )
        return found

    def _unpacked_once(self, place: Place, mapping: str, name: str | None) -> Carries:
        """Return what a dict that another one unpacks has under a name."""
        key = place.scope, mapping, name
        if key in self._open_dicts:
            return Carries.UNKNOWN
        self._open_dicts.add(key)
        found = self._unpacked(place, cst.Name(mapping), name)
        self._open_dicts.discard(key)
        return found

    def _is_only_read(self, place: Place, name: str) -> bool:
        """Return whether all that a function does with a dict leaves it as it is, or writes a known name."""
        body = place.scope.body
        pieces = () if body is None else body.pieces_naming((name,))
        allowed: set[cst.CSTNode] = set()
        uses: set[cst.CSTNode] = set()
        for node in nodes_in(pieces):
            if isinstance(node, cst.Name) and node.value == name:
                uses.add(node)
            else:
                allowed.update(self._reads(place, node))
        return uses <= allowed

    def _reads(self, place: Place, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        """Yield those parts of a node that may be a dict, and stay as they are but for known names."""
        if isinstance(node, (cst.AssignTarget, cst.AnnAssign)):
            yield node.target
        elif isinstance(node, cst.Param):
            yield node.name
        elif isinstance(node, cst.StarredDictElement):
            yield node.value
        elif isinstance(node, cst.ComparisonTarget):
            yield node.comparator
        elif isinstance(node, cst.Subscript):
            index = node.slice[0].slice
            if isinstance(index, cst.Index) and isinstance(index.value, cst.SimpleString):
                yield node.value
        elif isinstance(node, cst.Call):
            if isinstance(node.func, cst.Attribute) and _leaves_names(node, node.func.attr.value):
                yield node.func.value
            is_builtin = isinstance(node.func, cst.Name) and hasattr(builtins, node.func.value)
            values = place.scope.evaluate(node.func)
            is_harmless = any(isinstance(each, External) for each in values) or (is_builtin and not values)
            last = (dotted_name(node.func) or "").rpartition(".")[2]
            for arg in node.args:
                if arg.keyword is not None:
                    yield arg.keyword
                if arg.star or (is_harmless and last not in _FILLING):
                    yield arg.value

    def _passed(self, place: Place, name: str | None, path: tuple[int, ...]) -> Carries:
        """Return what the callers that are known pass to the method under a name; all others pass a cache.

        None stands for all names that are none of its parameters.
        """
        scope = place.scope
        method = None if scope.body is None else scope.body.definition
        signature = None if method is None else method_signature(scope.module.file, method)
        if scope.depth or method is None or scope.owner is None or signature is None:
            return Carries.UNKNOWN
        key = method, name, path
        if key in self._arguments_of:
            return self._arguments_of[key]
        found = self._arguments_of[key] = Carries.CACHE
        for caller in self.callers.everywhere(scope.owner, method.name):
            there = Place(caller.scope, caller.at)
            for bound in bind(written_arguments(caller.scope, caller.args), signature).arguments:
                if bound.arg.star == "**":
                    found |= self._unpacked(there, bound.arg.value, name)
                elif bound.arg.star == "*" and not _is_variadic(there, bound.arg.value):
                    found |= Carries.UNKNOWN
                elif (bound.parameter is None) if name is None else (_name(bound) == name):
                    found |= self.of(there, bound.arg.value, path)
        self._arguments_of[key] = found
        return found


def _is_plain_cache(info: ClassInfo) -> bool:
    """Return whether a class of caches holds what is written to it, and nothing of its own."""
    is_derived = any(_MAKING.fullmatch(base.name) for base in info.mro[1:])
    has_interface = any(name.startswith("update") for name in (each.name for each in info.methods()))
    return not is_learned(info) and (is_derived or has_interface)


def _is_variadic(place: Place, value: cst.BaseExpression) -> bool:
    return isinstance(value, cst.Name) and value.value in place.scope.parameters.variable


def _leaves_names(call: cst.Call, method: str) -> bool:
    """Return whether a method of a dict puts nothing into it but under names that are written down."""
    if method in ("update", "setdefault"):
        first = call.args[0].value if call.args else None
        is_known = all(arg.keyword is not None for arg in call.args)
        return is_known or isinstance(first, cst.Dict if method == "update" else cst.SimpleString)
    return method in _LOOKING


def _unpacked_in(value: cst.BaseExpression) -> list[tuple[str, bool]] | None:
    """Return the dicts that a new one unpacks, and whether it keeps their names.

    None if its other names are not all written down.
    """
    taken = _taken_from(value)
    if taken is not None:
        return [(taken, False)]
    parts: list[cst.BaseExpression] = []
    if isinstance(value, cst.Call) and dotted_name(value.func) == "dict":
        if any(arg.keyword is None and arg.star != "**" for arg in value.args):
            return None
        parts = [arg.value for arg in value.args if arg.star]
    elif isinstance(value, cst.Dict):
        keys = [each.key for each in value.elements if isinstance(each, cst.DictElement)]
        if not all(isinstance(key, cst.SimpleString) for key in keys):
            return None
        parts = [each.value for each in value.elements if isinstance(each, cst.StarredDictElement)]
    else:
        return None
    names = [(part.value, True) for part in parts if isinstance(part, cst.Name)]
    return names if len(names) == len(parts) else None


def _taken_from(value: cst.BaseExpression) -> str | None:
    """Return the dict whose values a comprehension renames: ``{…: v for k, v in d.items()}``."""
    if not isinstance(value, cst.DictComp) or not isinstance(value.for_in.target, cst.Tuple):
        return None
    items, targets = value.for_in.iter, [each.value for each in value.for_in.target.elements]
    is_kept = isinstance(value.value, cst.Name) and len(targets) == 2 and value.value.deep_equals(targets[1])
    if not is_kept or value.for_in.inner_for_in is not None or not isinstance(items, cst.Call) or items.args:
        return None
    mapping, _, method = (dotted_name(items.func) or "").rpartition(".")
    return mapping if method == "items" and mapping.isidentifier() else None


def _flows(value: cst.CSTNode) -> Iterator[cst.Name]:
    """Yield the names that an expression may be the value of, or a part of it, or hold."""
    if isinstance(value, cst.Name):
        yield value
    elif isinstance(value, cst.Attribute):
        yield from () if value.attr.value in _FILLING else _flows(value.value)
    elif isinstance(value, (cst.Subscript, cst.StarredElement, cst.NamedExpr)):
        yield from _flows(value.value)
    elif isinstance(value, cst.IfExp):
        yield from (*_flows(value.body), *_flows(value.orelse))
    elif isinstance(value, (cst.BooleanOperation, cst.BinaryOperation)):
        yield from (*_flows(value.left), *_flows(value.right))
    elif isinstance(value, (cst.Tuple, cst.List, cst.Dict)):
        for element in value.elements:
            yield from _flows(element.value)
    elif isinstance(value, cst.Call) and dotted_name(value.func) in _ITERATING:
        for arg in value.args:
            yield from _flows(arg.value)


def _targets(target: cst.CSTNode) -> list[cst.Name]:
    """Return the names that a target binds; none if it also puts something elsewhere."""
    if isinstance(target, cst.Name):
        return [target]
    if isinstance(target, cst.StarredElement):
        return _targets(target.value)
    if isinstance(target, (cst.Tuple, cst.List)):
        found = [
            _targets(each if isinstance(each, cst.StarredElement) else each.value) for each in target.elements
        ]
        return [name for names in found for name in names] if all(found) else []
    return []


def _receiving(target: cst.BaseExpression, iterable: cst.BaseExpression, name: str) -> list[cst.Name]:
    """Return the names of a loop's target that get what a name holds."""
    called = dotted_name(iterable.func) if isinstance(iterable, cst.Call) else None
    if isinstance(iterable, cst.Call) and isinstance(target, cst.Tuple) and called in ("enumerate", "zip"):
        parts = [each.value for each in target.elements][called == "enumerate" :]
        pairs = zip(parts, (arg.value for arg in iterable.args), strict=False)
        return [
            each
            for part, value in pairs
            if any(_is_whole(other, name) for other in _flows(value))
            for each in _receiving(part, value, name)
        ]
    return _targets(target)


def _only_read(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """Yield the parts of a node that are asked, or handed back at the end of a function."""
    if isinstance(node, (cst.If, cst.While, cst.IfExp, cst.Assert, cst.CompIf)):
        yield node.test
    elif isinstance(node, cst.Comparison):
        yield from (node.left, *(each.comparator for each in node.comparisons))
    elif isinstance(node, (cst.UnaryOperation, cst.FormattedStringExpression)):
        yield node.expression
    elif isinstance(node, cst.Return) and node.value is not None:
        yield node.value
    elif isinstance(node, cst.Del):
        yield node.target if isinstance(node.target, cst.Name) else cst.Pass()
    elif isinstance(node, (cst.ListComp, cst.GeneratorExp)):
        yield node.elt


def _has_output(call: cst.Call) -> bool:
    return any(arg.keyword is not None and arg.keyword.value == "out" for arg in call.args)


def _writes(node: cst.CSTNode, name: str | None) -> bool:
    """Return whether a node puts something under a name, or under any, into a dict."""
    if isinstance(node, cst.DictElement):
        return _is_string(node.key, name)
    if isinstance(node, cst.AssignTarget) and isinstance(node.target, cst.Subscript):
        first = node.target.slice[0].slice
        return isinstance(first, cst.Index) and _is_string(first.value, name)
    if isinstance(node, cst.Call) and (dotted_name(node.func) or "").rpartition(".")[2] in _WRITING:
        keywords = {arg.keyword.value for arg in node.args if arg.keyword is not None}
        is_named = bool(keywords) if name is None else name in keywords
        return is_named or any(_is_string(arg.value, name) for arg in node.args)
    return False


def _is_string(node: cst.CSTNode, text: str | None) -> bool:
    return isinstance(node, cst.SimpleString) and text in (None, node.evaluated_value)


def _is_whole(node: cst.CSTNode, name: str) -> bool:
    return isinstance(node, cst.Name) and node.value == name


def _is_part(node: cst.CSTNode, name: str) -> bool:
    """Return whether an expression is an attribute or item of what a name holds, at any depth."""
    depth = 0
    while isinstance(node, (cst.Attribute, cst.Subscript)):
        node, depth = node.value, depth + 1
    return depth > 0 and isinstance(node, cst.Name) and node.value == name
