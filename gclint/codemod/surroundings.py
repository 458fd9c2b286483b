"""What the code around a call changes before a block is recomputed: its arguments, the block, the mode."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from gclint.network.activation import is_constant
from gclint.network.changes import changed
from gclint.network.evaluation.scope import Scope
from gclint.network.evaluation.values import ExternalInstance, Instance
from gclint.network.evaluation.walk import WITHS, Arg, arguments, dotted_name, walk
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
        self._changed: dict[ast.AST, list[ast.expr]] = {}
        self._augmented: dict[ast.AST, dict[ast.Call, list[str]]] = {}
        self._contexts: dict[Scope, dict[ast.Call, set[str]]] = {}

    def around(self, site: RunSite) -> Iterator[str]:
        """Yield what a block is given, or is, and the loop around its call changes in place."""
        if not site.loops:
            return
        loop = site.loops[0]
        given = {arg.value.id for arg in site.args if isinstance(arg.value, ast.Name)} - CACHE_ARGUMENTS
        receiver = _root(site.receiver) or ""
        # What the call gives is another tensor than what it got.
        watched = given - site.stream | ({receiver} - {site.scope.self_name, ""})
        if loop not in self._changed:
            nodes = [node for statement in loop.body for node in walk(statement)]
            inside = [each for node in nodes for each in changed(site.scope, node)]
            behind = [each for node in _behind(site.scope, loop) for each in changed(site.scope, node)]
            # What is written into the configuration in the end is rarely read by the blocks.
            self._changed[loop] = inside + [each for each in behind if not isinstance(each, ast.Attribute)]
            augmented = self._augmented.setdefault(loop, {})
            for node in nodes:
                if isinstance(node, ast.AugAssign):
                    for call in _calls_in(node.value):
                        augmented.setdefault(call, []).append(_root(node.target) or "")
        # A call in the value of such a statement got what the statement changes.
        yield from given.intersection(self._augmented[loop].get(site.call, ()))
        for each in self._changed[loop]:
            root = _root(each)
            if root is not None and root in watched:
                yield root
            elif isinstance(each, ast.Attribute) and "config" in (dotted_name(each) or "").split("."):
                yield dotted_name(each) or ""

    def entered(self, site: RunSite) -> set[str]:
        """Return the contexts that a call stands in, and that its recomputation does not."""
        scope = site.scope
        if scope not in self._contexts:
            entered = self._contexts.setdefault(scope, {})
            for node in () if scope.body is None else scope.body.nodes:
                if isinstance(node, WITHS):
                    names = set(_contexts(node))
                    for call in (each for part in node.body for each in _calls_in(part)) if names else ():
                        entered.setdefault(call, set()).update(names)
        return self._contexts[scope].get(site.call, set())


def _calls_in(node: ast.AST) -> Iterator[ast.Call]:
    return (each for each in walk(node) if isinstance(each, ast.Call))


def _contexts(statement: ast.With | ast.AsyncWith) -> Iterator[str]:
    """Yield the contexts that recomputation does not enter again."""
    for item in statement.items:
        entered = item.context_expr
        name = dotted_name(entered.func if isinstance(entered, ast.Call) else entered) or "a context"
        if name.rpartition(".")[2] not in _RESTORED:
            yield name


def _root(node: ast.AST) -> str | None:
    """Return the name that an item, an attribute or a view begins with."""
    while not isinstance(node, ast.Name):
        if isinstance(node, (ast.Attribute, ast.Subscript)):
            node = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            node = node.func.value
        else:
            return None
    return node.id


def _behind(scope: Scope, loop: ast.AST) -> Iterator[ast.AST]:
    """Yield what stands behind the statement of a function that contains a loop."""
    roots = () if scope.body is None else scope.body.roots
    for number, root in enumerate(roots):
        if any(loop is node for node in walk(root)):
            return (node for each in roots[number + 1 :] for node in walk(each))
    return iter(())


def _used_up(site: RunSite) -> Iterator[str]:
    """Yield the arguments that can be read once."""
    for arg, value in _given(site):
        called = dotted_name(value.func) if isinstance(value, ast.Call) else None
        if isinstance(value, ast.GeneratorExp) or called in _ITERATORS:
            yield site.source(arg.value)


def _given(site: RunSite) -> Iterator[tuple[Arg, ast.expr]]:
    """Yield the arguments of a call, each with what it may be."""
    for arg in site.args:
        values = [arg.value]
        if isinstance(arg.value, ast.Name):
            values = [each.value for each in site.scope.bindings(arg.value.id) if not each.iterated]
        yield from ((arg, value) for value in values)


def _held(site: RunSite, gradients: Gradients) -> Iterator[str]:
    """Yield the arguments that are objects or functions around something that requires grad."""
    for arg, value in _given(site):
        inside: list[ast.expr] = []
        if isinstance(value, ast.Lambda):
            inside = [each for each in walk(value.body) if isinstance(each, ast.Name)]
        elif isinstance(value, ast.Call) and _makes_object(site, value):
            inside = [each.value for each in arguments(value)]
        if any(not is_constant(each) and Carries.GRADIENT in gradients.at(site, each) for each in inside):
            yield site.source(arg.value) if not isinstance(arg.value, ast.Lambda) else "lambda"


def _makes_object(site: RunSite, call: ast.Call) -> bool:
    values = site.scope.evaluate(call)
    return any(
        (isinstance(value, Instance) and not value.info.is_module)
        or (isinstance(value, ExternalInstance) and value.name.endswith("SimpleNamespace"))
        for value in values
    )
