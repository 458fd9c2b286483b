"""Checkpointed calls that give a block something else than the plain calls beside them."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Sequence

from gclint.codemod.arms import known_off
from gclint.codemod.differences import Difference, compare_calls
from gclint.network.runsite import RunSite
from gclint.network.words import words_in
from gclint.releases import Releases
from gclint.source.walk import structure

_MODES = ("checkpoint", "ckpt", "training", "requires_grad", "grad_enabled")
# What only a cache needs, and may be left out together with it.
_BESIDE_CACHES = frozenset(("cache_position",))


def mismatches(sites: Sequence[RunSite], releases: Releases) -> Iterator[tuple[RunSite, list[Difference]]]:
    """Yield the checkpointed calls that give ``forward`` something else than the plain one beside them.

    They are the only calls of the same blocks in the two sides of one ``if`` that asks for a mode.
    """
    for legacy in sites:
        plain = plain_beside(legacy, sites) if legacy.checkpointed else None
        if plain is not None:
            found = [
                each
                for each in compare_calls(legacy, plain, releases, looks_inside=True)
                if each.parameter is not None
                and each.is_certain
                and not (_concerns_cache(each) or _is_off(legacy, each))
            ]
            if found:
                yield legacy, found


def plain_beside(legacy: RunSite, sites: Sequence[RunSite]) -> RunSite | None:
    """Return the plain call that a checkpointed one is the other side of; None where that is not certain."""
    if not legacy.arms or legacy.function is not None:
        return None
    arm = legacy.arms[-1]
    if not _asks_for_mode(arm.node.test):
        return None
    sides: defaultdict[bool, list[RunSite]] = defaultdict(list)
    for site in sites:
        for each in site.arms:
            if each.node is arm.node:
                sides[each.taken].append(site)
    own, others = (_running(sides[taken], legacy) for taken in (arm.taken, not arm.taken))
    return others[0] if len(own) == len(others) == 1 and not others[0].checkpointed else None


def _asks_for_mode(test: ast.expr) -> bool:
    """Return whether a test reads something that is called like a mode."""
    return any(mode in word.lower() for word in words_in(test) for mode in _MODES)


def _concerns_cache(difference: Difference) -> bool:
    """Return whether a checkpointed call only leaves out a cache, or what goes with one, as it should."""
    is_beside = difference.argument is None and difference.parameter in _BESIDE_CACHES
    return is_beside or difference.is_cache_off


def _is_off(legacy: RunSite, difference: Difference) -> bool:
    """Return whether a checkpointed call switches off what the tests around it say is off anyway."""
    one, other = difference.received
    return (
        one is not None
        and other is not None
        and one.is_off
        and any(structure(other.node) == structure(each) for arm in legacy.arms for each in known_off(arm))
    )


def _running(sites: Sequence[RunSite], like: RunSite) -> list[RunSite]:
    return [site for site in sites if not set(site.blocks).isdisjoint(like.blocks)]
