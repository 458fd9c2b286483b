"""Finds call sites: calls that run a block, directly or through a checkpoint function."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import libcst as cst

from gclint.network.assignments import stops_gradients
from gclint.network.dataflow import carried_names, flowing
from gclint.network.evaluation.body import Piece
from gclint.network.evaluation.classes import ClassInfo
from gclint.network.evaluation.scope import Scope
from gclint.network.evaluation.values import Bound, External, Function, Instance, Values, items_of
from gclint.network.evaluation.walk import children, dotted_name, structure
from gclint.network.search import CHECKPOINT_METHODS, RUNNING_METHODS, Holders, Search, search_blocks
from gclint.network.wrapped import unwrap
from gclint.network.written_arguments import written_arguments
from gclint.observations import Observed
from gclint.source.fragment import Fragment

_CHECKPOINT_FUNCTIONS = {"torch.utils.checkpoint.checkpoint", "deepspeed.checkpointing.checkpoint"}
_CHECKPOINT_OPTIONS = frozenset(
    ("use_reentrant", "preserve_rng_state", "context_fn", "determinism_check", "debug", "early_stop")
)
"""What a checkpoint function takes for itself. That of every release of transformers is torch's own."""
_MAX_NESTING = 2
_BRANCHING = frozenset(
    (cst.For, cst.While, cst.If, cst.With, cst.SimpleStatementLine, cst.FunctionDef, cst.ClassDef, cst.Lambda)
)


@dataclass(frozen=True)
class Arm:
    """One side of an ``if`` around a call."""

    branch: cst.If
    taken: bool
    """Whether the call is in the body, not under ``else``."""


class Peers:
    """The calls of sites, and the loops around them; not the sites themselves, which would leak memory."""

    def __init__(self) -> None:
        self._calls: list[tuple[cst.Call, tuple[cst.For | cst.While, ...]]] = []
        self._carried: dict[cst.For | cst.While, frozenset[str]] = {}

    def add(self, call: cst.Call, loops: tuple[cst.For | cst.While, ...]) -> None:
        """Add a call; this comes before any question."""
        self._calls.append((call, loops))

    def carried(self, loop: cst.For | cst.While) -> frozenset[str]:
        """Return the names through which a loop passes on what its calls return, found once."""
        if loop not in self._carried:
            calls = frozenset(call for call, loops in self._calls if loop in loops)
            self._carried[loop] = carried_names(loop, calls)
        return self._carried[loop]


@dataclass(eq=False)
class RunSite:
    """A call site: a call that runs a block."""

    scope: Scope = field(repr=False)
    fragment: Fragment = field(repr=False)
    call: cst.Call = field(repr=False)
    """The whole call; if checkpointed, the call of the checkpoint function."""
    receiver: cst.BaseExpression
    """The expression for the block, such as ``layer`` or ``self.layers[i]``."""
    args: tuple[cst.Arg, ...]
    """The arguments that reach the block."""
    blocks: tuple[ClassInfo, ...]
    checkpointed: bool
    """Whether the call goes through a checkpoint function instead of running the block itself."""
    loops: tuple[cst.For | cst.While, ...]
    arms: tuple[Arm, ...]
    statement: cst.SimpleStatementLine | None
    function: Function | None = None
    """The inner function of the method that is called or checkpointed, and that runs the blocks."""
    outcome: tuple[cst.BaseExpression, ...] = ()
    """What a wrapper function does with the output of a checkpointed block: see ``Wrapped``."""
    whole: bool = False
    """Whether a whole ``nn.Sequential`` is called, which passes the output of each block to the next."""
    records: bool = True
    """Whether gradients are recorded, as no context manager around the call prevents it."""
    peers: Peers = field(default_factory=Peers, repr=False)
    """All call sites in the method with the same receiver and blocks, including this one."""
    seen: tuple[Observed, ...] = ()
    """The observations of the call in runs."""
    only_seen: frozenset[ClassInfo] = frozenset()
    """The blocks that only a run has seen it run."""

    @property
    def owner(self) -> ClassInfo:
        """The class whose method contains the call."""
        assert self.scope.owner is not None
        return self.scope.owner

    @cached_property
    def written_args(self) -> tuple[cst.Arg, ...]:
        """The arguments that reach the block, with the items of what the call unpacks."""
        written = written_arguments(self.scope, self.args)
        return tuple(arg for arg in written if not (self.checkpointed and _is_option(arg)))

    @cached_property
    def stream(self) -> frozenset[str]:
        """The names through which the block's output is passed to the next iteration: the hidden states."""
        for loop in reversed(self.loops):
            values = (arg.value for arg in (*self.args, *self.written_args))
            passed = (node for value in values for node in flowing(value))
            fed_back = self.peers.carried(loop).intersection(
                node.value for node in passed if isinstance(node, cst.Name)
            )
            if fed_back:
                return fed_back
        return frozenset()

    @property
    def is_trunk(self) -> bool:
        """Whether the output of the call is its input in the next iteration."""
        return self.whole or bool(self.stream)

    @property
    def calls_library(self) -> bool:
        """Whether a checkpointed call uses the checkpoint function that the library sets on the model."""
        return isinstance(self.call.func, cst.Attribute) and self.call.func.attr.value in CHECKPOINT_METHODS

    @property
    def left_out(self) -> frozenset[ClassInfo]:
        """The blocks that feed one another here and were not recomputed in a run with checkpointing."""
        names = {each.block for each in self.seen if each.is_left_out}
        return frozenset(info for info in self.blocks if info.name in names)

    @property
    def rows(self) -> tuple[int, int]:
        """The rows, from 1, on which the call begins and ends."""
        start, end = self.span(self.call)
        position = self.fragment.file.position
        return position(start).row, position(end - 1).row

    def option(self, name: str) -> cst.Arg | None:
        """Return the argument ``name`` of a checkpointed call for the checkpoint function itself."""
        given = written_arguments(self.scope, self.call.args)
        named = (arg for arg in given if arg.keyword is not None and arg.keyword.value == name)
        return next(named, None) if self.checkpointed else None

    def span(self, node: cst.CSTNode) -> tuple[int, int]:
        """Return the start and end of a node of the method, as offsets in the file."""
        return self.fragment.span(node)

    def source(self, node: cst.CSTNode) -> str:
        """Return a node's code."""
        return self.fragment.source(node)


@dataclass(frozen=True)
class _Place:
    """The current position of the search in a method."""

    fragment: Fragment
    loops: tuple[cst.For | cst.While, ...] = ()
    arms: tuple[Arm, ...] = ()
    statement: cst.SimpleStatementLine | None = None
    records: bool = True


def run_sites(scope: Scope, holders: Holders, outer: frozenset[str] = frozenset()) -> list[RunSite]:
    """Return the calls in a method that run an instance of a class of the project, in text order.

    Args:
        scope: the scope of the method, or of a function inside it.
        holders: the attributes and methods that hold blocks; calls of others are not examined.
        outer: names in the enclosing scope that refer to the content of such an attribute.
    """
    search = search_blocks(scope, holders, outer)
    sites = [
        site
        for piece in search.pieces
        for node in piece.nodes or ()
        for call, place in _calls(node, _Place(_fragment(piece)))
        for site in (_checkpointed(scope, call, place, search) or _plain(scope, call, place, search),)
        if site is not None
    ]
    for site in list(sites):
        if site.function is not None:
            sites += _sites_inside(scope, site.function, list(site.args), search)
    by_receiver: dict[tuple[Hashable, tuple[ClassInfo, ...]], Peers] = {}
    for site in sites:
        # Two loops may use the same name for their variables.
        site.peers = by_receiver.setdefault((structure(site.receiver), site.blocks), Peers())
        site.peers.add(site.call, site.loops)
    return sites


def calls_as_sites(scope: Scope, offset: int, blocks: tuple[ClassInfo, ...]) -> Iterator[RunSite]:
    """Yield each call in a statement of a method as the call site that it is if it runs ``blocks``.

    Args:
        scope: the scope of the method.
        offset: an offset in the statement.
        blocks: the classes that are run according to a run, since the code does not show it.
    """
    for piece in () if scope.body is None else scope.body.pieces_at([offset]):
        for node in piece.nodes or ():
            for call, place in _calls(node, _Place(_fragment(piece))):
                yield _assumed(scope, call, place, blocks)


def _assumed(scope: Scope, call: cst.Call, place: _Place, blocks: tuple[ClassInfo, ...]) -> RunSite:
    checkpointed = bool(call.args) and is_checkpoint_function(scope, call.func)
    wrapped = unwrap(scope, call.args[0].value, _passed_on(scope, call)) if checkpointed else None
    receiver = call.func if wrapped is None else wrapped.receiver
    args = call.args if wrapped is None else wrapped.args
    site = _site(scope, call, place, receiver, args, blocks, checkpointed=wrapped is not None)
    site.peers.add(call, place.loops)
    return site


def _passed_on(scope: Scope, call: cst.Call) -> list[cst.Arg]:
    """Return the arguments that a checkpoint function passes on, and mappings that may hold some."""
    return [arg for arg in call.args[1:] if not all(map(_is_option, written_arguments(scope, [arg])))]


def _is_option(arg: cst.Arg) -> bool:
    return arg.keyword is not None and arg.keyword.value in _CHECKPOINT_OPTIONS


def _fragment(piece: Piece) -> Fragment:
    assert piece.fragment is not None  # it has been parsed
    return piece.fragment


def _calls(node: cst.CSTNode, place: _Place) -> Iterator[tuple[cst.Call, _Place]]:
    kind = type(node)
    if kind not in _BRANCHING:
        if kind is cst.Call:
            yield cst.ensure_type(node, cst.Call), place
        for child in children(node):
            yield from _calls(child, place)
    elif isinstance(node, (cst.For, cst.While)):
        inner = replace(place, loops=(*place.loops, node))
        yield from _calls(node.iter if isinstance(node, cst.For) else node.test, place)
        yield from _calls(node.body, inner)
        if node.orelse is not None:
            yield from _calls(node.orelse.body, place)
    elif isinstance(node, cst.If):
        yield from _calls(node.test, place)
        yield from _calls(node.body, replace(place, arms=(*place.arms, Arm(node, True))))
        if node.orelse is not None:
            other = replace(place, arms=(*place.arms, Arm(node, False)))
            yield from _calls(node.orelse if isinstance(node.orelse, cst.If) else node.orelse.body, other)
    elif isinstance(node, (cst.SimpleStatementLine, cst.With)):
        inner = replace(place, statement=node) if isinstance(node, cst.SimpleStatementLine) else place
        if isinstance(node, cst.With) and any(stops_gradients(item.item) for item in node.items):
            inner = replace(place, records=False)
        for child in children(node):
            yield from _calls(child, inner)


def _plain(scope: Scope, call: cst.Call, place: _Place, search: Search) -> RunSite | None:
    """Return the site of ``layer(...)`` or ``layer.forward(...)``."""
    if not _may_be_block(call.func, search):
        return None
    values = scope.evaluate(call.func)
    receiver = call.func
    bound = [value for value in values if isinstance(value, Bound) and value.method in RUNNING_METHODS]
    function = scope.local_function(call.func.value, call.func) if isinstance(call.func, cst.Name) else None
    if function is not None:
        blocks = _run_inside(scope, function, list(call.args), search)
        return (
            _site(scope, call, place, receiver, list(call.args), blocks, function=function)
            if blocks
            else None
        )
    if bound and isinstance(call.func, cst.Attribute):
        receiver = call.func.value
        if isinstance(receiver, cst.Call) or (
            isinstance(receiver, cst.Name) and receiver.value == scope.self_name
        ):
            return None
    blocks = _instances(values)
    if not blocks and len(call.args) == 1 and call.args[0].keyword is None and not call.args[0].star:
        # Since a list cannot be called, this is an `nn.Sequential`, which runs one block after the other.
        blocks = _instances(items_of(values))
        return _site(scope, call, place, receiver, list(call.args), blocks, whole=True) if blocks else None
    return _site(scope, call, place, receiver, list(call.args), blocks) if blocks else None


def _checkpointed(scope: Scope, call: cst.Call, place: _Place, search: Search) -> RunSite | None:
    """Return the site of a call of a checkpoint function."""
    if not call.args or call.args[0].star or not is_checkpoint_function(scope, call.func):
        return None
    target = call.args[0].value
    rest = _passed_on(scope, call)
    wrapped = unwrap(scope, target, rest)
    if wrapped is not None:
        blocks = _instances(scope.evaluate(wrapped.receiver))
        if blocks:
            return _site(
                scope,
                call,
                place,
                wrapped.receiver,
                wrapped.args,
                blocks,
                checkpointed=True,
                outcome=wrapped.outcome,
            )
    function = scope.local_function(target.value, target) if isinstance(target, cst.Name) else None
    if function is None:
        return None
    blocks = _run_inside(scope, function, rest, search)
    return _site(scope, call, place, target, rest, blocks, checkpointed=True, function=function)


def _run_inside(
    scope: Scope, function: Function, args: list[cst.Arg], search: Search
) -> tuple[ClassInfo, ...]:
    """Return the blocks that an inner function runs if it is called with these arguments."""
    found = {info for site in _sites_inside(scope, function, args, search) for info in site.blocks}
    return tuple(sorted(found, key=lambda info: info.name))


def _sites_inside(scope: Scope, function: Function, args: list[cst.Arg], search: Search) -> list[RunSite]:
    inner = scope.enter(function, args)
    return run_sites(inner, search.holders, search.aliases) if inner.depth <= _MAX_NESTING else []


def _may_be_block(func: cst.BaseExpression, search: Search) -> bool:
    """Return whether the called expression may come from an attribute that holds blocks."""
    if isinstance(func, cst.Attribute) and func.attr.value in RUNNING_METHODS:
        func = func.value
    while isinstance(func, cst.Subscript):
        func = func.value
    if isinstance(func, cst.Attribute):
        return func.attr.value in search.holders.attributes
    if isinstance(func, cst.Name):
        return func.value in search.aliases
    return isinstance(func, cst.Call) and dotted_name(func.func) == "getattr"


def is_checkpoint_function(scope: Scope, func: cst.BaseExpression) -> bool:
    """Return whether an expression is torch's checkpoint function, or the one that is set on a model."""
    if isinstance(func, cst.Attribute) and func.attr.value in CHECKPOINT_METHODS:
        return True
    name = dotted_name(func)
    if name is None or "checkpoint" not in name:
        return False
    return any(
        isinstance(value, External) and value.name in _CHECKPOINT_FUNCTIONS for value in scope.evaluate(func)
    )


def _instances(values: Values) -> tuple[ClassInfo, ...]:
    found = {value.info for value in values if isinstance(value, Instance)}
    found |= {
        value.instance.info
        for value in values
        if isinstance(value, Bound) and value.method in RUNNING_METHODS
    }
    return tuple(
        sorted((info for info in found if info.is_module), key=lambda info: (info.name, str(info.file.path)))
    )


def _site(
    scope: Scope,
    call: cst.Call,
    place: _Place,
    receiver: cst.BaseExpression,
    args: Sequence[cst.Arg],
    blocks: tuple[ClassInfo, ...],
    *,
    checkpointed: bool = False,
    function: Function | None = None,
    outcome: tuple[cst.BaseExpression, ...] = (),
    whole: bool = False,
) -> RunSite:
    return RunSite(
        scope,
        place.fragment,
        call,
        receiver,
        tuple(args),
        blocks,
        checkpointed,
        place.loops,
        place.arms,
        place.statement,
        function,
        outcome,
        whole,
        place.records,
    )
