"""What the code around a call changes before a block is recomputed: its arguments, the block, the mode."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from gclint.model import known, tensors
from gclint.network.activation import is_constant
from gclint.network.evaluation.body import unstarred
from gclint.network.evaluation.scope import Scope
from gclint.network.evaluation.values import (
    Bound,
    External,
    ExternalInstance,
    Function,
    Instance,
    ModuleValue,
)
from gclint.network.gradient import Carries, Gradients
from gclint.network.model import Network
from gclint.network.runsite import RunSite
from gclint.source.walk import WITHS, Arg, arguments, dotted_name, text_of, walk
from gclint.source.walk import is_constant as is_literal
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
_IN_PLACE = re.compile(r"(?!requires_grad_|_)\w+(?<!_)_")
"""Matches the names of methods that change a tensor in place."""
_FILLING = (known.FILLING_METHODS | known.TAKING_METHODS) - tensors.FRESH
"""Methods that change a container, and that no tensor has."""
_TENSORS_OWN = tensors.CHANGING - known.SHARING
"""Methods of tensors that change the tensor in place, and only read their arguments."""
_CHANGING = re.compile(
    r"(?:write|push|put|store|record|save|enqueue|track|collect|accumulate|increment|advance|observe)(?:_\w+)?"
    r"|(?:append|add|update|set|reset|register)_(?!hook\b)\w+"
)
"""Matches names of methods that probably change their object, and that no tensor has."""
_OPERATOR = re.compile(
    r"__(?:(?:set|del)(?:item|attr)|i(?:add|sub|mul|matmul|truediv|floordiv|mod|pow|and|or|xor))__"
)
"""Matches the methods behind statements that change an object."""


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
            inside = [each for node in nodes for each in _changed(site.scope, node)]
            behind = [each for node in _behind(site.scope, loop) for each in _changed(site.scope, node)]
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


def _changed(scope: Scope, node: ast.AST) -> Iterator[ast.expr]:
    """Yield the expressions that a statement or call changes in place: tensors, containers and objects."""
    if isinstance(node, ast.AugAssign):
        if not isinstance(node.target, ast.Name) or not isinstance(node.value, ast.Tuple):
            yield node.target
    elif isinstance(node, (ast.Assign, ast.Delete, ast.For, ast.AsyncFor)):
        targets = [node.target] if isinstance(node, (ast.For, ast.AsyncFor)) else node.targets
        for target in (inner for each in targets for inner in _targets_in(each)):
            if isinstance(target, ast.Subscript):
                yield target.value
            elif dotted_name(target.value) != scope.self_name:
                yield target
    elif isinstance(node, ast.Call):
        yield from _changed_by_call(scope, node)


def _targets_in(target: ast.expr) -> Iterator[ast.Subscript | ast.Attribute]:
    if isinstance(target, (ast.Subscript, ast.Attribute)):
        yield target
    elif isinstance(target, (ast.Tuple, ast.List)):
        for each in target.elts:
            yield from _targets_in(unstarred(each))


def _changed_by_call(scope: Scope, call: ast.Call) -> Iterator[ast.expr]:
    method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    given = arguments(call)
    options = {arg.keyword: arg.value for arg in given if arg.keyword is not None}
    name = dotted_name(call.func) or method
    last = name.rpartition(".")[2]
    if _IN_PLACE.fullmatch(last) is not None or _OPERATOR.fullmatch(last) is not None:
        yield from _changed_in_place(scope, call)
    elif isinstance(call.func, ast.Attribute):
        is_known = any(isinstance(each, (Bound, Function)) for each in scope.evaluate(call.func))
        if method in _FILLING or (_CHANGING.fullmatch(method) is not None and not is_known):
            yield call.func.value
    out = options.get("out")
    if out is not None:
        yield from map(unstarred, out.elts) if isinstance(out, ast.Tuple) else (out,)
    # Functions that change their argument, such as `dropout(states, inplace=True)` and `next(noise)`.
    is_flagged = "inplace" in options and not is_literal(options["inplace"], False)
    is_got = name == "getattr" and any(_IN_PLACE.fullmatch(text_of(arg.value) or "") for arg in given[1:])
    if given and (is_flagged or is_got or name in ("next", "setattr") or _is_in_place(scope, call)):
        yield given[0].value
    if any(_is_method_in_place(arg.value) for arg in given):
        # What gets such a method runs it.
        yield from (arg.value for arg in given)


def _is_method_in_place(value: ast.expr) -> bool:
    return isinstance(value, ast.Attribute) and _IN_PLACE.fullmatch(value.attr) is not None


def _is_in_place(scope: Scope, call: ast.Call) -> bool:
    """Return whether a function or module of torch may change its argument, as it is told by position."""
    for value in scope.evaluate(call.func):
        if isinstance(value, External):
            place = known.IN_PLACE_AT.get(value.name.rpartition(".")[2])
            given = () if place is None else call.args[place:]
            if value.name.startswith("operator.") or not all(is_literal(each, False) for each in given):
                return True
        elif isinstance(value, ExternalInstance) and scope.owner is not None:
            name = value.name.rpartition(".")[2]
            return any(_makes_in_place(node, name) for base in scope.owner.mro for node in base.nodes)
    return False


def _makes_in_place(node: ast.AST, name: str) -> bool:
    """Return whether a call makes a module of this name that changes its input."""
    if not isinstance(node, ast.Call) or (dotted_name(node.func) or "").rpartition(".")[2] != name:
        return False
    given = arguments(node)
    flags = [*given[known.IN_PLACE_AT.get(name, len(given)) :], *(arg for arg in given if arg.keyword)]
    return any(arg.keyword in (None, "inplace") and not is_literal(arg.value, False) for arg in flags)


def _changed_in_place(scope: Scope, call: ast.Call) -> Iterator[ast.expr]:
    """Yield what a function or method changes whose name ends in an underscore.

    Methods of tensors change the tensor alone; others, such as `torch.relu_(states)` and
    `self.memory.update_(states)`, may change their arguments.
    """
    if isinstance(call.func, ast.Attribute):
        holders = scope.evaluate(call.func.value)
        if not any(isinstance(each, (External, ModuleValue)) for each in holders):
            yield call.func.value
            is_tensor = not any(isinstance(each, Instance) for each in holders)
            if is_tensor and call.func.attr in _TENSORS_OWN:
                return
    yield from (arg.value for arg in arguments(call))


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
