"""Adds the observations of runs to call sites, and creates those that the code does not show."""

from __future__ import annotations

from collections.abc import Iterable

from gclint.network.evaluation.classes import ClassInfo
from gclint.network.evaluation.modules import Module
from gclint.network.evaluation.scope import Scope
from gclint.network.evaluation.values import Instance
from gclint.network.runsite import RunSite, calls_as_sites
from gclint.observations import Observed
from gclint.source.walk import walk


def with_seen(module: Module, sites: Iterable[RunSite]) -> tuple[RunSite, ...]:
    """Return the call sites of a file with the observations of runs, and those that only a run has seen."""
    found = list(sites)
    for observed in module.library.project.observations.of(module.file.path):
        info = _block(module, observed)
        here = [site for site in found if _is_about(observed, site)]
        if info is None:
            continue
        if not here:
            site = _new_site(module, observed, info)
            here = [] if site is None else [site]
            found += here
        for site in here:
            _take_up(site, observed, info)
    return tuple(found)


def _is_about(observed: Observed, site: RunSite) -> bool:
    if site.scope.module.file.path != observed.path:
        return False
    first, last = site.rows
    # Python 3.10 reports only the first row of a call.
    return first == observed.first and observed.last in (first, last)


def _take_up(site: RunSite, observed: Observed, info: ClassInfo) -> None:
    site.seen = (*site.seen, observed)
    if info not in site.blocks:
        every = (*site.blocks, info)
        site.blocks = tuple(sorted(every, key=lambda block: (block.name, str(block.file.path))))
        site.only_seen |= {info}


def _block(module: Module, observed: Observed) -> ClassInfo | None:
    """Return the class of the blocks that were run, if its file is available."""
    file = module.library.project.available(module.file, observed.definition)
    info = None if file is None else module.library.module(file).classes.get(observed.block)
    return info if info is not None and info.is_module else None


def _new_site(module: Module, observed: Observed, info: ClassInfo) -> RunSite | None:
    """Return the call site at which a run saw a block; None if it is not in a method, or not unique."""
    offset = module.file.line_starts[observed.first - 1]
    offset += len(module.file.line(observed.first)) - len(module.file.line(observed.first).lstrip())
    for owner in module.classes.values():
        for method in owner.methods():
            if method.header <= offset < method.end:
                scope = owner.scope(method)
                sites = [each for each in calls_as_sites(scope, offset, (info,)) if _is_about(observed, each)]
                # The called object may be the result of another call in the same statement.
                inner = {node for site in sites for node in walk(site.call.func)}
                candidates = [
                    site for site in sites if site.call not in inner and _can_run(scope, site, observed, info)
                ]
                if len(candidates) == 1:
                    candidates[0].only_seen = frozenset((info,))
                    return candidates[0]
    return None


def _can_run(scope: Scope, site: RunSite, observed: Observed, info: ClassInfo) -> bool:
    """Return whether a call may run the observed block, as far as the code shows."""
    named = {arg.keyword for arg in site.args if arg.keyword is not None}
    if not observed.keywords <= named and not any(arg.star == "**" for arg in site.args):
        return False
    values = scope.evaluate(site.receiver)
    return not values or any(isinstance(value, Instance) and value.info is info for value in values)
