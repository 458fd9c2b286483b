"""The calls that run a block: directly, or through a checkpoint function."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from functools import cached_property

import libcst as cst

from gclint.network.classes import ClassInfo
from gclint.network.dataflow import carried_names
from gclint.network.scope import Scope
from gclint.network.values import Bound, External, Function, Instance, Values
from gclint.network.walk import children, code, dotted_name, walk, walk_scope

CHECKPOINT_METHODS = {"_gradient_checkpointing_func", "gradient_checkpointing_func"}
_CHECKPOINT_FUNCTIONS = {"torch.utils.checkpoint.checkpoint", "deepspeed.checkpointing.checkpoint"}
_CHECKPOINT_OPTIONS = {"use_reentrant", "preserve_rng_state", "context_fn", "determinism_check", "debug"}
_MAX_NESTING = 2
_RUNNING_METHODS = {"__call__", "forward"}


@dataclass(frozen=True)
class Arm:
    """One side of an ``if`` that a call stands in."""

    branch: cst.If
    taken: bool
    """Whether the call stands under the condition itself, not under ``else``."""


@dataclass(eq=False)
class RunSite:
    """A call that runs a block."""

    scope: Scope
    call: cst.Call
    """The whole call; of a checkpointed one, the call of the checkpoint function."""
    receiver: cst.BaseExpression
    """What is run: ``layer``, ``self.layers[i]``."""
    args: tuple[cst.Arg, ...]
    """The arguments that reach the block."""
    blocks: tuple[ClassInfo, ...]
    checkpointed: bool
    """Whether the call goes through a checkpoint function instead of running the block itself."""
    loops: tuple[cst.For | cst.While, ...]
    arms: tuple[Arm, ...]
    statement: cst.SimpleStatementLine | None
    function: cst.FunctionDef | None = None
    """The method's own inner function that is called or checkpointed, and runs the blocks."""
    peers: list[RunSite] = field(default_factory=list, repr=False)
    """The sites of the same receiver in the same method, this one among them."""

    @property
    def owner(self) -> ClassInfo:
        """The class in whose method the call stands."""
        assert self.scope.owner is not None
        return self.scope.owner

    @cached_property
    def stream(self) -> frozenset[str]:
        """The names that carry the block's output from one step of the loop to the next."""
        for loop in reversed(self.loops):
            calls = frozenset(peer.call for peer in self.peers if loop in peer.loops)
            carried = carried_names(loop, calls)
            fed_back = carried.intersection(
                node.value for arg in self.args for node in walk(arg.value) if isinstance(node, cst.Name)
            )
            if fed_back:
                return fed_back
        return frozenset()

    @property
    def is_trunk(self) -> bool:
        """Whether the call's output feeds its own next step."""
        return bool(self.stream)

    def span(self, node: cst.CSTNode) -> tuple[int, int]:
        """Return where a node of the method stands in the file."""
        assert self.scope.fragment is not None
        return self.scope.fragment.span(node)

    def source(self, node: cst.CSTNode) -> str:
        """Return a node's code."""
        assert self.scope.fragment is not None
        return self.scope.fragment.source(node)


@dataclass(frozen=True)
class _InnerFunction:
    """A function defined in a method's body, and the scope of that body."""

    node: cst.FunctionDef
    scope: Scope


@dataclass(frozen=True)
class _Place:
    """Where the search stands in a method."""

    loops: tuple[cst.For | cst.While, ...] = ()
    arms: tuple[Arm, ...] = ()
    statement: cst.SimpleStatementLine | None = None


def run_sites(scope: Scope, holders: Collection[str]) -> list[RunSite]:
    """Return the calls in a method that run an object of a class of the project, in text order.

    Args:
        scope: the method.
        holders: the attributes that hold blocks; calls of others are not looked at.
    """
    assert isinstance(scope.function, cst.FunctionDef)
    sites = [
        site
        for call, place in _calls(scope.function.body, _Place())
        for site in (_checkpointed(scope, call, place, holders) or _plain(scope, call, place, holders),)
        if site is not None
    ]
    for site in list(sites):
        if site.function is not None:
            sites += _sites_inside(scope, _InnerFunction(site.function, scope), list(site.args), holders)
    by_receiver: dict[str, list[RunSite]] = {}
    for site in sites:
        peers = by_receiver.setdefault(code(site.receiver), [])
        peers.append(site)
        site.peers = peers
    return sites


def _calls(node: cst.CSTNode, place: _Place) -> Iterator[tuple[cst.Call, _Place]]:
    if isinstance(node, (cst.For, cst.While)):
        inner = _Place((*place.loops, node), place.arms)
        yield from _calls(node.iter if isinstance(node, cst.For) else node.test, place)
        yield from _calls(node.body, inner)
        if node.orelse is not None:
            yield from _calls(node.orelse.body, place)
    elif isinstance(node, cst.If):
        yield from _calls(node.test, place)
        yield from _calls(node.body, _Place(place.loops, (*place.arms, Arm(node, True))))
        if node.orelse is not None:
            other = _Place(place.loops, (*place.arms, Arm(node, False)))
            yield from _calls(node.orelse if isinstance(node.orelse, cst.If) else node.orelse.body, other)
    elif isinstance(node, cst.SimpleStatementLine):
        inner = _Place(place.loops, place.arms, node)
        for child in children(node):
            yield from _calls(child, inner)
    elif not isinstance(node, (cst.FunctionDef, cst.ClassDef, cst.Lambda)):
        if isinstance(node, cst.Call):
            yield node, place
        for child in children(node):
            yield from _calls(child, place)


def _plain(scope: Scope, call: cst.Call, place: _Place, holders: Collection[str]) -> RunSite | None:
    """Return the site of ``layer(...)`` or ``layer.forward(...)``."""
    if not _may_be_block(scope, call.func, holders):
        return None
    values = scope.evaluate(call.func)
    receiver = call.func
    bound = [value for value in values if isinstance(value, Bound) and value.method in _RUNNING_METHODS]
    function = _inner_function(scope, call.func)
    if function is not None:
        blocks = _run_inside(scope, function, list(call.args), holders)
        return _site(scope, call, place, receiver, list(call.args), blocks, function=function.node) if blocks else None
    if bound and isinstance(call.func, cst.Attribute):
        receiver = call.func.value
        if isinstance(receiver, cst.Call) or (
            isinstance(receiver, cst.Name) and receiver.value == scope.self_name
        ):
            return None
    blocks = _instances(values)
    return _site(scope, call, place, receiver, list(call.args), blocks) if blocks else None


def _checkpointed(
    scope: Scope, call: cst.Call, place: _Place, holders: Collection[str]
) -> RunSite | None:
    """Return the site of a call of a checkpoint function."""
    if not call.args or call.args[0].star or not is_checkpoint_function(scope, call.func):
        return None
    target = call.args[0].value
    rest = [
        arg for arg in call.args[1:] if arg.keyword is None or arg.keyword.value not in _CHECKPOINT_OPTIONS
    ]
    wrapped = _unwrap(scope, target, rest)
    if wrapped is not None:
        receiver, args = wrapped
        blocks = _instances(scope.evaluate(receiver))
        if blocks:
            return _site(scope, call, place, receiver, args, blocks, checkpointed=True)
    function = _inner_function(scope, target)
    if function is None:
        return None
    blocks = _run_inside(scope, function, rest, holders)
    return _site(scope, call, place, target, rest, blocks, checkpointed=True, function=function.node)


def _inner_function(scope: Scope, target: cst.BaseExpression) -> _InnerFunction | None:
    """Return the function inside the method that a name stands for."""
    if not isinstance(target, cst.Name):
        return None
    node = scope.local_function(target.value)
    return None if node is None else _InnerFunction(node, scope)


def _run_inside(
    scope: Scope, function: _InnerFunction, args: list[cst.Arg], holders: Collection[str]
) -> tuple[ClassInfo, ...]:
    """Return the blocks that an inner function runs when it gets these arguments."""
    found = {info for site in _sites_inside(scope, function, args, holders) for info in site.blocks}
    return tuple(sorted(found, key=lambda info: info.name))


def _sites_inside(
    scope: Scope, function: _InnerFunction, args: list[cst.Arg], holders: Collection[str]
) -> list[RunSite]:
    inner = scope.enter(function.node, function.scope, args, skip_self=False)
    return run_sites(inner, holders) if inner.depth <= _MAX_NESTING else []


def _may_be_block(scope: Scope, func: cst.BaseExpression, holders: Collection[str]) -> bool:
    """Tell whether it is worth evaluating what is called: it comes from an attribute that holds blocks."""
    if isinstance(func, cst.Attribute) and func.attr.value in _RUNNING_METHODS:
        func = func.value
    while isinstance(func, cst.Subscript):
        func = func.value
    if isinstance(func, cst.Attribute):
        return func.attr.value in holders
    if isinstance(func, cst.Name):
        return scope.binds(func.value)
    return isinstance(func, cst.Call) and dotted_name(func.func) == "getattr"


def is_checkpoint_function(scope: Scope, func: cst.BaseExpression) -> bool:
    """Tell whether an expression is torch's checkpoint function, or the one that a model was given."""
    if isinstance(func, cst.Attribute) and func.attr.value in CHECKPOINT_METHODS:
        return True
    name = dotted_name(func)
    if name is None or "checkpoint" not in name:
        return False
    return any(
        isinstance(value, External) and value.name in _CHECKPOINT_FUNCTIONS for value in scope.evaluate(func)
    )


def _unwrap(
    scope: Scope, target: cst.BaseExpression, args: list[cst.Arg]
) -> tuple[cst.BaseExpression, list[cst.Arg]] | None:
    """Return what a checkpointed callable runs, and with which arguments."""
    if isinstance(target, cst.Attribute) and target.attr.value in _RUNNING_METHODS:
        return target.value, args
    if isinstance(target, cst.Call):
        functions = scope.evaluate(target.func)
        if any(isinstance(value, External) and value.name == "functools.partial" for value in functions):
            bound = list(target.args[1:])
            if not bound or all(arg.keyword is not None or arg.star == "**" for arg in bound):
                return _unwrap(scope, target.args[0].value, args + bound)
            return None
        return _custom_forward(scope, functions, target, args)
    if isinstance(target, (cst.Name, cst.Attribute, cst.Subscript)):
        return target, args
    return None


def _custom_forward(
    scope: Scope, functions: Values, target: cst.Call, args: list[cst.Arg]
) -> tuple[cst.BaseExpression, list[cst.Arg]] | None:
    """Look through ``create_custom_forward(layer)``: a function that returns a function.

    The inner one calls its module with ``*inputs`` and, often, with more arguments of its own.
    """
    if len(target.args) != 1 or len(functions) != 1:
        return None
    (function,) = functions
    if not isinstance(function, Function) or not isinstance(function.node, cst.FunctionDef):
        return None
    outer = function.node
    inner = [node for node in walk_scope(outer.body) if isinstance(node, cst.FunctionDef)]
    if len(inner) != 1 or len(outer.params.params) != 1:
        return None
    returns = [node for node in walk_scope(inner[0].body) if isinstance(node, cst.Return)]
    star = inner[0].params.star_arg
    if len(returns) != 1 or not isinstance(star, cst.Param) or not isinstance(returns[0].value, cst.Call):
        return None
    call = returns[0].value
    if not isinstance(call.func, cst.Name) or call.func.value != outer.params.params[0].name.value:
        return None
    forwarded: list[cst.Arg] = []
    for arg in call.args:
        if arg.star == "*" and isinstance(arg.value, cst.Name) and arg.value.value == star.name.value:
            forwarded += args
        else:
            forwarded.append(arg)
    return target.args[0].value, forwarded


def _instances(values: Values) -> tuple[ClassInfo, ...]:
    found = {value.info for value in values if isinstance(value, Instance)}
    found |= {
        value.instance.info
        for value in values
        if isinstance(value, Bound) and value.method in _RUNNING_METHODS
    }
    return tuple(
        sorted((info for info in found if info.is_module), key=lambda info: (info.name, str(info.file.path)))
    )


def _site(
    scope: Scope,
    call: cst.Call,
    place: _Place,
    receiver: cst.BaseExpression,
    args: list[cst.Arg] | tuple[cst.Arg, ...],
    blocks: tuple[ClassInfo, ...],
    *,
    checkpointed: bool = False,
    function: cst.FunctionDef | None = None,
) -> RunSite:
    return RunSite(
        scope,
        call,
        receiver,
        tuple(args),
        blocks,
        checkpointed,
        place.loops,
        place.arms,
        place.statement,
        function,
    )
