"""Who receives the arguments of a call that is rewritten: every class that it may run, as each is called.

A call whose arguments change between position and keyword has to stay right for all of them, not only for
the blocks that the text shows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import libcst as cst

from gclint.codemod.filling import stack_doubts
from gclint.finding import Refusal
from gclint.network.activation import SiteBinding, bind_site
from gclint.network.decorators import forward_decorators
from gclint.network.evaluation.classes import CHECKPOINTING_BASE, ClassInfo
from gclint.network.evaluation.values import ExternalInstance, Function
from gclint.network.evaluation.walk import dotted_name, walk
from gclint.network.holders import held_classes
from gclint.network.index import subclasses
from gclint.network.model import Network
from gclint.network.runsite import RunSite
from gclint.source.file import SourceFile
from gclint.source.generated import is_modular
from gclint.source.words import has_word

_REPLACED = re.compile(r"(?<![\w.])\w{1,99}\.forward[ \t]{0,99}=(?!=)")


def others_run(network: Network, site: RunSite) -> tuple[ClassInfo, ...]:
    """Return the modules that a call may run: here, and in subclasses of its class in other files."""
    found = dict.fromkeys(site.blocks)
    names = [name for name in network.holding_attributes if _is_held(site, name)]
    for heir in subclasses(network.project, site.owner) if names else ():
        if heir.file is not network.file and not is_modular(heir.file.path):
            for name in names:
                held = held_classes(heir.attribute(name)) - held_classes(site.owner.attribute(name))
                found |= dict.fromkeys(info for info in sorted(held, key=_key) if info.is_module)
    return tuple(found)


def other_bindings(
    network: Network, site: RunSite, bindings: Sequence[SiteBinding]
) -> tuple[SiteBinding, ...] | Refusal:
    """Return a call's arguments bound to all that it may run beside those that are bound already."""
    known = {binding.block for binding in bindings}
    found = []
    for info in others_run(network, site):
        if info not in known:
            binding = bind_site(site, info, network.gradients)
            if binding is None:
                return Refusal(
                    f"the call also runs `{info.name}`, whose parameters do not match its arguments"
                )
            found.append(binding)
    return tuple(found)


def _key(info: ClassInfo) -> tuple[str, str]:
    return info.name, str(info.file.path)


def _is_held(site: RunSite, name: str) -> bool:
    return not held_classes(site.owner.attribute(name)).isdisjoint(site.blocks)


def receiver_doubts(network: Network, site: RunSite) -> Iterator[str]:
    """Yield why a call that is rewritten may run something that takes its arguments otherwise."""
    for info in site.blocks:
        yield from _block_doubts(info)
    for value in sorted(_unknown(site), key=str):
        yield f"the call also runs `{value}`, whose parameters are not known"
    held = [name for name in sorted(network.holding_attributes) if _is_held(site, name)]
    texts = [site.source(site.receiver)]
    texts += [site.source(loop.iter) for loop in site.loops if isinstance(loop, cst.For)]
    named = [name for name in held if any(has_word(text, name, 0, len(text)) for text in texts)]
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
    if any(_REPLACED.search(base.text) for base in info.mro):
        yield f"`{info.name}` replaces its `forward`, and the new one may take other arguments"
    file, name = info.file, re.escape(info.name)
    again = re.compile(rf"^[ \t]*{name}(?:\.forward)?[ \t]*=(?!=)", re.MULTILINE)
    for match in again.finditer(file.outline.code):
        if file.outline.is_code(match.end() - 1) and not _is_in_definition(file, match.start()):
            yield f"`{info.name}` is replaced on line {file.position(match.end() - 1).row}"
            break
    # Only the first one that may hand on other arguments than it gets.
    decorator = next((name for name, value in forward_decorators(info) if not _hands_on(value)), None)
    if decorator is not None:
        yield f"`{info.name}.forward` is decorated with `{decorator}`, which may take other arguments"


def _is_in_definition(file: SourceFile, offset: int) -> bool:
    return any(each.header <= offset < each.end for each in file.outline.definitions)


def _hands_on(function: Function) -> bool:
    """Return whether a decorator returns what it gets, or what hands on all arguments as they are."""
    inner = [node for node in walk(function.node) if isinstance(node, (cst.FunctionDef, cst.Lambda))]
    inner.remove(function.node)
    wrappers = [node for node in inner if isinstance(node.params.star_arg, cst.Param)]
    if not inner:
        return True
    return bool(wrappers) and all(_passes_all(node) for node in wrappers)


def _passes_all(wrapper: cst.FunctionDef | cst.Lambda) -> bool:
    params = wrapper.params
    if params.kwonly_params or params.posonly_params or not isinstance(params.star_arg, cst.Param):
        return False
    double = None if params.star_kwarg is None else params.star_kwarg.name.value
    expected = [*(param.name.value for param in params.params), f"*{params.star_arg.name.value}"]
    expected += [] if double is None else [f"**{double}"]
    calls = [node for node in walk(wrapper.body) if isinstance(node, cst.Call)]
    given = [[arg.star + (dotted_name(arg.value) or "") for arg in call.args] for call in calls]
    return any(each == expected for each in given)
