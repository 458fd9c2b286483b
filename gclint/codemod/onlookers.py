"""What else looks at the arguments of a call, as they are passed: decorators of `forward`, and hooks."""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from gclint.network.decorators import forward_decorators
from gclint.network.evaluation.classes import ClassInfo
from gclint.network.evaluation.walk import walk
from gclint.network.runsite import RunSite

_HOOKED = re.compile(
    r"\.[ \t]{0,99}register_forward_(?:pre_hook[ \t]{0,99}\(|hook[ \t]{0,99}\([^()\n]{1,400}\bwith_kwargs\b)"
)


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
        if any(_HOOKED.search(base.text) for base in info.mro):
            yield (
                f"`{info.name}` registers forward hooks that see which arguments are passed by position, and "
                "which by keyword"
            )


def _reading_decorator(info: ClassInfo) -> str | None:
    """Return a decorator of ``forward`` that does more with collected arguments than to hand them on."""
    return next(
        (name for name, value in forward_decorators(info) if any(map(_reads_collected, walk(value.node)))),
        None,
    )


def _reads_collected(wrapper: cst.CSTNode) -> bool:
    """Return whether a function takes its ``*args`` or ``**kwargs`` apart."""
    if not isinstance(wrapper, cst.FunctionDef):
        return False
    collected = [wrapper.params.star_arg, wrapper.params.star_kwarg]
    names = {each.name.value for each in collected if isinstance(each, cst.Param)}
    handed_on = {
        arg.value
        for node in walk(wrapper.body)
        if isinstance(node, cst.Call)
        for arg in node.args
        if arg.star
    }
    uses = (node for node in walk(wrapper.body) if isinstance(node, cst.Name) and node.value in names)
    return any(node not in handed_on for node in uses)
