"""Calls of blocks by code that is no method of what holds them, such as functions and scripts.

No fix rewrites such a call, so it has to suit a checkpointing layer as it is.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from gclint.code.outline import Definition
from gclint.code.paths import shown
from gclint.code.walk import arguments
from gclint.edit.receivers import names_holding
from gclint.edit.replaced import files_around, is_machinery
from gclint.edit.users import code_of, users, users_naming
from gclint.network.activation import is_constant, is_live_cache, may_require_grad
from gclint.network.binding import BoundArgument, bind
from gclint.network.evaluation.classes import ClassInfo, words_of
from gclint.network.evaluation.modules import ModuleInfo
from gclint.network.evaluation.scope import Scope
from gclint.network.evaluation.values import Instance
from gclint.network.holders import accessors
from gclint.network.model import Network
from gclint.network.search import Holders, may_be_block


def outside_doubts(network: Network, blocks: Collection[ClassInfo]) -> Iterator[str]:
    """Yield what other code passes to blocks in a way that does not suit checkpointing layers."""
    owners = {site.owner: None for site in network.run_sites if not set(blocks).isdisjoint(site.blocks)}
    names = frozenset(name for owner in owners for name in names_holding(network, owner, blocks))
    for module in (network.module, *users_naming(network, names)):
        wrong = {
            scope.span(call): how
            for _, scope in code_of(module, lambda each: _names_one(each, names))
            for call in _calls(scope, Holders(names, accessors(module, names)))
            if (how := list(_wrong(scope, call, blocks)))
        }
        where = "" if module is network.module else f" of {shown(module.file.path)}"
        for span in sorted(wrong.keys() - _looked_at(network, module) if wrong else ()):
            row = module.file.position(span[0]).row
            yield from (f"the call on line {row}{where} passes {each}" for each in wrong[span])


def _looked_at(network: Network, module: ModuleInfo) -> set[tuple[int, int]]:
    """Return where the calls of a module stand that a fix looks at, there or in what it needs of others."""
    own = network if module is network.module else Network(network.project, module.file)
    return {site.span(site.call) for site in own.run_sites}


def _names_one(definition: Definition, names: Collection[str]) -> bool:
    text = definition.text
    return any(name in text and name in words_of(definition) for name in names)


def _calls(scope: Scope, holders: Holders) -> Iterator[ast.Call]:
    """Yield the calls of what may be a block."""
    for node in scope.body.nodes:
        if isinstance(node, ast.Call) and may_be_block(scope, node.func, holders):
            yield node


def _wrong(scope: Scope, call: ast.Call, blocks: Collection[ClassInfo]) -> Iterator[str]:
    run = {each.info for each in scope.evaluate(call.func) if isinstance(each, Instance)}
    for info in blocks:
        if info.signature is None or (run and info not in run):
            continue
        binding = bind(arguments(call), info.signature)
        is_other = not binding.complete and not any(each.arg.star for each in binding.arguments)
        for bound in () if is_other else binding.arguments:
            if (how := _how_wrong(bound)) is not None:
                yield f"`{scope.source(bound.arg.value)}` to `{info.name}` {how}"


def _how_wrong(bound: BoundArgument) -> str | None:
    if bound.parameter is None or is_constant(bound.arg.value):
        return None
    if bound.by_position:
        is_cache = is_live_cache(bound)
        return "by position, where checkpointing does not disable a cache" if is_cache else None
    is_lost = may_require_grad(bound.arg, bound.parameter)
    return "by keyword, where reentrant checkpointing gives it no gradient" if is_lost else None


def has_users_not_given(network: Network) -> bool:
    """Tell whether files that are not given may run what a file defines; otherwise all is looked at."""
    files = {each.file for each in users(network)}.union(files_around(network)) - {network.file}
    project = network.project
    return any(each.path not in project.given and not is_machinery(project, each) for each in files)
