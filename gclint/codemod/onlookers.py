"""What else looks at the arguments of a call, as they are passed: decorators of `forward`, and hooks."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gclint.network.decorators import forward_decorators
from gclint.network.evaluation.classes import ClassInfo
from gclint.network.runsite import RunSite
from gclint.source.walk import FUNCTIONS, arguments, walk


def onlooker_doubts(site: RunSite) -> Iterator[str]:
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
