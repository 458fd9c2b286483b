"""Call sites beside those in a file's own methods: in inherited methods, and those that only runs show."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gclint.code.lines import mentions
from gclint.code.outline import Definition
from gclint.code.walk import walk
from gclint.network.evaluation.classes import ClassInfo, words_of
from gclint.network.evaluation.modules import ModuleInfo
from gclint.network.evaluation.scope import Scope
from gclint.network.evaluation.values import Instance
from gclint.network.holders import held_classes
from gclint.network.runsite import RunSite, calls_as_sites, in_order, run_sites
from gclint.network.search import Holders
from gclint.observations import Observed


def with_substitutes(module: ModuleInfo, sites: Iterable[RunSite], holders: Holders) -> tuple[RunSite, ...]:
    """Return the call sites of a file's own methods, with the blocks that subclasses in the file add."""
    found = list(sites)
    for info, base, method in _inherited(module, holders):
        if base.file is not module.file:
            continue
        for site in run_sites(info.scope(method, base.module), holders):
            span = site.span(site.call)
            same = [each for each in found if base in each.owner.mro and each.span(each.call) == span]
            for each in same:
                each.blocks = in_order({*each.blocks, *site.blocks})
            if not same:
                found.append(site)
    return tuple(found)


def foreign_sites(module: ModuleInfo, holders: Holders) -> tuple[RunSite, ...]:
    """Return the call sites in other files that run blocks of this file, in methods its classes inherit."""
    found: list[RunSite] = []
    for info, base, method in _inherited(module, holders):
        if base.file is module.file:
            continue
        for site in run_sites(info.scope(method, base.module), holders):
            site.blocks = tuple(block for block in site.blocks if block.file is module.file)
            if site.blocks:
                found.append(site)
    return tuple(found)


def _inherited(module: ModuleInfo, holders: Holders) -> Iterator[tuple[ClassInfo, ClassInfo, Definition]]:
    """Yield inherited methods that use an attribute in which a class holds other blocks than its base.

    Each is a tuple of the class, the base that defines the method, and the method.
    """
    for info in module.classes.values():
        for base in info.mro[1:]:
            names = [
                name
                for name in holders.attributes
                if mentions(base.definition.text, name)
                and not held_classes(info.attribute(name)) <= held_classes(base.attribute(name))
            ]
            for method in base.methods() if names else ():
                if method.name == "__init__" or info.find_method(method.name) != (base, method):
                    continue
                if any(mentions(method.text, name) and name in words_of(method) for name in names):
                    yield info, base, method


def with_seen(module: ModuleInfo, sites: Iterable[RunSite]) -> tuple[RunSite, ...]:
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
            site.seen = (*site.seen, observed)
            if info not in site.blocks:
                site.blocks = in_order((*site.blocks, info))
                site.only_seen |= {info}
    return tuple(found)


def _is_about(observed: Observed, site: RunSite) -> bool:
    if site.scope.module.file.path != observed.path:
        return False
    first, last = site.rows
    columns = (site.call.col_offset, site.call.end_col_offset)
    # Python 3.10 reports only the first row of a call.
    return first == observed.first and observed.last in (first, last) and observed.columns in ((), columns)


def _block(module: ModuleInfo, observed: Observed) -> ClassInfo | None:
    """Return the class of the blocks that were run, if its file is available."""
    file = module.library.project.available(module.file, observed.definition)
    info = None if file is None else module.library.module(file).classes.get(observed.block)
    return info if info is not None and info.is_module else None


def _new_site(module: ModuleInfo, observed: Observed, info: ClassInfo) -> RunSite | None:
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
