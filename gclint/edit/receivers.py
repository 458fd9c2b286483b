"""Who receives the arguments of a call that is rewritten: every class that it may run, as each is called.

A call whose arguments change between position and keyword has to stay right for all of them, not only for
the blocks that the text shows.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Hashable, Iterator, Sequence
from dataclasses import replace

from gclint.code.file import SourceFile
from gclint.code.lines import mentions
from gclint.code.remembered import remembered
from gclint.code.walk import Arg, arguments, last_name, walk, walk_scope
from gclint.copies.generated import is_modular
from gclint.edit.call import CallRepair, Slot, repair_call
from gclint.edit.filling import stack_doubts
from gclint.edit.patched import forwards_replaced
from gclint.edit.recomputed import changed_in_place
from gclint.edit.users import files_beside, topic_beside, users_naming
from gclint.finding import Refusal
from gclint.model.attributes import spaces_of
from gclint.model.callees import Form, Forms, default, moved
from gclint.model.replacements import CALLING
from gclint.network.activation import SiteBinding, bind_site
from gclint.network.evaluation.classes import CHECKPOINTING_BASE, ClassInfo, nodes_of
from gclint.network.evaluation.values import ExternalInstance
from gclint.network.holders import held_classes
from gclint.network.index import subclasses
from gclint.network.model import Network
from gclint.network.runsite import RunSite
from gclint.network.words import words_in

_TABLES_OF_HOOKS = frozenset(("_forward_hooks", "_forward_pre_hooks"))
_HOOKING = _TABLES_OF_HOOKS | frozenset(
    (
        "register_forward_hook",
        "register_forward_pre_hook",
        "register_module_forward_hook",
        "register_module_forward_pre_hook",
    )
)


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
    doubts = [*_receiver_doubts(network, site, forms), *_hooking_doubts(network, site)]
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
    for subclass in subclasses(network.project, owner) if names else ():
        if subclass.file is not network.file and not is_modular(subclass.file.path):
            for name in names:
                held = held_classes(subclass.attribute(name)) - held_classes(owner.attribute(name))
                own = sorted(held, key=lambda each: (each.name, str(each.file.path)))
                yield subclass, name, [info for info in own if info.is_module]


def _receiver_doubts(network: Network, site: RunSite, forms: Forms) -> Iterator[str]:
    """Yield why a call that is rewritten may run something that takes its arguments otherwise."""
    for info in site.blocks:
        yield from _block_doubts(info, forms)
    for place in forwards_replaced(network, frozenset(site.blocks)):
        yield f"{place}, and the new one may take other arguments"
    for value in sorted(_unknown(site), key=str):
        yield f"the call also runs `{value}`, whose parameters are not known"

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


def _unknown(site: RunSite) -> set[str]:
    values = site.scope.evaluate(site.receiver)
    made = {value.name for value in values if isinstance(value, ExternalInstance)}
    return {name for name in made if not name.startswith("torch.")}


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


def _hooking_doubts(network: Network, site: RunSite) -> Iterator[str]:
    """Yield what may see that an argument moves between position and keyword."""
    run = {site.owner, *site.blocks}
    holders = (each for each in network.module.classes.values() if not run.isdisjoint(each.all_parts))
    around = dict.fromkeys((site.owner, *site.blocks, *holders))
    found = [
        info.name
        for info in around
        if any(_hooks(node, base.file) for base in info.mro for node in base.nodes)
    ]
    is_likely = any(mentions(network.file.text, word) for word in _HOOKING)
    functions = network.file.outline.functions.values() if is_likely else ()
    found += [each.name for each in functions if any(_hooks(node, network.file) for node in nodes_of(each))]
    found += [network.file.path.name] if is_likely and _is_hooking_on_import(network.file) else []
    found += [each.path.name for each in files_beside(network, FILES_THAT_HOOK, _HOOKING)]
    found += [each.file.path.name for each in users_naming(network, _HOOKING) if _is_hooking(each.file)]
    for name in found[:1]:
        yield (
            f"`{name}` registers forward hooks that see which arguments are passed by position, and which by "
            "keyword"
        )


@remembered
def _is_hooking(file: SourceFile) -> bool:
    """Return whether a file registers hooks that get arguments as they are passed, on whatever it is."""
    tree = file.tree if any(mentions(file.text, word) for word in _HOOKING) else None
    return tree is not None and any(_hooks(node, file) for node in walk(tree.module))


def _is_hooking_on_import(file: SourceFile) -> bool:
    """Return whether a file does so where it is imported."""
    return file.tree is not None and any(_hooks(node, file) for node in walk_scope(file.tree.module))


def _hooks(node: ast.AST, file: SourceFile) -> bool:
    """Return whether a call registers a hook that gets arguments as they are passed, or reads them."""
    if isinstance(node, ast.Attribute) and node.attr in _TABLES_OF_HOOKS:
        return True
    if not isinstance(node, ast.Call) or last_name(node.func) not in _HOOKING:
        return False
    if last_name(node.func) != "register_forward_hook":
        return True
    if any(each.arg == "with_kwargs" for each in node.keywords):
        return True
    return any(_reads_arguments(each, file) for each in node.args[:1])


def _reads_arguments(hook: ast.expr, file: SourceFile) -> bool:
    """Return whether a function of a file, which runs after another one, reads the arguments of that."""
    named = file.outline.functions.get(last_name(hook))
    function = hook if isinstance(hook, ast.Lambda) else None if named is None else named.function
    if function is None:
        return False
    second = {each.arg for each in [*function.args.posonlyargs, *function.args.args][1:2]}
    return any(isinstance(each, ast.Name) and each.id in second for each in ast.walk(function))


FILES_THAT_HOOK = topic_beside("onlookers", _is_hooking)
"""Which files of a folder register hooks that get arguments as they are passed."""
