"""GC101: a checkpointed call that passes other arguments than the plain call beside it."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from gclint.code.walk import is_constant, structure
from gclint.edit.differences import BranchDifference, compare_calls
from gclint.edit.places import argument_place
from gclint.finding import Finding, Refusal, StoryStep
from gclint.network.explaining.places import CodeToExplain
from gclint.network.model import Network
from gclint.network.runsite import RunSite
from gclint.network.story import call_story
from gclint.network.support import models_running
from gclint.network.words import words_in
from gclint.releases import Releases
from gclint.rule import Rule
from gclint.wording import listed_code


class MismatchedCheckpointBranches(Rule):
    """The checkpointed and the plain call of a block pass different arguments.

    ## What it does

    Binds both calls of a legacy branch to the parameters of the block's `forward`, as Python does it,
    and reports parameters that receive different values: two arguments that are swapped, keywords that
    one of the calls drops, a whole list where the other call passes one of its items. Differences are
    accepted if they concern a cache that is disabled while checkpointing, its positions, or values that
    the branch's own condition rules out.

    ## Why is this bad?

    The model silently computes something else as soon as checkpointing is enabled. Positional
    arguments of a checkpoint function are easily shifted, since few people run both branches.

    ## Example

    ```python
    if self.gradient_checkpointing and self.training:
        hidden_states = self._gradient_checkpointing_func(layer.__call__, hidden_states, position_ids, mask)
    else:
        hidden_states = layer(hidden_states, mask, position_ids)
    ```

    Use instead:

    ```python
    if self.gradient_checkpointing and self.training:
        hidden_states = self._gradient_checkpointing_func(layer.__call__, hidden_states, mask, position_ids)
    else:
        hidden_states = layer(hidden_states, mask, position_ids)
    ```

    ## Fix safety

    There is no fix: only the author knows which of the two calls is right. Once both pass the same, GC302
    removes the branch.

    ## References

    - [transformers issue #23366](https://github.com/huggingface/transformers/issues/23366)
    """

    code = "GC101"
    name = "mismatched-checkpoint-branches"
    precision = "medium"

    def check(self, network: Network) -> Iterable[Finding]:
        """Yield a finding for each checkpointed call that differs from its plain one."""
        for legacy, differences in _mismatches(network.run_sites, network.releases):
            if legacy.scope.module.file is not network.file or not models_running(legacy.owner):
                continue
            if _are_of_other_release(network, legacy):
                continue
            passed = (each.argument for each in differences if each.argument is not None)
            places = (argument_place(legacy, arg) for arg in passed)
            whole = legacy.span(legacy.call)
            start, end = next((place for place in places if place != whole), whole)
            blocks = listed_code(info.name for info in legacy.blocks)
            yield self.finding(
                f"{blocks} gets other arguments with checkpointing than without: " + _described(differences),
                network.file.path,
                (start, end),
                legacy.blocks[0].name,
                Refusal(_UNDECIDED),
                story=(
                    *call_story(legacy, legacy.blocks[0]),
                    *(StoryStep(network.file.path, start, end, each.description) for each in differences),
                ),
            )

    def silence(self, network: Network, explained: CodeToExplain) -> Iterable[str]:
        """Yield for each checkpointed call which plain call it was compared with, or why with none."""
        for site in explained.sites:
            if not site.checkpointed:
                continue
            blocks = listed_code(info.name for info in site.blocks)
            if not models_running(site.owner):
                yield f"no model is seen to hold `{site.owner.name}`, which calls a checkpoint function"
            elif _are_of_other_release(network, site):
                yield f"{blocks} is only known from a release of transformers that this code does not use"
            elif _plain_beside(site, network.run_sites) is None:
                yield f"the other branch has no single plain call of {blocks} to compare with"
            else:
                yield (
                    f"the plain call of {blocks} in the other branch passes the same arguments, caches aside"
                )
        if explained.sites and not any(site.checkpointed for site in explained.sites):
            yield (
                "no call here goes through a checkpoint function in the model itself, so there are no two "
                "calls to compare"
            )


def _are_of_other_release(network: Network, site: RunSite) -> bool:
    return any(map(network.is_of_other_release, site.blocks))


def _described(differences: Sequence[BranchDifference]) -> str:
    left = len(differences) - _SHOWN
    described = [each.description for each in differences[:_SHOWN]]
    return "; ".join(
        [*described, f"and {left} more, which `gclint explain` names"] if left > 0 else described
    )


_UNDECIDED = "only the author knows which of the two calls is right; pass the same arguments in both"
_SHOWN = 3
"""How many differences a message names; the story has all."""
_MODES = ("checkpoint", "ckpt", "training", "requires_grad", "grad_enabled")
# What only a cache needs, and may be left out together with it.
_BESIDE_CACHES = frozenset(("cache_position",))


def _mismatches(
    sites: Sequence[RunSite], releases: Releases
) -> Iterator[tuple[RunSite, list[BranchDifference]]]:
    """Yield the checkpointed calls that give ``forward`` something else than the plain one beside them.

    They are the only calls of the same blocks in the two sides of one ``if`` that asks for a mode.
    """
    for legacy in sites:
        plain = _plain_beside(legacy, sites) if legacy.checkpointed else None
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


def _plain_beside(legacy: RunSite, sites: Sequence[RunSite]) -> RunSite | None:
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


def _concerns_cache(difference: BranchDifference) -> bool:
    """Return whether a checkpointed call only leaves out a cache, or what goes with one, as it should."""
    is_beside = difference.argument is None and difference.parameter in _BESIDE_CACHES
    return is_beside or difference.is_cache_off


def _is_off(legacy: RunSite, difference: BranchDifference) -> bool:
    """Return whether a checkpointed call switches off what the tests around it say is off anyway."""
    one, other = difference.received
    off = (each for arm in legacy.arms for each in _off(arm.node.test, arm.taken))
    return (
        one is not None
        and other is not None
        and one.is_off
        and any(structure(other.node) == structure(each) for each in off)
    )


def _running(sites: Sequence[RunSite], like: RunSite) -> list[RunSite]:
    return [site for site in sites if not set(site.blocks).isdisjoint(like.blocks)]


def _off(test: ast.expr, holds: bool) -> Iterator[ast.expr]:
    """Yield the expressions that are False, None or empty where a test holds, or does not."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        yield from _off(test.operand, not holds)
    elif isinstance(test, ast.BoolOp):
        # All of what `and` joins holds, or none of what `or` joins.
        if isinstance(test.op, ast.And if holds else ast.Or):
            for each in test.values:
                yield from _off(each, holds)
    elif isinstance(test, ast.Compare):
        is_none = isinstance(test.ops[0], ast.Is if holds else ast.IsNot)
        if is_none and len(test.ops) == 1 and is_constant(test.comparators[0], None):
            yield test.left
    elif not holds:
        yield test
