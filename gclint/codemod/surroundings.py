"""What the code around a call changes before a block is recomputed: its arguments, the block, the mode."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import libcst as cst

from gclint.network.activation import is_constant
from gclint.network.changes import changed
from gclint.network.evaluation.body import nodes_in
from gclint.network.evaluation.scope import Scope
from gclint.network.evaluation.values import ExternalInstance, Instance
from gclint.network.evaluation.walk import dotted_name, names_in, walk
from gclint.network.gradient import Carries, Gradients
from gclint.network.model import Network
from gclint.network.runsite import RunSite
from gclint.verify.worker.vocabulary import CACHE_ARGUMENTS

_RESTORED = frozenset(
    (
        "ContextManagers",
        "autocast",
        "device",
        "enable_grad",
        "inference_mode",
        "maybe_autocast",
        "no_grad",
        "nullcontext",
        "profile",
        "record_function",
        "save_on_cpu",
        "set_grad_enabled",
        "stream",
    )
)
"""Contexts that recomputation is in as well, or that do not change what is computed."""

_ITERATORS = frozenset(("enumerate", "filter", "iter", "map", "reversed", "zip"))


def surrounding_doubts(network: Network, sites: Iterable[RunSite]) -> Iterator[str]:
    """Yield why a block may not be recomputed as it was run, for calls that were not checkpointed before."""
    changes = _Changes()
    for site in sites:
        row, _ = site.rows
        for name in sorted(set(changes.around(site))):
            yield (
                f"`{name}` changes in place in or behind the loop around the call on line {row}, and "
                "recomputation sees what it has become"
            )
        for name in sorted(changes.entered(site)):
            yield f"the call on line {row} is made in `{name}`, which recomputation is not in"
        for name in sorted(set(_used_up(site))):
            yield f"`{name}` on line {row} is an iterator, of which recomputation finds nothing left"
        for name in sorted(set(_held(site, network.gradients))):
            yield (
                f"`{name}` on line {row} holds values that require grad, which receive no gradient under "
                "reentrant checkpointing"
            )


class _Changes:
    """What loops change and what contexts functions enter, found once for all calls in them."""

    def __init__(self) -> None:
        self._changed: dict[cst.CSTNode, list[cst.CSTNode]] = {}
        self._augmented: dict[cst.CSTNode, dict[cst.Call, list[str]]] = {}
        self._contexts: dict[Scope, dict[cst.Call, set[str]]] = {}

    def around(self, site: RunSite) -> Iterator[str]:
        """Yield what a block is given, or is, and the loop around its call changes in place."""
        if not site.loops:
            return
        loop = site.loops[0]
        given = {arg.value.value for arg in site.args if isinstance(arg.value, cst.Name)} - CACHE_ARGUMENTS
        receiver = _root(site.receiver) or ""
        # What the call gives is another tensor than what it got.
        watched = given - site.stream | ({receiver} - {site.scope.self_name, ""})
        if loop not in self._changed:
            nodes = list(walk(loop.body))
            inside = [each for node in nodes for each in changed(site.scope, node)]
            behind = [each for node in _behind(site.scope, loop) for each in changed(site.scope, node)]
            # What is written into the configuration in the end is rarely read by the blocks.
            self._changed[loop] = inside + [each for each in behind if not isinstance(each, cst.Attribute)]
            augmented = self._augmented.setdefault(loop, {})
            for node in nodes:
                if isinstance(node, cst.AugAssign):
                    for call in _calls_in(node.value):
                        augmented.setdefault(call, []).append(_root(node.target) or "")
        # A call in the value of such a statement got what the statement changes.
        yield from given.intersection(self._augmented[loop].get(site.call, ()))
        for each in self._changed[loop]:
            root = _root(each)
            if root is not None and root in watched:
                yield root
            elif isinstance(each, cst.Attribute) and "config" in (dotted_name(each) or "").split("."):
                yield dotted_name(each) or ""

    def entered(self, site: RunSite) -> set[str]:
        """Return the contexts that a call stands in, and that its recomputation does not."""
        scope = site.scope
        if scope not in self._contexts:
            entered = self._contexts.setdefault(scope, {})
            for node in nodes_in([] if scope.body is None else scope.body.pieces()):
                if isinstance(node, cst.With):
                    names = set(_contexts(node))
                    for call in _calls_in(node.body) if names else ():
                        entered.setdefault(call, set()).update(names)
        return self._contexts[scope].get(site.call, set())


def _calls_in(node: cst.CSTNode) -> Iterator[cst.Call]:
    return (each for each in walk(node) if isinstance(each, cst.Call))


def _contexts(statement: cst.With) -> Iterator[str]:
    """Yield the contexts that recomputation does not enter again."""
    for item in statement.items:
        called = item.item.func if isinstance(item.item, cst.Call) else item.item
        name = dotted_name(called) or "a context"
        if name.rpartition(".")[2] not in _RESTORED:
            yield name


def _root(node: cst.CSTNode) -> str | None:
    """Return the name that an item, an attribute or a view begins with."""
    while not isinstance(node, cst.Name):
        if isinstance(node, (cst.Attribute, cst.Subscript)):
            node = node.value
        elif isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
            node = node.func.value
        else:
            return None
    return node.value


def _behind(scope: Scope, loop: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """Yield what stands behind the statement of a function that contains a loop."""
    pieces = () if scope.body is None else scope.body.pieces()
    for number, piece in enumerate(pieces):
        if any(loop is node for node in nodes_in((piece,))):
            return nodes_in(pieces[number + 1 :])
    return iter(())


def _used_up(site: RunSite) -> Iterator[str]:
    """Yield the arguments that can be read once."""
    for arg, value in _given(site):
        called = dotted_name(value.func) if isinstance(value, cst.Call) else None
        if isinstance(value, cst.GeneratorExp) or called in _ITERATORS:
            yield site.source(arg.value)


def _given(site: RunSite) -> Iterator[tuple[cst.Arg, cst.BaseExpression]]:
    """Yield the arguments of a call, each with what it may be."""
    for arg in site.args:
        values = [arg.value]
        if isinstance(arg.value, cst.Name):
            values = [each.value for each in site.scope.bindings(arg.value.value) if not each.iterated]
        yield from ((arg, value) for value in values)


def _held(site: RunSite, gradients: Gradients) -> Iterator[str]:
    """Yield the arguments that are objects or functions around something that requires grad."""
    for arg, value in _given(site):
        inside: list[cst.BaseExpression] = []
        if isinstance(value, cst.Lambda):
            inside = [cst.Name(name) for name in names_in(value.body)]
        elif isinstance(value, cst.Call) and _makes_object(site, value):
            inside = [each.value for each in value.args]
        if any(not is_constant(each) and Carries.GRADIENT in gradients.at(site, each) for each in inside):
            yield site.source(arg.value) if not isinstance(arg.value, cst.Lambda) else "lambda"


def _makes_object(site: RunSite, call: cst.Call) -> bool:
    values = site.scope.evaluate(call)
    return any(
        (isinstance(value, Instance) and not value.info.is_module)
        or (isinstance(value, ExternalInstance) and value.name.endswith("SimpleNamespace"))
        for value in values
    )
