"""What a block's ``forward`` does besides computing its result, which recomputation repeats."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import libcst as cst

from gclint.network.binding import bind
from gclint.network.evaluation.body import Binding
from gclint.network.evaluation.classes import ClassInfo, remembered
from gclint.network.evaluation.reaching import Reaching
from gclint.network.evaluation.scope import Scope
from gclint.network.evaluation.signature import Kind
from gclint.network.evaluation.values import External, Instance
from gclint.network.evaluation.walk import dotted_name, walk
from gclint.network.traits import changes_own_state, forward_nodes
from gclint.verify.worker.vocabulary import CACHE_ARGUMENTS

_RANDOM = re.compile(r"(?:random|numpy\.random)\.\w")
_MAX_DEPTH = 2
_FILLING = frozenset(("append", "clear", "extend", "insert", "pop", "remove", "setdefault", "update"))
"""What changes a list or a dict."""
_IN_PLACE = re.compile(r"(?!requires_grad_|_)\w+(?<!_)_")


def effects(info: ClassInfo) -> Iterator[str]:
    """Yield what recomputation does a second time, or does not do alike, in words."""
    for part in sorted(info.all_parts, key=lambda part: (part is not info, part.name)):
        name = f"`{part.name}.forward`"
        if part is not info and changes_own_state(part):
            yield f"{name} changes the state of `self`, which recomputation repeats"
        if _asks_python_for_random_numbers(part):
            yield f"{name} draws random numbers that are not torch's, so recomputation draws different ones"
        if "is_grad_enabled" in part.text and any(map(_asks_for_gradients, forward_nodes(part))):
            yield (
                f"{name} checks whether gradients are enabled, which they are not in the forward pass of "
                "reentrant checkpointing"
            )
        if any(isinstance(node, cst.Global) for node in forward_nodes(part)):
            yield f"{name} changes a global variable, which recomputation repeats"
    for name in sorted(changed_inputs(info)):
        yield f"`{info.name}.forward` changes `{name}` in place, which recomputation repeats"


def _asks_python_for_random_numbers(info: ClassInfo) -> bool:
    method = info.find_method("forward")
    if method is None or not any("random" in base.file.text for base in info.mro):
        return False
    scope = info.scope(method[1], method[0].module)
    return any(
        isinstance(value, External) and _RANDOM.match(value.name) is not None
        for node in forward_nodes(info)
        if isinstance(node, cst.Call)
        for value in scope.module.resolve(dotted_name(node.func) or "")
    )


def _asks_for_gradients(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.Call) and (dotted_name(node.func) or "").endswith("is_grad_enabled")


@remembered
def changed_inputs(info: ClassInfo) -> frozenset[str]:
    """Return which arguments ``forward`` changes in place; caches are none."""
    return _changed_inputs(info, frozenset())


def _changed_inputs(info: ClassInfo, outer: frozenset[ClassInfo]) -> frozenset[str]:
    scope = info.method_scope("forward")
    if scope is None or scope.body is None or info.signature is None or len(outer) > _MAX_DEPTH:
        return frozenset()
    names = {
        parameter.name
        for parameter in info.signature.parameters
        if parameter.kind is not Kind.VAR_KEYWORD and parameter.name not in CACHE_ARGUMENTS
    }
    pieces = scope.body.pieces()
    nodes = [node for piece in pieces for root in piece.nodes or () for node in walk(root)]
    inputs = _Inputs(scope, names, nodes)
    targets = [target for node in nodes for target in _changed(node)]
    for node in nodes:
        if isinstance(node, cst.Call):
            targets += _changed_by_parts(scope, node, outer | {info})
    return frozenset(name for target in targets for name in inputs.of(target))


def _changed_by_parts(scope: Scope, call: cst.Call, outer: frozenset[ClassInfo]) -> Iterator[cst.CSTNode]:
    """Yield the arguments of a call that the module which it runs changes in place."""
    for part in (value.info for value in scope.evaluate(call.func) if isinstance(value, Instance)):
        if part in outer or part.signature is None:
            continue
        changed = _changed_inputs(part, outer)
        for bound in bind(call.args, part.signature).arguments if changed else ():
            if bound.parameter is not None and bound.parameter.name in changed:
                yield bound.arg.value


def _changed(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """Yield what a statement or a call changes in place, if that is a tensor or a container."""
    if isinstance(node, cst.AugAssign):
        is_counted = isinstance(node.value, cst.BaseNumber) and not isinstance(node.operator, _SCALING)
        if not is_counted and not isinstance(node.value, cst.Tuple):
            yield node.target
    elif isinstance(node, (cst.AssignTarget, cst.Del)):
        if isinstance(node.target, cst.Subscript):
            yield node.target
    elif isinstance(node, cst.Call):
        yield from _changed_by_call(node)


def _changed_by_call(call: cst.Call) -> Iterator[cst.CSTNode]:
    method = call.func.attr.value if isinstance(call.func, cst.Attribute) else ""
    options = {arg.keyword.value: arg.value for arg in call.args if arg.keyword is not None}
    is_in_place = _IN_PLACE.fullmatch(method) is not None
    if isinstance(call.func, cst.Attribute) and (is_in_place or method in _FILLING):
        yield call.func.value
    if "out" in options:
        yield options["out"]
    # Functions such as `torch.relu_(states)`, and `next(noise)`.
    is_flagged = "inplace" in options and dotted_name(options["inplace"]) == "True"
    if call.args and (is_in_place or is_flagged or dotted_name(call.func) == "next"):
        yield call.args[0].value


_SCALING = (cst.MultiplyAssign, cst.DivideAssign)
"""What is done to a tensor with a number; a number is added to another as well."""


class _Inputs:
    """Finds out which parameters an expression may be, or may be a view of."""

    def __init__(self, scope: Scope, names: set[str], nodes: Iterable[cst.CSTNode]) -> None:
        self._scope, self._names = scope, names
        # What is added to a tensor in place is not what it stands for from then on.
        self._added = {node.value for node in nodes if isinstance(node, cst.AugAssign)}
        self._reaching: dict[str, Reaching] = {}

    def of(self, node: cst.CSTNode, seen: frozenset[cst.CSTNode] = frozenset()) -> set[str]:
        """Return the parameters that ``node`` may stand for."""
        while not isinstance(node, cst.Name):
            if isinstance(node, cst.Subscript):
                node = node.value
            elif (
                isinstance(node, cst.Call)
                and isinstance(node.func, cst.Attribute)
                and node.func.attr.value in _VIEWS
            ):
                node = node.func.value
            else:
                return set()
        if node in seen:
            return set()
        found: set[str] = set()
        for entry in self._at(node):
            if entry is None:
                found |= {node.value} & self._names
            elif isinstance(entry, Binding) and self._is_whole(entry):
                found |= self.of(entry.value, seen | {node})
        return found

    def _is_whole(self, binding: Binding) -> bool:
        """Tell whether a name stands for all of what is bound to it."""
        return not (binding.added or binding.iterated or binding.path or binding.value in self._added)

    def _at(self, name: cst.Name) -> frozenset[Binding | cst.FunctionDef | None]:
        if name.value not in self._reaching:
            assert self._scope.body is not None
            self._reaching[name.value] = Reaching(name.value, self._scope.body.pieces())
        return self._reaching[name.value].at(name)


_VIEWS = frozenset(
    [
        "chunk",
        "contiguous",
        "expand",
        "expand_as",
        "flatten",
        "movedim",
        "narrow",
        "permute",
        "reshape",
        "select",
        "squeeze",
        "swapaxes",
        "t",
        "transpose",
        "unbind",
        "unflatten",
        "unsqueeze",
        "view",
        "view_as",
    ]
)
"""Methods of tensors whose result may share the tensor's memory."""
