"""Everything that is known of code, in sections."""

from __future__ import annotations

from collections.abc import Iterator

from gclint.network.explaining.calls import call_of, why_no_site
from gclint.network.explaining.classes import bases_of, names_given, stacks_in, stacks_of, switches_of
from gclint.network.explaining.facts import Fact, Section, class_place
from gclint.network.explaining.places import CodeToExplain, PlaceKind, sites_of
from gclint.network.importers import users
from gclint.network.model import Network
from gclint.network.runsite import RunSite
from gclint.network.support import is_like_a_model
from gclint.wording import listed_code

_CALLS_ELSEWHERE = 3


def headline(network: Network, explained: CodeToExplain) -> str:
    """Return one clause that says what some code is."""
    where = f" in `{explained.owner.name}`" if explained.owner is not None else ""
    if explained.kind is PlaceKind.CLASS:
        return f"the class `{explained.name}`: {_verdict(network, explained)}"
    if explained.kind is PlaceKind.CALL_SITE:
        blocks = " or ".join(f"`{info.name}`" for info in explained.classes)
        return f"a call site{where}: `{explained.name}` is {blocks}"
    if explained.kind is PlaceKind.LOOP:
        count = len(explained.sites)
        return f"{explained.name}{where}, with {count} call site{'s' * (count != 1)}"
    held = listed_code(info.name for info in explained.classes) if explained.classes else ""
    if explained.kind is PlaceKind.STACK and not held:
        name = explained.name
        return f"the list `self.{name}`{where}, which holds only modules of other libraries, and no block"
    if explained.kind is PlaceKind.STACK:
        return f"the stack `self.{explained.name}`{where}, which holds {held}"
    if explained.kind is PlaceKind.ATTRIBUTE:
        return f"the attribute `self.{explained.name}`{where}, a single {held}, not a stack"
    if explained.kind is PlaceKind.CALL and explained.call is not None:
        return (
            f"the call of `{explained.name}`{where}, which is not a call site: {why_no_site(explained.call)}"
        )
    if explained.kind is PlaceKind.IMPORT:
        return "an import"
    if explained.kind is PlaceKind.FUNCTION:
        return f"the function `{explained.name}`, which is not a method, so it has no stack of its own"
    return "there is no class, call or stack here"


def _verdict(network: Network, explained: CodeToExplain) -> str:
    """Return a clause that says what a class is."""
    (info,) = explained.classes
    if not info.is_module:
        known = "it is not a torch module" if info.resolved else "it is not known to be a torch module"
        return f"not a block: {known}"
    if any(block.info is info for block in network.unprotected_blocks):
        return "a block that should be a checkpointing layer, but is not"
    if info.is_checkpointing:
        return "a checkpointing layer" + ("" if explained.sites else ", which no call in this file runs")
    if is_like_a_model(info):
        return "a model" + (", which other classes run" if explained.sites else "")
    reasons = network.reasons(info, explained.sites)
    return f"not a block to be repaired{f': {reasons[0]}' if reasons else ''}"


def sections(network: Network, explained: CodeToExplain) -> Iterator[Section]:
    """Yield the sections about some code, without empty ones."""
    if explained.imported is not None:
        yield Section("imports", "Names", tuple(names_given(network, explained.imported)))
    elsewhere = _sites_elsewhere(network, explained)
    if explained.classes:
        yield Section("bases", "Bases", tuple(bases_of(info) for info in explained.classes))
        sites = (*explained.sites, *(site for _, site in elsewhere))
        stacks = [fact for info in explained.classes for fact in stacks_of(info, sites)]
        yield Section("stacks", "Stack", tuple(stacks))
    owners = tuple(dict.fromkeys(site.owner for site in explained.sites))
    if not owners and explained.kind is PlaceKind.CLASS and any(map(is_like_a_model, explained.classes)):
        owners = explained.classes
    if owners:
        facts = [
            fact
            for owner in owners
            for fact in switches_of(
                network, owner, tuple(each for each in explained.sites if each.owner is owner)
            )
        ]
        yield Section("switch", "How checkpointing is enabled", tuple(facts))
    calls = _sites_inside(network, explained)
    calls += tuple(call_of(other, site, explained.classes) for other, site in elsewhere)
    if calls:
        yield Section("calls", "Call sites", calls)
    if not explained.classes and explained.imported is None:
        yield Section("file", "Contents of this file", _file(network))


def _sites_inside(network: Network, explained: CodeToExplain) -> tuple[Fact, ...]:
    """Return the call sites of some code, and those in the code of a class that runs blocks."""
    sites = list(explained.sites)
    if explained.kind is PlaceKind.CLASS:
        sites += [site for site in network.run_sites if site.owner in explained.classes and site not in sites]
    return tuple(call_of(network, site, explained.classes) for site in sites)


def _sites_elsewhere(network: Network, explained: CodeToExplain) -> list[tuple[Network, RunSite]]:
    """Return some call sites of a class that only other files run, with the networks of those files."""
    found: list[tuple[Network, RunSite]] = []
    if explained.kind is not PlaceKind.CLASS or explained.sites:
        return found
    for module in users(network.module):
        other = Network(network.project, module.file)
        found += ((other, site) for info in explained.classes for site in sites_of(other, info))
        if len(found) >= _CALLS_ELSEWHERE:
            break
    return found[:_CALLS_ELSEWHERE]


def _file(network: Network) -> tuple[Fact, ...]:
    """Return the stacks in a file; without any, its models and layers."""
    found = stacks_in(network)
    if found:
        return found
    classes = network.module.classes.values()
    known = [info for info in classes if info.is_checkpointing or is_like_a_model(info)]
    facts = tuple(
        Fact(
            f"`{info.name}` is a {'checkpointing layer' if info.is_checkpointing else 'model'}",
            class_place(info),
        )
        for info in known
    )
    return facts or (Fact("no stack of blocks, no checkpointing layer and no model"),)
