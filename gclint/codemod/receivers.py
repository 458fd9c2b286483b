"""Who receives the arguments of a call that is rewritten: every class that it may run, as each is called.

A call whose arguments change between position and keyword has to stay right for all of them, not only for
the blocks that the text shows.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from gclint.codemod.call import CallRepair, repair_call
from gclint.codemod.filling import stack_doubts
from gclint.finding import Refusal
from gclint.network.activation import SiteBinding, bind_site
from gclint.network.decorators import forward_decorators
from gclint.network.evaluation.body import Body
from gclint.network.evaluation.classes import CHECKPOINTING_BASE, ClassInfo
from gclint.network.evaluation.values import ExternalInstance, Function
from gclint.network.holders import held_classes
from gclint.network.index import subclasses
from gclint.network.model import Network
from gclint.network.runsite import RunSite
from gclint.network.words import words_in
from gclint.source.file import SourceFile
from gclint.source.generated import is_modular
from gclint.source.tree import DEFINITIONS
from gclint.source.walk import FUNCTIONS, FunctionNode, arguments, dotted_name, walk


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
    return replace(repaired, onlookers=(*_receiver_doubts(network, site), *_onlooker_doubts(site)))


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
    for heir in subclasses(network.project, owner) if names else ():
        if heir.file is not network.file and not is_modular(heir.file.path):
            for name in names:
                held = held_classes(heir.attribute(name)) - held_classes(owner.attribute(name))
                own = sorted(held, key=lambda each: (each.name, str(each.file.path)))
                yield heir, name, [info for info in own if info.is_module]


def _receiver_doubts(network: Network, site: RunSite) -> Iterator[str]:
    """Yield why a call that is rewritten may run something that takes its arguments otherwise."""
    for info in site.blocks:
        yield from _block_doubts(info)
    for value in sorted(_unknown(site), key=str):
        yield f"the call also runs `{value}`, whose parameters are not known"
    held = sorted(names_holding(network, site.owner, site.blocks))
    run = [site.receiver, *(loop.iter for loop in site.loops if not isinstance(loop, ast.While))]
    words = {word for node in run for word in words_in(node)}
    named = [name for name in held if name in words]
    for name in named or held:
        yield from stack_doubts(network, site, name)


def _unknown(site: RunSite) -> set[str]:
    values = site.scope.evaluate(site.receiver)
    made = {value.name for value in values if isinstance(value, ExternalInstance)}
    return {name for name in made if not name.startswith("torch.")}


def _block_doubts(info: ClassInfo) -> Iterator[str]:
    """Yield why a class may take other arguments than its ``forward`` seems to."""
    calling = info.find_method("__call__")
    if calling is not None and calling[0].name != CHECKPOINTING_BASE:
        yield f"`{calling[0].name}` overrides `__call__`, which may take other arguments than `forward`"
    if any(_sets_forward(node) for base in info.mro for node in base.nodes):
        yield f"`{info.name}` replaces its `forward`, and the new one may take other arguments"
    again = next((node for node in _own_nodes(info.file) if _sets(node, info.name)), None)
    if again is not None:
        yield f"`{info.name}` is replaced on line {info.file.places.row(info.file.places.start(again))}"
    # Only the first one that may hand on other arguments than it gets.
    decorator = next((name for name, value in forward_decorators(info) if not _hands_on(value)), None)
    if decorator is not None:
        yield f"`{info.name}.forward` is decorated with `{decorator}`, which may take other arguments"


def _own_nodes(file: SourceFile) -> Iterator[ast.AST]:
    """Yield the nodes of a file outside of its functions and classes."""
    statements = () if file.tree is None else file.tree.module.body
    return Body(file, [each for each in statements if not isinstance(each, DEFINITIONS)]).own_nodes


def _sets(node: ast.AST, name: str) -> bool:
    """Return whether a node is a class, or its ``forward``, where it is set anew."""
    if isinstance(node, ast.Name):
        return node.id == name and isinstance(node.ctx, ast.Store)
    return _sets_forward(node) and dotted_name(node) == f"{name}.forward"


def _sets_forward(node: ast.AST) -> bool:
    """Return whether a node is the ``forward`` of a variable where it is set."""
    return (
        isinstance(node, ast.Attribute)
        and node.attr == "forward"
        and isinstance(node.ctx, ast.Store)
        and isinstance(node.value, ast.Name)
    )


def _hands_on(function: Function) -> bool:
    """Return whether a decorator returns what it gets, or what hands on all arguments as they are."""
    inner = [node for node in walk(function.node) if isinstance(node, (*FUNCTIONS, ast.Lambda))]
    inner.remove(function.node)
    wrappers = [node for node in inner if node.args.vararg is not None]
    if not inner:
        return True
    return bool(wrappers) and all(_passes_all(node) for node in wrappers)


def _passes_all(wrapper: FunctionNode | ast.Lambda) -> bool:
    args = wrapper.args
    if args.kwonlyargs or args.posonlyargs or args.vararg is None:
        return False
    expected = [*(each.arg for each in args.args), f"*{args.vararg.arg}"]
    expected += [] if args.kwarg is None else [f"**{args.kwarg.arg}"]
    body = [wrapper.body] if isinstance(wrapper, ast.Lambda) else wrapper.body
    calls = (node for part in body for node in walk(part) if isinstance(node, ast.Call))
    given = [[arg.star + (dotted_name(arg.value) or "") for arg in arguments(call)] for call in calls]
    return any(each == expected for each in given)


def _onlooker_doubts(site: RunSite) -> Iterator[str]:
    """Yield what may see that an argument moves between position and keyword."""
    for info in site.blocks:
        decorator = _reading_decorator(info)
        if decorator is not None:
            yield (
                f"`{info.name}.forward` is decorated with `{decorator}`, which reads arguments by position "
                "or keyword"
            )
    for info in dict.fromkeys((site.owner, *site.blocks)):
        if any(_hooks(node) for base in info.mro for node in base.nodes):
            yield (
                f"`{info.name}` registers forward hooks that see which arguments are passed by position, and "
                "which by keyword"
            )


def _hooks(node: ast.AST) -> bool:
    """Return whether a call registers a hook that gets arguments as they are passed."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    if node.func.attr == "register_forward_hook":
        return any(each.arg == "with_kwargs" for each in node.keywords)
    return node.func.attr == "register_forward_pre_hook"


def _reading_decorator(info: ClassInfo) -> str | None:
    """Return a decorator of ``forward`` that does more with collected arguments than to hand them on."""
    return next(
        (name for name, value in forward_decorators(info) if any(map(_reads_collected, walk(value.node)))),
        None,
    )


def _reads_collected(wrapper: ast.AST) -> bool:
    """Return whether a function takes its ``*args`` or ``**kwargs`` apart."""
    if not isinstance(wrapper, FUNCTIONS):
        return False
    names = {each.arg for each in (wrapper.args.vararg, wrapper.args.kwarg) if each is not None}
    nodes = [node for statement in wrapper.body for node in walk(statement)]
    calls = (node for node in nodes if isinstance(node, ast.Call))
    handed_on = {arg.value for call in calls for arg in arguments(call) if arg.star}
    uses = (node for node in nodes if isinstance(node, ast.Name) and node.id in names)
    return any(node not in handed_on for node in uses)
