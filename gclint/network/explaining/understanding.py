"""Everything that is known of a spot, in sections."""

from __future__ import annotations

from collections.abc import Iterator

from gclint.network.explaining.calls import call_of, why_no_site
from gclint.network.explaining.classes import bases_of, names_given, stacks_in, stacks_of, switches_of
from gclint.network.explaining.facts import Fact, Section, class_place
from gclint.network.explaining.places import Kind, Spot, sites_of
from gclint.network.importers import users
from gclint.network.model import Network
from gclint.network.runsite import RunSite
from gclint.network.support import is_like_a_model
from gclint.wording import listed_code

_CALLS_ELSEWHERE = 3


def headline(network: Network, spot: Spot) -> str:
    """Return one clause that says what a spot is."""
    where = f" in `{spot.owner.name}`" if spot.owner is not None else ""
    if spot.kind is Kind.CLASS:
        return f"the class `{spot.name}`: {_verdict(network, spot)}"
    if spot.kind is Kind.CALL_SITE:
        blocks = " or ".join(f"`{info.name}`" for info in spot.classes)
        return f"a call site{where}: `{spot.name}` is {blocks}"
    if spot.kind is Kind.LOOP:
        return f"{spot.name}{where}, with {len(spot.sites)} call site{'s' * (len(spot.sites) != 1)}"
    held = listed_code(info.name for info in spot.classes) if spot.classes else ""
    if spot.kind is Kind.STACK and not held:
        return (
            f"the list `self.{spot.name}`{where}, which holds only modules of other libraries, and no block"
        )
    if spot.kind is Kind.STACK:
        return f"the stack `self.{spot.name}`{where}, which holds {held}"
    if spot.kind is Kind.ATTRIBUTE:
        return f"the attribute `self.{spot.name}`{where}, a single {held}, not a stack"
    if spot.kind is Kind.CALL and spot.call is not None:
        return f"the call of `{spot.name}`{where}, which is not a call site: {why_no_site(spot.call)}"
    if spot.kind is Kind.IMPORT:
        return "an import"
    if spot.kind is Kind.FUNCTION:
        return f"the function `{spot.name}`, which is not a method, so it has no stack of its own"
    return "there is no class, call or stack here"


def _verdict(network: Network, spot: Spot) -> str:
    """Return a clause that says what a class is."""
    (info,) = spot.classes
    if not info.is_module:
        known = "it is not a torch module" if info.resolved else "it is not known to be a torch module"
        return f"not a block: {known}"
    if any(block.info is info for block in network.unprotected_blocks):
        return "a block that should be a checkpointing layer, but is not"
    if info.is_checkpointing:
        return "a checkpointing layer" + ("" if spot.sites else ", which no call in this file runs")
    if is_like_a_model(info):
        return "a model" + (", which other classes run" if spot.sites else "")
    reasons = network.reasons(info, spot.sites)
    return f"not a block to be repaired{f': {reasons[0]}' if reasons else ''}"


def sections(network: Network, spot: Spot) -> Iterator[Section]:
    """Yield the sections about a spot, without empty ones."""
    if spot.imported is not None:
        yield Section("imports", "Names", tuple(names_given(network, spot.imported)))
    elsewhere = _sites_elsewhere(network, spot)
    if spot.classes:
        yield Section("bases", "Bases", tuple(bases_of(info) for info in spot.classes))
        sites = (*spot.sites, *(site for _, site in elsewhere))
        stacks = [fact for info in spot.classes for fact in stacks_of(info, sites)]
        yield Section("stacks", "Stack", tuple(stacks))
    owners = tuple(dict.fromkeys(site.owner for site in spot.sites))
    if not owners and spot.kind is Kind.CLASS and any(map(is_like_a_model, spot.classes)):
        owners = spot.classes
    if owners:
        facts = [
            fact
            for owner in owners
            for fact in switches_of(network, owner, tuple(each for each in spot.sites if each.owner is owner))
        ]
        yield Section("switch", "How checkpointing is enabled", tuple(facts))
    calls = _sites_inside(network, spot)
    calls += tuple(call_of(other, site, spot.classes) for other, site in elsewhere)
    if calls:
        yield Section("calls", "Call sites", calls)
    if not spot.classes and spot.imported is None:
        yield Section("file", "Contents of this file", _file(network))


def _sites_inside(network: Network, spot: Spot) -> tuple[Fact, ...]:
    """Return the call sites of a spot, and those in the code of a class that runs blocks."""
    sites = list(spot.sites)
    if spot.kind is Kind.CLASS:
        sites += [site for site in network.run_sites if site.owner in spot.classes and site not in sites]
    return tuple(call_of(network, site, spot.classes) for site in sites)


def _sites_elsewhere(network: Network, spot: Spot) -> list[tuple[Network, RunSite]]:
    """Return some call sites of a class that only other files run, with the networks of those files."""
    found: list[tuple[Network, RunSite]] = []
    if spot.kind is not Kind.CLASS or spot.sites:
        return found
    for module in users(network.module):
        other = Network(network.project, module.file)
        found += ((other, site) for info in spot.classes for site in sites_of(other, info))
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
