"""GC101: a checkpointed call that passes other arguments than the plain call beside it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from gclint.codemod.mismatches import mismatches, plain_beside
from gclint.codemod.places import argument_place
from gclint.finding import Finding, Refusal, Step
from gclint.network.model import Network
from gclint.network.story import call_story
from gclint.network.support import models_running
from gclint.rule import Rule
from gclint.wording import listed_code

if TYPE_CHECKING:
    from gclint.network.explaining.places import Spot


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

    There is no fix: only the author knows which of the two calls is right. GC001 removes the branch
    once they agree.

    ## References

    - [transformers issue #23366](https://github.com/huggingface/transformers/issues/23366)
    """

    code = "GC101"
    name = "mismatched-checkpoint-branches"
    precision = "medium"

    def check(self, network: Network) -> Iterable[Finding]:
        """Yield a finding for each checkpointed call that differs from its plain one."""
        for legacy, differences in mismatches(network.run_sites, network.releases):
            if legacy.scope.module.file is not network.file or not models_running(legacy.owner):
                continue
            passed = (each.argument for each in differences if each.argument is not None)
            places = (argument_place(legacy, arg) for arg in passed)
            whole = legacy.span(legacy.call)
            start, end = next((place for place in places if place != whole), whole)
            blocks = listed_code(info.name for info in legacy.blocks)
            yield Finding(
                self.code,
                self.name,
                f"the checkpointed call of {blocks} does not match the plain call beside it: "
                f"{differences[0].description}{_more(len(differences) - 1)}",
                network.file.path,
                start,
                end,
                legacy.blocks[0].name,
                Refusal("only the author knows which of the two calls is right"),
                story=(
                    *call_story(legacy, legacy.blocks[0]),
                    *(Step(network.file.path, start, end, each.description) for each in differences),
                ),
            )

    def silence(self, network: Network, spot: Spot) -> Iterable[str]:
        """Yield for each checkpointed call which plain call it was compared with, or why with none."""
        for site in spot.sites:
            if not site.checkpointed:
                continue
            blocks = listed_code(info.name for info in site.blocks)
            if not models_running(site.owner):
                yield f"no model is seen to hold `{site.owner.name}`, which calls a checkpoint function"
            elif plain_beside(site, network.run_sites) is None:
                yield f"the other branch has no single plain call of {blocks} to compare with"
            else:
                yield (
                    f"the plain call of {blocks} in the other branch passes the same arguments, caches aside"
                )
        if spot.sites and not any(site.checkpointed for site in spot.sites):
            yield (
                "no call here goes through a checkpoint function in the model itself, so there are no two "
                "calls to compare"
            )


def _more(number: int) -> str:
    return f" (and {number} more {'difference' if number == 1 else 'differences'})" if number else ""
