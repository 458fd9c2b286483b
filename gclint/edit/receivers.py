"""Who receives the arguments of a call that is rewritten: every class that it may run, as each is called.

A call whose arguments change between position and keyword has to stay right for all of them, not only for
the blocks that the text shows.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Hashable, Iterator, Sequence
from dataclasses import replace

from gclint.code.walk import Arg, arguments
from gclint.copies.generated import is_modular
from gclint.edit.by_text import text_doubts
from gclint.edit.call import CallRepair, Slot, repair_call
from gclint.edit.checkpoint_functions import checkpointing_doubts
from gclint.edit.filling import stack_doubts
from gclint.edit.hooks import hooking_doubts
from gclint.edit.overriding import subclass_doubts
from gclint.edit.patched import forwards_replaced
from gclint.edit.recomputed import changed_in_place
from gclint.edit.unfollowed import unfollowed
from gclint.edit.unnamed import unnamed_doubts
from gclint.edit.users import subclasses_around
from gclint.finding import Refusal
from gclint.model.attributes import spaces_of
from gclint.model.callees import Form, Forms, default, moved, takes_alike
from gclint.model.notes import quoted
from gclint.model.replacements import CALLING
from gclint.network.activation import SiteBinding, bind_site
from gclint.network.evaluation.classes import CHECKPOINTING_BASE, ClassInfo
from gclint.network.evaluation.values import EvaluatedExternal, EvaluatedFunction, ExternalInstance
from gclint.network.holders import held_classes
from gclint.network.model import Network
from gclint.network.runsite import RunSite
from gclint.network.words import words_in


def repaired_call(network: Network, site: RunSite, bindings: Sequence[SiteBinding]) -> CallRepair | Refusal:
    """Return what makes a call right for all that it may run, or why nothing does.

    Args:
        network: the file.
        site: the call.
        bindings: its arguments bound to each of the blocks that are checkpointing layers.
    """
    others = []
    for info in _others_run(network, site, {binding.block for binding in bindings}):
        binding = bind_site(site, info, network.gradients)
        if binding is None:
            return Refusal(f"the call also runs `{info.name}`, whose parameters do not match its arguments")
        others.append(binding)
    repaired = repair_call(site.scope.module.file, site.call, bindings, others)
    if isinstance(repaired, Refusal):
        return repaired
    forms = _written(arguments(site.call)), _rewritten(repaired.slots)
    before, after = (len(each.positional) for each in forms)
    doubts = [*_receiver_doubts(network, site, forms), *hooking_doubts(network, site)]
    doubts += checkpointing_doubts(network)
    # Other blocks are asked that, and more, before they become layers.
    for each in (one for one in bindings if one.block.is_checkpointing and after > before):
        moved_in = [parameter.name for parameter in each.signature.positional[before:after]]
        doubts += changed_in_place(each.block, moved_in)
    return replace(repaired, outside_doubts=tuple(doubts))


def _written(given: Sequence[Arg]) -> Form:
    """Return the form of a call as it is."""
    positional = [index for index, arg in enumerate(given) if not arg.star and arg.keyword is None]
    named = {arg.keyword: index for index, arg in enumerate(given) if arg.keyword is not None}
    options = [index for index, arg in enumerate(given) if arg.star == "**"]
    return Form(tuple(positional), named, tuple(options))


def _rewritten(slots: Sequence[Slot]) -> Form:
    """Return the form of a call with other arguments."""
    positional: list[Hashable] = []
    named: dict[str, Hashable] = {}
    options: list[Hashable] = []
    for slot in slots:
        token = default(slot.default) if slot.source is None else slot.source.index
        if slot.keyword is not None:
            named[slot.keyword] = token
        elif slot.source is not None and slot.source.arg.star:
            options.append(token)
        else:
            positional.append(token)
    return Form(tuple(positional), named, tuple(options))


def _others_run(network: Network, site: RunSite, known: Collection[ClassInfo]) -> Iterator[ClassInfo]:
    """Yield the modules that a call may run beside known ones: here, and in heirs of its class elsewhere."""
    names = names_holding(network, site.owner, site.blocks)
    elsewhere = (info for _, _, held in put_elsewhere(network, site.owner, names) for info in held)
    found = dict.fromkeys((*site.blocks, *elsewhere))
    yield from (info for info in found if info not in known)


def names_holding(network: Network, owner: ClassInfo, blocks: Collection[ClassInfo]) -> list[str]:
    """Return the attributes under which a class holds one of some blocks."""
    return [
        name
        for name in network.holding_attributes
        if not held_classes(owner.attribute(name)).isdisjoint(blocks)
    ]


def put_elsewhere(
    network: Network, owner: ClassInfo, names: Collection[str]
) -> Iterator[tuple[ClassInfo, str, list[ClassInfo]]]:
    """Yield the heirs of a class in other files, each with an attribute and the modules it puts there."""
    for subclass in subclasses_around(network, owner) if names else ():
        if subclass.file is not network.file and not is_modular(subclass.file.path):
            for name in names:
                held = held_classes(subclass.attribute(name)) - held_classes(owner.attribute(name))
                own = sorted(held, key=lambda each: (each.name, str(each.file.path)))
                yield subclass, name, [info for info in own if info.is_module]


def _receiver_doubts(network: Network, site: RunSite, forms: Forms) -> Iterator[str]:
    """Yield why a call that is rewritten may run something that takes its arguments otherwise."""
    for info in site.blocks:
        yield from _block_doubts(info, forms)
        release = network.only_known_release(info)
        if release is not None:
            yield (
                f"`{info.name}` is only known as it is in {release}; this code targets {network.releases}, "
                "where it may take other arguments"
            )
    for place in forwards_replaced(network, frozenset(site.blocks)):
        yield f"{place}, and the new one may take other arguments"
    yield from text_doubts(network, site.blocks)
    for value in sorted(_unknown(site, forms)):
        yield f"the call also runs `{value}`, which may take other arguments"

    def suits(info: ClassInfo) -> bool:
        if info in site.blocks:
            return True
        replaced = forwards_replaced(network, frozenset((info,)))
        return not replaced and next(_block_doubts(info, forms), None) is None

    held = sorted(names_holding(network, site.owner, site.blocks))
    run = [site.receiver, *(loop.iter for loop in site.loops if not isinstance(loop, ast.While))]
    words = {word for node in run for word in words_in(node)}
    named = [name for name in held if name in words]
    for name in named or held:
        yield from stack_doubts(network, site, name, suits)
    yield from subclass_doubts(network, site, named or held, suits)
    yield from unnamed_doubts(network, suits)


def _unknown(site: RunSite, forms: Forms) -> set[str]:
    """Return what a call may run, as it is called or written, that may take its arguments otherwise."""
    values = site.scope.evaluate(site.receiver)
    made = {value.name for value in values if isinstance(value, (ExternalInstance, EvaluatedExternal))}
    found = {name for name in made if not name.startswith("torch.")}
    for value in values if not site.checkpointed else ():
        if isinstance(value, EvaluatedFunction) and not takes_alike(value.node.args, forms):
            found.add(getattr(value.node, "name", "lambda"))
    # What only a run has shown is not followed at all.
    others = () if site.only_seen else unfollowed(site.scope, site.receiver)
    return found.union(map(quoted, others))


def _block_doubts(info: ClassInfo, forms: Forms) -> Iterator[str]:
    """Yield why a class may take other arguments than its ``forward`` seems to."""
    for name in CALLING:
        calling = info.find_method(name)
        if calling is not None and calling[0].name != CHECKPOINTING_BASE:
            yield f"`{calling[0].name}` overrides `{name}`, which may take other arguments than `forward`"
    spaces = spaces_of(info.module.library.project)
    other = moved(spaces, info.file, info.name, forms)
    if other is not None:
        yield f"a call of `{info.name}` may run {other}"
