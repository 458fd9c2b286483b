"""Where the arguments of a call site stand."""

from __future__ import annotations

import ast

from gclint.codemod.listing import argument_span
from gclint.network.runsite import RunSite
from gclint.source.walk import Arg, arguments, walk


def argument_place(site: RunSite, arg: Arg) -> tuple[int, int]:
    """Return where an argument that reaches a block stands in the file, with its name or stars.

    That of a wrapper function, or of an unpacked list or dict, is in another statement: then it is the whole
    call.
    """
    for call in (node for node in walk(site.call) if isinstance(node, ast.Call)):
        if arg in arguments(call):
            return argument_span(site.scope.module.file, call, arg)
    return site.span(site.call)
