"""Changing the order of a block's ``forward`` so that activations come before caches."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, field

import libcst as cst

from gclint.codemod.call import (
    CACHES_IN_ORDER,
    Slot,
    in_order_of_effects,
    is_live_cache,
    shifted_argument,
    write_call,
)
from gclint.codemod.listing import Item, comments, layout_of, render
from gclint.finding import Edit, Part, Refusal, Repair
from gclint.network.activation import bind_site, is_named_activation
from gclint.network.binding import Binding, bind
from gclint.network.evaluation.classes import ClassInfo
from gclint.network.evaluation.signature import Kind, Parameter, Signature, header_fragment
from gclint.network.evaluation.walk import dotted_name, walk
from gclint.network.index import subclasses
from gclint.network.model import Network
from gclint.network.search import RUNNING_METHODS
from gclint.source.file import SourceFile, UnreadableFile
from gclint.source.fragment import Fragment
from gclint.source.outline import Definition
from gclint.source.paths import shown
from gclint.source.questions import Topic
from gclint.source.tokens import closing_bracket, tokens


@dataclass
class Reordering:
    """The edits that change the order of a signature, and the calls that they rewrite."""

    edits: dict[Edit, None] = field(default_factory=dict)
    calls: list[Repair] = field(default_factory=list)

    def add_call(self, fragment: Fragment, call: cst.Call, slots: list[Slot]) -> None:
        """Write a call anew; one that is right already is replaced by itself.

        That keeps another repair, made by the old order, from being made to it at the same time.
        """
        path, (start, end) = fragment.file.path, fragment.span(call)
        edits = write_call(fragment, call, slots)
        if edits:
            self.calls.append(Repair(Part.CALL, path, start, end))
        else:
            edits = (Edit(path, start, end, fragment.file.text[start:end]),)
        self.edits.update(dict.fromkeys(edits))


def reorder_forward(network: Network, block: ClassInfo, activations: frozenset[str]) -> Reordering | Refusal:
    """Return what puts activations first in ``forward`` and in every call that binds to it.

    Args:
        network: the network of the file in which the defect was found.
        block: the class whose ``forward`` is changed where it is defined.
        activations: the parameters that are activations by what is passed to them.
    """
    forward = block.forward
    if forward is None:
        return Refusal("`forward` cannot be read")
    definer, _, signature = forward
    order = _new_order(signature, activations)
    if isinstance(order, Refusal):
        return order
    reordering = Reordering()
    names = {definer.name, *(info.name for info in subclasses(network.project, definer))}
    for user in _files_naming(network, definer, names):
        for info in user.module.classes.values():
            method = info.definition.method("forward") if definer in info.mro else None
            if method is not None:
                changed = _reorder_header(info, order, signature)
                if isinstance(changed, Refusal):
                    return changed
                reordering.edits.update(dict.fromkeys(changed))
        refusal = _rewrite_calls(reordering, user, definer, names, signature, order)
        if refusal is not None:
            return refusal
    return reordering


def _new_order(signature: Signature, activations: frozenset[str]) -> list[Parameter] | Refusal:
    """Return the positional parameters, activations first as far as defaults allow."""
    positional = signature.positional
    if any(parameter.kind is Kind.POSITIONAL_ONLY for parameter in positional):
        return Refusal("`forward` has positional-only parameters")
    is_activation = {
        parameter.name: parameter.name in activations or is_named_activation(parameter)
        for parameter in positional
    }
    order = sorted(positional, key=lambda p: (p.default is not None, not is_activation[p.name]))
    last = max((index for index, p in enumerate(order) if p.name in activations), default=-1)
    for parameter in order[:last]:
        if parameter.name in CACHES_IN_ORDER:
            return Refusal(f"`{parameter.name}` has no default, so it has to stay before the activations")
    return order


def _files_naming(network: Network, definer: ClassInfo, names: Collection[str]) -> list[Network]:
    """Return the networks of the given files that name the class or a subclass, its own file's first."""
    own = network if definer.file is network.file else Network(network.project, definer.file)
    word = re.compile(rf"\b(?:{'|'.join(map(re.escape, sorted(names)))})\b")
    naming = []
    with network.project.read_for(None):
        for path in network.project.paths:
            try:
                file = network.project.file(path)
            except (OSError, UnreadableFile):
                continue  # the run reports it; it runs nothing
            if any(name in file.text for name in names) and word.search(file.text):
                naming.append(file)
    paths = [file.path for file in naming]
    network.project.questions.ask(network.file.path, NAMING, "|".join(sorted(names)), paths)
    users = [own]
    for file in naming:
        network.project.consult(network.file, file.path)
        if file is not definer.file:
            users.append(network if file is network.file else Network(network.project, file))
    return users


def _names(file: SourceFile, key: str) -> bool:
    return re.search(rf"\b(?:{'|'.join(map(re.escape, key.split('|')))})\b", file.text) is not None


NAMING = Topic("naming", _names)
"""Which given files have one of these words."""


def _reorder_header(info: ClassInfo, order: list[Parameter], signature: Signature) -> list[Edit] | Refusal:
    """Return the edit of one ``forward`` definition, the block's own or an override."""
    method = info.definition.method("forward")
    header = None if method is None else header_fragment(info.file, method)
    if method is None or header is None:
        return Refusal(f"`{info.name}.forward` cannot be read")
    function = cst.ensure_type(header.body[0], cst.FunctionDef)
    params = function.params
    if params.posonly_params:
        return Refusal(f"`{info.name}.forward` has positional-only parameters")
    names = [param.name.value for param in params.params[1:]]
    ranks = {parameter.name: rank for rank, parameter in enumerate(order)}
    if names[: len(order)] != [parameter.name for parameter in signature.positional]:
        where = f"`{info.name}.forward` in {shown(info.file.path)}"
        return Refusal(f"the override {where} has different parameters")
    sorted_params = sorted(params.params[1 : 1 + len(order)], key=lambda param: ranks[param.name.value])
    text = info.file.text
    opening = _opening(text, method)
    closing = closing_bracket(text, opening)
    assert closing is not None
    items = {id(param): item for param, item in _param_items(function)}
    tail = [param for param, _ in _param_items(function)][1 + len(order) :]
    ordered = [params.params[0], *sorted_params, *tail]
    layout = layout_of(text, opening, closing, info.file.newline)
    column = info.file.position(opening).column
    content = render([items[id(param)] for param in ordered], layout, column)
    return [Edit(info.file.path, opening + 1, closing, content)]


def _opening(text: str, method: Definition) -> int:
    """Return where the bracket before a function's parameters stands, behind those for its types."""
    first = next(token for token in tokens(text, method.header) if token.text in ("(", "["))
    return first.start if first.text == "(" else text.index("(", closing_bracket(text, first.start))


def _param_items(function: cst.FunctionDef) -> list[tuple[cst.CSTNode, Item]]:
    """Return the parameters in order, with their comments."""
    params = function.params
    nodes: list[cst.Param | cst.ParamStar] = [*params.params]
    if isinstance(params.star_arg, (cst.Param, cst.ParamStar)):
        nodes.append(params.star_arg)
    nodes += params.kwonly_params
    if params.star_kwarg is not None:
        nodes.append(params.star_kwarg)
    found: list[tuple[cst.CSTNode, Item]] = []
    _, leading = comments(function.whitespace_before_params)
    for node in nodes:
        behind = node.comma.whitespace_after if isinstance(node.comma, cst.Comma) else None
        if behind is None and isinstance(node, cst.Param):
            behind = node.whitespace_after_param
        trailing, following = comments(behind)
        found.append((node, Item(_param_code(node), leading, trailing)))
        leading = following
    return found


def _param_code(node: cst.Param | cst.ParamStar) -> str:
    if isinstance(node, cst.ParamStar):
        return "*"
    bare = node.with_changes(comma=cst.MaybeSentinel.DEFAULT, whitespace_after_param=cst.SimpleWhitespace(""))
    return cst.Module([]).code_for_node(bare).strip()


def _rewrite_calls(
    reordering: Reordering,
    user: Network,
    definer: ClassInfo,
    names: Collection[str],
    signature: Signature,
    order: list[Parameter],
) -> Refusal | None:
    """Rewrite the calls in a file that bind to the signature by position, or return why not."""
    new = Signature((*order, *(p for p in signature.parameters if not p.positional)))
    unbound = re.search(rf"\b(?:{'|'.join(map(re.escape, names))})\.forward\b", user.file.text)
    if unbound is not None:
        return Refusal(f"{_where(user, unbound.start())} accesses `forward` on the class")
    for site in user.sites_running(names):
        bound_here = [block for block in site.blocks if block.forward and definer is block.forward[0]]
        related = [block for block in site.blocks if definer in block.mro]
        if not related or site.function is not None:
            continue
        where = _where(user, site.span(site.call)[0])
        if site.checkpointed:
            return Refusal(f"{where} passes the block to a checkpoint function")
        if len(related) != len(site.blocks):
            return Refusal(f"{where} runs the block together with others")
        site_binding = bind_site(site, (bound_here or related)[0], user.gradients)
        if site_binding is None:
            return Refusal(f"the arguments at {where} cannot be matched")
        shift = shifted_argument(site_binding.binding, site_binding.signature)
        if shift is not None:
            return Refusal(f"the call at {where} is left alone: {shift.reason}")
        slots = _rearranged(site_binding.binding, new, site_binding.activations)
        if isinstance(slots, Refusal):
            return slots
        reordering.add_call(site.fragment, site.call, slots)
    for fragment, call in _super_calls(user, definer):
        binding = bind(call.args, signature)
        rearranged = _rearranged(binding, new, frozenset()) if binding.complete else None
        if rearranged is None or isinstance(rearranged, Refusal):
            return Refusal(f"`super().forward` at {_where(user, fragment.span(call)[0])} cannot be matched")
        reordering.add_call(fragment, call, rearranged)
    return None


def _where(user: Network, offset: int) -> str:
    return f"{shown(user.file.path)}:{user.file.position(offset).row}"


def _super_calls(user: Network, definer: ClassInfo) -> list[tuple[Fragment, cst.Call]]:
    """Return the calls of ``super().forward`` that reach the definer."""
    found: list[tuple[Fragment, cst.Call]] = []
    for info in user.module.classes.values():
        method = info.definition.method("forward")
        if info is definer or definer not in info.mro or method is None or "super()" not in method.text:
            continue
        scope = info.scope(method)
        for piece in () if scope.body is None else scope.body.pieces_naming(("super",)):
            for root in piece.nodes or ():
                found += [
                    (piece.fragment, node)
                    for node in walk(root)
                    if isinstance(node, cst.Call)
                    and _is_super_forward(node.func)
                    and piece.fragment is not None
                ]
    return found


def _is_super_forward(func: cst.BaseExpression) -> bool:
    return (
        isinstance(func, cst.Attribute)
        and func.attr.value in RUNNING_METHODS
        and isinstance(func.value, cst.Call)
        and dotted_name(func.value.func) == "super"
    )


def _rearranged(binding: Binding, new: Signature, activations: frozenset[str]) -> list[Slot] | Refusal:
    """Return a call's arguments for the new order: activations by position, live caches by keyword.

    Arguments of parameters that are both passed by position and next in the new order stay
    positional; what follows a gap goes by keyword.
    """
    slots: list[Slot] = []
    placed: set[int] = set()
    for parameter in new.positional:
        bound = binding.argument(parameter.name)
        wanted = bound is not None and (bound.by_position or parameter.name in activations)
        if bound is None or not wanted or is_live_cache(bound):
            break
        slots.append(Slot(bound, None))
        placed.add(bound.index)
    for bound in binding.arguments:
        if bound.index in placed:
            continue
        if bound.by_position and bound.parameter is None:
            return Refusal("a call passes more positional arguments than `forward` takes")
        if bound.parameter is not None:
            slots.append(Slot(bound, bound.parameter.name))
        else:
            slots.append(Slot(bound, bound.arg.keyword.value if bound.arg.keyword is not None else None))
    return in_order_of_effects(slots)
