"""Changing the order of a block's ``forward`` so that activations come before caches."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from gclint.code.file import SourceFile
from gclint.code.lines import mentions
from gclint.code.outline import Definition
from gclint.code.paths import shown
from gclint.code.questions import Topic
from gclint.code.walk import arguments, dotted_name, walk
from gclint.code.word_search import has_word
from gclint.edit.call import (
    CACHES_IN_ORDER,
    Slot,
    in_order_of_effects,
    shifted_argument,
    write_call,
)
from gclint.finding import Edit, Refusal, Repair, RepairKind
from gclint.network.activation import bind_site, is_live_cache, is_named_activation
from gclint.network.binding import Binding, bind
from gclint.network.evaluation.body import Body
from gclint.network.evaluation.classes import ClassInfo
from gclint.network.evaluation.signature import Parameter, ParameterKind, Signature
from gclint.network.index import subclasses
from gclint.network.model import Network
from gclint.network.search import RUNNING_METHODS


@dataclass
class Reordering:
    """The edits that change the order of a signature, and the calls that they rewrite."""

    signature: Signature
    """In the new order."""
    edits: dict[Edit, None] = field(default_factory=dict)
    calls: list[Repair] = field(default_factory=list)

    def add_call(
        self, file: SourceFile, call: ast.Call, binding: Binding, activations: frozenset[str]
    ) -> Refusal | None:
        """Write a call anew, or return why not; one that is right already is replaced by itself.

        That keeps another repair, made by the old order, from being made to it at the same time.
        """
        slots = _rearranged(file, binding, self.signature, activations)
        edits = slots if isinstance(slots, Refusal) else write_call(file, call, slots)
        if isinstance(edits, Refusal):
            return edits
        path, (start, end) = file.path, file.places.span(call)
        if edits:
            self.calls.append(Repair(RepairKind.CALL, path, start, end))
        self.edits.update(dict.fromkeys(edits or (Edit(path, start, end, file.text[start:end]),)))
        return None


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
    others = (each for each in signature.parameters if not each.positional)
    reordering = Reordering(Signature((*order, *others)))
    names = {definer.name, *(info.name for info in subclasses(network.project, definer))}
    for user in _files_naming(network, definer, names):
        for info in user.module.classes.values():
            method = info.definition.method("forward") if definer in info.mro else None
            if method is not None:
                changed = _reorder_header(info, method, order, signature)
                if isinstance(changed, Refusal):
                    return changed
                reordering.edits[changed] = None
        refusal = next(_rewrite_calls(reordering, user, definer, names, signature), None)
        if refusal is not None:
            return refusal
    return reordering


def _new_order(signature: Signature, activations: frozenset[str]) -> list[Parameter] | Refusal:
    """Return the positional parameters, activations first as far as defaults allow."""
    positional = signature.positional
    if any(parameter.kind is ParameterKind.POSITIONAL_ONLY for parameter in positional):
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
    users = [own]
    for file in files_naming(network, names):
        network.project.consult(network.file, file.path)
        if file is not definer.file:
            users.append(network if file is network.file else Network(network.project, file))
    return users


def files_naming(network: Network, names: Collection[str]) -> list[SourceFile]:
    """Return the given files that have one of some words."""
    project = network.project
    return project.chosen(project.paths, NAMING, "|".join(sorted(names)), network.file)


def _names(file: SourceFile, key: str) -> bool:
    return any(has_word(file.text, name, 0, len(file.text)) for name in key.split("|"))


NAMING = Topic("naming", _names)
"""Which given files have one of these words."""


def _reorder_header(
    info: ClassInfo, method: Definition, order: list[Parameter], signature: Signature
) -> Edit | Refusal:
    """Return the edit of one ``forward`` definition, the block's own or an override."""
    args = method.function.args
    if args.posonlyargs:
        return Refusal(f"`{info.name}.forward` has positional-only parameters")
    names = [arg.arg for arg in args.args[1:]]
    if names[: len(order)] != [parameter.name for parameter in signature.positional]:
        where = f"`{info.name}.forward` in {shown(info.file.path)}"
        return Refusal(f"the override {where} has different parameters")
    # Only what is written anew needs LibCST.
    from gclint.edit.layout import parameter_list

    existing = parameter_list(info.file, method)
    if isinstance(existing, Refusal):
        return existing
    moved = [1 + names.index(parameter.name) for parameter in order]
    indices = (0, *moved, *range(1 + len(order), len(existing.items)))
    return existing.written([existing.items[index] for index in indices])


def _rewrite_calls(
    reordering: Reordering, user: Network, definer: ClassInfo, names: Collection[str], signature: Signature
) -> Iterator[Refusal]:
    """Rewrite the calls in a file that bind to the signature by position, and yield why one cannot be."""
    for access in _unbound(user.file, names):
        yield Refusal(f"{_where(user, access)} accesses `forward` on the class")
    for site in user.sites_running(names):
        bound_here = [block for block in site.blocks if block.forward and definer is block.forward[0]]
        related = [block for block in site.blocks if definer in block.mro]
        if not related or site.function is not None:
            continue
        where = _where(user, site.call)
        if site.checkpointed:
            yield Refusal(f"{where} passes the block to a checkpoint function")
        if len(related) != len(site.blocks):
            yield Refusal(f"{where} runs the block together with others")
        found = bind_site(site, (bound_here or related)[0], user.gradients)
        if found is None:
            yield Refusal(f"the arguments at {where} cannot be matched")
            continue
        shift = shifted_argument(found.binding, found.signature)
        if shift is not None:
            yield Refusal(f"the call at {where} is left alone: {shift.reason}")
        refusal = reordering.add_call(user.file, site.call, found.binding, found.activations)
        if refusal is not None:
            yield refusal
    for call in _super_calls(user, definer):
        binding = bind(arguments(call), signature)
        refusal = reordering.add_call(user.file, call, binding, frozenset())
        if refusal is not None or not binding.complete:
            yield Refusal(f"`super().forward` at {_where(user, call)} cannot be matched")


def _where(user: Network, node: ast.expr) -> str:
    return f"{shown(user.file.path)}:{node.lineno}"


def _unbound(file: SourceFile, names: Collection[str]) -> Iterator[ast.expr]:
    """Yield the expressions that access ``forward`` on a class of one of these names."""
    if file.tree is None or not any(name in file.text for name in names):
        return
    for node in walk(file.tree.module):
        if isinstance(node, ast.Attribute) and node.attr == "forward":
            owner = node.value
            name = owner.attr if isinstance(owner, ast.Attribute) else dotted_name(owner)
            if name in names:
                yield node


def _super_calls(user: Network, definer: ClassInfo) -> Iterator[ast.Call]:
    """Yield the calls of ``super().forward`` that reach the definer."""
    for info in user.module.classes.values():
        method = info.definition.method("forward")
        if info is definer or definer not in info.mro or method is None or not mentions(method.text, "super"):
            continue
        yield from (call for call in Body.of_definition(method).calls() if _is_super_forward(call.func))


def _is_super_forward(func: ast.expr) -> bool:
    return (
        isinstance(func, ast.Attribute)
        and func.attr in RUNNING_METHODS
        and isinstance(func.value, ast.Call)
        and dotted_name(func.value.func) == "super"
    )


def _rearranged(
    file: SourceFile, binding: Binding, new: Signature, activations: frozenset[str]
) -> list[Slot] | Refusal:
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
        slots.append(Slot(bound, bound.name or bound.arg.keyword))
    return in_order_of_effects(slots, file)
