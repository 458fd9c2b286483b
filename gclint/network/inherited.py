"""Call sites in inherited methods, which run the blocks that a subclass puts into the stack."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gclint.network.evaluation.classes import ClassInfo, words_of
from gclint.network.evaluation.modules import Module
from gclint.network.holders import held_classes
from gclint.network.runsite import RunSite, run_sites
from gclint.network.search import Holders
from gclint.source.lines import mentions
from gclint.source.outline import Definition


def with_substitutes(module: Module, sites: Iterable[RunSite], holders: Holders) -> tuple[RunSite, ...]:
    """Return the call sites of a file's own methods, with the blocks that subclasses in the file add."""
    found = list(sites)
    for info, base, method in _inherited(module, holders):
        if base.file is not module.file:
            continue
        for site in run_sites(info.scope(method, base.module), holders):
            span = site.span(site.call)
            same = [each for each in found if base in each.owner.mro and each.span(each.call) == span]
            for each in same:
                every = {*each.blocks, *site.blocks}
                each.blocks = tuple(sorted(every, key=lambda block: (block.name, str(block.file.path))))
            if not same:
                found.append(site)
    return tuple(found)


def foreign_sites(module: Module, holders: Holders) -> tuple[RunSite, ...]:
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


def _inherited(module: Module, holders: Holders) -> Iterator[tuple[ClassInfo, ClassInfo, Definition]]:
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
                if any(_stands_in(method, name) for name in names):
                    yield info, base, method


def _stands_in(code: Definition, attribute: str) -> bool:
    return mentions(code.text, attribute) and attribute in words_of(code)
