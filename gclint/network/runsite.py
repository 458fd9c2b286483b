"""Finds call sites: calls that run a block, directly or through a checkpoint function."""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from gclint.code.walk import (
    FUNCTIONS,
    Arg,
    Loop,
    all_nodes,
    arguments,
    dotted_name,
    is_constant,
    structure,
    walk_scope,
)
from gclint.network.assignments import Arm, CodePlace, place_in
from gclint.network.dataflow import Peers
from gclint.network.evaluation.classes import ClassInfo
from gclint.network.evaluation.scope import Scope
from gclint.network.evaluation.values import (
    EvaluatedExternal,
    EvaluatedFunction,
    EvaluatedMethod,
    Instance,
    Values,
    items_of,
)
from gclint.network.narrowing import narrowed
from gclint.network.search import CHECKPOINT_METHODS, RUNNING_METHODS, Holders, may_be_block
from gclint.network.wrapped import unwrap, written_arguments
from gclint.observations import Observed

_TORCHS = "torch.utils.checkpoint.checkpoint"
CHECKPOINT_FUNCTIONS = {_TORCHS, "deepspeed.checkpointing.checkpoint"}
_CHECKPOINT_OPTIONS = frozenset(
    ("use_reentrant", "preserve_rng_state", "context_fn", "determinism_check", "debug", "early_stop")
)
"""What a checkpoint function takes for itself. That of every release of transformers is torch's own."""
_MAX_NESTING = 2
_KEEPING_OPERANDS = (ast.Mult, ast.MatMult, ast.Div, ast.Pow)
"""The operators that keep tensors for the backward pass."""
_LIGHT = frozenset(("enumerate", "getattr", "hasattr", "isinstance", "len", "list", "range", "tuple", "zip"))
"""Functions that compute no tensors."""
_NEW_SCOPES = (*FUNCTIONS, ast.ClassDef, ast.Lambda)


@dataclass(eq=False)
class RunSite:
    """A call site: a call that runs a block."""

    scope: Scope = field(repr=False)
    call: ast.Call = field(repr=False)
    """The whole call; if checkpointed, the call of the checkpoint function."""
    receiver: ast.expr
    """The expression for the block, such as ``layer`` or ``self.layers[i]``."""
    args: tuple[Arg, ...]
    """The arguments that reach the block."""
    blocks: tuple[ClassInfo, ...]
    place: CodePlace = field(repr=False)
    checkpointed: bool = False
    """Whether the call goes through a checkpoint function instead of running the block itself."""
    function: EvaluatedFunction | None = None
    """The inner function of the method that is called or checkpointed, and that runs the blocks."""
    is_exact: bool = True
    """Whether what is checkpointed surely does nothing but run the blocks: see ``Wrapped``."""
    outcome: tuple[ast.expr, ...] = ()
    """What a wrapper function does with the output of a checkpointed block: see ``Wrapped``."""
    whole: bool = False
    """Whether a whole ``nn.Sequential`` is called, which passes the output of each block to the next."""
    peers: Peers = field(default_factory=Peers, repr=False)
    """All call sites in the method with the same receiver and blocks, including this one."""
    seen: tuple[Observed, ...] = ()
    """The observations of the call in runs."""
    only_seen: frozenset[ClassInfo] = frozenset()
    """The blocks that only a run has seen it run."""

    @property
    def loops(self) -> tuple[Loop, ...]:
        """The loops around the call, the innermost last."""
        return self.place.loops

    @property
    def arms(self) -> tuple[Arm, ...]:
        """The sides of conditions around the call, the innermost last."""
        return self.place.arms

    @property
    def statement(self) -> ast.stmt | None:
        """The simple statement that holds the call."""
        return self.place.statement

    @property
    def owner(self) -> ClassInfo:
        """The class whose method contains the call."""
        assert self.scope.owner is not None
        return self.scope.owner

    @cached_property
    def written_args(self) -> tuple[Arg, ...]:
        """The arguments that reach the block, with the items of what the call unpacks."""
        written = written_arguments(self.scope, self.args)
        return tuple(arg for arg in written if not (self.checkpointed and _is_option(arg)))

    @cached_property
    def stream(self) -> frozenset[str]:
        """The names through which the block's output is passed to the next iteration: the hidden states."""
        for loop in reversed(self.loops):
            values = [arg.value for arg in (*self.args, *self.written_args)]
            fed_back = self.peers.fed_back(loop, values)
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
        return isinstance(self.call.func, ast.Attribute) and self.call.func.attr in CHECKPOINT_METHODS

    @property
    def calls_forward(self) -> bool:
        """Whether a plain call may be one of ``forward`` itself, by whatever name."""
        called = self.scope.evaluate(self.call.func)
        return any(isinstance(each, EvaluatedMethod) and each.method == "forward" for each in called)

    @cached_property
    def let_through(self) -> frozenset[ClassInfo]:
        """The blocks that the tests around the call let through: of others, it has no defects to report."""
        return narrowed(self.scope, self.call, self.receiver, self.blocks)

    @property
    def layer(self) -> ClassInfo | None:
        """The first checkpointing layer that they let through."""
        found = (info for info in self.blocks if info.is_checkpointing)
        return next((info for info in found if info in self.let_through), None)

    @cached_property
    def does_more(self) -> bool:
        """Whether the inner function also computes what takes memory, beside running the blocks."""
        if self.function is None:
            return False
        scope = self.scope.enter(self.function, self.args)
        for node in scope.body.nodes:
            if isinstance(node, ast.BinOp) and isinstance(node.op, _KEEPING_OPERANDS):
                return True
            if isinstance(node, ast.Call) and dotted_name(node.func) not in _LIGHT:
                run = _instances(scope.evaluate(node.func))
                if set(run).isdisjoint(self.blocks):
                    return True
        return False

    @property
    def calls_only_torch(self) -> bool:
        """Whether a checkpointed call surely uses torch's function, without options that are not known."""
        module, name = self.scope.module, (dotted_name(self.call.func) or "").partition(".")[0]
        nodes = all_nodes(module.file.tree)
        if not nodes or any(isinstance(each, ast.Global) and name in each.names for each in nodes):
            return False
        plain = {EvaluatedExternal(_TORCHS)}
        if self.scope.evaluate(self.call.func) == plain:
            return True
        given = [each.value for each in nodes if isinstance(each, ast.Assign) and _binds(each, name)]
        made = arguments(given[0]) if len(given) == 1 and isinstance(given[0], ast.Call) else ()
        wrapped = module.resolve(dotted_name(made[0].value) or "") if made else ()
        return set(wrapped) == plain and {arg.keyword for arg in made[1:]} <= {"use_reentrant"}

    @property
    def left_out(self) -> frozenset[ClassInfo]:
        """The blocks that feed one another here and were not recomputed in a run with checkpointing."""
        names = {each.block for each in self.seen if each.is_left_out}
        return frozenset(info for info in self.blocks if info.name in names)

    @property
    def rows(self) -> tuple[int, int]:
        """The rows, from 1, on which the call begins and ends."""
        start, end = self.span(self.call)
        position = self.scope.module.file.position
        return position(start).row, position(end - 1).row

    def option(self, name: str) -> Arg | None:
        """Return the argument ``name`` of a checkpointed call for the checkpoint function itself."""
        given = written_arguments(self.scope, arguments(self.call))
        named = (arg for arg in given if arg.keyword == name)
        return next(named, None) if self.checkpointed else None

    @property
    def keywords(self) -> tuple[str, ...]:
        """The arguments for blocks that a checkpointed call passes by keyword, which needs no reentry."""
        given = self.option("use_reentrant")
        if not self.checkpointed or (given is not None and is_constant(given.value, False)):
            return ()
        passed = _passed_on(self.scope, arguments(self.call))
        return tuple(arg.keyword for arg in passed if arg.keyword is not None)

    @property
    def may_be_non_reentrant(self) -> bool:
        """Whether a checkpointed call may decide for itself to checkpoint without reentry."""
        given = self.option("use_reentrant")
        if given is not None:
            return not (isinstance(given.value, ast.Constant) and given.value.value is True)
        functions = self.scope.evaluate(self.call.func)
        return any(isinstance(each, EvaluatedExternal) and each.is_partial for each in functions)

    def span(self, node: ast.AST) -> tuple[int, int]:
        """Return the start and end of a node of the method, as offsets in the file."""
        return self.scope.span(node)

    def source(self, node: ast.AST) -> str:
        """Return a node's code."""
        return self.scope.source(node)


def _binds(node: ast.Assign, name: str) -> bool:
    return name in map(dotted_name, node.targets)


def run_sites(scope: Scope, holders: Holders) -> list[RunSite]:
    """Return the calls in a method, or in a function inside one, that run blocks, in text order."""
    sites = [
        site
        for root in scope.body.roots
        for call, place in _calls(root)
        for site in (_checkpointed(scope, call, place, holders) or _plain(scope, call, place, holders),)
        if site is not None
    ]
    for site in list(sites):
        if site.function is not None:
            sites += _sites_inside(scope, site.function, site.args, holders)
    by_receiver: dict[tuple[Hashable, tuple[ClassInfo, ...]], Peers] = {}
    for site in sites:
        # Two loops may use the same name for their variables.
        site.peers = by_receiver.setdefault((structure(site.receiver), site.blocks), Peers())
        site.peers.add(site.call, site.loops)
    return sites


def calls_as_sites(scope: Scope, offset: int, blocks: tuple[ClassInfo, ...]) -> Iterator[RunSite]:
    """Yield each call in a statement of a method as the call site that it is if it runs ``blocks``.

    That they are run is known from a run, since the code does not show it.
    """
    row = scope.module.file.places.row(offset)
    for root in scope.body.roots:
        if isinstance(root, ast.stmt) and root.lineno <= row <= (root.end_lineno or root.lineno):
            for call, place in _calls(root):
                yield _assumed(scope, call, place, blocks)


def _assumed(scope: Scope, call: ast.Call, place: CodePlace, blocks: tuple[ClassInfo, ...]) -> RunSite:
    given = arguments(call)
    checkpointed = bool(given) and is_checkpoint_function(scope, call.func)
    wrapped = unwrap(scope, given[0].value, _passed_on(scope, given)) if checkpointed else None
    receiver = call.func if wrapped is None else wrapped.receiver
    args = given if wrapped is None else wrapped.args
    site = RunSite(scope, call, receiver, args, blocks, place, wrapped is not None)
    site.peers.add(call, place.loops)
    return site


def _passed_on(scope: Scope, given: Sequence[Arg]) -> tuple[Arg, ...]:
    """Return the arguments that a checkpoint function passes on, and mappings that may hold some."""
    return tuple(arg for arg in given[1:] if not all(map(_is_option, written_arguments(scope, [arg]))))


def _is_option(arg: Arg) -> bool:
    return arg.keyword in _CHECKPOINT_OPTIONS


def _calls(root: ast.AST) -> Iterator[tuple[ast.Call, CodePlace]]:
    """Yield the calls in a node and their places, without those in nested functions and classes."""
    for node in () if isinstance(root, _NEW_SCOPES) else (root, *walk_scope(root)):
        if isinstance(node, ast.Call):
            yield node, place_in(root, node)


def _plain(scope: Scope, call: ast.Call, place: CodePlace, holders: Holders) -> RunSite | None:
    """Return the site of ``layer(...)`` or ``layer.forward(...)``."""
    if not may_be_block(scope, call.func, holders):
        return None
    values = scope.evaluate(call.func)
    receiver, given = call.func, arguments(call)
    bound = [
        value for value in values if isinstance(value, EvaluatedMethod) and value.method in RUNNING_METHODS
    ]
    function = scope.local_function(call.func.id, call.func) if isinstance(call.func, ast.Name) else None
    if function is not None:
        blocks = _run_inside(scope, function, given, holders)
        return RunSite(scope, call, receiver, given, blocks, place, function=function) if blocks else None
    if bound and isinstance(call.func, ast.Attribute):
        receiver = call.func.value
        if isinstance(receiver, ast.Call) or (
            isinstance(receiver, ast.Name) and receiver.id == scope.self_name
        ):
            return None
    blocks = _instances(values)
    if not blocks and len(given) == 1 and given[0].keyword is None and not given[0].star:
        # Since a list cannot be called, this is an `nn.Sequential`, which runs one block after the other.
        blocks = _instances(items_of(values))
        return RunSite(scope, call, receiver, given, blocks, place, whole=True) if blocks else None
    return RunSite(scope, call, receiver, given, blocks, place) if blocks else None


def _checkpointed(scope: Scope, call: ast.Call, place: CodePlace, holders: Holders) -> RunSite | None:
    """Return the site of a call of a checkpoint function."""
    given = arguments(call)
    if not given or given[0].star or not is_checkpoint_function(scope, call.func):
        return None
    target = given[0].value
    rest = _passed_on(scope, given)
    wrapped = unwrap(scope, target, rest)
    if wrapped is not None:
        blocks = _instances(scope.evaluate(wrapped.receiver))
        if blocks:
            return RunSite(
                scope,
                call,
                wrapped.receiver,
                wrapped.args,
                blocks,
                place,
                checkpointed=True,
                is_exact=wrapped.is_exact,
                outcome=wrapped.outcome,
            )
    function = scope.local_function(target.id, target) if isinstance(target, ast.Name) else None
    if function is None:
        return None
    blocks = _run_inside(scope, function, rest, holders)
    return RunSite(scope, call, target, rest, blocks, place, checkpointed=True, function=function)


def _run_inside(
    scope: Scope, function: EvaluatedFunction, args: Sequence[Arg], holders: Holders
) -> tuple[ClassInfo, ...]:
    """Return the blocks that an inner function runs if it is called with these arguments."""
    return in_order({info for site in _sites_inside(scope, function, args, holders) for info in site.blocks})


def _sites_inside(
    scope: Scope, function: EvaluatedFunction, args: Sequence[Arg], holders: Holders
) -> list[RunSite]:
    inner = scope.enter(function, args)
    return run_sites(inner, holders) if inner.depth <= _MAX_NESTING else []


def is_checkpoint_function(scope: Scope, func: ast.expr) -> bool:
    """Return whether an expression is torch's checkpoint function, or the one that is set on a model."""
    if isinstance(func, ast.Attribute) and func.attr in CHECKPOINT_METHODS:
        return True
    name = dotted_name(func)
    if name is None or "checkpoint" not in name:
        return False
    return any(
        isinstance(value, EvaluatedExternal) and value.name in CHECKPOINT_FUNCTIONS
        for value in scope.evaluate(func)
    )


def _instances(values: Values) -> tuple[ClassInfo, ...]:
    found = {value.info for value in values if isinstance(value, Instance)}
    bound = (
        value for value in values if isinstance(value, EvaluatedMethod) and value.method in RUNNING_METHODS
    )
    found.update(value.instance.info for value in bound)
    return in_order(info for info in found if info.is_module)


def in_order(blocks: Iterable[ClassInfo]) -> tuple[ClassInfo, ...]:
    """Return classes in an order that does not depend on how they were found."""
    return tuple(sorted(blocks, key=lambda info: (info.name, str(info.file.path))))
