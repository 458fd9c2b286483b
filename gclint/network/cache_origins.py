"""Finds what is passed under the name of a cache and may be something else, which the base class would drop.

Only what is known to be a cache is one: what comes from the model's own arguments, is None, or is made as a
cache. Anything else, such as a learned prompt or the memory of earlier segments, is part of what the model
computes.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterable, Iterator

from gclint.network.activation import is_constant
from gclint.network.binding import BoundArgument, bind
from gclint.network.differentiable import KEEPING_BUILTINS
from gclint.network.evaluation.body import Body, unstarred
from gclint.network.evaluation.classes import ClassInfo
from gclint.network.evaluation.reaching import Entry, Reaching
from gclint.network.evaluation.scope import Scope
from gclint.network.evaluation.signature import method_signature
from gclint.network.evaluation.values import Bound, ClassValue, External, Function, Value
from gclint.network.gradient import Carries, Gradients, Origin, Place, inside, place_of, united
from gclint.network.learned import is_learned_value
from gclint.network.runsite import RunSite
from gclint.network.traits import is_learned
from gclint.network.written_arguments import written_arguments
from gclint.releases import EVER_NEUTRALISED
from gclint.source.outline import Definition
from gclint.source.walk import FUNCTIONS, Arg, dotted_name, text_of, walk
from gclint.source.walk import arguments as arguments_of
from gclint.verify.worker.vocabulary import PLAIN_CACHES, USE_CACHE

_DROPPED = EVER_NEUTRALISED - {USE_CACHE}
"""The keywords whose values the base class replaces by None."""
_ARGUMENT = re.compile(
    rf"(?:\w+_)?(?:{'|'.join(sorted(_DROPPED))}|caches?|past)|{'|'.join(sorted(PLAIN_CACHES))}"
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
_DISPLAYS = (ast.Tuple, ast.List)
_HARMLESS = Carries.CONSTANT | Carries.CACHE
_LONGEST = 60
_MAX_PATH = 4
_MAX_DEPTH = 50


def no_cache(site: RunSite, args: Iterable[Arg], gradients: Gradients) -> str | None:
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


def dropped(bindings: Iterable[BoundArgument]) -> Iterator[Arg]:
    """Yield the arguments that a checkpointing layer drops once they are passed by their names."""
    for bound in bindings:
        if bound.arg.star == "**" or _name(bound) in _DROPPED:
            yield bound.arg


def arguments(site: RunSite) -> Iterator[BoundArgument]:
    """Yield the arguments of a call as each of the blocks that it may run gets them."""
    for info in site.blocks:
        if info.signature is not None:
            yield from bind(site.written_args, info.signature).arguments


def _name(bound: BoundArgument) -> str | None:
    if bound.parameter is not None:
        return bound.parameter.name
    return bound.arg.keyword


def _described(site: RunSite, arg: Arg, origin: Origin | None) -> str:
    passed = f"`{arg.star}{_code(site.source(arg.value))}`"
    what = f"{passed} may be something else than a cache, which checkpointing would drop"
    if origin is None or origin.node is arg.value:
        return what
    file = origin.scope.module.file
    row = file.position(origin.scope.span(origin.node)[0]).row
    where = f"line {row}" if file is site.scope.module.file else f"line {row} of {file.path.name}"
    return f"{what}: `{_code(origin.scope.source(origin.node))}` on {where} is not known to be one"


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
        self._names: dict[tuple[ast.Name, tuple[int, ...]], Carries] = {}
        self._depth = 0
        self._commands: set[ast.expr] = set()
        """The calls that are made for nothing but their effect."""
        self._inner_parameters: set[tuple[Scope, str]] = set()
        """The parameters of functions within functions."""
        self._filled: dict[tuple[Scope, str], bool] = {}
        self._open_dicts: set[tuple[Scope, str, str | None]] = set()
        self.other: Origin | None = None
        """The first expression that may be something else."""

    def is_cache_at(self, site: RunSite, arg: Arg) -> bool:
        """Return whether an argument of a call can only be a cache, or an unpacked dict hold no other."""
        if arg.star != "**":
            return _is_cache(self.at(site, arg.value))
        place = place_of(site.scope, site.call)
        return all(_is_cache(self._unpacked(place, arg.value, name)) for name in sorted(_DROPPED))

    def of(self, place: Place, value: ast.expr, path: tuple[int, ...] = ()) -> Carries:
        """Return what an expression is."""
        entries = self._reaching(place.scope, value)
        self._depth += 1
        if len(path) > _MAX_PATH or self._depth > _MAX_DEPTH:
            # A loop, or a method that calls itself, may take an item of an item without end.
            found = Carries.UNKNOWN
        elif entries and isinstance(value, ast.Name):
            found = self._reached(place, value, entries, path)
        else:
            found = super().of(place, value, path)
        self._depth -= 1
        if self.other is None and not _is_cache(found):
            self.other = Origin(place.scope, value)
        return found

    def _is_cache(self, place: Place, value: ast.expr) -> bool:
        other = self.other
        found = _is_cache(self.of(place, value))
        self.other = other
        return found

    def _whole(self, place: Place, value: ast.expr) -> Carries:
        if isinstance(value, _DISPLAYS):
            return Carries.CACHE | united(self.of(place, unstarred(each)) for each in value.elts)
        if isinstance(value, (ast.ListComp, ast.GeneratorExp)):
            return Carries.CACHE | self.of(inside(place, value), value.elt)
        if isinstance(value, ast.BoolOp):
            # What is false on the left of `and` holds nothing.
            possible = value.values[-1:] if isinstance(value.op, ast.And) else value.values
            return united(self.of(place, each) for each in possible)
        if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mult):
            return self.of(place, value.left) if isinstance(value.left, _DISPLAYS) else Carries.UNKNOWN
        if isinstance(value, ast.NamedExpr):
            return self.of(place, value.value)
        if isinstance(value, ast.Attribute) and self._is_cache(place, value.value):
            return Carries.CACHE
        return Carries.UNKNOWN

    def _call(self, place: Place, call: ast.Call, path: tuple[int, ...]) -> Carries:
        name = dotted_name(call.func) or ""
        if _MAKING.fullmatch(name) and name.partition(".")[0] != place.scope.self_name:
            return Carries.CACHE if self._makes_cache(place, call) else Carries.UNKNOWN
        given = arguments_of(call)
        if name in KEEPING_BUILTINS and len(given) == 1:
            return Carries.CACHE | self.of(place, given[0].value, path)
        if isinstance(call.func, ast.Attribute):
            method = call.func.attr
            if method in _CONVERTING and self._is_cache(place, call.func.value):
                return Carries.CACHE
            if method in _TAKING and given:
                item = self._item(place, call.func.value, given[0].value)
                return item | united(self.of(place, arg.value) for arg in given[1:])
        return Carries.UNKNOWN

    def _makes_cache(self, place: Place, call: ast.Call) -> bool:
        """Return whether a class of caches is called with nothing that requires grad."""
        made = place.scope.evaluate(call.func)
        if any(isinstance(each, ClassValue) and not _is_plain_cache(each.info) for each in made):
            return False
        return all(self._is_harmless(place, arg.value) for arg in arguments_of(call))

    def _is_harmless(self, place: Place, value: ast.expr) -> bool:
        if any(map(is_learned_value, place.scope.evaluate(value))):
            return False
        is_constant = not self._gradients.of(place, value) & ~Carries.CONSTANT
        parts = (dotted_name(value) or "").split(".")
        is_configuration = any(each == "config" or each[1:].endswith("_config") for each in parts)
        return is_constant or is_configuration or self._is_cache(place, value)

    # -- names

    def _reaching(self, scope: Scope, node: ast.expr) -> frozenset[Entry]:
        """Return the bindings of a name that reach a place; none where that is not known."""
        if not isinstance(node, ast.Name):
            return frozenset()
        key = scope, node.id
        if key not in self._reachings:
            self._reachings[key] = Reaching(node.id, () if scope.body is None else scope.body.roots)
        return self._reachings[key].at(node)

    def _reached(
        self, place: Place, node: ast.Name, entries: frozenset[Entry], path: tuple[int, ...]
    ) -> Carries:
        """Return what a name is whose value is one of ``entries``."""
        key = node, path
        if key in self._names:
            return self._names[key]
        self._names[key] = Carries.NOTHING
        found, name = Carries.NOTHING, node.id
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
        if any(isinstance(entry, FUNCTIONS) for entry in entries) or self._is_filled(place, name):
            found |= Carries.UNKNOWN
        self._names[key] = found
        return found

    def _is_dead(self, place: Place, test: ast.expr, holds: bool) -> bool:
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
        nodes = _nodes_naming(body, name)
        seen.add(name)
        self._commands.update(node.value for node in nodes if isinstance(node, ast.Expr))
        self._inner_parameters.update((place.scope, node.arg) for node in nodes if isinstance(node, ast.arg))
        uses = {node for node in nodes if _names(node, name)}
        return not uses <= {each for node in nodes for each in self._harmless_uses(place, node, name, seen)}

    def _harmless_uses(self, place: Place, node: ast.AST, name: str, seen: set[str]) -> Iterator[ast.AST]:
        """Yield the names in a node that stand where nothing is put into what they hold."""
        if isinstance(node, ast.Attribute):
            if node.attr in _FIGURES:
                yield from _flows(node.value)
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            yield from self._assigned_uses(place, node, name, seen)
        elif isinstance(node, (ast.For, ast.AsyncFor, ast.comprehension)):
            yield from _targets(node.target)
            held = [each for each in _flows(node.iter) if _is_whole(each, name)]
            if held and self._stay(place, _receiving(node.target, node.iter, name), name, seen):
                yield from held
            yield from (each for test in getattr(node, "ifs", ()) for each in _flows(test))
        elif isinstance(node, ast.AugAssign):
            if isinstance(node.target, ast.Name) or self._is_harmless(place, node.value):
                yield from _flows(node.target)
        elif isinstance(node, ast.Call):
            if dotted_name(node.func) not in _ITERATING and not self._call_fills(place, node, name):
                given = (each for arg in arguments_of(node) for each in _flows(arg.value))
                yield from (*_flows(node.func), *given)
        else:
            for each in _only_read(node):
                yield from _flows(each)

    def _assigned_uses(
        self, place: Place, node: ast.Assign | ast.AnnAssign, name: str, seen: set[str]
    ) -> Iterator[ast.AST]:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
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

    def _stay(self, place: Place, others: Iterable[ast.Name], name: str, seen: set[str]) -> bool:
        """Return whether nothing is put into what further names hold."""
        return not any(self._may_be_filled(place, each.id, seen) for each in others if each.id != name)

    def _call_fills(self, place: Place, call: ast.Call, name: str) -> bool:
        """Return whether a call may put something else into what a name holds."""
        given = [arg.value for arg in arguments_of(call)]
        if _is_part(call.func, name):
            is_reading = isinstance(call.func, ast.Attribute) and call.func.attr in _READING
            return not is_reading and not all(self._is_harmless(place, each) for each in given)
        if not any(_is_whole(each, name) for value in given for each in _flows(value)):
            return False
        values = place.scope.evaluate(call.func)
        called = dotted_name(call.func) or ""
        is_given = place.scope.parameters.has(called) or (place.scope, called) in self._inner_parameters
        own = f"{place.scope.self_name}."
        bindings = place.scope.bindings(called) if called.isidentifier() else ()
        # One that goes over something else as well may be a function from there.
        is_own_item = bool(bindings) and all(
            each.iterated and (dotted_name(each.value) or "").startswith(own) for each in bindings
        )
        is_held = is_given or is_own_item or called.startswith(own)
        is_own = is_held and call not in self._commands
        is_inherited = isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Call)
        is_run = is_own or is_inherited or _CHECKPOINTING.search(called) is not None
        is_known = values or is_run or hasattr(builtins, called)
        if not is_known or called in ("getattr", "vars"):
            return True
        if any(isinstance(value, External) for value in values) or not values:
            first, _, last = called.rpartition(".")
            changes = last in _FILLING or last.endswith("_") or _has_output(call) or first == "operator"
            return changes and not all(self._is_harmless(place, each) for each in given)
        return any(self._is_filled_in(place, call, value, name) for value in values)

    def _is_filled_in(self, place: Place, call: ast.Call, called: Value, name: str) -> bool:
        """Return whether a function or a method of the same object puts something else into its argument."""
        if isinstance(called, Bound) and called.instance.info is not place.scope.owner:
            return False
        if not isinstance(called, (Bound, Function)):
            return False
        if isinstance(called, Function) and isinstance(called.node, ast.Lambda):
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

    def _item(self, place: Place, mapping: ast.expr, key: ast.expr) -> Carries:
        name = text_of(key) or ""
        is_argument = _ARGUMENT.fullmatch(name) is not None
        return self._unpacked(place, mapping, name) if is_argument else Carries.UNKNOWN

    def _subscript(self, place: Place, node: ast.Subscript, path: tuple[int, ...]) -> Carries:
        if text_of(node.slice) is not None:
            return self._item(place, node.value, node.slice)
        return super()._subscript(place, node, path)

    def _unpacked(self, place: Place, mapping: ast.expr, name: str | None) -> Carries:
        """Return what an unpacked dict has under a name that the function does not write; None is any."""
        return self._in_dict(place, mapping.id, name) if isinstance(mapping, ast.Name) else Carries.UNKNOWN

    def _in_dict(self, place: Place, mapping: str, name: str | None) -> Carries:
        parent, parameters = place.scope.parent, place.scope.parameters
        is_own = mapping in parameters.variable
        is_local = is_own or parameters.has(mapping) or place.scope.binds(mapping)
        if parent is not None and not is_local:
            return self._in_dict(Place(parent), mapping, name)
        body = place.scope.body
        if body is None:
            return Carries.UNKNOWN
        named = {arg.value for call in body.calls() for arg in arguments_of(call) if arg.keyword}
        bindings = (each for each in place.scope.bindings(mapping) if not each.added)
        made = [each.value for each in bindings if each.value not in named]
        if not (is_own or made) or any(_writes(node, name) for node in body.nodes):
            return Carries.UNKNOWN
        found = self._passed(place, name, ()) if is_own else Carries.CACHE
        if not self._is_only_read(place, mapping):
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
        found = self._in_dict(place, mapping, name)
        self._open_dicts.discard(key)
        return found

    def _is_only_read(self, place: Place, name: str) -> bool:
        """Return whether all that a function does with a dict leaves it as it is, or writes a known name."""
        body = place.scope.body
        nodes = [] if body is None else _nodes_naming(body, name)
        uses = {node for node in nodes if _names(node, name)}
        return uses <= {each for node in nodes for each in self._reads(place, node)}

    def _reads(self, place: Place, node: ast.AST) -> Iterator[ast.AST]:
        """Yield those parts of a node that may be a dict, and stay as they are but for known names."""
        if isinstance(node, ast.Assign):
            yield from node.targets
        elif isinstance(node, ast.AnnAssign):
            yield node.target
        elif isinstance(node, ast.Dict):
            yield from _unpacked_by(node)
        elif isinstance(node, ast.Compare):
            yield from node.comparators
        elif isinstance(node, ast.Subscript):
            if text_of(node.slice) is not None:
                yield node.value
        elif isinstance(node, ast.Call):
            if isinstance(node.func, ast.Attribute) and _leaves_names(node, node.func.attr):
                yield node.func.value
            is_builtin = isinstance(node.func, ast.Name) and hasattr(builtins, node.func.id)
            values = place.scope.evaluate(node.func)
            is_harmless = any(isinstance(each, External) for each in values) or (is_builtin and not values)
            last = (dotted_name(node.func) or "").rpartition(".")[2]
            for arg in arguments_of(node):
                if arg.star or (is_harmless and last not in _FILLING):
                    yield arg.value

    def _passed(self, place: Place, name: str | None, path: tuple[int, ...]) -> Carries:
        """Return what the callers that are known pass to the method under a name; all others pass a cache.

        None stands for all names that are none of its parameters.
        """
        scope = place.scope
        method = None if scope.body is None else scope.body.definition
        signature = None if method is None else method_signature(method)
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


def _is_variadic(place: Place, value: ast.expr) -> bool:
    return isinstance(value, ast.Name) and value.id in place.scope.parameters.variable


def _nodes_naming(body: Body, name: str) -> list[ast.AST]:
    """Return the nodes of those parts of a body that use or bind a name."""
    found: list[ast.AST] = []
    for root in body.roots:
        nodes = list(walk(root))
        if any(_names(node, name) for node in nodes):
            found += nodes
    return found


def _names(node: ast.AST, name: str) -> bool:
    """Return whether a node uses a name, or binds it without a node of its own, as ``global`` and ``def``."""
    if isinstance(node, (ast.Global, ast.Nonlocal)):
        return name in node.names
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return any((each.asname or each.name) == name for each in node.names)
    return any(getattr(node, field, None) == name for field in ("id", "name", "rest"))


def _leaves_names(call: ast.Call, method: str) -> bool:
    """Return whether a method of a dict puts nothing into it but under names that are written down."""
    if method in ("update", "setdefault"):
        given = arguments_of(call)
        is_known = all(arg.keyword is not None for arg in given)
        return is_known or (
            isinstance(given[0].value, ast.Dict)
            if method == "update"
            else text_of(given[0].value) is not None
        )
    return method in _LOOKING


def _unpacked_by(value: ast.Dict) -> list[ast.expr]:
    """Return the dicts that the display of a dict unpacks."""
    return [each for key, each in zip(value.keys, value.values, strict=True) if key is None]


def _unpacked_in(value: ast.expr) -> list[tuple[str, bool]] | None:
    """Return the dicts that a new one unpacks, and whether it keeps their names.

    None if its other names are not all written down.
    """
    taken = _taken_from(value)
    if taken is not None:
        return [(taken, False)]
    if isinstance(value, ast.Call) and dotted_name(value.func) == "dict":
        given = arguments_of(value)
        if any(arg.keyword is None and arg.star != "**" for arg in given):
            return None
        parts = [arg.value for arg in given if arg.star]
    elif isinstance(value, ast.Dict):
        if not all(key is None or text_of(key) is not None for key in value.keys):
            return None
        parts = _unpacked_by(value)
    else:
        return None
    names = [(part.id, True) for part in parts if isinstance(part, ast.Name)]
    return names if len(names) == len(parts) else None


def _taken_from(value: ast.expr) -> str | None:
    """Return the dict whose values a comprehension renames: ``{…: v for k, v in d.items()}``."""
    if not isinstance(value, ast.DictComp) or len(value.generators) > 1:
        return None
    target, items = value.generators[0].target, value.generators[0].iter
    targets = [dotted_name(each) for each in target.elts] if isinstance(target, ast.Tuple) else []
    is_kept = isinstance(value.value, ast.Name) and len(targets) == 2 and value.value.id == targets[1]
    if not is_kept or not isinstance(items, ast.Call) or arguments_of(items):
        return None
    mapping, _, method = (dotted_name(items.func) or "").rpartition(".")
    return mapping if method == "items" and mapping.isidentifier() else None


def _flows(value: ast.expr) -> Iterator[ast.Name]:
    """Yield the names that an expression may be the value of, or a part of it, or hold."""
    if isinstance(value, ast.Name):
        yield value
    elif isinstance(value, ast.Attribute):
        yield from () if value.attr in _FILLING else _flows(value.value)
    elif isinstance(value, (ast.Subscript, ast.Starred, ast.NamedExpr)):
        yield from _flows(value.value)
    else:
        for part in _parts(value):
            yield from _flows(part)


def _parts(value: ast.expr) -> list[ast.expr]:
    """Return the expressions of which another is one, or which it holds."""
    if isinstance(value, ast.IfExp):
        return [value.body, value.orelse]
    if isinstance(value, ast.BinOp):
        return [value.left, value.right]
    if isinstance(value, (ast.BoolOp, ast.Dict)):
        return value.values
    if isinstance(value, (ast.Tuple, ast.List)):
        return value.elts
    if isinstance(value, ast.Call) and dotted_name(value.func) in _ITERATING:
        return [arg.value for arg in arguments_of(value)]
    return []


def _targets(target: ast.expr) -> list[ast.Name]:
    """Return the names that a target binds; none if it also puts something elsewhere."""
    if isinstance(target, ast.Name):
        return [target]
    if isinstance(target, ast.Starred):
        return _targets(target.value)
    if isinstance(target, (ast.Tuple, ast.List)):
        found = [_targets(each) for each in target.elts]
        return [name for names in found for name in names] if all(found) else []
    return []


def _receiving(target: ast.expr, iterable: ast.expr, name: str) -> list[ast.Name]:
    """Return the names of a loop's target that get what a name holds."""
    called = dotted_name(iterable.func) if isinstance(iterable, ast.Call) else None
    if isinstance(iterable, ast.Call) and isinstance(target, ast.Tuple) and called in ("enumerate", "zip"):
        parts = target.elts[called == "enumerate" :]
        pairs = zip(parts, (arg.value for arg in arguments_of(iterable)), strict=False)
        return [
            each
            for part, value in pairs
            if any(_is_whole(other, name) for other in _flows(value))
            for each in _receiving(part, value, name)
        ]
    return _targets(target)


def _only_read(node: ast.AST) -> Iterator[ast.expr]:
    """Yield the parts of a node that are asked, or handed back at the end of a function."""
    if isinstance(node, (ast.If, ast.While, ast.IfExp, ast.Assert)):
        yield node.test
    elif isinstance(node, ast.Compare):
        yield from (node.left, *node.comparators)
    elif isinstance(node, ast.UnaryOp):
        yield node.operand
    elif isinstance(node, (ast.Return, ast.FormattedValue)):
        yield from () if node.value is None else (node.value,)
    elif isinstance(node, ast.Delete):
        yield from (each for each in node.targets if isinstance(each, ast.Name))
    elif isinstance(node, (ast.ListComp, ast.GeneratorExp)):
        yield node.elt


def _has_output(call: ast.Call) -> bool:
    return any(arg.keyword == "out" for arg in arguments_of(call))


def _writes(node: ast.AST, name: str | None) -> bool:
    """Return whether a node puts something under a name, or under any, into a dict."""
    if isinstance(node, ast.Dict):
        return any(key is not None and _is_string(key, name) for key in node.keys)
    if isinstance(node, ast.Assign):
        return any(isinstance(each, ast.Subscript) and _is_string(each.slice, name) for each in node.targets)
    if isinstance(node, ast.Call) and (dotted_name(node.func) or "").rpartition(".")[2] in _WRITING:
        given = arguments_of(node)
        keywords = {arg.keyword for arg in given if arg.keyword is not None}
        is_named = bool(keywords) if name is None else name in keywords
        return is_named or any(_is_string(arg.value, name) for arg in given)
    return False


def _is_string(node: ast.expr, text: str | None) -> bool:
    written = text_of(node)
    return written is not None and text in (None, written)


def _is_whole(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _is_part(node: ast.AST, name: str) -> bool:
    """Return whether an expression is an attribute or item of what a name holds, at any depth."""
    depth = 0
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node, depth = node.value, depth + 1
    return depth > 0 and isinstance(node, ast.Name) and node.id == name
